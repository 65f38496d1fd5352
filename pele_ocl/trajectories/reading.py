"""Reading of trajectory frames in pieces."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Correspondence, Floats, Labels, Taken, correspondence, selectable
from ..atoms.corresponding import OTHER_ATOMS
from ..atoms.labels import labels_of
from ..atoms.selection import SelectableAtoms
from ..atoms.selection import Selection as Words
from ..common.arguments import checked, choice, file_path, file_paths, instance, whole_number
from ..common.errors import FormatError, InputError
from ..contract import IMAGES, Finding, FrameContract, Image
from .files import AtomChoice, FrameFile, LastOpenFile, MemoryFile, Positions, held_frames, open_frames
from .frames import FrameWords, frames_slice, parts_of
from .selection import Selection, described_atoms, described_file, selected_atoms

PIECE_ATOMS = 1 << 20  # default number of atoms in a piece
# Files, or frames in memory: an array (m, n, 3), an MDTraj Trajectory, an MDAnalysis Universe.
Paths = str | PathLike[str] | Sequence[str | PathLike[str]] | Any
READ_ATOMS = 1 << 17  # atoms read at a time, including those not selected


@dataclass(frozen=True, eq=False)
class Piece:
    """Consecutive frames of a trajectory.

    frames : frame numbers, from 0 across all files; positions : (len(frames), n, 3) A
    n_imaged : number of imaged frames; torn : errors of unusable frames, by index in the piece
    """

    frames: range
    positions: Positions
    n_imaged: int = 0
    torn: Mapping[int, str] = field(default_factory=dict)

    def usable(self) -> Positions:
        """Return the positions, with NaN in unusable frames, so that their evaluation fails."""
        if not self.torn:
            return self.positions
        positions = self.positions.copy()
        positions[list(self.torn)] = np.nan
        return positions


class Trajectory:
    """Frames of one or several files, read in pieces of limited size.

    Iterating yields positions (m, n, 3) A with m up to `chunk`, and can be repeated. They are float64, or float32 if
    the file has no higher precision.

    paths : the files, or a MemoryFile for frames in memory; inputs : the files and the topology
    counts : number of frames in each file
    frames : numbers of the frames to read, from 0 across all files
    n_atoms : number of selected atoms; n_file_atoms : number of atoms in the files
    labels : Labels of the selected atoms; None if neither the files nor the atoms or the topology have labels
    notes : notes about a different order of atoms, which are then matched by name, and the findings
    image : "auto" to image frames with a unit cell if the bonds of the atoms are known, or "none"
    """

    def __init__(
        self, paths: Paths, atoms: Atoms | None = None,
        frames: FrameWords = None, select: Selection | None = None, topology: str | PathLike[str] | None = None,
        chunk: int | None = None, image: Image = "auto",
    ) -> None:  # fmt: skip
        """Count the frames of all files; arguments and errors as in `trajectory`."""
        if atoms is not None:
            instance("atoms", atoms, Atoms, "Atoms")
        choice("image", image, IMAGES)
        self.image = image
        held, one = held_frames(paths), isinstance(paths, str | PathLike)
        files = () if held else tuple(file_path(path) for path in file_paths("paths", (paths,) if one else paths))
        self.paths: tuple[Path | MemoryFile, ...] = (held,) if held else files
        if not self.paths:
            raise InputError("no trajectory is given; give the path of one")
        self.inputs = files if topology is None else (*files, file_path(topology, "topology"))
        names = None if topology is None else described_file(self.inputs[-1])
        self._angles = None if atoms is None else atoms.cell_angles
        whole = names.n_atoms if names is not None else len(select) if isinstance(select, Taken) else None
        self._hint = len(atoms) if whole is None and atoms is not None else whole
        self._labels = list[Labels | None]()
        self.n_file_atoms, self.counts, partial = self._counted()
        wanted = frames_slice(frames)
        self.frames = range(*wanted.indices(sum(self.counts)))
        if not self.frames:
            raise InputError(f"the frames {frames} are not among the {sum(self.counts):,} of {self._named()}")
        if partial is not None:
            self._refuse_partial(partial, wanted)
        self.labels: Labels | None = None
        self._notes: tuple[str, ...] = ()
        self._found: tuple[Finding, ...] | None = None
        self._orders = list[NDArray[np.intp]]()  # order of the atoms in each file
        self._places = self._chosen(select, atoms, names)  # indices of the selected atoms in these orders
        self.n_atoms = len(self._places)
        self._atoms = self._choices()
        self._kept: LastOpenFile | None = None
        self._contract = None if atoms is None else FrameContract(self._own(atoms, names), image)
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

        first : number of frames to skip
        size : function that returns the maximum size of the next piece; by default `chunk`

        Raises FormatError if a file is damaged or has changed.
        """
        with LastOpenFile(self.paths, self._open) as file:
            while first < len(self.frames):
                frames = self.frames[first : first + (self.chunk if size is None else size())]
                yield self._piece(file, frames)
                first += len(frames)

    def positions(self, frames: range) -> Positions:
        """Read the positions (len(frames), n, 3) A of a subset of `frames`, NaN for unusable ones."""
        return self.piece(frames).usable()

    def piece(self, frames: range) -> Piece:
        """Read a subset of `frames`. The file stays open until `close`."""
        if self._kept is None:
            self._kept = LastOpenFile(self.paths, self._open)
        return self._piece(self._kept, frames)

    def close(self) -> None:
        """Close the file kept open by `positions` and `piece`."""
        if self._kept is not None:
            self._kept.close()

    def part(self, frames: range) -> Trajectory:
        """Return a copy of the trajectory with a subset of `frames`."""
        part = copy(self)
        part.frames, part._kept = frames, None
        return part

    def of(self, contract: FrameContract) -> Trajectory:
        """Return a copy of the trajectory that checks and images frames by another contract."""
        of = copy(self)
        of._contract, of._kept, of._found = contract.with_image(self.image), None, None
        of._angles = contract.atoms.cell_angles
        return of

    def matched(self, atoms: Atoms) -> Trajectory:
        """Return the trajectory with its atoms in the order of `atoms`. Raises InputError if the atoms differ."""
        same = self._compared(atoms.labels, (len(atoms), self.n_atoms))
        if same.is_identity:
            return self
        of = copy(self)
        of._places, of._kept, of._contract = self._places[same.order], None, FrameContract(atoms, self.image)
        of.labels, of._notes, of._found = atoms.labels, (*self._notes, *same.notes), None
        of._atoms = of._choices()
        return of

    @property
    def notes(self) -> tuple[str, ...]:
        return (*self._notes, *(finding.text for finding in self.findings))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings about the first frame of each file, if bonds are known.

        Bonds with implausible lengths indicate that frames without labels have another order of atoms.
        """
        if self._found is None:
            self._found = tuple(self._looked_at())
        return self._found

    def _looked_at(self) -> Iterator[Finding]:
        """Check the first frame of each file, unless it is unusable."""
        if self._contract is None:
            return
        for index, own in parts_of(self.frames, self.counts):
            labels = self._labels[index]
            if labels is not None and (labels.residue_names != "").any():
                continue  # matched by labels
            with self._open(self.paths[index]) as file:
                (frame,), _, torn = self._fulfilled(*self._read(file, own[:1], self._atoms[index]))
            if not torn and np.isfinite(frame).all():
                named = f"{self.paths[index]}: frame {sum(self.counts[:index]) + own[0]:,}: "
                yield from (replace(found, text=f"{named}{found.text}") for found in self._contract.of_order(frame))

    @property
    def has_contract(self) -> bool:
        """True if the atoms of the frames, including their bonds, are known."""
        return self._contract is not None

    @property
    def atoms_sha256(self) -> str:
        """SHA-256 of the selection of atoms in the files; "all" for all atoms in order."""
        if all(isinstance(atoms, slice) and atoms == slice(None) for atoms in self._atoms):
            return "all"
        whole = np.arange(self.n_file_atoms, dtype=np.int64)
        choices = dict.fromkeys(whole[atoms].tobytes() for atoms in self._atoms)
        return hashlib.sha256(b"".join(choices)).hexdigest()

    def require(self, n_atoms: int) -> None:
        """Raise InputError unless the number of selected atoms is `n_atoms`."""
        if self.n_atoms != n_atoms:
            raise InputError(f"the frames have {self.n_atoms:,} atoms, the structure {n_atoms:,}")

    def _counted(self) -> tuple[int, list[int], int | None]:
        """Return the number of atoms, the frames per file, and the index of the first file with an incomplete frame."""
        n_atoms, counts, partial = 0, list[int](), None
        for path in self.paths:
            with self._open(path) as file:
                if counts and file.n_atoms != n_atoms:
                    raise FormatError(
                        f"{path}: has {file.n_atoms:,} atoms, {self.paths[0]} {n_atoms:,}; all files of a "
                        "trajectory must have the same atoms"
                    )
                partial = len(counts) if file.is_partial and partial is None else partial
                n_atoms = file.n_atoms
                counts.append(file.n_frames)
                self._labels.append(file.labels)
        return n_atoms, counts, partial

    def _chosen(self, select: Selection | None, atoms: Atoms | None, names: SelectableAtoms | None) -> NDArray[np.intp]:
        """Return the indices (k,) of the selected atoms in the common order defined by `_orders`.

        names : atoms of the topology, if there is one, which define the common order; otherwise it is that of `atoms`
            or of the first file
        """
        n, source = self.n_file_atoms, "the structure"
        if names is not None:
            source = str(self.inputs[-1])
            if names.n_atoms != n:
                self._name_difference(names.names, source, "give the topology of all atoms of the frames")
                raise FormatError(f"{source}: has {names.n_atoms:,} atoms, the frames of {self.paths[0]} have {n:,}")
        elif atoms is not None and len(atoms) == n:
            names = described_atoms(atoms)
        elif isinstance(select, Taken) and select.labels is not None and len(select) == n:
            names = selectable(select.labels)
        elif self._labels[0] is not None and (self._labels[0].names != self._labels[0].elements).any():
            names, source = selectable(self._labels[0]), str(self.paths[0])
        self.labels = None if names is None else names.names
        each = [
            correspondence(self.labels, labels, str(path), source, (n, n))
            for path, labels in zip(self.paths, self._labels, strict=True)
        ]
        self._orders = [same.order for same in each]
        self._notes = next((same.notes for same in each if same.notes), ())
        try:
            chosen = None if select is None else selected_atoms(select, n, names)
        except InputError:
            advice = "give the structure to which the frames belong"
            if isinstance(select, Taken):
                self._name_difference(select.labels, "the structure", advice)
            elif atoms is not None and len(atoms) != n and not isinstance(select, str | Words):
                self._name_difference(atoms.labels, "the structure", advice)
            raise
        if atoms is not None:
            self._check_atoms(atoms, None if chosen is None else len(chosen))
        places = np.arange(n, dtype=np.intp) if chosen is None else chosen
        if self.labels is not None and chosen is not None:
            self.labels = labels_of(self.labels, places)
        if atoms is None or len(atoms) != len(places):
            return places
        same = self._compared(atoms.labels, (len(atoms), len(places)))
        self.labels, self._notes = atoms.labels or self.labels, (*self._notes, *same.notes)
        return places[same.order]

    def _compared(self, labels: Labels | None, n_atoms: tuple[int, int]) -> Correspondence:
        """Match the selected atoms to labels. n_atoms : numbers of labels and of selected atoms"""
        source = str(self.inputs[-1]) if len(self.inputs) > len(self.paths) else self._named()
        return correspondence(labels, self.labels, source, n_atoms=n_atoms)

    def _choices(self) -> list[AtomChoice]:
        """Return the index of the selected atoms in each file."""
        return [_as_slice(order[self._places], self.n_file_atoms) for order in self._orders]

    def _own(self, atoms: Atoms, names: SelectableAtoms | None) -> Atoms:
        """Return the selected atoms, from Atoms that may include all atoms in the files."""
        if len(atoms) == self.n_atoms:
            return atoms
        if names is None:
            return atoms[self._places]
        n = self.n_file_atoms
        return atoms[
            correspondence(names.names, atoms.labels, "the structure", str(self.inputs[-1]), (n, n)).order[self._places]
        ]

    def _open(self, path: Path | MemoryFile) -> FrameFile:
        if isinstance(path, MemoryFile):
            return path
        file = open_frames(path, self._hint)
        if self._angles is not None:
            file.angles = self._angles
        return file

    def _piece(self, file: LastOpenFile, frames: range) -> Piece:
        parts = parts_of(frames, self.counts)
        read = [self._read(file.opened(index), own, self._atoms[index]) for index, own in parts]
        found = [self._fulfilled(*each) for each in read]
        torn, first = dict[int, str](), 0
        for positions, _, reasons in found:
            torn |= {first + k: reason for k, reason in reasons.items()}
            first += len(positions)
        every = [positions for positions, _, _ in found]
        positions = every[0] if len(every) == 1 else np.concatenate(every)
        return Piece(frames, positions, sum(n for _, n, _ in found), torn)

    def _fulfilled(self, positions: Positions, cells: Floats | None) -> tuple[Positions, int, dict[int, str]]:
        """Apply the contract. Returns the positions, the number of imaged frames, and the errors of unusable ones."""
        if self._contract is None:
            return positions, 0, {}
        positions, imaged, torn = self._contract(positions, cells)
        return positions, int(imaged.sum()), torn

    def _read(self, file: FrameFile, frames: range, atoms: AtomChoice) -> tuple[Positions, Floats | None]:
        """Read the positions and cells of frames in one file, in blocks if only a part of the atoms is selected."""
        if not file.takes_more and self.n_atoms == self.n_file_atoms:
            return file.read(frames, atoms), file.cells
        step = max(1, READ_ATOMS // self.n_file_atoms)
        blocks, cells = list[Positions](), list[Floats | None]()
        for k in range(0, len(frames), step):
            blocks.append(file.read(frames[k : k + step], atoms))
            cells.append(file.cells)
        known = [of for of in cells if of is not None]
        joined = np.concatenate(known) if len(known) == len(cells) else None
        return (blocks[0] if len(blocks) == 1 else np.concatenate(blocks)), joined

    def _check_atoms(self, atoms: Atoms, n_selected: int | None) -> None:
        """Raise an error unless the number of atoms is that of the frames or of the selection."""
        n, n_file = len(atoms), self.n_file_atoms
        if n in (n_file, n_selected):
            return
        if n_selected is not None:
            raise InputError(f"the selection contains {n_selected:,} of {n_file:,} atoms; the structure has {n:,}")
        advice = (
            "select those of the structure with `select`"
            if n_file > n
            else "give the structure to which the frames belong"
        )
        self._name_difference(atoms.labels, "the structure", advice)
        what = f"{self.paths[0]}: its frames have {n_file:,} atoms, the structure {n:,}"
        raise FormatError(f"{what}; {advice}", code=OTHER_ATOMS, what=what)

    def _name_difference(self, labels: Labels | None, source: str, advice: str) -> None:
        """Raise FormatError about the first atom that differs between the frames and labels, if both have labels."""
        if labels is not None and self._labels[0] is not None:
            try:
                correspondence(labels, self._labels[0], str(self.paths[0]), source, advice=advice)
            except InputError as error:
                raise FormatError(str(error), code=error.code, **error.fields) from None

    def _refuse_partial(self, file: int, wanted: slice) -> None:
        """Raise FormatError unless the requested frames end before the incomplete one."""
        end = sum(self.counts[: file + 1])
        if wanted.stop is None or wanted.stop < 0 or wanted.stop > end:
            raise FormatError(
                f"{self.paths[file]}: ends in the middle of a frame, after {self.counts[file]:,} complete ones; "
                f"copy the file again, or use the complete ones with `frames=':{end}'`", code="cut_off"
            )  # fmt: skip

    def _named(self) -> str:
        more = f" and {len(self.paths) - 1:,} more" if len(self.paths) > 1 else ""
        return f"{self.paths[0]}{more}"


def _as_slice(atoms: NDArray[np.intp], n: int) -> AtomChoice:
    """Convert indices to a slice if they are consecutive. n : number of all atoms"""
    if not (np.diff(atoms) == 1).all():
        return atoms
    return slice(None) if len(atoms) == n else slice(int(atoms[0]), int(atoms[-1]) + 1)


@checked
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
    """Open trajectory files, to iterate over frames in pieces (m, n, 3) A with limited memory.

    paths : one or several files: .nc .dcd .xtc .trr .mdcrd .h5, and .pdb or .cif with several models. Frames in memory
        are also accepted, including their unit cells: an array (m, n, 3) A, an MDTraj Trajectory, or an MDAnalysis
        Universe or AtomGroup
    atoms : the atoms of the frames. Atoms are matched by name if the frames have labels, as in .pdb, .cif, .h5, and
        objects of MDTraj and MDAnalysis
    frames : "START:STOP:STEP", a slice, or one number; counted from 0 across all files
    select : atoms to read, as a selection in `topology` or `atoms` ("not water", "index 0:331"), indices (k,), a
        boolean mask (n,), or a slice
    topology : structure or topology file with all atoms of the frames, for `select`, if `atoms` are only a part of them
    chunk : frames per piece; by default about a million atoms
    image : "auto" to make molecules whole and move them next to each other in frames with a unit cell, or "none" to use
        frames unchanged (docs/trajectories.md)

    Returns a Trajectory. Raises FormatError for files that are missing, damaged, truncated or have other atoms. Raises
    InputError for invalid frames and selections, and for .xtc and .trr files if MDTraj is not installed.

    >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
    >>> frames = pele_ocl.trajectory(np.stack([atoms.positions] * 5), atoms, frames="::2")
    >>> [piece.positions.shape for piece in frames.pieces()]
    [(3, 33, 3)]
    """
    return Trajectory(paths, atoms, frames, select, topology, chunk, image)


def opened(
    atoms: Atoms, trajectory: Trajectory | Paths, frames: FrameWords, select: Selection | None,
    topology: str | PathLike[str] | None, image: Image = "auto",
) -> Trajectory:  # fmt: skip
    """Open a Trajectory with its atoms in the order of `atoms`.

    Raises InputError if the atoms differ, and for options given together with a Trajectory, which has its own.
    """
    if not isinstance(trajectory, Trajectory):
        trajectory = Trajectory(trajectory, atoms, frames, select, topology, image=image)
    elif not (frames is None and select is None and topology is None and image == "auto"):
        raise InputError(
            "frames, select, topology and image can only be given with paths; a Trajectory already defines them"
        )
    if trajectory.labels is None or atoms.labels is None:
        trajectory.require(len(atoms))
    trajectory = trajectory.matched(atoms)
    return trajectory if trajectory.has_contract else trajectory.of(FrameContract(atoms))
