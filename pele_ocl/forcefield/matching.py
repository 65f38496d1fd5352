"""Matching of residues to templates with the same atoms."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from ..atoms import Ints, Structure
from ..atoms.chemistry import is_water
from ..atoms.names import SPELLINGS, capitals, differences, residue_names
from ..common.errors import FormatError, ParameterError
from .templates import Template

DISULPHIDE_A = 2.5

# Template suffixes to try, in order, by whether a residue is the first and the last of its segment.
_SUFFIXES = {
    (False, False): ("", "B", "E", "Z"),
    (True, False): ("B", "", "E", "Z"),
    (False, True): ("E", "", "B", "Z"),
    (True, True): ("Z", "", "B", "E"),
}
_PREPARE = "add hydrogens with `pele-ocl prepare`, or reduce, PDB2PQR or PELE's preparation"


@dataclass(frozen=True, eq=False)
class Match:
    """A residue matched to a template. order : (n,) index in the template of each atom, in the order of the file"""

    template: Template
    order: Ints

    @cached_property
    def places(self) -> Ints:
        """Index in the residue of each atom of the template; -1 for missing atoms."""
        places = np.full(len(self.template), -1, np.int32)
        places[self.order] = np.arange(len(self.order))
        return places

    @cached_property
    def bonds(self) -> Ints:
        """Bonds within the residue, as indices in it, (m, 2)."""
        bonds = self.places[self.template.bonds]
        return bonds[(bonds >= 0).all(axis=1)]


@dataclass(frozen=True)
class _Residue:
    """Properties of a residue that determine its template. Equal residues share one match."""

    name: str
    atoms: tuple[str, ...]
    first: bool
    last: bool
    bridged: bool


def match_residues(
    structure: Structure, templates: Mapping[str, Template], allow_missing_terminals: bool = True
) -> list[Match]:
    """Match all residues of a structure, in order.

    allow_missing_terminals : True to allow residues at chain ends without terminal atoms. They get the template of a
        residue within a chain, or that of a terminal residue without the missing atoms

    Raises FormatError for duplicate atom names in a residue, ParameterError for residues without a matching template.
    """
    residues = _residues(structure)
    matches: dict[_Residue, Match | None] = {}
    for number, residue in enumerate(residues):
        if residue not in matches:
            _check_unique(structure, number, residue.atoms)
            found = _match(residue, templates)
            matches[residue] = found if allow_missing_terminals else _as_terminal(found, residue, templates)
    failed = [number for number, residue in enumerate(residues) if matches[residue] is None]
    if failed:
        raise ParameterError(_explain(structure, residues, failed, templates))
    return [match for residue in residues if (match := matches[residue]) is not None]


def unmatched_residues(structure: Structure, templates: Mapping[str, Template]) -> list[int]:
    """Return the indices of the residues without a matching template."""
    return [number for number, residue in enumerate(_residues(structure)) if _match(residue, templates) is None]


def disulphides(structure: Structure) -> Ints:
    """Find the disulphide bonds (m, 2): pairs of SG atoms without hydrogen within 2.5 A, the shortest first."""
    labels = structure.labels
    sulphurs = np.flatnonzero(np.isin(labels.names, ("SG", "sg", "Sg", "sG")))
    if len(sulphurs) > 1:
        names = np.char.upper(labels.names)
        protonated = labels.residue_index[np.isin(names, ("HG", "HG1", "1HG", "DG", "DG1", "1DG"))]
        sulphurs = sulphurs[~np.isin(labels.residue_index[sulphurs], protonated)]
    positions = structure.positions[sulphurs]
    near: list[tuple[float, int, int]] = []
    for i, position in enumerate(positions):
        lengths = np.linalg.norm(positions[i + 1 :] - position, axis=1)
        near += [(float(lengths[j]), i, i + 1 + int(j)) for j in np.flatnonzero(lengths < DISULPHIDE_A)]
    pairs: list[tuple[int, int]] = []
    taken = set[int]()
    for _, i, j in sorted(near):  # a sulphur has only one bond besides that to CB
        if taken.isdisjoint((i, j)):
            taken |= {i, j}
            pairs.append((int(sulphurs[i]), int(sulphurs[j])))
    return np.array(sorted(pairs), np.int32).reshape(-1, 2)


def _residues(structure: Structure) -> list[_Residue]:
    labels = structure.labels
    starts = labels.residue_starts
    ends = [*starts[1:].tolist(), len(labels)]
    changes = np.diff(structure.segments) != 0
    first = np.concatenate([[True], changes]).tolist()
    last = np.concatenate([changes, [True]]).tolist()
    bridged = set(labels.residue_index[disulphides(structure).ravel()].tolist())
    atoms = labels.names.tolist()
    names = labels.residue_names[starts].tolist()
    indices = labels.residue_index[starts].tolist()
    return [
        _Residue(names[r], tuple(atoms[start:end]), first[r], last[r], indices[r] in bridged)
        for r, (start, end) in enumerate(zip(starts.tolist(), ends, strict=True))
    ]


def _candidates(residue: _Residue, templates: Mapping[str, Template]) -> Iterator[Template]:
    """Return the templates that fit the name of a residue, in order of preference."""
    bases = residue_names(residue.name)
    if residue.bridged:
        bases = tuple(sorted(bases, key=lambda base: base != "CYX"))
    keys = [base + suffix for base in bases for suffix in _SUFFIXES[residue.first, residue.last]]
    return (templates[key] for key in keys if key in templates)


def _match(residue: _Residue, templates: Mapping[str, Template]) -> Match | None:
    """Find the first candidate with the same atom names: literally, in canonical form, or in capitals."""
    for spelling in SPELLINGS:
        atoms = spelling(residue.atoms)
        for template in _candidates(residue, templates):
            if len(template) != len(atoms):
                continue
            index = {name: i for i, name in enumerate(spelling(template.names))}
            if len(index) == len(template) and index.keys() == set(atoms):
                return Match(template, np.array([index[name] for name in atoms], np.int32))
    return None


def _as_terminal(match: Match | None, residue: _Residue, templates: Mapping[str, Template]) -> Match | None:
    """Replace a template within a chain by that of the chain end, if the latter contains all atoms of the residue."""
    if match is None or (match.template.name[-1:] in "BEZ" and match.template.name[:-1] in templates):
        return match
    terminal = templates.get(match.template.name + _SUFFIXES[residue.first, residue.last][0])
    atoms = [match.template.names[i] for i in match.order]
    if terminal is None or not set(atoms) <= set(terminal.names):
        return match
    return Match(terminal, np.array([terminal.names.index(name) for name in atoms], np.int32))


def _check_unique(structure: Structure, number: int, atoms: Sequence[str]) -> None:
    for i, name in enumerate(atoms):
        if name in atoms[:i]:
            start = int(structure.labels.residue_starts[number])
            first, second = start + atoms.index(name), start + i
            raise FormatError(
                f"{structure.where(second)} has the same name as the atom of {structure.where(first)}; "
                "rename one of the two or delete it"
            )


def _explain(
    structure: Structure, residues: Sequence[_Residue], failed: Sequence[int], templates: Mapping[str, Template]
) -> str:
    """Return the error message about residues without a matching template: the first, and the number of others."""
    if not has_hydrogens(structure):
        return without_hydrogens(structure.source)
    residue = residues[failed[0]]
    where = structure.where(int(structure.labels.residue_starts[failed[0]]))
    others = f" ({len(failed) - 1} more also {'fail' if len(failed) > 2 else 'fails'})" if len(failed) > 1 else ""
    candidates = list(_candidates(residue, templates))
    water = _water_problem(residue)
    if water:
        return f"{where}: {water}{others}"
    if not candidates:
        return f"{where}: the force field has no template for the residue {residue.name}{others}; {_way(residue)}"
    template, missing, extra = min(
        ((t, *differences(t.names, residue.atoms)) for t in candidates), key=lambda found: len(found[1]) + len(found[2])
    )
    lacks = [f"lacks {_listed(missing)}"] if missing else []
    has = [f"has {_listed(extra)} in excess"] if extra else []
    problem = " and ".join(lacks + has)
    return f"{where}: against the closest template, {template.name}, the residue {problem}{others}; {_advice(missing)}"


# Advice for a small molecule that is not in the force field.
LIGAND_WAY = "for a small molecule give a file with all hydrogens (`ligands`) or the SMILES (`ligand_template`)"


def _way(residue: _Residue) -> str:
    """Return advice for a residue with an unknown name."""
    name, out = residue.name.lower(), f"leave it out: `without={residue.name!r}`"
    template = f"OpenMM's (`forcefield='amber14,{name}.xml'`) or PELE's (`templates={name}z`)"
    if len(residue.atoms) > 1:
        return f"{LIGAND_WAY}; or a template, {template}; or {out}"
    return f"give a template, {template}, or {out}"


def without_hydrogens(source: str) -> str:
    """Return the error message about a file without hydrogens, with the command that adds them."""
    if not Path(source).suffix:  # an object of another library
        return f"{source} has no hydrogen atoms, which the charges require; pele_ocl.prepare adds them"
    name = re.sub(r"(\.(pdb|ent|cif|mmcif))?(\.gz)?$", "", source, flags=re.IGNORECASE)
    return (
        f"{source} has no hydrogen atoms, which the charges require; "
        f"add them: `pele-ocl prepare {source} -o {name}-ready.pdb`, in Python pele_ocl.prepare"
    )


def has_hydrogens(structure: Structure) -> bool:
    """Return whether there are hydrogens, by element, or by name if the element is unknown (HG may be mercury)."""
    labels = structure.labels
    unknown = labels.names[np.isin(labels.elements, ("", "X"))]
    return bool(np.isin(labels.elements, ("H", "D")).any()) or any(map(_is_hydrogen, unknown))


def _water_problem(residue: _Residue) -> str:
    """Return an error message for water without a matching template; "" for other residues."""
    if not is_water(residue.name):
        return ""
    hydrogens = [name for name in residue.atoms if _is_hydrogen(name)]
    if len(residue.atoms) == 1 and not hydrogens:
        return "water without hydrogens: delete it or add hydrogens"
    if len(residue.atoms) > 3 and len(hydrogens) == 2:
        return (
            f"the force field has no template for water of {len(residue.atoms)} sites; "
            "delete the sites that are not atoms, or give a template with `templates`"
        )
    return ""


def _is_hydrogen(name: str) -> bool:
    return capitals(name).lstrip("123").startswith("H")


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:8])
    return f"{shown} and {len(names) - 8} other atoms" if len(names) > 8 else shown


def _advice(missing: Sequence[str]) -> str:
    if not missing:
        return "remove them, or give a template with `templates`"
    if all(_is_hydrogen(name) for name in missing):
        return _PREPARE
    return "rebuild the missing atoms, with `pele-ocl prepare` or PELE's preparation"
