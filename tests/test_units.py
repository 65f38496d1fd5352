import pytest

from pele_ocl.units import COULOMB_KCAL_A, debye_kappa


def test_coulomb_constant_is_openmms():
    assert COULOMB_KCAL_A == pytest.approx(1389.35457644382 / 4.184, rel=1e-13)


def test_debye_length():
    # 0.15 mol/L in water at 298.15 K and dielectric 80: 7.93 A.
    assert debye_kappa(0.15, 80, 298.15) == pytest.approx(0.126115, rel=1e-5)
    assert debye_kappa(0, 80, 298.15) == 0
