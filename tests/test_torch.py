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
    with pytest.raises(InputError, match="second derivatives of energies are not supported"):
        gradient.square().sum().backward()


def test_wrong_positions_and_plans_are_named(torch, plan, molecule):
    with pytest.raises(InputError, match=r"positions are not a tensor of shape \(n, 3\) or \(..., n, 3\)"):
        pele_ocl.torch.energies(plan, molecule.positions)
    with pytest.raises(InputError, match=r"positions have shape \(5, 3\); expected \(..., 12, 3\)"):
        pele_ocl.torch.energies(plan, torch.zeros(5, 3))
    bare = Energy(molecule, gradient=False, device=DEVICE)
    positions = torch.tensor(molecule.positions, requires_grad=True)
    energy = pele_ocl.torch.energies(bare, positions)
    assert float(energy.detach()) == pytest.approx(bare.evaluate().total)
    with pytest.raises(InputError, match="create it with gradient=True"):
        energy.backward()


def test_a_batch_may_be_empty(torch, plan, rows, different, molecule):
    """As the last one of a loop over samples."""
    for of, n, shape in ((plan, 12, (0,)), (rows, 12, (0,)), (different, 33, (0, 3))):
        positions = torch.zeros((0, n, 3), requires_grad=True)
        energies = pele_ocl.torch.energies(of, positions)
        assert energies.shape == shape
        energies.sum().backward()
        assert positions.grad.shape == (0, n, 3)


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
        with pytest.raises(InputError, match=r"positions are of type \w+; expected float32 or float64"):
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


@pytest.fixture(scope="module")
def rows(molecule):
    """Two rows whose restraints differ."""
    terms = [pele_ocl.DistanceRestraint([[0, 9]], 3.0, 2.0, name="d")]
    made = pele_ocl.Ensemble(molecule, 2, precision="float64", terms=terms, device=DEVICE)
    made.targets("d")[:] = [[3.0], [5.0]]
    return made


@pytest.fixture(scope="module")
def different(molecule):
    """Rows of two molecules, in an order of their own."""
    return pele_ocl.Ensemble([molecule, molecule[:9], molecule], precision="float64", device=DEVICE)


def energies_of(ensemble, places, numbers):
    """Energies and gradients of conformations in rows, one after the other."""
    found = []
    for k, x in zip(numbers, places, strict=True):
        ensemble.positions[k] = x
        ensemble.evaluate(k)
        found.append((ensemble.energies_of(k)[0], ensemble.gradients[k]))
    return np.array([energy for energy, _ in found]), [gradient for _, gradient in found]


def test_rows_of_an_ensemble_take_conformations_in_turns(torch, rows, molecule):
    """As many as there are, fewer, or more; each is computed with what its row has of its own."""
    places = molecule.positions + np.random.default_rng(0).normal(0, 0.02, (5, len(molecule), 3))
    energies, gradients = energies_of(rows, places, [0, 1, 0, 1, 0])
    for count in (1, 2, 5):
        positions = torch.tensor(places[:count], requires_grad=True)
        values = pele_ocl.torch.energies(rows, positions)
        np.testing.assert_array_equal(values.detach(), energies[:count])
        values.sum().backward()
        np.testing.assert_array_equal(positions.grad, gradients[:count])
    places_of = torch.tensor(places[:4]).reshape(2, 2, -1, 3)
    np.testing.assert_array_equal(pele_ocl.torch.energies(rows, places_of).reshape(-1), energies[:4])
    second, _ = energies_of(rows, places[:2], [1, 0])
    np.testing.assert_array_equal(pele_ocl.torch.energies(rows, torch.tensor(places[:2]), rows=[1, 0]), second)
    one = torch.func.vmap(torch.func.grad_and_value(lambda x: pele_ocl.torch.energies(rows, x)))
    found, values = one(torch.tensor(places))
    np.testing.assert_array_equal(values, energies)
    np.testing.assert_array_equal(found, gradients)
    positions = torch.tensor(places[:2], requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: pele_ocl.torch.energies(rows, x), (positions,), atol=1e-5, rtol=1e-5)


def test_rows_of_different_molecules_are_joined(torch, different, molecule):
    rng = np.random.default_rng(0)
    places = [atoms.positions + rng.normal(0, 0.02, (len(atoms), 3)) for atoms in different.atoms]
    energies, gradients = energies_of(different, places, [0, 1, 2])
    positions, weights = torch.tensor(np.concatenate(places), requires_grad=True), torch.tensor([1.0, -2.0, 0.5])
    values = pele_ocl.torch.energies(different, positions)
    assert values.shape == (3,)
    np.testing.assert_array_equal(values.detach(), energies)
    (weights * values).sum().backward()
    expected = np.concatenate([w * g for w, g in zip(weights.tolist(), gradients, strict=True)])
    np.testing.assert_allclose(positions.grad, expected, atol=1e-9)
    part = torch.tensor(np.concatenate([places[1], places[0]]))
    np.testing.assert_array_equal(pele_ocl.torch.energies(different, part, rows=[1, 0]), energies[[1, 0]])
    twice = torch.stack([positions.detach(), positions.detach() - 2.0])
    both = torch.func.vmap(lambda x: pele_ocl.torch.energies(different, x))(twice)
    np.testing.assert_allclose(both, [energies, energies], rtol=1e-9)
    change = torch.ones_like(twice[0])
    _, slope = torch.func.jvp(lambda x: pele_ocl.torch.energies(different, x), (twice[0],), (change,))
    np.testing.assert_allclose(slope, [gradient.sum() for gradient in gradients], atol=1e-8)


@pytest.mark.parametrize("kind", ["rows", "different"])
def test_a_clash_loses_one_row_and_not_the_batch(torch, kind, request, molecule):
    """Atoms at one place, positions that are no numbers, and positions that no device can hold."""
    ensemble = request.getfixturevalue(kind)
    n = [len(atoms) for atoms in ensemble.atoms]
    for bad in ("clash", np.nan, np.inf, 1e30):
        places = [atoms.positions.copy() for atoms in ensemble.atoms]
        places[1][3] = places[1][8] if bad == "clash" else bad
        given = np.stack(places) if kind == "rows" else np.concatenate(places)
        for failed, energy, slope in (("nan", np.nan, np.nan), ("inf", np.inf, 0.0)):
            positions = torch.tensor(given, requires_grad=True)
            values = pele_ocl.torch.energies(ensemble, positions, failed=failed)
            values.sum().backward()
            values, slopes = values.detach().numpy(), np.split(positions.grad.reshape(-1, 3).numpy(), np.cumsum(n)[:-1])
            np.testing.assert_equal(values[1], energy)
            np.testing.assert_array_equal(slopes[1], np.full((n[1], 3), slope))
            assert np.isfinite(np.delete(values, 1)).all()
            assert np.isfinite(slopes[0]).all()
        with pytest.raises(InputError, match="row 1: "):
            pele_ocl.torch.energies(ensemble, positions)
    assert torch.isfinite(pele_ocl.torch.energies(ensemble, torch.tensor(given), failed="inf"))[0]


def test_wrong_rows_and_shapes_are_named(torch, rows, different, plan, molecule):
    x = torch.tensor(molecule.positions)
    for call, sentence in (
        (lambda: pele_ocl.torch.energies(plan, x, rows=[0]), "rows need an Ensemble"),
        (
            lambda: pele_ocl.torch.energies(rows, x, rows=[0, 0]),
            r"rows are \[0, 0\]; expected one or more, each given once",
        ),
        (lambda: pele_ocl.torch.energies(rows, x, rows=[2]), "there are 2 rows, so 2 is invalid"),
        (lambda: pele_ocl.torch.energies(rows, x, rows=[True] * 3), "there are 2 rows, so a mask of 3 is invalid"),
        (
            lambda: pele_ocl.torch.energies([plan], x),
            "plan is of type list; expected an Energy, a Nonbond or an Ensemble",
        ),
        (
            lambda: pele_ocl.torch.energies(pele_ocl.Simulation(rows, timestep=1.0), x),
            "plan is of type Simulation; expected an Energy, a Nonbond or an Ensemble, such as its `ensemble`",
        ),
        (lambda: pele_ocl.torch.energies(rows, x[:5]), r"shape \(5, 3\); expected \(..., 12, 3\)"),
        (lambda: pele_ocl.torch.energies(different, x), r"expected \(..., 33, 3\), the atoms of 3 rows joined"),
    ):
        with pytest.raises(InputError, match=sentence):
            call()


@pytest.mark.filterwarnings("ignore")  # of torch's compiler about torch
def test_compiled_code_calls_one_operator(torch, plan, rows, different, molecule):
    """With fullgraph=True: energies, gradients, vmap, what fails; second derivatives are refused."""
    x = np.stack([molecule.positions, molecule.positions * 1.01])
    joined = np.concatenate([atoms.positions for atoms in different.atoms])
    for of, given in ((plan, x), (rows, x), (different, joined)):
        for backend in ("eager", "aot_eager"):
            compiled = torch.compile(
                lambda y, of=of: 2 * pele_ocl.torch.energies(of, y), backend=backend, fullgraph=True
            )
            own, other = torch.tensor(given, requires_grad=True), torch.tensor(given, requires_grad=True)
            values, expected = compiled(own), 2 * pele_ocl.torch.energies(of, other)
            np.testing.assert_array_equal(values.detach(), expected.detach())
            values.sum().backward()
            expected.sum().backward()
            np.testing.assert_array_equal(own.grad, other.grad)
        with pytest.raises((InputError, RuntimeError), match=r"second derivatives of energies|create_graph=False"):
            torch.autograd.grad(compiled(own).sum(), own, create_graph=True)[0].square().sum().backward()
    each = torch.compile(
        lambda y: torch.func.vmap(lambda z: pele_ocl.torch.energies(rows, z))(y), backend="eager", fullgraph=True
    )
    np.testing.assert_array_equal(each(torch.tensor(x)), pele_ocl.torch.energies(rows, torch.tensor(x)))
    x[1, 3] = x[1, 8]
    safe = torch.compile(lambda y: pele_ocl.torch.energies(rows, y, failed="inf"), backend="eager", fullgraph=True)
    assert torch.isinf(safe(torch.tensor(x))).tolist() == [False, True]


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
