"""Data in a page: JSON that ends no script, and arrays as little-endian numbers in base64, in as few digits as do."""

from __future__ import annotations

import base64
import json

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats

Packed = dict[str, object]
_STEPS = 65_535  # of a number of 16 bits


def packed(values: NDArray[np.generic], kind: str) -> Packed:
    """An array as {type, data}; kind : f4, u4, u2 or i2, NumPy's names of number types."""
    return {"type": kind, "data": base64.b64encode(np.ascontiguousarray(values, f"<{kind}").tobytes()).decode("ascii")}


def packed_positions(positions: Floats) -> list[Packed]:
    """x, y and z of positions (n, 3) A, each as 16 bits of its range: {type, data, first, step}."""
    found = []
    for values in positions.T:
        first, step = float(values.min()), float(np.ptp(values)) / _STEPS or 1.0
        found.append({**packed(np.rint((values - first) / step), "u2"), "first": first, "step": step})
    return found


def packed_values(values: NDArray[np.floating], end: float) -> Packed:
    """Values in 16 bits, what is beyond `end` as `end`: {type, data, first, step}."""
    step = end / (_STEPS // 2)
    return {**packed(np.rint(np.clip(values, -end, end) / step), "i2"), "first": 0.0, "step": step}


# Characters that mean something to HTML, `<!--<script>` among them, or that end a line of JavaScript.
_ESCAPED = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&\u2028\u2029"}


def data_for_page(data: object) -> str:
    """Write data as JSON for a script element of a page."""
    return json.dumps(data, allow_nan=False, separators=(",", ":")).translate(_ESCAPED)
