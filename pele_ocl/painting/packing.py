"""Data in a page: JSON that is safe in a script element, and compact base64 arrays."""

from __future__ import annotations

import base64
import json

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats

Packed = dict[str, object]
_STEPS = 65_535  # largest 16-bit number


def packed(values: NDArray[np.generic], kind: str) -> Packed:
    """Encode an array in base64 as {type, data}. kind : NumPy type f4, u4, u2 or i2"""
    return {"type": kind, "data": base64.b64encode(np.ascontiguousarray(values, f"<{kind}").tobytes()).decode("ascii")}


def packed_positions(positions: Floats) -> list[Packed]:
    """Encode positions (n, 3) A as 16-bit numbers, separately for x, y and z: {type, data, first, step}."""
    found = []
    for values in positions.T:
        first, step = float(values.min()), float(np.ptp(values)) / _STEPS or 1.0
        found.append({**packed(np.rint((values - first) / step), "u2"), "first": first, "step": step})
    return found


def packed_values(values: NDArray[np.floating], end: float) -> Packed:
    """Encode values, clipped to -end and end, as 16-bit numbers: {type, data, first, step}."""
    step = end / (_STEPS // 2)
    return {**packed(np.rint(np.clip(values, -end, end) / step), "i2"), "first": 0.0, "step": step}


# Characters with a meaning in HTML, as in `<!--<script>`, or that end a line in JavaScript.
_ESCAPED = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&\u2028\u2029"}


def data_for_page(data: object) -> str:
    """Return data as JSON for a script element."""
    return json.dumps(data, allow_nan=False, separators=(",", ":")).translate(_ESCAPED)
