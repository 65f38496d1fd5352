"""PDB files of a structure with ions: own lines kept, chains and numbers that gemmi and our reader understand."""

from __future__ import annotations

import gzip

import gemmi
import numpy as np
import pytest

from pele_ocl import Atoms, FormatError, Labels, read
from pele_ocl.common.installation import shipped
from pele_ocl.formats import Ion, read_structure, write_pdb_with_ions
from pele_ocl.formats.pdb import residue_number
from pele_ocl.formats.pdb_writing import hybrid36

HEXAPEPTIDE = shipped("data") / "structures" / "hexapeptide.pdb"


def ion(*position, name="NA", element="Na", charge=1):
    return Ion(name, element.upper(), element, charge, np.array(position, float))


IONS = [ion(1.5, -2.25, 30), ion(9, 9, 9, name="CL", element="Cl", charge=-1), ion(0, 0, 0, name="K", element="K")]


def bare(path, model=None):
    """Atoms of any structure, without a force field."""
    structure = read_structure(path, model)
    return Atoms(positions=structure.positions, charges=np.zeros(len(structure.labels)), labels=structure.labels)


def written(tmp_path, source, ions=IONS, model=None, atoms=None):
    target = tmp_path / "out.pdb"
    write_pdb_with_ions(target, source, atoms or bare(source, model), ions, model)
    return target


def save(tmp_path, text, name="in.pdb"):
    (tmp_path / name).write_bytes(text.encode("latin-1"))
    return tmp_path / name


def atom_line(serial, name="CA", residue="ALA", chain="A", number=1, x=0.0, record="ATOM", element="C"):
    return (
        f"{record:<6}{serial:>5}  {name:<3} {residue:>3} {chain}{number:>4}    {x:8.3f}{0:8.3f}{0:8.3f}  1.00  0.00"
        f"          {element:>2}\n"
    )


# PDB files


def test_own_lines_are_kept(tmp_path):
    lines = HEXAPEPTIDE.read_text().splitlines(keepends=True)
    out = written(tmp_path, HEXAPEPTIDE).read_text().splitlines(keepends=True)
    assert [line for line in out if line in lines] == lines
    assert len(out) == len(lines) + 3
    assert out[-1] == "END\n"
    assert out[-4][:66] == "HETATM   98 NA    NA B   1       1.500  -2.250  30.000  1.00  0.00"
    assert [line[76:80] for line in out[-4:-1]] == ["NA1+", "CL1-", " K1+"]
    assert out[-2][12:16] == " K  "


def test_gemmi_and_our_reader_see_ions(tmp_path):
    target = written(tmp_path, HEXAPEPTIDE)
    structure = gemmi.read_structure(str(target))
    structure.setup_entities()
    peptide, ions = structure[0]
    assert (peptide.name, ions.name) == ("A", "B")
    assert [(r.name, r[0].element.name, r[0].charge) for r in ions] == [
        ("NA", "Na", 1),
        ("CL", "Cl", -1),
        ("K", "K", 1),
    ]
    assert {r.entity_type for r in ions} == {gemmi.EntityType.NonPolymer}
    assert all(gemmi.find_tabulated_residue(r.name).kind == gemmi.ResidueKind.BUF for r in ions)
    atoms = read(target)
    np.testing.assert_allclose(atoms.positions[-3:], [i.position for i in IONS])
    assert atoms.charges[-3:].tolist() == [1, -1, 1]


def test_gzip_windows_lines_latin1_and_a_missing_last_newline(tmp_path):
    text = "REMARK caf\xe9\r\n" + atom_line(1).replace("\n", "\r\n") + atom_line(2, "CB").rstrip("\n")
    source = tmp_path / "in.pdb.gz"
    source.write_bytes(gzip.compress(text.encode("latin-1")))
    out = written(tmp_path, source).read_bytes()
    assert out.startswith(text.encode("latin-1") + b"\n")
    assert out.endswith(b"END\n")
    assert len(read_structure(tmp_path / "out.pdb").labels) == 5


def test_one_model_is_written_where_there_are_several(tmp_path):
    text = "HEADER    X\n"
    for model in (1, 2, 3):
        text += f"MODEL     {model:4d}\n" + atom_line(1, x=model) + "TER\nENDMDL\n"
    text += "CONECT    1    2\nMASTER        0\nEND\n"
    source = save(tmp_path, text)
    out = written(tmp_path, source, model=2).read_text()
    kept = "HEADER    X\nMODEL        2\n" + atom_line(1, x=2) + "TER\n"
    assert out.startswith(kept)
    assert out[len(kept) :].count("HETATM") == 3
    assert out.endswith("ENDMDL\nCONECT    1    2\nEND\n")
    assert len(gemmi.read_structure(str(tmp_path / "out.pdb"))) == 1
    first = written(tmp_path, source).read_text()
    assert first.startswith("HEADER    X\nMODEL        1\n" + atom_line(1, x=1))


def test_an_end_in_the_middle_goes_to_the_end(tmp_path):
    source = save(tmp_path, atom_line(1) + "END\n" + atom_line(2, chain="B", x=5) + "END\n")
    out = written(tmp_path, source).read_text()
    assert out.count("END\n") == 1
    assert gemmi.read_structure(str(tmp_path / "out.pdb"))[0].count_atom_sites() == 5


def test_anisotropic_records_stay_with_their_atom(tmp_path):
    anisou = "ANISOU" + atom_line(2, "CB")[6:]
    source = save(tmp_path, atom_line(1) + atom_line(2, "CB") + anisou + "CONECT    1    2\n")
    out = written(tmp_path, source).read_text()
    assert out.index(anisou) < out.index("HETATM") < out.index("CONECT")


def test_serial_numbers_go_on(tmp_path):
    for last, following in (("99999", "A0000"), ("A000Z", "A0010"), ("*****", "    2")):
        source = save(tmp_path, atom_line(1).replace("ATOM      1", f"ATOM  {last}"))
        assert f"HETATM{following}" in written(tmp_path, source).read_text()


def test_numbers_go_on_in_the_last_chain_where_no_letter_is_left(tmp_path):
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789abcdefghijklmnopqrstuvwxyz"
    text = "".join(atom_line(k, chain=c, x=3 * k, number=7) for k, c in enumerate(letters, 1))
    out = written(tmp_path, save(tmp_path, text)).read_text()
    assert [line[21:26] for line in out.splitlines() if line.startswith("HETATM")] == ["z   8", "z   9", "z  10"]
    out = written(tmp_path, save(tmp_path, text.replace(" Q   7", "     7"))).read_text()
    assert " NA Q   1" in out


def test_ten_thousand_ions_are_numbered_in_hybrid_36(tmp_path):
    many = [ion(k % 100, k // 100 % 100, k // 10_000) for k in range(10_002)]
    target = written(tmp_path, HEXAPEPTIDE, many)
    labels = read_structure(target).labels
    assert labels.residue_numbers[-10_002:].tolist() == list(range(1, 10_003))
    residues = gemmi.read_structure(str(target))[0]["B"]
    assert [residues[-1].seqid.num, len(residues)] == [10_002, 10_002]


@pytest.mark.parametrize(
    ("value", "text"), [(9999, "9999"), (10_000, "A000"), (1_223_055, "ZZZZ"), (1_223_056, "a000")]
)
def test_hybrid_36_is_what_we_read(value, text):
    assert hybrid36(value, 4) == text
    assert residue_number(text + " ") == (value, "")
    assert hybrid36(-999, 4) == "-999"
    with pytest.raises(FormatError, match="does not fit into 4 columns"):
        hybrid36(3_000_000, 4)


# Other formats


def labels(**changed):
    columns = dict(
        names=["CA", "O", "C1"], elements=["C", "O", "C"], residue_names=["ALA", "HOH", "LIG"],
        residue_numbers=[-1, 12_345, 3], insertion_codes=["", "", "B"], chains=["A", "A", "AB"],
        residue_index=[0, 1, 2],
    )  # fmt: skip
    return Labels(**{name: np.array(values) for name, values in {**columns, **changed}.items()})


def test_other_formats_become_pdb_files(tmp_path):
    positions = np.array([[1.0, 2, 3], [-4, 5, 6], [7, 8, 9.1234]])
    atoms = Atoms(positions=positions, charges=np.zeros(3), labels=labels())
    source = save(tmp_path, "", "in.cif")
    lines = written(tmp_path, source, atoms=atoms).read_text().splitlines()
    assert lines[:4] == [
        "ATOM      1  CA  ALA A  -1       1.000   2.000   3.000  1.00  0.00           C",
        "TER",
        "HETATM    2  O   HOH AA0N9      -4.000   5.000   6.000  1.00  0.00           O".replace("A0N9", "A1T5"),
        "HETATM    3  C1  LIGAB   3B      7.000   8.000   9.123  1.00  0.00           C",
    ]
    assert lines[4].startswith("HETATM    4 NA    NA B   1 ")
    assert lines[-1] == "END"


@pytest.mark.parametrize("suffix", [".cif", ".pqr"])
def test_the_same_atoms_come_back(tmp_path, suffix):
    source = tmp_path / f"in{suffix}"
    if suffix == ".cif":
        gemmi.read_structure(str(HEXAPEPTIDE)).make_mmcif_document().write_file(str(source))
        atoms = bare(source)
    else:
        known = bare(HEXAPEPTIDE)
        rows = [
            f"ATOM {i + 1} {known.labels.names[i]} {known.labels.residue_names[i]} A {known.labels.residue_numbers[i]} "
            f"{x:.3f} {y:.3f} {z:.3f} 0.1 1.5\n"
            for i, (x, y, z) in enumerate(known.positions)
        ]
        source.write_text("".join(rows))
        atoms = read(source)
    back = read_structure(written(tmp_path, source, atoms=atoms))
    n = len(atoms)
    np.testing.assert_array_equal(back.positions[:n], atoms.positions)
    for name in ("names", "elements", "residue_names", "residue_numbers", "chains", "insertion_codes"):
        np.testing.assert_array_equal(getattr(back.labels, name)[:n], getattr(atoms.labels, name), err_msg=name)
    assert len(back.labels) == n + 3


@pytest.mark.parametrize(
    "changed",
    [dict(chains=["A", "A", "ABCDE"]), dict(names=["CA", "O", "HO5''"]), dict(residue_names=["ALA", "HOH", "LIGA"])],
)
def test_names_that_do_not_fit_are_an_error(tmp_path, changed):
    atoms = Atoms(positions=np.eye(3), charges=np.zeros(3), labels=labels(**changed))
    with pytest.raises(FormatError, match="has names too long for a PDB file"):
        written(tmp_path, save(tmp_path, "", "in.cif"), atoms=atoms)


def test_segments_get_a_letter_of_their_own(tmp_path):
    """CHARMM's names of chains have four letters; they stand where CHARMM writes them."""
    named = labels(chains=["PROA", "HETA", "B"])
    atoms = Atoms(positions=np.eye(3), charges=np.zeros(3), labels=named)
    path = written(tmp_path, save(tmp_path, "", "in.cif"), atoms=atoms)
    lines = [line for line in path.read_text().splitlines() if line.startswith(("ATOM", "HETATM"))]
    assert [(line[21], line[72:76].strip()) for line in lines[:3]] == [("A", "PROA"), ("C", "HETA"), ("B", "")]


def test_positions_that_do_not_fit_are_an_error(tmp_path):
    with pytest.raises(FormatError, match="NA1: a position of 10000 A does not fit into a PDB file"):
        written(tmp_path, HEXAPEPTIDE, [ion(0, 0, 10_000)])
    for axis in range(3):
        with pytest.raises(FormatError, match="does not fit into a PDB file"):
            written(tmp_path, HEXAPEPTIDE, [ion(*np.where(np.arange(3) == axis, np.nan, 1.0))])
