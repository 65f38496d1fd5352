"""Born radii and implicit-solvent energies of structures as records of a job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..atoms import Atoms
from ..common.errors import KeywordError
from ..common.inputfile import InputFile
from ..jobs.evaluation import Evaluation, EvaluationSpec, Progress, Table
from ..jobs.facts import accuracy_facts, area_facts, names_of_residues, numbers_in, radii_facts, residue_facts, settings
from ..jobs.provenance import how_computed, origin_of
from ..jobs.texts import (
    UNIT,
    accuracy_attributes,
    accuracy_lines,
    area_lines,
    choice_line,
    duration,
    ending,
    energy_lines,
    headline,
    label_columns,
    model_columns,
    model_line,
    model_lines,
    residue_table,
)
from ..plan.selection import having
from .plan import Solvent
from .result import SolventBatch, SolventResult


@dataclass(frozen=True, eq=False)
class SolventSpec(EvaluationSpec[SolventResult]):
    """Born radii, A, and implicit-solvent energy of structures, kcal/mol.

    reading : how files are read; models : "one", or "all" for all models of a file
    energy : True to compute energies in addition to radii; per_residue : True to record energies per residue
    device : one or several; strict : True to raise an error where otherwise only a note is given
    accuracy, variant : options of pele_ocl.Solvent

    >>> spec = pele_ocl.SolventSpec(energy=False)
    >>> record = next(pele_ocl.jobs.run(spec, ["data/structures/trialanine.pdb"]))
    >>> round(record["born_radius"]["max"], 2)
    2.82
    """

    energy: bool = True
    variant: str = "auto"
    accuracy: float | None = None
    device: str | tuple[str, ...] | None = None
    per_residue: bool = False

    def __post_init__(self) -> None:
        if self.per_residue and not self.energy:
            raise KeywordError("`per_residue` applies to energies, which are not computed; leave out one of the two")

    @classmethod
    def of_plan(cls, result: SolventResult | SolventBatch) -> SolventSpec:
        """Create the job that corresponds to a result for Atoms."""
        return cls(
            precision=result.precision, model=result.model, energy=bool(result.terms.names), variant=result.variant,
            accuracy=result.accuracy,
        )  # fmt: skip

    def plan(self, atoms: Atoms) -> Solvent:
        """Create a plan."""
        devices = list(self.device) if isinstance(self.device, tuple) else self.device
        return having(Solvent, self.variant)(
            atoms, variant=self.variant, precision=self.precision, device=devices, model=self.model,
            accuracy=self.accuracy, energy=self.energy,
        )  # fmt: skip

    def plan_of_frames(self, atoms: Atoms) -> Solvent:
        return self.plan(atoms)

    def evaluate(
        self, source: InputFile, progress: Progress | None = None, per_atom: bool = False
    ) -> Evaluation[SolventResult]:
        """Compute the Born radii and energies of a file. per_atom : has no effect; results are per atom"""
        molecule, checks = self._read(source)
        plan = self.plan(molecule.atoms)
        if molecule.conformations is None:
            result = plan.evaluate(profile=True, progress=progress)
            return self._checked(molecule, checks, [result], {}, {"kernel": result.seconds["kernel"]})
        batch = plan.evaluate_batch(molecule.conformations, progress, profile=True, errors="record")
        return self._checked(molecule, checks, list(batch), batch.errors, {"kernel": batch.seconds["kernel"]})

    def facts_of_molecule(self, of: SolventResult | Solvent) -> dict[str, Any]:
        """Facts that all models or frames have in common. of : a result, or the plan of frames"""
        return {"settings": settings(of.model, of.atoms), **accuracy_facts(of)}

    def facts_of_model(self, result: SolventResult) -> dict[str, Any]:
        energy = energy_of(result)
        return {
            "born_radius": radii_facts(result.born_radii),
            **({"energy": energy, **area_facts(result.model, energy)} if energy else {}),
            **(residue_facts(result) if self.per_residue else {}),
        }

    def text_of(self, found: Evaluation[SolventResult], verbose: bool, total: float) -> str:
        molecule, result = found.molecule, found.first
        lines = [headline(molecule.source.path.name, molecule.atoms), *found.physics_lines()]
        energy = energy_of(result)
        if molecule.numbers:
            about = [] if energy else ["Born radii of models, A"]
            figures = [
                (number, of if isinstance(of, str) else energy_of(of) or radii_facts(of.born_radii))
                for number, of in found.rows()
            ]
            lines += model_lines(figures, *about)
        else:
            radii = radii_facts(result.born_radii)
            lines += ["", f"Born radii    {radii['min']:.3f} to {radii['max']:.3f} A, mean {radii['mean']:.3f} A"]
            lines += [*energy_lines(energy), *area_lines(result.model, energy)] if energy else []
        lines += [*accuracy_lines(result, result.variant), "", ending(result, result.seconds["kernel"], total)]
        if verbose:
            lines += ["", *_details(result)]
        if self.per_residue:
            numbers: Sequence[int | None] = molecule.numbers or [None]
            residues = [
                (number, of.per_residue().columns())
                for number, of in zip(numbers, found.results, strict=True)
                if of is not None
            ]
            lines += ["", residue_table(names_of_residues(molecule.atoms), residues)]
        return "\n".join(lines)

    def table_of(self, found: Evaluation[SolventResult], call: Mapping[str, object] | None, has_arrays: bool) -> Table:
        """Columns, units and attributes of a file: radii and energies of atoms, or energies of models.

        Models without energies have the smallest, largest and mean radius, and with arrays all radii.
        """
        molecule, result = found.molecule, found.first
        energy = energy_of(result)
        attributes: dict[str, object] = {
            **origin_of(molecule.source, molecule.coordinates, call),
            **how_computed(molecule.atoms, result),
            **({"kernel_seconds": result.seconds["kernel"]} if "kernel" in result.seconds else {}),
            **settings(result.model, result.atoms),
            **accuracy_attributes(result),
            **numbers_in(self.facts_of_molecule(result)),
        }
        if molecule.numbers and energy:
            columns, units = model_columns(
                [(number, of if isinstance(of, str) else of.energy) for number, of in found.rows()], kind=found.kind
            )
        elif molecule.numbers:
            columns, units = model_columns(
                [(number, of if isinstance(of, str) else _radii(of)) for number, of in found.rows()],
                "angstrom",
                found.kind,
            )
            if has_arrays:
                none = np.full(len(molecule.atoms), np.nan)
                columns["born_radii"] = np.array([none if of is None else of.born_radii for of in found.results])
                units["born_radii"] = "angstrom"
        else:
            columns = label_columns(result.atoms) | {"born_radii": result.born_radii, "psi": result.psi}
            columns |= {} if result.per_atom is None else result.per_atom.columns()
            units = {"born_radii": "angstrom", "psi": "1"} | dict.fromkeys(energy, UNIT)
            attributes |= {f"energy_{name}": value for name, value in energy.items()}
        return columns, units, attributes


def energy_of(result: SolventResult) -> dict[str, float]:
    """Terms and total; empty if energies were not requested."""
    return result.energy if result.terms.names else {}


def _radii(result: SolventResult) -> dict[str, float]:
    """Columns of the smallest, largest and mean Born radius."""
    return {f"born_radius_{name}": value for name, value in radii_facts(result.born_radii).items()}


def _details(result: SolventResult) -> list[str]:
    variant = having(Solvent, result.variant).variants[result.variant]
    return [
        model_line(settings(result.model, result.atoms)),
        f"Kernel time: Born radii {duration(result.seconds['born'])}, energy {duration(result.seconds['energy'])}",
        f"Kernel: cl/{variant.file}, {variant.summary}",
        choice_line(result.device),
    ]


def recorded(result: SolventResult | SolventBatch) -> Evaluation[SolventResult]:
    """Create an evaluation from a result for Atoms, or from a batch."""
    return SolventSpec.of_plan(result).of_result(result)
