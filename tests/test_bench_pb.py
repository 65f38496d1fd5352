"""`python tests/benchmarks/table.py pb`: the ladder of solvers, and APBS beside it where it is installed."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pytest
from test_cli import on_the_chosen_device, run_table
from timing_tables import pb
from timing_tables.pb import Timing

from pele_ocl.pb import SOLVERS

__all__ = ["on_the_chosen_device"]  # a fixture that every test here uses

SMALL = ("--system", "hexapeptide", "--points", 33)


@pytest.fixture
def without_apbs(monkeypatch):
    monkeypatch.setattr(pb, "PEER", "a program that is not there")


@pytest.mark.usefixtures("without_apbs")
def test_every_rung_comes_to_one_energy():
    rows = [json.loads(line) for line in run_table("pb", *SMALL, "--residual", 1e-5, "--json").stdout.splitlines()]
    assert [row["solver"] for row in rows] == list(SOLVERS)
    energies = [row["energy"] for row in rows]
    assert energies == pytest.approx([energies[0]] * len(rows), rel=1e-5)
    assert all(0 < row["residual"] <= 1e-5 and row["iterations"] > 0 and row["seconds"] > 0 for row in rows)
    assert rows[0]["iterations"] > 10 * rows[-1]["iterations"]
    assert {row["over_apbs"] for row in rows} == {None}


@pytest.mark.skipif(shutil.which("apbs") is None, reason="apbs is not installed")
def test_apbs_solves_the_same_problem():
    peer, own = run_table("pb", *SMALL, "--solver", "mgcg", "--residual", 1e-6, "--json").stdout.splitlines()
    peer, own = json.loads(peer), json.loads(own)
    assert (peer["solver"], own["solver"]) == ("apbs", "mgcg")
    assert peer["energy"] == pytest.approx(own["energy"], rel=1e-6)
    assert own["over_apbs"] == pytest.approx(own["seconds"] / peer["seconds"])


@pytest.mark.usefixtures("without_apbs")
def test_the_chart_has_a_curve_a_solver(tmp_path):
    pytest.importorskip("matplotlib")
    words = ("--solver", "mgcg", "--residual", 1e-2, "--residual", 1e-4, "--chart", tmp_path / "pb.svg")
    text = run_table("pb", *SMALL, *words).stdout
    assert "33^3 points" in text
    assert "mgcg" in text
    assert (tmp_path / "pb.svg").read_text().startswith("<?xml")
    row = Timing("a molecule", 9, 33, "mgcg", "a device", 1e-2, 1e-3, 3, 0.1, 1.0, 0.0, None)
    rows = [row, replace(row, residual=1e-5, seconds=0.2), replace(row, solver="sor", residual=1e-4)]
    (axes,) = pb.draw(tmp_path / "again.svg", rows).axes
    assert [list(line.get_xdata()) for line in axes.lines] == [[0.1, 0.2], [0.1]]
    assert [list(line.get_ydata()) for line in axes.lines] == [[1e-3, 1e-5], [1e-4]]


@pytest.mark.usefixtures("without_apbs")
def test_a_wrong_energy_is_told(monkeypatch):
    monkeypatch.setattr(pb, "ERROR_OF_RESIDUAL", 1e-12)
    result = run_table("pb", *SMALL, "--solver", "mgcg", "--residual", 1e-2, code=1)
    assert "wrong results: mgcg to 0.01: error " in result.output


def test_apbs_that_prints_nothing_is_an_error(monkeypatch):
    monkeypatch.setattr(pb, "PEER", "true")
    result = run_table("pb", *SMALL, "--solver", "mgcg", code=1)
    assert "true ended with code 0 and printed no energy" in result.output
