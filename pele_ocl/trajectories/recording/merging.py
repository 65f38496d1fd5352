"""Files of results of shards, put together as one program would have written them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ...common.errors import FormatError
from ..streaming import FrameResults, PieceResults
from .recorder import Recorder, Settings

SHARD = "shard"  # the setting that a shard has and the whole has not

Open = Callable[[Path, Settings, range], Recorder]
PartOf = Callable[[str, range], range]  # the frames of the shard of this text, of all frames


def parts_of_shards(
    paths: Sequence[Path], settings: Sequence[Settings], open_file: Open, part_of: PartOf
) -> Iterator[PieceResults[FrameResults]]:
    """Yield the results of files of shards, in the order of the shards.

    settings : of each file. Raises FormatError if a file lacks frames.
    """
    for path, own in zip(paths, settings, strict=True):
        frames = part_of(own[SHARD], frames_in(own))
        with open_file(path, own, frames) as recorder:
            found = recorder.resume()
            if found is None or recorder.done < len(frames):
                raise FormatError(
                    f"{path}: holds {recorder.done:,} of {len(frames):,} frames; run its shard again with `resume`"
                )
        yield PieceResults(frames, found)


def frames_in(settings: Settings) -> range:
    """All frames of a run, from its settings. Raises FormatError if they are not there."""
    try:
        start, stop, step = map(int, settings["frames"].split(":"))
        return range(start, stop, step)
    except (KeyError, ValueError):
        raise FormatError("the settings of a file of results lack its frames; start again") from None
