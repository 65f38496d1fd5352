"""Programs of tests/benchmarks: they load with this version, and two checkouts are compared."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import DEVICES

ROOT = Path(__file__).parent.parent
SCRIPTS = ROOT / "tests" / "benchmarks"


@pytest.mark.parametrize(
    "name",
    [
        "calls",
        "ceiling",
        "designs",
        "evaluations",
        "frozen",
        "iteration",
        "launches",
        "map_walls",
        "million",
        "minimize",
        "mixed",
        "shared_launches",
        "pair_energy",
        "pb",
        "preconditioner",
        "prepare",
        "tree_energy",
        "tree_wall",
    ],
)
def test_scripts_load(name, monkeypatch):
    monkeypatch.syspath_prepend(SCRIPTS)
    __import__(name)


def test_parts_take_away_what_is_there(monkeypatch):
    monkeypatch.syspath_prepend(SCRIPTS)
    import parts

    for without in (*parts.SOLVENT_PARTS.values(), *parts.MAP_PARTS.values()):
        with without():
            pass


def test_a_checkout_is_as_fast_as_itself():
    command = ROOT, ROOT, "--quick", "--quantity", "solvent", "--system", "hexapeptide", "--precision", "float32"
    options = "--variant", "tiled", "--calls", "--bound", "3", "--device", DEVICES[0].index
    script = SCRIPTS / "before_after.py"
    done = subprocess.run(
        [sys.executable, script, *map(str, (*command, *options))], capture_output=True, text=True, check=True
    )
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith("solvent")]
    assert [row[4] for row in rows] == ["kernels", "call"]
    assert all(0.3 < float(row[7]) < 3 for row in rows)
    assert re.search(r"; 0 slower than 3;", done.stdout)
