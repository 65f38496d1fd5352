"""Base classes of jobs, which can be pickled for workers."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from ..common.errors import PeleError
from ..common.inputfile import InputFile, read_file
from ..common.notes import heard_notes, with_notes
from ..reading import Reading
from .records import Record

Item = TypeVar("Item")
StructurePath = str | Path | InputFile


@dataclass(frozen=True, eq=False)
class Spec(ABC, Generic[Item]):
    """Base class of jobs, for frozen dataclasses. `compute` depends only on the fields and the item.

    Values of `functools.cached_property`, such as a force field, are computed once per process and are not pickled.
    """

    @abstractmethod
    def compute(self, item: Item) -> Mapping[str, Any]:
        """Compute the result of an item, in JSON form. Raises PeleError if it fails."""

    def name(self, item: Item) -> str:
        """Return the name of an item, for its record."""
        return str(item)

    def sha256(self, item: Item) -> str:
        """Return the hash of an item: the SHA-256 of a file, "" without one."""
        return sha256_of_file(str(item))

    def still_counts(self, record: Record, item: Item) -> bool:
        """Return whether an earlier record is still valid: by default, if it did not fail and the hash is equal."""
        return not record.failed and record.sha256 == self.sha256(item)

    def record(self, item: Item) -> Record:
        """Compute an item and return its record, also if it fails."""
        sha256 = self.sha256(item)
        try:
            return Record(self.name(item), sha256, self.compute(item))
        except PeleError as error:
            return Record.failed_by(error, self.name(item), sha256)

    def records(self, items: Iterable[Item], begin: Callable[[], None]) -> Iterator[Record]:
        """Compute the records of items. begin : called just before a file is written"""
        return map(self.record, items)

    def groups(self, items: Sequence[Item]) -> Iterator[Sequence[Item]]:
        """Divide the items into groups computed by one worker; by default single items."""
        return ([item] for item in items)

    def facts(self) -> Mapping[str, object]:
        """Return further facts that affect results, which must be equal in all workers."""
        return {}

    def settings(self) -> dict[str, str]:
        """Return the fields as strings, which identify a journal; files are represented by a hash of their content."""
        return {of.name: setting_of(getattr(self, of.name)) for of in fields(self)}

    def __getstate__(self) -> dict[str, Any]:
        return {of.name: getattr(self, of.name) for of in fields(self)}


class StructureSpec(Spec[StructurePath]):
    """Job for structure files, each of which is read once.

    units : units of numbers in results other than energies, by name, for tables
    """

    units: ClassVar[Mapping[str, str]] = {}

    def record(self, item: StructurePath) -> Record:
        """Compute a file and return its record, also if it fails; `seconds` includes the total time."""
        start, sha256 = time.perf_counter(), ""
        try:
            source = read_file(item)
            sha256 = source.sha256
            with heard_notes() as heard:
                result = with_notes(self.compute(source), heard)
        except PeleError as error:
            return Record.failed_by(error, item, sha256)
        result["seconds"] = {**result.get("seconds", {}), "total": time.perf_counter() - start}
        return Record(str(item), sha256, result)


def sha256_of_file(path: str | Path) -> str:
    """Return the SHA-256 of a file, "" if it cannot be read."""
    try:
        return read_file(path).sha256
    except PeleError:
        return ""


def setting_of(value: object) -> str:
    """Return a value as a string; files and folders are represented by their content, not their path."""
    from ..common.hashing import content_of

    if isinstance(value, Reading):
        texts = [f"{of.name}={setting_of(getattr(value, of.name))}" for of in fields(value) if of.repr]
        return f"Reading({', '.join(texts)})"
    values = value if isinstance(value, tuple) else (value,)
    texts = [str(content_of(each) or each) if isinstance(each, Path) else repr(each) for each in values]
    return texts[0] if not isinstance(value, tuple) else f"[{', '.join(texts)}]"
