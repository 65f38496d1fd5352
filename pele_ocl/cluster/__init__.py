"""Work shared out to other processes, of this machine or of a cluster, by Dask."""

from __future__ import annotations

from .connecting import connected
from .shards import Shard
from .tasks import WorkersDiedError, in_order, on_each_worker

__all__ = ["Shard", "WorkersDiedError", "connected", "in_order", "on_each_worker"]
