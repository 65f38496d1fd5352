"""`pele-ocl binding --pele FOLDER`: the energies of a PELE run's poses, beside PELE's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from ...binding.pele import PeleRun, Walker, find_run, read_report
from ...binding.pele.picture import draw_against, require_picture
from ...common.errors import FormatError, InputError
from ...common.inputfile import read_file
from ...forcefield import read_control
from ...forcefield.control import DATA_FOLDERS
from ...formats import require_table_suffix
from ...gb_models.solvent_model import SolventModel
from ...jobs.running import run_with
from ..clock import elapsed
from ..cluster import cluster_options, cluster_options_of
from ..command import INPUT, OUTPUT, EachOnce, _File
from ..control_file import HELP, OPTION
from ..json_lines import say_record
from ..options import ReadAtoms, model_options, report_options, run_options, structure_options, surface_options
from ..physics import physics_lines
from ..progress import ProgressLine
from ..report import counted, duration, headline, model_line, provenance, settings
from ..several import journal_of
from ..terminal import note, say
from .evaluation import PosesSpec, WalkerPoses
from .poses import Poses, journal_of_poses, save_poses

_OF_EXPLORE = (
    "the reports are of pele-ocl explore: their totals have all pairs and the restraints, their binding energies "
    "PELE's cutoffs, and so have these; rows after the first differ by the digits of coordinates in trajectories"
)
TOTAL, BINDING = "oclTotalEnergy", "oclBindingEnergy"  # of one word, so that every tool splits them alike
PELE = "--pele"


class Folder(_File):
    """Path of a folder that files are written into; it may be there."""


FOLDER = Folder()


class PeleCommand(EachOnce):
    """Takes the control file and the structure from the folder of the run, where they are not given."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = self.make_parser(ctx).parse_args(list(args))[0]
        named = {name for name, value in given.items() if isinstance(value, str)}  # others are not given
        if not ctx.resilient_parsing and not HELP & set(args) and "pele" in named:
            run = find_run(str(given["pele"]), given["pele_conf"] if "pele_conf" in named else None)
            args = [*args, *([] if "pele_conf" in named else [OPTION, str(run.control)])]
            args += [] if given.get("pele_data") else _data_of(run)
            args += [] if "path" in named else [str(_structure(run))]
            ctx.params["control"] = run.control  # a value of the command, so that workers have it, too
        return super().parse_args(ctx, args)


def _data_of(run: PeleRun) -> list[str]:
    """Give options for Data and DataLocal, of the run's folder if an epoch's control file has none beside it."""
    beside = {folder.name: folder for folder in read_control(run.control).data}
    above = {name: run.folder / name for name in DATA_FOLDERS if (run.folder / name).is_dir()}
    if above.keys() <= beside.keys():
        return []
    found = above | beside
    return [word for name in DATA_FOLDERS if name in found for word in ("--pele-data", str(found[name]))]


def _structure(run: PeleRun) -> Path:
    """Find the first trajectory that names its atoms."""
    for walker in run.walkers:
        if walker.trajectory.suffix == ".pdb":
            return walker.trajectory
    raise InputError(f"{run.folder}: its trajectories do not name their atoms; give a structure of the complex as IN")


@click.command(cls=PeleCommand, name="binding")
@click.argument("path", metavar="[IN]", type=INPUT, required=False)
@click.option(PELE, type=INPUT, metavar="FOLDER", required=True, help="Folder of pele.conf, report_* and trajectory_*.")
@click.option("--ligand", metavar="EXPR", help="The atoms that bind; by default those that pele.conf perturbs.")
@click.option("-o", "--output", type=OUTPUT, metavar="OUT", help="Write a row for each pose: .h5, .csv or .json.")
@click.option(
    "--reports", type=FOLDER, metavar="DIR",
    help=f"Write the reports anew into this folder, with the columns {TOTAL} and {BINDING}.",
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
def pele_run(
    path: Path, pele: Path, control: Path, ligand: str | None, output: Path | None, reports: Path | None,
    plot: Path | None, group_cutoffs: bool | None, resume: bool, precision: str, device: str | None,
    read_atoms: ReadAtoms, constants: SolventModel, as_json: bool, verbose: bool,
) -> None:  # fmt: skip
    """Compute total and binding energies of all poses of a PELE run, beside PELE's own, and the poses' ranks.

    Force field, solvent and ligand come from pele.conf and DataLocal; other options win. Each row of a
    report is the model of that number in its trajectory.
    """
    run = find_run(pele, control)
    if plot is not None:
        require_picture(plot)
    if reports is not None and reports.exists() and not reports.is_dir():
        raise FormatError(f"{reports}: is no folder; name one for the reports")
    cluster = cluster_options_of(click.get_current_context())
    shard = cluster.shard
    if output is not None:
        require_table_suffix(output)
    elif resume or shard is not None:
        raise click.UsageError(f"{'--resume goes on with' if resume else '--shard begins'} a file; name it by -o")
    source = read_file(path)
    context = click.get_current_context()
    has_cutoffs = context.params["like"] == "pele" if group_cutoffs is None else group_cutoffs
    own = run.control if run.own and group_cutoffs is None else None
    spec = PosesSpec(path, read_atoms, ligand or _perturbed(run), constants, precision, device, has_cutoffs, own)
    plan = spec.evaluator.binding
    atoms = plan.given
    walkers = run.walkers if shard is None else shard.part(run.walkers, "reports")
    computed = {"device": str(plan.device), "variant": plan.variant, "precision": precision}
    facts = {"ligand": ligand or _perturbed(run), "group_cutoffs": has_cutoffs, "own_reports": run.own, **computed}
    attributes = {
        **provenance(source, coordinates=read_atoms.coordinates_of(path)),
        **facts,
        **settings(constants, atoms),
    }
    of_shard = output if shard is None or output is None else shard.path(output)
    journal = journal_of_poses(of_shard, attributes, shard, run.walkers)
    with ProgressLine("Poses") as progress:
        records = run_with(spec, walkers, journal, resume, cluster.place(device))
        found = [WalkerPoses.of(record) for record in progress.counting(records, walkers)]
    poses = Poses.of(found)
    if reports is not None:
        _write_reports(reports, walkers, found)
    if plot is not None:
        draw_against(plot, poses.pairs(), [path])
    if output is not None and shard is None:
        save_poses(output, poses, attributes)
        journal_of(output).unlink()
    if own is not None:
        note(f"Note: {_OF_EXPLORE}")
    for sentence in (*plan.notes, *poses.notes):
        note(f"Note: {sentence}", heard=sentence not in plan.notes)
    if as_json:
        of_run = {"ligand": facts["ligand"], "group_cutoffs": has_cutoffs, "own_reports": run.own}
        result = {"n_atoms": len(atoms), **computed, "settings": {**settings(constants, atoms), **of_run}}
        say_record(source, {**result, **poses.as_json()})
    else:
        lines = [headline(source, atoms), f"{counted(len(walkers), 'report')}, {counted(len(poses.rows), 'pose')}", ""]
        lines[1:1] = physics_lines(constants, atoms)
        lines += [
            *poses.lines("report's" if run.own else "PELE's"),
            "",
            *([model_line(settings(constants, atoms))] if verbose else []),
        ]
        say("\n".join([*lines, f"{plan.variant}, {precision}, on {plan.device}: in all {duration(elapsed())}"]))
    poses.exit_with_failures()


def _perturbed(run: PeleRun) -> str:
    """Read the ligand that the control file names."""
    ligand = read_control(run.control).ligand
    if ligand is None:
        raise InputError(f"{run.control}: names no chains in selectionToPerturb; give the ligand by --ligand")
    return ligand


def _write_reports(folder: Path, walkers: Sequence[Walker], found: Sequence[WalkerPoses]) -> None:
    """Reports with our columns, by the names that they have in the run's folder."""
    for walker, of in zip(walkers, found, strict=True):
        if len(of):
            report = read_report(walker.report)
            target = folder / walker.name
            target.parent.mkdir(parents=True, exist_ok=True)
            own = replace(report, rows=report.rows[: len(of)])
            own.write(target, {TOTAL: of.columns["total"], BINDING: of.columns["binding"]})
