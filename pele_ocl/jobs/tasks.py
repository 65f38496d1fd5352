"""Tasks for Dask workers, with results in the order of the tasks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from secrets import token_hex
from typing import TYPE_CHECKING, TypeVar

from ..common.errors import InputError

if TYPE_CHECKING:
    from distributed import Client, Future

Item = TypeVar("Item")
Result = TypeVar("Result")

RESOURCE = "ocl"  # one per worker, so that only one task at a time runs on a device
# Submitted tasks per worker. Dask assigns a task to the least busy worker on submission, so a small number balances the
# load between workers of different speed. Half of them are submitted in one message, to reduce the load on the
# scheduler, which may run on the same cores.
_UNDER_WAY = 32
_MOST_UNDER_WAY = 2048  # for all workers, to limit the memory for tasks and results

GONE = "the scheduler of the cluster is not running; start it again, and repeat the command with `resume`"


class WorkersDiedError(InputError):
    """Error of a task that has killed several workers."""


def in_order(
    client: Client, function: Callable[[Item], Result], items: Iterable[Item],
    died: Callable[[Item, WorkersDiedError], Result] | None = None,
) -> Iterator[Result]:  # fmt: skip
    """Apply a function to items on the workers, and yield the results in order.

    If a worker dies, its task is repeated on another worker.

    died : returns the result of a task that has killed several workers; by default, WorkersDiedError is raised

    Raises the errors of the function, and InputError if the connection to the scheduler is lost.
    """

    def ended(item: Item, future: Future[Result]) -> Result:
        try:
            return _result(future)
        except WorkersDiedError as error:
            if died is None:
                raise
            return died(item, error)

    under_way: deque[tuple[Item, Future[Result]]] = deque()
    waiting, name, n = iter(items), f"pele-ocl-{token_hex(16)}", 0
    most = _most_under_way(client)
    while together := list(islice(waiting, most // 2)):
        keys = [f"{name}-{n + k:012d}" for k in range(len(together))]  # the scheduler sorts tasks by key
        under_way.extend(zip(together, client.map(function, together, key=keys, resources={RESOURCE: 1}), strict=True))
        n += len(together)
        while len(under_way) > most // 2:
            yield ended(*under_way.popleft())
        most = _most_under_way(client)
    while under_way:
        yield ended(*under_way.popleft())


def _most_under_way(client: Client) -> int:
    """Return the maximum number of submitted tasks for the current number of workers."""
    n_workers = len(client.scheduler_info(n_workers=-1).get("workers", ()))  # empty if the client is closed
    return min(_MOST_UNDER_WAY, _UNDER_WAY * max(1, n_workers))


def on_each_worker(client: Client, function: Callable[[Item], Result], item: Item) -> Result:
    """Apply a function to one item on every worker, so that each is initialized. Returns the first result.

    Raises the same errors as `in_order`.
    """
    addresses = list(client.scheduler_info(n_workers=-1)["workers"]) or [None]
    futures = [
        client.submit(
            function,
            item,
            pure=False,
            resources={RESOURCE: 1},
            workers=address,
            allow_other_workers=address is not None,
        )
        for address in addresses
    ]
    return _result(futures[0])


def _result(future: Future[Result]) -> Result:
    from distributed import KilledWorker
    from distributed.client import FutureCancelledError
    from distributed.comm.core import CommClosedError

    try:
        found: Result = future.result()
    except KilledWorker:
        raise WorkersDiedError("every worker that ran this task crashed") from None
    except (FutureCancelledError, CommClosedError, TimeoutError):
        raise InputError(GONE) from None
    return found
