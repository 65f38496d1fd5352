"""Chart of README.md with speed-ups over other programs, taken from tables and pages.

python tests/benchmarks/readme_chart.py draws docs/figures/beside.png
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.charts import logarithmic, new_figure, plain, save

DOCS = Path(__file__).parents[2] / "docs"
TABLES, CHART = Path(__file__).parent / "measured", DOCS / "figures" / "beside.png"
NAMES = {"ubiquitin": "1,231 atoms", "src3": "4,427 atoms", "ruvab": "30,211 atoms"}
COLOUR = "#1f6fb4"
WHITE_BOX: dict[str, Any] = {"bbox": {"facecolor": "white", "edgecolor": "none", "pad": 0}}
SMALL: dict[str, Any] = {"fontsize": 8.5, "color": "#555555"}


@dataclass(frozen=True)
class Bar:
    """A comparison: the work, the other program and the device; the times, or steps per second, of both.

    command : the command that measured it
    unit : s, or steps/s, for which higher is better
    """

    what: str
    program: str
    place: str
    ours: float
    theirs: float
    command: str
    unit: str = "s"

    @property
    def ratio(self) -> float:
        """Return the speed-up."""
        return self.ours / self.theirs if self.unit == "steps/s" else self.theirs / self.ours


def calls(table: str, ours: str, theirs: str) -> dict[str, tuple[float, float]]:
    """Return the seconds per call of the energy with gradient, by structure, from a table of peers.py.

    ours, theirs : texts that identify the rows
    """
    pairs = {}
    for name, section in re.findall(r"^### energy: (\w+), float32\n(.*?)(?=^### |\Z)", table, re.DOTALL | re.MULTILINE):
        rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in section.splitlines() if "|" in line]
        column = rows[0].index("ms per call")
        found = [
            next(float(row[column]) / 1e3 for row in rows[2:] if wanted in " ".join(row[:2]))
            for wanted in (ours, theirs)
        ]
        pairs[name] = found[0], found[1]
    return pairs


def models(table: str) -> tuple[float, float]:
    """Return the seconds for a thousand models minimized in one call, and one by one in OpenMM, from twenty of them."""
    mixed = re.search(
        r"1,000 models with .* take ([\d.]+) s, and all converge\. OpenMM minimized twenty of them in ([\d.]+) s", table
    )
    assert mixed is not None
    return float(mixed[1]), 1000 * float(mixed[2])


def numbers(path: Path, pattern: str) -> tuple[float, float]:
    """Return two numbers of a page from a pattern with two groups, without thousands separators."""
    found = re.search(pattern, path.read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None, pattern
    one, two = (float(group.replace(",", "")) for group in found.groups())
    return one, two


def bars() -> list[Bar]:
    """Return all bars, from one molecule to thousands."""
    table = {name: (TABLES / f"{name}.md").read_text() for name in ("cpu-peers", "h200-peers", "h200-minimize")}
    cpu = calls(table["cpu-peers"], "Intel(R) OpenCL", "OpenMM 8.6.1 CPU")
    gpu = calls(table["h200-peers"], "pele-ocl", "OpenMM 8.6.1 CUDA")
    apbs = DOCS / "coming-from-apbs.md"
    theirs, ours = numbers(
        apbs, r"\| `apbs` [^|]+\| \S+ \| [\d.]+ \| ([\d.]+) \|.*?\| `pele-ocl pb` \| \S+ \| [\d.]+ \| ([\d.]+) \|"
    )
    mmpbsa, frames = numbers(TABLES / "mmpbsa.md", r"^    MMPBSA\.py +([\d.]+) s.*?^    pele-ocl +([\d.]+) s")
    steps = numbers(TABLES / "h200-dynamics.md", r"^\| 96 atoms, 4,096 replicas \| ([\d,]+) \| ([\d,]+) \|")
    peers = "python tests/benchmarks/peers.py"
    found = [
        Bar("Poisson-Boltzmann energy, 4,427 atoms, 161³ points", "APBS", "CPU time", ours, theirs,
            "pb.py peer src3"),
        Bar("energy and gradient, 30,211 atoms", "OpenMM", "H200", *gpu["ruvab"], peers),
        Bar("energy and gradient, 4,427 atoms", "OpenMM", "two CPU cores", *cpu["src3"], peers),
        Bar("MM/GBSA, 40 frames of 4,689 atoms", "MMPBSA.py", "CPU time", frames, mmpbsa,
            "beside_mmpbsa.py"),
        Bar("1,000 models minimized", "OpenMM one by one", "H200",
            *models(table["h200-minimize"]), "mixed.py"),
        Bar("dynamics of 4,096 replicas, 96 atoms", "one OpenMM context", "H200", *steps,
            "dynamics.py", "steps/s"),
    ]  # fmt: skip
    return sorted(found, key=lambda bar: bar.ratio)


def spoken(bar: Bar) -> str:
    """Return both numbers of a bar as text, the other program's first, and the device."""
    if bar.unit != "s":
        theirs, ours, unit = f"{bar.theirs:,.0f}", f"{bar.ours:,.0f}", " steps/s"
    elif bar.theirs < 1:
        theirs, ours, unit = f"{1e3 * bar.theirs:.3g} ms", f"{1e3 * bar.ours:.3g} ms", ""
    else:
        theirs, ours, unit = f"{plain(bar.theirs)} s", f"{plain(bar.ours)} s", ""
    return f"{bar.program} {theirs}, pele-ocl {ours}{unit} ({bar.place})"


def draw(path: Path) -> None:
    """Draw the bars to a PNG file for half the width of a page."""
    shown = bars()
    figure = new_figure(5.2, 4.3)
    figure.suptitle("Compared with other programs", x=0.01, ha="left", fontsize=11, fontweight="bold")
    axes = figure.subplots()
    axes.barh(range(len(shown)), [bar.ratio - 1 for bar in shown], left=1, height=0.34, color=COLOUR)
    for row, bar in enumerate(shown):
        said = f"{bar.ratio:.1f}x" if bar.ratio < 10 else f"{bar.ratio:.0f}x"
        axes.annotate(said, (bar.ratio, row), (5, 0), textcoords="offset points", va="center", fontsize=11,
                      color=COLOUR, fontweight="bold")  # fmt: skip
        for height, text, font in ((18, bar.what, {"fontsize": 9.5}), (8, spoken(bar), SMALL)):
            axes.annotate(text, (1, row), (0, height), textcoords="offset points", va="bottom", **font, **WHITE_BOX)
    logarithmic(axes.xaxis)
    axes.set_xlim(1, 600)
    axes.set_ylim(len(shown) - 0.6, -0.95)
    axes.set_yticks([])
    axes.grid(axis="x", color="#e4e4e4", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.set_xlabel("times as fast (logarithmic)", fontsize=9.5)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    save(figure, path)


if __name__ == "__main__":
    draw(CHART)
