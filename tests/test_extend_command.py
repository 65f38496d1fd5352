"""docs/extend/command.md, followed: its files and lines stand in a copy of the package, and the commands run."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from checkout_helpers import copy_folder
from test_architecture import FLOOR_OF

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "extend" / "command.md"
HEXAPEPTIDE, TRIALANINE = (ROOT / "data" / "structures" / f"{name}.pdb" for name in ("hexapeptide", "trialanine"))


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a copy of the package with all that the page adds."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    function, command, number, field, check, needs, told, text, option, *blocks = blocks
    root = tmp_path_factory.mktemp("checkout")
    copy_folder("pele_ocl", root)
    for folder in ("cl", "data"):
        (root / folder).symlink_to(ROOT / folder)
    (root / "pele_ocl" / "dipole.py").write_text(function)
    (root / "pele_ocl" / "cli" / "dipole.py").write_text(command)
    spec, energy = root / "pele_ocl" / "energy" / "spec.py", root / "pele_ocl" / "cli" / "energy.py"
    insert(spec, '            "energy": result.energy,\n', number)
    insert(spec, "    per_atom: bool = False\n", field)
    insert(spec, "        terms_listed(self.terms)\n", check)
    insert(spec, "from ..atoms import Atoms\n", needs)
    change(spec, told.splitlines(keepends=True)[1].replace(", **own", ""), told)
    insert(spec, "*found.physics_lines()]\n", text)
    insert(energy, "@strict_option\n", option)
    bound, checked, packed, descent, setting, kept, noise, dynamics = blocks
    options, settings = root / "pele_ocl" / "minimize" / "options.py", root / "pele_ocl" / "dynamics" / "settings.py"
    insert(options, "    max_seconds: float | None = None\n", bound)
    insert(options, '        whole_number("max_iterations", self.max_iterations, most=1 << 24)\n', checked)
    change(options, "            most_step=MOST_STEP,\n", packed)
    insert(
        root / "pele_ocl" / "cli" / "minimize.py",
        'class Descent:\n    """Options of the minimization and its stopping criteria."""\n\n',
        descent,
    )
    insert(settings, '    exchange: str = "temperature"\n', setting)
    change(settings, "        return math.exp(-self.friction * self.dt)\n", kept)
    change(settings, "        return math.sqrt(-math.expm1(-2 * self.friction * self.dt))\n", noise)
    insert(
        root / "pele_ocl" / "cli" / "simulate.py",
        'class Dynamics:\n    """Options for replicas, dynamics and output."""\n\n',
        dynamics,
    )
    return root


def change(path: Path, before: str, after: str) -> None:
    text = path.read_text()
    assert before in text, path
    path.write_text(text.replace(before, after, 1))


def insert(path: Path, after: str, text: str) -> None:
    change(path, after, after + text)


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
    again = run(changed, "dipole", HEXAPEPTIDE, TRIALANINE, "-o", table, "--resume")
    assert "2 structures" in again
    assert "no such file" in run(changed, "dipole", tmp_path / "none.pdb", code=1)
    assert "Did you mean" in run(changed, "dipole", HEXAPEPTIDE, "--forcefeld", "x", code=2)


def test_a_new_room_is_asked_into_a_box_and_onto_a_floor(changed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a sentence, also where what imports it comes first; with the page's words the figure is drawn."""
    spec = importlib.util.spec_from_file_location("make_architecture", ROOT / "docs" / "architecture" / "make.py")
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    monkeypatch.setattr(make, "PACKAGE", changed / "pele_ocl")
    with pytest.raises(SystemExit, match=r"pele_ocl/dipole is in no box of docs/architecture/make\.py"):
        make.drawing()
    make.imports.cache_clear()
    column, width, _, about = make.BOXES["trajectories"]
    assert '"trajectories doors dipole"' in PAGE.read_text()
    monkeypatch.setitem(make.BOXES, "trajectories", (column, width, "trajectories doors dipole", about))
    assert make.drawing().endswith("</svg>\n")
    rooms = make.imported_layers(changed / "pele_ocl" / "dipole.py")
    assert rooms == set("atoms common doors jobs reading".split())
    assert max(FLOOR_OF[room] for room in rooms) == FLOOR_OF["doors"]


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
    assert told["settings"]["charge_scale"] == half["settings"]["charge_scale"] == 0.5
    assert "Charges       times 0.5" in run(changed, "energy", TRIALANINE, "--gb", "none", "--charge-scale", 0.5)
    wrong = run(changed, "energy", TRIALANINE, "--charge-scale", -1, code=1)
    assert "charge_scale is -1; expected a number, 0 or more" in wrong


def test_an_option_of_minimize(changed: Path, tmp_path: Path) -> None:
    words = HEXAPEPTIDE, "-o", tmp_path / "small.pdb", "--max-iterations", 20, "--no-bond-repair", "--json"
    short, long = (json.loads(run(changed, "minimize", *words, "--max-step", step)) for step in (0.0001, 0.2))
    assert (short["settings"]["max_step"], short["settings"]["max_iterations"]) == (0.0001, 20)
    assert "expected a number in A, 0 to 1" in run(changed, "minimize", *words, "--max-step", 2, code=1)
    assert short["rms_displacement"] <= 0.002 < long["rms_displacement"]
    code = (
        "import sys, pele_ocl\n"
        "atoms = pele_ocl.read(sys.argv[1])\n"
        "words = dict(max_iterations=20, bond_repair=False, max_step=0.0001)\n"
        "print(pele_ocl.minimize(sys.argv[1], **words).rms_displacement)\n"
        "print(pele_ocl.minimize_many([atoms], **words)[0].rms_displacement)\n"
        "ensemble = pele_ocl.Ensemble(atoms, 1)\n"
        "print(ensemble.minimize(**words).rms_displacement[0])\n"
    )
    for text in python(changed, code, HEXAPEPTIDE).split():
        assert float(text) == pytest.approx(short["rms_displacement"], rel=1e-5)


def test_an_option_of_simulate(changed: Path, tmp_path: Path) -> None:
    """A bath of three times the friction is that of a friction three times as large."""
    words = "--steps", 20, "--report-every", 20, "--seed", 3, "--json"
    for name, more in (("factor", ("--bath-factor", 3, "--friction", 1)), ("friction", ("--friction", 3))):
        run(changed, "simulate", TRIALANINE, "-o", tmp_path / name, *words, *more)
    tables = [(tmp_path / name / "energies.csv").read_text().splitlines()[-1] for name in ("factor", "friction")]
    assert tables[0] == tables[1]
    code = (
        "import sys, pele_ocl\n"
        "print(pele_ocl.Simulation(pele_ocl.read(sys.argv[1]), bath_factor=3.0).settings.bath_factor)\n"
    )
    assert python(changed, code, TRIALANINE).strip() == "3.0"


def python(root: Path, code: str, *words: object) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, words)], capture_output=True, text=True, cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout
