"""Options about trajectories, and frames that commands go through."""

from __future__ import annotations

from .options import FrameOptions, frame_options, noted, trajectory_flags, trajectory_options
from .run import FrameLine
from .sharing import FramesSpec, OpenedFrames, shared_frames

__all__ = [
    "FrameLine",
    "FrameOptions",
    "FramesSpec",
    "OpenedFrames",
    "frame_options",
    "noted",
    "shared_frames",
    "trajectory_flags",
    "trajectory_options",
]
