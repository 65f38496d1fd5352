"""Pictures of maps, drawn with matplotlib, which the extra `plot` installs."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...atoms import Floats
from ...common.arguments import file_path, file_paths
from ...common.errors import FormatError, PeleError, printable
from ...common.writing import replacing
from ...grid import Map, require_map

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = "RdBu"  # red for negative, blue for positive values, the convention for potentials
_FROM_ZERO = "Blues"  # for maps without negative values, such as standard deviations or field magnitudes
_PERCENTILE = 97.0  # of the magnitudes, where the colours end, so that a few points near atoms do not dominate
_LINES = (0.05, 0.2, 0.5)  # isolines, as fractions of the colour range
_WIDTH, _NARROWEST = 11.0, 8.5  # width of the picture, inches; the minimum is that of the note below
_TALLEST, _LOWEST = 6.0, 1.2  # height of the panels
_LEFT, _RIGHT, _BOTTOM, _TOP, _GAP, _BAR = 0.65, 1.05, 1.0, 0.75, 0.75, 0.16
_DPI = 160
_MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True)
class _Slice:
    """A slice of a map at `at` on the axis `normal`, drawn with the axis `across` to the right and `up` upwards."""

    values: NDArray[np.floating]  # (n up, n across)
    across: int
    up: int
    normal: int
    at: float
    points: tuple[Floats, Floats]  # positions of the values along across and up
    extent: tuple[float, float, float, float]  # range of the points plus half a step on each side

    @property
    def size(self) -> tuple[float, float]:
        left, right, low, high = self.extent
        return right - left, high - low


def draw_slices(path: str | PathLike[str], map_: Map, inputs: Iterable[str | PathLike[str]] = ()) -> None:
    """Draw the three central slices of a map with a colour bar to a PNG file.

    The colour range is symmetric about zero, or starts at zero if no value is negative. It ends near the 97th
    percentile of the magnitudes in the slices. The picture states this limit, the fraction of values beyond it, and the
    range of the whole map.

    inputs : files that must not be overwritten

    Raises PeleError if matplotlib is not installed, and FormatError for a suffix other than .png or a read-only
    directory.

    >>> import matplotlib
    >>> map_ = pele_ocl.potmap("data/structures/trialanine.pdb", spacing=2).map
    >>> pele_ocl.draw_slices("slices.png", map_)
    """
    require_map(map_)
    require_png(file_path(path))
    inputs = file_paths("inputs", inputs)
    figure = _figure(map_)
    with replacing(path, inputs) as temporary, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # characters missing in the font are drawn as boxes
        figure.savefig(
            temporary, format="png", dpi=_DPI, facecolor="white", bbox_inches="tight", pad_inches=0.15,
            metadata={"Software": "pele-ocl"},
        )  # fmt: skip


def require_png(path: str | PathLike[str]) -> None:
    """Raise the errors of draw_slices before any work is done."""
    if not str(path).lower().endswith(".png"):
        raise FormatError(f"{path}: unknown suffix; pictures end in .png")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise PeleError(
            "pictures need matplotlib, which is not installed: pip install 'pele-ocl[plot]', or make plot in a checkout"
        ) from None


def _figure(map_: Map) -> Figure:
    """Draw the slices side by side at the same scale."""
    from matplotlib.figure import Figure

    slices = [_central(map_, normal) for normal in (2, 1, 0)]
    end = _range([part.values for part in slices])
    start = 0.0 if map_.values.min() >= 0 else -end
    wide, high = np.array([part.size for part in slices]).T
    scale = min((_WIDTH - _LEFT - _RIGHT - 2 * _GAP) / wide.sum(), _TALLEST / high.max())  # inches per A
    tall = max(high.max() * scale, _LOWEST)
    width = max(_LEFT + wide.sum() * scale + 2 * _GAP + _RIGHT, _NARROWEST)
    height = _BOTTOM + tall + _TOP
    figure = Figure(figsize=(width, height))
    left = _LEFT
    for part in slices:
        panel = np.array(part.size) * scale
        axes = figure.add_axes((left / width, _BOTTOM / height, panel[0] / width, panel[1] / height))
        image = _draw(axes, part, start, end)
        left += panel[0] + _GAP
    bar = figure.add_axes(((left - _GAP + 0.2) / width, _BOTTOM / height, _BAR / width, tall / height))
    beyond = float(np.mean([(np.abs(part.values) > end).mean() for part in slices]))
    extend = "neither" if not beyond else "both" if start else "max"
    label = _shown(map_.full_unit) or "unit not given"
    figure.colorbar(image, cax=bar, extend=extend, format=lambda value, _: _number(value))
    bar.set_ylabel(label, parse_math=False)
    bar.tick_params(labelsize=8)
    figure.text(
        _LEFT / width,
        1 - 0.3 / height,
        _shown(map_.title) or "Map",
        size=13,
        weight="bold",
        va="center",
        parse_math=False,
    )
    figure.text(
        _LEFT / width,
        0.25 / height,
        _note(map_, start, end, beyond),
        size=8,
        color="0.35",
        va="center",
        parse_math=False,
    )
    return figure


def _shown(text: str) -> str:
    """Convert a text to one line without control characters."""
    return printable(text).replace("\n", " ")


def _note(map_: Map, start: float, end: float, beyond: float) -> str:
    """Return the text below the picture: the range of the whole map, and the values of the isolines."""
    least, most = (_number(float(value)) for value in (map_.values.min(), map_.values.max()))
    sentence, sign = f"The whole map spans {least} to {most} {_shown(map_.unit)}".rstrip(), "±" if start else ""
    if beyond:
        sentence += f"; colours are clipped at {sign}{_number(end)}, beyond which lie {beyond:.1%} of these slices"
    levels = [*(["0 (thick)"] if start else []), *(f"{sign}{_number(share * end)}" for share in _LINES)]
    return f"{sentence}.\nLines: {', '.join(levels)}."


def _number(value: float) -> str:
    """Format a number with four digits and thousands separators, without an exponent if possible."""
    if value == 0 or not 1e-6 <= abs(value) < 1e12:
        return f"{value:.4g}".replace("-", _MINUS)
    text = f"{value:,.{max(0, 3 - math.floor(math.log10(abs(value))))}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text).replace("-", _MINUS)


def _central(map_: Map, normal: int) -> _Slice:
    """Return the slice through the middle of the map, perpendicular to the axis `normal`."""
    middle = map_.grid.shape[normal] // 2
    across, up = (axis for axis in (0, 1, 2) if axis != normal)
    axes, half = map_.grid.axes(), map_.grid.spacing / 2
    start, stop = map_.grid.origin - half, map_.grid.last + half
    return _Slice(
        np.take(map_.values, middle, axis=2 - normal),
        across,
        up,
        normal,
        float(axes[normal][middle]),
        (axes[across], axes[up]),
        (float(start[across]), float(stop[across]), float(start[up]), float(stop[up])),
    )


def _range(slices: list[NDArray[np.floating]]) -> float:
    """Choose the end of the colour range, a round number."""
    magnitudes = np.abs(np.concatenate([values.ravel() for values in slices]))
    return float(f"{float(np.percentile(magnitudes, _PERCENTILE)) or float(magnitudes.max()) or 1.0:.0e}")


def _draw(axes: Any, part: _Slice, start: float, end: float) -> Any:
    """Draw a slice with its isolines. Returns the image for the colour bar."""
    image = axes.imshow(
        part.values, cmap=_COLOURS if start else _FROM_ZERO, vmin=start, vmax=end, origin="lower", extent=part.extent,
        interpolation="bilinear",
    )  # fmt: skip
    levels = [0.0, *(sign * share * end for share in _LINES for sign in (-1, 1))]
    crossed = sorted(level for level in levels if part.values.min() < level < part.values.max())
    if crossed and min(part.values.shape) > 1:
        widths = [0.45 if level else 0.9 for level in crossed]
        axes.contour(
            *part.points, part.values, crossed, colors="0.15", linewidths=widths, linestyles="solid", alpha=0.55
        )
    axes.set_xlabel(f"{'xyz'[part.across]} (Å)", size=9)
    axes.set_ylabel(f"{'xyz'[part.up]} (Å)", size=9, labelpad=2)
    axes.set_title(f"{'xyz'[part.normal]} = {part.at:.2f} Å".replace("-", _MINUS), size=9, color="0.25")
    axes.tick_params(labelsize=8, length=2.5, color="0.5")
    axes.spines[:].set_color("0.5")
    return image
