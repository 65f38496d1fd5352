"""Means of correlated series and their errors; docs/theory/binding.md, section 2."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..atoms import Floats
from ..common.arguments import numbers
from ..common.errors import InputError


@dataclass(frozen=True)
class Spread:
    """Mean of a series, how far its values scatter, and how well the mean is known.

    n : values; mean : of them
    sd : population standard deviation (of n), as MMPBSA.py prints; sd_sample : of n - 1; NaN of one value
    sem : naive standard error of the mean, sd / sqrt(n), as MMPBSA.py prints
    sem_blocked : of block averages, which holds if neighbouring values correlate; NaN for fewer than 4 values
    inefficiency : statistical inefficiency, at least 1: that many neighbours count as one independent value
    """

    n: int
    mean: float
    sd: float
    sd_sample: float
    sem: float
    sem_blocked: float
    inefficiency: float

    def as_json(self) -> dict[str, float | None]:
        """Return the fields by name; None for NaN, which JSON lacks."""
        return {name: None if value != value else value for name, value in asdict(self).items()}


def spread_of(values: ArrayLike) -> Spread:
    """Compute the Spread of a series (n,), NaN left out. Raises InputError for another shape and without any value."""
    series = numbers("values", values)
    if series.ndim != 1:
        raise InputError(f"values have shape {series.shape}; a series (n,) is needed")
    series = series[~np.isnan(series)]
    n = len(series)
    if not n:
        raise InputError("there is no value to take a mean of")
    mean, sd = float(series.mean()), float(series.std())
    sample = float(series.std(ddof=1)) if n > 1 else np.nan
    sem_blocked = blocked_error(series)
    inefficiency = max(1.0, n * sem_blocked**2 / sample**2) if sample > 0 and sem_blocked == sem_blocked else 1.0
    return Spread(n, mean, sd, sample, float(sd / np.sqrt(n)), sem_blocked, inefficiency)


def blocked_error(series: Floats) -> float:
    """Compute the standard error of the mean of a correlated series (n,), from averages over blocks; NaN if n < 4.

    Blocks grow by twos (Flyvbjerg and Petersen, J. Chem. Phys. 91, 461 (1989)) until they are longer than the
    correlations. This is the first length b with b^3 > 2 n (error of blocks / error of values)^4 (Lee et al., Phys.
    Rev. E 83, 066706 (2011)). If no length is, the largest error counts.
    """
    n = len(series)
    if n < 4:
        return np.nan
    errors, blocks, length = list[float](), series, 1
    while len(blocks) >= 2:
        errors.append(float(blocks.std(ddof=1) / np.sqrt(len(blocks))))
        if errors[0] == 0 or length**3 > 2 * n * (errors[-1] / errors[0]) ** 4:
            return errors[-1]
        blocks = (blocks[: len(blocks) // 2 * 2 : 2] + blocks[1::2]) / 2
        length *= 2
    return max(errors)


def running_mean(values: Floats) -> Floats:
    """Compute the mean of all values up to each, (n,)."""
    means: Floats = np.cumsum(values) / np.arange(1, len(values) + 1)
    return means
