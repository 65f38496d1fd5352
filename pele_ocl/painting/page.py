"""Offline HTML page of a molecule with its coloured surface, slices through the map, and atoms.

The page includes the JavaScript library from plotly's wheel.
"""

from __future__ import annotations

import html
import textwrap
from collections.abc import Iterable
from os import PathLike
from pathlib import Path

import numpy as np

from ..atoms import Atoms, Floats
from ..common.arguments import file_path, file_paths
from ..common.errors import FormatError, printable
from ..common.extras import extra
from ..common.writing import replacing
from ..formats.registry import scripts_way
from ..grid import Map
from .colouring import Colouring
from .orientation import principal_axes
from .packing import data_for_page, packed, packed_positions, packed_values
from .surface import Surface

_HERE = Path(__file__).parent
_MOST_POINTS = 1_500_000  # map points in a page, 4 MB
_MOST_ATOMS = 30_000  # atoms drawn in a page
_MARGIN = 3.0  # A, around the surface
_LETTERS = 18  # per line above the colour bar
_BEYOND = 20.0  # map values are clipped to this multiple of the colour range
_ELEMENTS = {"H": "#ffffff", "C": "#909090", "N": "#3050f8", "O": "#ff0d0d", "S": "#e6c619", "P": "#ff8000"}
_OTHER = "#b75fb8"


def require_page(path: str | PathLike[str]) -> None:
    """Check that a page can be written. Raises FormatError for a wrong suffix, InputError if plotly is missing."""
    if not str(path).lower().endswith((".html", ".htm")):
        raise FormatError(f"{path}: unknown suffix; pages end in .html, pictures in .png{scripts_way(path)}")
    _library()


def save_page(path: str | PathLike[str], page: str, inputs: Iterable[str | PathLike[str]] = ()) -> None:
    """Write a page. inputs : files that must not be overwritten. Raises FormatError."""
    with replacing(file_path(path), file_paths("inputs", inputs)) as temporary:
        temporary.write_text(page, encoding="utf-8")


def page_of(
    atoms: Atoms, surface: Surface, colouring: Colouring, map_: Map | None, title: str, about: str
) -> str:  # fmt: skip
    """Return the HTML page. map_ : map for slices, or None; about : description of the values

    Raises InputError if plotly is not installed.
    """
    parts = {
        "title": html.escape(_line(title)),
        "facts": html.escape(_facts(atoms, surface, colouring, map_)),
        "about": html.escape(_line(about)),
        "data": data_for_page(_data(atoms, surface, colouring, map_)),
        "library": _library().replace("</script", "<\\/script"),
        "script": (_HERE / "page.js").read_text(encoding="utf-8"),
    }
    page = (_HERE / "page.html").read_text(encoding="utf-8")
    pieces = [piece for part in page.split("{{") for piece in part.split("}}", 1)]
    return "".join(parts[piece] if k % 2 else piece for k, piece in enumerate(pieces))


def framed(page: str) -> str:
    """Return a page in a frame, for notebooks."""
    return f'<iframe srcdoc="{html.escape(page)}" style="width: 100%; height: 760px; border: 0"></iframe>'


def _library() -> str:
    """Return the source of plotly.js."""
    offline = extra("plotly.offline", "a page")
    return str(offline.get_plotlyjs())


def _line(text: str) -> str:
    return printable(text).replace("\n", " ")


def _facts(atoms: Atoms, surface: Surface, colouring: Colouring, map_: Map | None) -> str:
    """Return the line below the title."""
    of = f" of the {colouring.quantity} {colouring.place}" if colouring.place else ""
    facts = [
        f"{len(atoms):,} atoms",
        f"solvent-excluded surface of {surface.area:,.0f} Å², probe {surface.probe:.3g} Å, in steps of "
        f"{surface.spacing:.2g} Å",
        f"colours from -{colouring.end:g} to {colouring.end:g} {_line(colouring.unit)}".rstrip() + of,
    ]
    if map_ is not None:
        stride = _stride(map_)
        every = f", of which the page contains one in {stride} along each axis" if stride > 1 else ""
        facts.append(f"map of {' x '.join(map(str, map_.grid.shape))} points{every}")
    if colouring.beyond:
        facts.append(f"{colouring.beyond:.1%} of the surface is beyond the colour range")
    if colouring.missing:
        facts.append(f"grey: {colouring.missing:.0%} of the surface has no value")
    return "; ".join(facts) + "."


def _data(atoms: Atoms, surface: Surface, colouring: Colouring, map_: Map | None) -> dict[str, object]:
    """Return the data for page.js."""
    used, names = np.unique(surface.nearest, return_inverse=True)
    axes = principal_axes(atoms.positions)
    return {
        "surface": {
            "positions": packed_positions(surface.vertices),
            "faces": packed(surface.faces, "u4"),
            "nearest": packed(names, "u4"),
            "names": _names(atoms, used.tolist()),
        },
        "colouring": {
            "values": packed(colouring.values, "f4"),
            "end": colouring.end,
            "unit": html.escape(_line(colouring.unit)),
            "quantity": colouring.quantity,
            "label": [html.escape(part) for line in colouring.label for part in textwrap.wrap(_line(line), _LETTERS)],
            "colours": colouring.colours,
        },
        "atoms": _atoms(atoms) if len(atoms) <= _MOST_ATOMS else None,
        "map": None if map_ is None else _map(map_, colouring.end),
        "box": {
            "first": (surface.vertices.min(axis=0) - _MARGIN).tolist(),
            "last": (surface.vertices.max(axis=0) + _MARGIN).tolist(),
        },
        "camera": {"eye": _vector(axes[2]), "up": _vector(axes[1])},
    }


def _vector(xyz: Floats) -> dict[str, float]:
    return dict(zip("xyz", xyz.tolist(), strict=True))


def _names(atoms: Atoms, which: Iterable[int]) -> list[str]:
    """Return the names of atoms, as HTML."""
    if atoms.labels is None:
        return [f"atom {i + 1}" for i in which]
    return [html.escape(_line(atoms.labels.atom(i))) for i in which]


def _atoms(atoms: Atoms) -> dict[str, object]:
    elements = ["X"] * len(atoms) if atoms.labels is None else atoms.labels.elements.tolist()
    return {
        "positions": packed_positions(atoms.positions),
        "bonds": packed(atoms.bonds, "u4"),
        "names": _names(atoms, range(len(atoms))),
        "sizes": [3 if element == "H" else 5 for element in elements],
        "colours": [_ELEMENTS.get(element, _OTHER) for element in elements],
    }


def _stride(map_: Map) -> int:
    """Return the stride along each axis for map points in the page."""
    stride = 1
    while np.prod([-(-n // stride) for n in map_.grid.shape]) > _MOST_POINTS:
        stride += 1
    return stride


def _map(map_: Map, end: float) -> dict[str, object]:
    stride = _stride(map_)
    values = map_.values[::stride, ::stride, ::stride]
    return {
        "origin": map_.grid.origin.tolist(),
        "spacing": (map_.grid.spacing * stride).tolist(),
        "shape": list(values.shape[::-1]),
        "values": packed_values(values, _BEYOND * end),
    }
