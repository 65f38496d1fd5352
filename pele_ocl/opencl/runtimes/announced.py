"""Find OpenCL runtimes that pip installed, so that no user sets an environment variable.

PyOpenCL's wheel reads the folder OCL_ICD_VENDORS, or /etc/OpenCL/vendors, for files that name a runtime's library. Two
common runtimes are missed that way. Intel's from PyPI has an .icd file with a path of the machine it was built on.
Inside containers NVIDIA's library is mounted without an .icd file. On Windows runtimes stand in the registry, where pip
writes nothing, and OCL_ICD_FILENAMES adds libraries to them.
"""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

VARIABLE = "OCL_ICD_VENDORS"
WINDOWS_VARIABLE = "OCL_ICD_FILENAMES"
SYSTEM_VENDORS = Path("/etc/OpenCL/vendors")


@contextmanager
def announced_runtimes() -> Iterator[None]:
    """Let the loader find pip's and the driver's runtimes beside the system's, within the block.

    Does nothing where the user chose by OCL_ICD_VENDORS, or where there is nothing to add.
    """
    if sys.platform == "win32":
        with _announced_on_windows():
            yield
        return
    found = {} if VARIABLE in os.environ or not sys.platform.startswith("linux") else _unnamed_runtimes()
    if not found:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="pele-ocl-vendors-") as folder:
        for name, library in (_system_icds() | found).items():
            (Path(folder) / name).write_text(f"{library}\n")
        os.environ[VARIABLE] = folder
        try:
            yield
        finally:
            del os.environ[VARIABLE]


@contextmanager
def _announced_on_windows() -> Iterator[None]:
    """Announce Intel's runtime of pip beside the registry's; its library finds its own parts by PATH."""
    library = None if WINDOWS_VARIABLE in os.environ else _pip_intel("intelocl64.dll")
    if library is None:
        yield
        return
    path = os.environ.get("PATH", "")
    os.environ[WINDOWS_VARIABLE] = str(library)
    os.environ["PATH"] = f"{library.parent}{os.pathsep}{path}"
    try:
        yield
    finally:
        os.environ["PATH"] = path
        del os.environ[WINDOWS_VARIABLE]


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
    """Find the library of this name in Intel's runtime of pip; None if that is not installed."""
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
