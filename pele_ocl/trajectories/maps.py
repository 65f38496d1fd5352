"""Maps of all frames of a trajectory: mean, standard deviation and extremes at every point."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats, require_atoms
from ..common.arguments import callback
from ..common.errors import InputError
from ..common.variant import Progress
from ..contract import Image
from ..grid import Grid, Map
from ..potmap import PotmapResult
from ..potmap.frames import MapFrames
from ..potmap.options import MapOptions
from .frames import FrameWords
from .reading import Paths, Piece, Trajectory, opened
from .selection import Selection
from .streaming import ahead
from .superposing import Superposition


@dataclass(frozen=True, eq=False, repr=False)
class FrameMaps:
    """Potential over the frames of a trajectory, at every point of a grid.

    mean, sd, min, max : Map; sd belongs to the frames themselves, with their number below the sum
    frames : (m,) numbers of the frames that count, from 0 across all files
    rmsd : (m,) A, of the atoms by which each was superposed from the reference; None where they were not
    errors : why other frames failed, by their number
    result : PotmapResult of the mean; its `error` is all frames' maps' together
    seconds : of it all
    notes : sentences about the frames, of the Trajectory
    """

    mean: Map
    sd: Map
    min: Map
    max: Map
    frames: NDArray[np.int64]
    rmsd: Floats | None
    errors: Mapping[int, str]
    result: PotmapResult
    seconds: float
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.frames)

    def __repr__(self) -> str:
        return f"FrameMaps({len(self):,} frames, {len(self.errors):,} failed; mean {self.mean!r})"

    @property
    def maps(self) -> dict[str, Map]:
        """Four maps by the names that VMD's volmap and our files have for them."""
        return {"avg": self.mean, "min": self.min, "max": self.max, "stdev": self.sd}


def potmap_over(
    atoms: Atoms,
    trajectory: Trajectory | Paths,
    grid: Grid,
    *,
    align: Selection | bool = False,
    frames: FrameWords = None,
    select: Selection | None = None,
    topology: str | PathLike[str] | None = None,
    image: Image = "auto",
    progress: Progress | None = None,
    **options: Any,
) -> FrameMaps:
    """Mean, standard deviation, minimum and maximum of the potential over all frames, in one pass.

    On the device a map and its statistics take memory, 28 bytes a point; on the host a piece of frames does.

    atoms : whose charges count and, with `align`, on whose positions frames are superposed
    trajectory : a Trajectory, or paths or frames in memory that `pele_ocl.trajectory` takes, with its `frames`,
        `select`, `topology` and `image`
    grid : one for all frames; it stays where it is while they are superposed
    align : the atoms by which each frame is superposed, in the words of `selection`. True takes the alpha carbons of a
        protein, else the heavy atoms; False takes frames as they are
    progress : called with the share of the frames done, 0 to 1
    options : of `potmap`, but `field` and `progress`

    A frame with an atom on a grid point, or nowhere, is left out, with its reason in `errors`. If the method
    approximates, each frame is compared with direct sums at some points. Raises FormatError and InputError as
    `trajectory` and `potmap` do, and InputError if no frame counts.
    """
    start = time.perf_counter()
    require_atoms(atoms)
    callback("progress", progress)
    over = opened(atoms, trajectory, frames, select, topology, image)
    superpose = None if align is False else Superposition(atoms, align)
    maps = MapFrames(atoms, grid, MapOptions(**options))
    numbers, distances, errors = list[int](), list[float](), dict[int, str]()
    for done, (number, positions, distance, torn) in enumerate(each_frame(over, superpose), 1):
        try:
            if torn:
                raise InputError(torn)
            maps.add(atoms.moved(positions))
            numbers.append(number)
            distances.append(distance)
        except InputError as error:
            errors[number] = str(error)
        if progress is not None:
            progress(done / len(over))
    if not numbers:
        raise InputError(f"no frame counts: frame {over.frames[0]}: {errors[over.frames[0]]}")
    found = maps.result()
    rmsd = None if superpose is None else np.array(distances)
    of = found.maps
    return FrameMaps(
        of["avg"], of["stdev"], of["min"], of["max"], np.array(numbers, np.int64), rmsd, errors, found.last,
        time.perf_counter() - start, over.notes,
    )  # fmt: skip


def each_frame(over: Trajectory, superpose: Superposition | None) -> Iterator[tuple[int, Floats, float, str]]:
    """Yield number, positions, distance and fault of each frame.

    Positions (n, 3) A are superposed if that is wanted, and the distance tells how far off they are. The fault is the
    reason why the frame cannot be used, or "".
    """

    def superposed(pieces: Iterator[Piece]) -> Iterator[tuple[range, Floats, Floats, list[str]]]:
        for piece in pieces:
            torn = [piece.torn.get(k, "") for k in range(len(piece.frames))]
            if superpose is None:
                yield piece.frames, np.asarray(piece.positions, np.float64), np.full(len(piece.frames), np.nan), torn
            else:
                yield piece.frames, *superpose(piece.positions), torn

    for frames, positions, distances, torn in ahead(superposed(over.pieces())):
        yield from zip(frames, positions, distances.tolist(), torn, strict=True)
