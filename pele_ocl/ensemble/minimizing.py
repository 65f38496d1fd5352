"""Rows of an ensemble minimised: each from where it is, by launches that all share."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np

from ..atoms import Floats
from ..errors import InputError
from ..minimize.minimizer import Minimizer
from ..minimize.pack import Member, Seated
from ..minimize.packs import Packs
from ..minimize.result import MinimizeBatch, MinimizeResult

if TYPE_CHECKING:
    from .ensemble import Ensemble


def minimize_rows(ensemble: Ensemble, rows: Sequence[int], options: Mapping[str, Any]) -> MinimizeBatch:
    """Minimise rows, leave them evaluated at their minima, and give their results in the order of `rows`.

    Frozen atoms of a row stay where they are, restraints hold to the references of the row. options : of Minimizer

    Raises InputError for options that do not exist, and for those that are the ensemble's own.
    """
    begin, own = time.perf_counter(), ensemble._energy_options
    if twice := [name for name in options if name in own or name in ("frozen", "device")]:
        raise InputError(f"{twice[0]} is the ensemble's own; leave it out")
    starts = dict(zip(rows, ensemble.positions[list(rows)], strict=True))
    members: dict[object, Member] = {}
    found: dict[int, MinimizeResult | str] = {}

    def member_of(k: int) -> Member:
        """The molecule of a row with the atoms that it keeps in place."""
        mask = ensemble.frozen[k]
        key = ensemble._system(k), mask.tobytes()
        if key not in members:
            members[key] = Member(Minimizer(ensemble.atoms[k], **options, **own, device=ensemble.device), ~mask)
        return members[key]

    with ExitStack() as stack:
        packs = Packs(ensemble.device, ensemble.precision, stack)
        apart: dict[Member, list[int]] = {}

        def structures() -> Iterator[Seated | None]:
            for k in rows:
                try:
                    member = member_of(k)
                    if not (packs.suits(member.minimizer) and packs.fits(member)):
                        apart.setdefault(member, []).append(k)
                        continue
                    structure = packs.structure(member, k, starts[k])
                except InputError as error:
                    found[k] = str(error)
                else:
                    structure.initial = list(ensemble._references_of(k).items())
                    yield structure

        waiting = structures()
        packs.fill(waiting)
        while packs:
            packs.start()
            packs.fill(waiting)
            found.update(packs.look())
    for member, numbers in apart.items():
        found.update(_apart(member, numbers, [starts[k] for k in numbers]))
    results = [found[k] for k in rows]
    for k in rows:
        result = found[k]
        if isinstance(result, MinimizeResult):
            ensemble.positions[k] = result.positions
    ensemble.evaluate(list(rows))
    errors = {place: result for place, result in enumerate(results) if isinstance(result, str)}
    good = [None if isinstance(result, str) else result for result in results]
    return MinimizeBatch(good, errors, time.perf_counter() - begin)


def _apart(member: Member, rows: Sequence[int], starts: Sequence[Floats]) -> Iterator[tuple[int, MinimizeResult | str]]:
    """The results of rows of one molecule by a method that shares no launches with others."""
    batch = member.minimizer.minimize_batch(np.stack(starts), errors="record")
    for place, k in enumerate(rows):
        yield k, batch.errors[place] if place in batch.errors else batch[place]
