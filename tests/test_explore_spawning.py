"""Clusters of explorers' states, and the clusters that explorers begin in."""

from __future__ import annotations

import numpy as np
import pytest

from pele_ocl.common.errors import InputError
from pele_ocl.explore import Clusters
from pele_ocl.explore.spawning import shares

LIGAND, ALPHA = np.arange(2), np.arange(2, 6)
APART = np.array([[0.0, 0, 0], [1.4, 0, 0]])


def state(x: float, contacts: int) -> np.ndarray:
    """Give a ligand of two atoms at x, and four alpha carbons, so many of which are near."""
    alpha = np.full((4, 3), 1000.0)
    alpha[:contacts] = (x, 0, 5)
    return np.concatenate([APART + np.array([x, 0, 0]), alpha])


def test_clusters_are_narrower_where_the_ligand_is_buried():
    clusters = Clusters(LIGAND, ALPHA, thresholds=(2, 4), ratios=(1,))
    assert clusters.add(state(0, 4), -1.0).threshold == 2
    assert clusters.add(state(1.9, 4), -3.0) is clusters.found[0]
    assert clusters.add(state(2.1, 2), -2.0).threshold == 4
    assert [of.size for of in clusters.found] == [2, 1]
    assert clusters.found[0].metric == -3.0
    assert clusters.found[0].state[0, 0] == 1.9
    assert clusters.found[0].leader[0, 0] == 0
    assert [of.ratio for of in clusters.found] == [2, 1]


def test_a_state_goes_to_the_nearest_cluster():
    clusters = Clusters(LIGAND, ALPHA, thresholds=(3, 3), ratios=(1,))
    for x in (0, 4, 2.5):
        clusters.add(state(x, 0), 0.0)
    assert [of.size for of in clusters.found] == [1, 2]


def test_equivalent_atoms_may_change_places():
    turned = state(0, 0)
    turned[:2] = turned[1::-1].copy()
    for symmetric, n in ((None, 2), ([[0, 1], [1, 0]], 1)):
        clusters = Clusters(LIGAND, ALPHA, symmetric=symmetric, thresholds=(1, 1), ratios=(1,))
        for of in (state(0, 0), turned):
            clusters.add(of, 0.0)
        assert len(clusters) == n


def test_explorers_begin_where_few_have_been():
    """Densities are equal; so shares go by the inverse of the sizes 1, 2 and 4."""
    clusters = Clusters(LIGAND, ALPHA, thresholds=(1, 1), ratios=(1,))
    for x, size in ((0, 4), (10, 1), (20, 2)):
        for _ in range(size):
            clusters.add(state(x, 0), -x)
    places = [of.state[0, 0] for of in clusters.spawn(7)]
    assert places == [0] + [10] * 4 + [20] * 2
    assert [of.state[0, 0] for of in clusters.spawn(1)] == [10]
    greedy = [of.state[0, 0] for of in clusters.spawn(6, epsilon=1.0)]
    assert greedy == [10] * 2 + [20] * 4


def test_buried_clusters_are_given_more():
    """Eight contacts for two atoms count as 8, none as 64 / 6^3."""
    for density, buried in (("continuous", 27), ("constant", 14)):
        clusters = Clusters(LIGAND, ALPHA, density=density)
        clusters.add(state(0, 4), 0.0)
        clusters.add(state(50, 0), 0.0)
        assert [of.density for of in clusters.found] == [8, pytest.approx(64 / 216)]
        assert sum(of is clusters.found[0] for of in clusters.spawn(28)) == buried


@pytest.mark.parametrize(
    ("weights", "n", "found"), [([1, 1, 2], 4, [1, 1, 2]), ([1, 1, 1], 4, [2, 1, 1]), ([0, 0], 3, [2, 1])]
)
def test_shares_are_whole(weights, n, found):
    assert shares(np.array(weights, float), n).tolist() == found


def test_what_cannot_be_is_refused():
    with pytest.raises(InputError, match="3 ratios need 4 thresholds"):
        Clusters(LIGAND, ALPHA, thresholds=(1, 2))
    with pytest.raises(InputError, match="no state was added"):
        Clusters(LIGAND, ALPHA).spawn(3)
    clusters = Clusters(LIGAND, ALPHA)
    clusters.add(state(0, 0), 0.0)
    with pytest.raises(InputError, match="epsilon is 2"):
        clusters.spawn(3, epsilon=2)


def test_what_is_no_cluster_is_refused():
    mask = np.arange(6) < 2
    by_mask, by_index = Clusters(mask, ~mask), Clusters([0, 1], [2, 3, 4, 5])
    state = np.random.default_rng(1).normal(size=(6, 3))
    np.testing.assert_array_equal(by_mask.add(state, 1).leader, by_index.add(state, 1).leader)
    for ligand in ([], [[0, 1]], [0.5]):
        with pytest.raises(InputError, match="ligand"):
            Clusters(ligand, [2])
    with pytest.raises(InputError, match="metric is nan"):
        by_index.add(state, np.nan)
    with pytest.raises(InputError, match="not finite"):
        by_index.add(np.full((6, 3), np.nan), 0)
    assert [len(by_index), by_index.found[0].size] == [1, 1]
