"""Born radii and implicit-solvent energy of structures, a record each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..atoms import Atoms
from ..common.inputfile import InputFile
from ..jobs.evaluation import Evaluation, EvaluationSpec, Progress
from ..jobs.facts import accuracy_facts, area_facts, radii_facts, residue_facts, settings
from . import Solvent, SolventResult


@dataclass(frozen=True, eq=False)
class SolventSpec(EvaluationSpec[SolventResult]):
    """Born radii, A, and implicit-solvent energy of structures, kcal/mol.

    reading : how files are read; models : "one", or "all" for every model of a file
    energy : True for energies beside the radii; per_residue : True for energies of residues in the record
    device : one or several; strict : True to refuse what is noted otherwise

    The other fields are options of pele_ocl.Solvent.

    Further fields are options of the quantity: accuracy, variant.
    """

    energy: bool = True
    variant: str = "auto"
    accuracy: float | None = None
    device: str | tuple[str, ...] | None = None
    per_residue: bool = False

    def plan(self, atoms: Atoms) -> Solvent:
        """Plan the evaluation of atoms."""
        devices = list(self.device) if isinstance(self.device, tuple) else self.device
        return Solvent(
            atoms, variant=self.variant, precision=self.precision, device=devices, model=self.model,
            accuracy=self.accuracy, energy=self.energy,
        )  # fmt: skip

    def evaluate(self, source: InputFile, progress: Progress | None = None) -> Evaluation[SolventResult]:
        """Compute the radii and energies of a file."""
        molecule, checks = self._read(source)
        plan = self.plan(molecule.atoms)
        if molecule.conformations is None:
            result = plan.evaluate(profile=True, progress=progress)
            return self._checked(molecule, checks, [result], {}, {"kernel": result.seconds["kernel"]})
        batch = plan.evaluate_batch(molecule.conformations, progress, profile=True, errors="record")
        return self._checked(molecule, checks, list(batch), batch.errors, {"kernel": batch.seconds["kernel"]})

    def facts_of_molecule(self, of: SolventResult | Solvent) -> dict[str, Any]:
        """Facts that a record has once, as all models or frames share them; of : a result, or the plan of frames"""
        return {"settings": settings(of.model, of.atoms), **accuracy_facts(of)}

    def facts_of_model(self, result: SolventResult) -> dict[str, Any]:
        """Born radii and energies of a structure or a model."""
        energy = energy_of(result)
        return {
            "born_radius": radii_facts(result.born_radii),
            **({"energy": energy, **area_facts(result.model, energy)} if energy else {}),
            **(residue_facts(result) if self.per_residue else {}),
        }


def energy_of(result: SolventResult) -> dict[str, float]:
    """Give the terms and the total; nothing if they were not asked for."""
    return result.energy if result.terms.names else {}
