"""Energies over pair lists of structures, a record each."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ..atoms import Atoms
from ..inputfile import InputFile, read_file
from ..nonbond import Nonbond, NonbondResult
from ..pairs import (
    Pairs,
    all_pairs,
    exclusions,
    internal_dielectrics,
    pairs_split,
    pairs_within,
    read_pairs,
    without_bonded,
)
from ..solvent import Solvent, choose_variant
from ..solvent_model import SolventModel
from .checks import Checks
from .facts import composition_as_json, models_as_json, notes_of, settings
from .notes import note
from .reading import Models, Molecule, Reading, Reads, molecule_of, require_lennard_jones
from .spec import StructurePath, StructureSpec

DEFAULT_CUTOFF = 12.0  # A
Progress = Callable[[float], None]


@dataclass(frozen=True, eq=False)
class NonbondFound:
    """The results of all models, the pair list of the last one, the seconds of each step, and the findings."""

    molecule: Molecule
    results: Sequence[NonbondResult]
    pairs: Pairs
    seconds: Mapping[str, float]
    findings: list[dict[str, object]] = field(default_factory=list)

    @property
    def energies(self) -> list[dict[str, float]]:
        """The terms and the total of each model."""
        return [result.energy for result in self.results]


@dataclass(frozen=True, eq=False)
class NonbondSpec(StructureSpec):
    """Lennard-Jones, Coulomb and GB energy of the pairs of a list, kcal/mol.

    reading : how files are read; models : "one", or "all" for every model of a file
    pairs : "cutoff", all within it; "all"; "split", PELE's two lists; or the file of a list
    cutoff : A, 12 by default; variable_dielectric : whether that of residues takes the place of the solute's
    strict : whether findings that are noted otherwise are refused

    The other fields are options of pele_ocl.Nonbond and pele_ocl.pairs_within.
    """

    reading: Reads = field(default_factory=Reading)
    models: Models = "one"
    pairs: Literal["cutoff", "all", "split"] | Path = "cutoff"
    cutoff: float | None = None
    solvent: Literal["gb", "vacuum"] = "gb"
    one_four: Literal["exclude", "scale"] = "exclude"
    variable_dielectric: bool = False
    gradient: bool = True
    variant: str = "auto"
    precision: str = "float32"
    device: str | None = None
    model: SolventModel = field(default_factory=SolventModel)
    strict: bool = False

    def pairs_of(self, atoms: Atoms) -> Pairs:
        """The pairs of atoms."""
        if isinstance(self.pairs, Path):
            return self._listed(atoms, self.pairs)
        if self.pairs == "all":
            return all_pairs(atoms, self.one_four)
        if self.pairs == "split":
            return pairs_split(atoms, one_four=self.one_four)
        return pairs_within(atoms, DEFAULT_CUTOFF if self.cutoff is None else self.cutoff, self.one_four)

    def plan(self, atoms: Atoms, pairs: Pairs, gradient: bool | None = None, first: Atoms | None = None) -> Nonbond:
        """The plan that evaluates atoms; first : those that dielectrics are of, by default these"""
        inside = internal_dielectrics(atoms if first is None else first) if self.variable_dielectric else None
        return Nonbond(
            atoms, pairs, solvent=self.solvent, gradient=self.gradient if gradient is None else gradient,
            variant=self.variant, precision=self.precision, device=self.device, model=self.model,
            internal_dielectrics=inside,
        )  # fmt: skip

    def found(self, source: InputFile, progress: Progress | None = None) -> NonbondFound:
        """The results of a file."""
        require_lennard_jones(source)
        molecule = molecule_of(source, self.reading, self.models)
        checks = Checks(source, self.strict)
        checks.structure(molecule)
        is_one_list = molecule.conformations is None or isinstance(self.pairs, Path) or self.pairs == "all"
        found = (self._together if is_one_list else self._one_by_one)(molecule, progress)
        numbers: Sequence[int | None] = molecule.numbers or [None]
        for number, of in zip(numbers, found.results, strict=True):
            checks.energy(of.atoms, of.energy, number)
        self._note_oddities(found)
        return NonbondFound(molecule, found.results, found.pairs, found.seconds, checks.as_json())

    def compute(self, item: StructurePath) -> dict[str, Any]:
        """The results of a file, as JSON has them."""
        return self.as_json(self.found(read_file(item)))

    def as_json(self, found: NonbondFound) -> dict[str, Any]:
        """The result of a record."""
        molecule, result = found.molecule, found.results[0]
        facts = {
            "n_atoms": len(result.atoms),
            "composition": composition_as_json(result.atoms),
            "n_pairs": result.n_pairs,
            "device": result.device,
            "variant": result.variant,
            "precision": result.precision,
            "settings": settings(self.model, molecule.atoms),
        }
        ending = {"seconds": dict(found.seconds), "findings": found.findings, **notes_of(molecule.atoms)}
        if molecule.numbers:
            models = models_as_json(molecule.numbers, found.energies)
            for model, of in zip(models, found.results, strict=True):
                model |= {"n_pairs": of.n_pairs, "gradient": gradient_facts(of)}
            del facts["n_pairs"]
            return {**facts, "models": models, **ending}
        return {**facts, "energy": result.energy, "gradient": gradient_facts(result), **ending}

    def _together(self, molecule: Molecule, progress: Progress | None) -> NonbondFound:
        """The one model, or all models over one list."""
        start = time.perf_counter()
        pairs = self.pairs_of(molecule.atoms)
        seconds = {"pairs": time.perf_counter() - start}
        plan = self.plan(molecule.atoms, pairs)
        results = (
            [plan.evaluate(profile=True, progress=progress)]
            if molecule.conformations is None
            else list(plan.evaluate_batch(molecule.conformations, progress, profile=True))
        )
        return NonbondFound(molecule, results, pairs, seconds | dict(results[0].seconds))

    def _one_by_one(self, molecule: Molecule, progress: Progress | None) -> NonbondFound:
        """Each model over the pairs within reach in itself; the Born radii of all come from one batch."""
        assert molecule.conformations is not None
        results: list[NonbondResult] = []
        seconds: dict[str, float] = {}
        radii = None
        for k, model in enumerate(molecule.models()):
            start = time.perf_counter()
            pairs = self.pairs_of(model)
            taken = time.perf_counter() - start
            plan = self.plan(model, pairs, first=molecule.atoms)
            if plan.gb and radii is None:
                exact = choose_variant(plan.device.kind, len(plan.atoms))
                solvent = Solvent(
                    molecule.atoms, variant=exact, precision=plan.precision, device=plan.device, model=plan.model
                )
                radii = solvent.evaluate_batch(molecule.conformations).born_radii
            results.append(plan.evaluate(born_radii=None if radii is None else radii[k], profile=True))
            for name, value in {"pairs": taken, **results[-1].seconds}.items():
                seconds[name] = seconds.get(name, 0.0) + value
            if progress is not None:
                progress((k + 1) / len(molecule.numbers))
        return NonbondFound(molecule, results, pairs, seconds)

    def _listed(self, atoms: Atoms, path: Path) -> Pairs:
        """The list in a file, less what the bonds exclude, which a note tells."""
        listed = read_pairs(path, len(atoms), labels=atoms.labels)
        pairs = without_bonded(listed, atoms, self.one_four)
        left_out = len(listed) - len(pairs)
        if left_out:
            up_to = "two" if self.one_four == "scale" else "three"
            keep = "" if self.one_four == "scale" else "; --one-four scale keeps those three bonds apart"
            what = f"{left_out:,} pair{'' if left_out == 1 else 's'}"
            note(f"Note: {path}: left out {what} of atoms up to {up_to} bonds apart{keep}")
        if pairs.one_four is not None and not pairs.one_four.any() and len(exclusions(atoms.bonds, len(atoms))[1]):
            note(
                f"Note: {path}: holds none of the molecule's 1-4 pairs, so that --one-four scale adds nothing; write "
                "the list with --one-four scale"
            )
        return pairs

    def _note_oddities(self, found: NonbondFound) -> None:
        """Tell of results without any pair, and of a gradient that is wrong by design."""
        if not any(of.n_pairs for of in found.results):
            note(f"Note: there is no pair to compute, all energies are 0: {self._why_none()}")
        first = found.results[0]
        if not first.exact:
            note(f"Warning: {first.variant} loses updates to races by design; do not trust its gradient")

    def _why_none(self) -> str:
        """The reason why there is no pair."""
        if isinstance(self.pairs, Path):
            return f"{self.pairs} lists none that bonds do not exclude"
        reach = self.cutoff or DEFAULT_CUTOFF
        within = f" within {reach:g} A of each other" if self.pairs == "cutoff" else ""
        return f"bonds exclude every pair of atoms{within}"


def gradient_facts(result: NonbondResult) -> dict[str, float] | None:
    """A gradient in figures, kcal/mol/A."""
    if result.gradient is None:
        return None
    lengths = np.linalg.norm(result.gradient, axis=1)
    return {
        "norm": float(np.linalg.norm(result.gradient)),
        "max": float(lengths.max(initial=0.0)),
        "net": result.net_force,
    }
