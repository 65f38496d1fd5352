"""Accuracy of approximate Born radii: allowed values, and the resulting parameters of the tree."""

from __future__ import annotations

from collections.abc import Mapping

from ..common.arguments import number
from ..gb_models.solvent_model import SolventModel

BEST, DEFAULT, WORST = 1e-6, 1e-5, 1e-4

# Error allowed per box at the default accuracy, 1/A, and the exponent of its dependence on the accuracy: for higher
# accuracy there are more boxes, whose errors add up. Determined by tests/benchmarks/tree.py.
LEFT_OUT, POWER = 2.4e-9, 1.08
# Factor for radii without an upper bound, such as HCT, where errors of integrals matter more for larger radii.
UNBOUNDED = 1 / 4


def checked_accuracy(accuracy: float | None) -> float | None:
    """Return the accuracy as a number. Raises InputError if it is out of range."""
    if accuracy is None:
        return None
    return number("accuracy", accuracy, f"a number from {BEST:g} to {WORST:g}", least=BEST, most=WORST)


def tolerance(accuracy: float, model: SolventModel) -> float:
    """Largest sum of |a| d^5 / D^9 for which a box is far, 1/A; docs/theory/tree.md, eq. 6."""
    least = LEFT_OUT * (UNBOUNDED if model.gb_model.is_unbounded else 1.0)
    return float(least * (accuracy / DEFAULT) ** POWER)


def far_radii(accuracy: float) -> int:
    """Distance in scaled radii beyond which five terms of the HCT series suffice."""
    return 4 if accuracy >= DEFAULT else 6


def pays(n_atoms: int, accuracy: float, least: Mapping[str, int], kind: str) -> bool:
    """Return whether a tree is faster than all pairs on a device of this kind.

    least : by kind, smallest number of atoms for which it is faster at the default accuracy
    """
    least_here = least["CPU" if kind == "CPU" else "GPU"]
    return n_atoms >= (least_here if accuracy >= DEFAULT else 2 * least_here)
