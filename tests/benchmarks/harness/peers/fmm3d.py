"""Map with FMM3D: a fast multipole method on the CPU, in float64."""

from __future__ import annotations

import os
import time

import numpy as np
from timing_tables.installed import load

from pele_ocl.atoms import Atoms
from pele_ocl.grid import Grid

from .peer import Array, MapPeer, points_of, relative_arrays, version_of

POTENTIAL = 1  # of what it computes; 2 has the gradient, too
SLACK = 10  # its errors are smaller than requested (measured), at a higher cost


def potmap(atoms: Atoms, accuracy: float) -> MapPeer:
    """Compute the potential of all charges at all points; accuracy : requested error by norm"""
    fmm3d = load("fmm3dpy")

    def once(grid: Grid) -> tuple[float, Array]:
        positions, charges, axes = relative_arrays(atoms, grid, "float64")
        sources, targets = np.asfortranarray(positions.T), np.asfortranarray(points_of(axes).T)
        start = time.perf_counter()
        found = fmm3d.lfmm3d(eps=SLACK * accuracy, sources=sources, charges=charges, targets=targets, pgt=POTENTIAL)
        seconds = time.perf_counter() - start
        if found.ier:
            raise RuntimeError(f"lfmm3d returned {found.ier}")
        return seconds, 4 * np.pi * found.pottarg.reshape(grid.shape[::-1])  # its kernel is 1 / (4 pi r)

    return MapPeer(version_of("fmm3dpy"), f"CPU, {os.cpu_count()} cores", once)
