"""Shards of frames, which become the file of all frames."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from ...cluster import Shard
from ...trajectories.recording import RECORDERS, Settings, require_record_suffix
from ...trajectories.recording.merging import frames_in, parts_of_shards
from ..frames.tally import Tally
from ..terminal import say, say_json
from .order import in_order


def merge_frames(shards: tuple[Path, ...], output: Path, as_json: bool) -> None:
    """Write the results of all frames, and report."""
    suffix = require_record_suffix(output)
    there = {path: RECORDERS[require_record_suffix(path)](path, {}, range(0)).settings_there() for path in shards}
    paths, whole = in_order(there)
    settings = cast(Settings, whole)
    tally = Tally(keeps_rows=as_json)
    with RECORDERS[suffix](output, settings, frames_in(settings)) as recorder:
        parts = parts_of_shards(
            paths, [there[path] for path in paths], lambda path, *rest: RECORDERS[path.suffix.lower()](path, *rest),
            lambda words, frames: Shard.of(words).part(frames, "frames"),
        )  # fmt: skip
        for part in parts:
            recorder.append(part.results)
            tally.add(part)
    tally.end()
    if as_json:
        say_json(tally.as_json())
    else:
        say("\n".join(tally.lines(f"{len(shards):,} shards")).lstrip("\n"))
    tally.exit_with_failures()
