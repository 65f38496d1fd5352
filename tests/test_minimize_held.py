"""Minimization of what is held: frozen atoms, bonds to hydrogen, restraints; and truncated Newton."""

from dataclasses import replace

import numpy as np
import pytest
from amber_helpers import SAMPLES
from test_energy import options

import pele_ocl
from pele_ocl import (
    DistanceRestraint,
    Energy,
    InputError,
    Minimizer,
    PositionalRestraint,
    SolventModel,
    TorsionRestraint,
)
from pele_ocl.atoms import Angles, Atoms, Bonded, Bonds, elements_of
from pele_ocl.reference.bonded import torsion

VACUUM = SolventModel(gb="none")
PEPTIDE = pele_ocl.read("data/structures/hexapeptide.pdb")
NOISY = PEPTIDE.positions + np.random.default_rng(3).normal(0, 0.05, PEPTIDE.positions.shape)
IS_HYDROGEN = elements_of(PEPTIDE.labels) == "H"
TO_HYDROGEN = IS_HYDROGEN[PEPTIDE.bonded.bonds.atoms].any(axis=1)
LENGTHS = PEPTIDE.bonded.bonds.parameters[TO_HYDROGEN, 1]


def lengths(positions):
    """Return the lengths of the bonds to hydrogen."""
    i, j = PEPTIDE.bonded.bonds.atoms[TO_HYDROGEN].T
    return np.linalg.norm(positions[i] - positions[j], axis=1)


def minimizer(device, precision, atoms=PEPTIDE, **more):
    return Minimizer(atoms, **options(device, precision, "blocks"), **more)


# Bonds to hydrogen


@pytest.mark.parametrize("kind", ["hbonds", "hbonds-present"])
def test_bonds_to_hydrogen_keep_their_lengths(device, precision, kind):
    plan = minimizer(device, precision, constraints=kind, tolerance=0.1)
    batch = plan.minimize_batch(np.stack([PEPTIDE.positions, NOISY]))
    expected = LENGTHS if kind == "hbonds" else lengths(NOISY)
    assert np.abs(lengths(batch[1].positions) - expected).max() < 1e-5
    assert batch[1].stopped_by == "gradient"
    assert batch[1].rms_displacement > 0.01
    alone = plan.minimize(NOISY)
    np.testing.assert_array_equal(batch[1].positions, alone.positions)
    np.testing.assert_array_equal(batch[1].gradient, alone.gradient)


def test_the_gradient_is_that_along_the_surface(device):
    """Projected gradients have no part along a bond, and are slopes of structures with hydrogens put back."""
    plan = minimizer(device, "float64", constraints="hbonds", max_iterations=3)
    found = plan.minimize(NOISY)
    i, j = PEPTIDE.bonded.bonds.atoms[TO_HYDROGEN].T
    along = found.positions[i] - found.positions[j]
    assert np.abs((along * (found.gradient[i] - found.gradient[j])).sum(axis=1)).max() < 1e-9
    rest = np.random.default_rng(1).normal(size=PEPTIDE.positions.shape)
    tangent = plan.constraints.tangent(found.positions[np.newaxis], rest[np.newaxis])[0]

    def energy(step):
        moved = plan.constraints.placed((found.positions + step * tangent)[np.newaxis])[0]
        return plan.energy.evaluate(moved).total

    slope = (energy(2e-5) - energy(-2e-5)) / 4e-5
    assert slope == pytest.approx((found.gradient * rest).sum(), rel=1e-5)


def test_held_bonds_of_frozen_atoms(device):
    """A heavy atom that is frozen holds its hydrogens; both frozen stay as they are."""
    frozen = np.zeros(len(PEPTIDE), bool)
    frozen[:20] = ~IS_HYDROGEN[:20]
    frozen[20:30] = True
    atoms = PEPTIDE.moved(NOISY)
    found = minimizer(device, "float64", atoms, frozen=frozen, constraints="hbonds", model=VACUUM).minimize()
    np.testing.assert_array_equal(found.positions[frozen], NOISY[frozen])
    moves = ~frozen[PEPTIDE.bonded.bonds.atoms[TO_HYDROGEN]].all(axis=1)
    assert np.abs(lengths(found.positions) - LENGTHS)[moves].max() < 1e-5
    np.testing.assert_array_equal(lengths(found.positions)[~moves], lengths(NOISY)[~moves])
    assert found.stopped_by == "gradient"


# Frozen atoms


def test_frozen_atoms_stay(device, precision):
    """Minima are as low if energies among frozen atoms are left out or, with them elsewhere, computed.

    Both are equal but for rounding, which chooses among minima that are neighbours.
    """
    frozen = np.arange(len(PEPTIDE)) < 60
    start = np.where(frozen[:, None], PEPTIDE.positions, NOISY)
    found = minimizer(device, precision, frozen=frozen, tolerance=0.05).minimize(start)
    elsewhere = minimizer(device, precision, PEPTIDE.moved(NOISY), frozen=frozen, tolerance=0.05).minimize(start)
    for each in (found, elsewhere):
        np.testing.assert_array_equal(each.positions[frozen], start[frozen])
        assert not each.gradient[frozen].any()
        assert each.stopped_by == "gradient"
    assert found.energy_after.columns()["total"] == pytest.approx(elsewhere.energy_after.columns()["total"], abs=2)


def test_restraints_hold(device):
    """Stiff ones win; in a flat bottom there is no energy."""
    torsions = PEPTIDE.bonded.torsions.atoms[:1]
    target = torsion(PEPTIDE.positions[torsions])[0] + 0.4
    terms = [
        DistanceRestraint([[0, 90]], 12.0, 500.0, 0.5), TorsionRestraint(torsions, target, 500.0),
        PositionalRestraint(50.0, atoms=[40], flat=5.0),
    ]  # fmt: skip
    found = minimizer(device, "float64", terms=terms, model=VACUUM, tolerance=0.1).minimize()
    assert abs(np.linalg.norm(found.positions[0] - found.positions[90]) - 12) < 0.6
    assert np.cos(torsion(found.positions[torsions])[0] - target)[0] > 0.99
    assert found.energy_after.columns()["restraint"] == 0


# Truncated Newton


def methane() -> Atoms:
    """Make methane with bond and angle of Open Force Field 1.2.1 (b83 and a2, whose k are halved here), distorted."""
    h = 1.1 / np.sqrt(3) * np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]])
    positions = np.concatenate([np.zeros((1, 3)), h]) + np.random.default_rng(4).normal(0, 0.02, (5, 3))
    bonds = [[0, i] for i in range(1, 5)]
    angles = [[i, 0, j] for i in range(1, 5) for j in range(i + 1, 5)]
    return Atoms(
        positions=positions, charges=np.array([-0.08, 0.02, 0.02, 0.02, 0.02]), lj_sigma=np.full(5, 3.0),
        lj_epsilon=np.full(5, 0.05), bonds=np.array(bonds),
        bonded=Bonded(
            bonds=Bonds(bonds, [[753.7881517176 / 2, 1.094223427522]] * 4),
            angles=Angles(angles, [[67.57751269282 / 2, np.radians(110.2468561538)]] * 6),
            excluded=np.argwhere(np.triu(np.ones((5, 5)), 1)),
        ),
    )  # fmt: skip


@pytest.mark.parametrize("method", ["newton", "lbfgs"])
def test_methane_as_pele_minimizes_it(device, precision, method):
    """PELE prints ENERGY ANGLE: 0.0371536 for this template in vacuum (PELEMinimizer_example of peleffy-benchmarks)."""
    plan = minimizer(device, precision, methane(), method=method, model=VACUUM, tolerance=0.001)
    terms = plan.minimize().energy_after.columns()
    assert terms["angle"] == pytest.approx(0.0371536, abs=1e-6)
    assert terms["bond"] < 1e-6
    assert terms["total"] == pytest.approx(0.0371538, abs=1e-6)


def test_truncated_newton(device, precision):
    """PELE's limits of 3 rounds of 65 steps suffice: it ends no higher than L-BFGS by a hundredth."""
    there = dict(tolerance=0.1)
    newton = minimizer(device, precision, method="newton", **there)
    batch = newton.minimize_batch(np.stack([NOISY, PEPTIDE.positions]))
    expected = minimizer(device, precision, **there).minimize_batch(np.stack([NOISY, PEPTIDE.positions]))
    for found, other in zip(batch, expected, strict=True):
        assert found.stopped_by == "gradient"
        assert found.rms_gradient <= 0.101
        assert found.iterations < 195
        assert found.evaluations > 2 * found.iterations
        total, least = (each.energy_after.columns()["total"] for each in (found, other))
        assert total <= least + 0.01 * abs(least)
    alone = newton.minimize(NOISY)
    np.testing.assert_array_equal(alone.positions, batch[0].positions)


def test_truncated_newton_converges_fast_in_float64(device):
    found = minimizer(device, "float64", methane(), method="newton", model=VACUUM, tolerance=1e-6).minimize()
    assert found.rms_gradient <= 1e-6
    assert found.iterations < 12


# Rounds at fixed Born radii


def test_radii_of_the_beginning(device, precision, monkeypatch):
    """Radii, and so the gradient, are the end's once nothing moves any more; with few slots, too."""
    starts = np.stack([PEPTIDE.positions, NOISY, 2 * PEPTIDE.positions - NOISY, NOISY + 0.01])
    there = dict(fixed_radii=True, tolerance=0.1)
    once = minimizer(device, precision, max_iterations=300, **there).minimize(NOISY)
    plan = minimizer(device, precision, rounds=20, **there)
    alone = plan.minimize(NOISY)
    assert alone.evaluations > once.evaluations + 1
    assert alone.rms_gradient < 0.101
    assert alone.rms_gradient < once.rms_gradient
    monkeypatch.setattr("pele_ocl.plan.plan.CHUNK_ATOMS", 2 * len(PEPTIDE))
    few = minimizer(device, precision, max_iterations=10, **there)
    batch = few.minimize_batch(starts)
    for k in range(4):
        np.testing.assert_array_equal(few.minimize(starts[k]).positions, batch[k].positions)


def test_it_is_a_minimum_at_these_radii(device):
    """Energies with the Born radii of the beginning, not the end's, are minimal; the GB gradient is by hand."""
    plan = minimizer(device, "float64", fixed_radii=True, tolerance=0.01)
    found = plan.minimize(NOISY)
    assert found.stopped_by == "gradient"
    assert found.rms_gradient > 0.1
    bare = SolventModel()
    born = plan.energy.evaluate(NOISY).born_radii
    d = found.positions[:, None] - found.positions
    r2, product = (d**2).sum(axis=2), np.outer(born, born)
    gauss = np.exp(-r2 / (4 * product))
    f = np.sqrt(r2 + product * gauss)
    factors = bare.coulomb_constant * (1 - bare.outside) * np.outer(PEPTIDE.charges, PEPTIDE.charges)
    gb = ((factors * (1 - gauss / 4) / f**3)[:, :, None] * d).sum(axis=1)
    rest = Energy(PEPTIDE, **options(device, "float64", "blocks"), model=VACUUM).evaluate(found.positions).gradient
    assert np.sqrt(((rest + gb) ** 2).sum() / len(PEPTIDE)) < 0.0101


# AMBER


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="AMBER's test files are not beside the checkout")
def test_a_peptide_that_sander_minimized(device, precision):
    """Fifty steps of sander end at -99.162 kcal/mol."""
    atoms = pele_ocl.read(SAMPLES / "Ala3.top", coordinates=SAMPLES / "Ala3.crd")
    there = dict(model=SolventModel.like("amber", gb="gbn2"))
    for method, iterations in (("lbfgs", 50), ("newton", 50), ("lbfgs", 10_000)):
        plan = minimizer(device, precision, atoms, method=method, max_iterations=iterations, tolerance=0.01, **there)
        found = plan.minimize()
        assert found.energy_before.columns()["total"] == pytest.approx(-78.4165, abs=1e-3)
        assert found.energy_after.columns()["total"] <= -99.162
    assert found.energy_after.columns()["total"] == pytest.approx(-107.8966, abs=2e-3)


@pytest.mark.parametrize(
    ("atoms", "more", "message"),
    [
        (PEPTIDE, dict(constraints="all"), "constraints is 'all'; choose 'hbonds' or 'hbonds-present'"),
        (PEPTIDE, dict(constraints="hbonds", method="newton"), "truncated Newton does not support constraints"),
        (PEPTIDE, dict(frozen=np.ones(len(PEPTIDE), bool)), "all atoms are frozen"),
        (
            PEPTIDE,
            dict(frozen=IS_HYDROGEN, constraints="hbonds"),
            "is frozen but .* is not, and their bond is constrained",
        ),
        (
            replace(PEPTIDE, labels=None),
            dict(constraints="hbonds"),
            "need elements, which these atoms do not have",
        ),
    ],
)
def test_what_does_not_fit(atoms, more, message):
    with pytest.raises(InputError, match=message):
        Minimizer(atoms, model=VACUUM, **more)
