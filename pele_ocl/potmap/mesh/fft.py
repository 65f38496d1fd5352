"""The ladder of Fourier transforms, of which the mesh takes the last rung; docs/theory/fft.md explains them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ... import arguments
from ...errors import InputError
from ...variant import PRECISIONS, Variant
from .geometry import FACTORS, is_smooth
from .transform import LineLayout, radices, roots

if TYPE_CHECKING:
    from ...opencl.device import Device
    from ...opencl.memory import Buffer
    from ...opencl.run import Run

Shape = tuple[int, int, int]
# Transforms values (2, nz, ny, nx) of a shape (nz, ny, nx) along an axis of it; gives the buffer that holds the result, which
# is one of the two.
Along = Callable[["Run", Shape, int, "Buffer", "Buffer"], "Buffer"]

PLAIN_RADICES = (7, 5, 3, 2)
GROUP = 64  # work-items of a group of `plain`
MOST_LENGTH = 1 << 20


def plain(run: Run, shape: Shape, axis: int, here: Buffer, there: Buffer) -> Buffer:
    """A launch a pass."""
    length, n_inner, n_lines = _lines(shape, axis)
    circle, done = run.upload(roots(length)), 1
    for radix in reversed(radices(length, PLAIN_RADICES)):
        kernel = run.kernel("potmap/ladder/fft_plain.cl", "fft_plain", RADIX=radix)
        sizes = (*map(np.int32, (length, done, n_inner, n_lines)), np.uint64(length * n_lines))
        run.launch(kernel, (n_lines, length // radix), (GROUP, 1), *sizes, circle, here, there)
        here, there, done = there, here, done * radix
    return here


def in_local_memory(
    file: str, name: str, wide: bool, allowed: tuple[int, ...], run: Run, shape: Shape, axis: int, here: Buffer,
    there: Buffer,
) -> Buffer:  # fmt: skip
    """A launch an axis. wide : whether work-items of CPUs have vectors of lines; allowed : radices"""
    length, n_inner, n_lines = _lines(shape, axis)
    layout = LineLayout.of(run.device, run.precision, length, wide)
    while n_inner > 1 and n_inner % layout.width:
        layout = layout.narrower
    along = {"ALONG": int(n_inner > 1)} if wide else {}
    run.launch(
        layout.kernel(run, file, name, **along), (-(-n_lines // layout.bundle) * layout.lines, layout.items),
        (layout.lines, layout.items), *layout.arguments(run, allowed), np.int32(n_inner), np.int32(n_lines),
        np.uint64(length * n_lines), here, there,
    )  # fmt: skip
    return there


def _lines(shape: Shape, axis: int) -> tuple[int, int, int]:
    """Numbers of a line along an axis, numbers from one of them to the next, and how many lines there are."""
    return shape[axis], int(np.prod(shape[axis + 1 :])), int(np.prod(shape)) // shape[axis]


FFT_VARIANTS: dict[str, Variant[Along]] = {
    "fft_plain": Variant("potmap/ladder/fft_plain.cl", "fft_plain", "a launch a pass, in global memory", plain),
    "fft_shared": Variant(
        "potmap/ladder/fft_shared.cl", "fft_shared", "all passes of a line in local memory",
        partial(in_local_memory, "potmap/ladder/fft_shared.cl", "fft_shared", False, PLAIN_RADICES),
    ),
    "fft_registers": Variant(
        "potmap/ladder/fft_registers.cl", "fft_registers", "butterflies of eight in registers, vectors of lines on CPUs",
        partial(in_local_memory, "potmap/ladder/fft_registers.cl", "fft_registers", True, (8, 7, 5, 4, 3, 2)),
    ),
}  # fmt: skip
FFT_ENGINE = "fft_registers"


def fft(
    values: ArrayLike, *, variant: str = FFT_ENGINE, precision: str = "float32",
    device: Device | int | str | None = None,
) -> NDArray[np.complexfloating]:  # fmt: skip
    """The discrete Fourier transform of values (nz, ny, nx) along all axes, as scipy.fft.fftn has it.

    variant : key of FFT_VARIANTS; lengths have no prime factors but 2, 3, 5 and 7
    precision, device : as in `potmap`

    Raises InputError for what does not fit, and DeviceError where the device cannot do it.
    """
    from ...opencl.device import get_device
    from ...opencl.run import Run

    if not arguments.is_among(variant, FFT_VARIANTS):
        raise InputError(f"there is no transform {arguments.described(variant)}; choose {', '.join(FFT_VARIANTS)}")
    if not arguments.is_among(precision, PRECISIONS):
        raise InputError(f"there is no precision {arguments.described(precision)}; choose {' or '.join(PRECISIONS)}")
    given = _three_axes(values)
    chosen = get_device(device)
    chosen.require_precision(precision)
    run = Run(chosen, precision)
    found = run.download(transformed(run, variant, given), 2 * given.size).reshape(2, *given.shape)
    whole: NDArray[np.complexfloating] = found[0] + 1j * found[1]
    return whole


def transformed(run: Run, variant: str, values: NDArray[np.complexfloating]) -> Buffer:
    """The transform on the device, (2, nz, ny, nx)."""
    nz, ny, nx = values.shape
    both = np.stack([values.real, values.imag]).astype(run.precision)
    here, there = run.empty(both.size), run.empty(both.size)
    run.write(here, both)
    for axis in (2, 1, 0):
        held = FFT_VARIANTS[variant].run(run, (nz, ny, nx), axis, here, there)
        here, there = held, there if held is here else here
    return here


def _three_axes(values: ArrayLike) -> NDArray[np.complexfloating]:
    try:
        given = np.asarray(values, np.complex128)
    except (TypeError, ValueError) as error:
        raise InputError("the values of a Fourier transform are no array of numbers (nz, ny, nx)") from error
    if given.ndim != 3 or not given.size:
        raise InputError(f"the values of a Fourier transform have the shape {given.shape}, not (nz, ny, nx)")
    for length in given.shape:
        if not is_smooth(length) or length > MOST_LENGTH:
            raise InputError(
                f"a line of {length} numbers cannot be transformed; choose a length with no prime factors but "
                f"{', '.join(map(str, FACTORS))}"
            )
    return given
