"""Printing of results as text or JSON, and exit codes for failed parts."""

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

NAMED = 3  # failures reported individually


def say_records(records: Iterable[Record]) -> None:
    """Print records as JSON, one per line."""
    for record in records:
        say_json(record.to_dict())


def say_result(record: Mapping[str, Any]) -> None:
    """Print the JSON object of a result, with notes and the time since the start of the command."""
    say_json(timed(with_notes(record, heard())))


def timed_record(record: Record) -> Record:
    """Add the time since the start of the command to a record."""
    return replace(record, result=timed(record.result))


def timed(result: Mapping[str, Any]) -> dict[str, Any]:
    """Add the time since the start of the command to a result."""
    return {**result, "seconds": {**result.get("seconds", {}), "total": elapsed()}}


def written_lines(paths: Iterable[Path | None]) -> list[str]:
    """Return a line for each file written; None is ignored."""
    return [f"Written       {one_line(str(path))}" for path in paths if path is not None]


def files_written(call: Call) -> list[str]:
    """Return a line for each requested output file that exists; none for shards, which write to other files."""
    is_shard = call.parameters.get("shard") is not None
    return [] if is_shard else written_lines(path for path in call.outputs if path.is_file())


@contextmanager
def failing_as_record(path: Path, as_json: bool) -> Iterator[None]:
    """Also print an error raised within the block as the JSON record of the structure concerned."""
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
    """Exit with code 1 if a structure, or any of its models or frames, failed."""
    if any(record.failed or _has_failures(record.result) for record in records):
        raise click.exceptions.Exit(1)


def _has_failures(result: Mapping[str, Any]) -> bool:
    """Return whether frames or models failed, for a structure or any of its ligands."""
    return any(part.get("n_failed") for part in result.get("ligands", [result]))


def exit_for_failed(what: str, reasons: Mapping[int, str], n_failed: int, n: int) -> None:
    """Report the first failed frames or models, and exit with code 1 if there are any.

    what : "frame" or "model"; reasons : error messages by number; n_failed, n : number of failures, and total number
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
    """Call a public function with a progress line. An error of a single structure is also printed as a JSON record.

    given : one or several paths of structures; what : text of the progress line
    """
    of_one = failing_as_record(given, as_json) if isinstance(given, Path) else nullcontext()
    with of_one, FrameLine(what) as progress:
        return function(given, progress=progress, call=call.facts(), keep=as_json, **keywords)


def refuse_residues(given: Path | tuple[Path, ...], per_residue: bool, as_json: bool) -> None:
    """Raise UsageError for residue energies of several structures, which do not fit in a text table."""
    if per_residue and not as_json and not isinstance(given, Path):
        raise click.UsageError("--per-residue of several structures requires --json")


def show(result: Any, as_json: bool, verbose: bool = False, call: Call | None = None) -> None:
    """Print a result, and exit with code 1 if models, frames or structures failed.

    call : its output files are listed after the text, unless the text contains them
    """
    records = getattr(result, "records", None)  # for several structures
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
    tally = getattr(result, "tally", None)  # for frames
    if tally is not None:
        exit_for_failed("frame", tally.failed, tally.n_failed, tally.n)
        return
    errors, numbers = getattr(result, "errors", {}), getattr(result, "numbers", [])
    exit_for_failed("model", {numbers[place]: why for place, why in errors.items()}, len(errors), len(numbers))
