"""NumPy definition against analytic values and numerical integration: what everything else is held against."""

import numpy as np
import pytest

from pele_ocl import SolventModel
from pele_ocl.reference import solvent as reference
from pele_ocl.units import COULOMB_KCAL_A

MODEL = SolventModel()


def descreening_integral(r, rho, s, n=20001):
    """Integrate 1/d^4 over the sphere outside the atom's own radius, over 2 pi: the HCT term's meaning.

    In shells of radius d around the atom, the sphere covers the share (s^2 - (d - r)^2) / (4 d r) of a shell.
    """
    low, high = max(rho, abs(r - s)), r + s
    if high <= low:
        return 0.0
    d = np.linspace(low, high, n)
    share = (s * s - (d - r) ** 2) / (4 * d * r)
    values = share * d**-2
    partly = (values[1:] + values[:-1]).sum() * (d[1] - d[0])
    wholly = 2 * (1 / rho - 1 / low) if rho < s - r else 0.0
    return partly + wholly


@pytest.mark.parametrize(
    ("r", "rho", "s"),
    [
        (5.0, 1.5, 1.2),  # apart
        (2.0, 1.5, 1.2),  # overlapping
        (1.0, 1.5, 2.0),  # overlapping, centre inside
        (0.5, 1.2, 3.0),  # the atom lies inside the sphere
        (0.5, 3.0, 1.2),  # the sphere lies inside the atom
        (2.7, 1.5, 1.2),  # touching from outside, r = rho + s
        (0.9, 0.3, 1.2),  # at the switch rho = s - r
    ],
)
def test_hct_term_is_the_integral_it_stands_for(r, rho, s):
    term = reference.hct_term(np.array([r]), np.array([rho]), np.array([s]))[0]
    assert term == pytest.approx(descreening_integral(r, rho, s), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("switch", ["rho = r + s", "rho = |r - s|", "rho = s - r", "r = s"])
def test_hct_term_is_continuous_at_its_switches(switch):
    rho, s = 1.5, 2.3
    r = {"rho = r + s": 0.0, "rho = |r - s|": s + rho, "rho = s - r": s - rho, "r = s": s}[switch]
    if switch == "rho = r + s":
        rho, r = s + 0.7, 0.7
    values = reference.hct_term(np.array([r - 1e-9, r, r + 1e-9]), np.array([rho]), np.array([s]))
    np.testing.assert_allclose(values, values[1], atol=1e-8)


def test_lone_atom_has_its_offset_radius():
    psi, born = reference.born_radii(np.zeros((1, 3)), np.array([1.7]), np.array([0.8]), MODEL)
    assert psi[0] == 0
    assert born[0] == pytest.approx(1.61, rel=1e-15)


def test_born_ion():
    # The Born energy of an ion, -k/2 (1 - 1/80) q^2 / B.
    energy = reference.gb_self(np.array([2.0]), np.array([1.5]), MODEL)[0]
    assert energy == pytest.approx(-COULOMB_KCAL_A / 2 * (1 - 1 / 80) * 4 / 1.5, rel=1e-15)


def test_pair_energy_goes_to_coulomb_at_a_distance():
    positions = np.array([[0, 0, 0], [300.0, 0, 0]])
    pair = reference.gb_pair(positions, np.array([1.0, -1.0]), np.array([2.0, 3.0]), MODEL)
    assert pair.sum() == pytest.approx(COULOMB_KCAL_A * (1 - 1 / 80) / 300, rel=1e-12)
    assert pair[0] == pytest.approx(pair[1], rel=1e-15)


def test_salt_screens():
    salt = SolventModel(ionic_strength=0.15)
    assert salt.kappa == pytest.approx(0.092064, rel=1e-5)
    f = np.array([10.0])
    assert reference.gb_factor(f, salt)[0] == pytest.approx((1 - np.exp(-0.92064) / 80) / 10, rel=1e-6)


def test_nonpolar_of_a_lone_atom():
    # A sphere of radius R + 1.4 has the surface 4 pi (R + 1.4)^2.
    energy = reference.nonpolar(np.array([1.7]), np.array([1.7]), MODEL)[0]
    assert energy == pytest.approx(0.0054 * 4 * np.pi * 3.1**2, rel=1e-15)
