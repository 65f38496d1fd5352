"""`pele-ocl potmap`: electrostatic potential on a grid, as a map file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import click

from ..jobs import Record
from ..jobs.texts import counted, duration, medium_lines
from ..ladder import POTMAP as VARIANTS
from ..pb_model import PBModel
from ..potmap import COMBINATIONS, MAP_METHODS, METHODS, FramePotentials, MapBatch, MapWork, PotmapResult
from ..potmap import potmap as compute
from ..potmap.methods import SPLIT_METHODS
from ..report import text_table as table
from ..units import POTENTIAL_UNITS
from .call import Call
from .command import OUTPUT, EachOnce, command_option
from .map_options import color_option, png_option, scene_option, spacing_options, unit_option
from .options import (
    ReadAtoms,
    cluster_options,
    device_list,
    frame_flags,
    report_options,
    run_options,
    structure_options,
    structures_argument,
    variant_option,
)
from .progress import FrameLine, ProgressLine
from .showing import exit_for_failed, exit_for_records, failing_as_record, say_records, say_result, written_lines
from .terminal import elapsed, note, one_line, say

METHOD_HELP = "; ".join(f"{name} {each.summary}" for name, each in MAP_METHODS.items())
ACCURACY_HELP = "; ".join(f"{name}: {split.accuracies}" for name, split in SPLIT_METHODS.items())
ALL = ""  # of --align without a selection
_SHOWN = 20  # atoms in a table on screen


@click.command(cls=EachOnce)
@structures_argument
@command_option(
    "-o", "--output", type=OUTPUT, metavar="MAP", multiple=True,
    help="Write the map: .dx, .dx.gz, .cube, .mrc, .ccp4, .map or .h5; can be given several times. For frames or "
    "models, {statistic} in the name writes a file for each: avg, min, max, stdev.", essential=True,
)  # fmt: skip
@spacing_options(padding=None)
@click.option("--origin", type=float, nargs=3, metavar="X Y Z", help="First point of the map; needs --shape.")
@click.option(
    "--shape", type=int, nargs=3, metavar="NX NY NZ", help="Number of points along x, y and z; needs --origin."
)
@command_option(
    "--method", type=click.Choice(METHODS), default="direct", show_default=True,
    help=METHOD_HELP + "; auto chooses direct or mesh, whichever is faster.", heading="Computation", essential=True,
)  # fmt: skip
@command_option(
    "--accuracy", type=float, help=f"Largest error by norm, 1e-4 by default. {ACCURACY_HELP}; auto uses it for mesh.",
    heading="Computation",
)  # fmt: skip
@command_option(
    "--cutoff", type=float, help="Cutoff distance of the cutoff method, Angstrom; 12 by default.",
    heading="Computation", essential=True,
)  # fmt: skip
@click.option("--smooth", is_flag=True, help="Switch the potential smoothly to 0 at the cutoff.")
@variant_option("How the sums are computed", VARIANTS)
@run_options
@click.option(
    "--dielectric",
    type=float,
    help="Relative permittivity; 1 by default. With pb that of the solvent, 78.54 by default.",
)
@command_option(
    "--solute-dielectric", type=float,
    help=f"With pb: relative permittivity of the solute; {PBModel.solute_dielectric:g} by default.", heading="Solvent",
)  # fmt: skip
@click.option("--distance-dependent", is_flag=True, help="Multiply the relative permittivity by the distance in A.")
@command_option(
    "--ionic-strength", type=float, help="Concentration of a 1:1 salt that screens the potential, mol/L.",
    heading="Solvent", essential=True,
)  # fmt: skip
@command_option(
    "--temperature", type=float, default=298.15, show_default=True,
    help="Temperature, K; used for kT/e and with salt.", heading="Solvent",
)  # fmt: skip
@click.option(
    "--min-distance", type=float, default=0.0, show_default=True,
    help="Points closer to an atom get the potential at this distance, Angstrom.",
)  # fmt: skip
@unit_option(f"Unit of the values, by default {POTENTIAL_UNITS[0]}, in cube files hartree/e.")
@command_option(
    "--field", is_flag=True, help="Also write the electric field: field_x, _y, _z and field_strength in .h5 files.",
    essential=True,
)  # fmt: skip
@command_option(
    "--models", type=click.Choice(["one", "all"]), default="one", show_default=True,
    help="Compute a map of one model, or maps of all models of IN, combined according to "
    "--combine.", heading="Models and trajectories",
)  # fmt: skip
@command_option(
    "--combine", type=click.Choice(COMBINATIONS),
    help="Statistic over models or frames to write; avg by default. An .h5 file has all.",
    heading="Models and trajectories",
)  # fmt: skip
@frame_flags
@command_option(
    "--align", metavar="[EXPR]", is_flag=False, flag_value=ALL,
    help="Superpose each frame on IN by these atoms. Without a selection: by the alpha carbons of a protein, else"
    " by heavy atoms; another option must then follow.", heading="Models and trajectories",
)  # fmt: skip
@command_option(
    "--at-atoms", metavar="EXPR",
    help="Instead of a map, write the potential at these atoms in each frame, without the atom's own charge: "
    ".csv, .h5 or .json.", heading="Models and trajectories",
)  # fmt: skip
@cluster_options
@command_option(
    "--for-surface", is_flag=True,
    help="Use the settings of surface pictures: kT/e, dielectric 78.54, 0.15 mol/L of salt, colours "
    "from -2 to 2, with pb from -5 to 5. Other options override them.", essential=True,
)  # fmt: skip
@png_option
@click.option("--surface-png", type=OUTPUT, metavar="FILE", help="Draw the molecular surface, coloured by the map.")
@scene_option
@color_option()
@structure_options
@report_options
def potmap(
    path: Path | tuple[Path, ...], device: str | None, align: str | None, read_atoms: ReadAtoms, as_json: bool,
    verbose: bool, call: Call, **options: Any,
) -> None:  # fmt: skip
    """Compute the electrostatic potential of the molecule in IN at the points of a grid.

    IN is a .pdb, .cif or .pqr file or an AMBER topology with -c, also with .gz. Values are at grid points; the
    first is at the map's origin. With --device 0,1 two devices share the work. -o '{name}.dx' writes a map for each
    of several IN.
    """
    is_kept = bool(options["output"] or options["png"] or options["surface_png"])
    several = isinstance(path, tuple)
    first = path[0] if isinstance(path, tuple) else path
    with failing_as_record(first, as_json and not several), MapLine(is_kept) as line:
        found: PotmapResult | FramePotentials | MapBatch = compute(
            cast(Any, path), **options, device=device_list(device),
            align=align is not None if align in (None, ALL) else align, reading=read_atoms, call=call, tell=line.begin,
            progress=line,
        )  # fmt: skip
    if isinstance(found, MapBatch):
        if as_json:
            say_records(found.records)
        else:
            say(_of_several(found.records))
        exit_for_records(found.records)
        return
    if as_json:
        say_result(found.to_json())
    else:
        scenes = found.scenes if isinstance(found, PotmapResult) else ()
        written = written_lines([*options["output"], options["png"], options["surface_png"], *scenes])
        kernel = VARIANTS.get(found.variant) if verbose and isinstance(found, PotmapResult) else None
        about = [] if kernel is None else [f"Kernel: cl/{kernel.file}, {kernel.summary}"]
        say("\n".join([found.text(verbose, elapsed()), *about, *written]))
    if isinstance(found, FramePotentials):
        exit_for_failed("frame", found.errors, len(found.errors), len(found.frames))
    elif found.frames is not None:
        exit_for_failed("frame", found.errors, len(found.errors), len(found.errors) + len(found.frames))
    exit_for_failed("model", found.errors, len(found.errors), len(getattr(found, "numbers", ())))


class MapLine:
    """Progress line of a map, shown once its size is known. is_kept : False if the map is not written to a file"""

    def __init__(self, is_kept: bool) -> None:
        self.line, self.is_kept = ProgressLine("Potential map"), is_kept

    def __enter__(self) -> MapLine:
        return self

    def __exit__(self, *error: Any) -> None:
        self.line.__exit__(*error)

    def __call__(self, share: float) -> None:
        self.line(share)

    def begin(self, work: MapWork) -> None:
        """Print the size of the computation."""
        if not work.n_bytes:
            self.line = FrameLine("Potential at atoms", work.n_frames)
            return
        if work.n_frames:
            self.line = FrameLine("Potential map", work.n_frames)
        else:
            self.line = ProgressLine("Potential map", work.evaluations, "atom evaluations")
        n = max(work.n_models, work.n_frames)
        note(
            f"{' x '.join(map(str, work.shape))} points, {binary_size(work.n_bytes)}, {counted(work.n_atoms, 'atom')}"
            + (f" for each of {n:,} models" if n > 1 else "")
            + ("" if work.seconds is None else f": {_about(work.seconds)} of kernel time")
            + (f": about {binary_size(work.memory)} of the device's memory" if work.memory else "")
        )
        if not self.is_kept:
            told = "Note: the map is not written to a file; -o map.dx writes it, --png map.png draws it"
            note(told, heard=False)


def binary_size(n_bytes: float) -> str:
    """Format a number of bytes: `24.6 KiB`, `1.5 GiB`."""
    unit, power = next((u, p) for u, p in (("GiB", 30), ("MiB", 20), ("KiB", 10)) if n_bytes >= 2**p or p == 10)
    return f"{n_bytes / 2**power:,.1f} {unit}"


def _about(seconds: float) -> str:
    return f"about {duration(seconds)}" if seconds >= 1e-3 else "less than 1 ms"


def _of_several(records: Sequence[Record]) -> str:
    """Return a text table of all maps, with the errors of failed structures."""
    n_failed = sum(of.failed for of in records)
    units = {str(of["unit"]) for of in records if not of.failed}
    counts = counted(len(records), "map") + (f", of which {n_failed:,} failed" if n_failed else "")
    facts = next((of["settings"] for of in records if not of.failed), None)
    fields = ", ".join(dict.fromkeys(str(of["settings"]["forcefield"]) for of in records if not of.failed))
    physics = [] if facts is None else medium_lines({**facts, "forcefield": fields})
    heads = ("structure", "atoms", "points", "min", "max", "mean")
    shown = table(heads, list(map(_row, records)), "<>>>>>")
    lines = [counts, *physics, "", f"Potential, {', '.join(sorted(units))}", shown]
    reasons = [f"{one_line(of.path.name)}: {of.reason}" for of in records if of.failed]
    return "\n".join([*lines, *(["", *reasons] if reasons else []), "", f"Total {duration(elapsed())}"])


def _row(of: Record) -> tuple[str, ...]:
    if of.failed:
        return (one_line(of.path.name), "failed", "", "", "", "")
    shape = " x ".join(map(str, of["shape"]))
    values = [f"{of[name]:,.4g}" for name in ("min", "max", "mean")]
    return (one_line(of.path.name), f"{of['n_atoms']:,}", shape, *values)
