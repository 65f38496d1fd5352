"""The bonded terms of a structure: those of its templates, those across bonds between residues, and its 1-4 pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..atoms import Angles, Bonded, Bonds, Floats, Impropers, Ints, OneFourPairs, Structure, TermTable, Torsions, exclusions
from .bonding import Bonding
from .links import Link, LinkAtom, Links, LinkTerm
from .matching import Match
from .template import Template

TABLES: dict[str, type[TermTable]] = {
    "bonds": Bonds, "angles": Angles, "torsions": Torsions, "impropers": Impropers,
}  # fmt: skip
_NONE = " (the energy is then nonbonded + solvent)"


class PairParameters(NamedTuple):
    """Of the 1-4 pairs: charges (n,), Lennard-Jones sigma and epsilon (n,), the rule of sigma and the two scales."""

    charges: Floats
    sigma: Floats
    epsilon: Floats
    combining: Literal["arithmetic", "geometric"]
    scales: tuple[float, float]


def bonded_of(
    structure: Structure, matches: Sequence[Match], bonding: Bonding, links: Links, parameters: PairParameters
) -> tuple[Bonded | None, tuple[str, ...]]:
    """The terms of a structure; or None, and the note that says which parameters are lacking."""
    lacking = sorted({m.template.name for m in matches if m.template.terms is None})
    if lacking:
        what = "templates" if len(lacking) > 1 else "template"
        verb = "lack" if len(lacking) > 1 else "lacks"
        return None, (f"no bonded terms: the {what} {', '.join(lacking)} {verb} their parameters{_NONE}",)
    molecule = _Molecule(structure, matches, bonding)
    across = molecule.across(links)
    if across is None:
        return None, (f"no bonded terms: {molecule.missing_link(links)}{_NONE}",)
    tables = {name: _joined(molecule.inside(name), across[name]) for name in TABLES}
    impropers, types, elements = tables["impropers"], molecule.types, molecule.elements
    tables["impropers"] = impropers._replace(atoms=_by_index(impropers, types, elements))
    excluded, one_four = exclusions(bonding.bonds, len(structure.labels))
    return Bonded(
        **{name: TABLES[name](terms.atoms, terms.parameters) for name, terms in tables.items()},  # type: ignore[arg-type]
        one_four=_one_four(one_four, parameters), excluded=excluded,
    ), ()  # fmt: skip


class _Terms(NamedTuple):
    """Terms of one kind: atoms (m, k), parameters (m, p), and whether each is ordered by index (m,)."""

    atoms: Ints
    parameters: Floats
    by_index: NDArray[np.bool_]


class _Molecule:
    """The matched residues as arrays: of each residue its template, of each atom of a template its place."""

    def __init__(self, structure: Structure, matches: Sequence[Match], bonding: Bonding) -> None:
        self.structure, self.bonding = structure, bonding
        self.starts = structure.labels.residue_starts
        used = {id(m): m for m in matches}
        self.matches = list(used.values())
        number = {key: k for k, key in enumerate(used)}
        self.which = np.array([number[id(m)] for m in matches])
        bonds = bonding.bonds.astype(np.int64)
        self.n_atoms = len(structure.labels)
        self.bond_codes = bonds[:, 0] * self.n_atoms + bonds[:, 1]

    @property
    def types(self) -> NDArray[np.str_]:
        """(n,) atom types."""
        return self._of_atoms([np.array(m.template.types)[m.order] for m in self.matches])

    @property
    def elements(self) -> NDArray[np.str_]:
        """(n,) elements."""
        return self._of_atoms([np.array(m.template.elements)[m.order] for m in self.matches])

    def _of_atoms(self, columns: Sequence[NDArray[np.str_]]) -> NDArray[np.str_]:
        return np.concatenate([columns[k] for k in self.which.tolist()])

    def inside(self, name: str) -> list[_Terms]:
        """The terms of a table that are within residues."""
        found = []
        for k, match in enumerate(self.matches):
            assert match.template.terms is not None
            table: TermTable = getattr(match.template.terms, name)
            local = match.places[table.atoms].reshape(-1, table.n_members)
            there = (local >= 0).all(axis=1)
            starts = self.starts[self.which == k]
            atoms = (starts[:, None, None] + local[there]).reshape(-1, table.n_members)
            parameters = np.tile(table.parameters[there], (len(starts), 1))
            found.append(_Terms(atoms, parameters, np.full(len(atoms), match.template.impropers_by_index)))
        return found

    def across(self, links: Links) -> dict[str, list[_Terms]] | None:
        """The terms across bonds between residues, by table; None where a bond has no link."""
        crossing = self.bonding.crossing
        residues = np.searchsorted(self.starts, crossing, side="right") - 1
        found: dict[str, list[_Terms]] = {name: [] for name in TABLES}
        served = np.zeros(len(crossing), bool)
        for link in links.values():
            mine = (self._atoms(link.bond, residues) == crossing).all(axis=1)
            served |= mine
            groups = {"bonds": [link.bond], "angles": link.angles, "torsions": link.torsions, "impropers": link.impropers}
            for name, terms in groups.items():
                found[name] += [self._applied(term, link, name, residues[mine]) for term in terms if mine.any()]
        self.unserved = np.flatnonzero(~served)
        return None if len(self.unserved) else found

    def missing_link(self, links: Links) -> str:
        """The part of a sentence about the first bond without a link."""
        i, j = self.bonding.crossing[self.unserved[0]].tolist()
        file = "disulphide_bonds" if self.structure.labels.names[i] == "SG" else "inter_residue_bonds"
        having = "no file" if not links else "no line BOND of a file"
        bond = f"{self.structure.labels.atom(i)} and {self.structure.labels.atom(j)}"
        return f"the force field has {having} {file} for the bond of {bond}"

    def _applied(self, term: LinkTerm, link: Link, table: str, residues: NDArray[np.intp]) -> _Terms:
        """A term at all pairs of residues (m, 2) where its atoms are there and bonded as it needs."""
        atoms = self._atoms(term, residues)
        steps = [(2, 0), (2, 1), (2, 3)] if table == "impropers" else [(k, k + 1) for k in range(len(term.atoms) - 1)]
        there = (atoms >= 0).all(axis=1)
        for i, j in steps:
            there &= self._bonded(atoms[:, i], atoms[:, j])
        parameters = np.tile(np.array(term.parameters), (int(there.sum()), 1))
        return _Terms(atoms[there], parameters, np.full(int(there.sum()), link.impropers_by_index))

    def _atoms(self, term: LinkTerm, residues: NDArray[np.intp]) -> Ints:
        """(m, k) atoms of a term in pairs of residues (m, 2); -1 where a residue lacks one."""
        columns = []
        for atom in term.atoms:
            local = np.array([_local(match, atom) for match in self.matches], np.int32)
            own = residues[:, int(atom.second)]
            place = local[self.which[own]]
            columns.append(np.where(place >= 0, self.starts[own] + place, -1))
        return np.stack(columns, axis=1).astype(np.int32)

    def _bonded(self, i: Ints, j: Ints) -> NDArray[np.bool_]:
        low, high = np.minimum(i, j).astype(np.int64), np.maximum(i, j).astype(np.int64)
        codes = low * self.n_atoms + high
        places = np.searchsorted(self.bond_codes, codes) % max(len(self.bond_codes), 1)
        found: NDArray[np.bool_] = self.bond_codes[places] == codes
        return found


def _local(match: Match, atom: LinkAtom) -> int:
    """The place of an atom in a residue, -1 where it has none of that name and type."""
    template: Template = match.template
    if atom.name not in template.names:
        return -1
    i = template.names.index(atom.name)
    return int(match.places[i]) if atom.type in ("", template.types[i]) else -1


def _joined(inside: Sequence[_Terms], across: Sequence[_Terms]) -> _Terms:
    """All terms, in the order of their first atoms."""
    columns = [np.concatenate(column) for column in zip(*inside, *across, strict=True)]
    order = np.argsort(columns[0][:, 0], kind="stable")
    return _Terms(*(column[order] for column in columns))


def _by_index(terms: _Terms, types: NDArray[np.str_], elements: NDArray[np.str_]) -> Ints:
    """Atoms of impropers a, b, c, d about c, with equal ones of a, b, d in the order of the structure where that is asked.

    OpenMM's rule for improper torsions without an order of their own: of the outer atoms of d's type the last is d, and
    a stands before b where both are of one element.
    """
    atoms = terms.atoms.copy()
    for k in (0, 1):
        swap = terms.by_index & (types[atoms[:, k]] == types[atoms[:, 3]]) & (atoms[:, k] > atoms[:, 3])
        atoms[swap, k], atoms[swap, 3] = atoms[swap, 3], atoms[swap, k]
    swap = terms.by_index & (elements[atoms[:, 0]] == elements[atoms[:, 1]]) & (atoms[:, 0] > atoms[:, 1])
    atoms[swap, 0], atoms[swap, 1] = atoms[swap, 1], atoms[swap, 0]
    return atoms


def _one_four(pairs: Ints, of: PairParameters) -> OneFourPairs:
    """Scaled parameters of pairs (k, 2)."""
    i, j = pairs.T
    coulomb, lennard_jones = of.scales
    sigma = (of.sigma[i] + of.sigma[j]) / 2 if of.combining == "arithmetic" else np.sqrt(of.sigma[i] * of.sigma[j])
    epsilon = lennard_jones * np.sqrt(of.epsilon[i] * of.epsilon[j])
    return OneFourPairs(pairs, np.stack([coulomb * of.charges[i] * of.charges[j], sigma, epsilon], axis=1))
