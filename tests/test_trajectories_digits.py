"""Texts of many numbers at once: those of `repr`, letter by letter."""

from __future__ import annotations

import numpy as np
import pytest

from pele_ocl.trajectories.recording.digits import column_texts, joined_rows, letters

RNG = np.random.default_rng(13)
N = 20_000
POWERS = np.array([*(10.0**k for k in range(-8, 20)), *(2.0**k for k in range(-60, 62))])
NUMBERS = {
    "energies": RNG.normal(-3000, 800, N),
    "energies in float32": RNG.normal(-3000, 800, N).astype(np.float32),
    "all sizes": 10 ** RNG.uniform(-6, 18, N) * RNG.choice([-1, 1], N),
    "all bits": RNG.integers(0, 2**64, N, dtype=np.uint64).view(np.float64),
    "few decimals": RNG.integers(1, 10**7, N) / 10.0 ** RNG.integers(0, 12, N),
    "15 and 16 decimals": np.concatenate([np.round(RNG.uniform(-10, 10, N), k) for k in (14, 15)]),
    "halves": np.concatenate([RNG.integers(2**50, 2**53, N) / 4, RNG.integers(2**52, 2**53, N) / 8]),
    "beside powers": (POWERS[:, None] + np.arange(-20, 21) * np.spacing(POWERS)[:, None]).ravel(),
    "odd ones": np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 5e-324, 1e-5, 0.1, 1e15, 1e16, 9999999999999998, 123456]),
    "whole numbers": RNG.integers(-(10**9), 10**9, N),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_texts_are_those_of_repr(name):
    values = NUMBERS[name]
    found = joined_rows(len(values), [*column_texts([values]), b"\n"])
    numbers = values.astype(np.float64) if values.dtype.kind == "f" else values
    assert found.decode().splitlines() == [repr(value) for value in numbers.tolist()]


def test_rows_stand_below_each_other():
    parts = [*column_texts([np.array([1, 20]), np.array([0.5, -3.25])]), b";", letters(np.array([b"", b"why"])), b"\n"]
    assert joined_rows(2, parts) == b"10.5;\n20-3.25;why\n"
