"""Bonded terms and 1-4 pairs: OpenMM, the definition, straight and flat geometries, choice of terms."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from bonded_helpers import computed, forces_of, molecule, of_every_kind
from conftest import random_atoms, require
from test_energy import EVERY_VARIANT, assert_same, options
from test_energy_gradient import slopes
from test_reference_energy import bonded as chain
from test_reference_nonbond import differences, relative
from tolerance import DIFFERENCES, ENERGY, GRADIENT

from pele_ocl import Atoms, InputError, PositionalRestraint
from pele_ocl.atoms import Angles, Bonded, HarmonicImpropers, OneFourPairs, Torsions
from pele_ocl.common.variant import PRECISIONS
from pele_ocl.energy import TERMS, VARIANTS, Energy, energy
from pele_ocl.energy.bonded import kernels, tasks
from pele_ocl.energy.bonded.tasks import stable_order
from pele_ocl.energy.result import ALL_TERMS, PASS_TERMS
from pele_ocl.opencl import Device
from pele_ocl.pairs import nonbonded_pairs, pairs_within
from pele_ocl.reference.bonded import bonded_terms
from pele_ocl.reference.energy import energy as reference

PEPTIDES = ("hexapeptide", "ubiquitin")
OWN = tuple(term for term in ALL_TERMS if term not in PASS_TERMS)
# Atoms and work-items of a group, and its local memory: those of CPUs, those of GPUs, and many atoms on a GPU.
ALONE, TOGETHER, IN_GLOBAL_MEMORY = (128, 1, 0), (32, 64, 40 << 10), (64, 32, 0)
SHAPES = pytest.mark.parametrize(
    "shape", [ALONE, TOGETHER, IN_GLOBAL_MEMORY], ids=["alone", "together", "in global memory"]
)


def set_shape(monkeypatch, shape) -> None:
    monkeypatch.setattr(kernels, "LOCAL_BYTES", shape[2])
    for name, value in zip(("ATOMS_CPU", "ITEMS_CPU"), shape, strict=False):
        monkeypatch.setattr(kernels, name, value)
        monkeypatch.setattr(kernels, name.replace("CPU", "GPU"), value)


@pytest.mark.parametrize(
    ("pairs", "sigma", "message"),
    [
        ([[0, 3], [1, 4], [3, 0]], 1.0, "1-4 pairs name the atoms 0 and 3 more than once; give each pair once"),
        ([[0, 3], [1, 4], [0, 4]], -1.0, "sigma of number 0 of the 1-4 pairs is -1; it cannot be negative"),
    ],
)
def test_one_four_pairs_that_cannot_be(pairs, sigma, message):
    with pytest.raises(InputError, match=message):
        Bonded(one_four=OneFourPairs(pairs, [[0.1, sigma, 0.1]] * 3))


# Against OpenMM


@pytest.mark.parametrize("term", OWN)
def test_the_definition_of_every_term_is_openmms(term):
    atoms = of_every_kind(40, seed=1)
    per_atom, gradients = bonded_terms(atoms)
    expected, gradient = computed(atoms, forces_of(atoms)[term])
    assert per_atom[term].sum() == pytest.approx(expected, rel=ENERGY["float64"])
    assert relative(gradients[term], gradient) < GRADIENT["float64"]


@pytest.mark.parametrize(
    ("name", "force_field", "precision"),
    [
        ("hexapeptide", "amber14-all.xml", "float64"),
        ("dna", "amber14-all.xml", "float32"),
        ("dna", "amber14-all.xml", "float64"),
        ("ubiquitin", "amber14-all.xml", "float32"),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in product(PEPTIDES, ["charmm36.xml"], PRECISIONS)),
    ],
)
def test_force_fields_of_openmm(device, precision, name, force_field):
    require(device, precision)
    of = molecule(name, force_field)
    result = Energy(of.atoms, **options(device, precision)).evaluate()
    for terms, (expected, gradient) in of.forces.items():
        there = [term for term in terms if term in result.terms.names]
        alone = Energy(of.atoms, only_terms=there, **options(device, precision)).evaluate()
        assert sum(result.energy[term] for term in there) == pytest.approx(expected, rel=ENERGY[precision])
        assert alone.total == pytest.approx(expected, rel=ENERGY[precision])
        assert relative(alone.gradient, gradient) < GRADIENT[precision]


# Against the definition


# Bonded terms compute in float64 whatever the precision of the passes.
@pytest.mark.parametrize(
    ("precision", "variant", "shape"),
    [
        *product(["float32"], VARIANTS, (ALONE, TOGETHER)), ("float32", "rows", IN_GLOBAL_MEMORY),
        *product(["float64"], VARIANTS, (ALONE,)), ("float64", "rows", TOGETHER),
    ],
    ids=str,
)  # fmt: skip
def test_every_term_in_every_variant(device, precision, variant, shape, monkeypatch):
    require(device, precision)
    set_shape(monkeypatch, shape)
    atoms = of_every_kind(150, seed=7)
    expected = reference(atoms)
    result = energy(atoms, per_atom=variant != "squares", **options(device, precision, variant))
    assert result.terms.names == ALL_TERMS
    assert_same(result, expected, precision)
    if result.per_atom is not None:
        for term in OWN:
            values = expected.per_atom[term]
            bound = 20 * ENERGY[precision] * np.abs(values).max()
            np.testing.assert_allclose(getattr(result.per_atom, term), values, rtol=0, atol=bound)


@pytest.mark.parametrize("shape", [ALONE, TOGETHER], ids=["alone", "together"])
def test_terms_alone_and_in_batches(device, precision, shape, monkeypatch):
    """Energies alone, a cutoff between 1-4 pairs, fixed-point positions; the same bits in every call."""
    set_shape(monkeypatch, shape)
    atoms = of_every_kind(150, seed=3)
    there = options(device, precision)
    plan = Energy(atoms, **there)
    first = plan.evaluate()
    batch = plan.evaluate_batch(np.stack([atoms.positions, atoms.positions + 1, atoms.positions]))
    for k in (0, 2):
        np.testing.assert_array_equal(batch[k].energies, first.energies)
        np.testing.assert_array_equal(batch[k].gradient, first.gradient)
    without = Energy(atoms, gradient=False, **there).evaluate()  # other kernels, whose last digits may differ
    np.testing.assert_allclose(without.energies, first.energies, rtol=ENERGY[precision])
    cut = Energy(atoms, cutoff=4.0, **there).evaluate()
    assert_same(cut, reference(atoms, cutoff=4.0), precision)
    assert cut.coulomb_14 != pytest.approx(first.coulomb_14, rel=1e-3)
    if precision == "float32":
        monkeypatch.setattr(Device, "has_float64", False)
        assert_same(Energy(atoms, **there).evaluate(), reference(atoms), precision)


@SHAPES
@pytest.mark.parametrize("term", OWN)
def test_gradients_are_slopes(device, term, shape, monkeypatch):
    if not device.has_float64:
        pytest.skip(f"{device} has no float64")
    set_shape(monkeypatch, shape)
    plan = Energy(of_every_kind(40, seed=5), only_terms=[term], **options(device, "float64"))
    gradient = plan.evaluate().gradient
    assert np.linalg.norm(gradient) > 1
    assert relative(gradient, slopes(plan)) < DIFFERENCES


@pytest.mark.parametrize("term", OWN)
def test_gradients_of_the_definition_are_slopes(term):
    atoms = of_every_kind(9, seed=6)

    def of(x):
        return bonded_terms(atoms.moved(x))[0][term].sum()

    assert relative(bonded_terms(atoms)[1][term], differences(of, atoms.positions)) < DIFFERENCES


# Geometries


def alone(positions, **tables) -> Atoms:
    """Uncharged atoms with some bonded terms and nothing else."""
    n = len(positions)
    return Atoms(
        positions=positions, charges=np.zeros(n), lj_sigma=np.ones(n), lj_epsilon=np.zeros(n),
        gb_radii=np.full(n, 1.5), gb_scales=np.full(n, 0.8), bonded=Bonded(**tables),
    )  # fmt: skip


def bent(angle: float) -> np.ndarray:
    """Three atoms of an angle, rad, along no axis."""
    rotation = np.linalg.qr(np.random.default_rng(8).normal(size=(3, 3)))[0]
    return np.array([[1.1, 0, 0], [0, 0, 0], [1.3 * np.cos(angle), 1.3 * np.sin(angle), 0]]) @ rotation


@pytest.mark.parametrize("away", [1e-3, 1e-2, 0.3])
@pytest.mark.parametrize("best", [0.0, np.pi, 1.9, 3.5])
@pytest.mark.parametrize("end", [0.0, np.pi])
def test_angles_near_their_ends(device, end, best, away):
    atoms = alone(bent(abs(end - away)), angles=Angles([[0, 1, 2]], [[50.0, best]]))
    plan = Energy(atoms, only_terms=["angle"], **options(device, "float64"))
    assert plan.evaluate().angle == pytest.approx(50 * (abs(end - away) - best) ** 2, rel=ENERGY["float64"])
    assert relative(plan.evaluate().gradient, slopes(plan, step=min(1e-4, away / 100))) < DIFFERENCES


@pytest.mark.parametrize("end", [0.0, np.pi])
def test_straight_and_folded_angles(device, precision, end):
    positions = np.array([[1.0, 2.0, 3.0], [0, 0, 0], [2.0, 4.0, 6.0]])
    positions[2] *= np.cos(end)
    for best in (end, 1.9):
        atoms = alone(positions, angles=Angles([[0, 1, 2]], [[50.0, best]]))
        result = energy(atoms, only_terms=["angle"], **options(device, precision))
        assert result.angle == pytest.approx(50 * (end - best) ** 2, rel=ENERGY[precision], abs=1e-10)
        assert not result.gradient.any()


def twisted(phi: float, angle: float = 1.9) -> np.ndarray:
    """Four atoms of a torsion and two equal angles, rad, along no axis."""
    sine, cosine = np.sin(angle), np.cos(angle)
    points = [[sine, 0, cosine], [0, 0, 0], [0, 0, 1.5], [sine * np.cos(phi), sine * np.sin(phi), 1.5 - cosine]]
    return np.array(points) @ np.linalg.qr(np.random.default_rng(9).normal(size=(3, 3)))[0]


@pytest.mark.parametrize("straight", [1e-3, 1e-2, 0.1])
@pytest.mark.parametrize("phi", [0.0, 0.5, 3.0, np.pi])
def test_torsions_of_nearly_straight_angles(device, phi, straight):
    """Their gradient grows as 1 / sine, and so does what a step changes."""
    atoms = alone(twisted(phi, np.pi - straight), torsions=Torsions([[0, 1, 2, 3]] * 2, [[2, 1, 0.3], [1.4, 3, 0.0]]))
    plan = Energy(atoms, only_terms=["torsion"], **options(device, "float64"))
    assert relative(plan.evaluate().gradient, slopes(plan, step=straight / 500)) < DIFFERENCES


def test_torsions_of_atoms_on_a_line(device, precision):
    """No torsion exists: it counts as 0, without slopes."""
    positions = np.outer([0.0, 1.1, 2.3, 3.9], [0.48, 0.6, 0.64])
    for last in (positions[3], positions[3] + [1, 0, 0]):
        atoms = alone(
            np.concatenate([positions[:3], [last]]), torsions=Torsions([[0, 1, 2, 3]], [[2, 3, 0.3]]),
            harmonic_impropers=HarmonicImpropers([[0, 1, 2, 3]], [[5, 0.7]]),
        )  # fmt: skip
        result = energy(atoms, only_terms=["torsion", "improper"], **options(device, precision))
        assert result.torsion == pytest.approx(2 * (1 + np.cos(0.3)), rel=ENERGY[precision])
        assert result.improper == pytest.approx(5 * 0.7**2, rel=ENERGY[precision])
        assert not result.gradient.any()


@pytest.mark.parametrize("best", [0.0, np.pi, -3.1, 3.1])
@pytest.mark.parametrize("phi", [-3.14, 1e-9, 0.02, 3.1, np.pi])
def test_impropers_take_the_shorter_way_round(device, phi, best):
    atoms = alone(twisted(phi), harmonic_impropers=HarmonicImpropers([[0, 1, 2, 3]], [[90.0, best]]))
    plan = Energy(atoms, only_terms=["improper"], **options(device, "float64"))
    away = (phi - best + np.pi) % (2 * np.pi) - np.pi
    assert plan.evaluate().improper == pytest.approx(90 * away**2, rel=1e-9, abs=1e-12)
    if abs(away) > 1e-6 and abs(away) < 3:
        assert relative(plan.evaluate().gradient, slopes(plan)) < DIFFERENCES


# Names and choice


def test_terms_that_are_there_have_names(device):
    atoms = of_every_kind(50, seed=2)
    assert Energy(atoms, **options(device, "float32")).evaluate().terms.names == ALL_TERMS
    few = replace(atoms, bonded=Bonded(angles=atoms.bonded.angles))
    result = energy(few, terms=[PositionalRestraint(1.0)], **options(device, "float32"))
    assert result.terms.names == ("angle", *TERMS, "restraint")
    assert result.coulomb_14 == 0
    assert energy(random_atoms(30), **options(device, "float32")).terms.names == TERMS
    without = energy(chain(30), one_four="exclude", **options(device, "float32"))
    assert without.terms.names == ("lennard_jones", "coulomb", "gb_pair", "gb_self", "nonpolar")


def test_kernels_have_room_for_a_further_bonded_term(device, monkeypatch):
    """Energies of atoms in a kernel's local memory are as many as there are terms: here one more, without tasks."""
    atoms = of_every_kind(150, seed=2)
    expected = Energy(atoms, **options(device, "float32")).evaluate()
    monkeypatch.setitem(tasks.TABLES_OF_TERMS, "further", tasks.TermTables(("bonds",)))
    result = Energy(atoms, **options(device, "float32")).evaluate()
    assert result.energy["further"] == 0
    assert [result.energy[term] for term in ALL_TERMS] == pytest.approx([expected.energy[term] for term in ALL_TERMS])
    np.testing.assert_allclose(result.gradient, expected.gradient, rtol=1e-4, atol=1e-2)


@EVERY_VARIANT
def test_chosen_terms_are_the_whole(device, variant):
    """Terms of the passes one by one and all others together, and their gradients, add up to the whole."""
    require(device, precision := "float64")
    atoms = of_every_kind(60, seed=4)
    there = options(device, precision, variant)
    whole = energy(atoms, **there)
    gradient = np.zeros_like(whole.gradient)
    for terms in (*((term,) for term in PASS_TERMS), OWN):
        only = energy(atoms, only_terms=terms, **there)
        assert only.terms.names == terms
        expected = [whole.energy[term] for term in terms]
        np.testing.assert_allclose(only.energies, expected, rtol=2 * ENERGY[precision])
        gradient += only.gradient
    assert relative(gradient, whole.gradient) < GRADIENT[precision]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["bnd"], "unknown term 'bnd'; the terms of these atoms are lennard_jones, lennard_jones_14, coulomb, "),
        (["cmap"], "unknown term 'cmap'"),
        ("coulomb", "only_terms are 'coulomb'; expected a list of names"),
        ([], "only_terms name no term"),
    ],
)
def test_names_of_no_term(names, message):
    with pytest.raises(InputError, match=message):
        Energy(chain(20), only_terms=names)


@pytest.mark.parametrize("n", [2.5, 101, -200])
def test_waves_of_a_torsion_are_whole(n):
    with pytest.raises(InputError, match=r"n of number 0 of the torsions is .*; expected a whole number, at most 100"):
        Torsions([[0, 1, 2, 3]], [[1.0, n, 0.0]])


def test_lists_hold_scaled_pairs_only():
    atoms, of = of_every_kind(20), chain(20)
    with pytest.raises(InputError, match="the 1-4 pairs of these atoms have special parameters"):
        pairs_within(atoms, 9.0, "scale")
    assert len(pairs_within(atoms, 1e3)) == 20 * 19 // 2 - 19 - 18 - 17
    own = Bonded(one_four=nonbonded_pairs(of).one_four, excluded=atoms.bonded.excluded)
    given = replace(of, bonded=own)
    assert len(pairs_within(given, 1e3, "scale")) == len(pairs_within(of, 1e3, "scale"))
    assert energy(given).energy == pytest.approx(energy(of).energy, rel=1e-12)


def test_a_term_may_join_one_that_is_there(device, precision):
    class Wall(PositionalRestraint):
        """Counts as nonpolar."""

        merges_names = True

    atoms, there = chain(50), options(device, precision)
    wall = Wall(2.0, reference=atoms.positions + 1, name="nonpolar")
    bare, result = energy(atoms, **there), energy(atoms, terms=[wall], **there)
    assert result.terms.names == TERMS
    assert result.nonpolar == pytest.approx(bare.nonpolar + 2 * 3 * 50, rel=ENERGY[precision])


@pytest.mark.parametrize("most", [0, 40, 1 << 16, 1 << 31])
def test_whole_numbers_are_sorted_and_equal_ones_stay_in_order(most):
    keys = np.random.default_rng(1).integers(0, most, 1000, endpoint=True)
    keys = np.concatenate([keys, keys[::-1]])
    np.testing.assert_array_equal(stable_order(keys), np.argsort(keys, kind="stable"))
    assert len(stable_order(keys[:0])) == 0
