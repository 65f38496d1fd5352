"""Shared part of jobs that evaluate: read and check a structure or its models, evaluate them, make a record."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from ..atoms import Atoms
from ..common.inputfile import InputFile, read_file
from ..gb_models.solvent_model import SolventModel
from ..results import TermResult
from .checks import Checks
from .facts import facts_of_plan, notes_of
from .reading import Models, MoleculeRead, Reading, Reads, molecule_of
from .records import entries
from .spec import StructurePath, StructureSpec

R = TypeVar("R", bound=TermResult)
Progress = Callable[[float], None]


@dataclass(frozen=True, eq=False)
class Evaluation(Generic[R]):
    """Results of a structure, or of all its models.

    molecule : as it was read
    results : of the structure, or of each of `molecule.numbers`; None for a model that failed
    failed : why models failed, by their place from 0
    seconds : of each step; findings : as JSON has them
    """

    molecule: MoleculeRead
    results: Sequence[R | None]
    failed: Mapping[int, str]
    seconds: Mapping[str, float]
    findings: list[dict[str, object]]

    @property
    def first(self) -> R:
        """First result that is there."""
        return next(result for result in self.results if result is not None)

    def rows(self) -> Iterator[tuple[int, R | str]]:
        """Give the number of each model, with its result or the reason of its failure."""
        for place, (number, result) in enumerate(zip(self.molecule.numbers, self.results, strict=True)):
            yield number, self.failed[place] if result is None else result


@dataclass(frozen=True, eq=False)
class EvaluationSpec(StructureSpec, Generic[R]):
    """A job that evaluates a plan of each structure, or of all its models.

    reading : how files are read; models : "one", or "all" for every model of a file
    precision : "float32" or "float64"; model : the solvent
    strict : True to refuse what is noted otherwise
    """

    reading: Reads = field(default_factory=Reading)
    models: Models = "one"
    precision: str = "float32"
    model: SolventModel = field(default_factory=SolventModel)
    strict: bool = False

    @abstractmethod
    def facts_of_molecule(self, of: Any) -> dict[str, Any]:
        """Facts that a record has once, as all models or frames share them; as JSON has them.

        of : a result, or the plan of frames, whose results come later
        """

    @abstractmethod
    def facts_of_model(self, result: R) -> dict[str, Any]:
        """Facts that each model has, such as its energies, or the one structure; as JSON has them."""

    @abstractmethod
    def evaluate(self, source: InputFile, progress: Progress | None = None) -> Evaluation[R]:
        """Evaluate a file. Raises PeleError if the file, or each of its models, fails."""

    def compute(self, item: StructurePath) -> dict[str, Any]:
        """Evaluate a file, for its record."""
        return self.as_json(self.evaluate(read_file(item)))

    def as_json(self, found: Evaluation[R]) -> dict[str, Any]:
        """Give the result of a record."""
        first = found.first
        if found.molecule.conformations is None:
            results = self.facts_of_model(first)
        else:
            rows = ((number, of if isinstance(of, str) else self.facts_of_model(of)) for number, of in found.rows())
            results = entries("model", rows)
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
        molecule = molecule_of(source, self.reading, self.models)
        return checks.structure(replace(molecule, atoms=self.model.choose_radii(molecule.atoms))), checks

    def _checked(
        self, molecule: MoleculeRead, checks: Checks, results: Sequence[R | None], failed: Mapping[int, str],
        seconds: Mapping[str, float], energy: Callable[[R], tuple[Atoms, Mapping[str, float]]] | None = None,
    ) -> Evaluation[R]:  # fmt: skip
        """Check energies, and leave out models that failed or are refused.

        failed : why models failed while they were evaluated, by place
        energy : gives atoms and terms to be checked, None if results have no whole energies

        Raises InputError for a structure that is refused, and if no model is left.
        """
        if molecule.conformations is None:
            if energy is not None and results[0] is not None:
                checks.energy(*energy(results[0]))
            return Evaluation(molecule, results, {}, seconds, checks.as_json())
        reasons = {**failed, **molecule.failed}
        for place, (number, result) in enumerate(zip(molecule.numbers, results, strict=True)):
            if place not in reasons and result is not None and energy is not None:
                reason = checks.of_model_energy(number, *energy(result))
                reasons |= {} if reason is None else {place: reason}
        molecule = molecule.without(reasons)
        kept = [None if place in reasons else result for place, result in enumerate(results)]
        return Evaluation(molecule, kept, molecule.failed, seconds, checks.as_json())
