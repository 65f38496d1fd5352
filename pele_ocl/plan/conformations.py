"""Checks of positions given by users, and their encoding for devices."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..atoms import Floats
from ..common.arguments import array, numbers
from ..common.errors import InputError

LARGEST_SPAN = 500_000.0  # A; for larger molecules tile origins would not be exact in float32

# Largest fixed-point step, A, that keeps float32 precision for close pairs; wider molecules use 64 bits per coordinate.
LARGEST_STEP = 2.0**-20
WIDE_STEP = 2.0**-28

# Origins are multiples of this (A), so that differences up to 500,000 A are exact in float32.
ORIGIN_STEP = 1 / 32


class TooWideError(InputError):
    """A conformation exceeds the range of a plan's fixed-point coordinates."""


def as_conformations(conformations: ArrayLike, n: int) -> NDArray[Any]:
    """Return conformations (m, n, 3), float32 or float64. Raises InputError for any other shape."""
    try:
        given = array("conformations", conformations, "iuf", "numbers")
    except InputError:
        if hasattr(conformations, "__array__") or hasattr(conformations, "__dlpack__"):
            raise  # the library's message, such as torch's for a tensor on a GPU
        raise InputError("conformations are not an array of numbers, or differ in shape") from None
    if given.dtype != np.float32:  # float32 is converted later
        given = numbers("conformations", given)
    if given.ndim != 3 or given.shape[1:] != (n, 3) or not len(given):
        raise InputError(f"positions have shape {given.shape}; expected (m, {n}, 3), m at least 1")
    return given


def check_span(positions: Floats) -> None:
    """Raise InputError if positions (..., 3) A span more than LARGEST_SPAN."""
    columns = np.ascontiguousarray(positions.reshape(-1, 3).T)  # ten times faster to scan
    with np.errstate(over="ignore"):
        span = float(np.ptp(columns, axis=1).max())
    if span > LARGEST_SPAN:
        raise InputError(f"the atoms span {span:.3g} A; a molecule up to {LARGEST_SPAN:,.0f} A can be computed")


@dataclass(frozen=True)
class Encoding:
    """Encoding of positions for a device, relative to the molecule's centre: float64, or fixed-point numbers.

    Both represent differences of positions far more accurately than float32, so that float32 kernels keep their
    precision in any part of the molecule. Fixed-point numbers are for devices without float64.

    dtype : of an encoded coordinate: float64, int32, or int64 for wide molecules
    step : A per fixed-point unit, a power of two; for float64 the unit to which kernels convert positions, or 1
    reach : largest coordinate relative to the centre, A
    """

    dtype: np.dtype[Any]
    step: float
    reach: float

    @classmethod
    def of(cls, span: float, doubles: bool) -> Encoding:
        """Return the encoding for a molecule's span, A; fixed-point ones leave room for twice the span plus 128 A.

        doubles : whether the device supports float64
        """
        if doubles:
            return cls(np.dtype(np.float64), 1.0, LARGEST_SPAN / 2)
        reach = 2.0 ** math.ceil(math.log2(span + 64))
        step = reach / 2**30
        if step > LARGEST_STEP:
            return cls(np.dtype(np.int64), WIDE_STEP, LARGEST_SPAN / 2)
        return cls(np.dtype(np.int32), step, min(reach, LARGEST_SPAN / 2))

    @cached_property
    def is_fixed(self) -> bool:
        """Return whether positions are encoded as fixed-point numbers."""
        return self.dtype.kind == "i"

    @property
    def origin_step(self) -> np.number:
        """Unit of tile origins, which are multiples of it."""
        step: np.number = self.dtype.type(max(1, round(ORIGIN_STEP / self.step)) if self.is_fixed else ORIGIN_STEP)
        return step

    @property
    def macros(self) -> dict[str, int]:
        return {"FIXED_BITS": 8 * self.dtype.itemsize if self.is_fixed else 0}

    @cached_property
    def base(self) -> float:
        """Number added to float64 to convert it to fixed point; 0 if positions are encoded as float64.

        The sum is rounded to whole steps, which are its low bits. `shift` already includes it.
        """
        return 1.5 * 2**52 * self.step if self.is_fixed else 0.0

    def shift(self, lowest: Floats, highest: Floats) -> Floats:
        """Return the vector (3,) A to subtract from positions before `encode`: the centre in whole steps minus `base`.

        lowest, highest : bounds of the molecule, (3,) A
        """
        shift: Floats = np.rint((lowest + highest) / 2 / self.step) * self.step - self.base
        return shift

    def encode(self, shifted: Floats, encoded: NDArray[Any]) -> None:
        """Encode offsets from the centre, A, with `base` added, into an array of the same shape."""
        if not self.is_fixed:
            np.copyto(encoded, shifted)
        elif self.dtype == np.int32:
            np.copyto(encoded, shifted.view(np.int64), casting="unsafe")  # the low 32 bits
        else:
            np.subtract(shifted.view(np.int64), np.float64(self.base).view(np.int64), out=encoded)
