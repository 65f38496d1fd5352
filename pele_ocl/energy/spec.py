"""Energies of structures as records of a job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from ..atoms import Atoms
from ..common.errors import KeywordError
from ..common.inputfile import InputFile
from ..common.notes import note
from ..jobs.evaluation import Evaluation, EvaluationSpec, Progress, Table
from ..jobs.facts import (
    accuracy_facts,
    area_facts,
    gradient_facts,
    names_of_residues,
    numbers_in,
    radii_facts,
    residue_facts,
    settings,
)
from ..jobs.provenance import how_computed, origin_of
from ..jobs.texts import (
    UNIT,
    Facts,
    Model,
    accuracy_attributes,
    accuracy_lines,
    area_lines,
    choice_line,
    ending,
    energy_lines,
    gradient_line,
    headline,
    label_columns,
    lines_of,
    model_columns,
    model_line,
    model_lines,
    residue_table,
)
from ..results import TermBatch
from .options import require_near
from .plan import Energy, EnergyAndAtoms
from .result import EnergyBatch, EnergyResult, terms_listed
from .term_set import has_radii, summary
from .variants import VARIANTS


@dataclass(frozen=True, eq=False, repr=False)
class EnergyEvaluation(Evaluation[EnergyResult]):
    """Energies of a structure, or of all its models. batch : of all models; None for one structure"""

    batch: EnergyBatch | None = None


@dataclass(frozen=True, eq=False)
class EnergySpec(EvaluationSpec[EnergyResult]):
    """Bonded, Lennard-Jones, Coulomb, GB and nonpolar energy of structures, kcal/mol.

    reading : how files are read; models : "one", or "all" for all models of a file
    gradient : True to record norms of the gradient, kcal/mol/A; per_residue : True to record energies per residue
    per_atom : True for per-atom energies in results
    terms : names of the terms to compute and sum; by default all
    strict : True to raise an error where otherwise only a note is given
    mentioned : which of "surface" and "gb" the user gave, for a note if they have no effect
    accuracy, born, cutoff, device, fixed_radii, one_four, variant : options of pele_ocl.Energy

    >>> spec = pele_ocl.EnergySpec(gradient=False)
    >>> record = next(pele_ocl.jobs.run(spec, ["data/structures/trialanine.pdb"]))
    >>> round(record["energy"]["total"], 1)
    -135.5
    """

    gradient: bool = True
    fixed_radii: bool = False
    one_four: Literal["scale", "exclude"] = "scale"
    cutoff: float | None = None
    terms: tuple[str, ...] | None = None
    variant: str = "auto"
    born: str = "auto"
    accuracy: float | None = None
    device: str | None = None
    per_residue: bool = False
    mentioned: tuple[str, ...] = field(default=(), metadata={"is_keyword": False})
    per_atom: bool = False

    _needs_lennard_jones = True

    def __post_init__(self) -> None:
        if self.fixed_radii and not self.gradient:
            raise KeywordError("`fixed_radii` applies to the gradient, which is not computed; leave out one of the two")
        require_near(self.cutoff)
        terms_listed(self.terms)

    def plan(self, atoms: Atoms, gradient: bool, per_atom: bool) -> Energy:
        """Create a plan; gradients are at fixed Born radii if the model has no derivatives of the radii."""
        fixed_radii = self.fixed_radii or (gradient and self.model.gb_model.holds_radii)
        plan = (EnergyAndAtoms if per_atom else Energy)(
            atoms, gradient=gradient, fixed_radii=fixed_radii, one_four=self.one_four, cutoff=self.cutoff,
            precision=self.precision, variant=self.variant, born=self.born, accuracy=self.accuracy,
            device=self.device, model=self.model, only_terms=None if self.terms is None else list(self.terms),
        )  # fmt: skip
        if self.terms is not None:
            self._tell_unused(plan)
        return plan

    def evaluate(
        self, source: InputFile, progress: Progress | None = None, per_atom: bool = False
    ) -> EnergyEvaluation:  # fmt: skip
        """Compute the energies of a file. per_atom : True for per-atom energies, if only one model is read"""
        molecule, checks = self._read(source)
        of_atoms = self.per_atom or self.per_residue or (per_atom and not molecule.numbers)
        plan = self.plan(molecule.atoms, self.gradient, of_atoms)
        batch: EnergyBatch | None = None
        failed: Mapping[int, str] = {}
        if molecule.conformations is None:
            results = [plan.evaluate(profile=True)]
            seconds = results[0].seconds
        else:
            batch = plan.evaluate_batch(molecule.conformations, progress, profile=True, errors="record")
            results, failed, seconds = list(batch), batch.errors, batch.seconds
        found = self._checked(molecule, checks, results, failed, seconds, lambda result: (result.atoms, result.energy))
        return EnergyEvaluation(**vars(found), batch=batch)

    def of_result(self, result: EnergyResult | TermBatch[EnergyResult]) -> EnergyEvaluation:
        """Create an evaluation from a result for Atoms, or from a batch of their conformations."""
        return EnergyEvaluation(
            **vars(super().of_result(result)), batch=result if isinstance(result, EnergyBatch) else None
        )

    def facts_of_molecule(self, of: EnergyResult | Energy) -> dict[str, Any]:
        """Facts that all models or frames have in common. of : a result, or the plan of frames"""
        names = of.names if isinstance(of, Energy) else of.terms.names
        return {
            "born": of.born,
            **accuracy_facts(of),
            "contents": summary(names, of.atoms, of.model),
            "settings": self.settings_of(of.atoms),
        }

    def settings_of(self, atoms: Atoms) -> dict[str, Any]:
        """Force field, solvent constants, cutoff and 1-4 pairs."""
        return {**settings(self.model, atoms), "cutoff": self.cutoff, "one_four": self.one_four}

    def physics_lines_of(self, result: EnergyResult) -> list[str]:
        return lines_of(self.settings_of(result.atoms), result.terms.names)

    def plan_of_frames(self, atoms: Atoms) -> Energy:
        return self.plan(atoms, False, self.per_residue)

    def terms_of_frames(self, plan: Energy) -> Sequence[str]:
        return plan.names

    @property
    def has_residues_of_frames(self) -> bool:
        return self.per_residue

    def facts_of_model(self, result: EnergyResult) -> dict[str, Any]:
        has_radii = bool(np.isfinite(result.born_radii).all())  # NaN if no term needs them
        return {
            **({"born_radius": radii_facts(result.born_radii)} if has_radii else {}),
            "energy": result.energy,
            **area_facts(result.model, result.energy),
            "gradient": _gradient_facts(result),
            **(residue_facts(result) if self.per_residue else {}),
        }

    def text_of(self, found: Evaluation[EnergyResult], verbose: bool, total: float) -> str:
        molecule, facts = found.molecule, self.settings_of(found.molecule.atoms)
        result: EnergyResult | EnergyBatch = _batch_of(found) or found.first
        names = result.terms.names
        contents = summary(names, result.atoms, result.model)
        lines = [f"{headline(molecule.source.path.name, result.atoms)}; {contents}", *found.physics_lines()]
        if isinstance(result, EnergyBatch):
            lines += model_lines(_rows(found))
        else:
            held = ", at fixed Born radii and surface" if result.model.gb_model.holds_radii else ""
            lines += ["", *energy_lines(result.energy), *area_lines(result.model, result.energy)]
            lines += gradient_line(gradient_facts(result.gradient), held)
        lines += [*accuracy_lines(result, result.born), "", ending(result, result.seconds["kernel"], total)]
        if verbose and isinstance(result, EnergyResult):
            variant = VARIANTS[result.variant]
            kernel = f"Kernel: cl/{variant.file}, {variant.summary}"
            lines += ["", model_line(facts), kernel, choice_line(result.device)]
        if self.per_residue:
            models: list[tuple[int | None, Any]]
            if isinstance(result, EnergyBatch):
                models = [
                    (number, of.per_residue().columns()) for number, of in found.rows() if not isinstance(of, str)
                ]
            else:
                models = [(None, result.per_residue().columns())]
            lines += ["", residue_table(names_of_residues(result.atoms), models)]
        return "\n".join(lines)

    def table_of(self, found: Evaluation[EnergyResult], call: Mapping[str, object] | None, has_arrays: bool) -> Table:
        """Columns, units and attributes of a file: energies, radii and gradients of atoms, or energies of models."""
        molecule, batch = found.molecule, _batch_of(found)
        told = {**self.settings_of(molecule.atoms), **numbers_in(self.facts_of_molecule(found.first))}
        if batch is not None:
            columns, units = model_columns(_rows(found), kind=found.kind)
            if has_arrays and not batch.model.gb_model.vacuum:
                columns["born_radii"], units["born_radii"] = batch.born_radii, "angstrom"
            if has_arrays and batch.gradients is not None:
                columns["gradient"], units["gradient"] = batch.gradients, f"{UNIT}/angstrom"
            return columns, units, _attributes(found, batch, told, call)
        result = found.first
        if result.per_atom is None and isinstance(plan := self.plan(molecule.atoms, False, True), EnergyAndAtoms):
            result = replace(result, per_atom=plan.of_atoms.evaluate().per_atom)
        columns = label_columns(result.atoms)
        columns |= {} if result.per_atom is None else result.per_atom.columns()
        if not result.model.gb_model.vacuum:
            columns["born_radii"] = result.born_radii
        if result.gradient is not None:
            columns["gradient"] = result.gradient
        units = dict.fromkeys(result.energy, UNIT) | {"born_radii": "angstrom", "gradient": f"{UNIT}/angstrom"}
        energies = {f"energy_{name}": value for name, value in result.energy.items()}
        return columns, units, {**_attributes(found, result, told, call), **energies}

    @cached_property
    def _told(self) -> set[str]:
        return set()

    def _tell_unused(self, plan: Energy) -> None:
        """Give a note, once for all structures, if a solvent option has no effect on the computed terms."""
        for option, used in (("surface", "nonpolar" in plan.names), ("gb", has_radii(plan.names, plan.model))):
            if option in self.mentioned and not used and not plan.model.gb_model.vacuum and option not in self._told:
                self._told.add(option)
                note(f"Note: `{option}` has no effect, as none of its terms is among `only_terms`")


@dataclass(frozen=True, eq=False)
class EnergyOfPlan(EnergySpec):
    """Job that computes energies of Atoms. options : of the plan"""

    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, result: EnergyResult | EnergyBatch) -> EnergyOfPlan:
        """Create the job that reproduces a result."""
        names = ("gradient", "fixed_radii", "one_four", "cutoff")
        return cls(
            precision=result.precision, model=result.model, variant=result.variant, born=result.born,
            accuracy=result.accuracy, options=result.how,
            **{name: result.how[name] for name in names if name in result.how},
        )  # fmt: skip

    def plan(self, atoms: Atoms, gradient: bool, per_atom: bool) -> Energy:
        """Create a plan; without per-atom energies if some atoms are frozen."""
        is_whole = self.options.get("frozen") is None
        options = {name: of for name, of in self.options.items() if name != "per_atom"}
        return (EnergyAndAtoms if per_atom and is_whole else Energy)(atoms, **{**options, "gradient": gradient})


def _gradient_facts(result: EnergyResult) -> dict[str, Any] | None:
    """Norms of the gradient, and whether it is at fixed Born radii and surface."""
    found = gradient_facts(result.gradient)
    return {**found, "holds_radii": True} if found and result.model.gb_model.holds_radii else found


def _batch_of(found: Evaluation[EnergyResult]) -> EnergyBatch | None:
    return found.batch if isinstance(found, EnergyEvaluation) else None


def _rows(found: Evaluation[EnergyResult]) -> list[Model]:
    """Terms and total of each model, or the reason why it failed."""
    return [(number, of if isinstance(of, str) else of.energy) for number, of in found.rows()]


def _attributes(
    found: Evaluation[EnergyResult], result: EnergyResult | EnergyBatch, facts: Facts, call: Mapping[str, object] | None
) -> dict[str, object]:
    return {
        **origin_of(found.molecule.source, found.molecule.coordinates, call),
        **how_computed(result.atoms, result),
        **{f"seconds_{name}": value for name, value in result.seconds.items()},
        **facts,
        "born": result.born,
        **accuracy_attributes(result),
    }


def recorded(result: EnergyResult | EnergyBatch) -> EnergyEvaluation:
    """Create an evaluation from a result for Atoms, or from a batch."""
    return EnergyOfPlan.of(result).of_result(result)
