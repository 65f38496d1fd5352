"""Settings of electrostatic potentials; lines about them and about energies are the library's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..atoms import Atoms
from ..jobs.texts import Facts as Facts
from ..jobs.texts import forcefield_line as forcefield_line
from ..jobs.texts import lines_of as lines_of
from ..jobs.texts import medium_lines as medium_lines
from ..jobs.texts import physics_lines as physics_lines
from ..jobs.texts import solvent_text as solvent_text
from ..pb_model import PBModel
from ..potmap.options import DEFAULT_CUTOFF


def medium_facts(atoms: Atoms, options: Mapping[str, Any]) -> dict[str, Any]:
    """Give what a potential depends on, as JSON has it; options : of pele_ocl.potmap"""
    if options.get("pb") is not None:
        return pb_facts(atoms, options["pb"])
    method = options.get("method", "direct")
    return {
        "forcefield": atoms.forcefield,
        "dielectric": options["dielectric"],
        "distance_dependent": options.get("distance_dependent", False),
        "ionic_strength": options.get("ionic_strength", 0.0),
        "temperature": options.get("temperature"),
        "min_distance": options.get("min_distance", 0.0),
        "cutoff": (options.get("cutoff") or DEFAULT_CUTOFF) if method == "cutoff" else None,
        "smooth": options.get("smooth", False),
    }


def pb_facts(atoms: Atoms, model: PBModel) -> dict[str, Any]:
    """Give what a Poisson-Boltzmann potential depends on, as JSON has it."""
    names = (
        "equation", "solute_dielectric", "solvent_dielectric", "ionic_strength", "temperature", "surface", "probe",
        "charges", "boundary",
    )  # fmt: skip
    facts = {name: getattr(model, name) for name in names}
    return {"forcefield": atoms.forcefield, **facts, "radii_set": atoms.gb_radii_set}
