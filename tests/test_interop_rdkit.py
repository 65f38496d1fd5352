"""RDKit's molecules as Atoms; RDKit is no dependency of the tests, which are skipped where it is missing."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import DEVICES

from pele_ocl import InputError, ParameterError, Solvent, from_rdkit
from pele_ocl.common.installation import shipped

chem = pytest.importorskip("rdkit.Chem")
all_chem = pytest.importorskip("rdkit.Chem.AllChem")


def embedded(smiles: str = "CC(=O)[O-]", hydrogens: bool = True):
    molecule = chem.MolFromSmiles(smiles)
    molecule = chem.AddHs(molecule) if hydrogens else molecule
    assert all_chem.EmbedMolecule(molecule, randomSeed=1) == 0
    return molecule


def test_atoms_have_positions_names_bonds_and_charges():
    molecule = embedded()
    atoms = from_rdkit(molecule)
    np.testing.assert_array_equal(atoms.positions, molecule.GetConformer().GetPositions())
    assert atoms.labels.names.tolist() == ["C1", "C2", "O1", "O2", "H1", "H2", "H3"]
    assert atoms.labels.elements.tolist() == ["C", "C", "O", "O", "H", "H", "H"]
    assert sorted(map(sorted, atoms.bonds.tolist())) == [[0, 1], [0, 4], [0, 5], [0, 6], [1, 2], [1, 3]]
    assert atoms.charges.sum() == pytest.approx(-1, abs=1e-6)
    assert atoms.charges[2] == pytest.approx(atoms.charges[3], abs=1e-6)
    assert (atoms.lj_sigma, atoms.gb_radii_set) == (None, "mbondi2")
    assert "charges are Gasteiger's" in atoms.notes[0]
    assert not molecule.GetAtomWithIdx(0).HasProp("_GasteigerCharge")
    assert atoms.masses[0] == pytest.approx(12.011, abs=1e-3)
    assert Solvent(atoms, device=DEVICES[0]).evaluate().gb_self < -20


def test_other_charges_and_conformers():
    molecule = embedded()
    again = embedded()
    number = molecule.AddConformer(again.GetConformer(), assignId=True)
    molecule.GetConformer(number).SetAtomPosition(0, (9.0, 8.0, 7.0))
    assert from_rdkit(molecule, conformer=number).positions[0].tolist() == [9, 8, 7]
    mmff = from_rdkit(molecule, "mmff")
    assert mmff.charges[2] == pytest.approx(-0.9, abs=1e-6)
    assert "MMFF94" in mmff.notes[0]
    own = from_rdkit(molecule, np.arange(7.0))
    assert own.charges.tolist() == [0, 1, 2, 3, 4, 5, 6]


def test_names_of_a_pdb_file_are_kept():
    path = shipped("data") / "structures" / "hexapeptide.pdb"
    molecule = chem.MolFromPDBFile(str(path), removeHs=False)
    for atom in molecule.GetAtoms():
        if atom.GetTotalNumHs():  # of acids, which RDKit takes for neutral
            atom.SetNoImplicit(True)
    atoms = from_rdkit(molecule)
    assert len(atoms.labels.residue_starts) == 6
    assert {"CA", "N", "C", "O"} <= set(atoms.labels.names.tolist())
    assert not atoms.selected("protein").tolist().count(False)


def test_what_is_missing_is_named():
    with pytest.raises(InputError, match="molecule is 'CCO'; expected a Mol of RDKit"):
        from_rdkit("CCO")
    with pytest.raises(InputError, match="has no positions; embed it"):
        from_rdkit(chem.AddHs(chem.MolFromSmiles("CCO")))
    with pytest.raises(InputError, match=r"6 hydrogens are missing; add them: Chem.AddHs"):
        from_rdkit(embedded("CCO", hydrogens=False))
    with pytest.raises(InputError, match="has no conformer 7"):
        from_rdkit(embedded(), conformer=7)
    with pytest.raises(InputError, match="charges is 'am1'; choose 'gasteiger' or 'mmff'"):
        from_rdkit(embedded(), "am1")
    with pytest.raises(InputError, match="charges has shape"):
        from_rdkit(embedded(), [1.0, 2.0])
    with pytest.raises(ParameterError, match="MMFF94 has no charges"):
        from_rdkit(embedded("C[B-](C)(C)C"), "mmff")
    with pytest.raises(ParameterError, match=r"Gasteiger charges are not available for atom \d+ \(\w+\)"):
        from_rdkit(embedded("C[Se]C"))
