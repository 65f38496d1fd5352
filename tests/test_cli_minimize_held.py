"""`pele-ocl minimize` with atoms that are held: frozen ones, restraints of all kinds, bonds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from test_cli import HEXAPEPTIDE, error_of, on_the_chosen_device, run  # noqa: F401
from test_cli_minimize import QUICK, rows_of, shaken
from trajectory_helpers import write_trajectory

from pele_ocl import read, trajectory
from pele_ocl.common.installation import shipped
from pele_ocl.formats import read_structure
from pele_ocl.minimize.spec import setting_text
from pele_ocl.reference.bonded import torsion as reference_torsion


@pytest.fixture(scope="module")
def peptide():
    return read(HEXAPEPTIDE)


def test_what_is_held_stays(peptide, tmp_path):
    (source,) = shaken(tmp_path, peptide, 1)
    begin = read(source).positions
    run("minimize", source, "-o", tmp_path / "frozen.nc", *QUICK, "--freeze", "resid 3")
    frozen = np.concatenate(list(trajectory(tmp_path / "frozen.nc")))[0]
    of_third = peptide.labels.residue_numbers == 3
    assert np.abs(frozen - begin)[of_third].max() < 1e-5
    assert np.abs(frozen - begin)[~of_third].max() > 0.05
    (row,) = rows_of(
        source, "-o", tmp_path / "held.pdb", *QUICK, "--restrain", "name CA:1000", "--restrain", "resname PHE:20"
    )
    assert {"restraint", "restraint_2"} <= set(row["energy_after"])
    held = read_structure(tmp_path / "held.pdb").positions
    assert np.abs(held - begin)[peptide.labels.names == "CA"].max() < 0.03
    (row,) = rows_of(source, "-o", tmp_path / "bonds.pdb", *QUICK, "--constraints", "hbonds")
    assert row["stopped_by"] in ("gradient", "iterations")


def test_frames_that_are_held_by_restraints(peptide, tmp_path):
    """A frame that is no number fails by itself; a selection takes the structure's atoms in all frames."""
    frames = peptide.positions + np.random.default_rng(1).normal(0, 0.05, (2, *peptide.positions.shape))
    last = peptide.labels.residue_numbers == 6
    frames[0, last] += 1.5  # so that by distance others would be chosen
    frames = np.insert(frames, 1, np.nan, axis=0)
    source, out = write_trajectory(tmp_path / "run.nc", frames), tmp_path / "out.nc"
    chosen = peptide.selected("not within 4 of resid 6")
    held = ("--freeze", "not within 4 of resid 6", "--restrain", "(resid 6):1")
    (record,) = rows_of(HEXAPEPTIDE, "-t", source, "-o", out, "--max-iterations", "5", *held, code=1)
    rows = record["frames"]
    assert ["error" in row for row in rows] == [False, True, False]
    moved = np.abs(np.concatenate(list(trajectory(out))) - frames)[[0, 2]].max(axis=2)
    assert (moved[:, chosen] < 1e-5).all()
    assert (moved[:, ~chosen] > 1e-3).any(axis=1).all()
    assert moved[0, last].max() > 1e-3


def test_restraints_of_all_kinds(peptide, tmp_path):
    """A flat bottom, a reference, a distance and a torsion in degrees: each is held where the options say."""
    source, reference = shaken(tmp_path, peptide, 2)
    held = (
        "--restrain", "resid 2:3 and heavy:500,0.02", "--reference", reference,
        "--distance", "resid 1 and name CA|resid 5 and name CA:200,13,0.1",
        "--torsion", "resid 6 and name N|resid 6 and name CA|resid 6 and name C|resid 6 and name O:500,-20,2",
    )  # fmt: skip
    (row,) = rows_of(source, "-o", tmp_path / "out.nc", *QUICK, *held)
    assert {"restraint", "distance_restraint", "torsion_restraint"} <= set(row["energy_after"])
    found = peptide.moved(np.concatenate(list(trajectory(tmp_path / "out.nc")))[0])
    away = np.linalg.norm(found.positions - read(reference).positions, axis=1)
    assert away[peptide.selected("resid 2:3 and heavy")].max() < 0.1
    members = [int(np.flatnonzero(peptide.selected(f"resid 6 and name {name}"))[0]) for name in ("N", "CA", "C", "O")]
    angle = np.degrees(reference_torsion(found.positions[[members]])[0][0])
    assert abs(angle + 20) < 4
    ends = found.positions[peptide.selected("(resid 1 or resid 5) and name CA")]
    assert abs(np.linalg.norm(ends[0] - ends[1]) - 13) < 0.4
    frames = write_trajectory(tmp_path / "run.nc", [read(path).positions for path in (source, reference)])
    (record,) = rows_of(HEXAPEPTIDE, "-t", frames, "-o", tmp_path / "frames.nc", "--max-iterations", "0", *held[:4])
    rows = record["frames"]
    assert rows[0]["energy_before"]["restraint"] > 1  # which is from the reference
    assert rows[1]["energy_before"]["restraint"] < 1e-3


def test_files_that_changed_make_another_run(peptide, tmp_path):
    """Wherever they are: a reference, a table of radii."""
    *paths, reference = shaken(tmp_path, peptide, 3)
    table = tmp_path / "obc.txt"
    table.write_bytes((shipped("data") / "obc" / "amber99.txt").read_bytes())

    def words(reference: Path, table: Path) -> tuple[object, ...]:
        steps = ("-o", tmp_path / "out", "--max-iterations", "1", "--restrain", "all:1")
        return (*paths, *steps, "--reference", reference, "--obc", table)

    first = rows_of(*words(reference, table))
    same = reference.rename(tmp_path / "moved.pdb"), table.rename(tmp_path / "other.txt")
    assert rows_of(*words(*same), "--resume") == first
    for name, path in zip(("reference", "obc"), same, strict=True):
        before = path.read_bytes()
        path.write_bytes(before + b"\n")
        assert f"was written with other settings ({name})" in error_of("minimize", *words(*same), "--resume")
        path.write_bytes(before)


def test_settings_go_by_what_folders_and_files_hold(tmp_path):
    """PELE's templates, a user's force field files, and known names go by their content."""
    folder, field = tmp_path / "templates", tmp_path / "mine.xml"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "alaz").write_text("a template\n")
    field.write_text("<ForceField/>")
    said = [("templates", (folder,)), ("forcefield", f"amber14,{field}")]
    before = [setting_text(*each) for each in said]
    assert "amber14" in before[1]
    assert before == [setting_text(*each) for each in said]
    elsewhere = folder.rename(tmp_path / "elsewhere")
    assert setting_text("templates", (elsewhere,)) == before[0]
    (elsewhere / "inner" / "alaz").write_text("b template\n")  # as long as before
    field.write_text("<ForceField></ForceField>")
    assert setting_text("templates", (elsewhere,)) != before[0]
    assert setting_text(*said[1]) != before[1]
    assert setting_text("templates", (folder,)) == str([str(folder)])  # which is not there


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--restrain", "all:1,-1"), "or SELECTION:K,FLAT, FLAT in A"),
        (("--restrain", "resnam X:1"), "known words are"),
        (("--restrain", "resid 1:2"), "this selection has no K; write for example 'resid 1:2:10', or '(resid 1):2'"),
        (("--restrain", "all:5,0.1,2"), "or SELECTION:K,FLAT, FLAT in A"),
        (("--distance", "index 1|index 2:5"), "ATOM|ATOM:K,R0 or"),
        (("--distance", "index 1:5,2"), "ATOM|ATOM:K,R0 or"),
        (("--distance", "index 1|resid 2:5,2"), "'resid 2' selects 22 atoms; expected one"),
        (("--torsion", "index 1|index 2|index 3|index 4:5,400"), "degrees from -360 to 360"),
        (("--torsion", "index 1|index 2|index 3|index 1:5,40"), "names an atom twice"),
        (("--restrain", "all:1", "--reference", "other.pdb"), "lacks its atom 95 (A:ASP6:OXT)"),
        (("--restrain", "all:1", "--reference", "none.pdb"), "none.pdb: no such file"),
    ],
)
def test_restraints_that_are_none(words, reason, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = HEXAPEPTIDE.read_text().splitlines(keepends=True)
    last = max(k for k, line in enumerate(lines) if line.startswith("ATOM"))
    Path("other.pdb").write_text("".join(lines[:last] + lines[last + 1 :]))
    assert reason in error_of("minimize", HEXAPEPTIDE, "-o", "out.pdb", *words)
    assert not Path("out.pdb").exists()
