"""NumPy definition against analytic values, differences of its own energy and OpenMM."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import load_system, random_atoms, random_pairs, without
from tolerance import DIFFERENCES, ENERGY, GRADIENT

from pele_ocl import Atoms, SolventModel
from pele_ocl.pairs import all_pairs
from pele_ocl.reference.nonbond import nonbond as reference
from pele_ocl.units import COULOMB_KCAL_A

TERMS = ("lennard_jones", "coulomb", "gb_pair")
SALT = SolventModel(ionic_strength=0.15)


def two(r, charges=(0.0, 0.0), sigma=(3.0, 3.0), epsilon=(0.2, 0.2), **more):
    return Atoms(positions=[[0, 0, 0], [0, 0, r]], charges=charges, lj_sigma=sigma, lj_epsilon=epsilon, **more)


def of_two(atoms, **more):
    return reference(atoms, np.array([0]), np.array([1]), **more)


def relative(gradient, expected):
    return np.linalg.norm(gradient - expected) / np.linalg.norm(expected)


def differences(energy, positions, step=1e-4):
    """Gradient by central differences of fourth order; of several energies (m,) at once, (n, 3, m).

    positions : (n, 3) A
    """
    slopes = []
    for place in np.ndindex(positions.shape):
        moved = []
        for steps in (-2, -1, 1, 2):
            shifted = positions.copy()
            shifted[place] += steps * step
            moved.append(energy(shifted))
        slopes.append((moved[0] - 8 * moved[1] + 8 * moved[2] - moved[3]) / (12 * step))
    return np.reshape(slopes, (*positions.shape, *np.shape(slopes[0])))


# Analytic


def test_lennard_jones_has_its_minimum_at_the_sixth_root_of_two():
    bottom = of_two(two(2 ** (1 / 6) * 3.0))
    assert bottom.lennard_jones == pytest.approx(-0.2, rel=1e-14)
    assert np.abs(bottom.gradient).max() < 1e-14
    assert of_two(two(3.0)).lennard_jones == pytest.approx(0, abs=1e-15)
    assert of_two(two(3.1)).gradient[1, 2] < 0  # inside the minimum they push each other apart
    assert of_two(two(4.1)).gradient[1, 2] > 0


@pytest.mark.parametrize(("rule", "sigma"), [("arithmetic", 2.5), ("geometric", 2.0)])
def test_combining_rules(rule, sigma):
    atoms = two(2 ** (1 / 6) * sigma, sigma=(1.0, 4.0), epsilon=(0.1, 0.4), combining=rule)
    assert of_two(atoms).lennard_jones == pytest.approx(-0.2, rel=1e-14)


def test_coulomb():
    result = of_two(two(5.0, charges=(1.0, -2.0), epsilon=(0, 0)))
    assert result.coulomb == pytest.approx(-2 * COULOMB_KCAL_A / 5, rel=1e-15)
    np.testing.assert_allclose(result.gradient, [[0, 0, -2 * COULOMB_KCAL_A / 25], [0, 0, 2 * COULOMB_KCAL_A / 25]])
    assert (result.lennard_jones, result.gb_pair) == (0, 0)


def test_gb_screens_coulomb_at_a_distance():
    atoms = two(300.0, charges=(1.0, -1.0), epsilon=(0, 0))
    result = of_two(atoms, born_radii=np.array([2.0, 3.0]))
    assert result.gb_pair == pytest.approx(COULOMB_KCAL_A * (1 - 1 / 80) / 300, rel=1e-12)
    assert result.coulomb + result.gb_pair == pytest.approx(-COULOMB_KCAL_A / 80 / 300, rel=1e-10)


def test_gb_of_touching_atoms_is_the_born_energy():
    # At r = 0, f is the geometric mean of the radii.
    result = of_two(two(1e-6, charges=(1.0, 1.0), epsilon=(0, 0)), born_radii=np.array([1.0, 4.0]))
    assert result.gb_pair == pytest.approx(-COULOMB_KCAL_A * (1 - 1 / 80) / 2, rel=1e-12)


def test_salt_screens():
    atoms = two(100.0, charges=(1.0, 1.0), epsilon=(0, 0))
    result = of_two(atoms, born_radii=np.array([2.0, 2.0]), model=SALT)
    expected = -COULOMB_KCAL_A * (1 - np.exp(-SALT.kappa * 100) / 80) / 100
    assert result.gb_pair == pytest.approx(expected, rel=1e-12)


def test_one_four_pairs_are_scaled_but_for_gb():
    atoms = two(4.0, charges=(1.0, 0.5))
    born = np.array([2.0, 3.0])
    whole, scaled = (of_two(atoms, born_radii=born, one_four=np.array([flag])) for flag in (False, True))
    assert scaled.coulomb == pytest.approx(whole.coulomb / 1.2, rel=1e-15)
    assert scaled.lennard_jones == pytest.approx(whole.lennard_jones / 2, rel=1e-15)
    assert scaled.gb_pair == whole.gb_pair
    opls = of_two(replace(atoms, one_four=(0.5, 0.5)), born_radii=born, one_four=np.array([True]))
    assert opls.coulomb == pytest.approx(whole.coulomb / 2, rel=1e-15)


def test_the_larger_internal_dielectric_holds():
    atoms = two(6.0, charges=(1.0, -1.0))
    born = np.array([2.0, 2.0])
    model = SolventModel(solute_dielectric=4)
    for inside in ([1.0, 4.0], [4.0, 1.0], [4.0, 4.0]):
        result = of_two(atoms, born_radii=born, internal_dielectrics=np.array(inside))
        uniform = of_two(atoms, born_radii=born, model=model)
        assert [getattr(result, t) for t in TERMS] == pytest.approx([getattr(uniform, t) for t in TERMS], rel=1e-15)
    assert uniform.coulomb == pytest.approx(-COULOMB_KCAL_A / 24, rel=1e-15)


def test_a_list_may_bring_its_own_values():
    atoms = two(2 ** (1 / 6) * 2.0, charges=(1.0, 1.0))
    result = of_two(atoms, sigma2=np.array([4.0]), charge_products=np.array([-3.0]), born_radii=np.array([9.0, 9.0]))
    other = of_two(replace(atoms, lj_sigma=[2, 2], charges=[3, -1]), born_radii=np.array([9.0, 9.0]))
    assert [getattr(result, t) for t in TERMS] == pytest.approx([getattr(other, t) for t in TERMS], rel=1e-14)
    np.testing.assert_allclose(result.gradient, other.gradient, rtol=1e-12, atol=1e-12)


# Gradient


@pytest.mark.parametrize("gb", [True, False], ids=["gb", "vacuum"])
@pytest.mark.parametrize("model", [SolventModel(), SALT], ids=["water", "salt"])
@pytest.mark.parametrize("own", [True, False], ids=["own", "atoms"])
def test_gradient_is_that_of_the_energy(gb, model, own):
    atoms, pairs = random_atoms(12), random_pairs(12, 40)
    pairs = pairs if own else without(pairs, "sigma2", "charge_products")
    rng = np.random.default_rng(3)
    more = dict(
        one_four=pairs.one_four, born_radii=rng.uniform(1, 5, 12) if gb else None, model=model,
        internal_dielectrics=rng.uniform(1, 8, 12), sigma2=pairs.sigma2, charge_products=pairs.charge_products,
    )  # fmt: skip

    def evaluate(positions):
        return reference(replace(atoms, positions=positions), pairs.first, pairs.second, **more)

    def energy(positions):
        result = evaluate(positions)
        return result.lennard_jones + result.coulomb + result.gb_pair

    gradient = evaluate(atoms.positions).gradient
    assert relative(gradient, differences(energy, atoms.positions)) < DIFFERENCES


# OpenMM


@pytest.mark.parametrize("name", ["hexapeptide", "ubiquitin"])
@pytest.mark.parametrize(("one_four", "key"), [("exclude", "no14"), ("scale", "with14")])
def test_openmm_finds_the_same(name, one_four, key):
    system = load_system(name)
    (pairs,) = all_pairs(system.atoms, one_four).chunks(10**7)
    result = reference(system.atoms, pairs.first, pairs.second, pairs.one_four)
    total = result.lennard_jones + result.coulomb
    assert total == pytest.approx(system.energies[f"openmm_nb_{key}_kcal"], rel=ENERGY["float64"])
    assert relative(result.gradient, -system.arrays[f"force_nb_{key}"]) < GRADIENT["float64"]
    expected = [system.energies[f"own_nb_no14_{term}_kcal"] for term in ("lj", "coulomb")]
    if one_four == "scale":
        expected = [
            e + system.energies[f"own_nb_14_{t}_kcal"] for e, t in zip(expected, ("lj", "coulomb"), strict=True)
        ]
    assert [result.lennard_jones, result.coulomb] == pytest.approx(expected, rel=ENERGY["float64"])
