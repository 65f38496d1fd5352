"""OBC tables, text and JSON, and the rule for atoms that no table names."""

from __future__ import annotations

import json

import numpy as np
import pytest
from forcefield_helpers import SAMPLES, needs_samples

from pele_ocl.atoms import element_rule
from pele_ocl.common.errors import FormatError
from pele_ocl.forcefield import embedded_radii, lookup, read_obc

HEADER = "#ResidueName AtomName AtomType(from Gromacs) gbr(overlapscalefactors) hct(standard radii for GB/SA )\n"


@pytest.fixture
def write(tmp_path):
    def _write(text, name="table.txt"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return _write


def test_columns_are_taken_by_position_whatever_the_header_says(write):
    table = read_obc(write(f"{HEADER}ALA   N    N   1.7063    0.79\n{HEADER}\nala _CA_ CT 1.9 0.72"))
    assert table == {("ALA", "N"): (1.7063, 0.79), ("ALA", "CA"): (1.9, 0.72)}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            "LIGZ C1 CT 0.72 1.9",
            "table.txt:2: radius 0.72 and scale 1.9 seem to be exchanged; the radius (A) comes first",
        ),
        ("LIGZ C1 CT 1.9", "table.txt:2: a row needs template, atom, type, radius and scale, not 4 fields"),
        ("LIGZ C1 CT 1.9 big", "table.txt:2: radius '1.9' and scale 'big' must be numbers"),
        ("LIGZ C1 CT 1.9 -0.1", "table.txt:2: radius 1.9 or scale -0.1 is out of range"),
        ("LIGZ C1 CT 1_0.0 0.72", "table.txt:2: radius '1_0.0' and scale '0.72' must be numbers"),
        ("LIGZ C1 CT nan 0.72", "table.txt:2: radius nan or scale 0.72 is out of range"),
        ("LIGZ C1 CT 0.9 0.72", "table.txt:2: radius 0.9 or scale 0.72 is out of range"),
    ],
)
def test_a_wrong_row_is_named_with_its_line(write, row, message):
    with pytest.raises(FormatError) as caught:
        read_obc(write(f"ALA N N 1.7063 0.79\n{row}\n"))
    assert message in str(caught.value)


def test_the_generator_s_doubled_z_serves_the_real_name(write):
    table = read_obc(write("CAZZ CA Ca2+ 1.817 0.80\n", "caz_OBCParams.txt"))
    assert lookup(table, "CAZ", "CA") == (1.817, 0.80)
    assert read_obc(write("CAZZ CA Ca2+ 1.817 0.80\nCAZ CA Ca2+ 1.9 0.8\n"))["CAZ", "CA"] == (1.9, 0.8)


def test_a_template_without_position_letter_takes_the_isolated_rows():
    assert lookup({("HOHZ", "OW"): (1.535, 0.85)}, "HOH", "OW") == (1.535, 0.85)
    assert lookup({("HOHZ", "OW"): (1.535, 0.85)}, "HOH", "HW") is None


def test_the_json_of_openff_ligands(write):
    atoms = {"OLC": {"_C2_": {"radius": 1.7, "scale": 0.72}}}
    general = {"Name": "OBC2", "General": {"solvent_dielectric": 78.5}}
    table = read_obc(write(json.dumps({"SolventParameters": {**general, **atoms}})))
    assert lookup(table, "OLCZ", "C2") == (1.7, 0.72)
    assert lookup(table, "OLC", "C2") == (1.7, 0.72)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"SolventParameters": {\n"OLC": }}', "table.txt:2: the JSON is damaged"),
        ('{"Solvent": {}}', "table.txt: expected SolventParameters with radius and scale"),
        (
            '{"SolventParameters": {"OLC": {"_C2_": {"radius": 1.7}}}}',
            "table.txt: expected SolventParameters with radius and",
        ),
        ('{"SolventParameters": {"OLC": {"_C2_": {"radius": 0.7, "scale": 1.7}}}}', "(OLC _C2_): radius 0.7 and scale"),
        ('{"SolventParameters": {"OLC": {"_C2_": {"radius": null, "scale": 0.7}}}}', "radius 'None' and scale '0.7'"),
    ],
)
def test_a_wrong_json_says_what_is_wrong(write, text, message):
    with pytest.raises(FormatError) as caught:
        read_obc(write(text))
    assert message in str(caught.value)


@pytest.mark.parametrize("text", [HEADER, "# nothing\n\n", '{"SolventParameters": {"Name": "OBC2"}}'])
def test_a_table_without_rows(write, text):
    with pytest.raises(FormatError, match=r"table.txt: the OBC table contains no row; rows are template, atom, type"):
        read_obc(write(text))


def test_byte_order_mark_line_ends_and_latin_1_remarks(tmp_path):
    path = tmp_path / "table.txt"
    path.write_bytes(b"\xef\xbb\xbfLIGZ C1 CT 1.9 0.72\r\n# \xc5ngstr\xf6m\r\nLIGZ H1 HC 1.25 0.85\r\n")
    assert read_obc(path) == {("LIGZ", "C1"): (1.9, 0.72), ("LIGZ", "H1"): (1.25, 0.85)}


def test_a_table_that_is_not_there(tmp_path):
    with pytest.raises(FormatError, match=r"absent.txt: no such file"):
        read_obc(tmp_path / "absent.txt")


@pytest.mark.parametrize(
    ("elements", "bonds", "radius", "scale"),
    [
        ("C H H H H", [(0, 1), (0, 2), (0, 3), (0, 4)], 1.9, 0.72),
        ("C O H H", [(0, 1), (0, 2), (0, 3)], 1.875, 0.72),
        ("C N H", [(0, 1), (0, 2)], 1.825, 0.72),
        ("N H H H", [(0, 1), (0, 2), (0, 3)], 1.7063, 0.79),
        ("N H H H C", [(0, 1), (0, 2), (0, 3), (0, 4)], 1.625, 0.79),
        ("N C", [(0, 1)], 1.6, 0.79),
        ("O C H", [(0, 1), (0, 2)], 1.535, 0.85),
        ("O C", [(0, 1)], 1.48, 0.85),
        ("H C", [(0, 1)], 1.25, 0.85),
        ("H N", [(1, 0)], 1.15, 0.85),
        ("H O", [(0, 1)], 1.05, 0.85),
        ("P O", [(0, 1)], 1.87, 0.86),
        ("S C", [(0, 1)], 1.775, 0.96),
        ("F C", [(0, 1)], 1.47, 0.88),
        ("Fe", [], 2.0, 0.88),
        ("Zn", [], 2.0, 0.8),
        ("Na", [], 1.992, 0.8),
    ],
)
def test_the_element_rule(elements, bonds, radius, scale):
    radii, scales = element_rule(elements.split(), np.array(bonds, np.int32).reshape(-1, 2))
    assert (radii[0], scales[0]) == (radius, scale)


@needs_samples
def test_pele_radii_are_those_of_pele_s_own_table():
    theirs = read_obc(SAMPLES / "peleffy" / "solventParamsHCTOBC.txt")
    ours = embedded_radii("pele")
    common = theirs.keys() & ours.keys()
    assert len(common) > 1990
    assert {key for key in common if ours[key] != theirs[key]} == {("LYN", "NZ")}  # theirs has ammonium's 1.625


@needs_samples
def test_peleffy_s_json_is_read():
    table = read_obc(SAMPLES / "peleffy" / "ligandParams.txt")
    assert lookup(table, "OLCZ", "C2") == (1.7, 0.72)
