"""Numbers and axes of charts."""

from __future__ import annotations

import re

import peers_charts
import pytest
import readme_chart
from chart_helpers import unreadable
from harness.charts import logarithmic, new_figure, plain
from harness.panels import DARK, draw, panels

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
    axes.set_xlim(0.1, 32000.0)
    axes.figure.draw_without_rendering()
    left, right = axes.get_xlim()
    shown = [tick.get_text() for tick in axes.get_xticklabels() if left <= tick.get_position()[0] <= right]
    assert shown == ["0.1", "1", "10", "100", "1,000", "10,000"]
    assert {tick.get_text() for tick in axes.get_xticklabels(minor=True)} == {""}


@pytest.mark.parametrize("name", peers_charts.NAMES)
def test_charts_of_peers_are_made_of_the_tables(name, tmp_path):
    """At the width of a page, no text cut and none over another; colours for light pages and for dark ones."""
    page = (readme_chart.TABLES / f"{name}.md").read_text()
    figure = draw(tmp_path / "a.svg", page, peers_charts.title_of(page))
    width, height = figure.get_size_inches()
    assert width <= 9
    assert height <= width
    assert not unreadable(figure)
    for panel in panels(page):
        assert len(panel.names) == len(panel.values) >= 3
        assert sum(name.startswith("pele-ocl, ") for name in panel.names) in (1, 2)
    assert len(panels(page)) == page.count("| code")
    text = (tmp_path / "a.svg").read_text()
    for light, dark in DARK.items():
        assert text.count(light) > 2, "the colour is used beside its rules"
        assert dark in text
    assert (readme_chart.DOCS / "figures" / f"{name}.svg").read_text().count("<text") == text.count("<text")


def test_the_chart_of_the_readme_is_made_of_the_tables(tmp_path):
    """Six bars on one axis, each with both figures; the page has the same ones."""
    cpu = (readme_chart.TABLES / "cpu-peers.md").read_text()
    pairs = readme_chart.calls(cpu, "Intel(R) OpenCL", "OpenMM 8.6.1 CPU")
    assert list(pairs) == ["ubiquitin", "src3"]
    for ours, theirs in pairs.values():  # as the tables print them, in ms
        assert f"{1e3 * ours:.4g}".rstrip("0") in cpu
        assert f"{1e3 * theirs:.4g}" in cpu
    bars = readme_chart.bars()
    assert len(bars) == 6
    page = (readme_chart.DOCS / "performance.md").read_text()
    rows = re.findall(
        r"^\| .+ \| ([\d.,]+)(?: m?s|/s) \| ([\d.,]+)(?: m?s|/s) \| ([\d.]+) \| `[\w.]+.*` \|$", page, re.MULTILINE
    )
    assert len(rows) == len(bars)
    for bar, (_, _, ratio) in zip(bars, rows, strict=True):
        assert float(f"{bar.ratio:.2g}" if bar.ratio < 100 else f"{bar.ratio:.0f}") == float(ratio), bar.what
    readme_chart.draw(tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"
    assert "docs/figures/beside.png" in (readme_chart.DOCS.parent / "README.md").read_text()
