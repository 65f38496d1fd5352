"""Reader of IMPACT templates: what it takes from a file, and one sentence for each error."""

from __future__ import annotations

import numpy as np
import pytest
from forcefield_helpers import SAMPLES, needs_samples

from pele_ocl.common.errors import FormatError
from pele_ocl.forcefield import element_of, is_template, read_template

METHANOL = """\
* LIGAND DATABASE FILE (OPLS2005)
*
MOH       3     2     1      0       0
    1     0 M   CT   _C1_     0    1.000000   90.000000    0.000000
    2     1 S   OH   _O1_     0    1.400000  109.500000    0.000000
    3     2 S   HO   _H1_     0    0.950000  109.500000    0.000000
   2   1
    2     3
    3
    0
NBON
    1   3.5000   0.0660   0.2650   1.9750   1.7500   0.005000000  -0.741685710
    2   3.1200   0.1700  -0.6830   1.7500   1.5600   0.005000000  -0.741685710
    3   0.0000   0.0000   0.4180   0.9960   0.8600   0.005000000  -0.741685710
BOND
    1     2   320.000  1.410
    2     3   553.000  0.945
THET
    1     2     3    55.00000  108.50000
PHI
IPHI
END"""


@pytest.fixture
def write(tmp_path):
    def _write(text, name="mohz"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return _write


def test_what_a_template_holds(write):
    template = read_template(write(METHANOL))
    assert template.name == "MOHZ"
    assert template.names == ("C1", "O1", "H1")
    assert template.elements == ("C", "O", "H")
    assert template.types == ("CT", "OH", "HO")
    assert template.kind == "opls"
    np.testing.assert_array_equal(template.lj_sigma, [3.5, 3.12, 0.0])
    np.testing.assert_array_equal(template.lj_epsilon, [0.066, 0.17, 0.0])
    np.testing.assert_array_equal(template.charges, [0.265, -0.683, 0.418])
    np.testing.assert_array_equal(template.bonds, [(0, 1), (1, 2)])


def test_nothing_after_end_is_read(write):
    assert len(read_template(write(METHANOL + "\nNBON\n    1 what is this\n"))) == 3


def test_r_star_becomes_sigma(write):
    text = METHANOL.replace("3.5000", "1.9080").replace("3.1200", "1.7210")
    template = read_template(write(text))
    assert template.kind == "amber"
    np.testing.assert_allclose(template.lj_sigma, [3.39966950842, 3.06647338784, 0], rtol=1e-9)


@pytest.mark.parametrize(
    ("remark", "kind"),
    [
        ("* Compatible with PELE's AMBER implementation", "amber"),
        ("* File generated with peleffy-1.3.4", "opls"),
        ("* LIGAND DATABASE FILE (OPLS2005)", None),
    ],
)
def test_an_ion_tells_its_kind_by_peleffy_s_remark_alone(write, remark, kind):
    ion = "NAZ 1 0 0 0 0\n 1 0 M Na+ NA__ 1 0. 0. 0.\nNBON\n 1 1.8680 0.00277 1.0 0. 0. 0. 0.\nBOND\nEND\n"
    template = read_template(write(f"{remark}\n{ion}", "naz"))
    assert (template.kind, template.elements) == (kind, ("Na",))


@pytest.mark.parametrize(
    ("change", "to", "message"),
    [
        ("MOH       3", "MOH       4", "mohz:7: '2 1' is not the line of atom 4"),
        ("MOH       3     2     1      0       0", "MOH       three", "mohz:3: 'MOH three' is not a header"),
        ("MOH       3", "MOH       0", "mohz:3: 'MOH 0 2 1 0 0' is not a header"),
        ("    2     1 S   OH", "    7     1 S   OH", "mohz:5: '7 1 S OH _O1_ 0 1.400000 109.500000 0.000000' is not"),
        ("_H1_", "_O1_", "mohz:6: the atom O1 occurs twice; rename one of the two"),
        ("-0.6830", "minus", "mohz:13: 'minus' is not a number"),
        ("-0.6830", "-0.6_830", "mohz:13: '-0.6_830' is not a number"),
        ("-0.6830", "nan", "mohz:13: 'nan' is not a number"),
        ("0.1700  -0.6830", "-0.1700  -0.6830", "mohz:13: sigma and epsilon cannot be negative"),
        (
            "    3   0.0000   0.0000   0.4180",
            "    2   0.0000   0.0000   0.4180",
            "mohz:14: atom 2 has two NBON rows",
        ),
        ("    3   0.0000   0.0000   0.4180", "    9   0.0000   0.0000   0.4180", "mohz:14: '9' is not an atom number"),
        ("    3   0.0000   0.0000   0.4180   0.9960   0.8600   0.005000000  -0.741685710\n", "", "mohz: atom 3 has no"),
        (
            "    3   0.0000   0.0000   0.4180   0.9960   0.8600   0.005000000  -0.741685710",
            " 3 0.0",
            "mohz:14: an NBON",
        ),
        ("NBON\n", "", "mohz: the section NBON"),
        ("    2     3   553.000", "    2     4   553.000", "mohz:17: '4' is not an atom number; the atoms are 1 to 3"),
        ("    2     3   553.000", "    2     2   553.000", "mohz:17: atom 2 is bonded to itself"),
        ("    2     3   553.000  0.945", "    2", "mohz:17: a bond needs two atom numbers"),
        ("    2     3   553.000  0.945\n", "", "mohz:3: the header announces 2 bonds, but BOND has 1 rows"),
        ("    2     3   553.000  0.945\nTHET", "END", "mohz:3: the header announces 2 bonds, but BOND has 1 rows"),
        (
            "    2     3   553.000  0.945\n",
            "    2     3   553.000  0.9",
            "mohz:18: a bond needs two atom numbers and two values",
        ),
        ("1.410\n    2", "1.410     2", "mohz:16: a bond needs two atom numbers and two values, not 8 fields"),
        (
            "-0.741685710\n    2   3.12",
            "-0.741685710     2   3.12",
            "mohz:12: an NBON row needs an atom number and seven",
        ),
        ("BOND\n    1 ", "BOND 1", "mohz:15: data after the word BOND; begin a new line"),
        ("BOND\n", "END\nBOND\n", "mohz: the section BOND is missing; the file is damaged or truncated"),
        ("BOND\n", "", "mohz:15: an NBON row needs an atom number and seven values, not 4 fields"),
        ("PHI\n", "BOND\n", "mohz:20: BOND is after THET; the order is NBON, BOND, THET, PHI, IPHI, END"),
        ("IPHI\nEND", "IPHI\n", "mohz: the section END is missing; the file is damaged or truncated"),
        ("\nEND", "\nEN", "mohz: the section END is missing; the file is damaged or truncated"),
    ],
)
def test_a_broken_template_is_named_with_its_line(write, change, to, message):
    assert change in METHANOL
    with pytest.raises(FormatError) as caught:
        read_template(write(METHANOL.replace(change, to, 1)))
    assert message in str(caught.value)


@pytest.mark.parametrize("text", ["", "* only a comment\n", "nothing like it\n"])
def test_a_file_that_is_no_template(write, text):
    assert not is_template(text)
    with pytest.raises(FormatError, match="mohz"):
        read_template(write(text))


def test_a_file_that_ends_within_its_atoms(write):
    with pytest.raises(FormatError, match="mohz:4: the header announces more than the 1 atoms that follow"):
        read_template(write("\n".join(METHANOL.splitlines()[:4])))


def test_a_folder_or_a_binary_file_is_no_template(tmp_path):
    (tmp_path / "bin").write_bytes(b"\xff\xfe\x00")
    said = {"": "a folder; give a file in it", "bin": "the file is binary or damaged", "absent": "no such file"}
    for name, problem in said.items():
        with pytest.raises(FormatError, match=problem):
            read_template(tmp_path / name)


def test_byte_order_mark_line_ends_and_latin_1_comments(tmp_path):
    path = tmp_path / "mohz"
    path.write_bytes(b"\xef\xbb\xbf* \xc5ngstr\xf6m\r\n" + METHANOL.replace("\n", "\r\n").encode())
    assert read_template(path).names == ("C1", "O1", "H1")


@pytest.mark.parametrize(
    ("name", "element"),
    [
        ("_CA_", "C"), ("CA__", "Ca"), ("_CL_", "C"), ("CL1_", "Cl"), ("HH11", "H"), ("1HW_", "H"), ("HO5'", "H"),
        ("_OW_", "O"), ("FE__", "Fe"), ("_H5'", "H"), ("_K__", "K"), ("____", "X"), ("BR1_", "Br"), ("_N__", "N"),
    ],
)  # fmt: skip
def test_the_column_tells_carbon_from_calcium(name, element):
    assert element_of(name, "LIGZ") == element


@needs_samples
def test_every_template_of_pele_s_opls2005_reads():
    files = [p for p in sorted((SAMPLES / "OPLS2005").rglob("*")) if p.is_file() and is_template(p.read_text())]
    templates = [read_template(path) for path in files]
    assert len(templates) > 150
    uneven = {t.name for t in templates if abs(t.charges.sum() - round(t.charges.sum())) > 1e-5}
    assert uneven == {"SEPB"}  # -1.4775 in PELE's own file


@needs_samples
@pytest.mark.parametrize(
    ("name", "kind", "sigma"),
    [
        ("malz", "opls", 3.3997),
        ("OPLS_malz", "opls", 3.5),
        ("metz", "opls", 3.3997),
        ("metz_amber", "amber", 3.39966951),
    ],
)
def test_peleffy_s_ligands(name, kind, sigma):
    template = read_template(SAMPLES / "peleffy" / name)
    assert template.kind == kind
    assert template.lj_sigma[0] == pytest.approx(sigma, rel=1e-8)
