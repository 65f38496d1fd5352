"""Computation of many structures in one call, with one record per structure and a table."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, cast, overload

import numpy as np
from numpy.typing import ArrayLike

from ..common.errors import InputError, KeywordError
from ..common.inputfile import InputFile
from ..common.notes import one_line
from ..formats import require_table_suffix
from ..report import Column, Framed, Report, text_table
from .facts import numbers_in
from .journal import Journal
from .outputs import require_inputs
from .records import Record
from .running import run_with
from .shards import Run
from .spec import StructurePath, StructureSpec
from .texts import UNIT, counted, duration, lines_of, software

Part: TypeAlias = Mapping[str, Any]  # result of a record, or a part of it
Terms: TypeAlias = dict[str, float]
_MOST_TERMS = 8  # columns that fit on a line; more terms are summed by group
_GROUP_OF = {
    **dict.fromkeys(("bond", "angle", "torsion", "improper", "urey_bradley", "cmap"), "bonded"),
    "lennard_jones_14": "lennard_jones", "coulomb_14": "coulomb", **dict.fromkeys(("gb_pair", "gb_self"), "gb"),
}  # fmt: skip
JOURNAL_SUFFIX = ".part"  # appended to the name of the table
STRUCTURES = "structures"  # kind of journal


class Structures(Sequence[Record], Framed):
    """Results for many structures, a sequence of Records: `found[0]["energy"]`, `found.total`.

    records : records of the structures; call : facts about program and call, for files; seconds : total time
    units : units of numbers in the records other than energies, by name

    >>> found = pele_ocl.energy(["data/structures/trialanine.pdb", "gone.pdb"])
    >>> found.total.round(1).tolist(), found.errors
    ([-135.5, nan], {1: 'gone.pdb: no such file'})
    >>> found.save("energies.csv")
    """

    def __init__(
        self, records: Sequence[Record], call: Mapping[str, object], seconds: float = 0.0,
        units: Mapping[str, str] = {},  # never modified
    ) -> None:  # fmt: skip
        self.records, self.call, self.seconds, self.units = tuple(records), dict(call), seconds, dict(units)

    def __len__(self) -> int:
        return len(self.records)

    @overload
    def __getitem__(self, i: int) -> Record: ...
    @overload
    def __getitem__(self, i: slice) -> Sequence[Record]: ...
    def __getitem__(self, i: int | slice) -> Record | Sequence[Record]:
        return self.records[i]

    @property
    def errors(self) -> dict[int, str]:
        """Error messages of failed structures, by index from 0."""
        return {place: of.error for place, of in enumerate(self.records) if of.failed}

    @property
    def total(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Total energy of each structure, (m,) kcal/mol; NaN for failed ones and those with several models."""
        return np.array([np.nan if of.failed else of.result.get("energy", {}).get("total", np.nan)
                         for of in self.records])  # fmt: skip

    def table(self) -> Report:
        """Return a table with the results, or the error, of every structure or model."""
        return table_of(self.records, self.call, self.units)

    def to_json(self) -> list[dict[str, Any]]:
        """Return the records in JSON form; docs/records.md."""
        return [record.to_dict() for record in self.records]

    def save(self, path: str | PathLike[str]) -> None:
        """Write the table as .h5, .csv or .json.

        Raises FormatError for another suffix, or a file that cannot be written.
        """
        self.table().save(path)

    def text(self, verbose: bool = False, total: float | None = None) -> str:
        """Return a text table. total : total time to report, s"""
        return as_text_of(self.records, self.seconds if total is None else total, self.units)

    def __repr__(self) -> str:
        total = self.total[np.isfinite(self.total)]
        some = f", total {total.min():.3f} to {total.max():.3f} kcal/mol" if len(total) else ""
        first = next(iter(self.errors.values()), "")
        failed = f", {len(self.errors):,} failed: {first}" if first else ""
        return f"Structures({len(self):,}{some}{failed})"


class Row(NamedTuple):
    """Row of a table: a structure, or one of its models, with its energies or its error.

    numbers : further scalar results, beginning with the number of atoms
    """

    record: Record
    number: int | None
    terms: Terms
    error: str = ""
    numbers: Mapping[str, float] = {}


def rows_of(of: Record) -> list[Row]:
    """Return a row for each model of a record; `number` is None for a single structure."""
    if of.failed:
        return [Row(of, None, {}, of.error)]
    if "models" not in of:
        return [Row(of, None, _terms_of(of.result), numbers=numbers_in(of.result))]
    return [_row_of_model(of, model) for model in of["models"]]


def _row_of_model(of: Record, model: Part) -> Row:
    numbers = {name: number for name, number in numbers_in({**of.result, **model}).items() if name != "model"}
    return Row(of, model["model"], _terms_of(model), str(model.get("error", "")), numbers)


def _terms_of(part: Part) -> Terms:
    """Return the energies of a structure or model; without energies, the statistics of its Born radii, A."""
    radii: Terms = part.get("born_radius", {})
    energies: Terms = part.get("energy") or {f"born_radius_{name}": value for name, value in radii.items()}
    return energies


def _terms(rows: Sequence[Row]) -> list[str]:
    """Return the names of all terms, the total last; empty for results without energies."""
    names = dict.fromkeys(name for row in rows for name in row.terms)
    if not names and any(not row.record.failed and not row.error for row in rows):
        return []
    return [name for name in names if name != "total"] + ["total"] * ("total" in names or not names)


def as_text_of(records: Sequence[Record], total: float, units: Mapping[str, str] = {}) -> str:  # never modified
    """Return a text table of all energies, with the errors of failed structures. total : total time, s"""
    rows = [row for of in records for row in rows_of(of)]
    names = _terms(rows)
    if not names:
        return f"{table_of(records, {}, units)}\n\nTotal {duration(total)}"
    are_grouped = len(names) > _MOST_TERMS
    if are_grouped:
        rows = [row._replace(terms=_grouped(row.terms)) for row in rows]
        names = list(dict.fromkeys(map(_group, names)))
    has_models = any(row.number is not None for row in rows)
    heads = ["structure", *(["model"] if has_models else []), "atoms", *(name.replace("_", " ") for name in names)]
    shown = _short_names(records)
    cells = [[shown[row.record.path], *_cells(row, names, has_models)] for row in rows]
    lines = text_table(heads, cells, "<" + ">" * (len(heads) - 1)).split("\n")
    width = max(len(cell[0]) for cell in [heads, *cells])
    for k, row in enumerate(rows, 1):
        if row.record.failed:
            lines[k] = f"{cells[k - 1][0]:{width}}  {row.record.reason}"
        elif row.error:
            lines[k] += f"  {row.error}"
    n_failed = sum(of.failed for of in records)
    counts = counted(len(records), "structure") + (f", of which {n_failed:,} failed" if n_failed else "")
    if n_failed == len(records):
        return "\n".join([counts, "", *lines[1:]])
    variants, precisions, devices = map(" and ".join, _facts(records).values())
    ending = f"{variants}, {precisions}, on {devices}: total {duration(total)}"
    single = ["", "Terms are summed here; files and JSON contain each term"] if are_grouped else []
    physics = _physics_lines(records)
    what = f"{_energy(records)} of structures, {UNIT}" if "total" in names else "Born radii of structures, A"
    return "\n".join([counts, "", what, *lines, *single, "", *physics, ending])


def _energy(records: Sequence[Record]) -> str:
    """Return the title for energies: binding energies are differences between complexes and their parts."""
    return "Binding energy" if any("delta" in of.result for of in records if not of.failed) else "Energy"


def _group(name: str) -> str:
    """Return the group of a term in a wide table."""
    return _GROUP_OF.get(name, name)


def _grouped(terms: Terms) -> Terms:
    """Sum terms by group."""
    found: Terms = {}
    for name, value in terms.items():
        found[_group(name)] = found.get(_group(name), 0.0) + value
    return found


def _short_names(records: Sequence[Record]) -> dict[Path, str]:
    """Return the file names, with their folders if names are not unique."""
    paths = {of.path for of in records}
    names = Counter(path.name for path in paths)
    return {path: one_line(path.name if names[path.name] == 1 else str(path)) for path in paths}


def _physics_lines(records: Sequence[Record]) -> list[str]:
    """Describe the force fields, the solvent and the GB radii."""
    facts, terms = _settings(records), {name for of in records for row in rows_of(of) for name in row.terms}
    return lines_of(facts, None if "born_radius_mean" in terms else sorted(terms)) if "gb" in facts else []


def _cells(row: Row, names: Sequence[str], has_models: bool) -> list[str]:
    if row.record.failed:
        return [""] * (len(names) + 1 + has_models)
    model = ["" if row.number is None else str(row.number)] if has_models else []
    values = [f"{row.terms[name]:,.3f}" if name in row.terms else "" for name in names]
    return [*model, f"{row.record.result.get('n_atoms', 0):,}", *values]


def _facts(records: Sequence[Record]) -> dict[str, list[str]]:
    """Return the variants, precisions and devices used, without duplicates."""
    return {
        name: list(dict.fromkeys(str(of[name]) for of in records if not of.failed and name in of))
        for name in ("variant", "precision", "device")
    }


def _settings(records: Sequence[Record]) -> dict[str, object]:
    """Return the common settings of all structures, and the force fields and GB radii used by any of them."""
    there = [of.result.get("settings", {}) for of in records if not of.failed]
    names = ("forcefield", "gb_radii_set")
    sets = {name: dict.fromkeys(str(of[name]) for of in there if of.get(name)) for name in names}
    return {**there[0], **{name: ", ".join(found) for name, found in sets.items()}} if any(there) else {}


def table_of(
    records: Sequence[Record],
    call: Mapping[str, object],
    units: Mapping[str, str] = {},  # never modified
) -> Report:
    """Return a table with the results, or the error, of every structure or model.

    call : facts about the call; units : units of numbers other than energies, by name
    """
    rows = [row for of in records for row in rows_of(of)]
    names = _terms(rows)
    columns: dict[str, ArrayLike] = {"structure": np.array([str(row.record.path) for row in rows])}
    if any(row.number is not None for row in rows):
        columns["model"] = np.array([-1 if row.number is None else row.number for row in rows])
    columns["n_atoms"] = np.array([row.numbers.get("n_atoms", 0) for row in rows])
    others = dict.fromkeys(name for row in rows for name in row.numbers if name != "n_atoms")
    for name in others:
        numbers, lacking = [row.numbers.get(name, 0) for row in rows], [name not in row.numbers for row in rows]
        columns[name] = np.ma.array(numbers, mask=lacking)
    columns |= {name: np.array([row.terms.get(name, np.nan) for row in rows]) for name in names}
    columns["error"] = np.array([row.error for row in rows])
    attributes = {
        "inputs": [str(of.path) for of in records],
        "inputs_sha256": [of.sha256 for of in records],
        **call,
        **{name: ", ".join(values) for name, values in _facts(records).items() if values or names},
        **_settings(records),
    }
    own = dict.fromkeys(names, UNIT if "total" in names else "angstrom") | {"surface_area": "angstrom^2"} | {**units}
    what = counted(len(records), "structure")
    shown = {name: Column(of, own.get(name, "")) for name, of in columns.items()}
    return Report(f"{_energy(records)} of {what}" if names else what, shown, attributes)


def journal_of(output: Path) -> Path:
    """Return the journal of a table, which is used until the table is complete."""
    return output.with_name(f"{output.name}{JOURNAL_SUFFIX}")


def structures_by(spec: StructureSpec, paths: Sequence[str | PathLike[str]], run: Run) -> Structures:
    """Compute many structures, and write a table of all to the output when they are done.

    Failed structures are in `errors`. Raises InputError if all structures fail with the same error, and for `resume` or
    `shard` without an output. Raises FormatError as in `jobs.run`.
    """
    output, shard, start = run.output, run.shard, time.perf_counter()
    if output is None and (run.resume or shard is not None):
        raise KeywordError(f"{'`resume` continues' if run.resume else '`shard` begins'} a file; give it as `output`")
    if output is not None:
        require_table_suffix(output)
    every: list[StructurePath] = [path if isinstance(path, InputFile) else Path(path) for path in paths]
    if run.errors == "raise":
        require_inputs(path for path in every if isinstance(path, Path))
    own = every
    if shard is not None and output is not None:
        own, output = list(shard.part(every, "structures")), shard.path(output)
    path = None if output is None else journal_of(output)
    call = {"software": software(), **spec.settings()} if run.call is None else run.call
    texts = {name: cast(str, of) for name, of in call.items()}
    journal = Journal(path, texts, kind=STRUCTURES, shard=shard, items=map(str, every))
    items: Sequence[StructurePath] = own
    records = list[Record]()
    for record in run_with(spec, items, journal, run.resume, run.place):
        if run.errors == "raise":
            record.refuse()
        records.append(record)
        if run.progress is not None:
            run.progress(len(records) / len(items))
    if len({record.error for record in records}) == 1 and records[0].failed:
        raise InputError(records[0].error)  # caused by an option, not by a structure
    found = Structures(records, call, time.perf_counter() - start, spec.units)
    if output is not None and path is not None and shard is None:
        found.save(output)
        path.unlink()
    return found
