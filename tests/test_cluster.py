"""Work shared out to processes: the same bytes whoever computes them, and whoever is killed."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
import pytest
from binding_helpers import LIGAND, write_complex
from conftest import DEVICES
from test_cli import HEXAPEPTIDE, error_of, on_the_chosen_device, run
from trajectory_helpers import moving, write_trajectory

import pele_ocl
from pele_ocl import SolventSpec
from pele_ocl.common.errors import InputError
from pele_ocl.common.extras import extra
from pele_ocl.jobs import Shard
from pele_ocl.jobs.places import claim, core_groups
from pele_ocl.jobs.tasks import WorkersDiedError, in_order
from pele_ocl.jobs.worker_start import WORKER_ENVIRONMENT
from pele_ocl.jobs.workers import at_scheduler, connected

__all__ = ["on_the_chosen_device"]  # a fixture that every test here uses

ROOT = Path(__file__).parent.parent
UBIQUITIN = ROOT / "data" / "structures" / "ubiquitin.pdb"
SECONDS = 120  # until a program that hangs is a fault
N_FRAMES, BAD = 640, 7

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning:distributed")


@dataclass(frozen=True)
class Work:
    """Frames, and the files that one process makes of them."""

    frames: Path
    whole: dict[str, bytes]

    def energy(self, output: Path, *more: object) -> tuple[str, ...]:
        return tuple(map(str, ("energy", HEXAPEPTIDE, "-t", self.frames, "-o", output, *more)))


def work_of(folder: Path, n_frames: int) -> Work:
    """Make frames, one of them bad, and the files that one process makes of them."""
    positions = moving(pele_ocl.read(HEXAPEPTIDE).positions, n_frames)
    positions[BAD, 3] = np.nan
    found = Work(write_trajectory(folder / "t.nc", positions), {})
    for suffix in (".h5", ".csv"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PELE_OCL_DEVICE", str(DEVICES[0].index))  # as each test has it
            run(*found.energy(folder / f"whole{suffix}"), code=1)
        found.whole[suffix] = (folder / f"whole{suffix}").read_bytes()
    return found


@pytest.fixture(scope="module")
def work(tmp_path_factory) -> Work:
    return work_of(tmp_path_factory.mktemp("work"), N_FRAMES)


def begun(*words: object) -> subprocess.Popen[str]:
    """A program of Python's in a process of its own."""
    environment = {**os.environ, "DASK_LOGGING__DISTRIBUTED": "critical", "PYTHONPATH": str(ROOT)}
    words = (sys.executable, "-m", *map(str, words))
    return subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(program: subprocess.Popen[str], code: int) -> tuple[str, str]:
    """Return what a program printed, once it has ended with a code."""
    out, err = program.communicate(timeout=SECONDS)
    assert program.returncode == code, err
    return out, err


@dataclass(frozen=True)
class Cluster:
    """File of a scheduler, its process, and the one that has begun its workers."""

    file: Path
    scheduler: subprocess.Popen[str]
    workers: subprocess.Popen[str]


@contextmanager
def dask_cluster(folder: Path) -> Iterator[Cluster]:
    """A scheduler with two workers, begun as docs/many.md says."""
    file = folder / "scheduler.json"
    file.unlink(missing_ok=True)
    scheduler = begun("dask", "scheduler", "--scheduler-file", file, "--port", 0, "--no-dashboard")
    options = ("--nworkers", 2, "--nthreads", 1, "--memory-limit", 0, "--resources", "ocl=1", "--no-dashboard")
    workers = begun("dask", "worker", "--scheduler-file", file, *options, "--local-directory", folder)
    try:
        for _ in range(10 * SECONDS):
            if file.exists():
                break
            time.sleep(0.1)
        yield Cluster(file, scheduler, workers)
    finally:
        for program in (workers, scheduler):
            end(program)


def end(program: subprocess.Popen[str]) -> None:
    """End a program; Dask's workers that still look for a scheduler that is gone do not listen, and are killed."""
    import psutil  # which Dask brings

    children = psutil.Process(program.pid).children(recursive=True) if program.poll() is None else []
    program.terminate()
    try:
        program.communicate(timeout=10)
    except subprocess.TimeoutExpired:
        for child in (*children, program):
            with suppress(psutil.NoSuchProcess):
                child.kill()
        program.communicate(timeout=SECONDS)


def workers_of(program: subprocess.Popen[str]) -> list[int]:
    """List the processes of the workers that a program has begun."""
    import psutil  # which Dask brings

    every = psutil.Process(program.pid).children(recursive=True)
    return [child.pid for child in every if not any("resource_tracker" in word for word in child.cmdline())]


def rows_in(output: Path) -> int:
    """Count the rows of a file of results, while another program writes it."""
    if not output.exists():
        return 0
    if output.suffix == ".csv":
        return output.read_bytes().count(b"\n") - 1
    with h5py.File(output, "r", locking=False) as file:
        return int(file["complete"][()])


def await_rows(output: Path, program: subprocess.Popen[str], least: int) -> None:
    """Wait until a file has so many rows, while the program that writes it is under way."""
    for _ in range(100 * SECONDS):
        if rows_in(output) >= least:
            return
        assert program.poll() is None, program.communicate()
        time.sleep(0.01)


@pytest.mark.parametrize("suffix", [".h5", ".csv"])
def test_workers_write_the_same_bytes_even_if_one_is_killed(suffix, work, tmp_path):
    output, shown = tmp_path / f"out{suffix}", tmp_path / "out.csv"
    program = begun("pele_ocl", *work.energy(output, "--workers", 2))
    if suffix == ".csv":
        await_rows(shown, program, 150)
        os.kill(max(workers_of(program)), signal.SIGKILL)
    out, err = ended(program, 1)
    assert output.read_bytes() == work.whole[suffix]
    assert f"Error: 1 frame of {N_FRAMES} failed: frame {BAD}: positions of atom 3" in err
    assert "Traceback" not in err
    assert "blocks, float32, on " in out


def test_a_cluster_whose_scheduler_is_killed(work, tmp_path):
    output = tmp_path / "out.csv"
    with dask_cluster(tmp_path) as cluster:
        program = begun("pele_ocl", *work.energy(output, "--scheduler", cluster.file))
        await_rows(output, program, 100)
        cluster.scheduler.kill()
        _, err = ended(program, 1)
        assert err.splitlines()[-1].startswith("Error: the scheduler of the cluster is not running; start it again")
        assert "Traceback" not in err
    assert 100 < output.read_bytes().count(b"\n") < N_FRAMES
    ended(begun("pele_ocl", *work.energy(output, "--resume", "--workers", 2)), 1)
    assert output.read_bytes() == work.whole[".csv"]


@pytest.fixture(scope="module")
def long_work(tmp_path_factory) -> Work:
    """Enough frames for a kill to come before the last."""
    return work_of(tmp_path_factory.mktemp("long"), 10 * N_FRAMES)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("victim", ["worker", "scheduler", "client"])
def test_kill_9_in_the_middle(victim, seed, long_work, tmp_path):
    rng = random.Random(f"{victim} {seed}")
    suffix = rng.choice([".h5", ".csv"])
    output, whole = tmp_path / f"out{suffix}", long_work.whole[suffix]
    with dask_cluster(tmp_path) as cluster:
        program = begun("pele_ocl", *long_work.energy(output, "--scheduler", cluster.file))
        await_rows(output, program, rng.randrange(20, 9 * N_FRAMES))
        victims = {"scheduler": [cluster.scheduler.pid], "client": [program.pid], "worker": workers_of(cluster.workers)}
        os.kill(rng.choice(victims[victim]), signal.SIGKILL)
        ended(program, -signal.SIGKILL if victim == "client" else 1)
    if victim == "worker":
        assert output.read_bytes() == whole
    else:
        assert rows_in(output) < 10 * N_FRAMES
    run(*long_work.energy(output, "--resume"), code=1)
    assert output.read_bytes() == whole


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("victim", ["worker", "scheduler", "client"])
def test_kill_9_at_any_time(victim, seed, work, tmp_path):
    """Kills come before there are rows, too: while programs begin, find each other, and compile."""
    rng = random.Random(f"{victim} {seed}")
    output, seconds = tmp_path / "out.csv", rng.uniform(0.0, 8.0)
    if victim == "worker":
        program = begun("pele_ocl", *work.energy(output, "--workers", 2))
        time.sleep(seconds)
        for pid in workers_of(program)[-1:]:
            os.kill(pid, signal.SIGKILL)
        _, err = ended(program, 1)
        assert output.read_bytes() == work.whole[".csv"], err
    else:
        with dask_cluster(tmp_path) as cluster:
            program = begun("pele_ocl", *work.energy(output, "--scheduler", cluster.file))
            time.sleep(seconds)
            (program if victim == "client" else cluster.scheduler).kill()
            _, err = program.communicate(timeout=SECONDS)
            assert err.startswith("Error: ") or not err or victim == "client"
    run(*work.energy(output, "--resume"), code=1)
    assert output.read_bytes() == work.whole[".csv"]


@contextmanager
def dashboards_port_taken() -> Iterator[None]:
    """A block in which the port of Dask's dashboards is another program's."""
    with socket.socket() as other:
        with suppress(OSError):  # where it has been taken before
            other.bind(("", 8787))
            other.listen()
        yield


def test_structures_go_to_workers_and_a_bad_one_is_a_row(tmp_path):
    (tmp_path / "bad.pdb").write_text("ATOM garbage\n")
    words = ("energy", HEXAPEPTIDE, tmp_path / "bad.pdb", UBIQUITIN, "-o", tmp_path / "out.csv")
    ended(begun("pele_ocl", *words), 1)  # the file names the command
    alone = (tmp_path / "out.csv").read_bytes()
    with dashboards_port_taken():
        out, err = ended(begun("pele_ocl", *words, "--workers", 2), 1)
    assert (tmp_path / "out.csv").read_bytes() == alone
    assert "bad.pdb          line 1: the line ends before the coordinates do" in out
    # A slow machine also tells how far it is.
    assert not [line for line in err.splitlines() if not line.startswith("Energy: ")]
    assert not list(tmp_path.glob("*.part"))


SLOW = pytest.mark.slow  # each starts a cluster; the others go the same way


@pytest.mark.parametrize(
    "command", [pytest.param("solvent", marks=SLOW), pytest.param("nonbond", marks=SLOW), "binding"]
)
def test_frames_of_other_commands_go_to_workers(command, tmp_path):
    topology, _, frames = write_complex(tmp_path)
    words = (command, topology, "-t", frames, *(("--ligand", LIGAND) if command == "binding" else ()))
    ended(begun("pele_ocl", *words, "-o", tmp_path / "alone.csv"), 0)
    ended(begun("pele_ocl", *words, "-o", tmp_path / "shared.csv", "--workers", 2), 0)
    assert (tmp_path / "shared.csv").read_bytes() == (tmp_path / "alone.csv").read_bytes()


@SLOW
def test_replicas_of_a_cluster_are_those_of_one_process(tmp_path):
    words = ("simulate", HEXAPEPTIDE, "--replicas", 4, "--replicas-per-device", 2, "--steps", 40, "--report-every", 20)
    ended(begun("pele_ocl", *words, "--constraints", "hbonds", "-o", tmp_path / "alone"), 0)
    with dask_cluster(tmp_path) as cluster:
        options = ("--constraints", "hbonds", "-o", tmp_path / "shared", "--scheduler", cluster.file)
        ended(begun("pele_ocl", *words, *options), 0)
    names = [f"hexapeptide-{k:05d}.nc" for k in range(4)]
    for name in (*names, "hexapeptide.pdb", "energies.csv", "energies.jsonl"):
        assert (tmp_path / "shared" / name).read_bytes() == (tmp_path / "alone" / name).read_bytes()


@SLOW
def test_several_complexes_go_to_workers(tmp_path):
    topologies = [tmp_path / name / "complex.parm7" for name in "ab"]
    for topology in topologies:
        topology.parent.mkdir()
        write_complex(topology.parent)
    words = ("binding", *topologies, "-c", topologies[0].with_suffix(".rst7"), "--ligand", LIGAND, "--json")
    alone, shared = (
        list(map(json.loads, ended(begun("pele_ocl", *words, *more), 0)[0].splitlines()))
        for more in ((), ("--workers", 2))
    )
    assert [{**of, "seconds": None} for of in shared] == [{**of, "seconds": None} for of in alone]
    assert {of["structure"] for of in shared} == set(map(str, topologies))


def test_maps_of_workers_are_those_of_one_process(tmp_path):
    """Each file names the command, its parameters and the coordinates as the structure's own call has them."""
    topology, coordinates, _ = write_complex(tmp_path)
    words = ("potmap", topology, HEXAPEPTIDE, "-c", coordinates, "--spacing", 3, "-o", tmp_path / "{name}.dx")
    found = []
    for more in ((), ("--workers", 2)):
        ended(begun("pele_ocl", *words, *more), 0)
        found.append([(tmp_path / f"{name}.dx").read_bytes() for name in ("complex", "hexapeptide")])
    assert found[0] == found[1]
    assert b"coordinates_sha256" in found[1][0]
    assert b"coordinates_sha256" not in found[1][1]


def test_structures_go_on_where_a_run_was_killed(tmp_path, monkeypatch):
    words = ("solvent", HEXAPEPTIDE, UBIQUITIN, tmp_path / "none.pdb", "-o", tmp_path / "out.json")
    run(*words, code=1)
    whole = (tmp_path / "out.json").read_bytes()
    compute = SolventSpec.compute

    def ends(spec, item):
        if item.path == UBIQUITIN:
            raise KeyboardInterrupt
        return compute(spec, item)

    monkeypatch.setattr(SolventSpec, "compute", ends)
    run(*words, code=130)
    assert (tmp_path / "out.json.part").read_text().count("\n") == 2
    seen = []
    monkeypatch.setattr(SolventSpec, "compute", lambda spec, item: seen.append(item.path) or compute(spec, item))
    (tmp_path / "out.json").unlink()
    run(*words, "--resume", code=1)
    assert seen == [UBIQUITIN]
    assert (tmp_path / "out.json").read_bytes() == whole
    (tmp_path / "out.json.part").write_text('{"journal": "structures", "schema": 2, "settings": {}}\n')
    assert "was written with other settings (command, parameters, software)" in error_of(*words, "--resume")


@pytest.mark.parametrize("suffix", [".h5", ".csv"])
def test_shards_of_frames_merge_to_the_same_bytes(suffix, work, tmp_path):
    for k in (1, 2, 3):
        run(*work.energy(tmp_path / f"out{suffix}", "--shard", f"{k}/3"), code=int(k == 1))
    shards = [tmp_path / f"out.{k}of3{suffix}" for k in (3, 1, 2)]
    merged = run("merge", *shards, "-o", tmp_path / f"out{suffix}", "--json", code=1)
    assert (tmp_path / f"out{suffix}").read_bytes() == work.whole[suffix]
    report = json.loads(merged.stdout)
    assert (report["n_frames"], report["n_failed"], len(report["frames"])) == (N_FRAMES, 1, N_FRAMES)
    target = ("-o", tmp_path / f"other{suffix}")
    assert "1 shards are missing, the first is 1" in error_of("merge", shards[0], shards[2], *target)
    again = tmp_path / f"again{suffix}"
    again.write_bytes(shards[0].read_bytes())
    assert "is the shard 3/3, like" in error_of("merge", *shards, again, *target)
    assert "is not a shard" in error_of("merge", tmp_path / f"out{suffix}", *target)
    run(*work.energy(tmp_path / f"out{suffix}", "--shard", "3/3", "--frames", "1:"))
    assert "belongs to another run than" in error_of("merge", *shards, *target)


def test_shards_of_structures_merge_to_the_same_bytes(tmp_path):
    words = ("energy", HEXAPEPTIDE, UBIQUITIN, tmp_path / "none.pdb", "-o", tmp_path / "out.json")
    run(*words, code=1)
    whole = (tmp_path / "out.json").read_bytes()
    for k in (1, 2):
        run(*words, "--shard", f"{k}/2", code=int(k == 2))
    shards = [tmp_path / f"out.{k}of2.json.part" for k in (2, 1)]
    cut = shards[0].read_bytes()
    shards[0].write_bytes(cut[:-5])
    assert "1 of 2 structures are missing; run this shard again" in error_of(
        "merge", *shards, "-o", tmp_path / "out.json"
    )
    shards[0].write_bytes(cut)
    merged = run("merge", *shards, "-o", tmp_path / "out.json", code=1)
    assert merged.stdout.startswith("3 structures, of which 1 failed")
    assert (tmp_path / "out.json").read_bytes() == whole
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--workers", 2), "--workers distributes several structures, or frames; one structure is"),
        (("-t", "t.nc", "--shard", "1/2"), "--shard begins a file; give it as --output"),
        (("-t", "t.nc", "--workers", 2, "--scheduler", "x"), "choose one of --workers and --scheduler"),
    ],
)
def test_options_that_do_not_go_together(words, sentence, work):
    words = tuple(work.frames if word == "t.nc" else word for word in words)
    assert sentence in run("energy", HEXAPEPTIDE, *words, code=2).stderr


def test_mistakes_are_sentences(work, tmp_path, monkeypatch):
    words = work.energy(tmp_path / "out.csv")
    assert "the shard is '4/3'; expected the number of the shard, from 1" in error_of(*words, "--shard", "4/3")
    assert "640 frames cannot be divided among 999 shards" in error_of(*words, "--shard", "1/999")
    assert "nowhere.json: no such file; --scheduler takes" in error_of(*words, "--scheduler", tmp_path / "nowhere.json")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"needs Dask, which is not installed: pip install 'pele-ocl\[cluster\]'"):
        extra("distributed", "work on several processes")
    assert not (tmp_path / "out.csv").exists()


class FakeClient:
    """Every task but "ends" has a result; with that one its workers die. messages : how many tasks came in each"""

    def __init__(self, n_workers=1):
        self.workers, self.messages = dict.fromkeys(map(str, range(n_workers))), []

    def scheduler_info(self, n_workers):
        return {"workers": self.workers}

    def map(self, function, items, **more):
        from distributed import KilledWorker

        self.messages.append(len(items))

        class Future:
            def __init__(self, item):
                self.item = item

            def result(self):
                if self.item == "ends":
                    raise KilledWorker("task", None, 5)
                return function(self.item)

        return [Future(item) for item in items]


def test_a_task_of_which_all_workers_die_may_be_one_row():
    items = ["a", "ends", "b"]
    assert list(in_order(FakeClient(), str.upper, items, lambda item, error: f"{item}: {error}")) == [
        "A", "ends: every worker that ran this task crashed", "B",
    ]  # fmt: skip
    with pytest.raises(WorkersDiedError):
        list(in_order(FakeClient(), str.upper, items))


def test_variables_of_workers_are_set_before_they_begin_and_stay_theirs(monkeypatch):
    monkeypatch.setitem(WORKER_ENVIRONMENT, "PYTHONWARNINGS", "ignore::FutureWarning")  # Python reads it as it starts
    names = (*WORKER_ENVIRONMENT, "PYTHONHASHSEED")
    for name in names:
        monkeypatch.delenv(name, raising=False)
    with connected(1, None, None) as client:
        ((variables, read_at_start),) = client.run(lambda: (dict(os.environ), list(sys.warnoptions))).values()
    assert WORKER_ENVIRONMENT.items() <= variables.items()
    assert "ignore::FutureWarning" in read_at_start
    assert not set(names) & set(os.environ)


def test_each_worker_has_some_tasks_under_way():
    client = FakeClient(n_workers=3)
    results = in_order(client, str.upper, ["a"] * 200)
    assert next(results) == "A"
    assert client.messages == [48, 48]
    assert ["A", *results] == ["A"] * 200
    assert client.messages == [48, 48, 48, 48, 8]
    assert list(in_order(FakeClient(n_workers=0), str.upper, ["a"] * 40)) == ["A"] * 40


def test_cores_are_shared_out_without_rest():
    assert core_groups(range(8), 4) == [(0, 1, 2, 3), (4, 5, 6, 7)]
    assert core_groups((1, 3, 5), 2) == [(1, 3, 5)]
    assert core_groups((0, 1), 1) == [(0,), (1,)]
    assert core_groups((4,), 3) == [(4,)]


def test_the_place_with_the_fewest_is_taken(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    locks = [claim(["a", "b"]) for _ in range(3)]
    assert [place for place, _ in locks] == [0, 1, 0]
    locks[1][1].release()
    assert claim(["a", "b"])[0] == 1


def test_a_folder_of_another_user_or_a_link_is_no_place_for_locks(tmp_path, monkeypatch):
    """Who may write to the temporary folder could have locks, and so files, made where he likes."""
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    folder, elsewhere = tmp_path / f"pele-ocl-places-{os.getuid()}", tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    folder.symlink_to(elsewhere)
    with pytest.raises(InputError, match="not a private folder of this user"):
        claim(["a"])
    assert not list(elsewhere.iterdir())
    folder.unlink()
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(InputError, match="not a private folder of this user"):
        claim(["a"])
    folder.chmod(0o700)
    assert claim(["a"])[0] == 0
    uid = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: uid + 1)
    (tmp_path / f"pele-ocl-places-{uid + 1}").mkdir(mode=0o700)
    with pytest.raises(InputError, match="not a private folder of this user"):
        claim(["a"])


def test_ports_of_workers_take_nothing_from_strangers():
    """Any user of the machine reaches the ports; without the certificates of this call nobody gets anything done."""
    distributed = extra("distributed", "this test")
    with connected(1, None, None) as client:
        info = client.scheduler_info(n_workers=-1)
        addresses = [client.scheduler.address, *info["workers"], *(of["nanny"] for of in info["workers"].values())]
        assert all(address.startswith("tls://127.0.0.1:") for address in addresses)
        host, port = addresses[0].removeprefix("tls://").split(":")
        with pytest.raises(OSError, match=r"."):
            distributed.Client(f"tcp://{host}:{port}", timeout=2)
        for address in addresses:  # a certificate of the stranger's own
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            host, port = address.removeprefix("tls://").split(":")
            with socket.create_connection((host, int(port)), timeout=5) as plain, suppress(OSError):
                with context.wrap_socket(plain) as secure:
                    assert secure.recv(1) == b""  # the server hangs up
        pages = [
            info["services"].get("dashboard"),
            *(of["services"].get("dashboard") for of in info["workers"].values()),
        ]
        for port in filter(None, pages):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5)


def test_a_scheduler_that_asks_nobody_is_told_of(tmp_path, caplog):
    file = tmp_path / "scheduler.json"
    for address, n_notes in (("tcp://127.0.0.1:1", 1), ("tls://127.0.0.1:1", 0)):
        file.write_text(json.dumps({"address": address}))
        for scheduler in (address, str(file)):
            caplog.clear()
            with at_scheduler(scheduler):
                assert caplog.text.count("this scheduler does not authenticate its clients") == n_notes


def test_shards_are_whole_and_even():
    parts = [Shard.of(f"{k}/7").part(range(100), "frames") for k in range(1, 8)]
    assert [frame for part in parts for frame in part] == list(range(100))
    assert {len(part) for part in parts} == {14, 15}
    assert Shard(3, 10).path(Path("a/energies.h5")) == Path("a/energies.3of10.h5")
