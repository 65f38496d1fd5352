"""Restraints of distances and torsions, and flat bottoms: definitions, slopes, kernels, batches."""

import numpy as np
import pytest
from conftest import random_atoms
from test_energy import options
from test_reference_nonbond import differences, relative
from tolerance import DIFFERENCES, ENERGY, GRADIENT

from pele_ocl import CenterRestraint, DistanceRestraint, InputError, PositionalRestraint, TorsionRestraint
from pele_ocl.energy import Energy
from pele_ocl.opencl import Device
from pele_ocl.reference.bonded import distance, torsion

ATOMS = random_atoms(150)
NEAR = ATOMS.moved(ATOMS.positions + np.random.default_rng(4).normal(0, 0.4, (150, 3)))
RNG = np.random.default_rng(7)
FEW = np.stack([RNG.choice(20, 4, replace=False) for _ in range(40)])  # so that atoms have several restraints
K, FLAT = RNG.uniform(1, 5, 40), RNG.uniform(0, 0.6, 40)
CENTER = ATOMS.positions.mean(axis=0) + 2.0
TERMS = {
    "restraint": PositionalRestraint(2.5, ATOMS.positions, np.arange(0, 150, 3), 0.5),
    "distance_restraint": DistanceRestraint(FEW[:, :2], RNG.uniform(0, 12, 40), K, FLAT),
    "torsion_restraint": TorsionRestraint(FEW, RNG.uniform(-6, 6, 40), K, FLAT),
    "center_restraint": CenterRestraint(np.arange(0, 150, 5), 9.0, CENTER, 0.4, RNG.uniform(0, 1, 30)),
}


def by_hand(name, positions):
    """Compute the energy by eq. 1 of docs/theory/restraints.md, from the reference's angles and distances."""
    of = TERMS[name]
    if name == "restraint":
        x, k = np.linalg.norm(positions - ATOMS.positions, axis=1)[::3], 2.5
    elif name == "center_restraint":
        center = np.average(positions[::5], axis=0, weights=of.weights)
        x, k = np.linalg.norm(center - CENTER, keepdims=True), 9.0
    elif name == "distance_restraint":
        x, k = distance(positions[FEW[:, :2]])[0] - of.target, K
    else:
        x, k = torsion(positions[FEW])[0] - of.target, K
        x = np.abs(x - 2 * np.pi * np.rint(x / (2 * np.pi)))
    return (k * np.where(np.abs(x) > of.flat, np.abs(x) - of.flat, 0) ** 2).sum()


@pytest.mark.parametrize("name", TERMS)
def test_definitions(name):
    energies, gradient = TERMS[name].energies(NEAR)
    assert energies.sum() == pytest.approx(by_hand(name, NEAR.positions), rel=1e-12)
    assert energies.sum() > 1
    assert relative(gradient, differences(lambda x: by_hand(name, x), NEAR.positions)) < DIFFERENCES


@pytest.mark.parametrize("name", TERMS)
def test_kernels(device, precision, name, monkeypatch):
    """Energies, of atoms too, and gradients; the same by fixed-point positions; batches as alone."""
    there = dict(per_atom=True, only_terms=["lennard_jones"], **options(device, precision, "blocks"))
    energies, gradient = TERMS[name].energies(NEAR)
    for _ in range(2 if precision == "float32" else 1):
        bare = Energy(ATOMS, **there).evaluate(NEAR.positions)
        plan = Energy(ATOMS, terms=[TERMS[name]], **there)
        result = plan.evaluate(NEAR.positions)
        assert getattr(result, name) == pytest.approx(energies.sum(), rel=ENERGY[precision])
        bound = 20 * ENERGY[precision] * energies.max()
        np.testing.assert_allclose(getattr(result.per_atom, name), energies, rtol=0, atol=bound)
        error = np.linalg.norm(result.gradient - bare.gradient - gradient)
        assert error < GRADIENT[precision] * (np.linalg.norm(gradient) + np.linalg.norm(bare.gradient))
        batch = plan.evaluate_batch(np.stack([ATOMS.positions, NEAR.positions]))
        np.testing.assert_array_equal(batch[1].energies, result.energies)
        np.testing.assert_array_equal(batch[1].gradient, result.gradient)
        monkeypatch.setattr(Device, "has_float64", False)


@pytest.mark.parametrize(
    ("phi", "target", "flat", "away"),
    [
        (3.1, -3.1, 0.0, 2 * np.pi - 6.2), (3.1, -3.1, 0.05, 2 * np.pi - 6.25), (0.3, 0.5, 0.3, 0.0),
        (0.1, 2 * np.pi, 0.0, 0.1),
    ],
)  # fmt: skip
def test_torsions_take_the_shorter_way_round(device, phi, target, flat, away):
    atoms = random_atoms(4)
    atoms = atoms.moved([[1, 0, 0], [0, 0, 0], [0, 0, 1.5], [np.cos(phi), np.sin(phi), 1.5]])
    term = TorsionRestraint([[0, 1, 2, 3]], target, 7.0, flat)
    result = Energy(atoms, terms=[term], **options(device, "float64")).evaluate()
    assert result.torsion_restraint == pytest.approx(7 * away**2, rel=1e-9, abs=1e-12)
    assert term.energies(atoms)[0].sum() == pytest.approx(7 * away**2, rel=1e-9, abs=1e-12)


def test_where_there_is_no_direction(device, precision):
    """Atoms at their places, and on a line: energies without slopes, no NaN."""
    atoms = random_atoms(4).moved(np.outer([0.0, 1.1, 2.3, 3.9], [0.48, 0.6, 0.64]))
    terms = [PositionalRestraint(2.0, flat=0.3), TorsionRestraint([[0, 1, 2, 3]], 0.5, 2.0)]
    there = options(device, precision)
    bare, result = (Energy(atoms, terms=of, **there).evaluate() for of in ((), terms))
    assert result.restraint == 0
    assert result.torsion_restraint == pytest.approx(0.5, rel=ENERGY[precision])
    np.testing.assert_array_equal(result.gradient, bare.gradient)
    assert not TERMS["restraint"].energies(ATOMS)[1].any()
    assert not terms[1].energies(atoms)[1].any()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DistanceRestraint([[0, 150]], 1.0, 1.0), "must be of 0 to 149"),
        (lambda: TorsionRestraint([[0, -1, 2, 3]], 1.0, 1.0), "must be of 0 to 149"),
        (lambda: TorsionRestraint([[0, 1, 2, 3]], 180.0, 1.0), "numbers of radians, -2 pi to 2 pi; numpy.rad"),
        (lambda: DistanceRestraint([[0, 1, 2]], 1.0, 1.0), r"have shape \(1, 3\); expected \(m, 2\)"),
        (lambda: DistanceRestraint(np.empty((0, 2), int), 1.0, 1.0), r"have shape \(0, 2\)"),
        (lambda: DistanceRestraint([[0, 1]], -1.0, 1.0), "target must be one or 1 numbers of Angstrom, 0 or more"),
        (lambda: TorsionRestraint([[0, 1, 2, 3]], [1.0, 2.0], 1.0), "target must be one or 1 numbers of rad"),
        (lambda: TorsionRestraint([[0, 1, 2, 3]], 1.0, np.nan), "force_constant must be one or 1 numbers of kcal"),
        (lambda: TorsionRestraint([[0, 1, 2, 3]], 1.0, 1.0, -0.1), "flat must be one or 1 numbers of radians, 0 or"),
        (lambda: CenterRestraint([0, 150], 1.0), "neither a mask of 150 atoms"),
        (lambda: CenterRestraint([0, 1], 1.0, [0.0, 1.0]), r"target has shape \(2,\)"),
        (lambda: CenterRestraint([0, 1], 1.0, weights=[1.0, -1.0]), "weights must be"),
        (lambda: CenterRestraint([0, 1], 1.0), "masses need elements"),
        (lambda: PositionalRestraint(1.0, flat=-1), "flat is -1; expected a number in Angstrom, 0 or more"),
    ],
)  # fmt: skip
def test_what_does_not_fit(make, message):
    with pytest.raises(InputError, match=message):
        Energy(ATOMS, terms=[make()])


@pytest.mark.parametrize(("kind", "atoms"), [(DistanceRestraint, [[0, 1], [5, 5]]), (TorsionRestraint, [[0, 1, 2, 0]])])
def test_an_atom_twice_is_refused_at_once(kind, atoms):
    with pytest.raises(InputError, match=r"different ones; \["):
        kind(atoms, 1.0, 1.0)


def test_restraints_keep_their_own_arrays():
    pairs = FEW[:, :2].copy()
    term = DistanceRestraint(pairs, 1.0, 1.0)
    before = term.energies(ATOMS)[0]
    pairs[:] = 5
    np.testing.assert_array_equal(term.energies(ATOMS)[0], before)
