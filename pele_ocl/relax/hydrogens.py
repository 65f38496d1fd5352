"""Add the hydrogens of force field templates to models without hydrogens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from ..atoms import Floats, Ints, Labels, Structure
from ..atoms.names import residue_names
from ..common.errors import ParameterError
from ..forcefield.matching import disulphides
from ..forcefield.templates import Template
from .chains import rings
from .placing import Indices, unit

# Criteria for a hydrogen bond, as in OpenMM's choice of histidine tautomers.
_NEAR_A, _STRAIGHT = 3.5, np.cos(np.radians(50))
_RING = (("ND1", "CG", "CE1"), ("NE2", "CD2", "CE1"))  # nitrogens of histidine, each with its neighbours
_TERMINAL = frozenset({"OXT"})


def completed(structure: Structure, templates: Mapping[str, Template]) -> tuple[Structure, Indices] | None:
    """Add the hydrogens for pH 7, and OXT at chain ends, all positioned at the origin.

    Returns the structure, and the index of each atom in the given structure, -1 for added atoms. Returns None if the
    structure has hydrogens, if heavy atoms are missing or unknown, and if a chain end has no template.
    """
    labels = structure.labels
    starts, ends = labels.residue_starts.tolist(), [*labels.residue_starts[1:].tolist(), len(labels)]
    own, added_names, residues = list[int](), list[tuple[str, str]](), list[int]()
    for r, (start, end, (_, form)) in enumerate(zip(starts, ends, _forms(structure, templates), strict=True)):
        there, template = set(labels.names[start:end].tolist()), templates.get(form)
        elements = {} if template is None else dict(zip(template.names, template.elements, strict=True))
        heavy = {name for name, element in elements.items() if element != "H"}
        if not there or not heavy - _TERMINAL <= there <= heavy:
            return None
        lacking = [(name, element) for name, element in elements.items() if name not in there]
        own += [*range(start, end), *[-1] * len(lacking)]
        added_names += lacking
        residues += [r] * (end - start + len(lacking))
    return _filled(structure, np.array(own, np.intp), np.array(residues, np.int32), added_names), np.array(own, np.intp)


def tautomers(structure: Structure) -> Mapping[int, str]:
    """Return the tautomer of each HIS by residue index, chosen as in OpenMM: HIE if only NE2 can donate an H bond."""
    labels = structure.labels
    starts, ends = labels.residue_starts, np.append(labels.residue_starts[1:], len(labels))
    acceptors = np.isin(labels.elements, ("N", "O"))
    found: dict[int, str] = {}
    for r in np.flatnonzero(labels.residue_names[starts] == "HIS").tolist():
        of = slice(starts[r], ends[r])
        places = dict(zip(labels.names[of].tolist(), structure.positions[of], strict=True))
        others = acceptors.copy()
        others[of] = False
        gives = [_gives(places, names, structure.positions[others]) for names in _RING]
        found[r] = "HIE" if gives == [False, True] else "HID"
    return found


def refuse_ends(structure: Structure, templates: Mapping[str, Template]) -> None:
    """Raise ParameterError for the first chain end that has no terminal template."""
    for start, (base, form) in zip(structure.labels.residue_starts, _forms(structure, templates), strict=True):
        if form in templates or not base:
            continue
        suffix = form.removeprefix(base)
        if suffix == "BE":
            raise ParameterError(
                f"{structure.where(int(start))}: is not bonded to another residue, and the force field has no "
                f"template for an isolated {base}; build the adjacent residues, remove it, or use `close_gaps=True` "
                "for a model with broken bonds"
            )
        other = next((name for name in residue_names(base) if name + suffix in templates), "")
        advice = f"rename it to {other}, which has one" if other else "build the adjacent residue, or remove it"
        end = {"B": "start", "E": "end"}[suffix]
        raise ParameterError(
            f"{structure.where(int(start))}: the force field has no template of {base} at the {end} of a "
            f"chain; {advice}"
        )


def _gives(places: Mapping[str, Floats], names: tuple[str, str, str], acceptors: Floats) -> bool:
    """Return whether a hydrogen on the first of three atoms would form a hydrogen bond to any acceptor (k, 3) A."""
    if not places.keys() >= set(names):
        return False
    donor, *neighbours = (places[name] for name in names)
    along = unit(-unit(np.array(neighbours) - donor).sum(axis=0, keepdims=True))[0]
    away = acceptors - donor
    near = away[np.linalg.norm(away, axis=1) < _NEAR_A] - along  # from the hydrogen, 1 A from its nitrogen
    return bool((unit(near) @ along > _STRAIGHT).any())


def _forms(structure: Structure, templates: Mapping[str, Template]) -> Iterator[tuple[str, str]]:
    """Yield two template names for each residue: within a chain, "" without one, and for its actual position."""
    labels, histidines = structure.labels, tautomers(structure)
    bridged = set((np.searchsorted(labels.residue_starts, disulphides(structure).ravel(), "right") - 1).tolist())
    names = labels.residue_names[labels.residue_starts].tolist()
    changes = np.diff(structure.segments) != 0
    firsts, lasts = np.append(True, changes), np.append(changes, True)
    firsts[rings(structure)[:, 0]] = lasts[rings(structure)[:, 1]] = False
    for r, (name, first, last) in enumerate(zip(names, firsts.tolist(), lasts.tolist(), strict=True)):
        form = "CYX" if r in bridged else histidines.get(r, "")
        base = form or next((other for other in residue_names(name) if other in templates), "")
        template = templates.get(base)
        if template is None:
            yield "", ""
        else:  # caps have only one neighbour
            yield base, base + "B" * (first and template.head >= 0) + "E" * (last and template.tail >= 0)


def _filled(structure: Structure, own: Indices, residues: Ints, added: list[tuple[str, str]]) -> Structure:
    """Return the structure with added atoms at the origin.

    own : (n,) index of each atom in `structure`, -1 for added atoms; added : their names and elements
    """
    labels, there = structure.labels, own >= 0
    firsts = labels.residue_starts[residues]
    columns = {}
    for column, values in zip(("names", "elements"), np.array(added, np.str_).reshape(-1, 2).T, strict=True):
        given = getattr(labels, column)[own]
        columns[column] = given.astype(np.promote_types(given.dtype, values.dtype))
        columns[column][~there] = values
    filled = Labels(
        names=columns["names"], elements=columns["elements"], residue_names=labels.residue_names[firsts],
        residue_numbers=labels.residue_numbers[firsts], insertion_codes=labels.insertion_codes[firsts],
        chains=labels.chains[firsts], residue_index=residues,
    )  # fmt: skip
    positions = np.where(there[:, None], structure.positions[own], 0.0)
    return replace(structure, positions=positions, labels=filled, lines=np.where(there, structure.lines[own], 0))
