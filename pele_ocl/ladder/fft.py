"""Ladder of Fourier transforms, the last of which the mesh method uses; docs/theory/fft.md."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..common import arguments
from ..common.errors import InputError
from ..common.variant import PRECISIONS, Variant
from ..potmap.mesh.geometry import FACTORS, is_smooth
from ..potmap.mesh.transform import LineLayout, radices, roots

if TYPE_CHECKING:
    from ..opencl.device import Device
    from ..opencl.kernel import Arguments
    from ..opencl.memory import Buffer
    from ..opencl.queue import Queue

PADDING = 16  # numbers after each row, so that lines do not map to the same sets of a CPU's caches


@dataclass(frozen=True)
class Lines:
    """Lines of values (2, nz, ny, pitch) along an axis.

    length : numbers per line; inner : stride within a line, also the number of adjacent lines; count : number of lines
    apart : stride between groups of `inner` lines; plane : numbers in the real part
    """

    length: int
    inner: int
    count: int
    apart: int
    plane: int

    @classmethod
    def along(cls, axis: int, shape: tuple[int, int, int]) -> Lines:
        """axis : of the shape (nz, ny, nx)"""
        nz, ny, nx = shape
        pitch = nx + PADDING
        plane = nz * ny * pitch
        if axis == 2:
            return cls(nx, 1, nz * ny, pitch, plane)
        inner = pitch if axis == 1 else ny * pitch
        return cls(shape[axis], inner, plane // shape[axis], shape[axis] * inner, plane)

    @property
    def arguments(self) -> Arguments:
        """Kernel arguments for the lines, without their length."""
        return dict(n_inner=self.inner, n_lines=self.count, apart=self.apart, plane=self.plane)


# Transforms lines with two buffers; returns the one that holds the result.
Along = Callable[["Queue", Lines, "Buffer", "Buffer"], "Buffer"]

PLAIN_RADICES = (7, 5, 3, 2)
GROUP = 64  # work-items per group of `plain`
MOST_LENGTH = 1 << 20


def plain(queue: Queue, lines: Lines, here: Buffer, there: Buffer) -> Buffer:
    """One launch per pass."""
    circle, done = queue.upload(roots(lines.length)), 1
    for radix in reversed(radices(lines.length, PLAIN_RADICES)):
        kernel = queue.kernel("potmap/ladder/fft_plain.cl", "fft_plain", RADIX=radix)
        sizes = dict(length=lines.length, done=done, roots=circle, **lines.arguments)
        queue.launch(
            kernel, (lines.count, lines.length // radix), (GROUP, 1), {**sizes, "from": here, "to": there}
        )  # fmt: skip
        here, there, done = there, here, done * radix
    return here


def in_local_memory(
    file: str, name: str, wide: bool, allowed: tuple[int, ...], queue: Queue, lines: Lines, here: Buffer, there: Buffer
) -> Buffer:
    """One launch per axis. wide : whether work-items on CPUs transform vectors of lines; allowed : radices"""
    layout = LineLayout.of(queue.device, queue.precision, lines.length, is_row=lines.inner == 1, wide=wide)
    while lines.inner > 1 and lines.inner % layout.width:
        layout = layout.narrower
    along = {"ALONG": int(lines.inner > 1)} if wide else {}
    queue.launch(
        layout.kernel(queue, file, name, **along), (-(-lines.count // layout.bundle) * layout.lines, layout.items),
        (layout.lines, layout.items),
        {**layout.arguments(queue, allowed), **lines.arguments, "from": here, "to": there},
    )  # fmt: skip
    return there


FFT_VARIANTS: dict[str, Variant[Along]] = {
    "fft_plain": Variant("potmap/ladder/fft_plain.cl", "fft_plain", "one launch per pass, in global memory", plain),
    "fft_shared": Variant(
        "potmap/ladder/fft_shared.cl", "fft_shared", "all passes of a line in local memory",
        partial(in_local_memory, "potmap/ladder/fft_shared.cl", "fft_shared", False, PLAIN_RADICES),
    ),
    "fft_registers": Variant(
        "potmap/ladder/fft_registers.cl", "fft_registers",
        "butterflies of eight in registers, on CPUs vectors of lines",
        partial(in_local_memory, "potmap/ladder/fft_registers.cl", "fft_registers", True, (8, 7, 5, 4, 3, 2)),
    ),
}  # fmt: skip
FFT_ENGINE = "fft_registers"


def fft(
    values: ArrayLike, *, variant: str = FFT_ENGINE, precision: str = "float32",
    device: Device | int | str | None = None,
) -> NDArray[np.complexfloating]:  # fmt: skip
    """Compute the discrete Fourier transform of values (nz, ny, nx) along all axes, as scipy.fft.fftn does.

    variant : key of FFT_VARIANTS; lengths may have only the prime factors 2, 3, 5 and 7
    precision, device : as in `potmap`

    Raises InputError for invalid arguments, and DeviceError if the device does not support the precision.
    """
    from ..opencl.device import get_device
    from ..opencl.queue import Queue

    if not arguments.is_among(variant, FFT_VARIANTS):
        raise InputError(f"unknown transform {arguments.described(variant)}; choose {', '.join(FFT_VARIANTS)}")
    if not arguments.is_among(precision, PRECISIONS):
        raise InputError(f"unknown precision {arguments.described(precision)}; choose {' or '.join(PRECISIONS)}")
    given = _three_axes(values)
    chosen = get_device(device)
    chosen.require_precision(precision)
    queue = Queue(chosen, precision)
    nz, ny, nx = given.shape
    padded = queue.download(transformed(queue, variant, given), 2 * nz * ny * (nx + PADDING))
    real, imaginary = padded.reshape(2, nz, ny, -1)[..., :nx]
    whole: NDArray[np.complexfloating] = real + 1j * imaginary
    return whole


def transformed(queue: Queue, variant: str, values: NDArray[np.complexfloating]) -> Buffer:
    """Transform values on the device, as (2, nz, ny, nx + PADDING)."""
    both = np.pad(np.stack([values.real, values.imag]).astype(queue.precision), ((0, 0), (0, 0), (0, 0), (0, PADDING)))
    here, there = queue.empty(both.size), queue.empty(both.size)
    queue.write(here, both)
    nz, ny, nx = values.shape
    for axis in (axis for axis in (2, 1, 0) if values.shape[axis] > 1):
        held = FFT_VARIANTS[variant].run(queue, Lines.along(axis, (nz, ny, nx)), here, there)
        here, there = held, there if held is here else here
    return here


def _three_axes(values: ArrayLike) -> NDArray[np.complexfloating]:
    try:
        given = np.asarray(values, np.complex128)
    except (TypeError, ValueError) as error:
        raise InputError("the values of a Fourier transform are not an array of numbers (nz, ny, nx)") from error
    if given.ndim != 3 or not given.size:
        raise InputError(f"the values of a Fourier transform have the shape {given.shape}, not (nz, ny, nx)")
    for length in given.shape:
        if not is_smooth(length) or length > MOST_LENGTH:
            raise InputError(
                f"a line of {length} numbers cannot be transformed; choose a length with no prime factors but "
                f"{', '.join(map(str, FACTORS))}"
            )
    return given
