"""On-the-fly probability enhanced sampling of collective variables; docs/theory/sampling.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from numpy.typing import ArrayLike

from ...atoms import Floats
from ...common.arguments import number
from ...common.errors import InputError
from .grid_bias import Growing, Range
from .variables import Variable


@dataclass(frozen=True, eq=False)
class OPES(Growing):
    """OPES: a bias from the probability of one to three collective variables, estimated during a simulation.

    Every `pace` steps each replica adds a Gaussian with the weight exp(V / k_B T) to the density P at its position.
    With Z the mean of P over explored nodes, the bias is

        V = (1 - 1 / bias_factor) k_B T ln(P / Z + e),  e = exp(-barrier / ((1 - 1 / bias_factor) k_B T))

    (Invernizzi and Parrinello, J. Phys. Chem. Lett. 2020, 11, 2731; PLUMED's OPES_METAD with FIXED_SIGMA and without
    compression of kernels). V is -barrier in regions without samples; explored nodes are those with P of at least
    exp(-barrier / k_B T) of its maximum. Each replica has its own density, or all replicas of a molecule share one.

    variables : Variable, or one to three of them
    widths : of Gaussians, one for each variable, in its unit
    barrier : height of the barriers to cross, kcal/mol; pace : steps between Gaussians
    bias_factor : more than 1; None for barrier / k_B T, for which the barrier must be above k_B T
    bounds : of each variable, its first and last node; None for torsions
    spacing : of nodes, in widths
    shared : whether all replicas of a molecule share one density; they must have one temperature
    name : of the term in results

    Rows have the arrays "density", with derivatives as in a grid, and "grid", the bias. A simulation computes the bias
    from the density at each Gaussian, and when the density or the temperature of a row is written.
    """

    variables: Variable | Sequence[Variable]
    widths: ArrayLike
    barrier: float
    pace: int
    bias_factor: float | None = None
    bounds: Sequence[Range | None] | None = None
    spacing: float = 0.2
    shared: bool = False
    name: str = "opes"

    grown = "density"
    first_height = 1.0
    decay = -1.0

    def __post_init__(self) -> None:
        number("barrier", self.barrier, "a number of kcal/mol above 0", above=0.0)
        self._check_growth()

    @property
    def first_grid(self) -> Floats:
        found = super().first_grid
        found[..., 0] = -self.barrier
        return found

    def _check_array(self, name: str, values: Floats) -> None:
        if name == self.grown and (values[..., 0] < 0).any():
            raise InputError("a density is negative; expected 0 or more")

    @property
    def further_arrays(self) -> dict[str, Floats]:
        return {self.grown: super().first_grid}
