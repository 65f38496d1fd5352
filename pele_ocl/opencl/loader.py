"""Access to the OpenCL loader through ctypes, without importing PyOpenCL and without holding Python's global lock.

PyOpenCL holds the lock during its calls, and calls that start a driver take up to a quarter of a second.
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
    """Functions of the OpenCL loader; platforms, devices and contexts are pointers."""

    def __init__(self, library: ctypes.CDLL) -> None:
        """Raises AttributeError if the library does not provide the loader's functions."""
        self._list_platforms = _typed(library.clGetPlatformIDs, _UINT, _POINTER, _POINTER)
        self._list_devices = _typed(library.clGetDeviceIDs, _POINTER, _BITS, _UINT, _POINTER, _POINTER)
        self._query = _typed(library.clGetDeviceInfo, _POINTER, _UINT, _SIZE, _POINTER, _POINTER)
        self._make_context = _typed(
            library.clCreateContext, _POINTER, _UINT, _POINTER, _POINTER, _POINTER, _POINTER, result=_POINTER
        )

    def platforms(self) -> list[int]:
        """List all platforms. The first call in a process loads the runtimes."""
        return _filled(self._list_platforms)

    def devices(self, platform: int, kind: int = ANY_DEVICE) -> list[int]:
        """List the devices of a kind on a platform. The first call starts the driver."""
        return _filled(self._list_devices, platform, kind)

    def bits(self, device: int, query: int) -> int:
        """Query a bit field of a device; 0 if the query fails."""
        found = _BITS(0)
        refused = self._query(device, query, ctypes.sizeof(found), ctypes.byref(found), None)
        return 0 if refused else found.value

    def make_context(self, device: int) -> int | None:
        """Create a context for a device; None if this fails."""
        context: int | None = self._make_context(None, 1, ctypes.byref(_POINTER(device)), None, None, None)
        return context


@cache
def find_loader() -> Loader | None:
    """Return the loader that PyOpenCL is linked with; None if it is not accessible, as on Windows."""
    package = PathFinder.find_spec("pyopencl")
    folders = None if package is None else package.submodule_search_locations
    extension = PathFinder.find_spec("pyopencl._cl", folders) if folders else None
    if not folders or extension is None or extension.origin is None:
        return None
    os.environ["PYOPENCL_HOME"] = folders[0]  # also set by PyOpenCL: the loader of its wheel looks for PoCL there
    try:
        return Loader(ctypes.CDLL(extension.origin))
    except (OSError, AttributeError):
        return None


def _typed(function: Any, *arguments: type, result: type = ctypes.c_int) -> Any:
    function.argtypes, function.restype = arguments, result
    return function


def _filled(function: Any, *arguments: int) -> list[int]:
    """Query an array of pointers, first its length; [] after an error."""
    n = _UINT(0)
    if function(*arguments, 0, None, ctypes.byref(n)):
        return []
    pointers = (_POINTER * n.value)()
    return [] if function(*arguments, n.value, pointers, None) else [of for of in pointers if of is not None]
