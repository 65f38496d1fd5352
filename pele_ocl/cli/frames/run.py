"""Evaluation of all frames of a command: results to a file when they come, then a report with its facts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import cast

from ...atoms import Atoms, Taken
from ...common.inputfile import InputFile
from ...energy import Energy
from ...jobs.checks import Checks
from ...jobs.facts import facts_of_plan
from ...nonbond import Nonbond
from ...trajectories import Trajectory
from ...trajectories.energies import AnyPlan, evaluate_with, plan_settings, recorded, workers_of
from ...trajectories.fingerprints import settings_of_frames
from ..json_lines import failing_as_record, say_record
from ..physics import lines_of
from ..plan_options import accuracy_text
from ..progress import ProgressLine
from ..report import counted, duration, headline, software
from ..terminal import note, one_line, say
from .options import FrameOptions, noted
from .sharing import FramesSpec, OpenedFrames, shared_frames
from .tally import Rate, Tally


def facts_of(
    source: InputFile,
    plan: AnyPlan,
    frames: Trajectory,
    options: Mapping[str, object],
    facts: Mapping[str, object],
) -> Mapping[str, object]:
    """Facts that another process can send: `record`, the settings of the file of results; `json` and `lines`, with
    which the report begins; `how`, with which it ends.

    options : what decides on the results beside the plan; facts : of the molecule, as JSON has them
    """
    terms = plan.names if isinstance(plan, Energy) else None
    more = {"software": software(), "input": source.path.name, "input_sha256": source.sha256}
    record = settings_of_frames(plan, frames, {**more, **plan_settings(plan), **options})
    return {
        "record": record,
        "json": {
            **facts_of_plan(plan),
            **facts,
            "frames_taken": record["frames"],
            "notes": [*plan.atoms.notes, *frames.notes],
        },
        "lines": [
            headline(source, plan.atoms) + (f"; {facts['contents']}" if "contents" in facts else ""),
            *lines_of(cast(Mapping[str, object], facts["settings"]), terms),
        ],
        "how": f"{plan.variant}, {plan.precision}, {_radii(plan)}on {plan.device}",
    }


def counted_frames(frames: Trajectory) -> str:
    """Count the frames, and name their files."""
    files = f" of {len(frames.paths):,} files" if len(frames.paths) > 1 else f" of {frames.paths[0].name}"
    of = f", of {sum(frames.counts):,}" if len(frames) < sum(frames.counts) else ""
    return f"{counted(len(frames), 'frame')}{one_line(files)}{of}"


def _radii(plan: AnyPlan) -> str:
    """Tell how the Born radii are computed, if they are approximate."""
    if isinstance(plan, Nonbond) or plan.accuracy is None:
        return ""
    return accuracy_text(plan.born if isinstance(plan, Energy) else plan.variant, plan.accuracy) + ", "


@dataclass(frozen=True)
class FrameWork:
    """A command's work on frames.

    what : for the progress line; source : the structure's file
    plan : that evaluates, or, where each frame has a plan of its own, one of them
    facts : of the molecule, as JSON has them: `facts_of_molecule` of the Spec
    options : what decides on the results beside the plan
    chosen : the atoms of the structure's file that were taken, None where all were
    residues : their names, if the energies of each are wanted
    strict : True to refuse what is noted otherwise
    """

    what: str
    source: InputFile
    plan: AnyPlan
    facts: Mapping[str, object]
    options: Mapping[str, object] = field(default_factory=dict)
    chosen: Taken | None = None
    residues: Sequence[str] = ()
    strict: bool = False

    @property
    def atoms(self) -> Atoms:
        return self.plan.atoms


class FrameLine(ProgressLine):
    """A progress line that counts frames."""

    def __init__(self, what: str, n_frames: int) -> None:
        super().__init__(what)
        self.n_frames, self.rate = n_frames, Rate()

    def __call__(self, share: float) -> None:
        self.rate.add(share * self.n_frames)
        super().__call__(share)

    def told(self, share: float, seconds: float) -> str:
        done, rate = share * self.n_frames, max(self.rate(), 1e-9)
        left = duration((self.n_frames - done) / rate)
        return f"{int(done):,} of {self.n_frames:,} frames, {rate:,.0f} frames/s, {left} left"


def report_frames(
    make: Callable[[], FrameWork], path: Path, trajectory: FrameOptions, output: Path | None, as_json: bool
) -> None:  # fmt: skip
    """Evaluate all frames, write them to `output` as they come, and report; exit with 1 where frames failed.

    make : makes the work, in each process that computes; it pickles; path : of the structure

    Memory does not grow with the number of frames, but for the energies where JSON is asked for.
    """
    with failing_as_record(path, as_json):
        work = make()
        opened = _open(work, trajectory)
        checks = Checks(work.source, work.strict)
        checks.told(noted(opened.frames).findings)
    evaluate = opened.evaluate
    with shared_frames(FramesSpec(partial(_opened, make, trajectory), opened), output, trajectory.resume) as shared:
        if output is None and not as_json:
            note("Note: the energies of single frames are not written; -o energies.csv, .h5 or .jsonl writes them")
        frames, facts = shared.frames, shared.facts
        workers = workers_of(work.plan) if not shared.is_remote else 1
        tally = Tally(as_json, work.residues, 0 if shared.is_remote else workers)
        progress = FrameLine(work.what, len(frames))
        with progress:
            parts = recorded(
                frames, evaluate, workers, output=shared.output, resume=trajectory.resume, settings=shared.record,
                tell=lambda done: progress(done / len(frames)), over=shared.stream,
            )  # fmt: skip
            for part in parts:
                tally.add(part)
                if part.is_earlier:
                    progress.rate.earlier(len(part.frames))
                if workers > 1:
                    progress((frames.frames.index(part.frames[-1]) + 1) / len(frames))
    tally.end()
    checks.energy(work.atoms, tally.means(), is_mean=True)
    checks.findings += tally.imaged()
    if as_json:
        findings = {"findings": checks.as_json()}
        say_record(work.source, {**cast(Mapping[str, object], facts["json"]), **tally.as_json(), **findings})
    else:
        head = [*cast(list[str], facts["lines"]), counted_frames(frames)]
        say("\n".join([*head, *tally.lines(str(facts["how"]))]))
    tally.exit_with_failures()


def _opened(make: Callable[[], FrameWork], trajectory: FrameOptions) -> OpenedFrames:
    """Open the frames of a work, in a process of its own."""
    return _open(make(), trajectory)


def _open(work: FrameWork, trajectory: FrameOptions) -> OpenedFrames:
    """Open the frames of a work, and the way to evaluate them."""
    frames = trajectory.opened(work.atoms, work.chosen)
    evaluate = evaluate_with(work.plan, bool(work.residues))
    return OpenedFrames(frames, evaluate, facts_of(work.source, work.plan, frames, work.options, work.facts))
