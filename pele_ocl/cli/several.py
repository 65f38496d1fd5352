"""Several structures in one call: computed by a job, reported as records or as one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from ..formats import require_table_suffix
from ..jobs import Record
from ..jobs.spec import StructureSpec
from ..jobs.structures import STRUCTURES as STRUCTURES
from ..jobs.structures import Run, Structures, as_text_of, structures_by, table_of
from ..jobs.structures import journal_of as journal_of
from .clock import elapsed
from .cluster import cluster_options_of
from .command import INPUT, current
from .frames.options import FrameOptions
from .json_lines import exit_for_records, say_records
from .progress import ProgressLine
from .report import call_facts
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


@dataclass(frozen=True)
class Several:
    """Structures of a call that has more than one.

    paths : of the structures; output : the table of all
    """

    paths: tuple[Path, ...]
    output: Path | None
    resume: bool
    as_json: bool

    @classmethod
    def of(
        cls, path: Path | tuple[Path, ...], output: Path | None, trajectory: FrameOptions, as_json: bool,
        of_one: Mapping[str, object],
    ) -> Several | None:  # fmt: skip
        """Give the structures, None if there is one.

        of_one : values of options that several structures leave no room for, by the sentences that say so

        Raises UsageError for options that do not go together.
        """
        cluster = cluster_options_of(current())
        if isinstance(path, Path):
            if not trajectory.paths:
                cluster.refuse("one structure is computed at once")
            return None
        for reason, value in of_one.items():
            if value:
                raise click.UsageError(reason)
        if trajectory.paths:
            raise click.UsageError("a trajectory is of one structure; give one, or leave out -t")
        replace(trajectory, resume=False).require_alone()
        if output is None and (trajectory.resume or cluster.shard is not None):
            raise click.UsageError(
                f"{'--resume goes on with' if trajectory.resume else '--shard begins'} a file; name it by -o"
            )
        if output is not None:
            require_table_suffix(output)
        return cls(path, output, trajectory.resume, as_json)

    def report(self, spec: StructureSpec, what: str) -> None:
        """Compute all structures, write them down, and report; what : for the progress line"""
        context = current()
        cluster = cluster_options_of(context)
        with ProgressLine(what) as progress:
            run = Run(
                self.output, self.resume, cluster.workers, cluster.scheduler, cluster.shard,
                context.params.get("device"), progress, call_facts(),
            )  # fmt: skip
            found: Structures = structures_by(spec, self.paths, run)
        report(found.records, self.as_json)


def only_one(path: Path | tuple[Path, ...]) -> Path:
    """Give the structure of a call that has one."""
    assert isinstance(path, Path)
    return path
