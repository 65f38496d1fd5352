"""Poses of a PELE run computed again: total and binding energies beside PELE's own."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from ..common.arguments import file_path
from ..common.errors import FormatError, InputError
from ..common.inputfile import read_file
from ..common.installation import software
from ..common.modules import lazy_names, make_callable
from ..common.notes import heard_notes, note
from ..common.variant import Progress
from ..forcefield import read_control
from ..formats import require_table_suffix
from ..gb_models import GB_MODELS
from ..gb_models.solvent_model import SolventModel
from ..jobs import Place, Shard
from ..jobs.facts import settings
from ..jobs.journal import JOURNAL_SUFFIX
from ..jobs.reading import Reading
from ..jobs.running import run_with
from .files import PeleRun, Walker, find_run, read_report
from .result import Poses, RescoreResult, journal_of_poses, require_picture
from .spec import PosesSpec, WalkerPoses

if TYPE_CHECKING:
    from ..opencl.device import Device

__all__ = ["PeleRun", "Poses", "RescoreResult", "Walker", "find_run", "read_report", "rescore"]

if not TYPE_CHECKING:  # names for tests, by the file that has them
    __getattr__ = lazy_names(__name__, {"result": "Agreement"})

_OF_EXPLORE = (
    "the reports are of pele-ocl explore: their totals have all pairs and the restraints, their binding energies "
    "PELE's cutoffs, and so have these; rows after the first differ by the digits of coordinates in trajectories"
)


def rescore(
    folder: str | PathLike[str],
    structure: str | PathLike[str] | None = None,
    *,
    ligand: str | None = None,
    control: str | PathLike[str] | None = None,
    group_cutoffs: bool | None = None,
    like: str | None = "pele",
    model: SolventModel | None = None,
    reading: Reading | None = None,
    output: str | PathLike[str] | None = None,
    reports: str | PathLike[str] | None = None,
    plot: str | PathLike[str] | None = None,
    resume: bool = False,
    shard: Shard | str | None = None,
    precision: str = "float32",
    device: Device | int | str | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    attributes: Mapping[str, object] | None = None,
    progress: Progress | None = None,
) -> RescoreResult:
    """Compute total and binding energies of all poses of a PELE run, beside PELE's own, and the poses' ranks.

        result = pele_ocl.rescore("run/")
        result.poses.binding, result.poses.pele_binding  # (m,) kcal/mol
        result.save("poses.csv")

    folder : of pele.conf, report_* and trajectory_*, or of the epochs that have them; of a run of `explore`, too
    structure : of the complex; by default the first trajectory that names its atoms
    ligand : a selection (docs/selection.md); by default the atoms that the control file perturbs
    control : the control file; by default the one beside the reports, else pele.conf of the folder
    group_cutoffs : True to let nonbonded energies end at PELE's long cutoffs, False for none; by default True with the
        constants of PELE
    like : the program whose constants `model` has
    model, reading : the solvent, and how the structure is read; by default as the control file says
    output : a file with a row for each pose: .h5, .csv or .json; resume : True to go on with an interrupted run
    reports : a folder for the run's reports with our energies as further columns
    plot : a picture of our energies over PELE's, .png or .svg
    shard : the K-th of N parts of the reports, "K/N", whose results `pele-ocl merge` joins
    precision, device : as in `energy`; workers, scheduler : as in `jobs.run`
    attributes : further ones of the output
    progress : called with the share of the reports that is done, 0 to 1

    Returns a RescoreResult; poses that failed have NaN and a reason in `poses.errors`. Raises FormatError for a folder
    that holds no run and files that cannot be read, and InputError for a control file that names no ligand.
    """
    run = find_run(folder, control)
    settled = read_control(run.control)
    if plot is not None:
        require_picture(plot)
    if reports is not None and Path(reports).exists() and not Path(reports).is_dir():
        raise FormatError(f"{reports}: is no folder; name one for the reports")
    part = Shard.of(shard) if isinstance(shard, str) else shard
    out = None if output is None else file_path(output, "output")
    if out is not None:
        require_table_suffix(out)
    elif resume or part is not None:
        raise InputError(f"`{'resume' if resume else 'shard'}` needs a file of results; name it by `output`")
    with heard_notes() as heard:
        if model is None:
            model = SolventModel.like("pele", gb=settled.gb, ionic_strength=settled.ionic_strength)
        source = read_file(run.structure if structure is None else structure)
        chosen = ligand or run.ligand
        has_cutoffs = like == "pele" if group_cutoffs is None else group_cutoffs
        own = run.control if run.own and group_cutoffs is None else None
        spec = PosesSpec(
            source.path, reading or _reading(run), chosen, model, precision, device, has_cutoffs, own
        )  # fmt: skip
        plan = spec.evaluator.binding
        computed = {"device": str(plan.device), "variant": plan.variant, "precision": precision}
        facts = {"ligand": chosen, "group_cutoffs": has_cutoffs, "own_reports": run.own, **computed}
        places = spec.coordinates
        told = {
            "input": str(source), "input_sha256": source.sha256, **places,
            **({"software": software()} if attributes is None else attributes), **facts, **settings(model, plan.given),
        }  # fmt: skip
        walkers = run.walkers if part is None else part.part(run.walkers, "reports")
        of_shard = out if part is None or out is None else part.path(out)
        path = None if of_shard is None else of_shard.with_name(f"{of_shard.name}{JOURNAL_SUFFIX}")
        journal = journal_of_poses(path, told, part, run.walkers)
        found = list[WalkerPoses]()
        place = Place(workers, scheduler, device if isinstance(device, str) else None)
        for record in run_with(spec, walkers, journal, resume, place):
            found.append(WalkerPoses.of(record))
            if progress is not None:
                progress(len(found) / len(walkers))
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


def _reading(run: PeleRun) -> Reading:
    """Read as the control file says, with the templates of the run."""
    control = read_control(run.control)
    for sentence in control.notes:
        note(f"Note: {sentence}")
    return Reading(
        forcefield=control.forcefield, pele_data=run.data, fallback="sgb" in GB_MODELS[control.gb].parameters,
        allow_missing_terminals=control.allow_missing_terminals,
    )  # fmt: skip


make_callable(__name__)
