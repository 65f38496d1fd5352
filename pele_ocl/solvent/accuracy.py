"""Accuracy of approximate Born radii: what a user may ask for, and what the tree makes of it."""

from __future__ import annotations

from collections.abc import Mapping

from ..common.arguments import number
from ..gb_models.solvent_model import SolventModel

BEST, DEFAULT, WORST = 1e-6, 1e-5, 1e-4

# What a box may leave out at the default accuracy, 1/A, and how it goes with the accuracy: with a smaller one there are
# more boxes, whose errors add up. Found by tests/benchmarks/tree.py.
LEFT_OUT, POWER = 2.4e-9, 1.08
# Radii such as HCT have no upper bound, and with a radius grows what an error of its integral does to it.
UNBOUNDED = 1 / 4


def checked_accuracy(accuracy: float | None) -> float | None:
    """Return the accuracy as a number; raise InputError for one that cannot be had."""
    if accuracy is None:
        return None
    return number("accuracy", accuracy, f"a number from {BEST:g} to {WORST:g}", least=BEST, most=WORST)


def tolerance(accuracy: float, model: SolventModel) -> float:
    """Return the largest sum of |a| d^5 / D^9 with which a box counts as far, 1/A; docs/theory/tree.md, eq. 6."""
    least = LEFT_OUT * (UNBOUNDED if model.gb_model.is_unbounded else 1.0)
    return float(least * (accuracy / DEFAULT) ** POWER)


def far_radii(accuracy: float) -> int:
    """Scaled radii from which on the first five terms of the HCT series are enough."""
    return 4 if accuracy >= DEFAULT else 6


def pays(n_atoms: int, accuracy: float, least: Mapping[str, int], kind: str) -> bool:
    """Return whether a tree takes less time than all pairs on a device of this kind.

    least : atoms by kind from which on it does at the default accuracy
    """
    least_here = least["CPU" if kind == "CPU" else "GPU"]
    return n_atoms >= (least_here if accuracy >= DEFAULT else 2 * least_here)
