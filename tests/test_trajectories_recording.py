"""Results of frames in files that outlive their program, and runs that go on where another ended."""

from __future__ import annotations

import csv
import io
import json
import os
import resource
import signal
import subprocess
import sys
import textwrap
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import h5py
import numpy as np
import pytest
from conftest import DEVICES, random_atoms
from test_cli import HEXAPEPTIDE, error_of, on_the_chosen_device, run  # noqa: F401
from trajectory_helpers import moving, write_trajectory

import pele_ocl
from pele_ocl import Energy, FormatError, InputError, Nonbond, PairList, PositionalRestraint, energy_over, trajectory
from pele_ocl.formats import SparseFile
from pele_ocl.trajectories import streaming
from pele_ocl.trajectories.energies import recorded
from pele_ocl.trajectories.fingerprints import sha256_of
from pele_ocl.trajectories.recording import RECORDERS, text
from pele_ocl.trajectories.streaming import FrameResults
from pele_ocl.trajectories.tally import Rate

ROOT = Path(__file__).parent.parent
SUFFIXES = tuple(RECORDERS)
SETTINGS = {"quantity": "sums", "n_atoms": "5"}


@pytest.fixture
def peptide():
    return pele_ocl.read(HEXAPEPTIDE)


@pytest.fixture
def frames(tmp_path):
    return write_trajectory(tmp_path / "t.nc", np.random.default_rng(0).normal(0, 5, (200, 5, 3)))


def sums(positions, progress):
    values = np.asarray(positions, np.float64).sum(axis=(1, 2))
    n_pairs = np.abs(values).astype(np.int64) % 3
    errors = {int(k): "less than -60, and no more" for k in np.flatnonzero(values < -60)}
    values[list(errors)] = np.nan
    return FrameResults({"half": values / 2, "total": values, "n_pairs": n_pairs}, errors)


def record(frames: Path, output: Path, *, resume=False, settings=SETTINGS, words=None):
    opened = trajectory(frames, frames=words)
    return list(recorded(opened, sums, output=output, resume=resume, settings=settings))


def content(path: Path):
    """Read the bytes of a text, the datasets and attributes of an HDF5 file."""
    if path.suffix != ".h5":
        return path.read_bytes()
    with h5py.File(path) as file:
        return [(name, values[()].tobytes(), dict(values.attrs)) for name, values in file.items()], dict(file.attrs)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(streaming, "CHUNK_ATOMS", 35)
    monkeypatch.setattr(streaming, "_MOST_CHUNKS", 1)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("done", [0, 3])
def test_an_interrupted_run_goes_on_to_the_same_file(suffix, done, frames, tmp_path):
    whole, broken = tmp_path / f"whole{suffix}", tmp_path / f"broken{suffix}"
    expected = record(frames, whole)
    found = recorded(trajectory(frames), sums, output=broken, resume=True, settings=SETTINGS)
    for _ in range(done + 1):
        next(found)
    found.close()
    parts = record(frames, broken, resume=True)
    assert content(broken) == content(whole)
    assert [part.is_earlier for part in parts[:2]] == [True, False]
    for name in ("half", "total", "n_pairs"):
        joined = np.concatenate([part.results.columns[name] for part in parts])
        assert np.array_equal(joined, np.concatenate([part.results.columns[name] for part in expected]), equal_nan=True)
    assert sum(len(part.results.errors) for part in parts) == sum(len(part.results.errors) for part in expected) > 0
    record(frames, broken, resume=True)  # complete already
    assert content(broken) == content(whole)
    record(frames, broken)  # anew
    assert content(broken) == content(whole)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
@pytest.mark.parametrize("kept", [0.0, 0.02, 0.5, 0.9999])
def test_a_line_that_was_cut_off_is_written_again(suffix, kept, frames, tmp_path):
    whole, broken = tmp_path / f"whole{suffix}", tmp_path / f"broken{suffix}"
    record(frames, whole)
    data = whole.read_bytes()
    broken.write_bytes(data[: int(kept * len(data))])
    record(frames, broken, resume=True)
    assert broken.read_bytes() == data


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_other_settings_are_not_resumed(suffix, frames, tmp_path):
    output = tmp_path / f"out{suffix}"
    record(frames, output)
    with pytest.raises(FormatError, match="was made with n_atoms 5, now it is 6; resume with the same settings"):
        record(frames, output, resume=True, settings=SETTINGS | {"n_atoms": "6"})
    with pytest.raises(FormatError, match=r"choose another name for -o|start again"):
        record(frames, output, resume=True, words="1:")
    output.write_bytes(b"something else\n" * 20)
    with pytest.raises(FormatError, match="choose another name for -o"):
        record(frames, output, resume=True)


KILLED = """
    import sys, time
    sys.path[:0] = [{tests!r}, {root!r}]
    import test_trajectories_recording as here
    here.streaming.CHUNK_ATOMS, here.streaming._MOST_CHUNKS = 35, 1
    summed = here.sums

    def slowly(positions, progress):
        time.sleep(0.01)
        return summed(positions, progress)

    here.sums = slowly
    here.record(here.Path({frames!r}), here.Path({output!r}))
"""


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_killed_run_keeps_its_rows_and_goes_on(suffix, frames, tmp_path):
    whole, killed = tmp_path / f"whole{suffix}", tmp_path / f"killed{suffix}"
    record(frames, whole)
    script = textwrap.dedent(KILLED).format(
        tests=str(ROOT / "tests"), root=str(ROOT), frames=str(frames), output=str(killed)
    )
    process = subprocess.Popen([sys.executable, "-c", script])
    try:
        while rows(killed) < 20 and process.poll() is None:
            time.sleep(0.005)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert 20 <= rows(killed) < 200
    record(frames, killed, resume=True)
    assert content(killed) == content(whole)


def rows(path: Path) -> int:
    """Whole rows of a file."""
    if not path.exists():
        return 0
    if path.suffix != ".h5":
        return max(0, path.read_bytes().count(b"\n") - 4)
    with h5py.File(path, locking=False) as file:
        done = int(file["complete"][()])
        assert np.isfinite(file["n_pairs"][:done]).all()
        return done


def test_tables_are_for_other_programs(tmp_path, peptide):
    positions = moving(peptide.positions, 12)
    positions[5, 3] = positions[5, 4]
    path = write_trajectory(tmp_path / "t.nc", positions)
    plan = Energy(peptide, gradient=False, device=DEVICES[0])
    found = energy_over(plan, path, output=tmp_path / "e.csv")
    with open(tmp_path / "e.csv", newline="") as file:
        table = list(csv.reader(line for line in file if not line.startswith("#")))
    assert table[0] == ["frame", *(f"{name} [kcal/mol]" for name in (*found.terms.names, "total")), "error"]
    assert [float(row[-2]) for row in table[1:]] == pytest.approx(found.total, rel=0, abs=0, nan_ok=True)
    assert "are at the same position" in table[6][-1]
    energy_over(plan, path, output=tmp_path / "e.jsonl")
    head, *lines = [json.loads(line) for line in (tmp_path / "e.jsonl").read_text().splitlines()]
    assert head["settings"]["precision"] == "float32"
    assert lines[3]["total"] == found.total[3]
    assert lines[5]["total"] is None
    assert "same position" in lines[5]["error"]
    energy_over(plan, path, output=tmp_path / "e.h5")
    with h5py.File(tmp_path / "e.h5") as file:
        assert np.array_equal(file["total"], found.total, equal_nan=True)
        assert file["error"].asstr()[5].startswith("atom 3")
        assert file["error"][4] == b""
        assert file["total"].attrs["unit"] == "kcal/mol"


def test_other_terms_are_not_resumed(tmp_path, peptide):
    path, output = write_trajectory(tmp_path / "t.nc", moving(peptide.positions, 2)), tmp_path / "e.csv"

    def over(*restraints, resume=True, **options):
        plan = Energy(peptide, gradient=False, device=DEVICES[0], terms=restraints, **options)
        return energy_over(plan, path, output=output, resume=resume)

    over(PositionalRestraint(1.0, name="held"), only_terms=["bond", "angle"], resume=False)
    over(PositionalRestraint(1.0, name="held"), only_terms=["bond", "angle"])
    with pytest.raises(
        FormatError, match=r'was made with terms ."bond", "angle", "held"., now it is ."angle", "held".'
    ):
        over(PositionalRestraint(1.0, name="held"), only_terms=["angle"])
    with pytest.raises(FormatError, match="was made with further_terms_sha256"):
        over(PositionalRestraint(2.0, name="held"), only_terms=["bond", "angle"])


def test_frames_are_not_recorded_with_a_term_that_another_run_cannot_recognize(tmp_path, peptide):
    """It computes energies, but the run that would resume the file could be one with another function."""

    @dataclass(frozen=True)
    class Scaled(PositionalRestraint):
        factor: object = None

    path, output = write_trajectory(tmp_path / "t.nc", moving(peptide.positions, 2)), tmp_path / "e.csv"
    plan = Energy(peptide, device=DEVICES[0], terms=[Scaled(1.0, name="held", factor=lambda: 2)])
    assert energy_over(plan, path).total.shape == (2,)
    with pytest.raises(InputError, match=r"another run cannot recognize the function .*<lambda>"):
        energy_over(plan, path, output=output)
    assert not output.exists()


def test_no_file_that_is_read_is_an_output(tmp_path, peptide):
    path = write_trajectory(tmp_path / "t.h5", moving(peptide.positions, 2))
    topology, link = tmp_path / "whole.csv.pdb", tmp_path / "link.csv"
    topology.write_bytes(HEXAPEPTIDE.read_bytes())
    link.symlink_to(topology)
    before = path.read_bytes()
    plan = Energy(peptide, gradient=False, device=DEVICES[0])
    for output, options in ((path, {}), (link, {"topology": topology})):
        with pytest.raises(FormatError, match="the same file as the input"):
            energy_over(plan, path, output=output, **options)
        with pytest.raises(FormatError, match="the same file as the input"):
            energy_over(plan, trajectory(path, **options), output=output, resume=True)
    assert (path.read_bytes(), topology.read_bytes()) == (before, HEXAPEPTIDE.read_bytes())


def test_other_pairs_and_fields_of_terms_are_not_resumed(tmp_path, peptide):
    path, output = write_trajectory(tmp_path / "t.nc", moving(peptide.positions, 2)), tmp_path / "e.csv"
    pairs = pele_ocl.all_pairs(peptide)
    first, second = next(pairs.chunks(500)).first, next(pairs.chunks(500)).second

    def over(pairs, *, resume=True, **options):
        plan = Nonbond(peptide, pairs, device=DEVICES[0], **options)
        return energy_over(plan, path, output=output, resume=resume)

    listed = PairList(96, first, second)
    over(listed, resume=False)
    over(listed)
    for other in (PairList(96, second, first), PairList(96, first, second, one_four=np.arange(500) == 3)):
        with pytest.raises(FormatError, match="was made with pairs_sha256"):
            over(other)
    with pytest.raises(FormatError, match="was made with internal_dielectrics_sha256"):
        over(listed, internal_dielectrics=np.full(96, 2.0))
    with pytest.raises(FormatError, match="was made with gradient true, now it is false"):
        over(listed, gradient=False)
    lines = output.read_text()
    output.write_text(lines.replace("frame,lennard_jones", "frame,other"))
    with pytest.raises(FormatError, match=r"contains lennard_jones, .*, not other, .*; choose another name for -o"):
        over(listed)


def test_fields_of_terms_count():
    @dataclass(frozen=True, slots=True)
    class Slotted(PositionalRestraint):
        more: object = None

    terms = [Slotted(1.0, more=more) for more in (1, {"a": np.arange(2000)}, {"a": np.arange(2000) % 1999})]
    assert len({sha256_of((term,)) for term in (*terms, PositionalRestraint(1.0))}) == 4
    assert sha256_of(terms[1]) == sha256_of(Slotted(1.0, more={"a": np.arange(2000)}))


FULL = """
    import sys
    sys.path[:0] = [{tests!r}, {root!r}]
    import test_trajectories_recording as here
    try:
        with here.files_end_at(3000):
            here.record(*map(here.Path, sys.argv[1:]))
    except here.FormatError as error:
        print(error)
"""


@contextmanager
def files_end_at(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize(("suffix", "room"), [(".csv", 5000), (".jsonl", 5000), (".csv", 10)])
def test_a_full_disk_is_a_sentence_and_rows_stay(suffix, room, frames, tmp_path):
    """Limits of the size of files fail as full disks do."""
    folder = tmp_path / "results"
    folder.mkdir()
    whole, full = tmp_path / f"whole{suffix}", folder / f"full{suffix}"
    record(frames, whole)
    full.write_text("before")
    with files_end_at(room), pytest.raises(FormatError) as error:
        record(frames, full)
    assert str(error.value) == f"{full}: cannot be written: File too large"
    assert os.listdir(folder) == [full.name]
    if room == 10:
        assert full.read_text() == "before"
        return
    assert full.read_bytes() == whole.read_bytes()[: len(full.read_bytes())]
    assert 20 < rows(full) < 200
    assert full.read_bytes().endswith(b"\n")
    record(frames, full, resume=True)
    assert full.read_bytes() == whole.read_bytes()


def test_a_full_disk_does_not_crash_libhdf5(frames, tmp_path):
    full = tmp_path / "results" / "full.h5"
    full.parent.mkdir()
    full.write_text("before")
    script = textwrap.dedent(FULL).format(tests=str(ROOT / "tests"), root=str(ROOT))
    done = subprocess.run([sys.executable, "-c", script, frames, full], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{full}: cannot be written: File too large\n"
    assert os.listdir(full.parent) == [full.name]
    assert full.read_text() == "before"


def test_the_file_of_many_frames_takes_no_more_memory(tmp_path):
    results = FrameResults({"total": np.zeros(1)}, {})
    peaks = []
    for n_frames in (1000, 10**6):
        recorder = RECORDERS[".h5"](tmp_path / f"{n_frames}.h5", SETTINGS, range(n_frames))
        tracemalloc.start()
        try:
            size = recorder._outlined(recorder.path, results)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
        assert size >= n_frames * (200 + 8 + 8)
        assert recorder.path.stat().st_blocks * 512 < 2**20
    assert max(peaks) < 2**20


def test_a_file_in_memory_holds_what_is_written_alone():
    rng, found, expected = np.random.default_rng(0), SparseFile(), io.BytesIO()
    for _ in range(200):
        place, data = int(rng.integers(10**6)), rng.bytes(int(rng.integers(200_000)))
        for file in (found, expected):
            file.seek(place)
            file.write(data)
        start, count = int(rng.integers(10**6)), int(rng.integers(200_000))
        for file in (found, expected):
            file.seek(start)
        assert found.read(count) == expected.read(count)
        assert found.tell() == expected.tell()
    end = expected.seek(0, io.SEEK_END)
    assert (found.seek(0, io.SEEK_END), found.truncate(10)) == (end, end)
    whole = bytearray(end)
    for place, page in found.pages():
        whole[place : place + len(page)] = page
    assert whole == expected.getvalue()
    found.seek(10**12)
    found.write(b"far")
    assert sum(len(page) for _, page in found.pages()) < 2**21


def test_room_for_reasons_is_had_before_they_are_written(frames, tmp_path, monkeypatch):
    from pele_ocl.trajectories.recording import hdf5

    reserve, output, places = hdf5._reserve, tmp_path / "e.h5", []

    def full(path, first, end):
        places.append((first, end))
        if len(places) > 2:  # the file is there
            raise OSError(28, "full")
        reserve(path, first, end)

    monkeypatch.setattr(hdf5, "_reserve", full)
    with pytest.raises(FormatError, match=r"e.h5: cannot be written: No space left on device"):
        record(frames, output)
    monkeypatch.undo()
    assert places[2][1] - places[2][0] == 7 * 200
    record(frames, output, resume=True)
    record(frames, tmp_path / "whole.h5")
    assert content(output) == content(tmp_path / "whole.h5")


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_rows_of_several_blocks_stand_in_order(suffix, frames, tmp_path, monkeypatch):
    """Rows and their errors agree in many blocks and in one."""
    whole, parts = tmp_path / f"whole{suffix}", tmp_path / f"parts{suffix}"
    record(frames, whole)
    assert b"less than -60" in whole.read_bytes()
    monkeypatch.setattr(text, "_AT_ONCE", 2)  # a piece has seven
    record(frames, parts)
    assert parts.read_bytes() == whole.read_bytes()


POWERS = np.array([*(10.0**k for k in range(-8, 20)), *(2.0**k for k in range(-60, 62))])
RNG = np.random.default_rng(13)
NUMBERS = {
    "energies": RNG.normal(-3000, 800, 2000),
    "energies in float32": RNG.normal(-3000, 800, 2000).astype(np.float32),
    "all bits": RNG.integers(0, 2**64, 2000, dtype=np.uint64).view(np.float64),
    "beside powers": (POWERS[:, None] + np.arange(-3, 4) * np.spacing(POWERS)[:, None]).ravel(),
    "odd ones": np.array([0.0, -0.0, np.nan, 5e-324, 1e-5, 0.1 + 0.2, 1e16, 9999999999999998, 123456]),
    "whole numbers": RNG.integers(-(2**62), 2**62, 2000),
}


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_have_as_few_digits_as_read_back_the_same(suffix, name, tmp_path):
    values, path = NUMBERS[name], tmp_path / f"e{suffix}"
    values = values[np.isfinite(values)] if name == "all bits" else values
    of_file = np.stack([values, np.ones_like(values)], axis=1)[:, 0]  # a column of a table, as terms are
    with RECORDERS[suffix](path, SETTINGS, range(len(values))) as recorder:
        recorder.append(FrameResults({"x": of_file}, {}))
    with RECORDERS[suffix](path, SETTINGS, range(len(values))) as recorder:
        found = recorder.resume().columns["x"]
    assert np.array_equal(found, values, equal_nan=values.dtype.kind == "f")
    assert np.array_equal(np.signbit(found), np.signbit(values))
    lines = path.read_text().splitlines()
    if suffix == ".csv":
        texts = [line.split(",")[1] for line in lines[3:]]
    else:
        texts = [json.loads(line, parse_float=str, parse_int=str)["x"] for line in lines[1:]]
    numbers = values.astype(np.float64) if values.dtype.kind == "f" else values
    for text_there, value in zip(texts, numbers.tolist(), strict=True):
        assert text_there in (None, "nan") if value != value else Decimal(text_there) == Decimal(repr(value))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_texts_that_programs_would_misread(suffix, frames, tmp_path):
    def odd(positions, progress):
        m = len(positions)
        return FrameResults(
            {"=a,b [c] %b": np.full(m, np.nan), "total": np.arange(float(m))}, {0: "=1+1\n\r\x85\udcff"}
        )

    settings, output = SETTINGS | {"input": "\udcff.pdb"}, tmp_path / f"e{suffix}"
    for _ in range(2):
        parts = list(recorded(trajectory(frames), odd, output=output, resume=True, settings=settings))
        assert list(parts[0].results.columns) == ["=a,b [c] %b", "total"]
    assert parts[0].results.errors[0] == "=1+1 \\udcff"
    if suffix == ".csv":
        assert '\nframe,"\'=a,b [c] %b [kcal/mol]",total' in output.read_text()
        assert ",'=1+1 \\udcff\n" in output.read_text()


@pytest.mark.parametrize("command", ["energy", "solvent", "nonbond"])
def test_the_commands_take_trajectories(command, tmp_path, peptide):
    positions = moving(peptide.positions, 9)
    nc, dcd = (write_trajectory(tmp_path / f"t.{s}", p) for s, p in (("nc", positions[:5]), ("dcd", positions[5:])))
    options = ("-t", nc, "-t", dcd, "--frames", "1:9:3")
    report = json.loads(run(command, HEXAPEPTIDE, *options, "--json").stdout)
    models = tmp_path / "one.pdb"
    for frame, model in zip((1, 4, 7), report["frames"], strict=True):
        assert model["frame"] == frame
        atoms = peptide.moved(positions[frame])
        if command == "nonbond":
            result = pele_ocl.nonbond(atoms, pele_ocl.pairs_within(atoms, 12.0), gradient=False, device=DEVICES[0])
            assert model["n_pairs"] == result.n_pairs
        else:
            result = getattr(pele_ocl, command)(atoms, device=DEVICES[0])
        assert {name: model["energy"][name] for name in result.energy} == pytest.approx(
            result.energy, rel=2e-6, abs=1e-4
        )
    alone = json.loads(run(command, HEXAPEPTIDE, "--json").stdout)
    assert report["settings"] == alone["settings"]
    assert report.get("contents") == alone.get("contents")
    totals = [model["energy"]["total"] for model in report["frames"]]
    assert report["statistics"]["total"]["mean"] == pytest.approx(np.mean(totals))
    assert (report["n_frames"], report["n_failed"], report["frames_taken"]) == (3, 0, "1:9:3")
    text = run(command, HEXAPEPTIDE, *options, "-o", tmp_path / "e.h5").stdout
    assert "3 frames of 2 files, of 9" in text
    assert "frames/s" in text
    run(command, HEXAPEPTIDE, *options, "-o", tmp_path / "e.h5", "--resume")
    with h5py.File(tmp_path / "e.h5") as file:
        assert file["total"][()].tolist() == pytest.approx(totals, rel=1e-6)
    assert not models.exists()


@pytest.mark.parametrize(("first", "expected"), [(0, [4, 40 / 6, 65 / 8]), (1, [4, 20, 15]), (2, [4, 40 / 6, 65 / 8])])
def test_the_rate_leaves_out_what_kernels_are_compiled_before(first, expected, monkeypatch):
    times = iter([0.0, 5.0, 6.0, 8.0])
    monkeypatch.setattr("pele_ocl.trajectories.tally.time.perf_counter", lambda: next(times))
    rate = Rate(first)
    rate.earlier(100)
    found = []
    for done in (120, 140, 165):
        rate.add(done)
        found.append(rate())
    assert found == pytest.approx(expected)


def test_frames_have_a_surface_area_and_name_their_radii(tmp_path, peptide):
    path = write_trajectory(tmp_path / "t.nc", moving(peptide.positions, 2))
    model = pele_ocl.SolventModel(surface="lcpo")
    plan = pele_ocl.Solvent(peptide, model=model, device=DEVICES[0])
    expected = [plan.evaluate(positions).surface_area for positions in next(iter(trajectory(path, peptide)))]
    for suffix in SUFFIXES:
        found = energy_over(plan, path, output=tmp_path / f"e{suffix}")
        assert found.surface_area == pytest.approx(expected, rel=1e-6)
        assert "surface_area" not in found.terms.names
        assert energy_over(plan, path, output=tmp_path / f"e{suffix}", resume=True).surface_area.tolist() == (
            found.surface_area.tolist()
        )
    text = (tmp_path / "e.csv").read_text()
    assert "\n# gb_radii_set: openmm-obc\n" in text
    assert "total [kcal/mol],surface_area [angstrom^2],error\n" in text
    with h5py.File(tmp_path / "e.h5") as file:
        assert file["surface_area"].attrs["unit"] == "angstrom^2"
    done = run("solvent", HEXAPEPTIDE, "-t", path, "--surface", "lcpo")
    assert "Solvent       obc2, radii openmm-obc" in done.stdout
    assert f"Surface area of frames (LCPO), A^2: mean {np.mean(expected):,.1f}" in done.stdout
    assert "use .jsonl" in error_of("solvent", HEXAPEPTIDE, "-t", path, "-o", tmp_path / "e.json")


def test_one_pair_list_for_all_frames(tmp_path, peptide):
    positions = moving(peptide.positions, 4)
    path = write_trajectory(tmp_path / "t.nc", positions)
    report = json.loads(run("nonbond", HEXAPEPTIDE, "-t", path, "--no-cutoff", "--solvent", "vacuum", "--json").stdout)
    plan = pele_ocl.Nonbond(peptide, pele_ocl.all_pairs(peptide), solvent="vacuum", gradient=False, device=DEVICES[0])
    assert [m["energy"]["total"] for m in report["frames"]] == pytest.approx(
        plan.evaluate_batch(positions).total, rel=1e-5
    )


def test_a_map_of_a_trajectory_is_the_mean_over_its_frames(tmp_path, peptide):
    positions = moving(peptide.positions, 4)
    path = write_trajectory(tmp_path / "t.dcd", positions)
    run("potmap", HEXAPEPTIDE, "-t", path, "--frames", "1:", "--spacing", "2", "-o", tmp_path / "mean.h5")
    found = pele_ocl.read_map(tmp_path / "mean.h5")
    maps = [pele_ocl.potmap(peptide.moved(p), found.grid, device=DEVICES[0]).map.values for p in positions[1:]]
    assert found.values == pytest.approx(np.mean(maps, axis=0), rel=1e-4, abs=1e-3)


def test_frames_that_fail_are_an_error_at_the_end(tmp_path, peptide):
    positions = moving(peptide.positions, 6)
    positions[2, 7] = np.nan
    path = write_trajectory(tmp_path / "t.nc", positions)
    result = run("energy", HEXAPEPTIDE, "-t", path, "-o", tmp_path / "e.csv", "--json", code=1)
    assert "Error: 1 frame of 6 failed: frame 2: positions of atom 7" in result.stderr
    report = json.loads(result.stdout)
    assert [sorted(model) == ["error", "frame"] for model in report["frames"]] == [False, False, True, *[False] * 3]
    assert len((tmp_path / "e.csv").read_text().splitlines()) > 6


def test_options_that_do_not_go_together(tmp_path, peptide):
    path = write_trajectory(tmp_path / "t.nc", moving(peptide.positions, 2))
    assert (
        "--frames applies to a trajectory; give one as --trajectory"
        in run("energy", HEXAPEPTIDE, "--frames", "1:", code=2).stderr
    )
    assert (
        "choose one of --models all and --trajectory"
        in run("energy", HEXAPEPTIDE, "-t", path, "--models", "all", code=2).stderr
    )
    resumed = ("-t", path, "-o", tmp_path / "e.csv", "--resume", "--per-residue")
    assert "--per-residue is the mean over the frames of one run" in run("energy", HEXAPEPTIDE, *resumed, code=2).stderr
    assert "give it as --output" in run("energy", HEXAPEPTIDE, "-t", path, "--resume", code=2).stderr
    assert "can be appended to .h5, .csv, .jsonl" in error_of(
        "energy", HEXAPEPTIDE, "-t", path, "-o", tmp_path / "e.json"
    )
    assert "the same file" in error_of("energy", HEXAPEPTIDE, "-t", path, "-o", path)
    other = write_trajectory(tmp_path / "other.nc", np.zeros((2, 100, 3)))
    assert "have 100 atoms, the structure 96; select" in error_of("energy", HEXAPEPTIDE, "-t", other)


def test_energies_of_residues_are_means_over_frames(tmp_path, peptide):
    positions = moving(peptide.positions, 5)
    bad = positions.copy()
    bad[3, 7] = np.nan
    path = write_trajectory(tmp_path / "t.h5", bad)
    double = ("--precision", "float64")
    report = json.loads(run("energy", HEXAPEPTIDE, "-t", path, "--per-residue", "--json", *double, code=1).stdout)
    plan = Energy(peptide, gradient=False, per_atom=True, precision="float64")
    each = plan.evaluate_batch(positions[[0, 1, 2, 4]]).per_residue()
    assert [residue["residue"] for residue in report["residues"]][:2] == ["A:MET1", "A:LYS2"]
    for term in ("coulomb", "gb_pair", "total"):
        found = [residue[term] for residue in report["residues"]]
        np.testing.assert_allclose(found, getattr(each, term).mean(axis=0), rtol=1e-9)
    spread = [residue["total_sd"] for residue in report["residues"]]
    np.testing.assert_allclose(spread, each.total.std(axis=0), rtol=1e-7)
    told = run("energy", HEXAPEPTIDE, "-t", path, "--per-residue", "--frames", ":3").stdout
    assert "Energy of residues, mean over frames, kcal/mol" in told
    assert "total sd" in told


LONG = """
    import resource, sys
    sys.path[:0] = [{tests!r}, {root!r}]
    import pele_ocl
    from conftest import DEVICES, random_atoms
    plan = pele_ocl.Energy(random_atoms(332), gradient=False, device=DEVICES[0])
    frames = pele_ocl.trajectory({path!r}, frames={frames!r})
    pele_ocl.energy_over(plan, frames, output={output!r})
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["nc", "dcd"])
def test_memory_does_not_grow_with_the_number_of_frames(suffix, tmp_path):
    positions = moving(random_atoms(332).positions, 1000)
    path = write_trajectory(tmp_path / f"t.{suffix}", np.tile(positions, (100, 1, 1)))
    peaks = []
    for frames in (":20000", ":"):
        script = textwrap.dedent(LONG).format(
            tests=str(ROOT / "tests"), root=str(ROOT), path=str(path), frames=frames, output=str(tmp_path / "e.h5")
        )
        peaks.append(int(subprocess.run([sys.executable, "-c", script], check=True, capture_output=True).stdout))
    assert peaks[1] - peaks[0] < 80_000  # KiB; the frames are 400,000
