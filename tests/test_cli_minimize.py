"""`pele-ocl minimize`: one structure, many, models and trajectories, and the fate of failed ones."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import DEVICES
from test_cli import HEXAPEPTIDE, error_of, on_the_chosen_device, run  # noqa: F401
from trajectory_helpers import write_trajectory

import pele_ocl
from pele_ocl import energy, read, trajectory
from pele_ocl.formats import read_structure

QUICK = ("--tolerance", "2", "--max-iterations", "200")
FIELDS = (
    "schema structure sha256 n_atoms composition device method precision settings energy_before energy_after "
    "rms_gradient largest_gradient iterations evaluations stopped_by restored rms_displacement seconds "
    "rounding_gradient findings notes note_codes"
).split()


@pytest.fixture(scope="module")
def peptide():
    return read(HEXAPEPTIDE)


def shaken(folder: Path, peptide, n: int) -> list[Path]:
    """PDB files of the peptide with noise."""
    rng, lines = np.random.default_rng(0), HEXAPEPTIDE.read_text().splitlines()
    paths = []
    for k in range(n):
        places = iter(peptide.positions + rng.normal(0, 0.05, peptide.positions.shape))
        moved = [
            f"{line[:30]}{'{:8.3f}{:8.3f}{:8.3f}'.format(*next(places))}{line[54:]}"
            for line in lines
            if line.startswith("ATOM")
        ]
        paths.append(folder / f"p{k}.pdb")
        paths[-1].write_text("\n".join([*moved, "END\n"]))
    return paths


def rows_of(*arguments, code=0):
    return [json.loads(line) for line in run("minimize", *arguments, "--json", code=code).stdout.splitlines()]


def test_a_gradient_that_the_decimals_of_the_file_do_not_have_is_told(peptide, tmp_path):
    """Three decimals of a PDB file are coarser than a minimum; the six of mmCIF are not."""
    source, tight = HEXAPEPTIDE, ("--tolerance", 0.02, "--max-iterations", 2000)
    told = {}
    for name in ("m.pdb", "m.cif"):
        result = run("minimize", source, "-o", tmp_path / name, *tight, "--json")
        row = json.loads(result.stdout)
        assert row["rms_gradient"] <= 0.02
        told[name] = row["rounding_gradient"], "have more digits" in result.stderr
        of_file = energy(read(tmp_path / name), precision="float64").gradient
        rms = np.sqrt((of_file**2).sum() / len(peptide))
        if name == "m.cif":
            assert rms < 0.025
        else:
            assert row["rounding_gradient"] == pytest.approx(rms, rel=0.3)
    assert told["m.pdb"][1]
    assert not told["m.cif"][1]
    assert told["m.cif"][0] < 0.002


def test_one_structure_is_lower_and_keeps_its_names(peptide, tmp_path):
    (source,) = shaken(tmp_path, peptide, 1)
    target = tmp_path / "relaxed.cif"
    (row,) = rows_of(source, "-o", target, "--tolerance", "1kcal/mol/A")
    assert list(row) == FIELDS
    assert row["findings"]  # of a shaken start
    assert row["structure"] == str(source)
    assert row["energy_after"]["total"] < row["energy_before"]["total"] - 10
    assert row["energy_before"]["total"] == pytest.approx(energy(read(source)).total, abs=0.01)
    assert row["rms_gradient"] <= 1
    assert row["stopped_by"] == "gradient"
    relaxed = read(target)
    assert energy(relaxed).total == pytest.approx(row["energy_after"]["total"], abs=0.1)  # of four decimals
    assert [str(r) for r in relaxed.labels.residues] == [str(r) for r in peptide.labels.residues]
    assert not list(tmp_path.glob("*.jsonl"))
    text = run("minimize", source, "-o", tmp_path / "again.pdb", *QUICK).stdout
    assert "rms gradient, kcal/mol/A" in text
    assert "1 structure -> " in text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("10kJ/mol/nm", 0.239006), ("2.39 kcal/mol/nm", 0.239), ("1e-1", 0.1), ("0.1 kcal/mol/Å", 0.1),
        ("0.2kcal/mol/\N{ANGSTROM SIGN}", 0.2), ("4kJ/mol/A", 0.956023), (" 4 kJ/mol/Å ", 0.956023),
    ],
)  # fmt: skip
def test_units_of_the_tolerance(text, value):
    from pele_ocl.minimize import tolerance_of

    assert tolerance_of(text) == pytest.approx(value, rel=1e-5)


def test_a_folder_of_files_one_of_which_fails(peptide, tmp_path):
    paths = shaken(tmp_path, peptide, 3)
    (tmp_path / "bad.pdb").write_text("ATOM      1  N   GLY A   1      11.1\nEND\n")
    (tmp_path / "dir.pdb").mkdir()
    table = tmp_path / "out" / "report.csv"
    result = run("minimize", str(tmp_path / "*.pdb"), "-o", tmp_path / "out", *QUICK, "--table", table, code=1)
    assert sorted(p.name for p in (tmp_path / "out").glob("*.pdb")) == ["p0.pdb", "p1.pdb", "p2.pdb"]
    assert "Error: 2 structures of 5 failed" in result.stderr
    lines = [line for line in table.read_text().splitlines() if not line.startswith("#")]
    rows = list(csv.DictReader(lines))
    assert [Path(row["name"]).name for row in rows] == ["bad.pdb", "dir.pdb", "p0.pdb", "p1.pdb", "p2.pdb"]
    assert "bad.pdb:1" in rows[0]["error"]
    assert result.stderr.count("bad.pdb") == 1
    assert "a folder" in rows[1]["error"]
    assert float(rows[2]["energy_after_total [kcal/mol]"]) < float(rows[2]["energy_before_total [kcal/mol]"])
    assert rows[2]["iterations"].isdecimal()
    json_rows = rows_of(*paths, tmp_path / "bad.pdb", "-o", tmp_path / "again" / "{name}-m.cif", *QUICK, code=1)
    assert [row.get("error") is None for row in json_rows] == [True, True, True, False]
    assert (tmp_path / "again" / "p1-m.cif").exists()


def test_a_finished_structure_is_not_done_again(peptide, tmp_path):
    paths, out = shaken(tmp_path, peptide, 4), tmp_path / "out"
    first = rows_of(*paths[:3], "-o", out, *QUICK)
    (out / "p2.pdb").write_text("of a worker that was killed\n")
    before = (out / "p0.pdb").stat().st_mtime_ns
    paths[1].write_text(paths[1].read_text().replace("END", "REMARK other\nEND"))
    second = rows_of(*paths, "-o", out, *QUICK, "--resume")
    assert second[0] == first[0]  # its seconds, too
    assert second[1]["seconds"] != first[1]["seconds"]
    assert len(second) == 4
    assert (out / "p2.pdb").read_text().count("ATOM") == 96
    assert (out / "p0.pdb").stat().st_mtime_ns == before
    assert "written with other settings (max_iterations, tolerance)" in error_of(
        "minimize", *paths, "-o", out, "--tolerance=3", "--resume"
    )


@pytest.mark.parametrize(
    "mistake",
    [
        ("--freeze", "resname FOO"), ("--freeze", "resnam PHE"), ("--constraints", "hbonds", "--method", "newton"),
        ("--max-gradient", "-1"), ("--device", "nope"), ("--terms", "foo"), ("--select", "chain Q"),
    ],
)  # fmt: skip
def test_a_mistake_leaves_all_that_is_there(mistake, peptide, tmp_path):
    paths = shaken(tmp_path, peptide, 2)
    (tmp_path / "old").mkdir()
    kept = [tmp_path / name for name in ("keep.nc", "keep.nc.jsonl", "keep.h5", "old/minimize.jsonl", "old/p0.pdb")]
    for path in kept:
        path.write_text("precious")
    there = sorted(tmp_path.rglob("*"))
    error_of("minimize", paths[0], "-t", paths[0], "-o", kept[0], *mistake)
    error_of("minimize", paths[0], "-o", kept[2], *mistake)
    error_of("minimize", *paths, "-o", tmp_path / "old", *mistake)
    error_of("minimize", *paths, "-o", tmp_path / "new", "--table", tmp_path / "new" / "r.csv", *mistake)
    assert [path.read_text() for path in kept] == ["precious"] * len(kept)
    assert sorted(tmp_path.rglob("*")) == there


def test_frames_that_all_fail_leave_the_file(peptide, tmp_path):
    source = write_trajectory(tmp_path / "run.nc", np.full((2, *peptide.positions.shape), np.nan))
    out = tmp_path / "out.nc"
    out.write_text("precious")
    rows_of(HEXAPEPTIDE, "-t", source, "-o", out, *QUICK, code=1)
    assert out.read_text() == "precious"
    assert not list(tmp_path.glob("*.jsonl"))


def test_structures_that_are_minimized_together_are_written_as_they_are_done(peptide, tmp_path, monkeypatch):
    """On GPUs one that is far from its minimum, or fails, keeps no others off the disk."""
    from pele_ocl.minimize import minimizer as many
    from pele_ocl.minimize import spec as minimize

    kind = pele_ocl.opencl.device.get_device().kind
    monkeypatch.setattr(minimize, "ATOMS_TOGETHER", {kind: 1 << 21})
    monkeypatch.setattr(many, "SHARING", 0)  # one after the other
    out, there = tmp_path / "out", []
    lines = [line for line in HEXAPEPTIDE.read_text().splitlines() if line.startswith("ATOM")]
    ubiquitin = HEXAPEPTIDE.with_name("ubiquitin.pdb")
    flat = [f"{line[:30]}{'   1.000' * 3}{line[54:]}" for line in lines if int(line[22:26]) < 4]
    for name, text in (("a", "\n".join(flat)), ("b", HEXAPEPTIDE.read_text()), ("c", ubiquitin.read_text())):
        (tmp_path / f"{name}.pdb").write_text(text)
    (tmp_path / "d.pdb").write_text("\n".join(line for line in lines if int(line[22:26]) < 6))
    own = many.Together._minimizer

    def minimizer(together, group):
        there.append(sorted(path.stem for path in out.glob("*.pdb")))
        return own(together, group)

    monkeypatch.setattr(many.Together, "_minimizer", minimizer)
    run("minimize", str(tmp_path / "?.pdb"), "-o", out, *QUICK, code=1)
    assert there == [[], ["b"], ["b", "c"]]
    assert sorted(path.stem for path in out.glob("*.pdb")) == ["b", "c", "d"]


def test_restored_starts_are_told(peptide, tmp_path):
    """Restored starts are told in the table, as a note, as JSON and in the report.

    With --no-bond-repair the given start counts.
    """
    paths = [*shaken(tmp_path, peptide, 1), tmp_path / "noisy.pdb"]
    rng = np.random.default_rng(1)
    noisy = peptide.moved(peptide.positions + rng.normal(0, 0.3, peptide.positions.shape))
    pele_ocl.write_conformations(paths[1], noisy)
    before = energy(read(paths[1])).total
    command, report = ("minimize", *paths, "-o", tmp_path / "out", *QUICK), tmp_path / "report.csv"
    text = run(*command, "--table", report)
    assert "Note: 1 structure of 2 had many distorted bonds, which were restored before the first step" in text.stderr
    rows = rows_of(*command[1:])
    assert rows[0]["restored"] == 0 < rows[1]["restored"] < len(peptide.bonds)
    assert rows[1]["energy_before"]["total"] == pytest.approx(before, rel=1e-5)
    assert re.search(
        rf"^structure +restored bonds .*\n.* 0 .*\n\S*noisy\.pdb +{rows[1]['restored']} ", text.stdout, re.M
    )
    lines = [line for line in report.read_text().splitlines() if not line.startswith("#")]
    assert [row["restored"] for row in csv.DictReader(lines)] == ["0", str(rows[1]["restored"])]
    kept = run(*command, "--no-bond-repair")
    assert "restored before" not in kept.stderr
    (_, row) = rows_of(*command[1:], "--no-bond-repair")
    assert row["restored"] == 0
    assert row["energy_before"]["total"] == pytest.approx(before, rel=1e-5)
    assert row["energy_after"]["total"] != pytest.approx(rows[1]["energy_after"]["total"], abs=1e-3)


def test_a_limit_is_a_note(peptide, tmp_path):
    (source,) = shaken(tmp_path, peptide, 1)
    result = run("minimize", source, "-o", tmp_path / "out.pdb", "--max-iterations", "2")
    assert "Note: 1 structure of 1 reached --max-iterations before the tolerance was reached" in result.stderr
    assert read_structure(tmp_path / "out.pdb").positions.shape == (96, 3)
    (row,) = rows_of(source, "-o", tmp_path / "out.pdb", "--max-iterations", "2", "--rounds", "3", "--fixed-radii")
    assert row["iterations"] == 6


@pytest.mark.parametrize("suffix", ["nc", "h5", "pdb", "cif"])
def test_frames_of_a_trajectory(suffix, peptide, tmp_path):
    rng = np.random.default_rng(1)
    frames = peptide.positions + rng.normal(0, 0.05, (4, *peptide.positions.shape))
    frames[2, 5] = np.nan
    source = write_trajectory(tmp_path / "run.nc", frames)
    out = tmp_path / f"out.{suffix}"
    (record,) = rows_of(HEXAPEPTIDE, "-t", source, "--frames", "1:", "-o", out, *QUICK, code=1)
    assert (record["structure"], record["n_frames"], record["n_failed"]) == (str(HEXAPEPTIDE), 3, 1)
    rows = record["frames"]
    assert [row["frame"] for row in rows] == [1, 2, 3]
    assert "error" in rows[1]
    found = np.concatenate(list(trajectory(out)))
    kept = found[[0, -1]]
    assert len(found) == (2 if suffix in ("pdb", "cif") else 3)
    totals = pele_ocl.Energy(peptide).evaluate_batch(kept).total
    assert totals == pytest.approx([rows[0]["energy_after"]["total"], rows[2]["energy_after"]["total"]], abs=0.2)


def test_progress_tells_of_the_slowest_from_the_first_look_on(monkeypatch, capsys):
    from pele_ocl.cli.structures import StructureLine

    times = iter([0.0, 30.0, 60.0, 0.0, 0.0, 20.0, 30.0])
    monkeypatch.setattr("pele_ocl.cli.progress.time.monotonic", lambda: next(times))
    with StructureLine() as line:
        line.watch(0, 1, 3.21)
        line.watch(1, 1, 0.0)
    with StructureLine() as line:
        line.watch(0, 100, 0.0)
        line.watch(29, 100, 0.5)  # 29 / 100 * 100 is less than 29
        line.watch(50, 100, 0.5)
    assert capsys.readouterr().err == (
        "Minimizing: 0 of 1 structure, the slowest at 3.21 kcal/mol/A\nMinimizing: 1 of 1 structure\n"
        "Minimizing: 29 of 100 structures, the slowest at 0.5 kcal/mol/A, 49 s left\n"
        "Minimizing: 50 of 100 structures, the slowest at 0.5 kcal/mol/A, 30 s left\n"
    )


def test_all_models_of_a_file(peptide, tmp_path):
    text = "".join(f"MODEL {k + 1}\n{p.read_text()[:-5]}ENDMDL\n" for k, p in enumerate(shaken(tmp_path, peptide, 2)))
    (tmp_path / "models.pdb").write_text(text.replace("  1.00  0.00", "  0.50 12.34") + "END\n")
    (record,) = rows_of(tmp_path / "models.pdb", "--models", "all", "-o", tmp_path / "out.pdb", *QUICK)
    rows = record["models"]
    assert [row["model"] for row in rows] == [1, 2]
    assert {line[54:66] for line in (tmp_path / "out.pdb").read_text().splitlines() if line[:4] == "ATOM"} == {
        "  0.50 12.34"
    }
    (held,) = rows_of(
        tmp_path / "models.pdb", "--models", "all", "-o", tmp_path / "held.pdb", *QUICK, "--restrain", "all:50"
    )
    assert all(h["rms_displacement"] < row["rms_displacement"] for h, row in zip(held["models"], rows, strict=True))
    assert all(0 < h["energy_after"]["restraint"] < 25 for h in held["models"])  # from where each began


def test_a_killed_run_goes_on_to_the_same_file(peptide, tmp_path):
    rng = np.random.default_rng(1)
    frames = peptide.positions + rng.normal(0, 0.05, (6, *peptide.positions.shape))
    source = write_trajectory(tmp_path / "run.nc", frames)
    arguments = ["minimize", str(HEXAPEPTIDE), "-t", str(source), *QUICK]
    run(*arguments, "-o", tmp_path / "whole.nc")
    broken = tmp_path / "broken.nc"
    script = f"""
        import itertools, time
        import pele_ocl.minimize.conformations as run
        from pele_ocl.cli import main
        run._FEWER_ATOMS = 2 * 96
        run.ATOMS_TOGETHER = {{}}
        add, count = run.Journal.add, itertools.count(1)
        run.Journal.add = lambda *a, **k: (add(*a, **k), next(count) == 3 and time.sleep(600))
        main({[*arguments, "-o", str(broken)]!r})
    """
    journal = tmp_path / "broken.nc.jsonl"
    environment = {**os.environ, "PELE_OCL_DEVICE": str(DEVICES[0].index)}
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], env=environment) as child:
        for _ in range(600):
            if journal.exists() and journal.read_bytes().count(b"\n") >= 4:
                break
            time.sleep(0.05)
        child.send_signal(signal.SIGKILL)
    done = journal.read_bytes().count(b"\n") - 1
    assert done == 3
    earlier = [json.loads(line)["seconds"] for line in journal.read_text().splitlines()[1 : done + 1]]
    (record,) = rows_of(*arguments[1:], "-o", broken, "--resume")
    rows = record["frames"]
    assert [row["seconds"] for row in rows[:done]] == earlier
    assert len(rows) == 6
    assert broken.read_bytes() == (tmp_path / "whole.nc").read_bytes()


def test_a_kill_before_the_first_line_leaves_no_earlier_rows(peptide, tmp_path, monkeypatch):
    """An earlier run's journal is gone once a structure of it is replaced, not when the next is noted down."""
    paths = shaken(tmp_path, peptide, 2)
    frames = write_trajectory(tmp_path / "run.nc", [read(path).positions for path in paths])
    files = ["minimize", *paths, "-o", tmp_path / "out", "--max-iterations"]
    conformations = ["minimize", HEXAPEPTIDE, "-t", frames, "-o", tmp_path / "out.nc", "--max-iterations"]
    for words, result in ((files, tmp_path / "out" / "p0.pdb"), (conformations, tmp_path / "out.nc")):
        run(*words, "1")
        earlier = result.read_bytes()
        with monkeypatch.context() as patched:
            patched.setattr("pele_ocl.jobs.Journal.add", lambda *a, **k: 1 / 0)
            assert "division by zero" in error_of(*words, "3")
        assert result.read_bytes() != earlier
        assert "was written with other settings" in error_of(*words, "1", "--resume")
        rows = rows_of(*words[1:], "3", "--resume")
        rows = rows[0].get("frames", rows)
        assert [row["iterations"] for row in rows] == [3, 3]


def test_more_of_one_structure(tmp_path):
    shown = run("minimize", HEXAPEPTIDE, "-o", tmp_path / "out.pdb", *QUICK, "-v").stdout
    assert "Settings: method lbfgs, tolerance 2" in shown
    assert re.search(r"^gb self +-\d+\.\d{3} +-\d+\.\d{3}$", shown, re.M)


def test_notes_of_a_torn_chain_are_in_its_row(peptide, tmp_path):
    """A bond of 2.5 A and more is no bond for `minimize`, which says so."""
    torn = peptide.labels.residue_index >= 3
    path = tmp_path / "torn.pdb"
    pele_ocl.write_conformations(path, peptide, peptide.positions + np.where(torn, 4.0, 0.0)[:, None])
    (row,) = rows_of(path, "-o", tmp_path / "out.pdb", *QUICK)
    assert "gap" in row["notes"][0]


def test_refusals(peptide, tmp_path):
    paths = shaken(tmp_path, peptide, 2)
    assert "is a single file for 2 structures" in error_of("minimize", *paths, "-o", tmp_path / "out.pdb")
    assert "the same file as the input" in error_of("minimize", paths[0], "-o", paths[0])
    assert "the same file as the input" in error_of("minimize", *paths, "-o", tmp_path)
    for text in ("much", "1 kcal/mol/pm", "-1", "1e999"):
        sentence = error_of("minimize", paths[0], "-o", tmp_path / "o.pdb", f"--tolerance={text}")
        assert f"the tolerance is {text!r}" in sentence
        assert "kcal/mol/A, kJ/mol/nm, kcal/mol/nm, kJ/mol/A" in sentence
    assert "expected SELECTION:K" in error_of("minimize", paths[0], "-o", tmp_path / "o.pdb", "--restrain", "all")
    assert "structures are written as" in error_of("minimize", paths[0], "-o", tmp_path / "o.txt")
    assert "give one file" in run("minimize", *paths, "-t", paths[0], "-o", tmp_path / "o.nc", code=2).stderr
    assert "selects no atoms" in error_of("minimize", *paths, "-o", tmp_path / "two", "--freeze", "resname XYZ")
    for mistake, reason in (
        ("--max-gradient", "max_gradient is -1"), ("--cutoff", "cutoff is -1"), ("--device", "fits '-1'"),
        ("--terms", "unknown term '-1'"), ("--forcefield", "-1"),
    ):  # fmt: skip
        # Before any file is read.
        assert reason in error_of("minimize", tmp_path / "none.pdb", "-o", tmp_path / "o.pdb", f"{mistake}=-1")
    assert "no such file" in error_of("minimize", tmp_path / "none.pdb", "-o", tmp_path / "o.pdb").lower()
    assert "is in the name of a folder" in error_of("minimize", *paths, "-o", tmp_path / "{name}" / "x.pdb")
    assert "cannot be created" in error_of("minimize", *paths, "-o", paths[0] / "out")
    assert sorted(tmp_path.iterdir()) == paths


def files_in(folder: Path) -> dict[str, bytes]:
    """Read the structures of a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".jsonl"}


def timeless(rows):
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


@pytest.fixture
def apart(monkeypatch):
    """Return words of the command line, whose files name the command."""
    monkeypatch.setattr(sys, "argv", ["pele-ocl", "minimize"])


def test_workers_write_the_same_structures(peptide, tmp_path, apart):
    paths = [*shaken(tmp_path, peptide, 3), tmp_path / "bad.pdb"]
    paths[-1].write_text("ATOM      1  N   GLY A   1      11.1\nEND\n")
    alone = rows_of(*paths, "-o", tmp_path / "single", *QUICK, code=1)
    rows = rows_of_workers(*paths, "-o", tmp_path / "shared", *QUICK)
    assert timeless(rows) == timeless(alone)
    assert files_in(tmp_path / "shared") == {
        name: text.replace(b"single", b"shared") for name, text in files_in(tmp_path / "single").items()
    }


@pytest.mark.slow
def test_workers_write_the_same_frames(peptide, tmp_path, apart):
    frames = write_trajectory(tmp_path / "run.nc", [read(path).positions for path in shaken(tmp_path, peptide, 3)])
    words = (HEXAPEPTIDE, "-t", frames, *QUICK, "-o")
    alone = rows_of(*words, tmp_path / "single.nc")
    rows = rows_of_workers(*words, tmp_path / "shared.nc")
    assert timeless(rows) == timeless(alone)
    assert (tmp_path / "shared.nc").read_bytes() == (tmp_path / "single.nc").read_bytes().replace(b"single", b"shared")


def rows_of_workers(*arguments):
    """Return the rows that two workers make, begun by a program of its own."""
    pytest.importorskip("distributed")
    script = f"""
        import sys
        from pele_ocl.cli import main
        sys.argv = ["pele-ocl", "minimize"]
        main({["minimize", *map(str, arguments), "--workers", "2", "--json"]!r})
    """
    environment = {**os.environ, "PELE_OCL_DEVICE": str(DEVICES[0].index)}
    words = [sys.executable, "-c", textwrap.dedent(script)]
    shared = subprocess.run(words, capture_output=True, text=True, env=environment)
    assert "Traceback" not in shared.stderr
    return [json.loads(line) for line in shared.stdout.splitlines()]


@pytest.mark.skipif(DEVICES[0].kind == "GPU", reason="company decides on the last digits there: docs/minimizing.md")
def test_shards_are_gone_on_with_and_merged(peptide, tmp_path, apart):
    paths = [*shaken(tmp_path, peptide, 3), tmp_path / "none.pdb"]
    words = [*paths, "-o", tmp_path / "out", *QUICK]
    alone = rows_of(*paths, "-o", tmp_path / "alone", *QUICK, code=1)
    shards = [tmp_path / "out" / f"minimize.{k}of2.jsonl" for k in (1, 2)]
    first = rows_of(*words, "--shard", "1/2")
    assert timeless(first) == timeless(alone[:2])
    shards[0].write_bytes(shards[0].read_bytes()[:-5])  # as a kill leaves it
    again = rows_of(*words, "--shard", "1/2", "--resume")
    assert again[0] == first[0]
    rows_of(*words, "--shard", "2/2", code=1)
    merged = run("merge", *shards[::-1], "-o", tmp_path / "report.csv", "--json", code=1)
    assert timeless(map(json.loads, merged.stdout.splitlines())) == timeless(alone)
    assert (tmp_path / "report.csv").read_text().count("\n") >= 5
    assert files_in(tmp_path / "out").keys() == files_in(tmp_path / "alone").keys()
    shards[1].write_bytes(shards[1].read_bytes().split(b"\n")[0] + b"\n")
    assert "2 of 2 structures are missing; run this shard again" in error_of("merge", *shards, "-o", tmp_path / "r.csv")
    assert "1 shards are missing" in error_of("merge", shards[0], "-o", tmp_path / "r.csv")
    rows_of(*words, paths[0].with_name("one_more.pdb"), "--shard", "2/2", code=1)
    assert "belongs to another run" in error_of("merge", *shards, "-o", tmp_path / "r.csv")


def test_a_shard_notes_down_that_all_failed(peptide, tmp_path):
    """Failures replace what an earlier run left, also if --resume finds nothing else to be done."""
    paths = shaken(tmp_path, peptide, 2)
    words = [*paths, "-o", tmp_path / "out", *QUICK, "--shard", "1/1"]
    journal = tmp_path / "out" / "minimize.1of1.jsonl"
    merge = ("merge", journal, "-o", tmp_path / "report.csv", "--json")
    paths[1].write_text("ATOM\n")
    rows_of(*words, code=1)
    journal.write_text("".join(journal.read_text().splitlines(keepends=True)[:2]))  # as a kill leaves it
    assert "1 of 2 structures are missing" in error_of(*merge)
    rows_of(*words, "--resume", code=1)
    assert ["error" in json.loads(line) for line in run(*merge, code=1).stdout.splitlines()] == [False, True]
    paths[0].write_text("ATOM\n")
    rows_of(*words, "--max-gradient", "3", code=1)
    assert ["error" in json.loads(line) for line in run(*merge, code=1).stdout.splitlines()] == [True, True]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--workers", "2"), "one structure is minimized by one process"),
        (("--models", "all", "--shard", "1/2"), "--shard needs structures in separate files"),
        (("again.pdb", "--shard", "1/2", "--table", "r.csv"), "from their journals"),
    ],
)
def test_what_cannot_be_shared_out(words, reason, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    target = "out" if "again.pdb" in words else "out.nc"
    assert reason in run("minimize", HEXAPEPTIDE, *words, "-o", target, code=2).stderr
