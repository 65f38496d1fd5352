"""Whole energies of structures, a record each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from ..atoms import Atoms
from ..common.inputfile import InputFile
from ..common.notes import note
from ..jobs.evaluation import Evaluation, EvaluationSpec, Progress
from ..jobs.facts import accuracy_facts, area_facts, gradient_facts, radii_facts, residue_facts, settings
from ..jobs.reading import require_lennard_jones
from . import Energy, EnergyBatch, EnergyResult, summary
from .term_set import has_radii


@dataclass(frozen=True, eq=False)
class EnergyEvaluation(Evaluation[EnergyResult]):
    """Energies of a structure, or of all its models; batch : of all models, None for one structure"""

    batch: EnergyBatch | None = None


@dataclass(frozen=True, eq=False)
class EnergySpec(EvaluationSpec[EnergyResult]):
    """Bonded, Lennard-Jones, Coulomb, GB and nonpolar energy of structures, kcal/mol.

    reading : how files are read; models : "one", or "all" for every model of a file
    gradient : True for its norms in the record, kcal/mol/A; per_residue : True for energies of residues
    terms : names of the terms to compute and to sum; by default all
    strict : True to refuse what is noted otherwise
    mentioned : options that were given, --surface and --gb, to be told if they play no part

    The other fields are options of pele_ocl.Energy.

    Further fields are options of the quantity: accuracy, born, cutoff, device, fixed_radii, one_four, variant.
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
    mentioned: tuple[str, ...] = ()

    def plan(self, atoms: Atoms, gradient: bool, per_atom: bool) -> Energy:
        """Plan the evaluation of atoms."""
        plan = Energy(
            atoms, gradient=gradient, fixed_radii=self.fixed_radii, one_four=self.one_four, cutoff=self.cutoff,
            per_atom=per_atom, precision=self.precision, variant=self.variant, born=self.born, accuracy=self.accuracy,
            device=self.device, model=self.model, only_terms=None if self.terms is None else list(self.terms),
        )  # fmt: skip
        if self.terms is not None:
            self._tell_unused(plan)
        return plan

    def evaluate(
        self, source: InputFile, progress: Progress | None = None, per_atom: bool = False
    ) -> EnergyEvaluation:  # fmt: skip
        """Compute the energies of a file; per_atom : True for energies of each atom, of one model"""
        require_lennard_jones(source)
        molecule, checks = self._read(source)
        plan = self.plan(molecule.atoms, self.gradient, self.per_residue or (per_atom and not molecule.numbers))
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

    def facts_of_molecule(self, of: EnergyResult | Energy) -> dict[str, Any]:
        """Facts that a record has once, as all models or frames share them; of : a result, or the plan of frames"""
        names = of.names if isinstance(of, Energy) else of.terms.names
        return {
            "born": of.born,
            **accuracy_facts(of),
            "contents": summary(names, of.atoms, of.model),
            "settings": self.settings_of(of.atoms),
        }

    def settings_of(self, atoms: Atoms) -> dict[str, Any]:
        """Give the force field, the constants of the solvent, and the pairs."""
        return {**settings(self.model, atoms), "cutoff": self.cutoff, "one_four": self.one_four}

    def facts_of_model(self, result: EnergyResult) -> dict[str, Any]:
        """Energies, gradient and Born radii of a structure or a model."""
        has_radii = bool(np.isfinite(result.born_radii).all())  # NaN if no term needs them
        return {
            **({"born_radius": radii_facts(result.born_radii)} if has_radii else {}),
            "energy": result.energy,
            **area_facts(result.model, result.energy),
            "gradient": _gradient_facts(result),
            **(residue_facts(result) if self.per_residue else {}),
        }

    @cached_property
    def _told(self) -> set[str]:
        return set()

    def _tell_unused(self, plan: Energy) -> None:
        """Say that options of the solvent play no part if no term has to do with them; once for all structures."""
        for option, used in (("surface", "nonpolar" in plan.names), ("gb", has_radii(plan.names, plan.model))):
            if option in self.mentioned and not used and not plan.model.gb_model.vacuum and option not in self._told:
                self._told.add(option)
                note(f"Note: --{option} plays no part, as none of its terms is among --terms")


def _gradient_facts(result: EnergyResult) -> dict[str, Any] | None:
    """Give the norms of the gradient, and tell if it holds Born radii and surface."""
    found = gradient_facts(result.gradient)
    return {**found, "holds_radii": True} if found and result.model.gb_model.holds_radii else found
