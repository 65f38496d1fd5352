"""Parameters of many molecules and their files: in OpenMM, in sander, as PELE's templates; bad molecules, workers."""

from __future__ import annotations

import copy
import json
import re
import shutil
import subprocess
import sys
import threading
import types
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rdkit")

from explore_run_helpers import SIMULATION
from test_cli import HEXAPEPTIDE, error_of, on_the_chosen_device, run
from test_ligand import BENZAMIDINIUM, ETHANOL, folder, needs_programs, sdf

import pele_ocl
from pele_ocl import Energy, FormatError, InputError, Ligand, ParameterError, SolventModel, read
from pele_ocl.atoms.torsions import flexible_ligand
from pele_ocl.common.notes import heard_notes
from pele_ocl.explore import read_rot_assign
from pele_ocl.explore.control import read_simulation
from pele_ocl.explore.preparing import prepare_run
from pele_ocl.explore.presets import PRESETS, control_of, preset_of
from pele_ocl.explore.spec import Exploration
from pele_ocl.forcefield import ForceField
from pele_ocl.formats import read_structure
from pele_ocl.formats.amber.writing import prmtop_text
from pele_ocl.ligand import antechamber, cache, openff
from pele_ocl.reading import Reading

__all__ = ["folder", "on_the_chosen_device"]

SULFONAMIDE = "CC(=O)Nc1ccc(S(N)(=O)=O)cc1"
SANDER = shutil.which("sander")


def energies(atoms, gb="obc2"):
    return Energy(atoms, model=SolventModel(gb=gb), precision="float64").evaluate(atoms.positions).energy


def assert_same(one, other, within=1e-6):
    assert {k: v for k, v in one.items() if abs(v - other[k]) > within} == {}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Files of a sulfonamide, in a folder."""
    where = tmp_path_factory.mktemp("written")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PELE_OCL_LIGANDS", str(tmp_path_factory.mktemp("kept")))
        result = pele_ocl.parametrize(Ligand.from_smiles(SULFONAMIDE, "a b/c"), output=where / "out")
        return where / "out" / "a_b_c", result.atoms(0)


@needs_programs
def test_a_topology_has_the_energies_of_its_molecule(written):
    place, atoms = written
    found = read(place / "a_b_c.prmtop", coordinates=place / "a_b_c.rst7")
    assert_same(energies(atoms.with_radii("mbondi2")), energies(found.moved(atoms.positions)))
    assert found.labels.names.tolist() == atoms.labels.names.tolist()
    assert np.array_equal(found.types, atoms.types)


def openmm_terms(system, positions):
    """Energies of OpenMM's forces by their name, kcal/mol."""
    import openmm

    for k, force in enumerate(system.getForces()):
        force.setForceGroup(k)
    context = openmm.Context(system, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatformByName("Reference"))
    context.setPositions(positions / 10)
    found = {}
    for k, force in enumerate(system.getForces()):
        energy = context.getState(getEnergy=True, groups={k}).getPotentialEnergy()._value / 4.184
        found[force.getName()] = found.get(force.getName(), 0.0) + energy
    return {name: energy for name, energy in found.items() if name != "CMMotionRemover"}


def assert_openmm_reads(text, atoms, place):
    """OpenMM has our terms of a written topology; return them."""
    app = pytest.importorskip("openmm.app")

    (place / "read.prmtop").write_text(text)
    theirs = openmm_terms(app.AmberPrmtopFile(str(place / "read.prmtop")).createSystem(), atoms.positions)
    ours = energies(atoms, "none")
    torsions = ours["torsion"] + ours.get("improper", 0.0)
    expected = {
        "HarmonicBondForce": ours["bond"],
        "HarmonicAngleForce": ours["angle"],
        "PeriodicTorsionForce": torsions,
    }
    assert {name: theirs[name] for name in expected} == pytest.approx(expected, abs=1e-3)
    nonbonded = ours["total"] - sum(expected.values())
    assert theirs["NonbondedForce"] == pytest.approx(nonbonded, abs=1e-3 + 4e-6 * abs(nonbonded))
    return theirs


@needs_programs
@pytest.mark.parametrize("smiles", ["CC(=O)Oc1ccccc1C(=O)[O-]", "c1ccccc1C(N)=O"])
def test_openmm_reads_the_topology_as_the_xml_file(smiles, tmp_path, folder):
    """Atom 0 has no sign, by which a file tells torsions without a 1-4 pair, and impropers."""
    app = pytest.importorskip("openmm.app")

    atoms = pele_ocl.parametrize(Ligand.from_smiles(smiles, "mol"), output=tmp_path / "out").atoms(0)
    stem = tmp_path / "out" / "mol" / "mol"
    theirs = assert_openmm_reads(stem.with_suffix(".prmtop").read_text(), atoms, tmp_path)
    pdb = app.PDBFile(str(stem.with_suffix(".pdb")))
    by_xml = openmm_terms(app.ForceField(str(stem.with_suffix(".xml"))).createSystem(pdb.topology), atoms.positions)
    assert theirs == pytest.approx(by_xml, abs=1e-3)


def test_openmm_reads_the_topology_of_a_peptide_in_any_order(tmp_path):
    atoms = read(HEXAPEPTIDE)
    assert_openmm_reads(prmtop_text(atoms), atoms, tmp_path)
    turned = atoms[np.arange(len(atoms))[::-1]]
    rows = np.array(prmtop_rows(prmtop_text(turned)))
    assert not (rows[:, 2:4] == 0).any()
    assert_openmm_reads(prmtop_text(turned), turned, tmp_path)


def prmtop_rows(text):
    """Rows of the dihedrals of a topology, five numbers each."""
    found = []
    for name in ("DIHEDRALS_INC_HYDROGEN", "DIHEDRALS_WITHOUT_HYDROGEN"):
        block = text.split(f"%FLAG {name} ")[1].split("%FLAG")[0].split("\n", 2)[2]
        found += map(int, block.split())
    return [found[k : k + 5] for k in range(0, len(found), 5)]


@needs_programs
def test_openmm_has_the_energies_of_the_xml_file(written):
    app = pytest.importorskip("openmm.app")

    place, atoms = written
    pdb = app.PDBFile(str(place / "a_b_c.pdb"))
    system = app.ForceField(str(place / "a_b_c.xml")).createSystem(pdb.topology)
    theirs = sum(openmm_terms(system, atoms.positions).values())
    ours = energies(atoms, "none")["total"]
    assert theirs == pytest.approx(ours, abs=1e-4 + 4e-6 * abs(ours))  # Coulomb's constants differ by 2e-6


@needs_programs
def test_a_file_of_its_own_gives_a_molecule_in_any_order_its_parameters(written):
    from rdkit import Chem

    place, atoms = written
    ligand = Ligand.from_smiles(SULFONAMIDE)
    order = np.random.default_rng(1).permutation(len(ligand)).tolist()
    other = Ligand(Chem.RenumberAtoms(ligand.molecule, order))
    template = next(place.glob("DataLocal/Templates/*/HeteroAtoms/ligz"))
    for file in (place / "a_b_c.prmtop", place / "a_b_c.xml", template):
        found = other.parametrize(str(file)).with_radii("openmm-obc")
        assert_same(energies(atoms), energies(found), 2e-3)  # equal atoms of an improper stand in another order
        assert np.allclose(found.charges, atoms.charges[order])
    with pytest.raises(
        ParameterError, match=r"contains the parameters of a molecule other than the SMILES CCO: it has 6 C"
    ):
        Ligand.from_smiles(ETHANOL).parametrize(str(template))
    with pytest.raises(InputError, match="no such file; give the file with the molecule's parameters"):
        ligand.parametrize("none.xml")


@needs_programs
def test_pele_s_files_have_the_energies_and_the_rotamers(written):
    place, atoms = written
    field = ForceField.load(pele_data=[place / "DataLocal"])
    found = read(place / "a_b_c.pdb", field).moved(atoms.positions)
    assert_same(energies(atoms), energies(found))
    everything = np.arange(len(atoms), dtype=np.int32)
    own = read_rot_assign(place / "DataLocal" / "LigandRotamerLibs" / "LIG.rot.assign", found, everything)
    expected = flexible_ligand(atoms, everything)
    assert [[t.axis for t in chain.torsions] for chain in own.side_chains] == [
        [t.axis for t in chain.torsions] for chain in expected.side_chains
    ]
    assert len(own.side_chains) > 0
    table = (place / "DataLocal" / "OBC" / "solventParamsHCTOBC_LIG.txt").read_text()
    rows = [line.split() for line in table.splitlines()]  # pele_platform reads five fields of each line
    assert [row[:2] for row in rows] == [["LIGZ", str(name)] for name in atoms.labels.names]
    assert {len(row) for row in rows} == {5}


@needs_programs
def test_explore_runs_with_what_was_written(tmp_path):
    """A control file of PELE's beside DataLocal: the ligand's template, its radii and rotamers are found there."""
    made = Ligand.from_smiles(SULFONAMIDE, "one")
    result = pele_ocl.parametrize(
        made.moved(made.positions + np.array([12.0, 0, 0])), receptor=HEXAPEPTIDE, output=tmp_path / "out"
    )  # fmt: skip
    place = tmp_path / "out" / "one"
    simulation = copy.deepcopy(SIMULATION)
    simulation["Initialization"]["MultipleComplex"][0]["files"][0]["path"] = "one_complex.pdb"
    (task,) = simulation["commands"][0]["PeleTasks"]
    task["PELE_Parameters"]["numberOfPeleSteps"] = 1
    task["metrics"] = task["metrics"][:1]
    task.pop("parametersChanges")
    (place / "pele.conf").write_text(json.dumps(simulation))
    run("explore", place / "pele.conf", "-o", tmp_path / "run")
    (report,) = (tmp_path / "run").rglob("report_1")
    energy = float(report.read_text().splitlines()[1].split()[3])
    whole = read(HEXAPEPTIDE) + result.atoms(0)
    model = SolventModel.like("pele", gb="obc2", ionic_strength=0.25)
    start = Energy(whole, model=model).evaluate().total
    assert energy < start  # that of the template's parameters, minimized


SANDER_NAMES = {
    "BOND": ("bond",), "ANGLE": ("angle",), "DIHED": ("torsion", "improper"), "VDWAALS": ("lennard_jones",),
    "EEL": ("coulomb",), "EGB": ("gb_pair", "gb_self"), "1-4 VDW": ("lennard_jones_14",), "1-4 EEL": ("coulomb_14",),
}  # fmt: skip


def sander_energies(place, igb=5):
    """Energies of a topology and its restart by a live sander, by our names."""
    (place / "in").write_text(f"one\n &cntrl imin=1, maxcyc=1, ntb=0, cut=999., igb={igb}, ntpr=1, gbsa=0 /\n")
    stem = next(place.glob("*.prmtop"))
    words = [
        "-O",
        "-i",
        "in",
        "-p",
        stem.name,
        "-c",
        stem.with_suffix(".rst7").name,
        "-o",
        "out",
        "-r",
        "r",
        "-inf",
        "i",
    ]
    subprocess.run([antechamber.program("sander"), *words], cwd=place, check=True, env=antechamber.environment())
    text = (place / "out").read_text().partition("NSTEP")[2]
    values = re.findall(r"([A-Z0-9][A-Z0-9 -]*?)\s+=\s+(-?[\d.]+)", text.partition("NSTEP")[0])
    return {name.strip(): float(value) for name, value in values}


@needs_programs
@pytest.mark.parametrize("smiles", [SULFONAMIDE, BENZAMIDINIUM, "CCOP(=O)([O-])Oc1ccc(Cl)cc1Br"])
def test_sander_has_the_same_energies(smiles, tmp_path):
    pele_ocl.parametrize(smiles, output=tmp_path / "out")
    (place,) = (path for path in (tmp_path / "out").iterdir() if path.is_dir())
    stem = next(place.glob("*.prmtop"))
    atoms = read(stem, coordinates=stem.with_suffix(".rst7"))
    ours = energies_like_sander(atoms)
    theirs = sander_energies(place)
    for name, terms in SANDER_NAMES.items():
        assert sum(ours[term] for term in terms) == pytest.approx(theirs[name], abs=1.01e-4), name


def energies_like_sander(atoms):
    model = SolventModel.like("amber", gb="obc2")
    return Energy(atoms, model=model, precision="float64").evaluate(atoms.positions).energy


@needs_programs
def test_one_file_and_what_is_refused(tmp_path):
    path = tmp_path / "l.sdf"
    path.write_text(sdf(Ligand.from_smiles(ETHANOL)))
    pele_ocl.parametrize(path, output=tmp_path / "l.xml")
    assert "<Residue" in (tmp_path / "l.xml").read_text()
    with pytest.raises(FormatError, match="the same file as the input"):
        pele_ocl.parametrize(path, output=path)
    with pytest.raises(InputError, match="a single file contains one molecule, but there are 2"):
        pele_ocl.parametrize([path, ETHANOL], output=tmp_path / "two.xml")
    with pytest.raises(FormatError, match=r"end in \.xml, \.prmtop"):
        pele_ocl.parametrize(path, output=tmp_path / "l.txt")
    with pytest.raises(InputError, match="forcefield is 'opls'; choose 'gaff2' or 'gaff', one of OpenFF"):
        pele_ocl.parametrize(path, "opls")
    with pytest.raises(InputError, match="no molecule is given"):
        pele_ocl.parametrize([])
    with pytest.raises(FormatError, match=r"none\.sdf: no such file"):
        pele_ocl.parametrize([path, "none.sdf"], output=tmp_path / "many", errors="record")
    assert not (tmp_path / "many").exists()
    assert [item.name for item in pele_ocl.parametrize(str(tmp_path / "*.sdf")).items] == ["l"]
    assert "is not a SMILES that RDKit can read" in error_of("ligand", "C1CC", "-o", tmp_path / "x")


def hostile():
    """Records of an SDF file that are no ligand, with words of the reason for each, and good ones between them."""
    from rdkit import Chem
    from rdkit.Chem import AllChem

    good = Ligand.from_smiles(ETHANOL).molecule
    long = Chem.AddHs(Chem.MolFromSmiles("C" * 150))
    long.AddConformer(Chem.Conformer(long.GetNumAtoms()))

    def block(molecule, name):
        copied = Chem.Mol(molecule)
        copied.SetProp("_Name", name)
        return Chem.MolToMolBlock(copied)

    def made(smiles, name, hydrogens=True):
        molecule = Chem.MolFromSmiles(smiles, sanitize=False)
        molecule.UpdatePropertyCache(strict=False)
        molecule = Chem.AddHs(molecule) if hydrogens else molecule
        Chem.FastFindRings(molecule)
        AllChem.EmbedMolecule(molecule, randomSeed=1, useRandomCoords=True)
        return block(molecule, name)

    flat = Chem.Mol(good)
    AllChem.Compute2DCoords(flat)
    huge = block(good, "huge").replace("0.0000 C", "0.0000 C")
    lines = huge.splitlines()
    lines[4] = f"{'99999999999':>10}"[:10] + lines[4][10:]
    yield block(good, "good $(touch pwned); `touch pwned` ../../up"), ""
    yield made("CB(O)O", "boronic"), "is B, for which GAFF has no parameters"
    yield made("[Zn+2].CC(=O)[O-]", "zinc"), "is Zn"
    yield made("C[CH2]", "radical"), "unpaired electron|are missing"
    yield made("CC[NH3+].[Cl-]", "salt"), "2 molecules"
    yield block(flat, "flat"), "two-dimensional drawing"
    yield block(Chem.RemoveHs(good), "bare"), "6 hydrogens are missing"
    yield block(long, "long"), "has no positions|400 at most"
    yield "", "has no|is not a molecule|cannot be read"
    yield "five\n\n\n  1  0  0  0  0  0  0  0  0  0999 V2000\n    0.0000    0.0000\n", "cannot be read"
    yield "\n".join(lines) + "\n", "are bonded at|cannot be read|no positions"
    yield block(good, "good $(touch pwned); `touch pwned` ../../up"), ""
    yield block(good, "con"), ""
    yield block(good, "").replace("\n", "\r\n"), ""


@needs_programs
def test_hostile_molecules_are_rows_with_a_reason(tmp_path):
    records = list(hostile())
    path = tmp_path / "hostile.sdf"
    path.write_bytes("".join(f"{block}$$$$\n" for block, _ in records if block).encode())
    wanted = [reason for block, reason in records if block]
    out = tmp_path / "out"
    result = run("ligand", path, "-o", out, "--json", "--table", tmp_path / "t.csv", code=1)
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(rows) == len(wanted)
    for row, reason in zip(rows, wanted, strict=True):
        assert re.search(reason, row["error"]) if reason else "error" not in row, (row["structure"], row.get("error"))
    assert not list(tmp_path.rglob("pwned"))
    assert {path.parent.parent for path in out.rglob("*.xml")} == {out}
    names = sorted(path.name for path in out.iterdir() if path.is_dir())
    assert names == [
        "_con",
        "good_touch_pwned_touch_pwned_.._.._up",
        "good_touch_pwned_touch_pwned_.._.._up_2",
        "hostile_13",
    ]
    assert (tmp_path / "t.csv").read_text().count("\n") >= len(rows)


@needs_programs
def test_a_run_goes_on(tmp_path):
    path = tmp_path / "three.smi"
    path.write_text(f"{ETHANOL} one\n{BENZAMIDINIUM} two\nCC three\n")
    first = pele_ocl.parametrize(path, output=tmp_path / "out", formats=["xml,sdf"])
    (tmp_path / "out" / "two" / "two.xml").unlink()
    before = (tmp_path / "out" / "one" / "one.xml").stat().st_mtime_ns
    shares = []
    again = pele_ocl.parametrize(
        path, output=tmp_path / "out", formats=["xml", "sdf"], resume=True, progress=shares.append
    )  # fmt: skip
    assert (tmp_path / "out" / "two" / "two.xml").is_file()
    assert (tmp_path / "out" / "one" / "one.xml").stat().st_mtime_ns == before
    assert [record["name"] for record in again.records] == [record["name"] for record in first.records]
    assert shares[-1] == 1
    assert again.table()["formula"].tolist() == ["C2H6O", "C7H9N2+", "C2H6"]
    with pytest.raises(FormatError, match="was written with other settings"):
        pele_ocl.parametrize(path, "gaff", output=tmp_path / "out", resume=True)


@needs_programs
def test_the_doors_agree(tmp_path):
    path = tmp_path / "l.smi"
    path.write_text(f"{ETHANOL} one\n")
    rows = run("ligand", path, "-o", tmp_path / "a", "--json").stdout.splitlines()
    found = pele_ocl.parametrize(path, output=tmp_path / "b")

    def told(row):
        return {k: v for k, v in row.items() if k not in ("seconds", "files")}

    assert [told(json.loads(row)) for row in rows] == [told(row) for row in found.to_json()]
    found.save(tmp_path / "c")
    for one in (tmp_path / "a").rglob("one*"):
        if one.is_file():
            for other in ("b", "c"):
                assert (tmp_path / other / one.relative_to(tmp_path / "a")).read_bytes() == one.read_bytes()


@needs_programs
def test_complexes_with_a_receptor(tmp_path):
    receptor = read(HEXAPEPTIDE)
    made = Ligand.from_smiles(ETHANOL, "one")
    pele_ocl.parametrize(made.moved(made.positions + 20), receptor=HEXAPEPTIDE, output=tmp_path / "out")
    found = read(tmp_path / "out" / "one" / "one_complex.pdb", ligands=[made])
    assert len(found) == len(receptor) + len(made)
    again = read(tmp_path / "out" / "one" / "one_complex.pdb")  # by its own remarks
    assert np.allclose(again.charges, found.charges, atol=1e-9)
    assert "has the parameters of the remark CCO" in " ".join(again.notes)
    assert len(read(tmp_path / "out" / "one" / "one_complex.pdb", select="resname LIG")) == len(made)
    assert len(read(tmp_path / "out" / "one" / "one.pdb")) == len(made)
    stem = tmp_path / "out" / "one" / "one_complex"
    topology = pele_ocl.energy(stem.with_suffix(".prmtop"), coordinates=stem.with_suffix(".rst7")).energy
    together = pele_ocl.energy((receptor + made.moved(made.positions + 20).parametrize()).with_radii("mbondi2")).energy
    for name in ("bond", "angle", "torsion", "lennard_jones", "coulomb", "nonpolar", "total"):
        assert topology[name] == pytest.approx(together[name], abs=2e-3), name
    with pytest.raises(InputError, match="`receptor` is written in complexes to a folder"):
        pele_ocl.parametrize(made, receptor=receptor)


@needs_programs
def test_one_computation_for_all_who_ask_at_once(monkeypatch, folder):
    computed, began = [], threading.Event()
    compute = antechamber.topology_of

    def slow(*args):
        computed.append(1)
        began.set()
        threading.Event().wait(0.3)
        return compute(*args)

    monkeypatch.setattr(antechamber, "topology_of", slow)
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(Ligand.from_smiles(ETHANOL).parametrize())) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(found), len(computed)) == (3, 1)
    assert len(list(folder.glob("*.prmtop"))) == 1


@needs_programs
def test_parameters_are_the_same_bytes_each_time(monkeypatch):
    """By the name gaff2, parmchk2 takes GAFF's parameters in a third of its runs."""
    ligand = Ligand.from_smiles(SULFONAMIDE).in_canonical_order()
    found = {antechamber.topology_of(ligand, "gaff2", "gas") for _ in range(6)}
    assert len(found) == 1
    atoms = Ligand.from_smiles(SULFONAMIDE).parametrize()
    (own,) = np.flatnonzero(atoms.types == "ns")
    assert atoms.lj_epsilon[own] == pytest.approx(0.1174, abs=1e-4)  # of gaff2.dat; that of GAFF's n is 0.17


@needs_programs
def test_waiting_ends_at_the_limit_of_time(folder):
    ligand = Ligand.from_smiles(ETHANOL)
    kept = cache.entry(ligand.smiles, "gaff2", "gas", antechamber.version())
    with (
        cache.held(kept, "the first"),
        pytest.raises(ParameterError, match="was stopped at the time limit while another process computed it"),
    ):
        ligand.parametrize(limit=0.2)


@needs_programs
def test_charges_are_those_of_mmff94():
    from rdkit.Chem.rdForceFieldHelpers import MMFFGetMoleculeProperties

    ligand = Ligand.from_smiles("CC(=O)Nc1ccc(cc1)C([O-])=O")
    atoms, gas = ligand.parametrize(), ligand.parametrize(charges="gas")
    theirs = MMFFGetMoleculeProperties(ligand.molecule)
    assert np.allclose(atoms.charges, [theirs.GetMMFFPartialCharge(k) for k in range(len(ligand))], atol=1e-12)
    assert atoms.charges.sum() == pytest.approx(-1)
    assert atoms.forcefield == "gaff2, charges of MMFF94"
    i, j = atoms.bonded.one_four.atoms.T.reshape(2, -1)
    scaled = atoms.one_four[0] * atoms.charges[i] * atoms.charges[j]
    assert np.allclose(atoms.bonded.one_four.parameters[:, 0], scaled, atol=1e-12)
    assert np.array_equal(atoms.lj_epsilon, gas.lj_epsilon)


@needs_programs
def test_a_molecule_without_charges_of_mmff94_is_refused():
    with pytest.raises(ParameterError, match=r"MMFF94 has no charges for it; choose charges='gas' or 'bcc'"):
        Ligand.from_smiles("O=[I](=O)c1ccccc1").parametrize()


@needs_programs
def test_charges_of_the_file(tmp_path):
    made = Ligand.from_smiles(ETHANOL)
    charges = made.parametrize().charges
    other = np.linspace(-0.2, 0.2, len(charges))
    path = tmp_path / "l.sdf"
    text = " ".join(f"{of:.6f}" for of in other)
    path.write_text(sdf(made).replace("$$$$", f"> <atom.dprop.PartialCharge>\n{text}\n\n$$$$"))
    found = Ligand.read(path).parametrize(charges="file")
    assert np.allclose(found.charges, other, atol=1e-6)
    scaled = energies(found, "none")
    whole = replace(found, bonded=None)
    assert scaled["coulomb"] + scaled["coulomb_14"] == pytest.approx(
        sum(energies(whole, "none")[name] for name in ("coulomb", "coulomb_14")), abs=1e-3
    )
    with pytest.raises(InputError, match="its file has no partial charges of all atoms"):
        made.parametrize(charges="file")
    path.write_text(path.read_text().replace("-0.200000", "5.0"))
    with pytest.raises(ParameterError, match=r"the charges of its file add up to \+5\.200 e, not \+0"):
        Ligand.read(path).parametrize(charges="file")


def test_openff_without_its_toolkit():
    with pytest.raises(InputError, match="the force fields of OpenFF need its toolkit"):
        Ligand.from_smiles(ETHANOL).parametrize("openff-2.2.1")


def test_names_of_files_differ():
    from pele_ocl.parametrize.items import items_of

    molecules = [ETHANOL, Ligand.from_smiles(ETHANOL, "../A b"), Ligand.from_smiles("C", "a_B")]
    names = [item.name for item in items_of(molecules, "given", None, None)]
    assert names == ["ligand_1", "A_b", "a_B_2"]
    assert Path(names[1]).name == names[1]


PROCESS = """
import sys, time
import pele_ocl.ligand.antechamber as by
from pele_ocl import Ligand
compute = by.topology_of
def slow(*given):
    with open(sys.argv[1], "a") as file:
        file.write("computed\\n")
    print("begins", flush=True)
    time.sleep(float(sys.argv[2]))
    return compute(*given)
by.topology_of = slow
Ligand.from_smiles("CCO").parametrize()
"""


@needs_programs
def test_processes_wait_for_each_other_and_a_killed_one_holds_nobody(folder, tmp_path):
    """The first is killed while it computes; of two that begin then, one computes and the other waits."""
    counts = tmp_path / "counts"

    def begun(seconds):
        words = [sys.executable, "-c", PROCESS, str(counts), str(seconds)]
        return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)

    with begun(60) as killed:
        assert killed.stdout.readline() == "begins\n"
        killed.kill()
    assert not list(folder.glob("*.prmtop"))
    with begun(1) as one, begun(1) as other:
        assert one.wait() == other.wait() == 0
    assert counts.read_text() == 2 * "computed\n"
    (kept,) = folder.glob("*.prmtop")
    before = kept.read_bytes()
    kept.unlink()
    Ligand.from_smiles(ETHANOL).parametrize()
    assert kept.read_bytes() == before


@needs_programs
def test_force_fields_of_openff_come_by_the_toolkit(written, monkeypatch):
    """A stand-in for the toolkit, whose System is that of our XML file: every step but the toolkit's own."""
    pytest.importorskip("openmm")
    from openmm import app

    place, atoms = written

    class Molecule:
        @classmethod
        def from_rdkit(cls, molecule, allow_undefined_stereo):
            return cls()

        def assign_partial_charges(self, method):
            assert method == "gasteiger"

        def to_topology(self):
            return None

    class Field:
        def __init__(self, name):
            assert name == "openff-2.2.1.offxml"

        def create_openmm_system(self, topology, charge_from_molecules):
            pdb = app.PDBFile(str(place / "a_b_c.pdb"))
            return app.ForceField(str(place / "a_b_c.xml")).createSystem(pdb.topology)

    toolkit = types.ModuleType("openff.toolkit")
    toolkit.Molecule, toolkit.ForceField = Molecule, Field
    monkeypatch.setitem(sys.modules, "openff", types.ModuleType("openff"))
    monkeypatch.setitem(sys.modules, "openff.toolkit", toolkit)
    ligand = Ligand.from_smiles(SULFONAMIDE)
    found = openff.topology_of(ligand, "openff-2.2.1", "gas")
    (place / "openff.prmtop").write_bytes(found)
    again = read(place / "openff.prmtop", coordinates=place / "a_b_c.rst7").moved(atoms.positions)
    assert_same(energies(atoms.with_radii("mbondi2")), energies(again.with_radii("mbondi2")), 1e-5)


# Explorations of a structure and its ligand

EXAMPLE = Path(__file__).parents[1] / "data" / "explore" / "example"
CLASSES = {
    "sulfonamide": SULFONAMIDE, "thioether": "CSc1ccccc1", "phosphate": "COP(=O)([O-])[O-]", "phosphine": "CP(=O)(C)C",
    "halogens": "Fc1cc(Cl)cc(Br)c1", "iodide": "Ic1ccccc1O", "cation": BENZAMIDINIUM, "anion": "CC(=O)[O-]",
    "zwitterion": "C[NH2+]CC(=O)[O-]", "biphenyl": "c1ccccc1-c1ccncc1",
}  # fmt: skip


@needs_programs
@pytest.mark.parametrize("name", CLASSES)
def test_a_run_s_template_has_the_energies_of_the_xml_file(name, tmp_path):
    """As a control file reads the ligand, and as an OpenMM XML file gives it, term by term."""
    ligand = Ligand.from_smiles(CLASSES[name], name)
    ligand = ligand.moved(ligand.positions + np.array([12.0, 0, 0]))
    pele_ocl.parametrize(ligand, output=tmp_path / "lig.xml")
    preset = preset_of("rescoring")
    made = prepare_run(Path(HEXAPEPTIDE), tmp_path / "out", preset, Reading(ligands=(ligand,)), 1, 1)
    simulation = read_simulation(made.control)
    run_of = Exploration(simulation, 1, folder=tmp_path / "run", here=False)
    there = run_of.groups[0].atoms
    theirs = read(made.structure, ligands=[ligand], ligand_forcefield=str(tmp_path / "lig.xml"), radii="openmm-obc")
    assert there.labels.residue_names.tolist() == theirs.labels.residue_names.tolist()
    assert_same(energies(there, "none"), energies(theirs, "none"), 2e-3)
    rows = read(made.structure, run_of.forcefield, radii="openmm-obc")
    assert_same(energies(rows), energies(theirs), 2e-3)


@needs_programs
def test_the_example_is_what_a_structure_and_its_ligand_give(tmp_path, monkeypatch):
    run("explore", "--example", tmp_path / "example")
    run("explore", "--example", tmp_path / "example", code=1)
    monkeypatch.chdir(tmp_path / "example")
    words = {"seed": 1, "steps": 12}
    result = pele_ocl.explore("complex.pdb", ligands=["ligand.sdf"], **words)
    for file in EXAMPLE.rglob("*"):
        if file.is_file() and file.name not in ("complex.pdb", "ligand.sdf"):
            made = Path("complex_explore") / file.relative_to(EXAMPLE)
            assert made.read_bytes() == file.read_bytes(), file.name
    run("explore", "complex.pdb", "--ligand-file", "ligand.sdf", "-o", "b", "--seed", 1, "--steps", 12)
    run("explore", "pele.conf", "-o", "c")
    for folder_of in ("b", "c"):
        assert (Path(folder_of) / "report_1").read_bytes() == result.reports[0].read_bytes()
    again = run("explore", "complex.pdb", "--ligand-file", "ligand.sdf", "-o", "b", "--preset", "out_in", code=1)
    assert "is the control file of another run; choose another folder with --output" in again.stderr


@needs_programs
def test_ligands_get_a_chain_and_names_of_their_own(tmp_path):
    """Two copies of a molecule in the protein's chain, named otherwise, and a cofactor of the same residue name."""
    lines = (EXAMPLE / "complex.pdb").read_text().splitlines()
    protein = [line for line in lines if line.startswith("ATOM")]
    ligand = [line for line in lines if line.startswith("HETATM")]
    second = [
        f"{line[:12]}{line[76:78].strip():>2}{k:<2}{line[16:21]}A   8    {float(line[30:38]) + 30:8.3f}{line[38:]}"
        for k, line in enumerate(ligand)
    ]
    first = [f"{line[:21]}A   7{line[26:]}" for line in ligand]
    path = tmp_path / "two.pdb"
    path.write_text("\n".join([*protein, *first, *second, "END", ""]))
    cofactor = Ligand.from_smiles("Oc1ccccc1", "phenol")
    cofactor = cofactor.moved(cofactor.positions + np.array([-25.0, 0, 0]))
    with heard_notes() as heard:
        made = prepare_run(
            path, tmp_path / "out", preset_of("out_in"), Reading(ligands=(str(EXAMPLE / "ligand.sdf"), cofactor)), 1, 1
        )
    assert any("2 residues are the ligand; A:LIG7 is explored" in note for note in heard)
    atoms = Exploration(read_simulation(made.control), 1, folder=tmp_path / "run", here=False).groups[0].atoms
    starts = atoms.labels.residue_starts[-3:]
    assert [(str(atoms.labels.chains[k]), str(atoms.labels.residue_names[k])) for k in starts] == [
        ("Z", "LIG"), ("A", "LIG"), ("L", "LI1"),
    ]  # fmt: skip
    (block,) = json.loads(made.control.read_text())["commands"]
    assert block["selectionToPerturb"] == {"chains": {"names": ["Z"]}}


def test_structures_that_cannot_be_explored(tmp_path):
    structure, control = EXAMPLE / "complex.pdb", EXAMPLE / "pele.conf"
    for words, sentence in (
        ({}, "give the file of the ligand as `ligands`"),
        ({"ligands": [HEXAPEPTIDE]}, ".sdf. For a peptide, use a control file whose selectionToPerturb"),
        ({"ligands": ["none.sdf"]}, "none.sdf"),
        ({"ligands": ["a.sdf"], "preset": "site_finder"}, "induced_fit_fast"),
        ({"ligands": ["a.sdf"], "complexes": [structure]}, "`complexes` need a control file"),
    ):
        with pytest.raises((InputError, FormatError), match=re.escape(sentence)):
            pele_ocl.explore(structure, output=tmp_path / "out", **words)
    with pytest.raises(InputError, match="leave out `preset` and `ligands`"):
        pele_ocl.explore(control, output=tmp_path / "out", preset="rescoring")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_control_files_that_are_done(name, tmp_path):
    labels = read(Path(HEXAPEPTIDE).with_name("ubiquitin.pdb")).labels
    whole = control_of(PRESETS[name], "a.pdb", "L", np.zeros(3), labels, None)
    path = tmp_path / "pele.conf"
    path.write_text(json.dumps(whole))
    simulation = read_simulation(path)
    simulation.require_done()
    assert simulation.notes == ()
    (task,) = simulation.tasks
    assert (task.anm is None) == (name == "rescoring")
    of_76 = {"rescoring": [2.5] * 8, "gpcr_orth": [5.0] * 14}.get(name, [0.5] * 6)
    assert [of.constant for of in task.constraints] == [5.0, *of_76, 5.0]
    assert len(task.changes) == len(PRESETS[name].changes)


def test_an_exit_holds_the_centre_by_how_far_it_is(tmp_path):
    labels = read(Path(HEXAPEPTIDE).with_name("ubiquitin.pdb")).labels
    path = tmp_path / "pele.conf"
    path.write_text(json.dumps(control_of(PRESETS["in_out"], "a.pdb", "L", np.zeros(3), labels, None)))
    (task,) = read_simulation(path).tasks
    *_, near, far = task.changes
    assert near.then["parameters"] == {"com_constant": 0.25}
    assert near.otherwise["parameters"] == {"com_constant": 1.0}
    assert far.then["parameters"] == {"com_constant": 10.0}
    assert "rand3" in {of.tag for of in task.metrics}


@needs_programs
def test_a_global_search_begins_at_places_around_the_receptor(tmp_path):
    given = Reading(ligands=(str(EXAMPLE / "ligand.sdf"),))
    out = [tmp_path / name for name in ("a", "b", "c")]
    made = [
        prepare_run(EXAMPLE / "complex.pdb", folder, preset_of("global"), given, seed, 1, 3)
        for folder, seed in zip(out, (7, 7, 8), strict=True)
    ]
    first, again, other = ([path.read_text() for path in each.starts] for each in made)
    assert first == again
    assert len({*first, *other}) == 6
    complexes = [read_structure(path) for path in made[0].starts]
    is_ligand = complexes[0].labels.residue_names == "LIG"
    receptor = complexes[0].positions[~is_ligand]
    for each in complexes:
        assert np.array_equal(each.positions[~is_ligand], receptor)
        apart = np.linalg.norm(each.positions[is_ligand][:, None] - receptor, axis=2).min()
        assert 3 - 2e-3 <= apart <= 5 + 2e-3
    simulation = read_simulation(made[0].control)
    assert [Path(of).name for (of,) in simulation.complexes] == [path.name for path in made[0].starts]


def test_presets_are_those_of_the_page():
    page = (Path(__file__).parents[1] / "docs" / "explore.md").read_text()
    rows = re.findall(
        r"^\| `(\w+)`[^|]*\|[^|]*\| (?:(\d+) x )?(\d+) \| (?:(\d+) Å|none|all) \| (?:(\d+) K)?", page, re.M
    )
    told = {
        name: (int(epochs or 1), int(steps), float(radius) if radius else None, float(kelvin) if kelvin else 1500.0)
        for name, epochs, steps, radius, kelvin in rows
    }
    assert told == {name: (of.epochs, of.steps, of.radius, of.temperature) for name, of in PRESETS.items()}


@needs_programs
def test_mols_of_rdkit_are_molecules(tmp_path):
    from rdkit import Chem

    good = Ligand.from_smiles(ETHANOL).molecule
    named = Chem.Mol(good)
    named.SetProp("_Name", "a;b")
    bare = Chem.MolFromSmiles("CC[CH2]")
    result = pele_ocl.parametrize([named, good, bare], output=tmp_path / "out", errors="record")
    assert [item.name for item in result.items] == ["a_b", "ligand_2", "ligand_3"]
    assert list(result.errors) == [2]
    assert result.errors[2].startswith("Mol 3")
    assert_same(energies(result.atoms(0)), energies(Ligand.from_smiles(ETHANOL).parametrize()))
    assert (tmp_path / "out" / "ligand_2" / "ligand_2.xml").is_file()
    assert len(pele_ocl.parametrize(named)) == 1
    with pytest.raises(InputError, match="Mol of RDKit"):
        pele_ocl.parametrize([named, 3])


def test_phosphorylated_residues_of_other_force_fields_have_a_way(tmp_path):
    pytest.importorskip("openmm")
    lines = (EXAMPLE / "complex.pdb").read_text().splitlines()
    protein = [line for line in lines if line.startswith("ATOM")]
    protein = [f"{line[:17]}TPO{line[20:]}" if line[22:26] == protein[40][22:26] else line for line in protein]
    path = tmp_path / "p.pdb"
    protein[40] = f"{protein[40][:12]} P  {protein[40][16:76]} P"
    path.write_text("\n".join([*protein, "END", ""]))
    with pytest.raises(ParameterError, match=r"amber14 has no residue TPO.*use the built-in force field"):
        read(path, "amber14")
