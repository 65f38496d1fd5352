"""PoCL on processors that its compiler does not know, and on systems without a linker."""

from __future__ import annotations

import io
import struct
import sys

import pyopencl as cl
import pytest
from test_runtime_refusals import opencl_error

from pele_ocl import KernelBuildError, check_kernel, list_devices
from pele_ocl.opencl import Device, Queue, building, runtimes
from pele_ocl.opencl.runtimes import (
    HASWELL,
    KEPT_BYTES,
    known_name,
    missing_below,
    name_processors,
    rename,
    writable_parts,
)

TARGET, PROCESSOR, FIRST = 64, 96, 128  # where a memory has the names, and a device with pointers to them
ALL = [range(1 << 20)]


def memory_of(*pointers: int, name: bytes = b"generic\0", target: bytes = b"x86_64-unknown-linux-gnu\0") -> io.BytesIO:
    memory = io.BytesIO()
    for first, content in ((TARGET, target), (PROCESSOR, name), (FIRST, struct.pack(f"{len(pointers)}Q", *pointers))):
        memory.seek(first)
        memory.write(content)
    return memory


def test_the_name_is_replaced_behind_that_of_the_target():
    memory = memory_of(7, 2**64 - 1, TARGET, PROCESSOR, 0)
    assert rename(memory, FIRST, b"haswell", ALL)
    assert memory.getvalue()[PROCESSOR : PROCESSOR + 9] == b"haswell\0\0"
    assert not rename(memory, FIRST, b"x86-64", ALL)
    assert memory.getvalue()[PROCESSOR : PROCESSOR + 9] == b"haswell\0\0"


@pytest.mark.parametrize(
    ("memory", "first"),
    [
        (memory_of(TARGET, PROCESSOR, name=b"znver3\0"), FIRST),
        (memory_of(PROCESSOR, TARGET), FIRST),
        (memory_of(TARGET, PROCESSOR, target=b"aarch64-\0"), FIRST),
        (memory_of(TARGET, PROCESSOR, TARGET, PROCESSOR), FIRST),
        (memory_of(TARGET, PROCESSOR), 1 << 20),
    ],
    ids=["another name", "alone", "another target", "twice", "nothing there"],
)
def test_what_looks_otherwise_is_left(memory, first):
    before = memory.getvalue()
    assert not rename(memory, first, b"haswell", ALL)
    assert memory.getvalue() == before


def test_constants_are_left():
    memory = memory_of(TARGET, PROCESSOR)
    maps = "0-50 rw-p 0 00:00 0 [heap]\n50-1000 r--p 0 00:00 0 /lib/a.so\n1000-2000 rw-p 0 00:00 0\n"
    parts = writable_parts(maps)
    assert parts == [range(0x50), range(0x1000, 0x2000)]
    assert not rename(memory, FIRST, b"haswell", parts)
    assert rename(memory, FIRST, b"haswell", [range(PROCESSOR, PROCESSOR + 8)])


def test_a_device_behind_another_is_left_to_its_own_turn():
    padding = [0] * (KEPT_BYTES // 8 - 2)
    assert rename(memory_of(TARGET, PROCESSOR, *padding, TARGET, PROCESSOR), FIRST, b"haswell", ALL)


def test_the_name_goes_by_what_the_processor_has():
    def told(flags: set[str]) -> str:
        return f"processor\t: 0\nflags\t\t: fpu {' '.join(sorted(flags))} avx512f\nbugs\t\t: none\n"

    assert known_name(told(HASWELL)) == b"haswell"
    assert known_name(told(HASWELL - {"fma"})) == b"x86-64"
    assert known_name("") == b"x86-64"


@pytest.mark.parametrize(("wanted", "is_renamed"), [("1", True), ("0", False), (None, False)])
def test_memory_is_written_to_only_where_it_is_asked_for(monkeypatch, wanted, is_renamed):
    class Platform:
        version = "OpenCL 3.0 PoCL 3.0-rc2"

    class Unknown:
        platform, version, int_ptr = Platform(), "OpenCL 3.0 PoCL HSTR: pthread-x86_64-unknown-linux-gnu-generic", FIRST

    opened = []
    monkeypatch.setattr(runtimes, "rename", lambda *_: opened.append(True))
    monkeypatch.delenv("PELE_OCL_NAME_PROCESSOR", raising=False)
    if wanted is not None:
        monkeypatch.setenv("PELE_OCL_NAME_PROCESSOR", wanted)
    name_processors([Unknown()])
    assert bool(opened) == (is_renamed and sys.platform.startswith("linux"))


def test_every_device_of_this_machine_builds():
    for device in list_devices():
        Queue(device, "float32").kernel("nonbond/pair_index.cl", "permute_pairs")


def test_a_compiler_that_does_not_know_the_processor_says_what_helps(device, monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise opencl_error(cl.status_code.BUILD_PROGRAM_FAILURE, "error: unknown target CPU 'generic'")

    monkeypatch.setattr(cl.Program, "build", refuse)
    with pytest.raises(
        KernelBuildError, match=r"does not support this processor; install another runtime: pip install"
    ):
        Queue(Device(device.index, device.handle), "float32").kernel("nonbond/pair_index.cl", "permute_pairs")


def test_a_system_without_a_linker_is_named_before_pocl_aborts(device, monkeypatch, tmp_path):
    """PoCL 3.0 links kernels with `ld` and libgcc of the system; a slim container has neither."""
    assert missing_below(tmp_path, str(tmp_path)) == ["ld", "libgcc"]
    (tmp_path / "ld").touch(mode=0o755)
    (tmp_path / "usr/lib/gcc/x86_64-linux-gnu/12").mkdir(parents=True)
    assert missing_below(tmp_path, str(tmp_path)) == ["libgcc"]
    (tmp_path / "usr/lib/gcc/x86_64-linux-gnu/12/libgcc.a").touch()
    assert missing_below(tmp_path, str(tmp_path)) == []
    if " PoCL 3.0" not in device.handle.platform.version:
        pytest.skip("other runtimes bring a linker or need none")
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))  # the compiler looks nowhere else
    assert "ld" in runtimes.missing_parts.__wrapped__()
    monkeypatch.setattr(building, "missing_parts", lambda: ["ld", "libgcc"])
    with pytest.raises(KernelBuildError, match="links kernels with"):  # and not that the kernel is wrong
        check_kernel("kernel void f(global float *map) { map[0] = 0; }", "potmap", device=device.index)
    with pytest.raises(KernelBuildError, match=r"the system's ld and libgcc, .*: install gcc"):
        Queue(Device(device.index, device.handle), "float32").kernel("nonbond/pair_index.cl", "permute_pairs")
