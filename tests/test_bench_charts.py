"""Numbers and axes of charts."""

from __future__ import annotations

import pytest
import readme_chart
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


def test_the_chart_of_the_readme_is_made_of_the_tables(tmp_path):
    cpu = (readme_chart.TABLES / "cpu-peers.md").read_text()
    pairs = readme_chart.calls(cpu, "Intel(R) OpenCL", "OpenMM 8.6.1 CPU")
    assert [pair.what for pair in pairs] == ["ubiquitin, 1,231 atoms", "c-Src kinase, 4,427 atoms"]
    for pair in pairs:  # as the tables print them, in ms
        assert f"{1e3 * pair.ours:.4g}".rstrip("0") in cpu
        assert f"{1e3 * pair.theirs:.4g}" in cpu
    minimising = (readme_chart.TABLES / "h200-minimize.md").read_text()
    assert len(readme_chart.minima(minimising)) == 3
    assert all(pair.theirs > pair.ours for pair in readme_chart.batches(minimising))
    readme_chart.draw(tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"
    assert "docs/figures/beside-openmm.png" in (readme_chart.DOCS.parent / "README.md").read_text()
