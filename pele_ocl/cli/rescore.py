"""`pele-ocl rescore`: the energies of a PELE run's poses, beside PELE's own."""

from __future__ import annotations

from pathlib import Path

import click

from ..gb_models.solvent_model import SolventModel
from ..rescore import Poses, RescoreResult, find_run
from ..rescore import rescore as rescored
from .clock import elapsed
from .cluster import cluster_given, cluster_options
from .command import INPUT, OUTPUT, EachOnce, _File
from .control_file import HELP, OPTION
from .groups import keywords
from .json_lines import say_result
from .options import (
    ReadAtoms,
    like_given,
    model_options,
    report_options,
    run_options,
    structure_options,
    surface_options,
)
from .physics import physics_lines
from .progress import ProgressLine
from .report import call_facts, counted, duration, headline, model_line, settings
from .tables import table
from .terminal import note, say

_SHOWN = 10  # poses of the best


class Folder(_File):
    """Path of a folder that files are written into; it may be there."""


class PeleCommand(EachOnce):
    """Takes the control file and the structure from the folder of the run, where they are not given."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = self.make_parser(ctx).parse_args(list(args))[0]
        named = {name for name, value in given.items() if isinstance(value, str)}  # others are not given
        if not ctx.resilient_parsing and not HELP & set(args) and "folder" in named:
            self._refuse_repeated(ctx, list(args))  # before anything is read
            run = find_run(str(given["folder"]), given["pele_conf"] if "pele_conf" in named else None)
            args = [*args, *([] if "pele_conf" in named else [OPTION, str(run.control)])]
            args += [] if given.get("pele_data") else [word for path in run.data for word in ("--pele-data", str(path))]
            args += [] if "path" in named else [str(run.structure)]
            ctx.params["control"] = run.control  # a value of the command, so that workers have it, too
        return super().parse_args(ctx, args)


@click.command(cls=PeleCommand)
@click.argument("folder", metavar="FOLDER", type=INPUT)
@click.argument("path", metavar="[IN]", type=INPUT, required=False)
@click.option("--ligand", metavar="EXPR", help="The atoms that bind; by default those that pele.conf perturbs.")
@click.option("-o", "--output", type=OUTPUT, metavar="OUT", help="Write a row for each pose: .h5, .csv or .json.")
@click.option(
    "--reports", type=Folder(), metavar="DIR",
    help="Write the reports anew into this folder, with the columns oclTotalEnergy and oclBindingEnergy.",
)  # fmt: skip
@click.option("--plot", type=OUTPUT, metavar="FILE", help="Draw our energies over PELE's: .png or .svg (matplotlib).")
@click.option(
    "--group-cutoffs/--no-group-cutoffs", default=None,
    help="Let nonbonded energies end at PELE's long cutoffs, or at none; by default as --like pele has it.",
)  # fmt: skip
@click.option("--resume", is_flag=True, help="Continue an interrupted run that wrote to the same OUT.")
@cluster_options
@run_options
@structure_options
@model_options
@surface_options
@report_options
def rescore(
    folder: Path, path: Path, control: Path, ligand: str | None, output: Path | None, reports: Path | None,
    plot: Path | None, group_cutoffs: bool | None, resume: bool, precision: str, device: str | None,
    read_atoms: ReadAtoms, constants: SolventModel, as_json: bool, verbose: bool,
) -> None:  # fmt: skip
    """Compute total and binding energies of all poses of a PELE run, beside PELE's own, and their ranks.

    FOLDER holds pele.conf, report_* and trajectory_*, or epochs that do. Force field, solvent and ligand come from
    pele.conf and DataLocal; other options win. Each row of a report is the model of that number in its trajectory.
    """
    with ProgressLine("Poses") as progress:
        result = rescored(
            folder, path, ligand=ligand, control=control, group_cutoffs=group_cutoffs, like=like_given(),
            model=constants, reading=read_atoms, output=output, reports=reports, plot=plot, resume=resume,
            precision=precision, device=device, **keywords(cluster_given()), attributes=call_facts(),
            progress=progress,
        )  # fmt: skip
    if as_json:
        say_result(result)
    else:
        say("\n".join(_lines(result, verbose)))
    exit_for_poses(result.poses)


def _lines(result: RescoreResult, verbose: bool) -> list[str]:
    """Write the whole report."""
    model, atoms, poses = result.model, result.atoms, result.poses
    return [
        headline(result.source, atoms),
        *physics_lines(model, atoms),
        f"{counted(len(result.walkers), 'report')}, {counted(len(poses.rows), 'pose')}",
        "",
        *pose_lines(poses, "report's" if result.run.own else "PELE's"),
        "",
        *([model_line(settings(model, atoms))] if verbose else []),
        f"{result.variant}, {result.precision}, on {result.device}: in all {duration(elapsed())}",
    ]


def pose_lines(poses: Poses, whose: str = "PELE's") -> list[str]:
    """Write the agreement and the best poses; whose : the columns beside ours"""
    heads = ("rank", "report", "row", "binding", whose, "total", whose)
    rows = [
        (
            str(poses.rank[k]), poses.reports[k], str(poses.rows[k]),
            *(f"{of[k]:,.4f}" for of in (poses.binding, poses.pele_binding, poses.total, poses.pele_total)),
        )
        for k in poses.best(_SHOWN)
    ]  # fmt: skip
    return [*poses.agreement(), "", "Best poses by binding energy, kcal/mol", table(heads, rows, "><>>>>>")]


def exit_for_poses(poses: Poses) -> None:
    """Name the first pose that failed, and exit with 1, if there is any."""
    if poses.failure:
        note(f"Error: {poses.failure}")
        raise click.exceptions.Exit(1)
