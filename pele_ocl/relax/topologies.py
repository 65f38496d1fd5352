"""From the files of models to atoms with parameters; models of one sequence share what is found for the first."""

from __future__ import annotations

import tempfile
from collections.abc import Hashable
from dataclasses import dataclass, fields, replace
from os import PathLike
from pathlib import Path

import numpy as np

from ..atoms import Atoms, Floats, Labels, Structure
from ..chemistry import is_polymer, is_water
from ..errors import FormatError, ParameterError
from ..forcefield import ForceField
from ..forcefield.matching import disulphides
from ..formats import read_structure
from ..formats.b_factors import read_b_factors
from ..inputfile import InputFile, read_file
from ..interop.preparing import prepare
from .chains import in_chains
from .placing import Indices, Placing
from .violations import Violations

_OF_RESIDUES = ("residue_numbers", "insertion_codes", "chains")


@dataclass(frozen=True, eq=False)
class Model:
    """A model with all its atoms.

    source : its file; atoms : with the parameters of Amber99SB
    rule : finds violations of these atoms
    b_factors : (n, 2) occupancies and B-factors, None where the file has none
    n_added : atoms that were added
    """

    source: InputFile
    atoms: Atoms
    rule: Violations
    b_factors: Floats | None
    n_added: int


@dataclass(frozen=True, eq=False)
class _Topology:
    """The first model of a sequence. residues : of each residue, its number among those of the file"""

    atoms: Atoms
    placing: Placing
    rule: Violations
    residues: Indices


class Topologies:
    """The sequences that were met."""

    def __init__(self) -> None:
        self._field = ForceField.load()
        self._known: dict[Hashable, _Topology] = {}

    def read(self, path: str | PathLike[str]) -> Model:
        """A model with all its atoms: hydrogens and others that it lacks are added, by `prepare` for a new sequence.

        Those of further models of the sequence stand about their neighbours as those of the first do.

        Raises FormatError and ParameterError for what is no protein that Amber99SB knows, and InputError where
        `prepare` is needed and PDBFixer is not installed.
        """
        source = read_file(path)
        structure = in_chains(read_structure(source))
        key = _key(structure)
        if key not in self._known:
            self._known[key] = self._first(source, structure)
        known = self._known[key]
        labels = _renumbered(known, structure.labels)
        atoms = replace(known.atoms, labels=labels, positions=known.placing.placed(structure.positions))
        rule = known.rule if labels is known.atoms.labels else Violations(labels, atoms.bonds)
        return Model(source, atoms, rule, read_b_factors(source, labels), len(known.placing.added))

    def _first(self, source: InputFile, structure: Structure) -> _Topology:
        try:
            atoms = self._field.assign(structure, whole_segments=True)
        except ParameterError:
            _refuse_strangers(source, structure)
            with tempfile.TemporaryDirectory() as folder:
                ready = Path(folder) / "ready.pdb"
                prepare(source, ready)
                atoms = self._field.assign(in_chains(read_structure(ready)), whole_segments=True)
        assert atoms.labels is not None
        places = {name: i for i, name in enumerate(_names(structure.labels))}
        names = _names(atoms.labels)
        own = np.array([places.get(name, -1) for name in names], np.intp)
        starts = atoms.labels.residue_starts
        residues = structure.labels.residue_index[np.maximum.reduceat(own, starts)].astype(np.intp)
        lacking = np.flatnonzero(np.maximum.reduceat(own, starts) < 0)
        if len(lacking):
            name = atoms.labels.residue(int(starts[lacking[0]]))
            raise FormatError(f"{source}: the residue {name} has no atoms, as its sequence says it should; build it")
        return _Topology(atoms, Placing.of(atoms.positions, atoms.bonds, own), Violations(atoms.labels, atoms.bonds), residues)


def _refuse_strangers(source: InputFile, structure: Structure) -> None:
    """Raise ParameterError for what `prepare` would take out without a word, but for waters."""
    names = [str(structure.labels.residue_names[i]) for i in structure.labels.residue_starts]
    for start, name in zip(structure.labels.residue_starts.tolist(), names, strict=True):
        if not is_polymer(name) and not is_water(name):
            raise ParameterError(
                f"{structure.where(start)}: relax is for proteins, and {name} is no part of one; take it out"
            )
    if not any(map(is_polymer, names)):
        raise ParameterError(f"{source}: holds no protein, which relax is for")


def _names(labels: Labels) -> list[tuple[object, ...]]:
    """The chain, number, insertion code and name of each atom."""
    columns = (labels.chains, labels.residue_numbers, labels.insertion_codes, labels.names)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def _key(structure: Structure) -> Hashable:
    """All that decides on templates and on the atoms that are lacking."""
    labels = structure.labels
    return (
        tuple(labels.residue_names.tolist()), tuple(labels.names.tolist()), labels.residue_index.tobytes(),
        structure.segments.tobytes(), disulphides(structure).tobytes(),
    )  # fmt: skip


def _renumbered(known: _Topology, labels: Labels) -> Labels:
    """The labels of all atoms with the chains and numbers of another file."""
    own = known.atoms.labels
    assert own is not None
    starts = labels.residue_starts[known.residues - labels.residue_index[0]]
    sizes = np.diff(own.residue_starts, append=len(own))
    columns = {name: np.repeat(getattr(labels, name)[starts], sizes) for name in _OF_RESIDUES}
    if all((columns[name] == getattr(own, name)).all() for name in _OF_RESIDUES):
        return own
    return Labels(**{f.name: columns.get(f.name, getattr(own, f.name)) for f in fields(Labels)})
