"""Runs of control files: files as PELE writes them, going on after a death, launchers, exit codes."""

from __future__ import annotations

import io
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import DEVICES
from explore_run_helpers import complex_lines, settings, write_complex, write_run
from forcefield_helpers import SAMPLES, needs_samples
from test_cli import error_of, on_the_chosen_device, run
from test_records import CHECK

import pele_ocl
from pele_ocl.__main__ import run_as_explore
from pele_ocl.cli.explore import ExploreLine
from pele_ocl.common.errors import FormatError, InputError
from pele_ocl.explore import run_files
from pele_ocl.explore.control import read_simulation
from pele_ocl.explore.pages import write_pages
from pele_ocl.explore.reports import numbered, report_head, report_row
from pele_ocl.explore.run_files import ends_of, said_of
from pele_ocl.explore.running import PartsFollowed
from pele_ocl.explore.spec import Exploration, ExploreWork, ForceFieldFiles, Steps, task_seed
from pele_ocl.explore.trajectory import PelePdb
from pele_ocl.formats import model_numbers, read_structure
from pele_ocl.jobs import Shard, launchers
from pele_ocl.rescore import find_run, read_report

__all__ = ["on_the_chosen_device"]  # a fixture that every test here uses

FILES = ("report_1", "report_2", "trajectory_1.pdb", "trajectory_2.pdb", "log_1.txt", "log_2.txt", "final_1.pdb")
LIGAND = {"chains": {"names": ["L"]}}
NAMES = {"Binding Energy", "sasaLig", "ligandRMSD"}


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES}


def exploration(control: Path, folder: Path, explorers: int = 2, **options) -> Exploration:
    options = {"precision": "float64", "device": str(DEVICES[0].index), **options}
    text = control.read_text()
    return Exploration(read_simulation(control), explorers, folder=folder, text=text, **options)


@pytest.fixture(scope="module")
def control(tmp_path_factory) -> Path:
    return write_run(tmp_path_factory.mktemp("explore"))


@pytest.fixture(scope="module")
def whole(control) -> Path:
    """Run two explorers for four steps without interruption."""
    folder = control.parent / "whole"
    list(exploration(control, folder).run())
    return folder


# Files


@needs_samples
def test_reports_are_pele_s_to_the_byte():
    file = SAMPLES / "3ptb" / "report_1"
    report = read_report(file)
    rows = [report_row(int(t), int(s), int(a), float(e), [float(x) for x in more]) for t, s, a, e, *more in report.rows]
    assert "".join([report_head(report.names[4:]), *rows]).encode() == file.read_bytes()


@needs_samples
def test_trajectories_are_pele_s_to_the_byte():
    file = SAMPLES / "3ptb" / "trajectory_1.pdb"
    structure = read_structure(file)
    atoms = pele_ocl.Atoms(structure.positions, np.zeros(len(structure.positions)), labels=structure.labels)
    writer = PelePdb(file, atoms)
    frames = [read_structure(file, model).positions for model in model_numbers(file)[:3]]
    found = b"".join(writer.conformation(k, positions) for k, positions in enumerate(frames, 1))
    assert file.read_bytes().startswith(found)


def test_a_run_is_one_of_pele_s(whole):
    walk = find_run(whole)
    assert [walker.name for walker in walk.walkers] == ["report_1", "report_2"]
    assert walk.control == whole / "originalControlFile_1.conf"
    for number, walker in enumerate(walk.walkers, 1):
        report = read_report(walker.report)
        assert set(report.names[4:]) == NAMES
        assert report.names[:4] == ("#Task", "Step", "numberOfAcceptedPeleSteps", "currentEnergy")
        assert [row[2] for row in report.rows] == [str(k) for k in range(len(report))]
        assert len(model_numbers(walker.trajectory)) == len(report)
        last = read_structure(whole / f"final_{number}.pdb").positions
        assert np.array_equal(read_structure(walker.trajectory, len(report)).positions, last)
        assert (whole / f"log_{number}.txt").read_text().count("\n") == 5
    first = read_structure(whole / "initial_1.pdb")
    assert [line for line in (whole / "initial_1.pdb").read_text().splitlines() if line != "END"] == [
        line.ljust(80) if line != "TER" else line for line in complex_lines()
    ]
    assert np.array_equal(read_structure(whole / "trajectory_2.pdb").positions, first.positions)


def test_rows_are_the_energies_of_their_models(whole, control):
    """`rescore` computes them anew, with the control file that stands beside the reports."""
    table = json.loads(run("binding", "--pele", whole, "--precision", "float64", "--json").stdout)
    poses = [pose for pose in table["poses"] if pose["report"] == "report_2"]
    assert len(poses) == len(read_report(whole / "report_2"))
    for pose in poses:
        assert pose["binding"] == pytest.approx(pose["pele_binding"], abs=0.02)  # positions of 0.001 A
    native = read_structure(control.parent / "complex.pdb")
    heavy = (native.labels.chains == "L") & (native.labels.elements != "H")
    report = read_report(whole / "report_2")
    trajectory = whole / "trajectory_2.pdb"
    frames = np.stack([read_structure(trajectory, model).positions for model in model_numbers(trajectory)])
    away = ((frames[:, heavy] - native.positions[heavy]) ** 2).sum(axis=2).mean(axis=1)
    assert report.numbers("ligandRMSD") == pytest.approx(np.sqrt(away), abs=2e-3)


def test_the_journal_has_a_record_a_step(whole):
    head, *lines, end = map(json.loads, (whole / "explore.jsonl").read_text().splitlines())
    assert head["journal"] == "explore"
    assert [own["steps"] for own in end["explorers"]] == [4, 4]
    assert [line["step"] for line in lines] == [0, 1, 2, 3, 4]
    assert lines[-1]["accepted"] == [len(read_report(whole / f"report_{k}")) - 1 for k in (1, 2)]
    assert not (whole / "explore.state").exists()


def test_an_explorer_is_alone(whole, control):
    """Its files are the same without the others."""
    list(exploration(control, control.parent / "alone", explorers=1).run())
    for name in FILES:
        if "_1" in name and not name.startswith("log"):
            assert (control.parent / "alone" / name).read_bytes() == (whole / name).read_bytes()


# Going on


def test_an_interrupted_run_goes_on(whole, control):
    folder = control.parent / "interrupted"
    first = exploration(control, folder).run(state_seconds=0)
    for _ in range(3):  # the initial states and two steps
        next(first)
    first.close()
    with open(folder / "report_1", "ab") as report:  # what came after the state was written down
        report.write(b"1    3    9    -1")
    with open(folder / "explore.jsonl", "ab") as journal:
        journal.write(b'{"schema": 2, "structure": "step 3"')
    found = list(exploration(control, folder).run(resume=True))
    assert [steps.step for steps in found] == [2, 3, 4]
    assert contents(folder) == contents(whole)
    lines = (folder / "explore.jsonl").read_text().splitlines()
    assert lines == (whole / "explore.jsonl").read_text().splitlines()


def test_a_run_that_ended_is_not_overwritten(whole, control):
    before = contents(whole)
    with pytest.raises(InputError, match="this run is complete"):
        next(exploration(control, whole).run(resume=True))
    with pytest.raises(FormatError, match=r"was written with other settings \(explorers\)"):
        next(exploration(control, whole, explorers=1).run(resume=True))
    assert contents(whole) == before


def test_a_seed_of_the_clock_goes_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path, settings(RandomGenerator=None))
    first = exploration(Path("pele.conf"), Path("out"), 1, seed=11).run(state_seconds=0)
    next(first), next(first)
    first.close()
    words = ("explore", "pele.conf", "-o", "out", "--precision", "float64", "--resume", "--json")
    assert json.loads(run(*words).stdout)["seed"] == 11
    Path("out/explore.jsonl").write_text('{"journal": "job", "schema": 1, "settings": {}}\n')
    assert "is not a journal of explorers; choose another folder" in error_of(*words[:-1])


@pytest.mark.parametrize("how", ["left by", "written by"])  # former and present words
def test_a_control_file_of_an_earlier_run_is_replaced(how, tmp_path):
    own, target = tmp_path / "own.conf", tmp_path / "out" / "pele.conf"
    target.parent.mkdir()
    target.write_text(f"// The control file of the run in this folder, {how} pele-ocl explore: before.conf\n{{}}")
    run_files.leave_control(target.parent, own, "{1}", [])
    assert target.read_text().partition("\n")[::2] == (
        "// The control file of the run in this folder, written by pele-ocl explore: own.conf", "{1}"
    )  # fmt: skip
    target.write_text("{}")
    run_files.leave_control(target.parent, own, "{1}", [])
    assert target.read_text() == "{}", "a file of the user"


def test_a_structure_is_no_control_file(tmp_path):
    path = tmp_path / "complex.pdb"
    path.write_text("ATOM\n")
    shown = run("explore", path, "-o", tmp_path / "out", code=1).stderr
    assert "complex.pdb: is a structure; give the file of the ligand as --ligand-file" in shown
    assert not (tmp_path / "out").exists()


def test_a_state_runs_no_code(control):
    """A pickle in place of the state, as earlier versions had: refused, and nothing of it is run."""
    folder = control.parent / "attacked"
    first = exploration(control, folder).run(state_seconds=0)
    next(first)
    first.close()

    class Attack:
        def __reduce__(self):
            return Path.touch, (folder / "ran",)

    state = folder / "explore.state"
    content = state.read_bytes()
    objects = io.BytesIO()
    np.savez(objects, tree=np.array([Attack()], object))
    text = np.frombuffer(json.dumps({"object": "Popen", "fields": {"args": "true"}}).encode(), np.uint8)
    known = io.BytesIO()
    np.savez(known, tree=text)
    for attack in (pickle.dumps(Attack()), objects.getvalue(), known.getvalue(), content[:-100], b""):
        state.write_bytes(attack)
        with pytest.raises(FormatError, match=r"explore.state: is damaged, or from an earlier version.*start again"):
            next(exploration(control, folder).run(resume=True))
    assert not (folder / "ran").exists()
    state.write_bytes(content)
    next(exploration(control, folder).run(resume=True))


def test_other_settings_do_not_go_on(control):
    folder = control.parent / "other"
    first = exploration(control, folder).run(state_seconds=0)
    next(first)
    first.close()
    with pytest.raises(FormatError, match=r"was written with other settings \(seed\)"):
        next(exploration(control, folder, seed=8).run(resume=True))
    for name in ("charges", "gb_radii"):
        other = exploration(control, folder)
        values = getattr(other.groups[0].atoms, name).copy()
        values[0] += 0.01
        other.groups[0].atoms = replace(other.groups[0].atoms, **{name: values})
        with pytest.raises(FormatError, match=r"was written with other settings \(parameters\)"):
            next(other.run(resume=True))
    (folder / "report_2").write_text("nothing\n")
    with pytest.raises(FormatError, match=r"report_2: was changed after the interrupted run"):
        next(exploration(control, folder).run(resume=True))


def test_other_files_do_not_go_on(tmp_path):
    """Rotamers of the ligand and of side chains, modes, native structures: whatever a run reads is compared."""
    metric = {"type": "rmsd", "tag": "r", "Native": {"path": "native.pdb"}, "selection": LIGAND}
    blocks = {"ANM": {"preloadedModesIn": "modes.nmd"}, "SideChainPrediction": {"algorithm": "zhexin"}}
    control = write_run(tmp_path, settings(task_metrics=[metric], task_parametersChanges=None, **blocks))
    lines = [line for line in complex_lines() if line[21:22] != "L" or line[22:26].strip() == "1"]
    (tmp_path / "complex.pdb").write_text("\n".join([*lines, "END", ""]))
    (ligand,) = {line[17:20] for line in lines if line[21:22] == "L"}
    names = ["native.pdb", "modes.nmd", f"Data/LigandRotamerLibs/{ligand}.rot.assign", "Data/RotamerLibs/ASP.side"]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "Data" / "OBC").mkdir()
    run = exploration(control, tmp_path / "out", 1, here=False, parameters=ForceFieldFiles(fallback=True))
    before = run.settings
    for name in names:
        (tmp_path / name).write_text("another one\n")
        after = run.settings
        assert {key for key in before if before[key] != after[key]} == {"other files"}, name
        before = after


def test_data_folders_within_a_given_one_are_found(control):
    """As the force field finds its templates there: rotamers lie in them, too."""
    root = control.parent / "elsewhere"
    (root / "Data" / "OBC").mkdir(parents=True)
    run = exploration(control, control.parent / "out", 1, here=False, parameters=ForceFieldFiles(pele_data=(root,)))
    assert run.data[-1] == root / "Data"


@pytest.mark.slow
def test_a_killed_run_goes_on(control):
    words = [sys.executable, "-m", "pele_ocl", "explore", control, "-n", "2", "--steps", "60", "--precision", "float64"]

    def started(folder: str, *more: str) -> subprocess.Popen:
        return subprocess.Popen([*words, "-o", control.parent / folder, *more], stdout=subprocess.DEVNULL)

    assert started("unkilled").wait() == 0
    killed = started("killed")
    state = control.parent / "killed" / "explore.state"
    deadline = time.monotonic() + 120
    journal = state.with_name("explore.jsonl")
    while not state.exists() or journal.read_text().count("\n") < 12:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    assert started("killed", "--resume").wait() == 0
    assert contents(control.parent / "killed") == contents(control.parent / "unkilled")


def test_all_moves_go_on(tmp_path):
    """Modes, side chains and steering keep what they remember of a walk."""
    blocks = {
        "ANM": {
            "algorithm": "ALPHACARBONS", "options": {"directionGeneration": "oscillate"},
            "parameters": {"displacementFactor": 0.2, "relaxationSpringConstant": 0.5},
            "anmMinimizer": {"parameters": {"MinimumRMS": 3.0, "MaximumNewtonIterations": 5}},
        },
        "SideChainPrediction": {"algorithm": "zhexin", "parameters": {"randomize": False}},
        "PELE_Parameters": {
            "anmFrequency": 1, "sideChainPredictionFrequency": 2, "activateProximityDetection": False,
            "perturbationCOMConstraintConstant": 1.0, "sideChainPredictionRegionRadius": 8, "temperature": 5000,
        },
        "task_PELE_Parameters": {"numberOfPeleSteps": 3},
    }  # fmt: skip
    whole = settings(**blocks)
    whole["commands"][0]["Perturbation"] |= {"translationDirection": "steered"}
    control = write_run(tmp_path, whole)
    list(exploration(control, tmp_path / "whole", 1).run())
    first = exploration(control, tmp_path / "again", 1).run(state_seconds=0)
    next(first), next(first)
    first.close()
    list(exploration(control, tmp_path / "again", 1).run(resume=True))
    log = (tmp_path / "whole" / "log_1.txt").read_text()
    assert "step 2: perturbation, anm, side_chains, minimization" in log
    for name in ("report_1", "trajectory_1.pdb", "log_1.txt"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_explorers_exit_by_conditions(tmp_path):
    control = write_run(tmp_path, settings(task_exitConditions=["numberOfAcceptedPeleSteps >= 1 or currentStep > 3"]))
    found = list(exploration(control, tmp_path / "out", 2).run())
    logs = [(tmp_path / "out" / f"log_{number}.txt").read_text().splitlines()[1:] for number in (1, 2)]
    assert found[-1].step == max(map(len, logs)) <= 3
    assert found[-1].tried.tolist() == list(map(len, logs))
    for number, lines in enumerate(logs, 1):
        assert [": accepted" in line or "; accepted" in line for line in lines][:-1] == [False] * (len(lines) - 1)
        assert "; accepted" in lines[-1] or len(lines) == 3
        assert len(read_report(tmp_path / "out" / f"report_{number}")) <= 2


def test_what_rows_say_is_in_the_record(tmp_path, monkeypatch):
    """Minimizations that a limit ended, an explorer that exits, a row that fails."""
    monkeypatch.chdir(tmp_path)
    minimizer = {"parameters": {"MinimumRMS": 1e-3, "MaximumNewtonIterations": 2, "MaximumMinimizationIterations": 1}}
    conditions = ["numberOfAcceptedPeleSteps >= 1"]
    changes = {"Minimizer": minimizer, "task_exitConditions": conditions, "task_parametersChanges": None}
    write_run(tmp_path, settings(PELE_Parameters={"anmFrequency": 0, "temperature": 1e6}, **changes))
    done = run("explore", "pele.conf", "-o", "out", "--precision", "float64", "--json")
    (explorer,) = json.loads(done.stdout)["explorers"]
    limited = {"text": "the minimization did not converge (iterations)", "steps": [1]}
    assert explorer["notes"] == [
        limited, {"text": "ended before this step, because an exit condition is true", "steps": [2]},
    ]  # fmt: skip
    assert explorer["failures"] == []
    assert "Note: the minimization did not converge (iterations), in 1 step" in done.stderr
    assert (tmp_path / "out" / "log_1.txt").read_text().endswith("; the minimization did not converge (iterations)\n")


def test_failures_of_steps_are_said(control, monkeypatch):
    def fail(self, walk, rows):
        walk.failures[rows[-1]] = "it broke"

    monkeypatch.setattr("pele_ocl.explore.Minimization.apply", fail)
    found = exploration(control, control.parent / "failing", 2, steps=2)
    list(found.run())
    assert {number: said.failures for number, said in said_of([found.files.journal]).items()} == {
        2: {"it broke": [1, 2]}
    }


def test_files_of_an_earlier_run_are_removed_and_told(tmp_path):
    control, folder = write_run(tmp_path), tmp_path / "out"
    list(exploration(control, folder, 3, steps=0).run())
    (folder / "report_9").write_text("another's\n")
    assert len(list(folder.glob("*_3*"))) == 6
    fewer = exploration(control, folder, 2, steps=0)
    list(fewer.run())
    assert fewer.notes[-1].endswith("the files of explorers 3 to 3 of an earlier run there were removed")
    assert not list(folder.glob("*_3*"))
    assert sorted(path.name for path in folder.glob("report_*")) == ["report_1", "report_2", "report_9"]


def test_pages_of_an_earlier_run_are_removed_with_its_journals(tmp_path):
    control, folder = write_run(tmp_path), tmp_path / "out"
    parts = [exploration(control, folder, 2, part=Shard(k, 2), steps=0) for k in (1, 2)]
    for part in parts:
        list(part.run())
        part.files.page().write_text("page\n")
    kept = [folder / name for name in ("explore_mine.html", "report.html")]
    for path in [folder / "explore_2.2of2.html", *kept]:
        path.write_text("page\n")
    list(parts[1].run())
    assert sorted(folder.glob("*.html")) == [folder / "explore.1of2.html", *kept]  # which the other part has just made
    next(exploration(control, folder, 2, steps=0).run())
    assert sorted(folder.glob("*.html")) == kept
    (folder / "explore_2.html").write_text("page\n")  # which workers' runs have, too, with journals of parts
    parts[0].begin_anew(parts[0].files.parts(2))
    assert sorted(folder.glob("*.html")) == kept


def test_inputs_are_neither_written_over_nor_removed(tmp_path):
    """A complex that is a file of the run, and one that a run of fewer explorers would remove."""
    control, folder = write_run(tmp_path), tmp_path / "out"
    list(exploration(control, folder, 2, steps=0).run())
    before = {path: path.read_bytes() for path in folder.iterdir()}
    source = folder / "final_2.pdb"
    with pytest.raises(FormatError, match=r"final_2.pdb: the same file as the input .*; choose another folder"):
        exploration(control, folder, 2, complexes=[source])
    with pytest.raises(FormatError, match=r"final_2.pdb: the same file as the input"):
        next(exploration(control, folder, 1, complexes=[source]).run())
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_runs_of_other_reports_do_not_share_a_folder(tmp_path):
    """They would write over each other's journal and state."""
    output = {"reportPath": "out/other", "trajectoryPath": "out/other.pdb"}
    control, other = write_run(tmp_path), tmp_path / "other.conf"
    other.write_text(json.dumps(settings(PELE_Output=output)))
    list(exploration(control, tmp_path / "out", 1, steps=0).run())
    before = {path: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    with pytest.raises(FormatError, match=r"explore.jsonl: belongs to a run with reports report_N; choose another"):
        exploration(other, tmp_path / "out", 1, steps=0)
    assert {path: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


def test_two_processes_remove_what_an_earlier_run_left(tmp_path, monkeypatch):
    """The other one is first: the journal that was found there is gone when it is read."""
    control, folder = write_run(tmp_path), tmp_path / "out"
    list(exploration(control, folder, 2, steps=0).run())
    own = run_files.read_journal
    left = (folder / "explore.jsonl").read_bytes()
    monkeypatch.setattr(run_files, "read_journal", lambda path: path.unlink() or own(path))
    part = exploration(control, folder, 2, steps=0, part=Shard(1, 2))
    (folder / "explore.jsonl").write_bytes(left)
    list(part.run())
    assert not (folder / "explore.jsonl").exists()


# Several processes


def test_parts_have_the_files_of_the_whole(tmp_path):
    """Two parts of three explorers, of two complexes; each part goes on by itself."""
    control = write_run(tmp_path)
    complexes = [write_complex(tmp_path / f"complex_{k}.pdb", shift) for k, shift in enumerate((0.0, 4.0))]
    options = {"complexes": complexes, "steps": 2}
    whole = exploration(control, tmp_path / "whole", 3, **options)
    list(whole.run())
    parts = [exploration(control, tmp_path / "parts", 3, part=Shard(k, 2), **options) for k in (2, 1)]
    assert [own.numbers for part in parts for own in part.groups] == [[2, 3], [1]]
    first = parts[0].run(state_seconds=0)
    next(first), next(first)
    first.close()
    with pytest.raises(FormatError, match=r"explore.2of2.jsonl: this run was of 2 parts; continue with as many"):
        next(exploration(control, tmp_path / "parts", 3, **options).run(resume=True))
    list(exploration(control, tmp_path / "parts", 3, part=Shard(2, 2), **options).run(resume=True))
    list(parts[1].run())
    for path in sorted((tmp_path / "whole").glob("*_*")):
        assert path.read_bytes() == (tmp_path / "parts" / path.name).read_bytes(), path.name
    journals = [part.files.journal for part in parts]
    ends = [[own["energy"] for own in ends_of(of)[0]] for of in (journals, [whole.files.journal])]
    assert ends[0] == ends[1]
    list(exploration(control, tmp_path / "parts", 3, **options).run())
    assert not any(path.exists() for path in journals)


def test_a_whole_run_does_not_go_on_in_parts(tmp_path):
    control = write_run(tmp_path)
    next(exploration(control, tmp_path / "out").run())
    with pytest.raises(FormatError, match="this run was of one part; continue with one process"):
        next(exploration(control, tmp_path / "out", part=Shard(1, 2)).run(resume=True))


def test_processes_of_a_launcher_share_explorers(tmp_path, monkeypatch):
    """Three processes of mpirun, of which two have a part; the third has nothing to do."""
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path)
    words = ("explore", "pele.conf", "-n", "4", "--steps", "0", "--precision", "float64", "--ranks", "2", "-o", "out")
    assert "--shard mpi/2 needs 2 processes, started by mpirun or srun; there are 1" in run(*words, code=1).output
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "3")
    monkeypatch.setattr("os.cpu_count", lambda: 1 << 16)  # so that this process keeps its cores
    for rank in ("0", "1", "2"):
        monkeypatch.setenv("OMPI_COMM_WORLD_RANK", rank)
        monkeypatch.setenv("OMPI_COMM_WORLD_LOCAL_RANK", rank)
        assert ("2 explorers of 129 atoms" in run(*words).output) is (rank != "2")
    assert sorted(path.name for path in (tmp_path / "out").glob("report_*")) == [f"report_{k}" for k in (1, 2, 3, 4)]
    assert (tmp_path / "out" / "explore.2of2.html").exists()
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "1")  # no error ends the launcher, if others have steps left
    assert "2 explorers of 129 atoms" in run(*words, "--resume").output


def test_ranks_without_explorers_take_no_cores(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path)
    shared = []
    monkeypatch.setattr("pele_ocl.explore.running.device_of_rank", lambda choice, ranks: shared.append(ranks) or choice)
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    words = ("explore", "pele.conf", "-n", "2", "--steps", "0", "--precision", "float64", "--ranks", "4", "-o", "out")
    for rank in ("0", "1", "2", "3"):
        monkeypatch.setenv("OMPI_COMM_WORLD_RANK", rank)
        assert ("1 explorer of 129 atoms" in run(*words).output) is (rank in "01")
    assert shared == [2, 2]


def test_the_program_of_a_launcher_runs_where_it_has_a_part(monkeypatch):
    ran = []
    monkeypatch.setattr("pele_ocl.__main__.run", lambda: ran.append(sys.argv[1]))
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "3")
    for rank, words, times in (("0", [], 1), ("1", [], 1), ("1", ["--ranks", "2"], 2), ("2", ["--ranks=2"], 3)):
        monkeypatch.setenv("OMPI_COMM_WORLD_RANK", rank)
        monkeypatch.setattr("sys.argv", ["pele-ocl-explore", "pele.conf", *words])
        before = len(ran)
        run_as_explore()
        assert ran == ["explore"] * times
        assert (sys.argv[1:4] == ["explore", "--overwrite", "pele.conf"]) is (len(ran) > before)  # as PELE does
    monkeypatch.setattr("sys.argv", ["pele-ocl-explore", "pele.conf", "--resume", "--shard", "mpi"])
    run_as_explore()
    assert sys.argv[1:] == ["explore", "pele.conf", "--resume", "--shard", "mpi"]


def test_seeds_of_the_clock_are_refused_to_parts(tmp_path):
    control = write_run(tmp_path, settings(RandomGenerator=None))
    with pytest.raises(InputError, match="has no seed, but all processes need the same one; give `seed`"):
        exploration(control, tmp_path / "out", part=Shard(1, 2))


def test_a_part_of_a_dead_worker_goes_on(control, monkeypatch):
    """Its next worker repeats no step, and a part at its end is not run again."""
    folder, made = control.parent / "dead", list[int]()
    first = exploration(control, folder, 1, steps=2)
    dead, group = first.run(state_seconds=0), type(first.groups[0])
    step = group._step
    next(dead), next(dead)  # the initial state and a step
    dead.close()
    monkeypatch.setattr(group, "_step", lambda *given: (made.append(given[-1]), step(*given))[1])
    options = {"precision": "float64", "device": str(DEVICES[0].index), "steps": 2, "text": control.read_text()}
    work = ExploreWork(read_simulation(control), 1, {"folder": folder, **options})
    for _ in range(2):
        work.compute(Shard(1, 1))
    assert made == [2]
    again = exploration(control, folder, 1, steps=2, here=False)
    again.begin_anew(again.files.parts(2))
    assert not list(folder.glob("explore*"))


@pytest.mark.slow
def test_workers_write_the_same(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path)
    words = ("explore", "pele.conf", "-n", "4", "--precision", "float64", "--json")
    here, there = (json.loads(run(*words, "-o", *more).stdout) for more in (("here",), ("there", "--workers", "2")))
    assert [own["energy"] for own in here["explorers"]] == [own["energy"] for own in there["explorers"]]
    for path in sorted(Path("here").glob("*_*")):
        assert path.read_bytes() == Path("there", path.name).read_bytes(), path.name
    assert (
        len(json.loads(run(*words[:-1], "-o", "there", "--resume", "--workers", "2", "--json").stdout)["explorers"])
        == 4
    )


def test_launchers_tell_the_number_on_a_host():
    assert launchers.local_rank({}) == 0
    assert launchers.local_rank({"SLURM_LOCALID": "3"}) == 3
    assert launchers.local_size({}) == 1
    assert (
        launchers.local_size({"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "5"}) == 1
    )  # perhaps over several hosts
    assert launchers.local_size({"SLURM_STEP_TASKS_PER_NODE": "4(x2),3"}) == 4


def test_processes_of_a_host_take_equal_devices_by_turns(monkeypatch):
    class Listed(str):
        index: int
        kind = "GPU"

    devices = [Listed(title) for title in ("GPU", "GPU", "CPU")]
    for index, device in enumerate(devices):
        device.index = index
    monkeypatch.setattr("pele_ocl.opencl.device.fitting_devices", lambda choice: tuple(devices))
    monkeypatch.setattr("pele_ocl.jobs.launchers.local_rank", iter((0, 1, 2)).__next__)
    assert [launchers.device_of_rank(None, 1) for _ in range(3)] == ["0", "1", "0"]


def test_processes_of_a_host_share_its_cores(monkeypatch):
    """Layouts go by all cores; what a launcher has bound stays, and so does a single process."""
    kept, fixed = [], []
    monkeypatch.setattr("pele_ocl.jobs.launchers.stay_on", kept.append)
    monkeypatch.setattr("pele_ocl.opencl.device.fix_device", lambda device, units: fixed.append(units))
    monkeypatch.setattr("pele_ocl.jobs.launchers.own_cores", lambda: tuple(range(10)))
    monkeypatch.setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "5")
    cpu = SimpleNamespace(index=0, kind="CPU")
    monkeypatch.setattr("pele_ocl.opencl.device.fitting_devices", lambda choice: (cpu,))
    for of_host, rank, ranks in ((10, 0, 4), (10, 3, 4), (10, 3, 8), (16, 0, 4), (10, 0, 1)):
        monkeypatch.setattr("os.cpu_count", lambda n=of_host: n)
        monkeypatch.setenv("OMPI_COMM_WORLD_LOCAL_RANK", str(rank))
        launchers.device_of_rank(None, ranks)
    assert kept == [(0, 1), (6, 7), (6, 7)]
    assert fixed == [10, 10, 10]


# Tasks


@pytest.fixture(scope="module")
def two_tasks(tmp_path_factory) -> Path:
    """Control file of a task that ends with its first accepted step, and one that has another metric."""
    last = {
        "PELE_Parameters": {"numberOfPeleSteps": 2},
        "metrics": [{"type": "distanceToPoint", "tag": "away", "point": [0, 0, 0], "atoms": LIGAND}],
    }  # fmt: skip
    whole = settings(task_exitConditions=["numberOfAcceptedPeleSteps >= 1"])
    whole["commands"][0]["PeleTasks"].append(last)
    return write_run(tmp_path_factory.mktemp("tasks"), whole)


def test_tasks_are_run_one_after_the_other(two_tasks):
    folder = two_tasks.parent / "whole"
    found = list(exploration(two_tasks, folder).run())
    records = [json.loads(line) for line in (folder / "explore.jsonl").read_text().splitlines()[1:-1]]
    for k in (0, 1):
        report = read_report(folder / f"report_{k + 1}")
        assert report.names[4:] == ("Binding Energy", "sasaLig", "ligandRMSD", "away")
        rows = [(row[0], int(row[1]), int(row[2]), row[4] == "nan", row[7] == "nan") for row in report.rows]
        first = next(record["step"] for record in records[1:] if record["is_accepted"][k])
        assert rows[:2] == [("1", 0, 0, False, True), ("1", first, 1, False, True)]
        assert rows[2:] == [("2", rows[j][1], j, True, False) for j in range(2, len(rows))]
        assert first + 2 == found[-1].tried[k]
        log = (folder / f"log_{k + 1}.txt").read_text().splitlines()[1:]
        assert [line.split(":")[0] for line in log] == [f"step {step}" for step in range(1, first + 3)]
    again = exploration(two_tasks, two_tasks.parent / "again").run(state_seconds=0)
    while next(again).step < len(found) - 2:  # into the second task
        pass
    again.close()
    list(exploration(two_tasks, two_tasks.parent / "again").run(resume=True))
    assert contents(folder) == contents(two_tasks.parent / "again")


def test_a_task_that_ends_before_its_first_step_says_where_its_explorers_are(tmp_path):
    """Energies have its constraints, and metrics are its own."""
    held = {"type": "constrainAtomToPosition", "springConstant": 5.0, "constrainThisAtom": "L:2:_CA_"}
    held |= {"toThisPoint": [0.0, 0.0, 0.0]}
    away = {"type": "distanceToPoint", "tag": "away", "point": [0, 0, 0], "atoms": LIGAND}
    last = {"PELE_Parameters": {"numberOfPeleSteps": 2}, "constraints": [held], "metrics": [away]}
    whole = settings(task_metrics=[], task_parametersChanges=None, task_PELE_Parameters={"numberOfPeleSteps": 1})
    whole["commands"][0]["PeleTasks"].append({**last, "exitConditions": ["currentStep >= 1"]})
    run = exploration(write_run(tmp_path, whole), tmp_path / "out", 1)
    before = list(run.run())[-1].energies[0]
    (end,) = ends_of([run.files.journal])[0]
    assert end["steps"] == 1
    assert end["energy"] > before + 100
    assert end["metrics"]["away"] > 5


def test_tasks_have_random_numbers_of_their_own(two_tasks):
    """Both tasks begin with step 1 of their frequencies, and draw other moves."""
    keys = {task_seed(seed, number) for seed in range(50) for number in range(20)}
    assert len(keys) == 50 * 20
    assert task_seed(7, 0) == 7


# Complexes


def test_of_a_structure_that_is_missing_the_way_out_is_named(tmp_path):
    control = write_run(tmp_path)
    (tmp_path / "complex.pdb").unlink()
    with pytest.raises(InputError, match=r"complex\.pdb does not exist; put it there, or give another as `complexes`"):
        exploration(control, tmp_path / "out", 1)


def test_complexes_are_given_in_turn(tmp_path):
    control = write_run(tmp_path)
    paths = [write_complex(tmp_path / f"complex_{k}.pdb", shift) for k, shift in enumerate((0.0, 4.0))]
    found = exploration(control, tmp_path / "out", 3, complexes=paths, steps=0)
    (group,) = found.groups
    assert found.sources == [paths[0], paths[1], paths[0]]
    list(found.run())
    first, second, third = (read_structure(tmp_path / "out" / f"trajectory_{k}.pdb").positions for k in (1, 2, 3))
    assert np.array_equal(first, third)
    assert (second - first)[-1].tolist() == pytest.approx([4, 0, 0])
    assert group.numbers == [1, 2, 3]


def test_different_molecules_are_explored_one_after_the_other(tmp_path):
    control = write_run(tmp_path)
    other = tmp_path / "other.pdb"
    other.write_text("\n".join([line for line in complex_lines() if line[17:20] != "MET"]) + "\n")
    found = exploration(control, tmp_path / "out", 2, complexes=[tmp_path / "complex.pdb", other], steps=1)
    assert [group.numbers for group in found.groups] == [[1], [2]]
    assert [(steps.numbers, steps.step) for steps in found.run()] == [((1,), 0), ((1,), 1), ((2,), 0), ((2,), 1)]
    names = [
        json.loads(line).get("structure") for line in (tmp_path / "out" / "explore.jsonl").read_text().splitlines()
    ]
    assert names == [None, "step 0", "step 1", "molecule 2, step 0", "molecule 2, step 1", "end"]


def test_molecules_that_are_done_are_told_of_again(tmp_path):
    control = write_run(tmp_path)
    other = tmp_path / "other.pdb"
    other.write_text("\n".join([line for line in complex_lines() if line[17:20] != "MET"]) + "\n")

    def started() -> Exploration:
        return exploration(control, tmp_path / "out", 2, complexes=[tmp_path / "complex.pdb", other], steps=1)

    first = started().run(state_seconds=0)
    for _ in range(3):  # all of the first molecule, and the other one's initial state
        next(first)
    first.close()
    found = [(steps.numbers, steps.step) for steps in started().run(resume=True)]
    assert found == [((1,), 1), ((2,), 0), ((2,), 1)]


def test_boxes_are_about_each_complex(tmp_path):
    whole = settings()
    whole["commands"][0]["Perturbation"]["Box"] = {
        "type": "sphericalBox", "radius": 0.5, "selectionOfAtomsForCOM": {"chains": {"names": ["L"]}},
    }  # fmt: skip
    control = write_run(tmp_path, whole)
    paths = [write_complex(tmp_path / f"complex_{k}.pdb", shift) for k, shift in enumerate((0.0, 4.0))]
    found = exploration(control, tmp_path / "out", 2, complexes=paths, steps=1)
    list(found.run())
    walk = found.groups[0].explorers.walk
    centers = [walk.center(start) for start in found.groups[0].starts]
    for own, center in zip(walk.settings, centers, strict=True):
        assert own.box.center == pytest.approx(center, abs=1e-9)
    assert found.notes == ()


def test_a_ligand_outside_of_its_box_is_told_of(tmp_path):
    whole = settings()
    whole["commands"][0]["Perturbation"]["Box"]["fixedCenter"] = [100.0, 0.0, 0.0]
    (note,) = exploration(write_run(tmp_path, whole), tmp_path / "out").notes
    assert note.endswith(
        "complex.pdb: the ligand's centre is initially outside of the box; steps that leave it there are rejected"
    )


def test_a_native_structure_that_lacks_atoms_is_told_of(tmp_path):
    metric = {"type": "rmsd", "tag": "r", "Native": {"path": "native.pdb"}, "selection": {"chains": {"names": ["L"]}}}
    control = write_run(tmp_path, settings(task_metrics=[metric], task_parametersChanges=None))
    lines = [line for line in complex_lines() if line[21:22] != "L" or line[12:16].strip() in ("N", "CA", "C")]
    (tmp_path / "native.pdb").write_text("\n".join([*lines, "END", ""]))
    (note,) = exploration(control, tmp_path / "out", 1).notes
    assert re.search(r"metrics\[0\] uses 9 of the 16 selected atoms, because native.pdb contains no others", note)


def test_constraints_hold_each_explorer_where_it_began(tmp_path):
    held = {"type": "constrainAtomToPosition", "springConstant": 5.0, "constrainThisAtom": "L:2:_CA_"}
    control = write_run(tmp_path, settings(constraints=[held]))
    paths = [write_complex(tmp_path / f"complex_{k}.pdb", shift) for k, shift in enumerate((0.0, 4.0))]
    found = exploration(control, tmp_path / "out", 2, complexes=paths, steps=0)
    walk = found.groups[0].explorers.walk
    terms = walk.ensemble.terms([0, 1]).columns()
    assert terms["constraints_5"].tolist() == [0, 0]


# The command


def test_the_command_reports(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path)
    words = ("explore", "pele.conf", "-n", 2, "--steps", 1, "--precision", "float64")
    record = json.loads(run(*words, "--json").stdout)
    assert (record["structure"], record["n_atoms"], record["seed"]) == ("pele.conf", 129, 7)
    assert [one["explorer"] for one in record["explorers"]] == [1, 2]
    assert set(record["explorers"][0]["metrics"]) == NAMES
    assert record["is_search"] is True
    assert record["explorers"][0]["steps"] == 1
    before = {path: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    refusal = error_of(*words)
    assert "out: already contains a run; continue it with --resume, replace it with --overwrite" in refusal
    assert "replace it with --overwrite" in refusal
    assert {path: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before
    assert record["device"] in run(*words, "--overwrite").stdout
    CHECK.validate(record)
    assert (tmp_path / "out" / "report_2").exists()
    text = run(*words, "-o", "elsewhere").stdout
    assert "2 explorers of 129 atoms, seed 7" in text
    assert "not a Boltzmann sample" in text
    assert "Last state of each explorer, lowest energy first; energies in kcal/mol, lengths in A\nexplorer" in text
    assert "Page with all states: elsewhere/explore.html" in text
    assert (tmp_path / "elsewhere" / "trajectory_1.pdb").exists()
    page = (tmp_path / "elsewhere" / "explore.html").read_text()
    data = json.loads(re.search(r'type="application/json">(.*?)</script>', page, re.DOTALL)[1])
    rows = [row for k in (1, 2) for row in read_report(tmp_path / "elsewhere" / f"report_{k}").rows]
    assert data["columns"]["currentEnergy"]["values"] == [float(row[3]) for row in rows]
    assert data["axes"][1] == "Binding Energy"
    assert "elsewhere/explore.html" in text
    (tmp_path / "elsewhere" / "explore.html").unlink()  # as if the run was killed before it was written
    assert "elsewhere/explore.html" in run(*words, "-o", "elsewhere", "--resume").stdout
    assert (tmp_path / "elsewhere" / "explore.html").read_text() == page
    assert "this run is complete" in error_of(*words, "-o", "elsewhere", "--resume")


def test_python_runs_what_the_command_runs(tmp_path, monkeypatch):
    """Files are the same bytes, the record is the same but for times; the result reads its reports; parts go on."""
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path)
    words = ("explore", "pele.conf", "-n", 2, "--steps", 1, "--precision", "float64", "--seed", 5)
    record = json.loads(run(*words, "-o", "command", "--json", "--fill", "OTHER=1").stdout)
    shares = []
    options = {"explorers": 2, "steps": 1, "seed": 5, "precision": "float64"}
    result = pele_ocl.explore("pele.conf", output="python", progress=shares.append, set={"OTHER": "1"}, **options)
    assert shares[-1] == 1
    for path in Path("command").glob("*_*"):
        assert path.read_bytes() == Path("python", path.name).read_bytes(), path.name
    del record["seconds"]
    found = json.loads(json.dumps(result.to_json()))
    assert found == {**record, "report": "python/report", "trajectory": "python/trajectory.pdb"}
    states, table = result.states(), result.table()
    assert states["explorer"].tolist() == [k for k in (1, 2) for _ in read_report(f"python/report_{k}").rows]
    assert table["energy"].tolist() == sorted(own["energy"] for own in record["explorers"])
    assert "2 explorers of 129 atoms, seed 5" in repr(result)
    assert [path.name for path in result.trajectories] == ["trajectory_1.pdb", "trajectory_2.pdb"]
    result.save("copy")
    assert {path.name for path in Path("copy").glob("report_*")} == {"report_1", "report_2"}
    parts = [pele_ocl.explore("pele.conf", output="parts", shard=f"{k}/2", **options) for k in (1, 2)]
    assert [own["energy"] for part in parts for own in part.explorers] == [own["energy"] for own in record["explorers"]]
    with pytest.raises(InputError, match="this run is complete"):
        pele_ocl.explore("pele.conf", output="python", resume=True, **options)


def test_a_run_in_the_folder_is_refused_unless_it_is_to_be_replaced(tmp_path, monkeypatch):
    """Of the same and of fewer explorers, of another number of parts, of workers, and files that have no journal."""
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path)
    explore = partial(pele_ocl.explore, "pele.conf", steps=0, device=str(DEVICES[0].index))

    def refused(message: str, **words):
        folder = Path(words.get("output", "out"))
        before = {path: path.read_bytes() for path in folder.iterdir()}
        with pytest.raises(FormatError, match=message) as caught:
            explore(**words)
        assert caught.value.code == "exists"
        assert {path: path.read_bytes() for path in folder.iterdir()} == before

    for words in ({"explorers": 2}, {"output": "parts", "explorers": 2, "shard": "1/2"}):
        explore(**words)
        refused("already contains a run; continue it with `resume=True`, replace it with `overwrite=True`", **words)
        refused("already contains a run", **{**words, "shard": None})
        refused("already contains a run", **{**words, "shard": None, "explorers": 1, "workers": 2})
    refused("already contains a run", explorers=2, shard="1/2")
    explore(output="parts", explorers=2, shard="2/2")  # its folder has the other part
    with pytest.raises(InputError, match="choose one of `resume` and `overwrite`"):
        explore(resume=True, overwrite=True)
    fewer = explore(explorers=1, overwrite=True)
    assert fewer.notes[-1].endswith("the files of explorers 2 to 2 of an earlier run there were removed")
    assert not list(Path("out").glob("*_2*"))
    Path("pele").mkdir()  # a run of PELE itself
    Path("pele/report_1").write_text("report\n")
    for resume in (False, True):
        refused("pele/report_1: already exists; replace it with", output="pele", explorers=2, resume=resume)
    Path("pele/report_1").rename("pele/report_2")
    assert explore(output="pele").reports == [Path("pele/report_1")]


def test_xtc(tmp_path):
    md = pytest.importorskip("mdtraj")
    output = {"reportPath": "out/report", "trajectoryPath": "out/trajectory.xtc"}
    control = write_run(tmp_path, settings(PELE_Output=output))
    done = exploration(control, tmp_path / "out", 1, steps=2)
    list(done.run())
    assert write_pages(done)[0].exists()
    frames = md.load(str(tmp_path / "out" / "trajectory_1.xtc"), top=str(tmp_path / "complex.pdb"))
    assert len(frames) == len(read_report(tmp_path / "out" / "report_1"))
    native = read_structure(tmp_path / "complex.pdb").positions
    assert 10 * frames.xyz[0] == pytest.approx(native, abs=0.006)


@pytest.mark.parametrize(
    ("changes", "words", "message"),
    [
        ({"WaterPerturbation": {"a": 1}}, (), "not supported: WaterPerturbation"),
        ({"PELE_Output": {"trajectoryPath": "out/a.dcd", "reportPath": "r"}}, (), "trajectories end in .pdb or .xtc"),
        ({"selectionToPerturb": {"chains": {"names": ["Z"]}}}, (), "no atom of the structure|has no atom"),
        ({}, ("--complex", "absent.pdb"), "absent.pdb"),
        ({"PELE_Output": {}}, (), "has no reportPath; give a folder as --output"),
        ({"PELE_Output": {"reportPath": "$OUTPUT_PATH/report"}}, (), "in place of this word, by explore's --set"),
    ],
)
def test_refusals_come_before_any_step(tmp_path, monkeypatch, changes, words, message):
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path, settings(**changes))
    assert re.search(message, error_of("explore", "pele.conf", *words))
    assert not (tmp_path / "out").exists()


def test_progress_tells_what_matters(monkeypatch):
    seconds = iter([0.0, 0.0, 0.0, 36.0, 36.0, 36.0])
    monkeypatch.setattr("time.monotonic", lambda: next(seconds, 36.0))
    line = ExploreLine()
    columns = ("Binding Energy",)
    energies, binding = np.array([-5.0, -7.5]), np.array([[-1.0], [2.0]])
    for step, accepted in ((0, [0, 0]), (2, [1, 2])):
        is_new = np.zeros(2, bool)
        line.tell(
            Steps(
                step, 8, (1, 2), np.array([step, step]), np.array(accepted), energies, columns, binding, is_new, {}, {}
            )
        )
    assert (
        line.told(0.25, 0.25, 36.0)
        == "step 2 of 8, 400 steps/h, 75% accepted, best energy -7.5, best binding -1, 108 s left"
    )


def test_progress_of_workers_counts_steps(tmp_path):
    """A part of five steps wrote the head, the initial states and two steps; the other one begins anew."""
    first, second = (tmp_path / f"explore.{k}of2.jsonl" for k in (1, 2))
    parts, line = PartsFollowed([first, second], 5, 8), ExploreLine()
    assert parts.look() == 0
    first.write_text("head\ninitial\none\ntwo\ncut o")
    second.write_text("head\ninitial\none\n")
    assert parts.look() == 0.3
    assert parts.look() == 0.3
    first.write_text("head\ninitial\none\ntwo\ncut off\n")
    second.write_text("head\n")
    assert parts.look() == 0.3
    parts.first, line.parts = 0.2, parts
    assert line.told(0.5, 0.5, 36.0) == "step 3 of 5, 1,600 steps/h, 36 s left"


def test_names_of_files():
    assert numbered("a/trajectory.pdb", 12) == Path("a/trajectory_12.pdb")
    assert numbered("a/report", 3) == Path("a/report_3")


def test_launchers_are_asked():
    assert launchers.launched({}) == (0, 1)
    assert launchers.launched({"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "5"}) == (2, 5)
    assert launchers.launched({"PMI_RANK": "0", "PMI_SIZE": "3"}) == (0, 3)
    assert launchers.launched({"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "4"}) == (1, 4)
    assert launchers.launched({"SLURM_PROCID": "0", "SLURM_NTASKS": "4"}) == (0, 1)  # a batch script, without srun


def test_the_program_runs_once_under_a_launcher(tmp_path):
    """Three processes, as mpirun -np 3 starts them: the first runs two explorers, the others do nothing."""
    write_run(tmp_path, settings(task_PELE_Parameters={"numberOfPeleSteps": 1}))
    program = [sys.executable, "-c", "from pele_ocl.__main__ import run_as_explore; run_as_explore()", "pele.conf"]
    for rank in (2, 1, 0):
        known = {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": "3"}
        done = subprocess.run(program, cwd=tmp_path, env={**os.environ, **known}, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "out").exists() is (rank == 0)
    assert sorted(path.name for path in (tmp_path / "out").glob("report_*")) == ["report_1", "report_2"]


def test_the_folder_of_a_run_is_rescored(tmp_path, monkeypatch):
    """It holds the control file with its words filled in and a way to the parameters; the energies are the run's."""
    monkeypatch.chdir(tmp_path)
    control = pele_ocl.explore.write_example(tmp_path / "case")
    control.write_text(control.read_text().replace('"numberOfPeleSteps": 12', '"numberOfPeleSteps": $PELE_STEPS'))
    result = pele_ocl.explore(control, "out", steps=1)
    assert result.states()["ligandRMSD"][0] == 0  # not 2e-17
    left = tmp_path / "out" / "pele.conf"
    assert '"numberOfPeleSteps": 1' in left.read_text()
    found = pele_ocl.rescore("out")
    poses = found.poses
    assert found.run.own
    assert poses.total[0] == pytest.approx(poses.pele_total[0], abs=2e-3)
    assert poses.binding[0] == pytest.approx(poses.pele_binding[0], abs=2e-3)
    pele_ocl.explore(control, "out", steps=0, overwrite=True)
    assert '"numberOfPeleSteps": 0' in left.read_text()  # replaced, as it is ours
    (other := tmp_path / "own").mkdir()
    (other / "pele.conf").write_text("{}")
    pele_ocl.explore(control, other, steps=0)
    assert (other / "pele.conf").read_text() == "{}"  # the user's stays


def test_words_without_a_value_are_told_together(tmp_path):
    control = pele_ocl.explore.write_example(tmp_path / "case")
    text = control.read_text().replace('"seed": 1', '"seed": $SEED').replace('"radius": 6.0', '"radius": $RADIUS')
    text = text.replace('"ionicStrength": 0.15', '"ionicStrength": $STRENGTH')
    control.write_text(text)
    with pytest.raises(
        FormatError,
        match=r"is '\$STRENGTH'; expected a value in place of each of the words \$STRENGTH, \$SEED, \$RADIUS, by",
    ):
        pele_ocl.explore(control, tmp_path / "out")
