"""Tasks for workers, and their results in the order of the tasks."""

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

RESOURCE = "ocl"  # of which each worker has one, so that one task at a time runs on its device
# Tasks of a worker that are under way. The scheduler gives each task to a worker at once, to the one that has least to
# do: with few, workers that differ in speed end together. Half of them go in one message, as each message costs the
# scheduler, which may share the workers' cores.
_UNDER_WAY = 32
_MOST_UNDER_WAY = 2048  # of all workers, so that neither they nor their results fill a memory

GONE = "the scheduler of the cluster is gone; start it again, and give the same command with `resume`"


class WorkersDiedError(InputError):
    """A task with which one worker after the other has died."""


def in_order(
    client: Client, function: Callable[[Item], Result], items: Iterable[Item],
    died: Callable[[Item, WorkersDiedError], Result] | None = None,
) -> Iterator[Result]:  # fmt: skip
    """Compute a function of items, each on the next free worker; results are in the items' order.

    A task whose worker dies is given to another worker.

    died : returns the result of a task that kills all of them; without it, WorkersDiedError is raised

    Also raises what the function raises, and InputError if the scheduler is gone.
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
        keys = [f"{name}-{n + k:012d}" for k in range(len(together))]  # by which the scheduler orders them
        under_way.extend(zip(together, client.map(function, together, key=keys, resources={RESOURCE: 1}), strict=True))
        n += len(together)
        while len(under_way) > most // 2:
            yield ended(*under_way.popleft())
        most = _most_under_way(client)
    while under_way:
        yield ended(*under_way.popleft())


def _most_under_way(client: Client) -> int:
    """Count the tasks that the workers that are there now may have."""
    n_workers = len(client.scheduler_info(n_workers=-1).get("workers", ()))  # none of a client that was closed
    return min(_MOST_UNDER_WAY, _UNDER_WAY * max(1, n_workers))


def on_each_worker(client: Client, function: Callable[[Item], Result], item: Item) -> Result:
    """Compute a function of one item on all workers at once, so that each is ready.

    Raises as `in_order` does.
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
        raise WorkersDiedError("every worker that took this task died of it") from None
    except (FutureCancelledError, CommClosedError, TimeoutError):
        raise InputError(GONE) from None
    return found
