"""Entropies of binding as gmx_MMPBSA reports them, from the interaction energies of a single trajectory."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np

from ...atoms import Floats
from ..entropy import MOST_SIGMA, entropy_of
from .namelists import Entropies

# kcal/(mol K), as gmx_MMPBSA has them.
_OF_INTERACTION, _OF_C2 = 0.001985875, 0.001987


@dataclass(frozen=True)
class InteractionEntropy:
    """-T dS, kcal/mol, by the interaction entropy.

    by_frame : (m,) its value up to each frame; n : how many of the last ones the mean is of
    sigma : standard deviation of the interaction energy
    """

    by_frame: Floats
    n: int
    sigma: float

    @property
    def mean(self) -> float:
        """Mean of the last n frames."""
        return float(self.by_frame[-self.n :].mean())

    @property
    def sd(self) -> float:
        """Population standard deviation of the last n frames."""
        return float(self.by_frame[-self.n :].std())


@dataclass(frozen=True)
class C2Entropy:
    """-T dS, kcal/mol, by the second cumulant, with the standard deviation of bootstrap samples; sigma as above."""

    value: float
    sd: float
    sigma: float

    @property
    def interval(self) -> tuple[float, float]:
        """95 percent of a normal distribution of this width."""
        return self.value - 1.96 * self.sd, self.value + 1.96 * self.sd


def interaction_entropy_of(energies: Floats, wanted: Entropies) -> InteractionEntropy:
    """Interaction entropy of energies (m,) as gmx_MMPBSA has it: each energy less the mean up to its frame."""
    kt = _OF_INTERACTION * wanted.temperature
    means = np.cumsum(energies) / np.arange(1, len(energies) + 1)
    exponents = np.logaddexp.accumulate((energies - means) / kt)
    by_frame = kt * (exponents - np.log(np.arange(1, len(energies) + 1)))
    return InteractionEntropy(by_frame, ceil(len(energies) * wanted.segment / 100), float(energies.std()))


def c2_entropy_of(energies: Floats, wanted: Entropies) -> C2Entropy:
    """Entropy of the second cumulant of energies (m,); one frame alone has none."""
    sigma = float(energies.std())
    sd = entropy_of(energies, wanted.temperature).c2_error if len(energies) > 1 else 0.0
    return C2Entropy(sigma**2 / (2 * _OF_C2 * wanted.temperature), sd, sigma)


def warning_of(sigma: float) -> str:
    """A sentence where the interaction energy scatters so much that no entropy of it means anything, else ""."""
    if sigma <= MOST_SIGMA:
        return ""
    return (
        f"the interaction energy scatters by {sigma:.1f} kcal/mol; beyond {MOST_SIGMA} kcal/mol entropies of it do not "
        "converge"
    )
