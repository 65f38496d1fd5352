"""Run jobs in this process or by workers, with a journal to resume from, and shards."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Generic, TypeVar

from ..common.arguments import file_path
from ..common.errors import InputError
from ..common.variant import Progress
from .journal import Journal, Notes, add_note, notes_in
from .records import Record
from .shards import Place, Shard
from .sharing import Facts, shared
from .spec import Spec
from .tasks import WorkersDiedError

Item = TypeVar("Item")


def run(
    spec: Spec[Item], items: Iterable[Item], *, journal: str | PathLike[str] | None = None, resume: bool = True,
    workers: int | None = None, scheduler: str | None = None, device: str | None = None,
    shard: str | Shard | None = None,
) -> Iterator[Record]:  # fmt: skip
    """Compute items and yield a record for each, in order and as soon as possible. Failed items also have a record.

    spec : what to compute, a Spec of this package or your own; items : paths of structures, or what your Spec accepts
    journal : file of JSON lines for the records; a shard K/N has a separate file, energies.KofN.jsonl for
        energies.jsonl
    resume : True to reuse records of the journal, except for failed items and changed files; False to start over
    workers : number of processes on this machine, each with a device or a group of cores; scheduler : address of a
        Dask cluster, tcp://HOST:PORT, or its scheduler file. By default, everything runs in this process
    device : device of workers, as in PELE_OCL_DEVICE; without workers, the device of the spec is used
    shard : "K/N" for the K-th of N parts of the items

    Raises InputError for arguments that cannot be combined, and FormatError for a journal with other settings or one
    that cannot be written. Errors of an item are stored in its record.

    >>> records = pele_ocl.jobs.run(pele_ocl.EnergySpec(gradient=False), ["data/structures/trialanine.pdb"])
    >>> [round(record["energy"]["total"], 1) for record in records]
    [-135.5]
    """
    if not isinstance(spec, Spec):
        raise InputError(f"spec is {type(spec).__name__}; expected a Spec, such as EnergySpec()")
    given, place = list(items), Place(workers, scheduler, device)
    part = Shard.of(shard) if isinstance(shard, str) else shard
    path = None if journal is None else Path(file_path(journal, "journal"))
    if part is not None:
        path = None if path is None else part.path(path)
    names = [spec.name(item) for item in given]
    opened = Journal(path, spec.settings(), kind=type(spec).__name__, shard=part, items=names)
    return run_with(spec, given if part is None else part.part(given, "items"), opened, resume, place)


def run_with(
    spec: Spec[Item], items: Sequence[Item], journal: Journal, resume: bool, place: Place,
    done: Callable[[int], None] | None = None, begin: Callable[[], object] | None = None,
) -> Iterator[Record]:  # fmt: skip
    """Run a job with a journal and a place.

    done : called with the number of reused records
    begin : called when the computation begins, which is after workers have connected
    """
    of = {spec.name(item): item for item in items}

    def counts(record: Record) -> bool:
        return record.structure in of and spec.still_counts(record, of[record.structure])

    with journal:
        earlier = journal.resume(counts) if resume else {}
        left = [item for item in items if spec.name(item) not in earlier]
        if done is not None:
            done(len(items) - len(left))
        computed = _computed(spec, left, journal, place, begin)
        early = defaultdict[str, deque[Record]](deque)  # records computed out of order
        for name in map(spec.name, items):
            if name in earlier:
                yield earlier[name]
                continue
            while not early[name]:
                record = next(computed, None)
                if record is None:
                    raise InputError(f"{name}: its job did not return a record for it")
                early[record.structure].append(record)
            yield early[name].popleft()


def collected(records: Iterable[Record], n: int, errors: str, progress: Progress | None) -> list[Record]:
    """Collect the records of n items as they are computed.

    errors : "raise" to raise a failure as InputError; progress : called with the fraction done, 0 to 1
    """
    found = list[Record]()
    for record in records:
        if record.failed and errors == "raise":
            record.refuse()
        found.append(record)
        if progress is not None:
            progress(len(found) / n)
    return found


def _computed(
    spec: Spec[Item], items: Sequence[Item], journal: Journal, place: Place, begin: Callable[[], object] | None
) -> Iterator[Record]:
    """Yield the records of items as they are computed, after writing each to the journal."""
    if not items:
        return
    work = _Records(spec, journal.notes)
    with shared(work, place, lambda group, error: _died(spec, group, error)) as done:
        if begin is not None:
            begin()
        if not done.is_remote:
            for record in spec.records(items, journal.begin):
                journal.add(record)
                yield record
            return
        journal.clear_notes()
        groups = list(spec.groups(items))
        for group, records in zip(groups, done.results(groups), strict=True):
            for record in records:
                journal.add(record)
            journal.notes.clear([spec.name(item) for item in group])
            yield from records


def _died(spec: Spec[Item], group: Sequence[Item], error: WorkersDiedError) -> list[Record]:
    return [Record.failed_by(error, spec.name(item)) for item in group]


@dataclass(frozen=True)
class _Records(Generic[Item]):
    """Task of a worker: compute the records of a group of items, and save each in the notes."""

    spec: Spec[Item]
    notes: Notes

    def compute(self, group: Sequence[Item], /) -> list[Record]:
        """Compute the records of a group, except items finished by a worker that died."""
        names = [self.spec.name(item) for item in group]
        path = self.notes.path(names)
        if path is None:
            return list(self.spec.records(group, _nothing))
        of = dict(zip(names, group, strict=True))
        found = {
            record.structure: record for record in notes_in(path)
            if record.structure in of and self.spec.still_counts(record, of[record.structure])
        }  # fmt: skip
        for record in self.spec.records([item for name, item in of.items() if name not in found], _nothing):
            add_note(path, record)
            found[record.structure] = record
        return [found[name] for name in names]

    def facts(self) -> Facts:
        """Return the facts that must be equal in all workers."""
        return self.spec.facts()


def _nothing() -> Any:
    """Do nothing, because the journal belongs to another process."""
