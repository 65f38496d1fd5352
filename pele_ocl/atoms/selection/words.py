"""Keywords of selections and the atoms that they select."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...common.errors import InputError
from ..labels import Floats, Ints, Labels, Strings
from .kinds import residue_kinds

_LONG = 80  # maximum length of a text in a message
Bools = NDArray[np.bool_]
Number = tuple[int, str]  # a residue number and its insertion code

_PROTEIN_BACKBONE = ("N", "CA", "C", "O")
_NUCLEIC_BACKBONE = (
    "P",
    "O5'",
    "C5'",
    "C4'",
    "C3'",
    "O3'",
    "OP1",
    "OP2",
    "O1P",
    "O2P",
    "O5*",
    "C5*",
    "C4*",
    "C3*",
    "O3*",
)


def clipped(text: str) -> str:
    """Truncate a text for messages."""
    return text if len(text) <= _LONG else f"{text[:_LONG]}..."


@dataclass(frozen=True, eq=False)
class SelectableAtoms:
    """Properties of n atoms that selections use; None for unknown ones.

    labels : Labels; positions : (n, 3) A; types : (n,) force-field atom types
    """

    n_atoms: int
    labels: Labels | None = None
    positions: Floats | None = None
    types: Strings | None = None

    @property
    def names(self) -> Labels:
        """Labels of the atoms. Raises InputError if there are none."""
        if self.labels is None:
            raise InputError("these atoms have no atom and residue names; select them with 'index'")
        return self.labels

    @cached_property
    def residues(self) -> Ints:
        """Index of the residue of each atom in the order of `residue_starts`, (n,)."""
        sizes = np.diff(self.names.residue_starts, append=self.n_atoms)
        return np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)

    @cached_property
    def kinds(self) -> Strings:
        """Kind of the residue of each atom, (n,)."""
        return np.asarray(residue_kinds(self.names)[self.residues], np.str_)

    @cached_property
    def hydrogens(self) -> Bools:
        """Mask (n,) of the hydrogens, by element or, if it is unknown, by name."""
        elements = self.names.elements
        unknown = np.isin(elements, ("", "X"))
        by_name = [name.lstrip("0123456789").upper().startswith("H") for name in self.names.names[unknown].tolist()]
        found: Bools = np.isin(elements, ("H", "D"))
        found[unknown] = by_name
        return found

    @cached_property
    def backbone(self) -> Bools:
        """Mask (n,) of the backbone atoms of amino acids and nucleotides."""
        names = self.names.names
        protein = (self.kinds == "protein") & np.isin(names, _PROTEIN_BACKBONE)
        return np.asarray(protein | ((self.kinds == "nucleic") & np.isin(names, _NUCLEIC_BACKBONE)), np.bool_)

    def of_kind(self, kind: str) -> Bools:
        """Return a mask (n,) of the atoms in residues of a kind."""
        return np.asarray(self.kinds == kind, np.bool_)


# Keywords without arguments.
ALONE: dict[str, Callable[[SelectableAtoms], Bools]] = {
    "all": lambda atoms: np.ones(atoms.n_atoms, np.bool_),
    "protein": lambda atoms: atoms.of_kind("protein"),
    "nucleic": lambda atoms: atoms.of_kind("nucleic"),
    "water": lambda atoms: atoms.of_kind("water"),
    "waters": lambda atoms: atoms.of_kind("water"),
    "ion": lambda atoms: atoms.of_kind("ion"),
    "ions": lambda atoms: atoms.of_kind("ion"),
    "ligand": lambda atoms: atoms.of_kind("ligand"),
    "ligands": lambda atoms: atoms.of_kind("ligand"),
    "backbone": lambda atoms: atoms.backbone,
    "sidechain": lambda atoms: atoms.of_kind("protein") & ~atoms.backbone,
    "hydrogen": lambda atoms: atoms.hydrogens,
    "heavy": lambda atoms: ~atoms.hydrogens,
}


def _types(atoms: SelectableAtoms) -> Strings:
    if atoms.types is None:
        raise InputError("the atom types are not known, so 'type' cannot be used; select with 'name' or 'element'")
    return atoms.types


# Keywords followed by names, in which * and ? are wildcards.
NAMED: dict[str, Callable[[SelectableAtoms], Strings]] = {
    "name": lambda atoms: atoms.names.names,
    "resname": lambda atoms: atoms.names.residue_names,
    "chain": lambda atoms: atoms.names.chains,
    "segid": lambda atoms: atoms.names.chains,
    "element": lambda atoms: atoms.names.elements,
    "type": _types,
}


def _residue_numbers(atoms: SelectableAtoms) -> tuple[Ints, Strings | None]:
    return atoms.names.residue_numbers, atoms.names.insertion_codes


def _indices(atoms: SelectableAtoms) -> tuple[Ints, Strings | None]:
    return np.arange(atoms.n_atoms, dtype=np.int32), None


# Keywords followed by numbers or ranges.
NUMBERED: dict[str, Callable[[SelectableAtoms], tuple[Ints, Strings | None]]] = {
    "resid": _residue_numbers,
    "resnum": _residue_numbers,
    "index": _indices,
}


def with_names(column: Strings, patterns: Sequence[tuple[str, bool]]) -> Bools:
    """Return a mask (n,) of matching names. patterns : names, and whether `*` and `?` in them are literal"""
    found = np.zeros(len(column), np.bool_)
    plain = [text for text, is_literal in patterns if is_literal or not re.search(r"[*?]", text)]
    wild = [text for text, is_literal in patterns if not is_literal and re.search(r"[*?]", text)]
    if wild:
        forms = [re.escape(text).replace(r"\*", ".*").replace(r"\?", ".") for text in wild]
        pattern = re.compile("|".join(forms))
        plain += [name for name in set(column.tolist()) if pattern.fullmatch(name)]
    for name in dict.fromkeys(plain):
        found |= column == name
    return found


def with_numbers(numbers: Ints, codes: Strings | None, ranges: Sequence[tuple[Number, Number]]) -> Bools:
    """Return a mask (n,) of the numbers in any of the ranges, including both ends and ordering by insertion code."""
    found = np.zeros(len(numbers), np.bool_)
    for (first, first_code), (last, last_code) in ranges:
        inside = (numbers >= first) & (numbers <= last)
        if codes is not None:
            inside &= (numbers > first) | (codes >= first_code)
            inside &= (numbers < last) | (codes <= last_code)
        found |= inside
    return found


def present(atoms: SelectableAtoms, column: NDArray[Any]) -> str:
    """List the distinct values of a column for messages; ligands come first among residue names."""
    values = [str(value) for value in np.unique(column).tolist() if str(value)]
    labels = atoms.labels
    if labels is None or column is not labels.residue_names:
        return f"there are {_listed(values)}"
    kinds, names = residue_kinds(labels), labels.residue_names[labels.residue_starts]
    ligands = [str(name) for name in np.unique(names[kinds == "ligand"]).tolist() if str(name)]
    others = [value for value in values if value not in ligands]
    parts = [f"ligands here: {_listed(ligands)}"] if ligands else []
    if others:
        parts.append(f"there are {'also ' if ligands else ''}{_listed(others)}")
    return "; ".join(parts)


def _listed(values: Sequence[str]) -> str:
    return ", ".join(values[:12]) + (f" and {len(values) - 12} more" if len(values) > 12 else "")
