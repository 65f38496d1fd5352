"""Reports, the sentences of errors and notes, and groups of options."""

from __future__ import annotations

import doctest
import json
import logging
import pickle
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import click
import h5py
import numpy as np
import pytest
from click.testing import CliRunner

import pele_ocl
from pele_ocl import InputError, SolventModel, energy, read, report
from pele_ocl.cli.groups import keywords, option, options
from pele_ocl.common import errors, notes
from pele_ocl.common.errors import worded
from pele_ocl.report import Column, Report

TRIALANINE = Path(__file__).parent.parent / "data" / "structures" / "trialanine.pdb"


@pytest.mark.parametrize("module", [errors, notes, report], ids=lambda module: module.__name__)
def test_examples_run(module):
    assert doctest.testmod(module).failed == 0


def test_a_loop_over_a_report_goes_over_its_rows():
    columns = {"name": ["a", "b"], "n": np.ma.masked_equal([1, -1], -1), "xy": [[1.0, 2.0], [3.0, 4.0]]}
    rows = list(Report("Rows", columns))
    assert rows == [{"name": "a", "n": 1, "xy": [1.0, 2.0]}, {"name": "b", "n": None, "xy": [3.0, 4.0]}]


def test_names_are_printed_with_spaces_as_in_headers():
    columns = {"of_term": Column(["gb_pair"], names=True), "file": ["a_b.pdb"]}
    report = Report("Terms", columns, about=["Solvent  <obc2>"])
    assert str(report) == "Terms\nSolvent  <obc2>\n\nof term  file\ngb pair  a_b.pdb"
    assert report["of_term"].tolist() == report.to_json()["columns"]["of_term"] == ["gb_pair"]
    assert "<caption>Terms<br>Solvent  &lt;obc2&gt;</caption>" in report._repr_html_()


@pytest.mark.parametrize("function", ["energy", "solvent", "nonbond", "binding"])
def test_tables_and_texts_of_energies_agree(function):
    """Force field and solvent, and the names of terms, are printed alike."""
    options = {"binding": {"ligand": "resid 3"}}.get(function, {})
    result = getattr(pele_ocl, function)(TRIALANINE, **options)
    lines = result.text().splitlines()
    about = [line for line in lines if line.startswith(("Force field  ", "Solvent  "))]
    assert about == list(result.table().about)
    assert len(about) == 2
    cells = [line.split("  ")[0] for line in str(result.table()).splitlines()[5:]]
    assert "gb pair" in cells
    assert all(any(line.strip().startswith(cell) for line in lines) for cell in cells)


def test_without_pandas_the_sentence_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match="a DataFrame needs pandas, which is not installed: pip install pandas"):
        Report("Rows", {"n": [1]}).to_dataframe()


def test_data_frames_of_pandas():
    pandas = pytest.importorskip("pandas")
    columns = {"name": ["a", "b"], "n": np.ma.masked_equal([1, -1], -1), "e": Column([0.5, 1.5], "kcal/mol")}
    report = Report("Rows", columns, {"device": "cpu"})
    frame = report.to_dataframe()
    assert frame.attrs == {"device": "cpu", "units": {"e": "kcal/mol"}}
    assert list(frame.columns) == list(pandas.DataFrame(report).columns) == ["name", "n", "e"]
    assert np.isnan(frame["n"][1])
    result = energy(read(TRIALANINE), per_atom=True)
    assert result.to_dataframe()["energy"].iloc[-1] == result.total
    assert pandas.Series(result.terms).tolist() == result.energies.tolist()
    shares = result.per_residue().to_dataframe()
    assert shares["residue"].tolist() == ["A:ALA1", "A:ALA2", "A:ALA3"]
    assert shares["total"].sum() == pytest.approx(result.total, abs=1e-3)


RESULTS = [
    getattr(pele_ocl, name) for name in sorted(pele_ocl.__all__)
    if name.endswith(("Result", "Batch")) and name != "PBLevelResult"
]  # fmt: skip


@pytest.mark.parametrize("kind", RESULTS, ids=lambda kind: kind.__name__)
def test_all_results_have_the_same_set(kind):
    """PBLevelResult is a part of a PBResult."""
    for name in ("table", "to_json", "to_dataframe", "save"):
        assert callable(getattr(kind, name)), name


def test_a_report_prints_and_is_saved(tmp_path):
    columns = {"name": ["a<b", "c"], "energy": Column([1.0, np.nan], "kcal/mol"), "at": np.zeros((2, 3))}
    of = Report("Energies", columns, {"n": 2})
    assert [line.split() for line in str(of).split("\n")] == [
        ["Energies"], ["name", "energy", "[kcal/mol]"], ["a<b", "1.000"], ["c", "nan"],
    ]  # fmt: skip
    assert "a&lt;b" in of._repr_html_()
    assert json.loads(json.dumps(of.to_json(), allow_nan=False))["columns"]["energy"] == [1.0, None]
    for suffix in (".csv", ".h5", ".json"):
        of.save(tmp_path / f"table{suffix}")
    with h5py.File(tmp_path / "table.h5") as file:
        assert file["at"].shape == (2, 3)
        assert file["energy"].attrs["unit"] == "kcal/mol"
        assert file.attrs["n"] == 2
    with pytest.raises(InputError, match="different lengths"):
        Report("", {"a": [1], "b": [1, 2]})


def test_a_wide_report_goes_on_below_with_the_names_of_its_rows():
    names = [f"a_column_{k}" for k in range(20)]
    of = Report("Wide", {"name": ["x", "y"], **{name: [1.0, 2.0] for name in names}})
    lines = str(of).split("\n")
    assert max(map(len, lines)) <= 120
    heads = [line.split("  ") for line in lines if line.startswith("name")]
    assert len(heads) > 1
    assert [head.strip().replace(" ", "_") for line in heads for head in line[1:] if head.strip()] == names
    title, head, *rows = of.text().split("\n")  # for files and other programs, a row a line
    assert (title, len(rows), len(head.split())) == ("Wide", 2, 61)


def test_people_see_no_sign_of_zero_and_no_columns_of_files():
    of = Report("Some", {"a": Column([-1e-9, -2.0]), "b": Column([1, 2], shown=False), "c": [-np.inf, np.nan]})
    assert [line.split() for line in str(of).split("\n")[1:]] == [["a", "c"], ["0.000", "-inf"], ["-2.000", "nan"]]
    assert "<th" in of._repr_html_()
    assert ">b<" not in of._repr_html_()
    assert of.to_json()["columns"]["b"] == [1, 2]


def test_a_long_report_shows_its_first_and_last_rows():
    lines = str(Report("Many", {"n": np.arange(1000)})).split("\n")
    assert len(lines) < 30
    assert lines[-1].strip() == "999"


def test_errors_and_notes_keep_code_and_fields_between_processes():
    error = pickle.loads(pickle.dumps(InputError("no `ligand`", code="no_ligand", place="a.pdb")))
    assert (error.code, error.fields, str(error)) == ("no_ligand", {"place": "a.pdb"}, "no `ligand`")
    told = pickle.loads(pickle.dumps(notes.Note("taken", code="selected", n=3)))
    assert (told, told.kind, told.code, told.fields) == ("taken", "note", "selected", {"n": 3})


def test_keywords_are_spelled_by_the_front_end():
    spell = {"models": "--models", "resume": "--resume"}.get
    shown = worded("give `models='all'` or `resume`, not `other`", lambda name, value: spell(name))
    assert shown == "give --models or --resume, not `other`"


def test_notes_are_logged(caplog):
    with caplog.at_level(logging.INFO, "pele_ocl"), notes.heard_notes() as heard:
        notes.note("Note: 3 atoms were selected", code="selected")
        notes.note("Compiling")
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", "3 atoms were selected"),
        ("INFO", "Compiling"),
    ]
    assert [(each, each.code) for each in heard] == [("3 atoms were selected", "selected")]


@dataclass(frozen=True)
class Solvent:
    gb: str = option("Model.", like=SolventModel, choices=["obc2", "gbn2"])
    kind: Literal["first", "second"] = option("Kind.", default="first", former=("--sort",))
    is_fast: bool = option("Fast.", "-f")
    numbers: tuple[int, ...] = option("Numbers.", default=())


@click.command()
@options(Solvent)
def shown(solvent: Solvent) -> None:
    click.echo(json.dumps(keywords(solvent)))


def test_a_group_makes_options_of_its_fields():
    assert json.loads(CliRunner().invoke(shown).output) == {
        "gb": SolventModel().gb, "kind": "first", "is_fast": False, "numbers": [],
    }  # fmt: skip
    given = CliRunner().invoke(shown, ["--sort", "second", "-f", "--numbers", "1", "--numbers", "2"])
    assert json.loads(given.output) == {"gb": SolventModel().gb, "kind": "second", "is_fast": True, "numbers": [1, 2]}
    text = CliRunner().invoke(shown, ["--help"]).output
    assert "--sort" not in text
    assert "[default: first]" in text


def test_notes_stand_below_the_table_and_in_files(tmp_path):
    of = Report("Means", {"error": report.masked([None, 1.0])}, {"n": 2}, ["an error is empty: <one> sample"])
    assert str(of).splitlines()[-1] == "an error is empty: <one> sample"
    assert "<p>an error is empty: &lt;one&gt; sample</p>" in of._repr_html_()
    assert of.to_json()["notes"] == ["an error is empty: <one> sample"]
    for suffix in (".csv", ".json", ".h5"):
        of.save(tmp_path / f"a{suffix}")
    assert "an error is empty" in (tmp_path / "a.csv").read_text()
    assert json.loads((tmp_path / "a.json").read_text())["notes"] == list(of.notes)
