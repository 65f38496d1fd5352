"""Shards of minimised structures: their journals become the report of all."""

from __future__ import annotations

from pathlib import Path

import click

from ...cluster import Shard
from ...errors import FormatError
from ...formats import require_table_suffix
from ...trajectories.recording.merging import SHARD
from ..minimize.journal import Row, read_shard
from ..minimize.report import save
from ..report import counted
from ..terminal import say, say_json
from .order import in_order


def merge_minimized(shards: tuple[Path, ...], output: Path, as_json: bool) -> None:
    """Write a row for every structure, and report. The journals stay, as --resume goes by them."""
    require_table_suffix(output)
    read = {path: read_shard(path) for path in shards}
    paths, _ = in_order({path: head for path, (head, _) in read.items()})
    rows = list[Row]()
    for path in paths:
        head, found = read[path]
        wanted = Shard.of(head[SHARD]).part(head["structures"], "structures")
        missing = [name for name in wanted if name not in found]
        if missing:
            raise FormatError(
                f"{path}: lacks {len(missing):,} of {len(wanted):,} structures; run its shard again with --resume"
            )
        rows += [found[name] for name in wanted]
    save(output, rows)
    if as_json:
        for row in rows:
            say_json(row)
    n_failed = sum("error" in row for row in rows)
    if not as_json:
        say(counted(len(rows), "structure") + (f", of which {n_failed:,} failed" if n_failed else ""))
    if n_failed:
        click.get_current_context().exit(1)
