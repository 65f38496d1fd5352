"""Read models and assign parameters; models of the same sequence share everything except positions."""

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
_BACKBONE = frozenset({"N", "CA", "C", "O", "CB"})  # atoms of backbone-only models


@dataclass(frozen=True, eq=False)
class Model:
    """A complete model.

    source : file of the model; atoms : atoms with the parameters of Amber99SB
    rule : finds violations of these atoms
    b_factors : (n, 2) occupancies and B-factors, None if the file has none
    given : mask (n,) of the atoms that are in the file
    notes : messages about atoms and residues that were chosen, removed, replaced or added
    """

    source: InputFile
    atoms: Atoms
    rule: Violations
    b_factors: Floats | None
    given: NDArray[np.bool_]
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class _Topology:
    """Atoms of a sequence. placing : places the atoms that are missing in models"""

    atoms: Atoms
    placing: Placing
    rule: Violations


class Topologies:
    """Cache of topologies by sequence. close_gaps : as in `in_chains`"""

    def __init__(self, close_gaps: bool = False) -> None:
        self._close_gaps = close_gaps
        self._field = replace(ForceField.load(), whole_segments=True)
        self._known: dict[Hashable, _Topology] = {}

    def read(self, path: str | PathLike[str]) -> Model:
        """Read a model and add missing atoms; the result does not depend on models read earlier.

        Hydrogens are placed by bond geometry; models with other missing atoms are completed by `prepare`.

        Raises FormatError or ParameterError for residues that Amber99SB does not support, and for models that lack most
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
        """Complete a structure that does not match the templates; return it with notes.

        Raises ParameterError if `prepare` would make changes that the user did not ask for.
        """
        _refuse_strangers(structure)
        refuse_ends(structure, self._field.templates)
        _refuse_rings(structure)
        try:
            prepared, notes = _prepared(source, structure)
        except InputError as error:  # PDBFixer is not installed
            raise InputError(f"{lacking}; {error}") from None
        return in_chains(prepared, self._close_gaps), notes

    def _topology(self, structure: Structure) -> _Topology:
        """Return the topology of a structure with all heavy atoms. Raises ParameterError for other structures."""
        key = _key(structure)
        if key not in self._known:
            full, own = completed(structure, self._field.templates) or (structure, np.arange(len(structure.labels)))
            atoms = self._field.assign(full)
            assert atoms.labels is not None
            self._known[key] = _Topology(atoms, Placing.of(atoms, own), Violations(atoms.labels, atoms.bonds))
        return self._known[key]


def _without_waters(source: InputFile, structure: Structure) -> tuple[Structure, tuple[str, ...]]:
    """Remove waters; return the structure, and a note if there were any."""
    waters = np.array([is_water(name) for name in structure.labels.residue_names.tolist()], np.bool_)
    if not waters.any():
        return structure, ()
    if waters.all():
        raise ParameterError(f"{source}: contains no protein; relax is only for proteins")
    n = int(waters[structure.labels.residue_starts].sum())
    return structure.of_residues(~waters), (f"{source}: {n:,} {'waters were' if n > 1 else 'water was'} left out",)


def _prepared(source: InputFile, structure: Structure) -> tuple[Structure, tuple[str, ...]]:
    """Add missing atoms by `prepare`; return the structure, and notes about the changes."""
    with tempfile.TemporaryDirectory() as folder:
        ready = Path(folder) / "ready.pdb"
        changes = prepare(source, ready)
        prepared = replace(read_structure(ready), source=str(source))
    there = {residue._replace(name="") for residue in structure.labels.residues}
    built = [str(residue) for residue in prepared.labels.residues if residue._replace(name="") not in there]
    if built:
        raise FormatError(f"{source}: the residue {built[0]} has no atoms, although it is in the sequence; build it")
    replaced = [f"{name} was replaced by {standard}" for name, standard in changes.replaced.items()]
    atoms = [f"{', '.join(names)} of {name}" for name, names in changes.atoms_added.items()]
    told = [*replaced, *([f"atoms were added: {'; '.join(atoms)}"] if atoms else [])]
    return prepared, tuple(f"{source}: {what}" for what in told)


def _refuse_backbone(structure: Structure) -> None:
    """Raise ParameterError for a model in which most residues lack their side chains beyond CB.

    `prepare` would build them independently, and minimization could not resolve the resulting overlaps.
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
            f"{structure.source}: {len(lacking):,} of {n:,} residues have no side chains, the first is "
            f"{labels.residue(lacking[0])}; add side chains first, for example with a side-chain packing program"
        )


def _refuse_strangers(structure: Structure) -> None:
    """Raise ParameterError for residues that `prepare` would silently remove."""
    for start in structure.labels.residue_starts.tolist():
        name = str(structure.labels.residue_names[start])
        if not is_polymer(name):
            raise ParameterError(
                f"{structure.where(start)}: relax is for proteins, and {name} is not part of one; remove it"
            )


def _refuse_rings(structure: Structure) -> None:
    """Raise ParameterError for a ring, which `prepare` would open."""
    starts = structure.labels.residue_starts
    for first in rings(structure)[:, 0].tolist():
        raise ParameterError(
            f"{structure.where(int(starts[first]))}: starts a ring in which atoms are missing or have other "
            "names; add its heavy atoms"
        )


def _names(labels: Labels) -> list[tuple[object, ...]]:
    """Return chain, residue number, insertion code and name of each atom."""
    columns = (labels.chains, labels.residue_numbers, labels.insertion_codes, labels.names)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def _key(structure: Structure) -> Hashable:
    """Return a key of everything that determines templates, bonds and missing atoms."""
    labels = structure.labels
    return (
        tuple(labels.residue_names.tolist()), tuple(labels.names.tolist()), labels.residue_index.tobytes(),
        structure.segments.tobytes(), rings(structure).tobytes(), disulphides(structure).tobytes(),
        tuple(tautomers(structure).values()),
    )  # fmt: skip


def _renumbered(known: Atoms, labels: Labels) -> Labels:
    """Return the labels of all atoms with the chains and residue numbers of another file."""
    own = known.labels
    assert own is not None
    sizes = np.diff(own.residue_starts, append=len(own))
    columns = {name: np.repeat(getattr(labels, name)[labels.residue_starts], sizes) for name in _OF_RESIDUES}
    if all((columns[name] == getattr(own, name)).all() for name in _OF_RESIDUES):
        return own
    return Labels(**{f.name: columns.get(f.name, getattr(own, f.name)) for f in fields(Labels)})
