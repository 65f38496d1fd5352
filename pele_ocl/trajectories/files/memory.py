"""Frames in memory with the interface of files: arrays, MDTraj Trajectories and MDAnalysis Universes."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...atoms import Labels
from ...atoms.chemistry import tidy_element
from ...atoms.labels import labels_of_rows
from ...common.arguments import array, described
from ...common.errors import InputError
from ...formats.mdanalysis import labels_of_group
from .framefile import AtomChoice, FrameFile, Positions

if TYPE_CHECKING:
    import mdtraj
    from MDAnalysis import AtomGroup, Universe

    Held = NDArray[Any] | mdtraj.Trajectory | Universe | AtomGroup  # and others that NumPy converts to arrays

A_PER_NM = 10.0


class MemoryFile(FrameFile):
    """Frames in memory. name : description for messages"""

    takes_more = False

    def __init__(self, name: str, n_atoms: int, n_frames: int) -> None:
        if not n_atoms or not n_frames:
            raise InputError(f"{name} contains no frame, or no atom")
        super().__init__(Path(name), n_atoms, n_frames)
        self.name = name

    def __str__(self) -> str:
        return self.name

    def close(self) -> None:
        """Do nothing."""


class ArrayFile(MemoryFile):
    """Frames (m, n, 3) in an array.

    scale : conversion factor to A; cells : (m, 3, 3) in the same unit as the frames; labels : Labels of the atoms
    """

    def __init__(
        self, name: str, frames: Positions, scale: float | None = None, cells: NDArray[Any] | None = None,
        labels: Labels | None = None,
    ) -> None:  # fmt: skip
        if frames.ndim != 3 or frames.shape[2] != 3:
            raise InputError(f"{name} has shape {frames.shape}; expected frames (m, n, 3)")
        super().__init__(name, frames.shape[1], len(frames))
        self._frames, self._scale, self._cells, self._labels = frames, scale, cells, labels

    @property
    def labels(self) -> Labels | None:
        return self._labels

    def read(self, frames: range, atoms: AtomChoice) -> Positions:
        rows = slice(frames.start, frames.stop, frames.step)
        scale = 1.0 if self._scale is None else self._scale
        self.cells = None if self._cells is None else scale * self._cells[rows].astype(np.float64)
        found: Positions = self._frames[rows, atoms]
        return found if self._scale is None else found * found.dtype.type(scale)


class UniverseFile(MemoryFile):
    """Frames of an MDAnalysis Universe or AtomGroup. Its current frame is restored on closing."""

    def __init__(self, universe: Universe | AtomGroup, frames: Any = None) -> None:
        """Use all frames, or a subset. frames : slice of the trajectory, such as `trajectory[::2]`"""
        self._group, self._reader = universe.atoms, universe.universe.trajectory
        self._trajectory = self._reader if frames is None else frames
        self._before: int = self._reader.frame
        super().__init__("the universe", len(self._group), len(self._trajectory))

    @property
    def labels(self) -> Labels | None:
        return labels_of_group(self._group)

    @property
    def _positions(self) -> Positions:
        found: Positions = self._group.positions
        return found

    def read(self, frames: range, atoms: AtomChoice) -> Positions:
        found, cells = list[Positions](), list[NDArray[np.float64]]()
        for k in frames:
            step = self._trajectory[k]
            found.append(self._positions[atoms])
            cell = step.triclinic_dimensions
            cells.append(np.full((3, 3), np.nan) if cell is None else np.array(cell, np.float64))
        self.cells = np.stack(cells)
        return np.stack(found)

    def close(self) -> None:
        self._reader[self._before]


class ReaderFile(UniverseFile):
    """Frames of an MDAnalysis `trajectory`, or a slice such as `trajectory[::2]`, with all atoms and without labels."""

    def __init__(self, frames: Any) -> None:
        self._trajectory, self._reader = frames, reader_of(frames)
        self._before = self._reader.frame
        MemoryFile.__init__(self, "the trajectory of MDAnalysis", self._reader.n_atoms, len(frames))

    @property
    def labels(self) -> None:
        return None

    @property
    def _positions(self) -> Positions:
        found: Positions = self._reader.ts.positions
        return found.copy()


def reader_of(frames: object) -> Any:
    """Return the MDAnalysis trajectory for itself or for a slice of it, such as `trajectory[::2]`; otherwise None."""
    reader = getattr(frames, "trajectory", frames)
    is_reader = hasattr(reader, "n_frames") and hasattr(reader, "n_atoms") and hasattr(reader, "ts")
    return reader if is_reader and not hasattr(frames, "atoms") else None


def held_frames(given: object) -> MemoryFile | None:
    """Return the frames of an array or an object of another library as a MemoryFile; None for paths.

    Raises InputError for arrays with other shapes.
    """
    if isinstance(given, tuple) and len(given) == 1 and isinstance(given[0], MemoryFile):
        return given[0]
    if isinstance(given, str | PathLike) or (isinstance(given, Sequence) and not _are_arrays(given)):
        return None
    library, name = type(given).__module__.split(".")[0], type(given).__name__
    if library == "MDAnalysis":
        if hasattr(given, "atoms"):
            return UniverseFile(given)
        if reader_of(given) is not None:
            return ReaderFile(given)
        raise InputError(f"the trajectory is {described(given)}; expected a Universe or an AtomGroup")
    if library == "mdtraj" and name == "Trajectory":
        held: Any = given
        labels = None if held.topology is None else labels_of_mdtraj(held.topology)
        return ArrayFile("the trajectory of MDTraj", held.xyz, A_PER_NM, held.unitcell_vectors, labels)
    if hasattr(given, "__array__") or hasattr(given, "__dlpack__") or _are_arrays(given):
        frames = array("the frames", given, "iuf", "numbers")
        return ArrayFile("the array", frames if frames.dtype == np.float32 else frames.astype(np.float64, copy=False))
    return None


def labels_of_mdtraj(topology: mdtraj.Topology) -> Labels:
    """Make Labels from an MDTraj Topology. Virtual sites have the element "X"."""
    return labels_of_rows(
        (atom.name, _element(atom), residue.name, residue.resSeq, "", _chain(residue), residue.index)
        for residue in topology.residues
        for atom in residue.atoms
    )


def _chain(residue: mdtraj.core.topology.Residue) -> str:
    return getattr(residue.chain, "chain_id", None) or ""  # since MDTraj 1.10


def _element(atom: mdtraj.core.topology.Atom) -> str:
    symbol = getattr(atom.element, "symbol", "VS")
    return "X" if symbol == "VS" else tidy_element(symbol)


def _are_arrays(given: object) -> bool:
    """Return whether an object is a list of arrays."""
    is_list = isinstance(given, Sequence) and not isinstance(given, str | bytes) and len(given) > 0
    return is_list and hasattr(given[0], "__array__")  # type: ignore[index]
