"""Checkpoints: all that the steps to come depend on, in one file of NumPy's."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats
from ..common.arguments import file_path
from ..common.errors import FormatError, InputError
from ..common.inputfile import npz_arrays
from ..common.writing import replacing
from ..energy.engine.rows import ResidentRows
from ..energy.engine.system import System
from .bodies import Body
from .settings import Settings

_LEAST_APART = 0.02  # kcal/mol that energies of the same settings may differ by on another device
_SHARE_APART = 5e-5  # of an energy, the same


def target_of(path: str | PathLike[str]) -> Path:
    """Return the path of a checkpoint to be written. Raises FormatError if it does not end in .npz."""
    target = file_path(path)
    if target.suffix.lower() != ".npz":
        raise FormatError(f"{target}: checkpoints end in .npz; name the file so")
    return target


def write(target: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write the arrays of a checkpoint, whole or not at all."""
    with replacing(target) as temporary, open(temporary, "wb") as stream:
        np.savez(stream, **arrays)  # type: ignore[arg-type]


def read(source: Path, needed: Collection[str]) -> dict[str, NDArray[Any]]:
    """Read the arrays of a checkpoint. Raises FormatError if it has not all that are needed."""
    try:
        arrays = npz_arrays(source)
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise FormatError(f"{source}: is no checkpoint of a simulation, or a damaged one") from error
    if any(name not in arrays for name in needed):
        raise FormatError(f"{source}: is no checkpoint of a simulation, or a damaged one")
    return arrays


def read_positions(resident: ResidentRows) -> NDArray[Any]:
    """Read the positions of all rows as they are on the device, every bit, (3 n,) of all n atoms."""
    found = np.zeros(3 * int(resident.first_atoms[-1]), resident.coordinate)
    for rows, places in _places(resident):
        found[places] = resident.read(rows, "positions", resident.coordinate)
    return found


def write_positions(resident: ResidentRows, positions: NDArray[Any]) -> None:
    """Write positions (3 n,) of all rows to the device, as `read_positions` gave them."""
    for rows, places in _places(resident):
        resident.write(rows, "positions", positions[places])


def _places(resident: ResidentRows) -> Iterator[tuple[list[int], NDArray[np.int64]]]:
    """Give the rows of each molecule, and the places of their coordinates among all rows', (n_rows, 3 n_atoms)."""
    by_system: dict[System, list[int]] = {}
    for k in resident.there.tolist():
        by_system.setdefault(resident.system(k), []).append(k)
    for rows in by_system.values():
        firsts = 3 * resident.first_atoms[rows]
        yield rows, firsts[:, None] + np.arange(3 * resident.n_atoms[rows[0]])


def described(settings: Settings, atoms: Sequence[Atoms], bodies: Sequence[Body | None], resident: ResidentRows) -> str:
    """Write what a checkpoint must agree in with the simulation that goes on from it.

    atoms, bodies : of each row
    """
    digest = hashlib.sha256()
    for of, body in zip(atoms, bodies, strict=True):
        digest.update(of.charges.tobytes() + of.positions.tobytes())
        if body is not None:
            digest.update(body.masses.tobytes() + body.free.tobytes())
    what = {
        "settings": asdict(settings), "precision": resident.queue.dtype.name,
        "coordinate": str(resident.coordinate), "rows": len(atoms), "molecules": digest.hexdigest(),
    }  # fmt: skip
    return json.dumps(what)


def require_same(theirs: str, ours: str, source: Path) -> None:
    """Raise InputError that names the first difference of two texts of `described`."""
    found, own = json.loads(theirs), json.loads(ours)
    for name, value in {**own.pop("settings"), **own}.items():
        there = {**found.get("settings", {}), **found}.get(name)
        if there != json.loads(json.dumps(value)):
            said = "is of other molecules" if name == "molecules" else f"has {name} {there}, not {value}"
            raise InputError(f"{source}: the checkpoint {said}; go on with the settings that it was made by")


def require_same_energies(own: Floats, energies: Floats, source: Path) -> None:
    """Raise InputError where a replica has another energy than it had: other solvent, restraints or parameters.

    own, energies : (n_rows,) kcal/mol, now and in the checkpoint
    """
    apart = np.abs(own - energies) > _LEAST_APART + _SHARE_APART * np.abs(energies)
    if apart.any():
        k = int(np.argmax(apart))
        raise InputError(
            f"{source}: replica {k} has {energies[k]:,.3f} kcal/mol there and {own[k]:,.3f} by these settings; go on "
            "with the solvent, restraints, cutoff and force field that it was made by"
        )
