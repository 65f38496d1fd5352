"""Energies that a command's options ask for: of a structure, its models, poses, or the frames of a trajectory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from ...atoms import Atoms, Floats
from ...atoms.selection import Selection
from ...binding import Binding, BindingEnergies
from ...binding.energies import PARTS
from ...binding.naming import Naming
from ...binding.parts import solute
from ...binding.plan import binding_settings, binding_trajectory, energies_over, evaluate_binding_with
from ...binding.poses import evaluate_poses, read_poses
from ...binding.separate import SeparateEnergies, separate_energies
from ...common.errors import FormatError, InputError
from ...common.inputfile import read_file
from ...formats import require_table_suffix, write_table
from ...jobs.reading import MoleculeRead
from ...trajectories import Trajectory
from ...trajectories.fingerprints import settings_of_frames
from ...trajectories.recording import require_record_suffix
from ..cluster import cluster_options_of
from ..frames import FrameOptions, FramesSpec, OpenedFrames, noted, shared_frames
from ..frames.run import FrameLine
from ..options import ReadAtoms
from ..progress import ProgressLine
from ..report import provenance, software
from ..tables import UNIT
from .options import OF_AMBER, BindingOptions


@dataclass(frozen=True)
class SoluteFrame:
    """First frame, of all atoms of a topology, or without its water and what is stripped.

    trajectory : options of the frames; strip : of BindingOptions; like : whose ions are stripped
    """

    trajectory: FrameOptions
    strip: str | None
    like: str | None

    @property
    def paths(self) -> tuple[Path, ...]:
        return self.trajectory.paths

    def first_positions(self, atoms: Atoms, selection: Selection | None) -> tuple[Floats, str]:
        """Positions (n, 3) A of the atoms, 0 where the frame lacks them, and no sentence: the plan has one."""
        try:
            return self.trajectory.first_positions(atoms, selection)
        except FormatError:
            chosen = np.arange(0) if self.trajectory.topology else np.flatnonzero(solute(atoms, self.strip, self.like))
            if selection is not None or not 0 < len(chosen) < len(atoms):
                raise
            try:
                options = self.trajectory
                frames = Trajectory(options.paths, atoms[chosen], options.words, image=options.imaging)
            except (FormatError, InputError):
                frames = None
            if frames is None or frames.n_file_atoms != len(chosen):
                raise
        positions = np.zeros((len(atoms), 3))
        positions[chosen] = frames.positions(frames.frames[:1])[0]
        frames.close()
        return positions, ""


def check_output(output: Path | None, trajectory: FrameOptions, wanted: BindingOptions) -> None:
    """Raise FormatError for a file that the energies of frames could not be written to."""
    if output is not None:
        (require_record_suffix if trajectory.paths and not wanted.is_separate else require_table_suffix)(output)


def energies_for(
    binding: Binding, molecule: MoleculeRead, trajectory: FrameOptions, wanted: BindingOptions, output: Path | None,
    like: str | None, elsewhere: Callable[[], OpenedFrames],
) -> BindingEnergies:  # fmt: skip
    """Compute the energies of all frames, and write them to `output` if it is given.

    elsewhere : opens the frames in another process
    """
    if trajectory.paths:
        opened = opened_frames(binding, molecule, trajectory, like)
        _tell(binding, opened.frames)
        spec = FramesSpec(elsewhere, opened)
        return _of_trajectory(binding, spec, output, trajectory.resume, like)
    with ProgressLine("Binding energy") as progress:
        if wanted.poses is not None:
            energies = evaluate_poses(binding, read_poses(wanted.poses, binding.plans["ligand"].atoms), progress)
            numbers = np.arange(len(energies), dtype=np.int64)
        elif molecule.conformations is not None:
            energies = binding.evaluate_batch(molecule.conformations, progress, errors="record")
            energies = replace(energies, errors={**energies.errors, **molecule.failed})
            numbers = np.array(molecule.numbers, np.int64)
        else:
            energies = binding.evaluate_batch(binding.given.positions[np.newaxis])
            numbers = np.zeros(1, np.int64)
    energies = replace(energies, frames=numbers)
    if output is not None:
        _save(output, molecule, energies, _naming(binding, like))
    return energies


def _tell(binding: Binding, *trajectories: Trajectory) -> None:
    """Tell the notes about frames, and keep them and the findings for the report."""
    for frames in trajectories:
        binding.notes = (*binding.notes, *noted(frames).notes)
        binding.findings = (*binding.findings, *frames.findings)


def conformations_for(binding: Binding, molecule: MoleculeRead, trajectory: FrameOptions) -> Trajectory | Floats | None:
    """All frames or models, as conformations of the atoms that were given; None for the structure alone."""
    if trajectory.paths:
        return binding_trajectory(binding, trajectory.opened(binding.given, molecule.chosen))
    return molecule.conformations


def separate_for(
    binding: Binding, molecule: MoleculeRead, trajectory: FrameOptions, wanted: BindingOptions, read_atoms: ReadAtoms,
    output: Path | None, like: str | None,
) -> SeparateEnergies:  # fmt: skip
    """Compute the energies of trajectories of all three; a part without one is cut from the complex's frames.

    output : a table of all frames
    """
    structures = {"receptor": wanted.receptor_structure, "ligand": wanted.ligand_structure}
    paths = {"receptor": wanted.receptor_trajectory, "ligand": wanted.ligand_trajectory}
    atoms, trajectories = dict[str, Atoms](), {"complex": _of_complex(binding, "complex", molecule, trajectory)}
    for name in PARTS[1:]:
        structure = structures[name]
        if not paths[name]:
            trajectories[name] = _of_complex(binding, name, molecule, trajectory)
        elif structure is None:
            own = binding.plans[name].atoms
            trajectories[name] = _of_part(name, paths[name], own, np.arange(len(own)), trajectory)
        else:
            first = SoluteFrame(FrameOptions(paths[name], trajectory.words, None, None), wanted.strip, like)
            whole = read_atoms.of_frames(read_file(structure), first)
            chosen = _chosen_of(whole, len(binding.plans[name].atoms), name, structure, wanted, like)
            atoms[name] = whole[chosen]
            trajectories[name] = _of_part(name, paths[name], whole, chosen, trajectory)
    _tell(binding, *trajectories.values())
    with ProgressLine("Binding energy") as progress:
        energies = separate_energies(binding, trajectories, atoms, progress)
    if output is not None:
        naming = _naming(binding, like)
        units = dict.fromkeys(naming.of(energies.systems["complex"].terms), UNIT)
        write_table(output, _rows(energies, naming), units, provenance(molecule))
    return energies


def _of_complex(binding: Binding, name: str, molecule: MoleculeRead, trajectory: FrameOptions) -> Trajectory:
    """Frames of a system, cut from the complex's, which have all atoms of the structure or the complex's alone."""
    own = np.arange(len(binding.atoms)) if name == "complex" else getattr(binding.parts, name)
    whole = binding.given if trajectory.topology is None and molecule.chosen is None else None
    chosen = trajectory.part(molecule.taken, binding.parts.complex[own])
    try:
        frames = Trajectory(
            trajectory.paths, whole, trajectory.words, chosen, trajectory.topology, image=trajectory.imaging
        )
        if whole is None or frames.n_file_atoms == len(whole):
            return frames
    except (FormatError, InputError):
        if len(binding.atoms) == binding.n_atoms or trajectory.topology is not None:
            raise
    picked = None if name == "complex" else own  # of stripped frames; others are refused
    return Trajectory(trajectory.paths, binding.atoms, trajectory.words, picked, image=trajectory.imaging)


def _chosen_of(
    whole: Atoms, n: int, name: str, path: Path, wanted: BindingOptions, like: str | None
) -> NDArray[np.intp]:  # fmt: skip
    """Atoms of a part in a structure of its own: all, or without water and what is stripped.

    n : atoms of the part in the complex

    Raises InputError where there are as many neither way.
    """
    chosen = np.arange(len(whole))
    if len(whole) != n:
        chosen = np.flatnonzero(solute(whole, wanted.strip, like))
    if len(chosen) != n:
        raise InputError(
            f"{path}: the {name} has {len(chosen):,} atoms there without water and what is stripped, in the complex "
            f"{n:,}; they are to be the same"
        )
    return chosen


def _of_part(
    name: str, paths: Sequence[Path], whole: Atoms, chosen: NDArray[np.intp], trajectory: FrameOptions
) -> Trajectory:  # fmt: skip
    """Frames of a part, which are of all atoms of its structure, or of the chosen ones alone."""
    try:
        picked = None if len(chosen) == len(whole) else chosen
        frames = Trajectory(paths, whole, trajectory.words, picked, image=trajectory.imaging)
        if frames.n_file_atoms == len(whole):
            return frames
    except (FormatError, InputError) as error:
        if len(chosen) == len(whole):
            if isinstance(error, InputError):  # of as many atoms, which are others
                raise
            what = str(error).split(";")[0]
            raise type(error)(
                f"{what}; frames with further atoms need --{name}-structure, a topology of all of them"
            ) from None
    return Trajectory(paths, whole[chosen], trajectory.words, image=trajectory.imaging)


def is_stripped(binding: Binding, molecule: MoleculeRead, trajectory: FrameOptions) -> bool:
    """True if the frames are of the complex alone, without atoms of the structure that are in neither part."""
    if len(binding.atoms) == binding.n_atoms or trajectory.topology is not None:
        return False
    try:
        trajectory.opened(binding.given, molecule.chosen)
    except (FormatError, InputError):
        try:
            return Trajectory(trajectory.paths, binding.atoms, trajectory.words).n_file_atoms == len(binding.atoms)
        except (FormatError, InputError):
            return False
    return False


def _rows(energies: SeparateEnergies, naming: Naming) -> dict[str, NDArray[np.generic]]:
    """A row for each frame of each of the three, which may have different numbers of frames."""
    columns = [naming.of(of.terms) for of in energies.systems.values()]
    errors = [of.errors.get(int(k), "") for of in energies.systems.values() for k in of.frames]
    return {
        "system": np.repeat(list(energies.systems), [len(of) for of in energies.systems.values()]),
        "frame": np.concatenate([of.frames for of in energies.systems.values()]),
        **{name: np.concatenate([of[name] for of in columns]) for name in columns[0]},
        "error": np.array(errors),
    }


def _naming(binding: Binding, like: str | None) -> Naming:
    """Name the terms in files: by AMBER's names with the constants of its programs, as on the screen."""
    return Naming(binding.names, like in OF_AMBER)


def opened_frames(binding: Binding, molecule: MoleculeRead, trajectory: FrameOptions, like: str | None) -> OpenedFrames:
    """Open the frames of a complex, and the way to evaluate them."""
    naming = _naming(binding, like)
    settings = {"software": software(), **binding_settings(binding), **naming.settings}
    frames = binding_trajectory(binding, trajectory.opened(binding.given, molecule.chosen))
    return OpenedFrames(
        frames, evaluate_binding_with(binding, naming=naming), {"record": settings_of_frames(binding, frames, settings)}
    )  # fmt: skip


def _of_trajectory(
    binding: Binding, spec: FramesSpec, output: Path | None, resume: bool, like: str | None
) -> BindingEnergies:
    if binding.idecomp is not None:
        cluster_options_of(click.get_current_context()).refuse("a decomposition is summed up in one process")
    naming = _naming(binding, like)
    with shared_frames(spec, output, resume) as shared:
        with FrameLine("Binding energy", len(shared.frames)) as progress:
            return energies_over(
                binding, shared.frames, output=shared.output, resume=resume, progress=progress, settings=shared.record,
                stream=shared.stream, naming=naming,
            )  # fmt: skip


def _save(output: Path, molecule: MoleculeRead, energies: BindingEnergies, naming: Naming) -> None:
    """A row for each frame: the energies of complex, parts and difference."""
    columns: Mapping[str, object] = naming.columns(energies.systems())
    assert energies.frames is not None
    errors = np.array([energies.errors.get(k, "") for k in range(len(energies))])
    units = dict.fromkeys(columns, UNIT)
    rmsd = {} if energies.rmsd is None else {"rmsd": energies.rmsd}
    pose = {} if energies.rmsd is None else {"pose": energies.frames + 1}
    table = {"frame": energies.frames, **pose, **columns, **rmsd, "error": errors}
    write_table(output, table, units | dict.fromkeys(rmsd, "angstrom"), provenance(molecule))  # type: ignore[arg-type]
