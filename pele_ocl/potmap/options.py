"""Options of `potmap`, and what they make of atoms and a grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..grid import Map
from ..pb_model import PBModel
from .problem import MapProblem
from .variants import MapVariant

if TYPE_CHECKING:
    from ..opencl.device import Device


DEFAULT_CUTOFF = 12.0  # A, of the method cutoff


@dataclass(frozen=True)
class MapOptions:
    """Options of `potmap`, as it explains them, with its defaults."""

    method: str = "direct"
    cutoff: float | None = None
    smooth: bool = False
    accuracy: float | None = None
    variant: str = "auto"
    precision: str = "float32"
    device: Device | int | str | Sequence[Device | int | str] | None = None
    dielectric: float | None = None
    distance_dependent: bool = False
    ionic_strength: float = 0.0
    kappa: float | None = None
    min_distance: float = 0.0
    field: bool = False
    unit: str = "kcal/mol/e"
    temperature: float = 298.15
    pb: PBModel | None = None
    solute_dielectric: float | None = None

    @property
    def permittivity(self) -> float:
        """Relative permittivity of the medium, of methods without a solvent."""
        return 1.0 if self.dielectric is None else self.dielectric

    @property
    def reach(self) -> float:
        """Distance at which the method cutoff ends, A."""
        return DEFAULT_CUTOFF if self.cutoff is None else self.cutoff


@dataclass(frozen=True, eq=False)
class PlannedMap:
    """A map that is to be computed, by which method, and on which devices.

    method : key of MAP_METHODS; variant : its name, never "auto", and `steps` itself; temperature : K
    factor : the potential of a unit charge 1 A away, in `unit`, without salt
    """

    problem: MapProblem
    method: str
    variant: str
    steps: MapVariant
    devices: list[Device]
    unit: str
    temperature: float
    title: str
    factor: float

    @property
    def device(self) -> str:
        """Names of the devices."""
        return " + ".join(map(str, self.devices))

    def map_of(self, values: NDArray[np.floating], what: str = "") -> Map:
        """Values (nz, ny, nx) as a Map; what : put before the title"""
        kelvin = self.temperature if self.unit == "kT/e" else None
        return Map.owning(self.problem.grid, values, self.unit, what + self.title, kelvin)
