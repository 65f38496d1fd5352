"""Hashes of values and files, used to recognize the inputs of an interrupted run."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_ENDS = 1 << 20  # bytes hashed at the beginning and the end of a file


def sha256_of(value: object) -> str:
    """Return the SHA-256 of a value, such as Atoms or energy terms, without labels and notes."""
    digest = hashlib.sha256()
    _add(digest, value)
    return digest.hexdigest()


class Hashed(ABC):
    """Base class of energy terms, which are hashed by their names and all attributes."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]: ...


class _Digest(Protocol):
    def update(self, data: bytes, /) -> None: ...


def _add(digest: _Digest, value: object) -> None:
    """Add a value to a digest: arrays by their bytes, dataclasses by their fields."""
    if isinstance(value, Hashed):  # energy terms defined by users need not be dataclasses
        digest.update(f"{type(value).__qualname__} {value.names}".encode())
        _add(digest, _fields(value) if is_dataclass(value) and not isinstance(value, type) else vars(value))
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
    """Return the fields of a dataclass that affect energies, by name."""
    names = ("labels", "notes", "cell_angles", "forcefield", "default_radii", "rule")
    return {f.name: getattr(value, f.name) for f in fields(value) if f.name not in names}


def content_of(path: Path) -> list[tuple[object, ...]]:
    """Return `size_and_ends` of a file, or of all files in a folder with their names; [] if there are none."""
    if path.is_file():
        return [size_and_ends(path)]
    return [(str(of.relative_to(path)), *size_and_ends(of)) for of in sorted(path.rglob("*")) if of.is_file()]


def size_and_ends(path: Path) -> tuple[int, str]:
    """Return the size of a file, and the SHA-256 of its first and last MiB."""
    with open(path, "rb") as stream:
        head = stream.read(_ENDS)
        size = stream.seek(0, 2)
        stream.seek(max(0, size - _ENDS))
        return size, hashlib.sha256(head + stream.read(_ENDS)).hexdigest()
