"""`pele-ocl simulate`: files of a run, interrupted runs, replicas that stop, options that cannot be."""

from __future__ import annotations

import csv
import doctest
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from conftest import DEVICES
from test_cli import HEXAPEPTIDE, on_the_chosen_device, run

import pele_ocl
from pele_ocl.cli import simulate as command
from pele_ocl.common.errors import INTERRUPTED, InputError, PeleError
from pele_ocl.dynamics.files import TRAJECTORIES

__all__ = ["on_the_chosen_device"]

SHORT = ["--steps", 60, "--report-every", 20, "--minimize", 20, "--constraints", "hbonds", "--seed", 3]
LADDER = ["--replicas", 4, "--temperatures", "300,303", "--exchange-every", 10]


def rows_of(folder: Path) -> list[dict[str, str]]:
    with open(folder / "energies.csv", newline="") as file:
        return list(csv.DictReader(file))


def contents(folder: Path) -> dict[str, bytes]:
    """Bytes of all files but checkpoints, in which times of writing stand, and folders of parts."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.suffix not in ("", ".npz")}


def test_a_run_writes_trajectories_and_tables(tmp_path):
    said = run("simulate", HEXAPEPTIDE, "-o", tmp_path / "run", *SHORT, *LADDER, "--json")
    found = json.loads(said.stdout)
    assert found["steps"] == 60
    assert found["time_ps"] == pytest.approx(0.12)
    assert found["dynamics"]["temperatures"] == [300.0, 303.0]
    assert found["exchanges"][0]["tried"] == 6
    assert found["n_failed"] == 0
    assert "46 bonds to hydrogen are constrained to the lengths of the force field" in found["notes"]
    assert found["ns_per_day"]["all"] == pytest.approx(4 * found["ns_per_day"]["replica"])
    rows = rows_of(tmp_path / "run")
    assert [row["step"] for row in rows] == [str(step) for step in (0, 20, 40, 60) for _ in range(4)]
    lines = [json.loads(line) for line in (tmp_path / "run" / "energies.jsonl").read_text().splitlines()]
    assert [line["total_kcal_mol"] for line in lines] == [float(row["total_kcal_mol"]) for row in rows]
    assert [line["total_kcal_mol"] for line in lines[-4:]] == [row["total_kcal_mol"] for row in found["replicas"]]
    atoms = pele_ocl.read(tmp_path / "run" / "hexapeptide.pdb")
    for replica in range(4):
        path = tmp_path / "run" / f"hexapeptide-{replica:05d}.nc"
        energies = pele_ocl.energy_over(atoms, pele_ocl.trajectory(path))
        own = [float(row["potential_kcal_mol"]) for row in rows if row["replica"] == str(replica)]
        np.testing.assert_allclose(energies.total, own, atol=0.05)  # positions are float32 in the file


def test_a_run_that_ends_before_its_first_report_says_so(tmp_path):
    """In text, in JSON and in Python; a run with a report says nothing."""
    words = ("--minimize", 0, "--report-every", 20)
    told = run("simulate", HEXAPEPTIDE, "-o", tmp_path / "run", *words, "--steps", 10)
    note = "the run has 10 steps and a report every 20, so trajectories and tables would contain only the start"
    assert note in told.stderr
    assert "choose a smaller --report-every" in told.stderr
    result = pele_ocl.simulate(HEXAPEPTIDE, tmp_path / "python", steps=10, minimize=0, report_every=20)
    assert any(note in of for of in result.to_json()["notes"])
    assert len(pele_ocl.trajectory(result.trajectories[0])) == 1
    enough = pele_ocl.simulate(HEXAPEPTIDE, tmp_path / "enough", steps=20, minimize=0, report_every=20)
    assert not any("beginning alone" in of for of in enough.notes)
    assert not any("kcal mol [" in line for line in str(enough.table()).splitlines())
    with pytest.raises(pele_ocl.FormatError, match="expected a folder"):
        enough.save(tmp_path / "table.csv")
    assert not (tmp_path / "table.csv").exists()


TIMES = [0, 0.04, 0.08, 0.12]  # ps
FORMS = ("nc", "dcd", "xtc", "h5", "xyz", "pdb", "cif")  # all of TRAJECTORIES


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> dict[str, tuple[Path, Path]]:
    """Structure and trajectory of one run in each format."""
    folder = tmp_path_factory.mktemp("written")
    with pytest.MonkeyPatch.context() as patch:  # the fixture of the device is a function's
        patch.setenv("PELE_OCL_DEVICE", str(DEVICES[0].index))
        for form in FORMS:
            run("simulate", HEXAPEPTIDE, "-o", folder / form, *SHORT, "--trajectory-format", form)
    return {form: (folder / form / "hexapeptide.pdb", folder / form / f"hexapeptide-00000.{form}") for form in FORMS}


@pytest.fixture(scope="module")
def frames_written(written) -> np.ndarray:
    netcdf4 = pytest.importorskip("netCDF4")
    with netcdf4.Dataset(written["nc"][1]) as file:
        assert file["time"].units == "picosecond"
        np.testing.assert_allclose(file["time"][:], TIMES, atol=1e-6)
        return file["coordinates"][:].data


def assert_frames(found: np.ndarray, expected: np.ndarray, form: str) -> None:
    atol = {"xtc": 0.006, "h5": 1e-5, "pdb": 6e-4, "cif": 6e-4}
    np.testing.assert_allclose(found, expected, atol=atol.get(form, 2e-5))


def test_all_trajectories_are_read_here():
    assert {*FORMS, "none"} == set(TRAJECTORIES)


@pytest.mark.parametrize("form", ["nc", "dcd", "xtc", "h5"])
def test_we_read_the_trajectories(written, frames_written, form):
    own = pele_ocl.trajectory(written[form][1])
    assert len(own) == 4
    assert_frames(np.concatenate(list(own)), frames_written, form)


@pytest.mark.filterwarnings("ignore:DCDReader")
@pytest.mark.filterwarnings("ignore::UserWarning:MDAnalysis", "ignore::DeprecationWarning")
@pytest.mark.parametrize("form", ["nc", "dcd", "xtc", "xyz", "pdb", "cif"])
def test_mdanalysis_reads_the_trajectories(written, frames_written, form):
    mda = pytest.importorskip("MDAnalysis")
    universe = mda.Universe(*map(str, written[form]))
    read = slice(1) if form == "cif" else slice(None)  # of mmCIF MDAnalysis reads the first model alone
    assert_frames(np.array([frame.positions.copy() for frame in universe.trajectory]), frames_written[read], form)
    if form in ("nc", "dcd", "xtc"):
        np.testing.assert_allclose([frame.time for frame in universe.trajectory], TIMES, atol=1e-5)
    assert universe.dimensions is None


@pytest.mark.parametrize("form", FORMS)
def test_mdtraj_reads_the_trajectories(written, frames_written, form):
    mdtraj = pytest.importorskip("mdtraj")
    if form == "h5":
        pytest.importorskip("tables")  # by which MDTraj reads HDF5
    top = {} if form == "h5" else {"top": str(written[form][0])}
    found = mdtraj.load(str(written[form][1]), **top)
    assert found.topology == mdtraj.load(str(written[form][0])).topology
    assert_frames(10 * found.xyz, frames_written, form)
    if form in ("nc", "xtc", "h5"):
        np.testing.assert_allclose(found.time, TIMES, atol=1e-6)


def test_hdf5_is_mdtrajs_convention(written, frames_written):
    h5py = pytest.importorskip("h5py")
    with h5py.File(written["h5"][1]) as file:
        assert file.attrs["conventions"] == b"Pande"
        assert file["coordinates"].attrs["units"] == b"nanometers"
        assert_frames(10 * np.array(file["coordinates"]), frames_written, "h5")
        topology = json.loads(file["topology"][0])
    residues = topology["chains"][0]["residues"]
    assert [residue["name"] for residue in residues] == ["MET", "LYS", "GLU", "PHE", "GLY", "ASP"]
    assert residues[1]["atoms"][0] == {"index": 19, "name": "N", "element": "N"}
    assert len(topology["bonds"]) == 96


@pytest.mark.parametrize("form", ["nc", "h5"])
def test_trajectories_with_velocities(tmp_path, written, form):
    """They have the kinetic energies of the table, in A/ps; positions are the bits of a run without them."""
    run("simulate", HEXAPEPTIDE, "-o", tmp_path, *SHORT, "--trajectory-format", form, "--velocities")
    atoms = pele_ocl.read(tmp_path / "hexapeptide.pdb")
    path = tmp_path / f"hexapeptide-00000.{form}"
    if form == "nc":
        with pytest.importorskip("netCDF4").Dataset(path) as file:
            assert file["velocities"].units == "angstrom/picosecond"
            found = np.array(file["velocities"][:])  # by scale_factor in A/ps
        with pytest.importorskip("MDAnalysis").coordinates.TRJ.NCDFReader(str(path)) as reader:
            np.testing.assert_allclose(np.array([frame.velocities.copy() for frame in reader]), found, atol=1e-5)
    else:
        with pytest.importorskip("h5py").File(path) as file:
            assert file["velocities"].attrs["units"] == b"nanometers/picosecond"
            found = 10 * np.array(file["velocities"])
    plain, own = (np.concatenate(list(pele_ocl.trajectory(p))) for p in (written[form][1], path))
    assert (plain == own).all()
    assert found.shape == own.shape
    masses = pele_ocl.Simulation(atoms).masses[0][:, np.newaxis]
    relative = [v - (masses * v).sum(axis=0) / masses.sum() for v in found]
    kinetic = [0.5 * (masses * v**2).sum() / 418.4 for v in relative]
    told = [float(row["kinetic_kcal_mol"]) for row in rows_of(tmp_path)]
    np.testing.assert_allclose(kinetic, told, rtol=1e-5)
    said = run(
        "simulate", HEXAPEPTIDE, "-o", tmp_path / "x", *SHORT, "--trajectory-format", "xtc", "--velocities", code=1
    )
    assert "trajectories of the format 'xtc' have no velocities; choose h5 or nc" in said.stderr
    assert not (tmp_path / "x").exists()


def test_terms_of_the_table_add_up_to_the_potential(tmp_path):
    words = ["--restrain", "name CA:1", "--trajectory-format", "none"]
    run("simulate", HEXAPEPTIDE, "-o", tmp_path, *SHORT, *words)
    rows = rows_of(tmp_path)
    names = list(rows[0])
    terms = names[names.index("restraints_kcal_mol") + 1 : names.index("frame")]
    assert {"bond_kcal_mol", "coulomb_kcal_mol", "gb_pair_kcal_mol", "restraint_kcal_mol"} <= set(terms)
    assert len(rows) == 4
    for row in rows:
        values = {name: float(row[name]) for name in terms}
        assert sum(values.values()) == pytest.approx(float(row["potential_kcal_mol"]), abs=1e-3)
        assert values["restraint_kcal_mol"] == pytest.approx(float(row["restraints_kcal_mol"]), abs=1e-6)
    assert [row["frame"] for row in rows] == [""] * 4


def test_ase_reads_the_trajectories(written, frames_written):
    ase = pytest.importorskip("ase.io")
    images = ase.read(written["xyz"][1], ":")
    assert_frames(np.array([image.positions for image in images]), frames_written, "xyz")
    assert [image.info["time"] for image in images] == TIMES
    structure = ase.read(written["xyz"][0])
    assert images[0].get_chemical_symbols() == structure.get_chemical_symbols()


def test_trajectories_of_temperatures(tmp_path):
    run("simulate", HEXAPEPTIDE, "-o", tmp_path / "t", *SHORT, *LADDER, "--trajectory-of", "temperature")
    run("simulate", HEXAPEPTIDE, "-o", tmp_path / "r", *SHORT, *LADDER)
    netcdf4 = pytest.importorskip("netCDF4")

    def frames(path: Path) -> np.ndarray:
        with netcdf4.Dataset(path) as file:
            return file["coordinates"][:].data

    of_rows = np.array([frames(tmp_path / "r" / f"hexapeptide-{k:05d}.nc") for k in range(4)])
    rungs = np.array([int(row["rung"]) for row in rows_of(tmp_path / "r")]).reshape(4, 4)  # by report and row
    assert (rungs != rungs[0]).any()
    for ladder in range(2):
        for rung, kelvin in enumerate(("300.00", "303.00")):
            found = frames(tmp_path / "t" / f"hexapeptide-{ladder:04d}-{rung:03d}-{kelvin}K.nc")
            rows = 2 * ladder + np.argmax(rungs[:, 2 * ladder : 2 * ladder + 2] == rung, axis=1)
            np.testing.assert_array_equal(found, of_rows[rows, np.arange(4)])


@pytest.mark.parametrize("form", ["nc", "pdb"])
def test_an_interrupted_run_goes_on_with_the_same_bits(tmp_path, monkeypatch, form):
    words = [HEXAPEPTIDE, *SHORT, *LADDER, "--trajectory-format", form]
    run("simulate", *words, "-o", tmp_path / "whole")
    told = command.Pace.__call__

    def interrupted(pace: command.Pace, share: float) -> None:
        told(pace, share)
        if share > 0.6:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(command.Pace, "__call__", interrupted)
        run("simulate", *words, "-o", tmp_path / "part", code=INTERRUPTED)
    with open(tmp_path / "part" / "energies.csv", "a") as file:
        file.write("half a li")
    with open(tmp_path / "part" / f"hexapeptide-00002.{form}", "ab") as file:
        file.write(b"half a frame")
    assert contents(tmp_path / "part") != contents(tmp_path / "whole")
    said = run("simulate", *words, "-o", tmp_path / "part", code=1)
    assert "already contains a run; continue it with --resume" in said.stderr
    said = run("simulate", *words[:-1], "h5", "-o", tmp_path / "part", "--resume", code=1)
    assert "had other reports or trajectories" in said.stderr
    said = run("simulate", *words, "-o", tmp_path / "part", "--resume", "--gb", "none", code=1)
    assert "continue with the solvent, restraints, cutoff" in said.stderr
    run("simulate", *words, "-o", tmp_path / "part", "--resume")
    assert contents(tmp_path / "part") == contents(tmp_path / "whole")


@pytest.mark.parametrize(
    "more",
    [["--replicas-per-device", 2], pytest.param(["--workers", 2], marks=pytest.mark.slow)],
)  # fmt: skip
def test_a_replica_has_the_same_bits_wherever_it_ran(tmp_path, monkeypatch, more):
    """In parts here, interrupted in the second one, and by two workers: ladders of two structures, in all eight."""
    trialanine = Path(HEXAPEPTIDE).with_name("trialanine.pdb")
    words = [HEXAPEPTIDE, trialanine, *SHORT, *LADDER]
    whole = json.loads(run("simulate", *words, "-o", tmp_path / "whole", "--json").stdout.splitlines()[0])
    words += more
    if "--replicas-per-device" in more:
        seen = []

        def interrupted(pace: command.Pace, share: float) -> None:
            seen.append(share)
            if len(seen) == 6:
                raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(command.Pace, "__call__", interrupted)
            run("simulate", *words, "-o", tmp_path / "parts", code=INTERRUPTED)
        said = run("simulate", *words[:-2], "-o", tmp_path / "parts", "--resume", code=1)
        assert "the interrupted run was divided differently" in said.stderr
        said = run("simulate", *words, "-o", tmp_path / "parts", code=1)
        assert "already contains a run" in said.stderr
        words.append("--resume")
    parts = json.loads(run("simulate", *words, "-o", tmp_path / "parts", "--json").stdout.splitlines()[0])
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")
    for name in ("replicas", "exchanges", "dynamics", "notes", "n_failed"):
        assert parts[name] == whole[name], name


def test_a_replica_that_could_not_be_minimized_is_told(tmp_path, monkeypatch):
    """On stderr and in JSON, of the part that it is in, and again when the run gets longer."""
    minimize = pele_ocl.Simulation.minimize

    def failing(simulation, **options):
        batch = minimize(simulation, **options)
        return replace(batch, errors={1: "its start is torn"}) if simulation.settings.first_replica == 2 else batch

    monkeypatch.setattr(pele_ocl.Simulation, "minimize", failing)
    words = ["simulate", HEXAPEPTIDE, "-o", tmp_path, "--replicas", 4, "--replicas-per-device", 2, "--minimize", 2]
    words += ["--report-every", 2, "--json"]
    for more in (["--steps", 2], ["--steps", 4, "--resume"]):
        said = run(*words, *more)
        sentence = "replica 3 starts without minimization: its start is torn"
        assert json.loads(said.stdout)["notes"].count(sentence) == 1
        assert said.stderr.count(f"hexapeptide: {sentence}") == 1


def test_tables_of_another_run_are_kept(tmp_path):
    (tmp_path / "energies.csv").write_text("of another program")
    said = run("simulate", HEXAPEPTIDE, "-o", tmp_path, *SHORT, code=1)
    assert "already contains a run" in said.stderr
    assert [path.read_text() for path in tmp_path.iterdir()] == ["of another program"]


def test_an_earlier_run_is_replaced_if_asked(tmp_path):
    out = tmp_path / "run"
    options = dict(report_every=2, minimize=0, timestep=1)
    pele_ocl.simulate(HEXAPEPTIDE, out, steps=4, replicas=3, replicas_per_device=1, trajectory_format="dcd", **options)
    (out / "notes.txt").write_text("of the user")
    found = pele_ocl.simulate(HEXAPEPTIDE, out, steps=2, overwrite=True, **options)
    names = {"hexapeptide.pdb", "hexapeptide-00000.nc", "energies.csv", "energies.jsonl", "checkpoint.npz", "notes.txt"}
    assert {path.name for path in out.iterdir()} == names
    assert (found.steps, len(found.table())) == (2, 2)
    fresh = pele_ocl.simulate(HEXAPEPTIDE, tmp_path / "fresh", steps=2, **options)
    assert (out / "energies.csv").read_text() == (tmp_path / "fresh" / "energies.csv").read_text()
    assert fresh.rows == found.rows
    held = pele_ocl.Simulation(pele_ocl.read(HEXAPEPTIDE), timestep=1).write(out, steps=2, overwrite=True)
    assert [path.name for path in held.trajectories] == ["molecule-00000.nc"]
    assert not (out / "hexapeptide-00000.nc").exists()
    for more, sentence in (
        ({"resume": True}, "choose one of `resume` and `overwrite`"), ({"shard": "1/2"}, "replaces a complete run"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=sentence):
            pele_ocl.simulate(HEXAPEPTIDE, out, steps=2, replicas=2, overwrite=True, **options, **more)
    run("simulate", HEXAPEPTIDE, "-o", out, *SHORT, "--overwrite")


def test_overwriting_keeps_files_of_the_user(tmp_path):
    out = tmp_path / "run"
    options = dict(report_every=2, minimize=0, timestep=1, steps=2)
    pele_ocl.simulate(HEXAPEPTIDE, out, replicas=2, replicas_per_device=1, **options)
    own = [out / "parts" / "notes.txt", out / "parts" / "mine" / "energies.csv", out / "COLVAR.0"]
    own += [out / f"hexapeptide-{name}.xyz" for name in ("1", "2-relaxed", "00000-relaxed")]
    own += [out / "hexapeptide-00000.txt", out / "hexapeptide-small-00000.nc"]
    # Named like trajectories, but of replicas, of a format or of a ladder that the run does not have.
    own += [
        out / f"hexapeptide-{name}" for name in ("00002.nc", "00000.xtc", "0000-000-300.00K.nc", "00000-300.00K.nc")
    ]
    for path in own:
        path.parent.mkdir(exist_ok=True)
        path.write_text("of the user")
    with open(out / "energies.jsonl", "a") as table:
        table.write('{"structure": cut}\n')  # a damaged line
        table.write('{"structure": ["hexapeptide"], "replica": 0}\n{"structure": "../a", "replica": "0"}\n')
    pele_ocl.simulate(HEXAPEPTIDE, out, overwrite=True, **options)
    assert {path.read_text() for path in own} == {"of the user"}
    assert not (out / "hexapeptide-00001.nc").exists()
    assert [path.name for path in sorted((out / "parts").iterdir())] == ["mine", "notes.txt"]


def test_overwriting_removes_the_trajectories_of_temperatures(tmp_path):
    out, options = tmp_path / "run", dict(report_every=2, minimize=0, timestep=1, steps=2)
    ladder = dict(temperatures=[300, 310.005], exchange_every=2, trajectory_of="temperature", trajectory_format="dcd")
    pele_ocl.simulate(HEXAPEPTIDE, out, replicas=4, **options, **ladder)
    written = sorted(path.name for path in out.glob("*.dcd"))
    assert [name[:20] for name in written] == [f"hexapeptide-000{k}-00{t}" for k in range(2) for t in range(2)]
    kept = [out / "hexapeptide-0002-000-300.00K.dcd", out / "hexapeptide-0000-002-300.00K.dcd"]
    for path in kept:
        path.write_text("of the user")
    pele_ocl.simulate(HEXAPEPTIDE, out, overwrite=True, **options)
    assert sorted(out.glob("*.dcd")) == sorted(kept)


def test_overwriting_removes_links_and_not_what_they_refer_to(tmp_path):
    """The next run must not write through them; one of them refers to nothing any more."""
    out, archive = tmp_path / "run", tmp_path / "archive"
    options = dict(report_every=2, minimize=0, timestep=1, steps=2)
    pele_ocl.simulate(HEXAPEPTIDE, out, replicas=2, **options)
    archive.mkdir()
    links = [out / f"hexapeptide-0000{k}.nc" for k in range(2)]
    for link in links:
        link.rename(archive / link.name)
        link.symlink_to(archive / link.name)
    (archive / links[0].name).unlink()
    before = contents(archive)
    pele_ocl.simulate(HEXAPEPTIDE, out, overwrite=True, **options)
    assert contents(archive) == before
    assert not links[0].is_symlink()
    assert not links[1].is_symlink()


@pytest.mark.parametrize("damage", [None, b"", b"not a checkpoint"])
def test_without_its_checkpoint_a_run_has_no_known_trajectories(damage, tmp_path):
    """Files of the same names may be the user's, such as trajectories in another format."""
    out, options = tmp_path / "run", dict(report_every=2, minimize=0, timestep=1, steps=2)
    pele_ocl.simulate(HEXAPEPTIDE, out, replicas=2, **options)
    if damage is None:
        (out / "checkpoint.npz").unlink()
    else:
        (out / "checkpoint.npz").write_bytes(damage)
    kept = (out / "hexapeptide-00001.nc").read_bytes()
    pele_ocl.simulate(HEXAPEPTIDE, out, overwrite=True, **options)
    assert (out / "hexapeptide-00001.nc").read_bytes() == kept
    assert pele_ocl.simulate(HEXAPEPTIDE, out, resume=True, **options).steps == 2


def test_overwriting_removes_colvar_files_of_a_biased_run(tmp_path):
    bias = {"d": {"kind": "DISTANCE", "atoms": [1, 9]}, "hold": {"kind": "RESTRAINT", "arg": "d", "at": 5, "kappa": 1}}
    out, options = tmp_path / "run", dict(report_every=2, minimize=0, timestep=1, steps=2)
    pele_ocl.simulate(HEXAPEPTIDE, out, replicas=2, bias=bias, **options)
    assert {path.name for path in out.glob("COLVAR*")} == {"COLVAR.0", "COLVAR.1"}
    pele_ocl.simulate(HEXAPEPTIDE, out, bias=bias, overwrite=True, **options)
    assert {path.name for path in out.glob("COLVAR*")} == {"COLVAR.0"}


def test_a_run_that_is_refused_does_not_remove_an_earlier_one(tmp_path):
    out, options = tmp_path / "run", dict(report_every=2, minimize=0, timestep=1, steps=2)
    pele_ocl.simulate(HEXAPEPTIDE, out, replicas=2, trajectory_format="pdb", **options)
    before = contents(out)
    for more in ({"restrain": "resid 99:5"}, {"integrator": "none such"}, {"constraints": "none such"}):
        with pytest.raises(InputError):
            pele_ocl.simulate(HEXAPEPTIDE, out, overwrite=True, **options, **more)
        assert contents(out) == before
    if find_spec("distributed") is not None:  # workers that cannot connect
        shared = {"scheduler": str(tmp_path / "none.json"), "replicas_per_device": 1}
        with pytest.raises(InputError, match=r"none\.json"):
            pele_ocl.simulate(HEXAPEPTIDE, out, overwrite=True, replicas=2, **shared, **options)
        assert contents(out) == before
        own = tmp_path / "shared"
        pele_ocl.simulate(HEXAPEPTIDE, own, replicas=3, **options)
        pele_ocl.simulate(HEXAPEPTIDE, own, overwrite=True, replicas=1, workers=1, **options)
        assert not (own / "hexapeptide-00001.nc").exists()
    (tmp_path / "reference.pdb").symlink_to(out / "hexapeptide-00001.pdb")  # an input through a link
    held = {"restrain": "name CA:5", "reference": tmp_path / "reference.pdb"}
    with pytest.raises(PeleError, match="the same file as the input"):
        pele_ocl.simulate(HEXAPEPTIDE, out, overwrite=True, **options, **held)
    assert contents(out) == before


def test_a_structure_is_not_written_over(tmp_path):
    source = tmp_path / "peptide.pdb"
    source.write_bytes(Path(HEXAPEPTIDE).read_bytes())
    said = run("simulate", source, "-o", tmp_path, *SHORT, code=1)
    assert "peptide.pdb: the same file as the input" in said.stderr
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [Path(HEXAPEPTIDE).read_bytes()]


def test_a_run_gets_longer(tmp_path):
    short = [30 if word == 60 else word for word in SHORT]  # its last report is not due
    for form in ("nc", "h5"):
        words = [HEXAPEPTIDE, "--trajectory-format", form, "-o", tmp_path / form]
        run("simulate", *words, *short)
    assert [row["step"] for row in rows_of(tmp_path / "nc")] == ["0", "20", "30"]
    said = run("simulate", *words, *SHORT, "--resume", code=1)
    assert "is a run of 30 steps and cannot be changed to 60; 30 are written; .h5 trajectories cannot" in said.stderr
    run("simulate", HEXAPEPTIDE, *SHORT, "-o", tmp_path / "whole")
    run("simulate", HEXAPEPTIDE, *SHORT, "-o", tmp_path / "nc", "--resume")
    assert contents(tmp_path / "nc") == contents(tmp_path / "whole")
    said = run("simulate", HEXAPEPTIDE, *SHORT, "-o", tmp_path / "nc", "--resume")
    assert "no steps were left to run" in said.stdout
    said = run("simulate", HEXAPEPTIDE, *short, "-o", tmp_path / "nc", "--resume", code=1)
    assert "is a run of 60 steps and cannot be changed to 30; 60 are completed" in said.stderr


@pytest.mark.slow
def test_a_killed_run_goes_on_with_the_same_bits(tmp_path):
    words = [HEXAPEPTIDE, "--steps", "2000", "--report-every", "20", "--replicas", "2", "--constraints", "hbonds"]
    command = [sys.executable, "-m", "pele_ocl", "simulate", *map(str, words), "-o"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    subprocess.run([*command, tmp_path / "whole"], check=True, env=environment)
    for resume in ([], ["--resume"]):
        table = tmp_path / "part" / "energies.csv"
        before = table.stat().st_size if table.is_file() else 0
        process = subprocess.Popen([*command, tmp_path / "part", *resume], env=environment)
        while not table.is_file() or table.stat().st_size < before + 2000:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert contents(tmp_path / "part") != contents(tmp_path / "whole")
    subprocess.run([*command, tmp_path / "part", "--resume"], check=True, env=environment)
    assert contents(tmp_path / "part") == contents(tmp_path / "whole")


def test_a_replica_that_stops_is_a_row(tmp_path):
    words = [HEXAPEPTIDE, "-o", tmp_path / "run", "--steps", 40, "--report-every", 20, "--timestep", 12]
    said = run("simulate", *words, "--replicas", 2, "--minimize", 0, code=1)
    assert "replica 0: stopped at step" in said.stderr
    assert "Speed         no steps" not in said.stdout
    speeds = re.search(r"Speed +([\d,.e+]+) ns/day in total, ([\d,.e+]+) per replica", said.stdout)
    assert float(speeds[1].replace(",", "")) < 1.9 * float(speeds[2].replace(",", ""))  # both stopped before the end
    rows = rows_of(tmp_path / "run")
    last = [row for row in rows if row["error"]]
    assert {row["replica"] for row in last} == {"0", "1"}
    assert all("moves more than 1 A in a step" in row["error"] or "no number" in row["error"] for row in last)
    assert all(row["potential_kcal_mol"] == "" for row in last)


def test_several_structures_and_holding(tmp_path):
    trialanine = Path(HEXAPEPTIDE).with_name("trialanine.pdb")
    short = ["--steps", 20, "--report-every", 20, "--minimize", 0, "--trajectory-format", "none", "--timestep", 1]
    said = run("simulate", HEXAPEPTIDE, trialanine, "-o", tmp_path / "two", *short, "--replicas", 2)
    assert said.stdout.count("At the end, means of 2 replicas of ") == 2
    assert said.stdout.count(" K, heat bath 300.0 K") == 2
    assert {row["structure"] for row in rows_of(tmp_path / "two")} == {"hexapeptide", "trialanine"}
    assert sorted(path.name for path in (tmp_path / "two").glob("*.pdb")) == ["hexapeptide.pdb", "trialanine.pdb"]
    words = ["--restrain", "name CA:10", "--freeze", "resid 1", "--anneal", "0:300,1:0", "--json"]
    found = json.loads(run("simulate", HEXAPEPTIDE, "-o", tmp_path / "held", *short, *words).stdout)
    assert "the motion of the centre of mass is removed" not in found["notes"]
    assert found["replicas"][0]["bath_K"] == pytest.approx(294.0)
    found = json.loads(
        run("simulate", HEXAPEPTIDE, "-o", tmp_path / "nve", *short, "--integrator", "verlet", "--json").stdout
    )
    assert found["replicas"][0]["bath_K"] is None


@pytest.mark.parametrize(
    ("words", "sentence", "code"),
    [
        ([], "give one of --steps and --time", 2),
        (["--time", "5"], "expected a time above 0 with its unit", 1),
        (["--steps", 5, "--fixed-radii"], "with --fixed-radii the gradient is not the derivative of the energy", 2),
        (["--steps", 5, "--gb", "sgbnp"], "--gb sgbnp has no gradient of its complete energy", 2),
        (["--steps", 5, "--temperatures", "warm"], "numbers separated by commas", 1),
        (["--steps", 5, "--anneal", "0:300,5"], "points PS:K", 1),
        (["--steps", 5, "--integrator", "verlet", "--friction", 2], "'verlet' has none, so leave it out", 1),
        (["--steps", 5, "--trajectory-of", "temperature"], "give --exchange-every", 2),
        (["--steps", 5, "--constraints", "hbonds-present"], "'hbonds-present' is not 'hbonds'", 2),
        (["--steps", 5, "--shard", "1/2"], "1 replicas cannot be divided among 2 shards", 1),
        (["--steps", 5, "--scheduler", "tcp://x:1"], "--scheduler needs --replicas-per-device N", 2),
        (["--steps", 5, *LADDER, "--replicas-per-device", 3], "are not complete ladders of 2 temperatures", 1),
        (["--steps", 5, "--timestep", 50], "up to 20 fs", 1),
        (["--steps", 5, "--temperature", "300,350"], "'300,350' is a list, but only one temperature is allowed", 2),
        (["--steps", 5, "--temperatures", "300,350"], "2 temperatures were given for 1 replica of a molecule", 1),
        (["--steps", 5, "--ionic-strength", 150], "ionic_strength is 150 mol/L, but the maximum is", 1),
        (["--steps", 5, "--exchange-every", 5], "two temperatures or more", 1),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, words, sentence, code):
    said = run("simulate", HEXAPEPTIDE, "-o", tmp_path / "run", *words, code=code)
    assert sentence in said.stderr
    assert not (tmp_path / "run").exists()


def test_means_are_of_one_heat_bath(tmp_path):
    words = ["--steps", 4, "--report-every", 4, "--minimize", 0, "--trajectory-format", "none", "--timestep", 1]
    baths = ["--replicas", 3, "--temperatures", "310,300,310", "--restrain", "name CA:1"]
    said = run("simulate", HEXAPEPTIDE, "-o", tmp_path / "run", *words, *baths).stdout
    assert "Replicas      3, none stopped" in said
    rows = [row for row in rows_of(tmp_path / "run") if row["step"] == "4"]
    for kelvin, count in ((300.0, "replica 1"), (310.0, "means of 2 replicas")):
        own = [row for row in rows if float(row["bath_K"]) == kelvin]
        _, _, of_bath = said.partition(f"At the end, {count} of hexapeptide\n")
        numbers = dict(re.findall(r"^  (\w[\w ,]*?) +(-?[\d,.]+) (?:kcal/mol|K)", of_bath, re.MULTILINE)[:4])
        told = [float(value.replace(",", "")) for value in numbers.values()]
        columns = ("potential_kcal_mol", "restraints_kcal_mol", "kinetic_kcal_mol", "temperature_K")
        assert list(numbers) == ["potential, with restraints", "restraints", "kinetic", "temperature"]
        means = [np.mean([float(row[column]) for row in own]) for column in columns]
        np.testing.assert_allclose(told, means, atol=0.051)
        assert f" K, heat bath {kelvin:.1f} K" in of_bath


def test_the_text_of_a_run_says_how_long_it_warms_up_and_its_cutoff(tmp_path):
    words = ["--report-every", 4, "--minimize", 0, "--trajectory-format", "none", "--timestep", 1]
    said = run("simulate", HEXAPEPTIDE, "-o", tmp_path / "one", "--steps", 8, *words, "--friction", 2).stdout
    assert "Warm-up       about the first 2.5 ps, to be excluded from averages: here the complete run\n" in said
    assert "Replicas      1, none stopped" in said
    assert re.search(r"Speed +[\d,.e+]+ ns/day; ", said)  # of one replica one speed
    cut = pele_ocl.simulate(
        HEXAPEPTIDE, tmp_path / "cut", steps=4, report_every=4, minimize=0, timestep=1, trajectory_format="none",
        integrator="verlet", cutoff=9.0,
    )  # fmt: skip
    assert "pairs within 9 A" in cut.text()
    assert cut.to_json()["dynamics"]["cutoff"] == 9.0
    assert cut.warm_up is None
    assert "Warm-up" not in cut.text()


def test_shards_of_a_run_share_a_folder(tmp_path):
    """Each moves its replicas, in any order; the last one puts the tables together; options have former names, too."""
    words = [HEXAPEPTIDE, *SHORT, *LADDER]
    run("simulate", *words, "-o", tmp_path / "whole", "--keep-motion", "--trajectory", "dcd")
    words += ["-o", tmp_path / "parts", "--keep-center-motion", "--trajectory-format", "dcd"]
    second = json.loads(run("simulate", *words, "--shard", "2/2", "--json").stdout)
    assert [row["replica"] for row in second["replicas"]] == [2, 3]
    assert not (tmp_path / "parts" / "energies.csv").exists()
    assert "already contains a run" in run("simulate", *words, "--shard", "2/2", code=1).stderr
    said = run("simulate", *words, "--shard", "1/3", code=1)
    assert "2 ladders cannot be divided among 3 shards" in said.stderr
    run("simulate", *words, "--shard", "1/2")
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")


def test_python_writes_what_the_command_writes(tmp_path):
    """Of a path and of Atoms, by the function and by a Simulation; the result is the command's."""
    said = run("simulate", HEXAPEPTIDE, "-o", tmp_path / "command", *SHORT, "--replicas", 2, "--json")
    words = {"constraints": "hbonds", "seed": 3}
    of_run = {"steps": 60, "report_every": 20, "minimize": 20}
    by_path = pele_ocl.simulate(HEXAPEPTIDE, tmp_path / "path", replicas=2, **words, **of_run)
    assert contents(by_path.folder) == contents(tmp_path / "command")
    expected, found = json.loads(said.stdout), json.loads(json.dumps(by_path.to_json()))
    for record in (expected, found):
        assert record.pop("ns_per_day")["all"] > 0
        assert record.pop("seconds")["steps"] > 0
        record.pop("folder")
    assert found == expected
    assert [path.name for path in by_path.trajectories] == ["hexapeptide-00000.nc", "hexapeptide-00001.nc"]
    table = by_path.table()
    assert len(table) == 8
    assert table["potential_kcal_mol"].tolist() == [float(row["potential_kcal_mol"]) for row in rows_of(by_path.folder)]
    assert table["frame"].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]  # as `frames` of other functions counts
    head = str(table).splitlines()[1]
    assert head.split("  ")[:3] == ["step", "time [ps]", "replica"]
    assert len(str(table).splitlines()) == 2 + len(table)  # one table, whose rows say their replica
    assert "Replicas      2, none stopped" in repr(by_path)
    by_path.save(tmp_path / "copy")
    assert contents(tmp_path / "copy") == contents(by_path.folder)
    atoms = pele_ocl.read(HEXAPEPTIDE)
    by_atoms = pele_ocl.simulate(atoms, tmp_path / "atoms", replicas=2, **words, **of_run)
    simulation = pele_ocl.Simulation(atoms, 2, **words)
    by_object = simulation.write(tmp_path / "object", **of_run)
    for result in (by_atoms, by_object):
        assert [row["total_kcal_mol"] for row in result.rows] == [row["total_kcal_mol"] for row in by_path.rows]
        for own, theirs in zip(result.trajectories, by_path.trajectories, strict=True):
            assert own.read_bytes() == theirs.read_bytes()
    as_pdb = pele_ocl.simulate(atoms, tmp_path / "pdb", replicas=1, trajectory_format="pdb", **words, **of_run)
    numbers, models = pele_ocl.read_conformations(as_pdb.trajectories[0], atoms=atoms)
    frames = pele_ocl.read_conformations(by_object.trajectories[0])[1]
    assert numbers == [1, 2, 3, 4]
    assert np.abs(models - frames).max() < 6e-4
    assert as_pdb.trajectories[0].read_text().endswith("ENDMDL\nEND\n")
    more = simulation.write(tmp_path / "more", steps=20, report_every=10)
    assert (more.steps, more.table()["step"].tolist()) == (80, [60, 60, 70, 70, 80, 80])
    first = np.concatenate(list(pele_ocl.trajectory(more.trajectories[0])))[0]
    np.testing.assert_array_equal(first, frames[-1])


def test_times_have_units(tmp_path):
    for every in (5, "5", "10fs", "0.01 ps"):
        times = pele_ocl.simulate(
            HEXAPEPTIDE, tmp_path / f"every {every} {type(every)}", steps=10, minimize=0, report_every=every
        )
        assert times.table()["time_ps"].tolist() == [0, 0.01, 0.02]
    told = run(
        "simulate", HEXAPEPTIDE, "-o", tmp_path / "told", "--steps", 10, "--minimize", 0, "--report-every", "10fs"
    )
    assert (tmp_path / "told" / "energies.csv").read_text().count("\n") == 4, told.stdout
    settings = pele_ocl.Simulation(pele_ocl.read(HEXAPEPTIDE), 2, temperature=[300, 310], exchange_every="4fs").settings
    assert settings.exchange_every == 2
    for every, why in (("5fs", "2.5 time steps of 2 fs; choose a multiple of"), ("1 kg", "a time with its unit"),
                       (0, "a whole number, 1 or more"), ("-2ps", "choose a multiple of")):  # fmt: skip
        with pytest.raises(pele_ocl.InputError, match=f"report_every is .*{why}"):
            pele_ocl.simulate(HEXAPEPTIDE, tmp_path / "none", steps=10, report_every=every)
    words = ["--time", "40fs", "--timestep", "4fs", "--report-every", 10, "--hydrogen-mass", 3, "--temperature", "310K"]
    said = run("simulate", HEXAPEPTIDE, "-o", tmp_path / "run", *words, "--constraints", "HBonds", "--json")
    found = json.loads(said.stdout)
    assert (found["steps"], found["dynamics"]["timestep"], found["dynamics"]["minimize"]) == (10, 4.0, 200)
    assert found["dynamics"]["temperatures"] == [310.0]
    assert "hydrogens have a mass of 3 Da, taken from their neighbours" in found["notes"]


def test_short_steps_and_free_bonds_are_noted_in_the_words_of_the_command(tmp_path):
    words = ["--steps", 2, "--report-every", 2, "--minimize", 3]
    said = run("simulate", HEXAPEPTIDE, "-o", tmp_path / "long", *words)
    assert "vibrate too fast for steps of 2 fs; constrain them with --constraints hbonds\n" in said.stderr
    assert "Minimized     first, up to 3 iterations\n" in said.stdout
    said = run("simulate", HEXAPEPTIDE, "-o", tmp_path / "short", *words, "--timestep", 0.002)
    assert "steps of 0.002 fs are very short; --timestep is in fs\n" in said.stderr


def test_examples_of_docstrings(tmp_path, monkeypatch):
    (tmp_path / "data").symlink_to(Path(HEXAPEPTIDE).parents[1])
    monkeypatch.chdir(tmp_path)
    runner = doctest.DocTestRunner()
    for documented in (pele_ocl.simulate, pele_ocl.Simulation.write, pele_ocl.read_conformations):
        (example,) = doctest.DocTestFinder(recurse=False).find(documented, documented.__name__)
        assert runner.run(example).failed == 0
    assert runner.tries > 5
