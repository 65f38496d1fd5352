"""Jobs of refined complexes: one structure, and items by number, each with a file."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from ..atoms import Atoms
from ..common.errors import InputError, PeleError
from ..common.hashing import sha256_of
from ..common.inputfile import InputFile, read_file
from ..common.notes import with_notes
from ..contract import of_structure
from ..jobs.checks import Checks
from ..jobs.records import WRITTEN, Record
from ..jobs.spec import Spec
from ..opencl.device import get_device


class RefinementSpec(Spec[int]):
    """Refine poses or molecules in one structure, an item each by index from 0.

    options : of the class that refines; strict : True to refuse what otherwise only causes a note
    keep : called with the number and the complex of each item; of this process alone
    """

    _unnamed: ClassVar[str]  # title of a structure that is not a file

    options: Mapping[str, Any]
    strict: bool
    keep: Callable[[int, Any], None] | None

    @property
    @abstractmethod
    def structure(self) -> Path | Atoms:
        """The structure in which all items are refined."""

    @abstractmethod
    def target(self, item: int) -> Path | None:
        """Name the file of a refined complex; None if none is written."""

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"keep": None}

    @property
    def title(self) -> str:
        """Name of the structure."""
        return self._unnamed if isinstance(self.structure, Atoms) else self.structure.name

    @cached_property
    def source(self) -> InputFile | None:
        """File of the structure, None of atoms."""
        return None if isinstance(self.structure, Atoms) else read_file(self.structure)

    @cached_property
    def _mark(self) -> str:
        """SHA-256 of the structure's file, or of its atoms."""
        return sha256_of(self.structure) if self.source is None else self.source.sha256

    def check(self, atoms: Atoms) -> None:
        """Note findings about atoms of the structure. Raises InputError for those that are refused."""
        Checks(self.title if isinstance(self.structure, Atoms) else self.structure, self.strict).add(
            *of_structure(atoms, "noted", places_sites=True)
        )

    def facts(self) -> dict[str, object]:
        """Name the device."""
        return {"device": str(get_device(self.options.get("device")))}

    def still_counts(self, record: Record, item: int) -> bool:
        """True if its file still exists unchanged."""
        target = self.target(item)
        try:
            written = None if target is None else read_file(target).sha256
        except PeleError:
            return False
        return super().still_counts(record, item) and record.more.get(WRITTEN) == written

    def compute(self, item: int) -> dict[str, Any]:
        """Refine one item and write its file."""
        (record,) = self.records([item], lambda: None)
        if record.failed:
            raise InputError(record.error)
        return dict(record.result)

    def record_of_all(self, values: Mapping[str, Any], heard: Sequence[str]) -> Record:
        """Make the record of the structure, with values of all items. heard : notes that were reported"""
        name, sha256 = ("", "") if self.source is None else (str(self.source), self.source.sha256)
        return Record(name, sha256, with_notes(values, heard))


def listed(rows: Iterable[Mapping[str, Any]], kind: str) -> list[dict[str, Any]]:
    """Entries of items in the record of their structure. rows : their records in JSON form; kind : key of the name"""
    passed_over = ("structure", "sha256", "schema")
    return [
        {kind: row["structure"], **{name: value for name, value in row.items() if name not in passed_over}}
        for row in rows
    ]
