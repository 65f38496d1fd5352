"""Checkpoints: all that the steps to come depend on, in one file of NumPy's."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Iterator
from dataclasses import asdict
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats
from ..common.arguments import file_path
from ..common.errors import FormatError, InputError
from ..common.writing import replacing

if TYPE_CHECKING:
    from ..energy.engine.system import System
    from .simulation import Simulation

_LEAST_APART = 0.02  # kcal/mol that energies of the same settings may differ by on another device
_SHARE_APART = 5e-5  # of an energy, the same


def save(simulation: Simulation, path: str | PathLike[str], **more: NDArray[Any]) -> None:
    """Write the checkpoint of a simulation, and further arrays with it."""
    target = file_path(path)
    if target.suffix.lower() != ".npz":
        raise FormatError(f"{target}: checkpoints end in .npz; name the file so")
    simulation._catch_up()
    ensemble, motion = simulation.ensemble, simulation._motion
    arrays: dict[str, NDArray[Any]] = {name: motion.read(name) for name in motion.state}
    arrays["positions"] = _encoded(simulation)
    arrays["offsets"] = ensemble._offsets
    arrays["energies"] = simulation.potential_energies
    arrays["steps"] = np.array(simulation.steps)
    arrays["what"] = np.array(_described(simulation))
    arrays |= more
    with replacing(target) as temporary, open(temporary, "wb") as stream:
        np.savez(stream, **arrays)  # type: ignore[arg-type]


def restore(simulation: Simulation, path: str | PathLike[str]) -> dict[str, NDArray[Any]]:
    """Set a simulation to a checkpoint, and give the further arrays that are in it."""
    source = file_path(path)
    try:
        with open(source, "rb") as stream, np.load(stream, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise FormatError(f"{source}: is no checkpoint of a simulation, or a damaged one") from error
    motion, ensemble = simulation._motion, simulation.ensemble
    needed = (*motion.state, "positions", "offsets", "energies", "steps", "what")
    if any(name not in arrays for name in needed):
        raise FormatError(f"{source}: is no checkpoint of a simulation, or a damaged one")
    _require_same(json.loads(str(arrays["what"])), json.loads(_described(simulation)), str(source))
    for name in motion.state:
        motion.write(name, arrays[name])
    for rows, places in _places(simulation):
        ensemble._resident.write(rows, "positions", arrays["positions"][places])
    ensemble._offsets[:] = arrays["offsets"]
    simulation.steps = int(arrays["steps"])
    stopped = arrays["stopped"]
    simulation._rows = np.array(
        [k for k in range(len(ensemble)) if k not in ensemble._failed and not stopped[k]], np.int64
    )
    simulation._evaluate()
    _require_same_energies(simulation, arrays["energies"], str(source))
    return {name: array for name, array in arrays.items() if name not in needed}


def _encoded(simulation: Simulation) -> NDArray[Any]:
    """Read the positions of all rows as they are on the device, every bit, (3 n,) of all n atoms."""
    resident = simulation.ensemble._resident
    found = np.zeros(3 * int(resident.first_atoms[-1]), resident.coordinate)
    for rows, places in _places(simulation):
        found[places] = resident.read(rows, "positions", resident.coordinate)
    return found


def _places(simulation: Simulation) -> Iterator[tuple[list[int], NDArray[np.int64]]]:
    """Give the rows of each molecule, and the places of their coordinates among all rows', (n_rows, 3 n_atoms)."""
    resident = simulation.ensemble._resident
    by_system: dict[System, list[int]] = {}
    for k in resident.there.tolist():
        by_system.setdefault(resident.system(k), []).append(k)
    for rows in by_system.values():
        firsts = 3 * resident.first_atoms[rows]
        yield rows, firsts[:, None] + np.arange(3 * resident.n_atoms[rows[0]])


def _described(simulation: Simulation) -> str:
    """Write what a checkpoint must agree in with the simulation that goes on from it."""
    ensemble, bodies = simulation.ensemble, simulation._bodies
    digest = hashlib.sha256()
    for atoms, body in zip(ensemble.atoms, bodies, strict=True):
        digest.update(atoms.charges.tobytes() + atoms.positions.tobytes())
        if body is not None:
            digest.update(body.masses.tobytes() + body.free.tobytes())
    what = {
        "settings": asdict(simulation.settings), "precision": ensemble.precision,
        "coordinate": str(ensemble._resident.coordinate), "rows": len(ensemble), "molecules": digest.hexdigest(),
    }  # fmt: skip
    return json.dumps(what)


def _require_same(found: dict[str, Any], own: dict[str, Any], source: str) -> None:
    """Raise InputError that names the first difference."""
    for name, value in {**own.pop("settings"), **own}.items():
        there = {**found.get("settings", {}), **found}.get(name)
        if there != json.loads(json.dumps(value)):
            said = "is of other molecules" if name == "molecules" else f"has {name} {there}, not {value}"
            raise InputError(f"{source}: the checkpoint {said}; go on with the settings that it was made by")


def _require_same_energies(simulation: Simulation, energies: Floats, source: str) -> None:
    """Raise InputError where a replica has another energy than it had: other solvent, restraints or parameters."""
    own = simulation.potential_energies
    apart = np.abs(own - energies) > _LEAST_APART + _SHARE_APART * np.abs(energies)
    if apart.any():
        k = int(np.argmax(apart))
        raise InputError(
            f"{source}: replica {k} has {energies[k]:,.3f} kcal/mol there and {own[k]:,.3f} by these settings; go on "
            "with the solvent, restraints, cutoff and force field that it was made by"
        )
