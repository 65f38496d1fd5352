"""Force fields of OpenMM's XML files for bare structures; universes of MDAnalysis and structures of ParmEd."""

from __future__ import annotations

import gzip
import warnings
from pathlib import Path

import numpy as np
import pytest
from amber_helpers import SAMPLES, content, hexapeptide, rendered, restart
from interop_helpers import assert_same_energies, energies
from test_cli import error_of, run

from pele_ocl import ForceField, InputError, ParameterError, from_mdanalysis, from_openmm, from_parmed, read

STRUCTURES = Path(__file__).parent.parent / "data" / "structures"
HEXAPEPTIDE = STRUCTURES / "hexapeptide.pdb"
ETHANOL = """\
<ForceField>
 <AtomTypes>
  <Type name="l-c" class="c3" element="C" mass="12.01"/><Type name="l-o" class="oh" element="O" mass="16.0"/>
  <Type name="l-h" class="hc" element="H" mass="1.008"/>
 </AtomTypes>
 <Residues><Residue name="ETO">
  <Atom name="C1" type="l-c" charge="-0.136"/><Atom name="C2" type="l-c" charge="0.126"/>
  <Atom name="O1" type="l-o" charge="-0.6"/>
  <Atom name="H1" type="l-h" charge="0.042"/><Atom name="H2" type="l-h" charge="0.042"/>
  <Atom name="H3" type="l-h" charge="0.042"/><Atom name="H4" type="l-h" charge="0.044"/>
  <Atom name="H5" type="l-h" charge="0.044"/><Atom name="H6" type="l-h" charge="0.396"/>
  <Bond atomName1="C1" atomName2="C2"/><Bond atomName1="C2" atomName2="O1"/><Bond atomName1="C1" atomName2="H1"/>
  <Bond atomName1="C1" atomName2="H2"/><Bond atomName1="C1" atomName2="H3"/><Bond atomName1="C2" atomName2="H4"/>
  <Bond atomName1="C2" atomName2="H5"/><Bond atomName1="O1" atomName2="H6"/>
 </Residue></Residues>
 <HarmonicBondForce><Bond class1="c3" class2="c3" length="0.15" k="250000"/></HarmonicBondForce>
 <NonbondedForce coulomb14scale="0.8333333333333334" lj14scale="0.5">
  <UseAttributeFromResidue name="charge"/>
  <Atom class="c3" sigma="0.34" epsilon="0.45"/><Atom class="oh" sigma="0.307" epsilon="0.88"/>
  <Atom class="hc" sigma="0.26" epsilon="0.06"/>
 </NonbondedForce>
</ForceField>
"""
LIGAND = [
    ("C1", -0.90, 0.10, 0.00), ("C2", 0.50, -0.50, 0.00), ("O1", 1.45, 0.55, 0.00), ("H1", -1.05, 0.72, 0.88),
    ("H2", -1.05, 0.72, -0.88), ("H3", -1.65, -0.69, 0.00), ("H4", 0.65, -1.13, 0.88), ("H5", 0.65, -1.13, -0.88),
    ("H6", 2.33, 0.17, 0.00),
]  # fmt: skip


@pytest.fixture(scope="module")
def app():
    return pytest.importorskip("openmm.app")


@pytest.mark.parametrize(("name", "files"), [("ff14SB", "amber14-all.xml"), ("ff19SB", "amber19-all.xml")])
def test_a_bare_structure_has_the_terms_that_openmm_gives_it(app, name, files):
    atoms = read(HEXAPEPTIDE, name)
    pdb = app.PDBFile(str(HEXAPEPTIDE))
    system = app.ForceField(files).createSystem(pdb.topology, constraints=None, rigidWater=False)
    assert_same_energies(atoms, system)
    assert np.array_equal(atoms.bonds, from_openmm(pdb.topology, system, pdb.positions).bonds)
    assert atoms.gb_radii_set == "mbondi2"
    assert atoms.labels.residue(0) == "A:MET1"


def test_bonds_by_distance_are_those_of_the_templates(app):
    for name in ("ubiquitin.pdb", "src3.pdb.gz"):
        atoms = read(STRUCTURES / name, "amber14")
        assert np.array_equal(atoms.bonds, read(STRUCTURES / name).bonds)


@pytest.mark.parametrize("name", ["amber99sb", "amber14"])
def test_gaps_and_a_stretched_ring_are_taken_as_by_the_built_in_force_field(app, tmp_path, name):
    """Without GLU3 the chain has a gap; CZ of PHE4 is 0.8 A further out, beyond any bond by distance."""
    lines = [line for line in HEXAPEPTIDE.read_text().splitlines() if line[17:20] != "GLU"]
    lines = [
        f"{x[:30]}{float(x[30:38]) + 0.8:8.3f}{x[38:]}" if x[12:16].strip() in ("CZ", "HZ") and x[17:20] == "PHE" else x
        for x in lines
    ]  # fmt: skip
    path = tmp_path / "gap.pdb"
    path.write_text("\n".join(lines) + "\n")
    built_in, found = read(path), read(path, name)
    np.testing.assert_array_equal(found.bonds, built_in.bonds)
    assert [note for note in built_in.notes if "gap" in note] == [note for note in found.notes if "gap" in note] != []
    if name == "amber99sb":
        for term, energy in energies(built_in).items():
            assert energies(found)[term] == pytest.approx(energy, abs=0.02), term


def test_an_unknown_residue_beside_a_gap_is_still_refused_by_its_name(app, tmp_path):
    lines = [line for line in HEXAPEPTIDE.read_text().splitlines() if line[17:20] != "GLU"]
    lines = [line for line in lines if not (line[17:20] == "PHE" and line[12:16].strip() == "CG")]
    path = tmp_path / "gap.pdb"
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(ParameterError, match=r"A:PHE4:N.*amber14 has no residue PHE with these atoms"):
        read(path, "amber14")


def test_radii_of_a_force_field(app):
    assert read(HEXAPEPTIDE, ForceField.load("ff14SB", radii="mbondi3")).gb_radii_set == "mbondi3"
    assert read(HEXAPEPTIDE, "amber14,implicit/gbn2.xml").gb_radii_set == "file (mbondi3)"
    assert "radii mbondi3" in run("energy", HEXAPEPTIDE, "--forcefield", "ff14SB", "--gb-radii", "mbondi3").stdout


def test_a_residue_that_is_known_by_its_atoms_alone_is_named(app, tmp_path):
    lines = STRUCTURES.joinpath("trialanine.pdb").read_text().splitlines(keepends=True)
    other = tmp_path / "other.pdb"
    other.write_text("".join(line.replace("ALA", "LIG") if line[22:26] == "   2" else line for line in lines))
    assert read(other, "amber14").notes == ("A:LIG2 was identified as ALA by its atoms and bonds, not by its name",)
    (note,) = read(other, "charmm36").notes
    assert note == "A:LIG2 was identified as another residue by its atoms and bonds, not by its name"
    assert read(STRUCTURES / "trialanine.pdb", "charmm36").notes == read(HEXAPEPTIDE, "amber14").notes == ()
    with pytest.raises(ParameterError, match="no template for the residue LIG"):
        read(other)


def test_a_ligand_of_an_xml_file(app, tmp_path):
    (tmp_path / "ligand.xml").write_text(ETHANOL)
    rows = [
        f"HETATM{900 + k:5d}  {name:<3} ETO L   1    {x + 30:8.3f}{y:8.3f}{z:8.3f}  1.00  0.00          {name[0]:>2}"
        for k, (name, x, y, z) in enumerate(LIGAND)
    ]
    text = "\n".join(
        [*(line for line in HEXAPEPTIDE.read_text().splitlines() if line[:3] != "END"), "TER", *rows, "END\n"]
    )
    (tmp_path / "complex.pdb").write_text(text)
    atoms = read(tmp_path / "complex.pdb", f"ff14SB,{tmp_path / 'ligand.xml'}")
    assert len(atoms) == 96 + 9
    assert atoms.charges[96:].tolist() == [-0.136, 0.126, -0.6, 0.042, 0.042, 0.042, 0.044, 0.044, 0.396]
    with pytest.raises(
        ParameterError, match=r"complex.pdb:\d+ \(L:ETO1:C1\): ff14SB has no residue ETO with these atoms"
    ):
        read(tmp_path / "complex.pdb", "ff14SB")


SCRIPT = "<ForceField>{}</ForceField>"


@pytest.mark.parametrize("kind", ["Script", "InitializationScript"])
def test_python_in_files_runs_where_it_is_allowed_alone(app, tmp_path, monkeypatch, kind):
    ran = tmp_path / "ran"
    code = f"__import__('pathlib').Path({str(ran)!r}).write_text('x')"
    (tmp_path / "inner.xml").write_text(SCRIPT.format(f"<{kind}>{code}</{kind}>"))
    (tmp_path / "outer.xml").write_text(SCRIPT.format('<Include file="inner.xml"/>'))
    monkeypatch.chdir(tmp_path)
    for name in ("inner.xml", "outer.xml"):
        given = f"ff14SB,{tmp_path / name}"
        with pytest.raises(InputError, match=rf"inner.xml: contains Python code in <{kind}>.* `allow_scripts=True`"):
            read(HEXAPEPTIDE, ForceField.load(given))
        assert "contains Python code" in error_of("energy", HEXAPEPTIDE, "--forcefield", given)
        assert not ran.exists()
    # A file in the working folder stands before the one that OpenMM brings.
    (tmp_path / "amber14-all.xml").write_text(SCRIPT.format(f"<{kind}>{code}</{kind}>"))
    with pytest.raises(InputError, match=r"amber14-all.xml: contains Python code"):
        ForceField.load("amber14")
    (tmp_path / "amber14-all.xml").unlink()
    assert len(read(HEXAPEPTIDE, ForceField.load(f"ff14SB,{tmp_path / 'outer.xml'}", allow_scripts=True))) == 96
    assert ran.exists()


def test_faults_are_sentences(app, tmp_path):
    bare = tmp_path / "bare.pdb.gz"
    bare.write_bytes(
        gzip.compress("\n".join(line for line in HEXAPEPTIDE.read_text().splitlines() if line[76:78] != " H").encode())
    )
    with pytest.raises(
        ParameterError, match=r"bare.pdb.gz has no hydrogen atoms.* `pele-ocl prepare .*bare-ready.pdb`"
    ):
        read(bare, "ff14SB")
    with pytest.raises(InputError, match=r"none.xml: no such file; give the path of an XML file"):
        read(HEXAPEPTIDE, "amber14,none.xml")
    with pytest.raises(InputError, match="unknown force field 'great'; OpenMM provides amber14, ff14sb"):
        ForceField.load("amber14,great")
    (tmp_path / "broken.xml").write_text("<ForceField>")
    with pytest.raises(InputError, match="cannot be read"):
        read(HEXAPEPTIDE, str(tmp_path / "broken.xml"))
    assert "templates and OBC tables cannot be combined with the force field ff14SB" in error_of(
        "energy", HEXAPEPTIDE, "--forcefield", "ff14SB", "--templates", tmp_path
    )


@pytest.mark.filterwarnings("ignore")
def test_universes_of_mdanalysis(tmp_path):
    mda = pytest.importorskip("MDAnalysis")
    bare = from_mdanalysis(mda.Universe(str(HEXAPEPTIDE)))
    ours = read(HEXAPEPTIDE)
    assert bare.lj_sigma.tolist() == ours.lj_sigma.tolist()
    assert bare.positions == pytest.approx(ours.positions, abs=1e-5)
    universe = mda.Universe(str(HEXAPEPTIDE))
    universe.add_TopologyAttr("charges", ours.charges)
    universe.add_TopologyAttr("bonds", [tuple(pair) for pair in ours.bonds.tolist()])
    some = from_mdanalysis(universe.select_atoms("resid 1 2"))
    assert some.charges.tolist() == ours.charges[: len(some)].tolist()
    assert (some.lj_sigma, some.gb_radii_set) == (None, "mbondi2")
    assert len(some.bonds) == len(ours[: len(some)].bonds)
    assert from_mdanalysis(universe, "amber99sb").lj_sigma.tolist() == ours.lj_sigma.tolist()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(not SAMPLES.is_dir(), reason="AMBER's samples are not here")
@pytest.mark.parametrize(("top", "crd"), [("ash.parm7", "ash.rst7"), ("Ala3.top", "Ala3.crd")])
def test_structures_of_parmed(top, crd):
    """A topology through ParmEd and OpenMM has the energies, radii and types that our own reader gives it."""
    parmed = pytest.importorskip("parmed")
    pytest.importorskip("openmm")
    with warnings.catch_warnings():
        theirs = from_parmed(parmed.load_file(str(SAMPLES / top), str(SAMPLES / crd)))
    ours = read(SAMPLES / top, coordinates=SAMPLES / crd)
    for name, energy in energies(ours).items():
        assert energies(theirs)[name] == pytest.approx(energy, rel=1e-7, abs=1e-7), name
    assert theirs.gb_radii == pytest.approx(ours.gb_radii)
    assert theirs.types.tolist() == ours.types.tolist()
    assert theirs.type_family == ours.type_family == "amber"
    assert theirs.labels.residues == ours.labels.residues


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["mbondi2", "mbondi3"])
def test_radii_of_parmed_have_the_name_of_their_set(tmp_path, name):
    parmed = pytest.importorskip("parmed")
    pytest.importorskip("openmm")
    made, radii = content(), hexapeptide().with_radii(name).gb_radii
    made["RADII"] = (made["RADII"][0], radii.tolist())
    (tmp_path / "x.parm7").write_text(rendered(made))
    (tmp_path / "x.rst7").write_text(restart(hexapeptide().positions))
    atoms = from_parmed(parmed.load_file(str(tmp_path / "x.parm7"), str(tmp_path / "x.rst7")))
    assert atoms.gb_radii_set == f"file ({name})"
    assert atoms.gb_radii == pytest.approx(radii)
