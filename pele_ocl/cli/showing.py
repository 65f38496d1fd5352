"""Results on the terminal: text, or records in JSON, one object a line, and the exit code where a part failed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..common.errors import KeywordError, PeleError
from ..common.notes import with_notes
from .progress import FrameLine
from .terminal import elapsed, heard, note, one_line, say, say_json

if TYPE_CHECKING:
    from ..jobs import Record
    from .call import Call

NAMED = 3  # failures that are told one by one


def say_records(records: Iterable[Record]) -> None:
    """Print records as JSON, one a line."""
    for record in records:
        say_json(record.to_dict())


def say_result(record: Mapping[str, Any]) -> None:
    """Print the JSON object of a result, with what was noted and the seconds since the command began."""
    say_json(timed(with_notes(record, heard())))


def timed_record(record: Record) -> Record:
    """Add the seconds since the command began to a record."""
    return replace(record, result=timed(record.result))


def timed(result: Mapping[str, Any]) -> dict[str, Any]:
    """Add the seconds since the command began to a result."""
    return {**result, "seconds": {**result.get("seconds", {}), "total": elapsed()}}


def written_lines(paths: Iterable[Path | None]) -> list[str]:
    """Name the files that were written, a line each; None for one that was not asked for."""
    return [f"Written       {one_line(str(path))}" for path in paths if path is not None]


def files_written(call: Call) -> list[str]:
    """Name the files that a call was asked to write and that exist, a line each; shards write to files of their own."""
    return written_lines(path for path in call.outputs if path.is_file())


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
    return any(part.get("n_failed") for part in result.get("ligands", [result]))


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


def computed(
    function: Callable[..., Any], given: Path | tuple[Path, ...], what: str, call: Call, as_json: bool, **keywords: Any
) -> Any:
    """Call a public function with a progress line; an error about the only structure is a record in JSON, too.

    given : path of the structure, or several; what : for the progress line
    """
    of_one = failing_as_record(given, as_json) if isinstance(given, Path) else nullcontext()
    with of_one, FrameLine(what) as progress:
        return function(given, progress=progress, call=call.facts(), keep=as_json, **keywords)


def refuse_residues(given: Path | tuple[Path, ...], per_residue: bool, as_json: bool) -> None:
    """Raise UsageError for energies of residues of several structures, for which a table has no room."""
    if per_residue and not as_json and not isinstance(given, Path):
        raise click.UsageError("--per-residue of several structures is told by --json; add it")


def show(result: Any, as_json: bool, verbose: bool = False, call: Call | None = None) -> None:
    """Print a result, and end the command with exit code 1 where models, frames or structures failed.

    call : whose files are named behind the text, if it does not name them itself
    """
    records = getattr(result, "records", None)  # of several structures
    if as_json and records is not None:
        say_records(records)
    elif as_json:
        say_result(result.to_json())
    else:
        files = [] if call is None else files_written(call)
        say("\n".join([result.text(verbose=verbose, total=elapsed()), *files]))
    if records is not None:
        exit_for_records(records)
        return
    tally = getattr(result, "tally", None)  # of frames
    if tally is not None:
        exit_for_failed("frame", tally.failed, tally.n_failed, tally.n)
        return
    errors, numbers = getattr(result, "errors", {}), getattr(result, "numbers", [])
    exit_for_failed("model", {numbers[place]: why for place, why in errors.items()}, len(errors), len(numbers))
