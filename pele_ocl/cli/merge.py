"""`pele-ocl merge`: merging of results of shards."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from ..common.errors import InputError
from ..formats import JsonText, require_table_suffix
from ..jobs import Record, Shard, structures
from ..jobs.journal import is_journal, merged, read_journal
from ..jobs.shards import require_all
from ..jobs.texts import counted
from ..minimize.result import table_of
from ..minimize.running import MINIMIZED
from ..rescore.result import POSES, Poses, attributes_in, save_poses
from ..rescore.spec import WalkerPoses
from ..trajectories.recording import RECORDERS, require_record_suffix
from ..trajectories.recording.merging import SHARD, frames_in, parts_of_shards
from ..trajectories.tally import Tally
from .call import Call, CommandProvenance
from .command import INPUT, OUTPUT, EachOnce
from .options import debug_option, json_option
from .rescore import exit_for_poses
from .showing import exit_for_failed, exit_for_records, say_records, timed
from .terminal import elapsed, say

FRAMES = "frames"


@click.command(cls=EachOnce)
@click.argument("shards", metavar="SHARD...", type=INPUT, nargs=-1, required=True)
@click.option("-o", "--output", type=OUTPUT, metavar="OUT", required=True, help="File to write.")
@json_option()
@debug_option
def merge(shards: tuple[Path, ...], output: Path, as_json: bool, call: Call) -> None:
    """Join the results of all shards.

    OUT is byte for byte identical to the result of one run without --shard.

    SHARD... are the files that runs with --shard wrote, in any order. They are of frames (energies.1of10.h5, ...), of
    structures (energies.1of10.csv.part, ...), of a PELE run's poses (poses.1of10.csv.part, ...) or of minimized
    structures (minimize.1of10.jsonl, ...). For minimized structures a table is written, with the times of the shards.
    """
    kinds = {_kind(path) for path in shards}
    if len(kinds) > 1:
        raise InputError("shards contain different kinds of results; merge each kind separately")
    _MERGE[kinds.pop()](shards, output, as_json, call)


def _kind(path: Path) -> str:
    """Return the kind of results in a file."""
    kind = read_journal(path).kind if is_journal(path) else FRAMES
    if kind not in _MERGE:
        raise InputError(f"{path}: is of {kind}, whose shards pele_ocl.jobs.merged joins")
    return kind


def _merge_frames(shards: tuple[Path, ...], output: Path, as_json: bool, call: Call) -> None:
    """Write and report the results of all frames."""
    suffix = require_record_suffix(output)
    there = {path: RECORDERS[require_record_suffix(path)](path, {}, range(0)).settings_there() for path in shards}
    paths = require_all(there)
    settings = {name: value for name, value in there[paths[0]].items() if name != SHARD}
    tally = Tally(keeps_rows=as_json)
    with RECORDERS[suffix](output, settings, frames_in(settings)) as recorder:
        parts = parts_of_shards(
            paths, [there[path] for path in paths], lambda path, *rest: RECORDERS[path.suffix.lower()](path, *rest),
            lambda words, frames: Shard.of(words).part(frames, "frames"),
        )  # fmt: skip
        for part in parts:
            recorder.append(part.results)
            tally.add(part)
    tally.end()
    if as_json:
        record = Record(str(settings["input"]), str(settings["input_sha256"]), timed(tally.as_json()))
        say_records([record])
    else:
        say("\n".join(tally.lines(f"{len(shards):,} shards", elapsed())).lstrip("\n"))
    exit_for_failed("frame", tally.failed, tally.n_failed, tally.n)


def _merge_structures(shards: tuple[Path, ...], output: Path, as_json: bool, call: Call) -> None:
    """Write and report the table of all structures. The shards are removed, since nothing is left to resume."""
    require_table_suffix(output)
    whole = merged(shards)
    records = whole.in_order()
    facts = {**whole.settings, "parameters": JsonText(whole.settings["parameters"])}
    structures.table_of(records, facts).save(output)
    _remove(shards)
    if as_json:
        say_records(records)
    else:
        say(structures.as_text_of(records, elapsed()))
    exit_for_records(records)


def _merge_poses(shards: tuple[Path, ...], output: Path, as_json: bool, call: Call) -> None:
    """Write and report the table of all poses with their ranks. The shards are removed."""
    require_table_suffix(output)
    whole = merged(shards)
    poses = Poses.of(list(map(WalkerPoses.of, whole.in_order())))
    save_poses(output, poses, attributes_in(whole.settings))
    _remove(shards)
    if as_json:
        facts = attributes_in(whole.settings)
        say_records([Record(str(facts["input"]), str(facts["input_sha256"]), timed(poses.to_json()))])
    else:
        say("\n".join(poses.lines()))
    exit_for_poses(poses)


def _merge_minimized(shards: tuple[Path, ...], output: Path, as_json: bool, call: Call) -> None:
    """Write and report a row for every structure. The journals are kept, because --resume needs them."""
    require_table_suffix(output)
    records: Sequence[Record] = merged(shards).in_order()
    CommandProvenance(call).save(table_of(records), output)
    n_failed = sum(record.failed for record in records)
    if as_json:
        say_records(records)
    else:
        say(counted(len(records), "structure") + (f", of which {n_failed:,} failed" if n_failed else ""))
    if n_failed:
        raise click.exceptions.Exit(1)


def _remove(shards: Sequence[Path]) -> None:
    """Remove files of shards after merging."""
    for path in shards:
        path.unlink(missing_ok=True)


_MERGE = {
    FRAMES: _merge_frames,
    structures.STRUCTURES: _merge_structures,
    POSES: _merge_poses,
    MINIMIZED: _merge_minimized,
}
