"""Chart of a comparison from the tables of peers.py: one column of panels per work, one row per system."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pele_ocl.common.writing import replacing

from .charts import logarithmic, new_figure, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GROUP = re.compile(r"^### (\w+): ([^\n]+), (float\d\d)\n(.*?)(?=^### |\Z)", re.DOTALL | re.MULTILINE)
UNITS = ("ms", "G evals/s")
OURS, THEIRS, INK, PAPER = "#0072b2", "#8a8a8a", "#222222", "#ffffff"
DARK = {OURS: "#56b4e9", THEIRS: "#9a9a9a", INK: "#e6e6e6", PAPER: "#131416"}  # in place of each on a dark page
ROOM_FOR_NUMBERS = 0.55  # of the length of the longest bar
SMALL = 9.0  # points of letters


@dataclass(frozen=True)
class Panel:
    """A table of the page: times by code; scaled numbers are marked with *."""

    work: str
    system: str
    precision: str
    unit: str
    names: tuple[str, ...]
    values: tuple[float, ...]
    labels: tuple[str, ...]


def panels(page: str) -> list[Panel]:
    """Read the tables with numbers from a page of peers.py."""
    found = []
    for work, system, precision, text in GROUP.findall(page):
        rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in text.splitlines() if "|" in line]
        if rows:
            unit = next(unit for unit in UNITS if unit in rows[0])
            cells = [row[rows[0].index(unit)] for row in rows[2:]]
            values = tuple(float(cell.rstrip("*").replace(",", "")) for cell in cells)
            labels = tuple(plain(v) + "*" * cell.endswith("*") for v, cell in zip(values, cells, strict=True))
            names = tuple(_short(code, where) for code, where, *_ in rows[2:])
            found.append(Panel(work, system, precision, unit, names, values, labels))
    return found


def _short(code: str, where: str) -> str:
    """Return the label of a bar; for pele-ocl the runtime instead of the variant, which differs between panels."""
    runtime = re.search(r"\((.+)\)$", where)
    return f"pele-ocl, {runtime[1]}" if code.startswith("pele-ocl ") and runtime else code


def figure_of(found: Sequence[Panel], title: str) -> Figure:
    """Draw maps over the full width, and all other works with one column per work and one row per system."""
    wide = [panel for panel in found if panel.work in ("potmap", "mesh")]
    rest = [panel for panel in found if panel not in wide]
    works = list(dict.fromkeys(panel.work for panel in rest))
    rows: list[list[Panel]] = [[panel] for panel in wide]
    for of in dict.fromkeys(_molecule(panel) for panel in rest):
        rows.append([panel for work in works for panel in rest if panel.work == work and _molecule(panel) == of])
    heights = [0.9 + 0.24 * max(len(panel.names) for panel in row) for row in rows]
    figure = new_figure(9.0, 0.5 + sum(heights))
    figure.set_facecolor(PAPER)
    figure.suptitle(f"{title}; bars are logarithmic", fontsize=SMALL + 2, color=INK)
    for row, part in zip(
        rows, figure.subfigures(len(rows), 1, squeeze=False, height_ratios=heights)[:, 0], strict=True
    ):
        part.set_facecolor(PAPER)
        for number, (panel, axes) in enumerate(zip(row, part.subplots(1, len(row), squeeze=False)[0], strict=True)):
            _draw(panel, axes, named=number == 0 or panel.names != row[0].names)
    return figure


def _molecule(panel: Panel) -> tuple[str, str]:
    """Return the molecule without details ("src3, 985,203 pairs within 12 A"), and the precision."""
    return panel.system.partition(",")[0], panel.precision


def _draw(panel: Panel, axes: Axes, named: bool) -> None:
    """Draw the bars of a panel on a logarithmic axis that starts below the shortest one."""
    places = range(len(panel.names))
    colours = [OURS if name.startswith("pele-ocl") else THEIRS for name in panel.names]
    bars = axes.barh(places, panel.values, 0.7, color=colours)
    axes.bar_label(bars, panel.labels, padding=3, fontsize=SMALL, color=INK)
    axes.set_yticks(places, panel.names if named else [""] * len(places), fontsize=SMALL, color=INK)
    axes.invert_yaxis()
    logarithmic(axes.xaxis)
    low, high = min(panel.values) / 2, max(panel.values)
    axes.set_xlim(low, high * (high / low) ** ROOM_FOR_NUMBERS)
    axes.tick_params(bottom=False, labelbottom=False, left=False, which="both")  # the numbers stand at the bars
    axes.set_facecolor(PAPER)
    for side in ("top", "right", "bottom"):
        axes.spines[side].set_visible(False)
    axes.spines["left"].set_color(THEIRS)
    unit = panel.unit if panel.unit == "ms" else f"{panel.unit}, more is better"
    scaled = "; * scaled from a part of the map" if any("*" in label for label in panel.labels) else ""
    about = f"{panel.work}, {panel.precision}, {unit}{scaled}\n{panel.system}"
    axes.set_title(about, fontsize=SMALL, loc="left", color=INK)


def draw(path: Path, page: str, title: str) -> Figure:
    """Draw the tables of a page to .png, or to .svg with colours for light and dark pages.

    Raises PeleError where matplotlib is not installed.
    """
    figure = figure_of(panels(page), title)
    with replacing(path) as temporary:
        if path.suffix.lower() == ".svg":
            _save_svg(figure, temporary)
        else:
            figure.savefig(temporary, format="png", dpi=150)
    return figure


def _save_svg(figure: Figure, path: Path) -> None:
    """Write an SVG figure with text as text, and with CSS rules that change its colours on dark pages."""
    import matplotlib

    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "pele-ocl"}):
        figure.savefig(path, format="svg", metadata={"Date": None})
    rules = [f'[style*="{kind}: {one}"] {{ {kind}: {other} !important }}'
             for one, other in DARK.items() for kind in ("fill", "stroke")]  # fmt: skip
    style = f"<style>@media (prefers-color-scheme: dark) {{ {' '.join(rules)} }}</style>"
    path.write_text(path.read_text().replace("<defs>", f"{style}\n <defs>", 1))
