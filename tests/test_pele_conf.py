"""PELE's control file: what is read from it, and how it stands in for options of the commands."""

from __future__ import annotations

import json
import shutil

import pytest
from forcefield_helpers import ROOT, SAMPLES, needs_samples
from test_cli import error_of, on_the_chosen_device, run

from pele_ocl.common.errors import FormatError
from pele_ocl.forcefield import read_control

__all__ = ["on_the_chosen_device"]  # a fixture that every test here uses

HEXAPEPTIDE = ROOT / "data" / "structures" / "hexapeptide.pdb"
CONTROL = """\
{
   // made for AdaptivePELE
   "licenseDirectoryPath" : "http://nowhere/license",
   "Initialization" : {
      "ForceField" : "AMBER99sb",
      /* two
         lines */
      "MultipleComplex" : [ { "files" : [ { "path" : "complex.pdb" } ] } ],
      "Solvent" : { "ionicStrength" : 0.250, "solventType" : "OBC", "useDebyeLength" : true },
      "allowMissingTerminals" : true,
   },
   "commands" : [ { "RandomGenerator" : { "seed" : $SEED }, "PeleSteps" : ${STEPS}, "reportPath" : "$OUTPUT/report" } ]
}
"""


@pytest.fixture
def control(tmp_path):
    def written(change: str = "", to: str = ""):
        assert change in CONTROL
        shutil.copy(HEXAPEPTIDE, tmp_path / "complex.pdb")
        path = tmp_path / "pele.conf"
        path.write_text(CONTROL.replace(change, to, 1) if change else CONTROL)
        return path

    return written


def test_what_a_control_file_says(control):
    path = control()
    (path.parent / "DataLocal").mkdir()
    found = read_control(path)
    assert (found.forcefield, found.gb, found.ionic_strength) == ("AMBER99sb", "obc2", 0.25)
    assert found.structures == (path.parent / "complex.pdb",)
    assert found.data == (path.parent / "DataLocal",)
    assert (found.allow_missing_terminals, found.notes) == (True, ())


def test_defaults_are_pele_s(control):
    found = read_control(control('"ionicStrength" : 0.250, "solventType" : "OBC", "useDebyeLength" : true', ""))
    assert (found.gb, found.ionic_strength) == ("none", 0)
    assert read_control(control('"ionicStrength" : 0.250, ', "")).ionic_strength == 0.15
    assert read_control(control('"useDebyeLength" : true', '"useDebyeLength" : false')).ionic_strength == 0
    assert not read_control(control('"allowMissingTerminals" : true,', "")).allow_missing_terminals
    assert read_control(control('"solventType" : "OBC"', '"solventType" : "VACUUM"')).gb == "none"


def test_solvents_are_pele_s(control):
    found = read_control(control('"OBC"', '"VDGBNP"'))
    assert (found.gb, found.notes) == ("vdgbnp", ())
    found = read_control(control('"OBC"', '"SGBNP"'))
    assert found.gb == "sgbnp"
    assert found.notes == (f"{found.path}: the penalty of ion pairs in SGBNP, whose table is not public, is left out",)


@pytest.mark.parametrize(
    ("change", "to"),
    [
        ('"licenseDirectoryPath"', '$LOGFILE\n   "licenseDirectoryPath"'),  # in place of a setting
        ('"licenseDirectoryPath"', '$LOGFILE // a comment\n ${MORE}\n   "licenseDirectoryPath"'),  # of several
        ('"allowMissingTerminals" : true,', '"allowMissingTerminals" : true, $REST'),  # of the last ones
        ('[ { "RandomGenerator"', '[ $FIRST $SECOND { "RandomGenerator"'),  # before elements of an array
        ('"$OUTPUT/report" }', '"$OUTPUT/report", "files" : [ $ONE, $TWO ], "last" : $X }'),  # where values may stand
    ],
)
def test_words_stand_for_values_or_for_settings(control, change, to):
    found = read_control(control(change, to))
    assert (found.forcefield, found.allow_missing_terminals, len(found.structures)) == ("AMBER99sb", True, 1)


@pytest.mark.parametrize(
    ("change", "to", "message"),
    [
        ('"OBC"', '"PBSA"', "pele.conf: the solventType 'PBSA' is not one of OBC, VACUUM, VDGBNP, SGBNP"),
        (
            "0.250",
            '"$IONS"',
            "pele.conf: ionicStrength is '$IONS'; expected a value in place of each of the words $IONS, ",
        ),
        ('useDebyeLength" : true', 'useDebyeLength" : 1', "pele.conf: useDebyeLength is '1'; expected true or false"),
        ('"AMBER99sb"', "3", "pele.conf: ForceField is '3'; expected a text"),
        (
            '"AMBER99sb",',
            '"AMBER99sb"',
            "pele.conf:8: the control file is damaged (Expecting ',' delimiter)",
        ),
        (
            '"Initialization"',
            '"Start"',
            "pele.conf: has no block Initialization, so it is not a control file",
        ),
    ],
)
def test_broken_control_files(control, change, to, message):
    with pytest.raises(FormatError) as caught:
        read_control(control(change, to))
    assert message in str(caught.value)


def energy(*arguments) -> dict:
    return json.loads(run("solvent", *arguments, "--precision", "float64", "--json").stdout)


def test_a_control_file_stands_for_options(control):
    like = ("--like", "pele")
    expected = energy(HEXAPEPTIDE, "--ionic-strength", 0.25, *like)["energy"]["total"]
    path = control()
    close = pytest.approx(expected, rel=1e-12)
    assert energy(path)["energy"]["total"] == close
    assert energy(HEXAPEPTIDE, "--pele-conf", path)["energy"]["total"] == close
    weaker = energy("--pele-conf", path, "--ionic-strength", 0)["energy"]["total"]
    assert weaker != close
    assert weaker == pytest.approx(energy(HEXAPEPTIDE, *like)["energy"]["total"], rel=1e-12)


@pytest.mark.parametrize(
    ("change", "to", "message"),
    [
        (
            '{ "files" : [ { "path" : "complex.pdb" } ] }',
            "$COMPLEXES",
            "names no structure; give one file",
        ),
        ("complex.pdb", "absent.pdb", "its structure absent.pdb does not exist; give one: IN --pele-conf"),
        ('{ "path" : "complex.pdb" }', '{ "path" : "a.pdb" }, { "path" : "b.pdb" }', "names 2 files of one complex"),
        ('"AMBER99sb"', '"OPLS2005"', "unknown force field 'OPLS2005'"),
    ],
)
def test_what_a_control_file_does_not_settle(control, change, to, message):
    assert message in error_of("solvent", control(change, to))


@needs_samples
def test_pele_s_own_run(tmp_path):
    """Templates and tables in PELE's folders, and a structure beside its control file."""
    hetero = tmp_path / "DataLocal" / "Templates" / "OPLS2005" / "HeteroAtoms"
    hetero.mkdir(parents=True)
    shutil.copytree(SAMPLES / "OPLS2005", tmp_path / "Data" / "Templates" / "OPLS2005")
    shutil.copy(SAMPLES / "3ptb" / "aenz", hetero)
    for folder, name in (("Data", "peleffy/solventParamsHCTOBC.txt"), ("DataLocal", "3ptb/aenz_obc_rows.txt")):
        (tmp_path / folder / "OBC").mkdir()
        shutil.copy(SAMPLES / name, tmp_path / folder / "OBC")
    shutil.copy(SAMPLES / "3ptb" / "pele.conf", tmp_path)
    report = energy(SAMPLES / "3ptb" / "trajectory_1.pdb", "--pele-conf", tmp_path / "pele.conf", "--model", 1)
    assert report["energy"]["total"] == pytest.approx(-585.932, abs=2e-3)


@needs_samples
def test_the_solvent_of_the_file_is_taken(tmp_path):
    """VDGBNP without tables of OBC, whose gradient is told to hold radii, in text and JSON; Amber's has no figures."""
    hetero = tmp_path / "DataLocal" / "Templates" / "OPLS2005" / "HeteroAtoms"
    hetero.mkdir(parents=True)
    shutil.copytree(SAMPLES / "OPLS2005", tmp_path / "Data" / "Templates" / "OPLS2005")
    shutil.copy(SAMPLES / "3ptb" / "aenz", hetero)
    own = (SAMPLES / "3ptb" / "pele.conf").read_text()
    conf = tmp_path / "pele.conf"
    conf.write_text(own.replace('"OBC"', '"VDGBNP"'))
    words = SAMPLES / "3ptb" / "trajectory_1.pdb", "--pele-conf", conf, "--model", 1
    report = json.loads(run("energy", *words, "--json").stdout)
    assert (report["settings"]["gb"], report["settings"]["gb_radii_set"], report["born"]) == (
        "vdgbnp",
        "sgb",
        "surface",
    )
    assert report["gradient"]["holds_radii"]
    text = run("energy", *words).stdout
    assert "Solvent       vdgbnp, radii sgb" in text
    assert "at fixed Born radii and surface" in text
    assert "needs the SGB parameters of templates" in error_of("energy", HEXAPEPTIDE, "--gb", "vdgbnp")
