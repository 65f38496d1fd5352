"""Run `pele_ocl.relax` for one or several models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from ..common.arguments import callback, choice, described, file_path
from ..common.errors import FormatError, InputError, KeywordError
from ..common.inputfile import InputFile
from ..common.notes import note, one_line
from ..formats import require_table_suffix
from ..formats.conformation_files import CONFORMATION_FORMATS, written_suffixes
from ..jobs.journal import Journal
from ..jobs.outputs import expanded, require_inputs
from ..jobs.provenance import Provenance
from ..jobs.records import Record
from ..jobs.running import run_with
from ..jobs.shards import HERE
from ..jobs.targets import OutputTargets, files_of_other_run, refuse_files_of
from ..minimize.result import CONVERGED
from ..minimize.running import tell_findings
from ..opencl.device import get_device
from .result import RelaxBatch, RelaxResult, table_of
from .spec import RELAXED, RelaxSpec

_JOURNAL = "relax.jsonl"
Watch = Callable[[int, int, float], None]


def relaxed(
    what: Any, spec: RelaxSpec, table: Path | None, resume: bool, errors: Literal["raise", "record"],
    watch: Watch | None, provenance: Provenance,
) -> RelaxResult | RelaxBatch:  # fmt: skip
    """Relax models and write the requested files; parameters as in `relax`."""
    choice("errors", errors, ("raise", "record"))
    callback("watch", watch)
    is_one = isinstance(what, str | PathLike)
    if not is_one and not isinstance(what, Sequence):
        raise InputError(
            f"the structure is {described(what)}; expected a path, a list of paths or an object with positions"
        )
    if table is not None:
        require_table_suffix(table)
    get_device(spec.device)  # fail early without a device
    paths: Sequence[Path | InputFile] = (
        [what] if isinstance(what, InputFile) else expanded([file_path(each) for each in ((what,) if is_one else what)])
    )
    if errors == "raise" and not isinstance(what, InputFile):
        require_inputs(map(Path, paths))
    targets = _targets(spec, list(map(Path, paths)), table)
    if resume and (targets is None or targets.journal is None):
        raise KeywordError("`resume` continues a run of several models; leave it out for one")
    path = None if targets is None else targets.journal
    overwritten = "" if resume or targets is None else files_of_other_run(targets, spec.settings())
    journal = Journal(path, spec.settings(), kind=RELAXED, waits=True)
    kept: dict[str, RelaxResult] = {}
    keeps = not spec.output or len(paths) == 1
    records = list[Record]()
    n = len(paths)
    # Count a model as done only after all its rounds.
    told = replace(
        spec, watch=None if watch is None else (lambda _, __, gradient: watch(len(records), n, gradient)),
        keep=(lambda result: kept.__setitem__(result.name, result)) if keeps else None,
    )  # fmt: skip
    for record in run_with(told, list(paths), journal, resume, HERE, lambda done: watch and watch(done, n, 0.0)):
        if record.failed and errors == "raise":
            record.refuse()
        records.append(record)
        if watch is not None:
            watch(len(records), n, 0.0)
    if overwritten and any(not record.failed for record in records):
        note(overwritten)
    reasons = {record.error for record in records}
    if table is not None and (len(reasons) > 1 or "" in reasons):
        provenance.save(table_of(records), table)
    _tell(records)
    if is_one and n == 1 and not records[0].failed:
        return kept[records[0].structure]
    if keeps:
        return RelaxBatch(records, [kept.get(record.structure) for record in records])
    return RelaxBatch(records, files=[spec.target(Path(record.structure)) for record in records])


def _targets(spec: RelaxSpec, paths: Sequence[Path], table: Path | None) -> OutputTargets | None:
    """Plan the output files, and refuse to overwrite inputs and files of other runs."""
    if not spec.output:
        return None
    output = Path(spec.output)
    form = CONFORMATION_FORMATS.get(output.suffix.lower())
    if output.suffix and not output.is_dir() and not (form and form.keeps_b_factors):
        known = written_suffixes(with_b_factors=True)
        raise FormatError(
            f"{output}: relaxed models are written as {known}, which keep B-factors; use one of these suffixes"
        )
    targets = OutputTargets.planned(output, paths, False, _JOURNAL, table)
    refuse_files_of("minimize", targets)
    return targets


def _tell(records: Sequence[Record]) -> None:
    """Report notes about files, restored bonds, and models with remaining problems."""
    done, n = [record for record in records if not record.failed], f"{len(records):,}"
    for record in done:
        for sentence in record["notes"]:
            note(f"Note: {sentence}")
    tell_findings(done)
    restored = sum(bool(record["restored"]) for record in done)
    if restored:
        note(f"Note: bonds were restored before the first step in {_counted(restored)} of {n}")
    limited = sum(record["stopped_by"] not in CONVERGED for record in done)
    if limited:
        note(
            f"Note: the minimization of {_counted(limited)} of {n} stopped before the gradient fell below the tolerance"
        )
    worse = [record for record in done if record["is_worse"]]
    if worse:
        named = ", ".join(f"{one_line(of.structure)} ({of['n_before']:,} -> {of['n_after']:,})" for of in worse[:3])
        rest = f", and {len(worse) - 3:,} more" if len(worse) > 3 else ""
        note(f"Error: more violations, or more clashes, than before in {named}{rest}")


def _counted(n: int) -> str:
    return f"{n:,} model{'' if n == 1 else 's'}"
