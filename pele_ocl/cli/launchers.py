"""Programs that start a command several times: mpirun and srun."""

from __future__ import annotations

import os
from collections.abc import Mapping

# Where launchers tell a process its number, from 0, and how many processes there are.
_NAMES = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMIX_RANK", "PMIX_SIZE"), ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),  # not SLURM_NTASKS, which a batch script has without srun, too
)  # fmt: skip

# Where they tell the number of a process among those of its host.
_LOCAL = "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"


def launched(environment: Mapping[str, str] = os.environ) -> tuple[int, int]:
    """Give the number of this process, from 0, and how many a launcher started; 0 and 1 without one."""
    for rank, size in _NAMES:
        if environment.get(rank, "").isdigit() and environment.get(size, "").isdigit():
            return int(environment[rank]), int(environment[size])
    return 0, 1


def device_of_rank(choice: str | None) -> str:
    """Give the number of the device of this process: of equal ones that fit a choice, each has the next."""
    from ..opencl.device import equal_devices

    equal = equal_devices(choice)
    return str(equal[local_rank() % len(equal)].index)


def local_rank(environment: Mapping[str, str] = os.environ) -> int:
    """Give the number of this process among the ones of its host, from 0; 0 without a launcher that tells."""
    return next((int(environment[name]) for name in _LOCAL if environment.get(name, "").isdigit()), 0)
