"""Several structures in one call: each is computed as it is alone, and all are reported together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from ...errors import InputError
from ...formats import require_table_suffix
from ...jobs import Journal, Record
from ...jobs.running import run_with
from ...jobs.spec import StructurePath, StructureSpec
from ..cluster import asked_of
from ..command import INPUT
from ..frames.options import FrameOptions
from ..progress import ProgressLine
from ..report import call_facts
from .outcomes import report, save

JOURNAL_SUFFIX = ".part"  # behind the name of the table
STRUCTURES = "structures"  # the kind of such a journal


def _one_or_several(_: click.Context, __: click.Parameter, given: tuple[Path, ...]) -> Path | tuple[Path, ...]:
    return given[0] if len(given) == 1 else given


structures_argument = click.argument(
    "path", metavar="IN...", type=INPUT, nargs=-1, required=True, callback=_one_or_several
)


def journal_of(output: Path) -> Path:
    """The file in which records stand until the table of this name has them all."""
    return output.with_name(f"{output.name}{JOURNAL_SUFFIX}")


@dataclass(frozen=True)
class Several:
    """The structures of a call that has more than one.

    paths : of the structures; output : the table of all
    """

    paths: tuple[Path, ...]
    output: Path | None
    resume: bool
    as_json: bool

    @classmethod
    def of(
        cls, path: Path | tuple[Path, ...], output: Path | None, over: FrameOptions, as_json: bool,
        of_one: Mapping[str, object],
    ) -> Several | None:  # fmt: skip
        """The structures, None where there is one.

        of_one : values of options that several structures leave no room for, by the sentences that say so

        Raises UsageError for options that do not go together.
        """
        asked = asked_of(click.get_current_context())
        if isinstance(path, Path):
            if not over.paths:
                asked.refuse("one structure is computed at once")
            return None
        for reason, value in of_one.items():
            if value:
                raise click.UsageError(reason)
        if over.paths:
            raise click.UsageError("a trajectory is of one structure; give one, or leave out -t")
        replace(over, resume=False).require_alone()
        if output is None and (over.resume or asked.shard is not None):
            raise click.UsageError(
                f"{'--resume goes on with' if over.resume else '--shard begins'} a file; name it by -o"
            )
        if output is not None:
            require_table_suffix(output)
        return cls(path, output, over.resume, as_json)

    def report(self, spec: StructureSpec, what: str) -> None:
        """Compute all structures, write them down, and report; what : for the progress line"""
        context = click.get_current_context()
        asked = asked_of(context)
        facts, paths, output, shard = call_facts(), self.paths, self.output, asked.shard
        if shard is not None and output is not None:
            paths, output = shard.part(paths, "structures"), shard.path(output)
        path = None if output is None else journal_of(output)
        journal = Journal(path, facts, kind=STRUCTURES, shard=shard, items=map(str, self.paths))
        items: Sequence[StructurePath] = paths
        with ProgressLine(what) as progress:
            found = run_with(spec, items, journal, self.resume, asked.place(context.params.get("device")))
            records = list(progress.over(found, items))
        _raise_common(records)
        if output is not None and path is not None and shard is None:
            save(output, records, facts)
            path.unlink()
        report(records, self.as_json)


def only_one(path: Path | tuple[Path, ...]) -> Path:
    """The structure of a call that has one."""
    assert isinstance(path, Path)
    return path


def _raise_common(records: Sequence[Record]) -> None:
    """Raise the error of all structures where it is one and the same: it is about an option, not about them."""
    if len({record.error for record in records}) == 1 and records[0].failed:
        raise InputError(records[0].error)
