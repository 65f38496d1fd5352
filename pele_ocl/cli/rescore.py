"""`pele-ocl rescore`: energies of the poses of a PELE run, compared with those of PELE."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..rescore import Poses, find_run
from ..rescore import rescore as rescored
from .call import Call
from .command import INPUT, OUTPUT, EachOnce, _File, command_option
from .control_file import HELP
from .options import (
    cluster_options,
    report_options,
    resume_option,
    run_options,
    solvent_flags,
    structure_flags,
    surface_options,
    words_of,
)
from .progress import ProgressLine
from .showing import show
from .terminal import note


class Folder(_File):
    """Path of an output folder, which may exist."""


class PeleCommand(EachOnce):
    """Command that uses the structure of the run instead of that in a given control file."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = self.make_parser(ctx).parse_args(list(args))[0]
        named = {name for name, value in given.items() if isinstance(value, str)}  # other values mean not given
        if not ctx.resilient_parsing and not HELP & set(args) and {"folder", "pele_conf"} <= named:
            self._refuse_repeated(ctx, list(args))  # before reading files
            ctx.params["control"] = Path(given["pele_conf"])
            args = [*args, *([] if "path" in named else [str(find_run(given["folder"], given["pele_conf"]).structure)])]
        return super().parse_args(ctx, args)


@click.command(cls=PeleCommand)
@click.argument("folder", metavar="FOLDER", type=INPUT)
@click.argument("path", metavar="[IN]", type=INPUT, required=False)
@command_option(
    "--ligand", metavar="EXPR", help="Atoms of the ligand; by default those that pele.conf perturbs.",
    heading="Parts of the complex", essential=True,
)  # fmt: skip
@command_option(
    "-o", "--output", type=OUTPUT, metavar="OUT", help="Write a row for each pose: .h5, .csv or .json.", essential=True
)
@click.option(
    "--reports", type=Folder(), metavar="DIR",
    help="Write the reports to this folder, with the additional columns oclTotalEnergy and oclBindingEnergy.",
)  # fmt: skip
@click.option(
    "--plot",
    type=OUTPUT,
    metavar="FILE",
    help="Plot the computed energies against PELE's: .png or .svg; requires matplotlib.",
)
@click.option(
    "--group-cutoffs/--no-group-cutoffs", default=None,
    help="Use PELE's long cutoffs for nonbonded energies, or no cutoff; by default as in --like pele.",
)  # fmt: skip
@resume_option("reports")
@cluster_options
@run_options
@structure_flags
@solvent_flags
@surface_options
@report_options
@words_of
def rescore(
    folder: Path, path: Path | None, as_json: bool, verbose: bool, words: dict[str, Any], call: Call,
    control: Path | None = None, **given: Any,
) -> None:  # fmt: skip
    """Compute total and binding energies of all poses of a PELE run, compared with PELE's own, and their ranks.

    FOLDER contains pele.conf, report_* and trajectory_*, or a folder with these for each epoch. Force field, solvent
    and ligand come from pele.conf and DataLocal; other options override them. Each row of a report is the model with
    that number in its trajectory.
    """
    with ProgressLine("Poses") as progress:
        result = rescored(folder, path, control=control, progress=progress, call=call.facts(), **given, **words)
    show(result, as_json, verbose, call)
    exit_for_poses(result.poses)


def exit_for_poses(poses: Poses) -> None:
    """Report failed poses, and exit with code 1 if there are any."""
    if poses.failure:
        note(f"Error: {poses.failure}")
        raise click.exceptions.Exit(1)
