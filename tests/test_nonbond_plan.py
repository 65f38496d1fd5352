"""A plan of a pair list: batches, failures, Born radii by conformation, times."""

import pickle
import sys
from dataclasses import fields

import numpy as np
import pytest
from conftest import has_native_atomics, random_atoms, random_pairs
from test_nonbond import EXACT, SAME_BITS, born_radii

from pele_ocl import Grid, InputError, Potmap
from pele_ocl.common.variant import Variant
from pele_ocl.energy import VARIANTS as ENERGY
from pele_ocl.ladder import NONBOND as VARIANTS
from pele_ocl.ladder import NonbondLadder, PotmapLadder, Rung
from pele_ocl.nonbond import VARIANTS as NONBOND
from pele_ocl.nonbond import Nonbond, nonbond, passes
from pele_ocl.pairs import PairList, all_pairs
from pele_ocl.potmap import VARIANTS as POTMAP
from pele_ocl.solvent import VARIANTS as SOLVENT

PLAN = sys.modules["pele_ocl.nonbond.plan"]
BASE = sys.modules["pele_ocl.plan.plan"]
N = 60
ATOMS, PAIRS = random_atoms(N), random_pairs(N, 800)


def conformations(m, seed=1):
    moves = np.random.default_rng(seed).normal(0, 0.02, (m, N, 3))
    return ATOMS.positions + moves + np.arange(m)[:, None, None] * 40  # some out of reach of the first one's middle


def assert_same_bits(result, expected):
    assert result.energy == expected.energy
    if expected.gradient is not None:
        np.testing.assert_array_equal(result.gradient, expected.gradient)


@pytest.fixture(params=SAME_BITS)
def plan(request, device, precision):
    return NonbondLadder(ATOMS, PAIRS, variant=request.param, precision=precision, device=device)


# Batches


@pytest.mark.parametrize("shape", ["one for all", "by conformation"])
def test_a_batch_has_the_bits_of_single_evaluations(plan, shape, monkeypatch):
    monkeypatch.setattr(BASE, "CHUNK_ATOMS", 2 * N)
    given, radii = conformations(5), np.stack([born_radii(N, seed=k) for k in range(5)])
    radii = radii[0] if shape == "one for all" else radii
    shares = []
    batch = plan.evaluate_batch(given, shares.append, born_radii=radii)
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert (len(batch), batch.n_pairs, batch.exact, batch.errors) == (5, 800, True, {})
    for k, result in enumerate(batch):
        assert_same_bits(result, plan.evaluate(given[k], radii if radii.ndim == 1 else radii[k]))
        np.testing.assert_array_equal(result.atoms.positions, given[k])


@pytest.mark.parametrize("gradient", [True, False])
def test_batches_of_lists_in_pieces_and_of_energies_alone(device, precision, gradient, monkeypatch):
    monkeypatch.setattr(PLAN, "CHUNK", 333)
    plan = Nonbond(ATOMS, PAIRS, gradient=gradient, precision=precision, device=device)
    given, radii, shares = conformations(3), born_radii(N), []
    batch = plan.evaluate_batch(given, shares.append, born_radii=radii)
    assert shares == sorted(shares)
    assert shares[-1] == 1
    for k in range(3):
        assert_same_bits(batch[k], plan.evaluate(given[k], radii))


def test_energies_of_many_groups_are_added_up_on_the_device(device, precision, monkeypatch):
    given, radii, options = conformations(3), born_radii(N), dict(precision=precision, device=device)
    expected = Nonbond(ATOMS, PAIRS, variant="rows", **options).evaluate_batch(given, born_radii=radii)
    monkeypatch.setattr(passes, "MOST_PARTS", 4)
    plan = Nonbond(ATOMS, PAIRS, variant="rows", **options)
    batch = plan.evaluate_batch(given, born_radii=radii)
    np.testing.assert_allclose(batch.energies, expected.energies, rtol=1e-13)  # in float32, too: nothing is lost
    np.testing.assert_array_equal(batch.gradients, expected.gradients)
    assert_same_bits(plan.evaluate(given[1], radii), batch[1])


def test_atomic_variants_compute_batches_too(device, precision):
    given, radii = conformations(2), born_radii(N)
    for variant in set(EXACT) - set(SAME_BITS):
        if variant == "atomic-native" and not has_native_atomics(device):
            continue
        plan = NonbondLadder(ATOMS, PAIRS, variant=variant, precision=precision, device=device)
        batch = plan.evaluate_batch(given, born_radii=radii)
        assert batch[1].total == pytest.approx(plan.evaluate(given[1], radii).total, rel=1e-9)


def test_born_radii_of_a_batch_come_from_solvent(device):
    plan, given = Nonbond(ATOMS, PAIRS, device=device), conformations(3)
    batch = plan.evaluate_batch(given)
    for k in range(3):
        assert_same_bits(batch[k], plan.evaluate(given[k]))
    assert len(set(batch.gb_pair)) == 3


@pytest.mark.parametrize("radii", [np.ones(N - 1), np.ones((3, N)), np.zeros(N), np.full((2, N), np.nan), "pele"])
def test_born_radii_of_a_batch_must_fit(device, radii):
    with pytest.raises(InputError, match=rf"born_radii must be positive numbers, \({N},\) .* or \(2, {N}\)"):
        Nonbond(ATOMS, PAIRS, device=device).evaluate_batch(conformations(2), born_radii=radii)


def test_bad_conformations_are_recorded_or_named(device, precision):
    atoms, given = random_atoms(N), conformations(6)
    given[1, 3, 2] = np.nan
    given[2, 7] = given[2, 9]
    given[4] *= 1e4
    plan = Nonbond(atoms, all_pairs(atoms), solvent="vacuum", precision=precision, device=device)
    batch = plan.evaluate_batch(given, errors="record")
    bad = {1: "positions of atom 3 is [", 2: "atom 7 and atom 9 are at the same position"}
    if precision == "float32":
        bad[4] = "more than the 4,000 A that float32 supports"
    assert list(batch.errors) == list(bad)
    for k, sentence in bad.items():
        assert sentence in batch.errors[k]
        assert np.isnan(batch[k].total)
        assert np.isnan(batch.gradients[k]).all()
    for k in (0, 3, 5):
        assert_same_bits(batch[k], plan.evaluate(given[k]))
    with pytest.raises(InputError, match="conformation 2 of 6: positions of atom 3 is "):
        plan.evaluate_batch(given)


def test_failures_of_born_radii_are_recorded(device):
    given = conformations(3)
    given[1, 7] = given[1, 9]
    plan = Nonbond(ATOMS, PAIRS, device=device)
    batch = plan.evaluate_batch(given, errors="record")
    assert list(batch.errors) == [1]
    assert_same_bits(batch[2], plan.evaluate(given[2]))
    with pytest.raises(InputError, match="conformation 2 of 3: atom 7 and atom 9 are at the same position"):
        plan.evaluate_batch(given)


# Plans


def test_times_are_taken_where_they_are_asked_for(plan):
    radii = born_radii(N)
    assert set(plan.evaluate(born_radii=radii).seconds) == {"prepare", "total"}
    timed = plan.evaluate(born_radii=radii, profile=True).seconds
    assert set(timed) == {"prepare", "kernel", "total"}
    assert timed["total"] > timed["kernel"] > 0
    assert plan.evaluate_batch(conformations(2), born_radii=radii, profile=True).seconds["kernel"] > 0


def test_radii_that_changed_in_place_are_noticed(device):
    plan, radii = Nonbond(ATOMS, PAIRS, device=device), born_radii(N)
    before = plan.evaluate(born_radii=radii)
    radii *= 2
    assert plan.evaluate(born_radii=radii).gb_pair != before.gb_pair
    radii /= 2
    assert_same_bits(plan.evaluate(born_radii=radii), before)


@pytest.mark.parametrize("distance", [9.0, 64.0, 1000.0, 3990.0])
def test_a_molecule_may_spread_in_float32(device, distance):
    """Far beyond the room of its plan, with the bits of a plan that is made there; in a batch that is a sentence."""
    atoms = random_atoms(2)
    plan = Nonbond(atoms, all_pairs(atoms), solvent="vacuum", device=device)
    apart = np.array([[0, 0, 0], [distance, 0, 0]])
    exact = Nonbond(atoms, all_pairs(atoms), solvent="vacuum", precision="float64", device=device)
    result = plan.evaluate(apart)
    assert result.coulomb == pytest.approx(exact.evaluate(apart).coulomb, rel=1e-6)
    if distance > 500:
        there = Nonbond(atoms.moved(apart), all_pairs(atoms), solvent="vacuum", device=device).evaluate()
        np.testing.assert_array_equal(result.gradient, there.gradient)
        with pytest.raises(
            InputError, match=r"^conformation 2 of 2: the positions span .* far more than those of the molecule"
        ):
            plan.evaluate_batch(np.stack([atoms.positions, apart]))


def test_variants_say_what_they_are():
    assert [name for name, variant in VARIANTS.items() if not variant.exact] == ["naive"]
    assert [name for name, variant in VARIANTS.items() if variant.cpu_only] == ["sequential"]


def test_positions_are_checked_where_no_pair_is_listed(device):
    atoms = random_atoms(20)
    conformations = np.stack([atoms.positions] * 3)
    conformations[1, 4] = np.nan
    batch = Nonbond(atoms, PairList(20, [], []), solvent="vacuum", device=device).evaluate_batch(
        conformations, errors="record"
    )
    assert list(batch.errors) == [1]
    assert np.isnan(batch.total[1])
    np.testing.assert_array_equal(batch.total[[0, 2]], 0)


@pytest.mark.parametrize("table", [ENERGY, NONBOND, POTMAP, SOLVENT], ids=["energy", "nonbond", "potmap", "solvent"])
def test_an_engine_offers_no_rung(table):
    flags = {field.name for field in fields(Rung)} - {field.name for field in fields(Variant)}
    assert flags == {"exact", "cpu_only", "float_atomics", "sums"}
    assert not [name for name, variant in table.items() if isinstance(variant, Rung)]
    assert not flags & {field.name for variant in table.values() for field in fields(variant)}


def test_what_loses_updates_is_found_in_the_ladder_alone(device):
    with pytest.raises(InputError, match=r"^unknown variant 'naive'; .*; use pele_ocl.ladder for the rungs"):
        Nonbond(ATOMS, PAIRS, variant="naive", device=device)
    plan = NonbondLadder(ATOMS, PAIRS, variant="naive", device=device)
    assert plan.evaluate().exact is False
    copy = pickle.loads(pickle.dumps(plan))
    assert (type(copy), copy.variant) == (NonbondLadder, "naive")
    assert nonbond(ATOMS, PAIRS, variant="naive", device=device).exact is False
    assert nonbond(ATOMS, PAIRS, variant="naive", gradient=False, device=device).exact  # there is nothing to lose
    assert nonbond(ATOMS, PAIRS, device=device).variant in NONBOND


def test_unknown_variants_are_refused(device):
    with pytest.raises(InputError, match="unknown variant 'fast'; choose auto, rows, tiled; use pele_ocl"):
        Nonbond(ATOMS, PAIRS, variant="fast", device=device)
    with pytest.raises(InputError, match=r"unknown variant 'fast'; choose auto, sequential, .*, tiled$"):
        nonbond(ATOMS, PAIRS, variant="fast", device=device)
    with pytest.raises(InputError, match=r"has no variant 'gather'.*pele_ocl\.ladder"):
        Potmap(ATOMS, Grid.around(ATOMS), variant="gather", device=device)
    grid = Grid.around(ATOMS, padding=2, spacing=2)
    assert PotmapLadder(ATOMS, grid, variant="gather", device=device, min_distance=1).evaluate().variant == "gather"
