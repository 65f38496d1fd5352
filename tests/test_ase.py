"""Calculator for ASE, and arrays of other libraries in and out without a copy."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import ase
import ase.io
import numpy as np
import pytest
from ase.calculators.fd import calculate_numerical_forces
from ase.optimize import BFGS, LBFGS
from ase.units import kcal, mol
from scipy.optimize import minimize

import pele_ocl
from pele_ocl import Atoms, Energy, InputError, Minimizer, PositionalRestraint, read
from pele_ocl.ase import Calculator, to_ase

STRUCTURES = Path(__file__).parent.parent / "data" / "structures"


@pytest.fixture(scope="module")
def dipeptide() -> Atoms:
    return read(STRUCTURES / "hexapeptide.pdb", select="resid 5:6")


def test_energy_and_forces_in_the_units_of_ase(dipeptide: Atoms) -> None:
    atoms = to_ase(dipeptide)
    assert atoms.get_chemical_symbols() == dipeptide.labels.elements.tolist()
    atoms.calc = Calculator(dipeptide, precision="float64")
    atoms.positions += np.random.default_rng(3).normal(0, 0.02, atoms.positions.shape)
    result = Energy(dipeptide, precision="float64", per_atom=True).evaluate(atoms.positions)
    assert atoms.get_potential_energy() == pytest.approx(result.total * kcal / mol, rel=1e-12)
    np.testing.assert_allclose(atoms.get_forces(), -result.gradient * kcal / mol, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(atoms.get_potential_energies(), result.per_atom.total * kcal / mol, rtol=1e-9)
    some = np.random.default_rng(4).permutation(len(atoms))[:3]
    atoms.calc.results.clear()
    numerical = calculate_numerical_forces(atoms, eps=1e-4, iatoms=some)
    np.testing.assert_allclose(numerical, atoms.get_forces()[some], atol=1e-6)


def test_atoms_of_ase_are_known_by_their_names(dipeptide: Atoms, tmp_path: Path) -> None:
    """In any order, of `to_ase` and of ASE's reader of PDB files; forces and energies are in the order of ASE."""
    calculator = Calculator(dipeptide, precision="float64")
    atoms = to_ase(dipeptide)
    atoms.calc = calculator
    order = np.random.default_rng(5).permutation(len(atoms))
    ase.io.write(tmp_path / "x.pdb", atoms[order])
    for other in (atoms[order], ase.io.read(tmp_path / "x.pdb")):
        other.positions = atoms.positions[order]
        other.calc = calculator
        assert other.get_potential_energy() == pytest.approx(atoms.get_potential_energy(), rel=1e-12)
        forces, energies = other.get_forces(), other.get_potential_energies()
        np.testing.assert_allclose(forces, atoms.get_forces()[order], atol=1e-9)
        np.testing.assert_allclose(energies, atoms.get_potential_energies()[order], atol=1e-9)
    atoms.arrays["atomtypes"][3] = "X"
    calculator.reset()  # ASE looks at elements and positions alone
    with pytest.raises(InputError, match=r"the atoms of ASE: has atom 3 \(A:.*:X\) where the molecule has atom 3"):
        atoms.get_potential_energy()


def test_optimizers_of_ase_and_scipy_find_the_minimum_that_minimize_finds(dipeptide: Atoms) -> None:
    """Held where it is, the molecule has one minimum nearby."""
    held = [PositionalRestraint(50.0)]
    ours = Minimizer(dipeptide, terms=held, tolerance=1e-3, precision="float64").minimize()
    assert ours.energy_before.total - ours.energy_after.total > 0.01
    atoms = to_ase(dipeptide)
    atoms.calc = Calculator(dipeptide, terms=held, precision="float64")
    LBFGS(atoms, logfile=None).run(fmax=1e-4, steps=300)
    assert atoms.get_potential_energy() * mol / kcal == pytest.approx(float(ours.energy_after.total), abs=1e-4)
    np.testing.assert_allclose(atoms.positions, ours.positions, atol=1e-3)
    plan = Energy(dipeptide, terms=held, precision="float64")

    def value(x: np.ndarray) -> tuple[float, np.ndarray]:
        result = plan.evaluate(x.reshape(-1, 3))
        return result.total, result.gradient.ravel()

    found = minimize(value, dipeptide.positions.ravel(), jac=True, method="L-BFGS-B", options={"gtol": 1e-3})
    assert found.fun == pytest.approx(float(ours.energy_after.total), abs=1e-4)


def test_the_options_of_energy(dipeptide: Atoms) -> None:
    """Chosen terms need their own parameters alone; at fixed Born radii forces are others."""
    bare = replace(dipeptide, gb_radii=None, gb_scales=None)
    atoms = to_ase(bare)
    atoms.calc = Calculator(bare, only_terms=["lennard_jones"])
    assert atoms.get_potential_energy() == pytest.approx(pele_ocl.energy(dipeptide).lennard_jones * kcal / mol)
    atoms.calc = Calculator(dipeptide, fixed_radii=True, precision="float64")
    fixed = pele_ocl.energy(dipeptide, fixed_radii=True, precision="float64")
    np.testing.assert_allclose(atoms.get_forces(), -fixed.gradient * kcal / mol, rtol=1e-12, atol=1e-12)


def test_an_optimizer_of_ase_finds_the_minimum(dipeptide: Atoms) -> None:
    held = PositionalRestraint(50.0, dipeptide.positions)
    atoms = to_ase(dipeptide)
    atoms.calc = Calculator(dipeptide, precision="float64", terms=[held])
    atoms.positions += np.random.default_rng(5).normal(0, 0.02, atoms.positions.shape)
    before = atoms.get_potential_energy()
    assert BFGS(atoms, logfile=None).run(fmax=1e-3, steps=60)
    assert np.linalg.norm(atoms.get_forces(), axis=1).max() < 1e-3
    assert atoms.get_potential_energy() < before - 0.01
    assert len(atoms.calc._plans) == 1


def nameless_carbons(atoms: ase.Atoms) -> None:
    del atoms.arrays["atomtypes"]
    atoms.set_atomic_numbers([6] * len(atoms))


def test_atoms_that_are_not_the_molecules(dipeptide: Atoms) -> None:
    for change, sentence in (
        (lambda atoms: atoms.pop(), "ASE gives 19 atoms; the calculator is for 20"),
        (lambda atoms: atoms.set_pbc(True), "periodic boundaries are not supported"),
        (lambda atoms: atoms.set_atomic_numbers([6] * len(atoms)), r"atom 0 \(A:GLY5:N\) is C"),
        (nameless_carbons, r"ASE gives C as atom 0 \(A:GLY5:N\)"),
    ):
        atoms = to_ase(dipeptide)
        change(atoms)
        atoms.calc = Calculator(dipeptide)
        with pytest.raises(InputError, match=sentence):
            atoms.get_potential_energy()
    unknown = ase.Atoms("X2", [[0, 0, 0], [4, 0, 0]])
    known = {"gb_radii": [1.5, 1.5], "gb_scales": [0.8, 0.8], "lj_sigma": [3, 3], "lj_epsilon": [0.1, 0.1]}
    bare = Atoms(unknown.positions, [0.5, -0.5], **known)
    unknown.calc = Calculator(bare)
    assert unknown.get_potential_energy() == pytest.approx(pele_ocl.energy(bare).total * kcal / mol)
    with pytest.raises(InputError, match="expected Atoms"):
        Calculator("protein.pdb")  # type: ignore[arg-type]


def test_the_module_is_loaded_when_it_is_asked_for() -> None:
    code = "import sys, pele_ocl; assert 'ase' not in sys.modules; pele_ocl.ase.Calculator; assert 'ase' in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parent.parent)
    code = (
        "import sys; sys.modules['ase'] = None\n"
        "import pele_ocl\n"
        "try: pele_ocl.ase\n"
        "except pele_ocl.PeleError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=Path(__file__).parent.parent
    )
    assert done.stdout == "the calculator needs ASE, which is not installed: pip install 'pele-ocl[ase]'\n"


class Tensor:
    """An array of another library, as torch's on a CPU: its memory by DLPack alone."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values
        self.exports = 0

    def __dlpack__(self, **options: object) -> object:
        self.exports += 1
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.values.__dlpack_device__()


class OnGpu:
    """A tensor that NumPy cannot see, as torch's on a GPU."""

    def __array__(self, *_: object, **__: object) -> np.ndarray:
        raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() first")


def test_arrays_of_other_libraries(dipeptide: Atoms) -> None:
    plan = Energy(dipeptide)
    there = dipeptide.positions + 0.01
    expected = plan.evaluate(there)
    tensor = Tensor(there)
    assert plan.evaluate(tensor).total == expected.total
    assert tensor.exports == 1
    batch = plan.evaluate_batch(Tensor(np.stack([there, there])))
    assert batch.total.tolist() == [expected.total] * 2
    assert pele_ocl.common.arguments.as_array(tensor).ctypes.data == there.ctypes.data
    assert pele_ocl.common.arguments.numbers("positions", tensor).ctypes.data == there.ctypes.data
    with pytest.raises(InputError, match=r"positions are not an array of numbers: can't convert cuda:0"):
        plan.evaluate(OnGpu())
    with pytest.raises(InputError, match=r"conformations are not an array of numbers: can't convert cuda:0"):
        plan.evaluate_batch(OnGpu())


def test_results_give_their_memory_away(dipeptide: Atoms) -> None:
    """A library that takes arrays by DLPack, as torch.from_numpy does too, writes where NumPy reads."""
    plan = Energy(dipeptide)
    result, batch = plan.evaluate(), plan.evaluate_batch(np.stack([dipeptide.positions] * 2))
    for array in (result.gradient, result.born_radii, batch.gradients, batch.born_radii):
        assert np.shares_memory(np.from_dlpack(array), array)
        assert array.flags.writeable
    kept = result.gradient.copy()
    plan.evaluate(dipeptide.positions + 0.3)
    assert (result.gradient == kept).all()
