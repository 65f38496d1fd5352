"""`pele-ocl tune` as a user meets it: what it measures, remembers, shows and forgets."""

from __future__ import annotations

import json

import pytest
from conftest import DEVICES
from test_cli import HEXAPEPTIDE, error_of, on_the_chosen_device, run

from pele_ocl.bench import tune
from pele_ocl.plan.tuning import RULES, choices_for, findings, store

__all__ = ["on_the_chosen_device"]  # a fixture that every test here uses

QUICK = ("tune", "--quantity", "nonbond", "--precision", "float32", "--system", "hexapeptide")


@pytest.fixture
def file(tmp_path, monkeypatch):
    """A tuning file of the test's own, in a folder that is not there yet."""
    path = tmp_path / "cache" / "tuning.json"
    monkeypatch.setenv("PELE_OCL_TUNING", str(path))
    return path


@pytest.fixture
def better(monkeypatch):
    """A choice that is twice as fast as the rules, whatever the devices say."""
    choice = choices_for(tune.VARIANTS["solvent"], DEVICES[0], "float32", 96)[0]

    def measure(quantity, precision, cases, device, whole):
        for case in cases:
            seconds = {RULES: 2e-3, choice: 1e-3}
            yield tune.Row(quantity, precision, case.name, case.size(quantity), RULES, choice, seconds)

    monkeypatch.setattr(tune, "measure", measure)
    return choice


def test_what_is_measured_is_printed_and_remembered(file):
    text = run(*QUICK, "-v").stdout
    lines = text.splitlines()
    assert lines[0] == f"{DEVICES[0]}, driver {DEVICES[0].driver}"
    assert lines[1].split()[:4] == ["quantity", "precision", "structure", "size"]
    assert lines[2].split()[:4] == ["nonbond", "float32", "hexapeptide", "3,633"]
    assert (lines[3], lines[4].split()) == ("", ["choice", "ms", "rules", "=", "1"])
    names, milliseconds, ratios = zip(*(line.split() for line in lines[5 : lines.index("", 5)]), strict=True)
    assert {"rules", "rows"} < set(names)
    assert list(milliseconds) == sorted(milliseconds, key=float)
    assert ratios[names.index("rules")] == "1.00"
    assert "auto took at most" in text
    assert f"Stored in {file}" in text
    (entry,) = store.entries()
    assert entry.is_of(DEVICES[0])
    assert entry.is_current
    assert [(f.quantity, f.precision, f.size) for f in entry.findings] == [("nonbond", "float32", 3633)]


def test_auto_and_verbose_go_by_it(file, better):
    before = run("solvent", HEXAPEPTIDE, "-v").stdout
    assert "Choice: built-in rules; `pele-ocl tune` measures" in before
    run("tune", "--quantity", "solvent", "--system", "hexapeptide", "--precision", "float32")
    after = run("solvent", HEXAPEPTIDE, "-v").stdout
    assert f"\n{better.variant}, float32, on" in after
    assert "Choice: as measured on " in after
    assert f", {file}" in after


def test_one_json_object(file):
    report = json.loads(run(*QUICK, "--json").stdout)
    assert report["file"] == str(file)
    ((row,),) = [device["rows"] for device in report["devices"]]
    assert (row["quantity"], row["size"], row["auto"]) == ("nonbond", 3633, "rules")
    assert row["seconds"]["rules"] > 0
    assert row["ratio"] == row["seconds"]["rules"] / row["seconds"][row["best"]]
    assert json.loads(run("tune", "--show", "--json").stdout)["devices"][0]["device"] == DEVICES[0].name


def test_a_dry_run_remembers_nothing(file, better):
    text = run("tune", "--dry-run", "--system", "hexapeptide", "--system", "ubiquitin").stdout
    assert text.count("\nsolvent ") == text.count("\nenergy ") == 4
    assert "auto took at most 2.00 times as long as the best" in text
    assert not file.parent.exists()


def test_wrong_choices_are_named(file, monkeypatch):
    wrong = choices_for(tune.VARIANTS["solvent"], DEVICES[0], "float32", 96)[0]

    def measure(quantity, precision, cases, device, whole):
        yield tune.Row(quantity, precision, "s", 96, RULES, RULES, {RULES: 1e-3}, {wrong: 0.01})

    monkeypatch.setattr(tune, "measure", measure)
    command = ("tune", "--quantity", "solvent", "--precision", "float32", "--system", "hexapeptide")
    assert f"\n          discarded because of wrong results: {wrong}, off by 1.0e-02\n" in run(*command).stdout
    assert json.loads(run(*command, "--json").stdout)["devices"][0]["rows"][0]["wrong"] == {str(wrong): 0.01}


def test_show_and_forget(file, better):
    assert run("tune", "--show").stdout == f"{file}: nothing is stored; `pele-ocl tune` measures\n"
    run("tune", "--quantity", "solvent", "--system", "hexapeptide")
    text = run("tune", "--show").stdout
    assert f"{DEVICES[0].name}, {DEVICES[0].platform}, driver {DEVICES[0].driver}: measured on " in text
    rows = [line.split(maxsplit=6) for line in text.splitlines() if line.startswith("solvent")]
    assert rows[0] == ["solvent", "float32", "96", "atoms", "2.000", "1.000", str(better)]
    assert run("tune", "--forget").stdout == f"{file}: forgotten\n"
    assert run("tune", "--forget").stdout == f"{file}: nothing was stored\n"
    assert not file.exists()


def test_an_interruption_keeps_what_is_measured(file, better, monkeypatch):
    measure = tune.measure

    def interrupted(quantity, *args):
        if quantity == "nonbond":
            raise KeyboardInterrupt
        return measure(quantity, *args)

    monkeypatch.setattr(tune, "measure", interrupted)
    run("tune", "--system", "hexapeptide", "--precision", "float32", code=130)
    (entry,) = store.entries()
    assert [finding.quantity for finding in entry.findings] == ["solvent"]


def test_what_other_versions_measured_is_shown_as_such(file, better, monkeypatch):
    run("tune", "--quantity", "solvent", "--system", "hexapeptide")
    monkeypatch.setattr(findings, "versions", lambda: ("9.9", "0" * 16))
    assert "ignored, because it is from another version" in run("tune", "--show").stdout
    assert "was measured with other versions" in run("solvent", HEXAPEPTIDE, "-v").stdout


@pytest.mark.filterwarnings("default")
def test_a_broken_file_is_one_note_and_tune_mends_it(file, better):
    file.parent.mkdir()
    file.write_text("{")
    result = run("solvent", HEXAPEPTIDE)
    assert result.stderr.startswith(f"Note: {file}: not a valid tuning file ")
    assert result.stderr.count("\n") == 1
    assert "total" in result.stdout
    run("tune", "--quantity", "solvent", "--system", "hexapeptide")
    assert run("solvent", HEXAPEPTIDE).stderr == ""


def test_errors_are_sentences(file, monkeypatch):
    file.parent.write_text("")
    assert "cannot be created" in error_of("tune")
    assert "no OpenCL device fits" in error_of("tune", "--device", "nothing", "--dry-run")
    monkeypatch.setenv("PELE_OCL_TUNING", "off")
    for option in ([], ["--show"], ["--forget"]):
        assert error_of("tune", *option).startswith("PELE_OCL_TUNING is off")
    assert run("tune", "--show", "--forget", code=2).stderr.endswith("choose one of --dry-run, --show and --forget\n")
