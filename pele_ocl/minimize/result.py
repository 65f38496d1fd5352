"""Results of `minimize`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from operator import index
from os import PathLike
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..atoms import Atoms, Floats, Ints, Strings
from ..common.arguments import file_path
from ..common.errors import InputError, Suggests, no_attribute
from ..common.modules import renamed
from ..common.writing import replacing
from ..contract import of_energy, of_structure, require
from ..energy.result import ALL_TERMS
from ..formats.conformation_files import (
    CONFORMATION_FORMATS,
    ConformationFile,
    Content,
    layout_of,
    require_suffix,
    write_conformation,
)
from ..gb_models.solvent_model import SolventModel
from ..jobs.facts import composition_as_json, notes_of, settings
from ..jobs.journal import make_folder
from ..jobs.outputs import NAME, OutputNames
from ..jobs.records import Record
from ..jobs.texts import UNIT
from ..opencl.device import get_device
from ..opencl.interface import Stop
from ..report import Column, Report, Reported, masked
from ..results import Terms
from .options import Stopping, method_name


def rounding_gradient(atoms: Atoms, decimals: int) -> float:
    """Estimate the rms gradient, kcal/mol/A, of a minimum whose positions, A, are rounded to a number of decimals.

    The estimate includes bonds and Urey-Bradley terms, by far the stiffest ones; angles and close pairs add a little.
    It is 0 for atoms without bonded terms.
    """
    rounded, change = np.round(atoms.positions, decimals), np.zeros_like(atoms.positions)
    if atoms.bonded is None:
        return 0.0
    for table in (atoms.bonded.bonds, atoms.bonded.urey_bradley):
        pull = _pulls(rounded, table.atoms, table.parameters) - _pulls(atoms.positions, table.atoms, table.parameters)
        np.add.at(change, table.atoms[:, 0], pull)
        np.add.at(change, table.atoms[:, 1], -pull)
    return float(np.sqrt((change**2).sum(axis=1).mean()))


def _pulls(positions: Floats, pairs: NDArray[np.int32], parameters: Floats) -> Floats:
    """Gradients (m, 3) of k (r - r0)^2 at the first atom of each pair, kcal/mol/A."""
    away = positions[pairs[:, 0]] - positions[pairs[:, 1]]
    r = np.linalg.norm(away, axis=1)
    pulls: Floats = (2 * parameters[:, 0] * (r - parameters[:, 1]) / np.maximum(r, 1e-9))[:, None] * away
    return pulls


REASONS = tuple(reason.name.lower() for reason in Stop if reason)
CONVERGED = ("gradient", "largest", "energy")
_NUMBERS = {
    "rms_gradient": f"{UNIT}/angstrom", "largest_gradient": f"{UNIT}/angstrom",
    "rounding_gradient": f"{UNIT}/angstrom", "iterations": "", "evaluations": "", "restored": "",
    "rms_displacement": "angstrom", "seconds": "s",
}  # fmt: skip
Row = Mapping[str, Any]  # a record in JSON form


@dataclass(frozen=True, eq=False)
class Origin:
    """Source of a result.

    content : file content except positions, from the structure before minimization; None if it failed
    record : None to make it from the result on demand; options : of the Minimizer, for that record
    """

    content: Content | None
    record: Record | None = None
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class MinimizeResult(Reported, Suggests):
    """A minimized structure.

    atoms : the minimized molecule
    energy_before, energy_after : Terms, kcal/mol; before at the given positions, NaN if atoms overlap too much
    gradient : (n, 3) kcal/mol/A; not available in results read from files, which raise InputError
    restored : number of bonds restored before the first step (docs/theory/minimize.md, section 4)
    rms_gradient : root mean square gradient of the moving atoms, sqrt(sum |g|^2 / n), kcal/mol/A
    largest_gradient : the largest gradient of an atom, kcal/mol/A
    iterations : steps taken; evaluations : evaluations of energy and gradient
    stopped_by : one of REASONS; "stuck" if no step lowers the energy because of rounding
    rms_displacement : of the atoms from their initial positions, without superposition, A
    seconds : from the start of its batch until it was finished, shared with other structures
    origin : file and record, in results of `pele_ocl.minimize`
    error : reason of a failure, or ""; a failed structure has energies of NaN and no atoms

    >>> result = pele_ocl.minimize("data/structures/trialanine.pdb", max_iterations=5)
    >>> result.stopped_by, result.converged, result.positions.shape
    ('gradient', True, (33, 3))
    >>> result.save("minimum.pdb")
    """

    atoms: Atoms
    energy_before: Terms
    energy_after: Terms
    gradient: Floats
    rms_gradient: float
    largest_gradient: float
    iterations: int
    evaluations: int
    stopped_by: str
    restored: int
    rms_displacement: float
    seconds: float
    origin: Origin | None = None
    error: str = ""

    def __repr__(self) -> str:
        name = self.name or "structure"
        if self.error:
            return f"MinimizeResult({name} failed: {self.error})"
        before = float(self.energy_before.total)
        return (
            f"MinimizeResult({name}: total {self.total:,.3f} kcal/mol, before {before:,.3f}; rms gradient "
            f"{self.rms_gradient:.3g} kcal/mol/A after {self.iterations:,} iterations, stopped by {self.stopped_by}; "
            f"moved {self.rms_displacement:.3f} A)"
        )

    def as_structure(self) -> Atoms:
        """Return the minimized atoms; functions accept a result as a structure."""
        return self.atoms

    @property
    def name(self) -> str:
        """Name of the structure: its file as given, or "" for Atoms."""
        return "" if self.origin is None else self.record.structure

    @property
    def positions(self) -> Floats:
        """Minimized positions, (n, 3) A."""
        return self.atoms.positions

    @property
    def energies(self) -> Floats:
        """Final energies, (n_terms,) kcal/mol, in the order of `energy_after.names`."""
        return self.energy_after.values

    @property
    def energy(self) -> dict[str, float]:
        """Final energy terms by name and, last, their "total", kcal/mol."""
        return {name: float(value) for name, value in self.energy_after.columns().items()}

    @property
    def total(self) -> float:
        """Final total energy, kcal/mol."""
        return float(self.energy_after.total) if self.energy_after.names else float("nan")

    @property
    def converged(self) -> bool:
        """Whether it was stopped by a gradient or energy criterion, not by a limit."""
        return self.stopped_by in CONVERGED

    @property
    def record(self) -> Record:
        """Record of the structure, as in files and journals."""
        if self.origin is not None and self.origin.record is not None:
            return self.origin.record
        return record_of_atoms(self)

    @property
    def records(self) -> Sequence[Record]:
        """The record as a list, as in batches."""
        return [self.record]

    def table(self) -> Report:
        """Table with one row: energies by term before and after, gradients, iterations."""
        return MinimizeBatch([self], {}, self.seconds, [self.record]).table()

    def to_json(self) -> dict[str, Any]:
        """Return the record in JSON form (docs/records.md)."""
        return self.record.to_dict()

    def save(self, path: str | PathLike[str]) -> None:
        """Write the structure as PDB, mmCIF, HDF5 or NetCDF by suffix, with the B-factors of the input file.

        Raises FormatError for another suffix, and for a file that cannot be written.
        """
        target = file_path(path)
        make_folder(target.parent)
        write_conformation(target, self.content)

    @property
    def content(self) -> Content:
        """Content of a file with the structure."""
        known = None if self.origin is None else self.origin.content
        return Content(self.atoms) if known is None else replace(known, atoms=self.atoms, n=1)

    def to_dict(self, name: str = "") -> dict[str, object]:
        """Deprecated; removed in the next release. Use `to_json`."""
        return renamed("MinimizeResult.to_dict", "to_json", self.numbers(name))

    def numbers(self, name: str = "") -> dict[str, object]:
        """Return the numbers of a record for a structure with this name; None for non-finite values."""
        return {
            "name": name,
            "energy_before": _finite_columns(self.energy_before),
            "energy_after": _finite_columns(self.energy_after),
            "rms_gradient": self.rms_gradient,
            "largest_gradient": self.largest_gradient,
            "iterations": self.iterations,
            "evaluations": self.evaluations,
            "stopped_by": self.stopped_by,
            "restored": self.restored,
            "rms_displacement": self.rms_displacement,
            "seconds": self.seconds,
        }


class _Unloaded(MinimizeResult):
    """A result whose atoms are loaded on first use, and whose gradient is not known."""

    _load: Callable[[], Atoms]

    def __getattr__(self, name: str) -> Any:
        if name == "gradient":
            raise InputError(
                "the gradient was not stored; compute it with `pele_ocl.energy` for these atoms; `to_dataframe()` "
                "of all results is their table"
            )
        if name != "atoms" or "_load" not in vars(self):
            raise no_attribute("'MinimizeResult' object", name, dir(self))
        atoms = vars(self)["atoms"] = self._load()
        return atoms


def result_of_record(row: Row, load: Callable[[], Atoms], origin: Origin) -> MinimizeResult:
    """Create a result from a successful record. load : reads its atoms"""
    before, after = (_terms_of(row[which]) for which in ("energy_before", "energy_after"))
    names = [of.name for of in fields(MinimizeResult) if of.name in row and of.name not in ("seconds", "error")]
    values = {name: row[name] for name in names} | {"energy_before": before, "energy_after": after}
    return _unloaded(load, {**values, "seconds": row["seconds"]["total"], "origin": origin, "error": ""})


def failed_result(reason: str, terms: Sequence[str], origin: Origin | None = None) -> MinimizeResult:
    """Create the result of a failed structure, with NaN and no atoms. terms : names of the terms"""
    nothing = Terms(tuple(terms), np.full(len(terms), np.nan))
    counts = dict.fromkeys(("iterations", "evaluations", "restored"), 0)
    numbers = dict.fromkeys(("rms_gradient", "largest_gradient", "rms_displacement", "seconds"), float("nan"))
    values = {"energy_before": nothing, "energy_after": nothing, **counts, **numbers, "stopped_by": ""}
    return _unloaded(_Refusal(reason), {**values, "origin": origin, "error": reason})


def _unloaded(load: Callable[[], Atoms], values: Mapping[str, Any]) -> MinimizeResult:
    result = object.__new__(_Unloaded)
    vars(result).update(values, _load=load)
    return result


@dataclass(frozen=True)
class _Refusal:
    """Raises InputError instead of loading atoms."""

    reason: str

    def __call__(self) -> Atoms:
        raise InputError(self.reason)


def _terms_of(energies: Mapping[str, float | None]) -> Terms:
    values = {name: np.nan if value is None else value for name, value in energies.items() if name != "total"}
    return Terms.of(values)


def _finite_columns(terms: Terms) -> dict[str, float | None]:
    columns = {name: float(value) for name, value in terms.columns().items()}
    return {name: value if np.isfinite(value) else None for name, value in columns.items()}


@dataclass(frozen=True, eq=False, repr=False)
class MinimizeBatch(Sequence[MinimizeResult], Reported):
    """Results of m structures, in order: `batch[i]` is the MinimizeResult of one structure; properties are arrays.

    results : the MinimizeResult of each structure, None if it failed
    errors : reasons for failed structures, by index from 0
    seconds : total time
    records : the Record of each structure, in results of `pele_ocl.minimize`
    whole : their common Record, for conformations of one molecule

    Arrays have NaN, False, 0 or "" for failed structures; their `batch[i]` has NaN and `error`, and raises InputError
    for atoms.

    >>> paths = ["data/structures/trialanine.pdb", "data/structures/hexapeptide.pdb"]
    >>> batch = pele_ocl.minimize(paths, max_iterations=2)
    >>> len(batch), batch.iterations.tolist(), batch.energies.shape
    (2, [2, 2], (2, 11))
    >>> batch.save("minima")
    """

    results: Sequence[MinimizeResult | None]
    errors: Mapping[int, str]
    seconds: float
    given: Sequence[Record] = field(default=(), repr=False)
    whole: Record | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.results)

    @overload
    def __getitem__(self, i: int) -> MinimizeResult: ...
    @overload
    def __getitem__(self, i: slice) -> Sequence[MinimizeResult]: ...
    def __getitem__(self, i: int | slice) -> MinimizeResult | Sequence[MinimizeResult]:
        if isinstance(i, slice):
            return [self[k] for k in range(len(self))[i]]
        k = range(len(self))[index(i)]
        result = self.results[k]
        return failed_result(self.errors[k], self._names) if result is None else result

    def __iter__(self) -> Iterator[MinimizeResult]:
        return (self[k] for k in range(len(self)))

    @property
    def good(self) -> Iterator[tuple[int, MinimizeResult]]:
        """Numbers and results of the successful structures."""
        return ((k, result) for k, result in enumerate(self.results) if result is not None)

    def __repr__(self) -> str:
        done = [result for _, result in self.good]
        size = f"{len(self):,} structures, {int(self.converged.sum()):,} converged"
        if len(done) < len(self):
            size += f", {len(self) - len(done):,} failed"
        if not done:
            return f"MinimizeBatch({size})"
        lowest, highest = np.nanmin(self.total), np.nanmax(self.total)
        return f"MinimizeBatch({size}, total {lowest:.3f} to {highest:.3f} kcal/mol)"

    @cached_property
    def records(self) -> Sequence[Record]:
        """Record of each structure, as in files and journals."""
        if self.given:
            return self.given
        return [
            Record.failed_by(self.errors[k], "") if result is None else result.record
            for k, result in enumerate(self.results)
        ]

    def to_json(self) -> Any:
        """Return the records as JSON data (docs/records.md): a list, or one object for conformations."""
        return [record.to_dict() for record in self.records] if self.whole is None else self.whole.to_dict()

    def table(self) -> Report:
        """Table with one row per structure: energies by term before and after, or the reason of a failure."""
        return table_of(self.records, self.whole)

    def save(self, output: str | PathLike[str]) -> None:
        """Write the successful structures.

        output : a folder, or a name such as "minima/{name}.cif", for separate structures; a file for a single
            structure or conformations of one molecule

        Raises FormatError for an unsupported suffix, and for a file that cannot be written.
        """
        path = Path(output)
        if self.whole is None and len(self) != 1:
            names = OutputNames.of(path if path.suffix or NAME in path.name else f"{path}/")
            for _, result in self.good:
                result.save(names.name(Path(result.name or "structure.pdb")))
            return
        first = next((result for _, result in self.good), None)
        if first is None:
            raise InputError(f"no structure can be written: {self.errors[0]}")
        make_folder(path.parent)
        layout = layout_of(path, replace(first.content, n=len(self)))
        with replacing(path) as temporary, ConformationFile(temporary, layout, None) as file:
            for number, each in enumerate(self.results, 1):
                file.append(number, None if each is None else each.positions)
            file.finish()

    @property
    def _names(self) -> tuple[str, ...]:
        """Names of the terms of the successful structures."""
        done = [result.energy_after for _, result in self.good]
        return self._terms(done).names if done else ()

    @property
    def positions(self) -> Floats | list[Floats | None]:
        """Final positions, (m, n, 3) A; a list of (n, 3), None for failed ones, if structures differ in size."""
        return self._stacked([None if result is None else result.positions for result in self.results])

    @property
    def gradients(self) -> Floats | list[Floats | None]:
        """Final gradients, (m, n, 3) kcal/mol/A; a list like `positions` if structures differ in size."""
        return self._stacked([None if result is None else result.gradient for result in self.results])

    @property
    def terms(self) -> Terms:
        """Final energy terms, (m, n_terms) kcal/mol; 0 for terms that a molecule does not have."""
        return self._terms([None if result is None else result.energy_after for result in self.results])

    @property
    def terms_before(self) -> Terms:
        """Energy terms at the given positions, (m, n_terms) kcal/mol."""
        return self._terms([None if result is None else result.energy_before for result in self.results])

    @property
    def energies(self) -> Floats:
        """Final energies, (m, n_terms) kcal/mol, in the order of `terms.names`."""
        return self.terms.values

    @property
    def total(self) -> Floats:
        """Final total energies, (m,) kcal/mol."""
        return self._column("total", np.nan)

    @property
    def converged(self) -> NDArray[np.bool_]:
        """Whether each was stopped by a gradient or energy criterion, not by a limit, (m,)."""
        return self._column("converged", False)

    @property
    def stopped_by(self) -> Strings:
        """Stopping reasons, (m,) of REASONS."""
        return self._column("stopped_by", "")

    @property
    def iterations(self) -> Ints:
        """Accepted steps, (m,)."""
        return self._column("iterations", 0)

    @property
    def evaluations(self) -> Ints:
        """Evaluations of energy and gradient, (m,)."""
        return self._column("evaluations", 0)

    @property
    def restored(self) -> Ints:
        """Numbers of bonds restored before the first step, (m,)."""
        return self._column("restored", 0)

    @property
    def rms_gradient(self) -> Floats:
        """Root mean square gradients, (m,) kcal/mol/A."""
        return self._column("rms_gradient", np.nan)

    @property
    def largest_gradient(self) -> Floats:
        """Largest gradients of an atom, (m,) kcal/mol/A."""
        return self._column("largest_gradient", np.nan)

    @property
    def rms_displacement(self) -> Floats:
        """Root mean square displacements from the initial positions, (m,) A."""
        return self._column("rms_displacement", np.nan)

    def _column(self, name: str, failed: object) -> NDArray[Any]:
        """One value per structure, (m,). failed : value for failed ones"""
        return np.array([failed if result is None else getattr(result, name) for result in self.results])

    def _stacked(self, arrays: list[Floats | None]) -> Floats | list[Floats | None]:
        """Stack arrays, with NaN for failed structures; return the list if shapes differ or all failed."""
        shapes = {array.shape for array in arrays if array is not None}
        if len(shapes) != 1:
            return arrays
        nowhere = np.full(shapes.pop(), np.nan)
        return np.stack([nowhere if array is None else array for array in arrays])

    def _terms(self, each: Sequence[Terms | None]) -> Terms:
        """Terms of all structures, with the names of all, in the order of results."""
        named = dict.fromkeys(name for terms in each if terms is not None for name in terms.names)
        names = (*(name for name in ALL_TERMS if name in named), *(name for name in named if name not in ALL_TERMS))
        values = np.full((len(each), len(names)), np.nan)
        for row, terms in zip(values, each, strict=True):
            if terms is not None:
                row[:] = [getattr(terms, name) if name in terms.names else 0.0 for name in names]
        return Terms(names, values)


def table_of(records: Sequence[Record], whole: Record | None = None) -> Report:
    """Create the table of records. whole : the common record, if they are conformations of one molecule"""
    rows = [record.to_dict() for record in records]
    facts = settings_of_rows(rows if whole is None else [whole.to_dict()])
    return Report(f"Minima of {len(rows):,} structure{'' if len(rows) == 1 else 's'}", _columns(rows), facts)


def settings_of_rows(rows: Sequence[Row]) -> dict[str, Any]:
    """Settings of the first successful record; force fields and radii sets of all records, without repetition."""
    found = [row["settings"] for row in rows if row.get("settings")]
    names = ("forcefield", "gb_radii_set")
    several = {name: ", ".join(dict.fromkeys(of[name] for of in found if of.get(name))) for name in names}
    return {**found[0], **several} if found else {}


_HEADS = {  # of the columns that are displayed; files have all columns
    "energy_before_total": "before", "energy_after_total": "after", "rms_gradient": "rms gradient",
    "iterations": "iterations", "rms_displacement": "moved", "seconds": "seconds",
}  # fmt: skip


def _columns(rows: Sequence[Row]) -> dict[str, Column | ArrayLike]:
    """Columns of a table with one row per structure."""
    columns: dict[str, Column | ArrayLike] = {"name": np.array([row["structure"] for row in rows])}

    def add(name: str, values: list[float | None], unit: str, form: str) -> None:
        columns[name] = Column(masked(values), unit, form, _HEADS.get(name, ""), shown=name in _HEADS)

    for which in ("energy_before", "energy_after"):
        terms = dict.fromkeys(term for row in rows if "error" not in row for term in row[which])
        for term in terms:
            add(f"{which}_{term}", [row.get(which, {}).get(term) for row in rows], UNIT, ",.3f")
    for name, unit in _NUMBERS.items():
        add(name, [_figure(row, name) for row in rows], unit, ".3g")
    columns["stopped_by"] = np.array([row.get("stopped_by", "") for row in rows])
    columns["error"] = np.array([row.get("error", "") for row in rows])
    return columns


def _figure(row: Row, name: str) -> float | None:
    """Return a number from a row, None if it failed; for `seconds` the total."""
    value = row.get(name)
    found: float | None = value["total"] if isinstance(value, dict) else value
    return found


def record_of_atoms(result: MinimizeResult) -> Record:
    """Create the record of a result for Atoms."""
    origin = result.origin
    if origin is None or origin.content is None:
        values = {"n_atoms": len(result.atoms), "composition": composition_as_json(result.atoms), **result.numbers()}
        del values["name"]
        return Record("", "", {**values, "seconds": {"total": result.seconds}, **notes_of(result.atoms)})
    values = facts_of_molecule(result.atoms, origin.options)
    start = origin.content.atoms
    return Record("", "", {**values, **facts_of_model(result, start, False, None), **notes_of(result.atoms)})


def facts_of_molecule(atoms: Atoms, options: Mapping[str, Any]) -> dict[str, Any]:
    """Facts that all conformations of a molecule have in common. options : of pele_ocl.Minimizer"""
    return {
        "n_atoms": len(atoms),
        "composition": composition_as_json(atoms),
        "device": str(get_device(options.get("device"))),
        "method": method_name(options.get("method", "lbfgs")),
        "precision": options.get("precision", "float32"),
        "settings": {
            **settings(options.get("model") or SolventModel(), atoms),
            "cutoff": options.get("cutoff"), "one_four": options.get("one_four", "scale"),
            "terms": options.get("only_terms"), **Stopping.of(options).facts,
        },
    }  # fmt: skip


def facts_of_model(result: MinimizeResult, start: Atoms, strict: bool, target: Path | None) -> dict[str, Any]:
    """Facts of one conformation, with findings about its initial positions. Raises InputError for findings if `strict`.

    `rounding_gradient` is the rms gradient, kcal/mol/A, caused by rounding positions in the file `target`; 0 without a
    file.
    """
    values = result.numbers()
    del values["name"]
    before: Any = values["energy_before"]
    energies = {term: value for term, value in before.items() if value is not None}
    found = [
        *of_structure(start, "noted", places_sites=True),
        *of_energy(start, energies, start.positions, is_minimized=True),
    ]
    require(found, strict)
    findings = [finding.as_json() for finding in found]
    decimals = None if target is None else CONFORMATION_FORMATS[require_suffix(target)].decimals
    rounding = 0.0 if decimals is None else rounding_gradient(result.atoms, decimals)
    return {
        **values, "rounding_gradient": rounding, "seconds": {"total": values["seconds"]}, "findings": findings
    }  # fmt: skip
