"""Frames of trajectory files, read in pieces."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ..atoms import Atoms, Floats
from ..atoms.selection import SelectableAtoms
from ..common.arguments import choice, file_path, file_paths, instance, whole_number
from ..common.errors import FormatError, InputError
from ..contract import IMAGES, FrameContract, Image
from .files import AtomChoice, FrameFile, LastOpenFile, MemoryFile, Positions, held_frames, open_frames
from .frames import FrameWords, frames_slice, parts_of
from .selection import Selection, described_atoms, described_file, selected_atoms

PIECE_ATOMS = 1 << 20  # atoms of a piece that is handed out
# Files, or frames that are in memory: an array (m, n, 3), a Trajectory of MDTraj, a Universe of MDAnalysis.
Paths = str | PathLike[str] | Sequence[str | PathLike[str]] | Any
READ_ATOMS = 1 << 17  # atoms that are read at a time, those that are not wanted among them


@dataclass(frozen=True, eq=False)
class Piece:
    """Neighbouring frames of a trajectory.

    frames : their numbers, from 0 across all files; positions : (len(frames), n, 3) A
    n_imaged : how many of them were imaged; torn : why others cannot be used, by their place among these, from 0
    """

    frames: range
    positions: Positions
    n_imaged: int = 0
    torn: Mapping[int, str] = field(default_factory=dict)

    def usable(self) -> Positions:
        """Return the positions, with NaN in unusable frames, so that whatever evaluates them leaves them out."""
        if not self.torn:
            return self.positions
        positions = self.positions.copy()
        positions[list(self.torn)] = np.nan
        return positions


class Trajectory:
    """Frames of one or several files, one after the other, as arrays of bounded size.

    Iteration yields positions (m, n, 3) A, m up to `chunk`, as often as it is begun. They are float64, or float32 where
    a file holds no more digits.

    paths : of the files, or the one MemoryFile of frames in memory; inputs : the files and the topology
    counts : frames in each
    frames : the numbers of the ones to read, from 0 across all files
    n_atoms : of the positions that are handed out; n_file_atoms : of the frames in the files
    image : "auto" where frames with a unit cell are imaged, as soon as their atoms' bonds are known, or "none"
    """

    def __init__(
        self, paths: Paths, atoms: Atoms | None = None,
        frames: FrameWords = None, select: Selection | None = None, topology: str | PathLike[str] | None = None,
        chunk: int | None = None, image: Image = "auto",
    ) -> None:  # fmt: skip
        """Open each file once and count its frames; parameters and errors as `trajectory`'s."""
        if atoms is not None:
            instance("atoms", atoms, Atoms, "Atoms")
        choice("image", image, IMAGES)
        self.image = image
        held, one = held_frames(paths), isinstance(paths, str | PathLike)
        files = () if held else tuple(file_path(path) for path in file_paths("paths", (paths,) if one else paths))
        self.paths: tuple[Path | MemoryFile, ...] = (held,) if held else files
        if not self.paths:
            raise InputError("there is no trajectory; give the path of one")
        self.inputs = files if topology is None else (*files, file_path(topology, "topology"))
        names = None if topology is None else described_file(self.inputs[-1])
        self._angles = None if atoms is None else atoms.cell_angles
        self._hint = names.n_atoms if names is not None else None if atoms is None else len(atoms)
        self.n_file_atoms, self.counts, partial = self._counted()
        wanted = frames_slice(frames)
        self.frames = range(*wanted.indices(sum(self.counts)))
        if not self.frames:
            raise InputError(f"the frames {frames} are none of the {sum(self.counts):,} of {self._named()}")
        if partial is not None:
            self._refuse_partial(partial, wanted)
        self._atoms, self.n_atoms = self._choice(select, atoms, names)
        self._kept: LastOpenFile | None = None
        self._contract = None if atoms is None else FrameContract(self._own(atoms), image)
        self.chunk = max(1, PIECE_ATOMS // self.n_atoms) if chunk is None else whole_number("chunk", chunk, least=1)

    def __len__(self) -> int:
        return len(self.frames)

    def __iter__(self) -> Iterator[Positions]:
        for piece in self.pieces():
            yield piece.positions

    def __repr__(self) -> str:
        return f"Trajectory({len(self):,} frames of {self.n_atoms:,} atoms, {self._named()})"

    def pieces(self, first: int = 0, size: Callable[[], int] | None = None) -> Iterator[Piece]:
        """Yield the frames in pieces.

        first : how many of the chosen frames are left out at the start
        size : asked before each piece how many frames it may have; by default `chunk`

        Raises FormatError where a file turns out to be damaged or to have changed.
        """
        with LastOpenFile(self.paths, self._open) as file:
            while first < len(self.frames):
                frames = self.frames[first : first + (self.chunk if size is None else size())]
                yield self._piece(file, frames)
                first += len(frames)

    def positions(self, frames: range) -> Positions:
        """Read positions (len(frames), n, 3) A of a part of `frames`, NaN in unusable ones."""
        return self.piece(frames).usable()

    def piece(self, frames: range) -> Piece:
        """A part of `frames`; the file stays open for the next, until `close`."""
        if self._kept is None:
            self._kept = LastOpenFile(self.paths, self._open)
        return self._piece(self._kept, frames)

    def close(self) -> None:
        """Close the file that `positions` keeps open."""
        if self._kept is not None:
            self._kept.close()

    def part(self, frames: range) -> Trajectory:
        """Return the trajectory with a part of `frames` alone."""
        part = copy(self)
        part.frames, part._kept = frames, None
        return part

    def of(self, contract: FrameContract) -> Trajectory:
        """Hold the frames to another contract, with its atoms and anchors and the own choice of `image`."""
        of = copy(self)
        of._contract, of._kept = contract.with_image(self.image), None
        of._angles = contract.atoms.cell_angles
        return of

    @property
    def has_contract(self) -> bool:
        """True if the atoms of the frames, and so their bonds, are known."""
        return self._contract is not None

    @property
    def atoms_sha256(self) -> str:
        """SHA-256 of the atoms' choice, "all" if there is none."""
        if isinstance(self._atoms, slice) and self._atoms == slice(None):
            return "all"
        return hashlib.sha256(np.arange(self.n_file_atoms, dtype=np.int64)[self._atoms].tobytes()).hexdigest()

    def require(self, n_atoms: int) -> None:
        """Raise InputError unless the positions that are handed out are of n atoms."""
        if self.n_atoms != n_atoms:
            raise InputError(f"the frames have {self.n_atoms:,} atoms, the structure {n_atoms:,}")

    def _counted(self) -> tuple[int, list[int], int | None]:
        """Atoms of a frame, frames of each file, and the number of the first file that ends within a frame."""
        n_atoms, counts, partial = 0, list[int](), None
        for path in self.paths:
            with self._open(path) as file:
                if counts and file.n_atoms != n_atoms:
                    raise FormatError(
                        f"{path}: has {file.n_atoms:,} atoms, {self.paths[0]} {n_atoms:,}; all files of a trajectory "
                        "are of one system"
                    )
                partial = len(counts) if file.is_partial and partial is None else partial
                n_atoms = file.n_atoms
                counts.append(file.n_frames)
        return n_atoms, counts, partial

    def _choice(
        self, select: Selection | None, atoms: Atoms | None, names: SelectableAtoms | None
    ) -> tuple[AtomChoice, int]:
        """Choose the atoms of a frame, and count them; names : of the topology, if there is one"""
        n = self.n_file_atoms
        if names is not None and names.n_atoms != n:
            raise FormatError(
                f"{self.inputs[-1]}: has {names.n_atoms:,} atoms, the frames of {self.paths[0]} have {n:,}"
            )
        if names is None and atoms is not None and len(atoms) == n:
            names = described_atoms(atoms)
        chosen = None if select is None else selected_atoms(select, n, names)
        if atoms is not None:
            self._check_atoms(len(atoms), None if chosen is None else len(chosen))
        if chosen is None:
            return slice(None), n
        is_run = bool((np.diff(chosen) == 1).all())
        return slice(int(chosen[0]), int(chosen[-1]) + 1) if is_run else chosen, len(chosen)

    def _own(self, atoms: Atoms) -> Atoms:
        """Take the atoms of the positions that are handed out, from atoms that may be all the files'."""
        return atoms if len(atoms) == self.n_atoms else atoms[self._atoms]

    def _open(self, path: Path | MemoryFile) -> FrameFile:
        if isinstance(path, MemoryFile):
            return path
        file = open_frames(path, self._hint)
        if self._angles is not None:
            file.angles = self._angles
        return file

    def _piece(self, file: LastOpenFile, frames: range) -> Piece:
        read = [self._read(file.opened(index), own) for index, own in parts_of(frames, self.counts)]
        found = [self._fulfilled(*each) for each in read]
        torn, first = dict[int, str](), 0
        for positions, _, reasons in found:
            torn |= {first + k: reason for k, reason in reasons.items()}
            first += len(positions)
        every = [positions for positions, _, _ in found]
        positions = every[0] if len(every) == 1 else np.concatenate(every)
        return Piece(frames, positions, sum(n for _, n, _ in found), torn)

    def _fulfilled(self, positions: Positions, cells: Floats | None) -> tuple[Positions, int, dict[int, str]]:
        """Positions as the contract has them, how many frames were imaged, and why others cannot be used."""
        if self._contract is None:
            return positions, 0, {}
        positions, imaged, torn = self._contract(positions, cells)
        return positions, int(imaged.sum()), torn

    def _read(self, file: FrameFile, frames: range) -> tuple[Positions, Floats | None]:
        """Read positions and cells of frames of one file, a few at a time if that takes much memory."""
        if not file.takes_more and self.n_atoms == self.n_file_atoms:
            return file.read(frames, self._atoms), file.cells
        step = max(1, READ_ATOMS // self.n_file_atoms)
        blocks, cells = list[Positions](), list[Floats | None]()
        for k in range(0, len(frames), step):
            blocks.append(file.read(frames[k : k + step], self._atoms))
            cells.append(file.cells)
        known = [of for of in cells if of is not None]
        joined = np.concatenate(known) if len(known) == len(cells) else None
        return (blocks[0] if len(blocks) == 1 else np.concatenate(blocks)), joined

    def _check_atoms(self, n: int, n_selected: int | None) -> None:
        """Raise unless the structure's n atoms are the frames', or the selected ones."""
        if n in (self.n_file_atoms, n_selected):
            return
        if n_selected is not None:
            raise InputError(
                f"the selection names {n_selected:,} of {self.n_file_atoms:,} atoms; the structure has {n:,}"
            )
        raise FormatError(
            f"{self.paths[0]}: its frames have {self.n_file_atoms:,} atoms, the structure {n:,}; "
            + (
                "choose those of the structure by --select"
                if self.n_file_atoms > n
                else "give the structure that the frames are of"
            )
        )

    def _refuse_partial(self, file: int, wanted: slice) -> None:
        """Raise FormatError unless the frames end, as the user says, before the one that is cut off."""
        end = sum(self.counts[: file + 1])
        if wanted.stop is None or wanted.stop < 0 or wanted.stop > end:
            raise FormatError(
                f"{self.paths[file]}: ends in the middle of a frame, behind {self.counts[file]:,} whole ones; copy the "
                f"file again, or take the whole ones by --frames :{end}"
            )

    def _named(self) -> str:
        more = f" and {len(self.paths) - 1:,} more" if len(self.paths) > 1 else ""
        return f"{self.paths[0]}{more}"


def trajectory(
    paths: Paths,
    atoms: Atoms | None = None,
    *,
    frames: FrameWords = None,
    select: Selection | None = None,
    topology: str | PathLike[str] | None = None,
    chunk: int | None = None,
    image: Image = "auto",
) -> Trajectory:
    """Frames of trajectory files, to be iterated over in pieces (m, n, 3) A: memory does not grow with their number.

    paths : one file or several, in their order: .nc .dcd .xtc .trr .mdcrd .h5, and .pdb or .cif of several models.
        Frames in memory do, too. They are an array (m, n, 3) A, a Trajectory of MDTraj, or a Universe or an AtomGroup
        of MDAnalysis, with unit cells
    atoms : the molecule that the frames are of, whose number of atoms they must have
    frames : "START:STOP:STEP", a slice, or one number; counted from 0 across all files
    select : the atoms of each frame that are wanted, in the words of `selection` ("not water", "index 0:331") about
        `topology` or `atoms`. Indices (k,), booleans (n,) or a slice do, too
    topology : a structure file or topology of all atoms of the frames, for names in `select`, where `atoms` are fewer
    chunk : frames of a piece; by default about a million atoms
    image : "auto" to make the molecules of `atoms` whole, and put them side by side, in frames with a unit cell. "none"
        takes frames as they are (docs/trajectories.md)

    Raises FormatError for files that are missing, damaged, cut off or of other atoms. Raises InputError for frames and
    selections that are none, and for .xtc and .trr without MDTraj.
    """
    return Trajectory(paths, atoms, frames, select, topology, chunk, image)


def opened(
    atoms: Atoms, trajectory: Trajectory | Paths, frames: FrameWords, select: Selection | None,
    topology: str | PathLike[str] | None, image: Image = "auto",
) -> Trajectory:  # fmt: skip
    """A Trajectory of the atoms. Raises InputError where one has other atoms, or options beside it."""
    if not isinstance(trajectory, Trajectory):
        trajectory = Trajectory(trajectory, atoms, frames, select, topology, image=image)
    elif not (frames is None and select is None and topology is None and image == "auto"):
        raise InputError(
            "frames, select, topology and image belong to paths; the Trajectory that was given has its own"
        )
    trajectory.require(len(atoms))
    return trajectory if trajectory.has_contract else trajectory.of(FrameContract(atoms))
