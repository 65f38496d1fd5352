"""Charts of the course: bars and curves, drawn for light and for dark pages.

The colours of Okabe and Ito are suitable for colour-blind readers; labels are next to the data, so no legend is
needed.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Background, text, grid, then a colour for each series.
THEMES = {
    "light": ("#ffffff", "#222222", "#d0d0d0", ("#0072b2", "#c24e00", "#222222", "#00805c")),
    "dark": ("#131416", "#e6e6e6", "#4a4a4a", ("#56b4e9", "#e69f00", "#f0e442", "#cc79a7")),
}
# A page shows one of the two: what its own switch says (Furo's, JupyterLab's), else what the reader's screen does.
SHOWN = """<style>
.course-dark { display: none }
body:is([data-theme="dark"], [data-jp-theme-light="false"]) .course-dark { display: inline }
body:is([data-theme="dark"], [data-jp-theme-light="false"]) .course-light { display: none }
@media (prefers-color-scheme: dark) {
    body:not([data-theme="light"], [data-jp-theme-light="true"]) .course-dark { display: inline }
    body:not([data-theme="light"], [data-jp-theme-light="true"]) .course-light { display: none }
}
</style>"""
MARKERS = "osD^"
WIDTH = 7.0  # inches
MOST_TICKS = 8
NAME_HEIGHT, HIGHEST_NAME = 0.09, 0.96  # of the height of the axes


class Measured(float):
    """Time of the fastest run, s, or a rate computed from it; `slowest` is that of the slowest run. Sums, products
    and quotients apply to both.
    """

    slowest: float

    def __new__(cls, fastest: float, slowest: float) -> Measured:
        """Combine the values of two runs."""
        made = super().__new__(cls, fastest)
        made.slowest = float(slowest)
        return made

    def __add__(self, other: float) -> Measured:
        return Measured(float(self) + float(other), self.slowest + getattr(other, "slowest", other))

    __radd__ = __add__

    def __mul__(self, factor: float) -> Measured:  # type: ignore[override]
        return Measured(float(self) * factor, self.slowest * factor)

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> Measured:  # type: ignore[override]
        return Measured(float(self) / divisor, self.slowest / divisor)

    def __rtruediv__(self, number: float) -> Measured:  # type: ignore[override]
        return Measured(number / float(self), number / self.slowest)


def errors(values: Sequence[float]) -> list[list[float]]:
    """Distance of the slowest run below and above each value, for error bars."""
    apart = [getattr(value, "slowest", value) - value for value in values]
    return [[max(0.0, -each) for each in apart], [max(0.0, each) for each in apart]]


@dataclass(frozen=True, eq=False)
class Chart:
    """Two figures of the same numbers; a notebook shows the one for the reader's theme.

    draw : draws the content of a figure, with the colours of text and series; height : inches
    table : the numbers of the bars, one per line
    """

    draw: Callable[[Figure, str, Sequence[str]], None]
    height: float
    table: str

    @cached_property
    def light(self) -> Figure:
        """Figure for light pages."""
        return self._drawn("light")

    @cached_property
    def dark(self) -> Figure:
        """Figure for dark pages."""
        return self._drawn("dark")

    def _drawn(self, theme: str) -> Figure:
        import matplotlib
        from matplotlib.figure import Figure

        background, text, grid, colours = THEMES[theme]
        style = {
            "text.color": text, "axes.labelcolor": text, "xtick.color": text, "ytick.color": text,
            "axes.edgecolor": grid, "grid.color": grid, "axes.facecolor": background, "axes.grid": True,
            "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True, "font.size": 11,
            "axes.titlesize": 12,
        }  # fmt: skip
        with matplotlib.rc_context(style):
            figure = Figure((WIDTH, self.height), facecolor=background, layout="constrained")
            self.draw(figure, text, colours)
            figure.draw_without_rendering()
        return figure

    def _repr_html_(self) -> str:
        alt = self.light.axes[0].get_title(loc="left")
        images = [
            f'<img class="course-{theme}" alt="{alt}" src="data:image/png;base64,{base64.b64encode(png).decode()}">'
            for theme, png in zip(THEMES, map(_png, (self.light, self.dark)), strict=True)
        ]
        return SHOWN + "".join(images)

    def save(self, stem: str | Path) -> list[Path]:
        """Write STEM-light.png and STEM-dark.png."""
        paths = [Path(f"{stem}-{theme}.png") for theme in THEMES]
        for path, figure in zip(paths, (self.light, self.dark), strict=True):
            path.write_bytes(_png(figure))
        return paths


def bars(title: str, values: Mapping[str, float], unit: str, *, log: bool = False) -> Chart | None:
    """Draw a bar for each value, with its name and number; None if matplotlib is not installed.

    values : numbers, or `Measured` ones, whose slowest run is drawn as a thin line
    """

    def draw(figure: Figure, text: str, colours: Sequence[str]) -> None:
        axes = figure.add_subplot()
        lengths = list(values.values())
        drawn = axes.barh(
            range(len(values)), lengths, 0.62, color=colours[0], xerr=errors(lengths), ecolor=text, capsize=3
        )
        axes.bar_label(drawn, [f"{value:.3g}" for value in values.values()], padding=4, color=text)
        axes.set(yticks=range(len(values)), yticklabels=list(values), xlabel=f"{unit}, logarithmic" if log else unit)
        axes.set_title(title, loc="left")
        axes.set_xscale("log" if log else "linear")
        axes.margins(x=0.14)
        if log:
            _tick_logarithms(axes.xaxis)
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)

    width = max(map(len, values))
    slowest = {name: getattr(value, "slowest", None) for name, value in values.items()}
    table = "".join(
        f"{name:{width}} {value:10.4g}  {unit}"
        + ("\n" if slowest[name] is None else f"; slowest run {slowest[name]:.4g}\n")
        for name, value in values.items()
    )
    return _chart(draw, 1.1 + 0.36 * len(values), table)


def curves(
    title: str, x: str, y: str, series: Mapping[str, tuple[Sequence[float], Sequence[float]]], *, log_y: bool = True,
    points: Mapping[str, tuple[float, float]] | None = None,
) -> Chart | None:  # fmt: skip
    """Draw up to four curves over a logarithmic axis, each labelled at its end; None without matplotlib.

    series : (x values, y values) by name; points : (x, y) by name, drawn as dots with their names
    """

    def draw(figure: Figure, text: str, colours: Sequence[str]) -> None:
        axes = figure.add_subplot()
        axes.set_xscale("log", base=2)
        axes.set_yscale("log" if log_y else "linear")
        for number, (of_x, of_y) in enumerate(series.values()):
            marker = None if points else MARKERS[number]
            axes.errorbar(
                of_x, of_y, errors(of_y), marker=marker, color=colours[number], linewidth=2, elinewidth=1, capsize=3
            )
        for at_x, at_y in (points or {}).values():
            axes.plot([at_x], [at_y], "o", color=colours[1])
        axes.set(xlabel=x, ylabel=y)
        axes.set_title(title, loc="left")
        if log_y:
            _tick_logarithms(axes.yaxis)
        else:
            axes.set_ylim(bottom=0)
        first = next(iter(series.values()))[0]
        if len(first) <= MOST_TICKS:
            axes.set_xticks(first, [f"{each:,}" for each in first])
        _name_points(axes, points or {}, text)
        _name_ends(axes, {name: (of_x[-1], of_y[-1]) for name, (of_x, of_y) in series.items()}, colours)

    return _chart(draw, 3.6)


def _tick_logarithms(axis: Any) -> None:
    """Set few tick labels on a logarithmic axis: powers of ten; for two decades or less 1, 2, 5; below round ones."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    axis.axes.autoscale_view()
    low, high = axis.get_view_interval()
    if high <= 5 * low:
        axis.set_major_locator(MaxNLocator(4))
    else:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high <= 100 * low else (1.0,), numticks=MOST_TICKS))
    if high <= 100 * low:
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _name_ends(axes: Any, ends: Mapping[str, tuple[float, float]], colours: Sequence[str]) -> None:
    """Write the name of each curve to the right of its end, shifted apart if ends are close."""
    places = _places(axes, ends)
    heights = _apart({name: y for name, (_, y) in places.items()})
    for name, colour in zip(ends, colours, strict=False):
        axes.annotate(
            name, (1.02, heights[name]), xycoords="axes fraction", va="center", color=colour, annotation_clip=False
        )


def _name_points(axes: Any, points: Mapping[str, tuple[float, float]], colour: str) -> None:
    """Write the name of each dot next to it, toward the centre, with a line to it if other names shift it away."""
    places = _places(axes, points)
    heights = _apart({name: y for name, (_, y) in places.items()})
    for name, (x, y) in places.items():
        left = x > 0.5
        axes.annotate(
            name, (x, y), (x - 0.03 if left else x + 0.03, heights[name]), xycoords="axes fraction",
            textcoords="axes fraction", va="center", ha="right" if left else "left", color=colour,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.6, "shrinkB": 4},
        )  # fmt: skip


def _places(axes: Any, points: Mapping[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    """Points in fractions of the axes."""
    if not points:
        return {}
    axes.figure.draw_without_rendering()
    across = axes.transAxes.inverted()
    return {name: tuple(across.transform(axes.transData.transform(point))) for name, point in points.items()}


def _apart(heights: Mapping[str, float]) -> dict[str, float]:
    """Heights of names that do not overlap: shifted up from each other, then down from the upper edge.

    A name above the edge would reduce the axes, and all names would move closer together.
    """
    names = sorted(heights, key=heights.__getitem__)
    apart, least = {}, -1.0
    for name in names:
        apart[name] = max(heights[name], least)
        least = apart[name] + NAME_HEIGHT
    most = HIGHEST_NAME
    for name in reversed(names):
        apart[name] = min(apart[name], most)
        most = apart[name] - NAME_HEIGHT
    return apart


def _chart(draw: Callable[[Figure, str, Sequence[str]], None], height: float, table: str = "") -> Chart | None:
    if find_spec("matplotlib") is None:
        print(f"{table}install matplotlib with pip install '.[plot]' to draw this")
        return None
    return Chart(draw, height, table)


def _png(figure: Figure) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=110, facecolor=figure.get_facecolor())
    return file.getvalue()
