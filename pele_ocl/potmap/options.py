"""Options of `potmap`, and the settings stored in records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..atoms import Atoms
from ..pb_model import PBModel

if TYPE_CHECKING:
    from ..opencl.device import Device


DEFAULT_CUTOFF = 12.0  # A, for the method cutoff


@dataclass(frozen=True)
class MapOptions:
    """Options of `potmap` with their defaults."""

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
        """Relative permittivity of the medium, for methods without a solvent."""
        return 1.0 if self.dielectric is None else self.dielectric

    @property
    def reach(self) -> float:
        """Cutoff of the method cutoff, A."""
        return DEFAULT_CUTOFF if self.cutoff is None else self.cutoff


def medium_facts(atoms: Atoms, options: MapOptions) -> dict[str, Any]:
    """Return the settings of a potential from sums of charges."""
    return {
        "forcefield": atoms.forcefield,
        "dielectric": options.permittivity,
        "distance_dependent": options.distance_dependent,
        "ionic_strength": options.ionic_strength,
        "temperature": options.temperature,
        "min_distance": options.min_distance,
        "cutoff": options.reach if options.method == "cutoff" else None,
        "smooth": options.smooth,
    }


def pb_facts(atoms: Atoms, model: PBModel) -> dict[str, Any]:
    """Return the settings of a Poisson-Boltzmann potential."""
    names = (
        "equation", "solute_dielectric", "solvent_dielectric", "ionic_strength", "temperature", "surface", "probe",
        "charges", "boundary",
    )  # fmt: skip
    facts = {name: getattr(model, name) for name in names}
    return {"forcefield": atoms.forcefield, **facts, "radii_set": atoms.gb_radii_set}
