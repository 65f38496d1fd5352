"""AllPairs against lists made pair by pair."""

from __future__ import annotations

import numpy as np
import pytest

from pele_ocl import InputError
from pele_ocl.pairs import AllPairs


def by_hand(n_atoms, excluded=(), one_four=()):
    """Pairs and flags, in order."""
    excluded, one_four = ({tuple(sorted(map(int, pair))) for pair in pairs} for pairs in (excluded, one_four))
    pairs = [(i, j) for i in range(n_atoms) for j in range(i + 1, n_atoms) if (i, j) not in excluded]
    return pairs, [pair in one_four for pair in pairs]


def random_pairs(n_atoms, n_pairs, seed):
    pairs = np.random.default_rng(seed).integers(0, n_atoms, (n_pairs, 2))
    return pairs[pairs[:, 0] != pairs[:, 1]].astype(np.int32)


def listed(pieces):
    return [pair for piece in pieces for pair in zip(piece.first.tolist(), piece.second.tolist(), strict=True)]


@pytest.mark.parametrize("most", [1, 2, 7, 64, 10**6])
@pytest.mark.parametrize("n_atoms", [0, 1, 2, 3, 4, 17, 40])
def test_without_exclusions(n_atoms, most):
    pairs = AllPairs(n_atoms)
    pieces = list(pairs.chunks(most))
    assert listed(pieces) == by_hand(n_atoms)[0]
    assert len(pairs) == n_atoms * (n_atoms - 1) // 2
    assert all(piece.one_four is None and piece.n_atoms == n_atoms for piece in pieces)


@pytest.mark.parametrize("most", [1, 2, 5, 31, 10**6])
@pytest.mark.parametrize(("n_atoms", "n_excluded"), [(2, 1), (3, 2), (12, 20), (30, 60), (30, 2000), (50, 1)])
def test_with_exclusions_and_flags(n_atoms, n_excluded, most):
    excluded, one_four = random_pairs(n_atoms, n_excluded, n_atoms), random_pairs(n_atoms, 9, 1)
    pairs = AllPairs(n_atoms, excluded, one_four)
    pieces = list(pairs.chunks(most))
    expected, flags = by_hand(n_atoms, excluded, one_four)
    assert listed(pieces) == expected
    assert [flag for piece in pieces for flag in piece.one_four.tolist()] == flags
    assert len(pairs) == len(expected)
    assert all(len(piece) == most for piece in pieces[:-1])


def test_everything_excluded():
    pairs = AllPairs(3, np.array([(0, 1), (2, 1), (0, 2), (1, 0)]))
    assert len(pairs) == 0
    assert list(pairs.chunks(2)) == []


@pytest.mark.parametrize("name", ["excluded", "one_four"])
@pytest.mark.parametrize("pair", [(0, 4), (-1, 2), (1, 1)])
def test_pairs_of_no_atoms_are_refused(name, pair):
    with pytest.raises(InputError, match=f"{name} contains the pair .*; expected two of the atoms 0 to 3"):
        AllPairs(4, **{name: np.array([pair])})


def test_pieces_of_nothing_are_refused():
    with pytest.raises(InputError, match="the size of pieces is 0"):
        next(AllPairs(4).chunks(0))


def test_a_billion_pairs_take_no_memory():
    pairs = AllPairs(50_000)
    assert len(pairs) == 1_249_975_000
    piece = next(pairs.chunks(1000))
    assert (piece.first[-1], piece.second[-1]) == (0, 1000)
