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
