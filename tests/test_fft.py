"""Ladder of Fourier transforms against NumPy; what it refuses; its timing table."""

import numpy as np
import pytest
from test_cli import on_the_chosen_device, run_table
from timing_tables import fft as bench

from pele_ocl import InputError
from pele_ocl.ladder.fft import FFT_ENGINE, FFT_VARIANTS, fft

__all__ = ["on_the_chosen_device"]  # a fixture that every test here uses

TOLERANCE = {"float32": 4e-7, "float64": 1e-15}
ALL_FACTORS = (12, 35, 16)  # and lines that fill no whole vectors


def numbers(shape):
    rng = np.random.default_rng(0)
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)


@pytest.mark.parametrize("variant", FFT_VARIANTS)
@pytest.mark.parametrize("shape", [ALL_FACTORS, (1, 1, 18)])
def test_transforms_are_those_of_numpy(variant, shape, precision, device):
    values = numbers(shape)
    expected = np.fft.fftn(values)
    found = fft(values, variant=variant, precision=precision, device=device)
    assert np.linalg.norm(found - expected) < TOLERANCE[precision] * np.linalg.norm(expected)


@pytest.mark.slow
@pytest.mark.parametrize("variant", FFT_VARIANTS)
@pytest.mark.parametrize("length", [2, 7, 27, 125, 343, 512, 720, 1050])
def test_lines_of_many_lengths(variant, length, precision, device):
    for shape in ((3, 2, length), (3, length, 2), (length, 2, 3)):
        values = numbers(shape)
        expected = np.fft.fftn(values)
        found = fft(values, variant=variant, precision=precision, device=device)
        assert np.linalg.norm(found - expected) < 2 * TOLERANCE[precision] * np.linalg.norm(expected)


@pytest.mark.parametrize(
    ("values", "options", "words"),
    [
        (np.ones((4, 4)), {}, r"have the shape \(4, 4\), not"),
        (np.ones((4, 4, 22)), {}, "a line of 22 numbers cannot be transformed"),
        ("text", {}, "not an array of numbers"),
        (np.ones((4, 4, 4)), dict(variant="fft_fast"), "unknown transform 'fft_fast'; choose fft_plain"),
        (np.ones((4, 4, 4)), dict(precision="float16"), "unknown precision 'float16'"),
    ],
)
def test_what_is_refused(values, options, words):
    with pytest.raises(InputError, match=words):
        fft(values, **options)


def rows_of(name, table):
    """Return the rows of a variant; libraries' rows come before and after it."""
    return [line for line in table.splitlines() if line.startswith(f"16^3    float32    {name} ")]


def test_bench_has_honest_rows(monkeypatch):
    command = "fft", "--points", 16, "--runs", 3, "--variant", FFT_ENGINE
    assert len(rows_of(FFT_ENGINE, run_table(*command).stdout)) == 1
    monkeypatch.setattr(bench, "fft", lambda values, **options: 1.01 * np.fft.fftn(values))
    done = run_table(*command, code=1)
    assert "more than 1e-05" in done.stderr
    (row,) = rows_of(FFT_ENGINE, done.stdout)
    assert row.endswith("1.0e-02  wrong")


def test_a_rate_is_by_the_usual_count(device):
    timings = bench.measure(16, "float32", device, [FFT_ENGINE], 3)
    (timing,) = [each for each in timings if each.variant == FFT_ENGINE]
    assert timing.rate * timing.seconds == pytest.approx(5 * 16**3 * 12)
