"""Result of parametrizing molecules: a table, and Atoms with parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ..atoms import Atoms
from ..jobs.records import Record
from ..jobs.texts import counted
from ..ligand import Ligand
from ..report import Column, Report, Reported
from .items import MoleculeItem
from .spec import ParametrizeSpec
from .writing import Target, write_ligand

_COLUMNS = ("name", "formula", "n_atoms", "charge", "forcefield", "smiles")


@dataclass(frozen=True, eq=False, repr=False)
class ParametrizeResult(Reported):
    """Molecules with parameters.

    items : the molecules; records : Record of each molecule; spec : the job; call : facts about the call
    """

    items: tuple[MoleculeItem, ...]
    records: tuple[Record, ...]
    spec: ParametrizeSpec
    call: Mapping[str, Any]

    def __len__(self) -> int:
        return len(self.items)

    @property
    def errors(self) -> dict[int, str]:
        """Error messages of failed molecules, by index from 0."""
        return {k: record.error for k, record in enumerate(self.records) if record.failed}

    def ligand(self, k: int) -> Ligand:
        """Return the Ligand of a molecule, by index from 0."""
        return self.spec.ligand(self.items[k])

    def atoms(self, k: int) -> Atoms:
        """Return the Atoms of a molecule with parameters. Raises InputError if it failed."""
        self.records[k].refuse()
        return self.spec.atoms(self.items[k])

    def table(self) -> Report:
        """Return a table with a row for each molecule; failed molecules have an error message."""
        rows = [record.result for record in self.records]
        columns: dict[str, Any] = {"molecule": np.array([item.name for item in self.items])}
        for name in _COLUMNS:
            empty: Any = 0 if name in ("n_atoms", "charge") else ""
            columns[name] = Column(
                np.array([row.get(name, empty) for row in rows]), shown=name not in ("name", "smiles")
            )
        columns["error"] = np.array([record.reason for record in self.records])
        return Report(f"Parameters of {counted(len(self), 'molecule')}", columns, self.call)

    def to_json(self) -> list[dict[str, Any]]:  # type: ignore[override]  # one object per molecule
        """Return a list of the records as JSON data (docs/records.md)."""
        return [record.to_dict() for record in self.records]

    def save(self, path: str | PathLike[str]) -> None:
        """Write the files of all molecules that did not fail, as with `output`: a file or a folder."""
        target = Target.of(path, ())
        for k, item in enumerate(self.items):
            if not self.records[k].failed:
                ligand = self.ligand(k)
                write_ligand(
                    target.files(item.name, ligand.residue_name), ligand, self.atoms(k),
                    [Path(item.path)] if item.path else [], self.spec.remark(ligand),
                )  # fmt: skip

    def __repr__(self) -> str:
        failed = f", {len(self.errors):,} failed: {next(iter(self.errors.values()))}" if self.errors else ""
        first = next((record for record in self.records if not record.failed), None)
        what = "" if first is None else f", {first['forcefield']}"
        return f"ParametrizeResult({counted(len(self), 'molecule')}{what}{failed})"
