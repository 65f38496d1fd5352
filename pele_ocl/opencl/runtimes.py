"""Find OpenCL runtimes that pip installed, so that no user sets an environment variable.

PyOpenCL's wheel reads the folder OCL_ICD_VENDORS, or /etc/OpenCL/vendors, for files that name a runtime's library. Two
common runtimes are missed that way: Intel's from PyPI, whose own .icd file holds a path of the machine it was built on,
and NVIDIA's inside containers, where the driver's library is mounted without an .icd file. `announce_runtimes` puts a
folder together that names them and everything the system names, before `import pyopencl` looks.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import shutil
import sys
import tempfile
from importlib import metadata
from pathlib import Path

SYSTEM_VENDORS = Path("/etc/OpenCL/vendors")


def announce_runtimes() -> None:
    """Point the OpenCL loader at every runtime there is, unless the user already did by OCL_ICD_VENDORS."""
    if "OCL_ICD_VENDORS" in os.environ or not sys.platform.startswith("linux"):
        return
    icds = _system_icds()
    found = _pip_intel_icd() | _container_nvidia_icd(icds)
    if not found:
        return
    folder = Path(tempfile.mkdtemp(prefix="pele-ocl-vendors-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name, library in (icds | found).items():
        (folder / name).write_text(f"{library}\n")
    os.environ["OCL_ICD_VENDORS"] = str(folder)


def _system_icds() -> dict[str, str]:
    if not SYSTEM_VENDORS.is_dir():
        return {}
    return {icd.name: icd.read_text().strip() for icd in sorted(SYSTEM_VENDORS.glob("*.icd"))}


def _pip_intel_icd() -> dict[str, str]:
    try:
        files = metadata.files("intel-opencl-rt") or []
    except metadata.PackageNotFoundError:
        return {}
    for file in files:
        if file.name == "libintelocl.so":
            return {"intel-pip.icd": str(Path(str(file.locate())).resolve())}
    return {}


def _container_nvidia_icd(named: dict[str, str]) -> dict[str, str]:
    library = "libnvidia-opencl.so.1"
    if any("nvidia" in path for path in named.values()):
        return {}
    try:
        ctypes.CDLL(library)
    except OSError:
        return {}
    return {"nvidia-driver.icd": library}
