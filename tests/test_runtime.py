"""Faults around the OpenCL runtime: caches, forks, memory, versions, compile errors, a user's own build options."""

from __future__ import annotations

import errno
import gc
import json
import os
import re
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import CancelledError
from functools import partial
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np
import pyopencl as cl
import pytest
from conftest import DEVICES, random_atoms

from pele_ocl import Atoms, Energy, Grid, potmap, read, solvent
from pele_ocl.common.errors import CacheWarning, DeviceError, KernelBuildError
from pele_ocl.common.installation import shipped
from pele_ocl.opencl import Device, Queue, building, get_device, runtimes
from pele_ocl.opencl import memory as memories
from pele_ocl.opencl import queue as queues
from pele_ocl.opencl.kernel import Parameter
from pele_ocl.opencl.memory import KEPT, LEAST_REUSED, Loan, ResultMemory, ResultPages, is_used
from pele_ocl.opencl.queue import LARGEST_TABLE, MOST_TABLES, Turns

BINARY = bytes(range(256)) * 4
PROGRAM = SimpleNamespace(get_info=lambda query: [BINARY])
SIGNATURES = partial(dict, add=(Parameter("n", "int", False, True, False), Parameter("x", "real4", True, False, True)))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the folder of compiled programs, and no note given yet."""
    monkeypatch.setattr(building.platformdirs, "user_cache_dir", lambda name: str(tmp_path / name))
    monkeypatch.setattr(building, "_noted", [])
    return tmp_path / "pele-ocl"


@pytest.fixture
def fresh(device: Device) -> Iterator[Device]:
    """A device for which nothing is built."""
    kept = dict(device.programs), dict(device.kernels)
    device.programs.clear()
    device.kernels.clear()
    yield device
    for each, before in zip((device.programs, device.kernels), kept, strict=True):
        each.clear()
        each.update(before)


def damaged(path: Path) -> list[bytes]:
    """List the contents of a file after each kind of damage."""
    data = path.read_bytes()
    flipped = bytearray(data)
    flipped[len(data) // 2] ^= 4
    return [b"", data[:20], data[: len(data) // 2], bytes(flipped), bytes(len(data))]


def test_a_damaged_entry_is_none(folder):
    entry = building.CachedProgram("name")
    entry.write(PROGRAM, SIGNATURES)
    assert entry.read() == building.Cached(BINARY, SIGNATURES())
    for data in damaged(folder / "name"):
        building._noted.clear()
        (folder / "name").write_bytes(data)
        with pytest.warns(CacheWarning, match="compiled kernels are rebuilt"):
            assert entry.read() is None
    entry.write(PROGRAM, SIGNATURES)
    shutil.copy(folder / "name", folder / "other")
    building._noted.clear()
    with pytest.warns(CacheWarning):
        assert building.CachedProgram("other").read() is None  # its checksum is that of another name


def test_trouble_with_the_disk_is_one_note(folder, monkeypatch):
    def full(*args: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    entry = building.CachedProgram("name")
    with monkeypatch.context() as patch:
        patch.setattr(building.os, "replace", full)
        with pytest.warns(CacheWarning, match="cannot be written .No space left"):
            entry.write(PROGRAM, SIGNATURES)
    assert list(folder.iterdir()) == []  # nothing half written
    (folder / "name").mkdir()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # one note is enough
        assert entry.read() is None
        entry.write(PROGRAM, SIGNATURES)


def thrice(device: Device) -> list[int]:
    """Return the numbers 0 to 7 times three, by a kernel that is built or loaded now."""
    device.programs.clear()
    device.kernels.clear()
    queue = Queue(device, "float32")
    numbers = queue.empty(8, np.int32)
    queue.launch(queue.kernel("thrice.cl", "thrice"), (8,), (8,), dict(a=numbers))
    return queue.download(numbers, 8, np.int32).tolist()


def test_kernels_come_from_the_cache_and_a_damaged_one_is_built(folder, fresh, monkeypatch):
    """PoCL keeps its kernels itself; here it goes by our cache. A stale lock of PyOpenCL's is of no account."""
    source = "kernel void thrice(global int *a) { a[get_global_id(0)] = 3 * (int)get_global_id(0); }"
    monkeypatch.setattr(building, "source_of", lambda file: source)
    monkeypatch.setattr(building, "KEEPING_VENDORS", ())
    folder.mkdir()
    (folder / "lock").touch()
    assert thrice(fresh) == list(range(0, 24, 3))
    (entry,) = set(folder.iterdir()) - {folder / "lock"}
    whole, made = entry.read_bytes(), entry.stat().st_mtime_ns
    assert thrice(fresh) == list(range(0, 24, 3))
    assert entry.stat().st_mtime_ns == made
    for data in damaged(entry):
        entry.write_bytes(data)
        building._noted.clear()
        with pytest.warns(CacheWarning, match="contain a damaged entry"):
            assert thrice(fresh) == list(range(0, 24, 3))
        assert len(entry.read_bytes()) > building.CHECKSUM_BYTES + len(whole) // 2


def test_a_run_without_a_home(tmp_path):
    """No cache can be made anywhere: PoCL is listed, the result is right, and notes say what is rebuilt."""
    nowhere = tmp_path / "file"
    nowhere.touch()
    environment = {**os.environ, "XDG_CACHE_HOME": str(nowhere), "HOME": str(nowhere), "PELE_OCL_DEVICE": "pocl"}
    environment.pop("POCL_CACHE_DIR", None)
    path = shipped("data") / "structures" / "hexapeptide.pdb"
    command = [sys.executable, "-m", "pele_ocl", "solvent", path, "--variant", "outer", "--json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "PoCL cannot store compiled kernels in" in done.stderr
    assert "Traceback" not in done.stderr
    expected = solvent(read(path), device="pocl").total
    assert json.loads(done.stdout)["energy"]["total"] == pytest.approx(expected, rel=1e-5)


def test_pocl_gets_a_folder_with_room(tmp_path, monkeypatch):
    assert runtimes._can_hold_kernels(tmp_path / "new")
    (tmp_path / "file").touch()
    assert not runtimes._can_hold_kernels(tmp_path / "file" / "pocl")
    monkeypatch.setattr(runtimes.shutil, "disk_usage", lambda path: SimpleNamespace(free=1000))
    assert not runtimes._can_hold_kernels(tmp_path / "new")
    given = {"HOME": "/h", "XDG_CACHE_HOME": "/x", "POCL_CACHE_DIR": "/p"}
    for expected in ("/p", "/x/pocl/kcache", "/h/.cache/pocl/kcache"):
        assert runtimes._pocl_folder(given.get) == Path(expected)
        given.popitem()


def test_an_error_in_a_kernel_is_built_once(fresh, monkeypatch):
    """Only a compiler's complaint about the group is worth a smaller one."""
    builds = []
    own = building._build

    def counted(*args):
        builds.append(args)
        return own(*args)

    monkeypatch.setattr(building, "_build", counted)
    monkeypatch.setattr(building, "source_of", lambda file: "kernel void broken(global int *a) { a[0] = nonsense; }")
    with pytest.raises(KernelBuildError, match="nonsense"):
        Queue(fresh, "float32").group_kernel("broken.cl", "broken", 1)
    assert len(builds) == 1


@pytest.mark.parametrize(
    ("text", "is_about"),
    [
        ("ptxas error   : Entry function 'k' uses too much shared data (0x10000 bytes, 0xc000 max)", True),
        ("error: work group size 4096 exceeds the maximum", True),
        ("error: use of undeclared identifier 'group_size_of'", False),
        ("error: expected ';'", False),
    ],
)
def test_complaints_about_the_group_are_known(text, is_about):
    class Complaint(str):
        code = building.cl.status_code.BUILD_PROGRAM_FAILURE

    assert building.is_about_the_group(Complaint(text)) == is_about


def test_versions_are_numbers():
    def handle(version: str) -> SimpleNamespace:
        platform = SimpleNamespace(name="Portable Computing Language", version=f"OpenCL 3.0 PoCL {version}  Linux")
        return SimpleNamespace(platform=platform, type=building.cl.device_type.CPU)

    versions = ["10.0", "7.1", "7.0", "3.1", "3.0-rc2", "1.8"]
    some = [handle(version) for version in versions]
    assert sorted(some[::-1], key=lambda of: Device(0, of).rank) == some


def test_plans_that_fit_singly_and_not_together(device, monkeypatch):
    # What earlier tests left would make room.
    for kept in (device.cached, device.tables, device.staging, device.spare_buffers, device.results):
        kept.clear()
    gc.collect()  # their plans
    atoms = random_atoms(500)
    first = Energy(atoms, device=device)
    expected = first.evaluate()
    held = device.held_bytes
    second = Energy(atoms, device=device)
    monkeypatch.setattr(Device, "memory", property(lambda self: held + 1000))
    with pytest.raises(DeviceError, match=r"MiB of which are in use.*delete plans that are no longer needed"):
        second.evaluate()
    np.testing.assert_array_equal(first.evaluate().gradient, expected.gradient)
    del first
    gc.collect()
    assert device.held_bytes < held


def test_memory_of_results_is_used_again_once_no_view_of_it_is_left():
    memory, shape = ResultMemory(), (4, LEAST_REUSED // 16)
    first = memory.array(shape, np.float32)
    place, view = first.ctypes.data, first[2:]
    assert not is_used(first)
    view[:] = 3
    del first
    second = memory.array(shape, np.float32)
    assert not is_used(second)  # a view of the first is left
    second[:] = 4
    assert (view == 3).all()
    del view
    third = memory.array(shape[::-1], np.float32)
    assert third.shape == shape[::-1]
    assert third.flags.writeable
    assert is_used(third)
    assert is_used(third[1:])
    assert third.ctypes.data == place
    del third
    assert not is_used(memory.array((2, *shape), np.float32))  # of another size
    kept = [memory.array(shape, np.float32) for _ in range(3 * KEPT)]
    del kept
    assert sum(map(is_used, [memory.array(shape, np.float32) for _ in range(3 * KEPT)])) == KEPT
    memory.clear()
    assert not any(map(is_used, [memory.array((10,), np.float64) for _ in range(2)]))


def test_memory_of_results_is_registered_from_its_second_use_on(device, monkeypatch):
    def lacks_memory(*args: Any, **options: Any) -> NoReturn:
        raise cl.MemoryError

    queue, values = Queue(get_device(device), "float32"), np.arange(LEAST_REUSED // 4, dtype=np.float32)
    memory, context, there = queue.device.results, queue.device.context, queue.upload(values)
    memory.clear()
    first = memory.array(values.shape, np.float32)
    assert memory.register(context, first) is None
    del first
    second = memory.array(values.shape, np.float32)
    assert ResultMemory().register(context, second) is None  # it is the device's
    with monkeypatch.context() as without:
        without.setattr(memories, "Buffer", lacks_memory)
        assert memory.register(context, second) is None
    before = memory.registered.now
    assert not memory.has_registered(second)
    known = memory.register(context, second[5:])
    assert known is not None
    assert memory.has_registered(second)
    assert memory.register(context, second) is known
    assert memory.registered.now == before + second.nbytes  # counted once
    queue.read(second, there)
    np.testing.assert_array_equal(second, values)
    del second
    third = memory.array(values.shape, np.float32)
    assert memory.register(context, third) is known
    assert memory.register(context, values) is None
    with monkeypatch.context() as full:
        full.setattr(type(queue.device), "vendor", "NVIDIA")
        full.setattr(type(queue.device), "memory", 0)
        assert queue.reaches(third)  # it takes no further memory
        assert not queue.reaches(values)
    del third, known
    memory.clear()
    gc.collect()
    assert memory.registered.now == before
    gc.collect()  # what other tests left
    held, owner = queue.device.held_bytes, Loan(ResultPages(np.zeros(1, np.uint8)), memory)
    memory.registered.count(owner, 1000)
    assert queue.device.held_bytes == held + 1000


def test_small_tables_stay_on_the_device(device):
    queue = Queue(get_device(device), "float32")
    first, again = queue.table([1.0, 2.0]), queue.table(np.array([1.0, 2.0]))
    assert first is again
    assert queue.table([1.0, 2.0], np.float64) is not first
    for k in range(MOST_TABLES):
        queue.table([float(k)])
    np.testing.assert_array_equal(queue.download(first, 2), [1.0, 2.0])
    assert len(queue.device.tables) <= MOST_TABLES
    large = np.zeros(LARGEST_TABLE, np.uint8)
    assert queue.table(large, np.uint8) is queue.table(large, np.uint8)
    assert queue.table([*large, 0], np.uint8) is not queue.table([*large, 0], np.uint8)


def test_a_large_map_takes_the_memory_of_one_that_is_gone(device):
    def energy_map(charge: float) -> np.ndarray:
        atoms = Atoms([[0.0, 0.0, 0.0]], [charge])
        grid = Grid([1.0, 1.0, 1.0], 0.1, (100, 105, 101))
        return potmap(atoms, grid, device=device, method="direct").map.values

    device.results.clear()
    first = energy_map(1.0)
    place, kept = first.ctypes.data, first.copy()
    assert energy_map(-1.0).ctypes.data != place
    np.testing.assert_array_equal(first, kept)
    device.results.clear()
    del first
    again = energy_map(1.0)
    assert again.ctypes.data == place
    np.testing.assert_array_equal(again, kept)


FORKED = """
import os, signal
from pele_ocl import DeviceError, Energy, read
plan = Energy(read({path!r}))
plan.evaluate()
child = os.fork()
if child == 0:
    signal.alarm(20)  # ends a child that hangs, which would keep its parent's output open
    try:
        plan.evaluate()
    except DeviceError as error:
        os._exit(7 if "cannot be used after a fork" in str(error) else 8)
    os._exit(9)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), plan.evaluate().total < 0)
"""


def test_a_forked_process_gets_a_sentence():
    script = FORKED.format(path=str(shipped("data") / "structures" / "hexapeptide.pdb"))
    environment = {**os.environ, "PELE_OCL_DEVICE": str(DEVICES[0].index)}
    command = [sys.executable, "-W", "ignore", "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["7", "True"], done.stdout + done.stderr


def test_build_options_of_the_users_own_are_left_out(fresh, monkeypatch):
    atoms = random_atoms(30)
    expected = Energy(atoms, device=fresh).evaluate()
    fresh.programs.clear()
    fresh.kernels.clear()
    monkeypatch.setenv("PYOPENCL_BUILD_OPTIONS", "-Dexp=sin -no-such-option")
    np.testing.assert_array_equal(Energy(atoms, device=fresh).evaluate().gradient, expected.gradient)
    assert os.environ["PYOPENCL_BUILD_OPTIONS"] == "-Dexp=sin -no-such-option"


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="what the system tells of memory is Linux's")
def test_large_buffers_of_cpus_are_to_have_large_pages(device):
    chosen = get_device(device)
    if chosen.kind != "CPU":
        pytest.skip("a GPU's memory is its own")
    queue, size = Queue(chosen, "float32"), 8 << 20
    buffer = queue.zeros(size // 4)
    access = cl.map_flags.READ
    mapped = cl.enqueue_map_buffer(queue.command_queue, buffer, access, 0, (size,), np.uint8)[0]
    address, flags = mapped.ctypes.data + size // 2, ""
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if (found := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line)) is not None:
            is_here = int(found[1], 16) <= address < int(found[2], 16)
        elif is_here and line.startswith("VmFlags:"):
            flags = line
    mapped.base.release(queue.command_queue)
    assert not flags or " hg" in flags  # some systems have no flags


@pytest.mark.parametrize("kind", ["CPU", "GPU"])
def test_values_are_sent_as_they_are_at_the_call(device, kind, monkeypatch):
    monkeypatch.setattr(Device, "kind", kind)
    queue, values = Queue(device, "float32"), np.arange(1000, dtype=np.float32)
    buffer, nothing = queue.send(values), queue.send([], np.int32)
    values[:] = -1
    np.testing.assert_array_equal(queue.download(buffer, 1000), np.arange(1000))
    assert nothing.size > 0
    assert queue.download(queue.send([1, 2], np.int32), 2, np.int32).tolist() == [1, 2]


def test_another_thread_has_its_turn_while_one_waits(device, monkeypatch):
    """A thread that reads waits until the other one has used the device."""
    turns, other_is_done, own = Turns(), Event(), Queue.is_complete

    def work() -> None:
        with turns:
            other_is_done.set()

    monkeypatch.setattr(Queue, "is_complete", lambda queue, event: other_is_done.is_set() and own(queue, event))
    with turns, Queue(device, "float32", profile=False).independent_queue(turns) as queue:
        buffer, thread = queue.send(np.arange(5)), Thread(target=work)
        thread.start()
        assert not other_is_done.wait(0.1)
        assert queue.download(buffer, 5).tolist() == [0, 1, 2, 3, 4]
    thread.join()
    assert other_is_done.is_set()


def test_a_thread_whose_commands_are_complete_runs_between_launches_of_another():
    turns, order, is_complete = Turns(), list[str](), Event()

    def work() -> None:
        with turns:
            order.append("waits")
            turns.wait(is_complete.is_set)
            order.append("continues")

    thread = Thread(target=work)
    with turns:
        thread.start()
        turns.wait(lambda: "waits" in order)
        turns.offer(lambda: order.append("flushed"))
        order.append("launched")
        is_complete.set()
        turns.offer(lambda: order.append("flushed"))
        order.append("launched")
    thread.join()
    assert order == ["waits", "launched", "flushed", "continues", "launched"]


def test_launches_are_not_interrupted_by_a_thread_that_only_waits_for_its_turn():
    turns, order = Turns(), list[str]()

    def work() -> None:
        with turns:
            order.append("works")

    thread = Thread(target=work)
    with turns:
        thread.start()
        while not turns._others:
            time.sleep(1e-4)
        turns.offer(lambda: order.append("flushed"))
        order.append("launched")
    thread.join()
    assert order == ["launched", "works"]


def test_threads_end_at_their_next_turn(device):
    turns = Turns()
    with turns, Queue(device, "float32", profile=False).independent_queue(turns) as queue:
        buffer = queue.send(np.arange(5))
        assert queue.download(buffer, 5).tolist() == [0, 1, 2, 3, 4]
        turns.is_over = True
        with pytest.raises(CancelledError):
            queue.download(buffer, 5)


def test_large_buffers_are_cleared_in_pieces(device, monkeypatch):
    """The first piece is filled, the others are copies of it."""
    monkeypatch.setattr(queues, "FILLED", 100)
    queue, expected = Queue(device, "float32"), np.arange(1000, dtype=np.uint8)
    buffer = queue.empty(1000, np.uint8)
    queue.write(buffer, expected)
    queue.clear(buffer, 41, 537)
    expected[41:578] = 0
    np.testing.assert_array_equal(queue.download(buffer, 1000, np.uint8), expected)
    queue.clear(buffer)
    assert not queue.download(buffer, 1000, np.uint8).any()
