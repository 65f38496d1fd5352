"""Programs that start a command several times: mpirun and srun."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from ..common.errors import InputError
from ..common.textfiles import whole
from .places import core_groups, own_cores, stay_on
from .shards import Shard

LAUNCHED = "mpi"  # word for a part for each process of a launcher

# Where launchers tell a process its number, from 0, and how many processes there are.
_NAMES = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMIX_RANK", "PMIX_SIZE"), ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),  # not SLURM_NTASKS, which a batch script has without srun, too
)  # fmt: skip

# Where they tell the number of a process among those of its host.
_LOCAL = "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"

# Where they tell how many processes its host has; srun writes `4`, or `4(x2),3` of several hosts.
_LOCAL_SIZE = "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_STEP_TASKS_PER_NODE"


def launched(environment: Mapping[str, str] = os.environ) -> tuple[int, int]:
    """Return the number of this process, from 0, and how many a launcher started; 0 and 1 without one."""
    for rank, size in _NAMES:
        number, n = whole(environment.get(rank, "")), whole(environment.get(size, ""))
        if number is not None and n is not None:
            return number, n
    return 0, 1


def shard_of_process(words: str, most: int) -> Shard | None:
    """Return the part of this process, of those that mpirun or srun started; None if others have all parts.

    words : "mpi" for a part each, or "mpi/4" for the first four; most : parts that there can be

    Raises InputError if there are fewer processes.
    """
    rank, size = launched()
    _, _, asked = words.partition("/")
    count = size if words == LAUNCHED else whole(asked)
    if count is None or not 1 <= count or not words.startswith(LAUNCHED):
        raise InputError(f"`shard` is {words[:40]!r}; expected K/N, mpi or mpi/N")
    if count > size:
        raise InputError(f"`shard={words}` needs {count:,} processes, by mpirun or srun; there are {size:,}")
    count = min(count, most)
    return Shard(rank + 1, count) if rank < count else None


def device_of_rank(choice: str | None, ranks: int) -> str:
    """Return the number of the device of this process: of equal ones that fit a choice, each has the next.

    ranks : processes that work, which share the cores of their host
    """
    cores = _take_cores(ranks)  # before any runtime is loaded, which makes threads
    from ..opencl.device import equal_devices, fix_device

    equal = equal_devices(choice)
    own = equal[local_rank() % len(equal)]
    if cores and own.kind == "CPU":
        fix_device(own, cores)  # layouts, and so results, go by all cores
    return str(own.index)


def _take_cores(ranks: int) -> int:
    """Keep this process on its part of the cores of the host; give their number, 0 if it may use them all.

    A process that its launcher keeps on some of them stays there.
    """
    cores, n = own_cores(), min(ranks, local_size())
    if n < 2 or len(cores) < (os.cpu_count() or 1):
        return 0
    groups = core_groups(cores, len(cores) // n)
    stay_on(groups[local_rank() % len(groups)])
    return len(cores)


def local_size(environment: Mapping[str, str] = os.environ) -> int:
    """Return the number of processes on this host; 1 without a launcher that tells."""
    found = (re.match(r"\d+", environment.get(name, "")) for name in _LOCAL_SIZE)
    return next((int(number[0]) for number in found if number), 1)


def local_rank(environment: Mapping[str, str] = os.environ) -> int:
    """Return the number of this process among the ones of its host, from 0; 0 without a launcher that tells."""
    found = (whole(environment.get(name, "")) for name in _LOCAL)
    return next((number for number in found if number is not None), 0)
