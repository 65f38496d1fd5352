"""Conformations in chunks: same bits, errors that name the right one, kernel times where they are asked for."""

from dataclasses import replace

import numpy as np
import pytest
from test_energy import EVERY_VARIANT, assert_same, options
from test_reference_energy import bonded

from pele_ocl import Atoms, InputError
from pele_ocl.energy import Energy, energy
from pele_ocl.plan import plan as plans
from pele_ocl.reference.energy import energy as reference


@EVERY_VARIANT
def test_chunks_have_the_bits_of_their_members(device, precision, variant, monkeypatch):
    """Among conformations that lie where the molecule does, and others that do not."""
    monkeypatch.setattr(plans, "CHUNK_ATOMS", 320)
    atoms = bonded(150, seed=15)
    places = np.array([0, 1e5, 0, 0, -3e3, 0, 40.0])[:, None, None]
    conformations = atoms.positions + places + np.random.default_rng(1).normal(0, 0.05, (7, 150, 3))
    plan, shares = Energy(atoms, **options(device, precision, variant)), []
    batch = plan.evaluate_batch(conformations, shares.append)
    assert plan._idle[0].batch == 2
    assert shares == [2 / 7, 4 / 7, 6 / 7, 1]
    for k, positions in enumerate(conformations):
        result = plan.evaluate(positions)
        np.testing.assert_array_equal(batch.energies[k], result.energies)
        np.testing.assert_array_equal(batch.gradients[k], result.gradient)
        np.testing.assert_array_equal(batch.born_radii[k], result.born_radii)
        assert_same(result, reference(replace(atoms, positions=positions)), precision)


def test_positions_of_any_kind(device, precision):
    atoms = bonded(50, seed=15)
    conformations = np.stack([atoms.positions, 1.01 * atoms.positions]).astype(np.float32)
    plan = Energy(atoms, **options(device, precision))
    expected = plan.evaluate_batch(conformations.astype(np.float64))
    across = np.asfortranarray(conformations.astype(np.float64))
    for given in (conformations, conformations.tolist(), across):
        np.testing.assert_array_equal(plan.evaluate_batch(given).gradients, expected.gradients)
    np.testing.assert_array_equal(plan.evaluate(conformations[1]).gradient, expected.gradients[1])


@pytest.mark.parametrize("profile", [False, True])
def test_errors_in_later_chunks(device, precision, profile, monkeypatch):
    """Name the conformation, and leave a plan that goes on with others as if nothing had been."""
    monkeypatch.setattr(plans, "CHUNK_ATOMS", 320)
    atoms = bonded(150, seed=15)
    plan = Energy(atoms, **options(device, precision))
    expected = plan.evaluate()
    conformations = np.stack([atoms.positions] * 9)
    conformations[6, 30] = conformations[6, 0]
    with pytest.raises(InputError, match=r"^conformation 7 of 9: atom 0 and atom 30 are at the same position"):
        plan.evaluate_batch(conformations, profile=profile)
    np.testing.assert_array_equal(plan.evaluate(profile=not profile).gradient, expected.gradient)
    conformations[6, 30] = [0, 0, 1e6]
    with pytest.raises(InputError, match=r"^conformation 7 of 9: the (positions|atoms) span"):
        plan.evaluate_batch(conformations, profile=profile)
    np.testing.assert_array_equal(plan.evaluate(profile=not profile).gradient, expected.gradient)

    def stop(share):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        plan.evaluate_batch(conformations[:6], stop, profile=profile)
    np.testing.assert_array_equal(plan.evaluate(profile=not profile).gradient, expected.gradient)


def test_kernels_are_timed_where_asked_for(device, precision):
    atoms = bonded(150, seed=15)
    plan = Energy(atoms, **options(device, precision))
    conformations = np.stack([atoms.positions] * 3)
    for evaluate in (plan.evaluate, lambda **how: plan.evaluate_batch(conformations, **how)):
        plain, timed = evaluate(), evaluate(profile=True)
        assert set(plain.seconds) == {"total"}
        assert timed.seconds["total"] > timed.seconds["kernel"] > 0
        np.testing.assert_array_equal(timed.energies, plain.energies)
    assert energy(atoms, device=device).seconds["kernel"] > 0


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_positions_that_are_not_finite_are_named(device, precision, bad):
    atoms = bonded(10)
    plan = Energy(atoms, **options(device, precision))
    conformations = np.stack([atoms.positions] * 9)
    conformations[6, 4, 1] = bad
    with pytest.raises(InputError, match=r"^positions of atom 4 is .*; expected a finite number"):
        plan.evaluate(conformations[6])
    with pytest.raises(InputError, match=r"^conformation 7 of 9: positions of atom 4 is .*; expected a finite number"):
        plan.evaluate_batch(conformations)


def test_molecules_as_large_as_may_be(device, precision):
    """Half of what is allowed is reached from the middle without a look at the span."""
    apart = np.outer([0, 1.5, 499_000, 499_001.5], [1, 0, 0])  # multiples of a fixed-point step
    values = dict(charges=np.ones(4), gb_radii=np.full(4, 1.5), gb_scales=np.full(4, 0.8), lj_epsilon=np.zeros(4))
    atoms = Atoms(positions=apart, lj_sigma=np.ones(4), **values)
    plan = Energy(atoms, **options(device, precision))
    assert_same(plan.evaluate(), reference(atoms), precision)
    with pytest.raises(InputError, match=r"^conformation 2 of 2: the atoms span 5.01e\+05 A; a molecule up to"):
        plan.evaluate_batch(np.stack([apart, apart * [501 / 499, 1, 1]]))
