"""Energies of structures over pair lists as records of a job, and the function `nonbond` for files."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from ..atoms import Atoms, Floats, exclusions
from ..common.arguments import choice, file_path, is_among
from ..common.errors import InputError, KeywordError
from ..common.inputfile import InputFile
from ..common.notes import note
from ..common.variant import Progress
from ..doors import Door, Given, matched, paths_of
from ..gb_models.solvent_model import SolventModel
from ..jobs.evaluation import Evaluation, EvaluationSpec, Table
from ..jobs.facts import gradient_facts, numbers_in, settings
from ..jobs.provenance import how_computed, origin_of
from ..jobs.texts import (
    UNIT,
    Facts,
    Model,
    choice_line,
    counted,
    duration,
    ending,
    energy_lines,
    gradient_line,
    headline,
    label_columns,
    model_columns,
    model_line,
    model_lines,
)
from ..pairs import (
    AllPairs,
    PairList,
    Pairs,
    all_pairs,
    internal_dielectrics,
    pairs_split,
    pairs_within,
    read_pairs,
    require_pairs,
    require_pairs_suffix,
    without_bonded,
    writing_pairs,
)
from ..plan.selection import having
from ..reading import MoleculeRead
from ..solvent import Solvent, choose_variant
from .plan import Nonbond
from .result import NonbondBatch, NonbondResult

if TYPE_CHECKING:
    from ..opencl.device import Device

DEFAULT_CUTOFF = 12.0  # A
GB_OF_BONDED = "gb_of_bonded_pairs"  # missing from totals over pair lists because of exclusions
_Evaluated = tuple[Sequence[NonbondResult | None], Mapping[int, str], Pairs | None, Mapping[str, float]]


@dataclass(frozen=True, eq=False, repr=False)
class NonbondEvaluation(Evaluation[NonbondResult]):
    """Energies of a structure, or of all its models. pairs : list of the last one"""

    pairs: Pairs | None = None


@dataclass(frozen=True, eq=False)
class NonbondSpec(EvaluationSpec[NonbondResult]):
    """Lennard-Jones, Coulomb and GB energy of the pairs of a list, kcal/mol.

    reading : how files are read; models : "one", or "all" for all models of a file
    pairs : "cutoff" for all within the cutoff; "all"; "split" for PELE's two lists; or the file of a list; "list" in
        the settings of results for a list in memory
    cutoff : A, 12 by default; variable_dielectric : True for dielectric constants of the solute by residue
    strict : True to raise an error where otherwise only a note is given
    device, gradient, one_four, variant : options of pele_ocl.Nonbond and pele_ocl.pairs_within

    >>> spec = pele_ocl.NonbondSpec(pairs="all", gradient=False)
    >>> next(pele_ocl.jobs.run(spec, ["data/structures/trialanine.pdb"]))["n_pairs"]
    365
    """

    pairs: Literal["cutoff", "all", "split", "list"] | Path = "cutoff"
    cutoff: float | None = None
    solvent: Literal["gb", "vacuum"] = "gb"
    one_four: Literal["exclude", "scale"] = "exclude"
    variable_dielectric: bool = field(default=False, metadata={"is_keyword": False})
    gradient: bool = True
    variant: str = "auto"
    device: str | None = None

    _needs_lennard_jones = True

    @classmethod
    def of_plan(cls, result: NonbondResult | NonbondBatch) -> NonbondSpec:
        """Create the job that corresponds to a result for Atoms."""
        return cls(precision=result.precision, variant=result.variant, **result.how)

    def pairs_of(self, atoms: Atoms) -> Pairs:
        """Create the pair list of atoms."""
        if isinstance(self.pairs, Path):
            return self._listed(atoms, self.pairs)
        if self.pairs == "all":
            return all_pairs(atoms, self.one_four)
        if self.pairs == "split":
            return pairs_split(atoms, one_four=self.one_four)
        return pairs_within(atoms, DEFAULT_CUTOFF if self.cutoff is None else self.cutoff, self.one_four)

    def plan(self, atoms: Atoms, pairs: Pairs, gradient: bool | None = None, first: Atoms | None = None) -> Nonbond:
        """Create a plan. first : atoms whose residues determine dielectric constants, by default the same"""
        inside = internal_dielectrics(atoms if first is None else first) if self.variable_dielectric else None
        return having(Nonbond, self.variant)(
            atoms, pairs, solvent=self.solvent, gradient=self.gradient if gradient is None else gradient,
            variant=self.variant, precision=self.precision, device=self.device, model=self.model,
            internal_dielectrics=inside,
        )  # fmt: skip

    def plan_of_frames(self, atoms: Atoms) -> Nonbond:
        """Create a plan for frames: with one list for all, or with a new list for each frame."""
        return self.plan(atoms, self.pairs_of(atoms), gradient=False)

    def words_of_frames(self) -> dict[str, object]:
        """Further settings of results for frames: how pair lists are made."""
        if isinstance(self.pairs, Path) or self.pairs == "all":
            return {"pairs": "of a file" if isinstance(self.pairs, Path) else "all"}
        return {
            "cutoff": self.cutoff, "no_cutoff": False, "split_cutoffs": self.pairs == "split",
            "one_four": self.one_four,
        }  # fmt: skip

    def evaluate(
        self, source: InputFile, progress: Progress | None = None, per_atom: bool = False
    ) -> NonbondEvaluation:
        """Compute the energies of a file. per_atom : has no effect"""
        molecule, checks = self._read(source)
        is_one_list = molecule.conformations is None or isinstance(self.pairs, Path) or self.pairs == "all"
        one_list, lists = self._over_one_list, self._over_lists
        results, failed, pairs, seconds = (one_list if is_one_list else lists)(molecule, progress)
        found = self._checked(molecule, checks, results, failed, seconds, lambda of: (of.atoms, of.energy))
        self._note_oddities(found)
        return NonbondEvaluation(**vars(found), pairs=pairs)

    def facts_of_molecule(self, of: NonbondResult | Nonbond) -> dict[str, Any]:
        """Facts that all models or frames have in common. of : a result, or the plan of frames"""
        return {"settings": self.settings_of(of.atoms)}

    def settings_of(self, atoms: Atoms) -> dict[str, Any]:
        """Constants, pairs, and terms missing from the total."""
        pairs = "file" if isinstance(self.pairs, Path) else self.pairs
        reach = (DEFAULT_CUTOFF if self.cutoff is None else self.cutoff) if pairs == "cutoff" else None
        model = replace(self.model, surface="none", surface_tension=0.0)
        facts = {**settings(model, atoms), "pairs": pairs, "cutoff": reach}
        facts["one_four"] = None if pairs == "list" else self.one_four
        if self.variable_dielectric:
            facts |= {"solute_dielectric": None, "internal_dielectric": "vdgbnp"}
        vacuum = self.solvent == "vacuum" or self.model.gb_model.vacuum
        of_solvent = [] if vacuum else ["gb_self", "nonpolar", GB_OF_BONDED]
        return {**facts, "total_lacks": ["bonded", *of_solvent]}

    def facts_of_model(self, result: NonbondResult) -> dict[str, Any]:
        return {
            "n_pairs": result.n_pairs,
            "energy": result.energy,
            "gradient": gradient_facts(result.gradient),
        }

    def text_of(self, found: Evaluation[NonbondResult], verbose: bool, total: float) -> str:
        molecule, result, seconds = found.molecule, found.first, found.seconds
        facts = self.settings_of(molecule.atoms)
        lines = [headline(molecule.source.path.name, molecule.atoms), *found.physics_lines(), *_pairs_lines(facts)]
        if molecule.numbers:
            lines += model_lines(_rows(found))
        else:
            lines += [counted(result.n_pairs, "pair"), "", *energy_lines(result.energy)]
            lines += gradient_line(gradient_facts(result.gradient))
        lines += ["", ending(result, seconds["kernel"], total)]
        if verbose:
            variant = having(Nonbond, result.variant).variants[result.variant]
            steps = (f"{name} {duration(value)}" for name, value in seconds.items())
            kernel = f"Kernel: cl/{variant.file}, {variant.summary}"
            lines += ["", model_line(facts), f"Times: {', '.join(steps)}", kernel, choice_line(result.device)]
        return "\n".join(lines)

    def table_of(self, found: Evaluation[NonbondResult], call: Mapping[str, object] | None, has_arrays: bool) -> Table:
        """Columns, units and attributes of a file: per-atom gradients, or energies of models."""
        molecule, result = found.molecule, found.first
        attributes: dict[str, object] = {
            **origin_of(molecule.source, molecule.coordinates, call),
            **how_computed(molecule.atoms, result),
            "exact": result.exact,
            **{f"seconds_{name}": value for name, value in found.seconds.items()},
            **self.settings_of(molecule.atoms),
            **numbers_in(self.facts_of_molecule(result)),
        }
        if molecule.numbers:
            columns, units = model_columns(_rows(found), kind=found.kind)
            columns["n_pairs"] = np.array([0 if of is None else of.n_pairs for of in found.results])
        else:
            columns, units = label_columns(result.atoms), {"gradient": f"{UNIT}/angstrom"}
            if result.gradient is not None:
                columns["gradient"] = result.gradient
            attributes["n_pairs"] = result.n_pairs
            attributes |= {f"energy_{name}": value for name, value in result.energy.items()}
        return columns, units, attributes

    def _over_one_list(self, molecule: MoleculeRead, progress: Progress | None) -> _Evaluated:
        """Evaluate the structure, or all its models, over one pair list."""
        start = time.perf_counter()
        pairs = self.pairs_of(molecule.atoms)
        seconds = {"pairs": time.perf_counter() - start}
        plan = self.plan(molecule.atoms, pairs)
        if molecule.conformations is None:
            result = plan.evaluate(profile=True, progress=progress)
            return [result], {}, pairs, seconds | dict(result.seconds)
        batch = plan.evaluate_batch(molecule.conformations, progress, profile=True, errors="record")
        return list(batch), batch.errors, pairs, seconds | dict(batch.seconds)

    def _over_lists(self, molecule: MoleculeRead, progress: Progress | None) -> _Evaluated:
        """Evaluate each model with its own pair list; Born radii are computed in one batch."""
        results: list[NonbondResult | None] = [None] * len(molecule.numbers)
        failed, seconds = dict[int, str](), dict[str, float]()
        radii: Floats | None = None
        pairs: Pairs | None = None
        for place, atoms in molecule.models():
            try:
                start = time.perf_counter()
                pairs = self.pairs_of(atoms)
                taken = time.perf_counter() - start
                plan = self.plan(atoms, pairs, first=molecule.atoms)
                if plan.gb and radii is None:
                    radii = self._born_radii(plan, molecule)
                result = plan.evaluate(born_radii=None if radii is None else radii[place], profile=True)
            except InputError as error:
                failed[place] = str(error)
                continue
            results[place] = result
            for name, value in {"pairs": taken, **result.seconds}.items():
                seconds[name] = seconds.get(name, 0.0) + value
            if progress is not None:
                progress((place + 1) / len(results))
        return results, failed, pairs, seconds

    @staticmethod
    def _born_radii(plan: Nonbond, molecule: MoleculeRead) -> Floats:
        """Compute the Born radii of all models, (m, n) A; NaN for failed ones."""
        assert molecule.conformations is not None
        exact = choose_variant(plan.device.kind, len(plan.atoms))
        solvent = Solvent(molecule.atoms, variant=exact, precision=plan.precision, device=plan.device, model=plan.model)
        return solvent.evaluate_batch(molecule.conformations, errors="record").born_radii

    def _listed(self, atoms: Atoms, path: Path) -> Pairs:
        """Read a pair list from a file, and remove pairs excluded by bonds, with a note."""
        notes = list[str]()
        listed = read_pairs(path, len(atoms), labels=atoms.labels, notes=notes)
        for sentence in notes:
            note(f"Note: {sentence}")
        pairs = without_bonded(listed, atoms, self.one_four)
        left_out = len(listed) - len(pairs)
        if left_out:
            up_to = "two" if self.one_four == "scale" else "three"
            keep = "" if self.one_four == "scale" else "; `one_four='scale'` keeps pairs three bonds apart"
            what = f"{left_out:,} pair{'' if left_out == 1 else 's'}"
            note(f"Note: {path}: left out {what} of atoms up to {up_to} bonds apart{keep}")
        if pairs.one_four is not None and not pairs.one_four.any() and len(exclusions(atoms.bonds, len(atoms))[1]):
            note(
                f"Note: {path}: contains none of the molecule's 1-4 pairs, so `one_four='scale'` has no effect; "
                "write "
                "the list with `one_four='scale'`"
            )
        return pairs

    def _note_oddities(self, found: Evaluation[NonbondResult]) -> None:
        """Give notes about results without pairs, and about gradients with lost updates."""
        if not any(of.n_pairs for of in found.results if of is not None):
            note(f"Note: no pairs to compute; all energies are 0: {self._why_none()}")
        if not found.first.exact:
            note(f"Warning: {found.first.variant} loses updates because of races, by design; do not use its gradient")

    def _why_none(self) -> str:
        if isinstance(self.pairs, Path):
            return f"{self.pairs} contains only pairs that are excluded because of bonds"
        reach = self.cutoff or DEFAULT_CUTOFF
        within = f" within {reach:g} A of each other" if self.pairs == "cutoff" else ""
        return f"every pair of atoms{within} is excluded because of bonds"


def _rows(found: Evaluation[NonbondResult]) -> list[Model]:
    """Terms and total of each model, or the reason why it failed."""
    return [(number, of if isinstance(of, str) else of.energy) for number, of in found.rows()]


def _pairs_lines(facts: Facts) -> list[str]:
    """Text lines about excluded pairs and terms missing from the total."""
    four = "left out" if facts["one_four"] == "exclude" else "scaled"
    names = {"bonded": "bonded terms", "gb_self": "GB self energy", "nonpolar": "nonpolar term"}
    lacks = ", ".join(names[name] for name in facts["total_lacks"] if name in names)
    lines = [f"Exclusions    atoms one or two bonds apart; 1-4 pairs are {four}", f"Not in total  {lacks}"]
    up_to = "three" if facts["one_four"] == "exclude" else "two"
    of_bonded = f"Not in GB     pairs up to {up_to} bonds apart, which complete energies include"
    return [*lines, of_bonded] if GB_OF_BONDED in facts["total_lacks"] else lines


def recorded(result: NonbondResult | NonbondBatch) -> Evaluation[NonbondResult]:
    """Create an evaluation from a result for Atoms, or from a batch."""
    return NonbondSpec.of_plan(result).of_result(result)


def evaluated(
    atoms: Atoms | Given, pairs: Pairs | str | PathLike[str] | None, born_radii: Floats | None, *,
    solvent: Literal["gb", "vacuum"] | None, gradient: bool, variant: str, precision: str,
    device: Device | int | str | None, model: SolventModel | int | None, internal_dielectrics: Floats | None,
    progress: Progress | None,
    cutoff: float | None, one_four: Literal["exclude", "scale"], internal_dielectric: Literal["uniform", "vdgbnp"],
    models: Literal["one", "all"], strict: bool, write_pairs: str | PathLike[str] | None, words: Mapping[str, Any],
    function: Callable[..., Any],
) -> Any:  # fmt: skip
    """Evaluate as `nonbond` does. function : `nonbond`, for errors about keywords"""
    words = _in_vacuum(words, solvent)
    vacuum = "solvent='vacuum'" if solvent == "vacuum" else "gb='none'"
    door = Door.of(function, {**words, "progress": progress}, model, device, vacuum, NonbondSpec)
    is_listed = isinstance(pairs, PairList | AllPairs)
    if cutoff is not None and pairs is not None:
        raise KeywordError("choose one of `pairs` and `cutoff`")
    if internal_dielectric == "vdgbnp" and "solute_dielectric" in words:
        raise KeywordError("`internal_dielectric='vdgbnp'` replaces `solute_dielectric`; leave one out")
    if not isinstance(atoms, Atoms):
        given: Given = matched(atoms)
        paths_of(given)  # raises an error for other types
        atoms = given
    named = is_among(pairs, ("all", "split"))
    if not (pairs is None or named or isinstance(pairs, str | PathLike)):
        require_pairs(pairs)
    kind = "cutoff" if pairs is None or is_listed else pairs if named else None
    spec = NonbondSpec(
        reading=door.reading, models=models, pairs=cast(Any, kind or file_path(pairs, "pairs")), cutoff=cutoff,
        solvent="vacuum" if door.model.gb_model.vacuum else "gb", one_four=one_four,
        variable_dielectric=internal_dielectric == "vdgbnp", gradient=gradient and not door.frames, variant=variant,
        precision=precision, device=door.run.device, model=door.model, strict=strict, **door.own,
    )  # fmt: skip
    if isinstance(atoms, Atoms):
        door.require_atoms()
        listed = pairs if isinstance(pairs, PairList | AllPairs) else spec.pairs_of(atoms)
        plan = spec.plan(atoms, listed)
        if internal_dielectrics is not None:
            plan = having(Nonbond, variant)(
                atoms, listed, solvent=spec.solvent, gradient=gradient, variant=variant, precision=precision,
                device=device, model=door.model, internal_dielectrics=internal_dielectrics,
            )  # fmt: skip
        if door.frames:
            return door.over(plan)
        return plan.evaluate(born_radii=born_radii, profile=True, progress=progress)
    for name, value in ("born_radii", born_radii), ("internal_dielectrics", internal_dielectrics):
        if value is not None:
            raise KeywordError(f"`{name}` need Atoms; use pele_ocl.read for files")
    if is_listed:
        raise KeywordError("a pair list needs Atoms; give Atoms, or the path of a list")
    alone = {"models_all": models == "all", "write_pairs": write_pairs}
    if write_pairs is None:
        return door.evaluated(spec, atoms, alone=alone)
    return _with_pairs(door, spec, atoms, file_path(write_pairs, "write_pairs"), alone)


def _with_pairs(door: Door, spec: NonbondSpec, given: Given, target: Path, alone: Mapping[str, object]) -> Any:
    """Evaluate one structure, and write its pair list and the output: both files or neither."""
    if paths_of(given) is None:
        raise KeywordError("`write_pairs` is for one structure, because each has a separate list")
    if spec.models == "all":
        raise KeywordError("`write_pairs` is for one model, because each has a separate list; leave out `models='all'`")
    require_pairs_suffix(target)
    result = replace(door, run=replace(door.run, output=None)).evaluated(spec, given, alone=alone)
    found = result.made
    assert isinstance(found, NonbondEvaluation)
    with nullcontext() if found.pairs is None else writing_pairs(target, found.pairs, found.molecule.atoms.labels):
        if door.run.output is not None:
            found.save(door.run.output, door.run.call)
    return result


def _in_vacuum(words: Mapping[str, Any], solvent: str | None) -> Mapping[str, Any]:
    """Keywords of the solvent, with gb="none" for `solvent="vacuum"`."""
    choice("solvent", "gb" if solvent is None else solvent, ("gb", "vacuum"))
    if words.get("gb") == "none" and solvent == "gb":
        raise KeywordError("`gb='none'` has no solvent; leave out `solvent`, which would have no effect")
    if words.get("gb") == "none" or solvent != "vacuum":
        return words
    if "gb" in words:
        raise KeywordError("`solvent='vacuum'` has no solvent; leave out `gb`, which would have no effect")
    return {**words, "gb": "none"}
