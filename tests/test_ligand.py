"""Ligands: reading and refusing small molecules, their parameters, and complexes with them."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("rdkit")

from test_cli import HEXAPEPTIDE, error_of, on_the_chosen_device, run

import pele_ocl
from pele_ocl import (
    Energy,
    EnergySpec,
    FormatError,
    InputError,
    Ligand,
    ParameterError,
    SolventModel,
    jobs,
    read,
    read_ligands,
    write_conformations,
)
from pele_ocl.common.inputfile import read_file
from pele_ocl.ligand import antechamber, cache
from pele_ocl.ligand.remarks import LigandRemark, remarks_in

__all__ = ["on_the_chosen_device"]

ETHANOL, BENZAMIDINIUM = "CCO", "NC(=[NH2+])c1ccccc1"
try:
    antechamber.program("antechamber")
    HAS_PROGRAMS = True
except InputError:
    HAS_PROGRAMS = False
needs_programs = pytest.mark.skipif(not HAS_PROGRAMS, reason="AmberTools' programs are not here")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PELE_OCL_LIGANDS", str(tmp_path / "kept"))
    return tmp_path / "kept"


def sdf(ligand: Ligand, order: list[int] | None = None, v3000: bool = False) -> str:
    from rdkit import Chem

    molecule = ligand.molecule if order is None else Chem.RenumberAtoms(ligand.molecule, order)
    return Chem.MolToMolBlock(molecule, forceV3000=v3000) + "$$$$\n"


# Reading


def test_smiles():
    ligand = Ligand.from_smiles(BENZAMIDINIUM, "benzamidine")
    assert repr(ligand) == "Ligand(benzamidine, C7H9N2+, 18 atoms)"
    assert ligand.charge == 1
    assert ligand.labels.names.tolist()[:3] == ["N1", "C1", "N2"]
    assert np.array_equal(ligand.positions, Ligand.from_smiles(BENZAMIDINIUM).positions)


@pytest.mark.parametrize(
    ("smiles", "message"),
    [
        ("C1CC", "is not a SMILES"),
        ("", "is not a SMILES"),
        ("CB(O)O", r"atom 2 is B, for which GAFF has no parameters"),
        ("C[CH2]", r"atom 2 \(C\) has 1 unpaired electrons"),
        ("CC[NH3+].[Cl-]", r"has 2 molecules, of 11, 1 atoms; give the ligand "),
    ],
)
def test_what_no_force_field_of_small_molecules_describes(smiles, message):
    with pytest.raises(InputError, match=message):
        Ligand.from_smiles(smiles)


@pytest.mark.parametrize("v3000", [False, True])
def test_sdf_in_any_order(tmp_path, v3000):
    made = Ligand.from_smiles(ETHANOL)
    order = [8, 2, 5, 0, 7, 1, 3, 6, 4]
    path = tmp_path / "l.sdf"
    path.write_text(sdf(made, order, v3000))
    found = Ligand.read(path)
    assert found.elements == tuple(made.elements[i] for i in order)
    assert found.smiles == made.smiles
    assert np.allclose(found.positions, made.positions[order], atol=1e-3)


def test_files_that_are_refused(tmp_path):
    from rdkit import Chem
    from rdkit.Chem import AllChem

    flat = Chem.AddHs(Chem.MolFromSmiles(ETHANOL))
    AllChem.Compute2DCoords(flat)
    heavy = Chem.RemoveHs(Ligand.from_smiles(ETHANOL).molecule)
    path = tmp_path / "l.sdf"
    for block, message in (
        (Chem.MolToMolBlock(flat), "it is a two-dimensional drawing"),
        (Chem.MolToMolBlock(heavy), r"6 hydrogens are missing.*\(`hydrogens='add'`\)"),
        ("ligand\n", "molecule 1 cannot be read"),
    ):
        path.write_text(block)
        with pytest.raises((InputError, FormatError), match=message):
            Ligand.read(path)
    path.write_text(Chem.MolToMolBlock(heavy))
    added = Ligand.read(path, hydrogens="add")
    assert (len(added), added.notes[0].partition(": ")[2]) == (
        9, "6 hydrogens were added; formal charges are the file's"
    )  # fmt: skip
    with pytest.raises(FormatError, match="has no molecule 2; it has 1"):
        Ligand.read(path, 2)
    (tmp_path / "l.pqr").write_text("")
    with pytest.raises(FormatError, match="is not a file of small molecules"):
        Ligand.read(tmp_path / "l.pqr")


def test_one_bad_molecule_among_several(tmp_path):
    ethanol = Ligand.from_smiles(ETHANOL)
    path = tmp_path / "three.sdf"
    path.write_text(sdf(ethanol) + "bad\n\n\nnothing\n$$$$\n" + sdf(ethanol))
    failed: dict[int, str] = {}
    assert [len(each) for each in read_ligands(path, failed=failed)] == [9, 9]
    assert list(failed) == [2]
    with pytest.raises(FormatError, match=r"three\.sdf:\d+: molecule 2 cannot be read"):
        read_ligands(path)


def test_damaged_files_are_refused_with_a_sentence(tmp_path):
    """Whatever is cut out of a file, or put into it, an error says what is wrong."""
    made = Ligand.from_smiles(POSE)
    mol2 = "@<TRIPOS>MOLECULE\nx\n 3 2 1\nSMALL\nNO_CHARGES\n@<TRIPOS>ATOM\n1 O 0.0 0.0 0.0 O.3\n" + (
        "2 H 0.96 0.0 0.0 H\n3 H -0.24 0.93 0.0 H\n@<TRIPOS>BOND\n1 1 2 1\n2 1 3 1\n"
    )
    texts = {"sdf": sdf(made), "smi": f"{POSE} a\n", "pdbqt": pdbqt(made), "mol2": mol2}
    random = np.random.default_rng(3)
    for suffix, text in texts.items():
        path = tmp_path / f"l.{suffix}"
        for _ in range(25):
            k, n = random.integers(len(text)), random.integers(1, 60)
            more = ("", "\n", "9", "-", "\x00")[random.integers(5)]
            path.write_text(f"{text[:k]}{more}{text[k + n :]}")
            with contextlib.suppress(FormatError, InputError, ParameterError):
                read_ligands(path, failed={})
    (tmp_path / "l.mol2").write_text(mol2.partition("\n")[2])
    with pytest.raises(FormatError, match="contains no molecule"):
        read_ligands(tmp_path / "l.mol2")


POSE = "C[C@H](N)C(=O)Nc1ccc(O)cc1CCl"


def pdbqt(ligand: Ligand, remarks: bool = True) -> str:
    """Write a molecule as Meeko writes it: heavy atoms backwards, hydrogens of N and O, the SMILES in remarks."""
    lines, serials, parents = [], {}, {}
    atoms = list(ligand.molecule.GetAtoms())
    polar = [a.GetIdx() for a in atoms if a.GetSymbol() == "H" and a.GetNeighbors()[0].GetSymbol() in "NO"]
    heavy = [a.GetIdx() for a in atoms if a.GetSymbol() != "H"]
    for serial, k in enumerate([*heavy[::-1], *polar], 1):
        symbol = atoms[k].GetSymbol()
        kind = {"H": "HD", "O": "OA"}.get(symbol, "A" if atoms[k].GetIsAromatic() else symbol)
        x, y, z = ligand.positions[k]
        lines.append(
            f"ATOM  {serial:5d}  {symbol:<3} UNL     1    {x:8.3f}{y:8.3f}{z:8.3f}  1.00  0.00    +0.000 {kind:<2}"
        )
        serials[k] = serial
        if symbol == "H":
            parents[serial] = atoms[k].GetNeighbors()[0].GetIdx() + 1
    head = [
        f"REMARK SMILES {POSE}",
        "REMARK SMILES IDX " + " ".join(f"{k + 1} {serials[k]}" for k in heavy),
        "REMARK H PARENT " + " ".join(f"{parent} {serial}" for serial, parent in parents.items()),
    ]
    return "\n".join([*(head if remarks else []), "ROOT", *lines, "ENDROOT", "TORSDOF 0"]) + "\n"


@pytest.mark.parametrize("kind", ["remarks", "template", "dlg"])
def test_docked_poses_have_the_bonds_of_their_smiles(tmp_path, kind):
    made = Ligand.from_smiles(POSE)
    models = [
        f"MODEL {k}\nREMARK VINA RESULT:   {-k}.5   0.0   0.0\n{pdbqt(made, kind == 'remarks')}ENDMDL" for k in (1, 2)
    ]
    path = tmp_path / f"out.{'dlg' if kind == 'dlg' else 'pdbqt'}"
    text = "\n".join(models)
    if kind == "dlg":
        head = [f"INPUT-LIGAND-PDBQT: {line}" for line in pdbqt(made).splitlines() if line.startswith("REMARK")]
        text = "\n".join([*head, *(f"DOCKED: {line}" for line in text.splitlines())])
    path.write_text(text)
    found = read_ligands(path, template=POSE if kind == "template" else None)
    assert [each.properties["docking_score"] for each in found] == ["-1.5", "-2.5"]
    for each in found:
        assert each.smiles == made.smiles
        n = made.molecule.GetNumHeavyAtoms()
        ours, theirs = made.positions[:n], each.positions[:n]
        assert np.abs(ours[:, None] - theirs).max(axis=2).min(axis=1).max() < 1e-3
        assert "9 hydrogens were added" in each.notes[0]  # the four of N and O are given


def test_rings_that_meeko_opens_are_closed_again(tmp_path):
    """The ends of a ring that turns are of types CG0, and glue atoms G0 stand beside them."""
    made = Ligand.from_smiles(POSE)
    glue = "ATOM     99  G   UNL     1       1.000   2.000   3.000  1.00  0.00    +0.000 G0\nENDROOT"
    path = tmp_path / "p.pdbqt"
    path.write_text(pdbqt(made).replace("+0.000 C \n", "+0.000 CG0\n").replace("ENDROOT", glue))
    assert "CG0" in path.read_text()
    assert Ligand.read(path).smiles == made.smiles


def test_a_docked_pose_without_bond_orders_is_refused(tmp_path):
    path = tmp_path / "p.pdbqt"
    path.write_text(pdbqt(Ligand.from_smiles(POSE), remarks=False))
    with pytest.raises(InputError, match="give the SMILES as `template`"):
        Ligand.read(path)
    with pytest.raises(InputError, match=r"is not the molecule of the template: it has .* too many"):
        Ligand.read(path, template="CCO")
    path.write_text(path.read_text().replace("ATOM      3", "ATOM      x"))
    with pytest.raises(FormatError, match="its line 4 is not an atom of a PDBQT file"):
        Ligand.read(path, template=POSE)


@pytest.mark.parametrize("with_hydrogens", [True, False])
def test_residues_of_a_structure_take_bond_orders_of_a_template(tmp_path, with_hydrogens):
    from rdkit import Chem

    made = Ligand.from_smiles(POSE, residue_name="DRG")
    molecule = made.molecule if with_hydrogens else Chem.RemoveHs(made.molecule)
    molecule = Chem.RenumberAtoms(molecule, list(range(molecule.GetNumAtoms()))[::-1])
    path = tmp_path / "complex.pdb"
    protein = [line for line in HEXAPEPTIDE.read_text().splitlines() if line.startswith(("ATOM", "TER"))]
    block = Chem.MolToPDBBlock(molecule, flavor=4).replace("UNL", "DRG")
    path.write_text("\n".join([*protein, block]))
    found = Ligand.read(path, template=POSE)
    assert (found.smiles, found.residue_name, found.source) == (made.smiles, "DRG", f"{path}, DRG1")
    assert found.labels.names.tolist()[:3] == ["CL1", "C1", "C2"]
    assert Ligand.read(path, template=POSE, ph=7.0).charge == 1
    with pytest.raises(InputError, match="has no bond orders; give the molecule's SMILES"):
        Ligand.read(path)
    with pytest.raises(InputError, match="no residue matches the molecule of the template: DRG: it has"):
        Ligand.read(path, template="CCO")


def test_components_of_the_pdb(tmp_path, monkeypatch):
    (tmp_path / "ETX.cif").write_text(
        "data_ETX\nloop_\n_chem_comp_atom.comp_id\n_chem_comp_atom.atom_id\n_chem_comp_atom.type_symbol\n"
        "_chem_comp_atom.charge\nETX C1 C 0\nETX C2 C 0\nETX O O -1\nloop_\n_chem_comp_bond.comp_id\n"
        "_chem_comp_bond.atom_id_1\n_chem_comp_bond.atom_id_2\n_chem_comp_bond.value_order\n"
        "ETX C1 C2 SING\nETX C2 O SING\n"
    )
    monkeypatch.setenv("PELE_OCL_CCD", str(tmp_path))
    made = Ligand.from_smiles("CC[O-]")
    path = tmp_path / "e.pdb"
    from rdkit import Chem

    path.write_text(Chem.MolToPDBBlock(Chem.RemoveHs(made.molecule)).replace("UNL", "ETX"))
    assert Ligand.read(path, template="ccd:ETX").smiles == made.smiles
    with pytest.raises(InputError, match="the component QQQ was not found; give its SMILES"):
        Ligand.read(path, template="ccd:QQQ")


@pytest.mark.parametrize(
    ("smiles", "charge"),
    [
        ("CC(=O)O", -1), ("NCCN", 1), ("C1CNCCN1", 1), ("NC(=N)c1ccccc1", 1), ("CNC(N)=N", 1), ("c1ccncc1", 0),
        ("Nc1ccccc1", 0), ("CC(N)=O", 0), ("COP(=O)(O)O", -2), ("CC(=O)NS(C)(=O)=O", -1), ("C[N+](C)(C)C", 1),
        ("NCC(=O)O", 0), ("c1nn[nH]n1", -1), ("c1c[nH]cn1", 0), ("NC(N)=O", 0), ("CC(=O)[O-]", -1), ("C[NH3+]", 1),
    ],
)  # fmt: skip
def test_protonation_at_a_ph(smiles, charge):
    ligand = Ligand.from_smiles(smiles, ph=7.4)
    assert ligand.charge == charge
    assert "protonated at pH 7.4" in ligand.notes[0]


def test_data_of_an_sdf_file(tmp_path):
    path = tmp_path / "l.sdf"
    path.write_text(sdf(Ligand.from_smiles(ETHANOL)).replace("$$$$", "> <IC50> (1)\n12 nM\n\n> <x y>\na\nb\n\n$$$$"))
    assert Ligand.read(path).properties == {"IC50": "12 nM", "x y": "a\nb"}


# Parameters


@needs_programs
def test_parameters_do_not_depend_on_the_order_and_are_computed_once(monkeypatch, folder):
    made = Ligand.from_smiles(ETHANOL)
    computed = []
    compute = antechamber.topology_of
    monkeypatch.setattr(antechamber, "topology_of", lambda *args: computed.append(1) or compute(*args))
    order = [8, 2, 5, 0, 7, 1, 3, 6, 4]
    from rdkit import Chem

    other = Ligand(Chem.RenumberAtoms(made.molecule, order))
    first, second = made.parametrize(), other.parametrize()
    assert len(computed) == 1
    one, two = (Energy(atoms, precision="float64").evaluate(atoms.positions) for atoms in (first, second))
    assert two.total == pytest.approx(one.total, abs=1e-9)
    assert np.allclose(np.sort(second.charges), np.sort(first.charges), atol=0)
    assert [second.labels.elements[k] for k in range(9)] == [first.labels.elements[i] for i in order]
    (kept,) = folder.glob("*.prmtop")
    whole = kept.read_bytes()
    kept.write_bytes(whole[:1000])  # damaged
    assert np.array_equal(made.parametrize().charges, first.charges)
    assert len(computed) == 2
    assert kept.read_bytes() == whole


@needs_programs
@pytest.mark.parametrize("smiles", [BENZAMIDINIUM, "CC(=O)[O-]", "C[n+]1ccccc1", "C[N+](C)(C)CC(=O)[O-]"])
def test_no_charge_is_lost(smiles):
    """antechamber's Gasteiger charges of some cations add up to 0."""
    ligand = Ligand.from_smiles(smiles)
    assert ligand.parametrize().charges.sum() == pytest.approx(ligand.charge, abs=1e-3)


def test_missing_programs_are_named(monkeypatch):
    monkeypatch.setattr(antechamber.shutil, "which", lambda *_, **__: None)
    antechamber.version.cache_clear()
    with pytest.raises(InputError, match=r"AmberTools' antechamber is needed .* conda-forge ambertools"):
        Ligand.from_smiles(ETHANOL).parametrize()


def test_settings_that_do_not_go_together():
    ligand = Ligand.from_smiles(ETHANOL)
    with pytest.raises(InputError, match="ABCG2 charges were developed for GAFF2"):
        ligand.parametrize("gaff", "abcg2")
    with pytest.raises(InputError, match="forcefield"):
        ligand.parametrize("opls")


def test_a_folder_that_cannot_be_written_to_keeps_nothing(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setenv("PELE_OCL_LIGANDS", str(file))
    cache.keep(cache.entry("x"), b"y")
    assert not file.read_text()


# Complexes


@needs_programs
def test_a_complex_is_the_sum_of_its_parts():
    """Far apart, without charges that reach so far; in company of the peptide the ligand has its kind of radii."""
    receptor = read(HEXAPEPTIDE)
    made = Ligand.from_smiles(ETHANOL)
    ligand = made.moved(made.positions + np.array([1000, 0, 0])).parametrize()
    together = receptor + ligand
    assert len(together) == len(receptor) + 9
    assert together.labels.residues[-1].name == "LIG"
    assert together.has_default_radii
    for gb in ("obc2", "gbn2"):
        model = SolventModel(gb=gb)
        totals = [
            Energy(atoms, model=model, precision="float64").evaluate(atoms.positions).total
            for atoms in (together, receptor, ligand)
        ]
        assert totals[0] == pytest.approx(totals[1] + totals[2], abs=2e-3)


@needs_programs
def test_chains_of_two_ligands_differ():
    receptor = read(HEXAPEPTIDE)
    ethanol = Ligand.from_smiles(ETHANOL).parametrize()
    three = receptor + ethanol + ethanol
    residues = [str(residue) for residue in three.labels.residues]
    assert len(set(residues)) == len(residues)
    with pytest.raises(TypeError):
        receptor + "ligand"


@needs_programs
def test_many_ligands_have_chains_of_their_own():
    ethanol = Ligand.from_smiles(ETHANOL).parametrize()
    together = ethanol
    for _ in range(30):
        together = together + ethanol
    assert len({str(residue) for residue in together.labels.residues}) == 31


@needs_programs
def test_radii_that_one_molecule_brings_are_told():
    receptor, ethanol = read(HEXAPEPTIDE), Ligand.from_smiles(ETHANOL).parametrize()
    for together in (receptor.with_radii("mbondi2") + ethanol, receptor + ethanol.with_radii("mbondi2")):
        assert together.gb_radii_set == "mbondi2"
        assert not together.has_default_radii
        assert any("GB radii of both molecules are mbondi2" in note for note in together.notes)
    assert not any("GB radii" in note for note in (receptor + ethanol).notes)


@needs_programs
def test_an_sdf_file_takes_the_same_words(tmp_path):
    path = tmp_path / "two.sdf"
    ethanol = sdf(Ligand.from_smiles(ETHANOL))
    path.write_text(ethanol + "bad\n\n\nnothing\n$$$$\n" + ethanol)
    atoms = read(path, ligand_forcefield="gaff")
    assert atoms.forcefield.startswith("gaff, ")
    assert any("contains several models" in note for note in atoms.notes)
    assert read(path, model=3).forcefield.startswith("gaff2, ")
    with pytest.raises(InputError, match="ligand_charges"):
        read(path, ligand_charges="none")


@needs_programs
def test_the_doors_agree(tmp_path):
    path = tmp_path / "l.sdf"
    made = Ligand.from_smiles(ETHANOL)
    path.write_text(sdf(made.moved(made.positions + np.array([12, 0, 0]))))
    atoms = read(HEXAPEPTIDE, ligands=[path])
    assert np.array_equal(atoms.charges, (read(HEXAPEPTIDE) + Ligand.read(path).parametrize()).charges)
    total = Energy(atoms).evaluate(atoms.positions).total
    record = json.loads(run("energy", HEXAPEPTIDE, "--ligand-file", path, "--json").stdout)
    assert record["energy"]["total"] == pytest.approx(total, rel=1e-9)
    assert any("parameters of GAFF2" in note for note in record["notes"])
    alone = json.loads(run("energy", path, "--json").stdout)
    assert alone["n_atoms"] == 9
    binding = run("binding", HEXAPEPTIDE, "--ligand-file", path, "--ligand", "resname LIG", "--json")
    assert json.loads(binding.stdout)["n_atoms"] == len(atoms)
    assert "no such file" in error_of("energy", HEXAPEPTIDE, "--ligand-file", tmp_path / "none.sdf")


# Residues that are ligands


@pytest.fixture(scope="module")
def parametrized(tmp_path_factory):
    """Benzamidinium with parameters, which are made once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PELE_OCL_LIGANDS", str(tmp_path_factory.mktemp("parameters")))
        return Ligand.from_smiles(BENZAMIDINIUM).parametrize()


def complex_with(parametrized, path, order=None, names=None, where=(30.0, 0.0, 0.0)):
    """Write the hexapeptide with the ligand behind it, its atoms in an order and with names."""
    ligand = parametrized.moved(parametrized.positions + where)
    ligand = ligand if order is None else ligand[order]
    if names is not None:
        ligand = replace(ligand, labels=replace(ligand.labels, names=np.array(names)))
    whole = read(HEXAPEPTIDE) + ligand
    write_conformations(path, whole)
    return whole


@needs_programs
def test_of_several_molecules_the_one_of_the_residue_is_taken(parametrized, tmp_path, folder):
    complex_with(parametrized, tmp_path / "complex.pdb")
    path, smiles = tmp_path / "many.sdf", [ETHANOL, BENZAMIDINIUM.replace("[NH2+]", "N"), BENZAMIDINIUM]
    path.write_text("".join(sdf(Ligand.from_smiles(of)) for of in smiles))
    found = read(tmp_path / "complex.pdb", ligands=[path])
    assert len(found) == len(read(HEXAPEPTIDE)) + len(parametrized)
    assert any("molecule 3 of 3 was used" in note for note in found.notes)


@pytest.mark.parametrize("charges", ["gas", "mmff", "am1bcc"])
def test_remarks_hold_smiles_of_any_length(charges, tmp_path):
    for n in (1, 40, 47, 48, 60, 200):
        remark = LigandRemark("LIG", "gaff2", charges, "CN" * n)
        lines = remark.lines()
        assert max(map(len, lines)) <= 80
        path = tmp_path / "ligand.pdb"
        path.write_text("\n".join(lines))
        assert remarks_in(read_file(path)) == [remark]


@needs_programs
@pytest.mark.parametrize("kind", ["as it was", "reversed", "other names", "before the protein"])
def test_a_complex_is_read_again_with_its_ligand_file(kind, parametrized, tmp_path):
    """The molecule of the file is the template of the residue, which keeps its place, its order and its names."""
    path, n = tmp_path / "complex.pdb", len(parametrized)
    names = [f"X{k}" for k in range(n)] if kind == "other names" else None
    whole = complex_with(parametrized, path, range(n)[::-1] if kind != "as it was" else None, names)
    if kind == "before the protein":
        whole = whole[np.r_[len(whole) - n : len(whole), : len(whole) - n]]
        write_conformations(path, whole)
    with pytest.raises(ParameterError, match="no template for the residue LIG; for a small molecule give a file"):
        read(path)
    found = read(path, ligands=[parametrized])
    assert found.labels.names.tolist() == whole.labels.names.tolist()
    assert found.labels.chains.tolist() == whole.labels.chains.tolist()
    assert np.allclose(found.positions, whole.positions, atol=1e-3)
    assert np.allclose(found.charges, whole.charges)
    assert any("has the parameters of the ligand that was given" in note for note in found.notes)
    energy, expected = (Energy(each.moved(whole.positions)).evaluate() for each in (found, whole))
    assert energy.total == pytest.approx(expected.total, abs=1e-3)
    chosen = read(path, ligands=[parametrized], select="resname LIG")
    assert len(chosen) == n
    instead = read(path, ligands=[parametrized], select="not resname LIG")
    assert len(instead) == len(whole)
    assert np.array_equal(instead.positions[-n:], parametrized.positions)
    assert [note.code for note in instead.notes if "was added" in note] == ["ligand_added"]


@needs_programs
def test_two_residues_of_one_molecule_and_another_that_is_added(parametrized, tmp_path):
    path = tmp_path / "complex.pdb"
    write_conformations(path, complex_with(parametrized, path) + parametrized.moved(parametrized.positions + 60))
    other = Ligand.from_smiles(ETHANOL).parametrize()
    found = read(path, ligands=[parametrized, other])
    assert len(found) == len(read(HEXAPEPTIDE)) + 2 * len(parametrized) + len(other)
    alone = tmp_path / "alone.pdb"
    write_conformations(alone, parametrized)
    assert np.allclose(read(alone, ligands=[parametrized]).charges, parametrized.charges)


@needs_programs
def test_a_residue_that_is_another_molecule_says_why(parametrized, tmp_path):
    path = tmp_path / "complex.pdb"
    complex_with(parametrized, path)
    with pytest.raises(ParameterError, match=r"LIG1:.*it does not match .* ligand that was given: it has .*C"):
        read(path, ligands=[Ligand.from_smiles(ETHANOL).parametrize()])


CHIRAL = "C[C@H]([NH3+])C(=O)Nc1ccc(O)cc1CCl"


@needs_programs
@pytest.mark.parametrize("kept", ["none", "polar", "all but one"])
def test_hydrogens_that_a_residue_lacks_are_placed(kept, tmp_path):
    """By the geometry of the molecule, also where the residue has another conformation and another order."""
    from rdkit.Chem import rdMolTransforms

    ligand, path = Ligand.from_smiles(CHIRAL), tmp_path / "complex.pdb"
    bent = ligand.moved(ligand.positions)
    rdMolTransforms.SetDihedralDeg(bent.molecule.GetConformer(), 3, 5, 6, 7, 70.0)
    atoms = ligand.parametrize()
    there = bent.positions + 30
    whole = read(HEXAPEPTIDE) + atoms.moved(there)
    n, own = len(whole) - len(atoms), np.arange(len(atoms))
    is_hydrogen = np.array(ligand.elements) == "H"
    is_polar = np.array([
        is_hydrogen[k] and ligand.elements[int(ligand.bonds[(ligand.bonds == k).any(axis=1)][0].min())] in "NO"
        for k in own
    ])  # fmt: skip
    left_out = {"none": is_hydrogen, "polar": is_hydrogen & ~is_polar, "all but one": own == own[-1]}[kept]
    order = [*range(n), *(n + k for k in own[::-1] if not left_out[k])]
    write_conformations(path, whole[order])
    found = read(path, ligands=[ligand])
    assert len(found) == len(whole)
    assert found.labels.residue_index.tolist() == sorted(found.labels.residue_index.tolist())
    note = next(note for note in found.notes if "hydrogens were added" in note)
    assert f"{left_out.sum()} hydrogens were added" in note
    assert found.charges[n:].sum() == pytest.approx(1, abs=1e-3)
    names = found.labels.names[n:].tolist()
    assert len(set(names)) == len(names)
    strain = Energy(found[n:]).evaluate(found.positions[n:]).energy
    expected = Energy(atoms).evaluate(there).energy
    assert strain["bond"] == pytest.approx(expected["bond"], abs=2)
    assert strain["angle"] == pytest.approx(expected["angle"], abs=4)
    with pytest.raises(
        InputError, match="its ligands have no hydrogens, which can only be added to one model at a time"
    ):
        pele_ocl.energy(path, ligands=[ligand], models="all")


@needs_programs
@pytest.mark.parametrize("with_hydrogens", [True, False])
def test_a_smiles_is_the_template_of_a_residue(with_hydrogens, tmp_path):
    ligand, path = Ligand.from_smiles(CHIRAL), tmp_path / "complex.pdb"
    whole = read(HEXAPEPTIDE) + ligand.moved(ligand.positions + 30).parametrize()
    keep = (whole.labels.elements != "H") | (whole.labels.residue_names != "LIG")
    write_conformations(path, whole if with_hydrogens else whole[keep])
    found = read(path, ligand_template=CHIRAL)
    assert len(found) == len(whole)
    assert found.charges.sum() == pytest.approx(whole.charges.sum(), abs=1e-3)
    record = json.loads(run("energy", path, "--ligand-template", CHIRAL, "--json").stdout)
    assert record["energy"]["total"] == pytest.approx(Energy(found).evaluate(found.positions).total, rel=1e-9)
    neutral = read(path, ligand_template="C[C@H](N)C(=O)Nc1ccc(O)cc1CCl", ligand_ph=7.4)
    assert neutral.charges.sum() == pytest.approx(found.charges.sum(), abs=1e-3)
    with pytest.raises(ParameterError, match="it does not match the molecule of the template CCO: it has"):
        read(path, ligand_template="CCO")
    with pytest.raises(ParameterError, match="has no residue that matches the molecule of the template CCO"):
        read(HEXAPEPTIDE, ligand_template="CCO")
    with pytest.raises(InputError, match="is neither a SMILES nor a code"):
        read(path, ligand_template="@")


@needs_programs
def test_commands_read_what_they_wrote(tmp_path):
    """minimize, relax and simulate write complexes that all commands read again with the same ligand file."""
    ligand, path, source = Ligand.from_smiles(ETHANOL), tmp_path / "l.sdf", tmp_path / "peptide.pdb"
    path.write_text(sdf(ligand.moved(ligand.positions + np.array([25.0, 0.0, 0.0]))))
    source.write_bytes(HEXAPEPTIDE.read_bytes())
    out = tmp_path / "complex.pdb"
    report = json.loads(
        run("minimize", source, "--ligand-file", path, "--max-iterations", 5, "-o", out, "--json").stdout
    )
    record = json.loads(run("energy", out, "--ligand-file", path, "--json").stdout)
    assert record["n_atoms"] == report["n_atoms"]
    assert record["energy"]["total"] == pytest.approx(report["energy_after"]["total"], abs=0.5)
    run("binding", out, "--ligand-file", path, "--ligand", "resname LIG", "--json")
    assert "(--ligand-file)" in error_of("energy", out)


# Molecules that are hard to read

HARD = {
    "CS(=O)(=O)[N-]c1ccccc1": -1, "COS(=O)(=O)[O-]": -1, "COP(=O)([O-])[O-]": -2, "CP(=O)(O)[O-]": -1,
    "FC(F)(F)c1cc(Cl)c(Br)cc1I": 0, "[NH3+]CC(=O)[O-]": 0, "O=[N+]([O-])c1ccccc1": 0, "C[N+](C)(C)CCO": 1,
    "C[n+]1ccccc1": 1, "CNC(=[NH2+])N": 1, "CN=[N+]=[N-]": 0, "[O-][n+]1ccccc1": 0, "N#[N+]c1ccccc1": 1,
    "C[S+](C)C": 1, "C[P+](C)(C)C": 1, "C[n+]1cc[nH]c1": 1, "C1CCCCCCCCCCCOC(=O)CC1": 0,
}  # fmt: skip


@pytest.mark.parametrize("smiles", HARD)
def test_charge_hydrogens_and_names_of_hard_molecules(smiles, tmp_path):
    """By every way that an SDF file has to say them: charges by property lines and by column, aromatic bonds."""
    from rdkit import Chem

    made = Ligand.from_smiles(smiles)
    block = Chem.MolToMolBlock(made.molecule)
    aromatic = Chem.MolToMolBlock(made.molecule, kekulize=False)
    lines = [line for line in block.split("\n") if not line.startswith("M  CHG")]
    for atom in made.molecule.GetAtoms():
        row, figure = lines[4 + atom.GetIdx()], {0: 0, 1: 3, -1: 5}[atom.GetFormalCharge()]
        lines[4 + atom.GetIdx()] = f"{row[:36]}{figure:3d}{row[39:]}"
    blocks = {
        "properties": block, "column": "\n".join(lines), "aromatic": aromatic,
        "v3000": Chem.MolToMolBlock(made.molecule, forceV3000=True),
    }  # fmt: skip
    for kind, text in blocks.items():
        path = tmp_path / f"{kind}.sdf"
        path.write_text(f"{text}$$$$\n")
        found = Ligand.read(path)
        assert (found.charge, found.formula) == (HARD[smiles], made.formula), kind
        names = found.labels.names.tolist()
        assert len(set(names)) == len(names)
        assert max(map(len, names)) <= 4
        heavy = tmp_path / "heavy.sdf"
        heavy.write_text(Chem.MolToMolBlock(Chem.RemoveHs(found.molecule)))
        if "H" in made.elements:
            assert Ligand.read(heavy, hydrogens="add").formula == made.formula
            with pytest.raises(InputError, match=r"hydrogens are missing"):
                Ligand.read(heavy)


@needs_programs
@pytest.mark.parametrize("smiles", ["CS(=O)(=O)[N-]C", "COP(=O)([O-])[O-]", "C[N+](=O)[O-]", "[NH3+]CC(=O)[O-]"])
def test_parameters_of_hard_molecules_have_their_charge(smiles):
    assert Ligand.from_smiles(smiles).parametrize().charges.sum() == pytest.approx(HARD.get(smiles, {
        "CS(=O)(=O)[N-]C": -1, "C[N+](=O)[O-]": 0}.get(smiles)), abs=0.01)  # fmt: skip


BAD = {
    "a query": lambda block: block.replace("  1  2  1  0", "  1  2  8  0"),
    "no element": lambda block: block.replace(" C   0", " Q   0", 1),
    "no number": lambda block: block.replace("0.", "x.", 1),
    "cut": lambda block: block[: len(block) // 3],
    "a charge of no atom": lambda block: block.replace("M  END", "M  CHG  1  99   1\nM  END"),
    "counts": lambda block: block.replace("  9  8", "  9 90", 1),
    "impossible": lambda block: block.replace("  1  2  1  0", "  1  2  3  0"),
    "empty": lambda _: "nothing\n\n\n  0  0  0  0  0  0  0  0  0  0999 V2000\nM  END",
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_records_leave_the_others(kind, tmp_path):
    ethanol = Ligand.from_smiles(ETHANOL)
    good = sdf(ethanol)
    path = tmp_path / "many.sdf"
    path.write_text(good + BAD[kind](good.removesuffix("$$$$\n")) + "\n$$$$\n" + good)
    failed: dict[int, str] = {}
    assert [each.formula for each in read_ligands(path, failed=failed)] == ["C2H6O"] * 2
    assert list(failed) == [2]
    line = good.count("\n") + 1
    assert failed[2].startswith(f"{path}:{line}")
    assert Ligand.read(path, 3).smiles == ethanol.smiles


def mol2_of(smiles: str, types: dict[str, str], order: str = "") -> str:
    """A mol2 file without a formal charge.

    types : of elements, their symbols by default; order : of all bonds, by default each its own
    """
    from rdkit import Chem

    found = Ligand.from_smiles(smiles).molecule
    Chem.Kekulize(found, clearAromaticFlags=True)
    n = found.GetNumAtoms()
    share = [Chem.GetFormalCharge(found) - 0.1, *[0.1 / (n - 1)] * (n - 1)]  # whose sum is the charge
    rows = [
        f"{k} {atom.GetSymbol()}{k} {' '.join(f'{x:.4f}' for x in place)} "
        f"{types.get(atom.GetSymbol(), atom.GetSymbol())} 1 LIG {q:.4f}"
        for k, (atom, place, q) in enumerate(
            zip(found.GetAtoms(), found.GetConformer().GetPositions(), share, strict=True), 1
        )
    ]
    bonds = [
        f"{k} {bond.GetBeginAtomIdx() + 1} {bond.GetEndAtomIdx() + 1} {order or int(bond.GetBondTypeAsDouble())}"
        for k, bond in enumerate(found.GetBonds(), 1)
    ]
    head = ["@<TRIPOS>MOLECULE", "made", f"{len(rows)} {len(bonds)} 1", "SMALL", "USER_CHARGES"]
    return "\n".join([*head, "@<TRIPOS>ATOM", *rows, "@<TRIPOS>BOND", *bonds, ""])


GAFF_TYPES = {"C": "c3", "N": "n3", "O": "o", "H": "h1", "S": "s6", "P": "p5", "Cl": "cl"}
TRIPOS_TYPES = {"C": "C.3", "N": "N.3", "O": "O.2", "S": "S.o2", "P": "P.3"}


@pytest.mark.parametrize("smiles", [
    "CS(=O)(=O)[N-]C", "CN=[N+]=[N-]", "[O-][Cl+3]([O-])([O-])[O-]", "C[N+](=O)[O-]", "COP(=O)([O-])[O-]",
    "CC(N)=[NH2+]", "C[N+]#[C-]", "C[P+](C)(C)C", "O=C1[N-]S(=O)(=O)c2ccccc12", "Cc1nn[n-]n1", "[S-]C#N",
])  # fmt: skip
@pytest.mark.parametrize("types", [GAFF_TYPES, TRIPOS_TYPES], ids=["gaff", "tripos"])
@pytest.mark.parametrize("order", ["", "1"], ids=["orders", "single"])
def test_formal_charges_follow_from_the_partial_ones_of_a_mol2_file(smiles, types, order, tmp_path):
    """With GAFF's types or Tripos', and bonds that are all single, as antechamber writes some groups."""
    from rdkit import Chem

    path = tmp_path / "x.mol2"
    path.write_text(mol2_of(smiles, types, order))
    ligand, wanted = Ligand.read(path), Ligand.from_smiles(smiles)
    assert (ligand.charge, ligand.formula) == (wanted.charge, wanted.formula)
    partial = [float(atom.GetProp("_TriposPartialCharge")) for atom in ligand.molecule.GetAtoms()]
    assert sum(partial) == pytest.approx(wanted.charge, abs=0.01)
    assert ligand.labels.names.tolist() == [f"{element}{k}" for k, element in enumerate(ligand.elements, 1)]
    if not order:  # a mesomeric form may be another where RDKit has to find the orders
        rings = any(atom.GetIsAromatic() for atom in wanted.molecule.GetAtoms())
        same = Chem.MolToSmiles(Chem.RemoveHs(ligand.molecule)) == Chem.CanonSmiles(smiles)
        assert same or rings or smiles in ("COP(=O)([O-])[O-]", "C[N+](=O)[O-]", "CC(N)=[NH2+]", "CN=[N+]=[N-]")


def test_charges_that_a_mol2_file_contradicts_are_refused(tmp_path):
    """As antechamber writes nitro groups: both oxygens of the type O.2, with single bonds."""
    path = tmp_path / "nitro.mol2"
    given = {
        "atom 3 is of the type O.2 and has no double bond.*give the molecule as an SDF file": None,
        r"partial charges add up to \+0.50 e, but.*give the molecule as an SDF file": 0.5,
        r"partial charges add up to \+7.00 e, but.*give the molecule as an SDF file": 7.0,
    }
    whole = mol2_of("C[N+](=O)[O-]", {**TRIPOS_TYPES, "N": "N.pl3"}, "1")
    for message, charge in given.items():
        rows = [
            " ".join([*line.split()[:-1], str((charge or 0.0) if line.startswith("1 ") else 0.0)])
            if " LIG " in line else line
            for line in whole.splitlines()
        ]  # fmt: skip
        path.write_text("\n".join(rows))
        with pytest.raises(FormatError, match=message):
            Ligand.read(path)


@needs_programs
def test_hydrogens_are_added_by_both_doors(tmp_path):
    """To a ligand file, and to a file of a molecule itself; the error says how."""
    from rdkit import Chem

    path = tmp_path / "heavy.sdf"
    path.write_text(Chem.MolToMolBlock(Chem.RemoveHs(Ligand.from_smiles(ETHANOL).molecule)) + "$$$$\n")
    with pytest.raises(InputError, match=r"6 hydrogens are missing.*\(`ligand_hydrogens='add'`\)"):
        read(HEXAPEPTIDE, ligands=[path])
    whole = read(HEXAPEPTIDE, ligands=[path], ligand_hydrogens="add")
    assert len(whole) == len(read(HEXAPEPTIDE)) + 9
    words = ("energy", HEXAPEPTIDE, "--ligand-file", path, "--ligand-hydrogens", "add", "--json")
    record = json.loads(run(*words).stdout)
    assert record["n_atoms"] == len(whole)
    assert any("6 hydrogens were added" in note for note in record["notes"])
    assert len(read(path, ligand_hydrogens="add")) == 9
    assert json.loads(run("energy", path, "--ligand-hydrogens", "add", "--json").stdout)["n_atoms"] == 9
    assert "--ligand-hydrogens add" in error_of("energy", path)


@needs_programs
def test_models_and_jobs_take_ligand_files(tmp_path):
    """A ligand that is added stays in all models; one that the models have moves with them."""
    ligand, path = Ligand.from_smiles(ETHANOL), tmp_path / "l.sdf"
    path.write_text(sdf(ligand.moved(ligand.positions + np.array([25.0, 0.0, 0.0]))))
    peptide, whole = read(HEXAPEPTIDE), read(HEXAPEPTIDE, ligands=[path])
    expected = Energy(whole).evaluate().total
    for name, atoms in (("added", peptide), ("there", whole)):
        models = tmp_path / f"{name}.pdb"
        write_conformations(models, atoms, np.stack([atoms.positions] * 2))
        words = ("energy", models, "--models", "all", "--ligand-file", path, "--json", "--select", "all")
        record = json.loads(run(*words).stdout)
        assert [row["energy"]["total"] for row in record["models"]] == pytest.approx([expected] * 2, abs=0.05)
        spec = EnergySpec(reading=jobs.Reading(ligands=(str(path),), model=1))
        (found,) = jobs.run(spec, [models])
        assert found["energy"]["total"] == pytest.approx(expected, abs=0.05)


def test_bad_lines_of_smiles_are_named_by_their_line(tmp_path):
    path = tmp_path / "many.smi"
    path.write_text("CCO ethanol\n# nothing\nC1CC ring\nCB(O)O acid\nCC[NH3+] amine\n")
    failed: dict[int, str] = {}
    assert [each.charge for each in read_ligands(path, failed=failed)] == [0, 1]
    assert failed[2].startswith(f"{path}:3: 'C1CC' is not a SMILES")
    assert failed[3].startswith(f"{path}:4: the SMILES CB(O)O: atom 2 is B")


# Phosphorylated residues


@needs_programs
@pytest.mark.parametrize(
    ("name", "forcefield", "protein", "phosphorylated"),
    [
        ("TPO", None, "oldff/leaprc.ff99SB", "phosaa10"), ("Y1P", None, "oldff/leaprc.ff99SB", "phosaa10"),
        ("SEP", "amber14", "leaprc.protein.ff14SB", "phosaa14SB"),
        ("Y1P", "ff14SB", "leaprc.protein.ff14SB", "phosaa14SB"),
    ],
)  # fmt: skip
def test_phosphorylated_residues_have_amber_s_parameters(name, forcefield, protein, phosphorylated, tmp_path):
    """All terms of the capped residue are those of the topology that tleap makes."""
    if forcefield is not None:
        pytest.importorskip("openmm")
    commands = f"source {protein}\nsource leaprc.{phosphorylated}\nm = sequence {{ ACE {name} NME }}\n"
    (tmp_path / "leap.in").write_text(f"{commands}saveamberparm m out.prmtop out.rst7\nquit\n")
    antechamber.run("tleap", ["-f", "leap.in"], tmp_path, "the peptide", None)
    theirs = read(tmp_path / "out.prmtop", coordinates=tmp_path / "out.rst7")
    path = tmp_path / "p.pdb"
    write_conformations(path, theirs)
    ours = read(path, forcefield)
    assert f"{name}: parameters of AMBER's {phosphorylated}" in " ".join(ours.notes)
    assert ours.charges.sum() == pytest.approx(theirs.charges.sum(), abs=1e-6)
    vacuum = SolventModel(gb="none")
    one, two = (
        Energy(each.moved(theirs.positions), model=vacuum, precision="float64").evaluate().energy
        for each in (ours, theirs)
    )
    # tleap writes angles in eight digits, and impropers of alike neighbours may name these in another order.
    assert {term: one[term] for term in two} == pytest.approx(dict(two), abs=1e-4 if forcefield is None else 5e-4)
    assert np.isfinite(Energy(ours).evaluate().total)


def test_phosphorylated_residues_without_programs(tmp_path, monkeypatch):
    path = tmp_path / "p.pdb"
    path.write_text("ATOM      1  CA  TPO A   1       0.000   0.000   0.000  1.00  0.00           C\n")
    monkeypatch.setattr(antechamber.shutil, "which", lambda *_, **__: None)
    antechamber.version.cache_clear()
    with pytest.raises(
        InputError, match=r"A:TPO1:CA.*phosphorylated residue TPO needs parameters of AMBER's phosaa10; "
    ):
        read(path)


def test_coinciding_atoms_of_a_center_and_states_with_long_bonds(tmp_path):
    """RDKit raises where a chiral centre has no directions; and states of a computation may be stretched."""
    ligand = Ligand.from_smiles("C[C@H](O)S(C)=O")
    lines = sdf(ligand).split("\n")
    for k in range(5, 4 + len(ligand)):
        lines[k] = lines[4][:30] + lines[k][30:]
    path = tmp_path / "one.sdf"
    path.write_text("\n".join(lines))
    with pytest.raises(InputError, match=r"one.sdf.* are bonded at 0.00 A; correct the positions"):
        Ligand.read(path)
    assert len(ligand.moved(ligand.positions * 2)) == len(ligand)


def test_the_module_says_what_to_call():
    with pytest.raises(TypeError, match=r"pele_ocl\.ligand is a module, .* pele_ocl\.parametrize"):
        pele_ocl.ligand("x.sdf")


def test_the_command_knows_ligand_files_by_the_keyword_of_python(tmp_path):
    said = error_of("energy", HEXAPEPTIDE, "--ligands", tmp_path / "none.sdf")
    assert "none.sdf" in said
    assert "No such option" not in said
    assert "--ligands" not in run("energy", "--help-all").stdout
