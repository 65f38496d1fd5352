"""Counter-based random numbers, bitwise equal to those of cl/common/philox.clh.

Philox 4x32 with ten rounds: Salmon, Moraes, Dror and Shaw, SC11 (2011). Numbers depend only on key and counter.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..atoms import Floats

Words = NDArray[np.uint32]

_MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_KEY_STEPS = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


def philox(key: tuple[ArrayLike, ArrayLike], counter: tuple[ArrayLike, ArrayLike, ArrayLike, ArrayLike]) -> Words:
    """Return four 32-bit words for each key and counter, (..., 4).

    key, counter : integers from 0 to 2^32 - 1, or arrays of them, which are broadcast
    """
    parts = np.broadcast_arrays(*(np.asarray(part, np.uint64) & _LOW for part in (*key, *counter)))
    k0, k1, x, y, z, w = (part.copy() for part in parts)
    for _ in range(10):
        first, second = _MULTIPLIERS[0] * x, _MULTIPLIERS[1] * z
        x, y, z, w = (second >> _HALF) ^ y ^ k0, second & _LOW, (first >> _HALF) ^ w ^ k1, first & _LOW
        k0, k1 = (k0 + _KEY_STEPS[0]) & _LOW, (k1 + _KEY_STEPS[1]) & _LOW
    return np.stack([x, y, z, w], axis=-1).astype(np.uint32)


def uniform(words: Words) -> Floats:
    """Return uniform numbers in the open interval (0, 1) with 24 random bits, like `uniform` in the kernels."""
    return ((words >> np.uint32(8)).astype(np.float64) + 0.5) / 16777216.0


def normals(first: Words, second: Words) -> tuple[Floats, Floats]:
    """Return two independent standard normal numbers for each pair of words (Box and Muller 1958)."""
    radius, angle = np.sqrt(-2 * np.log(uniform(first))), 2 * np.pi * uniform(second)
    return radius * np.cos(angle), radius * np.sin(angle)
