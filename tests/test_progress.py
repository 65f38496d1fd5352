"""Lines of progress: speeds of any size can be read."""

from __future__ import annotations

import pytest

from pele_ocl.cli.progress import FrameLine
from pele_ocl.common import rate as rates
from pele_ocl.dynamics.result import speed_text
from pele_ocl.jobs.texts import figures, frame_rate


@pytest.mark.parametrize(
    ("per_second", "text"),
    [(0.0, "0 frames/s"), (0.002, "8.3 minutes a frame"), (0.125, "8.00 s a frame"), (0.4, "2.50 s a frame"),
     (1.0, "1 frames/s"), (2.54, "2.54 frames/s"), (46.9, "46.9 frames/s"), (1250.4, "1,250 frames/s")],
)  # fmt: skip
def test_slow_frames_have_their_seconds(per_second, text):
    assert frame_rate(per_second) == text


def test_the_line_of_frames_shows_slow_work(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(rates.time, "perf_counter", lambda: now[0])
    line = FrameLine("Frames", 10)
    for done in (1, 2, 3):
        now[0] += 30.0
        line.rate.add(done)
    assert line.told(0.3, 90.0) == "3 of 10 frames, 30.00 s a frame, 3.5 minutes left"


def test_figures_have_no_exponent():
    assert [figures(value) for value in (0.01234, 1.0, 99.5, 12_345.6)] == ["0.0123", "1", "99.5", "12,346"]
    assert speed_text(741_234.0, 74.1234, 10_000) == "741,234 ns/day in all, 74.12 a replica"
    assert speed_text(74.1234, 74.1234, 1) == "74.12 ns/day"
