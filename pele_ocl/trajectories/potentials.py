"""Potential at chosen atoms in all frames of a trajectory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats, require_atoms
from ..common.arguments import callback
from ..common.variant import Progress
from ..contract import Image
from ..potmap.frames import AtomPotentials
from ..potmap.options import MapOptions
from .frames import FrameWords
from .reading import Paths, Trajectory, opened
from .recording.recorder import numbers_of
from .selection import Selection, described_atoms, selected_atoms
from .streaming import ahead


@dataclass(frozen=True, eq=False, repr=False)
class FramePotentials:
    """Potential at atoms, of all charges but the atom's own, in frames.

    frames : (m,) their numbers, from 0 across all files; atoms : (k,) indices in the molecule
    values : (m, k) in `unit`; NaN where a frame failed
    errors : why frames failed, by their number; device : where they were computed
    notes : sentences about the frames, of the Trajectory
    """

    frames: NDArray[np.int64]
    atoms: NDArray[np.intp]
    values: Floats
    unit: str
    errors: Mapping[int, str]
    device: str
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"FramePotentials({len(self.frames):,} frames of {len(self.atoms):,} atoms, {self.unit})"


def potentials_over(
    atoms: Atoms,
    trajectory: Trajectory | Paths,
    at: Selection = "all",
    *,
    frames: FrameWords = None,
    select: Selection | None = None,
    topology: str | PathLike[str] | None = None,
    image: Image = "auto",
    progress: Progress | None = None,
    **options: Any,
) -> FramePotentials:
    """Compute the potential at chosen atoms in each frame, of all charges of the molecule but the atom's own.

    Atoms bonded to an atom count as all others do, so neighbours make up most of a value. Compare values of one atom
    over time, or of one kind of atom.

    at : the atoms, as `pele_ocl.trajectory` selects them
    trajectory, frames, select, topology, image : as in `potmap_over`
    progress : called with the share of the frames done
    options : of `potmap`, with the methods direct and cutoff, but `field` and `progress`

    Memory is 8 bytes a value, and a few pieces of frames. A frame that fails has NaN. Raises FormatError and InputError
    as `trajectory` and `potmap` do.
    """
    require_atoms(atoms)
    callback("progress", progress)
    over = opened(atoms, trajectory, frames, select, topology, image)
    chosen = selected_atoms(at, len(atoms), described_atoms(atoms))
    plan = AtomPotentials(atoms, chosen, MapOptions(**options))
    values, errors, done = np.empty((len(over), len(chosen))), dict[int, str](), 0
    for piece in ahead(over.pieces()):
        end = done + len(piece.frames)
        values[done:end], failed = plan.evaluate(piece.usable())
        failed = {**failed, **piece.torn}
        errors |= {piece.frames[k]: reason for k, reason in sorted(failed.items())}
        done = end
        if progress is not None:
            progress(done / len(over))
    return FramePotentials(numbers_of(over.frames), chosen, values, plan.unit, errors, plan.device, over.notes)
