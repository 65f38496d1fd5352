"""Binding energies over the frames of a trajectory, piece by piece."""

from __future__ import annotations

from dataclasses import asdict, replace
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np

from ..common.arguments import callback, file_path, flag
from ..common.errors import InputError
from ..common.variant import Progress
from ..contract import FrameContract, Image
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
from .energies import BindingEnergies
from .naming import Naming

if TYPE_CHECKING:
    from .plan import Binding


def evaluate_binding_with(
    binding: Binding, decomposer: Decomposer | None = None, naming: Naming | None = None
) -> Evaluate[FrameResults]:
    """Make the function that evaluates positions of all atoms and keeps the energies as columns.

    decomposer : to which they are added; naming : of the columns, by default ours
    """
    named = naming or Naming(binding.names)

    def evaluate(positions: Positions, progress: Progress | None) -> FrameResults:
        energies = binding._added(decomposer, binding._of_complex(positions), progress, "record")
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
