"""PELE's SGB models: definition, kernels against it, held radii, PELE's own numbers, refusals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import random_atoms, require
from forcefield_helpers import SAMPLES, needs_samples
from tolerance import DIFFERENCES

import pele_ocl
from pele_ocl import Binding, Energy, Ensemble, InputError, Minimizer, Solvent, SolventModel, nonbond
from pele_ocl.atoms import Labels
from pele_ocl.binding.pele import PoseEvaluator
from pele_ocl.common.errors import ParameterError
from pele_ocl.energy import VARIANTS
from pele_ocl.forcefield import ForceField
from pele_ocl.pairs import all_pairs
from pele_ocl.pairs.dielectric import inverse_dielectrics
from pele_ocl.reference import energy as definition
from pele_ocl.reference import sgb

EXACT = 1e-12  # relative, of float64 against the definition
ROUNDED = 2e-5  # of float32: points on the edge of a sphere fall on either side


def molecule(n: int = 90, seed: int = 4):
    """Random atoms, of which some have the names of charged groups, and bonds along a chain."""
    rng = np.random.default_rng(seed)
    names = np.array(["CA", "OD1", "CB", "NZ", "HB2", "CG"] * n)[:n]
    residues = np.array(["ASP"] * 3 + ["LYS"] * 3, "U3")[np.arange(n) % 6]
    numbers = np.arange(n) // 3
    blank = np.array([""] * n)
    labels = Labels(names, np.array([name[0] for name in names]), residues, numbers, blank, blank, numbers)
    figures = np.column_stack(
        [rng.uniform(1.0, 2.5, n), rng.uniform(0.9, 1.9, n), rng.normal(0.01, 0.03, n), rng.normal(-0.5, 1.0, n)]
    )
    figures[5, 1] = 0  # an atom without an accessible surface
    bonds = np.column_stack([np.arange(n - 1), np.arange(1, n)])
    return replace(random_atoms(n, seed), labels=labels, bonds=bonds, sgb=figures, gb_radii=None, gb_scales=None)


ATOMS = molecule()
MODELS = {gb: SolventModel(gb=gb, ionic_strength=0.15) for gb in ("vdgbnp", "sgbnp")}
EXPECTED = {gb: definition.energy(ATOMS, model) for gb, model in MODELS.items()}


def test_a_lone_sphere_has_its_own_radius():
    alone = ATOMS[[0]]
    assert sgb.surface_born_radii(alone, MODELS["sgbnp"]) == pytest.approx(alone.sgb[:, 0], rel=1e-12)
    assert sgb.areas(alone, MODELS["sgbnp"]) == pytest.approx(4 * np.pi * (alone.sgb[:, 1] + 1.4) ** 2)


def test_two_spheres_are_as_integrated():
    """Two spheres apart have 1/B in closed form."""
    a, b, d = 1.5, 2.0, 6.0
    atoms = replace(
        ATOMS[[0, 1]], positions=np.array([[0, 0, 0], [0, 0, d]]), sgb=np.array([[a, a, 0, 0], [b, b, 0, 0]])
    )
    # 1/a less the integral of r^-4 over the other ball, in closed form.
    ball = b / (d * d - b * b) / 2 - np.log((d + b) / (d - b)) / (4 * d)
    born = sgb.surface_born_radii(atoms, MODELS["sgbnp"])
    assert 1 / born[0] == pytest.approx(1 / a - ball, rel=2e-5)


def test_names_tell_dielectric_constants():
    inverses = inverse_dielectrics(ATOMS, MODELS["vdgbnp"])
    assert set(inverses[ATOMS.labels.names == "OD1"]) == {0.25}
    assert (inverses < 1).sum() > 10
    assert (inverse_dielectrics(ATOMS, MODELS["sgbnp"]) == 1).all()


def test_pairs_have_the_larger_dielectric_constant():
    """Two charges, one with 4 inside: a quarter of Coulomb's energy, and the screened solvent energy."""
    two = replace(ATOMS[[0, 1]], bonds=np.empty((0, 2)), bonded=None, charges=np.array([0.5, -1.0]))
    model = SolventModel(gb="vdgbnp", coulomb_constant=332.0)
    found = definition.energy(two, model)
    r = np.linalg.norm(two.positions[0] - two.positions[1])
    assert found.per_atom["coulomb"].sum() == pytest.approx(-332 * 0.5 * 0.25 / r)
    born = found.born_radii
    assert found.per_atom["gb_self"][1] == pytest.approx(-332 / 2 * (0.25 - 1 / 80) / born[1])
    f = np.sqrt(r**2 + born.prod() * np.exp(-(r**2) / (4 * born.prod())))
    assert found.per_atom["gb_pair"].sum() == pytest.approx(332 * 0.5 * (0.25 - 1 / 80) / f)


@pytest.mark.parametrize("gb", MODELS)
def test_gradient_is_that_of_held_radii(gb):
    """Central differences of the definition, whose nonpolar energy is held as its radii are."""
    held = EXPECTED[gb]

    def energy(positions):
        found = definition.energy(ATOMS.moved(positions), MODELS[gb], fixed_radii=held.born_radii)
        return sum(values.sum() for term, values in found.per_atom.items() if term != "nonpolar")

    h, differences = 1e-5, np.zeros((len(ATOMS), 3))
    chosen = [0, 1, 3, 4, 50]
    for i in chosen:
        for k in range(3):
            step = np.zeros_like(ATOMS.positions)
            step[i, k] = h
            differences[i, k] = (energy(ATOMS.positions + step) - energy(ATOMS.positions - step)) / (2 * h)
    expected = held.gradient[chosen]
    assert np.linalg.norm(differences[chosen] - expected) <= DIFFERENCES * np.linalg.norm(expected)


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("gb", MODELS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_energy_and_gradient_are_as_defined(variant, gb, precision, device):
    """Two conformations at once, the first as the definition has it; each alone gives the same bits."""
    require(device, precision)
    plan = Energy(ATOMS, model=MODELS[gb], fixed_radii=True, variant=variant, precision=precision, device=device)
    moved = ATOMS.positions + np.random.default_rng(1).normal(0, 0.05, ATOMS.positions.shape)
    batch = plan.evaluate_batch(np.stack([ATOMS.positions, moved]))
    expected, tolerance = EXPECTED[gb], EXACT if precision == "float64" else ROUNDED
    np.testing.assert_allclose(batch.born_radii[0], expected.born_radii, rtol=tolerance)
    largest = max(abs(values.sum()) for values in expected.per_atom.values())
    for term, values in expected.per_atom.items():
        assert float(getattr(batch.terms, term)[0]) == pytest.approx(values.sum(), abs=tolerance * largest), term
    assert np.linalg.norm(batch.gradients[0] - expected.gradient) <= tolerance * np.linalg.norm(expected.gradient)
    for k, positions in enumerate((ATOMS.positions, moved)):
        single = plan.evaluate(positions)
        np.testing.assert_array_equal(single.terms.values, batch.terms.values[k])
        np.testing.assert_array_equal(single.gradient, batch.gradients[k])


@pytest.mark.parametrize("variant", VARIANTS)
def test_spheres_afar_are_as_their_points(variant, device):
    """Two lumps apart, of which float32 has the other one's moments."""
    positions = ATOMS.positions.copy()
    positions[45:] += (15, 0, 0)
    apart = ATOMS.moved(positions)
    plan = Energy(apart, model=MODELS["sgbnp"], gradient=False, variant=variant, precision="float32", device=device)
    expected = sgb.surface_born_radii(apart, MODELS["sgbnp"])
    np.testing.assert_allclose(plan.evaluate().born_radii, expected, rtol=ROUNDED)


@pytest.mark.parametrize("options", [{"one_four": "exclude"}, {"cutoff": 6.0}, {"only_terms": ["coulomb", "gb_self"]}])
def test_options_count(options, device):
    require(device, "float64")
    plan = Energy(ATOMS, model=MODELS["vdgbnp"], fixed_radii=True, precision="float64", device=device, **options)
    found = plan.evaluate()
    names = options.pop("only_terms", None)
    expected = definition.energy(ATOMS, MODELS["vdgbnp"], **options)
    for term in names or expected.per_atom:
        assert float(getattr(found.terms, term)) == pytest.approx(expected.per_atom[term].sum(), rel=1e-10, abs=1e-9)
    if names is None:
        np.testing.assert_allclose(found.gradient, expected.gradient, atol=1e-8)
    else:
        assert found.terms.names == ("coulomb", "gb_self")


def test_energies_of_atoms_add_up(device):
    plan = Energy(ATOMS, model=MODELS["vdgbnp"], gradient=False, per_atom=True, device=device)
    found = plan.evaluate()
    np.testing.assert_allclose(found.per_atom.values.sum(axis=0), found.terms.values, rtol=1e-5, atol=1e-3)


def test_frozen_atoms_change_nothing_but_the_gradient(device):
    frozen = np.arange(len(ATOMS)) >= 40
    options = dict(model=MODELS["vdgbnp"], fixed_radii=True, device=device)
    whole, part = Energy(ATOMS, **options).evaluate(), Energy(ATOMS, frozen=frozen, **options).evaluate()
    np.testing.assert_allclose(part.terms.values, whole.terms.values, rtol=1e-5, atol=1e-3)
    assert not part.gradient[frozen].any()
    np.testing.assert_allclose(part.gradient[~frozen], whole.gradient[~frozen], rtol=1e-3, atol=1e-2)


def test_minimize_holds_radii_for_a_round(device):
    """The energy, of radii found anew, is lower in the end."""
    require(device, "float64")
    minimizer = Minimizer(
        ATOMS, model=MODELS["vdgbnp"], fixed_radii=True, max_iterations=5, precision="float64", device=device
    )
    found = minimizer.minimize()
    before = Energy(ATOMS, model=MODELS["vdgbnp"], gradient=False, precision="float64", device=device).evaluate()
    assert found.energy_before.total == pytest.approx(float(before.terms.total), rel=1e-9)
    assert found.energy_after.total < found.energy_before.total


@needs_samples
def test_progesterone_receptor_has_the_energy_that_pele_prints(device):
    """1A28 of pele_platform's public run, which prints -7830.55 for the complex; docs/pele.md."""
    folder = SAMPLES / "1a28"
    data = [folder / "Data", folder / "DataLocal"]
    field = ForceField.load("OPLS2005", pele_data=data, allow_missing_terminals=True, guess_radii=True)
    atoms = pele_ocl.read(folder / "output" / "0" / "trajectory_1.pdb", field, model=1)
    model = SolventModel.like("pele", gb="vdgbnp", ionic_strength=0.15)
    found = PoseEvaluator(Binding(atoms, "resname STR", model=model, device=device)).evaluate(atoms.positions[None])
    assert found.total[0] == pytest.approx(-7830.55, abs=0.5)
    assert found.binding[0] == pytest.approx(-45.83, abs=0.1)  # PELE prints -51.31


def refusal(make) -> str:
    with pytest.raises(InputError) as error:
        make()
    return str(error.value)


def test_what_does_not_go_is_refused():
    model = MODELS["vdgbnp"]
    assert "keeps Born radii and surface fixed" in refusal(lambda: Energy(ATOMS, model=model))
    assert "come from the surface" in refusal(lambda: Energy(ATOMS, model=model, fixed_radii=True, born="tree"))
    assert "leave out born_cutoff" in refusal(lambda: SolventModel(gb="vdgbnp", born_cutoff=25.0))
    assert "its own nonpolar term" in refusal(lambda: SolventModel(gb="vdgbnp", surface="lcpo"))
    assert "can only be used with sgbnp and vdgbnp" in refusal(lambda: SolventModel(surface="sgb"))
    assert "only available for complete energies" in refusal(lambda: Solvent(ATOMS, model=model))
    assert "only available for complete energies" in refusal(lambda: nonbond(ATOMS, all_pairs(ATOMS), model=model))
    assert "not decomposed" in refusal(lambda: Binding(ATOMS, np.arange(3), model=model, idecomp=1))
    assert "use PELE's OPLS2005" in refusal(lambda: Energy(replace(ATOMS, sgb=None), model=model, fixed_radii=True))
    assert "names, which these atoms do not have" in refusal(
        lambda: Energy(replace(ATOMS, labels=None), model=model, fixed_radii=True)
    )


def test_an_atom_without_parameters_is_named():
    figures = ATOMS.sgb.copy()
    figures[7] = np.nan
    with pytest.raises(ParameterError, match=r"atom 7 .*create the template with OPLS2005"):
        Energy(replace(ATOMS, sgb=figures), model=MODELS["sgbnp"], fixed_radii=True)


@pytest.mark.parametrize("wrong", [np.ones((90, 3)), -np.ones((90, 4)), np.full((90, 4), np.inf)])
def test_figures_of_atoms_are_checked(wrong):
    with pytest.raises(InputError, match="sgb"):
        replace(ATOMS, sgb=wrong)


def test_rows_of_an_ensemble_are_as_alone(device):
    """Two molecules in one launch, in float64: the same terms and gradients."""
    require(device, "float64")
    options = dict(model=MODELS["vdgbnp"], fixed_radii=True, precision="float64", device=device)
    both = [ATOMS, molecule(50, 7)]
    rows = Ensemble(both, **options).evaluate()
    for k, atoms in enumerate(both):
        alone = Energy(atoms, **options).evaluate()
        np.testing.assert_allclose(rows.terms().values[k], alone.terms.values, rtol=1e-11)
        np.testing.assert_allclose(rows.gradients[k], alone.gradient, atol=1e-8)


def test_other_rooms_ask_the_model_what_it_can():
    """Its integral is asked for by the passes and by the definition alone."""
    package = Path(pele_ocl.__file__).parent
    asking = {
        of.relative_to(package).as_posix() for of in package.rglob("*.py") if "gb_model.of_surface" in of.read_text()
    }
    assert asking == {"energy/plan.py", "energy/passes.py", "reference/energy.py"}
