"""Merging of the results of shards into one file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ...common.errors import FormatError
from ..streaming import FrameResults, PieceResults
from .recorder import Recorder, Settings

SHARD = "shard"  # setting that only shards have

Open = Callable[[Path, Settings, range], Recorder]
PartOf = Callable[[str, range], range]  # returns the frames of a shard


def parts_of_shards(
    paths: Sequence[Path], settings: Sequence[Settings], open_file: Open, part_of: PartOf
) -> Iterator[PieceResults[FrameResults]]:
    """Yield the results in the files of shards, in order.

    settings : settings of each file. Raises FormatError if a file is incomplete.
    """
    for path, own in zip(paths, settings, strict=True):
        frames = part_of(own[SHARD], frames_in(own))
        with open_file(path, own, frames) as recorder:
            found = recorder.resume()
            if found is None or recorder.done < len(frames):
                raise FormatError(
                    f"{path}: contains {recorder.done:,} of {len(frames):,} frames; run this shard again with `resume`"
                )
        yield PieceResults(frames, found)


def frames_in(settings: Settings) -> range:
    """Return the frames of a run from its settings. Raises FormatError if they are missing."""
    try:
        start, stop, step = map(int, settings["frames"].split(":"))
        return range(start, stop, step)
    except (KeyError, ValueError):
        raise FormatError("the settings of a result file do not contain its frames; start again") from None
