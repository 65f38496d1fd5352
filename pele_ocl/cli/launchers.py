"""Programs that start a command several times: mpirun and srun."""

from __future__ import annotations

import os
from collections.abc import Mapping

# Where launchers tell a process its number, from 0, and how many processes there are.
_NAMES = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMIX_RANK", "PMIX_SIZE"), ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
)  # fmt: skip


def launched(environment: Mapping[str, str] = os.environ) -> tuple[int, int]:
    """Give the number of this process, from 0, and how many a launcher started; 0 and 1 without one."""
    for rank, size in _NAMES:
        if environment.get(rank, "").isdigit() and environment.get(size, "").isdigit():
            return int(environment[rank]), int(environment[size])
    return 0, 1
