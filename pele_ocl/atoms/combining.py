"""How the Lennard-Jones parameters of a pair follow from those of its atoms."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from .bonded import OneFourPairs
from .labels import Floats, Ints

Combining = Literal["arithmetic", "geometric"]
RULES: tuple[Combining, ...] = ("arithmetic", "geometric")

# Files print coefficients with a few digits, force fields round them; a pair with parameters of its own differs by per
# cents.
_SAME = 1e-5


def mean_sigma(first: Floats, second: Floats, rule: Combining) -> Floats:
    """Sigma (A) of pairs by the rule, of arrays that go together."""
    mean: Floats = np.sqrt(first * second) if rule == "geometric" else (first + second) / 2
    return mean


def scaled_pairs(
    pairs: Ints, charges: Floats, sigma: Floats, epsilon: Floats, rule: Combining, scales: tuple[float, float]
) -> OneFourPairs:
    """1-4 pairs (k, 2) with the parameters of their atoms combined, times the (Coulomb, Lennard-Jones) scales.

    charges, sigma, epsilon : (n,) of the atoms, e, A and kcal/mol
    """
    i, j = pairs.T
    by_coulomb, by_lj = scales
    columns = (
        by_coulomb * charges[i] * charges[j], mean_sigma(sigma[i], sigma[j], rule),
        by_lj * np.sqrt(epsilon[i] * epsilon[j]),
    )  # fmt: skip
    return OneFourPairs(pairs, np.column_stack(columns))


def rule_of(sigma: Floats, epsilon: Floats) -> Combining | NDArray[np.intp]:
    """The rule by which all pairs of types follow from the types' own, or a pair that does not, (2,) types.

    sigma, epsilon : (t, t) in any unit; a pair without energy has an epsilon of 0, whatever its sigma
    """
    own, wells = sigma.diagonal(), epsilon.diagonal()
    expected = np.sqrt(np.outer(wells, wells))
    of_epsilon = ~(np.abs(epsilon - expected) <= _SAME * np.maximum(epsilon, expected))
    astray = []
    for rule in RULES:
        mean = mean_sigma(own[:, None], own, rule)
        astray.append(np.argwhere(of_epsilon | ((epsilon > 0) & (np.abs(sigma - mean) > _SAME * mean))))
        if not len(astray[-1]):
            return rule
    pair: NDArray[np.intp] = min(astray, key=len)[0]
    return pair
