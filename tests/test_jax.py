"""Energies as JAX's functions; JAX is no dependency of the tests, which are skipped where it is missing."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from conftest import DEVICES

import pele_ocl
from pele_ocl import Energy, InputError
from pele_ocl.common.installation import shipped

jax = pytest.importorskip("jax")
DEVICE = DEVICES[0]
MOLECULE = pele_ocl.read(shipped("data") / "structures" / "hexapeptide.pdb")


@pytest.fixture(scope="module")
def plan():
    return Energy(MOLECULE, precision="float64", born="pairs", device=DEVICE)


@pytest.fixture
def doubles():
    """JAX in float64, as a user sets it."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
def test_value_and_gradient(plan, doubles, wrap):
    expected = plan.evaluate()
    energy = partial(pele_ocl.jax.energies, plan)
    value, gradient = wrap(jax.value_and_grad(energy))(MOLECULE.positions)
    assert float(value) == pytest.approx(expected.total, rel=1e-12)
    np.testing.assert_allclose(gradient, expected.gradient, atol=1e-9)
    assert float(wrap(energy)(MOLECULE.positions)) == float(value)


def test_types_are_those_of_the_positions(plan):
    value, gradient = jax.jit(jax.value_and_grad(partial(pele_ocl.jax.energies, plan)))(
        MOLECULE.positions.astype(np.float32)
    )
    assert (value.dtype, gradient.dtype) == (np.float32, np.float32)
    np.testing.assert_allclose(gradient, plan.evaluate().gradient, atol=0.05)


def test_chain_rule_under_jit(plan, doubles):
    """A scale of all positions: dE/ds = sum of gradient times positions."""
    scaled = jax.jit(jax.grad(lambda s: pele_ocl.jax.energies(plan, s * MOLECULE.positions)))
    expected = (plan.evaluate(1.01 * MOLECULE.positions).gradient * MOLECULE.positions).sum()
    assert float(scaled(1.01)) == pytest.approx(expected, rel=1e-9)


def test_vmap_evaluates_all_together(plan, doubles, monkeypatch):
    places = np.stack([MOLECULE.positions, MOLECULE.positions * 1.01, MOLECULE.positions - 3.0])
    expected = plan.evaluate_batch(places)
    calls, evaluate_batch = [], plan.evaluate_batch
    monkeypatch.setitem(vars(plan), "evaluate_batch", lambda x: calls.append(len(x)) or evaluate_batch(x))
    of_each = jax.jit(jax.vmap(jax.value_and_grad(partial(pele_ocl.jax.energies, plan))))
    values, gradients = of_each(places)
    assert calls == [3]
    np.testing.assert_allclose(values, expected.total, rtol=1e-12)
    np.testing.assert_allclose(gradients, expected.gradients, atol=1e-9)
    np.testing.assert_allclose(pele_ocl.jax.energies(plan, places), expected.total, rtol=1e-12)


def test_second_derivatives_and_wrong_arguments_are_refused(plan):
    energy = partial(pele_ocl.jax.energies, plan)
    with pytest.raises(InputError, match="second derivatives of energies are not supported"):
        jax.grad(lambda x: (jax.grad(energy)(x) ** 2).sum())(MOLECULE.positions)
    with pytest.raises(InputError, match=r"positions have shape \(5, 3\); expected \(..., 96, 3\)"):
        energy(np.zeros((5, 3)))
    bare = Energy(MOLECULE, gradient=False, device=DEVICE)
    with pytest.raises(InputError, match="create it with gradient=True"):
        pele_ocl.jax.energies(bare, MOLECULE.positions)
    with pytest.raises(InputError, match="plan is of type Atoms; expected an Energy, a Nonbond or an Ensemble"):
        pele_ocl.jax.energies(MOLECULE, MOLECULE.positions)
    for wrong in ("text", [[1.0, 2.0], [3.0]]):
        with pytest.raises(InputError, match="positions are not an array of numbers: "):
            energy(wrong)
    assert energy(np.zeros((0, 96, 3))).shape == (0,)


def test_a_clash_loses_one_conformation_and_not_the_batch(plan, doubles):
    places = np.stack([MOLECULE.positions, MOLECULE.positions, MOLECULE.positions * 1.01])
    places[1, 3] = places[1, 21]
    expected = plan.evaluate_batch(places[[0, 2]])
    for failed, energy, slope in (("nan", np.nan, np.nan), ("inf", np.inf, 0.0)):
        one = partial(pele_ocl.jax.energies, plan, failed=failed)
        values, gradients = jax.jit(jax.vmap(jax.value_and_grad(one)))(places)
        np.testing.assert_allclose(values, [expected.total[0], energy, expected.total[1]], rtol=1e-12)
        np.testing.assert_allclose(gradients[np.array([0, 2])], expected.gradients, atol=1e-9)
        np.testing.assert_array_equal(gradients[1], np.full_like(places[1], slope))
    with pytest.raises(InputError, match="failed is 'skip'"):
        pele_ocl.jax.energies(plan, places, failed="skip")


def test_types_of_positions_are_converted_or_refused(plan):
    whole = np.round(10 * MOLECULE.positions).astype(np.int32)
    energy = pele_ocl.jax.energies(plan, whole)
    assert energy.dtype == np.float32
    assert float(energy) == pytest.approx(plan.evaluate(whole).total, rel=1e-6)
    for kind in (jax.numpy.bfloat16, jax.numpy.float16, jax.numpy.complex64):
        with pytest.raises(InputError, match=f"positions are of type {np.dtype(kind)}; expected float32 or float64"):
            jax.jit(partial(pele_ocl.jax.energies, plan))(MOLECULE.positions.astype(kind))


def test_rows_of_an_ensemble(doubles):
    """Conformations in turns of rows of one molecule, rows of several joined; under jit and vmap; what fails."""
    part = MOLECULE[:12]
    rows = pele_ocl.Ensemble(part, 2, precision="float64", device=DEVICE)
    places = part.positions + np.random.default_rng(0).normal(0, 0.02, (3, 12, 3))
    expected = Energy(part, precision="float64", device=DEVICE).evaluate_batch(places)
    of_each = jax.jit(jax.vmap(jax.value_and_grad(partial(pele_ocl.jax.energies, rows))))
    values, gradients = of_each(places)
    np.testing.assert_allclose(values, expected.total, rtol=1e-9)
    np.testing.assert_allclose(gradients, expected.gradients, atol=1e-8)
    np.testing.assert_allclose(pele_ocl.jax.energies(rows, places), expected.total, rtol=1e-9)

    different = pele_ocl.Ensemble([part, part[:9]], precision="float64", device=DEVICE)
    joined, weights = np.concatenate([part.positions, part.positions[:9]]), np.array([1.0, -2.0])
    slopes = jax.jit(jax.grad(lambda x: (weights * pele_ocl.jax.energies(different, x)).sum()))(joined)
    gradients = different.gradients[:]
    np.testing.assert_allclose(slopes, np.concatenate([gradients[0], -2 * gradients[1]]), atol=1e-9)
    both = jax.vmap(partial(pele_ocl.jax.energies, different))(np.stack([joined, joined]))
    np.testing.assert_array_equal(both, np.stack([different.energies] * 2))
    of_one = pele_ocl.jax.energies(different, joined[12:], rows=[1])
    np.testing.assert_array_equal(of_one, different.energies[1:])

    joined[15] = joined[16]
    for failed, energy, slope in (("nan", np.nan, np.nan), ("inf", np.inf, 0.0)):
        one = partial(pele_ocl.jax.energies, different, failed=failed)
        values, gradients = jax.jit(one)(joined), jax.jit(jax.grad(lambda x, one=one: one(x).sum()))(joined)
        np.testing.assert_array_equal(values[1], energy)
        assert np.isfinite(values[0])
        assert np.isfinite(gradients[:12]).all()
        np.testing.assert_array_equal(gradients[12:], np.full((9, 3), slope))
    with pytest.raises(InputError, match=r"the atoms of 2 rows joined"):
        pele_ocl.jax.energies(different, joined[:5])
