"""Shards of the poses of a PELE run, which become one table."""

from __future__ import annotations

import json
from pathlib import Path

from ...formats import require_table_suffix
from ..pele_run.poses import Poses
from ..pele_run.tables import POSES, attributes_in, save_poses, walkers_in
from ..terminal import say, say_json
from .structures import outcomes_of_shards, remove

__all__ = ["POSES", "merge_poses"]


def merge_poses(shards: tuple[Path, ...], output: Path, as_json: bool) -> None:
    """Write the table of all poses with their ranks, and report; the shards are then gone."""
    require_table_suffix(output)
    outcomes, whole = outcomes_of_shards(shards, lambda head: json.loads(head[POSES]))
    poses = Poses.of(walkers_in(outcomes))
    save_poses(output, poses, attributes_in(whole))
    remove(shards)
    if as_json:
        say_json(poses.as_json())
    else:
        say("\n".join(poses.lines()))
    poses.exit_with_failures()
