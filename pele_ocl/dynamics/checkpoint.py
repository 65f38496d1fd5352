"""Checkpoints of simulations: the complete state in one .npz file."""

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
from ..common.hashing import sha256_of
from ..common.inputfile import npz_arrays
from ..common.writing import replacing
from ..energy.engine import System
from ..energy.terms import Growing
from ..ensemble.restraints import first_values, values_of_rows
from ..ensemble.state import State
from .bodies import Body
from .settings import Settings

_LEAST_APART = 0.02  # kcal/mol, tolerance for energies on another device
GROWTH = "height", "barrier", "pace", "bias_factor", "shared"  # fields of biases that determine hills
_SHARE_APART = 5e-5  # relative tolerance, added to _LEAST_APART


def target_of(path: str | PathLike[str]) -> Path:
    """Return the path of a new checkpoint. Raises FormatError if it does not end in .npz."""
    target = file_path(path)
    if target.suffix.lower() != ".npz":
        raise FormatError(f"{target}: the suffix of a checkpoint must be .npz")
    return target


def write(target: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write the arrays of a checkpoint atomically."""
    with replacing(target) as temporary, open(temporary, "wb") as stream:
        np.savez(stream, **arrays)  # type: ignore[arg-type]


def read(source: Path, needed: Collection[str]) -> dict[str, NDArray[Any]]:
    """Read the arrays of a checkpoint. Raises FormatError if a required array is missing."""
    try:
        arrays = npz_arrays(source)
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise FormatError(f"{source}: is not a checkpoint of a simulation, or is damaged") from error
    if any(name not in arrays for name in needed):
        raise FormatError(f"{source}: is not a checkpoint of a simulation, or is damaged")
    return arrays


def read_rows(state: State) -> dict[str, NDArray[Any]]:
    """Read the state of all rows: exact positions, restraint values, frozen atoms, failed rows."""
    positions = np.zeros(3 * int(state.first_atoms[-1]), state.coordinate)
    for rows, places in _places(state):
        positions[places] = state.read_buffer(rows, "positions", state.coordinate)
    failed = {k: why for k, why in state.failed.items() if state.systems[k] is not None}
    found: dict[str, NDArray[Any]] = {
        "positions": positions, "offsets": state.offsets.copy(), "frozen": state.frozen_atoms,
        "failed": np.array(json.dumps(failed)),
    }  # fmt: skip
    for number, (rows, _) in enumerate(_places(state)):
        values = values_of_rows(state, state.system(rows[0]), rows)
        found |= {f"{name}, molecule {number}": array for name, array in values.items()}
    return found


def write_rows(state: State, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Restore the state read by `read_rows`; checkpoints of earlier versions contain only positions."""
    state.changed(None)
    for number, (rows, places) in enumerate(_places(state)):
        state.write_buffer(rows, "positions", arrays["positions"][places])
        for name in values_of_rows(state, state.system(rows[0]), rows):
            if (values := arrays.get(f"{name}, molecule {number}")) is not None:
                state.write_buffer(rows, name, values)
    state.offsets[:] = arrays["offsets"]
    if "frozen" in arrays:
        state.freeze(list(range(len(state))), np.split(arrays["frozen"], state.first_atoms[1:-1]))
        state.failed = {k: why for k, why in state.failed.items() if state.systems[k] is None}
        state.failed |= {int(k): why for k, why in json.loads(str(arrays["failed"])).items()}


def own_values(state: State) -> list[str]:
    """Return the sorted hashes of the values specific to each row, which do not depend on exchanges of rows.

    Arrays of history-dependent biases are excluded.
    """
    growing = tuple(f" of {term.name}" for term in state.terms if isinstance(term, Growing))
    found: list[str] = []
    for rows, _ in _places(state):
        values = values_of_rows(state, state.system(rows[0]), rows)
        kept = [of for name, of in values.items() if not name.endswith(growing)]
        found += [sha256_of([of[k] for of in kept]) for k in range(len(rows))]
    return sorted(found)


def _places(state: State) -> Iterator[tuple[list[int], NDArray[np.int64]]]:
    """Yield the rows of each molecule, and the indices of their coordinates in the flat array of all rows.

    The indices have shape (n_rows, 3 n_atoms).
    """
    by_system: dict[System, list[int]] = {}
    for k in state.with_molecule.tolist():
        by_system.setdefault(state.system(k), []).append(k)
    for rows in by_system.values():
        firsts = 3 * state.first_atoms[rows]
        yield rows, firsts[:, None] + np.arange(3 * state.n_atoms[rows[0]])


def described(settings: Settings, atoms: Sequence[Atoms], bodies: Sequence[Body | None], state: State) -> str:
    """Return a JSON string of everything that must be equal in a checkpoint and the simulation that reads it.

    atoms, bodies : of each row, at the start of the simulation
    """
    digest, restraints = hashlib.sha256(), hashlib.sha256()
    for of, body in zip(atoms, bodies, strict=True):
        digest.update(of.charges.tobytes() + of.positions.tobytes())
        if body is not None:
            digest.update(body.masses.tobytes() + body.free.tobytes())
    for rows, _ in _places(state):
        for name, values in first_values(state.system(rows[0])).items():
            restraints.update(name.encode() + values.tobytes())
    chosen = asdict(settings)
    if settings.exchange == "temperature":  # not stored by earlier versions
        del chosen["exchange"]
    if settings.ladder_shape is None:
        del chosen["ladder_shape"]
    hills = {
        of.name: {
            **{word: vars(of)[word] for word in GROWTH if word in vars(of)},
            "widths": np.asarray(of.widths).tolist(), "nodes": [asdict(axis) for axis in of.axes],
        }
        for system in dict.fromkeys(state.systems) if system
        for of in system.energy.further_terms if isinstance(of, Growing)
    }  # fmt: skip
    what = {
        "hills": hills,
        "settings": chosen, "precision": state.queue.dtype.name,
        "coordinate": str(state.coordinate), "rows": len(atoms), "molecules": digest.hexdigest(),
        "restraints": restraints.hexdigest(),
    }  # fmt: skip
    return json.dumps(what, default=np.generic.item)  # terms may contain NumPy scalars


def require_same(theirs: str, ours: str, source: Path) -> None:
    """Raise InputError with the first difference between two results of `described`, except restraints."""
    found, own = json.loads(theirs), json.loads(ours)
    del own["restraints"]
    for bias, words in own.pop("hills").items():
        for name, value in found.get("hills", {}).get(bias, words).items():  # not stored by earlier versions
            if value != words[name]:
                said = f"other nodes of {bias}" if name == "nodes" else f"{name} {value} of {bias}, not {words[name]}"
                raise InputError(f"{source}: the checkpoint has {said}; use the settings with which it was written")
    for name, value in {**own.pop("settings"), **own}.items():
        there = {**found.get("settings", {}), **found}.get(name)
        if there != json.loads(json.dumps(value)):
            said = "is for other molecules" if name == "molecules" else f"has {name} {there}, not {value}"
            raise InputError(f"{source}: the checkpoint {said}; use the settings with which it was written")


def require_same_restraints(theirs: str, ours: str, source: Path) -> None:
    """Raise InputError if the restraints in two results of `described` differ; earlier versions stored none."""
    own = json.loads(ours)["restraints"]
    if json.loads(theirs).get("restraints", own) != own:
        raise InputError(f"{source}: the checkpoint has other restraints; use those with which it was written")


def require_same_energies(own: Floats, energies: Floats, source: Path) -> None:
    """Raise InputError if an energy differs from the checkpoint, as with a different solvent, restraint or force field.

    own, energies : (n_rows,) kcal/mol, in the simulation and in the checkpoint
    """
    apart = np.abs(own - energies) > _LEAST_APART + _SHARE_APART * np.abs(energies)
    if apart.any():
        k = int(np.argmax(apart))
        raise InputError(
            f"{source}: replica {k} has {energies[k]:,.3f} kcal/mol there and {own[k]:,.3f} by these settings; "
            "continue with the solvent, restraints, cutoff and force field with which it was written"
        )
