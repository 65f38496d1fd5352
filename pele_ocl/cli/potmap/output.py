"""Report of `potmap`: its summary, its JSON object, map files and pictures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import click

from ...common.inputfile import InputFile
from ...common.writing import refuse_target
from ...formats import require_map_suffix, write_map
from ...formats.maps.pictures import draw_slices, require_png
from ...jobs.facts import notes_of
from ...jobs.records import entries
from ...potmap import VARIANTS
from ...potmap.models import COMBINATIONS
from ...reading import MoleculeRead
from ...trajectories import FrameMaps
from ...view import FOR_SURFACE, PROGRAMS, about_map, painted, quantity_of, scene_path, write_scene
from ..command import EachOnce
from ..overwriting import refuse_overwriting
from ..physics import Facts, medium_lines
from ..progress import ProgressLine
from ..report import choice_line, composition_as_json, counted, ending, error_lines, headline, map_facts, map_lines
from ..report import origin as how_made
from ..terminal import note, one_line
from .computing import ComputedMaps

STATISTIC = "{statistic}"  # in an output: the name of each of COMBINATIONS, which all have files of their own


def require_targets(outputs: tuple[Path, ...], field: bool, has_statistics: bool) -> None:
    """Raise for outputs that cannot be written, before any work is done; has_statistics : of several maps"""
    for output in outputs:
        require_map_suffix(output)
        if STATISTIC in output.name:
            _require_statistics(output, has_statistics)
    if field and not any(output.suffix.lower() == ".h5" for output in outputs):
        raise click.UsageError("the field needs a file that holds several maps: give an -o that ends in .h5")


def _targets(output: Path) -> dict[str | None, Path]:
    """Name the files of an output, by the statistic in each; None for the one that --combine names."""
    if STATISTIC not in output.name:
        return {None: output}
    return {name: output.with_name(output.name.replace(STATISTIC, name)) for name in COMBINATIONS}


def _require_statistics(output: Path, has_statistics: bool) -> None:
    """Raise for an output of all statistics where there are none, or where one would be written over an input."""
    if not has_statistics:
        raise click.UsageError(f"{output}: {STATISTIC} belongs to --models all and to trajectories")
    context = click.get_current_context()
    inputs = context.command.inputs(context) if isinstance(context.command, EachOnce) else []
    for target in _targets(output).values():
        refuse_overwriting(target, inputs)


def write(
    read: MoleculeRead, outputs: tuple[Path, ...], computed: ComputedMaps, is_unit_given: bool,
    call: Mapping[str, str] | None = None,
) -> None:  # fmt: skip
    """Write the map to its files; call : facts of the call, by default of the one that is under way"""
    attributes = how_made(read, computed.atoms, computed.result, call)
    for prefix, error in (("error", computed.result.error), ("field_error", computed.result.field_error)):
        if error is not None:
            attributes |= {f"{prefix}_{name}": value for name, value in asdict(error).items()}
    if computed.frames is not None:
        attributes |= {f"frames_{name}": value for name, value in frame_facts(computed.frames).items()}
    # A cube file is in hartree/e, as its readers take it to be, unless the user names a unit.
    unit = computed.map.unit if is_unit_given else None
    for output in outputs:
        for statistic, target in _targets(output).items():
            map_ = computed.map if statistic is None else computed.extra[statistic]
            extra = computed.extra if statistic is None and target.suffix.lower() == ".h5" else {}
            with ProgressLine(f"Writing {target}") as progress:
                write_map(
                    target, map_, atoms=computed.atoms, attributes=attributes, unit=unit, extra=extra,
                    progress=progress,
                )  # fmt: skip


def json_of(computed: ComputedMaps, facts: Facts) -> dict[str, Any]:
    """Make the object of --json; facts : settings"""
    of_map, result = map_facts(computed.map), computed.result
    return {
        "shape": of_map["shape"],
        "origin": of_map["origin"],
        "spacing": of_map["spacing"],
        "n_atoms": len(computed.atoms),
        "composition": composition_as_json(computed.atoms),
        "device": result.device,
        "method": result.method,
        "variant": result.variant,
        "precision": result.precision,
        "settings": dict(facts),
        "unit": of_map["unit"],
        "min": of_map["min"],
        "max": of_map["max"],
        "mean": of_map["mean"],
        **({"accuracy": result.wanted} if result.wanted else {}),
        **({} if result.error is None else {"measured_error": result.error.as_json()}),
        **({} if result.field_error is None else {"measured_field_error": result.field_error.as_json()}),
        **_parts_as_json(computed),
        "seconds": dict(computed.seconds),
        **({"evals_per_second": computed.evals_per_second} if result.variant in VARIANTS else {}),
        **notes_of(computed.atoms),
    }


def text_of(source: InputFile, computed: ComputedMaps, facts: Facts, verbose: bool) -> str:
    """Write the summary for people."""
    result, seconds = computed.result, computed.seconds
    lines = [
        headline(source, computed.atoms),
        *medium_lines(facts),
        *_models_lines(computed),
        "",
        *map_lines(computed.map),
        *error_lines(result),
        "",
        ending(result, seconds["kernel"]),
    ]
    if verbose and result.variant in VARIANTS:
        variant = VARIANTS[result.variant]
        lines += [
            "",
            f"Rate: {computed.evals_per_second / 1e9:,.2f} billion atom evaluations a second",
            f"Kernel: cl/{variant.file}, {variant.summary}",
            choice_line(result.device),
        ]
    return "\n".join(lines)


def _parts_as_json(computed: ComputedMaps) -> dict[str, Any]:
    """Give the part of a record about models or frames, of a map of several."""
    if computed.numbers:
        return entries("model", [(number, computed.failed.get(number, {})) for number in computed.numbers])
    frames = computed.frames
    if frames is None:
        return {}
    counted_ones: list[tuple[int, Mapping[str, Any] | str]] = [
        (int(number), {} if frames.rmsd is None else {"rmsd": float(frames.rmsd[k])})
        for k, number in enumerate(frames.frames)
    ]
    facts = frame_facts(frames)
    return {
        **entries("frame", sorted([*counted_ones, *frames.errors.items()], key=lambda entry: entry[0])),
        "frames_per_second": facts["per_second"],
        **{name: value for name, value in facts.items() if name.startswith("rmsd")},
    }


def frame_facts(frames: FrameMaps) -> dict[str, Any]:
    """Tell how many frames count, how fast they were, and how far from the reference after they were superposed."""
    rmsd = frames.rmsd
    distances = {} if rmsd is None else {"rmsd_mean": float(rmsd.mean()), "rmsd_max": float(rmsd.max())}
    return {
        "n": len(frames),
        "n_failed": len(frames.errors),
        "per_second": (len(frames) + len(frames.errors)) / max(frames.seconds, 1e-9),
        **distances,
    }


def _models_lines(computed: ComputedMaps) -> list[str]:
    """Tell how many models or frames the map is of."""
    frames = computed.frames
    if frames is None:
        return [f"{computed.n_models} models"] if computed.n_models > 1 else []
    facts = frame_facts(frames)
    lines = [f"{counted(len(frames), 'frame')}, {facts['per_second']:,.1f} frames/s"]
    if frames.rmsd is not None:
        lines.append(f"Superposed: {facts['rmsd_mean']:.2f} A from the structure, at most {facts['rmsd_max']:.2f} A")
    return lines


@dataclass(frozen=True)
class Pictures:
    """Pictures to draw: files of slices and of the surface, programs of scenes, the end of the colours."""

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

    def write(self, source: InputFile, outputs: tuple[Path, ...], computed: ComputedMaps) -> None:
        """Draw the map, and write the scenes beside its files."""
        title = f"{one_line(source.path.name)}: {computed.map.title}"
        if self.slices is not None:
            draw_slices(self.slices, replace(computed.map, title=title), [source])
        if self.surface is not None or self.scenes:
            self._show_surface(source, outputs, computed, title)

    def _show_surface(self, source: InputFile, outputs: tuple[Path, ...], computed: ComputedMaps, title: str) -> None:
        assert computed.result.model is not None
        end = self.end
        if not self.is_end_given and computed.map.unit != FOR_SURFACE["units"]:
            end = None  # that of --for-surface is in kT/e
        if self.surface is not None or end is None:
            about = about_map(computed.result.model, computed.map, computed.atoms)
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
    """True if an option's value is the user's own."""
    return click.get_current_context().get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
