"""Progress lines on stderr, for computations that take longer than two seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sized
from types import TracebackType
from typing import TypeVar

from ..jobs.texts import duration, frame_rate
from .terminal import one_line

PATIENCE_SECONDS = 2.0  # before the first line, and of work before its speed is known
QUIET_SECONDS = 10.0  # between lines if stderr is not a terminal

Item = TypeVar("Item")


class ProgressLine:
    """Function of the fraction done, 0 to 1, that shows the progress and the estimated remaining time.

    Speed and remaining time are measured from the first call on, since start-up and the compilation of kernels precede
    it.

    what : description of the work
    amount : total amount of work, to show the rate; of : its unit, such as "atom evaluations"
    """

    def __init__(self, what: str, amount: float = 0.0, of: str = "") -> None:
        self.what, self.amount, self.of = one_line(what), amount, of
        self.start = self.last = time.monotonic()
        self.share = 0.0
        self.first: tuple[float, float] | None = None  # time and fraction done at the first call of a step
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
            self.start, self.first = now, None
        self.first = self.first or (now, share)
        self.share = share
        terminal = sys.stderr.isatty()
        is_early = now - self.start < PATIENCE_SECONDS or now - self.last < (0.2 if terminal else QUIET_SECONDS)
        if is_early or not self.is_known(share):
            return
        line = f"{self.what}: {self.told(share, share - self.first[1], now - self.first[0])}"
        sys.stderr.write(f"\r\033[K{line}" if terminal else f"{line}\n")
        sys.stderr.flush()
        self.last, self.written = now, True

    def is_known(self, share: float) -> bool:
        """Return whether there is any progress to show, and work left."""
        return 0 < share < 1

    def told(self, share: float, since: float, seconds: float) -> str:
        """Return the text of the line.

        share : fraction done; since : fraction done since the first call; seconds : time since the first call
        """
        rate = ""
        if self.amount and has_speed(since, seconds):
            rate = f"{since * self.amount / seconds / 1e9:,.3g} billion {self.of}/s, "
        return f"{100 * share:3.0f} %, {rate}{time_left(share, since, seconds)}"

    def counting(self, items: Iterable[Item], counted: Sized) -> Iterator[Item]:
        """Yield the items, and show the progress after each. counted : a collection of the same length"""
        for k, item in enumerate(items, 1):
            yield item
            self(k / len(counted))


class FrameLine(ProgressLine):
    """Progress line that counts frames, once their number is known."""

    def __init__(self, what: str, n_frames: int = 0) -> None:
        super().__init__(what)
        self.n_frames = n_frames

    def begin(self, n_frames: int) -> None:
        """Set the number of frames."""
        self.n_frames = n_frames

    def told(self, share: float, since: float, seconds: float) -> str:
        if not self.n_frames:
            return super().told(share, since, seconds)
        rate = f"{frame_rate(since * self.n_frames / seconds)}, " if has_speed(since, seconds) else ""
        done = round(share * self.n_frames)
        return f"{done:,} of {self.n_frames:,} frames, {rate}{time_left(share, since, seconds)}"


def has_speed(since: float, seconds: float) -> bool:
    """Return whether enough work was done since the first report to measure the speed."""
    return since > 0 and seconds >= PATIENCE_SECONDS


def time_left(share: float, since: float, seconds: float) -> str:
    """Return the remaining time as text.

    share : fraction done; since : part of it that took `seconds`
    """
    if not has_speed(since, seconds):
        return "time left unknown yet"
    left = seconds * (1 - share) / since
    return f"{left:.0f} s left" if left < 120 else f"{duration(left)} left"
