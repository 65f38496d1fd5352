"""Energies that torch differentiates; torch is no dependency of the tests, which are skipped where it is missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import DEVICES

import pele_ocl
from pele_ocl import Energy, InputError, Nonbond, all_pairs
from pele_ocl.common.installation import shipped

DEVICE = DEVICES[0]


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


@pytest.fixture(scope="module")
def molecule():
    """An end of the hexapeptide, small enough for differences in each coordinate."""
    return pele_ocl.read(shipped("data") / "structures" / "hexapeptide.pdb")[:12]


@pytest.fixture(scope="module")
def plan(molecule):
    return Energy(molecule, precision="float64", born="pairs", device=DEVICE)


@pytest.mark.parametrize("m", [None, 2])
def test_gradients_pass_gradcheck(torch, plan, molecule, m):
    places = molecule.positions if m is None else np.stack([molecule.positions, molecule.positions + 0.02])[:m]
    positions = torch.tensor(places, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: pele_ocl.torch.energies(plan, x), (positions,), atol=1e-5, rtol=1e-5)


def test_gradients_of_a_list_of_pairs_pass_gradcheck(torch, molecule):
    plan = Nonbond(molecule, all_pairs(molecule), solvent="vacuum", precision="float64", device=DEVICE)
    positions = torch.tensor(molecule.positions, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: pele_ocl.torch.energies(plan, x), (positions,), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_energies_and_forces_are_those_of_the_plan(torch, plan, molecule, kind):
    """Functions may follow: the chain rule goes on."""
    places = np.stack([molecule.positions, molecule.positions * 1.01, molecule.positions - 3.0]).astype(kind)
    expected = plan.evaluate_batch(places)
    positions = torch.tensor(places, requires_grad=True)
    energies = pele_ocl.torch.energies(plan, positions)
    assert (energies.shape, energies.dtype) == ((3,), getattr(torch, kind))
    np.testing.assert_allclose(energies.detach().numpy(), expected.total, rtol=1e-6)
    weights = torch.tensor([1.0, -2.0, 0.5], dtype=energies.dtype)
    (weights * energies).sum().backward()
    np.testing.assert_allclose(
        positions.grad.numpy(), weights.numpy()[:, None, None] * expected.gradients, rtol=1e-5, atol=1e-4
    )
    assert pele_ocl.torch.energies(plan, positions.detach()[0]).shape == ()


def test_torch_descends_with_its_own_optimizer(torch, plan, molecule):
    positions = torch.tensor(molecule.positions, requires_grad=True)
    steps = torch.optim.SGD([positions], lr=1e-4)
    energies = []
    for _ in range(5):
        steps.zero_grad()
        energy = pele_ocl.torch.energies(plan, positions)
        energy.backward()
        steps.step()
        energies.append(float(energy.detach()))
    assert np.all(np.diff(energies) < 0)


def test_functional_gradients(torch, plan, molecule):
    positions = torch.tensor(molecule.positions)
    gradient = torch.func.grad(lambda x: pele_ocl.torch.energies(plan, x))(positions)
    np.testing.assert_allclose(gradient.numpy(), plan.evaluate().gradient, atol=1e-9)


def test_second_derivatives_are_refused(torch, plan, molecule):
    positions = torch.tensor(molecule.positions, requires_grad=True)
    energy = pele_ocl.torch.energies(plan, positions)
    (gradient,) = torch.autograd.grad(energy, positions, create_graph=True)
    with pytest.raises(InputError, match="second derivatives of energies are not computed"):
        gradient.square().sum().backward()


def test_wrong_positions_and_plans_are_named(torch, plan, molecule):
    with pytest.raises(InputError, match=r"positions are no tensor of shape \(n, 3\) or \(m, n, 3\)"):
        pele_ocl.torch.energies(plan, molecule.positions)
    with pytest.raises(InputError, match=r"positions have shape \(1, 5, 3\); \(m, 12, 3\) is needed"):
        pele_ocl.torch.energies(plan, torch.zeros(5, 3))
    bare = Energy(molecule, gradient=False, device=DEVICE)
    positions = torch.tensor(molecule.positions, requires_grad=True)
    energy = pele_ocl.torch.energies(bare, positions)
    assert float(energy.detach()) == pytest.approx(bare.evaluate().total)
    with pytest.raises(InputError, match="make it with gradient=True"):
        energy.backward()


def test_batches_show_the_sentence_of_torch(torch, plan, molecule):
    recorded = torch.tensor(molecule.positions[None], requires_grad=True)
    with pytest.raises(InputError, match=r"Use tensor\.detach\(\)\.numpy\(\) instead"):
        plan.evaluate_batch(recorded)


def test_a_clash_loses_one_conformation_and_not_the_batch(torch, plan, molecule):
    places = np.stack([molecule.positions, molecule.positions, molecule.positions * 1.01])
    places[1, 3] = places[1, 8]
    expected = plan.evaluate_batch(places[[0, 2]])
    for failed, energy, slope in (("nan", np.nan, np.nan), ("inf", np.inf, 0.0)):
        positions = torch.tensor(places, requires_grad=True)
        values = pele_ocl.torch.energies(plan, positions, failed=failed)
        np.testing.assert_array_equal(values.detach(), [expected.total[0], energy, expected.total[1]])
        values.sum().backward()
        np.testing.assert_array_equal(positions.grad[[0, 2]], expected.gradients)
        np.testing.assert_array_equal(positions.grad[1], np.full_like(places[1], slope))
    with pytest.raises(InputError, match="failed is 'skip'"):
        pele_ocl.torch.energies(plan, positions, failed="skip")


def test_types_of_positions_are_converted_or_refused(torch, plan, molecule):
    whole = torch.tensor(np.round(10 * molecule.positions)).to(torch.int64)
    energy = pele_ocl.torch.energies(plan, whole)
    assert energy.dtype == torch.float32
    assert float(energy) == pytest.approx(plan.evaluate(whole.numpy()).total, rel=1e-6)
    for kind in (torch.bfloat16, torch.float16, torch.complex64, torch.bool):
        with pytest.raises(InputError, match=r"positions are of type \w+; float32 or float64 is needed"):
            pele_ocl.torch.energies(plan, whole.to(kind))


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")  # of torch's compiler about torch
def test_transforms_of_functions(torch, plan, molecule):
    """vmap evaluates all together, forward derivatives are those of the gradient, and compiled code calls it."""
    places = torch.tensor(np.stack([molecule.positions, molecule.positions * 1.01]))
    expected = plan.evaluate_batch(places.numpy())

    def energy(positions):
        return pele_ocl.torch.energies(plan, positions)

    np.testing.assert_array_equal(torch.func.vmap(energy)(places), expected.total)
    np.testing.assert_array_equal(torch.func.vmap(energy, in_dims=2)(places.movedim(0, 2)), expected.total)
    np.testing.assert_array_equal(torch.func.vmap(torch.func.grad(energy))(places), expected.gradients)
    change = torch.ones_like(places[0])
    value, slope = torch.func.jvp(energy, (places[0],), (change,))
    assert float(value) == expected.total[0]
    assert float(slope) == pytest.approx(expected.gradients[0].sum(), rel=1e-9)
    compiled = torch.compile(lambda positions: 2 * energy(positions), backend="eager")
    np.testing.assert_array_equal(compiled(places), 2 * expected.total)


@pytest.mark.parametrize(("module", "library"), [("torch", "torch"), ("jax", "JAX")])
def test_a_missing_library_is_named(module, library):
    code = (
        f"import sys; sys.modules[{module!r}] = None\n"
        "import pele_ocl\n"
        f"try: pele_ocl.{module}.energies(None, None)\n"
        "except pele_ocl.PeleError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=Path(__file__).parent.parent
    )
    assert done.stdout == (
        f"a function for {library} needs {library}, which is not installed: pip install 'pele-ocl[{module}]'\n"
    )
