"""The poses of a run as a table, and walkers written down as they come, for runs that go on and for shards."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

from ...binding.pele import Walker
from ...cluster import Shard
from ...formats import JsonText, write_table
from ...trajectories.fingerprints import fingerprint
from ...trajectories.recording.merging import SHARD
from ..energies import UNIT
from ..structures.journal import Journal, journal_of
from ..structures.outcomes import Outcome, Report
from .evaluation import ENERGIES, WalkerPoses
from .poses import Poses

POSES = "reports of poses"  # in a journal's head: the names of all reports of the run
_ATTRIBUTES = "attributes"  # of the table, in JSON
_PARAMETERS = "parameters"  # the attribute that is JSON by itself


def save_poses(output: Path, poses: Poses, attributes: Mapping[str, object]) -> None:
    """Write a row for each pose."""
    write_table(output, poses.columns(), dict.fromkeys(ENERGIES, UNIT), attributes)


def written_down(
    walkers: Sequence[Walker], everyone: Sequence[Walker], output: Path | None, attributes: Mapping[str, object],
    shard: Shard | None, resumes: bool, over: Callable[[Sequence[Walker]], Iterator[WalkerPoses]],
) -> list[WalkerPoses]:  # fmt: skip
    """The poses of walkers, each written beside the output as it comes, where there is one.

    everyone : the walkers of all shards; attributes : of the table; over : computes walkers in their order
    """
    if output is None:
        return list(over(walkers))
    head = {POSES: json.dumps([of.name for of in everyone]), _ATTRIBUTES: json.dumps(attributes, default=str)}
    files = {Path(of.name): of for of in walkers}
    with Journal(journal_of(output), head | ({} if shard is None else {SHARD: str(shard)})) as journal:
        earlier = journal.resume(list(files), lambda name: _fingerprint(files[name])) if resumes else []
        found = walkers_in(earlier)
        left = walkers[len(found) :]
        marks = map(_fingerprint, left)  # before a walker is computed: its run may still write
        for walker, mark, poses in zip(left, marks, over(left), strict=True):
            journal.append(Outcome(Path(walker.name), mark, cast(Report, poses.as_json())))
            found.append(poses)
    return found


def walkers_in(outcomes: Sequence[Outcome]) -> list[WalkerPoses]:
    """The poses that were written down."""
    return [WalkerPoses.from_json(of.report or {}) for of in outcomes]


def attributes_in(head: Mapping[str, str]) -> dict[str, object]:
    """The attributes of the table, from the head of a journal."""
    found: dict[str, object] = json.loads(head[_ATTRIBUTES])
    return {**found, _PARAMETERS: JsonText(found[_PARAMETERS])}


def _fingerprint(walker: Walker) -> str:
    """By which a walker's files are known again; empty where one cannot be read."""
    try:
        return json.dumps([fingerprint(path) for path in (walker.report, walker.trajectory)])
    except OSError:
        return ""
