"""Figures for reading."""

from __future__ import annotations

import pytest

from pele_ocl.cli.potmap import binary_size
from pele_ocl.jobs.texts import duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.00152, "1.52 ms"),
        (0.9994, "999 ms"),
        (0.9996, "1.00 s"),
        (12.3, "12.30 s"),
        (119.0, "119.00 s"),
        (450.0, "7.5 minutes"),
        (8280.0, "2.3 hours"),
    ],
)
def test_durations(seconds, text):
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("n_bytes", "text"), [(500, "0.5 KiB"), (25_190, "24.6 KiB"), (3 << 20, "3.0 MiB"), (2500 << 30, "2,500.0 GiB")]
)
def test_sizes(n_bytes, text):
    assert binary_size(n_bytes) == text
