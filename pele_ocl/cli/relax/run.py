"""The way of a run through its models: each is read, relaxed, written and noted down."""

from __future__ import annotations

from collections.abc import Mapping

from ...contract import require
from ...errors import PeleError
from ...formats.conformation_files import Content, write_conformation
from ...inputfile import read_file
from ...relax import Relaxer
from ..minimize.journal import Journal, Row
from ..minimize.progress import StructureLine
from ..minimize.targets import Targets, make_folder
from ..minimize.work import Outcome
from .report import row_of

_JOURNAL = "relax.jsonl"


def rows_of(
    relaxer: Relaxer, targets: Targets, settings: Mapping[str, str], resume: bool, strict: bool = False
) -> list[Row]:
    """The row of each model, in their order.

    resume : whether models that an earlier run finished are passed over; strict : whether findings refuse a model
    """
    path = None if targets.journal is None else targets.journal.with_name(_JOURNAL)
    rows = list[Row]()
    with Journal(path, settings, resume) as journal, StructureLine(len(targets.files), "Relaxing") as progress:

        def watch(n_done: int, n: int, gradient: float) -> None:
            progress.watch(0, n, gradient)  # a model is done when all its rounds are

        for model, target in targets.files.items():
            row, sha256, written = journal.earlier(model, target), "", ""
            if row is None:
                try:
                    source = read_file(model)
                    sha256 = source.sha256
                    result = relaxer.relax(source, watch=watch)
                    require(result.findings, strict)
                    make_folder(target.parent)
                    journal.begin()
                    write_conformation(target, Content(result.atoms, source=str(model), b_factors=result.b_factors))
                    row, written = row_of(model, result), read_file(target).sha256
                except PeleError as error:
                    row = Outcome.failed_by(str(error), str(model)).row
                journal.add(row, sha256=sha256, written=written)
            else:
                progress.first += 1
            rows.append(row)
            progress.done = len(rows)
            progress.tell(0)
    return rows
