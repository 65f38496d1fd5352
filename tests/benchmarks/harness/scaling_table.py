"""Tables in Markdown and a chart of scaling results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from .charts import logarithmic, new_figure, plain, save
from .markdown import table
from .scaling import QUANTITIES, End, Point


def section(name: str, curve: Iterable[Point | End]) -> str:
    """Return the curve of one quantity in Markdown."""
    cells = [["atoms", "variant", "kernels, ms", "in all, s", "device MiB", "bytes an atom"]]
    ends = []
    for point in curve:
        if isinstance(point, End):
            ends += ["", f"{point.n_atoms:,} atoms would take about {point.expected_seconds:,.0f} s."]
            continue
        cells.append([
            f"{point.n_atoms:,}", point.variant, plain(1e3 * point.seconds, 4), f"{point.whole_seconds:,.2f}",
            f"{point.device_bytes / 2**20:,.1f}", f"{point.bytes_per_atom:,.0f}",
        ])  # fmt: skip
    return "\n".join([f"### {name}: {QUANTITIES[name].about}", "", *table(cells, texts=(1,)), *ends]) + "\n"


def draw(path: Path, points: Sequence[Point], title: str) -> None:
    """Draw time and memory against the number of atoms, on logarithmic scales, to a PNG file.

    Raises PeleError where matplotlib is not installed.
    """
    figure = new_figure(9, 4.2)
    figure.suptitle(title, fontsize=11)
    time, memory = figure.subplots(1, 2)
    for name in dict.fromkeys(point.quantity for point in points):
        curve = [point for point in points if point.quantity == name]
        atoms = [point.n_atoms for point in curve]
        time.plot(atoms, [1e3 * point.seconds for point in curve], marker="o", markersize=4, label=name)
        memory.plot(atoms, [point.device_bytes / 2**20 for point in curve], marker="o", markersize=4, label=name)
    for axes, what in ((time, "kernels, ms"), (memory, "device memory, MiB")):
        logarithmic(axes.xaxis)
        logarithmic(axes.yaxis)
        axes.set_xlabel("atoms")
        axes.set_ylabel(what)
        axes.grid(alpha=0.3)
    time.legend()
    save(figure, path)
