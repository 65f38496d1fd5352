"""Atoms with parameters from files of models; models of one sequence share what does not depend on places."""

from __future__ import annotations

import tempfile
from collections.abc import Hashable
from dataclasses import dataclass, fields, replace
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats, Labels, Structure
from ..atoms.chemistry import is_polymer, is_water
from ..common.errors import FormatError, InputError, ParameterError
from ..common.inputfile import InputFile, read_file
from ..forcefield import ForceField
from ..forcefield.matching import disulphides
from ..formats import read_structure
from ..formats.assembly import ANOTHER_MODEL
from ..formats.b_factors import read_b_factors
from ..interop.preparing import prepare
from .chains import gap_notes, in_chains, open_notes, ring_notes, rings
from .hydrogens import completed, refuse_ends, tautomers
from .placing import Placing
from .sites import heavy_names
from .stereochemistry import standard_residue
from .violations import Violations

_OF_RESIDUES = ("residue_numbers", "insertion_codes", "chains")
_BACKBONE = frozenset({"N", "CA", "C", "O", "CB"})  # of which backbones are designed


@dataclass(frozen=True, eq=False)
class Model:
    """A model with all its atoms.

    source : its file; atoms : with the parameters of Amber99SB
    rule : finds violations of these atoms
    b_factors : (n, 2) occupancies and B-factors, None where the file has none
    given : (n,) whether the file has an atom
    notes : messages about what was chosen, taken out, replaced or built
    """

    source: InputFile
    atoms: Atoms
    rule: Violations
    b_factors: Floats | None
    given: NDArray[np.bool_]
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class _Topology:
    """Atoms of a sequence. placing : of atoms that models lack"""

    atoms: Atoms
    placing: Placing
    rule: Violations


class Topologies:
    """Sequences that were met. close_gaps : as in `in_chains`"""

    def __init__(self, close_gaps: bool = False) -> None:
        self._close_gaps = close_gaps
        self._field = replace(ForceField.load(), whole_segments=True)
        self._known: dict[Hashable, _Topology] = {}

    def read(self, path: str | PathLike[str]) -> Model:
        """A model with all its atoms, which do not depend on the models before it.

        Hydrogens are placed by the shapes of bonds; a model that lacks other atoms is completed by `prepare`.

        Raises FormatError and ParameterError for what is no protein that Amber99SB knows, and for a model with few
        side chains. Raises InputError if `prepare` is needed and PDBFixer is not installed.
        """
        source = read_file(path)
        read = read_structure(source)
        dry, notes = _without_waters(source, read)
        _refuse_backbone(dry)
        structure = in_chains(dry, self._close_gaps)
        notes += gap_notes(dry, structure) + ring_notes(structure)
        try:
            known = self._topology(structure)
        except ParameterError as lacking:
            structure, more = self._built(source, structure, lacking)
            notes += more
            known = self._topology(structure)
        labels = _renumbered(known.atoms, structure.labels)
        atoms = replace(known.atoms, labels=labels, positions=known.placing.placed(structure.positions))
        rule = known.rule if labels is known.atoms.labels else Violations(labels, atoms.bonds)
        there = set(_names(read.labels))
        given = np.array([name in there for name in _names(labels)], np.bool_)
        chosen = tuple(note.removesuffix(ANOTHER_MODEL) for note in read.notes)
        notes = chosen + notes + open_notes(atoms, str(source))
        return Model(source, atoms, rule, read_b_factors(source, labels), given, notes)

    def _built(
        self, source: InputFile, structure: Structure, lacking: ParameterError
    ) -> tuple[Structure, tuple[str, ...]]:
        """A structure that has no templates, with all atoms, and notes; raises for what `prepare` would do unasked."""
        _refuse_strangers(structure)
        refuse_ends(structure, self._field.templates)
        _refuse_rings(structure)
        try:
            prepared, notes = _prepared(source, structure)
        except InputError as error:  # PDBFixer is not installed
            raise InputError(f"{lacking}; {error}") from None
        return in_chains(prepared, self._close_gaps), notes

    def _topology(self, structure: Structure) -> _Topology:
        """Complete a structure that has all atoms, or all but hydrogens. Raises ParameterError for others."""
        key = _key(structure)
        if key not in self._known:
            full, own = completed(structure, self._field.templates) or (structure, np.arange(len(structure.labels)))
            atoms = self._field.assign(full)
            assert atoms.labels is not None
            self._known[key] = _Topology(atoms, Placing.of(atoms, own), Violations(atoms.labels, atoms.bonds))
        return self._known[key]


def _without_waters(source: InputFile, structure: Structure) -> tuple[Structure, tuple[str, ...]]:
    """Take out waters; give the structure, and a note if there were any."""
    waters = np.array([is_water(name) for name in structure.labels.residue_names.tolist()], np.bool_)
    if not waters.any():
        return structure, ()
    if waters.all():
        raise ParameterError(f"{source}: holds no protein, which relax is for")
    n = int(waters[structure.labels.residue_starts].sum())
    return structure.of_residues(~waters), (f"{source}: {n:,} {'waters were' if n > 1 else 'water was'} left out",)


def _prepared(source: InputFile, structure: Structure) -> tuple[Structure, tuple[str, ...]]:
    """Build all atoms as `prepare` does; give the structure, and notes about what changed."""
    with tempfile.TemporaryDirectory() as folder:
        ready = Path(folder) / "ready.pdb"
        changes = prepare(source, ready)
        prepared = replace(read_structure(ready), source=str(source))
    there = {residue._replace(name="") for residue in structure.labels.residues}
    built = [str(residue) for residue in prepared.labels.residues if residue._replace(name="") not in there]
    if built:
        raise FormatError(f"{source}: the residue {built[0]} has no atoms, as its sequence says it should; build it")
    replaced = [f"{name} was turned into {standard}" for name, standard in changes.replaced.items()]
    atoms = [f"{', '.join(names)} of {name}" for name, names in changes.atoms_added.items()]
    told = [*replaced, *([f"atoms were built: {'; '.join(atoms)}"] if atoms else [])]
    return prepared, tuple(f"{source}: {what}" for what in told)


def _refuse_backbone(structure: Structure) -> None:
    """Raise ParameterError for a model in which most residues have nothing of their side chains beyond CB.

    `prepare` would build these without regard to each other, and no minimization takes them out of each other again.
    """
    labels = structure.labels
    starts, lacking, n = labels.residue_starts.tolist(), list[int](), 0
    for start, end in zip(starts, [*starts[1:], len(labels)], strict=True):
        side = heavy_names(standard_residue(str(labels.residue_names[start]))) - _BACKBONE
        n += bool(side)
        if side and side.isdisjoint(labels.names[start:end].tolist()):
            lacking.append(start)
    if 2 * len(lacking) > n:
        raise ParameterError(
            f"{structure.source}: {len(lacking):,} of {n:,} residues lack their side chains, the first is "
            f"{labels.residue(lacking[0])}; build side chains first, with the program that packs those of designs, say"
        )


def _refuse_strangers(structure: Structure) -> None:
    """Raise ParameterError for what `prepare` would take out without a word."""
    for start in structure.labels.residue_starts.tolist():
        name = str(structure.labels.residue_names[start])
        if not is_polymer(name):
            raise ParameterError(
                f"{structure.where(start)}: relax is for proteins, and {name} is no part of one; take it out"
            )


def _refuse_rings(structure: Structure) -> None:
    """Raise ParameterError for a ring, which `prepare` would open."""
    starts = structure.labels.residue_starts
    for first in rings(structure)[:, 0].tolist():
        raise ParameterError(
            f"{structure.where(int(starts[first]))}: begins a ring in which atoms are lacking or have other names; "
            "build them, all but hydrogens"
        )


def _names(labels: Labels) -> list[tuple[object, ...]]:
    """Chain, number, insertion code and name of each atom."""
    columns = (labels.chains, labels.residue_numbers, labels.insertion_codes, labels.names)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def _key(structure: Structure) -> Hashable:
    """All that decides on templates, on bonds and on the atoms that are lacking."""
    labels = structure.labels
    return (
        tuple(labels.residue_names.tolist()), tuple(labels.names.tolist()), labels.residue_index.tobytes(),
        structure.segments.tobytes(), rings(structure).tobytes(), disulphides(structure).tobytes(),
        tuple(tautomers(structure).values()),
    )  # fmt: skip


def _renumbered(known: Atoms, labels: Labels) -> Labels:
    """Labels of all atoms with the chains and numbers of the residues of another file."""
    own = known.labels
    assert own is not None
    sizes = np.diff(own.residue_starts, append=len(own))
    columns = {name: np.repeat(getattr(labels, name)[labels.residue_starts], sizes) for name in _OF_RESIDUES}
    if all((columns[name] == getattr(own, name)).all() for name in _OF_RESIDUES):
        return own
    return Labels(**{f.name: columns.get(f.name, getattr(own, f.name)) for f in fields(Labels)})
