"""pKa values from PROPKA, and protonation states of residues at a given pH."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..atoms import Floats
from ..common.errors import InputError
from ..common.extras import extra
from .building import name

if TYPE_CHECKING:
    from openmm.app import Topology
    from openmm.app.topology import Residue

SOURCES = ("auto", "propka", "usual")
USUAL = "usual"
# For each residue, the standard pKa as in OpenMM's hydrogen definitions, the form below it and the form above it. None
# means that OpenMM chooses: neutral histidine gets the tautomer with the better hydrogen bond.
_FORMS: dict[str, tuple[float, str, str | None]] = {
    "ASP": (4.4, "ASH", "ASP"),
    "GLU": (4.4, "GLH", "GLU"),
    "HIS": (6.5, "HIP", None),
    "LYS": (10.0, "LYS", "LYN"),
}
# Residues whose deprotonated form has no template in the force field. They stay protonated, with a warning.
_KEPT = ("CYS", "TYR", "ARG")
NEUTRAL = 7.0  # pH at which OpenMM chooses a tautomer of histidine
_NONE = 50.0  # PROPKA reports 99.99 for cysteines in disulphides
_PURPOSE = "pKa of residues in their surroundings (`pka='propka'`)"


@dataclass(frozen=True)
class Forms:
    """Protonation states of residues at a pH.

    source : PROPKA with its version
    pkas : pKa of side chains by residue
    variants : OpenMM's name of the form of each residue in the topology; None to let OpenMM choose
    warnings : messages about forms without a template in the force field
    """

    source: str
    pkas: dict[str, float]
    variants: list[str | None]
    warnings: list[str]


def asks_propka(source: str) -> bool:
    """Return whether to run PROPKA. Raises InputError if it is required but not installed."""
    if source == USUAL:
        return False
    try:
        extra("propka", _PURPOSE, "use standard values: `pka='usual'`")
    except InputError:
        if source == "propka":
            raise
        return False
    return True


def forms_at(ph: float, topology: Topology, positions: Floats, text: str) -> Forms:
    """Choose the form of each residue at a pH with PROPKA.

    topology : topology of the structure; positions : (n, 3) A; text : the same atoms as PDB text

    Raises InputError if PROPKA fails for the structure.
    """
    version, at = _by_propka(text)
    pkas, variants, warnings = dict[str, float](), list[str | None](), list[str]()
    for residue in topology.residues():
        places = (_written(positions[atom.index]) for atom in residue.atoms())
        own = next((at[place] for place in places if place in at), None)
        variants.append(_form(residue, own, ph))
        if own is None:
            continue
        pkas[name(residue)] = round(own, 2)
        if residue.name in _KEPT and own < ph:
            warnings.append(
                f"{name(residue)} has a pKa of {own:.1f} and would lose a proton at pH {ph:g}; the force field "
                "has no such form, so the proton is kept"
            )
    return Forms(f"PROPKA {version}", pkas, variants, warnings)


def _form(residue: Residue, pka: float | None, ph: float) -> str | None:
    """Choose the form of a residue; None to let OpenMM choose."""
    if residue.name not in _FORMS:
        return None
    usual, below, above = _FORMS[residue.name]
    if ph < (usual if pka is None else pka):
        return below
    hydrogens = {atom.name for atom in residue.atoms()} & {"HD1", "HE2"}
    # OpenMM would choose the charged form if the file has both hydrogens.
    return "HIE" if residue.name == "HIS" and len(hydrogens) == 2 else above


def _written(place: Iterable[float]) -> tuple[str, ...]:
    """Format coordinates as in a PDB file."""
    return tuple(f"{x:.3f}" for x in place)


def _by_propka(text: str) -> tuple[str, dict[tuple[str, ...], float]]:
    """Run PROPKA on PDB text. Returns its version, and the pKa of side chains by the position of an atom."""
    module, run = extra("propka", _PURPOSE), extra("propka.run", _PURPOSE)
    try:
        with _quiet():
            molecule = run.single("in.pdb", optargs=["--quiet"], stream=io.StringIO(text), write_pka=False)
        groups = molecule.conformations["AVR"].groups
    except (ValueError, LookupError, AttributeError, TypeError, ArithmeticError) as error:
        raise InputError(f"PROPKA cannot process it: {error}; use standard values: `pka='usual'`") from error
    titrated = {*_FORMS, *_KEPT}
    return str(module.__version__), {
        _written((group.atom.x, group.atom.y, group.atom.z)): float(group.pka_value)
        for group in groups
        if group.residue_type in titrated and group.pka_value < _NONE
    }


@contextmanager
def _quiet() -> Iterator[None]:
    """Context manager that suppresses log messages of PROPKA."""
    log = logging.getLogger("propka")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)
