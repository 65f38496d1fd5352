"""OpenCL's loader through ctypes: without importing PyOpenCL, and while other threads of Python run.

PyOpenCL holds Python's lock during its calls, of which those that start a driver take up to a quarter of a second.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from importlib.machinery import PathFinder
from typing import Any

ANY_DEVICE, GPU, CPU = 0xFFFFFFFF, 1 << 2, 1 << 1  # CL_DEVICE_TYPE_ALL, _GPU, _CPU
_UINT, _SIZE, _BITS, _POINTER = ctypes.c_uint, ctypes.c_size_t, ctypes.c_uint64, ctypes.c_void_p


class Loader:
    """The functions of OpenCL's loader that are needed here; platforms, devices and contexts are pointers."""

    def __init__(self, library: ctypes.CDLL) -> None:
        """Raises AttributeError if the library does not lead to a loader."""
        self._list_platforms = _typed(library.clGetPlatformIDs, _UINT, _POINTER, _POINTER)
        self._list_devices = _typed(library.clGetDeviceIDs, _POINTER, _BITS, _UINT, _POINTER, _POINTER)
        self._query = _typed(library.clGetDeviceInfo, _POINTER, _UINT, _SIZE, _POINTER, _POINTER)
        self._make_context = _typed(
            library.clCreateContext, _POINTER, _UINT, _POINTER, _POINTER, _POINTER, _POINTER, result=_POINTER
        )

    def platforms(self) -> list[int]:
        """List all platforms. The first call of a process loads the runtimes."""
        return _filled(self._list_platforms)

    def devices(self, platform: int, kind: int = ANY_DEVICE) -> list[int]:
        """List the devices of a kind on a platform, whose driver the first call starts."""
        return _filled(self._list_devices, platform, kind)

    def bits(self, device: int, query: int) -> int:
        """Ask for a bit field of a device; 0 if it refuses to answer."""
        found = _BITS(0)
        refused = self._query(device, query, ctypes.sizeof(found), ctypes.byref(found), None)
        return 0 if refused else found.value

    def make_context(self, device: int) -> int | None:
        """Make the context of a device; None if that fails."""
        context: int | None = self._make_context(None, 1, ctypes.byref(_POINTER(device)), None, None, None)
        return context


@cache
def find_loader() -> Loader | None:
    """Find the loader that PyOpenCL is linked with; None where it cannot be reached through PyOpenCL, as on Windows."""
    package = PathFinder.find_spec("pyopencl")
    folders = None if package is None else package.submodule_search_locations
    extension = PathFinder.find_spec("pyopencl._cl", folders) if folders else None
    if not folders or extension is None or extension.origin is None:
        return None
    os.environ["PYOPENCL_HOME"] = folders[0]  # as PyOpenCL sets it: the loader of its wheel finds PoCL there
    try:
        return Loader(ctypes.CDLL(extension.origin))
    except (OSError, AttributeError):
        return None


def _typed(function: Any, *arguments: type, result: type = ctypes.c_int) -> Any:
    function.argtypes, function.restype = arguments, result
    return function


def _filled(function: Any, *arguments: int) -> list[int]:
    """Call a function that fills an array of pointers, first for their number; [] if it reports an error."""
    n = _UINT(0)
    if function(*arguments, 0, None, ctypes.byref(n)):
        return []
    pointers = (_POINTER * n.value)()
    return [] if function(*arguments, n.value, pointers, None) else [of for of in pointers if of is not None]
