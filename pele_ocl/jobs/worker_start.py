"""Start of a worker: its environment; then, first of all in its process, its cores and its OpenCL device.

Local workers are the processes that a command starts; a scheduler's were started by others, and have their own
environment. `WorkerStart.setup` runs in both.
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

# Variables of local workers, set before their processes begin, as numpy reads its number of threads when it is loaded.
# They go beside Dask's own of `pre-spawn-environ`: OMP_, MKL_ and OPENBLAS_NUM_THREADS are 1 there. A variable that the
# user has set stays.
WORKER_ENVIRONMENT = {"DASK_LOGGING__DISTRIBUTED": "critical"}

_is_settled: list[bool] = []  # in a worker's process, once it has its device


class WorkerStart(WorkerPlugin):
    """Plugin of Dask: a worker gets the smallest used device and a core for each of its threads.

    choice : of the devices, as in PELE_OCL_DEVICE
    is_local : whether the command starts the workers itself, on its own machine. All its cores then decide on layouts,
        so that results do not depend on how many workers share them; else each worker's own
    """

    name = "pele-ocl-start"

    def __init__(self, choice: str | None, is_local: bool) -> None:
        self.choice, self.is_local = choice, is_local
        self.units = len(own_cores()) if is_local else None
        self._locks: list[FileLock] = []

    def setup(self, worker: Worker) -> None:
        """Begin a worker. It takes its cores before any runtime is loaded, which makes threads; then a device."""
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
        """Release the places."""
        while self._locks:
            self._locks.pop().release()


def require_settled() -> None:
    """Raise InputError in a worker that has no device of its own."""
    if not _is_settled:
        raise InputError("a worker has got no device; see its log, mend it and start it again")
