"""Small trajectories, written with MDTraj and without."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

NANOMETERS = ("xtc", "trr")
SUFFIXES = ("nc", "dcd", "xtc", "trr", "mdcrd", "h5", "pdb")
# How far positions may be from those that were written, A: half the last digit that a format has, or float32's.
DIGITS = {"nc": 0.0, "dcd": 0.0, "xtc": 0.00501, "trr": 2e-6, "mdcrd": 0.00051, "h5": 0.0, "pdb": 0.00051}


def write_trajectory(path: Path, positions: np.ndarray) -> Path:
    """Write positions (m, n, 3) A in the format of the path's suffix."""
    formats = pytest.importorskip("mdtraj.formats")
    suffix = path.suffix[1:]
    values = np.asarray(positions, np.float32) / np.float32(10 if suffix in NANOMETERS else 1)
    if suffix == "h5":
        with h5py.File(path, "w") as file:
            file["positions"] = values
    elif suffix == "pdb":
        path.write_text("".join(map(pdb_model, range(1, len(values) + 1), values.tolist())) + "END\n")
    else:
        names = {"nc": "NetCDF", "mdcrd": "MDCRD"}
        writer = getattr(formats, f"{names.get(suffix, suffix.upper())}TrajectoryFile")
        with writer(str(path), mode="w", force_overwrite=True) as file:
            file.write(values)
    return path


def pdb_model(number: int, positions: list[list[float]]) -> str:
    atoms = (
        f"ATOM  {k + 1:5d}  C{k % 100:02d} LIG A{k // 100 + 1:4d}    {x:8.3f}{y:8.3f}{z:8.3f}  1.00  0.00           C\n"
        for k, (x, y, z) in enumerate(positions)
    )
    return f"MODEL {number}\n" + "".join(atoms) + "ENDMDL\n"


def moving(positions: np.ndarray, m: int, seed: int = 0) -> np.ndarray:
    """Return m float32 frames of a molecule with noise."""
    rng = np.random.default_rng(seed)
    return (positions + rng.normal(0, 0.05, (m, *positions.shape))).astype(np.float32)
