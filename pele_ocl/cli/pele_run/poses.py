"""All poses of a PELE run as one table: our energies beside PELE's, and the poses' ranks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from ...atoms import Floats
from ...binding.energies import LARGEST_LJ
from ...binding.pele import Walker
from ...binding.pele.agreement import Agreement
from ...formats import JsonText, write_table
from ...jobs import Journal, Shard
from ..report import counted
from ..several import journal_of
from ..tables import UNIT, table
from ..terminal import note
from .evaluation import ENERGIES, WalkerPoses

_SHOWN = 10  # poses of the best


@dataclass(frozen=True, eq=False)
class Poses:
    """Poses in the order of the reports; NaN for what is not there.

    reports : names of the files, rows : from 0, both (m,)
    total, binding : ours, (m,) kcal/mol; pele_total, pele_binding : PELE's
    rank : (m,) from 1, by our binding energy; 0 where it is not there
    errors : (m,) why poses failed, "" where they did not
    """

    reports: list[str]
    rows: NDArray[np.int64]
    total: Floats
    binding: Floats
    pele_total: Floats
    pele_binding: Floats
    rank: NDArray[np.int64]
    errors: list[str]

    @classmethod
    def of(cls, walkers: Sequence[WalkerPoses]) -> Poses:
        """Collect the poses of all walkers; one that failed is one row."""
        absent = {name: np.full(1, np.nan) for name in ENERGIES}
        reports, rows, errors = list[str](), list[int](), list[str]()
        for of in walkers:
            n = len(of) or 1
            reports += [of.name] * n
            rows += range(n)
            errors += [of.error or of.errors.get(k, "") for k in range(n)]
        values = {name: np.concatenate([(of.columns or absent)[name] for of in walkers]) for name in ENERGIES}
        return cls(reports, np.array(rows), **values, rank=_ranks(values["binding"]), errors=errors)

    @property
    def n_failed(self) -> int:
        """Rows without our energies."""
        return sum(map(bool, self.errors))

    @property
    def notes(self) -> list[str]:
        """Sentences about the poses."""
        n = int(np.count_nonzero(self.total > LARGEST_LJ))
        return [f"atoms are on top of each other in {counted(n, 'pose')}, with energies to match"] if n else []

    def pairs(self) -> dict[str, tuple[Floats, Floats]]:
        """Pair PELE's columns with ours by name, as far as PELE's reports have them."""
        both = {"total energy": (self.pele_total, self.total), "binding energy": (self.pele_binding, self.binding)}
        return {name: pair for name, pair in both.items() if np.isfinite(pair[0]).any()}

    def columns(self) -> dict[str, NDArray[np.generic]]:
        """A table with a row for each pose."""
        return {
            "report": np.array(self.reports), "row": self.rows, "rank": self.rank, "total": self.total,
            "binding": self.binding, "pele_total": self.pele_total, "pele_binding": self.pele_binding,
            "error": np.array(self.errors),
        }  # fmt: skip

    def as_json(self) -> dict[str, object]:
        """Objects of all poses, and how far they agree with PELE's."""
        columns = {name: values.tolist() for name, values in self.columns().items()}
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        return {
            "n_poses": len(rows),
            "n_failed": self.n_failed,
            "notes": self.notes,
            "agreement": {name: _finite(asdict(Agreement.of(*pair))) for name, pair in self.pairs().items()},
            "poses": [_finite({name: value for name, value in row.items() if value != ""}) for row in rows],
        }

    def lines(self, whose: str = "PELE's") -> list[str]:
        """Write the agreement and the best poses, for reading."""
        agreement = [
            f"{name.capitalize():15s} {Agreement.of(*pair).text} kcal/mol" for name, pair in self.pairs().items()
        ]
        best = [int(k) for k in np.argsort(np.where(self.rank, self.rank, len(self.rank) + 1), kind="stable")[:_SHOWN]]
        heads = ("rank", "report", "row", "binding", whose, "total", whose)
        rows = [
            (
                str(self.rank[k]), self.reports[k], str(self.rows[k]),
                *(f"{of[k]:,.4f}" for of in (self.binding, self.pele_binding, self.total, self.pele_total)),
            )
            for k in best if self.rank[k]
        ]  # fmt: skip
        return [*agreement, "", "Best poses by binding energy, kcal/mol", table(heads, rows, "><>>>>>")]

    def exit_with_failures(self) -> None:
        """Name the first pose that failed, and exit with 1, if there is any."""
        if self.n_failed:
            k = next(k for k, error in enumerate(self.errors) if error)
            first = f"{self.reports[k]}, row {self.rows[k]}: {self.errors[k]}"
            note(f"Error: {counted(self.n_failed, 'pose')} of {len(self.rows):,} failed: {first}")
            click.get_current_context().exit(1)


def _ranks(binding: Floats) -> NDArray[np.int64]:
    ranks = np.zeros(len(binding), np.int64)
    order = np.argsort(binding, kind="stable")  # NaN comes last
    n = int(np.isfinite(binding).sum())
    ranks[order[:n]] = np.arange(1, n + 1)
    return ranks


def _finite(row: dict[str, object]) -> dict[str, object]:
    """Give the values as JSON has them: null for NaN."""
    return {name: None if isinstance(value, float) and value != value else value for name, value in row.items()}


POSES = "poses"  # the kind of a journal
_ATTRIBUTES = "attributes"  # of the table, in JSON
_PARAMETERS = "parameters"  # the attribute that is JSON by itself


def save_poses(output: Path, poses: Poses, attributes: Mapping[str, object]) -> None:
    """Write a row for each pose."""
    write_table(output, poses.columns(), dict.fromkeys(ENERGIES, UNIT), attributes)


def journal_of_poses(
    output: Path | None, attributes: Mapping[str, object], shard: Shard | None, everyone: Sequence[Walker]
) -> Journal:
    """Open the journal beside a table; attributes : of the table; everyone : the walkers of all shards"""
    path = None if output is None else journal_of(output)
    settings = {_ATTRIBUTES: json.dumps(attributes, default=str)}
    return Journal(path, settings, kind=POSES, shard=shard, items=[of.name for of in everyone])


def attributes_in(head: Mapping[str, str]) -> dict[str, object]:
    """Read the attributes of the table from the head of a journal."""
    found: dict[str, object] = json.loads(head[_ATTRIBUTES])
    return {**found, _PARAMETERS: JsonText(found[_PARAMETERS])}
