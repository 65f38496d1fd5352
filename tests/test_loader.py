"""Runtimes that are loaded in a thread while a command reads its files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from click.testing import CliRunner
from conftest import DEVICES

from pele_ocl import Grid, Map, write_map
from pele_ocl.cli import main
from pele_ocl.common.installation import shipped
from pele_ocl.opencl import Device, loader, runtimes

UBIQUITIN = str(shipped("data") / "structures" / "ubiquitin.pdb")


def test_the_loader_knows_the_platforms_and_devices_of_pyopencl():
    found = loader.find_loader()
    assert found is not None
    platforms = cl.get_platforms()
    assert found.platforms() == [platform.int_ptr for platform in platforms]
    for platform in platforms:
        assert found.devices(platform.int_ptr) == [device.int_ptr for device in platform.get_devices()]


def test_a_kind_without_devices_has_an_empty_list(device):
    handle = device.handle
    custom = 1 << 4  # CL_DEVICE_TYPE_CUSTOM
    assert loader.find_loader().devices(handle.platform.int_ptr, custom) == []


@pytest.mark.parametrize("missing", ["package", "extension", "loader"])
def test_without_pyopencls_library_there_is_no_loader(missing, monkeypatch):
    def find(name: str, path: Any = None) -> Any:
        if name == "pyopencl":
            return None if missing == "package" else SimpleNamespace(submodule_search_locations=["/nowhere"])
        return None if missing == "extension" else SimpleNamespace(origin="/nowhere/_cl.so")

    monkeypatch.setattr(loader.PathFinder, "find_spec", find)
    monkeypatch.setenv("PYOPENCL_HOME", "")
    assert loader.find_loader.__wrapped__() is None
    runtimes._start_drivers(None, loader.GPU)  # PyOpenCL will load them


@pytest.mark.parametrize(
    ("gpus", "context_of", "made"),
    [([[11]], loader.GPU, {11: 1011}), ([[11], []], loader.GPU, {11: 1011}), ([[11]], 0, {}), ([[]], loader.GPU, {}),
     ([[11, 12]], loader.GPU, {}), ([[11], [21]], loader.GPU, {})],
)  # fmt: skip
def test_the_context_of_a_single_gpu_is_made(gpus, context_of, made, monkeypatch):
    asked = []

    def devices(platform: int, kind: int = loader.ANY_DEVICE) -> list[int]:
        asked.append((platform, kind))
        return gpus[platform] if kind == loader.GPU else [*gpus[platform], 99]

    stub = SimpleNamespace(platforms=lambda: [*range(len(gpus))], devices=devices, make_context=lambda of: 1000 + of)
    monkeypatch.setattr(runtimes, "_contexts", {})
    runtimes._start_drivers(stub, context_of)
    assert runtimes._contexts == made
    assert {(platform, loader.ANY_DEVICE) for platform in range(len(gpus))} <= {*asked}


@pytest.fixture
def not_begun(monkeypatch):
    """As in a process that has not loaded its runtimes yet."""
    announced = ExitStack()
    monkeypatch.setattr(runtimes, "_loading", [])
    monkeypatch.setattr(runtimes, "_announced", announced)
    monkeypatch.setattr(runtimes.atexit, "register", lambda *_: None)
    monkeypatch.setenv("OCL_ICD_VENDORS", "")  # so that it is as it was after the test
    monkeypatch.delenv("OCL_ICD_VENDORS")
    with announced:
        yield


@pytest.mark.usefixtures("not_begun")
def test_errors_of_the_system_are_left_to_find_platforms(monkeypatch):
    def refuse() -> None:
        raise FileNotFoundError("no usable temporary directory")

    monkeypatch.setattr(runtimes, "announced_runtimes", refuse)
    runtimes.load_runtimes()
    assert not runtimes.is_loading()
    with pytest.raises(FileNotFoundError):
        runtimes.find_platforms.__wrapped__()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="OCL_ICD_VENDORS")
@pytest.mark.usefixtures("not_begun")
def test_the_thread_changes_no_environment_variable(monkeypatch):
    """They are set before it starts, and unset by find_platforms, which leaves what others have set meanwhile."""
    seen, may_end = list[dict[str, str]](), threading.Event()

    def start(*_: object) -> None:
        seen.append(dict(os.environ))
        assert may_end.wait(60)

    monkeypatch.setattr(runtimes, "_unnamed_runtimes", lambda: {"one.icd": "/nowhere/libone.so"})
    monkeypatch.setattr(runtimes, "_start_drivers", start)
    before = dict(os.environ)
    runtimes.load_runtimes()
    folder = Path(os.environ["OCL_ICD_VENDORS"])
    assert (folder / "one.icd").read_text() == "/nowhere/libone.so\n"
    during = dict(os.environ)
    monkeypatch.setenv("OF_ANOTHER", "1")
    may_end.set()
    runtimes.find_platforms.__wrapped__()
    assert seen == [during]
    assert dict(os.environ) == before | {"OF_ANOTHER": "1"}
    assert not folder.exists()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="OCL_ICD_VENDORS")
@pytest.mark.usefixtures("not_begun")
def test_a_folder_of_the_parent_process_is_no_choice(monkeypatch):
    """The parent may remove it before the child, such as a worker, has loaded its runtimes."""
    monkeypatch.setattr(runtimes, "_unnamed_runtimes", lambda: {"one.icd": "/nowhere/libone.so"})
    with runtimes.announced_runtimes():
        of_parent = os.environ["OCL_ICD_VENDORS"]
        with runtimes.announced_runtimes():
            folder = Path(os.environ["OCL_ICD_VENDORS"])
            assert str(folder) != of_parent
            assert (folder / "one.icd").is_file()
    assert "OCL_ICD_VENDORS" not in os.environ
    monkeypatch.setenv("OCL_ICD_VENDORS", "/opt/vendors")
    with runtimes.announced_runtimes():
        assert os.environ["OCL_ICD_VENDORS"] == "/opt/vendors"


@pytest.mark.usefixtures("not_begun")
def test_a_choice_made_while_drivers_start_stays(monkeypatch):
    monkeypatch.setattr(runtimes, "_unnamed_runtimes", lambda: {"one.icd": "/nowhere/libone.so"})
    monkeypatch.setattr(runtimes, "_start_drivers", lambda *_: None)
    runtimes.load_runtimes()
    monkeypatch.setenv("OCL_ICD_VENDORS", "/opt/vendors")
    runtimes.find_platforms.__wrapped__()
    assert os.environ["OCL_ICD_VENDORS"] == "/opt/vendors"


def test_a_device_takes_its_context_that_was_made(device):
    made = loader.find_loader().make_context(device.handle.int_ptr)
    assert made
    runtimes._contexts[device.handle.int_ptr] = made
    taking, making = Device(0, device.handle), Device(0, device.handle)
    assert taking.context.int_ptr == made
    assert making.context.int_ptr != made
    assert taking.context.devices == [device.handle]
    assert not runtimes._contexts


@pytest.mark.parametrize(
    ("words", "chosen", "started"),
    [
        ([UBIQUITIN], "", [loader.GPU]),
        (["nowhere.pdb"], "", [loader.GPU]),
        ([UBIQUITIN], str(DEVICES[0].index), [0]),
        ([UBIQUITIN, "--device", str(DEVICES[0].index)], "", [0]),
        ([UBIQUITIN, UBIQUITIN, "--workers", "2"], "", []),
        (["--help"], "", []),
        ([UBIQUITIN, "--precision", "float16"], "", []),
    ],
)
def test_drivers_start_before_a_command_that_computes_in_its_process(words, chosen, started, monkeypatch):
    begun = []

    def stop(*_: object, **__: object) -> None:
        raise RuntimeError

    monkeypatch.setenv("PELE_OCL_DEVICE", chosen)
    monkeypatch.setattr(runtimes, "load_runtimes", begun.append)
    monkeypatch.setattr("pele_ocl.cli.energy.compute", stop)
    CliRunner().invoke(main, ["energy", *words])
    assert begun == started


def test_no_drivers_start_for_a_command_without_a_device(monkeypatch, tmp_path):
    begun = []
    monkeypatch.setattr(runtimes, "load_runtimes", begun.append)
    write_map(tmp_path / "a.dx", Map(Grid((0, 0, 0), 1, (3, 3, 3)), np.ones((3, 3, 3)), "V"))
    done = CliRunner().invoke(main, ["convert", str(tmp_path / "a.dx"), str(tmp_path / "a.mrc")])
    assert done.exit_code == 0, done.output
    assert not begun


def outcome(code: str, *words: str) -> tuple[list[str], str]:
    """Return the words that a program wrote, and its stderr."""
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True, timeout=120)
    return done.stdout.split(), done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="nothing forks")
@pytest.mark.parametrize(("how", "said"), [("fork", ["parent", "child"]), ("end", [])])
def test_a_process_waits_for_its_drivers_before_it_forks_and_before_it_ends(how, said):
    code = """
import os, sys, time
from pele_ocl.opencl import runtimes
def start(loader, context_of):
    time.sleep(0.3)
    runtimes._contexts[1] = 2
    os.write(1, b"started ")
runtimes._start_drivers = start
runtimes.load_runtimes()
runtimes.load_runtimes()
if sys.argv[1] == "fork":
    child = os.fork()
    os.write(1, b"parent " if child else b"child ")
    assert bool(runtimes._contexts) == bool(child)
    if child:
        assert os.waitpid(child, 0)[1] == 0
"""
    words, complaints = outcome(code, how)
    assert words[0] == "started"
    assert sorted(words[1:]) == sorted(said)
    assert not complaints


@pytest.mark.skipif(sys.platform == "win32", reason="nothing forks")
def test_a_fork_by_another_thread_while_loading_begins():
    """It comes when variables are set, before the thread starts; the child can load its runtimes itself."""
    code = """
import os, threading, time
from contextlib import contextmanager
from pele_ocl.opencl import runtimes
begins = threading.Event()
@contextmanager
def announced():
    begins.set()
    time.sleep(0.3)
    yield
def start(loader, context_of):
    os.write(1, b"started ")
runtimes.announced_runtimes, runtimes._start_drivers = announced, start
thread = threading.Thread(target=runtimes.load_runtimes)
thread.start()
begins.wait()
child = os.fork()
os.write(1, b"parent " if child else b"child ")
assert not runtimes.is_loading()
runtimes.load_runtimes()
if child:
    assert os.waitpid(child, 0)[1] == 0
"""
    words, complaints = outcome(code)
    assert words[0] == "started"
    assert sorted(words[1:]) == ["child", "parent"]
    assert not complaints


HANGING = """
#include <string.h>
#include <unistd.h>
int hang(unsigned n, void *platforms, unsigned *found) { for (;;) pause(); }
int clGetPlatformInfo(void *platform, unsigned what, size_t n, void *value, size_t *size) { return -1; }
void *clGetExtensionFunctionAddress(const char *name) { return strcmp(name, "clIcdGetPlatformIDsKHR") ? 0 : hang; }
"""


@pytest.fixture(scope="module")
def hanging(tmp_path_factory):
    """Environment of a machine with a driver that hangs while it starts."""
    compiler = shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("no compiler makes a driver for the system's loader")
    folder = tmp_path_factory.mktemp("vendors")
    (folder / "hang.c").write_text(HANGING)
    subprocess.run([compiler, "-w", "-shared", "-fPIC", "-o", folder / "libhang.so", folder / "hang.c"], check=True)
    (folder / "hang.icd").write_text(f"{folder / 'libhang.so'}\n")
    return os.environ | {"OCL_ICD_VENDORS": str(folder)}


def test_a_command_that_fails_ends_although_a_driver_hangs(hanging, tmp_path):
    command = [sys.executable, "-m", "pele_ocl", "energy", "nowhere.pdb"]
    environment = hanging | {"TMPDIR": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "Error: nowhere.pdb: no such file\n")
    assert not [*tmp_path.iterdir()]


def test_a_command_that_waits_for_a_driver_that_hangs_is_interrupted(hanging):
    code = """
import os, signal, threading
from pele_ocl.__main__ import run
from pele_ocl.opencl import runtimes
begin = runtimes._begin_loading
def begun(*given):
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    return begin(*given)
runtimes._begin_loading = begun
run()
"""
    command = [sys.executable, "-c", code, "devices"]
    done = subprocess.run(command, env=hanging, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "Interrupted\n")


def test_what_a_command_prints_is_complete_although_a_driver_hangs(hanging):
    """What functions for the exit do is done, and what was printed is written."""
    code = """
import atexit, sys, time
import pele_ocl.__main__ as program
from pele_ocl.opencl import runtimes
def main(prog_name):
    runtimes.load_runtimes()
    atexit.register(print, "at the exit", end="")
    print("printed", end=" ")
    sys.exit(3)
import pele_ocl.cli
pele_ocl.cli.main = main
program.run()
"""
    done = subprocess.run([sys.executable, "-c", code], env=hanging, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (3, "printed at the exit", "")
