"""Structures that were shaken: their bonds are brought towards their lengths before anything else moves."""

from __future__ import annotations

import numpy as np
import pytest
from test_minimize import PEPTIDE, VACUUM, shaken

from pele_ocl import InputError, Minimizer, energy, minimize_many
from pele_ocl.atoms import Bonds
from pele_ocl.minimize import job
from pele_ocl.minimize.job import with_bonds_restored

ALL = np.ones(len(PEPTIDE), bool)
BONDS = PEPTIDE.bonded.bonds


def excess(positions: np.ndarray) -> np.ndarray:
    """Return by how much each bond of the peptide is too long."""
    i, j = PEPTIDE.bonded.bonds.atoms.T
    return np.linalg.norm(positions[i] - positions[j], axis=1) - PEPTIDE.bonded.bonds.parameters[:, 1]


@pytest.mark.parametrize("noise", [0.2, 0.3, 0.5])
def test_bonds_come_near_their_lengths(noise):
    start = shaken(noise)
    found = with_bonds_restored(BONDS, start, ALL)
    assert np.sqrt((excess(start) ** 2).mean()) > noise
    assert np.sqrt((excess(found) ** 2).mean()) < 0.15 * noise
    # Atoms go on average as far as their own noise has moved them along bonds, and the middle of all stays.
    assert np.sqrt(((found - start) ** 2).sum(axis=1).mean()) < 1.5 * noise
    np.testing.assert_allclose(found.mean(axis=0), start.mean(axis=0), atol=1e-12)
    distance = [np.linalg.norm(each - PEPTIDE.positions, axis=1).mean() for each in (found, start)]
    assert distance[0] < distance[1]


def test_others_stay_as_they_are():
    """Without noise, with little, with a few bad bonds, with positions that are none, and all at one place."""
    torn = PEPTIDE.positions.copy()
    torn[40:] += [30.0, 0, 0]
    nowhere = np.full_like(torn, np.inf)
    stretched = PEPTIDE.positions.copy()
    i, j = PEPTIDE.bonded.bonds.atoms[0]
    stretched[j] += 0.8 * (stretched[j] - stretched[i])  # one bond of 95
    starts = np.stack([PEPTIDE.positions, shaken(0.1), torn, nowhere, stretched])
    assert np.abs(excess(stretched)).max() > job.OFF
    for given in (*starts, np.zeros_like(torn)):
        np.testing.assert_array_equal(with_bonds_restored(BONDS, given, ALL), given)


def test_a_torn_bond_is_left_to_the_minimizer():
    start = shaken(0.3)
    start[40:] += [30.0, 0, 0]
    found = with_bonds_restored(BONDS, start, ALL)
    is_torn = np.abs(excess(start)) > job.TORN
    assert is_torn.any()
    assert np.abs(excess(found)[is_torn]).min() > 25
    assert np.sqrt((excess(found)[~is_torn] ** 2).mean()) < 0.05


def test_frozen_atoms_stay():
    free, start = np.arange(len(PEPTIDE)) >= 30, shaken(0.3)
    given = start.copy()
    found = with_bonds_restored(BONDS, start, free)
    np.testing.assert_array_equal(start, given)
    np.testing.assert_array_equal(found[~free], start[~free])
    assert (found[free] != start[free]).any()


def test_without_bonds():
    start = shaken(0.3)
    np.testing.assert_array_equal(with_bonds_restored(Bonds(), start, ALL), start)


def test_where_a_minimization_begins(device):
    """Energies before belong to the given positions, and the result says how many bonds were restored."""
    options = dict(model=VACUUM, device=device, tolerance=5.0)
    start = shaken(0.3)
    plan = Minimizer(PEPTIDE, **options)
    result = plan.minimize(start)
    restored = with_bonds_restored(BONDS, start, ALL)
    there = plan.minimize(restored)
    off = np.abs(excess(start))
    assert result.restored == ((off > job.OFF) & (off < job.TORN)).sum() > 0 == there.restored
    assert result.energy_before.total == pytest.approx(energy(PEPTIDE.moved(start), model=VACUUM).total, rel=1e-5)
    assert result.energy_before.total > 2 * there.energy_before.total
    np.testing.assert_array_equal(result.positions, there.positions)
    moved = np.sqrt(((result.positions - start) ** 2).sum(axis=1).mean())
    assert result.rms_displacement == pytest.approx(moved)  # from the positions that were given
    (one,) = minimize_many([PEPTIDE.moved(start)], **options)
    (other,) = minimize_many([PEPTIDE.moved(restored)], **options)
    assert one.energy_before.total == pytest.approx(result.energy_before.total, rel=1e-5)
    assert (one.restored, other.restored) == (result.restored, 0)
    assert one.energy_after.total == pytest.approx(other.energy_after.total, abs=1)


@pytest.mark.parametrize(
    "more", [{"max_iterations": 0}, {"only_terms": ["lennard_jones"], "max_iterations": 1}, {"bond_repair": False}]
)
def test_starts_that_stay_as_they_are(device, more):
    """Starts stay unchanged if bonds do not count, no step is taken, or restoring was not wanted."""
    plan, start = Minimizer(PEPTIDE, model=VACUUM, device=device, tolerance=5.0, **more), shaken(0.3)
    np.testing.assert_array_equal(plan.protocol.starts(start[np.newaxis], [plan.free])[0][0], start)
    assert plan.minimize(start).restored == 0


def test_restore_is_yes_or_no():
    with pytest.raises(InputError, match="bond_repair is 'no'"):
        Minimizer(PEPTIDE, bond_repair="no")


def test_held_bonds_are_held_from_the_first_step_on_only(device):
    """Energies before belong to the bonds that were given, not to the force field's lengths."""
    start = shaken(0.05)
    options = dict(model=VACUUM, device=device, tolerance=5.0)
    result = Minimizer(PEPTIDE, constraints="hbonds", **options).minimize(start)
    assert result.energy_before.bond == pytest.approx(energy(PEPTIDE.moved(start), model=VACUUM).terms.bond, rel=1e-5)
    assert result.restored == 0
