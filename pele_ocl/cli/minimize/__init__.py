"""`pele-ocl minimize`: structures relaxed, one or thousands."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import click

from ...formats import require_table_suffix
from ...formats.conformation_files import written_suffixes
from ...gb_models.solvent_model import SolventModel
from ...minimize import METHODS
from ...minimize.options import MOST_ROUNDS
from ..cluster import cluster_options, cluster_options_of
from ..command import EachOnce
from ..frames import FrameOptions, trajectory_options
from ..options import (
    ReadAtoms,
    model_options,
    models_option,
    report_options,
    run_options,
    strict_option,
    structure_options,
    surface_options,
)
from ..plan_options import listed, pair_options, require_near, variant_option
from ..report import Call
from ..terminal import note
from .conformations import records_of_conformations
from .report import report
from .restraints import RestraintOptions, restraint_options, tolerance_of
from .targets import TARGET, OutputTargets, expanded, files_of_other_run, refuse_files_of
from .work import MinimizeRequest, records_of_files, require_options, settings_given

__all__ = ["minimize"]


@click.command(cls=EachOnce)
@click.argument("paths", metavar="IN...", type=TARGET.input, nargs=-1, required=True, callback=expanded)
@click.option(
    "-o", "--output", type=TARGET, metavar="OUT", required=True,
    help=f"Write the structures: {written_suffixes()}; of several files a folder, or a name such as "
    "'relaxed/{name}.cif'; of a trajectory or of all models one file.",
)  # fmt: skip
@click.option(
    "--method",
    type=click.Choice(list(METHODS)),
    default="lbfgs",
    show_default=True,
    help="Algorithm that finds the steps.",
)
@click.option(
    "--tolerance", default="0.1", show_default=True, metavar="G",
    help="Stop at this rms gradient, kcal/mol/A, or with its unit: 1kJ/mol/nm.",
)  # fmt: skip
@click.option(
    "--largest", type=float, metavar="G",
    help="Also stop when every atom's gradient is at most this, kcal/mol/A.",
)  # fmt: skip
@click.option(
    "--energy-change", type=float, metavar="E",
    help="Also stop when three steps in a row change the energy by less than this, kcal/mol.",
)  # fmt: skip
@click.option(
    "--max-iterations", type=click.IntRange(min=0), default=10_000, show_default=True, help="Largest number of steps."
)
@click.option(
    "--max-seconds", type=float, metavar="S",
    help="Time limit of a structure, or of structures minimised together, seconds. Then they are written as "
    "they are.",
)  # fmt: skip
@restraint_options
@click.option(
    "--report", "table", type=TARGET, metavar="FILE", help="Write a row for each structure: .csv, .h5, .json."
)
@click.option(
    "--no-restore", is_flag=True,
    help="Do not repair bonds first. By default bonds of shaken structures are brought near their lengths "
    "before minimising.",
)  # fmt: skip
@pair_options
@click.option(
    "--rounds", type=click.IntRange(1, MOST_ROUNDS), default=1, show_default=True,
    help="Number of minimisations, one after another. With --fixed-radii each takes new Born radii at its "
    "start.",
)  # fmt: skip
@models_option
@trajectory_options
@cluster_options
@variant_option
@run_options
@structure_options
@model_options
@surface_options
@strict_option
@report_options
def minimize(
    paths: tuple[Path, ...], output: Path, method: str, tolerance: str, largest: float | None,
    energy_change: float | None, max_iterations: int, max_seconds: float | None, held: RestraintOptions,
    table: Path | None, no_restore: bool, rounds: int, fixed_radii: bool, cutoff: float | None,
    one_four: Literal["scale", "exclude"], terms: str | None, models: str, trajectory: FrameOptions, variant: str,
    precision: str, device: str | None, read_atoms: ReadAtoms, constants: SolventModel, strict: bool,
    as_json: bool, verbose: bool,
) -> None:  # fmt: skip
    """Relax the structures in IN: move their atoms to a minimum of their energy.

    IN is one file or several, or a pattern in quotation marks; with -t the frames of a trajectory are relaxed, with
    --models all the models of a PDB file. Energies in kcal/mol, gradients in kcal/mol/Angstrom. A structure that fails
    ends no run: it is named, and the exit code is 1. One that reaches a limit is written as it is, with a note.
    --resume goes on with a run of several structures that was interrupted. With --json one object a structure.
    --workers and --scheduler share structures out; each is the same wherever it is minimised.
    """
    require_near(cutoff)
    if table is not None:
        require_table_suffix(table)
    are_many = bool(trajectory.paths) or models == "all"
    if are_many and len(paths) > 1:
        raise click.UsageError("a trajectory, or all models, are of one structure; give one IN")
    resume, trajectory = trajectory.resume, replace(trajectory, resume=False)
    trajectory.require_alone(models_all=models == "all")
    options = {
        "method": method, "tolerance": tolerance_of(tolerance), "largest": largest,
        "energy_change": energy_change, "max_iterations": max_iterations,
        "max_seconds": max_seconds, "restore": not no_restore, "rounds": rounds,
        "fixed_radii": fixed_radii, "one_four": one_four, "cutoff": cutoff, "only_terms": listed(terms),
        "constraints": held.constraints, "precision": precision, "variant": variant, "device": device,
        "model": constants,
    }  # fmt: skip
    require_options(options)
    read_atoms.require_forcefield()
    targets = OutputTargets.planned(output, paths, are_many, table)
    refuse_files_of("relax", targets)
    _check_cluster(are_many, paths, table)
    overwritten = "" if resume else files_of_other_run(targets, settings_given())
    work = MinimizeRequest(
        read_atoms, options, held.referring(read_atoms), targets, trajectory, models, Call.now(), strict
    )
    if work.are_many:
        records, together = records_of_conformations(work, paths[0], resume)
        report(records, [together], work, table, as_json, verbose)
    else:
        records = records_of_files(work, paths, resume)
        if overwritten and any(not record.failed for record in records):
            note(overwritten)
        report(records, records, work, table, as_json, verbose)


def _check_cluster(are_many: bool, paths: tuple[Path, ...], table: Path | None) -> None:
    """Raise for options that leave nothing to share out, and for what a shard cannot write."""
    cluster = cluster_options_of(click.get_current_context())
    if not are_many and len(paths) == 1:
        cluster.refuse("one structure is minimised at once")
    if cluster.shard is not None and are_many:
        raise click.UsageError(
            "--shard takes structures that have files of their own; of frames give each job some, --frames A:B, and a "
            "file of its own"
        )
    if cluster.shard is not None and table is not None:
        raise click.UsageError(
            "the report of shards is what `pele-ocl merge` makes of their journals; leave out --report"
        )
