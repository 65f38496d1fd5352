"""Records on stdout, a JSON object a line, and the exit codes of commands some of whose structures failed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from ..common.errors import KeywordError, PeleError
from ..common.notes import with_notes
from .clock import elapsed
from .terminal import heard, note, one_line, say_json

if TYPE_CHECKING:
    from ..jobs import Record

NAMED = 3  # failures that are told one by one


def say_records(records: Iterable[Record]) -> None:
    """Print records as JSON, one a line."""
    for record in records:
        say_json(record.to_dict())


def say_result(record: Mapping[str, Any]) -> None:
    """Print the JSON object of a result, with what was noted and the seconds since the command began."""
    say_json(timed(with_notes(record, heard())))


def timed(result: Mapping[str, Any]) -> dict[str, Any]:
    """Add the seconds since the command began to a result."""
    return {**result, "seconds": {**result.get("seconds", {}), "total": elapsed()}}


@contextmanager
def failing_as_record(path: Path, as_json: bool) -> Iterator[None]:
    """Print an error raised within the block as the record of the structure that it names, or of the only one, too."""
    try:
        yield
    except PeleError as error:
        if as_json and not isinstance(error, KeywordError):
            from ..jobs import Record
            from ..jobs.spec import sha256_of_file

            of = Path(error.fields.get("structure", path))
            say_records([Record.failed_by(error, of, sha256_of_file(of))])
        raise


def exit_for_records(records: Iterable[Record]) -> None:
    """End the command with exit code 1 if a structure failed, or a model or frame of one."""
    if any(record.failed or _has_failures(record.result) for record in records):
        raise click.exceptions.Exit(1)


def _has_failures(result: Mapping[str, Any]) -> bool:
    """True if frames or models of a structure failed, of any of its ligands."""
    parts = cast(Sequence[Mapping[str, Any]], result.get("ligands", [result]))
    return any(part.get("n_failed") for part in parts)


def exit_for_failed(what: str, reasons: Mapping[int, str], n_failed: int, n: int) -> None:
    """Name the first of the frames or models that failed, and exit with 1, if there are any.

    what : "frame" or "model"; reasons : of some that failed, by number; n_failed, n : how many failed, of how many
    """
    if n_failed:
        named = list(reasons.items())[:NAMED]
        shown = "; ".join(f"{what} {number}: {one_line(reason)}" for number, reason in named)
        rest = f"; and {n_failed - len(named):,} more" if n_failed > len(named) else ""
        plural = "" if n_failed == 1 else "s"
        note(f"Error: {n_failed:,} {what}{plural} of {n:,} failed: {shown}{rest}")
        raise click.exceptions.Exit(1)
