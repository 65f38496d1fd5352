"""Exclusions and 1-4 pairs: small molecules by hand, proteins against OpenMM's exceptions."""

from __future__ import annotations

import numpy as np
import pytest
from forcefield_helpers import SYSTEMS, arrays_of

from pele_ocl.atoms import exclusions


def _as_set(pairs) -> set[tuple[int, int]]:
    return {(int(i), int(j)) for i, j in pairs}


def _by_walking(bonds, n_atoms):
    """Shortest bond distances by breadth-first search, one atom after another."""
    neighbours = [set() for _ in range(n_atoms)]
    for i, j in bonds:
        neighbours[i].add(int(j))
        neighbours[j].add(int(i))
    near, far = set(), set()
    for i in range(n_atoms):
        shells = [{i}]
        for _ in range(3):
            shells.append({k for j in shells[-1] for k in neighbours[j]} - set().union(*shells))
        near |= {(i, j) for j in shells[1] | shells[2] if i < j}
        far |= {(i, j) for j in shells[3] if i < j}
    return near, far


@pytest.mark.parametrize(
    ("bonds", "n_atoms", "near", "far"),
    [
        ([], 0, set(), set()),
        ([], 3, set(), set()),
        ([(1, 0)], 2, {(0, 1)}, set()),
        ([(0, 1), (2, 1), (2, 3)], 4, {(0, 1), (1, 2), (2, 3), (0, 2), (1, 3)}, {(0, 3)}),
        ([(0, 1), (1, 2), (2, 0)], 3, {(0, 1), (1, 2), (0, 2)}, set()),
        ([(0, 1), (1, 2), (2, 3), (3, 0)], 4, {(0, 1), (1, 2), (2, 3), (0, 3), (0, 2), (1, 3)}, set()),
        ([(0, 1), (1, 0), (0, 1)], 2, {(0, 1)}, set()),
    ],
    ids=["nothing", "no bonds", "one bond", "butane", "three-ring", "four-ring", "a bond three times"],
)
def test_small_graphs(bonds, n_atoms, near, far):
    found_near, found_far = exclusions(np.array(bonds, np.int32).reshape(-1, 2), n_atoms)
    assert (_as_set(found_near), _as_set(found_far)) == (near, far)


@pytest.mark.parametrize("seed", range(5))
def test_random_graphs_with_rings(seed):
    rng = np.random.default_rng(seed)
    bonds = rng.integers(0, 40, (50, 2)).astype(np.int32)
    bonds = bonds[bonds[:, 0] != bonds[:, 1]]
    near, far = exclusions(bonds, 40)
    assert (_as_set(near), _as_set(far)) == _by_walking(bonds, 40)


@pytest.mark.parametrize("name", SYSTEMS)
def test_proteins_against_openmm(name):
    arrays = arrays_of(name)
    near, far = exclusions(arrays["bonds"], len(arrays["charge"]))
    for found, expected in ((near, arrays["exclusions_12_13"]), (far, arrays["pairs_14"])):
        np.testing.assert_array_equal(found, np.unique(expected, axis=0))
        assert found.dtype == np.int32


def test_pairs_are_ordered_and_sorted():
    for pairs in exclusions(np.array([(5, 4), (3, 4), (3, 2), (2, 1), (0, 1)], np.int32), 6):
        assert (pairs[:, 0] < pairs[:, 1]).all()
        np.testing.assert_array_equal(pairs, pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))])
