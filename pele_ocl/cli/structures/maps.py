"""Maps of several structures in one call: each is what it is alone, in a file by the structure's name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, wraps
from pathlib import Path
from typing import cast

import click

from ...errors import PeleError
from ...formats import refuse_target
from ...inputfile import read_file
from ..clock import elapsed
from ..cluster import Call, asked_of, shared_out
from ..report import counted, duration
from ..tables import table
from ..terminal import collected_json, one_line, say, say_json
from .outcomes import Outcome, Report, as_json_of, died_of
from .several import described_by

TARGETS = ("outputs", "png", "surface_png")  # parameters that are files to be written
NAME = "{name}"  # in an output: the structure's name without its suffix


def each_map(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command that writes maps of one structure take several, whose outputs have {name} in their names.

    The command takes `path`, TARGETS and `as_json`, and prints its result by say_json.
    """

    @wraps(command)
    def run(*, path: Path | tuple[Path, ...], as_json: bool, **options: object) -> None:
        asked = asked_of(click.get_current_context())
        targets = {name: options.pop(name) for name in TARGETS}
        if isinstance(path, Path):
            asked.refuse("one map is computed at once, by all devices of --device")
            command(path=path, as_json=as_json, **_all_named(targets, path), **options)
            return
        if getattr(options.get("over"), "paths", ()):
            raise click.UsageError("a trajectory is of one structure; give one, or leave out -t")
        _require_names(path, list(_files(targets)))
        compute = partial(_outcome, command, options, targets)
        with shared_out(compute, died=died_of, path=described_by(path)) as work:
            wanted = path if asked.shard is None else asked.shard.part(path, "structures")
            outcomes = list(work.over(wanted))
        if as_json:
            say_json(as_json_of(outcomes))
        else:
            say(_as_text(outcomes))
        if any(of.error is not None for of in outcomes):
            click.get_current_context().exit(1)

    return run


def _files(targets: Mapping[str, object]) -> Iterator[Path]:
    """The paths of all outputs."""
    for target in targets.values():
        for each in target if isinstance(target, tuple) else (target,):
            if isinstance(each, Path):
                yield each


def _all_named(targets: Mapping[str, object], path: Path) -> dict[str, object]:
    """The outputs with the structure's name put in."""
    return {name: _named(target, path) for name, target in targets.items()}


def _named(target: object, path: Path) -> object:
    """An output, or several, with the structure's name put in."""
    if isinstance(target, tuple):
        return tuple(_named(each, path) for each in target)
    return target.with_name(target.name.replace(NAME, path.name.split(".")[0])) if isinstance(target, Path) else target


def _require_names(paths: Sequence[Path], outputs: Sequence[Path]) -> None:
    """Raise for outputs of which each structure would write over another's, or over a structure."""
    for output in outputs:
        targets = [_named(output, path) for path in paths]
        if len(set(targets)) < len(paths):
            same = "have one name" if NAME in output.name else f"need {NAME} in it, as in {NAME}{output.suffix}"
            raise click.UsageError(f"{output}: maps of several structures {same}; give each a file of its own")
        for target in targets:
            refuse_target(cast(Path, target), paths)


def _outcome(
    command: Callable[..., None], options: Mapping[str, object], targets: Mapping[str, object], path: Path
) -> Outcome:
    """The outcome of one structure, its maps written as its own call writes them."""
    sha256 = ""
    named = _all_named(targets, path)
    try:
        source = read_file(path)
        sha256 = source.sha256
        with Call.now(path=path, **named).under_way(), collected_json() as reports:
            command(path=source, as_json=True, **named, **options)
    except PeleError as error:
        return Outcome(path, sha256, error=error)
    return Outcome(path, sha256, cast(Report, reports[0]))


def _as_text(outcomes: Sequence[Outcome]) -> str:
    """A table of all maps, and the reasons of those that failed in their rows."""
    n_failed = sum(of.error is not None for of in outcomes)
    rows = [_row(of) for of in outcomes]
    heads = ("structure", "atoms", "points", "min", "max", "mean")
    units = {str(of.report["unit"]) for of in outcomes if of.report is not None}
    counts = counted(len(outcomes), "map") + (f", of which {n_failed:,} failed" if n_failed else "")
    lines = [counts, "", f"Potential, {', '.join(sorted(units))}", table(heads, rows, "<>>>>>")]
    reasons = [f"{one_line(of.path.name)}: {of.reason}" for of in outcomes if of.error is not None]
    return "\n".join([*lines, *(["", *reasons] if reasons else []), "", f"In all {duration(elapsed())}"])


def _row(of: Outcome) -> tuple[str, ...]:
    if of.report is None:
        return (one_line(of.path.name), "failed", "", "", "", "")
    shape = " x ".join(map(str, cast(Sequence[int], of.report["shape"])))
    values = [f"{cast(float, of.report[name]):,.4g}" for name in ("min", "max", "mean")]
    return (one_line(of.path.name), f"{of.report['n_atoms']:,}", shape, *values)
