"""Binding energy of a complex, prepared once and evaluated for many conformations or frames."""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import asdict, replace
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ..atoms import Atoms
from ..atoms.lcpo import lcpo_notes
from ..atoms.tan_luo import tan_luo_notes
from ..common.arguments import callback, file_path, flag, instance, numbers
from ..common.errors import InputError
from ..common.hashing import sha256_of
from ..common.settled import Settled
from ..common.variant import Progress
from ..contract import Finding, FrameContract, Image
from ..gb_models.solvent_model import SolventModel
from ..plan.conformations import as_conformations
from ..trajectories import Trajectory
from ..trajectories.energies import recorded
from ..trajectories.files import Positions
from ..trajectories.fingerprints import settings_of_frames
from ..trajectories.frames import FrameWords
from ..trajectories.reading import Paths, opened
from ..trajectories.recording import Settings, joined
from ..trajectories.selection import Selection
from ..trajectories.streaming import Evaluate, FrameResults, ResultsOver, results_over
from .decomposing import Decomposer
from .energies import BindingEnergies
from .naming import Naming
from .parts import Chosen, Parts
from .poisson_boltzmann import PBEnergy, PBSolvent, default_model
from .systems import Systems

if TYPE_CHECKING:
    from ..opencl.device import Device


class Binding(Settled):
    """Binding energy E(complex) - E(receptor) - E(ligand) at the positions of the complex, by MM/GBSA or MM/PBSA.

    This is the single-trajectory method (docs/theory/binding.md): Born radii are computed for each part, nothing is
    relaxed, and bonded terms within a part cancel. For separate trajectories of the parts use `pele_ocl.binding`.

    atoms : atoms of the complex; given : the input Atoms, which may contain further atoms
    parts : Parts, the atoms of receptor and ligand; notes : messages about their choice
    findings : findings about frames
    plans : Energy of "complex", "receptor" and "ligand", by name
    systems : Systems, which evaluates these plans together
    names : names of the terms; n_atoms : number of input atoms; idecomp : decomposition scheme, None without one
    model, precision, variant, device, options : those of the complex's plan; quantity : "binding"
    pb : PBSolvent, None with Generalized Born

    A pickle contains the atoms and options.

    >>> binding = pele_ocl.Binding(pele_ocl.read("data/structures/trialanine.pdb"), "resid 3")
    >>> energies = binding.evaluate()
    >>> round(float(energies.delta.total))
    -2
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
        """Prepare the plans.

        atoms : Atoms that contain the complex; atoms in neither part, such as water, are ignored
        ligand, receptor : a selection (docs/selection.md), a mask or indices; the default receptor is all atoms except
            the ligand, water and stripped atoms
        strip : atoms to exclude from both parts in addition to water, or "none"; by default the ions that the program
            `strip_like`, or else `like`, strips, which may be "mmpbsa.py", "sander" or "gmx"
        model : SolventModel; like : alternatively, the name of a program whose constants to use, as in
            SolventModel.like
        one_four, cutoff, precision, variant, device : as in `energy`
        idecomp : compute a `decomposition`, numbered as in sander: 1 and 2 per residue; 3 and 4 also per pair of
            residues. 1-4 pairs are internal with 1 and 3, otherwise van der Waals and electrostatic
        pb : PBSolvent, to solve the Poisson-Boltzmann equation instead of using Generalized Born (MM/PBSA). The parts
            use the complex's grid, or a section of it, so that grid errors cancel. The default nonpolar term is then
            LCPO; ACE is refused, since it needs Born radii

        Raises InputError for parts without atoms or with common atoms, and as `energy` does.
        """
        if model is not None and like is not None:
            raise InputError("choose one of model and like; SolventModel.like accepts changes to a program's constants")
        self._choices: dict[str, Any] = {
            "one_four": one_four,
            "cutoff": cutoff,
            "precision": precision,
            "variant": variant,
            "device": device,
        }
        # Copied, since arrays and lists may be modified by the caller.
        self._chosen: dict[str, Any] = deepcopy(
            dict(ligand=ligand, receptor=receptor, strip=strip, strip_like=strip_like or like)
        )
        self.model = SolventModel.or_default(model) if like is None else SolventModel.like(like)
        self.pb = pb
        if pb is not None:
            instance("pb", pb, PBSolvent, "a PBSolvent")
            self.model = default_model(self.model)
        atoms = self.model.choose_radii(atoms)
        self.given, self.n_atoms, self.idecomp = atoms, len(atoms), idecomp
        self.parts = Parts.of(atoms, ligand, receptor, strip, strip_like or like)
        self.notes = self.parts.notes
        self.findings: tuple[Finding, ...] = ()  # about frames
        whole = len(self.parts.complex) == len(atoms)
        self.atoms = atoms if whole else atoms[self.parts.complex]
        if self.model.surface == "lcpo" and self.model.lcpo_unknown == "carbon":
            self.notes = (*self.notes, *lcpo_notes(self.atoms, self.model.lcpo_rule))
        if pb is not None and pb.radii == "tan-luo":
            self.notes = (*self.notes, *tan_luo_notes(self.atoms))
        choices = {**self._choices, "per_atom": idecomp is not None}
        self.systems = Systems(self.atoms, self.parts, pb, self.model, choices)
        self.plans = self.systems.plans
        self.precision, self.names = precision, self.plans["complex"].names
        self.device, self.variant = self.plans["complex"].device, self.plans["complex"].variant
        self.options = self.plans["complex"].options
        if idecomp is not None:
            self._decomposer()  # raises an error if the decomposition is not supported

    def __repr__(self) -> str:
        counts = f"{len(self.parts.receptor):,} and {len(self.parts.ligand):,} atoms"
        return f"Binding({counts}, {self.variant}, {self.precision}, on {self.device})"

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        """Pickle atoms, options and the device's title; unpickling rebuilds the plans on a device of this title."""
        options = {**self._choices, "variant": self.variant, "device": self.device}
        return (
            partial(type(self), model=self.model, idecomp=self.idecomp, pb=self.pb, **self._chosen, **options),
            (self.given,),
        )

    def evaluate(self, positions: ArrayLike | None = None) -> BindingEnergies:
        """Compute the energies at positions (n, 3) A of all given atoms, by default the initial ones; shape ().

        Raises InputError for positions of another shape, and for overflowing energies.
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
        """Compute the energies of conformations (m, n, 3) A; shape (m,).

        progress, errors : as in Energy.evaluate_batch

        >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
        >>> pele_ocl.Binding(atoms, "resid 3").evaluate_batch([atoms.positions] * 2).delta.total.round().tolist()
        [-2.0, -2.0]
        """
        given = as_conformations(conformations, self.n_atoms)
        return self._of_positions(self.parts.of_complex(given), progress, errors)

    def over(
        self, trajectory: Trajectory | Paths, *, frames: FrameWords = None, select: Selection | None = None,
        topology: str | PathLike[str] | None = None, image: Image = "auto", output: str | PathLike[str] | None = None,
        resume: bool = False, progress: Progress | None = None,
    ) -> BindingEnergies:  # fmt: skip
        """Compute the energies of all frames of a trajectory, read in pieces while the device computes; shape (m,).

        Frames with a unit cell are imaged first, unless image is "none" (docs/binding.md): molecules of the complex are
        made whole and placed next to the largest molecule of the receptor.

        Parameters and errors are as in `energy_over`; the frames must contain all given atoms. Failed frames have NaN,
        and an error message in `errors`, by index among the frames.

        >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
        >>> pele_ocl.Binding(atoms, "resid 3").over(np.stack([atoms.positions] * 3)).delta.total.shape
        (3,)
        """
        return energies_over(
            self, trajectory, frames=frames, select=select, topology=topology, output=output, resume=resume,
            progress=progress, image=image,
        )  # fmt: skip

    def _of_positions(
        self, positions: Positions, progress: Progress | None = None, errors: Literal["raise", "record"] = "raise"
    ) -> BindingEnergies:
        """Compute the energies at positions (m, k, 3) of the complex, with a decomposition if requested."""
        start = time.perf_counter()
        decomposer = self._decomposer()
        found = self._added(decomposer, positions, progress, errors)
        parts = None if decomposer is None or len(found.errors) == len(found) else decomposer.result()
        return replace(found, decomposition=parts, seconds={"total": time.perf_counter() - start})

    def _decomposer(self) -> Decomposer | None:
        """Return a new Decomposer for this complex; None if no decomposition is requested."""
        return None if self.idecomp is None else Decomposer(self.plans["complex"], self.parts, self.idecomp)

    def _added(
        self, decomposer: Decomposer | None, positions: Positions, progress: Progress | None,
        errors: Literal["raise", "record"],
    ) -> BindingEnergies:  # fmt: skip
        """Compute the energies at positions (m, k, 3) of the complex, and add them to the decomposition."""
        batches = self.systems.batches(positions, progress, errors)
        if decomposer is not None:
            decomposer.add(batches, positions)
        return self.systems.joined(batches)


def binding_like(binding: Binding, atoms: Atoms, ligand: Chosen, receptor: Chosen) -> Binding:
    """Build a Binding of other atoms with the options of an existing one, without its decomposition."""
    return Binding(atoms, ligand, receptor, model=binding.model, pb=binding.pb, **binding._choices)


def evaluate_binding_with(
    binding: Binding, decomposer: Decomposer | None = None, naming: Naming | None = None
) -> Evaluate[FrameResults]:
    """Return a function that evaluates positions of all atoms and returns the energies as columns.

    decomposer : to which the energies are added; naming : names of the columns, by default those of pele-ocl
    """
    named = naming or Naming(binding.names)

    def evaluate(positions: Positions, progress: Progress | None) -> FrameResults:
        energies = binding._added(decomposer, binding.parts.of_complex(positions), progress, "record")
        return FrameResults(named.columns(energies.systems()), energies.errors)

    return evaluate


def binding_settings(binding: Binding) -> dict[str, object]:
    """Return the options of a plan that affect its results."""
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
    """Return a Trajectory of all given atoms, with the ligand imaged next to its receptor.

    Raises InputError if a trajectory has other atoms.
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
    """Implement Binding.over.

    settings : settings of the output file, by default those of the plan; stream : replacement for `results_over`;
        naming : names of the output's columns, by default those of pele-ocl
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
        raise InputError("a decomposition needs all frames in one run; leave out resume, or idecomp")
    named = naming or Naming(binding.names)
    evaluate = evaluate_binding_with(binding, decomposer, named)
    parts = list(recorded(over, evaluate, output=output, resume=resume, settings=settings, tell=tell, over=stream))
    results = joined([part.results for part in parts])
    numbers = np.concatenate([np.array(part.frames, np.int64) for part in parts])
    energies = BindingEnergies.of(named.systems(results.columns), numbers, results.errors)
    decomposition = None if decomposer is None else decomposer.result()
    return replace(energies, decomposition=decomposition, n_imaged=results.n_imaged, notes=over.notes)


def grid_errors(binding: Binding, energies: BindingEnergies | None = None) -> dict[str, float]:
    """Compute how Poisson-Boltzmann energies change on a grid with twice the spacing, by system, kcal/mol.

    With the surfaces "edges" and "smol" and spacings up to 0.5 A this is an upper estimate of the grid error of each
    system; otherwise three times the change is, as in PBErrors. In "delta" most of the error cancels, and the change is
    similar to the remaining error.

    energies : result of `Binding.evaluate`, if it was computed already

    Raises InputError for a plan with Generalized Born.
    """
    whole = binding.plans["complex"]
    if not isinstance(whole, PBEnergy):
        raise InputError("Generalized Born uses no grid; create the Binding with pb=PBSolvent()")
    fine = binding.evaluate() if energies is None else energies
    systems = binding.systems
    grids = systems.grids(systems.positions(whole.atoms.positions[None]))
    coarse = {
        name: plan.energy_on_coarse_grid(grids[name][0])
        for name, plan in binding.plans.items()
        if isinstance(plan, PBEnergy)
    }
    coarse["delta"] = coarse["complex"] - coarse["receptor"] - coarse["ligand"]
    return {name: abs(float(terms.pb) - coarse[name]) for name, terms in fine.systems().items()}
