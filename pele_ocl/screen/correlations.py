"""Rank and linear correlations with bootstrap errors."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..atoms import Floats

RESAMPLES = 2_000
_SEED = 44
LEAST = 4  # minimum number of values for a correlation


@dataclass(frozen=True)
class Correlation:
    """A correlation coefficient. error : bootstrap standard deviation; low, high : bootstrap 95 % interval"""

    value: float
    error: float
    low: float
    high: float


def correlations(x: Floats, y: Floats) -> dict[str, Correlation]:
    """Compute Spearman, Pearson and Kendall (tau-b) correlations of values (n,), with bootstrap errors.

    Resamples in which all values of x or y are equal are discarded. Empty for fewer than four pairs, and if all values
    are equal.
    """
    good = np.isfinite(x) & np.isfinite(y)
    x, y = np.asarray(x, np.float64)[good], np.asarray(y, np.float64)[good]
    n = len(x)
    if n < LEAST or np.ptp(x) == 0 or np.ptp(y) == 0:
        return {}
    chosen = np.random.Generator(np.random.Philox(_SEED)).integers(n, size=(RESAMPLES, n))
    counts = np.stack([np.bincount(row, minlength=n) for row in chosen]).astype(np.float64)
    signs_x, signs_y = (np.sign(of[:, None] - of) for of in (x, y))
    with np.errstate(invalid="ignore", divide="ignore"):
        samples = {
            "spearman": _pearson(_weighted_ranks(x, counts), _weighted_ranks(y, counts), counts),
            "pearson": _pearson(np.broadcast_to(x, counts.shape), np.broadcast_to(y, counts.shape), counts),
            "kendall": _kendall(signs_x, signs_y, counts),
        }
        one = np.ones((1, n))
        values = {
            "spearman": _pearson(_weighted_ranks(x, one), _weighted_ranks(y, one), one),
            "pearson": _pearson(x[np.newaxis], y[np.newaxis], one),
            "kendall": _kendall(signs_x, signs_y, one),
        }
    found = dict[str, Correlation]()
    for name, of in samples.items():
        known = of[np.isfinite(of)]
        low, high = np.percentile(known, [2.5, 97.5]).tolist() if len(known) else (np.nan, np.nan)
        found[name] = Correlation(float(values[name][0]), float(known.std()) if len(known) else np.nan, low, high)
    return found


def as_json(found: dict[str, Correlation]) -> dict[str, Any]:
    """Return the coefficients as JSON data."""
    return {name: asdict(of) for name, of in found.items()}


def _weighted_ranks(values: Floats, counts: Floats) -> Floats:
    """Return the mean ranks, (m, n), of values (n,) with multiplicities `counts` (m, n)."""
    distinct, which = np.unique(values, return_inverse=True)
    of_each = np.zeros((len(counts), len(distinct)))
    for k in range(len(values)):
        of_each[:, which[k]] += counts[:, k]
    before = np.cumsum(of_each, axis=1) - of_each
    ranks: Floats = (before + (of_each + 1) / 2)[:, which]
    return ranks


def _pearson(x: Floats, y: Floats, counts: Floats) -> Floats:
    """Compute Pearson's coefficient of values (m, n) with multiplicities `counts`, (m,)."""
    n = counts.sum(axis=1, keepdims=True)
    x, y = (of - (counts * of).sum(axis=1, keepdims=True) / n for of in (x, y))
    xy, xx, yy = ((counts * of).sum(axis=1) for of in (x * y, x * x, y * y))
    found: Floats = xy / np.sqrt(xx * yy)
    return found


def _kendall(signs_x: Floats, signs_y: Floats, counts: Floats) -> Floats:
    """Compute Kendall's tau-b, (m,), from signs of differences (n, n) and multiplicities `counts` (m, n)."""
    sums = [((counts @ of) * counts).sum(axis=1) for of in (signs_x * signs_y, signs_x**2, signs_y**2)]
    found: Floats = sums[0] / np.sqrt(sums[1] * sums[2])
    return found
