"""Numbers and axes of charts."""

from __future__ import annotations

import pytest

from pele_ocl.bench import charts
from pele_ocl.bench.charts import limit_bars, logarithmic, new_figure, plain
from pele_ocl.bench.potmap import BOOKS, Timing

pytest.importorskip("matplotlib")


@pytest.mark.parametrize(
    ("value", "text"), [(0.001234, "0.00123"), (12.34, "12.3"), (123_456.0, "123,456"), (1.0, "1.00"), (0.0, "0")]
)
def test_numbers_have_no_exponent(value, text):
    assert plain(value) == text


def test_decades_have_plain_numbers_and_nothing_stands_between():
    axes = new_figure(6, 2).subplots()
    axes.barh(range(2), [0.3, 4000.0])
    logarithmic(axes.xaxis)
    limit_bars(axes, [0.3, 4000.0], 8)
    axes.figure.draw_without_rendering()
    left, right = axes.get_xlim()
    assert left == pytest.approx(0.1)
    shown = [tick.get_text() for tick in axes.get_xticklabels() if left <= tick.get_position()[0] <= right]
    assert shown == ["0.1", "1", "10", "100", "1,000", "10,000"]
    assert {tick.get_text() for tick in axes.get_xticklabels(minor=True)} == {""}


def test_what_the_books_measured_is_within_the_chart(tmp_path, monkeypatch):
    """A CPU's bars are shorter than the points of the books' GPU, and a GPU's of today are longer."""
    drawn = []
    monkeypatch.setattr(charts, "save", lambda figure, path: drawn.append(figure))
    for rate in (4e8, 5e12):
        timings = [
            Timing((64, 64, 64), 1024, "float32", name, "it", 1.0, False, rate, None, None, 0.0) for name in BOOKS
        ]
        charts.draw_rates(tmp_path / "a.png", timings, "")
        left, right = drawn[-1].axes[0].get_xlim()
        assert left < min(*BOOKS.values(), rate / 1e9)
        assert right > max(*BOOKS.values(), rate / 1e9)


def test_the_shortest_bar_can_be_seen():
    axes = new_figure(6, 2).subplots()
    logarithmic(axes.xaxis)
    limit_bars(axes, [10.0, 20.0], 8)
    assert axes.get_xlim()[0] == pytest.approx(1)
