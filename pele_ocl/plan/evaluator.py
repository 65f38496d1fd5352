"""Interface between plans and evaluators: output arrays and failed conformations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields

import numpy as np

from ..atoms import Floats
from ..common.errors import InputError
from ..common.variant import Progress


def untold(share: float) -> None:
    """Ignore progress."""


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
        return cls(
            np.empty((m, n_terms)),
            np.empty((m, n, 3)) if gradients else None,
            np.empty((m, n)) if born_radii else None,
            np.empty((m, n)) if psi else None,
            np.empty((m, n, n_terms)) if per_atom else None,
        )

    def arrays(self) -> Iterator[Floats]:
        """Yield the requested arrays."""
        for f in fields(self):
            array = getattr(self, f.name)
            if array is not None:
                yield array

    def erase(self, k: int) -> None:
        """Fill conformation k with NaN."""
        for array in self.arrays():
            array[k] = np.nan

    def bad_atoms(self, k: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Mask (n,) of atoms in conformation k with a non-finite result or a Born radius that is not positive."""
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
    """Failed conformations.

    count : number of conformations in the evaluation
    record : False if the first failure ends the evaluation
    reasons : messages by index of the conformation, from 0, in the order in which failures were found
    """

    count: int
    record: bool = False
    reasons: dict[int, str] = field(default_factory=dict)
    _kinds: dict[int, type[InputError]] = field(default_factory=dict)

    def add(self, k: int, error: InputError) -> None:
        self.reasons.setdefault(k, str(error))
        self._kinds.setdefault(k, type(error))

    @property
    def in_order(self) -> dict[int, str]:
        return dict(sorted(self.reasons.items()))

    def check(self, done: int) -> None:
        """Raise InputError for the first failure among the first `done` conformations, unless failures are recorded."""
        if self.record or not self.reasons:
            return
        k = min(self.reasons)
        if k < done:
            which = "" if self.count == 1 else f"conformation {k + 1} of {self.count}: "
            raise self._kinds[k](f"{which}{self.reasons[k]}")


class Evaluator(ABC):
    """Buffers and kernels of a plan, used by one evaluation at a time."""

    def takes(self, m: int) -> bool:
        """Return whether the buffers are large enough for m conformations, or for the largest possible chunk."""
        return True

    @abstractmethod
    def compute(
        self, conformations: Floats, found: Outputs, failures: Failures, *, profile: bool, tell: Progress
    ) -> Mapping[str, float]:
        """Compute `found` for conformations (m, n, 3) A, float32 or float64.

        profile : whether to time kernels; seconds are then returned by name, including "kernel"
        tell : called with the fraction done; may use other evaluators

        Invalid positions and results are added to `failures`, which is checked as conformations finish.
        """

    def start(self, conformation: Floats, failures: Failures) -> None:
        """Start computing one conformation (1, n, 3) A, without waiting for the device."""
        self._started = conformation

    def finish(self, found: Outputs, failures: Failures) -> Mapping[str, float]:
        """Wait for the started conformation and fill `found`. Returns seconds as `compute` does without profiling."""
        return self.compute(self._started, found, failures, profile=False, tell=untold)

    def take_radii(self, born_radii: Floats | None) -> None:
        """Set the Born radii, A, of the next conformations: (n,) for all of them, (m, n), or None."""
        raise TypeError("only evaluators of a pair list accept Born radii")

    def repeat(self, count: int) -> None:
        """Repeat the last computation `count` times, with positions and results left on the device."""
        raise InputError("this variant needs the host in each evaluation, so it cannot be repeated on the device")
