"""Checks of plain arguments, for functions whose callers get a sentence and not a traceback."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

from .errors import InputError


def described(value: object) -> str:
    """What a caller gave in place of something else, for messages."""
    if isinstance(value, Real):
        return f"{value:g}"
    return repr(value) if value is None or isinstance(value, str) else f"of type {type(value).__name__}"


def is_finite(value: Any) -> bool:
    """Whether this is a number, and neither infinite nor NaN."""
    return isinstance(value, Real) and math.isfinite(value)


def whole_number(name: str, value: Any) -> int:
    """The number, or InputError unless it is a whole one, 0 or more."""
    if not isinstance(value, Integral) or value < 0:
        raise InputError(f"{name} is {described(value)}; a whole number, 0 or more, is needed")
    return int(value)
