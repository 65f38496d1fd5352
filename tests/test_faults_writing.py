"""Outputs under faults: a full disk, a kill, two writers at once; what was there stays, and nothing partial is left."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import h5py
import numpy as np
import pytest

from pele_ocl import Grid, Map, PairList, write_map, write_pairs
from pele_ocl.common import writing
from pele_ocl.common.writing import replacing
from pele_ocl.formats import write_table

ROOT = Path(__file__).parent.parent

WRITERS = """
import sys
import numpy as np
from pele_ocl import Grid, Map, PairList, write_map, write_pairs
from pele_ocl.formats import write_table
from pele_ocl.common.errors import PeleError

path, n = sys.argv[1], int(sys.argv[2])
def write():
    if ".map" in path:
        write_map(path.replace(".map", ""), Map(Grid((0, 0, 0), 1, (n, 100, 100)), np.ones((100, 100, n), np.float32)))
    elif ".pairs" in path:
        first = np.repeat(np.arange(n), n); second = np.tile(np.arange(n), n); keep = first < second
        write_pairs(path.replace(".pairs", ""), PairList(n, first[keep], second[keep]))
    else:
        write_table(path, {"name": np.array(["CA"] * n), "x": np.full((n, 3), float(n))}, {}, {"n": n})
"""
LIMITED = f"""
import resource, sys
sys.dont_write_bytecode = True  # the limit would cut it
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
{WRITERS}"""
ONE_SENTENCE = """
try:
    write()
except PeleError as error:
    print(error)
else:
    print("written")
"""


def python(code: str, *arguments: object) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", code, *map(str, arguments)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)


@pytest.mark.parametrize(
    ("name", "n"),
    [("t.h5", 20_000), ("t.csv", 20_000), ("t.json", 20_000), ("m.map.h5", 20), ("m.map.dx", 20), ("p.pairs.h5", 300)],
)
def test_a_full_disk_is_a_sentence(tmp_path: Path, name: str, n: int) -> None:
    """Limits of the size of files fail as full disks do; libhdf5 would crash the program."""
    target = tmp_path / name.replace(".map", "").replace(".pairs", "")
    target.write_text("before")
    done = python(LIMITED + ONE_SENTENCE, tmp_path / name, n)
    told, errors = done.communicate(timeout=60)
    assert (done.returncode, errors) == (0, "")
    assert told == f"{target}: cannot be written: File too large\n"
    assert os.listdir(tmp_path) == [target.name]
    assert target.read_text() == "before"


def test_a_kill_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    target = tmp_path / "t.csv"
    target.write_text("before")
    process = python(WRITERS + "write()", target, 3_000_000)
    deadline = time.monotonic() + 60
    while not any(file.stat().st_size for file in tmp_path.glob(".t-*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert target.read_text() == "before"
    assert len(os.listdir(tmp_path)) == 2
    living = tmp_path / next(iter(tmp_path.glob(".t-*"))).name.replace(f"-{process.pid}.", f"-{os.getpid()}.")
    living.touch()
    other = python(WRITERS + "write()", tmp_path / "other.csv", 10)
    assert other.communicate(timeout=60)[1] == ""
    assert sorted(os.listdir(tmp_path)) == sorted([living.name, "other.csv", "t.csv"])  # of a process that lives


def test_of_two_writers_one_wins_whole(tmp_path: Path) -> None:
    target = tmp_path / "t.h5"
    writers = [python(WRITERS + "for _ in range(20): write()", target, n) for n in (1_000, 2_000)]
    for process in writers:
        assert process.communicate(timeout=60)[1] == ""
    with h5py.File(target) as file:
        n = int(file.attrs["n"])
        assert n in (1_000, 2_000)
        assert file["x"].shape == (n, 3)
        assert (file["x"][()] == n).all()
    assert os.listdir(tmp_path) == ["t.h5"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_permissions_and_owner_stay(tmp_path: Path, mode: int) -> None:
    target = tmp_path / "t.csv"
    target.write_text("before")
    target.chmod(mode)
    if os.geteuid() == 0:
        os.chown(target, 12, 34)
    before = target.stat()
    with replacing(target) as temporary:
        assert stat.S_IMODE(temporary.stat().st_mode) == mode  # nobody else reads it meanwhile
        temporary.write_text("after")
    after = target.stat()
    assert target.read_text() == "after"
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)


def test_progress_of_writing_is_told(tmp_path: Path) -> None:
    map_ = Map(Grid((0, 0, 0), 1, (60, 50, 40)), np.ones((40, 50, 60), np.float32))
    for suffix in (".dx", ".dx.gz", ".cube", ".mrc", ".h5"):
        shares: list[float] = []
        write_map(tmp_path / f"m{suffix}", map_, progress=shares.append)
        assert shares
        assert shares == sorted(shares)
        assert 0 <= shares[0] <= shares[-1] <= 1


def test_cells_that_a_spreadsheet_would_compute(tmp_path: Path) -> None:
    names = np.array(["=1+1", "+1", "-1", "@A1", "CA", "C=1", ""])
    write_table(tmp_path / "t.csv", {"name": names, "x": np.arange(-3.0, 4.0)}, {}, {})
    lines = (tmp_path / "t.csv").read_text().splitlines()
    assert lines == ["name,x", "'=1+1,-3.0", "'+1,-2.0", "'-1,-1.0", "'@A1,0.0", "CA,1.0", "C=1,2.0", ",3.0"]


def test_names_of_files_that_are_not_utf_8(tmp_path: Path) -> None:
    attributes = {"input": os.fsdecode(b"a\xff.pdb")}
    for suffix in (".h5", ".csv", ".json"):
        write_table(tmp_path / f"t{suffix}", {"x": np.zeros(2)}, {}, attributes)
    for suffix in (".h5", ".dx", ".dx.gz", ".cube", ".mrc"):
        map_ = Map(Grid((0, 0, 0), 1, (2, 2, 2)), np.ones((2, 2, 2), np.float32), title=attributes["input"])
        write_map(tmp_path / f"m{suffix}", map_, attributes=attributes)
    with h5py.File(tmp_path / "t.h5") as file:
        assert file.attrs["input"] == "a\\udcff.pdb"
    write_pairs(tmp_path / "p.h5", PairList(2, [0], [1]))


def test_only_files_of_processes_that_are_known_are_tidied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Machines that share a folder may have one name: each of the three names tells them apart."""
    dead = subprocess.Popen(["true"])
    dead.wait()
    own = writing._identity()
    assert all(own)
    left = {}
    for changed in (None, 0, 1, 2):
        identity = tuple("another" if k == changed else name for k, name in enumerate(own))
        monkeypatch.setattr(writing, "_identity", lambda identity=identity: identity)
        writing._machine.cache_clear()
        left[changed] = tmp_path / f".x-{'0' * 12}.{writing._machine()}-{dead.pid}.pele-ocl.txt"
        left[changed].write_text("half")
    monkeypatch.undo()
    writing._machine.cache_clear()
    with writing.replacing(tmp_path / "x.txt") as temporary:
        temporary.write_text("whole")
    assert [path.exists() for path in left.values()] == [False, True, True, True]
