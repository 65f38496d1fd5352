"""Predicted models relaxed by AlphaFold's protocol, a record and a file each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..common.errors import PeleError
from ..common.inputfile import InputFile, read_file
from ..contract import require
from ..formats.conformation_files import Content, write_conformation
from ..jobs.facts import composition_as_json, settings
from ..jobs.journal import make_folder
from ..jobs.outputs import OutputNames
from ..jobs.records import Record
from ..jobs.spec import Spec, StructurePath
from ..minimize.spec import WRITTEN
from ..opencl.device import get_device
from . import Relaxer, RelaxResult, counts
from .presets import protocol_of
from .result import Round
from .rounds import VACUUM

RELAXED = "relaxed models"  # the kind of a journal
Watch = Callable[[int, int, float], None]


@dataclass(frozen=True, eq=False)
class RelaxSpec(Spec[StructurePath]):
    """Relax models, and write each: to a folder, or to a name such as 'relaxed/{name}.pdb'.

    strict : whether findings refuse a model
    watch : called now and then with numbers of conformations done and to be done, and the slowest one's rms gradient;
        of this process alone

    The other fields are options of pele_ocl.Relaxer.

    Further fields are options of the quantity: close_gaps, device, like, max_iterations, precision, relaxer.
    """

    output: str
    like: str = "alphafold"
    close_gaps: bool = False
    max_iterations: int = 2_000
    precision: str = "float32"
    device: str | None = None
    strict: bool = False
    watch: Watch | None = None

    @cached_property
    def relaxer(self) -> Relaxer:
        """Relaxer of this process."""
        return Relaxer(
            self.like, close_gaps=self.close_gaps, max_iterations=self.max_iterations, precision=self.precision,
            device=get_device(self.device),
        )  # fmt: skip

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"watch": None}

    def settings(self) -> dict[str, str]:
        """Write the fields as texts, less what changes no result."""
        return {name: text for name, text in super().settings().items() if name not in ("watch", "output")}

    def target(self, item: StructurePath) -> Path:
        """Name the file of a model."""
        return OutputNames.of(self.output).name(Path(item))

    def still_counts(self, record: Record, item: StructurePath) -> bool:
        """True if its file is still there, too."""
        try:
            written = read_file(self.target(item)).sha256
        except PeleError:
            return False
        return super().still_counts(record, item) and record.more.get(WRITTEN) == written

    def compute(self, item: StructurePath) -> dict[str, Any]:
        """Relax one model and write its file."""
        return self._relaxed(read_file(item), lambda: None)[0]

    def records(self, items: Iterable[StructurePath], begin: Callable[[], None]) -> Iterator[Record]:
        """Each model relaxed and written; begin : called before its file is."""
        for item in items:
            sha256 = ""
            try:
                source = read_file(item)
                sha256 = source.sha256
                result, written = self._relaxed(source, begin)
            except PeleError as error:
                yield Record.failed_by(error, item, sha256)
            else:
                yield Record(str(item), sha256, result, more={WRITTEN: written})

    def _relaxed(self, source: InputFile, begin: Callable[[], None]) -> tuple[dict[str, Any], str]:
        """Relax a model, write it, and give the result and the SHA-256 of its file."""
        found = self.relaxer.relax(source, watch=self.watch)
        require(found.findings, self.strict)
        target = self.target(source)
        make_folder(target.parent)
        begin()
        write_conformation(target, Content(found.atoms, source=str(source), b_factors=found.b_factors))
        return _as_json(self, found), read_file(target).sha256


def _round_as_json(found: Round) -> dict[str, Any]:
    """Give the part of a record about a round."""
    values = found.result.to_dict()
    del values["name"]
    seconds = {"total": values["seconds"]}
    return {**values, "seconds": seconds, "freed": list(found.freed), "violations": counts(found.after)}


def _as_json(spec: RelaxSpec, result: RelaxResult) -> dict[str, Any]:
    """Give the result of a record."""
    labels = result.atoms.labels
    assert labels is not None
    left = sorted(result.after, key=lambda violation: not violation.counts)
    return {
        "n_atoms": len(result.atoms),
        "composition": composition_as_json(result.atoms),
        "device": str(get_device(spec.device)),
        "precision": spec.precision,
        "settings": {
            **settings(VACUUM, result.atoms),
            "restraint": protocol_of(spec.like).stiffness,
            "like": spec.like,
        },
        "violations_before": counts(result.before),
        "violations_after": counts(result.after),
        "n_before": sum(violation.counts for violation in result.before),
        "n_after": sum(violation.counts for violation in result.after),
        "left": [violation.described(labels) for violation in left],
        "is_clean": result.is_clean,
        "is_worse": result.is_worse,
        "iterations": result.iterations,
        "stopped_by": result.rounds[-1].result.stopped_by,
        "restored": result.rounds[0].result.restored,
        "atoms_added": result.n_added,
        "rms_displacement": result.rms_displacement,
        "rounds": [_round_as_json(round_) for round_ in result.rounds],
        "seconds": dict(result.seconds),
        "notes": list(result.notes),
        "findings": [finding.as_json() for finding in result.findings],
    }
