"""Labels of atoms and residues, and structures as read from a file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..common import arguments
from ..common.errors import InputError, Suggests
from ..common.readonly import ReadOnlyArrays, read_only

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Strings = NDArray[np.str_]


class Residue(NamedTuple):
    """Identity of a residue in a file. `str(residue)` is `A:ALA5`, followed by the insertion code if there is one."""

    chain: str
    name: str
    number: int
    insertion_code: str = ""

    def __str__(self) -> str:
        chain = f"{self.chain}:" if self.chain else ""
        return f"{chain}{self.name}{self.number}{self.insertion_code}"


@dataclass(frozen=True, eq=False)
class Labels(ReadOnlyArrays, Suggests):
    """Atom and residue names of a structure; all arrays have shape (n,).

    names : atom names without blanks ("CA", "HB2", "O3'")
    elements : element symbols ("C", "Cl"); "X" if unknown
    residue_names, residue_numbers, insertion_codes, chains : as in the file; "" if blank
    residue_index : index of the residue of each atom, from 0, in the order of the file
    residue_starts : index of the first atom of each residue

    >>> labels = pele_ocl.read("data/structures/trialanine.pdb").labels
    >>> labels.atom(0), len(labels.residues)
    ('A:ALA1:N', 3)
    """

    names: Strings
    elements: Strings
    residue_names: Strings
    residue_numbers: Ints
    insertion_codes: Strings
    chains: Strings
    residue_index: Ints

    def __post_init__(self) -> None:
        for f in fields(self):
            whole = f.name in ("residue_numbers", "residue_index")
            values = arguments.array(f.name, getattr(self, f.name), "iu" if whole else "U", _kind(whole))
            if values.ndim != 1:
                raise InputError(f"{f.name} have shape {values.shape}; expected (n,), one per atom")
            if whole and values.size and np.abs(values.astype(np.float64)).max() > arguments.MOST_INT32:
                raise InputError(f"{f.name} reach beyond {arguments.MOST_INT32:,}; expected smaller numbers")
            object.__setattr__(self, f.name, read_only(values, np.int32 if whole else np.str_))
        lengths = {f.name: len(getattr(self, f.name)) for f in fields(self)}
        if len(set(lengths.values())) > 1:
            raise InputError(f"the labels have different lengths: {lengths}")

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"Labels({len(self):,} atoms, {len(self.residue_starts):,} residues)"

    @cached_property
    def residue_starts(self) -> Ints:
        """Index of the first atom of each residue, (n_residues,)."""
        return read_only(np.flatnonzero(np.diff(self.residue_index, prepend=self.residue_index[:1] - 1)), np.int32)

    @cached_property
    def residues(self) -> tuple[Residue, ...]:
        """All residues, in the order of `residue_starts`."""
        columns = (self.chains, self.residue_names, self.residue_numbers, self.insertion_codes)
        return tuple(map(Residue, *(column[self.residue_starts].tolist() for column in columns)))

    def residue(self, i: int) -> str:
        """Return the name of the residue of atom i, such as `A:ALA5`, followed by the insertion code if there is one.

        >>> pele_ocl.read("data/structures/trialanine.pdb").labels.residue(4)
        'A:ALA1'
        """
        i = self._index(i)
        number = int(self.residue_numbers[i])
        return str(Residue(str(self.chains[i]), str(self.residue_names[i]), number, str(self.insertion_codes[i])))

    def atom(self, i: int) -> str:
        """Return the name of atom i, such as `A:ALA5:CA`.

        >>> pele_ocl.read("data/structures/trialanine.pdb").labels.atom(4)
        'A:ALA1:CA'
        """
        return f"{self.residue(i)}:{self.names[i]}"

    def _index(self, i: int) -> int:
        return arguments.whole_number("the index of the atom", i, least=-len(self), most=len(self) - 1)


def labels_of(labels: Labels, indices: NDArray[np.intp]) -> Labels:
    """Return the labels of a subset of atoms, (k,) indices, in that order. residue_index is renumbered from 0."""
    columns = {f.name: getattr(labels, f.name)[indices] for f in fields(labels)}
    columns["residue_index"] = np.unique(columns["residue_index"], return_inverse=True)[1].reshape(-1)
    return Labels(**columns)


def labels_together(one: Labels, other: Labels) -> Labels:
    """Concatenate two sets of labels."""
    columns = {f.name: np.concatenate([getattr(one, f.name), getattr(other, f.name)]) for f in fields(one)}
    shift = int(one.residue_index[-1]) + 1 if len(one) else 0
    columns["residue_index"] = np.concatenate([one.residue_index, other.residue_index + shift])
    return Labels(**columns)


def labels_of_rows(rows: Iterable[tuple[str, str, str, int, str, str, int]]) -> Labels:
    """Make Labels from one row per atom: name, element, residue name, number, insertion code, chain, residue index."""
    names, elements, residues, numbers, codes, chains, index = zip(*rows, strict=True)
    return Labels(
        np.array(names, np.str_), np.array(elements, np.str_), np.array(residues, np.str_), np.array(numbers, np.int32),
        np.array(codes, np.str_), np.array(chains, np.str_), np.array(index, np.int32),
    )  # fmt: skip


def _kind(whole: bool) -> str:
    return "whole numbers" if whole else "texts"


@dataclass(frozen=True, eq=False)
class Structure(ReadOnlyArrays):
    """A structure as read from a file, without force-field parameters: n atoms in residues and segments.

    positions : (n, 3) A
    labels : Labels of the n atoms
    segments : (n_residues,) index of the chain segment of each residue, from 0. A new segment starts at a TER record, a
        new chain identifier, or the change from polymer to HETATM groups
    hetero : (n_residues,) True if the residue is marked as HETATM
    lines : (n,) line number of each atom in the file, from 1; 0 for formats without lines
    source : name of the file, for messages
    notes : messages about the choice of models and alternate locations

    >>> structure = pele_ocl.formats.read_structure("data/structures/trialanine.pdb")
    >>> structure.positions.shape, len(structure.labels.residues)
    ((33, 3), 3)
    """

    positions: Floats
    labels: Labels
    segments: Ints
    hetero: NDArray[np.bool_]
    lines: Ints
    source: str
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        labels = arguments.instance("labels", self.labels, Labels, "Labels")
        n, n_residues = len(labels), len(labels.residue_starts)
        object.__setattr__(self, "positions", read_only(arguments.positions_of(self.positions), np.float64))
        kinds = {"segments": (n_residues, "iu"), "hetero": (n_residues, "b"), "lines": (n, "iu")}
        for name, (length, kind) in kinds.items():
            values = arguments.array(name, getattr(self, name), kind, "whole numbers" if kind == "iu" else "booleans")
            if values.shape != (length,):
                raise InputError(f"{name} have shape {values.shape}; expected ({length},)")
            object.__setattr__(self, name, read_only(values, values.dtype))
        if len(self.positions) != n:
            raise InputError(f"{n} labels for {len(self.positions)} positions")
        arguments.text("source", self.source)

    def of_residues(self, mask: NDArray[np.bool_]) -> Structure:
        """Return the structure of a subset of residues. mask : (n,) True for their atoms

        Raises InputError for another shape and for incomplete residues.
        """
        mask = arguments.array("the atoms to keep", mask, "b", "booleans")
        starts, n = self.labels.residue_starts, len(self.labels)
        if mask.shape != (n,) or (mask != np.repeat(mask[starts], np.diff(starts, append=n))).any():
            raise InputError(f"the atoms to keep have shape {mask.shape}; expected ({n},) booleans of whole residues")
        residues = mask[starts]
        return replace(
            self,
            positions=self.positions[mask],
            labels=labels_of(self.labels, np.flatnonzero(mask)),
            segments=self.segments[residues],
            hetero=self.hetero[residues],
            lines=self.lines[mask],
        )

    def where(self, i: int) -> str:
        """Return the file, line and name of atom i for messages, such as `protein.pdb:41 (A:ALA5:CA)`."""
        atom = self.labels.atom(i)
        line = f":{self.lines[i]}" if self.lines[i] else ""
        return f"{self.source}{line} ({atom})"
