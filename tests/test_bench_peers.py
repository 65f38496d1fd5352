"""tests/benchmarks: peers compute what we do, what fails is a row, what disagrees is an error; and scaling."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import time
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from conftest import DEVICES, random_atoms
from harness import comparison, mesh, scaling
from harness.comparison import TOLERANCES, Contender, Measured, Row, Work
from harness.peers import MAP_PEERS, MESH_PEERS, MapPeer, apart, talk_to_stderr
from harness.table import Group, disagreements
from peers import peers
from scaling import scaling as scaling_program
from test_cli import HEXAPEPTIDE, run_table
from timing_tables import installed
from timing_tables.installed import AbsentError

from pele_ocl.bench.systems import ball_of_atoms, load
from pele_ocl.bench.timing import call_seconds
from pele_ocl.common.variant import PRECISIONS
from pele_ocl.grid import Grid
from pele_ocl.reference import potmap as reference

HAS_OPENMM = importlib.util.find_spec("openmm") is not None
COMPILE_FOR_SECONDS = ("torch.compile", "KeOps")
DEVICE = ("--device", DEVICES[0].index)
MAP = ("--work", "potmap", "--points", 12, "--atoms", 300, "--runs", 3, *DEVICE)


def program(command, *arguments, code=0):
    """Run a program of tests/benchmarks in this process."""
    result = CliRunner().invoke(command, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


def row(code="numba", ours=False, seconds=1.0, error=0.0, **more):
    return Row("potmap", "a map", 10, 100, "float32", code, ours, "CPU", seconds, errors={"map": error}, **more)


# Peers


@pytest.mark.filterwarnings("ignore")  # the peers' own
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in COMPILE_FOR_SECONDS else n for n in MAP_PEERS]
)
def test_peers_compute_the_same_map(name, precision):
    atoms, grid = random_atoms(150), Grid((-20.2, -20, -20), 3.1, (7, 11, 5))
    try:
        ready = MAP_PEERS[name](atoms, precision, False)
    except AbsentError as reason:
        pytest.skip(str(reason))
    with talk_to_stderr(name):
        seconds, values = ready.once(grid)
    exact = reference.potmap(atoms, grid)
    assert seconds > 0
    assert values.shape == exact.shape
    assert np.linalg.norm(values - exact) / np.linalg.norm(exact) < TOLERANCES[precision]["map"] / 4
    assert ready.where


@pytest.mark.parametrize("name", MESH_PEERS)
def test_peers_of_the_mesh_keep_the_accuracy(name):
    atoms, grid = random_atoms(150), Grid((-20.2, -20, -20), 3.1, (7, 11, 5))
    try:
        ready = MESH_PEERS[name](atoms, 1e-4)
    except AbsentError as reason:
        pytest.skip(str(reason))
    _, values = ready.once(grid)
    exact = reference.potmap(atoms, grid)
    assert np.linalg.norm(values - exact) / np.linalg.norm(exact) < 1e-4


def test_the_mesh_beside_its_peers(monkeypatch):
    """Ours and a peer of the direct sum, which has no error, by the same measure."""
    peer_of = {
        "exact": lambda atoms, accuracy: MapPeer("1.0", "CPU", lambda grid: (0.5, reference.potmap(atoms, grid)))
    }
    monkeypatch.setattr(mesh, "MESH_PEERS", peer_of)
    monkeypatch.setattr(mesh, "apart", lambda most_seconds, work, *arguments: work(*arguments))
    work = mesh.mesh_work(24, 300, "float32", DEVICES[:1], 3, 10.0)
    own, other = work.rows(lambda code: True, lambda line: None)
    assert own.agrees
    assert own.call_seconds >= own.seconds > 0
    assert 1e-7 < own.errors["potential"] < 1e-4
    assert (other.code, other.seconds, other.errors["potential"] < 1e-9) == ("exact 1.0", 0.5, True)
    assert "error by norm of 0.0001 at most" in Group.of([own, other]).section()


def test_peers_that_are_not_installed(monkeypatch):
    monkeypatch.setattr(installed, "find_spec", lambda name: None)
    for make in MAP_PEERS.values():
        with pytest.raises(AbsentError, match="not installed"):
            make(random_atoms(5), "float32", True)
    for make in MESH_PEERS.values():
        with pytest.raises(AbsentError, match="not installed"):
            make(random_atoms(5), 1e-4)


@pytest.mark.skipif(not HAS_OPENMM, reason="OpenMM is not installed")
@pytest.mark.parametrize(
    ("make", "names"),
    [
        (comparison.energy_work, ["energy", "gradient"]),
        (partial(comparison.nonbond_work, cutoff=9.0), ["energy", "gradient"]),
        (comparison.solvent_work, ["energy"]),
    ],
    ids=["energy", "nonbond", "solvent"],
)
def test_openmm_agrees(make, names):
    """OpenMM's Reference platform agrees to all digits: same pairs and formulas, the cutoff's shift taken off."""
    atoms = load("hexapeptide")
    work = make("hexapeptide", atoms, precision="float64", devices=DEVICES[:1], runs=3)
    rows = {r.code: r for r in work.rows(lambda code: "Reference" in code, lambda line: None)}
    reference_row = next(r for code, r in rows.items() if code.endswith("Reference"))
    assert list(reference_row.errors) == names
    assert max(reference_row.errors.values()) < 1e-11
    assert all(r.agrees and r.seconds > 0 and r.call_seconds > 0 for r in rows.values())
    assert [r.ours for r in rows.values()] == [True, False]


def test_calls_get_new_positions():
    atoms, got = random_atoms(5), []
    assert call_seconds(lambda positions: got.append(positions), atoms, 3) > 0
    different = {positions.tobytes() for positions in got}
    assert len(different) == 2
    assert max(np.abs(positions - atoms.positions).max() for positions in got) < 0.1
    assert all(before is not after for before, after in pairwise(got))


@pytest.mark.parametrize(
    ("make", "plan"),
    [
        (comparison.energy_work, "Energy"),
        (partial(comparison.nonbond_work, cutoff=9.0), "Nonbond"),
        (comparison.solvent_work, "Solvent"),
    ],
    ids=["energy", "nonbond", "solvent"],
)
def test_a_call_is_of_a_plan_that_is_kept(make, plan, monkeypatch):
    kept = []
    monkeypatch.setattr(comparison, "call_seconds", lambda evaluate, *_: kept.append(evaluate.__self__) or 0.25)
    work = make("some", random_atoms(40), precision="float32", devices=DEVICES[:1], runs=3)
    (row,) = work.rows(lambda code: False, lambda line: None)
    assert row.call_seconds == 0.25
    assert [type(owner).__name__ for owner in kept] == [plan]


# Rows


def measure_nothing(error):
    raise error


def test_a_peer_that_fails_is_a_row():
    contenders = [
        Contender("broken", partial(measure_nothing, RuntimeError("no compiler\nsecond line"))),
        Contender("missing", partial(measure_nothing, AbsentError("not installed"))),
        Contender("good", lambda: Measured("good 1.0", "CPU", 0.5, {"map": 0.0})),
    ]
    work = Work("potmap", "a map", 10, 100, "float32", contenders)
    told = []
    broken, missing, good = work.rows(lambda code: True, told.append)
    assert (broken.reason, broken.absent) == ("RuntimeError: no compiler", False)
    assert (missing.reason, missing.absent) == ("not installed", True)
    assert (good.code, good.seconds, good.reason) == ("good 1.0", 0.5, None)
    assert told[0] == "potmap, a map, float32: broken"
    assert told[1].startswith("Traceback")
    assert "RuntimeError: no compiler\nsecond line\n" in told[1]
    assert told[3] == "  not installed"
    assert told[5] == "  500 ms on CPU"
    text = Group.of([broken, missing, good]).section()
    assert "- broken failed: RuntimeError: no compiler" in text
    assert "Not timed: missing (not installed)." in text


def test_ours_may_not_fail():
    work = Work("potmap", "a map", 1, 1, "float32", [Contender("pele-ocl", partial(measure_nothing, OSError()), True)])
    with pytest.raises(OSError):  # noqa: PT011
        list(work.rows(lambda code: False, lambda line: None))


def test_ratios_are_to_the_best_peer_that_agrees():
    rows = [row("ours", True, 1.0), row("good", seconds=3.0), row("wrong", seconds=0.1, error=1.0)]
    group = Group.of(rows)
    assert group.times_best_peer(rows[0], lambda r: r.seconds) == 3.0
    assert group.times_best_peer(rows[0], lambda r: r.call_seconds) is None
    assert Group.of(rows[:1]).times_best_peer(rows[0], lambda r: r.seconds) is None


@pytest.mark.parametrize("error", [1e-3, float("nan")])
def test_what_disagrees_is_told(error):
    wrong = row("wrong", error=error)
    assert not wrong.agrees
    assert disagreements([row(), wrong])[0].startswith("wrong on CPU, potmap of a map: error of the map")
    assert "disagrees**" in Group.of([wrong]).section()


def test_peers_may_talk_without_spoiling_the_output(capfd):
    with talk_to_stderr("a peer"):
        os.write(1, b"from C\n")
        print("from Python")
    print("ours")
    out, err = capfd.readouterr()
    assert out == "ours\n"
    assert sorted(err.splitlines()) == ["a peer: from C", "from Python"]


# A process of its own


def test_work_apart_returns_and_raises():
    assert apart(60, divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        apart(60, divmod, 7, 0)
    with pytest.raises(AbsentError, match="not there"):
        apart(60, measure_nothing, AbsentError("not there"))


def test_work_that_hangs_or_dies_is_given_up():
    with pytest.raises(RuntimeError, match=r"not done after 0\.5 s"):
        apart(0.5, time.sleep, 1000)
    with pytest.raises(BrokenProcessPool):
        apart(60, os._exit, 3)


# The commands


@pytest.fixture
def in_this_process(monkeypatch):
    """Peers that a test makes up are not there in another."""
    monkeypatch.setattr(comparison, "apart", lambda most_seconds, work, *args: work(*args))


def fake(factor):
    """A peer that computes the reference times a factor."""

    def make(atoms, precision, gpu):
        return MapPeer("1.0", "paper", lambda grid: (1e-3, factor * reference.potmap(atoms, grid)))

    return make


@pytest.mark.usefixtures("in_this_process")
def test_command_writes_table_figures_and_chart(monkeypatch, tmp_path):
    monkeypatch.setattr(comparison, "MAP_PEERS", {"numba": fake(1.0)})
    outputs = [tmp_path / f"peers.{suffix}" for suffix in ("md", "json", "png")]
    stdout = program(peers, *MAP, *(word for path in outputs for word in ("-o", path)), "--machine", "a desk").stdout
    assert "| numba 1.0 " in stdout
    page = outputs[0].read_text()
    assert page.startswith("## Compared with other codes: a desk\n")
    assert stdout.strip() in page
    rows = json.loads(outputs[1].read_text())["rows"]
    assert [(r["ours"], r["where"]) for r in rows] == [(True, str(DEVICES[0])), (False, "paper")]
    assert all(r["errors"]["map"] < 1e-6 for r in rows)
    assert outputs[2].read_bytes()[:4] == b"\x89PNG"


@pytest.mark.usefixtures("in_this_process")
def test_command_prints_json(monkeypatch):
    monkeypatch.setattr(comparison, "MAP_PEERS", {"numba": fake(1.0)})
    ours, theirs = [
        json.loads(line) for line in program(peers, *MAP, "--json", "--precision", "float64").stdout.splitlines()
    ]
    assert ours["code"] == "pele-ocl blocked"
    assert (theirs["code"], theirs["seconds"], theirs["evaluations"]) == ("numba 1.0", 1e-3, 300 * 12**3)


@pytest.mark.usefixtures("in_this_process")
def test_command_takes_some_peers(monkeypatch):
    monkeypatch.setattr(comparison, "MAP_PEERS", {"numba": fake(1.0), "torch": fake(1.0)})
    rows = [json.loads(line) for line in program(peers, *MAP, "--json", "--peer", "torch").stdout.splitlines()]
    assert [r["code"] for r in rows] == ["pele-ocl blocked", "torch 1.0"]


@pytest.mark.usefixtures("in_this_process")
def test_disagreement_is_an_error_once_all_is_written(monkeypatch, tmp_path):
    monkeypatch.setattr(comparison, "MAP_PEERS", {"numba": fake(1.001)})
    path = tmp_path / "peers.md"
    done = program(peers, *MAP, "-o", path, code=1)
    assert (
        "Error: numba 1.0 on paper, potmap of 12 x 12 x 12 points, 300 atoms: error of the map 1.0e-03" in done.stderr
    )
    assert "1.0e-03 disagrees" in path.read_text()


@pytest.mark.usefixtures("in_this_process")
def test_a_peer_that_gives_no_numbers_disagrees(monkeypatch, tmp_path):
    monkeypatch.setattr(comparison, "MAP_PEERS", {"numba": fake(float("nan"))})
    path = tmp_path / "peers.json"
    done = program(peers, *MAP, "--json", "-o", path, f"--machine={tmp_path}", code=1)
    assert "error of the map nan" in done.stderr
    assert json.loads(done.stdout.splitlines()[1])["errors"] == {"map": None}
    content = json.loads(path.read_text())
    assert content["rows"][1]["errors"] == {"map": None}
    assert "--machine" not in content["command"]


def test_structures_of_ones_own():
    command = "--work", "solvent", "--structure", HEXAPEPTIDE, "--peer", "numba", *DEVICE
    (line,) = program(peers, *command, "--runs", 3, "--json").stdout.splitlines()
    assert (json.loads(line)["system"], json.loads(line)["n_atoms"]) == ("hexapeptide.pdb", 96)


def test_peers_without_such_a_work_are_said():
    command = "--work", "solvent", "--structure", HEXAPEPTIDE, "--peer", "numba", *DEVICE
    told = program(peers, *command, "--runs", 3).stderr.splitlines()
    assert "solvent, hexapeptide.pdb, float32: numba does not compute this" in told


@pytest.mark.parametrize("command", [peers, scaling_program])
def test_unknown_suffix_is_refused_before_any_work(command, tmp_path):
    done = program(command, "-o", tmp_path / "table.txt", code=1)
    assert re.fullmatch(r"Error: .*files end in \.md, \.json, \.png\n", done.stderr)
    assert done.stdout == ""


def test_minimization_of_ones_own_structure_is_refused_first():
    done = program(peers, "--work", "minimize", "--structure", "mine.pdb", code=2)
    assert "only included structures are supported" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("name", ["peers", "scaling"])
def test_programs_start_by_themselves(name):
    script = Path(__file__).parent / "benchmarks" / f"{name}.py"
    done = subprocess.run([sys.executable, script, "--help"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"Usage: {name}.py [OPTIONS]")


# Scaling


def test_balls_are_as_dense_as_a_protein():
    positions = ball_of_atoms(4000).positions
    radius = np.linalg.norm(positions, axis=1).max()
    assert 4000 / (4 / 3 * np.pi * radius**3) == pytest.approx(0.1, rel=0.1)
    apart = np.linalg.norm(positions[:, None] - positions[None, :500], axis=-1)
    assert apart[apart > 0].min() > 1.4


def test_scaling_tells_time_and_linear_memory(tmp_path):
    command = ("--most-atoms", 2000, "--quantity", "solvent", "--quantity", "potmap", *DEVICE)
    page, chart = tmp_path / "scaling.md", tmp_path / "scaling.png"
    done = program(scaling_program, *command, "--json", "-o", page, "-o", chart)
    points = [json.loads(line) for line in done.stdout.splitlines()]
    assert "solvent, float32: 2,000 atoms\n" in done.stderr
    assert [(p["quantity"], p["n_atoms"]) for p in points] == [
        ("solvent", 1000), ("solvent", 2000), ("potmap", 1000), ("potmap", 2000),
    ]  # fmt: skip
    assert all(p["seconds"] > 0 and p["whole_seconds"] > 0 for p in points)
    assert points[1]["device_bytes"] / points[0]["device_bytes"] == pytest.approx(2, rel=0.1)
    assert "| 2,000 | tiled" in page.read_text()
    assert chart.read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize("name", list(scaling.QUANTITIES))
def test_a_curve_ends_before_it_takes_too_long(name):
    first, end = scaling.curve(name, (100, 100_000), "float32", DEVICES[0], 1e-9, print)
    assert (first.n_atoms, end.n_atoms) == (100, 100_000)
    assert first.device_bytes > 100 * 4 * 4
    assert end.expected_seconds == pytest.approx(first.whole_seconds * 1000 ** scaling.QUANTITIES[name].order)


@pytest.mark.parametrize("seconds", [0, -1])
def test_scaling_needs_time(seconds):
    assert "--most-seconds" in program(scaling_program, "--most-seconds", seconds, code=2).stderr


# Minimization


def test_minimization_beside_openmm():
    if not HAS_OPENMM:
        pytest.skip("OpenMM is not installed")
    arguments = ("--system", "hexapeptide", "--starts", 1, "--tolerance", 20, "--json", *DEVICE)
    rows = [json.loads(line) for line in run_table("minimize", *arguments).stdout.splitlines()]
    codes = [row["code"] for row in rows]
    assert codes[0] == "OpenMM CPU"
    assert codes[-1] == "lbfgs"
    assert all(row["rms_gradient"] <= 20.5 for row in rows)  # by float64, where codes compute in float32
    assert rows[-1]["speedup"] == pytest.approx(rows[0]["seconds"] / rows[-1]["seconds"])
    assert abs(rows[-1]["above"]) < 0.02
    text = run_table("minimize", *arguments[:-3], "--no-peers", *DEVICE).stdout
    assert "kJ/mol/nm" in text
    assert "OpenMM" not in text.splitlines()[-1]


def test_minimization_is_a_work_of_the_peers():
    if not HAS_OPENMM:
        pytest.skip("OpenMM is not installed")
    arguments = ("--work", "minimize", "--system", "hexapeptide", "--peer", "OpenMM CPU", "--json", *DEVICE)
    result = program(peers, *arguments)
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["code"].split()[0] for row in rows] == ["pele-ocl", "OpenMM"]
    assert rows[0]["work"] == "minimize"
