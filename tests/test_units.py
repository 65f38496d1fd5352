import pytest

from pele_ocl.common.errors import InputError
from pele_ocl.units import BOHR_A, COULOMB_KCAL_A, POTENTIAL_UNITS, debye_kappa, in_unit, potential_factor


def test_coulomb_constant_is_openmms():
    assert COULOMB_KCAL_A == pytest.approx(1389.35457644382 / 4.184, rel=1e-13)


def test_debye_length():
    # 0.15 mol/L in water at 298.15 K and dielectric 80: 7.93 A.
    assert debye_kappa(0.15, 80, 298.15) == pytest.approx(0.126115, rel=1e-5)
    assert debye_kappa(0, 80, 298.15) == 0


def test_potential_units():
    # 1 hartree is 627.509474 kcal/mol and 27.211386246 eV; kT at 298.15 K is 0.592485 kcal/mol.
    assert 1 / potential_factor("hartree/e") == pytest.approx(627.5094740631, rel=1e-10)
    assert potential_factor("V") / potential_factor("hartree/e") == pytest.approx(27.211386245988, rel=1e-10)
    assert potential_factor("mV") == pytest.approx(43.364104, rel=1e-7)
    assert 1 / potential_factor("kT/e") == pytest.approx(0.592485, rel=1e-6)
    assert potential_factor("kT/e", 310) / potential_factor("kT/e") == pytest.approx(298.15 / 310, rel=1e-12)
    assert potential_factor("kJ/mol/e") == 4.184
    # One charge at 1 A is 1 e/A: Coulomb's constant in kcal/mol/e, and hartree/e at one bohr is 1.
    assert 1 / potential_factor("e/A") == COULOMB_KCAL_A
    assert COULOMB_KCAL_A / BOHR_A * potential_factor("hartree/e") == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize("unit", POTENTIAL_UNITS)
def test_every_potential_unit_has_a_factor(unit):
    assert potential_factor(unit) > 0


def test_a_potential_unit_that_is_none():
    with pytest.raises(InputError, match=r"unknown unit 'volts' of a potential; choose one of kcal/mol/e, "):
        potential_factor("volts")
    with pytest.raises(InputError, match="the temperature must be positive, in K; not 0"):
        potential_factor("kT/e", 0)


def test_amounts_have_units():
    assert in_unit("timestep", "0.002 ps", "fs") == 2.0 == in_unit("timestep", "2", "fs")
    assert in_unit("temperature", "310K", "K") == 310.0
    assert in_unit("friction", "2/ps", "1/ps") == 2.0
    with pytest.raises(InputError, match="timestep is '2K'; expected a number in fs, or with its unit: 2fs"):
        in_unit("timestep", "2K", "fs")
    unit = pytest.importorskip("openmm.unit")
    assert in_unit("timestep", 0.002 * unit.picosecond, "fs") == 2.0
    assert in_unit("friction", 1 / unit.picosecond, "1/ps") == 1.0
    with pytest.raises(InputError, match="temperature is 2 ps; expected an amount in K"):
        in_unit("temperature", 2 * unit.picosecond, "K")
