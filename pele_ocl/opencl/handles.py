"""Properties of OpenCL devices that PyOpenCL does not give: their kind, their rank, their atomics."""

from __future__ import annotations

import ctypes
import re

import pyopencl as cl

# From a runtime's platform name to the macro VENDOR_<NAME> that kernels may look at.
VENDORS = {"nvidia": "NVIDIA", "portable computing": "POCL", "intel": "INTEL", "amd": "AMD", "apple": "APPLE"}

# Of the extension cl_ext_float_atomics, which PyOpenCL does not know: queries, and a bit of their answers.
FLOAT_ATOMICS = {"float32": 0x4231, "float64": 0x4232}
GLOBAL_ADDITION = 1 << 1

# Clocks of devices that do not report their own.
USUAL_MEGAHERTZ = {"GPU": 1500, "CPU": 3000}

# The features of OpenCL C 3.0 that a fence over the whole device takes.
FENCE_FEATURES = {"__opencl_c_atomic_order_acq_rel", "__opencl_c_atomic_scope_device"}


def kind(handle: cl.Device) -> str:
    """GPU, CPU, accelerator or simulator."""
    if "oclgrind" in handle.platform.name.lower():
        return "simulator"
    if handle.type & cl.device_type.GPU:
        return "GPU"
    return "CPU" if handle.type & cl.device_type.CPU else "accelerator"


def vendor(handle: cl.Device) -> str:
    """NVIDIA, POCL, INTEL, AMD, APPLE or OTHER: the vendor of the compiler that builds the kernels."""
    name = handle.platform.name.lower()
    return next((vendor for part, vendor in VENDORS.items() if part in name), "OTHER")


def clock(handle: cl.Device) -> float:
    """Clocks a second, at most; a usual number if the runtime reports 0, which Intel's may."""
    reported = int(handle.max_clock_frequency)
    return 1e6 * (reported or USUAL_MEGAHERTZ["GPU" if kind(handle) == "GPU" else "CPU"])


def runtime_version(handle: cl.Device) -> tuple[int, ...]:
    """Numbers of PoCL's version; for another runtime, all numbers of its platform's version."""
    version = str(handle.platform.version)
    found = re.search(r"PoCL (\d+(?:\.\d+)*)", version)
    return tuple(int(number) for number in re.findall(r"\d+", found[1] if found else version))


def rank(handle: cl.Device) -> tuple[int, int, tuple[int, ...]]:
    """Sorting key, best first: GPUs with memory of their own, other GPUs, CPU runtimes by measured speed.

    GPUs go by units and clock; of the CPU runtimes Intel's is the fastest, then newer PoCL, then older.
    """
    place = ["GPU", "CPU", "accelerator", "simulator"].index(kind(handle))
    if place == 0:
        size = round(handle.max_compute_units * clock(handle) / 1e6)
        return place, int(bool(handle.host_unified_memory)) * 2**40 - size, ()
    intel_first = 0 if "intel" in handle.platform.name.lower() else 1
    numbers = (*runtime_version(handle), 0, 0, 0, 0)[:4]
    return place, intel_first, tuple(-number for number in numbers)


def generation(handle: cl.Device) -> int:
    """Value of the macro VENDOR_<NAME>: the major compute capability of NVIDIA's GPUs, 1 for all others."""
    return max(1, getattr(handle, "compute_capability_major_nv", 1)) if vendor(handle) == "NVIDIA" else 1


def has_float_atomics(handle: cl.Device, precision: str) -> bool:
    """Tell if kernels may add to reals of `precision` in global memory by one atomic instruction."""
    if vendor(handle) == "NVIDIA":  # PTX has it in 32 bits everywhere, in 64 from compute capability 6 on
        return precision == "float32" or generation(handle) >= 6
    listed = "cl_ext_float_atomics" in handle.extensions.split()
    return listed and bool(capabilities(handle, FLOAT_ATOMICS[precision]) & GLOBAL_ADDITION)


def has_device_fence(handle: cl.Device) -> bool:
    """Tell if a group may take over sums of others in its launch: by PTX, or by OpenCL C 3.0."""
    if vendor(handle) == "NVIDIA" or "OpenCL 3" not in handle.version:
        return vendor(handle) == "NVIDIA"
    return FENCE_FEATURES <= {feature.name for feature in handle.opencl_c_features}


def capabilities(handle: cl.Device, query: int) -> int:
    """Ask clGetDeviceInfo for a bit field; 0 if it refuses or cannot be reached.

    PyOpenCL passes on the queries that it knows, so the loader it is linked with is asked directly.
    """
    bits = ctypes.c_uint64(0)
    try:
        ask = ctypes.CDLL(cl._cl.__file__).clGetDeviceInfo
    except (OSError, AttributeError):
        return 0
    ask.argtypes = [ctypes.c_void_p, ctypes.c_uint, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p]
    refused = ask(handle.int_ptr, query, ctypes.sizeof(bits), ctypes.byref(bits), None)
    return 0 if refused else bits.value
