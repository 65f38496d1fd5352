"""Binding energies for a structure, its models, poses, or the frames of trajectories."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats
from ..atoms.corresponding import OTHER_ATOMS
from ..atoms.selection import Selection
from ..common.errors import FormatError, InputError
from ..common.inputfile import read_file
from ..common.settled import rewrite
from ..common.variant import Progress
from ..jobs.shards import Run
from ..jobs.texts import software
from ..reading import MoleculeRead, Reading
from ..trajectories import Trajectory
from ..trajectories.fingerprints import settings_of_frames
from ..trajectories.given import FrameOptions, noted
from ..trajectories.recording import Settings
from ..trajectories.sharing import FramesSpec, OpenedFrames, shared_frames
from ..trajectories.working import CountsFrames
from .energies import PARTS, BindingEnergies
from .naming import Naming
from .parts import Chosen, solute
from .plan import Binding, binding_settings, binding_trajectory, energies_over, evaluate_binding_with
from .poses import evaluate_poses, read_poses
from .separate import SeparateEnergies, separate_energies


@dataclass(frozen=True)
class PartFrames:
    """Separate trajectories of a part. structure : its structure, None for the part's atoms in the complex"""

    paths: tuple[Path, ...] = ()
    structure: Path | None = None


@dataclass(frozen=True, eq=False)
class SoluteFrame:
    """First frame of a trajectory of all atoms, or of one without water and stripped atoms.

    choice : options for the frames; strip, like : atoms to strip, as in Binding
    """

    choice: FrameOptions
    strip: Chosen | None
    like: str | None

    @property
    def paths(self) -> tuple[object, ...]:
        return self.choice.paths

    def first_positions(self, atoms: Atoms, selection: Selection | None) -> tuple[Floats, str]:
        """Return the positions of the atoms, (n, 3) A, 0 for atoms that the frame lacks, and an empty message."""
        choice = self.choice
        try:
            return choice.first_positions(atoms, selection)
        except FormatError:
            chosen = np.arange(0) if choice.topology else np.flatnonzero(solute(atoms, self.strip, self.like))
            if selection is not None or not 0 < len(chosen) < len(atoms):
                raise
            try:
                frames = Trajectory(choice.paths, atoms[chosen], choice.words, image=choice.imaging)
            except (FormatError, InputError):
                frames = None
            if frames is None or frames.n_file_atoms != len(chosen):
                raise
        positions = np.zeros((len(atoms), 3))
        positions[chosen] = frames.positions(frames.frames[:1])[0]
        frames.close()
        return positions, ""


@dataclass(frozen=True, eq=False)
class FramesOfComplex:
    """Energies of the frames of a complex.

    energies : energies of all frames; record : settings stored in the output file; frames : the Trajectory, if any
    """

    energies: BindingEnergies
    record: Settings = field(default_factory=dict)
    frames: Trajectory | None = None


def energies_of(
    binding: Binding, molecule: MoleculeRead, choice: FrameOptions, poses: Path | None, naming: Naming,
    elsewhere: Callable[[], OpenedFrames], run: Run,
) -> FramesOfComplex:  # fmt: skip
    """Compute the energies of all frames, models or poses, or of the structure alone.

    naming : names of the columns of the output file; elsewhere : opens the frames in another process
    """
    if choice.paths:
        opened = opened_frames(binding, molecule, choice, naming)
        tell(binding, opened.frames)
        return _of_trajectory(binding, FramesSpec(elsewhere, opened), naming, run)
    if poses is not None:
        energies = evaluate_poses(binding, read_poses(poses, binding.plans["ligand"].atoms), run.progress)
        numbers = np.arange(len(energies), dtype=np.int64)
    elif molecule.conformations is not None:
        energies = binding.evaluate_batch(molecule.conformations, run.progress, errors="record")
        energies = replace(energies, errors={**energies.errors, **molecule.failed})
        numbers = np.array(molecule.numbers, np.int64)
    else:
        energies = binding.evaluate_batch(binding.given.positions[np.newaxis])
        numbers = np.zeros(1, np.int64)
    return FramesOfComplex(replace(energies, frames=numbers))


def tell(binding: Binding, *trajectories: Trajectory) -> None:
    """Report the notes about frames, and store notes and findings for the report."""
    for frames in trajectories:
        notes = (*binding.notes, *noted(frames).notes)
        rewrite(binding, notes=notes, findings=(*binding.findings, *frames.findings))


def opened_frames(binding: Binding, molecule: MoleculeRead, choice: FrameOptions, naming: Naming) -> OpenedFrames:
    """Open the frames of a complex for evaluation."""
    settings = {"software": software(), **binding_settings(binding), **naming.settings}
    frames = binding_trajectory(binding, choice.opened(binding.given, molecule.chosen))
    return OpenedFrames(
        frames, evaluate_binding_with(binding, naming=naming), {"record": settings_of_frames(binding, frames, settings)}
    )  # fmt: skip


def _of_trajectory(binding: Binding, spec: FramesSpec, naming: Naming, run: Run) -> FramesOfComplex:
    with shared_frames(spec, run.output, run.resume, run.place, run.shard) as shared:
        if isinstance(run.progress, CountsFrames):
            run.progress.begin(len(shared.frames))
        energies = energies_over(
            binding, shared.frames, output=shared.output, resume=run.resume, progress=run.progress,
            settings=shared.record, stream=shared.stream, naming=naming,
        )  # fmt: skip
        return FramesOfComplex(energies, shared.record, shared.frames)


def conformations_of(binding: Binding, molecule: MoleculeRead, choice: FrameOptions) -> Trajectory | Floats | None:
    """Return all frames or models as conformations of the given atoms; None for a single structure."""
    if choice.paths:
        return binding_trajectory(binding, choice.opened(binding.given, molecule.chosen))
    return molecule.conformations


def separate_energies_of(
    binding: Binding, molecule: MoleculeRead, choice: FrameOptions, parts: Mapping[str, PartFrames], reading: Reading,
    strip: Chosen | None, like: str | None, progress: Progress | None,
) -> SeparateEnergies:  # fmt: skip
    """Compute energies from separate trajectories; parts without one are extracted from the complex's frames.

    parts : frames of "receptor" and "ligand"; reading : how their structures are read; strip, like : as in SoluteFrame
    """
    atoms, trajectories = dict[str, Atoms](), {"complex": _of_complex(binding, "complex", molecule, choice)}
    for name in PARTS[1:]:
        part = parts[name]
        own = FrameOptions(part.paths, choice.words, None, None, image=choice.image)
        if not part.paths:
            trajectories[name] = _of_complex(binding, name, molecule, choice)
        elif part.structure is None:
            whole = binding.plans[name].atoms
            trajectories[name] = _of_part(name, own, whole, np.arange(len(whole)))
        else:
            whole = reading.of_frames(read_file(part.structure), SoluteFrame(own, strip, like))
            chosen = _chosen_of(whole, len(binding.plans[name].atoms), name, part.structure, strip, like)
            atoms[name] = whole[chosen]
            trajectories[name] = _of_part(name, own, whole, chosen)
    tell(binding, *trajectories.values())
    return separate_energies(binding, trajectories, atoms, progress)


def _of_complex(binding: Binding, name: str, molecule: MoleculeRead, choice: FrameOptions) -> Trajectory:
    """Return the frames of a system extracted from those of the complex.

    The frames may have all atoms of the structure, or only those of the complex.
    """
    own = np.arange(len(binding.atoms)) if name == "complex" else getattr(binding.parts, name)
    whole = binding.given if choice.topology is None and molecule.chosen is None else None
    chosen = choice.part(molecule.taken, binding.parts.complex[own])
    try:
        frames = Trajectory(choice.paths, whole, choice.words, chosen, choice.topology, image=choice.imaging)
        if whole is None or frames.n_file_atoms == len(whole):
            return frames
    except (FormatError, InputError):
        if len(binding.atoms) == binding.n_atoms or choice.topology is not None:
            raise
    picked = None if name == "complex" else own  # frames without stripped atoms
    return Trajectory(choice.paths, binding.atoms, choice.words, picked, image=choice.imaging)


def _chosen_of(
    whole: Atoms, n: int, name: str, path: Path, strip: Chosen | None, like: str | None
) -> NDArray[np.intp]:  # fmt: skip
    """Return the atoms of a part in its own structure: all, or those without water and stripped atoms.

    n : number of the part's atoms in the complex

    Raises InputError if the number of atoms differs in both cases.
    """
    chosen = np.arange(len(whole))
    if len(whole) != n:
        chosen = np.flatnonzero(solute(whole, strip, like))
    if len(chosen) != n:
        raise InputError(
            f"{path}: the {name} has {len(chosen):,} atoms there without water and what is stripped, in the complex "
            f"{n:,}; they are to be the same"
        )
    return chosen


def _of_part(name: str, choice: FrameOptions, whole: Atoms, chosen: NDArray[np.intp]) -> Trajectory:
    """Return the frames of a part, with all atoms of its structure or only the chosen ones."""
    try:
        picked = None if len(chosen) == len(whole) else chosen
        frames = Trajectory(choice.paths, whole, choice.words, picked, image=choice.imaging)
        if frames.n_file_atoms == len(whole):
            return frames
    except (FormatError, InputError) as error:
        if len(chosen) == len(whole):
            if isinstance(error, InputError) or error.code != OTHER_ATOMS:  # the number of atoms is not the problem
                raise
            what = error.fields["what"]
            raise FormatError(
                f"{what}; frames with further atoms need `{name}_structure`, a topology of all of them"
            ) from None
    return Trajectory(choice.paths, whole[chosen], choice.words, image=choice.imaging)


def is_stripped(binding: Binding, molecule: MoleculeRead, choice: FrameOptions) -> bool:
    """Return whether the frames contain only the complex, without the other atoms of the structure."""
    if len(binding.atoms) == binding.n_atoms or choice.topology is not None:
        return False
    try:
        choice.opened(binding.given, molecule.chosen)
    except (FormatError, InputError):
        try:
            return Trajectory(choice.paths, binding.atoms, choice.words).n_file_atoms == len(binding.atoms)
        except (FormatError, InputError):
            return False
    return False
