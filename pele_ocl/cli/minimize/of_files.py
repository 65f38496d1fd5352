"""Files of a structure each: minimised and written by whichever process does it, and noted down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from ...atoms import Atoms
from ...formats.conformation_files import Content
from ...inputfile import InputFile
from ...jobs import MinimizeSpec, Record
from ...jobs.running import run_with
from ..cluster import asked_of
from ..command import coordinates_read, remember_coordinates
from .progress import StructureLine
from .work import Work


def records_of_files(work: Work, paths: Sequence[Path], resume: bool) -> list[Record]:
    """Minimise all structures, or a shard; give their records, in their order."""
    context = click.get_current_context()
    asked = asked_of(context)
    wanted = paths if asked.shard is None else asked.shard.part(paths, "structures")
    place = asked.place(context.params["device"])
    lean = replace(work, targets=replace(work.targets, files={}))  # there may be thousands
    with StructureLine(len(wanted)) as progress:
        spec = MinimizeSpec(
            output=str(work.targets.output), reading=work.read_atoms, options=work.options, strict=work.strict,
            held=work.holding.each, content=_Contents(lean), watch=progress.watch, tell=progress.begin,
        )  # fmt: skip
        journal = work.journal(asked.shard, list(map(str, paths)))
        passed_over = progress.pass_over_elsewhere if place.is_remote else progress.pass_over
        found = run_with(spec, list(wanted), journal, resume, place, passed_over)
        return list(progress.counted(found) if place.is_remote else found)


@dataclass(frozen=True)
class _Contents:
    """The contents of files, which are written as each structure's own call writes them."""

    work: Work

    def __call__(self, source: InputFile, target: Path) -> Callable[[Atoms], Content]:
        """The function that makes the content of atoms, for a file that was just read."""
        coordinates = coordinates_read()

        def content(atoms: Atoms) -> Content:
            remember_coordinates(coordinates)
            return self.work.content(source, atoms, 1, self.work.call.facts(source.path, output=target, table=None))

        return content
