"""Workers: processes of this machine, or those of a Dask cluster that is there."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InputError
from .places import own_cores
from .tasks import RESOURCE

if TYPE_CHECKING:
    from distributed import Client

_PATIENCE = 30  # seconds until a scheduler answers, or workers of this machine have begun
_MOST_DEATHS = 5  # of workers, with one task, before it counts as the reason


@contextmanager
def connected(workers: int | None, scheduler: str | None, device: str | None) -> Iterator[Client]:
    """A client of Dask whose workers have an OpenCL device each, closed when the block ends.

    workers : how many processes of this machine to start; scheduler : the address of a scheduler, or its file
    device : the choice, as --device has it

    Raises InputError where Dask is not installed, nothing answers, or workers were started without the resource `ocl`;
    DeviceError where no device of a worker fits.
    """
    from distributed import Client

    from .one_device import OneDevice  # needs Dask, and says so

    for name in ("distributed", *logging.root.manager.loggerDict):  # Dask tells at length of each worker that it loses
        if name.startswith("distributed"):
            logging.getLogger(name).setLevel(logging.CRITICAL)

    with _local(workers) if workers is not None else _running(str(scheduler)) as place:
        try:
            client = Client(**place, timeout=_PATIENCE)  # type: ignore[no-untyped-call]
        except (OSError, ValueError) as error:
            raise InputError(f"{scheduler}: no scheduler of Dask answers there ({error})") from None
        with client:
            client.register_plugin(OneDevice(device, None if workers is None else len(own_cores())))
            _require_resource(client)
            yield client


@contextmanager
def _local(workers: int) -> Iterator[dict[str, object]]:
    """Workers of this machine, which share its cores; a worker that dies is begun anew."""
    import dask
    from distributed import LocalCluster

    quiet = {"DASK_LOGGING__DISTRIBUTED": "critical"}
    threads = max(1, len(own_cores()) // workers)
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": _MOST_DEATHS}),
        LocalCluster(  # type: ignore[no-untyped-call]
            n_workers=workers, threads_per_worker=threads, processes=True, dashboard_address=None, memory_limit=None,
            resources={RESOURCE: 1}, silence_logs=logging.CRITICAL, env=quiet,
        ) as cluster,
    ):  # fmt: skip
        yield {"address": cluster}


@contextmanager
def _running(scheduler: str) -> Iterator[dict[str, object]]:
    """The scheduler at an address, or of a file that it wrote."""
    is_address = "://" in scheduler
    if not is_address and not Path(scheduler).is_file():
        raise InputError(f"{scheduler}: no such file; --scheduler takes tcp://HOST:PORT or a scheduler's file")
    yield {"address": scheduler} if is_address else {"scheduler_file": scheduler}


def _require_resource(client: Client) -> None:
    """Raise InputError where there are workers, but none that has the resource; those to come may have it."""
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    if workers and not any(worker["resources"].get(RESOURCE) for worker in workers):
        raise InputError(
            f"the {len(workers):,} workers of this cluster have no resource {RESOURCE}; start them by: dask worker ... "
            f"--resources {RESOURCE}=1"
        )
