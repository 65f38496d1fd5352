"""Interface between a plan and what computes for it: the arrays to be filled, and conformations that fail."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields

import numpy as np

from ..atoms import Floats
from ..common.errors import InputError
from ..common.variant import Progress


def untold(share: float) -> None:
    """Take no notice of progress that nobody asked for."""


@dataclass(frozen=True, eq=False)
class Outputs:
    """Results of m conformations of n atoms, float64; an array is None if not requested.

    energies : (m, n_terms) kcal/mol, the terms of the plan
    gradients : (m, n, 3) kcal/mol/A
    born_radii : (m, n) A
    psi : (m, n) argument of the radius function, dimensionless
    per_atom : (m, n, n_terms) kcal/mol
    """

    energies: Floats
    gradients: Floats | None = None
    born_radii: Floats | None = None
    psi: Floats | None = None
    per_atom: Floats | None = None

    @classmethod
    def empty(
        cls, m: int, n: int, n_terms: int, *, gradients: bool = False, born_radii: bool = False, psi: bool = False,
        per_atom: bool = False,
    ) -> Outputs:  # fmt: skip
        """Arrays to be filled."""
        return cls(
            np.empty((m, n_terms)),
            np.empty((m, n, 3)) if gradients else None,
            np.empty((m, n)) if born_radii else None,
            np.empty((m, n)) if psi else None,
            np.empty((m, n, n_terms)) if per_atom else None,
        )

    def arrays(self) -> Iterator[Floats]:
        """Yield the arrays that were asked for."""
        for f in fields(self):
            array = getattr(self, f.name)
            if array is not None:
                yield array

    def erase(self, k: int) -> None:
        """Fill conformation k with NaN."""
        for array in self.arrays():
            array[k] = np.nan

    def bad_atoms(self, k: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Atoms of conformation k whose gradient is not finite or whose Born radius is not positive, (n,)."""
        bad = np.zeros(next((a.shape[1] for a in self.arrays() if a is not self.energies), 0), bool)
        if self.born_radii is not None:
            bad |= ~(np.isfinite(self.born_radii[k]) & (self.born_radii[k] > 0))
        if self.gradients is not None:
            bad |= ~np.isfinite(self.gradients[k]).all(axis=1)
        if self.per_atom is not None:
            bad |= ~np.isfinite(self.per_atom[k]).all(axis=1)
        return bad

    def is_good(self, k: int) -> bool:
        """Return whether all results of conformation k are finite and its Born radii positive."""
        return bool(np.isfinite(self.energies[k]).all()) and not bool(self.bad_atoms(k).any())


@dataclass(eq=False)
class Failures:
    """Conformations that could not be computed.

    count : conformations in the evaluation
    record : False where the first failure ends the evaluation
    reasons : sentences by the number of a conformation, from 0, in the order in which they were found
    """

    count: int
    record: bool = False
    reasons: dict[int, str] = field(default_factory=dict)
    _kinds: dict[int, type[InputError]] = field(default_factory=dict)

    def add(self, k: int, error: InputError) -> None:
        """Record that conformation k failed."""
        self.reasons.setdefault(k, str(error))
        self._kinds.setdefault(k, type(error))

    @property
    def in_order(self) -> dict[int, str]:
        """Reasons in the order of the conformations."""
        return dict(sorted(self.reasons.items()))

    def check(self, done: int) -> None:
        """Raise InputError for the first of the `done` conformations that failed, where that ends the evaluation."""
        if self.record or not self.reasons:
            return
        k = min(self.reasons)
        if k < done:
            which = "" if self.count == 1 else f"conformation {k + 1} of {self.count}: "
            raise self._kinds[k](f"{which}{self.reasons[k]}")


class Evaluator(ABC):
    """Buffers and kernels of one plan, which one evaluation uses at a time."""

    def takes(self, m: int) -> bool:
        """Return whether its buffers serve m conformations, or as many as are ever computed together."""
        return True

    @abstractmethod
    def compute(
        self, conformations: Floats, found: Outputs, failures: Failures, *, profile: bool, tell: Progress
    ) -> Mapping[str, float]:
        """Fill `found` for conformations (m, n, 3) A, float32 or float64.

        profile : whether to time kernels; then their seconds are returned by name, including "kernel"
        tell : called with the fraction done; it may compute with other evaluators

        Invalid positions and results are added to `failures`, which is checked whenever conformations are done.
        """

    def start(self, conformation: Floats, failures: Failures) -> None:
        """Start to compute one conformation (1, n, 3) A, and leave the device at work where it works by itself."""
        self._started = conformation

    def finish(self, found: Outputs, failures: Failures) -> Mapping[str, float]:
        """Fill `found` for the conformation that was started. Returns seconds as `compute` does without times."""
        return self.compute(self._started, found, failures, profile=False, tell=untold)

    def take_radii(self, born_radii: Floats | None) -> None:
        """Take the Born radii, A, of the conformations to be computed next: (n,) for all of them, (m, n), or None."""
        raise TypeError("only evaluators of a list of pairs are given Born radii")

    def repeat(self, count: int) -> None:
        """Compute what was computed last so many times more, with positions and results left on the device."""
        raise InputError("this variant passes by the host in each evaluation; it cannot be repeated on the device")
