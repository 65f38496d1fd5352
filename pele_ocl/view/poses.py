"""One offline page of many poses: a plot whose points can be chosen, the chosen pose, and a table.

The page needs no library and no network. It shows energy against rmsd, or any two columns.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..atoms import Atoms, Floats
from ..common.errors import InputError, printable
from ..common.writing import replacing
from ..painting.orientation import principal_axes
from ..painting.packing import data_for_page

_HERE = Path(__file__).parent
_STEP = 0.01  # A between two positions that the page tells apart
_TRACE_STEP = 8.0  # A at most between neighbours in a trace: 3.8 of C-alpha, 5 to 7 of phosphorus
_REACH = 327.0  # A from the middle that it can show


@dataclass(frozen=True)
class Column:
    """Numbers of all poses, (m,), None or NaN where there is none; label : with the unit, for axes and the table."""

    label: str
    values: ArrayLike


def save_poses_page(
    path: str | PathLike[str],
    atoms: Atoms,
    ligand: NDArray[np.integer],
    poses: Floats,
    names: Sequence[str],
    columns: Mapping[str, Column],
    axes: tuple[str, str],
    *,
    title: str,
    facts: str = "",
    about: str = "",
    near: float = 5.0,
) -> None:
    """Write the page of m poses; failed poses are left out by the caller.

    ligand : its atoms; poses : (m, n, 3) A of all atoms; names : of the poses
    columns : by short names; axes : the two columns that the plot begins with; rows are ordered by the second one
    near : residues with an atom within this distance of the ligand in any pose are shown, A

    Raises InputError if there is no pose.
    """
    if not len(poses):
        raise InputError("no poses to show were given")
    values = {name: np.asarray(column.values, np.float64) for name, column in columns.items()}
    order = np.argsort(np.where(np.isfinite(values[axes[1]]), values[axes[1]], np.inf), kind="stable").tolist()
    data = {
        "names": [printable(name) for name in names],
        "columns": {
            name: {"label": columns[name].label, "values": [v if np.isfinite(v) else None for v in of.tolist()]}
            for name, of in values.items()
        },
        "axes": axes,
        "order": order,
        "chosen": order[0],
        **scene_of(atoms, ligand, poses, near),
    }
    parts = {
        "title": html.escape(printable(title)),
        "facts": html.escape(printable(facts)),
        "about": html.escape(printable(about)),
        "data": data_for_page(data),
        "script": script_of(_HERE / "poses.js"),
    }
    page = (_HERE / "poses.html").read_text(encoding="utf-8")
    pieces = [piece for part in page.split("{{") for piece in part.split("}}", 1)]
    text = "".join(parts[piece] if k % 2 else piece for k, piece in enumerate(pieces))
    with replacing(Path(path), ()) as temporary:
        temporary.write_text(text, encoding="utf-8")


def script_of(path: Path) -> str:
    """Read the script of a page that shows molecules, with what draws these."""
    return "\n".join(file.read_text(encoding="utf-8") for file in (_HERE / "molecule.js", path))


def scene_of(
    atoms: Atoms, ligand: NDArray[np.integer], poses: Floats, near: float = 5.0
) -> dict[str, object]:  # fmt: skip
    """Collect what a page shows of poses, (m, n, 3) A: atoms near the ligand, and the trace; parameters as above."""
    return _molecule(atoms, ligand, poses, _shown(atoms, ligand, poses, near))


def _shown(atoms: Atoms, ligand: NDArray[np.integer], poses: Floats, near: float) -> NDArray[np.intp]:
    """Choose the atoms of the page: the ligand's, and heavy atoms of residues near it in any pose."""
    close = np.zeros(len(atoms), bool)
    for positions in poses:
        low, high = positions[ligand].min(axis=0) - near, positions[ligand].max(axis=0) + near
        inside = np.flatnonzero(((positions >= low) & (positions <= high)).all(axis=1))
        apart = positions[inside][:, None] - positions[ligand]
        close[inside[((apart**2).sum(axis=2) <= near**2).any(axis=1)]] = True
    mask = close
    if atoms.labels is not None:
        residues = atoms.labels.residue_index
        mask = np.isin(residues, np.unique(residues[close])) & (atoms.labels.elements != "H")
    mask[ligand] = True
    mask[_trace_atoms(atoms, ligand)] = True
    return np.flatnonzero(mask)


def _trace_atoms(atoms: Atoms, ligand: NDArray[np.integer]) -> NDArray[np.intp]:
    """Atoms of the trace of chains and strands, which shows where a ligand is that is far from all residues."""
    if atoms.labels is None:
        return np.empty(0, np.intp)
    is_carbon = (atoms.labels.names == "CA") & (atoms.labels.elements == "C")
    found = np.flatnonzero(is_carbon | (atoms.labels.names == "P"))
    return found[~np.isin(found, ligand)]


def _trace(atoms: Atoms, ligand: NDArray[np.integer], positions: Floats) -> NDArray[np.intp]:
    """Pairs of neighbours in the trace, (m, 2)."""
    trace = _trace_atoms(atoms, ligand)
    apart = np.sqrt(((positions[trace[1:]] - positions[trace[:-1]]) ** 2).sum(axis=1))
    pairs: NDArray[np.intp] = np.stack([trace[:-1], trace[1:]], axis=1)[apart < _TRACE_STEP]
    return pairs


def _molecule(
    atoms: Atoms, ligand: NDArray[np.integer], poses: Floats, shown: NDArray[np.intp]
) -> dict[str, object]:  # fmt: skip
    """Collect the atoms of the page: positions of each pose, elements, bonds, labels of residues."""
    places = np.full(len(atoms), -1)
    places[shown] = np.arange(len(shown))
    bonds = places[atoms.bonds]
    middle = poses[0][ligand].mean(axis=0)
    steps = np.clip(np.rint((poses[:, shown] - middle) / _STEP), -_REACH / _STEP, _REACH / _STEP).astype("<i2")
    labels = []
    if atoms.labels is not None:
        of_ligand = set(atoms.labels.residue_index[ligand].tolist())
        for k, residue in enumerate(atoms.labels.residues):
            start = int(atoms.labels.residue_starts[k])
            own = shown[atoms.labels.residue_index[shown] == atoms.labels.residue_index[start]]
            if len(own) > 1 and int(atoms.labels.residue_index[start]) not in of_ligand:
                named = own[atoms.labels.names[own] == "CA"]
                labels.append([int(places[named[0] if len(named) else own[0]]), f"{residue.name}{residue.number}"])
    return {
        "elements": ["X"] * len(shown) if atoms.labels is None else atoms.labels.elements[shown].tolist(),
        "bonds": bonds[(bonds >= 0).all(axis=1)].tolist(),
        "ligand": places[ligand].tolist(),
        "trace": places[_trace(atoms, ligand, poses[0])].tolist(),
        "turn": principal_axes(poses[0][ligand]).tolist(),
        "labels": labels,
        "positions": base64.b64encode(steps.tobytes()).decode(),
    }
