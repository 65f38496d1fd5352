"""Poisson-Boltzmann electrostatics by finite differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from ..atoms import Atoms
from ..common.modules import lazy_names, make_callable
from ..common.variant import Progress
from ..grid import Grid
from ..pb_model import PBIon, PBMaps, PBModel, centre_of, focusing_grids, grid_at, lowered_shape
from .plan import PoissonBoltzmann
from .result import PBErrors, PBLevelResult, PBParts, PBResult
from .solvers import SOLVERS

if TYPE_CHECKING:
    from ..opencl.device import Device

__all__ = [
    "SOLVERS",
    "PBErrors",
    "PBIon",
    "PBLevelResult",
    "PBMaps",
    "PBModel",
    "PBParts",
    "PBResult",
    "PoissonBoltzmann",
    "centre_of",
    "focusing_grids",
    "grid_at",
    "lowered_shape",
    "pb",
]

if not TYPE_CHECKING:  # names for tests, by the file that has them
    __getattr__ = lazy_names(
        __name__,
        {
            "border": "border_of list_border",
            "colours": "Colours",
            "energies": "ions_of_reaction",
            "equation": "Equation solve",
            "launching": "Launching NodeValues add_at",
            "levels": "Batch Level",
            "probes": "probe_points",
            "reaction": "require_room",
            "rows": "take_corrections",
            "scan": "add_up",
            "surface": "find_coefficients",
        },
    )


def pb(
    atoms: Atoms, model: PBModel | None = None, *, grids: Grid | Sequence[Grid] | None = None, spacing: float = 0.5,
    padding: float = 10.0, wide: bool = False, radii: ArrayLike | str | None = None, reaction: bool = True,
    solver: str = "mgcg",
    tolerance: float = 1e-6, max_iterations: int = 100_000, given: PBMaps | None = None,
    device: Device | int | str | None = None, keep_map: bool = True, grid_error: bool | None = None,
    extrapolate: bool = False, shifts: int = 0, seed: int = 0, progress: Progress | None = None,
) -> PBResult:  # fmt: skip
    """Solve the Poisson-Boltzmann equation of a molecule once.

    Use PoissonBoltzmann for many conformations of one molecule; docs/theory/poisson-boltzmann.md has the method.

    atoms, model, grids, spacing, padding, wide, radii, reaction, solver, tolerance, max_iterations, given, device : as
        of PoissonBoltzmann
    keep_map, grid_error, extrapolate, shifts, seed, progress : as of PoissonBoltzmann.solve

    Returns a PBResult, whose energy is in kcal/mol. Raises what these two raise.
    """
    plan = PoissonBoltzmann(
        atoms, model, grids=grids, spacing=spacing, padding=padding, wide=wide, radii=radii, reaction=reaction,
        solver=solver, tolerance=tolerance, max_iterations=max_iterations, given=given, device=device,
    )  # fmt: skip
    return plan.solve(
        keep_map=keep_map, grid_error=grid_error, extrapolate=extrapolate, shifts=shifts, seed=seed, progress=progress
    )


make_callable(__name__)
