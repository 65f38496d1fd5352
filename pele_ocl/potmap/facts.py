"""Settings that a potential depends on, as records have them."""

from __future__ import annotations

from typing import Any

from ..atoms import Atoms
from ..pb_model import PBModel
from .options import MapOptions


def medium_facts(atoms: Atoms, options: MapOptions) -> dict[str, Any]:
    """Settings of a potential by sums of charges."""
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
    """Settings of a Poisson-Boltzmann potential."""
    names = (
        "equation", "solute_dielectric", "solvent_dielectric", "ionic_strength", "temperature", "surface", "probe",
        "charges", "boundary",
    )  # fmt: skip
    facts = {name: getattr(model, name) for name in names}
    return {"forcefield": atoms.forcefield, **facts, "radii_set": atoms.gb_radii_set}
