"""The facts of a report on frames, beside its results: how they are computed, and of which atoms."""

from __future__ import annotations

from collections.abc import Mapping

from ...energy import Energy
from ...inputfile import InputFile
from ...jobs.facts import notes_of
from ...nonbond import Nonbond
from ...trajectories import Trajectory
from ...trajectories.energies import AnyPlan, plan_settings
from ...trajectories.fingerprints import settings_of
from ..plan_options.accuracy import accuracy_text
from ..report import composition_as_json, counted, headline, radii_line, radii_lines, settings, software
from ..terminal import one_line


def facts_of(
    source: InputFile, plan: AnyPlan, frames: Trajectory, options: Mapping[str, object], contents: str | None
) -> Mapping[str, object]:
    """Facts that another process can send: `record`, the settings of the file of results; `json` and `lines`, with
    which the report begins; `how`, with which it ends.

    options : what decides on the results beside the plan; contents : the name of what is computed
    """
    more = {"software": software(), "input": source.path.name, "input_sha256": source.sha256}
    record = settings_of(plan, frames, {**more, **plan_settings(plan), **options})
    return {
        "record": record,
        "json": {
            "n_atoms": len(plan.atoms),
            "composition": composition_as_json(plan.atoms),
            "device": str(plan.device),
            "variant": plan.variant,
            "precision": plan.precision,
            **({"accuracy": record["accuracy"]} if "accuracy" in record else {}),
            **({} if contents is None else {"contents": contents}),
            "settings": settings(plan.model, plan.atoms),
            "frames_taken": record["frames"],
            **notes_of(plan.atoms),
        },
        "lines": [headline(source, plan.atoms) + ("" if contents is None else f"; {contents}"), *_model_lines(plan)],
        "how": f"{plan.variant}, {plan.precision}, {_radii(plan)}on {plan.device}",
    }


def counted_frames(frames: Trajectory) -> str:
    """How many frames there are, and of which files."""
    files = f" of {len(frames.paths):,} files" if len(frames.paths) > 1 else f" of {frames.paths[0].name}"
    of = f", of {sum(frames.counts):,}" if len(frames) < sum(frames.counts) else ""
    return f"{counted(len(frames), 'frame')}{one_line(files)}{of}"


def _model_lines(plan: AnyPlan) -> list[str]:
    """The GB model and its radii, of energies that have any."""
    if isinstance(plan, Energy):
        return radii_lines(plan.model, plan.atoms, plan.names)
    return [] if isinstance(plan, Nonbond) and not plan.gb else [radii_line(plan.model, plan.atoms)]


def _radii(plan: AnyPlan) -> str:
    """How the Born radii are computed, where they are approximate."""
    if isinstance(plan, Nonbond) or plan.accuracy is None:
        return ""
    return accuracy_text(plan.born if isinstance(plan, Energy) else plan.variant, plan.accuracy) + ", "
