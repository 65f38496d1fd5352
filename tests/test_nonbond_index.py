"""Prefix sums, the sorting network and index lists, against NumPy's."""

import time

import numpy as np
import pytest
from conftest import random_pairs

from pele_ocl.ladder.nonbond import segments_by_sorting, sort_keys
from pele_ocl.nonbond.index import prefix_sum, segments_by_counting
from pele_ocl.opencl import Queue
from pele_ocl.opencl.interface import ONE_FOUR, Role
from pele_ocl.pairs import PairList

NEAR_POWERS = sorted({0, 1, 2, *(2**k + d for k in range(2, 17) for d in (-1, 0, 1))})
LARGE = [2**k + d for k in (20, 22, 24) for d in (-1, 0, 1)]
ORDERS = ("random", "many equal", "ascending", "descending", "all equal", "largest")


@pytest.fixture
def queue(device):
    return Queue(device, "float32")


def in_and_out(queue, action, values):
    """Values (n) after an action of the index, which works in place."""
    buffer = queue.empty(len(values), values.dtype)
    if len(values):
        queue.write(buffer, values)
    action(queue, buffer, len(values))
    return queue.download(buffer, len(values), values.dtype) if len(values) else values


def assert_prefix_sum(queue, n):
    values = np.random.default_rng(n).integers(0, 100, n).astype(np.int32)
    expected = np.concatenate([[0], np.cumsum(values)])[:n]
    np.testing.assert_array_equal(in_and_out(queue, prefix_sum, values), expected)


def assert_sorted(queue, n, order="random"):
    rng = np.random.default_rng(n)
    keys = rng.integers(0, 2**64 - 1, n, np.uint64, endpoint=True)
    if order == "many equal":
        keys %= np.uint64(7)
    elif order == "ascending":
        keys = np.sort(keys)
    elif order == "descending":
        keys = np.sort(keys)[::-1].copy()
    elif order == "all equal":
        keys[:] = 5
    elif order == "largest":  # the network stands in for places beyond the end by this number
        keys[::3] = 2**64 - 1
    np.testing.assert_array_equal(in_and_out(queue, sort_keys, keys), np.sort(keys))


@pytest.mark.parametrize("n", NEAR_POWERS)
def test_prefix_sum(queue, n):
    assert_prefix_sum(queue, n)


@pytest.mark.slow
@pytest.mark.parametrize("n", LARGE)
def test_long_prefix_sum(queue, n):
    assert_prefix_sum(queue, n)


def test_prefix_sum_of_negative_numbers(queue):
    values = np.random.default_rng(0).integers(-9, 9, 3000).astype(np.int32)
    np.testing.assert_array_equal(in_and_out(queue, prefix_sum, values), np.cumsum(values) - values)


@pytest.mark.parametrize("n", NEAR_POWERS)
def test_sort(queue, n):
    assert_sorted(queue, n)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("n", [1, 2, 3, 511, 512, 513, 1025, 5000])
def test_sort_of_awkward_orders(queue, n, order):
    assert_sorted(queue, n, order)


@pytest.mark.slow
@pytest.mark.parametrize("n", LARGE)
def test_long_sort(queue, n):
    assert_sorted(queue, n)


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS)
def test_long_sort_of_awkward_orders(queue, order):
    assert_sorted(queue, 2**20 + 1, order)


def test_smaller_groups_sort_and_add_the_same(queue, device, monkeypatch):
    monkeypatch.setattr(type(device), "largest_group", 8)
    for n in (15, 16, 17, 100, 1000):
        assert_sorted(queue, n)
        assert_prefix_sum(queue, n)


# Segments


def on_device(queue, pairs):
    second = pairs.second.astype(np.uint32) | np.where(pairs.one_four, np.uint32(ONE_FOUR), np.uint32(0))
    return queue.upload(np.column_stack([pairs.first.astype(np.uint32), second]), np.uint32)


def expected_segments(pairs, role):
    """List by atom the pairs with their neighbours, in the order that the device promises."""
    number = np.arange(len(pairs))
    mark = np.where(pairs.one_four, np.uint32(ONE_FOUR), np.uint32(0))
    entries = {
        Role.FIRSTS: [(pairs.first, pairs.second)], Role.SECONDS: [(pairs.second, pairs.first)],
        Role.BOTH: [(pairs.first, pairs.second), (pairs.second, pairs.first)],
    }[role]  # fmt: skip
    owner = np.concatenate([own for own, _ in entries])
    neighbour = np.concatenate([other.astype(np.uint32) | mark for _, other in entries])
    number = np.tile(number, len(entries))
    order = np.lexsort((number, neighbour, owner) if role == Role.BOTH else (number, owner))
    offsets = np.searchsorted(owner[order], np.arange(pairs.n_atoms + 1))
    return offsets, number[order], neighbour[order]


def some_lists():
    star = np.arange(1, 3001)
    return {
        "empty": PairList(5, [], [], one_four=[]),
        "one": PairList(5, [4], [1], one_four=[True]),
        "any": random_pairs(60, 700),
        "long": random_pairs(400, 20000),
        "no atom left out": random_pairs(3, 3),
        "last atoms alone": PairList(1000, [3, 2], [2, 4], one_four=[False, True]),
        "a star": PairList(3001, star, np.zeros(3000, int), one_four=star % 2 == 0),
    }


@pytest.mark.parametrize("name", some_lists())
@pytest.mark.parametrize("role", [Role.FIRSTS, Role.SECONDS, Role.BOTH])
def test_counting(queue, name, role):
    pairs = some_lists()[name]
    found = segments_by_counting(queue, on_device(queue, pairs), len(pairs), pairs.n_atoms, role)
    offsets, numbers, neighbours = expected_segments(pairs, role)
    np.testing.assert_array_equal(queue.download(found.offsets, len(offsets), np.int32), offsets)
    np.testing.assert_array_equal(queue.download(found.pairs, len(numbers), np.int32), numbers)
    if role == Role.BOTH:
        np.testing.assert_array_equal(queue.download(found.neighbours, len(numbers), np.uint32), neighbours)


@pytest.mark.parametrize("name", some_lists())
@pytest.mark.parametrize("role", [Role.FIRSTS, Role.SECONDS])
def test_sorting(queue, name, role):
    pairs = some_lists()[name]
    found = segments_by_sorting(queue, on_device(queue, pairs), len(pairs), pairs.n_atoms, role)
    offsets, numbers, _ = expected_segments(pairs, role)
    np.testing.assert_array_equal(queue.download(found.offsets, len(offsets), np.int32), offsets)
    np.testing.assert_array_equal(queue.download(found.pairs, len(numbers), np.int32), numbers)


@pytest.mark.parametrize("role", [Role.FIRSTS, Role.BOTH])
def test_an_atom_in_a_hundred_thousand_pairs_is_sorted_quickly(queue, role):
    """One work-item sorts the atom's segment: a sort that took the square of its length would need minutes."""
    others = np.random.default_rng(5).permutation(np.arange(1, 100_001))
    pairs = PairList(100_001, np.zeros(100_000, int), others, one_four=others % 7 == 0)
    on_it = on_device(queue, pairs)
    start = time.perf_counter()
    found = segments_by_counting(queue, on_it, len(pairs), pairs.n_atoms, role)
    queue.device.queue.finish()
    assert time.perf_counter() - start < 10
    offsets, numbers, neighbours = expected_segments(pairs, role)
    np.testing.assert_array_equal(queue.download(found.offsets, len(offsets), np.int32), offsets)
    np.testing.assert_array_equal(queue.download(found.pairs, len(numbers), np.int32), numbers)
    if role == Role.BOTH:
        np.testing.assert_array_equal(queue.download(found.neighbours, len(numbers), np.uint32), neighbours)


# Eight atoms, as in the thesis' figures: pairs in any order, and what each step makes of them.
PAIRS = [(2, 5), (0, 1), (6, 3), (0, 7), (2, 4), (5, 1), (0, 2), (6, 7), (3, 1), (2, 7)]
FIRSTS = [[1, 3, 6], [], [0, 4, 9], [8], [], [5], [2, 7], []]  # numbers of the pairs in which each atom is first
SECONDS = [[], [1, 5, 8], [6], [2], [4], [0], [], [3, 7, 9]]


@pytest.mark.parametrize(("role", "lists"), [(Role.FIRSTS, FIRSTS), (Role.SECONDS, SECONDS)])
def test_eight_atoms(queue, role, lists):
    """Counts, offsets and lists of pairs, written out; by counting and by sorting."""
    first, second = np.array(PAIRS).T
    pairs = PairList(8, first, second, one_four=np.zeros(len(PAIRS), bool))
    counts = np.array([len(each) for each in lists], np.int32)
    np.testing.assert_array_equal(np.bincount(first if role == Role.FIRSTS else second, minlength=8), counts)
    begins = in_and_out(queue, prefix_sum, counts)
    wanted = {Role.FIRSTS: [0, 3, 3, 6, 7, 7, 8, 10], Role.SECONDS: [0, 0, 3, 4, 5, 6, 7, 7]}[role]
    assert begins.tolist() == wanted
    for make in (segments_by_counting, segments_by_sorting):
        found = make(queue, on_device(queue, pairs), len(PAIRS), 8, role)
        assert queue.download(found.offsets, 9, np.int32).tolist() == [*wanted, 10]
        assert queue.download(found.pairs, 10, np.int32).tolist() == [number for each in lists for number in each]
