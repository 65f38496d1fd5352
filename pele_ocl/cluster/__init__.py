"""Work shared out to other processes, of this machine or of a cluster, by Dask."""

from __future__ import annotations

from .connecting import connected
from .shards import Shard
from .tasks import WorkersDiedError, in_order

__all__ = ["Shard", "WorkersDiedError", "connected", "in_order"]
