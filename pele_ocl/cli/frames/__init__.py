"""Options about trajectories, and frames that commands go through."""

from __future__ import annotations

from .options import FrameOptions, frame_options, noted, trajectory_flags, trajectory_options
from .run import FrameLine

__all__ = ["FrameLine", "FrameOptions", "frame_options", "noted", "trajectory_flags", "trajectory_options"]
