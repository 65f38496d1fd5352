"""Peers: other programs that compute a quantity of pele-ocl, in a form that can be timed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from tempfile import TemporaryFile

import numpy as np
from numpy.typing import NDArray

from pele_ocl.atoms import Atoms
from pele_ocl.grid import Grid
from pele_ocl.units import COULOMB_KCAL_A

# Computes the map of a grid; returns the time in seconds, without transfers, and values (nz, ny, nx), kcal/mol/e.
Array = NDArray[np.floating]
Once = Callable[[Grid], tuple[float, Array]]


@dataclass(frozen=True, eq=False)
class MapPeer:
    """A peer prepared for the maps of some atoms.

    version : version number; where : the device
    """

    version: str
    where: str
    once: Once


def version_of(*distributions: str) -> str:
    """Return the version of the first installed package."""
    for name in distributions:
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return ""


def relative_arrays(atoms: Atoms, grid: Grid, precision: str) -> tuple[Array, Array, tuple[Array, ...]]:
    """Return positions (n, 3) and axes relative to the grid centre, and charges (n,) times Coulomb's constant."""
    middle = (grid.origin + grid.last) / 2
    axes = tuple((axis - m).astype(precision) for axis, m in zip(grid.axes(), middle, strict=True))
    return (atoms.positions - middle).astype(precision), (COULOMB_KCAL_A * atoms.charges).astype(precision), axes


def points_of(axes: tuple[Array, ...]) -> Array:
    """Return the points (nx ny nz, 3) of a grid in the order of the map's values."""
    return np.stack(np.meshgrid(*axes[::-1], indexing="ij")[::-1], axis=-1).reshape(-1, 3)


@contextmanager
def talk_to_stderr(name: str) -> Iterator[None]:
    """Redirect standard output to standard error, with a name before the messages of compiled parts of a peer.

    name : of the running peer
    """
    sys.stdout.flush()
    kept = os.dup(1)
    with TemporaryFile() as told:
        try:
            os.dup2(told.fileno(), 1)
            with redirect_stdout(sys.stderr):
                yield
        finally:
            os.dup2(kept, 1)
            os.close(kept)
            told.seek(0)
            for line in told.read().decode(errors="replace").splitlines():
                print(f"{name}: {line}", file=sys.stderr)
