"""Sets of GB radii against OpenMM's, by element, bonds and residue names; and how users choose them."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import pele_ocl
from pele_ocl import InputError, SolventModel
from pele_ocl.atoms import BONDI_SETS, RADII_SETS, Atoms, Labels, hct_scale, radii_set
from pele_ocl.atoms.charmm import charmm_radii
from pele_ocl.cli import main
from pele_ocl.forcefield import ForceField
from pele_ocl.gb_models.radii_of_models import radii_note

STRUCTURES = Path(__file__).parent.parent / "data" / "structures"
PEPTIDE = STRUCTURES / "hexapeptide.pdb"


@pytest.fixture(scope="module")
def ubiquitin():
    return pele_ocl.read(STRUCTURES / "ubiquitin.pdb")


def topology_of(atoms):
    """OpenMM's Topology of atoms with labels and bonds."""
    app = pytest.importorskip("openmm.app")
    topology = app.Topology()
    chain, labels, made = topology.addChain(), atoms.labels, []
    for k, start in enumerate(labels.residue_starts.tolist()):
        residue = topology.addResidue(str(labels.residue_names[start]), chain)
        for i in np.flatnonzero(labels.residue_index == labels.residue_index[start]).tolist():
            element = app.Element.getBySymbol(str(labels.elements[i]))
            made.append((i, topology.addAtom(str(labels.names[i]), element, residue)))
        assert made[-1][0] >= k
    by_index = dict(made)
    assert list(by_index) == list(range(len(atoms)))
    for i, j in atoms.bonds.tolist():
        topology.addBond(by_index[i], by_index[j])
    return topology


@pytest.mark.parametrize("name", BONDI_SETS[:4])
def test_sets_of_amber_are_those_of_openmm(ubiquitin, name):
    forces = pytest.importorskip("openmm.app.internal.customgbforces")
    radii, scales = radii_set(name, ubiquitin.labels, ubiquitin.bonds)
    topology = topology_of(ubiquitin)
    np.testing.assert_allclose(radii, getattr(forces, f"_{name}_radii")(topology), rtol=1e-15)
    np.testing.assert_array_equal(scales, [forces._screen_parameter(atom)[0] for atom in topology.atoms()])


@pytest.mark.parametrize(("name", "expected"), [("mbondi_pb2", [1.76, 1.97, 2.09]), ("mbondi_pb3", [2.2, 2.04, 2.19])])
def test_halogens_of_poisson_boltzmann_sets(ubiquitin, name, expected):
    """Halogens of Nunes, Vila-Vicosa and Costa 2019, table 3; all else is mbondi's."""
    names = np.array(["CL", "BR", "I"])
    index, blank = np.arange(3), np.full(3, "")
    labels = pele_ocl.atoms.Labels(names, np.array(["Cl", "Br", "I"]), names, index, blank, blank, index)
    np.testing.assert_array_equal(radii_set(name, labels, np.array([[0, 1], [1, 2]]))[0], expected)
    own, mbondi = (radii_set(of, ubiquitin.labels, ubiquitin.bonds) for of in (name, "mbondi"))
    np.testing.assert_array_equal(own, mbondi)


def test_radii_of_protonated_acids_and_termini():
    """Aspartic acid has no carboxylate, whatever the residue is called; arginine's atoms by old names."""
    names = "CG OD1 OD2 HD2 NE HE 1HH1 C O OXT H".split()
    elements = "C O O H N H H C O O H".split()
    residues = ["ASP"] * 4 + ["ARG"] * 3 + ["GLY"] * 3 + ["H"]
    index = np.array([0] * 4 + [1] * 3 + [2] * 3 + [3])
    blank = np.array([""] * 11)
    labels = pele_ocl.atoms.Labels(np.array(names), np.array(elements), np.array(residues), index, blank, blank, index)
    bonds = np.array([[0, 1], [0, 2], [2, 3], [4, 5], [7, 8], [7, 9]])
    expected = [1.7, 1.5, 1.5, 1.2, 1.55, 1.17, 1.17, 1.7, 1.4, 1.4, 1.2]
    np.testing.assert_array_equal(radii_set("mbondi3", labels, bonds)[0], expected)
    apart = bonds[[0, 1, 3, 4, 5]]
    np.testing.assert_array_equal(radii_set("mbondi3", labels, apart)[0][:4], [1.7, 1.4, 1.4, 1.2])
    assert radii_set("mbondi", labels, bonds)[0][3] == 0.8


@pytest.mark.parametrize(("residue", "oxygen"), [("AS4", "OD"), ("GL4", "OE")])
def test_acids_of_constant_ph_are_carboxylates_with_their_protons(residue, oxygen):
    elements = np.array("C O O H H H H".split())
    proton = "H" + oxygen[1]
    names = np.array(["C", oxygen + "1", oxygen + "2", *(f"{proton}{k}{of}" for k in (1, 2) for of in (1, 2))])
    index, blank = np.zeros(7, int), np.full(7, "")
    labels = pele_ocl.atoms.Labels(names, elements, np.full(7, residue), index, blank, blank, index)
    bonds = np.array([[0, 1], [0, 2], [1, 3], [1, 4], [2, 5], [2, 6]])
    np.testing.assert_array_equal(radii_set("mbondi3", labels, bonds)[0], [1.7, 1.4, 1.4, 1.2, 1.2, 1.2, 1.2])


def test_deuterium_is_hydrogen():
    one = np.zeros(1, int)
    labels = pele_ocl.atoms.Labels(*(np.array([x]) for x in ("D", "D", "DOD")), one, *(np.array([""]),) * 2, one)
    assert radii_set("openmm-obc", labels, np.empty((0, 2), int))[1] == hct_scale("D") == 0.85


@pytest.mark.parametrize("name", ["pele", "openmm-obc"])
def test_computed_sets_are_the_tables(ubiquitin, name):
    table = ForceField.load(radii=name).assign(pele_ocl.formats.read_structure(STRUCTURES / "ubiquitin.pdb"))
    computed = ubiquitin.with_radii(name)
    assert table.gb_radii_set == computed.gb_radii_set == name
    np.testing.assert_array_equal(computed.gb_radii, table.gb_radii)
    np.testing.assert_array_equal(computed.gb_scales, table.gb_scales)


def test_atoms_name_their_radii(ubiquitin):
    assert ubiquitin.gb_radii_set == "openmm-obc"
    assert ubiquitin.with_radii("mbondi2").gb_radii_set == "mbondi2"
    assert ubiquitin.with_radii("mbondi3")[:20].gb_radii_set == "mbondi3"
    assert ubiquitin.with_radii("openmm-obc").gb_radii_set == "openmm-obc"
    direct = ForceField.load(radii="mbondi3").assign(pele_ocl.formats.read_structure(STRUCTURES / "ubiquitin.pdb"))
    np.testing.assert_array_equal(direct.gb_radii, ubiquitin.with_radii("mbondi3").gb_radii)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda atoms: atoms.with_radii("bondi4"), "the set of GB radii is 'bondi4'; choose 'openmm-obc' or"),
        (lambda atoms: replace(atoms, labels=None).with_radii("bondi"), "bondi need names and elements, which"),
        (
            lambda atoms: replace(atoms, bonds=np.empty((0, 2), int), bonded=None).with_radii("mbondi"),
            "mbondi need bonds,",
        ),
    ],
)
def test_sets_that_cannot_be(ubiquitin, make, message):
    with pytest.raises(InputError, match=message):
        make(ubiquitin)


def test_defaults_and_notes():
    models = [SolventModel(gb=gb) for gb in ("hct", "obc2", "gbn", "gbn2", "none")]
    assert [model.radii_set for model in models] == [None, None, "bondi", "mbondi3", None]
    models = [SolventModel.like("amber", gb=gb) for gb in ("hct", "obc2", "gbn2")]
    assert [model.radii_set for model in models] == ["mbondi", "mbondi2", "mbondi3"]
    assert SolventModel.like("pele", gb="obc2").radii_set == "pele"
    assert radii_note("gbn2", "ArgH and AspGluO modified Bondi2 radii (mbondi3)") is None
    assert (
        radii_note("gbn2", "mbondi2") == "the GB model gbn2 was parametrized with the radii mbondi3, not with mbondi2"
    )
    assert radii_note("gbn", "mbondi").endswith("radii bondi, not with mbondi")
    assert radii_note("gbn2", "").endswith("not with those of an unnamed set")
    assert radii_note("gbn2", "file, pele").endswith("not with those of the given OBC tables and pele")
    assert radii_note("obc2", "mbondi") is None
    note = radii_note("gbn2", "mbondi2")
    assert (note.code, dict(note.fields)) == ("radii", {"gb": "gbn2", "radii": "mbondi2"})


def run(*options):
    return CliRunner().invoke(main, ["solvent", *map(str, options)])


@pytest.mark.parametrize("name", RADII_SETS)
def test_the_option(name):
    report = json.loads(run(PEPTIDE, "--gb-radii", name, "--json").stdout)
    assert report["settings"]["gb_radii_set"] == name
    assert f"radii {report['settings']['gb_radii_set']}, water" in run(PEPTIDE, "--radii", name).stdout


@pytest.mark.parametrize("word", ["amber", "charmm", "parse"])
def test_a_word_means_one_set_of_radii_at_every_door(word):
    """Former names of PDB2PQR's sets are taken with a note, also where these have no use: GB needs scales."""
    atoms, name = pele_ocl.read(PEPTIDE, radii=word), f"pdb2pqr-{word}"
    assert (atoms.gb_radii_set, atoms.gb_scales, atoms.has_default_radii) == (name, None, False)
    assert atoms.notes[-1].startswith(f"the radii {word} are named {name} now")
    assert pele_ocl.read(PEPTIDE).with_radii(name).notes == pele_ocl.read(PEPTIDE, radii=name).notes == ()
    part = pele_ocl.read(PEPTIDE, radii=name, select="resid 1 2")
    assert np.array_equal(part.gb_radii, atoms.gb_radii[: len(part)])
    for gb in ("obc2", "gbn2"):
        done = run(PEPTIDE, "--radii", name, "--gb", gb)
        assert f"the radii {name} are for Poisson-Boltzmann and have no GB scales" in done.output
        with pytest.raises(InputError, match=f"radii {name} are for Poisson-Boltzmann"):
            pele_ocl.solvent(atoms, model=SolventModel(gb=gb))


def test_constants_of_programs_as_an_option():
    report = json.loads(run(PEPTIDE, "--like", "amber", "--ionic-strength", 0.1, "--json").stdout)
    settings = report["settings"]
    assert (settings["coulomb_constant"], settings["solvent_dielectric"]) == (18.2223**2, 78.5)
    assert (settings["surface"], settings["gb_radii_set"], settings["born_cutoff"]) == ("none", "mbondi2", 25.0)
    assert settings["kappa"] == pytest.approx(0.73 * np.sqrt(0.010806))
    changed = run(PEPTIDE, "--like", "amber", "--solvent-dielectric", 80, "--gb-radii", "mbondi", "--json")
    settings = json.loads(changed.stdout)["settings"]
    assert (settings["solvent_dielectric"], settings["gb_radii_set"]) == (80, "mbondi")


def test_radii_of_files(tmp_path):
    bare = run(PEPTIDE, "--gb-radii", "file")
    assert bare.exit_code == 1
    assert "no file contains GB radii; give an OBC table with --obc, or choose a set" in bare.stderr
    pqr = tmp_path / "ion.pqr"
    pqr.write_text("ATOM      1  NA  NA  A   1       0.000   0.000   0.000  1.0000 1.8000\n")
    own = json.loads(run(pqr, "--gb-radii", "file", "--json").stdout)
    assert own["settings"]["gb_radii_set"] == "file"
    assert own["born_radius"]["max"] == pytest.approx(1.71)
    bondi = json.loads(run(pqr, "--gb-radii", "bondi", "--json").stdout)
    assert bondi["born_radius"]["max"] == pytest.approx(1.41)


def charmm(residue: str, names: str, types: str = "", bonds=()) -> dict[str, float]:
    """Radii of the atoms of one residue of CHARMM's."""
    each = names.split()
    n = len(each)
    labels = Labels(
        names=np.array(each), elements=np.array([name[0] for name in each]), residue_names=np.array([residue] * n),
        residue_numbers=np.ones(n, np.int32), residue_index=np.zeros(n, np.int32),
        insertion_codes=np.array([""] * n), chains=np.array(["A"] * n),
    )  # fmt: skip
    given = np.array(types.split() or ["X"] * n)
    atoms = Atoms(np.arange(3.0 * n).reshape(n, 3), np.zeros(n), labels=labels, types=given, bonds=list(bonds))
    return dict(zip(each, charmm_radii(atoms).tolist(), strict=True))


def test_radii_of_charmm_are_those_of_parmed():
    """Values that ParmEd's `change_radii charmm_radii` gives, as AmberTools 26 has it."""
    ends = {"N": 2.23, "CA": 2.86, "CB": 2.67, "CG": 1.98, "OD1": 1.42, "ND2": 2.15, "C": 2.04, "HA": 0.0}
    assert charmm("ASN", " ".join([*ends, "OT1", "OT2"])) == {**ends, "OT1": 1.4, "OT2": 1.4}
    assert charmm("ASN", " ".join([*ends, "O", "OXT"])) == {**ends, "O": 1.4, "OXT": 1.4}  # as readers name them
    assert charmm("GLY", "CA O") == {"CA": 2.38, "O": 1.52}
    assert charmm("ILE", "CG1 CG2 CD") == {"CG1": 2.46, "CG2": 2.46, "CD": 2.44}
    assert charmm("TRP", "CG CD1 CE2 CH2 NE1") == {"CG": 2.46, "CD1": 1.78, "CE2": 1.78, "CH2": 1.78, "NE1": 2.4}
    assert charmm("HSP", "CG ND1 CE1 NE2 CD2") == {"CG": 2.46, "ND1": 2.3, "CE1": 1.98, "NE2": 2.3, "CD2": 1.98}
    assert charmm("GUA", "N1 N2 O6 C8 P O1P OP2 C1' O3' H8") == {
        "N1": 2.15, "N2": 2.12, "O6": 1.55, "C8": 2.12, "P": 2.35, "O1P": 1.49, "OP2": 1.49, "C1'": 2.57, "O3'": 1.65,
        "H8": 0.0,
    }  # fmt: skip
    assert charmm("ADE", "O5' H5T O3'", bonds=[[0, 1]]) == {"O5'": 1.72, "H5T": 0.0, "O3'": 1.65}
    ligand = charmm("JZ4", "C1 C2 O1 O2 N1 N2 S1 P1 CL1 BR1 F1 H1",
                    "CG2R61 CG1T1 OG3C61 OG2D4 NG2S1 NG311 SG311 PG1 CLGA1 BRGR1 FGA1 HGR61")  # fmt: skip
    assert ligand == {
        "C1": 2.46, "C2": 2.3, "O1": 1.8, "O2": 1.64, "N1": 2.23, "N2": 2.3, "S1": 2.3, "P1": 2.35, "CL1": 2.3,
        "BR1": 1.98, "F1": 2.0, "H1": 0.0,
    }  # fmt: skip
    with pytest.raises(pele_ocl.ParameterError, match="QQ has no radius in CHARMM's force fields"):
        charmm("ASN", "CA QQ")
