"""Workers: processes of this machine, or of a Dask cluster that is there."""

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

_ENVIRONMENT = "distributed.nanny.pre-spawn-environ"  # of Dask's settings
_PATIENCE = 30  # seconds until a scheduler answers, or workers of this machine have begun
_MOST_DEATHS = 5  # of workers, with one task, before it counts as the reason
_ATTEMPTS = 3  # at what fails where a worker dies while it begins


@contextmanager
def connected(workers: int | None, scheduler: str | None, device: str | None) -> Iterator[Client]:
    """A client of Dask whose workers have an OpenCL device each, closed when the block ends.

    workers : how many processes of this machine to start; scheduler : the address of a scheduler, or its file
    device : the choice, as in PELE_OCL_DEVICE

    Raises InputError if Dask is not installed, nothing answers, or workers were started without the resource `ocl`;
    DeviceError if no device of a worker fits.
    """
    from .worker_start import WorkerStart  # needs Dask, and says so: it comes first

    from distributed import Client  # isort: skip

    for name in ("distributed", *logging.root.manager.loggerDict):  # Dask tells at length of each worker that it loses
        if name.startswith("distributed"):
            logging.getLogger(name).setLevel(logging.CRITICAL)

    with _local(workers) if workers is not None else at_scheduler(str(scheduler)) as place:
        try:
            client = Client(**place, timeout=_PATIENCE)  # type: ignore[no-untyped-call]
        except (OSError, ValueError) as error:
            raise InputError(f"{scheduler}: no scheduler of Dask answers there ({error})") from None
        with client:
            _register(client, WorkerStart(device, is_local=workers is not None))
            _require_resource(client)
            yield client


@contextmanager
def _local(workers: int) -> Iterator[dict[str, object]]:
    """Workers of this machine, which share its cores; a worker that dies is restarted.

    Whoever reaches a port of Dask may have it run any code. So all its ports ask for a certificate that this call makes
    and keeps in memory, and the servers of its status pages have no pages.
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
    """Restore variables of this process: Dask sets a worker's here, before each start, for the worker to inherit."""
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
    """Start the processes. Raises InputError if they die again and again while they begin."""
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
                    scheduler_kwargs={"dashboard": False},  # with no address it would take a port that others may have
                )  # fmt: skip
        except RuntimeError:  # "Nanny failed to start."
            continue
    raise InputError(
        f"workers died {_ATTEMPTS} times while they began; is there memory for {workers:,} of them? Each begins by "
        'importing the script that asked for it: what the script runs must be below if __name__ == "__main__":'
    )


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Block Ctrl-C for threads and processes that begin within the block: it is for this process, which ends them.

    Threads and processes inherit the mask of signals; so do workers that begin again.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # which unblocks the signal where it is begun
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _register(client: Client, plugin: WorkerStart) -> None:
    """Register a plugin with all workers, including those that start again.

    Raises InputError if the scheduler, or one worker after the other, is gone.
    """
    for _ in range(_ATTEMPTS):
        try:
            client.register_plugin(plugin)
        except OSError:  # a worker has died meanwhile; the next attempt meets those that are there
            time.sleep(1)
        else:
            return
    raise InputError(GONE)


@contextmanager
def at_scheduler(scheduler: str) -> Iterator[dict[str, object]]:
    """Find the scheduler at an address, or by a file that it wrote."""
    is_address = "://" in scheduler
    if not is_address and not Path(scheduler).is_file():
        raise InputError(f"{scheduler}: no such file; `scheduler` takes tcp://HOST:PORT or a scheduler's file")
    place: dict[str, object] = {"address": scheduler} if is_address else {"scheduler_file": scheduler}
    if not _address(scheduler).startswith("tls://"):
        note(
            f"Note: {scheduler}: this scheduler asks nobody who they are; whoever reaches its port can run any program "
            "as its user. Start it with certificates (dask scheduler --tls-cert), or where only you reach it"
        )
    yield place


def _address(scheduler: str) -> str:
    """Return the address of a scheduler, which its file has; "" if it has none."""
    if "://" in scheduler:
        return scheduler
    try:
        return str(json.loads(Path(scheduler).read_bytes())["address"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _require_resource(client: Client) -> None:
    """Raise InputError if there are workers, but none with the resource. Workers to come may have it."""
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    if workers and not any(worker["resources"].get(RESOURCE) for worker in workers):
        raise InputError(
            f"the {len(workers):,} workers of this cluster have no resource {RESOURCE}; start them by: dask worker ... "
            f"--resources {RESOURCE}=1"
        )
