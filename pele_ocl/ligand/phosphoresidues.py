"""Phosphorylated amino acids: AMBER's phosaa10 for the built-in Amber99SB, phosaa14SB for OpenMM's ff14SB.

AMBER's parameters are not part of this package. tleap writes a topology of the capped residue, and its terms within the
residue form the template; terms across peptide bonds are those of the force field. For ff14SB, AmberTools' files are
converted to an OpenMM XML file.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from ..atoms import Structure
from ..atoms.chemistry import PHOSPHORESIDUES
from ..atoms.radii import element_rule
from ..common.errors import FormatError, InputError, ParameterError
from ..common.inputfile import InputFile
from ..common.notes import Note
from ..forcefield import ForceField
from ..forcefield.field import XmlForceField
from ..forcefield.obc import ObcTable
from ..forcefield.openmm.names import is_ff14sb
from ..forcefield.sources import Joined
from ..forcefield.templates import Template
from ..formats.amber import read_prmtop
from . import antechamber, cache
from .phosaa14sb import xml_of

FORCEFIELD = "amber99sb"
_SOURCE = "AMBER's phosaa10"
_COMMANDS = "source oldff/leaprc.ff99SB\nsource leaprc.phosaa10\nm = sequence {{ ACE {name} NME }}\n"


def with_phosphoresidues(field: ForceField, structure: Structure) -> tuple[ForceField, Structure]:
    """Add the templates of phosphorylated residues that a structure has and the force field lacks.

    This applies to the built-in force field and OpenMM's ff14SB; others are returned unchanged.

    Also returns the structure, with a note about these residues. Raises InputError if AmberTools is not installed.
    """
    names = structure.labels.residue_names[structure.labels.residue_starts]
    if isinstance(field, XmlForceField):
        return _with_ff14sb(field, structure, [name for name in PHOSPHORESIDUES if (names == name).any()])
    wanted = [name for name in PHOSPHORESIDUES if (names == name).any() and name not in field.templates]
    if field.name != FORCEFIELD or not wanted:
        return field, structure
    templates, rows = dict[str, Template](), ObcTable()
    for name in wanted:
        templates[name], own = _template(name, structure)
        rows |= own
    text = f"{' and '.join(wanted)}: parameters of {_SOURCE}, through tleap; GB radii are those of the elements"
    notes = (*structure.notes, Note(text, code="phosphoresidues"))
    added = replace(field, templates=Joined(templates, field.templates), radii={**field.radii, **rows})
    return added, replace(structure, notes=notes)


def _with_ff14sb(
    field: XmlForceField, structure: Structure, wanted: list[str]
) -> tuple[ForceField, Structure]:  # fmt: skip
    """Add the residues `wanted` of AmberTools' phosaa14SB to ff14SB, if AmberTools is installed."""
    lacking = [name for name in wanted if not field.xml.has(name)] if is_ff14sb(field.xml.files) else []
    if not lacking:
        return field, structure
    try:
        folder = Path(antechamber.program("tleap")).resolve().parent.parent / "dat" / "leap"
        text = xml_of(folder)
    except (FormatError, InputError, OSError):  # the error for a residue without a template gives advice
        return field, structure
    kept = cache.entry("phosphoresidues", text).with_suffix(".xml")
    if not kept.is_file():
        cache.keep(kept, text.encode())
    if not kept.is_file():
        raise InputError(f"{kept}: cannot be written; choose another folder with {cache.VARIABLE}")
    sentence = f"{' and '.join(lacking)}: parameters of AMBER's phosaa14SB, of AmberTools' files"
    notes = (*structure.notes, Note(sentence, code="phosphoresidues"))
    added = replace(field, xml=replace(field.xml, files=(*field.xml.files, str(kept))))
    return added, replace(structure, notes=notes)


def _template(name: str, structure: Structure) -> tuple[Template, ObcTable]:
    """Return the template of a residue within a chain, and the GB radii and scale factors of its atoms."""
    try:
        version = antechamber.version()
        antechamber.program("tleap")
    except InputError as error:
        first = int(np.flatnonzero(structure.labels.residue_names == name)[0])
        raise InputError(
            f"{structure.where(first)}: the phosphorylated residue {name} needs parameters of AMBER's phosaa10; {error}"
        ) from None
    kept = cache.entry("phosphoresidue", name, _COMMANDS, version)
    try:
        return _of(name, kept.read_bytes())
    except (OSError, ValueError, InputError):
        with cache.held(kept, f"the residue {name}"):
            topology = _topology(name)
            cache.keep(kept, topology)
        return _of(name, topology)


def _topology(name: str) -> bytes:
    """Return the topology of a capped residue. Raises ParameterError if tleap fails."""
    with tempfile.TemporaryDirectory(prefix="pele-ocl-") as made:
        folder = Path(made)
        text = _COMMANDS.format(name=name) + "saveamberparm m out.prmtop out.rst7\nquit\n"
        (folder / "leap.in").write_text(text)
        antechamber.run("tleap", ["-f", "leap.in"], folder, f"the residue {name}", None)
        return (folder / "out.prmtop").read_bytes()


def _of(name: str, topology: bytes) -> tuple[Template, ObcTable]:
    """Extract the template and radii of a residue from the topology of the capped residue."""
    whole = read_prmtop(InputFile(Path(f"{name}.prmtop"), topology)).parameters
    assert whole.labels is not None
    mask = whole.labels.residue_names == name
    own = whole[mask]
    if not len(own) or own.bonded is None or own.labels is None or own.lj_sigma is None or own.lj_epsilon is None:
        raise ParameterError(f"tleap has no residue {name}")
    assert own.types is not None
    radii, scales = (values[mask].tolist() for values in element_rule(whole.labels.elements, whole.bonds))
    names = own.labels.names.tolist()
    rows = {(name, atom): pair for atom, pair in zip(names, zip(radii, scales, strict=True), strict=True)}
    template = Template(
        name=name, names=tuple(names), elements=tuple(own.labels.elements.tolist()),
        types=tuple(own.types.tolist()), lj_lengths=own.lj_sigma * 2 ** (1 / 6) / 2, lj_epsilon=own.lj_epsilon,
        charges=own.charges, bonds=np.unique(np.sort(own.bonds, axis=1), axis=0), kind="amber", source=_SOURCE,
        terms=own.bonded, impropers_by_index=True,
    )  # fmt: skip
    return template, rows
