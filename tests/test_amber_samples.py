"""Energies printed by AMBER's own programs for the systems of its test suites, term by term.

The files stand beside the checkout, not in it: tests/amber_helpers.py. Numbers are sander's; ash is of ParmEd's
tests, Ala3 of pytraj's, DPDP of cpptraj's.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from amber_helpers import SAMPLES, bonded_energies

import pele_ocl
from pele_ocl import Atoms, Energy, Minimizer, SolventModel
from pele_ocl.atoms import Bonds
from pele_ocl.common.inputfile import read_file
from pele_ocl.energy import EnergyResult
from pele_ocl.formats import place, read_topology
from pele_ocl.formats.amber import CHARGE_UNIT

pytestmark = pytest.mark.skipif(not SAMPLES.is_dir(), reason="AMBER's test files are not beside the checkout")

# kcal/mol: half of the fourth decimal, and what sander's series for far spheres leave out of GB energies.
LAST_DIGIT = 6e-5
SALT = 1.0  # mol/L
MODELS = {"hct": 1, "obc1": 2, "obc2": 5, "gbn": 7, "gbn2": 8}  # and sander's igb
ASH = {"hct": -26.4850, "obc1": -28.1689, "obc2": -25.4639, "gbn": -21.1012, "gbn2": -23.4639}
ASH_SALT = {"hct": -26.5051, "obc1": -28.1895, "obc2": -25.4835, "gbn": -21.1194, "gbn2": -23.4832}
ALA3 = {
    "bond": 5.5935, "angle": 5.1218, "torsion": 20.4734, "lennard_jones": 4.7312, "coulomb": -192.8593, "gb": -92.8858,
    "lennard_jones_14": 9.7444, "coulomb_14": 161.6642,
}  # fmt: skip
# Columns of DPDP_sander.dat behind the number of the frame and the total.
COLUMNS = ("lennard_jones", "coulomb", "gb", "bond", "angle", "torsion", "lennard_jones_14", "coulomb_14", "nonpolar")
TENSION = 0.005  # kcal/mol/A^2, sander's surften


def printed(result: EnergyResult) -> dict[str, float]:
    """Return the terms as sander prints them: torsions with impropers, pairs and self terms of GB in one."""
    terms = dict(result.energy)
    terms["torsion"] += terms.pop("improper", 0.0)
    terms["gb"] = terms.pop("gb_pair") + terms.pop("gb_self")
    return terms


def energy_of(atoms: Atoms, **model: object) -> dict[str, float]:
    plan = Energy(atoms, model=SolventModel.like("amber", **model), gradient=False, precision="float64")
    return printed(plan.evaluate())


def assert_printed(found: dict[str, float], expected: dict[str, float]) -> None:
    wrong = {name: (found[name], value) for name, value in expected.items() if abs(found[name] - value) > LAST_DIGIT}
    assert not wrong


@pytest.fixture(scope="module")
def dpdp() -> tuple[Atoms, np.ndarray, np.ndarray]:
    """Read the atoms, the frames (m, n, 3), and the rows of sander's energies.

    sander left out the bonds with hydrogen, which were constrained (ntf=2).
    """
    topology, trajectory = read_topology(SAMPLES / "DPDP.parm7"), read_file(SAMPLES / "DPDP.nc")
    rows = np.loadtxt(SAMPLES / "DPDP_sander.dat")
    frames = np.stack([place(topology, trajectory, k).positions for k in range(1, len(rows) + 1)])
    atoms = topology.with_positions(frames[0])
    bonds = atoms.bonded.bonds
    heavy = (atoms.labels.elements[bonds.atoms] != "H").all(axis=1)
    bonded = replace(atoms.bonded, bonds=Bonds(bonds.atoms[heavy], bonds.parameters[heavy]))
    return replace(atoms, bonded=bonded), frames, rows


def test_tables_give_the_printed_terms(dpdp):
    """Sum the tables alone by NumPy."""
    coulomb = CHARGE_UNIT**2
    ala3 = pele_ocl.read(SAMPLES / "Ala3.top", coordinates=SAMPLES / "Ala3.crd")
    found = bonded_energies(ala3.bonded, ala3.positions, coulomb)
    assert_printed(found, {name: value for name, value in ALA3.items() if name in found})
    atoms, frames, rows = dpdp
    for x, row in zip(frames, rows, strict=True):
        found = bonded_energies(atoms.bonded, x, coulomb)
        assert_printed(found, {name: v for name, v in zip(COLUMNS, row[2:].tolist(), strict=True) if name in found})


def test_what_the_files_say():
    atoms = pele_ocl.read(SAMPLES / "ash.parm7", coordinates=SAMPLES / "ash.rst7")
    assert (len(atoms), atoms.gb_radii_set, atoms.notes) == (25, "mbondi", ())
    assert atoms.charges.sum() == pytest.approx(0, abs=1e-6)
    assert [str(residue) for residue in atoms.labels.residues] == ["ACE1", "ASH2", "NME3"]
    ala3 = pele_ocl.read(SAMPLES / "Ala3.top", coordinates=SAMPLES / "Ala3.crd")
    assert (len(ala3), ala3.gb_radii_set) == (34, "mbondi3")
    dpdp = pele_ocl.read(SAMPLES / "DPDP.parm7", coordinates=SAMPLES / "DPDP.nc")
    assert (len(dpdp), dpdp.gb_radii_set) == (332, "file")
    assert dpdp.notes[0].endswith("DPDP.nc contains 100 frames; the first was read; `model` selects another")


@pytest.mark.parametrize("salt", [0.0, SALT])
@pytest.mark.parametrize("gb", MODELS)
def test_ash(gb, salt):
    atoms = pele_ocl.read(SAMPLES / "ash.parm7", coordinates=SAMPLES / "ash.rst7")
    if gb in ("gbn", "gbn2"):
        atoms = atoms.with_radii("mbondi3")
    found = energy_of(atoms, gb=gb, ionic_strength=salt)
    assert_printed(found, {"bond": 5.4435, "coulomb": -101.5565, "gb": (ASH_SALT if salt else ASH)[gb]})


def test_ala3():
    atoms = pele_ocl.read(SAMPLES / "Ala3.top", coordinates=SAMPLES / "Ala3.crd")
    assert_printed(energy_of(atoms, gb="gbn2"), ALA3)


def test_dpdp(dpdp):
    """Every term of a hundred frames in a batch, with the surface area of LCPO."""
    atoms, frames, rows = dpdp
    model = SolventModel.like("amber", gb="hct", surface="lcpo", surface_tension=TENSION)
    batch = Energy(atoms, model=model, gradient=False, precision="float64").evaluate_batch(frames)
    areas = np.loadtxt(SAMPLES / "surf.dat")[:, 1]
    for k, row in enumerate(rows.tolist()):
        found = printed(batch[k])
        assert_printed(found, dict(zip(COLUMNS, row[2:], strict=True)))
        assert found["total"] == pytest.approx(row[1], abs=LAST_DIGIT)
        assert found["nonpolar"] / TENSION == pytest.approx(areas[k], abs=LAST_DIGIT)


def test_minimizing_ala3_goes_below_sander():
    """Sander's minimizer is at -99.162 kcal/mol after 50 steps from these positions."""
    atoms = pele_ocl.read(SAMPLES / "Ala3.top", coordinates=SAMPLES / "Ala3.crd")
    model = SolventModel.like("amber", gb="gbn2")
    few = Minimizer(atoms, model=model, max_iterations=50).minimize()
    assert few.energy_after.total < -99.162
    end = Minimizer(few.atoms, model=model, tolerance=1e-3).minimize()
    assert end.stopped_by == "gradient"
    assert end.energy_after.total < few.energy_after.total
