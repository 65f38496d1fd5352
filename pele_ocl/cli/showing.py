"""Results of functions on the terminal: text, or JSON, and the exit code where a part failed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click

from .call import Call
from .clock import elapsed
from .json_lines import exit_for_failed, exit_for_records, failing_as_record, say_records, say_result
from .progress import FrameLine
from .terminal import say


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


def show(result: Any, as_json: bool, verbose: bool = False) -> None:
    """Print a result, and end the command with exit code 1 where models, frames or structures failed."""
    records = getattr(result, "records", None)  # of several structures
    if as_json and records is not None:
        say_records(records)
    elif as_json:
        say_result(result.to_json())
    else:
        say(result.text(verbose=verbose, total=elapsed()))
    if records is not None:
        exit_for_records(records)
        return
    tally = getattr(result, "tally", None)  # of frames
    if tally is not None:
        exit_for_failed("frame", tally.failed, tally.n_failed, tally.n)
        return
    errors, numbers = getattr(result, "errors", {}), getattr(result, "numbers", [])
    exit_for_failed("model", {numbers[place]: why for place, why in errors.items()}, len(errors), len(numbers))
