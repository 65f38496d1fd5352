"""Pairs of atoms: PairList with arrays of pairs, and AllPairs, which generates all but excluded pairs on demand.

Pairs is their common interface.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import InitVar, dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..atoms import Atoms, Floats, Ints, Labels
from ..common import arguments
from ..common.errors import InputError
from ..common.readonly import ReadOnlyArrays, read_only

Codes = NDArray[np.int64]
Flags = NDArray[np.bool_]
Indices = NDArray[np.signedinteger[Any]]  # stored as int32


class Pairs(Protocol):
    """Pairs of n_atoms atoms, generated in pieces to limit memory."""

    @property
    def n_atoms(self) -> int:
        """Number of atoms; indices are 0 to n_atoms - 1."""

    def __len__(self) -> int: ...

    def chunks(self, most: int) -> Iterator[PairList]:
        """Yield the pairs in order, in lists of at most `most`."""


@dataclass(frozen=True, eq=False)
class PairList(ReadOnlyArrays):
    """List of p pairs of atoms; the order of pairs, and of the two atoms in a pair, does not matter.

    n_atoms : number of atoms
    first, second : (p,) indices from 0
    one_four : (p,) True for pairs separated by three bonds, whose energies are scaled, optional
    sigma2 : (p,) A^2, squared Lennard-Jones sigma of each pair instead of the combined one, optional
    charge_products : (p,) e^2, instead of the product of the two charges, optional
    rule : function that makes the list for other positions, set by pairs_within and pairs_split; None for a fixed list
    labels : names of the atoms, only for messages

    The arrays are copied and made read-only. Raises InputError for unequal lengths, values that are not integers or
    not finite, unknown atoms, atoms paired with themselves, and repeated pairs.

    >>> pele_ocl.PairList(4, first=[0, 1], second=[2, 3])
    PairList(2 pairs of 4 atoms)
    """

    n_atoms: int
    first: Indices
    second: Indices
    one_four: Flags | None = None
    sigma2: Floats | None = None
    charge_products: Floats | None = None
    rule: Callable[[Atoms], PairList] | None = None
    labels: InitVar[Labels | None] = None

    def __post_init__(self, labels: Labels | None) -> None:
        arguments.whole_number("n_atoms", self.n_atoms)
        if labels is not None:
            arguments.instance("labels", labels, Labels, "Labels")
        first, second = whole_numbers("first", self.first), whole_numbers("second", self.second)
        if len(first) != len(second):
            raise InputError(f"first has {len(first)} atoms and second {len(second)}; a pair needs one of each")
        fault = find_fault(self.n_atoms, first, second, labels=labels)
        if fault is not None:
            raise InputError(f"pairs[{fault.position}]: {fault.sentence}")
        self._set("first", first.astype(np.int32))
        self._set("second", second.astype(np.int32))
        if self.one_four is not None:
            self._set("one_four", self._flags())
        for name in ("sigma2", "charge_products"):
            if getattr(self, name) is not None:
                self._set(name, self._finite(name))
        if self.sigma2 is not None and np.any(self.sigma2 < 0):
            k = int(np.argmax(self.sigma2 < 0))
            raise InputError(f"sigma2 of pairs[{k}] is {self.sigma2[k]:g}; a square cannot be negative")

    def __len__(self) -> int:
        return len(self.first)

    def __repr__(self) -> str:
        flagged = "" if self.one_four is None else f", {np.count_nonzero(self.one_four):,} of them 1-4"
        brought = [name for name in ("sigma2", "charge_products") if getattr(self, name) is not None]
        own = f", with {' and '.join(brought)}" if brought else ""
        return f"PairList({len(self):,} pairs of {self.n_atoms:,} atoms{flagged}{own})"

    def chunks(self, most: int) -> Iterator[PairList]:
        """Yield the pairs in order as views, in lists of at most `most`."""
        for start in range(0, len(self), require_most(most)):
            yield self._taken(slice(start, start + most))

    def shuffled(self, seed: int = 0) -> PairList:
        """Return the pairs in random order, with the two atoms exchanged in half of them."""
        rng = np.random.default_rng(arguments.whole_number("seed", seed))
        mixed = self._taken(rng.permutation(len(self)))
        exchange = rng.random(len(self)) < 0.5
        first = np.where(exchange, mixed.second, mixed.first)
        second = np.where(exchange, mixed.first, mixed.second)
        return unchecked(self.n_atoms, first, second, mixed.one_four, mixed.sigma2, mixed.charge_products)

    def _taken(self, which: slice | NDArray[np.intp]) -> PairList:
        arrays = (self.first, self.second, self.one_four, self.sigma2, self.charge_products)
        return unchecked(self.n_atoms, *(None if array is None else array[which] for array in arrays))

    def _set(self, name: str, array: NDArray[Any]) -> None:
        array.flags.writeable = False
        object.__setattr__(self, name, array)

    def _flags(self) -> Flags:
        """Return one_four as booleans; 0 and 1 are accepted."""
        values = self._per_pair("one_four")
        if values.dtype == np.bool_:
            return values.copy()
        odd = ~np.isin(values, (0, 1))
        if odd.any():
            k = int(np.argmax(odd))
            raise InputError(f"one_four of pairs[{k}] is {values[k]}; expected True or False")
        return values.astype(np.bool_)

    def _per_pair(self, name: str) -> NDArray[Any]:
        values = arguments.array(name, getattr(self, name), "iufb", "numbers")
        if values.shape != (len(self),):
            raise InputError(f"{name} has shape {values.shape}; expected ({len(self)},), one value per pair")
        return values

    def _finite(self, name: str) -> Floats:
        values = self._per_pair(name).astype(np.float64)
        bad = ~np.isfinite(values)
        if bad.any():
            k = int(np.argmax(bad))
            raise InputError(f"{name} of pairs[{k}] is {values[k]}; expected a finite number")
        return values


class Fault(NamedTuple):
    """First invalid pair, counted from 0, and the error message."""

    position: int
    sentence: str


def find_fault(
    n_atoms: int, first: Codes, second: Codes, *, base: int = 0, labels: Labels | None = None
) -> Fault | None:
    """Find an unknown atom, an atom paired with itself, or a repeated pair; None if there is none.

    first, second : (p,) indices from 0
    base : index of the first atom in messages
    labels : names of the atoms, for messages
    """

    def named(i: int) -> str:
        known = labels is not None and 0 <= i < len(labels)
        return f"atom {i + base} ({labels.atom(i)})" if labels is not None and known else f"atom {i + base}"

    outside = (np.minimum(first, second) < 0) | (np.maximum(first, second) >= n_atoms)
    if outside.any():
        k = int(np.argmax(outside))
        i, j = int(first[k]), int(second[k])
        stranger = j if 0 <= i < n_atoms else i
        range_ = f"the atoms are {base} to {n_atoms - 1 + base}" if n_atoms else "there are no atoms"
        return Fault(k, f"the pair of {named(i)} and {named(j)} has no atom with the index {stranger + base}; {range_}")
    same = first == second
    if same.any():
        k = int(np.argmax(same))
        return Fault(k, f"{named(int(first[k]))} is paired with itself; remove the pair")
    codes = pair_codes(first, second)
    ordered = np.sort(codes)
    repeated = ordered[1:][ordered[1:] == ordered[:-1]]
    if len(repeated):
        before, k = np.flatnonzero(codes == repeated[0])[:2].tolist()
        pair = f"the pair of {named(int(first[k]))} and {named(int(second[k]))}"
        return Fault(k, f"{pair} is the same as pair number {before + 1}; remove one of them")
    return None


def require_pairs(pairs: object) -> None:
    """Raise InputError for anything but pairs, such as a path or an array."""
    if not hasattr(pairs, "chunks") or not hasattr(pairs, "n_atoms"):
        raise InputError(
            f"pairs are {arguments.described(pairs)}; expected a list: pairs_within(atoms, 12), all_pairs(atoms), "
            "read_pairs('pairs.h5', len(atoms)) or PairList(len(atoms), first, second)"
        )


def pair_codes(first: NDArray[Any], second: NDArray[Any]) -> Codes:
    """Encode pairs as integers with the lower index in the upper 32 bits; equal pairs have equal codes."""
    low, high = np.minimum(first, second), np.maximum(first, second)
    codes: Codes = low.astype(np.int64)
    codes <<= 32
    codes |= high.astype(np.int64)
    return codes


def pairs_of(codes: Codes) -> tuple[Ints, Ints]:
    """Return the lower and the higher atom of codes, (p,) each."""
    return (codes >> 32).astype(np.int32), (codes & 0xFFFFFFFF).astype(np.int32)


def unchecked(
    n_atoms: int,
    first: Any,
    second: Any,
    one_four: Any = None,
    sigma2: Any = None,
    charge_products: Any = None,
    *,
    rule: Callable[[Atoms], PairList] | None = None,
) -> PairList:
    """Create a PairList from valid arrays, without copying or checking them."""
    pairs = object.__new__(PairList)
    object.__setattr__(pairs, "n_atoms", n_atoms)
    object.__setattr__(pairs, "rule", rule)
    arrays = {
        "first": first,
        "second": second,
        "one_four": one_four,
        "sigma2": sigma2,
        "charge_products": charge_products,
    }
    for name, array in arrays.items():
        if array is not None:
            array.flags.writeable = False
        object.__setattr__(pairs, name, array)
    return pairs


def whole_numbers(name: str, values: ArrayLike) -> Codes:
    """Return indices (p,) as int64. Raises InputError for fractions and other shapes."""
    array = arguments.array(name, values, "iuf", "indices of atoms")
    if array.ndim != 1:
        raise InputError(f"{name} has shape {array.shape}; expected (p,), one index per pair")
    if array.size and array.dtype.kind not in "iu":
        raise InputError(f"{name} contains {array.dtype} values; indices are whole numbers")
    if array.dtype.kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
        raise InputError(f"{name} contains {array.max()}; no molecule has that many atoms")
    return array.astype(np.int64)


def require_most(most: int) -> int:
    """Return a number of pairs per piece. Raises InputError unless it is a positive integer."""
    if not isinstance(most, int | np.integer):
        raise InputError(f"the size of pieces is {arguments.described(most)}; expected a whole number")
    if most < 1:
        raise InputError(f"the size of pieces is {most}; expected at least 1")
    return most


def _no_pairs() -> Ints:
    return np.empty((0, 2), np.int32)


MOST_ATOMS = 100_000_000  # the ranks of the first pairs of rows take 8 bytes per atom


@dataclass(frozen=True, eq=False)
class AllPairs(ReadOnlyArrays):
    """All pairs i < j of n_atoms atoms, row by row, except excluded ones.

    n_atoms : number of atoms
    excluded : (m, 2) pairs to leave out, indices from 0, in any order
    one_four : (k, 2) pairs to flag

    Memory is needed only for the excluded pairs and one piece. Raises InputError for pairs with unknown atoms.

    >>> len(pele_ocl.AllPairs(4))
    6
    """

    n_atoms: int
    excluded: Ints = field(default_factory=_no_pairs)
    one_four: Ints = field(default_factory=_no_pairs)
    _starts: Codes = field(init=False, repr=False)  # rank of the first pair of each row, and the number of all pairs
    _skipped: Codes = field(init=False, repr=False)
    _flagged: Codes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        arguments.whole_number("n_atoms", self.n_atoms, most=MOST_ATOMS)
        lengths = np.arange(self.n_atoms - 1, -1, -1, dtype=np.int64)
        object.__setattr__(self, "_starts", read_only(np.concatenate([[0], np.cumsum(lengths)]), np.int64))
        for name, ranks in (("excluded", "_skipped"), ("one_four", "_flagged")):
            pairs = self._pairs(name)
            object.__setattr__(self, ranks, read_only(self._ranks(name, pairs), np.int64))
            object.__setattr__(self, name, read_only(pairs, np.int32))

    def __len__(self) -> int:
        return int(self._starts[-1]) - len(self._skipped)

    def __repr__(self) -> str:
        flagged = f", {len(self._flagged):,} of them 1-4" if len(self._flagged) else ""
        return f"AllPairs({len(self):,} pairs of {self.n_atoms:,} atoms{flagged})"

    def chunks(self, most: int) -> Iterator[PairList]:
        """Yield the pairs in order, in lists of at most `most`."""
        for start in range(0, len(self), require_most(most)):
            yield self._between(start, min(start + most, len(self)))

    def _pairs(self, name: str) -> Codes:
        """Return the pairs of a field, (m, 2), with the lower index first."""
        given = arguments.array(name, getattr(self, name), "iuf", "pairs of indices")
        if given.size and (given.ndim != 2 or given.shape[1] != 2):
            raise InputError(f"{name} has shape {given.shape}; expected (m, 2)")
        return np.sort(whole_numbers(name, given.reshape(-1)).reshape(-1, 2), axis=1)

    def _ranks(self, name: str, pairs: Codes) -> Codes:
        """Sorted unique ranks of pairs among all pairs, including excluded ones."""
        i, j = pairs.T
        wrong = (i < 0) | (j >= self.n_atoms) | (i == j)
        if wrong.any():
            k = int(np.argmax(wrong))
            raise InputError(
                f"{name} contains the pair {i[k]} {j[k]}; expected two of the atoms 0 to {self.n_atoms - 1}"
            )
        return np.unique(self._starts[i] + j - i - 1)

    def _between(self, start: int, stop: int) -> PairList:
        """Return pairs `start` to `stop` - 1 of those that are not excluded."""
        low, high = self._rank(start), self._rank(stop - 1) + 1
        rows = np.arange(self._row(low), self._row(high - 1) + 1)
        begin, end = np.maximum(self._starts[rows], low), np.minimum(self._starts[rows + 1], high)
        first = np.repeat(rows.astype(np.int32), end - begin)
        second = np.arange(high - low, dtype=np.int32)
        second += np.repeat((low - self._starts[rows] + rows + 1).astype(np.int32), end - begin)
        flags = _marked(self._flagged, low, high) if len(self._flagged) else None
        skipped = _marked(self._skipped, low, high)
        if skipped.any():
            kept = ~skipped
            first, second, flags = first[kept], second[kept], None if flags is None else flags[kept]
        return unchecked(self.n_atoms, first, second, flags)

    def _rank(self, number: int) -> int:
        """Rank among all pairs of pair `number` of those that are not excluded."""
        others_before = self._skipped - np.arange(len(self._skipped))
        return number + int(np.searchsorted(others_before, number, side="right"))

    def _row(self, rank: int) -> int:
        return int(np.searchsorted(self._starts, rank, side="right")) - 1


def _marked(ranks: Codes, low: int, high: int) -> NDArray[np.bool_]:
    """Mask of the ranks within a range, (high - low,)."""
    marks = np.zeros(high - low, np.bool_)
    marks[ranks[np.searchsorted(ranks, low) : np.searchsorted(ranks, high)] - low] = True
    return marks
