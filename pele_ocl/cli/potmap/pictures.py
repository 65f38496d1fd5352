"""The pictures of `potmap`: slices, the surface, scenes of other programs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import click

from ...formats import refuse_target
from ...formats.maps.pictures import draw_slices, require_png
from ...inputfile import InputFile
from ...view import FOR_SURFACE, PROGRAMS, about_model, painted, quantity_of, scene_path, write_scene
from ..terminal import note, one_line
from .computing import Computed


@dataclass(frozen=True)
class Pictures:
    """The pictures that are wanted: files of slices and of the surface, programs of scenes; the end of the colours, and
    whether that was given."""

    slices: Path | None
    surface: Path | None
    scenes: tuple[str, ...]
    end: float | None
    is_end_given: bool = False

    def __bool__(self) -> bool:
        return self.slices is not None or self.surface is not None

    def require(self, path: Path, outputs: tuple[Path, ...]) -> None:
        """Raise for pictures that could not be written, before any work is done; path : of the structure."""
        for picture in (self.slices, self.surface):
            if picture is not None:
                require_png(picture)
        for program in self.scenes:
            script, _ = scene_path(program, path, outputs)
            refuse_target(script, [path])

    def write(self, source: InputFile, outputs: tuple[Path, ...], computed: Computed) -> None:
        """Draw the map, and write the scenes beside its files."""
        title = f"{one_line(source.path.name)}: {computed.map.title}"
        if self.slices is not None:
            draw_slices(self.slices, replace(computed.map, title=title), [source])
        if self.surface is not None or self.scenes:
            self._show_surface(source, outputs, computed, title)

    def _show_surface(self, source: InputFile, outputs: tuple[Path, ...], computed: Computed, title: str) -> None:
        assert computed.result.model is not None
        end = self.end
        if not self.is_end_given and computed.map.unit != FOR_SURFACE["units"]:
            end = None  # that of --for-surface is in kT/e
        if self.surface is not None or end is None:
            about = about_model(computed.result.model)
            shown = painted(computed.atoms, computed.map, end=end, title=title, about=about)
            end = shown.colouring.end
            if self.surface is not None:
                shown.save_picture(self.surface, [source])
        for program in self.scenes:
            _, map_ = scene_path(program, source.path, outputs)
            unit, quantity = computed.map.full_unit, quantity_of(computed.map)
            script = write_scene(program, source.path, map_, end, unit, [source], quantity=quantity)
            note(f"Scene for {PROGRAMS[program].name}: {script}")


def is_given(name: str) -> bool:
    """Whether an option's value is the user's own."""
    return click.get_current_context().get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
