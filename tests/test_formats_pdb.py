"""PDB files: what is read, in which order, and what is refused with which words."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pele_ocl.atoms import Structure
from pele_ocl.common.errors import FormatError
from pele_ocl.formats import read_structure

Read = Callable[..., Structure]


def atom(
    name: str = " CA ",
    residue: str = "ALA",
    number: int | str = 1,
    xyz: tuple[float, float, float] = (1.0, 2.0, 3.0),
    *,
    chain: str = "A",
    altloc: str = " ",
    icode: str = " ",
    record: str = "ATOM",
    serial: int | str = 1,
    occupancy: float = 1.0,
    element: str = "",
) -> str:
    x, y, z = xyz
    left = f"{record:<6}{serial:>5} {name:<4}{altloc}{residue:>3} {chain}{number:>4}{icode}   "
    return f"{left}{x:8.3f}{y:8.3f}{z:8.3f}{occupancy:6.2f}{0:6.2f}          {element:>2}\n"


N, CA, C = atom(" N  ", xyz=(0, 0, 0)), atom(" CA ", xyz=(1.5, 0, 0)), atom(" C  ", xyz=(2, 1.4, 0))


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def read(content: str | bytes, model: int | None = None, name: str = "p.pdb") -> Structure:
        file = tmp_path / name
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return read_structure(name, model)

    return read


@pytest.fixture(autouse=True)
def _stay(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def message(read: Read, content: str | bytes, **options: object) -> str:
    with pytest.raises(FormatError) as caught:
        read(content, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# Files


def test_unknown_suffix_lists_the_known(read: Read) -> None:
    known = ".pdb, .ent, .cif, .mmcif, .pdbx, .pqr, .prmtop, .parm7, .top, .psf, .sdf, .mol2, .gro, or these with .gz"
    known += " or .bz2"
    expected = f"p.xyz: unknown suffix '.xyz'; molecules end in {known}"
    assert message(read, N, name="p.xyz") == expected


def test_smiles_are_for_ligands(read: Read) -> None:
    expected = "a SMILES has no coordinates; give it to `pele-ocl ligand`, or as `ligands` for a residue of a structure"
    assert message(read, "CCO ethanol", name="p.smi") == f"p.smi: {expected}"


def test_missing_file() -> None:
    with pytest.raises(FormatError, match=r"^none\.pdb: no such file$"):
        read_structure("none.pdb")


def test_folder(tmp_path: Path) -> None:
    (tmp_path / "folder.pdb").mkdir()
    with pytest.raises(FormatError, match=r"^folder\.pdb: a folder; give a file in it$"):
        read_structure("folder.pdb")


def test_no_permission(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(FormatError, match=r"^secret\.pdb: no permission to read the file$"):
        read_structure("secret.pdb")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "p.pdb: the file is empty"),
        ("\n\n  \n", "p.pdb: the file is empty"),
        ("\n<!DOCTYPE html>\n<html>", "p.pdb: contains HTML, not a PDB file; was the download an error page?"),
        ("REMARK nothing here\nEND\n", "p.pdb: contains no ATOM or HETATM records; is it a PDB file?"),
        ("data_1ABC\nloop_\n", "p.pdb: contains mmCIF, not PDB; give it the suffix .cif"),
        (N + "\0\0" + CA, "p.pdb:2: contains NUL bytes: the file is binary or damaged"),
        (N.encode("utf-16"), "p.pdb:1: contains NUL bytes: the file is binary or damaged"),
    ],
)
def test_other_content_is_named(read: Read, content: str | bytes, expected: str) -> None:
    assert message(read, content) == expected


def test_gzip_with_and_without_its_suffix(read: Read) -> None:
    content = gzip.compress((N + CA).encode())
    assert len(read(content, name="p.pdb.gz").labels) == 2
    assert len(read(content, name="p.ent").labels) == 2


def test_damaged_gzip(read: Read) -> None:
    content = gzip.compress("".join(atom(f"C{i}", xyz=(i, 0, i * 0.37)) for i in range(500)).encode())
    expected = "p.pdb.gz: not gzip data, although its name ends in .gz; remove the suffix"
    assert message(read, N, name="p.pdb.gz") == expected
    early = "p.pdb.gz: the gzip data ends too early; fetch or copy the file again"
    assert message(read, content[: len(content) // 2], name="p.pdb.gz") == early
    damaged = content[:100] + bytes(200) + content[300:]
    assert message(read, damaged, name="p.pdb.gz") == "p.pdb.gz: the gzip data is damaged; fetch or copy the file again"


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_line_ends_and_byte_order_mark(read: Read, end: str) -> None:
    structure = read(("\ufeff" + N + CA + C).replace("\n", end))
    assert structure.lines.tolist() == [1, 2, 3]
    assert structure.positions[2].tolist() == [2, 1.4, 0]


def test_latin_1_remark(read: Read) -> None:
    assert len(read(b"REMARK 2.1 \xc5ngstr\xf6m\n" + N.encode()).labels) == 1


def test_letter_that_is_not_ascii_in_an_atom(read: Read) -> None:
    content = N.replace(" N  ", " Ñ  ")
    expected = "p.pdb:1: contains the character '\\xd1' among an atom's columns; only plain text is allowed there"
    assert message(read, content) == expected
    assert "contains the character '\\x1f'" in message(read, N.replace("A   1", "A\x1f  1"))
    assert read(N.replace(" ", "\u00a0")).labels.names.tolist() == ["N"]


# Atoms, residues, segments


def test_fields(read: Read) -> None:
    line = atom("1HB ", "MSE", -12, (-1.25, 100.5, -999.999), chain="x", icode="B", record="HETATM")
    structure = read("REMARK\n" + line)
    labels = structure.labels
    assert labels.atom(0) == "x:MSE-12B:1HB"
    assert labels.elements.tolist() == ["H"]
    assert structure.positions.tolist() == [[-1.25, 100.5, -999.999]]
    assert structure.hetero.tolist() == [True]
    assert structure.where(0) == "p.pdb:2 (x:MSE-12B:1HB)"


def test_blank_chain(read: Read) -> None:
    assert read(atom(chain=" ")).labels.residue(0) == "ALA1"


def test_insertion_codes_are_residues(read: Read) -> None:
    structure = read(atom(number=52) + atom(number=52, icode="A") + atom(number=53))
    assert structure.labels.residue_index.tolist() == [0, 1, 2]
    assert structure.labels.insertion_codes.tolist() == ["", "A", ""]


def test_order_is_that_of_the_file_when_a_residue_comes_back(read: Read) -> None:
    content = N + atom(" N  ", "GLY", 2) + atom(" HA ", xyz=(9, 9, 9))
    structure = read(content)
    assert structure.labels.names.tolist() == ["N", "N", "HA"]
    assert structure.labels.residue_index.tolist() == [0, 1, 2]
    assert structure.positions[2].tolist() == [9, 9, 9]


@pytest.mark.parametrize(
    ("second", "segments"),
    [
        (atom(number=2), [0, 0]),
        ("TER\n" + atom(number=2), [0, 1]),
        ("END\n" + atom(number=2), [0, 1]),
        (atom(number=2, chain="B"), [0, 1]),
        (atom(" O  ", "HOH", 2, record="HETATM"), [0, 1]),
        (atom(" C1 ", "LIG", 2, record="HETATM"), [0, 1]),
        (atom("NA  ", " NA", 2), [0, 1]),
        (atom(" N  ", "MSE", 2, record="HETATM"), [0, 0]),
        (atom(" N  ", "XYZ", 2), [0, 0]),
    ],
)
def test_segments(read: Read, second: str, segments: list[int]) -> None:
    assert read(CA + second).segments.tolist() == segments


def test_chain_that_comes_back_after_ter(read: Read) -> None:
    water = atom(" O  ", "HOH", 1, chain="A", record="HETATM")
    structure = read(CA + "TER\n" + atom(chain="B") + "TER\n" + water + CA.replace("ALA", "GLY"))
    assert structure.labels.chains.tolist() == ["A", "B", "A", "A"]
    assert structure.segments.tolist() == [0, 1, 2, 3]


def test_end_in_the_middle_does_not_lose_the_rest(read: Read) -> None:
    structure = read(N + "END\n" + atom(" C1 ", "LIG", 1, chain="L", record="HETATM") + "END\n")
    assert structure.labels.residue_names.tolist() == ["ALA", "LIG"]


def test_duplicate_names_both_lines(read: Read) -> None:
    expected = (
        "p.pdb:4: atom A:ALA1:N is already on line 1; delete one, give copies different chain identifiers, or put "
        "models between MODEL and ENDMDL"
    )
    assert message(read, N + CA + C + N) == expected


def test_frames_parted_by_end_alone_are_refused(read: Read) -> None:
    assert message(read, N + "TER\nEND\n" + N + "TER\nEND\n").startswith("p.pdb:4: atom A:ALA1:N is already on line 1")


def test_same_names_after_ter_or_after_9999_are_other_atoms(read: Read) -> None:
    assert len(read(N + "TER\n" + N).labels) == 2
    wrapped = [atom(" O  ", "HOH", i, chain=" ") for i in (1, 2, 9999, 0, 1, 2)]
    assert read("".join(wrapped)).labels.residue_index.tolist() == [0, 1, 2, 3, 4, 5]


# Alternate locations


def test_highest_sum_of_occupancies_wins_in_each_residue(read: Read) -> None:
    content = (
        N
        + atom(" CA ", altloc="A", occupancy=0.6, xyz=(1, 0, 0))
        + atom(" CA ", altloc="B", occupancy=0.4, xyz=(2, 0, 0))
        + atom(" CB ", altloc="A", occupancy=0.3, xyz=(3, 0, 0))
        + atom(" CB ", altloc="B", occupancy=0.7, xyz=(4, 0, 0))
        + atom(" CA ", "GLY", 2, altloc="A", occupancy=0.5)
        + atom(" CA ", "GLY", 2, altloc="B", occupancy=0.5)
    )
    structure = read(content)
    assert structure.labels.names.tolist() == ["N", "CA", "CB", "CA"]
    assert structure.lines.tolist() == [1, 3, 5, 6]


def test_two_side_chains_in_one_place(read: Read) -> None:
    content = "".join(
        atom(name, residue, altloc=mark, occupancy=0.5 + 0.1 * (mark == "B"))
        for name in (" N  ", " CA ")
        for residue, mark in (("SER", "A"), ("THR", "B"))
    )
    assert read(content).labels.residue_names.tolist() == ["THR", "THR"]


def test_locations_at_the_end_of_the_file(read: Read) -> None:
    content = atom(altloc="A") + atom(" CA ", "GLY", 2) + atom(altloc="B", occupancy=0.1)
    assert read(content).lines.tolist() == [1, 2]


def test_occupancy_that_is_no_number_counts_as_one(read: Read) -> None:
    second = atom(altloc="B", occupancy=0.9)
    assert read(atom(altloc="A").replace("  1.00  0.00", "          ") + second).lines.tolist() == [1]


def test_choice_of_locations_is_told(read: Read) -> None:
    content = "".join(
        atom(" CA ", "SER", i, altloc=mark, occupancy=0.5 + 0.1 * (mark == best))
        for i, best in enumerate("AABAAAA", 1)
        for mark in "AB"
    )
    (note,) = read(content).notes
    where = "A in A:SER1, A:SER2, A:SER4, A:SER5 and 2 more; B in A:SER3"
    assert note.endswith(f"p.pdb: the alternate locations with the highest occupancy were read: {where}")
    assert read(N + atom(altloc="A")).notes == ()


# Models


MODELS = "".join(f"MODEL     {k:4d}\n{atom(xyz=(k, 0, 0))}ENDMDL\n" for k in (3, 5, 8))


@pytest.mark.parametrize(("model", "x"), [(None, 3), (5, 5), (8, 8)])
def test_model(read: Read, model: int | None, x: float) -> None:
    assert read(MODELS, model).positions[:, 0].tolist() == [x]


def test_choice_of_a_model_is_told(read: Read) -> None:
    for content, number in ((MODELS, 3), (N + "ENDMDL\n" + N, 1)):
        (note,) = read(content).notes
        assert note.endswith(
            f"p.pdb contains several models; model {number}, the first, was read; `model` selects another"
        )
    for content, model in ((MODELS, 3), ("MODEL        1\n" + N + "ENDMDL\nEND\n", None), (N, None)):
        assert read(content, model).notes == ()


def test_missing_model_lists_what_there_is(read: Read) -> None:
    assert message(read, MODELS, model=4) == "p.pdb: has no model 4; it has 3, 5, 8"
    assert message(read, N, model=2) == "p.pdb: has no model 2; it has 1"


def test_models_parted_by_endmdl_alone(read: Read) -> None:
    content = atom(xyz=(1, 0, 0)) + "ENDMDL\n" + atom(xyz=(2, 0, 0)) + "ENDMDL\n"
    assert read(content).positions[0, 0] == 1
    assert read(content, 2).positions[0, 0] == 2


def test_model_number_that_comes_again_is_read_once(read: Read) -> None:
    assert len(read(MODELS + MODELS, 5).labels) == 1


def test_atom_between_models(read: Read) -> None:
    expected = "p.pdb:4: an atom between ENDMDL and MODEL; move it into a model"
    assert message(read, "MODEL 1\n" + N + "ENDMDL\n" + CA + "END\n") == expected


# Large files


def hybrid_36(value: int) -> str:
    """Four columns of a residue number, or the last resort of a counter (Grosse-Kunstleve 2007)."""
    if value < 10_000:
        return f"{value:4d}"
    value, digits = value - 10_000 + 10 * 36**3, ""
    for _ in range(4):
        value, rest = divmod(value, 36)
        digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[rest] + digits
    return digits


def test_hybrid_36_and_serials_that_overflow(read: Read) -> None:
    n = 110_000
    serials = ["*****", "A0000", "99999", "186a0", "00000"]
    content = "".join(
        f"HETATM{serials[i % 5]}  O   HOH W{hybrid_36(i)}    {i % 1000:8.3f}{i // 1000:8.3f}{-i / 1000:8.3f}\n"
        for i in range(n)
    )
    structure = read(content)
    np.testing.assert_array_equal(structure.labels.residue_numbers, np.arange(n))
    np.testing.assert_array_equal(structure.labels.residue_index, np.arange(n))
    np.testing.assert_array_equal(structure.positions[:, 0], np.arange(n) % 1000)
    np.testing.assert_array_equal(structure.lines, np.arange(n) + 1)


def test_lower_case_hybrid_36_goes_on_where_upper_case_ends(read: Read) -> None:
    structure = read(atom(number="ZZZZ") + atom(number="a000"))
    assert np.diff(structure.labels.residue_numbers).tolist() == [1]


def test_five_digit_residue_number(read: Read) -> None:
    assert read(atom(number="1234", icode="5")).labels.residue_numbers.tolist() == [12345]


def test_two_letter_chains_and_four_letter_residues(read: Read) -> None:
    wide = read(atom().replace("ALA A", "ALAXA") + atom().replace("ALA A", "ALAXB"))
    assert wide.labels.chains.tolist() == ["XA", "XB"]
    assert wide.labels.residue_names.tolist() == ["ALA", "ALA"]
    long = read(atom().replace("ALA A", "POPCA") + atom().replace("ALA A", "LYSHA"))
    assert long.labels.residue_names.tolist() == ["POPC", "LYSH"]
    assert long.labels.chains.tolist() == ["A", "A"]


@pytest.mark.parametrize("name", ["TIP3W", "TIP4W", "SPCEW", "NMETA", "CASPB", "NALAA", "CHIEA"])
def test_known_four_letter_residues_are_no_two_letter_chains(read: Read, name: str) -> None:
    labels = read(atom() + atom().replace("ALA A", name)).labels
    assert labels.residue_names.tolist() == ["ALA", name[:4]]
    assert labels.chains.tolist() == ["A", name[4]]


def test_one_odd_name_does_not_make_two_letter_chains_of_the_whole_file(read: Read) -> None:
    odd = "".join(atom(number=9).replace("ALA A", name) for name in ("NMETA", "CASPA", "DAPXA"))
    assert read(CA + odd).labels.chains.tolist() == ["A"] * 4
    wide = "".join(atom(number=9).replace("ALA A", name) for name in ("ALAXA", "GLYXA", "NMETA"))
    assert read(wide).labels.chains.tolist() == ["XA", "XA", "TA"]


def test_segments_tell_chains_of_one_letter_apart(read):
    """CHARMM's files have neither TER nor other letters between them."""
    one, other = (N.rstrip("\n").ljust(72)[:72] + name + "\n" for name in ("PROA", "PROB"))
    both = read(one + other)
    assert (len(both.labels), len(both.labels.residues)) == (2, 2)
    assert "already on line 1" in message(read, one + one)
    assert "already on line 1" in message(read, one.replace("PROA", "AC1") + other.replace("PROB", "AC2"))
