"""`pele-ocl potmap`: the electrostatic potential on a grid, as a map file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from ..atoms import Atoms
from ..formats import model_numbers, require_map_suffix, write_map
from ..formats.maps.pictures import draw_slices, require_png
from ..grid import Grid, Map
from ..inputfile import InputFile, read_file
from ..potmap import VARIANTS, PotmapResult
from ..potmap import potmap as compute
from ..potmap.estimate import estimate_seconds
from ..potmap.models import COMBINATIONS, potmap_models
from ..units import POTENTIAL_UNITS
from .clock import elapsed
from .command import INPUT, OUTPUT, EachOnce
from .frames import FrameOptions, frame_options
from .frames.maps import corners
from .frames.maps import models as models_of
from .frames.run import FrameLine
from .options import Command, ReadAtoms, device_list, report_options, run_options, structure_options
from .progress import ProgressLine
from .report import (
    binary_size,
    choice_line,
    composition_as_json,
    counted,
    duration,
    ending,
    headline,
    map_facts,
    map_lines,
)
from .report import origin as how_made
from .terminal import note, one_line, say, say_json

VARIANT_HELP = "How the sums are laid out: " + "; ".join(f"{name}, {v.summary}" for name, v in VARIANTS.items())
DEFAULT_CUTOFF, DEFAULT_PADDING = 12.0, 10.0
FIELD_NAMES = ("field_x", "field_y", "field_z")


@dataclass(frozen=True, eq=False)
class Computed:
    """The maps that were computed, and the facts to report.

    map : the potential, or what was asked for of all models; extra : name -> further maps of a file that holds several
    """

    atoms: Atoms
    map: Map
    extra: dict[str, Map]
    result: PotmapResult
    n_models: int
    seconds: dict[str, float]

    @property
    def evals_per_second(self) -> float:
        return self.n_models * len(self.atoms) * len(self.map.grid) / max(self.seconds["kernel"], 1e-9)


def physics_options(command: Command) -> Command:
    """Options about the law of the potential and its unit."""

    def option(name: str, default: float, text: str) -> Any:
        return click.option(name, type=float, default=default, show_default=True, help=text)

    options = [
        option("--dielectric", 1.0, "Relative permittivity."),
        click.option("--distance-dependent", is_flag=True, help="At r Angstrom the permittivity is r times that."),
        option("--ionic-strength", 0.0, "Of a 1:1 salt that screens, mol/L."),
        option("--temperature", 298.15, "K; matters for kT/e and with salt."),
        option("--min-distance", 0.0, "Points closer to an atom get the potential of this distance, Angstrom."),
        click.option(
            "--units", type=click.Choice(POTENTIAL_UNITS), default=POTENTIAL_UNITS[0], show_default=True,
            help="Unit of the values; a cube file is in hartree/e unless it is given.",
        ),
    ]  # fmt: skip
    for decorate in reversed(options):
        command = decorate(command)
    return command


def grid_options(command: Command) -> Command:
    """Options about the grid."""
    options = [
        click.option(
            "--spacing", type=float, default=0.5, show_default=True, help="Between neighbouring points, Angstrom."
        ),
        click.option("--padding", type=float, help="Map around the outermost atoms, Angstrom; 10 by default."),
        click.option("--origin", type=float, nargs=3, metavar="X Y Z", help="The map's first point, with --shape."),
        click.option("--shape", type=int, nargs=3, metavar="NX NY NZ", help="Points along x, y and z, with --origin."),
    ]
    for decorate in reversed(options):
        command = decorate(command)
    return command


@click.command(cls=EachOnce)
@click.argument("path", metavar="IN", type=INPUT)
@click.option(
    "-o",
    "--output",
    "outputs",
    type=OUTPUT,
    metavar="MAP",
    multiple=True,
    help="Write the map: .dx, .dx.gz, .cube, .mrc, .ccp4, .map or .h5; may be given several times.",
)
@grid_options
@click.option(
    "--method",
    type=click.Choice(["direct", "cutoff"]),
    default="direct",
    show_default=True,
    help="All atoms, or those within the cutoff.",
)
@click.option("--cutoff", type=float, help="Of the cutoff method, Angstrom; 12 by default.")
@click.option("--smooth", is_flag=True, help="Let the potential go to 0 at the cutoff without a step.")
@click.option(
    "--variant", type=click.Choice(["auto", *VARIANTS]), default="auto", show_default=True, help=VARIANT_HELP + "."
)
@run_options
@physics_options
@click.option("--field", is_flag=True, help="The electric field, too: field_x, _y, _z and field_strength in .h5 files.")
@click.option(
    "--models", type=click.Choice(["one", "all"]), default="one", show_default=True,
    help="Maps of all models of IN, summed up as --combine says.",
)  # fmt: skip
@click.option(
    "--combine",
    type=click.Choice(COMBINATIONS),
    help="What is written of all models or frames; avg by default. An .h5 file has all.",
)
@frame_options
@click.option("--png", type=OUTPUT, metavar="FILE", help="Draw the three central slices (matplotlib).")
@structure_options
@report_options
def potmap(
    path: Path, outputs: tuple[Path, ...], spacing: float, padding: float | None, origin: tuple[float, ...] | None,
    shape: tuple[int, ...] | None, method: str, cutoff: float | None, smooth: bool, variant: str, precision: str,
    device: str | None, dielectric: float, distance_dependent: bool, ionic_strength: float, temperature: float,
    min_distance: float, units: str, field: bool, models: str, combine: str | None,
    over: FrameOptions, png: Path | None, read_atoms: ReadAtoms, as_json: bool, verbose: bool,
) -> None:  # fmt: skip
    """Electrostatic potential of the molecule in IN at the points of a grid.

    IN is a .pdb, .cif or .pqr file or an AMBER topology with -c, also with .gz. A value belongs to its point: the
    first one stands at the map's origin. Several devices, --device 0,1, share the work.
    """
    if method == "direct" and (cutoff is not None or smooth):
        raise click.UsageError("--cutoff and --smooth belong to --method cutoff")
    over.require_alone(models_all=models == "all", field=field)
    if combine is not None and models == "one" and not over.paths:
        raise click.UsageError("--combine belongs to --models all and to trajectories")
    if field and models == "all":
        raise click.UsageError("choose one of --field and --models all")
    _check_targets(outputs, png, field)
    source = read_file(path)
    numbers = [None] if models == "one" else model_numbers(source)
    every = [read_atoms(source) if number is None else read_atoms(source, number) for number in numbers]
    frames = over.opened(every[0], read_atoms.chosen(source)[1]) if over.paths else None
    around = every if frames is None or origin is not None else [corners(frames, every[0])]
    grid = _grid(around, spacing, padding, origin, shape)
    options = {
        "method": method, "cutoff": DEFAULT_CUTOFF if cutoff is None else cutoff, "smooth": smooth, "variant": variant,
        "precision": precision, "device": device_list(device), "dielectric": dielectric,
        "distance_dependent": distance_dependent, "ionic_strength": ionic_strength, "min_distance": min_distance,
        "unit": units, "temperature": temperature,
    }  # fmt: skip
    if field:
        options["field"] = True
    _announce(every[0], len(every) if frames is None else len(frames), grid, options)
    if not outputs and png is None:
        note("Note: the map is not written to a file; -o map.dx writes it, --png map.png draws it")
    if frames is not None:
        with FrameLine("Potential map", len(frames)) as counting:
            computed = _summed(every[0], models_of(frames, every[0], counting), grid, combine, options)
    else:
        with ProgressLine("Potential map", len(every[0]) * len(grid), "atom evaluations") as progress:
            computed = _computed(every, grid, combine, {**options, "progress": progress})
    _write(source, outputs, png, computed)
    if as_json:
        say_json(_as_json(computed))
    else:
        say(_as_text(source, computed, verbose))


def _check_targets(outputs: tuple[Path, ...], png: Path | None, field: bool) -> None:
    """Raise for outputs that cannot be written, before any work is done."""
    for output in outputs:
        require_map_suffix(output)
    if png is not None:
        require_png(png)
    if field and not any(output.suffix.lower() == ".h5" for output in outputs):
        raise click.UsageError("the field needs a file that holds several maps: give an -o that ends in .h5")


def _grid(
    models: list[Atoms], spacing: float, padding: float | None, origin: tuple[float, ...] | None,
    shape: tuple[int, ...] | None,
) -> Grid:  # fmt: skip
    """The grid that the options ask for, around all models."""
    if (origin is None) != (shape is None) or (origin is not None and padding is not None):
        raise click.UsageError("a grid is given by --padding, or by --origin and --shape together")
    if origin is not None and shape is not None:
        return Grid(origin, spacing, shape)
    positions = np.concatenate([atoms.positions for atoms in models])
    together = Atoms(positions=positions, charges=np.zeros(len(positions)))
    return Grid.around(together, DEFAULT_PADDING if padding is None else padding, spacing)


def _announce(atoms: Atoms, n_models: int, grid: Grid, options: dict[str, Any]) -> None:
    """Say how large the map is, and roughly how long it takes."""
    seconds = n_models * estimate_seconds(atoms, grid, **options)
    size = len(grid) * np.dtype(options["precision"]).itemsize * (4 if options.get("field") else 1)
    n_atoms = counted(len(atoms), "atom") + (f" for each of {n_models:,} models" if n_models > 1 else "")
    note(
        f"{' x '.join(map(str, grid.shape))} points, {binary_size(size)}, {n_atoms}: "
        + (f"about {duration(seconds)}" if seconds >= 1e-3 else "less than 1 ms")
        + " of kernels"
    )


def _computed(models: list[Atoms], grid: Grid, combine: str | None, options: dict[str, Any]) -> Computed:
    if len(models) > 1 or combine is not None:
        return _summed(models[0], models, grid, combine, options)
    result = compute(models[0], grid, **options)
    extra = {}
    if result.field is not None:
        assert result.field_strength is not None
        components = dict(zip(FIELD_NAMES, result.field, strict=True)) | {"field_strength": result.field_strength}
        unit, kelvin = f"{result.unit}/A", result.map.temperature
        extra = {name: Map(grid, values, unit, name, kelvin) for name, values in components.items()}
    return Computed(models[0], result.map, extra, result, 1, dict(result.seconds))


def _summed(
    atoms: Atoms, models: Iterable[Atoms], grid: Grid, combine: str | None, options: dict[str, object]
) -> Computed:
    """The map of all models of a molecule together, which are taken one by one."""
    summed = potmap_models(models, grid, **options)
    return Computed(atoms, summed.maps[combine or "avg"], summed.maps, summed.last, summed.n_models, summed.seconds)


def _write(source: InputFile, outputs: tuple[Path, ...], png: Path | None, computed: Computed) -> None:
    attributes = how_made(source, computed.atoms, computed.result)
    # A cube file is in hartree/e, as its readers take it to be, unless the user names a unit.
    named = click.get_current_context().get_parameter_source("units") is click.core.ParameterSource.COMMANDLINE
    unit = computed.map.unit if named else None
    for output in outputs:
        extra = computed.extra if output.suffix.lower() == ".h5" else {}
        with ProgressLine(f"Writing {output}") as progress:
            write_map(
                output, computed.map, atoms=computed.atoms, attributes=attributes, unit=unit, extra=extra,
                progress=progress,
            )  # fmt: skip
    if png is not None:
        draw_slices(png, replace(computed.map, title=f"{one_line(source.path.name)}: {computed.map.title}"), [source])


def _as_json(computed: Computed) -> dict[str, Any]:
    facts, result = map_facts(computed.map), computed.result
    return {
        "shape": facts["shape"],
        "origin": facts["origin"],
        "spacing": facts["spacing"],
        "n_atoms": len(computed.atoms),
        "composition": composition_as_json(computed.atoms),
        "device": result.device,
        "variant": result.variant,
        "precision": result.precision,
        "unit": facts["unit"],
        "min": facts["min"],
        "max": facts["max"],
        "mean": facts["mean"],
        "seconds": {**computed.seconds, "total": elapsed()},
        "evals_per_second": computed.evals_per_second,
    }


def _as_text(source: InputFile, computed: Computed, verbose: bool) -> str:
    result, seconds = computed.result, computed.seconds
    lines = [
        headline(source, computed.atoms),
        *([f"{computed.n_models} models"] if computed.n_models > 1 else []),
        "",
        *map_lines(computed.map),
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
