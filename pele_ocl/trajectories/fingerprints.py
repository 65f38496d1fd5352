"""Settings as texts, by which an interrupted run knows its inputs again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ..atoms import Atoms
from ..energy.terms import Term
from ..formats.tables import flat_texts
from ..gb_models.solvent_model import SolventModel
from .files import MemoryFile
from .reading import Trajectory

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_ENDS = 1 << 20  # bytes at either end of a file that tell it from others


class Planned(Protocol):
    """A plan, as far as its results depend on it."""

    atoms: Atoms
    model: SolventModel
    precision: str
    variant: str

    @property
    def device(self) -> object: ...


def settings_of_frames(plan: Planned, frames: Trajectory, more: Mapping[str, object]) -> dict[str, str]:
    """All that decides on the results of frames, as texts by name; more : what else does."""
    chosen = frames.frames
    return flat_texts(
        {
            **more,
            "n_atoms": len(plan.atoms),
            "atoms_sha256": sha256_of(plan.atoms),
            "trajectory": [fingerprint(path) for path in frames.paths],
            "frames": f"{chosen.start}:{chosen.stop}:{chosen.step}",
            "frame_atoms_sha256": frames.atoms_sha256,
            "image": frames.image,
            "device": str(plan.device),
            "variant": plan.variant,
            "precision": plan.precision,
            "gb_radii_set": plan.atoms.gb_radii_set,
            "model": asdict(plan.model),
        }
    )


def sha256_of(value: object) -> str:
    """Hash everything that energies depend on in atoms or terms, labels and notes left out, by SHA-256."""
    digest = hashlib.sha256()
    _add(digest, value)
    return digest.hexdigest()


class _Digest(Protocol):
    def update(self, data: bytes, /) -> None: ...


def _add(digest: _Digest, value: object) -> None:
    """Let a value count, arrays by their bytes, dataclasses field by field."""
    if isinstance(value, Term):  # of a user's class, which need not be a dataclass
        digest.update(f"{type(value).__qualname__} {value.names}".encode())
        _add(digest, _fields(value) if is_dataclass(value) else vars(value))
    elif is_dataclass(value) and not isinstance(value, type):
        _add(digest, _fields(value))
    elif isinstance(value, Mapping):
        for name, item in sorted(value.items(), key=lambda pair: str(pair[0])):
            digest.update(str(name).encode())
            _add(digest, item)
    elif isinstance(value, np.ndarray) and value.dtype.kind != "O":
        digest.update(f"{value.dtype}{value.shape}".encode() + np.ascontiguousarray(value).tobytes())
    elif isinstance(value, tuple | list | Iterator | np.ndarray):
        for item in value:
            _add(digest, item)
    else:
        digest.update(repr(value).encode())


def _fields(value: DataclassInstance) -> dict[str, object]:
    """Return the fields of a dataclass that energies depend on, by name."""
    names = ("labels", "notes", "cell_angles", "forcefield", "default_radii", "rule")
    return {f.name: getattr(value, f.name) for f in fields(value) if f.name not in names}


def fingerprint(path: Path | MemoryFile) -> dict[str, object]:
    """Return name, size and SHA-256 of both ends of a file. To read all of it would take as long as to compute.

    Frames in memory are hashed whole.
    """
    if isinstance(path, MemoryFile):
        whole = hashlib.sha256()
        for k in range(path.n_frames):
            whole.update(np.ascontiguousarray(path.read(range(k, k + 1), slice(None))).tobytes())
        path.close()
        return {"name": str(path), "sha256": whole.hexdigest()}
    size, digest = _size_and_ends(path)
    return {"name": path.name, "bytes": size, "sha256_of_ends": digest}


def content_of(path: Path) -> list[tuple[object, ...]]:
    """List size and SHA-256 of both ends of a file, or of a folder's files, each after its name; [] for none."""
    if path.is_file():
        return [_size_and_ends(path)]
    return [(str(of.relative_to(path)), *_size_and_ends(of)) for of in sorted(path.rglob("*")) if of.is_file()]


def _size_and_ends(path: Path) -> tuple[int, str]:
    with open(path, "rb") as stream:
        head = stream.read(_ENDS)
        size = stream.seek(0, 2)
        stream.seek(max(0, size - _ENDS))
        return size, hashlib.sha256(head + stream.read(_ENDS)).hexdigest()
