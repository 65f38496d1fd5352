"""Rescore the poses of a PELE run, and compare total and binding energies with those of PELE."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING

from ..common.arguments import checked, file_path
from ..common.errors import KeywordError
from ..common.inputfile import read_file
from ..common.modules import make_callable, takes
from ..common.notes import heard_notes, note
from ..doors import Door, with_settings
from ..explore.reports import read_report
from ..forcefield import read_control
from ..formats import require_table_suffix
from ..formats.tables import folder_path
from ..gb_models.solvent_model import SolventModel
from ..jobs.facts import settings
from ..jobs.provenance import origin_of
from ..jobs.running import run_with
from ..jobs.structures import journal_of
from ..trajectories.sharing import require_output
from .files import PeleRun, Walker, find_run
from .result import Poses, RescoreResult, journal_of_poses, require_picture
from .spec import PosesSpec, WalkerPoses

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..jobs.words import RunningWords
    from ..opencl.device import Device

__all__ = ["PeleRun", "Poses", "RescoreResult", "Walker", "find_run", "read_report", "rescore"]


_OF_EXPLORE = (
    "the reports were written by pele-ocl explore: their totals include all pairs and the restraints, their "
    "binding energies use PELE's cutoffs, and the computed energies do the same; rows after the first differ "
    "because of the rounded coordinates in trajectories"
)


@checked
@takes("object", "reading", "solvent", "run")
def rescore(
    folder: str | PathLike[str],
    structure: str | PathLike[str] | None = None,
    *,
    ligand: str | None = None,
    control: str | PathLike[str] | None = None,
    group_cutoffs: bool | None = None,
    reports: str | PathLike[str] | None = None,
    plot: str | PathLike[str] | None = None,
    precision: str = "float32",
    device: Device | int | str | None = None,
    model: SolventModel | int | None = None,
    **words: Unpack[RunningWords],
) -> RescoreResult:
    """Compute total and binding energies of all poses of a PELE run, compare them with PELE's, and rank the poses.

        result = pele_ocl.rescore("run/")
        result.poses.binding, result.poses.pele_binding  # (m,) kcal/mol
        result.save("poses.csv")

    folder : folder with pele.conf, report_* and trajectory_*, or with subfolders of epochs; also of an `explore` run
    structure : structure of the complex, by default the first trajectory with atom names
    ligand : a selection (docs/selection.md), by default the atoms that the control file perturbs
    control : control file, by default the one next to the reports, or pele.conf in the folder
    group_cutoffs : True for PELE's long nonbonded cutoffs, False for no cutoffs; by default True if the constants are
        those of PELE
    reports : folder to write the run's reports to, with the computed energies as additional columns
    plot : file for a plot of the computed energies against PELE's, .png or .svg
    precision, device : as in `energy`; model : SolventModel, or the number of the structure's model
    words : keywords for files, the solvent model and the run, as in `energy`, which override the control file:
        `forcefield`, `pele_data`; `like`, `gb`, `ionic_strength`; `output` (file with a row for each pose, .h5, .csv or
        .json), `resume`, `workers`, `scheduler`, `shard`, `progress`

    Returns a RescoreResult; failed poses have NaN, and an error message in `poses.errors`. Raises FormatError for a
    folder without a run and for files that cannot be read, and InputError for a control file without a ligand.

    >>> result = pele_ocl.rescore("explored")
    >>> result.poses.binding.shape == result.poses.pele_binding.shape
    True
    >>> result.save("poses.csv")
    """
    run = find_run(file_path(folder, "folder"), control)
    if plot is not None:
        require_picture(plot)
    if reports is not None:
        folder_path(reports, "the reports")
    with heard_notes() as heard:
        settled = with_settings(replace(read_control(run.control), data=run.data), words, model)
        door = Door.of(rescore, settled, model, device)
        if door.frames:
            raise KeywordError(f"`{min(door.frames)}` applies to a trajectory; those of the run are in its folder")
        out, part = door.run.output, door.run.shard
        require_output(out, door.run.resume, part)
        if out is not None:
            require_table_suffix(out)
        model, reading = door.model, replace(door.reading, solvent=door.model)
        if run.own and reading.radii is None and not model.gb_model.vacuum:
            # `explore` also reads its structures with these radii
            reading = replace(reading, radii=model.radii_set)
        source = read_file(run.structure if structure is None else structure)
        chosen = ligand or run.ligand
        has_cutoffs = settled.get("like") == "pele" if group_cutoffs is None else group_cutoffs
        own = run.control if run.own and group_cutoffs is None else None
        spec = PosesSpec(source.path, reading, chosen, model, precision, device, has_cutoffs, own)
        plan = spec.evaluator.binding
        computed = {"device": str(plan.device), "variant": plan.variant, "precision": precision}
        facts = {"ligand": chosen, "group_cutoffs": has_cutoffs, "own_reports": run.own, **computed}
        from_what = origin_of(source, reading.coordinates_of(source.path), door.run.call)
        told = {**from_what, **facts, **settings(model, plan.given)}
        walkers = run.walkers if part is None else part.part(run.walkers, "reports")
        of_shard = out if part is None or out is None else part.path(out)
        path = None if of_shard is None else journal_of(of_shard)
        journal = journal_of_poses(path, told, part, run.walkers)
        found = list[WalkerPoses]()
        for record in run_with(spec, walkers, journal, door.run.resume, door.run.place):
            found.append(WalkerPoses.of(record))
            if door.run.progress is not None:
                door.run.progress(len(found) / len(walkers))
        poses = Poses.of(found)
        notes = (*([] if own is None else [_OF_EXPLORE]), *plan.notes, *poses.notes)
        for sentence in notes:
            note(f"Note: {sentence}", heard=sentence not in plan.notes)
    result = RescoreResult(
        poses, run, source, plan.given, model, chosen, has_cutoffs, [*zip(walkers, found, strict=True)],
        str(plan.device), plan.variant, precision, told, notes, tuple(heard),
    )  # fmt: skip
    if reports is not None:
        result.write_reports(reports)
    if plot is not None:
        result.draw(plot)
    if out is not None and path is not None and part is None:
        result.save(out)
        path.unlink()
    return result


make_callable(__name__)
