"""Templates and tables that make a force field: the built-in ones, a user's files, PELE's folders."""

from __future__ import annotations

import numpy as np
import pytest
from forcefield_helpers import ROOT, SAMPLES, chain, needs_samples

from pele_ocl.common.errors import FormatError, InputError, ParameterError
from pele_ocl.forcefield import ForceField
from pele_ocl.formats import read_structure

ALA = "N H CA HA C O CB HB1 HB2 HB3"
ENDS = [("ACE", "CH3 HH31 HH32 HH33 C O"), ("NME", "N H CH3 HH31 HH32 HH33")]
LIGAND = """\
LIG 2 1 0 0 0
    1 0 M CT _C1_ 0 0. 0. 0.
    2 1 S HC _H1_ 0 0. 0. 0.
NBON
    1 {} 0.1000 0.1 0. 0. 0. 0.
    2 {} 0.0300 -0.1 0. 0. 0. 0.
BOND
    1 2 340. 1.09
END
"""
OPLS_LIGAND, AMBER_LIGAND = LIGAND.format(3.5, 2.5), LIGAND.format(1.908, 1.487)
LIGAND_TABLE = "LIGZ C1 CT 1.9 0.72\nLIGZ H1 HC 1.25 0.85\n"
COMPLEX = chain([ENDS[0], ("ALA", ALA), ENDS[1], ("LIG", "C1 H1")], segments=[0, 0, 0, 1])
PEPTIDE = chain([ENDS[0], ("ALA", ALA), ENDS[1]])
LONE_LIGAND = chain([("LIG", "C1 H1")])


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def opls_protein(folder):
    """A folder with an OPLS alanine and caps, made from the built-in ones."""
    for name in ("ala", "ace", "nme", "inter_residue_bonds"):
        text = (ROOT / "data" / "amber99sb" / "Protein" / name).read_text()
        for r_star in ("1.9080", "1.8240", "1.6612"):
            text = text.replace(f" {r_star} ", " 3.4000 ")
        write(folder / "Protein" / name, text)
    return folder


@pytest.fixture
def ligand(tmp_path):
    return write(tmp_path / "ligz", AMBER_LIGAND), write(tmp_path / "lig_OBCParams.txt", LIGAND_TABLE)


def test_a_ligand_of_amber_kind_joins_the_built_in_force_field(ligand):
    template, table = ligand
    atoms = ForceField.load(templates=[template], obc=[table]).assign(COMPLEX)
    assert (atoms.combining, atoms.notes) == ("arithmetic", ())
    assert atoms.lj_sigma[-2] == pytest.approx(3.39966950842, rel=1e-9)
    np.testing.assert_array_equal(atoms.gb_radii[-2:], [1.9, 1.25])


def test_a_ligand_of_opls_kind_is_mixed_in_with_a_note(ligand):
    template, table = ligand
    template.write_text(OPLS_LIGAND)
    atoms = ForceField.load(templates=[template], obc=[table]).assign(COMPLEX)
    assert atoms.lj_sigma[-2] == 3.5
    assert atoms.combining == "arithmetic"
    assert atoms.notes == (
        "the templates LIGZ are of the OPLS kind, the others are not; Lennard-Jones parameters of all pairs are "
        "combined as in amber99sb",
    )


def test_a_lone_ligand_combines_by_its_own_kind(ligand):
    template, table = ligand
    template.write_text(OPLS_LIGAND)
    atoms = ForceField.load(templates=[template], obc=[table]).assign(LONE_LIGAND)
    assert (atoms.combining, atoms.one_four, atoms.notes) == ("geometric", (0.5, 0.5), ())


def test_missing_rows_are_named_in_pele_s_way(ligand):
    with pytest.raises(ParameterError) as caught:
        ForceField.load(templates=[ligand[0]]).assign(LONE_LIGAND)
    assert str(caught.value) == (
        "made.pdb:1 (A:LIG1:C1): the OBC tables have no row LIGZ_C1 (2 atoms in all); "
        "add a row with `obc` or use `guess_radii`"
    )


def test_the_fallback_fills_missing_rows_and_names_them(ligand):
    atoms = ForceField.load(templates=[ligand[0]], guess_radii=True).assign(LONE_LIGAND)
    np.testing.assert_array_equal(atoms.gb_radii, [1.9, 1.25])
    np.testing.assert_array_equal(atoms.gb_scales, [0.72, 0.85])
    assert atoms.notes == ("OBC radius and scale of 2 atoms are those of their elements: LIGZ_C1, LIGZ_H1",)


def test_the_fallback_names_the_first_atoms_of_many(ligand, monkeypatch):
    monkeypatch.setattr("pele_ocl.forcefield.field._NAMED", 1)
    atoms = ForceField.load(templates=[ligand[0]], guess_radii=True).assign(LONE_LIGAND)
    assert atoms.notes == ("OBC radius and scale of 2 atoms are those of their elements: LIGZ_C1 and 1 more",)


def test_a_whole_force_field_replaces_the_built_in_one(tmp_path):
    field = ForceField.load(templates=[opls_protein(tmp_path / "OPLS2005")])
    assert (field.name, field.kind, sorted(field.templates)) == ("OPLS2005", "opls", ["ACE", "ALA", "NME"])


def test_later_files_win(tmp_path, ligand):
    template, table = ligand
    other = write(tmp_path / "other" / "ligz", AMBER_LIGAND.replace("0.1 0.", "0.3 0."))
    later = write(tmp_path / "later.txt", "LIGZ C1 CT 2.0 0.72\n")
    atoms = ForceField.load(templates=[template, other], obc=[table, later]).assign(LONE_LIGAND)
    assert (atoms.charges[0], atoms.gb_radii[0], atoms.gb_radii[1]) == (0.3, 2.0, 1.25)


def test_a_whole_table_replaces_the_built_in_radii(ligand):
    table = ligand[1]
    write(table, LIGAND_TABLE + "ALA CA CT 1.9 0.72\n")
    with pytest.raises(ParameterError, match="no row ACE_CH3"):
        ForceField.load(templates=[ligand[0]], obc=[table]).assign(COMPLEX)


def test_radii_asked_for_complete_a_whole_table(ligand):
    table = write(ligand[1], LIGAND_TABLE + "ALA CA CT 1.95 0.72\nALA N N 1.5 0.79\n")
    for radii, n in (("openmm-obc", 1.706), ("pele", 1.7063)):
        atoms = ForceField.load(radii=radii, templates=[ligand[0]], obc=[table]).assign(COMPLEX)
        assert (atoms.gb_radii[6], atoms.gb_radii[8], atoms.gb_radii[16]) == (1.5, 1.95, n)
        assert atoms.notes == ()


def test_a_whole_force_field_takes_pele_s_radii_and_says_so(tmp_path):
    field = opls_protein(tmp_path / "OPLS2005")
    atoms = ForceField.load(templates=[field]).assign(PEPTIDE)
    assert atoms.gb_radii[6] == 1.7063
    assert atoms.notes == (
        "the force field has no complete OBC table, so built-in radii (pele) were used; "
        "give a table with `obc`, or choose a set of radii",
    )
    asked = ForceField.load(templates=[field], radii="openmm-obc").assign(PEPTIDE)
    assert (asked.gb_radii[6], asked.notes) == (1.706, ())


def test_a_table_of_which_no_row_was_used_is_noted(ligand):
    atoms = ForceField.load(obc=[ligand[1]]).assign(PEPTIDE)
    assert atoms.notes == (f"no row of {ligand[1]} was used, because none matches an atom of the structure",)


def test_a_template_whose_kind_nothing_tells_is_noted(tmp_path):
    text = OPLS_LIGAND.replace("_C1_", "BR1_").replace("3.5 ", "4.0 ")
    field = ForceField.load(templates=[write(tmp_path / "ligz", text)], guess_radii=True)
    notes = field.assign(chain([("LIG", "BR1 H1")])).notes
    assert notes[1:] == ("it is unknown whether the lengths of LIGZ are R* or sigma; they were treated as R*",)


def test_one_amino_acid_of_another_kind_is_merged_over_the_built_in_ones(tmp_path):
    own = opls_protein(tmp_path / "mine") / "Protein" / "ala"
    field = ForceField.load(templates=[own])
    assert (field.name, field.kind, len(field.templates)) == ("amber99sb", "amber", len(ForceField.load().templates))
    atoms = field.assign(PEPTIDE)
    assert atoms.lj_sigma[8] == 3.4
    (note,) = atoms.notes
    assert note.startswith("the templates ALA are of the OPLS kind, the others are not")


def test_the_twenty_amino_acids_are_a_whole_force_field(tmp_path):
    names = "ala arg asn asp cys gln glu gly hid ile leu lys met phe pro ser thr trp tyr val".split()
    for name in names:
        write(tmp_path / name, (ROOT / "data" / "amber99sb" / "Protein" / name).read_text())
    assert len(ForceField.load(templates=[tmp_path]).templates) == 20
    (tmp_path / "val").unlink()
    assert len(ForceField.load(templates=[tmp_path]).templates) > 100


def test_radii_of_pele():
    n = ForceField.load(radii="pele").assign(PEPTIDE).gb_radii[6]
    assert (n, ForceField.load().assign(PEPTIDE).gb_radii[6]) == (1.7063, 1.706)
    with pytest.raises(InputError, match="radii is 'bondi9'; choose 'openmm-obc' or 'pele' or 'bondi'"):
        ForceField.load(radii="bondi9")
    with pytest.raises(InputError, match=r"radii pdb2pqr-amber are for Poisson-Boltzmann .* are openmm-obc"):
        ForceField.load(radii="amber")


def test_data_local_wins_over_data_in_any_order(tmp_path):
    opls_protein(tmp_path / "Data" / "Templates" / "OPLS2005")
    write(
        tmp_path / "Data" / "Templates" / "OPLS2005" / "HeteroAtoms" / "ligz", OPLS_LIGAND.replace("0.1 0.", "0.2 0.")
    )
    write(tmp_path / "DataLocal" / "Templates" / "OPLS2005" / "HeteroAtoms" / "ligz", OPLS_LIGAND)
    (tmp_path / "DataLocal" / "Templates" / "OPLS2005" / "Protein").mkdir()
    write(tmp_path / "DataLocal" / "OBC" / "lig_OBCParams.txt", "LIGZ C1 CT 1.95 0.72\n")
    write(tmp_path / "DataLocal" / "OBC" / "solventParamsHCTOBC.txt", LIGAND_TABLE)
    for roots in ([tmp_path / "Data", tmp_path / "DataLocal"], [tmp_path / "DataLocal", tmp_path / "Data"], [tmp_path]):
        field = ForceField.load(pele_data=roots)
        assert (field.name, field.kind) == ("OPLS2005", "opls")
        atoms = field.assign(COMPLEX)
        assert (atoms.charges[-2], atoms.gb_radii[-2], atoms.combining) == (0.1, 1.95, "geometric")


@pytest.mark.parametrize("name", [None, "OPLS2005"])
def test_opls_ligands_without_proteins_join_the_built_in_force_field(tmp_path, name):
    write(tmp_path / "DataLocal" / "Templates" / "OPLS2005" / "HeteroAtoms" / "ligz", OPLS_LIGAND)
    field = ForceField.load(name, pele_data=[tmp_path], guess_radii=True)
    atoms = field.assign(COMPLEX)
    assert (field.name, atoms.lj_sigma[-2], atoms.combining) == ("amber99sb", 3.5, "arithmetic")
    (origin,) = (note for note in atoms.notes if "no proteins" in note)
    assert any("the templates LIGZ are of the OPLS kind" in note for note in atoms.notes)
    assert origin.startswith("the folder of OPLS2005 has no proteins, so templates of the built-in Amber99SB were")
    assert not [note for note in field.assign(LONE_LIGAND).notes if "OPLS2005" in note]
    assert field.assign(LONE_LIGAND).combining == "geometric"


def test_opls_ligands_join_proteins_given_apart(tmp_path, ligand):
    write(tmp_path / "DataLocal" / "Templates" / "OPLS2005" / "HeteroAtoms" / "ligz", OPLS_LIGAND)
    own = opls_protein(tmp_path / "OPLS2005")
    field = ForceField.load("OPLS2005", templates=[own], pele_data=[tmp_path / "DataLocal"], guess_radii=True)
    atoms = field.assign(COMPLEX)
    assert (field.name, field.kind, atoms.combining) == ("OPLS2005", "opls", "geometric")
    assert not [note for note in atoms.notes if "Amber" in note or "kind" in note]


def test_amber_data_without_proteins_are_completed(tmp_path):
    write(tmp_path / "DataLocal" / "Templates" / "AMBER99sb" / "HeteroAtoms" / "ligz", AMBER_LIGAND)
    field = ForceField.load(pele_data=[tmp_path], guess_radii=True)
    assert field.assign(COMPLEX).combining == "arithmetic"


def test_several_force_fields_need_a_name(tmp_path):
    for name in ("OPLS2005", "AMBER99sb", "OpenFF"):
        write(tmp_path / "Data" / "Templates" / name / "HeteroAtoms" / "ligz", OPLS_LIGAND)
    with pytest.raises(ParameterError, match="contains AMBER99sb and OPLS2005; choose one of them as the force"):
        ForceField.load(pele_data=[tmp_path])
    with pytest.raises(ParameterError, match="contains AMBER99sb and OPLS2005, not CHARMM; choose"):
        ForceField.load("CHARMM", pele_data=[tmp_path])
    assert ForceField.load("opls2005", pele_data=[tmp_path]).templates["LIGZ"].kind == "opls"


def test_two_templates_of_one_name_in_a_folder(tmp_path):
    for name in ("OPLS2005", "AMBER99sb"):
        write(tmp_path / name / "ligz", OPLS_LIGAND)
    with pytest.raises(FormatError, match="is a template of the same residue; give the folder of a single force field"):
        ForceField.load(templates=[tmp_path])


def test_other_files_in_a_folder_are_passed_over(tmp_path, ligand):
    for name, text in (
        ("disulphide_bonds", "NAME X\nBOND SG SG * 166. 2.038\n"),
        ("LICENSE", "words"),
        (".x", OPLS_LIGAND),
    ):
        write(tmp_path / name, text)
    assert "LIGZ" in ForceField.load(templates=[tmp_path]).templates


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "charmm99"}, "unknown force field 'charmm99'; amber99sb is built in"),
        ({"templates": ["absent"]}, "absent: no such file or folder"),
        ({"pele_data": ["absent"]}, "absent: no such folder"),
        ({"obc": ["absent"]}, "absent: no such file"),
    ],
)
def test_what_is_not_there(arguments, message):
    with pytest.raises((InputError, ParameterError, FormatError)) as caught:
        ForceField.load(**arguments)
    assert str(caught.value).startswith(message)


def test_notes_and_backups_in_a_folder_of_templates_are_passed_over(tmp_path, ligand):
    for name in ("ligz.bak", "ligz~", ".#ligz", "README", "readme.md", ".git/ligz"):
        write(tmp_path / "deep" / name, OPLS_LIGAND.replace("LIG 2 1 0 0 0", "LIG 9 1 0 0 0"))
    (tmp_path / "picture").write_bytes(b"\0\1\xff")
    assert set(ForceField.load(templates=[tmp_path]).templates) > {"LIGZ", "ALA"}


def test_texts_that_are_no_tables_in_pele_s_folder_are_passed_over(tmp_path, ligand):
    write(tmp_path / "Data" / "OBC" / "README.txt", "These tables were made by hand.\n")
    write(tmp_path / "Data" / "OBC" / "table.txt", LIGAND_TABLE)
    atoms = ForceField.load(templates=[ligand[0]], pele_data=[tmp_path]).assign(LONE_LIGAND)
    np.testing.assert_array_equal(atoms.gb_radii, [1.9, 1.25])


def test_residues_that_amber_names_by_their_place(tmp_path):
    source = ROOT / "data" / "structures" / "hexapeptide.pdb"
    text = source.read_text()
    assert "MET A" in text
    assert "ASP A" in text
    named = write(tmp_path / "p.pdb", text.replace(" MET A", " NMETA").replace(" ASP A", " CASPA"))
    expected = ForceField.load().assign(read_structure(source))
    atoms = ForceField.load().assign(read_structure(named))
    np.testing.assert_array_equal(atoms.charges, expected.charges)
    np.testing.assert_array_equal(atoms.bonds, expected.bonds)
    assert atoms.notes == ()


def test_a_folder_without_templates(tmp_path):
    with pytest.raises(InputError, match="contains no templates"):
        ForceField.load(templates=[tmp_path])


@needs_samples
def test_a_protein_prepared_for_pele():
    structure = read_structure(SAMPLES / "PR_1A28_protein.pdb")
    table = SAMPLES / "peleffy" / "solventParamsHCTOBC.txt"
    atoms = ForceField.load(templates=[SAMPLES / "OPLS2005"], obc=[table]).assign(structure)
    assert (len(atoms), atoms.combining, atoms.one_four, atoms.notes) == (4138, "geometric", (0.5, 0.5), ())
    net = np.add.reduceat(atoms.charges, structure.labels.residue_starts)
    np.testing.assert_allclose(net, net.round(), atol=1e-9)
    built_in = ForceField.load(radii="pele").assign(structure)
    np.testing.assert_array_equal(built_in.gb_radii, atoms.gb_radii)
    np.testing.assert_array_equal(built_in.gb_scales, atoms.gb_scales)
    np.testing.assert_array_equal(built_in.bonds, atoms.bonds)
    assert built_in.charges.sum() == pytest.approx(atoms.charges.sum(), abs=1e-9)


@needs_samples
def test_a_ligand_of_peleffy_on_its_own():
    field = ForceField.load(templates=[SAMPLES / "peleffy" / "malz"], guess_radii=True)
    atoms = field.assign(chain([("MAL", " ".join(field.templates["MALZ"].names))]))
    assert (atoms.combining, len(atoms.bonds)) == ("geometric", 9)
    assert (atoms.lj_sigma[0], atoms.lj_epsilon[0]) == (3.3997, 0.1094)
