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
    """OPES: a bias from the probability density of one to three collective variables, estimated during a simulation.

    Every `pace` steps each replica adds a Gaussian with the weight exp(V / k_B T) to the density P at its position.
    With Z the mean of P over explored nodes, the bias is

        V = (1 - 1 / bias_factor) k_B T ln(P / Z + e),  e = exp(-barrier / ((1 - 1 / bias_factor) k_B T))

    (Invernizzi and Parrinello, J. Phys. Chem. Lett. 2020, 11, 2731; PLUMED's OPES_METAD with FIXED_SIGMA and without
    kernel compression). V is -barrier in regions without samples; explored nodes are those where P is at least
    exp(-barrier / k_B T) times its maximum. Each replica has its own density, or all replicas of a molecule share one.

    variables : Variable, or one to three of them
    widths : widths of the Gaussians along each variable, in its unit
    barrier : height of the barriers to cross, kcal/mol; pace : steps between Gaussians
    bias_factor : above 1; None for barrier / k_B T, which requires a barrier above k_B T
    bounds : first and last node of each variable; None for torsions
    spacing : distance between nodes, in widths
    shared : whether all replicas of a molecule share one density; they must have the same temperature
    name : name of the term in results

    Rows have the arrays "density", with derivatives as in a grid, and "grid", the bias. A simulation computes the bias
    from the density whenever a Gaussian is added, or the density or the temperature of a row is set.
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
        number("barrier", self.barrier, "a number in kcal/mol above 0", above=0.0)
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
