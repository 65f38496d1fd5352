"""Several structures in one call: each is computed as it is alone, and all are reported together."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial, wraps
from pathlib import Path
from typing import cast

import click

from ...errors import PeleError
from ...formats import require_table_suffix
from ...inputfile import read_file
from ..cluster import asked_of, shared_out
from ..command import INPUT
from ..frames.options import FrameOptions
from ..report import call_facts
from ..terminal import collected_json
from .journal import Journal, journal_of
from .outcomes import Outcome, Report, died_of, report, save


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
        asked = asked_of(click.get_current_context())
        over = cast(FrameOptions | None, options.get("over"))
        if isinstance(path, Path):
            if not getattr(over, "paths", ()):
                asked.refuse("one structure is computed at once")
            command(path=path, output=output, as_json=as_json, **options)
            return
        _refuse_options_of_one(options, as_json)
        resumes = over is not None and over.resume
        if over is not None:
            options["over"] = replace(over, resume=False)
        if output is None and (resumes or asked.shard is not None):
            raise click.UsageError(f"{'--resume goes on with' if resumes else '--shard begins'} a file; name it by -o")
        if output is not None:
            require_table_suffix(output)
        with shared_out(partial(_outcome, command, options), died=died_of, path=described_by(path)) as work:
            if asked.shard is not None and output is not None:
                path, output = asked.shard.part(path, "structures"), asked.shard.path(output)
            facts = call_facts() | ({} if asked.shard is None else {"shard": str(asked.shard)})
            outcomes = _written_down(path, output, facts, resumes, work.over)
        _raise_common(outcomes)
        if output is not None and asked.shard is None:
            save(output, outcomes, facts)
            journal_of(output).unlink()
        report(outcomes, as_json)

    return run


def described_by(paths: tuple[Path, ...]) -> tuple[Path, ...]:
    """The structures by which workers call the command: two of them, or all where some need --coordinates."""
    return paths if click.get_current_context().params.get("coordinates") else paths[:2]


def _refuse_options_of_one(options: Mapping[str, object], as_json: bool) -> None:
    """Raise for options that several structures leave no room for."""
    if options.get("write_pairs") is not None:
        raise click.UsageError("--write-pairs is for one structure, as each has a list of its own")
    if getattr(options.get("wanted"), "files", ()):
        raise click.UsageError("a decomposition or a picture is of one structure; give one, or leave out its file")
    if getattr(options.get("over"), "paths", ()):
        raise click.UsageError("a trajectory is of one structure; give one, or leave out -t")
    if options.get("per_residue") and not as_json:
        raise click.UsageError("--per-residue of several structures is told by --json; add it")


def _written_down(
    paths: Sequence[Path], output: Path | None, facts: Mapping[str, str], resumes: bool,
    over: Callable[[Iterable[Path]], Iterator[Outcome]],
) -> list[Outcome]:  # fmt: skip
    """The outcomes of structures, each written beside the output as it comes, where there is one."""
    if output is None:
        return list(over(paths))
    with Journal(journal_of(output), facts) as journal:
        outcomes = journal.resume(paths) if resumes else []
        for outcome in over(paths[len(outcomes) :]):
            journal.append(outcome)
            outcomes.append(outcome)
    return outcomes


def _outcome(command: Callable[..., None], options: Mapping[str, object], path: Path) -> Outcome:
    """The outcome of one structure, whether it fails or not."""
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
