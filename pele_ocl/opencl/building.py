"""Kernels built for a device from the files of cl/."""

from __future__ import annotations

import os
import re
import threading
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Literal

import platformdirs
import pyopencl as cl

from ..errors import KernelBuildError
from ..paths import shipped
from . import notices, shared
from .device import Device

# PyOpenCL's build sets and unsets environment variables, Python's filter of warnings is one for all threads. Finalizers
# of a user's objects may run while a thread builds, so it may build within.
BUILDING = threading.RLock()


class Kernel:
    """A kernel of a built program, with the OpenCL kernel objects to launch it.

    An object carries the arguments set last, so each has one user at a time: who launches borrows one, sets all
    arguments, enqueues, and gives it back. Objects are kept, because making one costs more than a launch. Threads may
    use a Kernel at the same time, and finalizers may give objects back.

    launched : whether it has run on the device
    """

    def __init__(self, program: cl.Program, name: str, device: Device) -> None:
        self.name, self.launched = name, False
        self._program, self._vendor, self._handle = program, device.vendor, device.handle
        self._free = deque([cl.Kernel(program, name)])

    def borrow(self) -> cl.Kernel:
        """A kernel object that nobody else uses."""
        try:
            return self._free.pop()
        except IndexError:
            return cl.Kernel(self._program, self.name)

    def give_back(self, kernel_object: cl.Kernel) -> None:
        """Let others have a borrowed kernel object."""
        self._free.append(kernel_object)

    def lend(self, owner: object) -> cl.Kernel:
        """A kernel object that comes back when `owner` is gone."""
        kernel_object = self.borrow()
        weakref.finalize(owner, self.give_back, kernel_object).atexit = False
        return kernel_object

    @cached_property
    def most_items(self) -> int:
        """Work-items that a group of this kernel may have on the device."""
        info, kernel_object = cl.kernel_work_group_info, self.borrow()
        own = kernel_object.get_work_group_info(info.COMPILE_WORK_GROUP_SIZE, self._handle)[0]
        limit = kernel_object.get_work_group_info(info.WORK_GROUP_SIZE, self._handle)
        self.give_back(kernel_object)
        # On NVIDIA the source's own size holds; the limit is 256 there, whatever that is.
        return int(own) if own and self._vendor == "NVIDIA" else max(1, int(limit))


def get_kernel(
    device: Device, file: str, name: str, precision: str, width: int = 1, portable: bool = False, **defines: int
) -> Kernel:
    """Kernel `name` of cl/`file`, built for the device and kept.

    precision : "float32" or "float64"
    width : reals in a vector
    portable : leave out what is written for one vendor's compiler
    defines : further macros of the kernel

    Raises KernelBuildError with the compiler's words.
    """
    key = (file, name, precision, width, portable, tuple(sorted(defines.items())))
    kernel: Kernel | None = device.kernels.get(key)
    if kernel is None:
        with BUILDING:
            program = get_program(device, file, precision, width, portable, defines)
            kernel = device.kernels.setdefault(key, Kernel(program, name, device))
    return kernel


def get_program(
    device: Device, file: str, precision: str, width: int, portable: bool, defines: Mapping[str, int]
) -> cl.Program:
    """The program of cl/`file`, built for the device and kept; parameters as of get_kernel."""
    key = (file, precision, width, portable, tuple(sorted(defines.items())))
    with BUILDING:
        if key not in device.programs:
            device.require_precision(precision)
            with notices.building(device.name):
                device.programs[key] = _build(device, file, _options(device, precision, width, portable, defines))
        return device.programs[key]


def _options(device: Device, precision: str, width: int, portable: bool, defines: Mapping[str, int]) -> list[str]:
    macros = {"REAL_BITS": int(precision[-2:]), "WIDTH": width, f"VENDOR_{device.vendor}": 1, **defines}
    if portable:
        macros["PORTABLE"] = 1
    # Floating-point atomics and fences over the device are of OpenCL C 3.0, but for NVIDIA's, which are PTX.
    is_newer = defines.get("NATIVE_ATOMICS") or defines.get("FUSED")
    standard = "CL3.0" if is_newer and device.vendor != "NVIDIA" else "CL1.2"
    options = [f"-cl-std={standard}", "-cl-mad-enable"]
    if precision == "float32":
        options.append("-cl-denorms-are-zero")
    return options + [f"-D{name}={value}" for name, value in macros.items()]


def _build(device: Device, file: str, options: list[str]) -> cl.Program:
    source = expanded_source(file, _source)
    try:
        with BUILDING, warnings.catch_warnings():
            warnings.simplefilter("ignore", cl.CompilerWarning)  # compilers chat; what they refuse is raised
            program: cl.Program = cl.Program(device.context, source).build(options, cache_dir=_cache_folder())  # type: ignore[arg-type]  # False is meant: no cache
            return program
    except cl.RuntimeError as error:
        raise KernelBuildError(
            f"cl/{file} does not compile on {device.name} with {' '.join(options)}: {error}"
        ) from error


def _source(file: str) -> str:
    """The text of a kernel file, or of what the host shares with the kernels."""
    if file.startswith(shared.FOLDER):
        return shared.HEADERS[file.removeprefix(shared.FOLDER)]
    return (shipped("cl") / file).read_text()


def expanded_source(file: str, read: Callable[[str], str], seen: set[str] | None = None) -> str:
    """A kernel file with its headers in place, each once, and #line marks so that compilers name file and line.

    The compilers' own -I takes no folder with a blank in its name.
    """
    seen = set() if seen is None else seen
    seen.add(file)
    lines = [f'#line 1 "{file}"']
    branching = False  # whether headers stand in a branch that the compiler may leave out, with its #line marks
    for number, line in enumerate(read(file).splitlines(), 1):
        header = re.match(r'\s*#include "([\w./]+)"', line)
        if header is None:
            lines.append(line)
            if branching and re.match(r"\s*#(elif|else|endif)", line):
                lines.append(f'#line {number + 1} "{file}"')
        elif header[1] not in seen:
            lines += [expanded_source(header[1], read, seen), f'#line {number + 1} "{file}"']
            branching = True
        else:
            lines.append("")
    return "\n".join(lines)


def _cache_folder() -> str | Literal[False]:
    """Where built programs are kept between runs; False where no folder can be written to."""
    folder = Path(platformdirs.user_cache_dir("pele-ocl"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return str(folder) if os.access(folder, os.W_OK | os.X_OK) else False
