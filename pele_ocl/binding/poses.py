"""Poses: many positions of one ligand in a receptor that stays."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..atoms import Atoms, Floats
from ..common.arguments import file_path
from ..common.errors import FormatError, InputError
from ..common.inputfile import InputFile, read_file
from ..common.variant import Progress
from ..formats import read_conformations, read_structure
from ..results import Terms
from .energies import BindingEnergies, joined_energies

if TYPE_CHECKING:
    from .plan import Binding

PIECE_ATOMS = 1 << 20  # of poses that are evaluated together


def is_sdf(path: Path) -> bool:
    """Tell if the suffix of a file says molecules of an SDF file."""
    return path.suffix.lower() in (".sdf", ".sd", ".mol")


def read_poses(path: str | PathLike[str], ligand: Atoms) -> Floats:
    """Read positions (m, n, 3) A of a ligand in an SDF file's molecules, or a .pdb or .cif file's models.

    Their atoms must be the ligand's, in its order. Raises FormatError if a file is damaged, of others, or in another
    order.
    """
    path = file_path(path)
    if is_sdf(path):
        poses = _sdf_positions(read_file(path), ligand)
    else:
        poses = read_conformations(path)[1]
    if poses.shape[1] != len(ligand):
        raise FormatError(f"{path}: its poses have {poses.shape[1]:,} atoms, the ligand {len(ligand):,}")
    if not is_sdf(path):
        require_order(path, ligand)
    return poses


def require_order(path: Path, atoms: Atoms) -> None:
    """Raise FormatError if the atoms of a .pdb or .cif file, as many, are others or have another order.

    Elements are compared, and names if the same ones are in another order within a residue.
    """
    theirs, ours = read_structure(path).labels, atoms.labels
    if ours is None:
        return
    wrong = theirs.elements != ours.elements
    mine, given = (list(zip(of.residue_index.tolist(), of.names.tolist(), strict=True)) for of in (ours, theirs))
    if sorted(mine) == sorted(given):
        wrong |= theirs.names != ours.names
    if wrong.any():
        k = int(np.argmax(wrong))
        raise FormatError(
            f"{path}: atom {k + 1} is {theirs.atom(k)}, and {ours.atom(k)} in the structure; "
            "write the poses with all its atoms in order"
        )


def evaluate_poses(binding: Binding, poses: Floats, progress: Progress | None = None) -> BindingEnergies:
    """Compute the energies at poses (m, n_ligand, 3) A; the receptor, which stays, is computed once.

    A pose that fails has NaN and its reason in `errors`. Raises InputError for another shape.
    """
    parts, plans = binding.parts, binding.plans
    if poses.ndim != 3 or poses.shape[1:] != (len(parts.ligand), 3) or not len(poses):
        raise InputError(f"poses have shape {poses.shape}; (m, {len(parts.ligand)}, 3) is needed, m at least 1")
    fixed = plans["receptor"].evaluate().terms
    size, found = max(1, PIECE_ATOMS // len(binding.atoms)), list[BindingEnergies]()
    for first in range(0, len(poses), size):
        piece = poses[first : first + size]
        positions = np.repeat(binding.atoms.positions[np.newaxis], len(piece), axis=0)
        positions[:, parts.ligand] = piece
        ligand = plans["ligand"].evaluate_batch(piece, errors="record")
        repeated = Terms(fixed.names, np.repeat(fixed.values[np.newaxis], len(piece), axis=0))
        batches = {
            "complex": plans["complex"].evaluate_batch(positions, errors="record"),
            "receptor": replace(ligand, terms=repeated, errors={}),
            "ligand": ligand,
        }
        found.append(binding.systems.joined(binding.systems.precise(batches, positions, "record")))
        if progress is not None:
            progress(min(1.0, (first + size) / len(poses)))
    return joined_energies(found)


def _sdf_positions(file: InputFile, ligand: Atoms) -> Floats:
    """Read positions of all molecules of an SDF file (V2000), whose elements must be the ligand's."""
    text = file.data.decode("utf-8", "replace").replace("\r\n", "\n")
    molecules = [block for block in text.split("$$$$\n") if block.strip()]
    if not molecules:
        raise FormatError(f"{file}: holds no molecule")
    wanted = None if ligand.labels is None else [str(element) for element in ligand.labels.elements]
    return np.stack([_molecule(block.split("\n"), k, wanted, file) for k, block in enumerate(molecules, 1)])


def _molecule(lines: list[str], k: int, wanted: list[str] | None, file: InputFile) -> Floats:
    """Positions (n, 3) of one molecule."""
    try:
        if "V3000" in lines[3]:
            raise FormatError(f"{file}: molecule {k} is of the version V3000; write it as V2000")
        n = int(lines[3][:3])
        rows = lines[4 : 4 + n]
        positions = np.array([[float(row[c : c + 10]) for c in (0, 10, 20)] for row in rows]).reshape(-1, 3)
        elements = [row[31:34].strip() for row in rows]
    except (IndexError, ValueError):
        raise FormatError(f"{file}: molecule {k} is no molecule of an SDF file") from None
    if len(positions) != n or not np.isfinite(positions).all():
        raise FormatError(f"{file}: molecule {k} ends early or has a position that is no number")
    if wanted is not None and elements != wanted:
        same = sorted(elements) == sorted(wanted)
        why = "in another order" if same else "other atoms"
        raise FormatError(
            f"{file}: molecule {k} has {why} than the ligand; write the poses with all its atoms in order"
        )
    return positions
