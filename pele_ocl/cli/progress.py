"""Progress lines on stderr, for computations that take longer than two seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sized
from types import TracebackType
from typing import TypeVar

from ..common.rate import Rate
from ..jobs.texts import duration, frame_rate
from .terminal import one_line

PATIENCE_SECONDS = 2.0
KNOWN_SHARE = 0.05  # fraction of the work needed to estimate the rest; the first part often includes compilation
QUIET_SECONDS = 10.0  # between lines if stderr is not a terminal

Item = TypeVar("Item")


class ProgressLine:
    """Function of the fraction done, 0 to 1, that shows the progress and the estimated remaining time.

    what : description of the work
    amount : total amount of work, to show the rate; of : its unit, such as "atom evaluations"
    """

    def __init__(self, what: str, amount: float = 0.0, of: str = "") -> None:
        self.what, self.amount, self.of = one_line(what), amount, of
        self.start = self.last = time.monotonic()
        self.share = 0.0
        self.written = False

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.written and sys.stderr.isatty():
            sys.stderr.write("\r\033[K")

    def __call__(self, share: float) -> None:
        now = time.monotonic()
        if share < self.share:  # the next step has started
            self.start = now
        self.share = share
        terminal = sys.stderr.isatty()
        is_early = now - self.start < PATIENCE_SECONDS or now - self.last < (0.2 if terminal else QUIET_SECONDS)
        if is_early or not self.is_known(share):
            return
        line = f"{self.what}: {self.told(share, now - self.start)}"
        sys.stderr.write(f"\r\033[K{line}" if terminal else f"{line}\n")
        sys.stderr.flush()
        self.last, self.written = now, True

    def is_known(self, share: float) -> bool:
        """Return whether there is any progress to show."""
        return share > 0

    def told(self, share: float, seconds: float) -> str:
        """Return the text of the line. share : fraction done; seconds : time since the start"""
        rate = f"{share * self.amount / seconds / 1e9:,.3g} billion {self.of}/s, " if self.amount else ""
        left = f"{seconds * (1 - share) / share:.0f} s left" if share >= KNOWN_SHARE else "time left unknown yet"
        return f"{100 * share:3.0f} %, {rate}{left}"

    def counting(self, items: Iterable[Item], counted: Sized) -> Iterator[Item]:
        """Yield the items, and show the progress after each. counted : a collection of the same length"""
        for k, item in enumerate(items, 1):
            yield item
            self(k / len(counted))


class FrameLine(ProgressLine):
    """Progress line that counts frames, once their number is known."""

    def __init__(self, what: str, n_frames: int = 0) -> None:
        super().__init__(what)
        self.n_frames, self.rate = n_frames, Rate()

    def begin(self, n_frames: int, n_earlier: int) -> None:
        """Set the number of frames, and how many an earlier run has done."""
        if not self.n_frames:
            self.n_frames, self.rate = n_frames, Rate()
        if n_earlier:
            self.rate.earlier(n_earlier)

    def __call__(self, share: float) -> None:
        if self.n_frames:
            self.rate.add(share * self.n_frames)
        super().__call__(share)

    def told(self, share: float, seconds: float) -> str:
        if not self.n_frames:
            return super().told(share, seconds)
        done, rate = share * self.n_frames, max(self.rate(), 1e-9)
        left = duration((self.n_frames - done) / rate)
        return f"{int(done):,} of {self.n_frames:,} frames, {frame_rate(rate)}, {left} left"
