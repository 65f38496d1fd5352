"""Start of a worker: its environment, and the assignment of cores and an OpenCL device.

Local workers are started by this program. Workers of a scheduler are started by the user, with their own environment.
`WorkerStart.setup` runs in both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.errors import InputError
from ..common.extras import missing
from .places import claim, core_groups, own_cores, stay_on

try:
    from distributed.diagnostics.plugin import WorkerPlugin
except ModuleNotFoundError:
    raise missing("distributed", "work on several processes") from None

if TYPE_CHECKING:
    from distributed import Worker
    from filelock import FileLock

# Environment variables of local workers, set before their processes start. They are added to `pre-spawn-environ` of
# Dask, which sets OMP_, MKL_ and OPENBLAS_NUM_THREADS to 1. Variables set by the user are not changed.
WORKER_ENVIRONMENT = {"DASK_LOGGING__DISTRIBUTED": "critical"}

_is_settled: list[bool] = []  # not empty in a worker with a device


class WorkerStart(WorkerPlugin):
    """Dask plugin that assigns the least used device to a worker, and one core per thread.

    choice : choice of devices, as in PELE_OCL_DEVICE
    is_local : whether the workers run on this machine, started by this program. Layouts then depend on all cores of the
        machine, so that results do not depend on the number of workers; otherwise on the cores of each worker
    """

    name = "pele-ocl-start"

    def __init__(self, choice: str | None, is_local: bool) -> None:
        self.choice, self.is_local = choice, is_local
        self.units = len(own_cores()) if is_local else None
        self._locks: list[FileLock] = []

    def setup(self, worker: Worker) -> None:
        """Initialize a worker. Cores are assigned before an OpenCL runtime is loaded and creates threads."""
        groups = core_groups(own_cores(), worker.state.nthreads)
        group, lock = claim([f"cores-{cores[0]}-{cores[-1]}" for cores in groups])
        self._locks.append(lock)
        stay_on(groups[group])
        from ..opencl.device import equal_devices, fix_device

        equal = equal_devices(self.choice)
        place, lock = claim([f"device-{device.index}" for device in equal])
        self._locks.append(lock)
        fix_device(equal[place], self.units)
        _is_settled[:] = [True]

    def teardown(self, worker: Worker) -> None:
        """Release the cores and the device."""
        while self._locks:
            self._locks.pop().release()


def require_settled() -> None:
    """Raise InputError in a worker without a device."""
    if not _is_settled:
        raise InputError("a worker has no device; check its log, and start it again")
