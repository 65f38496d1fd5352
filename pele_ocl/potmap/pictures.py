"""Pictures of a map: slices, the molecular surface, and scenes of other programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..common import arguments
from ..common.errors import printable, shortened
from ..common.inputfile import InputFile
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

ON_SURFACES = "kT/e"  # unit of the ends of colours that surface pictures have by default


@dataclass(frozen=True)
class Pictures:
    """Pictures to draw.

    slices, surface : files, None for none; scenes : programs to write scripts for, keys of PROGRAMS
    end : of the colours, None to follow the values; is_end_given : False for the default of surface pictures, in kT/e
    """

    slices: Path | None = None
    surface: Path | None = None
    scenes: tuple[str, ...] = ()
    end: float | None = None
    is_end_given: bool = False

    def __post_init__(self) -> None:
        if self.end is not None:
            arguments.number("color_max", self.end, "a positive number, 1e-9 to 1e12,", least=LEAST_END, most=MOST_END)

    def __bool__(self) -> bool:
        return self.slices is not None or self.surface is not None

    def require(self, source: Path | None, outputs: Sequence[Path]) -> None:
        """Raise for pictures that cannot be written, before any work is done; source : path of the structure."""
        for picture in (self.slices, self.surface):
            if picture is not None:
                require_png(picture)
        require_scenes(self.scenes, source, outputs)

    def write(self, result: PotmapResult, outputs: Sequence[Path]) -> tuple[Path, ...]:
        """Draw the map, and write the scenes next to its files. Returns the scenes' files."""
        source = result.source
        named = "" if source is None else f"{shortened(printable(source.path.name))}: "
        title, inputs = f"{named}{result.map.title}", [] if source is None else [source]
        if self.slices is not None:
            draw_slices(self.slices, replace(result.map, title=title), inputs)
        if self.surface is None and not self.scenes:
            return ()
        return self._show_surface(result, outputs, title, inputs)

    def _show_surface(
        self, result: PotmapResult, outputs: Sequence[Path], title: str, inputs: list[InputFile]
    ) -> tuple[Path, ...]:
        atoms, map_ = result.atoms, result.map
        assert result.model is not None
        assert atoms is not None
        end = self.end if self.is_end_given or map_.unit == ON_SURFACES else None
        if self.surface is not None or end is None:
            shown = painted(atoms, map_, end=end, title=title, about=about_map(result.model, map_, atoms))
            end = shown.colouring.end
            if self.surface is not None:
                shown.save_picture(self.surface, inputs)
        return write_scenes(self.scenes, result.source, atoms, outputs, end, map_.full_unit, quantity=quantity_of(map_))
