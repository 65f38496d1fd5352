"""`pele-ocl merge`: the results of shards as one file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from ...errors import InputError
from ..command import INPUT, OUTPUT, EachOnce
from ..minimize.journal import is_journal
from ..options import debug_option
from ..structures.journal import JOURNAL_SUFFIX, read_journal
from .frames import merge_frames
from .minimized import merge_minimized
from .poses import POSES, merge_poses
from .structures import merge_structures

__all__ = ["merge"]


@click.command(cls=EachOnce)
@click.argument("shards", metavar="SHARD...", type=INPUT, nargs=-1, required=True)
@click.option("-o", "--output", type=OUTPUT, metavar="OUT", required=True, help="File to write.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the table.")
@debug_option
def merge(shards: tuple[Path, ...], output: Path, as_json: bool) -> None:
    """Put the results of all shards together: OUT becomes, byte for byte, what one run without --shard writes.

    SHARD... are the files that runs with --shard wrote, in any order: of frames (energies.1of10.h5, ...), of structures
    (energies.1of10.csv.part, ...), of a PELE run's poses (poses.1of10.csv.part, ...) or of minimised structures
    (minimize.1of10.jsonl, ...), which become a report; its times are those of the shards.
    """
    kinds = {_kind(path) for path in shards}
    if len(kinds) > 1:
        raise InputError("shards of different kinds of results do not go together; merge them one by one")
    kinds.pop()(shards, output, as_json)


def _kind(path: Path) -> Callable[[tuple[Path, ...], Path, bool], None]:
    """The function that puts the files of this one's kind together."""
    if path.suffix == JOURNAL_SUFFIX:
        return merge_poses if POSES in read_journal(path)[0] else merge_structures
    return merge_minimized if is_journal(path) else merge_frames
