"""Energies that a command's options ask for: of a structure, its models, poses, or the frames of a trajectory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from ...atoms import Atoms, Floats
from ...binding import Binding, BindingEnergies
from ...binding.frames import binding_settings, energies_over, evaluate_with, trajectory_for
from ...binding.naming import Naming
from ...binding.poses import evaluate_poses, read_poses
from ...binding.separate import SeparateEnergies, separate_energies
from ...formats import require_table_suffix, write_table
from ...inputfile import read_file
from ...jobs.reading import Molecule
from ...trajectories import Trajectory
from ...trajectories.fingerprints import settings_of
from ...trajectories.recording import require_record_suffix
from ..cluster import cluster_options_of
from ..frames import FrameOptions, FramesSpec, OpenedFrames, shared_frames
from ..frames.run import FrameLine
from ..options import ReadAtoms
from ..progress import ProgressLine
from ..report import provenance, software
from ..tables import UNIT
from .options import OF_AMBER, BindingOptions


def check_output(output: Path | None, trajectory: FrameOptions, wanted: BindingOptions) -> None:
    """Raise FormatError for a file that the energies of frames could not be written to."""
    if output is not None:
        (require_record_suffix if trajectory.paths and not wanted.is_separate else require_table_suffix)(output)


def energies_for(
    binding: Binding, molecule: Molecule, trajectory: FrameOptions, wanted: BindingOptions, output: Path | None,
    like: str | None, elsewhere: Callable[[], OpenedFrames],
) -> BindingEnergies:  # fmt: skip
    """Compute the energies of all frames, and write them to `output` if it is given.

    elsewhere : opens the frames in another process
    """
    if trajectory.paths:
        spec = FramesSpec(elsewhere, opened_frames(binding, molecule, trajectory, like))
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


def conformations_for(binding: Binding, molecule: Molecule, trajectory: FrameOptions) -> Trajectory | Floats | None:
    """All frames or models, as conformations of the atoms that were given; None for the structure alone."""
    if trajectory.paths:
        return trajectory_for(binding, trajectory.opened(binding.given, molecule.chosen))
    return molecule.conformations


def separate_for(
    binding: Binding, molecule: Molecule, trajectory: FrameOptions, wanted: BindingOptions, read_atoms: ReadAtoms,
    output: Path | None, like: str | None,
) -> SeparateEnergies:  # fmt: skip
    """Compute the energies of trajectories of all three; a part without one takes the frames of the complex.

    output : a table of all frames
    """
    structures = {"receptor": wanted.receptor_structure, "ligand": wanted.ligand_structure}
    paths = {"receptor": wanted.receptor_trajectory, "ligand": wanted.ligand_trajectory}
    atoms: dict[str, Atoms] = {
        name: read_atoms.of_frames(read_file(path), FrameOptions(paths[name], trajectory.words, None, None))
        for name, path in structures.items() if path is not None
    }  # fmt: skip
    indices = {"complex": binding.parts.complex}
    indices |= {name: binding.parts.complex[getattr(binding.parts, name)] for name in paths}
    taken = trajectory.indices(binding.n_atoms, molecule.chosen)
    # Frames of an .mdcrd file do not tell how many atoms they have: a structure of all of them does.
    whole = binding.given if trajectory.topology is None and molecule.chosen is None else None
    topology = trajectory.topology or (None if molecule.chosen is None else molecule.source.path)
    trajectories: dict[str, Trajectory] = {}
    for name, own in indices.items():
        if files := paths.get(name):
            own_atoms = atoms.get(name, binding.plans[name].atoms)
            trajectories[name] = Trajectory(files, own_atoms, trajectory.words, image=trajectory.imaging)
        else:
            trajectories[name] = Trajectory(
                trajectory.paths, whole, trajectory.words, taken[own], topology, image=trajectory.imaging
            )
    with ProgressLine("Binding energy") as progress:
        energies = separate_energies(binding, trajectories, atoms, progress)
    if output is not None:
        naming = _naming(binding, like)
        units = dict.fromkeys(naming.of(energies.systems["complex"].terms), UNIT)
        write_table(output, _rows(energies, naming), units, provenance(molecule.source))
    return energies


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


def opened_frames(binding: Binding, molecule: Molecule, trajectory: FrameOptions, like: str | None) -> OpenedFrames:
    """Open the frames of a complex, and the way to evaluate them."""
    naming = _naming(binding, like)
    settings = {"software": software(), **binding_settings(binding), **naming.settings}
    frames = trajectory_for(binding, trajectory.opened(binding.given, molecule.chosen))
    return OpenedFrames(
        frames, evaluate_with(binding, naming=naming), {"record": settings_of(binding, frames, settings)}
    )  # fmt: skip


def _of_trajectory(
    binding: Binding, spec: FramesSpec, output: Path | None, resume: bool, like: str | None
) -> BindingEnergies:
    if binding._decomposer() is not None:
        cluster_options_of(click.get_current_context()).refuse("a decomposition is summed up in one process")
    naming = _naming(binding, like)
    with shared_frames(spec, output, resume) as shared:
        with FrameLine("Binding energy", len(shared.frames)) as progress:
            return energies_over(
                binding, shared.frames, output=shared.output, resume=resume, progress=progress, settings=shared.record,
                stream=shared.stream, naming=naming,
            )  # fmt: skip


def _save(output: Path, molecule: Molecule, energies: BindingEnergies, naming: Naming) -> None:
    """A row for each frame: the energies of complex, parts and difference."""
    columns: Mapping[str, object] = naming.columns(energies.systems())
    assert energies.frames is not None
    errors = np.array([energies.errors.get(k, "") for k in range(len(energies))])
    table = {"frame": energies.frames, **columns, "error": errors}
    write_table(output, table, dict.fromkeys(columns, UNIT), provenance(molecule.source))  # type: ignore[arg-type]
