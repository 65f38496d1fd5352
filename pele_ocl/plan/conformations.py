"""Positions as users give them, checked, and as devices take them."""

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

LARGEST_SPAN = 500_000.0  # A; beyond, tiles' origins would not be exact in float32

# The largest step, A, with which close pairs keep their digits in float32; wider molecules take 64 bits a coordinate.
LARGEST_STEP = 2.0**-20
WIDE_STEP = 2.0**-28

# Origins are multiples of this (A), so that their differences are exact in float32 up to 500,000 A.
ORIGIN_STEP = 1 / 32


class TooWideError(InputError):
    """A conformation that spans more than a plan's fixed-point coordinates reach."""


def as_conformations(conformations: ArrayLike, n: int) -> NDArray[Any]:
    """Conformations (m, n, 3), float32 or float64. Raises InputError for any other shape."""
    try:
        given = array("conformations", conformations, "iuf", "numbers")
    except InputError:
        if hasattr(conformations, "__array__") or hasattr(conformations, "__dlpack__"):
            raise  # the library's own sentence: torch's about a tensor on a GPU
        raise InputError("conformations are not an array of numbers, or not all of one shape") from None
    if given.dtype != np.float32:  # which is converted on the way
        given = numbers("conformations", given)
    if given.ndim != 3 or given.shape[1:] != (n, 3) or not len(given):
        raise InputError(f"positions have shape {given.shape}; expected (m, {n}, 3), m at least 1")
    return given


def check_span(positions: Floats) -> None:
    """Raise InputError if positions (..., 3) A reach farther than a molecule does."""
    columns = np.ascontiguousarray(positions.reshape(-1, 3).T)  # ten times faster to look through
    with np.errstate(over="ignore"):
        span = float(np.ptp(columns, axis=1).max())
    if span > LARGEST_SPAN:
        raise InputError(f"the atoms span {span:.3g} A; a molecule up to {LARGEST_SPAN:,.0f} A can be computed")


@dataclass(frozen=True)
class Encoding:
    """Positions on their way to a device: from the molecule's middle, as float64 or as fixed-point numbers.

    Either holds differences of positions far better than float32 does. So kernels in float32 keep their digits wherever
    an atom lies. Fixed-point numbers are for devices without float64.

    dtype : of a coordinate on its way: float64, int32, or int64 for wide molecules
    step : A of one fixed-point unit, a power of two; where dtype is float64 the unit that kernels make themselves, or 1
    reach : A that a coordinate may have from the middle
    """

    dtype: np.dtype[Any]
    step: float
    reach: float

    @classmethod
    def of(cls, span: float, doubles: bool) -> Encoding:
        """Choose the encoding for a molecule of this span, A; fixed-point ones let it become twice as wide and 128 A
        more.

        doubles : whether the device has float64
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
        """Return whether positions go as fixed-point numbers."""
        return self.dtype.kind == "i"

    @property
    def origin_step(self) -> np.number:
        """Unit of the origins of tiles, which are multiples of it."""
        step: np.number = self.dtype.type(max(1, round(ORIGIN_STEP / self.step)) if self.is_fixed else ORIGIN_STEP)
        return step

    @property
    def macros(self) -> dict[str, int]:
        """Build definitions of kernels that take positions."""
        return {"FIXED_BITS": 8 * self.dtype.itemsize if self.is_fixed else 0}

    @cached_property
    def base(self) -> float:
        """Number that makes fixed-point numbers of float64, 0 if positions go as float64.

        A float64 to which it is added is rounded to whole steps, which are then its low bits. `shift` adds it already.
        """
        return 1.5 * 2**52 * self.step if self.is_fixed else 0.0

    def shift(self, lowest: Floats, highest: Floats) -> Floats:
        """Return what is subtracted from positions before `encode`: their middle in whole steps, less `base`; (3,) A.

        So positions less the shift are offsets from the middle with `base` added, by one subtraction.

        lowest, highest : bounds of the molecule, (3,) A
        """
        shift: Floats = np.rint((lowest + highest) / 2 / self.step) * self.step - self.base
        return shift

    def encode(self, shifted: Floats, encoded: NDArray[Any]) -> None:
        """Write offsets from the middle, A, with `base` added, into an array of this dtype and their shape."""
        if not self.is_fixed:
            np.copyto(encoded, shifted)
        elif self.dtype == np.int32:
            np.copyto(encoded, shifted.view(np.int64), casting="unsafe")  # the low 32 bits
        else:
            np.subtract(shifted.view(np.int64), np.float64(self.base).view(np.int64), out=encoded)
