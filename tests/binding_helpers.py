"""A complex for tests of binding energies: two adjacent hexapeptides, as an AMBER topology."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from amber_helpers import content, hexapeptide, netcdf, rendered, restart
from trajectory_helpers import moving

from pele_ocl import Atoms, read
from pele_ocl.binding.alanine import reasons_to_stay

N = 96  # atoms of either
LIGAND = f"index {N}:{2 * N - 1}"
SHIFT = 0.5  # A


def positions() -> np.ndarray:
    """Return positions with the second peptide about 3 A away from the first."""
    x = hexapeptide().positions
    return np.concatenate([x, x + np.array([np.ptp(x[:, 0]) + SHIFT, 2.0, 1.0])])


def frames(m: int = 6) -> np.ndarray:
    return moving(positions(), m)


def write_complex(folder: Path, m: int = 6) -> tuple[Path, Path, Path]:
    """Write a topology, a restart and a trajectory of m frames."""
    paths = folder / "complex.parm7", folder / "complex.rst7", folder / "frames.nc"
    paths[0].write_text(rendered(content(copies=2)))
    paths[1].write_text(restart(positions()))
    paths[2].write_bytes(netcdf(frames(m)))
    return paths


@cache
def complex_atoms() -> Atoms:
    with TemporaryDirectory() as folder:
        topology, coordinates, _ = write_complex(Path(folder), 1)
        return read(topology, coordinates=coordinates)


def mutable_residues(atoms: Atoms) -> list[int]:
    """Return the residues that an alanine scan can mutate."""
    return [k for k, reason in enumerate(reasons_to_stay(atoms)) if not reason]
