"""One function for the items of a command's work, wherever they are computed.

A worker calls the same command again, up to the point where it would compute its items; there it keeps the function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

import click

from ...cluster import WorkersDiedError, connected, in_order, on_each_worker
from ...errors import InputError
from ...formats.tables import flat_texts
from ..terminal import collected_notes, note, warnings_as_notes
from .calls import Call
from .options import asked_of

Item = TypeVar("Item")
Result = TypeVar("Result")
Facts = Mapping[str, object]  # what is known before anything is computed, the same in all workers


@dataclass(frozen=True)
class SharedWork(Generic[Item, Result]):
    """Results of items, in their order, computed here or by workers.

    facts : of the process that computes; is_remote : whether that is another one
    """

    over: Callable[[Iterable[Item]], Iterator[Result]]
    facts: Facts
    is_remote: bool = False


@contextmanager
def shared_out(
    compute: Callable[[Item], Result], facts: Facts | None = None,
    died: Callable[[Item, WorkersDiedError], Result] | None = None, **instead: object,
) -> Iterator[SharedWork[Item, Result]]:  # fmt: skip
    """The way of a command's items through `compute`, in this process or, by --workers and --scheduler, in others.

    facts : what depends on the device, or on files, before any item is computed
    died : the result of an item that several workers died of; by default it is an error of all
    instead : values with which a worker calls the command, in place of the command's own; it must have written nothing
        before it comes here

    Raises InputError where a worker has other facts, as `connected` and `in_order` do, and what `compute` raises.
    """
    facts = facts or {}
    if _calling:
        raise _ReachedError(compute, facts)
    context = click.get_current_context()
    asked = asked_of(context)
    if not asked.is_remote:
        yield SharedWork(partial(map, compute), facts)
        return
    call = Call.now(**{"output": None, "resume": False, **instead})
    with connected(asked.workers, asked.scheduler, context.params.get("device")) as client:
        if not client.scheduler_info(n_workers=-1)["workers"]:
            note("The cluster has no workers yet; the work begins with the first")
        first = on_each_worker(client, _facts_of, call)
        found, told = first.result, set(first.notes)  # which this process had, too

        def over(items: Iterable[Item]) -> Iterator[Result]:
            compute_there = partial(_computed, call, found)
            unfinished = None if died is None else lambda item, error: _Answer(died(item, error), [])
            for answer in in_order(client, compute_there, items, unfinished):
                yield _told(answer, told)

        yield SharedWork(over, found, is_remote=True)


@dataclass(frozen=True)
class _Answer(Generic[Result]):
    """A worker's result, and the notes that it had for the user."""

    result: Result
    notes: list[str]


def _told(answer: _Answer[Result], told: set[str]) -> Result:
    """The result, its notes printed where no other worker had them."""
    for text in answer.notes:
        if text not in told:
            told.add(text)
            note(text)
    return answer.result


class _ReachedError(Exception):
    """A worker has come to the point of a command where it computes."""

    def __init__(self, compute: Callable[[Any], Any], facts: Facts) -> None:
        super().__init__()
        self.compute, self.facts = compute, facts


_calling: list[Call] = []  # in a worker: the call that is made to reach its function
_reached: dict[str, _ReachedError] = {}  # the last one, by its key


def _facts_of(call: Call) -> _Answer[Facts]:
    """In a worker: the facts of a call."""
    with collected_notes() as notes, warnings_as_notes():
        return _Answer(_reach(call).facts, notes)


def _computed(call: Call, facts: Facts, item: Item) -> _Answer[Any]:
    """In a worker: the result of an item."""
    with collected_notes() as notes, warnings_as_notes():
        reached = _reach(call)
        if reached.facts != facts:
            _raise_difference(flat_texts(facts), flat_texts(reached.facts))
        with call.under_way():
            return _Answer(reached.compute(item), notes)


def _raise_difference(first: Mapping[str, str], other: Mapping[str, str]) -> None:
    """Raise InputError that names the first fact in which workers differ."""
    name = next(name for name in {**first, **other} if first.get(name) != other.get(name))
    raise InputError(
        f"workers differ in {name}, {first.get(name, 'unset')} and {other.get(name, 'unset')}, and so would their "
        "results; use workers of one kind"
    )


def _reach(call: Call) -> _ReachedError:
    """The function and the facts of a call, kept until another call comes."""
    from ...cluster.one_device import require_settled
    from ...opencl.device import get_device

    require_settled()
    if call.key not in _reached:
        _reached.clear()
        _calling.append(call)
        try:
            call.again()
        except _ReachedError as reached:
            device = get_device()
            facts = {**reached.facts, "device": str(device), "compute_units": device.compute_units}
            _reached[call.key] = _ReachedError(reached.compute, facts)
        finally:
            _calling.clear()
    return _reached[call.key]
