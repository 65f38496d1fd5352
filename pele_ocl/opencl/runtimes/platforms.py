"""PyOpenCL and the OpenCL platforms that it finds; files that both write are kept out of harm's way."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyopencl as cl

from ...common.errors import CacheWarning
from .announced import announced_runtimes

# PoCL aborts the process where it cannot write its kernels; a large program's take some 10 MiB.
LEAST_FREE_BYTES = 64 << 20


@lru_cache(maxsize=1)
def find_platforms() -> tuple[cl.Platform, ...]:
    """List the OpenCL platforms of this machine. The first call loads the runtimes; some start threads."""
    _keep_invokers_in_memory()
    _give_pocl_a_folder()
    with announced_runtimes():
        try:
            return tuple(cl.get_platforms())
        except cl.Error:  # the loader found no runtime at all
            return ()


class _Invokers(dict[Any, Any]):
    """Functions that PyOpenCL generates to set a kernel's arguments, in memory."""

    def store_if_not_present(self, key: Any, value: Any) -> None:
        self.setdefault(key, value)


def _keep_invokers_in_memory() -> None:
    """Replace PyOpenCL's database of generated functions, which fails with the disk and has no checksums."""
    module: Any = cl
    switch = getattr(module, "_PYOPENCL_NO_CACHE", None)
    module._PYOPENCL_NO_CACHE = True  # the module makes no database while it is imported
    try:
        from pyopencl import invoker
    finally:
        module._PYOPENCL_NO_CACHE = switch
    invoker.invoker_cache = _Invokers()  # type: ignore[assignment]  # of its methods one is called


def _give_pocl_a_folder() -> None:
    """Let PoCL keep its kernels in a temporary folder where it cannot write to its own, or others can.

    It loads what it finds there as code. A user without a home would share a folder of /tmp with all others.
    """
    folder = _pocl_folder(os.environ.get)
    is_shared = not any(os.environ.get(name) for name in ("POCL_CACHE_DIR", "XDG_CACHE_HOME", "HOME"))
    if is_shared or not _can_hold_kernels(folder):
        temporary = tempfile.mkdtemp(prefix="pele-ocl-pocl-")
        atexit.register(shutil.rmtree, temporary, ignore_errors=True)
        os.environ["POCL_CACHE_DIR"] = temporary
        warnings.warn(
            f"PoCL cannot keep compiled kernels in {folder} ("
            + ("there is no HOME" if is_shared else f"no permission, or less than {LEAST_FREE_BYTES >> 20} MiB free")
            + "), so they are rebuilt in every run",
            CacheWarning,
            stacklevel=2,
        )


def _pocl_folder(variable: Callable[[str], str | None]) -> Path:
    """Find the folder in which PoCL keeps kernels, by its own rules."""
    if own := variable("POCL_CACHE_DIR"):
        return Path(own)
    if cache := variable("XDG_CACHE_HOME"):
        return Path(cache) / "pocl" / "kcache"
    return Path(variable("HOME") or tempfile.gettempdir()) / ".cache" / "pocl" / "kcache"


def _can_hold_kernels(folder: Path) -> bool:
    """Return whether files can be written there, with room enough."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return shutil.disk_usage(folder).free >= LEAST_FREE_BYTES
    except OSError:
        return False
