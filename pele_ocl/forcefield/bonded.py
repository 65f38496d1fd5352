"""Bonded terms of a structure, within residues and across bonds between them, and 1-4 pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..atoms import (
    Angles,
    Bonded,
    Bonds,
    Floats,
    Impropers,
    Ints,
    Strings,
    Structure,
    TermTable,
    Torsions,
    exclusions,
)
from ..atoms.combining import Combining, scaled_pairs
from .bonding import Bonding
from .links import Link, LinkAtom, Links, LinkTerm
from .matching import Match

_NONE = " (the energy is then nonbonded + solvent)"


class AtomParameters(NamedTuple):
    """Parameters of n atoms, the combining rule, and the (Coulomb, Lennard-Jones) scale factors of 1-4 pairs.

    by_index : (n,) True if equivalent outer atoms of impropers about this atom are ordered as in the structure
    """

    charges: Floats
    lj_sigma: Floats
    lj_epsilon: Floats
    types: Strings
    elements: Strings
    by_index: NDArray[np.bool_]
    combining: Combining
    one_four: tuple[float, float]


class _Terms(NamedTuple):
    """Terms of one kind, with atoms (m, k) and parameters (m, p)."""

    atoms: Ints
    parameters: Floats


def bonded_of(
    structure: Structure, matches: Sequence[Match], bonding: Bonding, links: Links, parameters: AtomParameters
) -> tuple[Bonded | None, tuple[str, ...]]:
    """Collect the bonded terms of a structure. Returns None and a note if parameters are missing."""
    lacking = sorted({m.template.name for m in matches if m.template.terms is None})
    if lacking:
        noun, verb = ("templates", "lack") if len(lacking) > 1 else ("template", "lacks")
        return None, (f"no bonded terms: the {noun} {', '.join(lacking)} {verb} their parameters{_NONE}",)
    residues = _Residues(structure, matches)
    across = residues.across(bonding.crossing, links)
    if isinstance(across, int):
        return None, (_missing_link(structure, bonding.crossing[across].tolist(), bool(links)),)
    bonds, angles, torsions, impropers = (
        _joined([*residues.inside(name), *across[name]]) for name in ("bonds", "angles", "torsions", "impropers")
    )
    excluded, one_four = exclusions(bonding.bonds, len(structure.labels))
    return Bonded(
        bonds=Bonds(*bonds),
        angles=Angles(*angles),
        torsions=Torsions(*torsions),
        impropers=Impropers(_by_index(impropers.atoms, parameters), impropers.parameters),
        one_four=scaled_pairs(
            one_four,
            parameters.charges,
            parameters.lj_sigma,
            parameters.lj_epsilon,
            parameters.combining,
            parameters.one_four,
        ),
        excluded=excluded,
    ), ()


class _Residues:
    """Matches of R residues as arrays, with M distinct matches."""

    def __init__(self, structure: Structure, matches: Sequence[Match]) -> None:
        self.starts = structure.labels.residue_starts
        used = {id(m): m for m in matches}
        self.matches = list(used.values())
        number = {key: k for k, key in enumerate(used)}
        self.which = np.array([number[id(m)] for m in matches])
        self._places: dict[LinkAtom, Ints] = {}

    def inside(self, name: str) -> list[_Terms]:
        """Collect the terms of a table within residues."""
        found = []
        for k, match in enumerate(self.matches):
            assert match.template.terms is not None
            table: TermTable = getattr(match.template.terms, name)
            local, parameters = match.places[table.atoms], table.parameters
            if len(match.order) < len(match.template):
                there = (local >= 0).all(axis=1)
                local, parameters = local[there], parameters[there]
            starts = self.starts[self.which == k]
            atoms = (starts[:, None, None] + local).reshape(-1, table.n_members)
            found.append(_Terms(atoms, _repeated(parameters, len(starts))))
        return found

    def across(self, crossing: Ints, links: Links) -> dict[str, list[_Terms]] | int:
        """Collect the terms across the bonds (k, 2) between residues, by table.

        Returns the index of the bond instead if a bond has no link.
        """
        residues = np.searchsorted(self.starts, crossing, side="right") - 1
        found: dict[str, list[_Terms]] = {"bonds": [], "angles": [], "torsions": [], "impropers": []}
        served = np.zeros(len(crossing), bool)
        for link in links.values():
            mine = np.ones(len(crossing), bool)
            for k, atom in enumerate(link.bond.atoms):
                mine &= self._atoms(atom, residues[:, k]) == crossing[:, k]
            served |= mine
            if mine.any():
                chain = [("bonds", [link.bond]), ("angles", link.angles), ("torsions", link.torsions)]
                for name, terms in [*chain, ("impropers", link.impropers)]:
                    found[name] += self._applied(terms, link, name, residues[mine])
        return found if served.all() else int(np.argmin(served))

    def _applied(
        self, terms: Sequence[LinkTerm], link: Link, table: str, residues: NDArray[np.intp]
    ) -> Iterator[_Terms]:
        """Yield the terms for all pairs of residues (m, 2) that have the required atoms and bonds."""
        for atoms, same in groupby(terms, key=lambda term: term.atoms):
            parameters = np.array([term.parameters for term in same])
            found = self._found(atoms, link, table, residues)
            yield _Terms(np.repeat(found, len(parameters), axis=0), _repeated(parameters, len(found)))

    def _found(self, atoms: Sequence[LinkAtom], link: Link, table: str, residues: NDArray[np.intp]) -> Ints:
        """Find the atoms (k, n_members) of a term in the pairs of residues (m, 2) to which it applies."""
        steps = ((2, 0), (2, 1), (2, 3)) if table == "impropers" else ((0, 1), (1, 2), (2, 3))[: len(atoms) - 1]
        fits = np.ones((2, len(self.matches)), bool)  # whether each match can be the first and the second residue
        for atom in atoms:
            fits[int(atom.second)] &= self._place(atom) >= 0
        for i, j in steps:
            if atoms[i].second == atoms[j].second:
                fits[int(atoms[i].second)] &= self._bonded(atoms[i].name, atoms[j].name)
            elif {atoms[i][:2], atoms[j][:2]} != {atom[:2] for atom in link.bond.atoms}:
                fits[:] = False
        there = residues[fits[0][self.which[residues[:, 0]]] & fits[1][self.which[residues[:, 1]]]]
        return np.stack([self._atoms(atom, there[:, int(atom.second)]) for atom in atoms], axis=1)

    def _atoms(self, atom: LinkAtom, residues: NDArray[np.intp]) -> Ints:
        """Return the index of the atom in each residue, (m,); -1 for residues without it."""
        place = self._place(atom)[self.which[residues]]
        return np.where(place >= 0, self.starts[residues] + place, -1).astype(np.int32)

    def _place(self, atom: LinkAtom) -> Ints:
        """Return the index of an atom within the residue for each match, (M,); -1 if no atom has the name and type."""
        if atom not in self._places:
            found = (m.template.index.get(atom.name, -1) for m in self.matches)
            places = [
                m.places[i] if i >= 0 and atom.type in ("", m.template.types[i]) else -1
                for m, i in zip(self.matches, found, strict=True)
            ]
            self._places[atom] = np.array(places, np.int32)
        return self._places[atom]

    def _bonded(self, first: str, second: str) -> NDArray[np.bool_]:
        """Return a mask (M,) of the matches in which two atoms are bonded."""
        return np.array([(first, second) in m.template.bonded_names for m in self.matches])


def _missing_link(structure: Structure, bond: Sequence[int], some: bool) -> str:
    """Return the note about a bond between residues without a link."""
    i, j = bond
    file = "disulphide_bonds" if structure.labels.names[i] == "SG" else "inter_residue_bonds"
    having = "no line BOND of a file" if some else "no file"
    atoms = f"{structure.labels.atom(i)} and {structure.labels.atom(j)}"
    return f"no bonded terms: the force field has {having} {file} for the bond of {atoms}{_NONE}"


def _repeated(rows: Floats, times: int) -> Floats:
    """Repeat all rows (m, p), (times m, p)."""
    return np.concatenate([rows] * times) if times else rows[:0]


def _joined(parts: Sequence[_Terms]) -> _Terms:
    """Concatenate terms, sorted by their first atoms."""
    atoms, parameters = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(atoms[:, 0], kind="stable")
    return _Terms(atoms[order], parameters[order])


def _by_index(impropers: Ints, of: AtomParameters) -> Ints:
    """Order the outer atoms of impropers a, b, c, d about c as OpenMM does, for the atoms c marked in `by_index`.

    Among outer atoms with the type of d, the last one in the structure is d. If a and b have the same element, a
    precedes b.
    """
    atoms = impropers.copy()
    asked = of.by_index[atoms[:, 2]]
    for i, j, kinds in ((0, 3, of.types), (1, 3, of.types), (0, 1, of.elements)):
        swap = asked & (atoms[:, i] > atoms[:, j]) & (kinds[atoms[:, i]] == kinds[atoms[:, j]])
        atoms[swap, i], atoms[swap, j] = atoms[swap, j], atoms[swap, i]
    return atoms
