"""Shards of structures, whose outcomes become a table."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ...cluster import Shard
from ...errors import FormatError
from ...formats import JsonText
from ...formats.tables import require_table_suffix
from ...trajectories.recording.merging import SHARD
from ..structures.journal import read_journal
from ..structures.outcomes import Outcome, report, save
from .order import in_order


def merge_structures(shards: tuple[Path, ...], output: Path, as_json: bool) -> None:
    """Write the table of all structures, and report; the shards are then gone, as nothing is left to resume."""
    require_table_suffix(output)
    outcomes, whole = outcomes_of_shards(shards, _paths)
    save(output, outcomes, {**whole, "parameters": JsonText(whole["parameters"])})
    remove(shards)
    report(outcomes, as_json)


def outcomes_of_shards(
    shards: Sequence[Path], everyone: Callable[[Mapping[str, str]], Sequence[str]]
) -> tuple[list[Outcome], dict[str, str]]:
    """The outcomes in all shards' files, in order, and what the heads of all say.

    everyone : finds in a head the names of all structures. Raises FormatError where a shard lacks some of its own.
    """
    read = {path: read_journal(path) for path in shards}
    paths, whole = in_order({path: head for path, (head, _) in read.items()})
    outcomes = list[Outcome]()
    for path in paths:
        head, found = read[path]
        wanted = Shard.of(head[SHARD]).part(everyone(head), "structures")
        if [str(of.path) for of in found] != wanted:
            raise FormatError(
                f"{path}: holds {len(found):,} of {len(wanted):,} structures; run its shard again with --resume"
            )
        outcomes += found
    return outcomes, {name: str(value) for name, value in whole.items()}


def remove(shards: Sequence[Path]) -> None:
    """Remove files of shards whose results stand in another."""
    for path in shards:
        path.unlink(missing_ok=True)


def _paths(head: Mapping[str, str]) -> list[str]:
    paths: list[str] = json.loads(head["parameters"])["path"]
    return paths
