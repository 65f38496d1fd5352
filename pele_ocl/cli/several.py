"""Several structures in one call: computed by a job, reported as records or as one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from ..jobs import Record
from ..jobs.structures import STRUCTURES as STRUCTURES
from ..jobs.structures import as_text_of, table_of
from ..jobs.structures import journal_of as journal_of
from .clock import elapsed
from .command import INPUT
from .json_lines import exit_for_records, say_records
from .terminal import say


def report(records: Sequence[Record], as_json: bool) -> None:
    """Print the records, and end the command with exit code 1 if one failed."""
    if as_json:
        say_records(records)
    else:
        say(as_text_of(records, elapsed()))
    exit_for_records(records)


def save(output: Path, records: Sequence[Record], call: Mapping[str, object]) -> None:
    """Write a row for every structure, or every model of each: its numbers, or why it has none; call : facts of it"""
    table_of(records, call).save(output)


def _one_or_several(_: click.Context, __: click.Parameter, given: tuple[Path, ...]) -> Path | tuple[Path, ...]:
    return given[0] if len(given) == 1 else given


structures_argument = click.argument(
    "path", metavar="IN...", type=INPUT, nargs=-1, required=True, callback=_one_or_several
)
