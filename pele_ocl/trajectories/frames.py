"""Selection of frames, counted from 0 across several files."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..common.arguments import described
from ..common.errors import InputError

FrameWords = str | slice | int | None
_WORD = re.compile(r"\s*([-+]?\d+)?\s*")


def frames_slice(frames: FrameWords) -> slice:
    """Convert START:STOP:STEP, a number, a slice, or None for all frames to a slice.

    Raises InputError for other values, and for a step below 1.
    """
    if isinstance(frames, str):
        frames = _parsed(frames)
    if frames is None:
        return slice(None)
    if isinstance(frames, int) and not isinstance(frames, bool):
        return slice(frames, frames + 1 if frames != -1 else None)
    if not isinstance(frames, slice) or any(
        not isinstance(end, int | None) for end in (frames.start, frames.stop, frames.step)
    ):
        raise InputError(f"frames are {described(frames)}; expected START:STOP:STEP, whole numbers")
    if frames.step is not None and frames.step < 1:
        raise InputError(f"the step of the frames is {frames.step}; expected 1 or more")
    return frames


def _parsed(words: str) -> slice | int:
    parts = words.split(":")
    found = [_WORD.fullmatch(part) for part in parts]
    if len(parts) > 3 or None in found or not words.strip():
        raise InputError(f"frames are {words[:60]!r}; expected START:STOP:STEP, as in 100:, :500:5 or -100:")
    numbers = [int(match[1]) if match is not None and match[1] else None for match in found]
    if len(numbers) == 1 and numbers[0] is not None:
        return numbers[0]
    return slice(*numbers)


def parts_of(frames: range, counts: Sequence[int]) -> list[tuple[int, range]]:
    """Split frames by file: (index of the file, frames in the file), without empty parts.

    frames : ascending, counted across all files; counts : number of frames in each file
    """
    parts, first = [], 0
    for file, count in enumerate(counts):
        skipped = max(0, -(-(first - frames.start) // frames.step))
        own = range(frames.start + skipped * frames.step - first, min(count, frames.stop - first), frames.step)
        if own:
            parts.append((file, own))
        first += count
    return parts
