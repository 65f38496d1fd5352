"""Settings of runs over frames as texts, to detect changed inputs when a run is resumed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Protocol

import numpy as np

from ..atoms import Atoms
from ..common.hashing import sha256_of, size_and_ends
from ..formats.tables import flat_texts
from ..gb_models.solvent_model import SolventModel
from .files import MemoryFile
from .reading import Trajectory


class Planned(Protocol):
    """Interface of plans: the attributes on which results depend."""

    atoms: Atoms
    model: SolventModel
    precision: str
    variant: str

    @property
    def device(self) -> object: ...


def settings_of_frames(plan: Planned, frames: Trajectory, more: Mapping[str, object]) -> dict[str, str]:
    """Return all settings that affect the results of frames, as texts by name. more : additional settings"""
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


def fingerprint(path: Path | MemoryFile) -> dict[str, object]:
    """Return the name, the size, and the SHA-256 of both ends of a file.

    Hashing the whole file would take as long as the calculation. Frames in memory are hashed completely.
    """
    if isinstance(path, MemoryFile):
        whole = hashlib.sha256()
        for k in range(path.n_frames):
            whole.update(np.ascontiguousarray(path.read(range(k, k + 1), slice(None))).tobytes())
        path.close()
        return {"name": str(path), "sha256": whole.hexdigest()}
    size, digest = size_and_ends(path)
    return {"name": path.name, "bytes": size, "sha256_of_ends": digest}
