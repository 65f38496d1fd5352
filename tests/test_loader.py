"""Runtimes that are loaded in a thread while a command reads its files."""

from __future__ import annotations

import subprocess
import sys
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


def test_the_thread_leaves_errors_of_the_system_to_find_platforms(monkeypatch):
    def refuse() -> None:
        raise FileNotFoundError("no usable temporary directory")

    monkeypatch.setattr(runtimes, "announced_runtimes", refuse)
    runtimes._start_drivers(loader.find_loader(), loader.GPU)
    with pytest.raises(FileNotFoundError):
        runtimes.find_platforms.__wrapped__()


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


@pytest.mark.skipif(sys.platform == "win32", reason="nothing forks")
def test_a_process_waits_for_its_drivers_before_it_forks_and_before_it_ends():
    code = """
import os, sys, time
from pele_ocl.opencl import runtimes
def start(loader, context_of):
    time.sleep(0.3)
    runtimes._contexts[1] = 2
    os.write(1, b"started ")
runtimes._start_drivers = start
thread = runtimes.load_runtimes()
assert runtimes.load_runtimes() is thread
if sys.argv[1] == "fork":
    child = os.fork()
    os.write(1, b"parent " if child else b"child ")
    assert bool(runtimes._contexts) == bool(child)
    if child:
        assert os.waitpid(child, 0)[1] == 0
"""
    for how, said in (("fork", {"started", "parent", "child"}), ("end", {"started"})):
        done = subprocess.run([sys.executable, "-c", code, how], capture_output=True, text=True, check=True)
        words = done.stdout.split()
        assert words[0] == "started"
        assert {*words} == said
        assert len(words) == len(said)
