"""Energies of all frames of a trajectory, with any plan."""

from __future__ import annotations

from os import PathLike

from ..atoms import Atoms
from ..common.arguments import callback, checked, file_path, flag
from ..common.modules import takes_structures
from ..common.variant import Progress
from ..contract import Image
from ..trajectories.energies import AnyPlan, FrameEnergies, energies_over, trajectory_for
from ..trajectories.frames import FrameWords
from ..trajectories.reading import Paths, Trajectory
from ..trajectories.selection import Selection
from .plan import Energy


@checked
@takes_structures("atoms")
def energy_over(
    atoms: Atoms | AnyPlan,
    trajectory: Trajectory | Paths,
    *,
    frames: FrameWords = None,
    select: Selection | None = None,
    topology: str | PathLike[str] | None = None,
    image: Image = "auto",
    output: str | PathLike[str] | None = None,
    resume: bool = False,
    progress: Progress | None = None,
) -> FrameEnergies:
    """Compute the energies of all frames of a trajectory, which is read in pieces while the device computes.

    Memory is needed for a few pieces, and 8 bytes per frame and term for the result.

    atoms : a plan, such as Energy(atoms, gradient=False), or Atoms, for which this plan is made. A Nonbond with a list
        from pairs_within or pairs_split uses a new list for each frame, with the same cutoffs
    trajectory : a Trajectory, or paths or frames in memory for `pele_ocl.trajectory`, with its `frames`, `select`,
        `topology` and `image`
    output : .h5, .csv or .jsonl file to which results are appended
    resume : True to continue the `output` of an interrupted run with the same settings
    progress : called with the fraction of the frames done, 0 to 1

    A failed frame, such as one with broken bonds, has NaN in its terms and the reason in `errors`. Raises FormatError
    and InputError as `trajectory` does, and FormatError for an output with other settings or one that is also an input.

    >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
    >>> found = pele_ocl.energy_over(atoms, np.stack([atoms.positions, atoms.positions + 1.0]))
    >>> found.frames.tolist(), found.total.round(1).tolist()
    ([0, 1], [-135.5, -135.5])
    """
    plan = Energy(atoms, gradient=False) if isinstance(atoms, Atoms) else atoms
    output = None if output is None else file_path(output, "output")
    flag("resume", resume)
    callback("progress", progress)
    return energies_over(
        plan, trajectory_for(plan, trajectory, frames, select, topology, image), output=output, resume=resume,
        progress=progress,
    )  # fmt: skip
