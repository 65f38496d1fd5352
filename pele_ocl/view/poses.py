"""Offline HTML page of many poses: an interactive plot, the selected pose, and a table.

The page needs no library and no network. The plot shows energy against RMSD, or any two columns.
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
_STEP = 0.01  # A, resolution of positions in the page
_TRACE_STEP = 8.0  # A, largest distance of neighbours in a trace: 3.8 for C-alpha, 5 to 7 for phosphorus
_REACH = 327.0  # A, largest distance from the centre


@dataclass(frozen=True)
class Column:
    """Values for all poses, (m,), None or NaN if missing. label : name with unit, for axes and the table"""

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
    """Write a page of m poses. The caller excludes failed poses.

    ligand : indices of its atoms; poses : (m, n, 3) A, all atoms; names : names of the poses
    columns : by short name; axes : the two columns of the initial plot; rows are sorted by the second one
    near : show residues with an atom within this distance of the ligand in any pose, A

    Raises InputError if there is no pose.
    """
    if not len(poses):
        raise InputError("no poses to show are given")
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
    """Return the script of a page, together with the script that draws molecules."""
    return "\n".join(file.read_text(encoding="utf-8") for file in (_HERE / "molecule.js", path))


def scene_of(
    atoms: Atoms, ligand: NDArray[np.integer], poses: Floats, near: float = 5.0
) -> dict[str, object]:  # fmt: skip
    """Return the data of poses for a page: atoms near the ligand, and the trace. Parameters as in save_poses_page."""
    return _molecule(atoms, ligand, poses, _shown(atoms, ligand, poses, near))


def _shown(atoms: Atoms, ligand: NDArray[np.integer], poses: Floats, near: float) -> NDArray[np.intp]:
    """Return the atoms in the page: the ligand, and heavy atoms of residues near it in any pose."""
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
    """Return the trace atoms of proteins and nucleic acids, to show the position of a ligand far from all residues."""
    if atoms.labels is None:
        return np.empty(0, np.intp)
    is_carbon = (atoms.labels.names == "CA") & (atoms.labels.elements == "C")
    found = np.flatnonzero(is_carbon | (atoms.labels.names == "P"))
    return found[~np.isin(found, ligand)]


def _trace(atoms: Atoms, ligand: NDArray[np.integer], positions: Floats) -> NDArray[np.intp]:
    """Return pairs of neighbours in the trace, (m, 2)."""
    trace = _trace_atoms(atoms, ligand)
    apart = np.sqrt(((positions[trace[1:]] - positions[trace[:-1]]) ** 2).sum(axis=1))
    pairs: NDArray[np.intp] = np.stack([trace[:-1], trace[1:]], axis=1)[apart < _TRACE_STEP]
    return pairs


def _molecule(
    atoms: Atoms, ligand: NDArray[np.integer], poses: Floats, shown: NDArray[np.intp]
) -> dict[str, object]:  # fmt: skip
    """Return the atoms of the page: positions in each pose, elements, bonds and residue labels."""
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
