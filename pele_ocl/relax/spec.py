"""Job that relaxes predicted models, with a record and a file per model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..common.errors import PeleError
from ..common.inputfile import InputFile, read_file
from ..contract import require
from ..jobs.journal import make_folder
from ..jobs.outputs import OutputNames
from ..jobs.records import WRITTEN, Record
from ..jobs.spec import Spec, StructurePath
from ..opencl.device import Device, get_device
from .presets import Protocol
from .relaxer import Relaxer
from .result import RelaxResult, values_of

RELAXED = "relaxed models"  # kind of the journal
Watch = Callable[[int, int, float], None]


@dataclass(frozen=True, eq=False)
class RelaxSpec(Spec[StructurePath]):
    """Relax models, and write each to a folder or to a name such as 'relaxed/{name}.pdb'.

    output : "" to write no files; strict : whether to refuse models with findings
    watch : called periodically with the number of conformations done, their total number, and the largest rms gradient;
        keep : called with each result; both in this process only

    protocol, close_gaps, max_iterations, precision, device : as in pele_ocl.Relaxer

    `relaxer` is built on first use.

    >>> spec = pele_ocl.RelaxSpec(output="{name}-relaxed.pdb", max_iterations=2)
    >>> next(pele_ocl.jobs.run(spec, ["data/structures/trialanine.pdb"]))["is_clean"]
    True
    """

    output: str
    protocol: str | Protocol = "alphafold"
    close_gaps: bool = False
    max_iterations: int | None = None
    precision: str = "float32"
    device: Device | int | str | None = None
    strict: bool = False
    watch: Watch | None = None
    keep: Callable[[RelaxResult], None] | None = None

    @cached_property
    def relaxer(self) -> Relaxer:
        """Relaxer of this process."""
        return Relaxer(
            self.protocol, close_gaps=self.close_gaps, max_iterations=self.max_iterations, precision=self.precision,
            device=get_device(self.device),
        )  # fmt: skip

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"watch": None, "keep": None}

    def settings(self) -> dict[str, str]:
        """Return as texts all fields that affect results."""
        return {name: text for name, text in super().settings().items() if name not in ("watch", "keep", "output")}

    def target(self, item: StructurePath) -> Path | None:
        """Return the path of the relaxed model; None if no files are written."""
        return OutputNames.of(self.output).name(Path(item)) if self.output else None

    def still_counts(self, record: Record, item: StructurePath) -> bool:
        """Return whether the record is still valid: its file exists unchanged."""
        target = self.target(item)
        if target is None:
            return super().still_counts(record, item)
        try:
            written = read_file(target).sha256
        except PeleError:
            return False
        return super().still_counts(record, item) and record.more.get(WRITTEN) == written

    def compute(self, item: StructurePath) -> dict[str, Any]:
        """Relax one model and write its file."""
        return self._relaxed(read_file(item), lambda: None)[0]

    def records(self, items: Iterable[StructurePath], begin: Callable[[], None]) -> Iterator[Record]:
        """Relax and write each model. begin : called before a file is written"""
        for item in items:
            sha256 = ""
            try:
                source = read_file(item)
                sha256 = source.sha256
                result, written = self._relaxed(source, begin)
            except PeleError as error:
                yield Record.failed_by(error, item, sha256)
            else:
                yield Record(str(item), sha256, result, more=written)

    def _relaxed(self, source: InputFile, begin: Callable[[], None]) -> tuple[dict[str, Any], dict[str, str]]:
        """Relax and write a model; return the values of its record, and the SHA-256 of its file for the journal."""
        found = self.relaxer.relax(source, watch=self.watch)
        require(found.findings, self.strict)
        target, written = self.target(source), {}
        if target is not None:
            make_folder(target.parent)
            begin()
            found.save(target)
            written = {WRITTEN: read_file(target).sha256}
        if self.keep is not None:
            self.keep(found)
        return values_of(found), written
