"""Assign parameters to ligand residues of a structure by molecules with parameters, matched by molecular graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats, Labels, Structure, correspondence, labels_of
from ..atoms.chemistry import is_polymer, is_water
from ..atoms.graphs import (
    Graph,
    Indices,
    Matching,
    bonds_by_distance,
    difference,
    lacks_hydrogens,
    stretched_bond,
    with_hands,
)
from ..common.errors import InputError, ParameterError
from ..common.notes import Note
from ..forcefield import ForceField
from .hydrogens import inserted, lacking, with_hydrogens
from .settings import ADDED_HYDROGENS

_SURELY = 1.4  # times the sum of two covalent radii: up to this length the ligand's bonds are accepted
_WAY = (
    "give the molecule as in the structure, in a file of small molecules with all hydrogens; order and names "
    "of atoms do not matter"
)


@dataclass(frozen=True, eq=False)
class LigandTemplate:
    """A molecule with parameters, used as template for residues.

    atoms : Atoms with elements and bonds; source : source of the molecule, for messages
    must_be_there : whether a structure without this molecule is refused; otherwise the molecule is added to it
    """

    atoms: Atoms
    source: str
    must_be_there: bool = False

    @property
    def graph(self) -> Graph:
        """Graph of elements and bonds."""
        assert self.atoms.labels is not None
        return Graph.of(self.atoms.labels.elements.tolist(), self.atoms.bond_pairs)

    def fit(self, labels: Labels, positions: Floats) -> tuple[Indices | None, str]:
        """Match the molecule to a residue: return the residue's atom for each of its atoms, (n,), or why this fails.

        labels, positions : labels and positions of the residue's atoms

        Atoms are matched by name if names are equal and all bonds are plausible, otherwise by elements and bonds, which
        are determined by distance.
        """
        own = self.atoms.labels
        assert own is not None
        graph = Graph.of(own.elements.tolist(), self.atoms.bond_pairs)
        if len(labels) == len(own):
            named = _by_names(own, labels)
            if named is not None and stretched_bond(graph, positions[named], _SURELY) is None:
                return named, ""
        elements = labels.elements.tolist()
        theirs = Graph.of(elements, bonds_by_distance(elements, positions))
        found = Matching(graph, theirs).best() if len(labels) == len(own) else None
        if found is not None:
            return with_hands(graph, theirs, found, (self.atoms.positions, positions)), ""
        if lacks_hydrogens(graph, theirs):
            return None, f"hydrogens are missing: it has {len(theirs):,} of the {len(graph):,} atoms"
        return None, difference(graph, theirs, {i: own.atom(i) for i in range(len(own))})


@dataclass(frozen=True, eq=False)
class LigandTemplates:
    """Templates for the residues of a structure that a force field does not support.

    given : the molecules; used : indices of molecules that match residues
    """

    forcefield: ForceField
    given: Sequence[LigandTemplate]
    used: frozenset[int]

    @classmethod
    def completed(
        cls, structure: Structure, forcefield: ForceField, given: Sequence[LigandTemplate]
    ) -> Structure:  # fmt: skip
        """Add missing hydrogens, with notes, to residues that otherwise match a molecule, using its geometry.

        Added atoms are placed after the last atom of their residue.
        """
        usable = [each for each in given if each.atoms.labels is not None]
        if not usable:
            return structure
        behind, names, places, notes = list[int](), list[str](), list[Floats](), list[str]()
        for residue in cls(forcefield, usable, frozenset())._unknown(structure):
            labels, positions = _residue(structure, residue)
            if any(each.fit(labels, positions)[0] is not None for each in usable):
                continue
            for each in usable:
                graph = each.graph
                order = lacking(graph, each.atoms.positions, labels.elements.tolist(), positions)
                if order is None:
                    continue
                new = np.flatnonzero(order < 0)
                taken = set(labels.names.tolist())
                free = (name for k in range(1, 1000) if (name := f"H{k}") not in taken)
                last = int(structure.labels.residue_starts[residue]) + len(labels) - 1
                behind += [last] * len(new)
                names += [next(free) for _ in new]
                places += list(with_hydrogens(graph, each.atoms.positions, order, positions)[new])
                text = f"{structure.labels.residue(last)}: {len(new):,} hydrogens were added, as {each.source} has them"
                notes.append(Note(text, code=ADDED_HYDROGENS))
                break
        if not behind:
            return structure
        return replace(
            inserted(structure, behind, names, np.array(places)), notes=(*structure.notes, *notes)
        )  # fmt: skip

    @classmethod
    def of(cls, structure: Structure, forcefield: ForceField, given: Sequence[LigandTemplate]) -> LigandTemplates:
        """Find the molecules that match residues of the structure."""
        usable = [k for k, each in enumerate(given) if each.atoms.labels is not None]
        own = cls(forcefield, given, frozenset(usable))
        found = replace(own, used=frozenset(k for k, _, _ in own._fits(structure)))
        for k, each in enumerate(given):
            if each.must_be_there and k not in found.used:
                found._refuse_others(structure, ())
                raise ParameterError(f"{structure.source}: has no residue that matches the molecule of {each.source}")
        return found

    def atoms_of(self, structure: Structure) -> dict[int, NDArray[np.bool_]]:
        """Return whether an atom of the structure belongs to a residue that matches a molecule, (n,), by its index."""
        found = dict[int, NDArray[np.bool_]]()
        index = structure.labels.residue_index
        for k, residue, _ in self._fits(structure):
            own = index == index[structure.labels.residue_starts[residue]]
            found[k] = found.get(k, own) | own
        return found

    def assign(self, structure: Structure) -> Atoms:
        """Assign parameters to all atoms: those of the molecules, and of the force field for all other residues.

        Raises ParameterError for a residue without a template, with the reason why no molecule matches.
        """
        fits = self._fits(structure)
        if not fits:
            self._refuse_others(structure, ())
            return self.forcefield._assign_known(structure)
        self._refuse_others(structure, [residue for _, residue, _ in fits])
        starts = structure.labels.residue_starts
        sizes = np.diff(starts, append=len(structure.labels))
        is_ligand = np.repeat(np.isin(np.arange(len(starts)), [residue for _, residue, _ in fits]), sizes)
        pieces, order = list[Atoms](), list[Indices]()
        if not is_ligand.all():
            pieces.append(self.forcefield._assign_known(structure.of_residues(~is_ligand)))
            order.append(np.flatnonzero(~is_ligand))
        notes = list[str]()
        for k, residue, places in fits:
            own = np.arange(starts[residue], starts[residue] + sizes[residue])
            molecule = self.given[k].atoms
            named = labels_of(structure.labels, own[places])
            pieces.append(replace(molecule.moved(structure.positions[own[places]]), labels=named))
            order.append(own[places])
            notes.append(f"{structure.labels.residue(int(own[0]))} has the parameters of {self.given[k].source}")
        found = pieces[0]
        for piece in pieces[1:]:
            found = found + replace(piece, notes=tuple(note for note in piece.notes if note not in found.notes))
        back = np.argsort(np.concatenate(order))
        ordered = found if (back == np.arange(len(back))).all() else replace(found[back], notes=found.notes)
        more = () if pieces[0].labels is None or not is_ligand.all() else structure.notes
        return replace(ordered, labels=structure.labels, notes=(*more, *ordered.notes, *notes))

    def _fits(self, structure: Structure) -> list[tuple[int, int, Indices]]:
        """Return the matches: indices of molecule and residue, and the residue's atom for each of the molecule's."""
        found = list[tuple[int, int, Indices]]()
        for residue in self._unknown(structure) if self.used else ():
            for k in sorted(self.used):
                places, _ = self.given[k].fit(*_residue(structure, residue))
                if places is not None:
                    found.append((k, residue, places))
                    break
        return found

    def _unknown(self, structure: Structure) -> list[int]:
        """List the residues without a template that may be ligands."""
        names = structure.labels.residue_names[structure.labels.residue_starts].tolist()
        others = [of for of, name in enumerate(names) if not (is_polymer(name) or is_water(name))]
        return sorted(set(others) & set(self.forcefield._unmatched(structure))) if others else []

    def _refuse_others(self, structure: Structure, fitting: Sequence[int]) -> None:
        """Raise ParameterError for the first possible ligand that matches none of the given molecules."""
        usable = [each for each in self.given if each.atoms.labels is not None]
        left = [residue for residue in self._unknown(structure) if residue not in fitting] if usable else []
        if not left:
            return
        labels, positions = _residue(structure, left[0])
        if len(labels) == 1:
            return  # an ion; the force field raises a better error
        nearest = min(usable, key=lambda each: abs(len(each.atoms) - len(labels)))
        why = nearest.fit(labels, positions)[1]
        where = structure.where(int(structure.labels.residue_starts[left[0]]))
        raise ParameterError(
            f"{where}: the force field has no template for the residue {labels.residue_names[0]}, and it does not "
            f"match the molecule of {nearest.source}: {why}; {_WAY}"
        )


def _residue(structure: Structure, residue: int) -> tuple[Labels, Floats]:
    """Return labels and positions of a residue's atoms."""
    own = np.flatnonzero(structure.labels.residue_index == structure.labels.residue_index[
        structure.labels.residue_starts[residue]
    ])  # fmt: skip
    return labels_of(structure.labels, own), structure.positions[own]


def _by_names(ours: Labels, theirs: Labels) -> Indices | None:
    """Match atoms by name: the atom of `theirs` for each of `ours`, (n,); None if this fails."""
    try:
        return correspondence(ours, theirs, "the residue").order
    except InputError:
        return None
