"""Cache of compiled programs and the disk below it: whatever is wrong there, numbers are right, with one note.

Programs are kept for all runtimes but PoCL; for PoCL, which has a cache of its own, they are here as if it had none.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import DEVICES

from pele_ocl import list_devices
from pele_ocl.common.errors import CacheWarning
from pele_ocl.common.installation import shipped
from pele_ocl.opencl import Device, Queue, building, runtimes
from pele_ocl.opencl.building import CHECKSUM_BYTES, CachedProgram

ROOT = Path(__file__).parent.parent
HEXAPEPTIDE = shipped("data") / "structures" / "hexapeptide.pdb"
LIMIT = 60  # seconds after which a process hangs
NOWHERE = "/proc/nowhere"  # which nobody can make, not even root

PROBE = """
#include "common/real.clh"
kernel void probe(global const real *x, global real *y) {
    const int i = get_global_id(0);
    y[i] = x[i] * x[i] + 0.25f;
#ifdef OTHER  // another program with the same numbers
#endif
#ifdef __FAST_RELAXED_MATH__
    y[i] = 0;
#endif
}
"""
X = np.arange(8.0, dtype=np.float32)

KEPT_ON = [*DEVICES[:1], *(device for device in list_devices() if device.vendor == "INTEL")]


def compute(device: Device, **defines: int) -> None:
    """Compute by the probe's kernel as a new process would, on a bare device; check the values."""
    queue = Queue(Device(device.index, device.handle), "float32")
    y = queue.empty(len(X))
    queue.launch(queue.kernel("probe.cl", "probe", **defines), (len(X),), (1,), dict(x=queue.upload(X), y=y))
    np.testing.assert_array_equal(queue.download(y, len(X)), X * X + np.float32(0.25))


@pytest.fixture(params=dict.fromkeys(KEPT_ON), ids=lambda device: device.vendor.lower())
def kept_on(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Device:
    """A device whose programs are kept, and the probe among the kernels."""
    shipped_source = building.source_of
    monkeypatch.setattr(building, "source_of", lambda file: PROBE if file == "probe.cl" else shipped_source(file))
    monkeypatch.setattr(building, "KEEPING_VENDORS", ())
    monkeypatch.setattr(building, "_noted", [])
    return request.param


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Name the cache's folder, in a home of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "pele-ocl"


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """List the entries of programs that were built from their source: the written ones."""
    written: list[str] = []
    write = CachedProgram.write

    def counted(entry, program, signatures):
        written.append(entry.name)
        write(entry, program, signatures)

    monkeypatch.setattr(CachedProgram, "write", counted)
    return written


@contextmanager
def notes(*expected: str) -> Iterator[None]:
    """Check that just these notes are given within the block; each matches a pattern."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    told = [str(warning.message) for warning in caught if warning.category is CacheWarning]
    assert len(told) == len(expected), told
    for text, pattern in zip(told, expected, strict=True):
        assert re.fullmatch(pattern, text)


def note(trouble: str) -> str:
    return rf"compiled kernels are rebuilt, because those in .*pele-ocl {trouble}"


def entry_of(folder: Path) -> Path:
    """Return the only file of the cache."""
    (path,) = folder.iterdir()
    assert re.fullmatch("[0-9a-f]{64}", path.name)
    return path


# Entries


def test_a_program_is_built_once(kept_on, folder, builds):
    with notes():
        compute(kept_on)
        data = entry_of(folder).read_bytes()
        compute(kept_on)
        compute(kept_on, UNNAMED=1)  # a macro that the source does not name
    assert len(builds) == 1
    assert len(data) > CHECKSUM_BYTES + 100
    compute(kept_on, OTHER=1)
    assert len(set(builds)) == len(list(folder.iterdir())) == 2
    assert list(folder.parent.iterdir()) == [folder]  # and PyOpenCL keeps nothing


def test_whatever_a_binary_depends_on_names_its_entry():
    """A driver that was changed, another device, or a source that was edited finds nothing."""

    def entry(source="kernel void f() {}", options=("-DWIDTH=8",), has_binary=True, **changed):
        told = {"platform": "P", "name": "D", "driver": "1.0", "vendor": "NVIDIA", "kind": "GPU", **changed}
        of_handle = {name: told.pop(name, "a") for name in ("platform_version", "version", "extensions", "width")}
        handle = SimpleNamespace(
            platform=SimpleNamespace(version=of_handle["platform_version"]), version=of_handle["version"],
            extensions=of_handle["extensions"], native_vector_width_float=of_handle["width"],
        )  # fmt: skip
        return CachedProgram.of(SimpleNamespace(**told, handle=handle), source, list(options), has_binary).name

    of_devices = ("platform", "name", "driver", "platform_version", "version", "extensions", "width")
    others = [entry(**{name: "other"}) for name in of_devices]
    others += [entry(source="kernel void g() {}"), entry(options=()), entry(has_binary=False)]
    assert entry() == entry()
    assert len({entry(), *others}) == 1 + len(others)
    assert entry(vendor="POCL") is None  # which keeps them itself


@pytest.mark.parametrize("vendor", building.KEEPING_VENDORS)
def test_what_a_runtime_keeps_itself_is_not_kept_twice(kept_on, folder, monkeypatch, vendor):
    monkeypatch.setattr(building, "KEEPING_VENDORS", (kept_on.vendor, vendor))
    compute(kept_on)
    assert not folder.exists()


def flipped(place: int) -> Callable[[bytes], bytes]:
    def damage(data: bytes) -> bytes:
        changed = bytearray(data)
        changed[place] ^= 4
        return bytes(changed)

    return damage


DAMAGES = {
    "bit of the checksum": flipped(3),
    "bit of the header": flipped(CHECKSUM_BYTES + 17),
    "bit of the code": flipped(-1200),
    "bit of the end": flipped(-1),
    "truncated": lambda data: data[:500],
    "truncated in the checksum": lambda data: data[:20],
    "no binary": lambda data: data[:CHECKSUM_BYTES],
    "empty": lambda data: b"",
    "longer": lambda data: data + b"\0",
    "of zeros": lambda data: bytes(len(data)),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_entry_is_built_anew(kept_on, folder, builds, damage):
    compute(kept_on)
    path = entry_of(folder)
    data = path.read_bytes()
    path.write_bytes(damage(data))
    with notes(note(rf"contain a damaged entry, {path.name[:8]}\.\.\., which is replaced")):
        compute(kept_on)
    with notes():
        compute(kept_on)
    assert len(builds) == 2
    assert entry_of(folder) == path
    assert len(path.read_bytes()) == pytest.approx(len(data), rel=0.1)


def test_an_entry_under_anothers_name_is_none(kept_on, folder, builds):
    compute(kept_on)
    first = entry_of(folder)
    compute(kept_on, OTHER=1)
    second = folder / builds[1]
    shutil.copy(first, second)
    with notes(note("contain a damaged entry.*")):
        compute(kept_on, OTHER=1)
    assert builds == [first.name, second.name, second.name]


@pytest.mark.parametrize("strange", [b"no program " * 100, b"{}", b"[1]\nbinary", b"", b"a line\n" * 9])
def test_an_entry_of_another_kind_is_built_anew(kept_on, folder, builds, strange):
    """Checksums are right: another version of the runtime, or of this program, may have left it."""
    compute(kept_on)
    path = entry_of(folder)
    if not strange:  # a binary that the runtime refuses
        strange = path.read_bytes()[CHECKSUM_BYTES:].split(b"\n", 1)[0] + b"\nno program"
    path.write_bytes(CachedProgram(path.name)._checksum(strange) + strange)
    with notes():
        compute(kept_on)
        compute(kept_on)
    assert len(builds) == 2


def test_an_entry_that_cannot_be_read(kept_on, folder, builds):
    compute(kept_on)
    path = entry_of(folder)
    path.unlink()
    path.mkdir()
    with notes(note(r"cannot be read \(Is a directory\)")):
        compute(kept_on)
        compute(kept_on)
    assert len(builds) == 3
    assert entry_of(folder) == path  # and nothing half-written beside it


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_entry_without_permission(kept_on, folder, builds):
    compute(kept_on)
    entry_of(folder).chmod(0)
    with notes(note(r"cannot be read \(Permission denied\)")):
        compute(kept_on)
    with notes():
        compute(kept_on)
    assert len(builds) == 2


# Folders and disks


def test_a_file_in_the_folders_place(kept_on, folder, builds):
    folder.write_text("")
    with notes(note(r"cannot be read \(Not a directory\)")):
        compute(kept_on)
        compute(kept_on, OTHER=1)
    assert len(builds) == 2


def test_a_folder_that_cannot_be_made(kept_on, monkeypatch, builds):
    monkeypatch.setenv("XDG_CACHE_HOME", NOWHERE)
    with notes(note(r"cannot be written \(No such file or directory\)")):
        compute(kept_on)
        compute(kept_on, OTHER=1)
    assert len(builds) == 2


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_without_permission(kept_on, folder):
    folder.mkdir()
    folder.chmod(0o500)
    with notes(note(r"cannot be written \(Permission denied\)")):
        compute(kept_on)


def full_at_once(dir: Path, prefix: str) -> tuple[int, str]:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def full_while_writing(dir: Path, prefix: str) -> tuple[int, str]:
    path = dir / f"{prefix}1"
    path.touch()
    return os.open("/dev/full", os.O_WRONLY), str(path)


@pytest.mark.parametrize("make", [full_at_once, full_while_writing])
def test_a_full_disk(kept_on, folder, monkeypatch, builds, make):
    monkeypatch.setattr(tempfile, "mkstemp", make)
    with notes(note(r"cannot be written \(No space left on device\)")):
        compute(kept_on)
        compute(kept_on)
    assert len(builds) == 2
    assert not list(folder.iterdir())


def test_a_stale_lock_of_pyopencl_is_nobodys(kept_on, folder, builds):
    folder.mkdir()
    (folder / "lock").touch()
    start = time.monotonic()
    with notes():
        compute(kept_on)
        compute(kept_on)
    assert len(builds) == 1
    assert time.monotonic() - start < 10  # pyopencl waits for a minute


# Processes


def compute_elsewhere(device: Device, home: Path, first: str = "") -> subprocess.Popen[str]:
    """A process that runs `first` and computes; it prints how many programs it built."""
    code = f"""
import sys
sys.path[:0] = [{str(ROOT / "tests")!r}, {str(ROOT)!r}]
import test_runtime_cache as t
t.building.KEEPING_VENDORS = ()
t.building.source_of = lambda file, old=t.building.source_of: t.PROBE if file == "probe.cl" else old(file)
builds, write = [], t.CachedProgram.write
t.CachedProgram.write = lambda entry, *told: (builds.append(entry), write(entry, *told))
device = t.list_devices()[{device.index}]
{first}
t.compute(device)
print(len(builds))
"""
    env = os.environ | {"XDG_CACHE_HOME": str(home), "PYTHONWARNINGS": "error::UserWarning"}
    env |= {"POCL_CACHE_DIR": str(runtimes._pocl_folder(os.environ.get))}
    return subprocess.Popen([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("kept_on", KEPT_ON[-1:], indirect=True)
def test_processes_that_build_at_once(kept_on, folder, builds):
    """Each has looked for the entry before the other one writes it."""
    home = folder.parent
    meet = """
def met(entry, read=t.CachedProgram.read):
    import pathlib, time
    found, home = read(entry), pathlib.Path({home!r})
    (home / "here{k}").touch()
    while len(list(home.glob("here*"))) < 2:
        time.sleep(0.01)
    return found
t.CachedProgram.read = met
"""
    started = [compute_elsewhere(kept_on, home, meet.format(home=str(home), k=k)) for k in range(2)]
    assert [process.communicate(timeout=LIMIT)[0] for process in started] == ["1\n", "1\n"]
    with notes():
        compute(kept_on)
    assert not builds
    assert entry_of(folder)


@pytest.mark.parametrize("kept_on", KEPT_ON[-1:], indirect=True)
def test_a_process_killed_while_it_writes_leaves_nothing_that_harms(kept_on, folder, builds):
    kill = "import os, signal\nos.replace = lambda *paths: os.kill(os.getpid(), signal.SIGKILL)\n"
    process = compute_elsewhere(kept_on, folder.parent, kill)
    process.communicate(timeout=LIMIT)
    assert process.returncode == -signal.SIGKILL
    (left,) = folder.iterdir()
    assert left.name.startswith("new-")
    with notes():
        compute(kept_on)
        compute(kept_on)
    assert len(builds) == 1


# The surroundings


@pytest.mark.parametrize("options", ["-cl-fast-relaxed-math", "-DREAL_BITS=nonsense"])
def test_build_options_of_the_surroundings_change_nothing(kept_on, folder, monkeypatch, options):
    monkeypatch.setenv("PYOPENCL_BUILD_OPTIONS", options)
    compute(kept_on)
    compute(kept_on)
    assert os.environ["PYOPENCL_BUILD_OPTIONS"] == options


def test_functions_that_pyopencl_generates_stay_in_memory():
    """PyOpenCL's database has no checksums and fails with the disk."""
    import pyopencl as cl
    from pyopencl import invoker

    assert isinstance(invoker.invoker_cache, runtimes._Invokers)
    assert not getattr(cl, "_PYOPENCL_NO_CACHE", False)


@pytest.mark.parametrize(
    ("variables", "folder"),
    [
        ({"POCL_CACHE_DIR": "/a", "XDG_CACHE_HOME": "/b", "HOME": "/c"}, "/a"),
        ({"XDG_CACHE_HOME": "/b", "HOME": "/c"}, "/b/pocl/kcache"),
        ({"HOME": "/c"}, "/c/.cache/pocl/kcache"),
    ],
)
def test_the_folder_of_pocl(variables, folder):
    assert str(runtimes._pocl_folder(variables.get)) == folder


def test_pocl_gets_a_folder_where_its_own_has_no_room(tmp_path, monkeypatch):
    """PoCL would end the process."""
    monkeypatch.setenv("POCL_CACHE_DIR", str(tmp_path / "own"))
    with notes():
        runtimes._give_pocl_a_folder()
    assert os.environ["POCL_CACHE_DIR"] == str(tmp_path / "own")
    monkeypatch.setattr(runtimes, "LEAST_FREE_BYTES", 1 << 60)
    with notes(r"PoCL cannot store compiled kernels in .*own \(no permission, or less than \d+ MiB free\), so .*"):
        runtimes._give_pocl_a_folder()
    assert os.environ["POCL_CACHE_DIR"] != str(tmp_path / "own")
    assert os.access(os.environ["POCL_CACHE_DIR"], os.W_OK)


def in_a_home_without_permission(*words: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name not in ("POCL_CACHE_DIR", "PELE_OCL_DEVICE")}
    env |= {"HOME": NOWHERE, "XDG_CACHE_HOME": NOWHERE, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", "pele_ocl", *words], env=env, capture_output=True, text=True, timeout=LIMIT
    )


def test_all_devices_are_listed_in_a_home_without_permission():
    done = in_a_home_without_permission("devices")
    assert done.returncode == 0, done.stderr
    assert all(device.version in done.stdout for device in list_devices())


def test_energies_are_right_in_a_home_without_permission(device):
    done = in_a_home_without_permission("solvent", str(HEXAPEPTIDE), "--json", "--device", str(device.index))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["energy"]["total"] == pytest.approx(-352.534, abs=0.001)
    told = [line for line in done.stderr.splitlines() if line.startswith("Note: ")]
    assert len([line for line in told if "PoCL cannot store compiled kernels" in line]) == 1
    own = [line for line in told if "compiled kernels are rebuilt" in line]
    assert len(own) == (device.vendor not in building.KEEPING_VENDORS)


def test_without_a_home_pocl_shares_no_folder_with_other_users(monkeypatch, tmp_path):
    """What is in the folder is loaded as code; its name in the temporary directory is known to everybody."""
    for name in ("POCL_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.warns(CacheWarning, match="HOME is not set"):
        runtimes._give_pocl_a_folder()
    given = Path(os.environ["POCL_CACHE_DIR"])
    monkeypatch.delenv("POCL_CACHE_DIR")
    assert given.parent == tmp_path
    assert given.stat().st_mode & 0o777 == 0o700
    assert not (tmp_path / ".cache").exists()
