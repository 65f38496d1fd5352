"""Template: names, parameters, bonds and bonded terms of one residue of a force field."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from ..atoms import Bonded, Floats, Ints

Kind = Literal["amber", "opls"]


@dataclass(frozen=True, eq=False)
class Template:
    """One residue of a force field; n atoms in the order of the file.

    name : key of the template, upper case, as the file is called: ALA in a chain, ALAB first, ALAE last, ALAZ alone
    names : (n,) atom names without padding
    elements, types : (n,) element guessed from the padded name; the force field's atom type
    lj_lengths : (n,) A, the column of the file: sigma in an OPLS template, R* = Rmin/2 in an Amber one
    lj_epsilon, charges : (n,) kcal/mol and e
    bonds : (m, 2) pairs of atoms, from 0
    kind : which of the two `lj_lengths` is; None where the file alone does not tell
    source : the file, for messages
    terms : bonds, angles, torsions and impropers among the n atoms; None where the file has no parameters of them
    impropers_by_index : whether equal outer atoms of an improper stand in the order of the structure, as in OpenMM
    """

    name: str
    names: tuple[str, ...]
    elements: tuple[str, ...]
    types: tuple[str, ...]
    lj_lengths: Floats
    lj_epsilon: Floats
    charges: Floats
    bonds: Ints
    kind: Kind | None
    source: str
    terms: Bonded | None = None
    impropers_by_index: bool = False

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def lj_sigma(self) -> Floats:
        """(n,) A, the sigma of Atoms: 2 R* / 2^(1/6) for Amber."""
        return self.lj_lengths * 2 / 2 ** (1 / 6) if self.kind == "amber" else self.lj_lengths

    @cached_property
    def index(self) -> dict[str, int]:
        """The index of each atom by its name."""
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def bonded_names(self) -> frozenset[tuple[str, str]]:
        """The names of bonded atoms, each bond both ways."""
        pairs = [(self.names[i], self.names[j]) for i, j in self.bonds.tolist()]
        return frozenset([*pairs, *((j, i) for i, j in pairs)])

    @cached_property
    def n_bonds(self) -> Ints:
        """(n,) bonds of each atom inside the residue."""
        return np.bincount(self.bonds.ravel(), minlength=len(self)).astype(np.int32)

    @cached_property
    def head(self) -> int:
        """The atom that waits for a bond to the residue before: a backbone N or P that lacks one; -1 if none."""
        return max(self._open("N", 2), self._open("P", 3))

    @cached_property
    def tail(self) -> int:
        """The atom that waits for a bond to the residue after: a backbone C or O3' that lacks one; -1 if none."""
        return max(self._open("C", 2), self._open("O3'", 1))

    @cached_property
    def thiol(self) -> int:
        """A cysteine's sulphur without hydrogen, open for a disulphide; -1 if none."""
        return self._open("SG", 1)

    def _open(self, name: str, n_bonds: int) -> int:
        """Index of the atom `name` if it has no more than n_bonds bonds in a residue of a polymer, else -1."""
        if name not in self.names or not self._in_polymer:
            return -1
        i = self.names.index(name)
        return i if self.n_bonds[i] <= n_bonds else -1

    @cached_property
    def _in_polymer(self) -> bool:
        backbones: tuple[frozenset[str], ...] = (frozenset({"N", "CA", "C"}), frozenset({"C4'", "C1'", "O3'"}))
        cap = "".join(sorted(self.elements)) in ("CCHHHO", "CHHHHN", "HHN")
        return cap or any(backbone <= set(self.names) for backbone in backbones)
