"""The poses of a run as a table, and the journal beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...binding.pele import Walker
from ...formats import JsonText, write_table
from ...jobs import Journal, Shard
from ..energies import UNIT
from ..structures.several import journal_of
from .evaluation import ENERGIES
from .poses import Poses

POSES = "poses"  # the kind of a journal
_ATTRIBUTES = "attributes"  # of the table, in JSON
_PARAMETERS = "parameters"  # the attribute that is JSON by itself


def save_poses(output: Path, poses: Poses, attributes: Mapping[str, object]) -> None:
    """Write a row for each pose."""
    write_table(output, poses.columns(), dict.fromkeys(ENERGIES, UNIT), attributes)


def journal_of_poses(
    output: Path | None, attributes: Mapping[str, object], shard: Shard | None, everyone: Sequence[Walker]
) -> Journal:
    """The journal beside a table; attributes : of the table; everyone : the walkers of all shards."""
    path = None if output is None else journal_of(output)
    settings = {_ATTRIBUTES: json.dumps(attributes, default=str)}
    return Journal(path, settings, kind=POSES, shard=shard, items=[of.name for of in everyone])


def attributes_in(head: Mapping[str, str]) -> dict[str, object]:
    """The attributes of the table, from the head of a journal."""
    found: dict[str, object] = json.loads(head[_ATTRIBUTES])
    return {**found, _PARAMETERS: JsonText(found[_PARAMETERS])}
