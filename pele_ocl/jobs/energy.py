"""The whole energy of structures, a record each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from ..atoms import Atoms, Floats
from ..energy import Energy, EnergyBatch, EnergyResult, summary
from ..energy.term_set import has_radii
from ..inputfile import InputFile, read_file
from ..solvent_model import SolventModel
from .checks import Checks
from .facts import (
    accuracy_facts,
    area_facts,
    composition_as_json,
    models_as_json,
    notes_of,
    residue_names,
    residues_as_json,
    settings,
)
from .notes import note
from .reading import Models, Molecule, Reading, Reads, molecule_of, require_lennard_jones
from .spec import StructurePath, StructureSpec


@dataclass(frozen=True, eq=False)
class EnergyFound:
    """The energies of a structure, or of all its models, and what was found about them."""

    molecule: Molecule
    result: EnergyResult | EnergyBatch
    findings: list[dict[str, object]]


@dataclass(frozen=True, eq=False)
class EnergySpec(StructureSpec):
    """Bonded, Lennard-Jones, Coulomb, GB and nonpolar energy of structures, kcal/mol.

    reading : how files are read; models : "one", or "all" for every model of a file
    gradient : whether its norms are in the record, kcal/mol/A; per_residue : whether energies of residues are
    terms : names of those to compute and to sum; by default all
    strict : whether findings that are noted otherwise are refused
    mentioned : options that were given, --surface and --gb, to be told where they play no part

    The other fields are options of pele_ocl.Energy.
    """

    reading: Reads = field(default_factory=Reading)
    models: Models = "one"
    gradient: bool = True
    fixed_radii: bool = False
    one_four: Literal["scale", "exclude"] = "scale"
    cutoff: float | None = None
    terms: tuple[str, ...] | None = None
    precision: str = "float32"
    variant: str = "auto"
    born: str = "auto"
    accuracy: float | None = None
    device: str | None = None
    model: SolventModel = field(default_factory=SolventModel)
    per_residue: bool = False
    strict: bool = False
    mentioned: tuple[str, ...] = ()

    def plan(self, atoms: Atoms, gradient: bool, per_atom: bool) -> Energy:
        """The plan that evaluates atoms."""
        plan = Energy(
            atoms, gradient=gradient, fixed_radii=self.fixed_radii, one_four=self.one_four, cutoff=self.cutoff,
            per_atom=per_atom, precision=self.precision, variant=self.variant, born=self.born, accuracy=self.accuracy,
            device=self.device, model=self.model, only_terms=None if self.terms is None else list(self.terms),
        )  # fmt: skip
        if self.terms is not None:
            self._tell_unused(plan)
        return plan

    def found(
        self, source: InputFile, per_atom: bool = False, progress: Callable[[float], None] | None = None
    ) -> EnergyFound:
        """The energies of a file; per_atom : whether those of each atom are wanted, of one model."""
        require_lennard_jones(source)
        molecule = molecule_of(source, self.reading, self.models)
        checks = Checks(source, self.strict)
        checks.structure(molecule)
        plan = self.plan(molecule.atoms, self.gradient, self.per_residue or (per_atom and not molecule.numbers))
        found: EnergyResult | EnergyBatch
        if molecule.conformations is None:
            found = plan.evaluate(profile=True)
            checks.energy(found.atoms, found.energy)
        else:
            found = plan.evaluate_batch(molecule.conformations, progress, profile=True)
            for number, of in zip(molecule.numbers, found, strict=True):
                checks.energy(of.atoms, of.energy, number)
        return EnergyFound(molecule, found, checks.as_json())

    def compute(self, item: StructurePath) -> dict[str, Any]:
        """The energies of a file, as JSON has them."""
        return self.as_json(self.found(read_file(item)))

    def as_json(self, found: EnergyFound) -> dict[str, Any]:
        """The result of a record."""
        result, findings = found.result, {"findings": found.findings, **notes_of(found.molecule.atoms)}
        facts = {
            "n_atoms": len(result.atoms),
            "composition": composition_as_json(result.atoms),
            "device": result.device,
            "variant": result.variant,
            "precision": result.precision,
            "born": result.born,
            **accuracy_facts(result),
            "contents": summary(result.terms.names, result.atoms, result.model),
            "settings": settings(result.model, result.atoms),
        }
        seconds = {"seconds": dict(result.seconds)}
        if isinstance(result, EnergyBatch):
            return {**facts, "models": self._models(found.molecule, result), **seconds, **findings}
        radii = result.born_radii
        spread = {"min": float(radii.min()), "max": float(radii.max()), "mean": float(radii.mean())}
        return {
            **facts,
            **({"born_radius": spread} if np.isfinite(radii).all() else {}),  # NaN where no term needs them
            "energy": result.energy,
            **area_facts(result.model, result.energy),
            "gradient": _gradient_as_json(result),
            **seconds,
            **self._residues(result),
            **findings,
        }

    def _models(self, molecule: Molecule, batch: EnergyBatch) -> list[dict[str, Any]]:
        """An object for each model."""
        models = models_as_json(molecule.numbers, [result.energy for result in batch])
        for model, result in zip(models, batch, strict=True):
            model |= self._residues(result)
        return models

    def _residues(self, result: EnergyResult) -> dict[str, Any]:
        """The energies of residues, where they are wanted."""
        if not self.per_residue:
            return {}
        return {"residues": residues_as_json(residue_names(result.atoms), result.per_residue().columns())}

    @cached_property
    def _told(self) -> set[str]:
        return set()

    def _tell_unused(self, plan: Energy) -> None:
        """Say that options of the solvent play no part where no term has to do with them; once for all structures."""
        for option, used in (("surface", "nonpolar" in plan.names), ("gb", has_radii(plan.names, plan.model))):
            if option in self.mentioned and not used and not plan.model.gb_model.vacuum and option not in self._told:
                self._told.add(option)
                note(f"Note: --{option} plays no part, as none of its terms is among --terms")


def _gradient_as_json(result: EnergyResult) -> dict[str, Any] | None:
    """Give the norms of the gradient, and tell if it holds Born radii and surface."""
    found = norms(result.gradient)
    return {**found, "holds_radii": True} if found and result.model.gb_model.of_surface else found


def norms(gradient: Floats | None) -> dict[str, float] | None:
    """A gradient (n, 3) in figures: its norm, that of the longest of an atom, and that of the sum; kcal/mol/A."""
    if gradient is None:
        return None
    return {
        "norm": float(np.linalg.norm(gradient)),
        "max": float(np.linalg.norm(gradient, axis=1).max()),
        "net": float(np.linalg.norm(gradient.sum(axis=0))),
    }
