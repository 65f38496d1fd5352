"""Numbers in columns of one width, all at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...textfiles import number

WIDTH, PLACES = 8, 3  # of Fortran's F8.3, which PDB files and AMBER's text trajectories have
_POINT = WIDTH - PLACES - 1
_WEIGHTS = np.array([1e6, 1e5, 1e4, 1e3, 0, 100, 10, 1])


def decimals(text: NDArray[np.uint8]) -> tuple[NDArray[np.float64], bool]:
    """The numbers (...) of fields (..., 8) of letters, and whether all stand as F8.3 writes them.

    Each is the float64 that is nearest to its digits, as `float` has it; NaN where a field holds no number.
    """
    fields = np.ascontiguousarray(text).reshape(-1, WIDTH)
    digits = fields - np.uint8(ord("0"))  # wraps below 0
    is_digit = digits < 10
    minus = fields == ord("-")
    before = is_digit[:, :_POINT]
    sound = (
        (fields[:, _POINT] == ord("."))
        & is_digit[:, _POINT - 1]
        & is_digit[:, _POINT + 1 :].all(axis=1)
        & (before | (fields[:, :_POINT] == ord(" ")) | minus[:, :_POINT]).all(axis=1)
        & (before[:, 1:] >= before[:, :-1]).all(axis=1)  # digits are not followed by blanks or signs
        & ~(minus[:, : _POINT - 1] & ~(before | minus)[:, 1:_POINT]).any(axis=1)  # a sign stands before a digit
        & (minus.sum(axis=1) <= 1)
    )
    values = np.where(is_digit, digits, 0) @ _WEIGHTS / 10**PLACES
    values[minus.any(axis=1)] *= -1
    for k in np.flatnonzero(~sound).tolist():
        found = number(fields[k].tobytes().decode("ascii", "replace"))
        values[k] = np.nan if found is None else found
    return values.reshape(text.shape[:-1]), bool(sound.all())
