"""Lists by distance against all distances."""

from __future__ import annotations

import numpy as np
import pytest
from forcefield_helpers import SYSTEMS, arrays_of

from pele_ocl import Atoms, InputError
from pele_ocl.atoms import exclusions
from pele_ocl.pairs import PairList, all_pairs, pairs_within, without_bonded

CUTOFFS = (3.0, 5.5, 12.0, 30.0)


def atoms_at(positions, bonds=()) -> Atoms:
    positions = np.asarray(positions, float).reshape(-1, 3)
    return Atoms(positions, np.zeros(len(positions)), bonds=np.array(bonds, np.int32).reshape(-1, 2))


def of_system(name) -> Atoms:
    arrays = arrays_of(name)
    return Atoms(arrays["coordinates"], arrays["charge"], bonds=arrays["bonds"])


def all_distances(atoms, cutoff, left_out=()):
    """Pairs i < j, sorted, (p, 2)."""
    distances = np.linalg.norm(atoms.positions[:, None] - atoms.positions[None], axis=2)
    close = np.triu(distances < cutoff, 1)
    for pairs in left_out:
        close[pairs[:, 0], pairs[:, 1]] = False
    return np.argwhere(close)


def as_array(pairs):
    return np.stack([pairs.first, pairs.second], axis=1)


def cloud(n, spread, seed=0):
    return np.random.default_rng(seed).normal(0, spread, (n, 3))


@pytest.mark.parametrize("cutoff", CUTOFFS)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 100, 700])
def test_clouds(n, cutoff):
    atoms = atoms_at(cloud(n, 8.0))
    np.testing.assert_array_equal(as_array(pairs_within(atoms, cutoff)), all_distances(atoms, cutoff))


@pytest.mark.parametrize(
    ("positions", "cutoff"),
    [
        (np.concatenate([cloud(200, 2.0) + shift for shift in (0, [400, 0, 0], [0, -900, 30])]), 5.0),
        (np.concatenate([cloud(300, 5.0), [[1e5, 0, 0], [1e5, 1, 0], [1e7, -1e7, 3]]]), 10.0),
        (cloud(300, 1e4), 2e3),
        (cloud(300, 1e6), 10.0),
        (cloud(300, 50.0), 1e-3),
        (cloud(300, 50.0) + 1e8, 12.0),
        (np.concatenate([cloud(50, 3.0)] * 2), 1e-9),
        (cloud(100, 5.0), 1e9),
        (cloud(100, 5.0), 1e300),
        (np.zeros((20, 3)), 1.0),
        (np.arange(300)[:, None] * [1.0, 0, 0], 2.5),
        (cloud(300, 1.0) * [300, 300, 0.1], 12.0),
    ],
    ids=[
        "clusters", "lone atoms far away", "wide", "very wide", "tiny cutoff", "far from the origin", "coincident",
        "huge cutoff", "larger than any square", "one place", "a line", "a sheet",
    ],
)  # fmt: skip
def test_awkward_places(positions, cutoff):
    atoms = atoms_at(positions)
    np.testing.assert_array_equal(as_array(pairs_within(atoms, cutoff)), all_distances(atoms, cutoff))


def test_the_cutoff_itself_is_outside():
    atoms = atoms_at([[0, 0, 0], [10, 0, 0], [0, 10 - 1e-9, 0]])
    assert as_array(pairs_within(atoms, 10.0)).tolist() == [[0, 2]]


@pytest.mark.parametrize("cutoff", CUTOFFS)
@pytest.mark.parametrize("name", ["hexapeptide", "ubiquitin"])
def test_bonds_exclude(name, cutoff):
    atoms = of_system(name)
    near, far = exclusions(atoms.bonds, len(atoms))
    np.testing.assert_array_equal(as_array(pairs_within(atoms, cutoff)), all_distances(atoms, cutoff, (near, far)))
    scaled = pairs_within(atoms, cutoff, "scale")
    np.testing.assert_array_equal(as_array(scaled), all_distances(atoms, cutoff, (near,)))
    flagged = {tuple(pair) for pair in as_array(scaled)[scaled.one_four].tolist()}
    assert flagged == {tuple(pair) for pair in far.tolist()} & {tuple(pair) for pair in as_array(scaled).tolist()}
    assert pairs_within(atoms, cutoff).one_four is None


def test_excluded_pairs_may_be_far_apart():
    atoms = atoms_at([[0, 0, 0], [50, 0, 0], [1, 0, 0]], [(0, 1)])
    assert as_array(pairs_within(atoms, 5.0, "scale")).tolist() == [[0, 2]]


@pytest.mark.parametrize("one_four", ["exclude", "scale"])
def test_a_long_cutoff_gives_all_pairs(one_four):
    atoms = of_system("hexapeptide")
    (everything,) = all_pairs(atoms, one_four).chunks(10**6)
    listed = pairs_within(atoms, 1e6, one_four)
    np.testing.assert_array_equal(as_array(listed), as_array(everything))
    if one_four == "scale":
        np.testing.assert_array_equal(listed.one_four, everything.one_four)


# From all distances: test_brute_force_counts, which takes longer, counts them again.
COUNTS_12_A = {
    "hexapeptide": 3_633,
    "ubiquitin": 231_821,
    "src3": 985_203,
    "enolase_dimer": 3_439_345,
    "ruvab": 6_808_743,
}


@pytest.mark.parametrize("name", COUNTS_12_A)
def test_shipped_systems_at_12_angstrom(name):
    assert len(pairs_within(of_system(name), 12.0)) == COUNTS_12_A[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", COUNTS_12_A)
def test_brute_force_counts(name):
    atoms, found = of_system(name), 0
    for piece in all_pairs(atoms).chunks(4_000_000):
        apart = atoms.positions[piece.first] - atoms.positions[piece.second]
        found += np.count_nonzero(np.einsum("ij,ij->i", apart, apart) < 144)
    assert found == COUNTS_12_A[name]


@pytest.mark.parametrize("name", SYSTEMS)
def test_all_pairs_without_the_bonded(name):
    atoms, arrays = of_system(name), arrays_of(name)
    n, near, far = len(atoms), len(arrays["exclusions_12_13"]), len(arrays["pairs_14"])
    assert len(all_pairs(atoms)) == n * (n - 1) // 2 - near - far
    assert len(all_pairs(atoms, "scale")) == n * (n - 1) // 2 - near


@pytest.mark.parametrize("cutoff", [0.0, -3.0, np.nan, np.inf])
def test_a_cutoff_is_a_distance(cutoff):
    with pytest.raises(InputError, match=r"cutoff is .*; expected a positive, finite distance in A"):
        pairs_within(atoms_at(cloud(5, 1.0)), cutoff)


def test_one_four_is_one_of_two():
    for search in (lambda atoms, choice: pairs_within(atoms, 5.0, choice), all_pairs):
        with pytest.raises(InputError, match="one_four is 'half'; choose 'exclude' or 'scale'"):
            search(atoms_at(cloud(5, 1.0)), "half")


# Lists from elsewhere

CHAIN = atoms_at(np.arange(15).reshape(5, 3), bonds=[(0, 1), (1, 2), (2, 3), (3, 4)])  # 1-4: 0 3 and 1 4; far: 0 4


def listed(one_four=None, **own):
    """Every pair of CHAIN, some the other way round, in no order."""
    first, second = np.array([(4, 0), (0, 1), (3, 0), (2, 0), (1, 4), (2, 1), (3, 2), (4, 3), (1, 3), (2, 4)]).T
    return PairList(5, first, second, one_four, **own)


def test_bonded_pairs_leave_a_list():
    pairs = without_bonded(listed(), CHAIN)
    assert (as_array(pairs).tolist(), pairs.one_four) == ([[4, 0]], None)


def test_one_four_pairs_are_flagged_in_a_list():
    pairs = without_bonded(listed(), CHAIN, "scale")
    assert as_array(pairs).tolist() == [[4, 0], [3, 0], [1, 4]]
    assert pairs.one_four.tolist() == [False, True, True]


def test_flags_of_the_list_count_too():
    marked = listed(one_four=[True] + [False] * 9)
    assert len(without_bonded(marked, CHAIN)) == 0
    assert without_bonded(marked, CHAIN, "scale").one_four.tolist() == [True, True, True]
    unbonded = atoms_at(CHAIN.positions)
    assert len(without_bonded(marked, unbonded)) == 9
    assert without_bonded(marked, unbonded, "scale").one_four.tolist() == marked.one_four.tolist()


def test_values_stay_with_their_pairs():
    values = np.arange(10.0)
    pairs = without_bonded(listed(sigma2=values, charge_products=-values), CHAIN, "scale")
    assert pairs.sigma2.tolist() == [0, 2, 4]
    assert pairs.charge_products.tolist() == [0, -2, -4]


@pytest.mark.parametrize("one_four", ["exclude", "scale"])
def test_a_list_of_everything_becomes_the_list_by_distance(one_four):
    atoms = of_system("hexapeptide")
    i, j = np.triu_indices(len(atoms), 1)
    pairs = without_bonded(PairList(len(atoms), j, i).shuffled(), atoms, one_four)
    wanted = pairs_within(atoms, 1e3, one_four)
    order = np.lexsort(np.sort(as_array(pairs), axis=1).T[::-1])
    np.testing.assert_array_equal(np.sort(as_array(pairs), axis=1)[order], as_array(wanted))
    if one_four == "scale":
        np.testing.assert_array_equal(pairs.one_four[order], wanted.one_four)


def test_a_list_of_other_atoms_and_an_unknown_rule_are_refused():
    with pytest.raises(InputError, match="the pair list is for 5 atoms; there are 1"):
        without_bonded(listed(), atoms_at([[0, 0, 0]]))
    with pytest.raises(InputError, match="one_four is 'keep'; choose 'exclude' or 'scale'"):
        without_bonded(listed(), CHAIN, "keep")
