"""Charts of timings; matplotlib draws them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import PeleError
from ..formats import replacing
from .potmap import BOOKS, Timing


def new_figure(width: float, height: float) -> Any:
    """An empty figure, inches. Raises PeleError where matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise PeleError("charts need matplotlib, which is not installed: pip install 'pele-ocl[plot]'") from None
    return Figure(figsize=(width, height), layout="constrained")


def save(figure: Any, path: Path) -> None:
    """Write a figure as PNG, whole or not at all."""
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=150)


def draw_rates(path: Path, timings: Sequence[Timing], title: str) -> None:
    """Rates of the variants as bars, the books' beside them, on a logarithmic scale, into a PNG file.

    Raises PeleError where matplotlib is not installed.
    """
    several = len({timing.precision for timing in timings}) > 1
    names = [f"{t.variant}, {t.precision}" if several else t.variant for t in timings]
    rates = [timing.evals_per_second / 1e9 for timing in timings]
    figure = new_figure(8, 1.2 + 0.4 * len(timings))
    axes = figure.subplots()
    places = range(len(timings))
    bars = axes.barh(places, rates, 0.6, color="tab:blue", label="measured")
    axes.bar_label(bars, [f"{rate:,.3g}" for rate in rates], padding=4)
    books = [(place, BOOKS[t.variant]) for place, t in enumerate(timings) if t.variant in BOOKS]
    if books:
        axes.scatter(*zip(*[(rate, place) for place, rate in books], strict=True), marker="D", color="tab:orange",
                     zorder=3, label="text books, GeForce 8800 (2007)")  # fmt: skip
        axes.legend(loc="lower right")
    axes.set_yticks(places, names)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlim(min(rates) / 2, max(rates) * 4)
    axes.set_xlabel("billion atom evaluations a second")
    axes.set_title(title, fontsize=10)
    save(figure, path)
