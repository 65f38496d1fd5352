"""Programs and libraries that timing tables include if they are installed."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

# How to install what is not installed: extras of this package, or packages of another name than the module's.
BENCH_EXTRA = "'pele-ocl[bench]'"
PACKAGES = {"openmm": BENCH_EXTRA, "numba": BENCH_EXTRA, "fmm3dpy": BENCH_EXTRA, "cupy": "cupy-cuda13x"}


class AbsentError(Exception):
    """A program is not installed, or does not support the request; the message is the reason."""


def load(module: str) -> ModuleType:
    """Import a module. Raises AbsentError if it is not installed."""
    if find_spec(module) is None:
        raise AbsentError(f"not installed: pip install {PACKAGES.get(module, module)}")
    return import_module(module)
