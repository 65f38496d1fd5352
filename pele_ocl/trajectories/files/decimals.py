"""Vectorized parsing of numbers in Fortran's F8.3 format, as in PDB files and AMBER's text trajectories.

The eight bytes of a field are processed as one 64-bit integer, with the first character in the lowest byte.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...common.textfiles import number

WIDTH = 8

_ZEROS = np.uint64(0x3030303030303030)  # "00000000"
_POINT, _POINT_BITS = np.uint64(0x1E << 32), np.uint64(0xFF << 32)  # "." in its position, minus "0"
_BLANK, _MINUS = 0x10, 0x1D  # " " and "-" minus "0"
_FRONT = np.uint64(0x00101010)  # bit in the first three characters that is set for blanks and signs, but not for digits
_HIGH, _SIXES = np.uint64(0xF0F0F0F0F0F0F0F0), np.uint64(0x0606060606060606)
# Valid first three characters, with digits replaced by 0: blanks, optionally followed by a sign.
_POSITIVE = tuple(np.uint64(value) for value in (0, _BLANK, 0x1010, 0x101010))
_NEGATIVE = tuple(np.uint64(value) for value in (_MINUS, 0x1D10, 0x1D1010))


def decimals(text: NDArray[np.uint8]) -> tuple[NDArray[np.float64], bool]:
    """Parse the numbers (...) in fields (..., 8) of characters. Also returns whether all fields are valid F8.3.

    Numbers are rounded to the nearest float64, like `float`; NaN for fields that are not numbers.
    """
    fields = np.ascontiguousarray(text).reshape(-1, WIDTH)
    letters = fields.view("<u8").reshape(-1) ^ _ZEROS
    has_point = (letters & _POINT_BITS) == _POINT
    letters &= ~_POINT_BITS
    others = ((letters & _FRONT) >> np.uint64(4)) * np.uint64(0xFF)  # masks of blanks and signs
    front = letters & others
    digits = letters & ~others
    is_number = has_point & (((digits + _SIXES) | digits) & _HIGH == 0)
    is_negative = _any_of(front, _NEGATIVE)
    is_number &= is_negative | _any_of(front, _POSITIVE)
    pairs = (digits * np.uint64(10) + (digits >> np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
    fours = (pairs * np.uint64(100) + (pairs >> np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
    thousandths = (fours & np.uint64(0xFFFF)) * np.uint64(1000) + (fours >> np.uint64(32))
    values = thousandths.astype(np.float64) / 1000
    np.negative(values, out=values, where=is_negative)
    is_sound = bool(is_number.all())
    for k in () if is_sound else np.flatnonzero(~is_number).tolist():
        found = number(fields[k].tobytes().decode("ascii", "replace"))
        values[k] = np.nan if found is None else found
    return values.reshape(text.shape[:-1]), is_sound


def _any_of(values: NDArray[np.uint64], wanted: tuple[np.uint64, ...]) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = values == wanted[0]
    for each in wanted[1:]:
        found |= values == each
    return found
