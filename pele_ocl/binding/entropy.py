"""Entropies of binding from the scatter of the interaction energy; docs/theory/binding.md, section 4."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..atoms import Floats
from ..common.arguments import number, numbers, whole_number
from ..common.errors import InputError
from ..units import BOLTZMANN_KCAL
from .statistics import spread_of

# kcal/mol; where the interaction energy scatters by more neither entropy converges (Ekberg and Ryde, J. Chem. Theory
# Comput. 17, 5379 (2021)).
MOST_SIGMA = 3.6
RESAMPLES = 2000
SEED = 20  # of the random numbers: the same errors in every run


@dataclass(frozen=True)
class Entropy:
    """-T dS of binding, kcal/mol, by two estimates from the interaction energy in the gas phase.

    interaction : interaction entropy, kT ln <exp((E - <E>)/kT)> (Duan, Liu and Zhang 2016)
    last_quarter : the mean of its running value over the last quarter of the frames, as gmx_MMPBSA reports it
    c2 : second cumulant, var(E) / (2 kT)
    interaction_error, c2_error : standard deviations of the two over bootstrap samples of blocks of frames
    sigma : standard deviation of the interaction energy, kcal/mol; n : frames; temperature : K
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
        """A sentence where the scatter is so large that neither estimate means anything, else ""."""
        if self.sigma <= MOST_SIGMA:
            return ""
        kt = BOLTZMANN_KCAL * self.temperature
        return (
            f"the interaction energy scatters by {self.sigma:.1f} kcal/mol, {self.sigma / kt:.1f} kT; beyond "
            f"{MOST_SIGMA} kcal/mol neither interaction entropy nor C2 converges"
        )

    def as_json(self) -> dict[str, float | str]:
        """Return the fields and the warning by name."""
        return {**asdict(self), "warning": self.warning}


def entropy_of(energies: ArrayLike, temperature: float = 298.15, resamples: int = RESAMPLES) -> Entropy:
    """Compute the entropies of a series (n,) of interaction energies, kcal/mol, NaN left out; n >= 2.

    Raises InputError for other shapes and fewer values.
    """
    series = numbers("energies", energies)
    if series.ndim != 1:
        raise InputError(f"energies have shape {series.shape}; a series (n,) is needed")
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
    """kT ln <exp((E - <E>)/kT)>, kcal/mol."""
    reduced = (series - series.mean()) / kt
    largest = reduced.max()
    return float(kt * (largest + np.log(np.exp(reduced - largest).mean())))


def running_log_mean(reduced: Floats) -> Floats:
    """Compute the logarithm of the mean of exp(x) over all values up to each, (n,)."""
    logs: Floats = np.logaddexp.accumulate(reduced) - np.log(np.arange(1, len(reduced) + 1))
    return logs


def _resampled(series: Floats, count: int) -> Floats:
    """(count, n) bootstrap samples, in blocks as long as neighbours correlate."""
    n = len(series)
    length = min(n, int(np.ceil(spread_of(series).inefficiency)))
    starts = np.random.default_rng(SEED).integers(0, n, (count, -(-n // length)))
    places = (starts[:, :, np.newaxis] + np.arange(length)).reshape(count, -1)[:, :n] % n
    samples: Floats = series[places]
    return samples
