"""Potential over the frames of a trajectory: statistics of maps, and values at atoms."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..atoms import Atoms, Floats, require_atoms
from ..common.arguments import callback, checked, file_path
from ..common.errors import InputError
from ..common.inputfile import InputFile
from ..common.modules import takes_structures
from ..common.notes import with_notes
from ..common.variant import Progress
from ..contract import Image
from ..formats import write_table
from ..grid import Grid
from ..jobs.facts import composition_as_json, notes_of
from ..jobs.provenance import Call, provenance, record_head
from ..jobs.records import entries
from ..jobs.texts import counted, duration, headline, medium_lines
from ..report import Column, Report, Reported, text_table
from ..trajectories.frames import FrameWords
from ..trajectories.reading import Paths, Piece, Trajectory, opened
from ..trajectories.recording.recorder import numbers_of
from ..trajectories.selection import Selection, described_atoms, selected_atoms
from ..trajectories.streaming import ahead
from ..trajectories.superposing import Superposition
from .frames import AtomPotentials, MapFrames
from .options import MapOptions, medium_facts
from .result import FrameMaps

_SHOWN = 20  # maximum number of atoms in a text
STATISTICS = ("mean", "sd", "min", "max")  # of values at atoms


@checked
@takes_structures("atoms")
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

    A map and its statistics use 28 bytes per point on the device; the host needs memory for a few frames only.

    atoms : with charges and, with `align`, the positions on which frames are superposed
    trajectory : a Trajectory, or paths or frames in memory that `pele_ocl.trajectory` accepts, with its `frames`,
        `select`, `topology` and `image`
    grid : common to all frames, fixed in space
    align : selection of atoms by which to superpose each frame. True for the alpha carbons of a protein, or else the
        heavy atoms; False for no superposition
    progress : called with the fraction of the frames done, 0 to 1
    options : of `potmap`, except `field` and `progress`

    A frame with an atom on a grid point, or with a missing position, is skipped, with the reason in `errors`. If the
    method is approximate, each frame is compared with direct sums at some points. Raises FormatError and InputError as
    `trajectory` and `potmap` do, and InputError if no frame is left.

    >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
    >>> grid = pele_ocl.Grid.around(atoms, padding=3, spacing=2.0)
    >>> found = pele_ocl.potmap_over(atoms, np.stack([atoms.positions] * 3), grid)
    >>> len(found), found.mean.grid.shape == grid.shape
    (3, True)
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
        raise InputError(f"all frames failed: frame {over.frames[0]}: {errors[over.frames[0]]}")
    found = maps.result()
    rmsd = None if superpose is None else np.array(distances)
    of = found.maps
    return FrameMaps(
        of["avg"], of["stdev"], of["min"], of["max"], np.array(numbers, np.int64), rmsd, errors, found,
        time.perf_counter() - start, over.notes,
    )  # fmt: skip


def each_frame(over: Trajectory, superpose: Superposition | None) -> Iterator[tuple[int, Floats, float, str]]:
    """Yield number, positions, distance and error message of each frame.

    Positions (n, 3) A are superposed if requested; the distance is then the rmsd from the reference. The message is the
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


@dataclass(frozen=True, eq=False, repr=False)
class FramePotentials(Reported):
    """Potential at atoms from all charges except the atom's own, for each frame.

    frames : (m,) frame numbers, from 0 across all files; atoms : (k,) indices in the molecule
    values : (m, k) in `unit`; NaN for failed frames
    errors : reasons why frames failed, by number; device : where they were computed
    molecule : the Atoms; source : the structure file, None if atoms were given
    settings : all constants by name; seconds : "total"
    notes : messages about the frames, from the Trajectory
    heard : notes reported during the computation; call : function that returns facts about the call to store in files
    """

    frames: NDArray[np.int64]
    atoms: NDArray[np.intp]
    values: Floats
    unit: str
    errors: Mapping[int, str]
    device: str
    molecule: Atoms
    settings: Mapping[str, Any] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    source: InputFile | None = None
    heard: tuple[str, ...] = ()
    call: Call | None = None

    def __repr__(self) -> str:
        return f"FramePotentials({len(self.frames):,} frames of {len(self.atoms):,} atoms, {self.unit})"

    @property
    def names(self) -> list[str]:
        """Name of each chosen atom, with its index if names repeat."""
        chosen, labels = self.atoms.tolist(), self.molecule.labels
        names = [self.molecule.describe(k) if labels is None else labels.atom(k) for k in chosen]
        if len(set(names)) == len(names):
            return names
        return [f"{name} {k}" for name, k in zip(names, chosen, strict=True)]

    def statistics(self) -> list[tuple[float, ...]]:
        """Return mean, standard deviation, minimum and maximum of each atom over the successful frames."""
        values = self.values[np.isfinite(self.values).all(axis=1)]
        if not len(values):
            return [(np.nan,) * len(STATISTICS)] * len(self.atoms)
        columns = (values.mean(axis=0), values.std(axis=0), values.min(axis=0), values.max(axis=0))
        return list(zip(*(column.tolist() for column in columns), strict=True))

    def table(self) -> Report:
        """Return a table of mean, standard deviation, minimum and maximum of each atom over the successful frames."""
        values = zip(*self.statistics(), strict=True)
        columns: dict[str, Any] = {"atom": np.array(self.names)}
        columns |= {name: Column(of, self.unit) for name, of in zip(STATISTICS, values, strict=True)}
        frames = f"{len(self.frames):,} frame{'' if len(self.frames) == 1 else 's'}"
        return Report(f"Potential at atoms in {frames}", columns, {"device": self.device, **self.settings})

    def text(self, verbose: bool = False, total: float | None = None) -> str:
        """Return the text that the command prints. verbose : include all atoms; total : total seconds to report"""
        names, seconds = self.names, self.seconds["total"] if total is None else total
        rows = [(name, *(f"{value:,.3f}" for value in row)) for name, row in zip(names, self.statistics(), strict=True)]
        shown = rows if verbose else rows[:_SHOWN]
        rest = len(rows) - len(shown)
        more = [f"and {rest:,} more atoms; `output='values.csv'` or .h5 lists all"] if rest else []
        return "\n".join([
            headline(self.source, self.molecule), *(medium_lines(self.settings) if self.settings else []), "",
            f"Potential at atoms, excluding their own charges, {self.unit}",
            text_table(("atom", *STATISTICS), shown, "<>>>>"), *more, "",
            f"{counted(len(self.frames), 'frame')}, on {self.device}: total {duration(seconds)}",
        ])  # fmt: skip

    def save(self, path: str | PathLike[str]) -> None:
        """Write a table, .csv, .h5 or .json, with a row per frame; in CSV with a column per atom."""
        names = self.names
        is_csv = file_path(path).suffix.lower() == ".csv"
        values: dict[str, ArrayLike] = (
            dict(zip(names, self.values.T, strict=True)) if is_csv else {"potential": self.values}
        )
        errors = np.array([" ".join(self.errors.get(int(k), "").split()) for k in self.frames])
        attributes = {**provenance(self.source, self.call), "device": self.device, "atoms": names, "unit": self.unit}
        columns = {"frame": self.frames, **values, "error": errors}
        write_table(Path(path), columns, dict.fromkeys(values, self.unit), attributes)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON record of the statistics."""
        rows = zip(self.names, self.statistics(), strict=True)
        record = {
            **record_head(self.source),
            "n_atoms": len(self.molecule),
            "composition": composition_as_json(self.molecule),
            "device": self.device,
            "unit": self.unit,
            **entries("frame", [(int(number), self.errors.get(int(number), {})) for number in self.frames]),
            "atoms": [{"atom": name, **dict(zip(STATISTICS, row, strict=True))} for name, row in rows],
            "seconds": dict(self.seconds),
            "settings": dict(self.settings),
            **notes_of(self.molecule),
        }
        return with_notes(record, self.heard)


@checked
@takes_structures("atoms")
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
    """Compute the potential at chosen atoms in each frame, from all charges of the molecule except the atom's own.

    Bonded atoms are included, so each value is dominated by neighbours. Compare values of the same atom over time, or
    of similar atoms.

    at : a selection of atoms, as in `pele_ocl.trajectory`
    trajectory, frames, select, topology, image : as in `potmap_over`
    progress : called with the fraction of the frames done
    options : of `potmap` with the methods direct and cutoff, except `field` and `progress`

    Memory: 8 bytes per value, and a few frames. Values of failed frames are NaN. Raises FormatError and InputError as
    `trajectory` and `potmap` do.

    >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
    >>> found = pele_ocl.potentials_over(atoms, np.stack([atoms.positions] * 3), "name CA")
    >>> found.values.shape, found.names
    ((3, 3), ['A:ALA1:CA', 'A:ALA2:CA', 'A:ALA3:CA'])
    >>> found.save("potentials.csv")
    """
    start = time.perf_counter()
    require_atoms(atoms)
    callback("progress", progress)
    over = opened(atoms, trajectory, frames, select, topology, image)
    chosen = selected_atoms(at, len(atoms), described_atoms(atoms))
    given = MapOptions(**options)
    plan = AtomPotentials(atoms, chosen, given)
    values, errors, done = np.empty((len(over), len(chosen))), dict[int, str](), 0
    for piece in ahead(over.pieces()):
        end = done + len(piece.frames)
        values[done:end], failed = plan.evaluate(piece.usable())
        failed = {**failed, **piece.torn}
        errors |= {piece.frames[k]: reason for k, reason in sorted(failed.items())}
        done = end
        if progress is not None:
            progress(done / len(over))
    return FramePotentials(
        numbers_of(over.frames), chosen, values, plan.unit, errors, plan.device, atoms, medium_facts(atoms, given),
        {"total": time.perf_counter() - start}, over.notes,
    )  # fmt: skip
