"""AllPairs: every pair of n atoms but the excluded ones, made while they are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..atoms import Ints
from ..common import arguments
from ..common.errors import InputError
from ..common.readonly import ReadOnlyArrays, read_only
from .pairlist import Codes, PairList, require_most, unchecked, whole_numbers


def _no_pairs() -> Ints:
    return np.empty((0, 2), np.int32)


MOST_ATOMS = 100_000_000  # a list of the pairs' first ranks takes 8 bytes per atom


@dataclass(frozen=True, eq=False)
class AllPairs(ReadOnlyArrays):
    """All pairs i < j of n_atoms atoms, row by row, except excluded ones.

    n_atoms : atoms
    excluded : (m, 2) pairs to leave out, indices from 0, in any order
    one_four : (k, 2) pairs to flag

    Needs memory only for the excluded pairs and one piece. Raises InputError for pairs of atoms that do not exist.

    >>> len(pele_ocl.AllPairs(4))
    6
    """

    n_atoms: int
    excluded: Ints = field(default_factory=_no_pairs)
    one_four: Ints = field(default_factory=_no_pairs)
    _starts: Codes = field(init=False, repr=False)  # rank of the first pair of each row; a last one behind them all
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
        """Yield the pairs in order, at most `most` at a time."""
        for start in range(0, len(self), require_most(most)):
            yield self._between(start, min(start + most, len(self)))

    def _pairs(self, name: str) -> Codes:
        """Return the pairs of a field, (m, 2), lower index first."""
        given = arguments.array(name, getattr(self, name), "iuf", "pairs of indices")
        if given.size and (given.ndim != 2 or given.shape[1] != 2):
            raise InputError(f"{name} has shape {given.shape}; (m, 2) is needed")
        return np.sort(whole_numbers(name, given.reshape(-1)).reshape(-1, 2), axis=1)

    def _ranks(self, name: str, pairs: Codes) -> Codes:
        """Rank pairs among all pairs, excluded ones included, sorted and unique."""
        i, j = pairs.T
        wrong = (i < 0) | (j >= self.n_atoms) | (i == j)
        if wrong.any():
            k = int(np.argmax(wrong))
            raise InputError(
                f"{name} holds the pair {i[k]} {j[k]}; two of the atoms 0 to {self.n_atoms - 1} are needed"
            )
        return np.unique(self._starts[i] + j - i - 1)

    def _between(self, start: int, stop: int) -> PairList:
        """Return pairs number `start` to `stop` - 1 among the ones that are not excluded."""
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
        """Rank a pair among all pairs.

        It comes after as many excluded ones as have at most `number` others before.
        """
        others_before = self._skipped - np.arange(len(self._skipped))
        return number + int(np.searchsorted(others_before, number, side="right"))

    def _row(self, rank: int) -> int:
        return int(np.searchsorted(self._starts, rank, side="right")) - 1


def _marked(ranks: Codes, low: int, high: int) -> NDArray[np.bool_]:
    """(high - low,) True at the ranks in this range."""
    marks = np.zeros(high - low, np.bool_)
    marks[ranks[np.searchsorted(ranks, low) : np.searchsorted(ranks, high)] - low] = True
    return marks
