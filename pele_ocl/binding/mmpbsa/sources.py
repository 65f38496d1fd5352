"""Systems of a run: their atoms, where their frames come from, and which atoms belong to which part."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...atoms import Atoms, correspondence
from ...common.errors import FormatError, InputError
from ...contract import FrameContract
from ...trajectories import Trajectory

_CHECKED = ("charges", "lj_sigma", "lj_epsilon", "gb_radii", "gb_scales")
_SAME = 2e-4  # of charges and radii of topologies that belong together


# Advice about options of other commands, and what it is with those of MMPBSA.py.
_WORDS = {
    "by --frames :": "by endframe=",
    "choose those of the structure by --select, with --topology":
        "give the topology of all their atoms (-sp, -srp and -slp, or -cp with -cg)",
    "choose those of the structure by --select":
        "give the topology of all their atoms (-sp, -srp and -slp, or -cp with -cg)",
    "give the structure that the frames are of":
        "give the topology of all their atoms (-sp, -srp and -slp, or -cp with -cg)",
    "; choose one by --model": "; frames are needed here",
}  # fmt: skip


def _in_other_words(text: str) -> str:
    for ours, theirs in _WORDS.items():
        text = text.replace(ours, theirs)
    return text


@dataclass(frozen=True, eq=False)
class Source:
    """A system and where its frames come from.

    atoms : of the system; paths : trajectories; whole : Atoms of a frame, chosen : (k,) which of them the system's are
    """

    atoms: Atoms
    paths: tuple[Path, ...]
    whole: Atoms
    chosen: NDArray[np.intp]

    def trajectory(self, frames: str, anchors: NDArray[np.intp] | None = None) -> Trajectory:
        """Frames, by words counted from 0, imaged by the bonds of the system where they have a cell."""
        atoms = replace(self.atoms, cell_angles=self.whole.cell_angles)
        over = self._opened(frames)
        if over.n_file_atoms != len(self.whole):
            raise InputError(
                f"{self.paths[0]}: its frames have {over.n_file_atoms:,} atoms, the topology {len(self.whole):,}; "
                "give the topology of all their atoms (-sp, -srp and -slp, or -cp with -cg)"
            )
        return over.of(FrameContract(atoms, "auto", None if anchors is None else np.arange(len(atoms)), anchors))

    def _opened(self, frames: str) -> Trajectory:
        """Files, opened; errors are in words of MMPBSA.py."""
        try:
            return Trajectory(self.paths, self.whole, frames, self.chosen)
        except FormatError as error:
            raise FormatError(_in_other_words(str(error))) from None
        except InputError as error:
            start, total = int(frames.split(":")[0]), self._n_frames()
            if start < total:
                raise InputError(_in_other_words(str(error))) from None
            raise InputError(
                f"startframe={start + 1} is behind the last frame, {total:,}, of {self.paths[-1]}"
            ) from None

    def _n_frames(self) -> int:
        """Number of all frames; errors are in words of MMPBSA.py."""
        try:
            return sum(Trajectory(self.paths, self.whole).counts)
        except FormatError as error:
            raise FormatError(_in_other_words(str(error))) from None

    def at_first_frame(self, frames: str) -> Atoms:
        """Atoms of the system at the first of the frames."""
        over = self.trajectory(frames)
        first = over.piece(over.frames[:1]).usable()[0]
        over.close()
        return self.atoms.moved(first)


def parts_by_topologies(complex_: Atoms, receptor: Atoms, ligand: Atoms) -> NDArray[np.bool_]:
    """(n,) True for the ligand's atoms, which follow one another in the complex. Raises InputError where none do."""
    names, n, own = _keys(complex_), len(complex_), len(ligand)
    wanted, rest = _keys(ligand), _keys(receptor)
    if len(receptor) + own != n:
        raise InputError(
            f"the complex has {n:,} atoms, receptor and ligand {len(receptor):,} and {own:,}, which is not their sum; "
            "a topology with water is -sp, and its parts are -rp and -lp"
        )
    starts = [n - own, 0, *range(1, n - own)]
    for start in starts:
        inside = slice(start, start + own)
        if names[inside] == wanted and names[:start] + names[start + own :] == rest:
            is_ligand = np.zeros(n, bool)
            is_ligand[inside] = True
            return is_ligand
    raise InputError(
        "the atoms of receptor and ligand are not those of the complex; name receptor_mask and ligand_mask in &general"
    )


def _keys(atoms: Atoms) -> list[tuple[str, str]]:
    labels = atoms.labels
    assert labels is not None
    return [*zip(labels.residue_names.tolist(), labels.names.tolist(), strict=True)]


def require_alike(complex_: Atoms, chosen: NDArray[np.bool_], part: Atoms, name: str, with_parameters: bool) -> None:
    """Raise InputError where a part's topology has other atoms, or parameters, than the part has in the complex."""
    own = complex_[chosen]
    n_atoms = len(own), len(part)
    order = correspondence(own.labels, part.labels, f"the {name}'s topology", "the complex", n_atoms).order
    for parameter in _CHECKED if with_parameters else ():
        ours, theirs = getattr(own, parameter), getattr(part, parameter)
        if ours is None or theirs is None:
            continue
        theirs = theirs[order]
        far = np.flatnonzero(np.abs(ours - theirs) > _SAME)
        if len(far):
            k = int(far[0])
            raise InputError(
                f"the {name}'s topology has {parameter} {theirs[k]:g} for {part.describe(int(order[k]))}, the "
                f"complex's {ours[k]:g}; make both from one (ante-MMPBSA.py does)"
            )


def masked(atoms: Atoms, mask: str) -> NDArray[np.bool_]:
    """(n,) True for the atoms of a mask, none where it names none that is there."""
    try:
        return atoms.selected(mask)
    except InputError as error:
        if "takes no atom" in str(error):
            return np.zeros(len(atoms), bool)
        raise
