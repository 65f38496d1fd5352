"""Computation of items in this process or by workers, which unpickle the work only once."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from secrets import token_hex
from typing import Any, Generic, Protocol, TypeVar

from ..common.errors import InputError
from ..common.notes import Note, collected_notes, note, warnings_as_notes
from ..formats.tables import flat_texts
from .shards import HERE, Place
from .tasks import WorkersDiedError, in_order, on_each_worker
from .workers import connected

Item = TypeVar("Item")
ItemIn = TypeVar("ItemIn", contravariant=True)
Result = TypeVar("Result")
ResultOut = TypeVar("ResultOut", covariant=True)
Facts = Mapping[str, Any]  # known before the computation, equal in all workers


class Work(Protocol[ItemIn, ResultOut]):
    """Picklable object that computes items."""

    def compute(self, item: ItemIn, /) -> ResultOut: ...

    def facts(self) -> Facts: ...


@dataclass(frozen=True)
class Shared(Generic[Item, Result]):
    """Pool that computes items in this process or by workers.

    results : function that yields the results of items, in order
    facts : facts of the computing processes; is_remote : whether these are other processes
    n_workers : number of processes
    """

    results: Callable[[Iterable[Item]], Iterator[Result]]
    facts: Facts
    is_remote: bool = False
    n_workers: int = 1


@contextmanager
def shared(
    work: Work[Item, Result], place: Place = HERE, died: Callable[[Item, WorkersDiedError], Result] | None = None
) -> Iterator[Shared[Item, Result]]:
    """Open a pool that computes items with `work.compute`, in this process or in others with the same file system.

    died : function that returns the result of an item that killed several workers; by default, an error is raised

    Raises InputError if the facts of workers differ, and the errors of `compute`.
    """
    if not place.is_remote:
        yield Shared(partial(map, work.compute), work.facts())
        return
    with connected(place.workers, place.scheduler, place.device) as client:
        if not client.scheduler_info(n_workers=-1)["workers"]:
            note("The cluster has no workers yet; the work starts when the first is available")
        sent = _Sent.of(work)
        first = on_each_worker(client, _facts_of, sent)
        found, told = first.result, set[str](first.notes)  # notes already printed by this process

        def results(items: Iterable[Item]) -> Iterator[Result]:
            unfinished = None if died is None else lambda item, error: _Answer(died(item, error), [])
            for answer in in_order(client, partial(_computed, sent, found), items, unfinished):
                yield _told(answer, told)

        yield Shared(results, found, is_remote=True, n_workers=len(client.scheduler_info(n_workers=-1)["workers"]))


@dataclass(frozen=True)
class _Sent:
    """Pickled work for workers. folder : working folder; key : unique per call, since files may change between calls"""

    data: bytes = field(repr=False)
    folder: str
    key: str

    @classmethod
    def of(cls, work: object) -> _Sent:
        import cloudpickle  # installed with Dask; supports classes of scripts and notebooks

        return cls(cloudpickle.dumps(work), os.getcwd(), token_hex(16))


@dataclass(frozen=True)
class _Answer(Generic[Result]):
    """Result of a worker, and its notes for the user."""

    result: Result
    notes: list[Note]


def _told(answer: _Answer[Result], told: set[str]) -> Result:
    """Return the result, and print its notes unless they were printed before."""
    for text in answer.notes:
        if text not in told:
            told.add(text)
            note(text)
    return answer.result


_works: dict[str, tuple[Work[Any, Any], Facts]] = {}  # cache in a worker: the last work and its facts, by key


def _facts_of(sent: _Sent) -> _Answer[Facts]:
    """Compute the facts of a work (runs in a worker)."""
    with collected_notes() as notes, warnings_as_notes():
        return _Answer(_work_of(sent)[1], notes)


def _computed(sent: _Sent, facts: Facts, item: Item) -> _Answer[Any]:
    """Compute the result of an item (runs in a worker)."""
    with collected_notes() as notes, warnings_as_notes():
        work, own = _work_of(sent)
        if own != facts:
            _raise_difference(flat_texts(facts), flat_texts(own))
        return _Answer(work.compute(item), notes)


def _raise_difference(first: Mapping[str, str], other: Mapping[str, str]) -> None:
    """Raise InputError with the first fact that differs between workers."""
    name = next(name for name in {**first, **other} if first.get(name) != other.get(name))
    raise InputError(
        f"workers differ in {name}, {first.get(name, 'unset')} and {other.get(name, 'unset')}, so their results "
        "would differ; use workers of one kind"
    )


def _work_of(sent: _Sent) -> tuple[Work[Any, Any], Facts]:
    """Return the cached work and its facts, unpickled if new. Raises InputError if the folder does not exist."""
    from ..opencl.device import get_device
    from .worker_start import require_settled

    require_settled()
    if sent.key not in _works:
        _works.clear()
        try:
            os.chdir(sent.folder)
        except OSError as error:
            raise InputError(
                f"{sent.folder}: does not exist on a worker ({error.strerror}); workers need the same file "
                "system as the command"
            ) from None
        work = pickle.loads(sent.data)
        device = get_device()
        _works[sent.key] = work, {**work.facts(), "device": str(device), "compute_units": device.compute_units}
    return _works[sent.key]
