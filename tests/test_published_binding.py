"""Binding energies and decompositions against what AMBER's programs printed for public runs.

The files are not in the project: PELE_OCL_PUBLISHED names a folder with clones of the public repositories that
docs/theory/binding.md, section 7, lists. A test without its files is skipped.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from amber_helpers import ROOT

from pele_ocl import Atoms, Binding, BindingEnergies, Energy, SolventModel, read, trajectory
from pele_ocl.binding import PARTS
from pele_ocl.binding.naming import amber_terms

PUBLISHED = Path(os.environ.get("PELE_OCL_PUBLISHED", ROOT.parent / "shared" / "published"))
RAS, PDZ, CPPTRAJ = PUBLISHED / "GBNSR6_py_testcase", PUBLISHED / "temp", PUBLISHED / "cpptraj" / "test"

LAST_DIGIT = 6e-5  # kcal/mol: half of the fourth decimal
OF_SERIES = 3e-4  # kcal/mol: what series of 5 terms for far spheres leave out of 3,000
TENSION = 0.0072  # kcal/mol/A^2
TERMS = ("BOND", "ANGLE", "DIHED", "VDWAALS", "EEL", "1-4 VDW", "1-4 EEL", "EGB")
TABLES = {"complex": "Complex:", "receptor": "Receptor:", "ligand": "Ligand:", "delta": "Differences"}
SUMS = {"G gas": "GGAS", "G solv": "GSOLV"}  # MMPBSA.py's names and ours


def needs(folder: Path) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not folder.is_dir(), reason=f"{folder.name} is not in the folder of published runs")


def printed(text: str) -> dict[str, float]:
    """Terms as sander and NAB print them: NAME = value."""
    found = re.findall(r"(1-4 VDW|1-4 EEL|[A-Z]+) *= *(-?\d+\.\d+)", text)
    return {name: float(value) for name, value in found}


def averages(text: str) -> dict[str, dict[str, tuple[float, float]]]:
    """Average and standard deviation of each term in MMPBSA.py's tables of GENERALIZED BORN."""
    text = text.split("POISSON BOLTZMANN")[0]
    found = {}
    for name, head in TABLES.items():
        table = re.split(r"\n\n\n", text.split(f"\n{head}")[1])[0]
        rows = re.findall(r"^(?:DELTA )?(\w[\w ]*?) +(-?\d+\.\d+) +(\d+\.\d+) +\d+\.\d+$", table, re.MULTILINE)
        found[name] = {term: (float(mean), float(sd)) for term, mean, sd in rows}
    return found


# MMPBSA.py with NAB: Ras and Raf, 3,862 atoms, two frames


@pytest.fixture(scope="module")
def ras(tmp_path_factory) -> tuple[Atoms, Path]:
    """Read the atoms, and MMPBSA.py's trajectory of the complex."""
    frames = tmp_path_factory.mktemp("ras") / "complex.mdcrd"
    shutil.copy(RAS / "_MMPBSA_complex.mdcrd.0", frames)
    return read(RAS / "com.prmtop", coordinates=RAS / "com.inpcrd"), frames


def energies_of(atoms: Atoms, frames: Path, gb: str) -> BindingEnergies:
    model = SolventModel.like("mmpbsa.py", gb=gb, ionic_strength=0.1)
    return Binding(atoms, "resid 167:242", model=model, precision="float64").over(frames)


def within(found: np.ndarray, expected: float, term: str) -> bool:
    """Tell if mean or value have the printed digits; EGB, GSOLV and TOTAL less what NAB's series leave out."""
    return abs(float(found) - expected) < (OF_SERIES if term in ("EGB", "GSOLV", "TOTAL") else 2 * LAST_DIGIT)


@needs(RAS)
def test_every_average_that_mmpbsa_py_printed(ras):
    """igb 5, 0.1 M: complex, receptor, ligand and difference, means and standard deviations.

    The topologies of this run had mbondi radii. Sums of a part are without its bonded and 1-4 terms, as verbose=1 has
    it, and so those of the difference alone are compared.
    """
    atoms, frames = ras
    found = energies_of(atoms.with_radii("mbondi"), frames, "obc2").systems()
    tables = averages((RAS / "FINAL_RESULTS_MMPBSA.dat").read_text())
    for name, table in tables.items():
        terms = amber_terms(found[name])
        chosen = ["VDWAALS", "EEL", "EGB", "ESURF"] + ["G gas", "G solv", "TOTAL"] * (name == "delta")
        for term in chosen:
            ours, (mean, sd) = SUMS.get(term, term), table[term]
            assert within(terms[ours].mean(), mean, ours), (name, term)
            assert within(terms[ours].std(), sd, ours), (name, term)


@needs(RAS)
def test_every_frame_that_mmpbsa_py_kept(ras):
    """igb 1, 0.1 M: every term of each frame of each system, and LCPO's areas.

    Receptor and ligand had topologies with other torsions than the complex; theirs cannot be compared.
    """
    found = energies_of(*ras, "hct").systems()
    for name in PARTS:
        terms = amber_terms(found[name])
        areas = np.loadtxt(RAS / f"_MMPBSA_{name}_gb_surf.dat.0")[:, 1]
        assert terms["ESURF"] / TENSION == pytest.approx(areas, abs=LAST_DIGIT)
        frames = (RAS / f"_MMPBSA_{name}_gb.mdout.0").read_text().split("Processing frame")[1:]
        for k, text in enumerate(frames):
            expected = printed(text)
            for term in TERMS:
                if (term, name) not in (("DIHED", "receptor"), ("DIHED", "ligand")):
                    assert within(terms[term][k], expected[term], term), (name, k, term)


# sander's decomposition: a PDZ domain, 123 residues, idecomp 2, igb 8


@needs(PDZ)
def test_every_residue_that_sander_printed(tmp_path):
    shutil.copy(PDZ / "prmtop", tmp_path / "pdz.parm7")
    shutil.copy(PDZ / "_MMPBSA_complex.nc.0", tmp_path / "pdz.nc")
    atoms = read(tmp_path / "pdz.parm7", coordinates=tmp_path / "pdz.nc")
    model = SolventModel.like("sander", gb="gbn2")
    found = Binding(atoms, "resid 101:123", model=model, idecomp=2, precision="float64").evaluate()
    text = (PDZ / "_MMPBSA_complex_gb.mdout.0").read_text()
    terms, expected = amber_terms(found.complex), printed(text.split("FINAL RESULTS")[1].split("CHECK")[0])
    for term in TERMS:
        assert within(terms[term], expected[term], term), term
    area = np.loadtxt(PDZ / "_MMPBSA_complex_gb_surf.dat.0")[1]
    assert terms["ESURF"] / TENSION == pytest.approx(area, abs=LAST_DIGIT)
    rows = np.array([line.split()[2:6] for line in text.splitlines() if line.startswith("TDC")], float)
    shares = found.decomposition.per_residue["complex"].mean[:, :4]
    assert np.abs(shares - rows).max() < 6e-4  # half of the third decimal


# cpptraj's test suite


@needs(CPPTRAJ)
def test_every_atom_that_cpptraj_printed():
    """Trpzip2, 223 atoms: half of each pair, equal shares of bonded terms; means of 10 frames."""
    atoms = read(CPPTRAJ / "tz2.parm7", coordinates=CPPTRAJ / "tz2.nc")
    frames = np.concatenate(list(trajectory(CPPTRAJ / "tz2.nc", atoms, frames=":10")))
    model = SolventModel.like("amber", gb="none")
    plan = Energy(atoms, model=model, gradient=False, per_atom=True, precision="float64")
    of_atoms = plan.evaluate_batch(frames).per_atom
    terms = {name: getattr(of_atoms, name).mean(axis=0) for name in of_atoms.names}
    terms["torsion"] = terms["torsion"] + terms.pop("improper", 0.0)
    rows = np.loadtxt(CPPTRAJ / "Test_EneDecomp" / "decomp.components.tz2.dat.save")
    columns = ("bond", "angle", "torsion", "lennard_jones_14", "coulomb_14", "coulomb", "lennard_jones")
    for k, name in enumerate(columns):
        assert np.abs(terms[name] - rows[:, k + 2]).max() < LAST_DIGIT, name


@needs(CPPTRAJ)
def test_the_interaction_that_cpptraj_printed():
    """FabI with NAD and triclosan, 4,143 atoms: Lennard-Jones energies of the ligand within 12 A, in 10 frames."""
    atoms = read(CPPTRAJ / "FtuFabI.NAD.TCL.parm7", coordinates=CPPTRAJ / "FtuFabI.NAD.TCL.nc")
    model = SolventModel.like("amber", gb="none")
    plan = Binding(atoms, "resname TCS", model=model, cutoff=12.0, precision="float64")
    found = plan.over(CPPTRAJ / "FtuFabI.NAD.TCL.nc").delta.lennard_jones
    expected = np.loadtxt(CPPTRAJ / "Test_LIE" / "TCL.out.save")[:, 2]
    assert np.abs(found - expected).max() < LAST_DIGIT
