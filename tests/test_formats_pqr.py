"""PQR files."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner

from pele_ocl.atoms import Atoms
from pele_ocl.cli.options import structure_options
from pele_ocl.common.errors import FormatError, InputError
from pele_ocl.common.inputfile import InputFile, read_file
from pele_ocl.formats import brings_parameters, read_pqr
from pele_ocl.formats.pqr import PqrFields, fields_of, fields_of_each
from pele_ocl.reading import read as read_any

LINE = "ATOM      1  N   ALA A   5      12.345  -6.789   0.001 -0.4157 1.8240"


def read(tmp_path: Path, *lines: str) -> Atoms:
    file = tmp_path / "p.pqr"
    file.write_text("\n".join(lines) + "\n")
    return read_pqr(file)


def message(tmp_path: Path, *lines: str) -> str:
    with pytest.raises(FormatError) as caught:
        read(tmp_path, *lines)
    return str(caught.value).removeprefix(f"{tmp_path}/")


def test_atoms(tmp_path: Path) -> None:
    atoms = read(tmp_path, "REMARK by hand", LINE, "TER", "HETATM 2 CL1 LIG L 1 0 0 0 0.1 1.7", "END")
    assert atoms.positions.tolist() == [[12.345, -6.789, 0.001], [0, 0, 0]]
    assert atoms.charges.tolist() == [-0.4157, 0.1]
    assert atoms.gb_radii is not None
    assert atoms.gb_radii.tolist() == [1.824, 1.7]
    assert atoms.gb_scales is not None
    assert atoms.gb_scales.tolist() == [0.79, 0.80]
    assert atoms.lj_sigma is None
    assert atoms.lj_epsilon is None
    assert atoms.labels is not None
    assert [atoms.labels.atom(i) for i in (0, 1)] == ["A:ALA5:N", "L:LIG1:CL1"]


@pytest.mark.parametrize(
    ("line", "label"),
    [
        (LINE, "A:ALA5:N"),
        (LINE.replace(" A ", "   "), "ALA5:N"),
        (" ".join(LINE.split()), "A:ALA5:N"),
        ("\t".join(LINE.split()), "A:ALA5:N"),
        (LINE + "  N", "A:ALA5:N"),
        (LINE.replace(" A ", "   ") + "  N", "ALA5:N"),
        (LINE.replace("A   5 ", "A   5B"), "A:ALA5B:N"),
        (LINE.replace("A   5 ", "A   5 B"), "A:ALA5B:N"),
        (LINE.replace(" A   5 ", "     5 B"), "ALA5B:N"),
        (LINE.replace("A   5", "A1005"), "A:ALA1005:N"),
        (LINE.replace("A   5", "A  -5"), "A:ALA-5:N"),
        (LINE.replace("A   5", "1   5"), "1:ALA5:N"),
        (LINE.replace("ATOM      1", "HETATM12345"), "A:ALA5:N"),
        (LINE.replace("ALA A", "NALAA"), "A:NALA5:N"),
    ],
)
def test_identity(tmp_path: Path, line: str, label: str) -> None:
    atoms = read(tmp_path, line)
    assert atoms.labels is not None
    assert atoms.labels.atom(0) == label
    assert atoms.positions.tolist() == [[12.345, -6.789, 0.001]]
    assert atoms.charges.tolist() == [-0.4157]


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ("  12.345-123.456-100.001-0.4157 1.8240", [12.345, -123.456, -100.001, -0.4157, 1.824]),
        ("1112.3451123.4561100.001 -0.4157 1.8240", [1112.345, 1123.456, 1100.001, -0.4157, 1.824]),
        ("  12.345   6.789   1.001 -4.1e-05 0.0", [12.345, 6.789, 1.001, -4.1e-5, 0.0]),
        ("  1 2 3 -1 2", [1, 2, 3, -1, 2]),
    ],
)
def test_numbers(tmp_path: Path, numbers: str, expected: list[float]) -> None:
    atoms = read(tmp_path, LINE[:30] + numbers)
    assert atoms.gb_radii is not None
    assert [*atoms.positions[0], atoms.charges[0], atoms.gb_radii[0]] == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (LINE.replace("-0.4157", "    abc"), "charge 'abc' is not a number"),
        (LINE.replace("1.8240", "big"), "radius 'big' is not a number"),
        (LINE.replace("12.345", "12,345"), "x coordinate '12,345' is not a number"),
        (LINE.replace("1.8240", "1_0.0"), "radius '1_0.0' is not a number"),
        (LINE.replace("0.001", "  nan"), "z coordinate 'nan' is not a finite number"),
        (LINE.replace("1.8240", "inf"), "radius 'inf' is not a finite number"),
        (LINE.replace("1.8240", "-1.8"), "radius -1.8 is negative; expected a radius in angstrom"),
        (LINE.replace("A   5", "A   x"), "residue number 'x' is not a number"),
        (
            "ATOM 1 N ALA A 5 12.345123.456 1.0 0.1 1.8 2",
            "the numbers '12.345123.456' are not separated; put blanks between them",
        ),
        (
            LINE[:50],
            "contains 9 fields; a PQR line has record, serial, atom, residue, chain (or none), residue number, x, y, "
            "z, "
            "charge and radius",
        ),
    ],
)
def test_line_that_cannot_be_read(tmp_path: Path, line: str, expected: str) -> None:
    assert message(tmp_path, "REMARK", LINE.replace(" N ", " CA"), line) == f"p.pqr:3: {expected}"


def test_file_that_cannot_be_read(tmp_path: Path) -> None:
    assert message(tmp_path, "REMARK") == "p.pqr: contains no ATOM or HETATM records; is it a PQR file?"
    assert message(tmp_path, "<html>") == "p.pqr: contains HTML, not a PQR file; was the download an error page?"
    assert message(tmp_path, LINE, LINE).startswith("p.pqr:2: atom A:ALA5:N is already on line 1; ")


PDB_LINE = "ATOM      1  N   ALA A   5      12.345  -6.789   0.001  1.00 23.45           N"


@pytest.mark.parametrize(
    "lines",
    [
        [PDB_LINE],
        [PDB_LINE, PDB_LINE.replace(" N   ALA", "ZN   ZN ").replace("  1.00", "  0.50")],
        [PDB_LINE[:66], PDB_LINE[:66].replace(" N ", " CA")],
        [PDB_LINE[:66].replace("ALA", "HOH").replace(" N ", " O "), PDB_LINE[:66].replace("1.00", "0.35")],
        [PDB_LINE.replace("           N", "           N1+")],
    ],
)
def test_pdb_file_called_pqr(tmp_path: Path, lines: list[str]) -> None:
    expected = "p.pqr: looks like a PDB file: its charges are occupancies and its radii B factors; rename it to .pdb"
    assert message(tmp_path, *lines) == expected


@pytest.mark.parametrize(
    "lines",
    [
        ["HETATM 1 NA NA 1 0 0 0 1.00 1.87"],
        ["HETATM 1 Q DUM 1 0 0 0 1.00 2.00"],
        [PDB_LINE.replace(" 1.00 23.45", "-0.42  1.55"), PDB_LINE.replace(" N ", " H ").replace("23.45", " 1.20")],
        ["ATOM 1 N ALA 1 0 0 0 0.00 1.55"],
    ],
)
def test_pqr_file_that_might_be_taken_for_pdb(tmp_path: Path, lines: list[str]) -> None:
    assert len(read(tmp_path, *lines)) == len(lines)


def test_models(tmp_path: Path) -> None:
    content = ["MODEL        4", LINE, "ENDMDL", "MODEL 7", LINE.replace("12.345", " 2.345"), "ENDMDL", "END"]
    first, second = read(tmp_path, *content), read_pqr(tmp_path / "p.pqr", 7)
    assert (first.positions[0, 0], second.positions[0, 0]) == (12.345, 2.345)
    (note,) = first.notes
    assert note.endswith("p.pqr contains several models; model 4, the first, was read; `model` selects another")
    assert second.notes == read(tmp_path, LINE).notes == ()
    read(tmp_path, *content)
    with pytest.raises(FormatError, match="has no model 2; it has 4, 7"):
        read_pqr(tmp_path / "p.pqr", 2)
    read(tmp_path, LINE, "ENDMDL", LINE.replace("12.345", " 2.345"))
    assert read_pqr(tmp_path / "p.pqr", 2).positions[:, 0].tolist() == [2.345]


def test_parameters_with_a_file_that_brings_its_own(tmp_path: Path) -> None:
    read(tmp_path, LINE)
    file = tmp_path / "p.pqr"
    with pytest.raises(InputError, match="a PQR file contains charges and radii; do not give a force field"):
        read_any(file, forcefield="amber99sb")

    @click.command
    @structure_options
    def command(read_atoms: Callable[[InputFile], Atoms]) -> int:
        return len(read_atoms(read_file(file)))

    runner = CliRunner()
    assert runner.invoke(command, [], standalone_mode=False).return_value == 1
    failed = runner.invoke(command, ["--fallback", "--radii", "pele"], standalone_mode=False)
    assert str(failed.exception) == (f"{file}: a PQR file contains charges and radii; leave out `radii`, `guess_radii`")


def test_suffix(tmp_path: Path) -> None:
    (tmp_path / "p.PQR.gz").write_bytes(gzip.compress(LINE.encode()))
    assert brings_parameters(tmp_path / "p.PQR.gz")
    assert not brings_parameters("p.pdb")
    assert len(read_pqr(tmp_path / "p.PQR.gz")) == 1


def test_scales_are_those_of_the_docstring(tmp_path: Path) -> None:
    names = "H1 C1 N1 O1 F1 P1 S1 BR1".split()
    atoms = read(tmp_path, *(f"ATOM 1 {name} LIG 1 {k}.0 0.0 0.0 0.0 1.0" for k, name in enumerate(names)))
    assert atoms.gb_scales is not None
    assert atoms.gb_scales.tolist() == [0.85, 0.72, 0.79, 0.85, 0.88, 0.86, 0.96, 0.80]


def any_line(rng: random.Random) -> str:
    def one(usual: str, *others: str) -> str:
        return rng.choice([usual] * 8 * len(others) + list(others))

    chain, number = rng.choice(["", "A", "B"]), rng.choice(["5", "-3", "1005", "5B"])
    together = chain + number.rjust(rng.choice([0, 4]))
    place = "".join(one("%9.3f", "%8.3f") % rng.uniform(-200, 200) for _ in "xyz")
    record, serial, name = rng.choice(["ATOM", "HETATM"]), one("12345", "*****"), one("CA", "ATOM", "C1.5")
    numbers = rng.choice(["-0.42 1.5", "1e-3 1.0", ".5 0"]) + one("", " N")
    return f"{record} {serial} {name} {rng.choice(['ALA', 'NALA'])} {together} {place} {numbers}"


def outcome(read_fields: Callable[..., PqrFields], lines: list[str], places: object) -> object:
    try:
        found = read_fields(lines, places)
    except FormatError as error:
        return str(error)
    return {each.name: np.array(getattr(found, each.name)).tolist() for each in fields(PqrFields)}


def test_lines_together_are_read_as_each_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain lines, others, and such with any letter changed, dropped or put in."""
    rng, read_together, read_one_by_one = random.Random(1), 0, list[int]()

    def counted(lines: list[str], places: object) -> PqrFields:
        read_one_by_one.append(len(lines))
        return fields_of_each(lines, places)

    monkeypatch.setattr("pele_ocl.formats.pqr.fields_of_each", counted)
    for trial in range(400):
        lines = [any_line(rng) for _ in range(rng.choice([1, 3, 8]))]
        if trial % 2:
            k, at = rng.randrange(len(lines)), rng.randrange(40)
            lines[k] = lines[k][:at] + rng.choice(["", " ", "x", "-", ".", "9", "_", "٣", "nan"]) + lines[k][at + 1 :]
        expected = outcome(fields_of_each, lines, [f"p:{i}" for i in range(len(lines))])
        read_one_by_one.clear()
        assert outcome(fields_of, lines, "p:{}".format) == expected, lines
        read_together += sum(read_one_by_one) < len(lines)
    assert 100 < read_together < 350
