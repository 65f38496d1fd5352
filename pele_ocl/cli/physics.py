"""Lines that say what an energy depends on: force field, solvent, and pairs that count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..atoms import Atoms
from ..gb_models import GB_MODELS
from ..gb_models.radii_of_models import radii_words
from ..gb_models.solvent_model import SolventModel
from ..jobs.facts import settings
from ..units import COULOMB_KCAL_A
from .terminal import one_line

Facts = Mapping[str, Any]  # the settings of a record
_GB_TERMS = ("gb_pair", "gb_self", "nonpolar")
_SURFACES = {"ace": "ACE", "lcpo": "LCPO", "sgb": "SGB/NP surface", "none": "no surface"}


def physics_lines(
    model: SolventModel, atoms: Atoms, terms: Sequence[str] | None = None, cutoff: float | None = None
) -> list[str]:
    """Say the force field and the solvent; terms : of the energy, None for all; cutoff : of its pairs, A"""
    return lines_of({**settings(model, atoms), "cutoff": cutoff}, terms)


def lines_of(facts: Facts, terms: Sequence[str] | None = None) -> list[str]:
    """Say the force field and the solvent of settings; terms : of the energy, None for all."""
    found = [forcefield_line(str(facts["forcefield"]))] if facts.get("forcefield") else []
    return [*found, f"Solvent       {solvent_text(facts, terms)}; {pairs_text(facts)}"]


def forcefield_line(name: str) -> str:
    """Name the force field."""
    return f"Force field   {'of the input file' if name == 'file' else one_line(name)}"


def solvent_text(facts: Facts, terms: Sequence[str] | None = None) -> str:
    """Say the solvent's model and constants, Coulomb's if it is not the default."""
    inside = f"inside {_inside(facts)}"
    coulomb = float(facts["coulomb_constant"])
    constant = [] if coulomb == COULOMB_KCAL_A else [f"Coulomb {coulomb:.7g}"]
    if facts.get("pb") is not None:
        return ", ".join([*_poisson_boltzmann(facts), *constant, _surface(facts)])
    if GB_MODELS[facts["gb"]].vacuum:
        return ", ".join(["none (vacuum)", inside, *constant])
    if terms is not None and not set(_GB_TERMS) & set(terms):
        return ", ".join(["no term of it", inside, *constant])
    parts = [facts["gb"], f"radii {radii_words(facts['gb_radii_set'] or '')}"]
    parts += [f"water {facts['solvent_dielectric']:g}", inside, _salt(facts)]
    parts += [] if facts.get("rgb_max") is None else [f"Born integrals within {facts['rgb_max']:g} A"]
    parts += constant
    parts += [_surface(facts)] if terms is None or "nonpolar" in terms or facts["surface"] == "none" else []
    return ", ".join(parts)


def _poisson_boltzmann(facts: Facts) -> list[str]:
    """Say a PBSolvent with its constants."""
    pb = facts["pb"]
    return [
        f"Poisson-Boltzmann ({pb.equation})", f"radii {radii_words(facts['gb_radii_set'] or '')}",
        f"water {facts['solvent_dielectric']:g}", f"inside {facts['solute_dielectric']:g}", _salt(facts),
        f"grid of {pb.spacing:g} A to {pb.padding:g} A around the complex", f"{pb.surface} surface",
    ]  # fmt: skip


def pairs_text(facts: Facts) -> str:
    """Say what pairs count."""
    pairs, cutoff = facts.get("pairs"), facts.get("cutoff")
    if pairs == "split":
        return "pairs of PELE's short list (10 A, 15 A between charged groups)"
    if pairs not in (None, "all", "cutoff"):
        return f"pairs of {one_line(str(pairs))}"
    return "all pairs" if cutoff is None or pairs == "all" else f"pairs within {cutoff:g} A"


def _inside(facts: Facts) -> str:
    by_residue = facts.get("internal_dielectric") == "vdgbnp" or GB_MODELS[facts["gb"]].own_dielectrics
    return "by residue" if by_residue else f"{facts['solute_dielectric']:g}"


def _salt(facts: Facts) -> str:
    strength = facts["ionic_strength"]
    return f"salt {strength:g} mol/L at {facts['temperature']:g} K" if strength else "no salt"


def _surface(facts: Facts) -> str:
    tension = facts["surface_tension"]
    return _SURFACES[facts["surface"]] + (f" {tension:g}" if tension else "")


def _pb_lines(facts: Facts) -> list[str]:
    """Say what a Poisson-Boltzmann potential depends on; facts : as pb_facts gives them"""
    dielectrics = f"dielectrics {facts['solute_dielectric']:g} and {facts['solvent_dielectric']:g}"
    surface = f"{facts['surface']} surface, probe {facts['probe']:g} A, radii {radii_words(facts['radii_set'])}"
    found = [forcefield_line(facts["forcefield"])] if facts["forcefield"] else []
    return [*found, f"Medium        {facts['equation']} Poisson-Boltzmann, {dielectrics}, {_salt(facts)}; {surface}"]


def medium_lines(facts: Facts) -> list[str]:
    """Say what a potential depends on; facts : as medium_facts or pb_facts gives them"""
    if "solute_dielectric" in facts:
        return _pb_lines(facts)
    dielectric = f"dielectric {facts['dielectric']:g}{' r' if facts['distance_dependent'] else ''}"
    parts = [dielectric, _salt(facts)]
    parts += [f"points within {facts['min_distance']:g} A as at it"] if facts["min_distance"] else []
    reach = "all charges" if facts["cutoff"] is None else f"charges within {facts['cutoff']:g} A"
    smooth = ", smoothed" if facts["smooth"] else ""
    found = [forcefield_line(facts["forcefield"])] if facts["forcefield"] else []
    return [*found, f"Medium        {', '.join(parts)}; {reach}{smooth}"]
