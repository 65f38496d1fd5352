"""The way of a command through all frames: results to a file as they come, then a report."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import click

from ...atoms import Atoms
from ...energy import Energy
from ...inputfile import InputFile
from ...nonbond import Nonbond
from ...trajectories import Trajectory
from ...trajectories.energies import AnyPlan, evaluate_with, plan_settings, recorded, workers_of
from ...trajectories.fingerprints import settings_of
from ...trajectories.statistics import Statistics
from ...trajectories.streaming import SURFACE_AREA, Evaluate, Evaluated, Part
from ..clock import elapsed
from ..progress import ProgressLine
from ..report import composition_as_json, counted, duration, headline, radii_line, radii_lines, settings
from ..structures.choice import Bools
from ..tables import table
from ..terminal import note, one_line, say, say_json
from .options import FrameOptions

Row = dict[str, int | float | str]
NAMED = 3  # failures that are told one by one


@dataclass(frozen=True)
class FrameWork:
    """A command's work on frames.

    what : for the progress line; source : the structure's file
    plan : that evaluates, or, where each frame has a plan of its own, one of them
    options : what decides on the results beside the plan
    chosen : (n_all,) True for each atom of the structure's file that was taken, None where all were
    evaluate : how positions are evaluated; by the plan if None
    contents : the name of what is computed; None where the command says it
    """

    what: str
    source: InputFile
    plan: AnyPlan
    options: Mapping[str, object] = field(default_factory=dict)
    evaluate: Evaluate[Evaluated] | None = None
    chosen: Bools | None = None
    contents: str | None = None

    @property
    def atoms(self) -> Atoms:
        return self.plan.atoms


class FrameLine(ProgressLine):
    """A progress line that counts frames; first : of those that are done from the start."""

    def __init__(self, what: str, n_frames: int) -> None:
        super().__init__(what)
        self.n_frames, self.first = n_frames, 0

    def told(self, share: float, seconds: float) -> str:
        done = share * self.n_frames
        rate = max(done - self.first, 1e-9) / seconds
        left = duration((self.n_frames - done) / rate)
        return f"{int(done):,} of {self.n_frames:,} frames, {rate:,.0f} frames/s, {left} left"


def report_frames(work: FrameWork, over: FrameOptions, output: Path | None, as_json: bool) -> None:
    """Evaluate all frames, write them to `output` as they come, and report; exit with 1 where frames failed.

    Memory does not grow with the number of frames, but for the energies where JSON is asked for.
    """
    if over.resume and output is None:
        raise click.UsageError("--resume goes on with a file; name it by -o")
    frames = over.opened(work.atoms, work.chosen)
    if output is None and not as_json:
        note("Note: the energies of single frames are not written; -o energies.csv, .h5 or .jsonl writes them")
    more = {"software": _software(), "input": work.source.path.name, "input_sha256": work.source.sha256}
    record = settings_of(work.plan, frames, {**more, **plan_settings(work.plan), **work.options})
    statistics, rows, failed = Statistics(), list[Row](), dict[int, str]()
    n_failed, n_earlier, start = 0, 0, time.perf_counter()
    evaluate = evaluate_with(work.plan) if work.evaluate is None else work.evaluate
    workers = workers_of(work.plan) if work.evaluate is None else 1
    progress = FrameLine(work.what, len(frames))
    with progress:
        parts = recorded(
            frames, evaluate, workers, output=output, resume=over.resume, settings=record,
            tell=lambda done: progress(done / len(frames)),
        )  # fmt: skip
        for part in parts:
            if part.is_earlier:
                progress.first = n_earlier = len(part.frames)
            statistics.add(part.results)
            n_failed += len(part.results.errors)
            for place, reason in part.results.errors.items():
                if len(failed) < NAMED:
                    failed[part.frames[place]] = reason
            if as_json:
                rows += _rows(part)
            if workers > 1:
                progress((frames.frames.index(part.frames[-1]) + 1) / len(frames))
    seconds = time.perf_counter() - start
    rate = (len(frames) - n_earlier) / seconds
    if as_json:
        say_json(_as_json(work, frames, rows, statistics, record, n_failed, seconds, rate))
    else:
        say(_as_text(work, frames, statistics, rate, n_earlier))
    if n_failed:
        shown = "; ".join(f"frame {frame}: {one_line(reason)}" for frame, reason in failed.items())
        rest = f"; and {n_failed - len(failed):,} more" if n_failed > len(failed) else ""
        note(f"Error: {counted(n_failed, 'frame')} of {len(frames):,} failed: {shown}{rest}")
        click.get_current_context().exit(1)


def _software() -> str:
    from ... import __version__

    return f"pele-ocl {__version__}"


def _rows(part: Part[Evaluated]) -> list[Row]:
    """An object for each frame: its terms, or why it failed."""
    results = part.results
    columns = [values.tolist() for values in results.columns.values()]
    names = list(results.columns)
    rows: list[Row] = []
    for k, (frame, *values) in enumerate(zip(part.frames, *columns, strict=True)):
        rows.append({"frame": frame, **dict(zip(names, values, strict=True))})
        if k in results.errors:
            rows[-1] = {"frame": frame, "error": results.errors[k]}
    return rows


def _as_json(
    work: FrameWork, frames: Trajectory, rows: list[Row], statistics: Statistics, record: Mapping[str, str],
    n_failed: int, seconds: float, rate: float,
) -> Mapping[str, object]:  # fmt: skip
    return {
        "n_atoms": len(work.atoms),
        "composition": composition_as_json(work.atoms),
        "device": str(work.plan.device),
        "variant": work.plan.variant,
        "precision": work.plan.precision,
        **({} if work.contents is None else {"contents": work.contents}),
        "settings": settings(work.plan.model, work.atoms),
        "frames": record["frames"],
        "n_frames": len(frames),
        "n_failed": n_failed,
        "models": rows,
        "statistics": statistics.columns(),
        "frames_per_second": rate,
        "seconds": {"frames": seconds, "total": elapsed()},
    }


def _model_lines(plan: AnyPlan) -> list[str]:
    """The GB model and its radii, of energies that have any."""
    if isinstance(plan, Energy):
        return radii_lines(plan.model, plan.atoms, plan.names)
    return [] if isinstance(plan, Nonbond) and not plan.gb else [radii_line(plan.model, plan.atoms)]


def _as_text(work: FrameWork, frames: Trajectory, statistics: Statistics, rate: float, n_earlier: int) -> str:
    files = f" of {len(frames.paths):,} files" if len(frames.paths) > 1 else f" of {frames.paths[0].name}"
    of = f", of {sum(frames.counts):,}" if len(frames) < sum(frames.counts) else ""
    contents = "" if work.contents is None else f"; {work.contents}"
    lines = [
        headline(work.source, work.atoms) + contents,
        *_model_lines(work.plan),
        f"{counted(len(frames), 'frame')}{one_line(files)}{of}",
    ]
    columns = dict(statistics.columns())
    if columns:
        heads = ("", "mean", "sd", "min", "max")
        area = columns.pop(SURFACE_AREA, None)
        rows = [(name.replace("_", " "), *(f"{v:,.3f}" for v in of.values())) for name, of in columns.items()]
        lines += ["", "Energy of frames, kcal/mol", table(heads, rows, "<>>>>")]
        if area is not None:
            lines += ["", "Surface area of frames (LCPO), A^2: mean {mean:,.1f}, sd {sd:,.1f}, ".format(**area)]
            lines[-1] += "{min:,.1f} to {max:,.1f}".format(**area)
    plan = work.plan
    earlier = f", {n_earlier:,} were there" if n_earlier else ""
    how = f"{plan.variant}, {plan.precision}, on {plan.device}"
    return "\n".join([*lines, "", f"{how}: {rate:,.0f} frames/s, in all {duration(elapsed())}{earlier}"])
