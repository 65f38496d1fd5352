"""Calculation of the energies of all frames of a trajectory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..atoms import Floats
from ..common.arguments import callback, described
from ..common.errors import InputError, Suggests
from ..common.notes import as_json
from ..common.variant import Progress
from ..contract import Image
from ..gb_models.solvent_model import has_area
from ..jobs.records import SCHEMA, entries
from ..plan.plan import Plan
from ..report import Column, Framed, Report
from ..results import TermBatch, Terms
from .files import Positions
from .fingerprints import settings_of_frames
from .frames import FrameWords
from .reading import Paths, Trajectory, opened
from .recording import Settings, joined, numbers_of, recorder_for
from .selection import Selection
from .streaming import (
    FURTHER_COLUMNS,
    N_PAIRS,
    SURFACE_AREA,
    Evaluate,
    FrameResults,
    PieceResults,
    ResultsOver,
    results_over,
)
from .tally import Tally

FrameBatch: TypeAlias = TermBatch[Any]
AnyPlan: TypeAlias = Plan[Any, Any]
_WAITING = 8  # maximum number of pieces waiting to be written


class FramesMade(Protocol):
    """Interface of a report about the energies of frames."""

    @property
    def facts(self) -> Mapping[str, Any]: ...

    @property
    def tally(self) -> Tally: ...

    def to_json(self) -> dict[str, Any]: ...

    def text(self, total: float | None = None) -> str: ...

    def save(self, path: str | PathLike[str]) -> None: ...


@dataclass(frozen=True, eq=False, repr=False)
class FrameEnergies(Framed, Suggests):
    """Energies of the frames of a trajectory.

    frames : (m,) frame numbers, from 0 across all files
    terms : Terms of shape (m, n_terms), kcal/mol; NaN for failed frames
    errors : errors of failed frames, by frame number
    surface_area : (m,) A^2; None without an LCPO surface
    n_imaged : number of imaged frames among those computed in this run
    n_pairs : (m,) length of the pair list of each frame; None unless each frame has a separate list
    notes : notes of the Trajectory
    made : report about the calculation, for `save` and `to_json`; None for results of `energy_over`
    """

    frames: NDArray[np.int64]
    terms: Terms
    errors: Mapping[int, str] = field(default_factory=dict)
    surface_area: Floats | None = None
    n_imaged: int = 0
    n_pairs: NDArray[np.int64] | None = None
    notes: tuple[str, ...] = ()
    made: FramesMade | None = None

    @classmethod
    def none(cls, made: FramesMade) -> FrameEnergies:
        """Create an object without the energies of frames, only with statistics."""
        return cls(np.zeros(0, np.int64), Terms((), np.zeros((0, 0))), made=made)

    def __len__(self) -> int:
        return len(self.frames)

    def __repr__(self) -> str:
        total = self.total[np.isfinite(self.total)] if self.terms.names else np.zeros(0)
        some = f"total {total.mean():.3f} kcal/mol, sd {total.std():.3f}; " if len(total) else ""
        names = ", ".join(self.terms.names)
        return f"FrameEnergies({len(self):,} frames, {len(self.errors):,} failed; {some}{names})"

    @property
    def total(self) -> Floats:
        """Total energy of each frame, (m,) kcal/mol."""
        return self.terms.total

    @property
    def energies(self) -> Floats:
        """Energy terms of each frame, (m, n_terms) kcal/mol, in the order of `terms.names`."""
        return self.terms.values

    def table(self) -> Report:
        """Table of the energies and errors, one row per frame."""
        columns: dict[str, Column | ArrayLike] = {"frame": self.frames}
        columns |= {name: Column(values, "kcal/mol") for name, values in self.terms.columns().items()}
        for name, of in FURTHER_COLUMNS.items():
            if (values := getattr(self, name)) is not None:
                columns[name] = Column(values, of.unit, of.form)
        columns["error"] = np.array([self.errors.get(int(k), "") for k in self.frames], str)
        return Report(f"Energy of {len(self):,} frames", columns, {} if self.made is None else self.made.facts)

    def to_json(self) -> dict[str, Any]:
        """Return the record: settings, entries of frames, statistics and findings; see docs/records.md.

        For results of `energy_over` it contains only the entries of frames.
        """
        if self.made is not None:
            return self.made.to_json()
        rows = zip(self.frames.tolist(), self.terms.values.tolist(), self.total.tolist(), strict=True)
        energies = {
            frame: {"energy": {**dict(zip(self.terms.names, values, strict=True)), "total": total}}
            for frame, values, total in rows
        }
        found = [(frame, self.errors.get(frame, energy)) for frame, energy in energies.items()]
        return {"schema": SCHEMA, **entries("frame", found), **as_json(self.notes)}

    def text(self, verbose: bool = False, total: float | None = None) -> str:
        """Return a text report with the molecule, the settings and statistics. total : elapsed seconds to report"""
        return self.table().text() if self.made is None else self.made.text(total)

    @property
    def tally(self) -> Tally:
        """Statistics and errors of the frames."""
        return self._made.tally

    def save(self, path: str | PathLike[str]) -> None:
        """Write one row per frame to a .h5, .csv or .jsonl file, as with `output`.

        Raises FormatError for other suffixes, and if the file cannot be written.
        """
        if self.made is None:
            self.table().save(path)
        else:
            self.made.save(path)

    @property
    def _made(self) -> FramesMade:
        if self.made is None:
            raise InputError(
                "these energies come from `energy_over`, whose `output` writes them; table() contains them"
            )
        return self.made


def energies_over(
    plan: AnyPlan, over: Trajectory, *, output: str | PathLike[str] | None = None, resume: bool = False,
    progress: Progress | None = None,
) -> FrameEnergies:  # fmt: skip
    """Compute the energies of all frames with a plan; arguments as in `pele_ocl.energy_over`."""
    if not plan.names:
        raise InputError(
            "the plan computes no energies; create it with energy=True, or use batches_over for Born radii"
        )
    settings = settings_of_frames(plan, over, plan._settings_of_results()) if output is not None else {}
    return frame_energies(
        over, evaluate_with(plan), workers_of(plan), output=output, resume=resume, settings=settings, progress=progress
    )


def frame_energies(
    over: Trajectory, evaluate: Evaluate[FrameResults], workers: int, *, output: str | PathLike[str] | None = None,
    resume: bool = False, settings: Settings | None = None, progress: Progress | None = None,
) -> FrameEnergies:  # fmt: skip
    """Compute the energies of all frames with a function from `evaluate_with`; arguments as in `recorded`."""
    tell = None if progress is None else lambda done: progress(done / len(over))
    parts = list(recorded(over, evaluate, workers, output=output, resume=resume, settings=settings or {}, tell=tell))
    return energies_of_parts(parts, over.notes)


def energies_of_parts(
    parts: Sequence[PieceResults[FrameResults]], notes: tuple[str, ...], made: FramesMade | None = None
) -> FrameEnergies:
    """Concatenate the results of consecutive pieces."""
    results = joined([part.results for part in parts])
    numbers = np.concatenate([numbers_of(part.frames) for part in parts])
    no_terms = ("total", *FURTHER_COLUMNS)
    terms = Terms.of({name: values for name, values in results.columns.items() if name not in no_terms})
    errors = {int(numbers[k]): text for k, text in sorted(results.errors.items())}
    area = results.columns.get(SURFACE_AREA)
    surface = None if area is None else np.asarray(area, np.float64)
    counts = results.columns.get(N_PAIRS)
    n_pairs = None if counts is None else np.asarray(counts, np.int64)
    return FrameEnergies(numbers, terms, errors, surface, results.n_imaged, n_pairs, notes, made)


def batches_over(
    plan: AnyPlan, trajectory: Trajectory | Paths, *, progress: Progress | None = None
) -> Iterator[tuple[range, FrameBatch]]:
    """Yield the frame numbers and the batch result of a plan, with gradients, for each piece of a trajectory.

    A Nonbond uses the same pair list for all frames. Failed frames are in `errors` of the batch. Raises FormatError and
    InputError like `trajectory`.

    >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
    >>> plan = pele_ocl.Energy(atoms, gradient=False)
    >>> [(frames, len(batch)) for frames, batch in pele_ocl.batches_over(plan, np.stack([atoms.positions] * 3))]
    [(range(0, 3), 3)]
    """
    callback("progress", progress)
    over = trajectory_for(plan, trajectory)
    tell = None if progress is None else lambda done: progress(done / len(over))

    def evaluate(positions: Positions, inner: Progress | None) -> FrameBatch:
        batch: FrameBatch = plan.evaluate_batch(positions, inner, errors="record")
        return batch

    for part in results_over(over, evaluate, workers=workers_of(plan), tell=tell):
        yield part.frames, part.results


def recorded(
    frames: Trajectory, evaluate: Evaluate[FrameResults], workers: int = 1, *, output: str | PathLike[str] | None,
    resume: bool, settings: Settings, tell: Callable[[float], None] | None = None,
    over: ResultsOver = results_over,
) -> Iterator[PieceResults[FrameResults]]:  # fmt: skip
    """Yield the results of `results_over`, and write them to `output` if it is given.

    If a run is resumed, the first part contains the earlier results. tell : called with the number of completed frames;
    over : replacement for `results_over`
    """
    if output is None:
        yield from over(frames, evaluate, workers=workers, tell=tell)
        return
    with recorder_for(output, settings, frames.frames, frames.inputs) as recorder, ThreadPoolExecutor(1) as writer:
        earlier = recorder.resume() if resume else None
        first = recorder.done
        if earlier is not None:
            recorder.require_terms(earlier)
            yield PieceResults(frames.frames[:first], earlier, is_earlier=True)
        told = None if tell is None else lambda done: tell(first + done)

        def append(results: FrameResults, before: Future[None] | None) -> None:
            if before is not None:
                before.result()  # do not write after an error
            recorder.append(results)

        writing: deque[Future[None]] = deque()
        for part in over(frames, evaluate, first=first, workers=workers, tell=told):
            writing.append(writer.submit(append, part.results, writing[-1] if writing else None))
            if len(writing) > _WAITING:
                writing.popleft().result()
            yield part
        for each in writing:
            each.result()


def evaluate_with(plan: AnyPlan, per_residue: bool = False) -> Evaluate[FrameResults]:
    """Return a function that evaluates positions with a plan and returns the energies and the surface area, if any.

    If the pair list of the plan depends on positions, as with pairs_within, it is updated for each frame.

    per_residue : True to include energies per residue, which require a per-atom plan
    """

    own = plan._frames_function()
    if own is not None:
        return own

    def evaluate(positions: Positions, progress: Progress | None) -> FrameResults:
        return frame_results(plan, plan.evaluate_batch(positions, progress, errors="record"), per_residue)

    return evaluate


def frame_results(plan: AnyPlan, batch: Any, per_residue: bool = False) -> FrameResults:
    """Extract the energies, the surface area and the energies per residue, if any, from a batch result."""
    columns = batch.terms.columns()
    if has_area(plan.model, batch.terms.names):
        columns[SURFACE_AREA] = batch.terms.nonpolar / plan.model.surface_tension
    residues = batch.per_residue().columns() if per_residue else {}
    return FrameResults(columns, batch.errors, residues)


def workers_of(plan: AnyPlan) -> int:
    """Return the number of pieces to evaluate concurrently.

    Two pieces keep a GPU busy while the host processes results. They have no advantage on a CPU, or if pair lists are
    made for each frame.
    """
    return 1 if plan.device.kind == "CPU" or plan._is_made_anew else 2


def trajectory_for(
    plan: AnyPlan, trajectory: Trajectory | Paths, frames: FrameWords = None, select: Selection | None = None,
    topology: str | PathLike[str] | None = None, image: Image = "auto",
) -> Trajectory:  # fmt: skip
    """Open a trajectory for the atoms of a plan. Raises the errors of `opened`, and InputError for other plans."""
    if not isinstance(plan, Plan):
        raise InputError(f"the plan is {described(plan)}; expected Atoms, an Energy, a Solvent or a Nonbond")
    return opened(plan.atoms, trajectory, frames, select, topology, image)
