"""Minimization in a step: truncated Newton on the atoms of a region."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ..minimize.options import check_options
from .regions import Region
from .walk import Move, Walk


class Minimization(Move):
    """Minimize the atoms near the ligand, after side-chain prediction and at its own frequency.

    region : moving atoms, by default all residues within `Settings.minimization_radius` of the ligand
    options : options of Minimizer; the defaults are PELE's: truncated Newton, three rounds of 65 iterations, an rms
        gradient of 0.1 kcal/mol/A
    """

    name: ClassVar[str] = "minimization"

    def __init__(self, region: Region | None = None, **options: Any) -> None:
        self.region = region or Region()
        self.options = {"method": "newton", "tolerance": 0.1, "max_iterations": 65, "rounds": 3, **options}
        check_options(self.options)

    def is_due(self, walk: Walk, row: int) -> bool:
        return "side_chains" in walk.made[row] or walk.is_multiple(row, walk.settings[row].minimization_frequency)

    def apply(self, walk: Walk, rows: Sequence[int]) -> None:
        positions = walk.ensemble.positions[list(rows)]
        free = [self.region.free(walk, row, x) for row, x in zip(rows, positions, strict=True)]
        walk.ensemble.frozen[list(rows)] = [np.flatnonzero(~mask) for mask in free]
        batch = walk.ensemble.minimize(list(rows), **self.options)
        for place, (row, result) in enumerate(zip(rows, batch.results, strict=True)):
            if result is None:
                walk.failures[row] = batch.errors[place]
            elif not result.converged:
                walk.note(row, f"the minimization did not converge ({result.stopped_by})")
