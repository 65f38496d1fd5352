"""Progress of a run: structures done, and how far the slowest one under way is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from ..progress import ProgressLine
from ..report import counted, duration

Item = TypeVar("Item")


class StructureLine(ProgressLine):
    """Progress line that counts structures.

    done : before the ones that are minimised together now; first : that an earlier run did
    slowest : rms gradient, kcal/mol/A, of the structure under way that is farthest from its minimum; None if not known
    """

    def __init__(self, n: int, what: str = "Minimizing") -> None:
        super().__init__(what)
        self.n, self.done, self.first = n, 0, 0
        self.slowest: float | None = None

    def __enter__(self) -> StructureLine:
        return self

    def tell(self, more: float) -> None:
        """Tell that so many more than `done` are done."""
        self((self.done + more) / self.n)

    def pass_over(self, n: int) -> None:
        """Note down how many an earlier run did."""
        self.done = self.first = n

    def pass_over_elsewhere(self, n: int) -> None:
        """Note down how many an earlier run did, where all are counted as they come."""
        self.first = n

    def begin(self, n: int) -> None:
        """Note down that n of this run's structures are done, and the next are minimised together."""
        self.done = self.first + n

    def counted(self, items: Iterable[Item]) -> Iterator[Item]:
        """Give the items, and tell of each as a structure that is done."""
        for k, item in enumerate(items, 1):
            yield item
            self.tell(k)

    def watch(self, n_done: int, n: int, gradient: float) -> None:
        """Tell of the structures that are minimised together, and of the slowest one's rms gradient, kcal/mol/A."""
        self.slowest = gradient or None  # 0 where none goes on
        self.tell(n_done)

    def is_known(self, share: float) -> bool:
        return self.slowest is not None or round(share * self.n) > self.first

    def told(self, share: float, seconds: float) -> str:
        done = round(share * self.n)
        parts = [f"{done:,} of {counted(self.n, 'structure')}"]
        if self.slowest is not None:
            parts.append(f"the slowest at {self.slowest:.3g} kcal/mol/A")
        if self.first < done < self.n:
            parts.append(f"{duration((self.n - done) * seconds / (done - self.first))} left")
        return ", ".join(parts)
