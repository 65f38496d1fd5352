"""Record of one item of a job: its result or its error."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ..common.errors import InputError, PeleError
from ..common.notes import one_line

SCHEMA = 2  # version of the schema of records: docs/records.md
MORE = "journal"  # key in journals for data that are not part of a record
WRITTEN = "written"  # key in journals for the SHA-256 of the file written
_OWN = ("schema", "structure", "sha256", MORE)  # keys that are not part of the result
Kind = Literal["model", "frame", "conformation"]


@dataclass(frozen=True)
class Record:
    """Result of one item, or its error message.

    structure : name of the item; for a file, the path as given
    sha256 : hash of the input, "" if it could not be read
    result : the result as JSON data; empty if the item failed
    error : error message on one line; "" if the item did not fail
    code : error code for programs; docs/records.md
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
        """Create the record of a failed item."""
        code, cause = (reason.code, reason) if isinstance(reason, PeleError) else ("error", None)
        return cls(str(structure), sha256, error=one_line(str(reason)), code=code, cause=cause)

    def refuse(self) -> None:
        """Raise the error of a failed item, or InputError with its message."""
        if self.failed:
            raise self.cause or InputError(self.sentence, code=self.code or None)

    @property
    def failed(self) -> bool:
        """Whether the item failed."""
        return bool(self.error)

    def __getitem__(self, name: str) -> Any:
        """Return a part of the result. Raises InputError with the error message if the item failed."""
        if self.error:
            raise InputError(self.error, code=self.code or None)
        return self.result[name]

    def __contains__(self, name: object) -> bool:
        return name in self.result

    @property
    def sentence(self) -> str:
        """Error message with the file name."""
        path = one_line(self.structure)
        return self.error if self.error.startswith(f"{path}:") else f"{path}: {self.error}"

    @property
    def reason(self) -> str:
        """Error message without the file name."""
        path = one_line(self.structure)
        if not self.error.startswith(f"{path}:"):
            return self.error
        rest = self.error[len(path) + 1 :].lstrip()
        return f"line {rest}" if rest[:1].isdigit() else rest

    @property
    def path(self) -> Path:
        """Path of the structure."""
        return Path(self.structure)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object: schema, structure and sha256, then the keys of the result, or `error` and `code`."""
        head = {"schema": SCHEMA, "structure": self.structure, "sha256": self.sha256}
        return {**head, "error": self.error, "code": self.code} if self.error else {**head, **self.result}

    @classmethod
    def from_dict(cls, line: Mapping[str, Any]) -> Record:
        """Create a record from a JSON object. Raises KeyError or TypeError for an invalid object."""
        error, more = line.get("error"), line.get(MORE, {})
        if line["schema"] != SCHEMA:
            raise TypeError(f"schema {line['schema']}, not {SCHEMA}")
        if isinstance(error, str):
            return cls(line["structure"], line["sha256"], error=error, code=line.get("code", "error"), more=more)
        return cls(
            line["structure"], line["sha256"], {k: value for k, value in line.items() if k not in _OWN}, more=more
        )


def entries(kind: Kind, results: Iterable[tuple[int, Mapping[str, Any] | str]]) -> dict[str, Any]:
    """Return the entries of a record about models, frames or conformations, with their counts.

    results : number of each model, frame or conformation, with its result or its error message
    """
    found = [
        {kind: number, "error": one_line(of)} if isinstance(of, str) else {kind: number, **of} for number, of in results
    ]
    return {f"n_{kind}s": len(found), "n_failed": sum("error" in entry for entry in found), f"{kind}s": found}
