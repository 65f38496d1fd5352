"""Results say what they depend on: on screen, in JSON and in files alike."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import h5py
import pytest
from click.testing import CliRunner
from test_cli import HEXAPEPTIDE, on_the_chosen_device

from pele_ocl.cli import main
from pele_ocl.gb_models.radii_of_models import radii_note

__all__ = ["on_the_chosen_device"]

TRIALANINE = HEXAPEPTIDE.with_name("trialanine.pdb")
FEW = ("--max-iterations", "2")
SOLVENT = "obc2, radii openmm-obc, water 80, inside 1, no salt"
USED = {
    "like": "mmpbsa.py", "solvent_dielectric": 78.3, "surface": "lcpo", "surface_tension": 0.0072, "born_cutoff": 25.0,
    "kappa_convention": "amber", "gbn_convention": "amber", "ionic_strength": 0.1,
}  # fmt: skip


def run(*words: object, code: int = 0):
    done = CliRunner().invoke(main, list(map(str, words)))
    assert done.exit_code == code, done.output
    return done


def parameters_of(path: Path) -> dict[str, object]:
    """The parameters that a file of results names."""
    if path.suffix == ".h5":
        with h5py.File(path) as file:
            return json.loads(file.attrs["parameters"])
    line = next(line for line in path.read_text().splitlines() if line.startswith("# parameters: "))
    return json.loads(line.partition(": ")[2])


@pytest.mark.parametrize("suffix", [".csv", ".h5"])
@pytest.mark.parametrize(
    "words",
    [("binding", "--ligand", "resid 1", "-o"), ("energy", "-o"), ("minimize", *FEW, "-o", "{}/m.pdb", "--table")],
)
def test_files_name_the_constants_that_were_used(tmp_path, words, suffix):
    output = tmp_path / f"result{suffix}"
    given = [word.replace("{}", str(tmp_path)) for word in words]
    run(given[0], HEXAPEPTIDE, "--like", "mmpbsa.py", "--ionic-strength", "0.1", *given[1:], output)
    found = parameters_of(output)
    assert {name: found[name] for name in USED} == USED
    assert found["coulomb_constant"] == pytest.approx(332.0522, abs=1e-4)


def test_files_of_minimized_structures_name_them_too(tmp_path):
    run("minimize", HEXAPEPTIDE, TRIALANINE, "--like", "amber", *FEW, "-o", tmp_path / "{name}.h5")
    assert parameters_of(tmp_path / "hexapeptide.h5")["solvent_dielectric"] == 78.5


def test_constants_that_play_no_part_are_none(tmp_path):
    run("energy", HEXAPEPTIDE, "--gb", "none", "-o", tmp_path / "e.csv")
    found = parameters_of(tmp_path / "e.csv")
    assert (found["gb"], found["solvent_dielectric"], found["solute_dielectric"]) == ("none", None, 1.0)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("energy",), f"{SOLVENT}, ACE 0.0054; all pairs"),
        (("energy", "--cutoff", "9"), f"{SOLVENT}, ACE 0.0054; pairs within 9 A"),
        (("energy", "--gb", "none"), "none (vacuum), inside 1; all pairs"),
        (("energy", "--terms", "bond"), "not in these terms, inside 1; all pairs"),
        (("solvent", "--ionic-strength", "0.1"), f"{SOLVENT[:-7]}salt 0.1 mol/L at 298.15 K, ACE 0.0054; all pairs"),
        (
            ("binding", "--ligand", "resid 1", "--like", "mmpbsa.py"),
            "obc2, radii mbondi2, water 78.3, inside 1, no salt, Born integrals within 25 A, Coulomb 332.0522, "
            "LCPO 0.0072; all pairs",
        ),
        (("minimize", *FEW, "-o", "{}/m.pdb"), f"{SOLVENT}, ACE 0.0054; all pairs"),
        (("nonbond",), f"{SOLVENT}, no surface; pairs within 12 A"),
        (("nonbond", "--no-cutoff"), f"{SOLVENT}, no surface; all pairs"),
        (("relax", *FEW, "-o", "{}/r.pdb"), "none (vacuum), inside 1; all pairs"),
    ],
)
def test_the_screen_says_force_field_and_solvent(tmp_path, words, line):
    words = [word.replace("{}", str(tmp_path)) for word in words]
    text = run(words[0], HEXAPEPTIDE, *words[1:]).stdout
    assert f"Force field   amber99sb\nSolvent       {line}\n" in text
    record = json.loads(run(words[0], HEXAPEPTIDE, *words[1:], "--json").stdout)
    assert record["settings"]["forcefield"] == "amber99sb"
    assert "solute_dielectric" in record["settings"]


def test_several_structures_say_it_once():
    text = run("energy", HEXAPEPTIDE, TRIALANINE).stdout
    assert text.count(f"Solvent       {SOLVENT}, ACE 0.0054; all pairs") == text.count("Force field   amber99sb") == 1


def test_nonbond_says_what_its_total_lacks():
    text = run("nonbond", HEXAPEPTIDE, "-v").stdout
    assert "Exclusions    atoms one or two bonds apart; 1-4 pairs are left out\n" in text
    assert "Not in total  bonded terms, GB self energy, nonpolar term\n" in text
    assert "surface ace" not in text
    settings = json.loads(run("nonbond", HEXAPEPTIDE, "--solvent", "vacuum", "--cutoff", "9", "--json").stdout)[
        "settings"
    ]
    assert (settings["cutoff"], settings["one_four"], settings["total_lacks"]) == (9.0, "exclude", ["bonded"])


def test_relax_says_that_its_energy_has_restraints(tmp_path):
    words = ("relax", HEXAPEPTIDE, *FEW, "-o", tmp_path / "r.pdb", "--table", tmp_path / "r.csv")
    assert "Restraints    heavy atoms, 1/2 x 10 kcal/mol/A^2; the energy includes them\n" in run(*words).stdout
    settings = json.loads(run(*words, "--json").stdout)["settings"]
    assert (settings["gb"], settings["restraint"], settings["solvent_dielectric"]) == ("none", 10.0, None)
    assert "# forcefield: amber99sb\n# solute_dielectric: 1.0\n" in (tmp_path / "r.csv").read_text()


def test_maps_ions_and_pictures_say_their_medium(tmp_path):
    salted = ("potmap", HEXAPEPTIDE, "--spacing", 2, "--dielectric", 4, "--ionic-strength", 0.1)
    assert "Medium        dielectric 4, salt 0.1 mol/L at 298.15 K; all charges\n" in run(*salted).stdout
    settings = json.loads(run(*salted, "--json").stdout)["settings"]
    assert (settings["dielectric"], settings["ionic_strength"], settings["forcefield"]) == (4.0, 0.1, "amber99sb")
    placed = ("ions", HEXAPEPTIDE, "--spacing", 2, "--ion", "NA:1", "-o", tmp_path / "ions.pdb")
    assert "Medium        dielectric 1, no salt; all charges\n" in run(*placed).stdout
    assert json.loads(run(*placed, "--json").stdout)["settings"]["dielectric"] == 1.0


@pytest.mark.parametrize(
    ("method", "line", "dielectric"),
    [
        (
            "pb",
            "linear Poisson-Boltzmann, dielectrics 2 and 78.54, salt 0.15 mol/L at 298.15 K; surface edges, "
            "probe 1.4 A, radii openmm-obc",
            "solvent_dielectric",
        ),
        ("screened", "dielectric 78.54, salt 0.15 mol/L at 298.15 K; all charges", "dielectric"),
    ],
)
def test_view_says_what_its_potential_depends_on(tmp_path, method, line, dielectric):
    words = ("view", TRIALANINE, "--method", method, "-o", tmp_path / "view.html")
    assert f"Medium        {line}\n" in run(*words).stdout
    settings = json.loads(run(*words, "--json").stdout)["settings"]
    assert (settings[dielectric], settings["ionic_strength"]) == (78.54, 0.15)


@pytest.mark.parametrize(("first", "second"), [("minimize", "relax"), ("relax", "minimize")])
def test_no_command_overwrites_the_files_of_another(tmp_path, first, second):
    folder = tmp_path / "out"
    run(first, HEXAPEPTIDE, TRIALANINE, *FEW, "-o", folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for structures in ((HEXAPEPTIDE, TRIALANINE), (TRIALANINE,)):
        done = run(second, *structures, *FEW, "-o", folder, code=1)
        assert f"{folder}: {structures[0].name} there was written by `{first}` ({first}.jsonl)" in done.stderr
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    run(first, HEXAPEPTIDE, TRIALANINE, *FEW, "-o", folder, "--resume")
    new = shutil.copy(HEXAPEPTIDE, tmp_path / "new.pdb")
    run(second, new, *FEW, "-o", folder)  # no file of this name was written


def test_a_run_with_other_options_says_that_it_overwrites(tmp_path):
    words = ("minimize", HEXAPEPTIDE, TRIALANINE, "-o", tmp_path / "out", "--max-iterations")
    told = "files of an earlier run with other options were overwritten"
    assert told not in run(*words, 2).stderr
    assert told not in run(*words, 2).stderr
    assert told not in run(*words, 2, "--resume").stderr
    assert told in run(*words, 3).stderr


def test_ligands_are_named_before_amino_acids(tmp_path):
    pqr = tmp_path / "complex.pqr"
    names = [("N", "ALA"), ("CA", "ALA"), ("C", "ALA"), ("O", "ALA"), ("C1", "TMP"), ("C2", "TMP")]
    pqr.write_text(
        "".join(
            f"ATOM {k} {name} {residue} {1 if residue == 'ALA' else 2} {5 * k}.0 0.0 0.0 0.1 1.5\n"
            for k, (name, residue) in enumerate(names, 1)
        )
    )
    told = run("solvent", pqr, "--select", "resname LIG", code=1).stderr
    assert "no residue is named LIG (ligands here: TMP; there are also ALA)" in told
    assert "no residue is named LIG (there are ASP, GLU" in run(
        "solvent", HEXAPEPTIDE, "--select", "resname LIG", code=1
    ).stderr  # fmt: skip


def test_radii_of_no_named_set_are_those_of_the_file():
    assert radii_note("gbn2", "file").endswith("mbondi3, not with those of the input file (unnamed set)")


def test_names_of_other_programs_suggest_ours():
    done = run("energy", HEXAPEPTIDE, "--salt", "0.1", code=2)
    assert "No such option '--salt'. (Did you mean '--ionic-strength'?)" in done.stderr
    for given, model in ((["--igb", "5"], " obc2"), (["--igb=8"], " gbn2"), (["--igb", "99"], "")):
        done = run("energy", HEXAPEPTIDE, *given, code=2)
        assert f"No such option '--igb'. (Did you mean '--gb{model}'?)" in done.stderr
    done = run("simulate", HEXAPEPTIDE, "-o", "run", "-n", 3, code=2)
    assert "No such option '-n'. (Did you mean '--replicas'?)" in done.stderr


def test_options_of_one_value_are_given_once_for_each():
    for words, ours in (("--templates A B", "--templates"), ("--templates A --complex X B", "--complex")):
        said = run("explore", "pele.conf", *words.split(), code=2).stderr
        assert f"Got unexpected extra argument (B); give {ours} once for each value" in said
    assert "once for each" not in run("explore", "pele.conf", "B", code=2).stderr
    shown = run("explore", "--help").stdout
    assert all(f"{option} " in shown for option in "--explorers --steps --seed --complex --templates --obc".split())
    assert "--minimize N" in run("simulate", "--help").stdout
