"""Surfaces, pages and pictures of molecules of many sizes: number of triangles, MB, and processor time.

python tests/benchmarks/pictures.py [ATOMS ...]

Molecules are balls of atoms as dense as a protein, of 1,000, 10,000 and 100,000 atoms by default; the map is of zeros,
at 111^3 points. Times are processor times of this process.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from pele_ocl import Grid, Map
from pele_ocl.bench.systems import ball_of_atoms
from pele_ocl.painting.colouring import by_map
from pele_ocl.painting.page import page_of
from pele_ocl.painting.picture import picture_of, save_picture
from pele_ocl.painting.surface import molecular_surface


def main() -> None:
    """Print a table with one row per molecule."""
    sizes = [int(word) for word in sys.argv[1:]] or [1_000, 10_000, 100_000]
    print("| atoms | step and probe, A | triangles | surface, s | page, s | page, MB | picture, s |")
    print("|---|---|---|---|---|---|---|")
    for n in sizes:
        atoms = ball_of_atoms(n)
        start = time.process_time()
        surface = molecular_surface(atoms)
        surfaced = time.process_time()
        span = float(np.ptp(atoms.positions, axis=0).max()) + 20
        grid = Grid.around(atoms, 10, span / 110)
        map_ = Map(grid, np.zeros(grid.shape[::-1], np.float32), "kT/e")
        colouring = by_map(surface, map_, 5.0)
        mapped = time.process_time()
        page = page_of(atoms, surface, colouring, map_, "ball", "")
        paged = time.process_time()
        with TemporaryDirectory() as folder:
            save_picture(Path(folder) / "ball.png", picture_of(atoms, surface, colouring, "ball", ""))
        drawn = time.process_time()
        print(
            f"| {n:,} | {surface.spacing:.2g}, {surface.probe:.2g} | {len(surface.faces):,} | {surfaced - start:.1f} | "
            f"{paged - mapped:.1f} | {len(page.encode()) / 1e6:.1f} | {drawn - paged:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
