"""One form of --json for all commands: a record a line, by the schema of docs/record.schema.json."""

from __future__ import annotations

import json
import re
import shutil
import time
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner
from test_cli import HEXAPEPTIDE, on_the_chosen_device
from trajectory_helpers import write_trajectory

import pele_ocl
from pele_ocl import jobs
from pele_ocl.cli import main

__all__ = ["on_the_chosen_device"]

SCHEMA = json.loads((Path(__file__).parent.parent / "docs" / "record.schema.json").read_text())
CHECK = jsonschema.Draft202012Validator(SCHEMA)

LIGAND = ("--ligand", "resid 1")
FEW = ("--max-iterations", "3")
COARSE = ("--spacing", "2")
# Options of each command that reads structures; {} is the folder of what it writes.
OF_ONE = {
    "energy": ("--per-residue",), "solvent": (), "nonbond": (), "binding": LIGAND, "minimize": (*FEW, "-o", "{}/m.pdb"),
    "simulate": ("--steps", "4", "-o", "{}/s"), "relax": (*FEW, "-o", "{}/r.pdb"),
    "potmap": COARSE, "ions": (*COARSE, "--ion", "NA:1", "-o", "{}/ions.pdb"),
    "view": ("-o", "{}/page.html"), "prepare": ("-o", "{}/ready.pdb"), "pb": (*COARSE, "--per-residue"),
    "refine": (*LIGAND, *FEW, "-o", "{}/refined"),
    "screen": (HEXAPEPTIDE.parent / "trialanine.pdb", *FEW, "-o", "{}/screened"),
}  # fmt: skip
OF_SEVERAL = {
    "energy": (), "solvent": (), "nonbond": (), "binding": LIGAND, "minimize": (*FEW, "-o", "{}/m/"),
    "relax": (*FEW, "-o", "{}/r/"), "potmap": COARSE,
}  # fmt: skip
OF_CONFORMATIONS = {
    "energy": (), "solvent": (), "nonbond": (), "binding": LIGAND, "minimize": (*FEW, "-o", "{}/m.nc"),
    "potmap": COARSE,
}  # fmt: skip


def records_of(folder: Path, *words: object, code: int = 0) -> list[dict[str, Any]]:
    """The records that a command prints, each of which keeps to the schema."""
    given = [str(word).replace("{}", str(folder)) for word in words]
    done = CliRunner().invoke(main, [*given, "--json"])
    assert done.exit_code == code, done.output
    records = list(map(json.loads, done.stdout.splitlines()))
    for record in records:
        CHECK.validate(record)
    return records


def refused(folder: Path) -> Path:
    """The peptide with two atoms at one place."""
    lines = [line for line in HEXAPEPTIDE.read_text().splitlines() if line.startswith("ATOM")]
    lines[5] = lines[5][:30] + lines[4][30:54] + lines[5][54:]
    path = folder / "refused.pdb"
    path.write_text("\n".join([*lines, "END", ""]))
    return path


def models(folder: Path) -> Path:
    """Three models of the peptide: one with two atoms at one place, a good one, one with a coordinate that is NaN."""
    good, bad = ([line for line in path.read_text().splitlines() if line.startswith("ATOM")]
                 for path in (HEXAPEPTIDE, refused(folder)))  # fmt: skip
    nowhere = [*good[:7], good[7][:30] + "     nan" + good[7][38:], *good[8:]]
    path = folder / "models.pdb"
    path.write_text(
        "".join(f"MODEL {k}\n" + "\n".join(of) + "\nENDMDL\n" for k, of in ((2, bad), (3, good), (5, nowhere)))
    )
    return path


@pytest.mark.parametrize("command", OF_ONE)
def test_one_structure(command, tmp_path):
    if command in ("view", "prepare"):
        pytest.importorskip({"view": "plotly", "prepare": "pdbfixer"}[command])
    (record,) = records_of(tmp_path, command, HEXAPEPTIDE, *OF_ONE[command])
    assert record["structure"] == str(HEXAPEPTIDE)
    assert {"n_atoms", "seconds"} <= record.keys()
    assert not {"frames", "models", "name"} & record.keys()


@pytest.mark.parametrize("command", OF_SEVERAL)
def test_two_structures_are_two_records_whether_they_fail_or_not(command, tmp_path):
    good, bad = tmp_path / "a.pdb", tmp_path / "b.pdb"
    shutil.copy(HEXAPEPTIDE, good)
    bad.write_text("ATOM garbage\n")
    one, other = records_of(tmp_path, command, good, bad, *OF_SEVERAL[command], code=1)
    assert (one["structure"], other["structure"]) == (str(good), str(bad))
    assert other["error"].startswith(f"{bad}:1: ")
    assert one.keys() == records_of(tmp_path, command, good, *OF_SEVERAL[command])[0].keys()


@pytest.mark.parametrize("command", [*OF_SEVERAL, "simulate", "ions", "pb", "view", "prepare"])
def test_one_structure_that_fails_is_a_record_and_a_sentence_with_its_name(command, tmp_path):
    if command in ("view", "prepare"):
        pytest.importorskip({"view": "plotly", "prepare": "pdbfixer"}[command])
    bad = refused(tmp_path)
    if command in ("potmap", "ions", "relax", "view", "prepare"):  # which take atoms at one place, or mend them
        bad.write_text("ATOM garbage\n")
    options = (OF_SEVERAL | OF_ONE)[command]
    (record,) = records_of(tmp_path, command, bad, *options, code=1)
    assert record["structure"] == str(bad)
    said = CliRunner().invoke(main, [command, str(bad), *(word.replace("{}", str(tmp_path)) for word in options)])
    assert said.exit_code == 1
    assert said.stderr.splitlines()[-1].startswith(f"Error: {bad}:")
    assert record["error"] in said.stderr


@pytest.mark.parametrize("command", OF_CONFORMATIONS)
def test_frames_are_entries_of_one_record(command, tmp_path):
    positions = np.stack([pele_ocl.read(HEXAPEPTIDE).positions] * 3)
    positions[1, 5] = np.nan
    path = write_trajectory(tmp_path / "run.nc", positions)
    (record,) = records_of(
        tmp_path, command, HEXAPEPTIDE, "-t", path, *OF_CONFORMATIONS[command], "--frames", "1:", code=1
    )
    assert record["structure"] == str(HEXAPEPTIDE)
    assert [entry["frame"] for entry in record["frames"]] == [1, 2]
    assert (record["n_frames"], record["n_failed"]) == (2, 1)
    assert "error" in record["frames"][0]
    if command not in ("minimize", "potmap"):
        assert record["frames"][1]["energy"]["total"] == pytest.approx(record["frames"][1]["energy"]["total"])


@pytest.mark.parametrize("command", OF_CONFORMATIONS)
def test_a_bad_model_is_an_entry_that_says_why_and_others_finish(command, tmp_path):
    options = OF_CONFORMATIONS[command]
    (record,) = records_of(tmp_path, command, models(tmp_path), "--models", "all", *options, code=1)
    entries = record["models"]
    assert [entry["model"] for entry in entries] == [2, 3, 5]
    assert ["error" in entry for entry in entries] == [command != "potmap", False, True]  # a map takes atoms anywhere
    assert "nan" in entries[2]["error"]
    assert record["n_failed"] == 3 - sum("error" not in entry for entry in entries)
    (alone,) = records_of(tmp_path, command, HEXAPEPTIDE, *({**OF_SEVERAL, **OF_ONE}[command]))
    for key in {"energy", "born_radius", "gradient", "energy_before", "iterations"} & entries[1].keys():
        assert entries[1][key] == pytest.approx(alone[key], rel=1e-4, abs=1e-4), key


@pytest.mark.parametrize(
    ("command", "spec", "options", "more"),
    [
        ("energy", pele_ocl.EnergySpec, ("--born", "tree"), {"born", "contents", "accuracy", "measured_error"}),
        ("solvent", pele_ocl.SolventSpec, ("--variant", "tree"), {"accuracy", "measured_error"}),
        ("nonbond", pele_ocl.NonbondSpec, (), set()),
    ],
)
def test_facts_of_the_molecule_are_those_of_its_models_and_frames(command, spec, options, more, tmp_path, monkeypatch):
    """One edit of `facts_of_molecule` reaches all three."""
    facts_of = spec.facts_of_molecule
    monkeypatch.setattr(spec, "facts_of_molecule", lambda self, of: {**facts_of(self, of), "shelf": "A"})
    path = write_trajectory(tmp_path / "run.nc", np.stack([pele_ocl.read(HEXAPEPTIDE).positions] * 2))
    one, *others = (
        records_of(tmp_path, command, HEXAPEPTIDE, *options, *words)[0]
        for words in ((), ("--models", "all"), ("-t", path))
    )
    facts = {"n_atoms", "composition", "device", "variant", "precision", "settings", "shelf", *more}
    for record in (one, *others):
        assert facts <= record.keys()
        assert all(record[name] == one[name] for name in facts - {"measured_error"})


def moved(folder: Path, k: int) -> Path:
    """The peptide with noise."""
    places = iter(pele_ocl.read(HEXAPEPTIDE).positions + np.random.default_rng(k).normal(0, 0.03, (96, 3)))
    lines = [line for line in HEXAPEPTIDE.read_text().splitlines() if line.startswith("ATOM")]
    texts = [line[:30] + "".join(f"{x:8.3f}" for x in next(places)) + line[54:] for line in lines]
    path = folder / f"moved{k}.pdb"
    path.write_text("\n".join([*texts, "END", ""]))
    return path


def bad_ones(folder: Path) -> list[Path]:
    """A design without side chains, NaN, two atoms at one place, and an unknown residue."""
    lines = [line for line in HEXAPEPTIDE.read_text().splitlines() if line.startswith("ATOM")]
    of = {
        "backbone": [line for line in lines if line[12:16].strip() in ("N", "CA", "C", "O", "H")],
        "nan": [*lines[:7], lines[7][:30] + "     nan" + lines[7][38:], *lines[8:]],
        "unknown": [line[:17] + "XYZ" + line[20:] if line[22:26].strip() == "3" else line for line in lines],
    }
    for name, text in of.items():
        (folder / f"{name}.pdb").write_text("\n".join([*text, "END", ""]))
    return [*(folder / f"{name}.pdb" for name in of), refused(folder)]


@pytest.mark.parametrize("what", ["energy", "minimize"])
def test_bad_ones_cost_less_than_good_ones_and_change_nothing(what, tmp_path):
    """By the time of the processor: bad structures cost no more than good ones, and others get the same bits."""
    good, bad = [moved(tmp_path, k) for k in range(8)], bad_ones(tmp_path)
    mixed = [path for pair in zip(good, [*bad, *bad], strict=True) for path in pair]
    options = {"max_iterations": 60, "precision": "float64"}
    spec = {
        "energy": pele_ocl.EnergySpec(precision="float64"),
        "minimize": pele_ocl.MinimizeSpec(output=f"{tmp_path}/out/{{name}}.pdb", options=options),
    }[what]

    def records(paths: list[Path]) -> tuple[dict[str, Any], float]:
        begin = time.process_time()
        found = list(jobs.run(spec, paths))
        return {of.structure: of for of in found}, time.process_time() - begin

    records(mixed)  # compiles, and looks for the closest template of a residue
    (alone, costs_alone), (among, costs_among) = records(good), records(mixed)
    assert costs_among < 2 * costs_alone
    assert [among[str(path)].failed for path in bad] == [True] * 4
    for name, record in alone.items():
        one, other = ({k: v for k, v in of.result.items() if k != "seconds"} for of in (record, among[name]))
        assert one == other


@pytest.mark.parametrize("command", ["energy", "solvent", "nonbond"])
def test_tables_of_models_say_why_one_failed(command, tmp_path):
    path = tmp_path / "table.json"
    done = CliRunner().invoke(main, [command, str(models(tmp_path)), "--models", "all", "-o", str(path)])
    assert done.exit_code == 1
    assert "Error: 2 models of 3 failed: model 2: " in done.stderr
    columns = json.loads(path.read_text())["columns"]
    assert columns["model"] == [2, 3, 5]
    assert [bool(error) for error in columns["error"]] == [True, False, True]
    assert [total is None for total in columns["total"]] == [True, False, True]


def test_maps_have_records_too(tmp_path):
    records_of(tmp_path, "potmap", HEXAPEPTIDE, *COARSE, "-o", "{}/a.dx")
    for words in (
        ("convert", "{}/a.dx", "{}/a.mrc"),
        ("mapmath", "{}/a.dx", "-", "{}/a.dx"),
        ("sample", "{}/a.dx", HEXAPEPTIDE),
    ):
        (record,) = records_of(tmp_path, *words)
        assert record["map"] == f"{tmp_path}/a.dx"


def test_records_of_python_are_those_of_the_commands(tmp_path):
    for spec, command in (
        (pele_ocl.EnergySpec(), "energy"),
        (pele_ocl.SolventSpec(), "solvent"),
        (pele_ocl.NonbondSpec(), "nonbond"),
    ):
        (record,) = jobs.run(spec, [HEXAPEPTIDE])
        CHECK.validate(record.to_dict())
        assert record.to_dict().keys() == records_of(tmp_path, command, HEXAPEPTIDE)[0].keys()


@pytest.mark.parametrize(
    "change",
    [{"name": "a"}, {"schema": 1}, {"error": "why"}, {"frames": [{"frame": 0}]}, {"seconds": 1.0}, {"energy": 1.0},
     {"n_frames": 1, "n_failed": 0, "frames": [{"model": 0}]},
     {"n_frames": 1, "n_failed": 0, "frames": [{"frame": 0, "total": 1.0}]}],
)  # fmt: skip
def test_the_schema_refuses_another_form(change, tmp_path):
    (record,) = records_of(tmp_path, "solvent", HEXAPEPTIDE)
    assert not CHECK.is_valid({**record, **change})


def test_codes_are_listed():
    """Every code that the library gives to errors, notes and findings is in the table of docs/records.md."""
    package = Path(__file__).parent.parent / "pele_ocl"
    given = r'\bcode(?:: str)? ?= ?"([a-z_0-9]+)"'
    codes = {code for path in package.rglob("*.py") for code in re.findall(given, path.read_text())}
    table = (package.parent / "docs" / "records.md").read_text().partition("## Codes")[2].partition("\n## ")[0]
    assert codes - {"exit"} <= set(re.findall(r"`([a-z_0-9]+)`", table))


def test_an_error_has_its_code_in_json_and_in_python(tmp_path):
    (tmp_path / "torn.pdb").write_text("nothing\n")
    with pytest.raises(pele_ocl.FormatError) as error:
        pele_ocl.read(tmp_path / "torn.pdb")
    result = CliRunner().invoke(main, ["energy", str(tmp_path / "torn.pdb"), "--json"])
    record = json.loads(result.stdout)
    assert (record["error"], record["code"]) == (str(error.value), error.value.code)


def test_notes_have_codes_in_json_and_in_python():
    atoms = pele_ocl.read(HEXAPEPTIDE, select="resid 1 to 2")
    (note,) = [note for note in atoms.notes if getattr(note, "code", "") == "selected"]
    result = CliRunner().invoke(main, ["energy", str(HEXAPEPTIDE), "--select", "resid 1 to 2", "--json"])
    record = json.loads(result.stdout)
    assert dict(zip(record["notes"], record["note_codes"], strict=True))[note] == "selected"
