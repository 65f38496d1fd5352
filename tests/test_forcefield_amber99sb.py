"""Built-in Amber99SB against parameters that OpenMM gave the same structures, and against its own rules."""

from __future__ import annotations

import importlib.util
import runpy
from pathlib import Path

import numpy as np
import pytest
from forcefield_helpers import ROOT, SYSTEMS, arrays_of, structure_from

from pele_ocl.forcefield import ForceField, embedded_radii, embedded_templates, lookup
from pele_ocl.formats import read_structure


@pytest.fixture(scope="module", params=SYSTEMS)
def assigned(request):
    arrays = arrays_of(request.param)
    return ForceField.load().assign(structure_from(arrays)), arrays


def test_charges_and_lennard_jones_match_openmm(assigned):
    atoms, arrays = assigned
    np.testing.assert_array_equal(atoms.charges, arrays["charge"])
    np.testing.assert_allclose(atoms.lj_sigma, arrays["sigma"], rtol=1e-9)
    np.testing.assert_allclose(atoms.lj_epsilon, arrays["epsilon"], rtol=1e-9)
    assert atoms.combining == "arithmetic"
    assert atoms.one_four == (1 / 1.2, 1 / 2)


def test_obc_radii_and_scales_match_openmm(assigned):
    atoms, arrays = assigned
    np.testing.assert_array_equal(atoms.gb_radii, arrays["obc_radius"])
    np.testing.assert_array_equal(atoms.gb_scales, arrays["obc_scale"])


def test_bonds_match_openmm_without_a_note(assigned):
    atoms, arrays = assigned
    np.testing.assert_array_equal(atoms.bonds, np.unique(np.sort(arrays["bonds"], axis=1), axis=0))
    assert atoms.notes == ()


@pytest.mark.parametrize("file", ["hexapeptide.pdb", "ubiquitin.pdb", "src3.pdb.gz", "enolase_dimer.pdb.gz"])
def test_shipped_files_get_the_parameters_of_the_arrays(file):
    arrays = arrays_of(file.split(".")[0])
    atoms = ForceField.load().assign(read_structure(ROOT / "data" / "structures" / file))
    np.testing.assert_array_equal(atoms.positions, arrays["coordinates"])
    np.testing.assert_array_equal(atoms.charges, arrays["charge"])
    np.testing.assert_array_equal(atoms.gb_radii, arrays["obc_radius"])
    np.testing.assert_array_equal(atoms.bonds, np.unique(np.sort(arrays["bonds"], axis=1), axis=0))


def test_every_form_of_every_amino_acid_is_there():
    amino_acids = "ALA ARG ASN ASP CYS CYX GLN GLU GLY HID HIE HIP ILE LEU LYS MET PHE PRO SER THR TRP TYR VAL".split()
    expected = {name + end for name in amino_acids for end in ("", "B", "E")}
    expected |= {base + end for base in "DA DC DG DT A C G U".split() for end in ("", "B", "E", "Z")}
    expected |= set("ASH GLH LYN CYM ACE NME NHE HOHZ NAZ CLZ KZ MGZ CAZ ZNZ".split())
    assert expected <= embedded_templates().keys()


def _net(charges) -> float:
    return round(float(charges.sum()), 6)


def test_residues_have_whole_charges():
    """Nucleotides at an end hold a part of the phosphate's charge: both ends of a strand sum to a whole."""
    nets = {t.name: _net(t.charges) for t in embedded_templates().values()}
    ends = {name for name in nets if Path(embedded_templates()[name].source).parent.name in ("DNA", "RNA")}
    assert {name for name in nets if nets[name] != round(nets[name])} <= ends
    for base in "DA DC DG DT A C G U".split():
        assert (nets[base], nets[base + "Z"]) == (-1, 0)
        assert nets[base + "B"] + nets[base + "E"] == pytest.approx(-1, abs=1e-6)
    charged = {
        "ARG": 1,
        "ASP": -1,
        "GLU": -1,
        "LYS": 1,
        "HIP": 1,
        "CYM": -1,
        "ALAB": 1,
        "ALAE": -1,
        "LYSB": 2,
        "ZNZ": 2,
    }
    assert {name: nets[name] for name in charged} == charged


@pytest.mark.parametrize("radii", ["openmm-obc", "pele"])
def test_every_atom_has_a_row_in_both_tables(radii):
    table = embedded_radii(radii)
    atoms = {(t.name, atom) for t in embedded_templates().values() for atom in t.names}
    assert {key for key in atoms if lookup(table, *key) is None} == set()
    assert table.keys() == atoms


def test_the_two_tables_differ_in_nitrogen_only():
    amber, pele = embedded_radii("openmm-obc"), embedded_radii("pele")
    differing = {key for key in amber if amber[key] != pele[key]}
    assert {atom[0] for _, atom in differing} == {"N"}
    assert (amber["ALA", "N"], pele["ALA", "N"]) == ((1.706, 0.79), (1.7063, 0.79))


def test_the_shipped_files_are_what_the_script_writes(tmp_path):
    if importlib.util.find_spec("openmm") is None:
        pytest.skip("OpenMM, whose files hold the figures, is not installed")
    script = runpy.run_path(str(ROOT / "data" / "make_amber99sb.py"))
    origin = Path(importlib.util.find_spec("openmm.app").origin).parent / "data"
    script["main"](origin, tmp_path)
    for folder in ("amber99sb", "obc"):
        made = {p.relative_to(tmp_path): p.read_bytes() for p in (tmp_path / folder).rglob("*") if p.is_file()}
        shipped = {
            p.relative_to(ROOT / "data"): p.read_bytes() for p in (ROOT / "data" / folder).rglob("*") if p.is_file()
        }
        assert made == shipped
