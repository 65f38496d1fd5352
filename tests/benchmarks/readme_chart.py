"""Chart of README.md: our time and OpenMM's for equal work, from the tables in docs/performance.

python tests/benchmarks/readme_chart.py draws docs/figures/beside-openmm.png
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from harness.charts import new_figure, save

DOCS = Path(__file__).parents[2] / "docs"
TABLES, CHART = DOCS / "performance", DOCS / "figures" / "beside-openmm.png"
NAMES = {"ubiquitin": "ubiquitin, 1,231 atoms", "src3": "c-Src kinase, 4,427 atoms", "ruvab": "RuvAB, 30,211 atoms"}
OURS, THEIRS = "#1f6fb4", "#8a8a8a"


@dataclass(frozen=True)
class Pair:
    """One line of a panel: what was computed, and the seconds that we and OpenMM took."""

    what: str
    ours: float
    theirs: float


def calls(table: str, ours: str, theirs: str) -> list[Pair]:
    """Calls of the whole energy with its gradient: `ms a call` in a table that peers.py made.

    ours, theirs : texts that begin the row, or stand in it
    """
    pairs = []
    for name, section in re.findall(r"^### energy: (\w+), float32\n(.*?)(?=^### |\Z)", table, re.DOTALL | re.MULTILINE):
        rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in section.splitlines() if "|" in line]
        column = rows[0].index("ms a call")
        found = [
            next(float(row[column]) / 1e3 for row in rows[2:] if wanted in " ".join(row[:2]))
            for wanted in (ours, theirs)
        ]
        pairs.append(Pair(NAMES[name], *found))
    return pairs


def minima(table: str) -> list[Pair]:
    """Minimisation of one structure from 0.1 A of noise to 1 kJ/mol/nm, in the table of minimize.py."""
    pairs = []
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split("|")]
        if cells[0] in NAMES and cells[2:4] == ["0.1", "1"]:
            pairs.append(Pair(NAMES[cells[0]], float(cells[5]), float(cells[7])))
    return pairs


def batches(table: str) -> list[Pair]:
    """Minimisation of a thousand structures in one call; OpenMM's one after another, by what one of them takes."""
    same = re.search(r"1,000 starts of ubiquitin together, tolerance 1: ([\d.]+) s, .* take ([\d.]+) s each", table)
    mixed = re.search(
        r"1,000 of them, .* take ([\d.]+) s, all converged\. OpenMM minimised twenty of them in ([\d.]+) s", table
    )
    assert same is not None
    assert mixed is not None
    return [
        Pair("1,000 starts of ubiquitin", float(same[1]), 1000 * float(same[2])),
        Pair("1,000 models, 100-400 residues", float(mixed[1]), 1000 * float(mixed[2])),
    ]


def spoken(seconds: float) -> str:
    """A time with the unit that suits it."""
    if seconds < 1:
        return f"{1e3 * seconds:.3g} ms" if seconds < 0.0995 else f"{1e3 * seconds:.0f} ms"
    return f"{seconds:.3g} s" if seconds < 120 else f"{seconds / 60:.2g} min"


def draw(path: Path) -> None:
    """Draw the panels into a PNG file."""
    cpu, gpu, minimising = (
        (TABLES / f"{name}.md").read_text() for name in ("cpu-peers", "h200-peers", "h200-minimize")
    )
    panels = {
        "Energy and gradient, one call\ntwo CPU cores": calls(cpu, "Intel(R) OpenCL", "OpenMM 8.6.1 CPU"),
        "Energy and gradient, one call\none NVIDIA H200": calls(gpu, "pele-ocl", "OpenMM 8.6.1 CUDA"),
        "One structure to its minimum\none NVIDIA H200": minima(minimising),
        "A thousand structures to their minima\none NVIDIA H200": batches(minimising),
    }
    figure = new_figure(9.2, 5.6)
    for axes, (title, pairs) in zip(figure.subplots(2, 2).flat, panels.items(), strict=True):
        for place, pair in enumerate(pairs):
            axes.plot([pair.ours, pair.theirs], [place, place], color="#c9d6e2", linewidth=5, zorder=1)
            axes.scatter(
                [pair.theirs], [place], s=80, color=THEIRS, zorder=2, label="OpenMM 8.6" if place == 0 else None
            )
            axes.scatter([pair.ours], [place], s=80, color=OURS, zorder=3, label="pele-ocl" if place == 0 else None)
            # The text of a point stands beside it, outside of the line between both.
            for seconds, side, where in ((pair.ours, "right", -8), (pair.theirs, "left", 8)):
                axes.annotate(spoken(seconds), (seconds, place), (where, 0), textcoords="offset points", ha=side,
                              va="center", fontsize=10)  # fmt: skip
            middle = (pair.ours * pair.theirs) ** 0.5
            axes.annotate(f"{pair.theirs / pair.ours:.2g}x", (middle, place), (0, 7), textcoords="offset points",
                          ha="center", fontsize=10, color=OURS, fontweight="bold")  # fmt: skip
            axes.annotate(pair.what, (0.02, place), (0, 22), xycoords=("axes fraction", "data"),
                          textcoords="offset points", fontsize=9.5, color="#333333")  # fmt: skip
        axes.set_xscale("log")
        fastest, slowest = min(pair.ours for pair in pairs), max(pair.theirs for pair in pairs)
        room = (slowest / fastest) ** 0.42
        axes.set_xlim(fastest / room, slowest * room)
        axes.set_ylim(len(pairs) - 0.5, -0.75)
        axes.set_yticks([])
        axes.tick_params(axis="x", which="both", bottom=False, labelbottom=False)
        axes.set_title(title, fontsize=11, loc="left")
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)
        axes.spines["bottom"].set_color("#bbbbbb")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], loc="outside lower center", ncols=2, frameon=False, fontsize=11)
    save(figure, path)


if __name__ == "__main__":
    draw(CHART)
