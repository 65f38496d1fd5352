"""Born radii and implicit-solvent energy of structures, a record each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..atoms import Atoms, Floats
from ..inputfile import InputFile, read_file
from ..solvent import Solvent, SolventModel, SolventResult
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
from .reading import Models, Molecule, Reading, Reads, molecule_of
from .spec import StructurePath, StructureSpec


@dataclass(frozen=True, eq=False)
class SolventFound:
    """The results of a structure, or of each of its models, and what was found about them."""

    molecule: Molecule
    results: list[SolventResult]
    findings: list[dict[str, object]]


@dataclass(frozen=True, eq=False)
class SolventSpec(StructureSpec):
    """Born radii, A, and implicit-solvent energy of structures, kcal/mol.

    reading : how files are read; models : "one", or "all" for every model of a file
    energy : whether there are energies beside the radii; per_residue : whether energies of residues are in the record
    device : one or several; strict : whether findings that are noted otherwise are refused

    The other fields are options of pele_ocl.Solvent.
    """

    reading: Reads = field(default_factory=Reading)
    models: Models = "one"
    energy: bool = True
    variant: str = "auto"
    accuracy: float | None = None
    precision: str = "float32"
    device: str | tuple[str, ...] | None = None
    model: SolventModel = field(default_factory=SolventModel)
    per_residue: bool = False
    strict: bool = False

    def plan(self, atoms: Atoms) -> Solvent:
        """The plan that evaluates atoms."""
        devices = list(self.device) if isinstance(self.device, tuple) else self.device
        return Solvent(
            atoms, variant=self.variant, precision=self.precision, device=devices, model=self.model,
            accuracy=self.accuracy, energy=self.energy,
        )  # fmt: skip

    def found(self, source: InputFile, progress: Callable[[float], None] | None = None) -> SolventFound:
        """The results of a file."""
        molecule = molecule_of(source, self.reading, self.models)
        checks = Checks(source, self.strict)
        checks.structure(molecule)
        plan = self.plan(molecule.atoms)
        if molecule.conformations is None:
            results = [plan.evaluate(profile=True, progress=progress)]
        else:
            results = list(plan.evaluate_batch(molecule.conformations, progress, profile=True))
        return SolventFound(molecule, results, checks.as_json())

    def compute(self, item: StructurePath) -> dict[str, Any]:
        """The results of a file, as JSON has them."""
        return self.as_json(self.found(read_file(item)))

    def as_json(self, found: SolventFound) -> dict[str, Any]:
        """The result of a record."""
        molecule, result = found.molecule, found.results[0]
        facts: dict[str, Any] = {
            "n_atoms": len(result.atoms),
            "composition": composition_as_json(result.atoms),
            "device": result.device,
            "variant": result.variant,
            "precision": result.precision,
            "settings": settings(result.model, result.atoms),
            **accuracy_facts(result),
        }
        ending = {
            "seconds": {"kernel": result.seconds["kernel"]}, "findings": found.findings, **notes_of(molecule.atoms)
        }  # fmt: skip
        if molecule.numbers:
            models = models_as_json(molecule.numbers, [energy_of(of) for of in found.results])
            for model, of in zip(models, found.results, strict=True):
                model |= {"born_radius": spread(of), **self._residues(of)}
            return {**facts, "models": models, **ending}
        return {
            **facts,
            "born_radius": spread(result),
            **({"energy": energy, **area_facts(result.model, energy)} if (energy := energy_of(result)) else {}),
            **self._residues(result),
            **ending,
        }

    def _residues(self, result: SolventResult) -> dict[str, Any]:
        names = residue_names(result.atoms) if self.per_residue else []
        return {"residues": residues_as_json(names, by_residue(result))} if self.per_residue else {}


def by_residue(result: SolventResult) -> dict[str, Floats]:
    """The energies of residues by term, each (n_residues,) kcal/mol."""
    return result.per_residue().columns()


def energy_of(result: SolventResult) -> dict[str, float]:
    """The terms and the total; nothing where they were not asked for."""
    return result.energy if result.terms.names else {}


def spread(result: SolventResult) -> dict[str, float]:
    """The least, the largest and the mean Born radius, A."""
    radii = result.born_radii
    return {"min": float(radii.min()), "max": float(radii.max()), "mean": float(radii.mean())}
