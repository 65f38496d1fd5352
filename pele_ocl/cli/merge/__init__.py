"""`pele-ocl merge`: the results of shards as one file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import click

from ...cluster import Shard
from ...errors import FormatError, InputError
from ...formats import JsonText
from ...formats.tables import require_table_suffix
from ...trajectories.recording import RECORDERS, Settings, require_record_suffix
from ...trajectories.recording.merging import SHARD, frames_in, parts_of_shards
from ..command import INPUT, OUTPUT, EachOnce
from ..frames.tally import Tally
from ..options import debug_option
from ..structures.journal import JOURNAL_SUFFIX, read_journal
from ..structures.outcomes import Outcome, as_json_of, as_text_of, save
from ..terminal import say, say_json


@click.command(cls=EachOnce)
@click.argument("shards", metavar="SHARD...", type=INPUT, nargs=-1, required=True)
@click.option("-o", "--output", type=OUTPUT, metavar="OUT", required=True, help="The file to write.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the table.")
@debug_option
def merge(shards: tuple[Path, ...], output: Path, as_json: bool) -> None:
    """Put the results of all shards together: OUT becomes, byte for byte, what one run without --shard writes.

    SHARD... are the files that runs with --shard wrote, of frames (energies.1of10.h5, ...) or of structures
    (energies.1of10.csv.part, ...), in any order.
    """
    are_journals = {path.suffix == JOURNAL_SUFFIX for path in shards}
    if len(are_journals) > 1:
        raise InputError("shards of frames and shards of structures do not go together; merge them one by one")
    (_merge_structures if True in are_journals else _merge_frames)(shards, output, as_json)


def _merge_frames(shards: tuple[Path, ...], output: Path, as_json: bool) -> None:
    suffix = require_record_suffix(output)
    there = {path: RECORDERS[require_record_suffix(path)](path, {}, range(0)).settings_there() for path in shards}
    paths, settings = _in_order(there)
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
        say_json(tally.as_json())
    else:
        say("\n".join(tally.lines(f"{len(shards):,} shards")).lstrip("\n"))
    tally.exit_with_failures()


def _merge_structures(shards: tuple[Path, ...], output: Path, as_json: bool) -> None:
    require_table_suffix(output)
    read = {path: read_journal(path) for path in shards}
    paths, whole = _in_order({path: head for path, (head, _) in read.items()})
    parameters = JsonText(whole["parameters"])
    outcomes = list[Outcome]()
    for path in paths:
        head, found = read[path]
        everyone = json.loads(parameters)["path"]
        wanted = Shard.of(head[SHARD]).part(everyone, "structures")
        if [str(of.path) for of in found] != wanted:
            raise FormatError(
                f"{path}: holds {len(found):,} of {len(wanted):,} structures; run its shard again with --resume"
            )
        outcomes += found
    save(output, outcomes, {**whole, "parameters": parameters})
    if as_json:
        say_json(as_json_of(outcomes))
    else:
        say(as_text_of(outcomes))
    if any(of.error is not None for of in outcomes):
        click.get_current_context().exit(1)


def _in_order(facts: Mapping[Path, Settings]) -> tuple[list[Path], Settings]:
    """The files in the order of their shards, and the facts that all share.

    Raises FormatError for a file that is of no shard, and unless each shard of one run is there once.
    """
    by_number, wholes, counts = dict[int, Path](), list[Settings](), set[int]()
    for path, of in facts.items():
        if SHARD not in of:
            raise FormatError(f"{path}: is no shard; give the files that runs with --shard wrote")
        shard = Shard.of(of[SHARD])
        if shard.number in by_number:
            raise FormatError(f"{path}: is the shard {shard}, as {by_number[shard.number]} is; give each once")
        by_number[shard.number] = path
        counts.add(shard.count)
        wholes.append({name: value for name, value in of.items() if name != SHARD})
        if wholes[-1] != wholes[0] or len(counts) > 1:
            raise FormatError(f"{path}: is of another run than {next(iter(facts))}; give the shards of one")
    missing = sorted(set(range(1, counts.pop() + 1)) - set(by_number))
    if missing:
        raise FormatError(
            f"{len(missing):,} shards are missing, the first is {missing[0]}; run them, or give them, too"
        )
    return [by_number[number] for number in sorted(by_number)], wholes[0]
