"""Roofline plots of all ladders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..common.extras import extra
from .ceilings import Ceilings
from .ladders import RungTime

# Colour-blind safe colours of Okabe and Ito; text and background colours for light and dark pages.
COLOURS = ("#0072B2", "#D55E00", "#009E73")
DARK_COLOURS = ("#56B4E9", "#E69F00", "#2FC79A")
INK, PAPER = {False: "#222222", True: "#e8e8e8"}, {False: "#ffffff", True: "#16181c"}
MARKS = ("o", "s", "^")
WIDTH, HEIGHT = 11.0, 5.2  # inches
SPOT = 11.0  # size of a number or a mark, pixels
SIDES = [(12, 0), (-12, 0), (0, 13), (0, -13), (12, 13), (-12, -13), (12, -13), (-12, 13)]
LEGEND = (
    "Solid: memory's bytes, then multiply-adds. Dashed: reciprocal roots, for the rungs with fewest and most of them. "
    "Numbers after names: G evaluations per second."
)
TITLES = {
    "potmap": "potential maps, an atom at a point",
    "solvent": "Born radii, a pair of atoms",
    "nonbond": "gradients over a list, a pair",
}


def draw_ladders(path: Path, rungs: Sequence[RungTime], ceilings: Ceilings, *, is_dark: bool = False) -> Any:
    """Draw a panel for each ladder, with numbered rungs and a legend. Returns the matplotlib figure.

    path : .png, .svg or .pdf; is_dark : use colours for a dark background

    Raises InputError if matplotlib is not installed.
    """
    pyplot_figure = extra("matplotlib.figure", "a chart")
    ink, paper = INK[is_dark], PAPER[is_dark]
    colours = DARK_COLOURS if is_dark else COLOURS
    figure = pyplot_figure.Figure(figsize=(WIDTH, HEIGHT), facecolor=paper, layout=None)
    ladders = list(dict.fromkeys(rung.ladder for rung in rungs))
    axes = figure.subplots(1, len(ladders), squeeze=False)[0]
    figure.subplots_adjust(left=0.075, right=0.96, top=0.84, bottom=0.42, wspace=0.34)
    figure.text(0.01, 0.945, f"Ladders under the ceilings of {ceilings.device}, float32", color=ink, fontsize=12)
    for panel, ladder, colour, mark in zip(axes, ladders, colours, MARKS, strict=False):
        own = [rung for rung in rungs if rung.ladder == ladder and rung.counts is not None]
        _draw(panel, own, ceilings, colour, mark, ink, paper)
        panel.set_title(TITLES[ladder], color=ink, fontsize=9.5)
        _name(figure, panel, own, ink)
    figure.text(0.01, 0.02, LEGEND, color=ink, fontsize=8)
    axes[0].set_ylabel("G multiply-adds per second", color=ink, fontsize=9)
    figure.savefig(path, dpi=150, facecolor=paper)
    return figure


def _draw(
    panel: Any, rungs: Sequence[RungTime], ceilings: Ceilings, colour: str, mark: str, ink: str, paper: str
) -> None:  # fmt: skip
    """Draw the roofs and the rungs of a ladder."""
    ticker = extra("matplotlib.ticker", "a chart")
    places = [(of.multiply_adds / max(of.bytes, 1e-3), of.multiply_adds * rung.rate) for rung, of in _counted(rungs)]
    lowest, highest = min(x for x, _ in places) / 3, max(x for x, _ in places) * 3
    edge = ceilings.multiply_adds / ceilings.bytes
    highest = max(highest, 3 * edge)
    lowest = min(lowest, edge / 3)
    roof = [lowest, edge, highest]
    panel.set(xscale="log", yscale="log", facecolor=paper)
    panel.plot(roof, [min(x * ceilings.bytes, ceilings.multiply_adds) / 1e9 for x in roof], color=ink, linewidth=1.6)
    roots = [of.roots / of.multiply_adds for _, of in _counted(rungs) if of.roots]
    for share in {min(roots), max(roots)} if roots else ():
        level = ceilings.roots / share / 1e9
        panel.plot([lowest, highest], [level, level], color=ink, linewidth=0.9, linestyle=(0, (4, 3)))
    bottom = min(y for _, y in places) / 1e9 / 4
    top = 4 * max(ceilings.multiply_adds, *(y for _, y in places)) / 1e9
    panel.set(xlim=(lowest, highest), ylim=(bottom, top))
    panel.plot([x for x, _ in places], [y / 1e9 for _, y in places], mark, color=colour, markersize=6)
    _number(panel, [(x, y / 1e9) for x, y in places], ink)
    panel.set_xlabel("multiply-adds per requested byte", color=ink, fontsize=9)
    for axis in (panel.xaxis, panel.yaxis):  # label only decades, to avoid overlap
        axis.set_minor_formatter(ticker.NullFormatter())
    panel.tick_params(which="both", colors=ink, labelsize=8)
    panel.grid(True, which="major", color=ink, alpha=0.15, linewidth=0.6)
    for side in panel.spines.values():
        side.set_color(ink)


def _number(panel: Any, places: Sequence[tuple[float, float]], ink: str) -> None:
    """Number marks from 1, each on the first free side of its mark."""
    marks = [tuple(panel.transData.transform(place)) for place in places]
    taken = list(marks)
    for number, (x, y) in enumerate(marks, 1):
        spots = [(x + dx, y + dy) for step in (1, 2, 3) for dx, dy in ((step * ax, step * ay) for ax, ay in SIDES)]
        spot = max(spots, key=lambda at: (min(_apart(at, other) for other in taken) >= 1, -spots.index(at)))
        taken.append(spot)
        where = panel.transData.inverted().transform(spot)
        panel.text(*where, str(number), color=ink, fontsize=8, ha="center", va="center")


def _apart(one: tuple[float, float], other: tuple[float, float]) -> float:
    """Return the distance of two spots, relative to the size of a label."""
    return float(max(abs(one[0] - other[0]) / SPOT, abs(one[1] - other[1]) / SPOT))


def _counted(rungs: Sequence[RungTime]) -> list[tuple[RungTime, Any]]:
    return [(rung, rung.counts) for rung in rungs if rung.counts is not None]


def _name(figure: Any, panel: Any, rungs: Sequence[RungTime], ink: str) -> None:
    """Draw the names and rates of rungs below a panel, in two columns."""
    box = panel.get_position()
    half = -(-len(rungs) // 2)
    for k, rung in enumerate(rungs):
        x, y = box.x0 + (k // half) * box.width / 2 - 0.02, box.y0 - 0.155 - 0.048 * (k % half)
        figure.text(x, y, f"{k + 1} {rung.rung}  {rung.rate / 1e9:.3g}", color=ink, fontsize=8)
