"""Record of one item of a job: its result, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ..common.errors import InputError, PeleError
from ..common.notes import one_line

SCHEMA = 2  # the version of the records' shape: docs/records.md
MORE = "journal"  # of a journal's line: what belongs to no record
WRITTEN = "written"  # of a record, for the journal: the SHA-256 of its file
_OWN = ("schema", "structure", "sha256", MORE)  # keys that belong to no result
Kind = Literal["model", "frame", "conformation"]


@dataclass(frozen=True)
class Record:
    """Result of one item, or its error message.

    structure : name of the item, its path as given if it is a file
    sha256 : of the input, "" if it could not be read
    result : the result as JSON data; empty if it failed
    error : reason of a failure, on one line; "" if there is none
    code : code of the reason for programs; docs/records.md
    more : further data in a journal, e.g. about written files
    cause : the exception, if it occurred in this process

    >>> spec = pele_ocl.SolventSpec()
    >>> record = next(pele_ocl.jobs.run(spec, ["data/structures/trialanine.pdb", "gone.pdb"]))
    >>> record.failed, record["n_atoms"], record.path.name
    (False, 33, 'trialanine.pdb')
    """

    structure: str
    sha256: str = ""
    result: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""
    code: str = ""
    more: Mapping[str, Any] = field(default_factory=dict)
    cause: PeleError | None = field(default=None, compare=False, repr=False)

    @classmethod
    def failed_by(cls, reason: object, structure: object, sha256: str = "") -> Record:
        """Make the record of a failed item."""
        code, cause = (reason.code, reason) if isinstance(reason, PeleError) else ("error", None)
        return cls(str(structure), sha256, error=one_line(str(reason)), code=code, cause=cause)

    def refuse(self) -> None:
        """Raise the error of a failed item, or InputError with its message."""
        if self.failed:
            raise self.cause or InputError(self.sentence, code=self.code or None)

    @property
    def failed(self) -> bool:
        """True if there is no result."""
        return bool(self.error)

    def __getitem__(self, name: str) -> Any:
        """A part of the result. Raises InputError, with the reason, where the item failed."""
        if self.error:
            raise InputError(self.error, code=self.code or None)
        return self.result[name]

    def __contains__(self, name: object) -> bool:
        return name in self.result

    @property
    def sentence(self) -> str:
        """Error with the file's name once."""
        path = one_line(self.structure)
        return self.error if self.error.startswith(f"{path}:") else f"{path}: {self.error}"

    @property
    def reason(self) -> str:
        """Error without the file's name."""
        path = one_line(self.structure)
        if not self.error.startswith(f"{path}:"):
            return self.error
        rest = self.error[len(path) + 1 :].lstrip()
        return f"line {rest}" if rest[:1].isdigit() else rest

    @property
    def path(self) -> Path:
        """Structure as a path."""
        return Path(self.structure)

    def to_dict(self) -> dict[str, Any]:
        """Make the JSON object: schema, structure and sha256, then the result's own keys, or `error`."""
        head = {"schema": SCHEMA, "structure": self.structure, "sha256": self.sha256}
        return {**head, "error": self.error, "code": self.code} if self.error else {**head, **self.result}

    @classmethod
    def from_dict(cls, line: Mapping[str, Any]) -> Record:
        """Make the record of a JSON object. Raises KeyError or TypeError for another object."""
        error, more = line.get("error"), line.get(MORE, {})
        if line["schema"] != SCHEMA:
            raise TypeError(f"schema {line['schema']}, not {SCHEMA}")
        if isinstance(error, str):
            return cls(line["structure"], line["sha256"], error=error, code=line.get("code", "error"), more=more)
        return cls(
            line["structure"], line["sha256"], {k: value for k, value in line.items() if k not in _OWN}, more=more
        )


def entries(kind: Kind, results: Iterable[tuple[int, Mapping[str, Any] | str]]) -> dict[str, Any]:
    """Return the part of a record about models, frames or conformations: an entry each, and how many there are.

    results : the number of each, with its result, or with the reason why it has none
    """
    found = [
        {kind: number, "error": one_line(of)} if isinstance(of, str) else {kind: number, **of} for number, of in results
    ]
    return {f"n_{kind}s": len(found), "n_failed": sum("error" in entry for entry in found), f"{kind}s": found}
