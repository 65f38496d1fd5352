"""PairList: what it takes, what it refuses, and its pieces."""

from __future__ import annotations

import numpy as np
import pytest
from forcefield_helpers import chain

from pele_ocl import InputError
from pele_ocl.pairs import PairList

LABELS = chain([("ALA", "N CA C O"), ("GLY", "N CA")]).labels


def as_set(pairs) -> set[tuple[int, int]]:
    return {(min(i, j), max(i, j)) for i, j in zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)}


def a_list(n_pairs: int = 10) -> PairList:
    """Atom 0 with each other atom, the values of a pair told by that atom."""
    second = np.arange(1, n_pairs + 1)
    return PairList(n_pairs + 1, np.zeros(n_pairs, int), second, second % 2 == 0, second, -0.5 * second)


@pytest.mark.parametrize(
    ("first", "second"),
    [([], []), ([0], [1]), ([4], [1]), ([3, 0, 2], [1, 4, 3]), ([0] * 4, [1, 2, 3, 4])],
    ids=["empty", "one", "reversed", "any order", "an atom in every pair"],
)
def test_any_order_is_right(first, second):
    pairs = PairList(5, first, second)
    assert (len(pairs), pairs.first.tolist(), pairs.second.tolist()) == (len(first), first, second)
    assert pairs.first.dtype == pairs.second.dtype == np.int32


def test_arrays_are_copies_that_nobody_can_write_to():
    given = np.array([0, 1], np.int32)
    pairs = PairList(3, given, [1, 2], [True, False], [1.0, 2.0], [0.5, -0.5])
    given[0] = 2
    assert pairs.first.tolist() == [0, 1]
    for name in ("first", "second", "one_four", "sigma2", "charge_products"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(pairs, name)[0] = 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1], [1]), "first has 2 atoms and second 1; a pair needs one of each"),
        (([0, 2], [1, 2]), "pairs[1]: atom 2 is paired with itself; remove the pair"),
        (([0], [6]), "pairs[0]: the pair of atom 0 and atom 6 has no atom with the index 6; the atoms are 0 to 5"),
        (
            ([0, -1], [5, 3]),
            "pairs[1]: the pair of atom -1 and atom 3 has no atom with the index -1; the atoms are 0 to 5",
        ),
        (
            ([0, 2**40], [5, 3]),
            "pairs[1]: the pair of atom 1099511627776 and atom 3 has no atom with the index 1099511627776",
        ),
        (([0, 1, 0], [1, 2, 1]), "pairs[2]: the pair of atom 0 and atom 1 is the same as pair number 1; remove one"),
        (([0, 1, 2], [1, 2, 1]), "pairs[2]: the pair of atom 2 and atom 1 is the same as pair number 2; remove one"),
        (([0.0], [1.0]), "first contains float64 values; indices are whole numbers"),
        (([[0]], [1]), "first has shape (1, 1); expected (p,)"),
        (([0], [1], [True, False]), "one_four has shape (2,); expected (1,), one value per pair"),
        (([0], [1], None, [np.nan]), "sigma2 of pairs[0] is nan; expected a finite number"),
        (([0], [1], None, [-1.0]), "sigma2 of pairs[0] is -1; a square cannot be negative"),
        (([0], [1], None, None, [np.inf]), "charge_products of pairs[0] is inf; expected a finite number"),
    ],
)
def test_wrong_lists_are_refused_in_a_sentence(arguments, message):
    with pytest.raises(InputError) as error:
        PairList(6, *arguments)
    assert str(error.value).startswith(message)


def test_messages_name_atoms_that_have_labels():
    with pytest.raises(InputError, match=r"atom 1 \(A:ALA1:CA\) is paired with itself"):
        PairList(6, [1], [1], labels=LABELS)
    with pytest.raises(InputError, match=r"pair of atom 5 \(A:GLY2:CA\) and atom 9 has no atom with the index 9"):
        PairList(6, [5], [9], labels=LABELS)


def test_no_atoms_have_no_pairs():
    assert len(PairList(0, [], [])) == 0
    with pytest.raises(InputError, match="there are no atoms"):
        PairList(0, [0], [1])


@pytest.mark.parametrize("most", [1, 3, 9, 10, 11, 1000])
def test_pieces_hold_everything_in_order(most):
    pairs = a_list()
    pieces = list(pairs.chunks(most))
    assert [len(piece) for piece in pieces[:-1]] == [most] * (len(pieces) - 1)
    assert 0 < len(pieces[-1]) <= most
    for name in ("first", "second", "one_four", "sigma2", "charge_products"):
        np.testing.assert_array_equal(np.concatenate([getattr(p, name) for p in pieces]), getattr(pairs, name))


def test_no_pairs_have_no_pieces():
    assert list(PairList(3, [], []).chunks(5)) == []


@pytest.mark.parametrize("most", [0, -1])
def test_pieces_hold_at_least_one_pair(most):
    with pytest.raises(InputError, match=f"the size of pieces is {most}; expected at least 1"):
        next(a_list().chunks(most))


def test_shuffling_keeps_each_pair_with_its_values():
    pairs = a_list(1000)
    mixed = pairs.shuffled(7)
    assert as_set(mixed) == as_set(pairs)
    assert not np.array_equal(mixed.second, pairs.second)
    partner = np.maximum(mixed.first, mixed.second)  # the other is atom 0
    np.testing.assert_array_equal(mixed.sigma2, partner)
    np.testing.assert_array_equal(mixed.charge_products, -0.5 * partner)
    np.testing.assert_array_equal(mixed.one_four, partner % 2 == 0)
    assert 400 < np.count_nonzero(mixed.first) < 600
    np.testing.assert_array_equal(pairs.shuffled(7).first, mixed.first)


def test_a_million_pairs_on_one_atom():
    pairs = PairList(10**6 + 1, np.zeros(10**6, int), np.arange(1, 10**6 + 1)).shuffled()
    assert len(PairList(pairs.n_atoms, pairs.first, pairs.second)) == 10**6
