"""Progress line of frames."""

from __future__ import annotations

from ...jobs.texts import duration
from ...trajectories.tally import Rate
from ..progress import ProgressLine


class FrameLine(ProgressLine):
    """A progress line that counts frames, once it knows how many there are."""

    def __init__(self, what: str, n_frames: int = 0) -> None:
        super().__init__(what)
        self.n_frames, self.rate = n_frames, Rate()

    def begin(self, n_frames: int, n_earlier: int) -> None:
        """Count so many frames, of which an earlier run has done some."""
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
        return f"{int(done):,} of {self.n_frames:,} frames, {rate:,.0f} frames/s, {left} left"
