"""Picture of a coloured surface from the front and the back, with labels drawn by matplotlib."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np

from ..atoms import Atoms
from ..common.arguments import file_path, file_paths
from ..common.errors import printable
from ..common.writing import replacing
from ..formats.maps.pictures import require_png
from .colouring import Colouring
from .orientation import principal_axes
from .rendering import Frame, render
from .surface import Surface

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDTH = 10.5  # inches
_LEFT, _GAP, _RIGHT, _TOP, _BAR = 0.3, 0.3, 1.3, 0.65, 0.16
_BELOW, _LINE = 0.45, 0.15  # height of the word below each panel, and of a line of text
_TALLEST, _LOWEST = 5.5, 1.5
_DPI = 160
_LETTERS = 165  # per line below the panels
_BACK = np.diag([-1.0, 1.0, -1.0])


def save_picture(
    path: str | PathLike[str], figure: Figure, inputs: Iterable[str | PathLike[str]] = ()
) -> None:  # fmt: skip
    """Write a figure as PNG. inputs : files that must not be overwritten. Raises FormatError."""
    require_png(file_path(path))
    with replacing(path, file_paths("inputs", inputs)) as temporary:
        figure.savefig(temporary, format="png", dpi=_DPI, facecolor="white", metadata={"Software": "pele-ocl"})


def picture_of(atoms: Atoms, surface: Surface, colouring: Colouring, title: str, about: str) -> Figure:
    """Draw the surface viewed along its shortest axis, from the front and the back, with a colour bar."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize
    from matplotlib.figure import Figure

    axes = principal_axes(atoms.positions)
    panel = (_WIDTH - _LEFT - _GAP - _RIGHT) / 2
    frame = Frame.around(surface.vertices @ axes[:2].T, round(panel * _DPI))
    tall = min(max(panel * frame.height / frame.width, _LOWEST), _TALLEST)
    text = _sentences(about, colouring)
    bottom = _BELOW + _LINE * len(text)
    height = bottom + tall + _TOP
    figure = Figure(figsize=(_WIDTH, height))
    rgb = colouring.rgb()
    for number, (turn, name) in enumerate(((np.eye(3), "front"), (_BACK, "back"))):
        view = turn @ axes
        own = Frame.around(surface.vertices @ view[:2].T, frame.width)
        left = _LEFT + number * (panel + _GAP)
        box = figure.add_axes((left / _WIDTH, bottom / height, panel / _WIDTH, tall / height))
        box.imshow(render(surface, rgb, view, own), origin="lower", interpolation="antialiased")
        box.set_axis_off()
        box.annotate(
            name, (0.5, 0), (0, -8), xycoords="axes fraction", textcoords="offset points", size=9, color="0.35",
            ha="center", va="top",
        )  # fmt: skip
        if not number:
            length = 10 * own.scale
            box.plot([0, length], [0, 0], color="0.2", linewidth=2, solid_capstyle="butt", clip_on=False)
            box.text(length / 2, own.height * 0.015, "10 Å", size=8, ha="center", va="bottom", color="0.2")
    colours = LinearSegmentedColormap.from_list("ramp", colouring.colours)
    bar = figure.add_axes((1 - (_RIGHT - 0.25) / _WIDTH, bottom / height, _BAR / _WIDTH, tall / height))
    shown = ScalarMappable(Normalize(-colouring.end, colouring.end), colours)
    figure.colorbar(shown, cax=bar, ticks=np.linspace(-1, 1, 5) * colouring.end, format=_number)
    bar.set_ylabel("\n".join(map(_line, colouring.label)), size=8, parse_math=False)
    bar.tick_params(labelsize=8)
    figure.text(_LEFT / _WIDTH, 1 - 0.3 / height, _line(title), size=13, weight="bold", va="center", parse_math=False)
    figure.text(_LEFT / _WIDTH, 0.1 / height, "\n".join(text), size=8, color="0.35", va="bottom", parse_math=False)
    return figure


def _sentences(about: str, colouring: Colouring) -> list[str]:
    """Return the lines below the panels, which describe the values on the surface."""
    values = colouring.known
    where = f"{colouring.place[:1].upper()}{colouring.place[1:]}" if colouring.place else "On the surface"
    spans = f"{where}, values range from {_number(values.min())} to {_number(values.max())} {colouring.unit}".rstrip()
    missing = f"; grey: no value, {colouring.missing:.0%} of the surface" if colouring.missing else ""
    beyond = f"; {colouring.beyond:.1%} of the surface is beyond the colour range" if colouring.beyond else ""
    return textwrap.wrap(_line(f"{spans}{beyond}{missing}. {about}"), _LETTERS)


def _number(value: float, _: object = None) -> str:
    return f"{value:.3g}".replace("-", "\N{MINUS SIGN}")


def _line(text: str) -> str:
    return printable(text).replace("\n", " ")
