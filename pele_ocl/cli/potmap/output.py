"""The report of `potmap`: its summary, its JSON object, map files and pictures."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from ...formats import refuse_target, require_map_suffix, write_map
from ...formats.maps.pictures import draw_slices, require_png
from ...inputfile import InputFile
from ...potmap import VARIANTS
from ...view import FOR_SURFACE, PROGRAMS, about_model, painted, scene_path, write_scene
from ..clock import elapsed
from ..progress import ProgressLine
from ..report import choice_line, composition_as_json, ending, error_lines, headline, map_facts, map_lines
from ..report import origin as how_made
from ..terminal import note, one_line
from .computing import Computed


@dataclass(frozen=True)
class Pictures:
    """The pictures that are wanted: files of slices and of the surface, programs of scenes; the end of the colours."""

    slices: Path | None
    surface: Path | None
    scenes: tuple[str, ...]
    end: float | None


def require_targets(outputs: tuple[Path, ...], pictures: Pictures, field: bool, path: Path) -> None:
    """Raise for outputs that cannot be written, before any work is done; path : of the structure."""
    for output in outputs:
        require_map_suffix(output)
    for picture in (pictures.slices, pictures.surface):
        if picture is not None:
            require_png(picture)
    for program in pictures.scenes:
        script, _ = scene_path(program, path, outputs)
        refuse_target(script, [path])
    if field and not any(output.suffix.lower() == ".h5" for output in outputs):
        raise click.UsageError("the field needs a file that holds several maps: give an -o that ends in .h5")


def write(source: InputFile, outputs: tuple[Path, ...], pictures: Pictures, computed: Computed) -> None:
    """Write the map to its files, and pictures of it."""
    attributes = how_made(source, computed.atoms, computed.result)
    if computed.result.error is not None:
        attributes |= {f"error_{name}": value for name, value in computed.result.error.as_json().items()}
    # A cube file is in hartree/e, as its readers take it to be, unless the user names a unit.
    unit = None if _is_default("units") else computed.map.unit
    for output in outputs:
        extra = computed.extra if output.suffix.lower() == ".h5" else {}
        with ProgressLine(f"Writing {output}") as progress:
            write_map(
                output, computed.map, atoms=computed.atoms, attributes=attributes, unit=unit, extra=extra,
                progress=progress,
            )  # fmt: skip
    title = f"{one_line(source.path.name)}: {computed.map.title}"
    if pictures.slices is not None:
        draw_slices(pictures.slices, replace(computed.map, title=title), [source])
    if pictures.surface is not None or pictures.scenes:
        _show_surface(source, outputs, pictures, computed, title)


def _show_surface(
    source: InputFile, outputs: tuple[Path, ...], pictures: Pictures, computed: Computed, title: str
) -> None:
    """Draw the surface in the map's colours and write the scenes."""
    assert computed.result.model is not None
    end = pictures.end
    if _is_default("end") and computed.map.unit != FOR_SURFACE["units"]:
        end = None  # that of --for-surface is in kT/e
    if pictures.surface is not None or end is None:
        shown = painted(computed.atoms, computed.map, end=end, title=title, about=about_model(computed.result.model))
        end = shown.colouring.end
        if pictures.surface is not None:
            shown.save_picture(pictures.surface, [source])
    for program in pictures.scenes:
        _, map_ = scene_path(program, source.path, outputs)
        script = write_scene(program, source.path, map_, end, computed.map.full_unit, [source])
        note(f"Scene for {PROGRAMS[program].name}: {script}")


def _is_default(name: str) -> bool:
    """Whether an option's value is not the user's own."""
    return click.get_current_context().get_parameter_source(name) is not click.core.ParameterSource.COMMANDLINE


def json_of(computed: Computed) -> dict[str, Any]:
    """The object of --json."""
    facts, result = map_facts(computed.map), computed.result
    return {
        "shape": facts["shape"],
        "origin": facts["origin"],
        "spacing": facts["spacing"],
        "n_atoms": len(computed.atoms),
        "composition": composition_as_json(computed.atoms),
        "device": result.device,
        "method": result.method,
        "variant": result.variant,
        "precision": result.precision,
        "unit": facts["unit"],
        "min": facts["min"],
        "max": facts["max"],
        "mean": facts["mean"],
        **({} if result.error is None else {"error": result.error.as_json()}),
        "seconds": {**computed.seconds, "total": elapsed()},
        "evals_per_second": computed.evals_per_second,
    }


def text_of(source: InputFile, computed: Computed, verbose: bool) -> str:
    """The summary for people."""
    result, seconds = computed.result, computed.seconds
    lines = [
        headline(source, computed.atoms),
        *([f"{computed.n_models} models"] if computed.n_models > 1 else []),
        "",
        *map_lines(computed.map),
        *error_lines(result),
        "",
        ending(result, seconds["kernel"]),
    ]
    if verbose:
        variant = VARIANTS[result.variant]
        lines += [
            "",
            f"Rate: {computed.evals_per_second / 1e9:,.2f} billion atom evaluations a second",
            f"Kernel: cl/{variant.file}, {variant.summary}",
            choice_line(result.device),
        ]
    return "\n".join(lines)
