"""Pictures of a map: slices, the molecular surface, and scenes for other programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ..common import arguments
from ..common.errors import printable, shortened
from ..formats.maps.pictures import draw_slices, require_png
from ..painting import (
    LEAST_END,
    MOST_END,
    about_map,
    painted,
    quantity_of,
    require_scenes,
    write_scenes,
)
from .result import PotmapResult


def require_end(color_max: float | None) -> None:
    """Raise InputError for an invalid color_max."""
    if color_max is not None:
        arguments.number("color_max", color_max, "a positive number, 1e-9 to 1e12", least=LEAST_END, most=MOST_END)


def require_drawn(
    png: Path | None, surface_png: Path | None, scenes: Sequence[str], source: Path | None, outputs: Sequence[Path],
    is_whole: bool,
) -> None:  # fmt: skip
    """Raise errors for pictures that cannot be written, before the computation. source : path of the structure

    is_whole : whether the map includes exactly the atoms of the structure's first model
    """
    for picture in (png, surface_png):
        if picture is not None:
            require_png(picture)
    require_scenes(scenes, source, outputs, is_whole)


def draw(
    result: PotmapResult, png: Path | None, surface_png: Path | None, scenes: Sequence[str], end: float | None,
    outputs: Sequence[Path], is_whole: bool,
) -> tuple[Path, ...]:  # fmt: skip
    """Draw slices of a map and the molecular surface, and write scenes next to the map files.

    end : of the colour scale of surfaces, None to choose it from the values; is_whole : as in `require_drawn`

    Returns the files of scenes.
    """
    source, atoms, map_ = result.source, result.atoms, result.map
    named = "" if source is None else f"{shortened(printable(source.path.name))}: "
    title, inputs = f"{named}{map_.title}", [] if source is None else [source]
    if png is not None:
        draw_slices(png, replace(map_, title=title), inputs)
    if surface_png is None and not scenes:
        return ()
    assert result.model is not None
    assert atoms is not None
    if surface_png is not None or end is None:
        shown = painted(atoms, map_, end=end, title=title, about=about_map(result.model, map_, atoms))
        end = shown.colouring.end
        if surface_png is not None:
            shown.save_picture(surface_png, inputs)
    unit, quantity = map_.full_unit, quantity_of(map_)
    return write_scenes(scenes, source, atoms, outputs, end, unit, quantity, is_whole)
