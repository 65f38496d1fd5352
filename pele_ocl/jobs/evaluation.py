"""Base of evaluation jobs: read and check a structure or its models, evaluate them, and create a record."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import index
from os import PathLike
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from ..atoms import Atoms, Floats
from ..common.inputfile import InputFile, NoFile, read_file
from ..common.notes import with_notes
from ..gb_models.solvent_model import SolventModel
from ..reading import Models, MoleculeRead, Reading, require_lennard_jones
from ..report import Framed
from ..results import TermBatch, TermResult
from .checks import Checks
from .facts import facts_of_plan, notes_of, settings
from .records import Kind, Record, entries
from .spec import StructurePath, StructureSpec
from .texts import UNIT, lines_of

if TYPE_CHECKING:
    from ..report import Report

R = TypeVar("R", bound=TermResult)
Progress = Callable[[float], None]
Table = tuple[Mapping[str, Any], Mapping[str, str], Mapping[str, object]]  # columns, units and attributes of a file


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Framed, Generic[R]):
    """Results for a structure, or for all its models: `found[i]` is the result of model `found.numbers[i]`.

    molecule : the molecule that was read
    results : result of the structure, or of each model in `numbers`; None for a failed model
    failed : error messages of failed models, by index from 0
    seconds : time of each step; findings : in JSON form
    spec : the job; heard : notes that were reported
    kind : "model", or "conformation" for conformations of Atoms
    """

    molecule: MoleculeRead
    results: Sequence[R | None]
    failed: Mapping[int, str]
    seconds: Mapping[str, float]
    findings: list[dict[str, object]]
    spec: EvaluationSpec[R] | None = None
    heard: tuple[str, ...] = ()
    kind: Kind = "model"

    @property
    def numbers(self) -> list[int]:
        """Numbers of the models, in the order of the file; empty for a single structure."""
        return self.molecule.numbers

    @property
    def errors(self) -> Mapping[int, str]:
        """Error messages of failed models, by index from 0; their energies are NaN."""
        return self.failed

    @property
    def total(self) -> Floats:
        """Total energy of each model, (m,) kcal/mol; NaN for failed ones."""
        return np.array([np.nan if of is None else of.total for of in self.results])

    @property
    def energies(self) -> Floats:
        """Energies of each model, (m, n_terms) kcal/mol, in the order of `first.terms.names`."""
        missing = np.full(len(self.first.terms.names), np.nan)
        return np.array([missing if of is None else of.energies for of in self.results])

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[R | None]:
        return iter(self.results)

    def __getitem__(self, i: int) -> R | None:
        """Return the result of a model, or None if it failed."""
        return self.results[index(i)]

    def __repr__(self) -> str:
        failed = f", {len(self.failed):,} failed" if self.failed else ""
        total = self.total if self.first.terms.names else np.zeros(0)
        some = f", total {np.nanmin(total):.3f} to {np.nanmax(total):.3f} {UNIT}" if len(total) else ""
        return f"{type(self).__name__}({self.molecule.source}: {len(self):,} models{failed}{some})"

    def table(self) -> Report:
        """Return a table with the energies, kcal/mol, or the error of each model."""
        from ..report import Column, Report

        rows = [(number, of) for number, of in self.rows()] if self.numbers else [(1, self.first)]
        names = list(self.first.energy) if self.first.terms.names else []
        columns: dict[str, Any] = {"model": np.array([number for number, _ in rows])}
        for name in names:
            columns[name] = Column([np.nan if isinstance(of, str) else of.energy[name] for _, of in rows], UNIT)
        columns["error"] = np.array([of if isinstance(of, str) else "" for _, of in rows], str)
        facts = self._spec.facts_of_molecule(self.first)
        return Report(f"Energy of {self.molecule.source}", columns, facts, about=self.physics_lines())

    def physics_lines(self) -> list[str]:
        """Return text lines with the force field, the solvent and the pairs."""
        return self._spec.physics_lines_of(self.first)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON record without timings; docs/records.md."""
        source = self.molecule.source
        return Record(str(source), source.sha256, with_notes(self._spec.as_json(self), self.heard)).to_dict()

    def save(self, path: str | PathLike[str], call: Mapping[str, object] | None = None) -> None:
        """Write the result as .h5, .csv or .json, with a row for each atom of a structure, or for each model.

        call : program and call, stored in the file; by default the program and its version

        Raises FormatError for another suffix, or a file that cannot be written.
        """
        from ..formats import require_table_suffix, write_table

        require_table_suffix(path)
        write_table(path, *self._spec.table_of(self, call, str(path).lower().endswith(".h5")))

    def text(self, verbose: bool = False, total: float | None = None) -> str:
        """Return a text report. verbose : include constants and steps; total : total time to report, s"""
        seconds = self.seconds.get("total", sum(self.seconds.values()))
        return self._spec.text_of(self, verbose, seconds if total is None else total)

    def one(self) -> R:
        """Return the result of the single structure."""
        return replace(self.first, made=self)

    @property
    def _spec(self) -> EvaluationSpec[R]:
        assert self.spec is not None
        return self.spec

    @property
    def first(self) -> R:
        """First available result."""
        return next(result for result in self.results if result is not None)

    def rows(self) -> Iterator[tuple[int, R | str]]:
        """Yield the number of each model, with its result or its error message."""
        for place, (number, result) in enumerate(zip(self.molecule.numbers, self.results, strict=True)):
            yield number, self.failed[place] if result is None or place in self.failed else result


@dataclass(frozen=True, eq=False)
class EvaluationSpec(StructureSpec, Generic[R]):
    """Base of jobs that evaluate each structure, or all its models.

    reading : how files are read; models : "one", or "all" for every model of a file
    precision : "float32" or "float64"; model : the solvent
    strict : True to reject findings that otherwise only cause notes
    """

    reading: Reading = field(default_factory=Reading)
    models: Models = "one"
    precision: str = "float32"
    model: SolventModel = field(default_factory=SolventModel)
    strict: bool = False

    @abstractmethod
    def facts_of_molecule(self, of: Any) -> dict[str, Any]:
        """Return the facts common to all models or frames of a record, in JSON form.

        of : a result, or the plan of frames
        """

    @abstractmethod
    def facts_of_model(self, result: R) -> dict[str, Any]:
        """Return the facts about a model or a single structure, such as energies, in JSON form."""

    @abstractmethod
    def evaluate(self, source: InputFile, progress: Progress | None = None, per_atom: bool = False) -> Evaluation[R]:
        """Evaluate a file. per_atom : True to compute all per-atom values for the file of a single structure

        Raises PeleError if the file, or each of its models, fails.
        """

    @abstractmethod
    def plan_of_frames(self, atoms: Atoms) -> Any:
        """Create a plan for the energies of frames."""

    def words_of_frames(self) -> Mapping[str, object]:
        """Return settings of the results of frames that are not attributes of the plan."""
        return {}

    def terms_of_frames(self, plan: Any) -> Sequence[str] | None:
        """Return the energy terms of frames, used to describe the solvent; None for all."""
        return None

    @property
    def has_residues_of_frames(self) -> bool:
        """Whether mean energies of residues are requested."""
        return False

    def settings_of(self, atoms: Atoms) -> dict[str, Any]:
        """Return the force field and the constants of the solvent."""
        return settings(self.model, atoms)

    def physics_lines_of(self, result: R) -> list[str]:
        """Return text lines with the force field, the solvent and the pairs of a result."""
        return lines_of(self.settings_of(result.atoms))

    @abstractmethod
    def table_of(self, found: Evaluation[R], call: Mapping[str, object] | None, has_arrays: bool) -> Table:
        """Return columns, units and attributes for the file of a result. has_arrays : whether per-atom arrays fit"""

    @abstractmethod
    def text_of(self, found: Evaluation[R], verbose: bool, total: float) -> str:
        """Return the text report of a result. total : total time, s"""

    def of_result(self, result: R | TermBatch[R]) -> Evaluation[R]:
        """Wrap the result for Atoms, or for a batch of conformations, as an Evaluation."""
        molecule, results, failed = MoleculeRead(NoFile(), result.atoms), list[R](), dict[int, str]()
        if isinstance(result, TermBatch):
            results, failed = list(result), dict(result.errors)
            molecule = replace(
                molecule, numbers=list(range(len(result))), conformations=result.positions, failed=failed
            )
        else:
            results = [result]
        findings = getattr(result, "findings", ())
        return Evaluation(
            molecule, results, failed, result.seconds, [of.as_json() for of in findings], self,
            tuple(of.text for of in findings), "conformation",
        )  # fmt: skip

    def molecule(self, source: InputFile) -> MoleculeRead:
        """Read a structure or its models, with the GB radii of the solvent. Raises PeleError."""
        if self._needs_lennard_jones:
            require_lennard_jones(source)
        found = self._reading.molecule(source, self.models)
        return replace(found, atoms=self.model.choose_radii(found.atoms))

    _needs_lennard_jones = False  # whether files without Lennard-Jones parameters are refused

    @cached_property
    def _reading(self) -> Reading:
        """Options for reading, including the solvent."""
        return self.reading if self.reading.solvent is not None else replace(self.reading, solvent=self.model)

    def compute(self, item: StructurePath) -> dict[str, Any]:
        """Evaluate a file and return its record."""
        return self.as_json(self.evaluate(read_file(item)))

    def as_json(self, found: Evaluation[R]) -> dict[str, Any]:
        """Return the result part of a record."""
        first = found.first
        if found.molecule.conformations is None:
            results = self.facts_of_model(first)
        else:
            rows = ((number, of if isinstance(of, str) else self.facts_of_model(of)) for number, of in found.rows())
            results = entries(found.kind, rows)
        return {
            **facts_of_plan(first),
            **self.facts_of_molecule(first),
            **results,
            "seconds": dict(found.seconds),
            "findings": found.findings,
            **notes_of(found.molecule.atoms),
        }

    def _read(self, source: InputFile) -> tuple[MoleculeRead, Checks]:
        """Read and check a file. Raises PeleError if it, or each of its models, is refused."""
        checks = Checks(source, self.strict)
        return checks.structure(self.molecule(source)), checks

    def _checked(
        self, molecule: MoleculeRead, checks: Checks, results: Sequence[R | None], failed: Mapping[int, str],
        seconds: Mapping[str, float], energy: Callable[[R], tuple[Atoms, Mapping[str, float]]] | None = None,
    ) -> Evaluation[R]:  # fmt: skip
        """Check energies, and remove models that failed or are refused.

        failed : error messages of models that failed during evaluation, by index
        energy : function that returns the atoms and terms to check; None if results have no complete energies

        Raises InputError if the structure is refused, or no model is left.
        """
        if molecule.conformations is None:
            if energy is not None and results[0] is not None:
                checks.energy(*energy(results[0]))
            return Evaluation(molecule, results, {}, seconds, checks.as_json(), self)
        reasons = {**failed, **molecule.failed}
        for place, (number, result) in enumerate(zip(molecule.numbers, results, strict=True)):
            if place not in reasons and result is not None and energy is not None:
                reason = checks.of_model_energy(number, *energy(result))
                reasons |= {} if reason is None else {place: reason}
        molecule = molecule.without(reasons)
        kept = [None if place in reasons else result for place, result in enumerate(results)]
        return Evaluation(molecule, kept, molecule.failed, seconds, checks.as_json(), self)
