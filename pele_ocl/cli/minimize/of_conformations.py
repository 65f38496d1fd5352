"""Frames or models of one molecule, which go to one file in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Any

from ...atoms import Atoms, Floats
from ...errors import InputError
from ...formats.conformation_files import ConformationFile, layout_of
from ...minimize import MinimizeBatch, Minimizer, MinimizeResult
from ...trajectories.files import Positions
from ...trajectories.reading import PIECE_ATOMS
from ..cluster import SharedWork, shared_out
from .conformations import Conformations
from .progress import StructureLine
from .work import Outcome, Work, findings_of

_Numbered = tuple[int, Outcome]  # a conformation, from 1
_LEAST_RANGES = 64  # of conformations, so that many workers have something to do


@dataclass(frozen=True, eq=False)
class Relaxing:
    """Conformations on their way to their minima; progress : of this process, where it is told"""

    work: Work
    conformations: Conformations
    progress: StructureLine | None = None

    @cached_property
    def held(self) -> Mapping[str, Any]:
        """The options of what is held: the same atoms in all, to each one's positions or a reference's."""
        return self.work.holding.of(self.conformations.atoms)

    @cached_property
    def minimizer(self) -> Minimizer:
        return Minimizer(self.conformations.atoms, **self.work.options, **self.held)

    def outcomes(self, part: range) -> list[Outcome]:
        """Those of some conformations, by their places."""
        conformations = self.conformations
        positions, sha256 = conformations.positions(part), conformations.sha256
        batch = self._batch(positions)
        torn = conformations.torn(part) if batch.errors else {}
        return [
            Outcome.failed_by(torn.get(k, batch.errors[k]), name, sha256)
            if result is None
            else self._outcome(result, name, positions[k])
            for k, (result, name) in enumerate(zip(batch.results, (conformations.names[j] for j in part), strict=True))
        ]

    def _outcome(self, result: MinimizeResult, name: str, start: Floats) -> Outcome:
        """The outcome of a conformation that is done, with the findings about its start."""
        atoms, row = self.conformations.atoms, result.to_dict(name)
        try:
            found = findings_of(atoms.moved(start), row["energy_before"])
        except InputError as error:  # which --strict makes of a finding
            return Outcome.failed_by(str(error), name, self.conformations.sha256)
        return Outcome({**row, **found}, len(atoms), self.conformations.sha256, result.positions)

    def _batch(self, positions: Positions) -> MinimizeBatch:
        if self.work.holding.to_starts:
            return self._restrained(positions)
        watch = None if self.progress is None else self.progress.watch
        return self.minimizer.minimize_batch(positions, errors="record", watch=watch)

    def _restrained(self, positions: Positions) -> MinimizeBatch:
        """The results of conformations (m, n, 3) A, each restrained to its own positions."""
        molecules: dict[int, Atoms] = {}
        reasons: dict[int, str] = {}
        for k, own in enumerate(positions):
            try:
                molecules[k] = self.conformations.atoms.moved(own)
            except InputError as error:
                reasons[k] = str(error)
        batch = self.work.minimized(list(molecules.values()), lambda _: self.held, self.progress)
        results = dict(zip(molecules, batch.results, strict=True))
        reasons |= {k: batch.errors[place] for place, k in enumerate(molecules) if place in batch.errors}
        return MinimizeBatch([results.get(k) for k in range(len(positions))], reasons, batch.seconds)


def outcomes_of_conformations(work: Work, path: Path) -> tuple[list[Outcome], str]:
    """The outcomes of all conformations, in their order, and the device that computed them."""
    conformations = Conformations.of(path, work.read_atoms, work.over, work.models)
    with (
        closing(conformations),
        shared_out(Relaxing(work, conformations).outcomes, work.facts, None, **work.for_workers) as shared,
    ):
        return list(_written(work, conformations, shared)), str(shared.facts["device"])


def _written(work: Work, conformations: Conformations, shared: SharedWork[range, list[Outcome]]) -> Iterator[Outcome]:
    """The outcomes of all conformations, which are written and noted down as they come.

    The file begins with the first conformation that is done, so a call that can do none leaves an earlier one as it is.
    """
    layout = layout_of(work.targets.output, work.content(conformations.source, conformations.atoms, len(conformations)))
    with work.journal() as journal, StructureLine(len(conformations)) as progress:
        earlier = list(journal.rows.values())
        journal.require(earlier, conformations.names, conformations.sha256)
        yield from (Outcome(journal.reported(row)) for row in earlier)
        progress.done = progress.first = len(earlier)
        if shared.is_remote:
            size, over = _size_for_workers(conformations), shared.over
        else:
            size = max(1, work.atoms_together // len(conformations.atoms))
            over = partial(map, Relaxing(work, conformations, progress).outcomes)
        parts = list(_ranges(len(earlier), len(conformations), size))
        numbered = _numbered(parts, over, progress)
        first = [] if earlier else _to_first_done(numbered)
        if first and first[-1][1].failed:
            yield from (outcome for _, outcome in first)
            return
        journal.begin()
        with ConformationFile(work.targets.output, layout, journal.size) as file:
            for number, outcome in chain(first, numbered):
                file.append(number, outcome.positions)
                journal.add(outcome.row, sha256=outcome.sha256, size=file.size)
                yield replace(outcome, positions=None)
            file.finish()


def _numbered(
    parts: list[range], over: Callable[[Iterable[range]], Iterator[list[Outcome]]], progress: StructureLine
) -> Iterator[_Numbered]:
    """The outcomes of conformations, each with its number, and told as they come."""
    for part, outcomes in zip(parts, over(parts), strict=True):
        yield from zip((place + 1 for place in part), outcomes, strict=True)
        progress.done = part.stop
        progress.tell(0)


def _to_first_done(numbered: Iterator[_Numbered]) -> list[_Numbered]:
    """The outcomes up to the first that did not fail, or all."""
    found = list[_Numbered]()
    for number, outcome in numbered:
        found.append((number, outcome))
        if not outcome.failed:
            break
    return found


def _size_for_workers(conformations: Conformations) -> int:
    """Conformations that a worker minimises together, which depends on nothing but the conformations."""
    most = max(1, PIECE_ATOMS // len(conformations.atoms))
    return max(1, min(-(-len(conformations) // _LEAST_RANGES), most))


def _ranges(first: int, end: int, size: int) -> Iterator[range]:
    """The places from `first` on in ranges of a size, or up to the next multiple of it."""
    while first < end:
        part = range(first, min(end, (first // size + 1) * size))
        yield part
        first = part.stop
