"""Frames shared as the options of the command that runs say."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from ...trajectories import sharing
from ...trajectories.sharing import FramesSpec as FramesSpec
from ...trajectories.sharing import OpenedFrames as OpenedFrames
from ...trajectories.sharing import SharedFrames
from ..cluster import cluster_options_of
from ..command import current


def shared_frames(spec: FramesSpec, output: Path | None, resume: bool) -> AbstractContextManager[SharedFrames]:
    """Open the way through frames that --workers, --scheduler and --shard ask for."""
    context = current()
    cluster, device = cluster_options_of(context), context.params.get("device")
    place = cluster.place(device if isinstance(device, str) else None)
    return sharing.shared_frames(spec, output, resume, place, cluster.shard)
