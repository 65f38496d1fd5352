"""Processor that PoCL compiles for, if it is newer than PoCL's compiler.

PyOpenCL's wheel has PoCL 3.0 with LLVM 14. It calls processors that it does not know "generic", such as AMD's since Zen
5. Its own compiler then refuses that name, and no program builds. Later versions take the name from the variable
POCL_LLVM_CPU_NAME. This one has neither an option nor a variable for it (https://github.com/pocl/pocl/issues/1049), so
the name is replaced where PoCL keeps it. That writes into another library's memory, so only PELE_OCL_NAME_PROCESSOR=1
has it done; without it the error of a build says which runtime to install.
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

import pyopencl as cl

VARIABLE = "PELE_OCL_NAME_PROCESSOR"
UNKNOWN = b"generic\0"
TRIPLET = b"x86_64-"  # begins the name of the target, the pointer to which stands before that to the processor's
KEPT_BYTES = 1024  # of a device in PoCL 3.0, behind which the next one may begin
# What LLVM takes a Haswell to have, as the system names it, as far as compilers make use of it in kernels.
HASWELL = {"avx2", "bmi1", "bmi2", "fma", "f16c", "abm", "movbe", "popcnt"}


def name_processors(devices: Iterable[cl.Device]) -> None:
    """Have PoCL 3.0 compile for a processor that its compiler knows, on devices whose own it does not, if asked to."""
    if os.environ.get(VARIABLE) != "1":
        return
    own = [device for device in devices if " PoCL 3.0" in device.platform.version]
    unknown = [device for device in own if device.version.endswith("x86_64-unknown-linux-gnu-generic")]
    if not unknown or not sys.platform.startswith("linux"):
        return
    try:
        name = known_name(Path("/proc/cpuinfo").read_text())
        writable = writable_parts(Path("/proc/self/maps").read_text())
        with open("/proc/self/mem", "r+b", buffering=0) as memory:
            for device in unknown:
                rename(memory, device.int_ptr, name, writable)
    except OSError:  # nothing builds then, and the error says what helps
        pass


def known_name(cpuinfo: str) -> bytes:
    """Name the most that LLVM 14 knows of this processor, in 7 letters at most. cpuinfo : as Linux tells it"""
    flags = next((line.split() for line in cpuinfo.splitlines() if line.startswith("flags")), [])
    return b"haswell" if set(flags) >= HASWELL else b"x86-64"


def writable_parts(maps: str) -> list[range]:
    """List the bytes of a process that it may write to. maps : as Linux tells them"""
    lines = (line.split()[:2] for line in maps.splitlines())
    return [range(*(int(end, 16) for end in ends.split("-"))) for ends, rights in lines if rights.startswith("rw")]


def rename(memory: BinaryIO, first: int, name: bytes, writable: Sequence[range]) -> bool:
    """Replace the name of the processor in what begins at byte `first`; whether it stands there, and once alone.

    memory : of this process, which raises OSError or gives nothing where nothing is
    writable : its parts that may be written to; the file of the memory itself would write to constants, too
    """
    raw = _read(memory, first, KEPT_BYTES)
    pointers = struct.unpack(f"{len(raw) // 8}Q", raw[: len(raw) // 8 * 8])
    places = [
        processor
        for target, processor in pairwise(pointers)
        if _read(memory, target, len(TRIPLET)) == TRIPLET and _read(memory, processor, len(UNKNOWN)) == UNKNOWN
    ]
    if len(places) != 1 or not any(places[0] in part for part in writable):
        return False
    memory.seek(places[0])
    memory.write(name.ljust(len(UNKNOWN), b"\0")[: len(UNKNOWN)])
    return True


def _read(memory: BinaryIO, first: int, size: int) -> bytes:
    """Read so many bytes, or fewer if there is nothing to be read."""
    try:
        memory.seek(first)
        return memory.read(size)
    except (OSError, ValueError, OverflowError):
        return b""
