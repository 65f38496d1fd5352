"""Chart of README.md: how many times as fast as other programs, each bar of one run, from the tables and pages.

python tests/benchmarks/readme_chart.py draws docs/figures/beside.png
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from harness.charts import logarithmic, new_figure, plain, save

DOCS = Path(__file__).parents[2] / "docs"
TABLES, CHART = Path(__file__).parent / "measured", DOCS / "figures" / "beside.png"
NAMES = {"ubiquitin": "1,231 atoms", "src3": "4,427 atoms", "ruvab": "30,211 atoms"}
COLOUR = "#1f6fb4"


@dataclass(frozen=True)
class Bar:
    """What was computed, beside what and where; the time, or the steps per second, of both.

    command : what measured it
    unit : s, or steps/s, of which more is better
    """

    what: str
    beside: str
    ours: float
    theirs: float
    command: str
    unit: str = "s"

    @property
    def ratio(self) -> float:
        """Times as fast."""
        return self.ours / self.theirs if self.unit == "steps/s" else self.theirs / self.ours


def calls(table: str, ours: str, theirs: str) -> dict[str, tuple[float, float]]:
    """Seconds of a call of the whole energy with its gradient, by structure, in a table that peers.py made.

    ours, theirs : texts that begin the row, or stand in it
    """
    pairs = {}
    for name, section in re.findall(r"^### energy: (\w+), float32\n(.*?)(?=^### |\Z)", table, re.DOTALL | re.MULTILINE):
        rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in section.splitlines() if "|" in line]
        column = rows[0].index("ms a call")
        found = [
            next(float(row[column]) / 1e3 for row in rows[2:] if wanted in " ".join(row[:2]))
            for wanted in (ours, theirs)
        ]
        pairs[name] = found[0], found[1]
    return pairs


def models(table: str) -> tuple[float, float]:
    """Seconds of a thousand models minimized in one call, and of OpenMM's one after another, by twenty of them."""
    mixed = re.search(
        r"1,000 of them, .* take ([\d.]+) s, all converged\. OpenMM minimized twenty of them in ([\d.]+) s", table
    )
    assert mixed is not None
    return float(mixed[1]), 1000 * float(mixed[2])


def numbers(path: Path, pattern: str) -> tuple[float, float]:
    """Two numbers of a page by a pattern with two groups, without their commas."""
    found = re.search(pattern, path.read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None, pattern
    one, two = (float(group.replace(",", "")) for group in found.groups())
    return one, two


def bars() -> list[Bar]:
    """All bars, from one molecule to thousands."""
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
        Bar("Poisson-Boltzmann energy, 4,427 atoms, 161^3 points", "APBS, CPU", ours, theirs,
            "pb.py peer src3"),
        Bar("energy and gradient, 30,211 atoms", "OpenMM, NVIDIA H200", *gpu["ruvab"], peers),
        Bar("energy and gradient, 4,427 atoms", "OpenMM, two CPU cores", *cpu["src3"], peers),
        Bar("MM/GBSA, 40 frames of 4,689 atoms", "MMPBSA.py, CPU", frames, mmpbsa,
            "beside_mmpbsa.py"),
        Bar("1,000 models minimized", "OpenMM, one after another, NVIDIA H200",
            *models(table["h200-minimize"]), "mixed.py"),
        Bar("dynamics of 4,096 replicas, 96 atoms", "one context of OpenMM, NVIDIA H200", *steps,
            "dynamics.py", "steps/s"),
    ]  # fmt: skip
    return sorted(found, key=lambda bar: bar.ratio)


def spoken(bar: Bar) -> str:
    """Both figures of a bar."""
    if bar.unit != "s":
        return f"{bar.ours:,.0f} and\n{bar.theirs:,.0f} steps/s"
    if bar.theirs < 1:
        return f"{1e3 * bar.ours:.3g} and {1e3 * bar.theirs:.3g} ms"
    return f"{plain(bar.ours)} and {plain(bar.theirs)} s"


def draw(path: Path) -> None:
    """Draw the bars into a PNG file."""
    shown = bars()
    figure = new_figure(9.2, 4.2)
    axes = figure.subplots()
    axes.barh(range(len(shown)), [bar.ratio - 1 for bar in shown], left=1, height=0.5, color=COLOUR)
    for place, bar in enumerate(shown):
        said = f"{bar.ratio:.1f}x" if bar.ratio < 10 else f"{bar.ratio:.0f}x"
        axes.annotate(said, (bar.ratio, place), (5, 0), textcoords="offset points", va="center", fontsize=11,
                      color=COLOUR, fontweight="bold")  # fmt: skip
        axes.annotate(spoken(bar), (bar.ratio, place), (42, 0), textcoords="offset points", va="center", fontsize=8,
                      color="#555555", bbox={"facecolor": "white", "edgecolor": "none", "pad": 1})  # fmt: skip
    logarithmic(axes.xaxis)
    axes.set_xlim(1, 2500)
    axes.invert_yaxis()
    axes.set_yticks(range(len(shown)), [f"{bar.what}\nbeside {bar.beside}" for bar in shown], fontsize=9.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.set_xlabel("times as fast as the other program in the same run")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    save(figure, path)


if __name__ == "__main__":
    draw(CHART)
