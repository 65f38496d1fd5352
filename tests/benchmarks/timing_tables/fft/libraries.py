"""Fourier transforms of libraries: each function returns a transform, and a call that repeats it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from timing_tables.installed import AbsentError, load

WORKERS = 2  # threads of SciPy
Values = NDArray[np.complexfloating]
Peer = tuple[Values, Callable[[], object]]


def scipy(values: Values) -> Peer:
    """Use pocketfft on the host through SciPy."""
    fftn = load("scipy.fft").fftn
    return fftn(values, workers=WORKERS), lambda: fftn(values, workers=WORKERS)


def _torch(values: Values) -> Peer:
    """Use cuFFT through PyTorch."""
    torch = load("torch")
    if not torch.cuda.is_available():
        raise AbsentError("torch has no CUDA device")
    on_device = torch.from_numpy(values).cuda()

    def once() -> None:
        torch.fft.fftn(on_device)
        torch.cuda.synchronize()

    return torch.fft.fftn(on_device).cpu().numpy(), once


def _cupy(values: Values) -> Peer:
    """Use cuFFT through CuPy."""
    cupy = load("cupy")
    on_device = cupy.asarray(values)

    def once() -> None:
        cupy.fft.fftn(on_device)
        cupy.cuda.runtime.deviceSynchronize()

    return cupy.asnumpy(cupy.fft.fftn(on_device)), once


GPU_PEERS: dict[str, Callable[[Values], Peer]] = {"torch (cuFFT)": _torch, "cupy (cuFFT)": _cupy}
