"""Binding energy of a complex, prepared once and evaluated in many conformations, or over frames."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import asdict, replace
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..atoms import Atoms, require_atoms
from ..atoms.lcpo import lcpo_notes
from ..atoms.tan_luo import tan_luo_notes
from ..common.arguments import callback, file_path, flag, instance, numbers
from ..common.errors import InputError
from ..common.variant import Progress
from ..contract import FrameContract, Image
from ..energy import EnergyBatch
from ..gb_models.solvent_model import SolventModel
from ..grid import Grid
from ..plan.conformations import as_conformations
from ..results import Terms
from ..trajectories import Trajectory
from ..trajectories.energies import recorded
from ..trajectories.files import Positions
from ..trajectories.fingerprints import settings_of_frames, sha256_of
from ..trajectories.frames import FrameWords
from ..trajectories.reading import Paths, opened
from ..trajectories.recording import Settings, joined
from ..trajectories.selection import Selection
from ..trajectories.streaming import Evaluate, FrameResults, ResultsOver, results_over
from .decomposing import Decomposer
from .energies import PARTS, TOO_LARGE, BindingEnergies, aligned, is_large
from .naming import Naming
from .parts import Chosen, Parts, run_of
from .poisson_boltzmann import PBEnergy, PBSolvent, default_model, evaluate_together, plan_in

if TYPE_CHECKING:
    from ..opencl.device import Device


class Binding:
    """E(complex) - E(receptor) - E(ligand) at the positions of the complex, each part with Born radii of its own.

    A single-trajectory binding energy (docs/theory/binding.md): nothing is relaxed, and bonded terms within a part
    cancel. For separate trajectories of the parts see `over`.

    atoms : of the complex, chosen among the Atoms that were `given`, whose positions are evaluated
    parts : Parts, which atoms these are; notes : sentences about the choice
    plans : the Energy of each part, by name; "receptor" and "ligand" take their atoms of the complex
    names : of the terms; n_atoms : of `given`; idecomp : of the decomposition, None without
    model, precision, variant, device, options : of the complex's plan; quantity : "binding"
    pb : PBSolvent, None with Generalized Born

    It pickles by its atoms and options, as plans do.
    """

    quantity = "binding"

    def __init__(
        self,
        atoms: Atoms,
        ligand: Chosen,
        receptor: Chosen | None = None,
        *,
        model: SolventModel | None = None,
        like: str | None = None,
        one_four: Literal["scale", "exclude"] = "scale",
        cutoff: float | None = None,
        idecomp: int | None = None,
        precision: str = "float32",
        variant: str = "auto",
        device: Device | int | str | None = None,
        strip: Chosen | None = None,
        strip_like: str | None = None,
        pb: PBSolvent | None = None,
    ) -> None:
        """Prepare a complex.

        atoms : Atoms of the complex; others among them, such as water, may be left out by the choice of the parts
        ligand, receptor : a selection (docs/selection.md), a mask or indices; the receptor is by default all atoms but
            the ligand's, water and what is stripped
        strip : atoms that are in neither part beside water, chosen alike; "none" for no others; by default the ions
            that the program of `strip_like`, or else of `like`, strips: "mmpbsa.py", "sander" and "gmx" have some
        model : SolventModel; like : or the name of a program whose constants are wanted, as SolventModel.like has it
        one_four, cutoff, precision, variant, device : as in `energy`
        idecomp : to have results with a `decomposition`, as sander numbers them: 1 and 2 by residue; 3 and 4 by pairs
            of residues, too. 1-4 pairs are internal with 1 and 3, else van der Waals and electrostatic
        pb : PBSolvent, to solve the Poisson-Boltzmann equation in place of Generalized Born: MM/PBSA. All three
            have nodes of the complex's grid, so that errors of the grid cancel; small parts have some of them alone.
            The surface is by default "lcpo"

        Raises InputError for parts that hold no atom or share one, and as `energy` does.
        """
        if model is not None and like is not None:
            raise InputError("choose one of model and like; SolventModel.like takes changes to a program's constants")
        self._choices: dict[str, Any] = {
            "one_four": one_four,
            "cutoff": cutoff,
            "precision": precision,
            "variant": variant,
            "device": device,
        }
        # As they stand now: they may be arrays and lists, which others write to.
        self._chosen: dict[str, Any] = deepcopy(
            dict(ligand=ligand, receptor=receptor, strip=strip, strip_like=strip_like or like)
        )
        self.model = SolventModel.or_default(model) if like is None else SolventModel.like(like)
        self.pb = pb
        if pb is not None:
            instance("pb", pb, PBSolvent, "a PBSolvent")
            self.model = default_model(None if model is None and like is None else self.model)
        require_atoms(atoms)
        self.given, self.n_atoms, self.idecomp = atoms, len(atoms), idecomp
        self.parts = Parts.of(atoms, ligand, receptor, strip, strip_like or like)
        self.notes = self.parts.notes
        whole = len(self.parts.complex) == len(atoms)
        self.atoms = atoms if whole else atoms[self.parts.complex]
        if self.model.surface == "lcpo" and self.model.lcpo_unknown == "carbon":
            self.notes = (*self.notes, *lcpo_notes(self.atoms))
        if pb is not None and pb.radii == "tan-luo":
            self.notes = (*self.notes, *tan_luo_notes(self.atoms))
        of_parts = {
            "complex": self.atoms,
            "receptor": self.atoms[self.parts.receptor],
            "ligand": self.atoms[self.parts.ligand],
        }
        choices = {**self._choices, "per_atom": idecomp is not None}
        self.plans = {name: plan_in(pb, of, self.model, **choices) for name, of in of_parts.items()}
        self.precision, self.names = precision, self.plans["complex"].names
        self._in_float64: Binding | None = None  # made for the first conformation that needs it
        self.device, self.variant = self.plans["complex"].device, self.plans["complex"].variant
        self.options = self.plans["complex"].options
        if idecomp is not None:
            self._decomposer()  # which looks whether it can be done

    def __repr__(self) -> str:
        counts = f"{len(self.parts.receptor):,} and {len(self.parts.ligand):,} atoms"
        return f"Binding({counts}, {self.variant}, {self.precision}, on {self.device})"

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        """Pickle by atoms, options and the device's title: a pickle makes the plans anew on a device like it."""
        options = {**self._choices, "variant": self.variant, "device": self.device}
        return (
            partial(type(self), model=self.model, idecomp=self.idecomp, pb=self.pb, **self._chosen, **options),
            (self.given,),
        )

    def _alike(self, atoms: Atoms, ligand: Chosen, receptor: Chosen, precision: str | None = None) -> Binding:
        """A Binding of other atoms with the options of this one; a decomposition only with another precision."""
        choices = self._choices if precision is None else {**self._choices, "precision": precision, "variant": "auto"}
        idecomp = None if precision is None else self.idecomp
        return Binding(atoms, ligand, receptor, model=self.model, idecomp=idecomp, pb=self.pb, **choices)

    def evaluate(self, positions: ArrayLike | None = None) -> BindingEnergies:
        """Compute the energies at positions (n, 3) A of all atoms that were given, by default their own; shape ().

        Raises InputError for positions that do not fit, and for energies that overflow.
        """
        if positions is None:
            found = self._of_positions(self.atoms.positions[np.newaxis])
        else:
            found = self.evaluate_batch(numbers("positions", positions)[np.newaxis])
        return replace(found[0], decomposition=found.decomposition, seconds=found.seconds)

    def evaluate_batch(
        self, conformations: ArrayLike, progress: Progress | None = None, *,
        errors: Literal["raise", "record"] = "raise",
    ) -> BindingEnergies:  # fmt: skip
        """Compute the energies at conformations (m, n, 3) A; shape (m,).

        progress, errors : as in Energy.evaluate_batch
        """
        given = as_conformations(conformations, self.n_atoms)
        return self._of_positions(self.parts.of_complex(given), progress, errors)

    def over(
        self, trajectory: Trajectory | Paths, *, frames: FrameWords = None, select: Selection | None = None,
        topology: str | PathLike[str] | None = None, image: Image = "auto", output: str | PathLike[str] | None = None,
        resume: bool = False, progress: Progress | None = None,
    ) -> BindingEnergies:  # fmt: skip
        """Compute the energies of all frames of a trajectory, read in pieces while the device computes; shape (m,).

        Frames with a unit cell are imaged first, unless image is "none" (docs/binding.md). The molecules of the complex
        are made whole and put beside the largest molecule of the receptor.

        Parameters and errors as in `energy_over`; the frames are of all atoms that were given. A frame that fails has
        NaN, and `errors` says why, by its place among the frames.
        """
        return energies_over(
            self, trajectory, frames=frames, select=select, topology=topology, output=output, resume=resume,
            progress=progress, image=image,
        )  # fmt: skip

    def _of_positions(
        self, positions: Positions, progress: Progress | None = None, errors: Literal["raise", "record"] = "raise"
    ) -> BindingEnergies:
        """Compute the energies at positions (m, k, 3) of the complex, with their decomposition if it is wanted."""
        start = time.perf_counter()
        decomposer = self._decomposer()
        found = self._added(decomposer, positions, progress, errors)
        parts = None if decomposer is None or len(found.errors) == len(found) else decomposer.result()
        return replace(found, decomposition=parts, seconds={"total": time.perf_counter() - start})

    def _decomposer(self) -> Decomposer | None:
        """A new Decomposer of this complex; None where no decomposition is wanted."""
        return None if self.idecomp is None else Decomposer(self.plans["complex"], self.parts, self.idecomp)

    def _added(
        self, decomposer: Decomposer | None, positions: Positions, progress: Progress | None,
        errors: Literal["raise", "record"],
    ) -> BindingEnergies:  # fmt: skip
        """Compute the energies at positions (m, k, 3) of the complex, which the decomposition lets count."""
        batches = self._batches(positions, progress, errors)
        if decomposer is not None:
            decomposer.add(batches, positions)
        return self._joined(batches)

    def _batches(
        self, positions: Positions, progress: Progress | None = None, errors: Literal["raise", "record"] = "raise"
    ) -> dict[str, EnergyBatch]:
        """Evaluate positions (m, k, 3) of the complex by the plan of each part."""
        chosen = self._positions_of_parts(positions)
        in_pb = {name: plan for name, plan in self.plans.items() if isinstance(plan, PBEnergy)}
        if in_pb:
            found = evaluate_together(in_pb, chosen, progress, errors=errors, grids=self._grids_of_parts(chosen))
            return self._precise(found, positions, errors)

        def batch(name: str) -> EnergyBatch:
            return self.plans[name].evaluate_batch(chosen[name], progress if name == PARTS[0] else None, errors=errors)

        if self.device.kind == "CPU":
            found = {name: batch(name) for name in PARTS}
        else:
            with ThreadPoolExecutor(len(PARTS)) as pool:  # a GPU would wait while the host begins and ends each
                found = dict(zip(PARTS, pool.map(batch, PARTS), strict=True))
        return self._precise(found, positions, errors)

    def _positions_of_parts(self, positions: Positions) -> dict[str, Positions]:
        """Take the positions (m, n, 3) of each part, from the complex's (m, k, 3)."""
        return {
            "complex": positions,
            "receptor": positions[:, run_of(self.parts.receptor)],
            "ligand": positions[:, run_of(self.parts.ligand)],
        }

    def _grids_of_parts(self, chosen: Mapping[str, Positions]) -> dict[str, list[Grid]]:
        """Make the grids of Poisson-Boltzmann equations: the complexes' nodes, or of small parts some of these.

        chosen : conformations (m, n, 3) A of the complex, the receptor and the ligand
        """
        plans = {name: plan for name, plan in self.plans.items() if isinstance(plan, PBEnergy)}
        around = plans["complex"].grids(chosen["complex"])
        parts = {name: plan.grids(chosen[name], around) for name, plan in plans.items() if name != "complex"}
        return {"complex": around, **parts}

    def _precise(
        self, batches: Mapping[str, EnergyBatch], positions: Positions, errors: Literal["raise", "record"] = "raise"
    ) -> dict[str, EnergyBatch]:
        """Return the batches, with float64's energies if float32's are too large to take differences of.

        Atoms on top of each other have such energies. Without float64 on the device these conformations fail.

        positions : (m, k, 3) A of the complex

        Raises InputError for a conformation that fails where errors is "raise".
        """
        if self.precision == "float64":
            return dict(batches)
        large = np.logical_or.reduce([is_large(batch.terms) for batch in batches.values()])
        for batch in batches.values():
            large[list(batch.errors)] = False
        places = np.flatnonzero(large)
        if not len(places):
            return dict(batches)
        if not self.device.has_float64:
            if errors == "raise":
                raise InputError(f"conformation {places[0] + 1} of {len(large)}: {TOO_LARGE}")
            return {name: _failed(batch, places.tolist(), TOO_LARGE) for name, batch in batches.items()}
        if self._in_float64 is None:
            self._in_float64 = self._alike(self.atoms, self.parts.ligand, self.parts.receptor, precision="float64")
        again = self._in_float64._batches(positions[places].astype(np.float64), errors="record")
        failed = {k: why for batch in again.values() for k, why in batch.errors.items()}
        if failed and errors == "raise":
            k = min(failed)
            raise InputError(f"conformation {places[k] + 1} of {len(large)}: {failed[k]}")
        return {name: with_rows(batch, places, again[name]) for name, batch in batches.items()}

    def _joined(self, batches: Mapping[str, EnergyBatch]) -> BindingEnergies:
        """Join the energies of batches of all parts, and their difference."""
        failed = {k: f"{name}: {why}" for name in reversed(PARTS) for k, why in batches[name].errors.items()}
        systems = {name: aligned(batch.terms, self.names).copy() for name, batch in batches.items()}
        for values in systems.values():
            values[list(failed)] = np.nan
        delta = systems["complex"] - systems["receptor"] - systems["ligand"]
        terms = {name: Terms._unchecked(self.names, values) for name, values in (*systems.items(), ("delta", delta))}
        return BindingEnergies.of(terms, errors=dict(sorted(failed.items())))


def _failed(batch: EnergyBatch, places: list[int], reason: str) -> EnergyBatch:
    """Add further failed conformations to the batch."""
    return replace(batch, errors=dict(sorted({**batch.errors, **dict.fromkeys(places, reason)}.items())))


def with_rows(batch: EnergyBatch, places: NDArray[np.intp], others: EnergyBatch) -> EnergyBatch:
    """Replace the conformations at `places` of the batch by another's."""
    terms, radii = batch.terms.values.copy(), batch.born_radii.copy()
    terms[places], radii[places] = others.terms.values, others.born_radii
    per_atom = batch.per_atom
    if per_atom is not None and others.per_atom is not None:
        of_atoms = per_atom.values.copy()
        of_atoms[places] = others.per_atom.values
        per_atom = Terms(per_atom.names, of_atoms)
    errors = {**batch.errors, **{int(places[k]): why for k, why in others.errors.items()}}
    found = Terms(batch.terms.names, terms)
    return replace(batch, terms=found, born_radii=radii, per_atom=per_atom, errors=dict(sorted(errors.items())))


def evaluate_binding_with(
    binding: Binding, decomposer: Decomposer | None = None, naming: Naming | None = None
) -> Evaluate[FrameResults]:
    """Make the function that evaluates positions of all atoms and keeps the energies as columns.

    decomposer : to which they are added; naming : of the columns, by default ours
    """
    named = naming or Naming(binding.names)

    def evaluate(positions: Positions, progress: Progress | None) -> FrameResults:
        energies = binding._added(decomposer, binding.parts.of_complex(positions), progress, "record")
        return FrameResults(named.columns(energies.systems()), energies.errors)

    return evaluate


def binding_settings(binding: Binding) -> dict[str, object]:
    """Return the options of a plan that decide on its results."""
    parts = binding.parts
    return {
        "quantity": binding.quantity,
        "terms_of_systems": list(binding.names),
        "options": asdict(binding.options),
        **({} if binding.pb is None else {"pb": asdict(binding.pb)}),
        "parts_sha256": sha256_of([parts.complex, parts.receptor, parts.ligand]),
    }


def binding_trajectory(
    binding: Binding, trajectory: Trajectory | Paths, frames: FrameWords = None, select: Selection | None = None,
    topology: str | PathLike[str] | None = None, image: Image = "auto",
) -> Trajectory:  # fmt: skip
    """A Trajectory of all the atoms that the plan was given, in which the complex is put beside its receptor.

    Raises InputError where one is of others.
    """
    over = opened(binding.given, trajectory, frames, select, topology, image)
    parts = binding.parts
    return over.of(FrameContract(binding.given, image, parts.complex, parts.complex[parts.receptor]))


def energies_over(
    binding: Binding, trajectory: Trajectory | Paths, *, frames: FrameWords = None, select: Selection | None = None,
    topology: str | PathLike[str] | None = None, output: str | PathLike[str] | None = None, resume: bool = False,
    progress: Progress | None = None, settings: Settings | None = None, stream: ResultsOver = results_over,
    naming: Naming | None = None, image: Image = "auto",
) -> BindingEnergies:  # fmt: skip
    """Compute as Binding.over.

    settings : of the output, in place of the plan's; stream : in place of `results_over`; naming : of the output's
        columns, by default ours
    """
    output = None if output is None else file_path(output, "output")
    flag("resume", resume)
    callback("progress", progress)
    over = binding_trajectory(binding, trajectory, frames, select, topology, image)
    if settings is None:
        settings = settings_of_frames(binding, over, binding_settings(binding)) if output is not None else {}
    tell = None if progress is None else lambda done: progress(done / len(over))
    decomposer = binding._decomposer()
    if resume and decomposer is not None:
        raise InputError("a decomposition is of all frames of one run; leave out resume, or idecomp")
    named = naming or Naming(binding.names)
    evaluate = evaluate_binding_with(binding, decomposer, named)
    parts = list(recorded(over, evaluate, output=output, resume=resume, settings=settings, tell=tell, over=stream))
    results = joined([part.results for part in parts])
    numbers = np.concatenate([np.array(part.frames, np.int64) for part in parts])
    energies = BindingEnergies.of(named.systems(results.columns), numbers, results.errors)
    decomposition = None if decomposer is None else decomposer.result()
    return replace(energies, decomposition=decomposition, n_imaged=results.n_imaged)
