"""Dask workers: local processes, or an existing cluster."""

from __future__ import annotations

import json
import logging
import os
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..common.errors import InputError
from ..common.extras import extra
from ..common.notes import note
from .places import own_cores
from .tasks import GONE, RESOURCE

if TYPE_CHECKING:
    from distributed import Client, LocalCluster

    from .worker_start import WorkerStart

_ENVIRONMENT = "distributed.nanny.pre-spawn-environ"  # key of Dask's configuration
_PATIENCE = 30  # timeout in s for connections to a scheduler and the start of local workers
_MOST_DEATHS = 5  # workers killed by a task before it is given up
_ATTEMPTS = 3  # to start or register workers if one dies meanwhile


@contextmanager
def connected(workers: int | None, scheduler: str | None, device: str | None) -> Iterator[Client]:
    """Context manager for a Dask client whose workers each have an OpenCL device.

    workers : number of processes to start on this machine; scheduler : address of a scheduler, or its file
    device : choice of devices, as in PELE_OCL_DEVICE

    Raises InputError if Dask is not installed, no scheduler answers, or workers were started without the resource
    `ocl`; DeviceError if a worker has no matching device.
    """
    from .worker_start import WorkerStart  # first, because it checks that Dask is installed

    from distributed import Client  # isort: skip

    for name in ("distributed", *logging.root.manager.loggerDict):  # Dask logs every lost worker
        if name.startswith("distributed"):
            logging.getLogger(name).setLevel(logging.CRITICAL)

    with _local(workers) if workers is not None else at_scheduler(str(scheduler)) as place:
        try:
            client = Client(**place, timeout=_PATIENCE)  # type: ignore[no-untyped-call]
        except (OSError, ValueError) as error:
            raise InputError(f"{scheduler}: no Dask scheduler responds ({error})") from None
        with client:
            _register(client, WorkerStart(device, is_local=workers is not None))
            _require_resource(client)
            yield client


@contextmanager
def _local(workers: int) -> Iterator[dict[str, object]]:
    """Context manager for local workers, which divide the cores of this machine. Dead workers are restarted.

    Anyone with access to a Dask port could run arbitrary code. Therefore all ports require a temporary certificate,
    which is kept in memory, and the dashboard is disabled.
    """
    import dask

    from .worker_start import WORKER_ENVIRONMENT

    variables = {**dask.config.get(_ENVIRONMENT), **WORKER_ENVIRONMENT}
    settings = {
        "distributed.scheduler.allowed-failures": _MOST_DEATHS, _ENVIRONMENT: variables,
        "distributed.scheduler.http.routes": [], "distributed.worker.http.routes": [],
    }  # fmt: skip
    with _restored((*variables, "PYTHONHASHSEED")), dask.config.set(settings), _begun(workers) as cluster:
        yield {"address": cluster}


@contextmanager
def _restored(names: Iterable[str]) -> Iterator[None]:
    """Restore environment variables after the block, because Dask sets those of workers in this process."""
    before = {name: os.environ.get(name) for name in names}
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _begun(workers: int) -> LocalCluster:
    """Start the processes. Raises InputError if they repeatedly die during startup."""
    from distributed import LocalCluster
    from distributed.security import Security

    extra("cryptography", "work on several processes")
    security = Security.temporary()  # type: ignore[no-untyped-call]
    threads = max(1, len(own_cores()) // workers)
    for _ in range(_ATTEMPTS):
        try:
            with _without_interrupts():
                return LocalCluster(  # type: ignore[no-untyped-call]
                    n_workers=workers, threads_per_worker=threads, processes=True, dashboard_address="127.0.0.1:0",
                    memory_limit=None, resources={RESOURCE: 1}, silence_logs=logging.CRITICAL, security=security,
                    scheduler_kwargs={"dashboard": False},  # otherwise it would use a default port
                )  # fmt: skip
        except RuntimeError:  # "Nanny failed to start."
            continue
    raise InputError(
        f"workers crashed {_ATTEMPTS} times at startup; is there enough memory for {workers:,} of them? Each begins by "
        'importing the script that asked for it: code to run must be below if __name__ == "__main__":'
    )


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Block Ctrl-C for threads and processes started within the block, which are stopped by this process instead.

    They inherit the signal mask, as do restarted workers.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # started first, because its start unblocks the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _register(client: Client, plugin: WorkerStart) -> None:
    """Register a plugin with all current and future workers.

    Raises InputError if the connection to the scheduler is lost, or workers repeatedly die.
    """
    for _ in range(_ATTEMPTS):
        try:
            client.register_plugin(plugin)
        except OSError:  # a worker died meanwhile; try again with the others
            time.sleep(1)
        else:
            return
    raise InputError(GONE)


@contextmanager
def at_scheduler(scheduler: str) -> Iterator[dict[str, object]]:
    """Context manager for the scheduler at an address, or described by a scheduler file."""
    is_address = "://" in scheduler
    if not is_address and not Path(scheduler).is_file():
        raise InputError(f"{scheduler}: no such file; `scheduler` takes tcp://HOST:PORT or a scheduler's file")
    place: dict[str, object] = {"address": scheduler} if is_address else {"scheduler_file": scheduler}
    if not _address(scheduler).startswith("tls://"):
        note(
            f"Note: {scheduler}: this scheduler does not authenticate its clients; anyone who can connect to its "
            "port can run any program as its user. Start it with certificates (dask scheduler --tls-cert), or on a "
            "private network"
        )
    yield place


def _address(scheduler: str) -> str:
    """Return the address in a scheduler file, "" if there is none."""
    if "://" in scheduler:
        return scheduler
    try:
        return str(json.loads(Path(scheduler).read_bytes())["address"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _require_resource(client: Client) -> None:
    """Raise InputError if no current worker has the resource. A cluster without workers is accepted."""
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    if workers and not any(worker["resources"].get(RESOURCE) for worker in workers):
        raise InputError(
            f"the {len(workers):,} workers of this cluster have no resource {RESOURCE}; start them by: dask worker ... "
            f"--resources {RESOURCE}=1"
        )
