"""Base of jobs that refine items in one structure, with a file per item."""

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
    """Refine poses or molecules in one structure. Items are indices from 0.

    options : options of the refining class; strict : True to refuse structures with findings that otherwise only
        cause notes
    keep : called with the index and the complex of each item, in this process only
    """

    _unnamed: ClassVar[str]  # title of a structure given as Atoms

    options: Mapping[str, Any]
    strict: bool
    keep: Callable[[int, Any], None] | None

    @property
    @abstractmethod
    def structure(self) -> Path | Atoms:
        """The structure in which all items are refined."""

    @abstractmethod
    def target(self, item: int) -> Path | None:
        """Return the path of a refined complex; None if no files are written."""

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"keep": None}

    @property
    def title(self) -> str:
        """Name of the structure."""
        return self._unnamed if isinstance(self.structure, Atoms) else self.structure.name

    @cached_property
    def source(self) -> InputFile | None:
        """File of the structure, None for Atoms."""
        return None if isinstance(self.structure, Atoms) else read_file(self.structure)

    @cached_property
    def _mark(self) -> str:
        """SHA-256 of the structure's file, or of its atoms."""
        return sha256_of(self.structure) if self.source is None else self.source.sha256

    def check(self, atoms: Atoms) -> None:
        """Add notes on findings about the structure. Raises InputError for findings that are refused."""
        Checks(self.title if isinstance(self.structure, Atoms) else self.structure, self.strict).add(
            *of_structure(atoms, "noted", places_sites=True)
        )

    def facts(self) -> dict[str, object]:
        """Return the name of the device."""
        return {"device": str(get_device(self.options.get("device")))}

    def still_counts(self, record: Record, item: int) -> bool:
        """Return whether the record is still valid: its file exists unchanged."""
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
        """Build the record of the structure from the values of all items. heard : reported notes"""
        name, sha256 = ("", "") if self.source is None else (str(self.source), self.source.sha256)
        return Record(name, sha256, with_notes(values, heard))


def listed(rows: Iterable[Mapping[str, Any]], kind: str) -> list[dict[str, Any]]:
    """Convert records of items to entries of their structure's record. kind : key of the item's name"""
    passed_over = ("structure", "sha256", "schema")
    return [
        {kind: row["structure"], **{name: value for name, value in row.items() if name not in passed_over}}
        for row in rows
    ]
