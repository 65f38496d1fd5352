"""Numbers and axes of charts."""

from __future__ import annotations

import pytest
from harness.charts import limit_bars, logarithmic, new_figure, plain

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


def test_the_shortest_bar_can_be_seen():
    axes = new_figure(6, 2).subplots()
    logarithmic(axes.xaxis)
    limit_bars(axes, [10.0, 20.0], 8)
    assert axes.get_xlim()[0] == pytest.approx(1)
