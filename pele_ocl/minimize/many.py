"""Different molecules minimised together."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arguments import callback, choice, described
from ..atoms import Atoms
from ..errors import InputError, PeleError
from ..variant import Progress
from .minimizer import Minimizer, Watch
from .result import MinimizeBatch, MinimizeResult

EachOptions = Callable[[Atoms], Mapping[str, object]]


def minimize_all(
    molecules: Sequence[Atoms], each: EachOptions | None, errors: str, progress: Progress | None, watch: Watch | None,
    options: Mapping[str, Any],
) -> MinimizeBatch:  # fmt: skip
    """The results of molecules in their order; parameters as of `minimize_many`."""
    choice("errors", errors, ("raise", "record"))
    if not isinstance(molecules, Sequence):
        raise InputError(f"molecules is {described(molecules)}; a list of Atoms is needed")
    for name, function in (("each", each), ("progress", progress), ("watch", watch)):
        callback(name, function)
    begin, n_done = perf_counter(), 0
    results: list[MinimizeResult | None] = [None] * len(molecules)
    reasons: dict[int, str] = {}

    def told(done: int, _: int, gradient: float) -> None:
        if progress is not None:
            progress((n_done + done) / len(molecules))
        if watch is not None:
            watch(n_done + done, len(molecules), gradient)

    for group in groups_of(molecules, alone=each is not None or bool(options.get("terms"))):
        first = molecules[group[0]]
        try:
            minimizer = Minimizer(first, **{**options, **({} if each is None else each(first))})
            starts = np.stack([molecules[k].positions for k in group])
            batch = minimizer.minimize_batch(starts, errors="record", watch=told)
        except PeleError as error:
            reasons |= dict.fromkeys(group, str(error))
        else:
            reasons |= {group[k]: reason for k, reason in batch.errors.items()}
            for k, result in batch.good:
                results[group[k]] = replace(result, atoms=molecules[group[k]].moved(result.positions))
        if reasons and errors == "raise":
            k = min(reasons)
            raise InputError(f"molecule {k + 1} of {len(molecules)}: {reasons[k]}")
        n_done += len(group)
    return MinimizeBatch(results, dict(sorted(reasons.items())), perf_counter() - begin)


def groups_of(molecules: Sequence[Atoms], alone: bool) -> list[list[int]]:
    """The numbers of molecules that are computed together: those that differ in positions alone.

    alone : each by itself, as restraints need it, which hold to the positions of their own molecule
    """
    groups: dict[object, list[int]] = {}
    for k, atoms in enumerate(molecules):
        if not isinstance(atoms, Atoms):
            raise InputError(f"molecules hold {type(atoms).__name__}; Atoms are needed")
        groups.setdefault(k if alone else digest(atoms), []).append(k)
    return list(groups.values())


def digest(atoms: Atoms) -> bytes:
    """The same for molecules that differ in nothing but positions, chains and numbers of residues."""
    about = len(atoms), atoms.combining, atoms.one_four, atoms.gb_radii_set, atoms.type_family
    found = hashlib.sha256(repr(about).encode())
    arrays: list[NDArray[Any] | None] = [
        atoms.charges, atoms.lj_sigma, atoms.lj_epsilon, atoms.gb_radii, atoms.gb_scales, atoms.bonds, atoms.types,
    ]  # fmt: skip
    if atoms.labels is not None:
        arrays += [atoms.labels.names, atoms.labels.elements, atoms.labels.residue_names]
    if atoms.bonded is not None:
        for _, table in atoms.bonded.tables():
            arrays += [table.atoms, table.parameters]
        arrays += [*atoms.bonded.maps, atoms.bonded.excluded]
    for array in arrays:
        values = np.zeros(0) if array is None else np.ascontiguousarray(array)
        found.update(f"{values.dtype}{values.shape}".encode())
        found.update(values.tobytes())
    return found.digest()
