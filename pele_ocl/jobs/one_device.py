"""Plugin of Dask: gives each worker one OpenCL device of its host, or a group of its cores."""

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

_is_settled: list[bool] = []  # in a worker's process, once it has its device


class OneDevice(WorkerPlugin):
    """Share a host: a worker gets a core for each of its threads, and the least used device.

    choice : of the devices, as --device has it
    units : compute units that decide on layouts, so that results do not depend on how many workers share the cores;
        None for the units of each worker
    """

    name = "pele-ocl-one-device"

    def __init__(self, choice: str | None, units: int | None) -> None:
        self.choice, self.units = choice, units
        self._locks: list[FileLock] = []

    def setup(self, worker: Worker) -> None:
        """Take cores before any runtime is loaded, which makes threads; then a device."""
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
        """Give the places back."""
        while self._locks:
            self._locks.pop().release()


def require_settled() -> None:
    """Raise InputError in a worker that has no device of its own."""
    if not _is_settled:
        raise InputError("a worker has got no device; see its log, mend it and start it again")
