"""docs/extend/command.md, followed: its files and lines stand in a copy of the package, and the commands run."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HEXAPEPTIDE, TRIALANINE = (ROOT / "data" / "structures" / f"{name}.pdb" for name in ("hexapeptide", "trialanine"))


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a copy of the package with all that the page adds."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "extend" / "command.md").read_text(), re.DOTALL)
    function, command, number, field, option = blocks
    root = tmp_path_factory.mktemp("checkout")
    shutil.copytree(ROOT / "pele_ocl", root / "pele_ocl", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in ("cl", "data"):
        (root / folder).symlink_to(ROOT / folder)
    (root / "pele_ocl" / "dipole.py").write_text(function)
    (root / "pele_ocl" / "cli" / "dipole.py").write_text(command)
    spec, energy = root / "pele_ocl" / "energy" / "spec.py", root / "pele_ocl" / "cli" / "energy.py"
    insert(spec, '            "energy": result.energy,\n', number)
    insert(spec, "    per_atom: bool = False\n", field)
    insert(spec, "from dataclasses import dataclass, field\n", "from dataclasses import replace\n")
    insert(energy, "@strict_option\n", option)
    return root


def insert(path: Path, after: str, text: str) -> None:
    before = path.read_text()
    assert after in before, path
    path.write_text(before.replace(after, after + text, 1))


def run(root: Path, *words: object, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pele_ocl", *map(str, words)], capture_output=True, text=True, cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


def test_a_command(changed: Path, tmp_path: Path) -> None:
    assert "dipole " in run(changed, "--help")
    table = tmp_path / "moments.csv"
    text = run(changed, "dipole", HEXAPEPTIDE, TRIALANINE, "-o", table)
    assert "2 structures" in text
    assert "dipole [D]" in text
    rows = [line for line in table.read_text().splitlines() if not line.startswith("#")]
    assert rows[0] == "structure,n_atoms,dipole_x [D],dipole_y [D],dipole_z [D],dipole [D],error"
    one = json.loads(run(changed, "dipole", HEXAPEPTIDE, "--json"))
    assert one["dipole"] == pytest.approx(float(rows[1].split(",")[-2]))
    assert "no such file" in run(changed, "dipole", tmp_path / "none.pdb", code=1)
    assert "Did you mean" in run(changed, "dipole", HEXAPEPTIDE, "--forcefeld", "x", code=2)


def test_a_number_and_an_option(changed: Path) -> None:
    code = (
        "import json, sys, pele_ocl\n"
        "whole, half = (pele_ocl.energy(sys.argv[1], gb='none', charge_scale=f).to_json() for f in (1.0, 0.5))\n"
        "print(json.dumps([whole, half]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(TRIALANINE)], capture_output=True, text=True, check=True, cwd=changed,
        env={**os.environ, "PYTHONPATH": str(changed)},
    )  # fmt: skip
    whole, half = json.loads(done.stdout)
    assert half["energy"]["coulomb"] == pytest.approx(0.25 * whole["energy"]["coulomb"], rel=1e-4)
    assert whole["net_charge"] == pytest.approx(0, abs=1e-6)
    told = json.loads(run(changed, "energy", TRIALANINE, "--gb", "none", "--charge-scale", 0.5, "--json"))
    assert told["energy"] == half["energy"]
