"""Support for processes started by mpirun and srun."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from ..common.errors import InputError
from ..common.textfiles import whole
from .places import core_groups, own_cores, stay_on
from .shards import Shard

LAUNCHED = "mpi"  # value of `shard` for one part per process

# Environment variables with the rank of a process and the number of processes.
_NAMES = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMIX_RANK", "PMIX_SIZE"), ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),  # SLURM_NTASKS is also set without srun
)  # fmt: skip

# Environment variables with the rank of a process on its host.
_LOCAL = "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"

# Environment variables with the number of processes on a host; for srun `4`, or `4(x2),3` for several hosts.
_LOCAL_SIZE = "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_STEP_TASKS_PER_NODE"


def launched(environment: Mapping[str, str] = os.environ) -> tuple[int, int]:
    """Return the rank of this process and the number of processes; 0 and 1 without a launcher."""
    for rank, size in _NAMES:
        number, n = whole(environment.get(rank, "")), whole(environment.get(size, ""))
        if number is not None and n is not None:
            return number, n
    return 0, 1


def shard_of_process(words: str, most: int) -> Shard | None:
    """Return the shard of this process, started by mpirun or srun; None if it has no part.

    words : "mpi" for one part per process, or "mpi/4" for the first four processes; most : largest number of parts

    Raises InputError if there are too few processes.
    """
    rank, size = launched()
    _, _, asked = words.partition("/")
    count = size if words == LAUNCHED else whole(asked)
    if count is None or not 1 <= count or not words.startswith(LAUNCHED):
        raise InputError(f"`shard` is {words[:40]!r}; expected K/N, mpi or mpi/N")
    if count > size:
        raise InputError(f"`shard={words}` needs {count:,} processes, started by mpirun or srun; there are {size:,}")
    count = min(count, most)
    return Shard(rank + 1, count) if rank < count else None


def device_of_rank(choice: str | None, ranks: int) -> str:
    """Return the index of the device for this process. Matching, equal devices are assigned in turn.

    ranks : number of working processes, which divide the cores of their host
    """
    cores = _take_cores(ranks)  # before an OpenCL runtime creates threads
    from ..opencl.device import equal_devices, fix_device

    equal = equal_devices(choice)
    own = equal[local_rank() % len(equal)]
    if cores and own.kind == "CPU":
        fix_device(own, cores)  # layouts, and thus results, depend on all cores
    return str(own.index)


def _take_cores(ranks: int) -> int:
    """Pin this process to its part of the host's cores, and return the total number of cores; 0 if not pinned.

    The affinity of a process that was already pinned by its launcher is not changed.
    """
    cores, n = own_cores(), min(ranks, local_size())
    if n < 2 or len(cores) < (os.cpu_count() or 1):
        return 0
    groups = core_groups(cores, len(cores) // n)
    stay_on(groups[local_rank() % len(groups)])
    return len(cores)


def local_size(environment: Mapping[str, str] = os.environ) -> int:
    """Return the number of processes on this host; 1 if unknown."""
    found = (re.match(r"\d+", environment.get(name, "")) for name in _LOCAL_SIZE)
    return next((int(number[0]) for number in found if number), 1)


def local_rank(environment: Mapping[str, str] = os.environ) -> int:
    """Return the rank of this process on its host; 0 if unknown."""
    found = (whole(environment.get(name, "")) for name in _LOCAL)
    return next((number for number in found if number is not None), 0)
