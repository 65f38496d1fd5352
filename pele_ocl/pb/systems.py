"""Solution for frames of several molecules, such as a complex and its parts."""

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
        """Create a conformation from positions, (n, 3) A. Raises InputError if they do not fit the grid."""
        return cls(plan, plan._problem(positions, (grid,)))


def solve_systems(
    conformations: Sequence[Conformation], *, rows: int | None = None, progress: Progress | None = None,
    stopped: dict[int, str] | None = None,
) -> dict[int, PBResult]:  # fmt: skip
    """Solve conformations of molecules whose plans differ only in their atoms; equal grid shapes are solved together.

    rows : maximum number solved together, as in solve_frames
    progress : called with the fraction done, 0 to 1
    stopped : receives error messages of conformations without a solution, by number; others in the batch are solved
        again

    Returns a PBResult for each conformation by number, as from PoissonBoltzmann.solve_frames. Without `stopped`, raises
    StoppedError with the number of the conformation.
    """
    # Group equal shapes, in the order of their first occurrence.
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
