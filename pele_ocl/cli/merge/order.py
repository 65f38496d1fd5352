"""Shards in their order, once it is sure that each is there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ...cluster import Shard
from ...errors import FormatError
from ...trajectories.recording.merging import SHARD

Facts = Mapping[str, object]  # of a run, the same in all its shards but for SHARD


def in_order(facts: Mapping[Path, Facts]) -> tuple[list[Path], Facts]:
    """The files in the order of their shards, and the facts that all share.

    Raises FormatError for a file that is of no shard, and unless each shard of one run is there once.
    """
    by_number, wholes, counts = dict[int, Path](), list[Facts](), set[int]()
    for path, of in facts.items():
        if SHARD not in of:
            raise FormatError(f"{path}: is no shard; give the files that runs with --shard wrote")
        shard = Shard.of(str(of[SHARD]))
        if shard.number in by_number:
            raise FormatError(f"{path}: is the shard {shard}, as {by_number[shard.number]} is; give each once")
        by_number[shard.number] = path
        counts.add(shard.count)
        wholes.append({name: value for name, value in of.items() if name != SHARD})
        if wholes[-1] != wholes[0] or len(counts) > 1:
            raise FormatError(f"{path}: is of another run than {next(iter(facts))}; give the shards of one")
    missing = sorted(set(range(1, counts.pop() + 1)) - set(by_number))
    if missing:
        raise FormatError(
            f"{len(missing):,} shards are missing, the first is {missing[0]}; run them, or give them, too"
        )
    return [by_number[number] for number in sorted(by_number)], wholes[0]
