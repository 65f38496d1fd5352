"""Several structures in one call: each is computed as it is alone, and all are reported together."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import cast

import click

from ...errors import PeleError
from ...formats import require_table_suffix
from ...inputfile import read_file
from ..command import INPUT
from ..terminal import collected_json, say, say_json
from .outcomes import Outcome, Report, as_json_of, as_text_of, save


def _one_or_several(_: click.Context, __: click.Parameter, given: tuple[Path, ...]) -> Path | tuple[Path, ...]:
    return given[0] if len(given) == 1 else given


structures_argument = click.argument(
    "path", metavar="IN...", type=INPUT, nargs=-1, required=True, callback=_one_or_several
)


def each_structure(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command of one structure take several: it runs for each, and all are reported together.

    The command takes `path`, `output` and `as_json`, and prints its result by say_json.
    """

    @wraps(command)
    def run(*, path: Path | tuple[Path, ...], output: Path | None, as_json: bool, **options: object) -> None:
        if isinstance(path, Path):
            command(path=path, output=output, as_json=as_json, **options)
            return
        if options.get("write_pairs") is not None:
            raise click.UsageError("--write-pairs is for one structure, as each has a list of its own")
        if getattr(options.get("over"), "paths", ()):
            raise click.UsageError("a trajectory is of one structure; give one, or leave out -t")
        if options.get("per_residue") and not as_json:
            raise click.UsageError("--per-residue of several structures is told by --json; add it")
        if output is not None:
            require_table_suffix(output)
        outcomes = [_outcome(command, one, options) for one in path]
        _raise_common(outcomes)
        if output is not None:
            save(output, outcomes)
        if as_json:
            say_json(as_json_of(outcomes))
        else:
            say(as_text_of(outcomes))
        if any(of.error is not None for of in outcomes):
            click.get_current_context().exit(1)

    return run


def _outcome(command: Callable[..., None], path: Path, options: Mapping[str, object]) -> Outcome:
    start = time.perf_counter()
    sha256 = ""
    try:
        source = read_file(path)
        sha256 = source.sha256
        with collected_json() as reports:
            command(path=source, output=None, as_json=True, **options)
    except PeleError as error:
        return Outcome(path, sha256, error=error)
    report = cast(Report, reports[0])
    seconds = cast(Mapping[str, float], report["seconds"])
    report["seconds"] = {**seconds, "total": time.perf_counter() - start}
    return Outcome(path, sha256, report)


def _raise_common(outcomes: Sequence[Outcome]) -> None:
    """Raise the error of all structures where it is one and the same: it is about an option, not about them."""
    sentences = {of.sentence if of.error is not None else None for of in outcomes}
    if len(sentences) == 1 and (error := outcomes[0].error) is not None:
        raise error
