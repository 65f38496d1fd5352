"""The files of data/folding are what tests/benchmarks/folding.py writes."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import pele_ocl

ROOT = Path(__file__).parent.parent
DATA = ROOT / "data" / "folding"


@pytest.fixture
def folding(monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT / "tests" / "benchmarks")])
    return import_module("folding")


def test_shipped_data_are_what_the_script_writes(folding, tmp_path):
    curves = folding.together([DATA / "cln025.csv"])["curves"]
    folding.save_data(curves, tmp_path, DATA / "cln025.pdb")
    for name in ("cln025.csv", "5awl.csv"):
        assert (tmp_path / name).read_text() == (DATA / name).read_text()
    own, shipped = (pele_ocl.read(folder / "cln025.pdb").positions for folder in (tmp_path, DATA))
    np.testing.assert_allclose(own, shipped, atol=2e-3)


def test_the_nearest_structure_is_laid_over_the_crystals(folding):
    atoms, crystal = pele_ocl.read(DATA / "cln025.pdb"), np.loadtxt(DATA / "5awl.csv", delimiter=",", skiprows=1)
    ca = atoms.positions[pele_ocl.selection(atoms, "name CA")]
    turn, _ = np.linalg.qr(np.random.default_rng(2).normal(size=(3, 3)))
    turn *= np.sign(np.linalg.det(turn))
    np.testing.assert_allclose(folding.laid_over(ca @ turn + 5.0, ca @ turn + 5.0, crystal), ca, atol=2e-3)
    least = np.loadtxt(DATA / "cln025.csv", delimiter=",", skiprows=1)[:, 2:].min()
    assert folding.distances(ca[None])[0] == pytest.approx(least, abs=6e-3)


def test_curves_are_those_of_a_run(folding, tmp_path):
    """From the JSON of a run: two seeds of two ladders, three looks."""
    rmsd = np.array([[[5.0, 4.0], [3.0, 6.0]], [[1.5, 4.0], [3.0, 1.0]], [[0.5, 1.0], [1.25, 1.0]]])
    of = {
        "rows": 32, "seconds": 1.0, "ns": [0.01, 0.02, 0.03], "rmsd": rmsd.tolist(), "accepted": [0.1] * 7,
        "first_seconds": [1.0, 1.0], "first_ns": [0.02, 0.02], "folded_share": [1.0, 1.0],
    }  # fmt: skip
    (tmp_path / "run.json").write_text(json.dumps({"ladders": of}))
    found = folding.together([tmp_path / "run.json"])
    folding.show(found, Namespace(figure=None, data=tmp_path / "data", pdb=None))
    lines = (tmp_path / "data" / "cln025.csv").read_text().splitlines()
    assert lines[1:] == ["0.01,0.0000,4.00,3.00", "0.02,0.5000,1.50,1.00", "0.03,1.0000,0.50,1.00"]
