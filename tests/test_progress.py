"""Lines of progress: speeds of any size can be read."""

from __future__ import annotations

import pytest

from pele_ocl.cli.progress import FrameLine, ProgressLine
from pele_ocl.cli.simulate import Pace
from pele_ocl.cli.structures import StructureLine
from pele_ocl.dynamics.result import speed_text
from pele_ocl.jobs.texts import figures, frame_rate


@pytest.mark.parametrize(
    ("per_second", "text"),
    [(0.0, "0 frames/s"), (0.002, "8.3 minutes per frame"), (0.125, "8.00 s per frame"), (0.4, "2.50 s per frame"),
     (1.0, "1 frames/s"), (2.54, "2.54 frames/s"), (46.9, "46.9 frames/s"), (1250.4, "1,250 frames/s")],
)  # fmt: skip
def test_slow_frames_have_their_seconds(per_second, text):
    assert frame_rate(per_second) == text


def test_the_line_of_frames_shows_slow_work():
    line = FrameLine("Frames", 10)
    assert line.told(0.1, 0.0, 0.0) == "1 of 10 frames, time left unknown yet"
    assert line.told(0.3, 0.2, 60.0) == "3 of 10 frames, 30.00 s per frame, 3.5 minutes left"


LINES = {
    "fraction": (ProgressLine("Work"), lambda line: line),
    "frames": (FrameLine("Work", 10), lambda line: line),
    "structures": (StructureLine("Work"), lambda line: lambda share: line.watch(round(10 * share), 10, 0.5)),
    "replicas": (Pace(), lambda line: line),
}


@pytest.mark.parametrize("name", LINES)
def test_start_up_is_no_work(name, monkeypatch, capsys):
    """A minute of start-up and a first tenth precede a tenth per ten seconds."""
    clock = [0.0]
    monkeypatch.setattr("pele_ocl.cli.progress.time.monotonic", lambda: clock[0])
    line, call_of = LINES[name]
    line.start = line.last = 0.0
    call = call_of(line)
    for tenths in range(1, 6):
        clock[0] = 50.0 + 10 * tenths
        call(tenths / 10)
    shown = capsys.readouterr().err.splitlines()
    assert [text.rpartition(", ")[2] for text in shown[1:]] == ["80 s left", "70 s left", "60 s left", "50 s left"]
    assert "s left" not in shown[0]


def test_a_resumed_run_counts_only_its_own_work(monkeypatch, capsys):
    clock = iter([0.0, 5.0, 25.0])
    monkeypatch.setattr("pele_ocl.cli.progress.time.monotonic", lambda: next(clock))
    line = FrameLine("Frames", 100)
    line(0.5)
    line(0.6)
    assert capsys.readouterr().err == "Frames: 60 of 100 frames, 2.00 s per frame, 80 s left\n"


def test_figures_have_no_exponent():
    assert [figures(value) for value in (0.01234, 1.0, 99.5, 12_345.6)] == ["0.0123", "1", "99.5", "12,346"]
    assert speed_text(741_234.0, 74.1234, 10_000) == "741,234 ns/day in total, 74.12 per replica"
    assert speed_text(74.1234, 74.1234, 1) == "74.12 ns/day"
