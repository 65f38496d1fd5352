"""Frames of several molecules, such as a complex and its parts: grids of one shape share launches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..atoms import Floats
from ..common.variant import Progress
from ..grid import Grid
from ..pb_model import PBProblem
from .equation import StoppedError
from .plan import PoissonBoltzmann
from .result import PBResult


@dataclass(frozen=True, eq=False)
class Conformation:
    """Conformation of a molecule on a grid. plan : PoissonBoltzmann of the molecule; problem : of the conformation"""

    plan: PoissonBoltzmann
    problem: PBProblem

    @classmethod
    def of(cls, plan: PoissonBoltzmann, positions: Floats, grid: Grid) -> Conformation:
        """Put positions, (n, 3) A, on a grid. Raises InputError if they do not fit it."""
        return cls(plan, plan._problem(positions, (grid,)))


def solve_systems(
    conformations: Sequence[Conformation], *, rows: int | None = None, progress: Progress | None = None,
    stopped: dict[int, str] | None = None,
) -> dict[int, PBResult]:  # fmt: skip
    """Solve conformations of molecules, whose plans differ in their atoms alone; grids of one shape share launches.

    rows : how many at most in one set of launches, as of solve_frames
    progress : called with the fraction done, 0 to 1
    stopped : takes sentences of the ones without a solution, by number; the others that share launches begin again

    Returns a PBResult of each by number, as PoissonBoltzmann.solve_frames does. Without `stopped` it raises
    StoppedError with the number of one that has no solution.
    """
    # Ones alike come one after the other, in the order in which their shapes are met.
    shapes = [tuple(grid.shape for grid in each.problem.grids) for each in conformations]
    order = sorted(range(len(shapes)), key=lambda number: shapes.index(shapes[number]))
    results = dict[int, PBResult]()
    while order:
        problems = [conformations[number].problem for number in order]
        try:
            found = conformations[0].plan._in_rows(problems, rows=rows)
            for number, (solved, seconds) in zip(order, found, strict=True):
                own = conformations[number]
                atoms = own.plan.atoms.moved(own.problem.solute.positions)
                results[number] = own.plan._without_map(atoms, solved, seconds)
                if progress is not None:
                    progress(len(results) / len(conformations))
        except StoppedError as error:
            error.row = order[error.row]
            if stopped is None:
                raise
            stopped[error.row] = str(error)
            order.remove(error.row)
        order = [number for number in order if number not in results]
    return dict(sorted(results.items()))
