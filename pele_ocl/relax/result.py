"""Results of `relax`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats, Ints
from ..common.arguments import file_path
from ..common.errors import FormatError
from ..common.inputfile import read_file
from ..common.writing import replacing
from ..contract import Finding
from ..formats.conformation_files import Content, write_conformation
from ..jobs.facts import composition_as_json, settings
from ..jobs.journal import make_folder
from ..jobs.outputs import OutputNames
from ..jobs.records import Record
from ..jobs.texts import UNIT
from ..minimize import MinimizeResult
from ..minimize.result import CONVERGED, settings_of_rows
from ..report import Column, Report, Reported, masked
from .presets import PROTOCOLS, VACUUM, Protocol
from .violations import Violation


@dataclass(frozen=True, eq=False)
class Round:
    """One minimization. freed : names of residues without restraints; after : remaining violations"""

    result: MinimizeResult = field(repr=False)
    freed: tuple[str, ...]
    after: Sequence[Violation]

    def to_json(self) -> dict[str, Any]:
        """Return the round's entry for a record, as JSON data."""
        values = self.result.numbers()
        del values["name"]
        seconds = {"total": values["seconds"]}
        return {**values, "seconds": seconds, "freed": list(self.freed), "violations": counts(self.after)}


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class RelaxResult(Reported):
    """A relaxed model.

    name, sha256 : path and hash of the file
    atoms : the relaxed atoms; b_factors : (n, 2) occupancies and B-factors of the file, None if it has none
    before, after : violations before and after; n_added : number of added atoms
    rounds : rounds of minimization
    rms_displacement : rms displacement of the file's heavy atoms, without superposition, A
    seconds : times of "preparation", "minimization", "violations" and "total"
    notes : messages about atoms and residues that were chosen, removed, replaced or added
    findings : findings about the atoms of the file and the final energy
    protocol, precision, device : used for the relaxation

    >>> result = pele_ocl.relax("data/structures/trialanine.pdb", max_iterations=2)
    >>> result.is_clean, len(result.rounds)
    (True, 1)
    >>> result.save("relaxed.pdb")
    """

    name: str
    atoms: Atoms
    b_factors: Floats | None
    before: Sequence[Violation]
    rounds: Sequence[Round]
    n_added: int
    rms_displacement: float
    seconds: Mapping[str, float]
    notes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    sha256: str = ""
    protocol: Protocol = PROTOCOLS["alphafold"]
    precision: str = "float32"
    device: str = ""

    def __repr__(self) -> str:
        n_before, n_after = (sum(of.counts for of in found) for found in (self.before, self.after))
        rounds = f"{len(self.rounds)} round{'' if len(self.rounds) == 1 else 's'}"
        return (
            f"RelaxResult({self.name}: {n_before:,} violations before, {n_after:,} after {rounds} and "
            f"{self.iterations:,} iterations; energy {self.total:,.1f} kcal/mol, moved {self.rms_displacement:.3f} A)"
        )

    @property
    def positions(self) -> Floats:
        """Relaxed positions, (n, 3) A."""
        return self.atoms.positions

    @property
    def total(self) -> float:
        """Final energy including restraints, kcal/mol."""
        return self.rounds[-1].result.total

    @property
    def after(self) -> Sequence[Violation]:
        """Remaining violations."""
        return self.rounds[-1].after

    @property
    def is_clean(self) -> bool:
        """True if no violations remain by AlphaFold's criteria."""
        return not any(violation.counts for violation in self.after)

    @property
    def is_worse(self) -> bool:
        """True if there are more violations or clashes than before."""
        before, after = counts(self.before), counts(self.after)
        n_before, n_after = (sum(of.counts for of in found) for found in (self.before, self.after))
        return n_after > n_before or after.get("clash", 0) > before.get("clash", 0)

    @property
    def iterations(self) -> int:
        """Total number of iterations."""
        return sum(round_.result.iterations for round_ in self.rounds)

    @property
    def converged(self) -> bool:
        """True if the last round converged."""
        return self.rounds[-1].result.converged

    @property
    def record(self) -> Record:
        """Record of the model."""
        return Record(self.name, self.sha256, values_of(self))

    @property
    def records(self) -> Sequence[Record]:
        """List with the record, as in RelaxBatch."""
        return [self.record]

    def table(self) -> Report:
        """Return a table with one row: violations before and after, energy, iterations."""
        return table_of(self.records)

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON data (docs/records.md)."""
        return self.record.to_dict()

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model as PDB or mmCIF, by suffix, with the B-factors of its file.

        Raises FormatError for another suffix, and for a file that cannot be written.
        """
        target = file_path(path)
        make_folder(target.parent)
        write_conformation(target, Content(self.atoms, source=self.name, b_factors=self.b_factors))


@dataclass(frozen=True, eq=False, repr=False)
class RelaxBatch(Sequence[Record], Reported):
    """Relaxed models, in input order: `batch[i]` is the Record of model i, properties are arrays over all models.

    records : Record of each model, with items such as `batch[0]["n_after"]`
    results : RelaxResult of each model, None if it failed; empty if models were written to files
    files : paths of the written models

    Arrays contain NaN, False or 0 for failed models.

    >>> batch = pele_ocl.relax(["data/structures/trialanine.pdb"], max_iterations=2)
    >>> batch.is_clean.tolist(), batch.n_after.tolist()
    ([True], [0])
    >>> batch.save("relaxed")
    """

    records: Sequence[Record]
    results: Sequence[RelaxResult | None] = ()
    files: Sequence[Path | None] = ()

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, i: Any) -> Any:
        return self.records[i]

    def __repr__(self) -> str:
        failed = f", {len(self.errors):,} failed" if self.errors else ""
        return (
            f"RelaxBatch({len(self):,} models, {int(self.is_clean.sum()):,} without violations, "
            f"{int(self.is_worse.sum()):,} with more than before{failed})"
        )

    @property
    def errors(self) -> Mapping[int, str]:
        """Error messages of failed models, by index from 0."""
        return {k: record.error for k, record in enumerate(self.records) if record.failed}

    @property
    def n_before(self) -> Ints:
        """Numbers of violations before relaxation, (m,)."""
        return self._values("n_before", 0)

    @property
    def n_after(self) -> Ints:
        """Numbers of violations after relaxation, (m,)."""
        return self._values("n_after", 0)

    @property
    def is_clean(self) -> NDArray[np.bool_]:
        """Mask (m,) of models without violations."""
        return self._values("is_clean", False)

    @property
    def is_worse(self) -> NDArray[np.bool_]:
        """Mask (m,) of models with more violations or clashes than before."""
        return self._values("is_worse", False)

    @property
    def converged(self) -> NDArray[np.bool_]:
        """Mask (m,) of models whose last round converged."""
        return np.array([record.result.get("stopped_by") in CONVERGED for record in self.records], bool)

    @property
    def total(self) -> Floats:
        """Final energies including restraints, (m,) kcal/mol."""
        return np.array([np.nan if record.failed else energy_of(record.result) for record in self.records])

    @property
    def rms_displacement(self) -> Floats:
        """Rms displacements of heavy atoms, (m,) A."""
        return self._values("rms_displacement", np.nan)

    def _values(self, name: str, failed: object) -> NDArray[Any]:
        return np.array([record.result.get(name, failed) for record in self.records])

    def table(self) -> Report:
        """Return a table with a row for each model: violations before and after, energy, or an error message."""
        return table_of(self.records)

    def to_json(self) -> Any:
        """Return a list of the records as JSON data (docs/records.md)."""
        return [record.to_dict() for record in self.records]

    def save(self, output: str | PathLike[str]) -> None:
        """Write the models to a folder, or to names given by a pattern such as "relaxed/{name}.pdb".

        Raises FormatError for models that were written in another format, and for files that cannot be written.
        """
        names = OutputNames.of(Path(output))
        for record, file in zip(self.records, self.files, strict=False):
            if file is not None and not record.failed:
                _copy(file, names.name(Path(record.structure)))
        for result in self.results:
            if result is not None:
                result.save(names.name(Path(result.name)))


def _copy(file: Path, target: Path) -> None:
    """Copy the file of a model. Raises FormatError if it no longer exists, or has another format."""
    if file.suffix.lower() != target.suffix.lower():
        raise FormatError(f"{target}: the model was written as {file.suffix}; use this suffix for the copy")
    data = read_file(file).data
    make_folder(target.parent)
    with replacing(target) as temporary:
        Path(temporary).write_bytes(data)


def counts(violations: Sequence[Violation]) -> dict[str, int]:
    """Count the violations of each kind."""
    return dict(Counter(violation.kind for violation in violations))


def values_of(result: RelaxResult) -> dict[str, Any]:
    """Return the values of a record."""
    labels = result.atoms.labels
    assert labels is not None
    left = sorted(result.after, key=lambda violation: not violation.counts)
    return {
        "n_atoms": len(result.atoms),
        "composition": composition_as_json(result.atoms),
        "device": result.device,
        "precision": result.precision,
        "settings": {
            **settings(VACUUM, result.atoms),
            "restraint": result.protocol.stiffness,
            "protocol": result.protocol.name,
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
        "rounds": [round_.to_json() for round_ in result.rounds],
        "seconds": dict(result.seconds),
        "notes": list(result.notes),
        "findings": [finding.as_json() for finding in result.findings],
    }


def energy_of(values: Mapping[str, Any]) -> float:
    """Return the final energy of a record, including restraints, kcal/mol."""
    return float(values["rounds"][-1]["energy_after"]["total"])


_UNITS = {"energy": UNIT, "rms_displacement": "angstrom", "prepared": "s", "seconds": "s"}


def table_of(records: Sequence[Record]) -> Report:
    """Build the table of records."""
    rows = [_figures(record) for record in records]
    names = next((list(row) for row in rows if row), [])
    columns: dict[str, Any] = {"name": np.array([record.structure for record in records])}
    columns |= {name: Column(masked([row.get(name) for row in rows]), _UNITS.get(name, "")) for name in names}
    columns["error"] = np.array([record.error for record in records])
    facts = settings_of_rows([record.to_dict() for record in records])
    return Report(f"{len(records):,} relaxed model{'' if len(records) == 1 else 's'}", columns, facts)


def _figures(record: Record) -> dict[str, float]:
    if record.failed:
        return {}
    row = record.result
    return {
        "violations": row["n_before"], "left": row["n_after"], "not_counted": len(row["left"]) - row["n_after"],
        "rounds": len(row["rounds"]), "iterations": row["iterations"], "restored": row["restored"],
        "worse": int(row["is_worse"]), "energy": energy_of(row), "rms_displacement": row["rms_displacement"],
        "atoms_added": row["atoms_added"], "prepared": row["seconds"]["preparation"],
        "seconds": row["seconds"]["total"],
    }  # fmt: skip
