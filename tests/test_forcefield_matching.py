"""Template that a residue gets, the bonds it makes, and what is said when none fits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from forcefield_helpers import arrays_of, chain, structure_from

from pele_ocl.common.errors import FormatError, InputError, ParameterError
from pele_ocl.contract import of_structure
from pele_ocl.forcefield import ForceField, canonical, embedded_templates, match_residues
from pele_ocl.forcefield.matching import disulphides

ALA = "N H CA HA C O CB HB1 HB2 HB3"
GLY = "N H CA HA2 HA3 C O"
CYSTINE = "N H CA HA C O CB HB2 HB3 SG"
ACE, NME = "CH3 HH31 HH32 HH33 C O", "N H CH3 HH31 HH32 HH33"
DEOXYADENOSINE = (
    "O5' C5' H5' H5'' C4' H4' O4' C1' H1' N9 C8 H8 N7 C5 C6 N6 H61 H62 N1 C2 H2 N3 C4 C3' H3' C2' H2' H2'' O3'"
)
ADENOSINE = DEOXYADENOSINE.replace("H2''", "O2' HO2'")


@pytest.fixture(scope="module")
def amber():
    return ForceField.load()


def template_of(name: str, atoms: str, segments=None) -> str:
    (match,) = match_residues(chain([(name, atoms)]), embedded_templates())
    assert sorted(match.order) == list(range(len(match.template)))
    return match.template.name


@pytest.mark.parametrize(
    ("name", "atoms", "template"),
    [
        ("ALA", ALA, "ALA"),
        ("ALA", ALA.replace(" H ", " H1 H2 H3 "), "ALAB"),
        ("ALA", ALA.replace(" H ", " H H2 H3 "), "ALAB"),
        ("ALA", ALA.replace(" H ", " HT1 HT2 HT3 "), "ALAB"),
        ("ALA", ALA.replace(" H ", " HN "), "ALA"),
        ("ALA", "N H CA HA C O CB 1HB 2HB 3HB", "ALA"),
        ("ALA", ALA + " OXT", "ALAE"),
        ("ALA", ALA.replace(" O ", " O1 O2 "), "ALAE"),
        ("ALA", ALA.replace(" O ", " OT1 OT2 "), "ALAE"),
        ("NALA", ALA.replace(" H ", " H1 H2 H3 "), "ALAB"),
        ("GLY", "N H CA HA1 HA2 C O", "GLY"),
        ("GLY", "N H CA 1HA 2HA C O", "GLY"),
        ("PRO", "N H2 H3 CA HA C O CB HB2 HB3 CG HG2 HG3 CD HD2 HD3", "PROB"),
        ("PRO", "N H1 H2 CA HA C O CB HB1 HB2 CG HG1 HG2 CD HD1 HD2", "PROB"),
        ("SER", "N HN CA HA C O CB HB1 HB2 OG HG1", "SER"),
        ("ILE", "N H CA HA C O CB HB CG1 HG11 HG12 CG2 HG21 HG22 HG23 CD HD1 HD2 HD3", "ILE"),
        ("ILE", "N H CA HA C O CB HB CG1 1HG1 2HG1 CG2 1HG2 2HG2 3HG2 CD1 1HD1 2HD1 3HD1", "ILE"),
        ("HIS", "N H CA HA C O CB HB2 HB3 CG ND1 HD1 CD2 HD2 CE1 HE1 NE2", "HID"),
        ("HIS", "N H CA HA C O CB HB2 HB3 CG ND1 CD2 HD2 CE1 HE1 NE2 HE2", "HIE"),
        ("HIS", "N H CA HA C O CB HB2 HB3 CG ND1 HD1 CD2 HD2 CE1 HE1 NE2 HE2", "HIP"),
        ("HSE", "N HN CA HA C O CB HB1 HB2 CG ND1 CD2 HD2 CE1 HE1 NE2 HE2", "HIE"),
        ("HID", "N H CA HA C O CB HB2 HB3 CG ND1 CD2 HD2 CE1 HE1 NE2 HE2", "HIE"),
        ("ASP", "N H CA HA C O CB HB2 HB3 CG OD1 OD2 HD2", "ASH"),
        ("GLU", "N H CA HA C O CB HB2 HB3 CG HG2 HG3 CD OE1 OE2 HE2", "GLH"),
        ("LYS", "N H CA HA C O CB HB2 HB3 CG HG2 HG3 CD HD2 HD3 CE HE2 HE3 NZ HZ2 HZ3", "LYN"),
        ("CYS", CYSTINE + " HG", "CYS"),
        ("CYS", CYSTINE, "CYM"),
        ("CYX", CYSTINE, "CYX"),
        ("ACE", ACE, "ACE"),
        ("ACE", "C O CH3 H1 H2 H3", "ACE"),
        ("ACE", "CH3 1HH3 2HH3 3HH3 C O", "ACE"),
        ("NME", NME, "NME"),
        ("NME", "N H C H1 H2 H3", "NME"),
        ("NMA", "N H CA HA1 HA2 HA3", "NME"),
        ("NH2", "N HN1 HN2", "NHE"),
        ("HOH", "O H1 H2", "HOHZ"),
        ("WAT", "O H1 H2", "HOHZ"),
        ("SOL", "OW HW1 HW2", "HOHZ"),
        ("TIP3", "OH2 H1 H2", "HOHZ"),
        ("HOH", "OW 1HW 2HW", "HOHZ"),
        ("CL-", "CL-", "CLZ"),
        ("CL", "Cl", "CLZ"),
        ("CLA", "CLA", "CLZ"),
        ("NA+", "NA+", "NAZ"),
        ("SOD", "SOD", "NAZ"),
        ("MG2+", "MG", "MGZ"),
        ("CA", "CA", "CAZ"),
        ("ZN", "ZN", "ZNZ"),
        ("DA", f"P OP1 OP2 {DEOXYADENOSINE}", "DA"),
        ("A", f"P O1P O2P {DEOXYADENOSINE}".replace("'", "*"), "DA"),
        ("DA5", f"H5T {DEOXYADENOSINE}".replace("H5''", "H5'2").replace("H5' ", "H5'1 "), "DAB"),
        ("DA3", f"P OP1 OP2 {DEOXYADENOSINE} HO3'", "DAE"),
        ("ALA", ALA.lower(), "ALA"),
        ("ALA", "N D CA DA C O CB DB1 DB2 DB3", "ALA"),
        ("ALA", "N H CA HA C O CB 1DB 2DB 3DB", "ALA"),
        ("DOD", "O D1 D2", "HOHZ"),
        ("SPCE", "OW HW1 HW2", "HOHZ"),
        ("ADE", f"P OP1 OP2 {ADENOSINE}", "A"),
        ("RA", f"P O1P O2P {ADENOSINE}".replace("HO2'", "HO'2"), "A"),
    ],
)  # fmt: skip
def test_names_and_protonation(name, atoms, template):
    assert template_of(name, atoms) == template


def test_dialects_keep_each_atom_on_its_site():
    """Charges go to the right atoms whatever the order and the style of the names."""
    structure = chain([("SER", "HG1 OG HN N C O CA HA CB 2HB 1HB")])
    (match,) = match_residues(structure, embedded_templates())
    names = [match.template.names[i] for i in match.order]
    assert names == "HG OG H N C O CA HA CB HB3 HB2".split()


def test_a_histidine_without_a_ring_hydrogen_is_not_taken_for_another(amber):
    broken = "N H CA HA C O CB HB2 HB3 CG ND1 HD1 CD2 CE1 HE1 NE2 HE2"
    with pytest.raises(ParameterError, match="HIP, the residue lacks HD2; add hydrogens"):
        amber.assign(chain([("HIS", broken)]))


def test_peptide_bonds_join_neighbours_and_tear_at_gaps(amber):
    near = amber.assign(chain([("ACE", ACE), ("ALA", ALA), ("NME", NME)]))
    far = amber.assign(chain([("ACE", ACE), ("ALA", ALA), ("NME", NME)], step=12.0))
    assert len(near.bonds) == 5 + 9 + 5 + 2
    assert len(far.bonds) == 5 + 9 + 5
    assert near.notes == ()
    gap = "are 3.4 A apart, so the chain has a gap between them and they are not bonded"
    assert far.notes == (f"made.pdb:5 (A:ACE1:C) and A:ALA2:N {gap}", f"made.pdb:11 (A:ALA2:C) and A:NME3:N {gap}")


def test_charged_ends_are_not_bonded_however_near(amber):
    last, first = ALA + " OXT", ALA.replace(" H ", " H1 H2 H3 ")
    assert len(amber.assign(chain([("ALA", last), ("ALA", first)])).bonds) == 10 + 11


def test_an_end_without_its_atoms_takes_the_template_within_the_chain_and_says_so(amber):
    (note,) = amber.assign(chain([("ALA", ALA), ("GLY", GLY)])).notes
    assert note.startswith("made.pdb:1 (A:ALA1:N) and 1 more: a chain ends without the atoms of a terminal residue")


def test_nucleotides_are_bonded_by_their_phosphate(amber):
    structure = chain([("DA5", f"HO5' {DEOXYADENOSINE}"), ("DA3", f"P OP1 OP2 {DEOXYADENOSINE} HO3'")])
    atoms = amber.assign(structure)
    names = [tuple(structure.labels.atom(i) for i in bond) for bond in atoms.bonds]
    assert ("A:DA51:O3'", "A:DA32:P") in names
    assert atoms.charges.sum() == pytest.approx(-1, abs=1e-9)
    assert atoms.notes == ()


def test_a_ring_of_residues_is_closed(amber):
    structure = chain([("GLY", GLY)] * 3)
    positions = structure.positions.copy()
    positions[0] = positions[19] + [1.4, 0, 0]  # the first N beside the last C
    closed = amber.assign(replace(structure, positions=positions))
    assert (0, 19) in [tuple(bond) for bond in closed.bonds]
    assert closed.notes == ()


def _cystines(distance: float):
    structure = chain([("CYS", CYSTINE), ("CYS", CYSTINE)])
    positions = structure.positions.copy()
    positions[[9, 19]] = [[0, 90, 0], [distance, 90, 0]]
    return replace(structure, positions=positions)


def test_near_sulphurs_make_a_disulphide(amber):
    templates = [m.template.name for m in match_residues(_cystines(2.05), embedded_templates())]
    assert templates == ["CYX", "CYX"]
    assert (9, 19) in [tuple(bond) for bond in amber.assign(_cystines(2.05)).bonds]


def test_a_sulphur_keeps_its_shortest_bond_alone(amber):
    """Three sulphurs within 2.5 A of the middle one, which is bonded to the nearer of the two."""
    structure = chain([("CYS", CYSTINE)] * 3)
    positions = structure.positions.copy()
    positions[[9, 19, 29]] = [[0, 90, 0], [2.3, 90, 0], [4.3, 90, 0]]
    structure = replace(structure, positions=positions)
    assert disulphides(structure).tolist() == [[19, 29]]
    assert [m.template.name for m in match_residues(structure, embedded_templates())] == ["CYM", "CYX", "CYX"]
    atoms = amber.assign(structure)
    bonds = {tuple(bond) for bond in np.sort(atoms.bonds).tolist()}
    assert (19, 29) in bonds
    assert (9, 19) not in bonds
    (found,) = (of for of in of_structure(atoms) if "not bonded" in of.text)
    assert found.text.endswith("(A:CYS2:SG) forms a disulphide bond with a closer SG")


def test_a_disulphide_is_seen_in_lower_case_and_beside_deuterium():
    near = _cystines(2.05)
    lower = replace(near, labels=replace(near.labels, names=np.char.lower(near.labels.names)))
    assert [m.template.name for m in match_residues(lower, embedded_templates())] == ["CYX", "CYX"]
    thiol = chain([("CYS", CYSTINE + " DG"), ("CYS", CYSTINE + " DG")])
    positions = thiol.positions.copy()
    positions[[9, 20]] = [[0, 90, 0], [2.05, 90, 0]]
    thiol = replace(thiol, positions=positions)
    assert [m.template.name for m in match_residues(thiol, embedded_templates())] == ["CYS", "CYS"]


def test_sulphurs_apart_are_thiolates(amber):
    templates = [m.template.name for m in match_residues(_cystines(2.6), embedded_templates())]
    assert templates == ["CYM", "CYM"]
    assert (9, 19) not in [tuple(bond) for bond in amber.assign(_cystines(2.6)).bonds]


def test_half_a_disulphide_is_noted(amber):
    notes = amber.assign(chain([("ACE", ACE), ("CYX", CYSTINE), ("NME", NME)])).notes
    assert notes == ("made.pdb:16 (A:CYX2:SG) has the template of a half cystine, but no other SG is near",)


@pytest.mark.parametrize(
    ("residues", "message"),
    [
        (
            [("ALA", "N CA C O CB"), ("GLY", "N CA C O")],
            "made.pdb has no hydrogen atoms, which the charges require; "
            "add them: `pele-ocl prepare made.pdb -o made-ready.pdb`, in Python pele_ocl.prepare",
        ),
        (
            [("GLY", GLY), ("ALA", "N H CA HA C O CB HB1 HB3")],
            "made.pdb:8 (A:ALA2:N): against the closest template, ALA, the residue lacks HB2; "
            "add hydrogens with `pele-ocl prepare`, or reduce, PDB2PQR or PELE's preparation",
        ),
        (
            [("ALA", "N H CA HA C O HB1 HB2 HB3")],
            "made.pdb:1 (A:ALA1:N): against the closest template, ALA, the residue lacks CB; "
            "rebuild the missing atoms, with `pele-ocl prepare` or PELE's preparation",
        ),
        (
            [("GLY", GLY + " CX"), ("GLY", GLY + " CX"), ("GLY", GLY)],
            "made.pdb:1 (A:GLY1:N): against the closest template, GLY, the residue has CX in excess "
            "(1 more also fails); remove them, or give a template with `templates`",
        ),
        (
            [("GLY", GLY), ("HOH", "O"), ("HOH", "O")],
            "made.pdb:8 (A:HOH2:O): water without hydrogens: delete it or add hydrogens (1 more also fails)",
        ),
        (
            [("GLY", GLY), ("TIP4", "OW HW1 HW2 MW")],
            "made.pdb:8 (A:TIP42:OW): the force field has no template for water of 4 sites; "
            "delete the sites that are not atoms, or give a template with `templates`",
        ),
        (
            [("GLY", GLY), ("OH-", "O H")],
            "made.pdb:8 (A:OH-2:O): the force field has no template for the residue OH-; "
            "for a small molecule give a file with all hydrogens (`ligands`) or the SMILES (`ligand_template`); "
            "or a template, OpenMM's (`forcefield='amber14,oh-.xml'`) or PELE's (`templates=oh-z`); "
            "or leave it out: `without='OH-'`",
        ),
        (
            [("GLY", GLY), ("LIG", "C1 H1")],
            "made.pdb:8 (A:LIG2:C1): the force field has no template for the residue LIG; "
            "for a small molecule give a file with all hydrogens (`ligands`) or the SMILES (`ligand_template`); "
            "or a template, OpenMM's (`forcefield='amber14,lig.xml'`) or PELE's (`templates=ligz`); "
            "or leave it out: `without='LIG'`",
        ),
    ],
    ids=["no hydrogens", "a hydrogen", "a heavy atom", "too many", "oxygen", "4-point", "hydroxide", "unknown"],
)
def test_what_is_said_when_no_template_fits(amber, residues, message):
    with pytest.raises(ParameterError) as caught:
        amber.assign(chain(residues))
    assert str(caught.value) == message


def test_mercury_is_no_hydrogen(amber):
    structure = chain([("ALA", "N CA C O CB"), ("HG", "HG")])
    elements = ["Hg" if name == "HG" else name[0] for name in structure.labels.names]
    with pytest.raises(ParameterError, match="has no hydrogen atoms"):
        amber.assign(replace(structure, labels=replace(structure.labels, elements=elements)))


def test_capitals_only_tell_atoms_where_they_are_unambiguous(amber):
    with pytest.raises(ParameterError):
        amber.assign(chain([("ALA", ALA.replace("HB1", "ca"))]))


def test_a_name_that_stands_twice_is_named_with_both_lines(amber):
    with pytest.raises(FormatError) as caught:
        amber.assign(chain([("GLY", GLY), ("GLY", GLY + " HA2")]))
    assert str(caught.value) == (
        "made.pdb:15 (A:GLY2:HA2) has the same name as the atom of made.pdb:11 (A:GLY2:HA2); "
        "rename one of the two or delete it"
    )


def test_nothing_at_all(amber):
    structure = structure_from({k: v[:0] for k, v in arrays_of("hexapeptide").items() if v.ndim})
    with pytest.raises(InputError, match="has no atoms"):
        amber.assign(structure)


def test_order_of_atoms_within_a_residue_does_not_matter(amber):
    arrays = arrays_of("ubiquitin")
    order = np.lexsort((np.random.default_rng(1).random(len(arrays["charge"])), arrays["residue_index"]))
    shuffled = {k: v[order] if len(v) == len(order) else v for k, v in arrays.items()}
    atoms = amber.assign(structure_from(shuffled))
    np.testing.assert_array_equal(atoms.charges, shuffled["charge"])
    np.testing.assert_array_equal(
        np.unique(np.sort(order[atoms.bonds], axis=1), axis=0), amber.assign(structure_from(arrays)).bonds
    )


def test_hydrogens_of_one_heavy_atom_are_interchangeable(amber):
    """Hydrogens of one heavy atom are interchangeable, so `canonical` may number them by the order of their names."""
    for template in amber.templates.values():
        keys = canonical(template.names)
        assert len(set(keys)) == len(keys)
        found: dict[str, set[tuple[float, float]]] = {}
        for i, key in enumerate(keys):
            if "#" in key:
                found.setdefault(key.split("#")[0], set()).add((template.charges[i], template.lj_sigma[i]))
        assert all(len(values) == 1 for values in found.values()), template.name
