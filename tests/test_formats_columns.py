"""PDB lines whose columns are off: read where there is one reading, refused with the line where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from pele_ocl.atoms import Structure
from pele_ocl.common.errors import FormatError
from pele_ocl.formats import read_structure

#        1         2         3         4         5         6         7
# 3456789012345678901234567890123456789012345678901234567890123456789012345678
GOOD = "ATOM      1  CA  ALA A   5      27.340  24.430   2.614  1.00  9.67           C"


def read(tmp_path: Path, *lines: str, end: str = "\n") -> Structure:
    file = tmp_path / "p.pdb"
    file.write_text("\n".join(lines) + end)
    return read_structure(file)


def message(tmp_path: Path, *lines: str, end: str = "\n") -> str:
    with pytest.raises(FormatError) as caught:
        read(tmp_path, *lines, end=end)
    return str(caught.value).removeprefix(f"{tmp_path}/")


@pytest.mark.parametrize(
    "line",
    [
        GOOD,
        GOOD[:54],
        GOOD[:66],
        " " + GOOD,
        "  " + GOOD,
        GOOD[:5] + GOOD[6:],
        GOOD[:11] + " " + GOOD[11:],
        GOOD[:16] + "  " + GOOD[16:],
        GOOD[:26] + " " + GOOD[26:],
        GOOD[:27] + GOOD[28:],
        GOOD[:30] + " " + GOOD[30:],
        "\t".join(GOOD.split()),
        "ATOM\t1\tCA\tALA\tA\t5\t27.340\t24.430\t2.614",
        " ".join(GOOD.split()),
        GOOD.lower().replace("ca  ala a", "CA  ALA A"),
        GOOD.replace("ATOM      1", "ATOM 100000"),
        GOOD.replace("ATOM      1", "ATOM  100000"),
        GOOD.replace(" A   5", " A5"),
        GOOD[:30] + "   27.340  24.430   2.614",
        GOOD.replace("27.340  24.430   2.614", "27.34   24.43    2.614"),
        GOOD.replace("  27.340  24.430   2.614", " 27.34   24.43   2.614  "),
        GOOD.replace("  27.340  24.430   2.614", " 27.3400 24.4300  2.6140"),
    ],
)
def test_one_reading(tmp_path: Path, line: str) -> None:
    structure = read(tmp_path, GOOD.replace("CA ", "N  "), line)
    assert structure.labels.atom(1) == "A:ALA5:CA"
    assert structure.positions[1].tolist() == [27.34, 24.43, 2.614]
    assert structure.labels.elements.tolist() == ["N", "C"]
    assert structure.lines.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (" -27.340-124.430-102.614", [-27.34, -124.43, -102.614]),
        ("-127.340-124.430-102.614", [-127.34, -124.43, -102.614]),
        ("1127.3401124.4301102.614", [1127.34, 1124.43, 1102.614]),
        (" 2.7e+01 2.4E+01  -1.e-1", [27, 24, -0.1]),
    ],
)
def test_columns_that_touch_and_other_numbers(tmp_path: Path, columns: str, expected: list[float]) -> None:
    assert read(tmp_path, GOOD[:30] + columns + GOOD[54:]).positions[0].tolist() == expected
    if "." in columns and "e" not in columns:
        assert read(tmp_path, " " + GOOD[:30] + columns + GOOD[54:]).positions[0].tolist() == expected


@pytest.mark.parametrize(
    "line",
    [
        GOOD,
        "ATOM   1234 HG11 VAL B 105     -27.340 124.430-102.614  1.00  9.67           H  ",
        "HETATM 1234  O   HOH   105     127.340 124.430 102.614",
        "ATOM   1234  P    DA A1105     127.340 124.430 102.614  1.00 22.00           P",
        "ATOM   1234  CA AALA A   5    1127.3401124.4301102.614  0.50 22.00           C",
    ],
)
def test_a_blank_too_many_or_too_few_never_changes_a_coordinate(tmp_path: Path, line: str) -> None:
    expected = read(tmp_path, line).positions.tolist()
    edits = [line[:k] + blanks + line[k:] for k in range(len(line)) for blanks in (" ", "  ")]
    edits += [line[:k] + line[k + 1 :] for k in range(len(line)) if line[k] == " "]
    edits += [line[:k] + " " + line[k:].replace("  ", " ", 1) for k in range(len(line))]
    n_read = 0
    for edit in edits:
        try:
            positions = read(tmp_path, edit).positions.tolist()
        except FormatError:
            continue
        assert positions == expected, edit
        n_read += 1
    assert n_read > len(edits) / 3


def test_line_without_chain(tmp_path: Path) -> None:
    structure = read(tmp_path, "ATOM 1 CA ALA 5 27.340 24.430 2.614")
    assert structure.labels.atom(0) == "ALA5:CA"
    assert read(tmp_path, "ATOM 1 CA ALA 1 5 27.340 24.430 2.614").labels.atom(0) == "1:ALA5:CA"


@pytest.mark.parametrize(("text", "shown"), [("     nan", "nan"), ("    -inf", "-inf"), ("     NaN", "NaN")])
def test_number_that_is_not_finite(tmp_path: Path, text: str, shown: str) -> None:
    expected = f"p.pdb:2: a coordinate of atom CA ALA A 5 is '{shown}'; expected a finite number"
    assert message(tmp_path, "REMARK", GOOD[:38] + text + GOOD[46:]) == expected


@pytest.mark.parametrize(
    ("columns", "axis", "shown"),
    [
        ("      10      20     -30", "x", "10"),
        ("  27.340      24   2.614", "y", "24"),
        ("  27.340  24.430       2", "z", "2"),
    ],
)
def test_coordinate_without_a_decimal_point(tmp_path: Path, columns: str, axis: str, shown: str) -> None:
    expected = f"p.pdb:1: the {axis} coordinate of atom CA ALA A 5 is '{shown}', without a decimal point"
    assert message(tmp_path, GOOD[:30] + columns + GOOD[54:]) == expected


@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize(
    "rest", ["  1.00  0.00           H", "  1.00  9.67", "  1.00", "  1.00100.00      B    H  ", "      "]
)
def test_line_without_one_coordinate(tmp_path: Path, axis: int, rest: str) -> None:
    """y, z and the occupancy are no position."""
    coordinates = ["   1.266", "  -6.115", "   0.425"]
    del coordinates[axis]
    for line in (GOOD[:30] + "".join(coordinates) + rest, GOOD[:30] + " ".join(coordinates) + rest):
        assert message(tmp_path, GOOD.replace("CA ", "N  "), line).startswith("p.pdb:2: ")


@pytest.mark.parametrize("text", ["  24.4x0", "********", "        ", "  24,430", "  1_0.00", "--24.430", "24.43.00"])
def test_coordinate_that_is_no_number(tmp_path: Path, text: str) -> None:
    expected = f"p.pdb:1: the y coordinate of atom CA ALA A 5 is '{text.strip()}', not a number"
    assert message(tmp_path, GOOD[:38] + text + GOOD[46:]) == expected


@pytest.mark.parametrize("n", [4, 6, 12, 20, 30, 37, 45, 46, 50, 53])
def test_line_that_ends_in_the_coordinates(tmp_path: Path, n: int) -> None:
    expected = "p.pdb:2: the line ends before the coordinates do; the file is truncated or damaged"
    assert message(tmp_path, GOOD.replace("CA ", "N  "), GOOD[:n], end="") == expected


def test_file_that_ends_in_the_record_name(tmp_path: Path) -> None:
    assert message(tmp_path, GOOD, "ATO", end="").startswith("p.pdb:2: the line ends before the coordinates do")


@pytest.mark.parametrize(
    "line",
    [
        # Alternate location A of ALA, or the residue AALA?
        " " + GOOD.replace(" ALA", "AALA"),
        # By columns location A of the residue LA, by words ALA.
        "ATOM      1  CA ALA     5      27.34   24.43   2.61",
        # Numbers that touch without sign and without three decimals.
        "ATOM 1 CA ALA A 5 27.34024.43 2.614 1.00 0.00",
        # The residue has no name.
        "ATOM 1 CA A 5 27.340 24.430 2.614 1.00 0.00",
    ],
)
def test_more_than_one_reading(tmp_path: Path, line: str) -> None:
    expected = "the columns are not where the PDB format has them; x is in 31-38, y in 39-46, z in 47-54"
    assert message(tmp_path, line) == f"p.pdb:1: {expected}"


def test_occupancy_is_never_taken_for_a_coordinate(tmp_path: Path) -> None:
    line = "\t".join(GOOD.split()).replace("24.430\t", "\t")
    assert "the columns are not where" in message(tmp_path, line)


def test_no_name_and_no_residue_number(tmp_path: Path) -> None:
    assert message(tmp_path, GOOD.replace("CA ", "   ")) == "p.pdb:1: the atom has no name in columns 13-16"
    expected = "p.pdb:1: residue number 'x' in columns 23-26 is not a number"
    assert message(tmp_path, GOOD.replace("A   5", "A   x")) == expected


def test_remarks_that_begin_like_atoms_are_none(tmp_path: Path) -> None:
    assert len(read(tmp_path, "ATOMS of ubiquitin", "HETNAM     LIG", "ANISOU    1  CA", GOOD).labels) == 1
