"""NumPy definition of the whole energy against OpenMM, analytic values and differences of itself."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import load_system, random_atoms
from test_reference_nonbond import differences, relative
from tolerance import DIFFERENCES, ENERGY, GRADIENT

from pele_ocl import Atoms, SolventModel
from pele_ocl.reference import solvent
from pele_ocl.reference.energy import PAIR_TERMS, TERMS, energy, hct_slope
from pele_ocl.units import COULOMB_KCAL_A

OPENMM = SolventModel(solvent_dielectric=78.5)
SALT = SolventModel(ionic_strength=0.15, solute_dielectric=2)
# Offset and scaled radii in every branch of the HCT term, for distances around 1 A.
BRANCHES = {
    "apart": (0.4, 0.3),
    "overlapping": (0.9, 0.8),
    "centre inside": (1.4, 2.1),
    "atom inside the sphere": (0.5, 3.0),
    "sphere inside the atom": (3.0, 0.5),
}


def bonded(n, seed=0, **changes):
    """Random atoms with the bonds of a chain."""
    atoms = random_atoms(n, seed)
    return replace(atoms, bonds=np.column_stack([np.arange(n - 1), np.arange(1, n)]), **changes)


def three_atoms(branch):
    """Place the second atom's sphere to the first atom as the branch says; a third atom is apart."""
    rho, s = BRANCHES[branch]
    return Atoms(
        positions=[[0, 0, 0], [0.6, 0.5, 0.62], [4, 0, 1]], charges=[0.4, -0.3, 0.2], lj_sigma=[1.0, 0.9, 1.2],
        lj_epsilon=[0.1, 0.2, 0.1], gb_radii=[rho + 0.09, s + 0.09, 1.6], gb_scales=[0.7, 1.0, 0.8],
    )  # fmt: skip


def assert_gradients_are_slopes(atoms, model, **options):
    """Check that every term's gradient, and the sum's, are central differences of its energy."""
    found = energy(atoms, model, **options)

    def sums(x):
        moved = energy(replace(atoms, positions=x), model, **options)
        return np.array([*(moved.per_atom[name].sum() for name in found.gradients), moved.total])

    *slopes, whole = np.moveaxis(differences(sums, atoms.positions), -1, 0)
    for (name, gradient), slope in zip(found.gradients.items(), slopes, strict=True):
        if not np.abs(gradient).max() > 0:
            continue
        assert relative(gradient, slope) < DIFFERENCES, name
    assert relative(found.gradient, whole) < DIFFERENCES


# Against OpenMM


@pytest.mark.parametrize("name", ["hexapeptide", "ubiquitin"])
def test_energies_and_forces_of_openmm(name):
    system = load_system(name)
    result = energy(system.atoms, OPENMM)
    gradients, arrays, energies = result.gradients, system.arrays, system.energies
    expected = energies["openmm_nb_with14_kcal"] + energies["openmm_gb_78.5sa_kcal"]
    assert result.total == pytest.approx(expected, rel=ENERGY["float64"])
    gb = gradients["gb_pair"] + gradients["gb_self"]
    vacuum = sum(gradients[of] for of in ("lennard_jones", "lennard_jones_14", "coulomb", "coulomb_14"))
    assert relative(vacuum, -arrays["force_nb_with14"]) < 1e-13
    assert relative(gb, -arrays["force_gb_78.5_nosa"]) < 1e-13
    assert relative(gb + gradients["nonpolar"], -arrays["force_gb_78.5_sa"]) < 1e-13
    assert result.per_atom["nonpolar"].sum() == pytest.approx(energies["own_ace_kcal"], rel=ENERGY["float64"])


def test_without_one_four_pairs():
    system = load_system("hexapeptide")
    gradients = energy(system.atoms, OPENMM, one_four="exclude").gradients
    assert relative(gradients["lennard_jones"] + gradients["coulomb"], -system.arrays["force_nb_no14"]) < 1e-13


# Analytic


def test_two_ions_far_apart():
    atoms = Atoms(
        positions=[[0, 0, 0], [0, 0, 100]], charges=[1, -1], gb_radii=[2, 2], gb_scales=[0.8, 0.8],
        lj_sigma=[2, 2], lj_epsilon=[0, 0],
    )  # fmt: skip
    result = energy(atoms)
    share = 1 - 1 / 80
    assert result.per_atom["coulomb"].sum() == pytest.approx(-COULOMB_KCAL_A / 100, rel=1e-14)
    assert result.per_atom["gb_pair"].sum() == pytest.approx(COULOMB_KCAL_A * share / 100, rel=1e-12)
    assert result.per_atom["gb_self"].sum() == pytest.approx(-COULOMB_KCAL_A * share / 1.91, rel=1e-5)
    # What is left of Coulomb's force in the solvent; each ion's Born radius hardly depends on the other.
    assert result.gradient[1, 2] == pytest.approx(COULOMB_KCAL_A / 80 / 100**2, rel=1e-3)


@pytest.mark.parametrize("branch", BRANCHES)
def test_slope_of_the_hct_term(branch):
    rho, s = (np.array([value]) for value in BRANCHES[branch])
    r, step = np.array([1.0]), 1e-4
    terms = [solvent.hct_term(r + k * step, rho, s) for k in (-2, -1, 1, 2)]
    slope = (terms[0] - 8 * terms[1] + 8 * terms[2] - terms[3]) / (12 * step)
    assert hct_slope(r, rho, s) == pytest.approx(slope, rel=1e-9, abs=1e-10)


# Gradient


@pytest.mark.parametrize("model", [SolventModel(), SALT], ids=["water", "salt"])
@pytest.mark.parametrize("combining", ["arithmetic", "geometric"])
def test_gradients_are_slopes(model, combining):
    assert_gradients_are_slopes(bonded(12, combining=combining), model)


@pytest.mark.parametrize("branch", BRANCHES)
def test_gradients_are_slopes_in_every_branch(branch):
    assert_gradients_are_slopes(three_atoms(branch), SolventModel())


def test_fixed_radii_are_fixed():
    atoms = bonded(10, seed=3)
    assert atoms.gb_radii is not None
    born = energy(atoms).born_radii
    assert_gradients_are_slopes(atoms, SolventModel(), fixed_radii=born)
    fixed, full = energy(atoms, fixed_radii=born), energy(atoms)
    assert fixed.total == full.total
    for term in ("lennard_jones", "coulomb"):
        np.testing.assert_array_equal(fixed.gradients[term], full.gradients[term])
    assert not fixed.gradients["gb_self"].any()
    assert not fixed.gradients["nonpolar"].any()


# Options


def test_cutoff_ends_the_pair_terms():
    atoms = bonded(40, seed=4)
    whole, cut = energy(atoms), energy(atoms, cutoff=5.0)
    np.testing.assert_array_equal(cut.born_radii, whole.born_radii)
    np.testing.assert_array_equal(cut.per_atom["gb_self"], whole.per_atom["gb_self"])
    for term in PAIR_TERMS:
        assert cut.per_atom[term].sum() != pytest.approx(whole.per_atom[term].sum(), rel=1e-4)
    reaching = energy(atoms, cutoff=1000.0)
    assert reaching.total == whole.total
    assert_gradients_are_slopes(bonded(10, seed=5), SolventModel(), cutoff=5.0)


def test_gradients_add_up_to_nothing():
    result = energy(bonded(60, seed=6), SALT, one_four="exclude")
    for term in TERMS:
        gradient = result.gradients[term]
        assert np.abs(gradient.sum(axis=0)).max() < GRADIENT["float64"] * np.abs(gradient).max()
