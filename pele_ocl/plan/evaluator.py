"""Interface between a plan and what computes for it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..atoms import Floats
from ..common.errors import InputError
from ..common.variant import Progress
from .outputs import Outputs


def untold(share: float) -> None:
    """Take no notice of progress that nobody asked for."""


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
        """Tell if its buffers serve m conformations, or as many as are ever computed together."""
        return True

    @abstractmethod
    def compute(
        self, conformations: Floats, found: Outputs, failures: Failures, *, profile: bool, tell: Progress
    ) -> Mapping[str, float]:
        """Fill `found` for conformations (m, n, 3) A, float32 or float64.

        profile : whether times of kernels are wanted; then their seconds are returned by name, "kernel" among them
        tell : called with the share done, `untold` where nobody asks; it may compute with other evaluators

        Positions and results that cannot be go to `failures`, which is checked whenever conformations are done.
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
