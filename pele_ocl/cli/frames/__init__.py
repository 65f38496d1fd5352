"""Shared part of commands that go through trajectories: options, the way through the frames, reports."""

from __future__ import annotations

from .options import FrameOptions, frame_options, noted, trajectory_options
from .run import FrameWork, report_frames
from .sharing import FramesSpec, OpenedFrames, shared_frames

__all__ = [
    "FrameOptions",
    "FrameWork",
    "FramesSpec",
    "OpenedFrames",
    "frame_options",
    "noted",
    "report_frames",
    "shared_frames",
    "trajectory_options",
]
