"""Means of correlated series, differences of two runs, and entropies (docs/theory/binding.md)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import erfc, hypot, sqrt
from os import PathLike

import numpy as np
from numpy.typing import ArrayLike

from ..atoms import Floats
from ..common.arguments import number, numbers, whole_number
from ..common.errors import FormatError, InputError
from ..common.inputfile import read_file
from ..units import BOLTZMANN_KCAL

LEAST_OF_BLOCKS = 4  # values that have a standard error by blocks


@dataclass(frozen=True)
class Spread:
    """Mean, standard deviation and standard error of a series.

    n : number of values; mean : their mean
    sd : population standard deviation (n), as in MMPBSA.py; sd_sample : sample standard deviation (n - 1), NaN for one
        value
    sem : naive standard error of the mean, sd / sqrt(n), as in MMPBSA.py
    sem_blocked : standard error from block averages, valid for correlated values; NaN for fewer than 4 values
    inefficiency : statistical inefficiency, at least 1: number of values per independent value
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
    """Compute the Spread of a series (n,), ignoring NaN. Raises InputError for another shape, and without values."""
    series = numbers("values", values)
    if series.ndim != 1:
        raise InputError(f"values have shape {series.shape}; expected a series (n,)")
    series = series[~np.isnan(series)]
    n = len(series)
    if not n:
        raise InputError("a mean of no values cannot be computed")
    mean, sd = float(series.mean()), float(series.std())
    sample = float(series.std(ddof=1)) if n > 1 else np.nan
    sem_blocked = blocked_error(series)
    inefficiency = max(1.0, n * sem_blocked**2 / sample**2) if sample > 0 and sem_blocked == sem_blocked else 1.0
    return Spread(n, mean, sd, sample, float(sd / np.sqrt(n)), sem_blocked, inefficiency)


def why_no_error(of: Spread) -> list[str]:
    """Say why a mean of several values has no standard error of blocks; nothing if it has one."""
    if of.n < 2 or of.sem_blocked == of.sem_blocked:
        return []
    return [f"SEM blocks (sem_blocked) is empty, because block averages need {LEAST_OF_BLOCKS} frames or more"]


def blocked_error(series: Floats) -> float:
    """Compute the standard error of the mean of a correlated series (n,) by block averaging; NaN if n < 4.

    The block length is doubled (Flyvbjerg and Petersen, J. Chem. Phys. 91, 461 (1989)) until blocks are longer than
    the correlation time. The criterion is the first length b with b^3 > 2 n (error of blocks / error of values)^4 (Lee
    et al., Phys. Rev. E 83, 066706 (2011)). If no length satisfies it, the largest error is returned.
    """
    n = len(series)
    if n < LEAST_OF_BLOCKS:
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
    """Compute the running mean of values, (n,)."""
    means: Floats = np.cumsum(values) / np.arange(1, len(values) + 1)
    return means


_Numbers = Mapping[str, float | None]


@dataclass(frozen=True)
class Difference:
    """Difference of two means, kcal/mol, and its standard error, from blocked errors if available."""

    difference: float
    error: float

    @property
    def p_value(self) -> float | None:
        """Two-sided p-value of the difference, assuming a normal distribution; None if the error is 0."""
        return erfc(abs(self.difference) / self.error / sqrt(2)) if self.error > 0 else None


def compare(one: Mapping[str, _Numbers], other: Mapping[str, _Numbers]) -> dict[str, Difference]:
    """Subtract the terms of `other` from those of `one`, for terms in both. Each is `delta` of a report's JSON."""
    return {
        term: Difference(
            _of(one[term], "mean") - _of(other[term], "mean"), hypot(_error(one[term]), _error(other[term]))
        )
        for term in one
        if term in other
    }


def read_binding_report(path: str | PathLike[str]) -> Mapping[str, _Numbers]:
    """Read `delta` from the JSON file of a BindingResult. Raises FormatError for another file."""
    try:
        report = json.loads(read_file(path).data)
        delta: Mapping[str, _Numbers] = report["delta"]
        _of(delta["total"], "mean")
    except (KeyError, TypeError, ValueError, UnicodeDecodeError):
        raise FormatError(f"{path}: is not a JSON report of binding energies") from None
    return delta


def _of(numbers: _Numbers, name: str) -> float:
    value = numbers[name]
    if value is None:
        raise ValueError(name)
    return float(value)


def _error(numbers: _Numbers) -> float:
    """Return the blocked error, or the naive one if there are too few frames."""
    blocked = numbers.get("sem_blocked")
    return _of(numbers, "sem") if blocked is None else float(blocked)


# kcal/mol; for larger standard deviations of the interaction energy neither entropy converges (Ekberg and Ryde,
# J. Chem. Theory Comput. 17, 5379 (2021)).
MOST_SIGMA = 3.6
RESAMPLES = 2000
SEED = 20  # fixed seed, so that errors are reproducible


@dataclass(frozen=True)
class Entropy:
    """Two estimates of -T dS of binding from the gas-phase interaction energy, kcal/mol.

    interaction : interaction entropy, kT ln <exp((E - <E>)/kT)> (Duan, Liu and Zhang 2016)
    last_quarter : mean of its running value over the last quarter of the frames, as reported by gmx_MMPBSA
    c2 : second cumulant, var(E) / (2 kT)
    interaction_error, c2_error : standard deviations over block bootstrap samples
    sigma : standard deviation of the interaction energy, kcal/mol; n : number of frames; temperature : K
    """

    interaction: float
    interaction_error: float
    last_quarter: float
    c2: float
    c2_error: float
    sigma: float
    n: int
    temperature: float

    @property
    def warning(self) -> str:
        """Warning if the standard deviation is too large for meaningful estimates, else ""."""
        if self.sigma <= MOST_SIGMA:
            return ""
        kt = BOLTZMANN_KCAL * self.temperature
        return (
            f"the standard deviation of the interaction energy is {self.sigma:.1f} kcal/mol, {self.sigma / kt:.1f} kT; "
            f"beyond {MOST_SIGMA} kcal/mol neither interaction entropy nor C2 converges"
        )

    def as_json(self) -> dict[str, float | str]:
        """Return the fields and the warning by name."""
        return {**asdict(self), "warning": self.warning}


def entropy_of(energies: ArrayLike, temperature: float = 298.15, resamples: int = RESAMPLES) -> Entropy:
    """Compute the entropies from a series (n,) of interaction energies, kcal/mol, n >= 2; NaN is ignored.

    Raises InputError for other shapes and fewer values.
    """
    series = numbers("energies", energies)
    if series.ndim != 1:
        raise InputError(f"energies have shape {series.shape}; expected a series (n,)")
    series = series[~np.isnan(series)]
    if len(series) < 2:
        raise InputError("an entropy needs the energies of two frames or more")
    number("temperature", temperature, "a positive temperature in K", above=0)
    kt = BOLTZMANN_KCAL * temperature
    samples = _resampled(series, whole_number("resamples", resamples, least=2))
    running = kt * running_log_mean((series - series.mean()) / kt)
    return Entropy(
        interaction_entropy(series, kt),
        float(np.std([interaction_entropy(sample, kt) for sample in samples])),
        float(running[-max(1, -(-len(series) // 4)) :].mean()),
        float(series.var() / (2 * kt)),
        float(np.std(samples.var(axis=1) / (2 * kt))),
        float(series.std()),
        len(series),
        float(temperature),
    )


def interaction_entropy(series: Floats, kt: float) -> float:
    """Compute kT ln <exp((E - <E>)/kT)>, kcal/mol."""
    reduced = (series - series.mean()) / kt
    largest = reduced.max()
    return float(kt * (largest + np.log(np.exp(reduced - largest).mean())))


def running_log_mean(reduced: Floats) -> Floats:
    """Compute the logarithm of the running mean of exp(x), (n,)."""
    logs: Floats = np.logaddexp.accumulate(reduced) - np.log(np.arange(1, len(reduced) + 1))
    return logs


def _resampled(series: Floats, count: int) -> Floats:
    """Return block bootstrap samples, (count, n), with blocks as long as the statistical inefficiency."""
    n = len(series)
    length = min(n, int(np.ceil(spread_of(series).inefficiency)))
    starts = np.random.default_rng(SEED).integers(0, n, (count, -(-n // length)))
    places = (starts[:, :, np.newaxis] + np.arange(length)).reshape(count, -1)[:, :n] % n
    samples: Floats = series[places]
    return samples
