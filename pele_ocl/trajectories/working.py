"""Energies of all frames of a trajectory, in this process or by workers, with output and report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from ..common.errors import KeywordError
from ..common.inputfile import InputFile, read_file
from ..common.notes import as_json, heard_notes, note, one_line, with_notes
from ..common.variant import Progress
from ..jobs import Place, Record, Shard
from ..jobs.checks import Checks
from ..jobs.evaluation import EvaluationSpec
from ..jobs.facts import facts_of_plan, names_of_residues
from ..jobs.shards import Run
from ..jobs.texts import accuracy_text, counted, headline, lines_of, software
from ..reading import MoleculeRead
from .energies import AnyPlan, FrameEnergies, energies_of_parts, evaluate_with, recorded, workers_of
from .fingerprints import settings_of_frames
from .given import FrameOptions, noted, trajectory_paths
from .reading import Trajectory
from .recording import Settings, recorder_for, require_record_suffix
from .sharing import FramesSpec, OpenedFrames, require_output, shared_frames
from .tally import Tally


@runtime_checkable
class CountsFrames(Protocol):
    """A progress callback that receives the number of frames."""

    def begin(self, n_frames: int) -> None: ...


@dataclass(frozen=True, eq=False)
class FrameReport:
    """Report about the energies of frames.

    source : structure file; facts : information for JSON; lines, how : beginning and end of the text
    tally : summary of the frames; findings : findings for JSON; frames, settings : for the output file
    heard : notes reported during the calculation
    """

    source: InputFile
    facts: Mapping[str, Any]
    lines: list[str]
    how: str
    tally: Tally
    findings: list[dict[str, object]]
    frames: Trajectory
    settings: Settings
    heard: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        result = {**self.facts, **self.tally.as_json(), "findings": self.findings}
        return Record(str(self.source), self.source.sha256, with_notes(result, self.heard)).to_dict()

    def text(self, total: float | None = None) -> str:
        seconds = self.tally.seconds if total is None else total
        return "\n".join([*self.lines, *self.tally.lines(self.how, seconds)])

    def save(self, path: str | PathLike[str]) -> None:
        with recorder_for(path, self.settings, self.frames.frames, self.frames.inputs) as recorder:
            for part in self.tally.parts:
                recorder.append(part.results)


def energies_of_frames(
    spec: EvaluationSpec[Any],
    path: str | PathLike[str],
    trajectory: FrameOptions,
    *,
    output: Path | None = None,
    keep: bool = True,
    place: Place | None = None,
    shard: Shard | None = None,
    progress: Progress | None = None,
) -> FrameEnergies:
    """Compute the energies of all frames of a trajectory, and write them to `output` during the calculation.

    spec : picklable description of the calculation; path : structure file
    keep : False to return only statistics, with memory independent of the number of frames
    place : where to compute, by default in this process
    shard : part of the frames to compute
    progress : called with the completed fraction of the frames, 0 to 1

    Failed frames are NaN, with errors in `errors`. Raises the FormatError and InputError of the readers, also for an
    output with other settings.
    """
    require_output(output, trajectory.resume, shard)
    if output is not None:
        require_record_suffix(output)
    with heard_notes() as heard:
        work = FrameWork.of(spec, read_file(path))
        opened = work.opened(trajectory)
        checks = Checks(work.source, spec.strict)
        checks.told(noted(opened.frames).findings)
        evaluate = opened.evaluate
        whole = FramesSpec(partial(_opened, spec, path, trajectory), opened)
        with shared_frames(whole, output, trajectory.resume, place, shard) as shared:
            if output is None and not keep:
                note("Note: the energies of single frames are not written; `output` writes them: .csv, .h5 or .jsonl")
            frames, facts = shared.frames, shared.facts
            workers = workers_of(work.plan) if not shared.is_remote else 1
            tally = Tally(keep, work.residues, 0 if shared.is_remote else workers)
            if isinstance(progress, CountsFrames):
                progress.begin(len(frames))
            parts = recorded(
                frames, evaluate, workers, output=shared.output, resume=trajectory.resume, settings=shared.record,
                tell=None if progress is None else lambda done: progress(done / len(frames)), over=shared.stream,
            )  # fmt: skip
            for part in parts:
                tally.add(part)
                if workers > 1 and progress is not None:
                    progress((frames.frames.index(part.frames[-1]) + 1) / len(frames))
        tally.end()
        checks.energy(work.plan.atoms, tally.means(), is_mean=True)
        checks.findings += tally.imaged()
    report = FrameReport(
        work.source, facts["json"],
        [*facts["lines"], counted_frames(frames)], str(facts["how"]), tally, checks.as_json(), frames,
        shared.record, tuple(heard),
    )  # fmt: skip
    if keep:
        return energies_of_parts(tally.parts, frames.notes, report)
    return FrameEnergies.none(report)


def frames_by(
    spec: EvaluationSpec[Any],
    path: str | PathLike[str],
    words: Mapping[str, Any],
    run: Run,
    alone: Mapping[str, object],
) -> FrameEnergies:
    """Compute the energies of frames for the keywords of a public function.

    words : `trajectory`, one or several paths; `frames`, `topology` and `image` as in pele_ocl.trajectory
    run : where to compute and what to write; alone : keywords that exclude a trajectory, by name

    A selection refers to the atoms in `topology` if it is given, otherwise to the structure.
    """
    paths = trajectory_paths(words.get("trajectory"))
    topology = None if words.get("topology") is None else Path(words["topology"])
    select = spec.reading.select
    trajectory = FrameOptions(paths, words.get("frames"), select, topology, run.resume, words.get("image"))
    trajectory.require_alone(**alone)
    if run.resume and spec.has_residues_of_frames:
        raise KeywordError("`per_residue` is the mean over the frames of one run; leave out `resume`")
    reading = replace(spec.reading, trajectory=trajectory, select=select if topology is None else None)
    return energies_of_frames(
        replace(spec, reading=reading), path, trajectory, output=run.output, keep=run.keep, place=run.place,
        shard=run.shard, progress=run.progress,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class FrameWork:
    """Work on frames in one process.

    plan : plan that evaluates frames, or an example if each frame needs a separate plan
    residues : names of the residues, for energies per residue
    """

    spec: EvaluationSpec[Any]
    molecule: MoleculeRead
    plan: AnyPlan
    residues: list[str]

    @classmethod
    def of(cls, spec: EvaluationSpec[Any], source: InputFile) -> FrameWork:
        """Read the molecule and make the plan. Raises the PeleError of the readers and the plan."""
        molecule = spec.molecule(source)
        plan: AnyPlan = spec.plan_of_frames(molecule.atoms)
        return cls(spec, molecule, plan, names_of_residues(plan.atoms) if spec.has_residues_of_frames else [])

    @property
    def source(self) -> InputFile:
        return self.molecule.source

    def opened(self, trajectory: FrameOptions) -> OpenedFrames:
        """Open the frames with the function that evaluates them."""
        frames = trajectory.opened(self.plan.atoms, self.molecule.chosen)
        return OpenedFrames(frames, evaluate_with(self.plan, bool(self.residues)), self.facts(frames))

    def facts(self, frames: Trajectory) -> Mapping[str, Any]:
        """Return picklable information: `record` with the settings; `json`, `lines` and `how` for the report."""
        plan, facts = self.plan, self.spec.facts_of_molecule(self.plan)
        terms = self.spec.terms_of_frames(plan)
        more = {"software": software(), "input": self.source.path.name, "input_sha256": self.source.sha256}
        words = self.spec.words_of_frames()
        record = settings_of_frames(plan, frames, {**more, **plan._settings_of_results(), **words})
        contents = f"; {facts['contents']}" if "contents" in facts else ""
        return {
            "record": record,
            "json": {
                **facts_of_plan(plan),
                **facts,
                "frames_taken": record["frames"],
                **as_json([*plan.atoms.notes, *frames.notes]),
            },
            "lines": [
                headline(self.source.path.name, plan.atoms) + contents,
                *lines_of(facts["settings"], terms),
            ],
            "how": f"{plan.variant}, {plan.precision}, {_radii(plan)}on {plan.device}",
        }


def counted_frames(frames: Trajectory) -> str:
    """Describe the number of frames and their files."""
    files = f" of {len(frames.paths):,} files" if len(frames.paths) > 1 else f" of {frames.paths[0].name}"
    of = f", of {sum(frames.counts):,}" if len(frames) < sum(frames.counts) else ""
    return f"{counted(len(frames), 'frame')}{one_line(files)}{of}"


def _radii(plan: AnyPlan) -> str:
    """Describe how Born radii are computed, if they are approximate."""
    accuracy = getattr(plan, "accuracy", None)
    return "" if accuracy is None else accuracy_text(getattr(plan, "born", plan.variant), accuracy) + ", "


def _opened(spec: EvaluationSpec[Any], path: str | PathLike[str], trajectory: FrameOptions) -> OpenedFrames:
    """Open the frames in a worker process."""
    return FrameWork.of(spec, read_file(path)).opened(trajectory)
