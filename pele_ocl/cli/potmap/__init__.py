"""`pele-ocl potmap`: the electrostatic potential on a grid, as a map file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from ...common.inputfile import read_file
from ...potmap import MAP_METHODS, METHODS, VARIANTS
from ...potmap.methods import SPLIT_METHODS
from ...potmap.models import COMBINATIONS
from ...view import PB_SURFACE_END
from ..cluster import cluster_options, cluster_options_of
from ..command import OUTPUT, EachOnce
from ..frames import FrameOptions, frame_options, noted
from ..json_lines import exit_for_failed, failing_as_record, say_record
from ..options import ReadAtoms, device_list, report_options, run_options, structure_options
from ..physics import medium_facts
from ..report import Call
from ..several import structures_argument
from ..terminal import say
from .at_atoms import report_at_atoms
from .computing import corners, over_frames
from .options import grid_of, grid_options, pb_model_of, physics_options, picture_options
from .output import Pictures, is_given, json_of, require_targets, text_of
from .several import MapSpec, report_several, whole

VARIANT_HELP = "How the sums are laid out: " + "; ".join(f"{name}, {v.summary}" for name, v in VARIANTS.items())
METHOD_HELP = "; ".join(f"{name} {each.summary}" for name, each in MAP_METHODS.items())
ACCURACY_HELP = "; ".join(f"{name}: {split.accuracies}" for name, split in SPLIT_METHODS.items())
ALL = ""  # of --align without a selection


@click.command(cls=EachOnce)
@structures_argument
@click.option(
    "-o",
    "--output",
    "outputs",
    type=OUTPUT,
    metavar="MAP",
    multiple=True,
    help="Write the map: .dx, .dx.gz, .cube, .mrc, .ccp4, .map or .h5; may be given several times. For frames or "
    "models, {statistic} in the name makes a file of each: avg, min, max, stdev.",
)
@grid_options
@click.option(
    "--method",
    type=click.Choice(METHODS),
    default="direct",
    show_default=True,
    help=METHOD_HELP + "; auto takes direct or mesh, whichever costs less.",
)
@click.option(
    "--accuracy",
    type=float,
    help=f"Largest error by norm, 1e-4 by default. {ACCURACY_HELP}; auto takes it for mesh.",
)
@click.option("--cutoff", type=float, help="Distance at which the cutoff method ends, Angstrom; 12 by default.")
@click.option("--smooth", is_flag=True, help="Make the potential go to 0 at the cutoff smoothly.")
@click.option(
    "--variant", type=click.Choice(["auto", *VARIANTS]), default="auto", show_default=True, help=VARIANT_HELP + "."
)
@run_options
@physics_options
@click.option(
    "--field", is_flag=True, help="Also write the electric field: field_x, _y, _z and field_strength in .h5 files."
)
@click.option(
    "--models", type=click.Choice(["one", "all"]), default="one", show_default=True,
    help="Compute maps of all models of IN, combined as --combine says.",
)  # fmt: skip
@click.option(
    "--combine",
    type=click.Choice(COMBINATIONS),
    help="Statistic over models or frames to write; avg by default. An .h5 file has all.",
)
@frame_options
@click.option(
    "--align",
    metavar="[EXPR]",
    is_flag=False,
    flag_value=ALL,
    help="Superpose each frame on IN by these atoms. Without a selection: by alpha carbons of a protein, else"
    " by heavy atoms; another option must follow then.",
)
@click.option(
    "--at-atoms",
    metavar="EXPR",
    help="Instead of a map, write the potential at these atoms in each frame, without the atom's own charge: "
    ".csv, .h5 or .json.",
)
@cluster_options
@picture_options
@structure_options
@report_options
def potmap(
    path: Path | tuple[Path, ...],
    outputs: tuple[Path, ...], spacing: float, padding: float | None, origin: tuple[float, ...] | None,
    shape: tuple[int, ...] | None, method: str, accuracy: float | None, cutoff: float | None, smooth: bool,
    variant: str, precision: str, device: str | None, dielectric: float,
    solute_dielectric: float, distance_dependent: bool,
    ionic_strength: float, temperature: float, min_distance: float, units: str, field: bool, models: str,
    combine: str | None, trajectory: FrameOptions, align: str | None, at_atoms: str | None,
    png: Path | None, surface_png: Path | None, scenes: tuple[str, ...], end: float | None,
    read_atoms: ReadAtoms, as_json: bool, verbose: bool,
) -> None:  # fmt: skip
    """Compute the electrostatic potential of the molecule in IN at the points of a grid.

    IN is a .pdb, .cif or .pqr file or an AMBER topology with -c, also with .gz. A value belongs to its point: the
    first one stands at the map's origin. Several devices, --device 0,1, share the work. Each of several IN gets a map
    of its own by -o '{name}.dx'.
    """
    context = click.get_current_context()
    if method != "cutoff" and (cutoff is not None or smooth):
        raise click.UsageError("--cutoff and --smooth belong to --method cutoff")
    trajectory.require_alone(models_all=models == "all", field=field)
    _require_fitting(field, models, combine, align, trajectory)
    if method == "pb":
        _require_of_pb(distance_dependent, min_distance, field, trajectory)
        if context.get_parameter_source("end") is click.core.ParameterSource.DEFAULT_MAP:
            end = PB_SURFACE_END
    elif is_given("solute_dielectric"):
        raise click.UsageError("--solute-dielectric belongs to --method pb")
    pictures = Pictures(png, surface_png, scenes, end, is_given("end"))
    if isinstance(path, Path):
        cluster_options_of(context).refuse("one map is computed at once, by all devices of --device")
    maps = {"combine": combine, "align": align, "png": png, "surface-png": surface_png, "scene": scenes or None}
    if isinstance(path, tuple) and trajectory.paths:
        raise click.UsageError("a trajectory is of one structure; give one, or leave out -t")
    _require_alone(at_atoms, trajectory, origin=origin, padding=padding, **maps)
    if at_atoms is None:
        require_targets(outputs, field, models == "all" or bool(trajectory.paths))
    options: dict[str, object] = {
        "method": method, "accuracy": accuracy, "cutoff": cutoff,
        "smooth": smooth, "variant": variant, "precision": precision, "device": device_list(device),
        "unit": units, "temperature": temperature,
    }  # fmt: skip
    if method == "pb":
        options["pb"] = pb_model_of(dielectric, solute_dielectric, ionic_strength, temperature)
    else:
        options |= {
            "dielectric": dielectric, "distance_dependent": distance_dependent, "ionic_strength": ionic_strength,
            "min_distance": min_distance,
        }  # fmt: skip
    if field:
        options["field"] = True
    spec = MapSpec(
        reading=read_atoms, models=models, place=(spacing, padding, origin, shape), combine=combine, options=options,
        outputs=outputs, pictures=pictures, is_unit_given=is_given("units"), call=Call.now(),
    )  # fmt: skip
    if isinstance(path, tuple):
        report_several(spec, path, as_json)
        return
    if at_atoms is None:
        pictures.require(path, whole(outputs))
    with failing_as_record(path, as_json):
        source = read_file(path)
        if trajectory.paths:
            atoms, chosen = read_atoms.chosen(source)
            frames = noted(trajectory.opened(atoms, chosen))
            atoms = replace(atoms, notes=(*atoms.notes, *frames.notes))
            if at_atoms is not None:
                report_at_atoms(source, atoms, frames, at_atoms, outputs, as_json, options)
                return
            stays = origin is not None or align is not None
            grid = grid_of([atoms if stays else corners(frames, atoms)], *spec.place)
            spec.announce(atoms, len(frames), grid)
            words = align is not None if align in (None, ALL) else align
            found = over_frames(atoms, frames, grid, words, combine, options)
        else:
            found = spec.found(source)
    spec.write(source, found)
    facts = medium_facts(found.atoms, options)
    if as_json:
        say_record(source, json_of(found, facts))
    else:
        say(text_of(source, found, facts, verbose))
    if found.frames is not None:
        failed = found.frames.errors
        exit_for_failed("frame", failed, len(failed), len(failed) + len(found.frames))
    exit_for_failed("model", found.failed, len(found.failed), len(found.numbers))


def _require_of_pb(distance_dependent: bool, min_distance: float, field: bool, trajectory: FrameOptions) -> None:
    """Raise for options that the Poisson-Boltzmann equation has no use for."""
    given = {"--distance-dependent": distance_dependent, "--min-distance": min_distance, "--field": field}
    for name, value in given.items():
        if value:
            raise click.UsageError(f"--method pb has no {name}; leave it out")
    if trajectory.paths:
        raise click.UsageError("--method pb makes maps of structures and models, not of frames; leave out -t")


def _require_alone(at_atoms: str | None, trajectory: FrameOptions, **others: object) -> None:
    """Raise for --at-atoms without a trajectory, and beside options about maps."""
    if at_atoms is None:
        return
    if not trajectory.paths:
        raise click.UsageError("--at-atoms is about a trajectory; give one with -t")
    for name, value in others.items():
        if value is not None:
            raise click.UsageError(f"--at-atoms makes no map; leave out --{name}")


def _require_fitting(
    field: bool, models: str, combine: str | None, align: str | None, trajectory: FrameOptions
) -> None:
    """Raise for options about several maps where there is one, or none that has a field."""
    if combine is not None and models == "one" and not trajectory.paths:
        raise click.UsageError("--combine belongs to --models all and to trajectories")
    if align is not None and not trajectory.paths:
        raise click.UsageError("--align is about a trajectory; give one with -t")
    if field and models == "all":
        raise click.UsageError("choose one of --field and --models all")
