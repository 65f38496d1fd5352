"""Several structures in one call: the results of each alone, and a row that says why for one that fails."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import amber_helpers
import h5py
import pytest
from click.testing import CliRunner, Result

from pele_ocl import EnergySpec
from pele_ocl.cli import main

STRUCTURES = Path(__file__).parent.parent / "data" / "structures"
UBIQUITIN, HEXAPEPTIDE = STRUCTURES / "ubiquitin.pdb", STRUCTURES / "hexapeptide.pdb"


def run(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def records_of(done: Result) -> list[dict[str, Any]]:
    return list(map(json.loads, done.stdout.splitlines()))


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    path = tmp_path / "bad.pdb"
    path.write_text("ATOM garbage\n")
    return path


def without_times(report: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in report.items() if name != "seconds"}


@pytest.mark.parametrize("command", ["energy", "solvent", "nonbond"])
def test_each_is_what_it_is_alone(command: str) -> None:
    done = run(command, UBIQUITIN, HEXAPEPTIDE, "--json")
    assert done.exit_code == 0, done.output
    for path, structure in zip((UBIQUITIN, HEXAPEPTIDE), records_of(done), strict=True):
        assert structure["structure"] == str(path)
        assert without_times(structure) == without_times(json.loads(run(command, path, "--json").stdout))


def test_a_structure_that_fails_is_a_row_that_says_why(bad: Path, tmp_path: Path) -> None:
    table = tmp_path / "out.csv"
    done = run("energy", HEXAPEPTIDE, bad, tmp_path / "none.pdb", "-o", table)
    assert done.exit_code == 1
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0] == "3 structures, of which 2 failed"
    assert re.fullmatch(r"hexapeptide\.pdb +96( +-?[\d.]+){6}", lines[4])
    assert re.fullmatch(r"bad\.pdb +line 1: the line ends before the coordinates do; .*", lines[5])
    assert re.fullmatch(r"none\.pdb +no such file", lines[6])
    assert "Solvent       obc2, radii openmm-obc, water 80, inside 1, no salt, ACE 0.0054; all pairs" in lines
    text = table.read_text()
    assert "\n# gb_radii_set: openmm-obc\n" in text
    rows = list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))
    assert [row["structure"] for row in rows] == [str(HEXAPEPTIDE), str(bad), f"{tmp_path}/none.pdb"]
    alone = json.loads(run("energy", HEXAPEPTIDE, "--json").stdout)["energy"]
    assert float(rows[0]["total [kcal/mol]"]) == alone["total"]
    assert rows[1]["total [kcal/mol]"] == "nan"
    assert (rows[0]["error"], rows[2]["error"]) == ("", f"{tmp_path}/none.pdb: no such file")
    first, second = records_of(run("energy", bad, HEXAPEPTIDE, "--json"))
    assert first["error"].startswith(f"{bad}:1: the line ends")
    assert second["energy"]["total"] == alone["total"]


def test_hdf5_and_json_have_a_row_for_each(bad: Path, tmp_path: Path) -> None:
    run("solvent", UBIQUITIN, bad, "-o", tmp_path / "out.h5")
    with h5py.File(tmp_path / "out.h5") as file:
        assert file["structure"].asstr()[:].tolist() == [str(UBIQUITIN), str(bad)]
        assert file["n_atoms"][:].tolist() == [1231, 0]
        assert file["total"].attrs["unit"] == "kcal/mol"
        assert len(file.attrs["inputs_sha256"]) == 2
    run("solvent", UBIQUITIN, bad, "-o", tmp_path / "out.json")
    found = json.loads((tmp_path / "out.json").read_text())
    assert found["columns"]["total"][1] is None
    assert found["parameters"]["path"] == [str(UBIQUITIN), str(bad)]


def test_models_are_rows_too(tmp_path: Path) -> None:
    atoms = [line for line in HEXAPEPTIDE.read_text().splitlines() if line.startswith("ATOM")]
    models = [f"MODEL {k}\n" + "\n".join(atoms) + "\nENDMDL\n" for k in (3, 4)]
    (tmp_path / "models.pdb").write_text("".join(models))
    done = run("energy", tmp_path / "models.pdb", HEXAPEPTIDE, "--models", "all", "-o", tmp_path / "out.json")
    assert done.exit_code == 0, done.output
    assert [line.split()[1:3] for line in done.stdout.splitlines()[4:7]] == [["3", "96"], ["4", "96"], ["1", "96"]]
    columns = json.loads((tmp_path / "out.json").read_text())["columns"]
    assert columns["model"] == [3, 4, 1]
    assert columns["total"] == pytest.approx([columns["total"][2]] * 3)


def test_one_error_of_all_is_about_an_option(tmp_path: Path) -> None:
    done = run("energy", UBIQUITIN, HEXAPEPTIDE, "--device", "no such device")
    assert done.exit_code == 1
    assert done.stderr.startswith("Error: no OpenCL device fits 'no such device'")
    assert done.stderr.count("\n") == 1
    done = run("energy", tmp_path / "a.pdb", tmp_path / "b.pdb")
    assert (done.exit_code, done.stdout.splitlines()[0]) == (1, "2 structures, of which 2 failed")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("nonbond", "--write-pairs", "pairs.h5"), "--write-pairs is for one structure"),
        (("energy", "--per-residue"), "--per-residue of several structures requires --json"),
    ],
)
def test_options_for_one_structure(words: tuple[str, ...], sentence: str) -> None:
    done = run(words[0], UBIQUITIN, HEXAPEPTIDE, *words[1:])
    assert done.exit_code == 2
    assert sentence in done.stderr


def test_outputs_are_no_inputs(tmp_path: Path) -> None:
    target = tmp_path / "b.json"
    target.write_text("")
    done = run("energy", HEXAPEPTIDE, target, "-o", target)
    assert done.exit_code == 1
    assert "give the output a different name" in done.stderr


def test_coordinates_of_each_topology(tmp_path: Path) -> None:
    atoms = amber_helpers.hexapeptide()
    tops, places = [], []
    for k in range(2):
        tops.append(tmp_path / f"top{k}.parm7")
        tops[-1].write_text(amber_helpers.rendered(amber_helpers.content()))
        places.append(tmp_path / f"place{k}.rst7")
        places[-1].write_text(amber_helpers.restart(atoms.positions * (1 + 0.01 * k)))
    each = ("-c", places[0], "-c", places[1])
    found = records_of(run("energy", *tops, *each, "--json"))
    for top, place, of in zip(tops, places, found, strict=True):
        assert of["energy"] == json.loads(run("energy", top, "-c", place, "--json").stdout)["energy"]
    assert found[0]["energy"] != found[1]["energy"]
    shared = records_of(run("energy", *tops, "-c", places[1], "--json"))
    assert [of["energy"] for of in shared] == [found[1]["energy"]] * 2
    wrong = run("energy", tops[0], *each)
    assert (wrong.exit_code, "given 2 times for 1 topology file; give one for all" in wrong.stderr) == (2, True)
    assert "is given twice" in run("energy", tops[0], tops[0], *each).stderr


def test_coordinates_are_of_topologies_alone(tmp_path: Path) -> None:
    top, place, out = tmp_path / "top.parm7", tmp_path / "place.rst7", tmp_path / "out"
    top.write_text(amber_helpers.rendered(amber_helpers.content()))
    place.write_text(amber_helpers.restart(amber_helpers.hexapeptide().positions))
    others = tmp_path / "other.prmtop", tmp_path / "other.rst7"
    others[0].write_bytes(top.read_bytes())
    others[1].write_text(amber_helpers.restart(amber_helpers.hexapeptide().positions * 1.01))
    quick = ("--max-iterations", "1", "--json", "-o", out / "{name}.h5")
    alone = [
        json.loads(run("minimize", *words, *quick).stdout)
        for words in ((HEXAPEPTIDE,), (top, "-c", place), (others[0], "-c", others[1]))
    ]
    one = run("minimize", top, HEXAPEPTIDE, "-c", place, *quick)
    each = run("minimize", top, HEXAPEPTIDE, others[0], "-c", place, "-c", others[1], *quick)
    for done, wanted in (one, (alone[1], alone[0])), (each, (alone[1], alone[0], alone[2])):
        found = [json.loads(line) for line in done.stdout.splitlines()]
        assert [without_times(of) for of in found] == [without_times(of) for of in wanted]
    for name, says in (("top", True), ("hexapeptide", False), ("other", True)):
        with h5py.File(out / f"{name}.h5") as file:
            assert ("coordinates" in file.attrs) == says
    wrong = run("minimize", top, HEXAPEPTIDE, "-c", place, "-c", place, *quick)
    assert "given 2 times for 1 topology file" in wrong.output
    pdb = run("energy", HEXAPEPTIDE, UBIQUITIN, "-c", place, "-c", place)
    assert "contains coordinates; separate coordinate files are for topologies" in pdb.output


def test_numbers_of_structures_are_columns(bad: Path, tmp_path: Path) -> None:
    run("energy", HEXAPEPTIDE, bad, "--surface", "lcpo", "--terms", "nonpolar", "-o", tmp_path / "out.json")
    found = json.loads((tmp_path / "out.json").read_text())
    alone = json.loads(run("energy", HEXAPEPTIDE, "--surface", "lcpo", "--terms", "nonpolar", "--json").stdout)
    assert found["columns"]["surface_area"] == [alone["surface_area"], None]
    assert found["units"]["surface_area"] == "angstrom^2"


def test_a_number_that_models_share_is_in_every_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line in facts_of_molecule brings it there."""
    facts, models, out = EnergySpec.facts_of_molecule, tmp_path / "models.pdb", tmp_path / "out.json"
    lines = "".join(line for line in HEXAPEPTIDE.read_text().splitlines(True) if line.startswith("ATOM"))
    models.write_text("".join(f"MODEL {k}\n{lines}ENDMDL\n" for k in (1, 2)))
    monkeypatch.setattr(EnergySpec, "facts_of_molecule", lambda spec, of: facts(spec, of) | {"net_charge": -1.5})
    for given in ((HEXAPEPTIDE,), (models, "--models", "all")):
        assert json.loads(run("energy", *given, "--terms", "bond", "--json").stdout)["net_charge"] == -1.5
        run("energy", *given, "--terms", "bond", "-o", out)
        assert json.loads(out.read_text())["net_charge"] == -1.5
    run("energy", models, HEXAPEPTIDE, "--models", "all", "--terms", "bond", "-o", out)
    columns = json.loads(out.read_text())["columns"]
    assert (columns["model"], columns["net_charge"]) == ([1, 2, 1], [-1.5] * 3)


@pytest.mark.parametrize(
    "words",
    [("energy",), ("solvent",), ("nonbond",), ("binding", "--ligand", "resid 1"), ("minimize", "-o", "m.nc"),
     ("potmap", "-o", "a.dx")],
    ids=lambda words: words[0],
)  # fmt: skip
def test_a_pattern_that_the_shell_expanded_is_told_the_quotes(words: tuple[str, ...], tmp_path: Path) -> None:
    first, second = (tmp_path / f"frames-{k}.nc" for k in (1, 2))
    for path in (first, second):
        path.write_bytes(b"CDF")
    command, *more = words
    said = run(command, HEXAPEPTIDE, "-t", first, second, *more).stderr
    assert f"{second} is a trajectory instead of a structure; quote patterns" in said
    assert f"--trajectory '{tmp_path}/*.nc'" in said
