"""Discovery of OpenCL runtimes, and workarounds for their peculiarities.

PyOpenCL's wheel searches the folder OCL_ICD_VENDORS, or /etc/OpenCL/vendors, for files that name a runtime's library.
This misses two common runtimes: Intel's from PyPI, whose .icd file has a path of the machine it was built on, and
NVIDIA's in containers, where the library is mounted without an .icd file. On Windows, runtimes are listed in the
registry, which pip does not modify; OCL_ICD_FILENAMES adds libraries. This module adds both runtimes, so that users
need not set environment variables.

PyOpenCL's wheel contains PoCL 3.0 with LLVM 14, which links each kernel with the linker of the system. The wheel
contains neither `ld` nor libgcc, and PoCL aborts the process if they are missing. PoCL 3.0 also reports processors that
it does not know, such as AMD's since Zen 5, as "generic", a name that its compiler rejects, so that no program builds.
Later versions read the name from the variable POCL_LLVM_CPU_NAME; version 3.0 has no such setting
(https://github.com/pocl/pocl/issues/1049), so the name is replaced in PoCL's memory. Because this modifies memory of
another library, it is done only with PELE_OCL_NAME_PROCESSOR=1. Otherwise the build error names a runtime to install.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import shutil
import struct
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, lru_cache
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from ..common.errors import CacheWarning
from .loader import Loader, find_loader

if TYPE_CHECKING:
    import pyopencl as cl

DEVICE_VARIABLE = "PELE_OCL_DEVICE"
VARIABLE = "OCL_ICD_VENDORS"
WINDOWS_VARIABLE = "OCL_ICD_FILENAMES"
SYSTEM_VENDORS = Path("/etc/OpenCL/vendors")
OWN_VENDORS = "pele-ocl-vendors-"  # prefix of the folders of announced_runtimes


@contextmanager
def announced_runtimes() -> Iterator[None]:
    """Make runtimes from pip and the driver visible to the loader within the block, in addition to the system's.

    Does nothing if the user set OCL_ICD_VENDORS, or if there is no runtime to add.
    """
    if sys.platform == "win32":
        with _announced_on_windows():
            yield
        return
    found = {} if _is_set_by_user() or not sys.platform.startswith("linux") else _unnamed_runtimes()
    if not found:
        yield
        return
    with tempfile.TemporaryDirectory(prefix=OWN_VENDORS) as folder:
        for name, library in (_system_icds() | found).items():
            (Path(folder) / name).write_text(f"{library}\n")
        with _variable(VARIABLE, folder):
            yield


def _is_set_by_user() -> bool:
    """Return whether OCL_ICD_VENDORS is set, other than to a folder of a parent process, which removes it."""
    folder = os.environ.get(VARIABLE)
    return folder is not None and not Path(folder).name.startswith(OWN_VENDORS)


@contextmanager
def _announced_on_windows() -> Iterator[None]:
    """Add Intel's runtime from pip to those of the registry; it finds its own libraries through PATH."""
    library = None if WINDOWS_VARIABLE in os.environ else _pip_intel("intelocl64.dll")
    if library is None:
        yield
        return
    path = os.environ.get("PATH", "")
    with _variable(WINDOWS_VARIABLE, str(library)), _variable("PATH", f"{library.parent}{os.pathsep}{path}"):
        yield


@contextmanager
def _variable(name: str, value: str) -> Iterator[None]:
    """Set an environment variable within the block; if other code changes it meanwhile, it keeps that value."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if os.environ.get(name) == value:
            if before is None:
                del os.environ[name]
            else:
                os.environ[name] = before


def _unnamed_runtimes() -> dict[str, str]:
    return _pip_intel_icd() | _container_nvidia_icd(_system_icds())


def _system_icds() -> dict[str, str]:
    if not SYSTEM_VENDORS.is_dir():
        return {}
    return {icd.name: icd.read_text().strip() for icd in sorted(SYSTEM_VENDORS.glob("*.icd"))}


def _pip_intel_icd() -> dict[str, str]:
    library = _pip_intel("libintelocl.so")
    return {} if library is None else {"intel-pip.icd": str(library)}


def _pip_intel(name: str) -> Path | None:
    """Find a library of Intel's runtime from pip; None if it is not installed."""
    try:
        files = metadata.files("intel-opencl-rt") or []
    except metadata.PackageNotFoundError:
        return None
    return next((Path(str(file.locate())).resolve() for file in files if file.name == name), None)


def _container_nvidia_icd(named: dict[str, str]) -> dict[str, str]:
    library = "libnvidia-opencl.so.1"
    if any("nvidia" in path for path in named.values()):
        return {}
    try:
        ctypes.CDLL(library)
    except OSError:
        return {}
    return {"nvidia-driver.icd": library}


# Where clang 14 searches for libgcc.
GCC_LIBRARIES = tuple(
    f"{top}/{folder}/*/*/libgcc.a" for top in ("usr", "usr/local") for folder in ("lib/gcc", "lib64/gcc")
)
GCC_LIBRARIES += (
    "usr/lib/gcc-cross/*/*/libgcc.a",
    "usr/lib/*/gcc/*/*/libgcc.a",
    "opt/rh/*/root/usr/lib/gcc/*/*/libgcc.a",
)


@cache
def missing_parts() -> list[str]:
    """List the tools that PoCL 3.0 needs for linking and that this system lacks."""
    return missing_below(Path("/"), os.environ.get("PATH", ""))


def missing_below(root: Path, path: str) -> list[str]:
    """List the missing tools. root : of the file system; path : search path for programs, as in PATH"""
    found = {"ld": shutil.which("ld", path=path), "libgcc": any(any(root.glob(pattern)) for pattern in GCC_LIBRARIES)}
    return [name for name, place in found.items() if not place]


PROCESSOR_VARIABLE = "PELE_OCL_NAME_PROCESSOR"
UNKNOWN = b"generic\0"
TRIPLET = b"x86_64-"  # start of the target's name; the pointer to it precedes the pointer to the processor's name
KEPT_BYTES = 1024  # bytes of a device in PoCL 3.0; the next device may follow
# Features of LLVM's processor Haswell that matter for kernels, named as in /proc/cpuinfo.
HASWELL = {"avx2", "bmi1", "bmi2", "fma", "f16c", "abm", "movbe", "popcnt"}


def name_processors(devices: Iterable[cl.Device]) -> None:
    """Replace processor names that PoCL 3.0 reports as "generic", if PELE_OCL_NAME_PROCESSOR=1."""
    if os.environ.get(PROCESSOR_VARIABLE) != "1":
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
    except OSError:  # builds fail then, with an error that names a remedy
        pass


def known_name(cpuinfo: str) -> bytes:
    """Return the best processor name that LLVM 14 supports, at most 7 letters. cpuinfo : content of /proc/cpuinfo"""
    flags = next((line.split() for line in cpuinfo.splitlines() if line.startswith("flags")), [])
    return b"haswell" if set(flags) >= HASWELL else b"x86-64"


def writable_parts(maps: str) -> list[range]:
    """List the writable address ranges of a process. maps : content of /proc/self/maps"""
    lines = (line.split()[:2] for line in maps.splitlines())
    return [range(*(int(end, 16) for end in ends.split("-"))) for ends, rights in lines if rights.startswith("rw")]


def rename(memory: BinaryIO, first: int, name: bytes, writable: Sequence[range]) -> bool:
    """Replace the processor name in the device structure at byte `first`; returns whether it was found exactly once.

    memory : of this process; reads of unmapped addresses raise OSError or return nothing
    writable : writable address ranges; checked because /proc/self/mem also writes to read-only memory
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
    """Read `size` bytes, or fewer if they are not readable."""
    try:
        memory.seek(first)
        return memory.read(size)
    except (OSError, ValueError, OverflowError):
        return b""


# PoCL aborts the process if it cannot write its kernels; a large program needs about 10 MiB.
LEAST_FREE_BYTES = 64 << 20


LONGEST_WAIT = 1.0  # s, at exit, for a thread that starts drivers; drivers that take longer may never start

_loading: list[threading.Thread] = []  # the thread of load_runtimes
_beginning = threading.Lock()
_announced = ExitStack()  # environment variables for the loader, until the runtimes are loaded
_contexts: dict[int, int] = {}  # pointers to contexts by those to devices, from load_runtimes


def load_runtimes(context_of: int = 0) -> None:
    """Start loading the runtimes in a thread, once, so that other work can continue while drivers start.

    context_of : kind of device, such as loader.GPU; if there is exactly one device of this kind, its context is created

    Errors are raised by find_platforms, if devices are needed.

    The process waits for the thread before it forks, because some drivers would crash while they start, and at most
    LONGEST_WAIT before it exits, because a driver may hang.
    """
    with suppress(OSError):  # such as no temporary folder
        _begin_loading(context_of)


def is_loading() -> bool:
    """Return whether a thread still starts drivers."""
    return any(thread.is_alive() for thread in _loading)


def _begin_loading(context_of: int = 0) -> threading.Thread:
    """Start the thread of load_runtimes, or return the one that was started.

    Environment variables are set here and not in the thread, because drivers read them while other threads may change
    others.
    """
    with _beginning:
        if not _loading:
            _give_pocl_a_folder()
            loader = find_loader()
            _announced.enter_context(announced_runtimes())
            name = "OpenCL's runtimes"
            thread = threading.Thread(target=_start_drivers, args=(loader, context_of), name=name, daemon=True)
            thread.start()
            _loading.append(thread)
            atexit.register(_end_loading)
    return _loading[0]


def _end_loading() -> None:
    """Wait for the thread at exit, and remove what was made for the loader."""
    for thread in _loading:
        thread.join(LONGEST_WAIT)
    _announced.close()


def _before_fork() -> None:
    """Wait for the thread that starts drivers, and hold the lock, so that the child does not inherit it locked."""
    _beginning.acquire()
    for thread in _loading:
        thread.join()


def _after_fork_in_child() -> None:
    _contexts.clear()
    _beginning.release()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(before=_before_fork, after_in_parent=_beginning.release, after_in_child=_after_fork_in_child)


def _start_drivers(loader: Loader | None, context_of: int) -> None:
    if loader is None:
        return
    platforms = loader.platforms()
    for platform in platforms:
        loader.devices(platform)
    alike = [device for platform in platforms if context_of for device in loader.devices(platform, context_of)]
    if len(alike) == 1 and (context := loader.make_context(alike[0])):
        _contexts[alike[0]] = context


def make_context(device: cl.Device) -> cl.Context:
    """Create a context for a device, or return the one that load_runtimes created."""
    import pyopencl as cl

    made = _contexts.pop(device.int_ptr, None)
    return cl.Context([device]) if made is None else cl.Context.from_int_ptr(made, retain=False)


@lru_cache(maxsize=1)
def find_platforms() -> tuple[cl.Platform, ...]:
    """List the OpenCL platforms of this machine. Loads the runtimes if load_runtimes was not called."""
    loading = _begin_loading()
    import pyopencl as cl

    _keep_invokers_in_memory(cl)
    loading.join()
    try:
        return tuple(cl.get_platforms())  # loads the runtimes if the thread could not access the loader
    except cl.Error:  # no runtime was found
        return ()
    finally:
        _announced.close()


class _Invokers(dict[Any, Any]):
    """In-memory cache of the functions that PyOpenCL generates to set kernel arguments."""

    def store_if_not_present(self, key: Any, value: Any) -> None:
        self.setdefault(key, value)


def _keep_invokers_in_memory(module: Any) -> None:
    """Replace PyOpenCL's on-disk cache of generated functions, which has no checksums and fails on disk errors."""
    switch = getattr(module, "_PYOPENCL_NO_CACHE", None)
    module._PYOPENCL_NO_CACHE = True  # prevents a database on import
    try:
        from pyopencl import invoker
    finally:
        module._PYOPENCL_NO_CACHE = switch
    invoker.invoker_cache = _Invokers()  # type: ignore[assignment]  # only this method is called


def _give_pocl_a_folder() -> None:
    """Make PoCL cache kernels in a temporary folder if its own is not writable or is shared with other users.

    PoCL executes the code it finds there. Without a home directory, it would share a folder in /tmp with all users.
    """
    folder = _pocl_folder(os.environ.get)
    is_shared = not any(os.environ.get(name) for name in ("POCL_CACHE_DIR", "XDG_CACHE_HOME", "HOME"))
    if is_shared or not _can_hold_kernels(folder):
        temporary = tempfile.mkdtemp(prefix="pele-ocl-pocl-")
        atexit.register(shutil.rmtree, temporary, ignore_errors=True)
        os.environ["POCL_CACHE_DIR"] = temporary
        warnings.warn(
            f"PoCL cannot store compiled kernels in {folder} ("
            + ("HOME is not set" if is_shared else f"no permission, or less than {LEAST_FREE_BYTES >> 20} MiB free")
            + "), so they are rebuilt in every run",
            CacheWarning,
            stacklevel=2,
        )


def _pocl_folder(variable: Callable[[str], str | None]) -> Path:
    """Return the folder in which PoCL caches kernels."""
    if own := variable("POCL_CACHE_DIR"):
        return Path(own)
    if user_cache := variable("XDG_CACHE_HOME"):
        return Path(user_cache) / "pocl" / "kcache"
    return Path(variable("HOME") or tempfile.gettempdir()) / ".cache" / "pocl" / "kcache"


def _can_hold_kernels(folder: Path) -> bool:
    """Return whether a folder is writable and has enough free space."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return shutil.disk_usage(folder).free >= LEAST_FREE_BYTES
    except OSError:
        return False
