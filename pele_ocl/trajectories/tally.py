"""Running summary of the results of frames: statistics, means per residue, frames per second."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..atoms import Floats
from ..contract import Finding
from ..jobs.facts import residues_as_json
from ..jobs.records import entries
from ..jobs.texts import counted, duration, frame_rate, residue_table
from ..report import text_table
from .statistics import Statistics
from .streaming import FURTHER_COLUMNS, FrameResults, PieceResults

NAMED = 3  # maximum number of errors to list


SPREAD = "total_sd"  # column in addition to the means


class Rate:
    """Frames per second. The first frames, which include compilation, are ignored if at least as many follow.

    first : number of calls of `add` to ignore; 0 to include all
    """

    def __init__(self, first: int = 1) -> None:
        self._left = first
        self._start = self._compiled = self._last = (time.perf_counter(), 0.0)

    def earlier(self, done: float) -> None:
        """Set the number of frames done in an earlier run."""
        self._start = self._compiled = self._last = (self._start[0], done)

    def add(self, done: float) -> None:
        """Set the total number of frames done so far, including an earlier run."""
        self._last = time.perf_counter(), done
        self._left -= 1
        if self._left == 0:
            self._compiled = self._last

    def __call__(self) -> float:
        """Return the frames per second up to the last call of `add`."""
        first, later = self._compiled[1] - self._start[1], self._last[1] - self._compiled[1]
        since = self._compiled if later >= max(first, 1e-9) else self._start
        return (self._last[1] - since[1]) / max(self._last[0] - since[0], 1e-9)


class ResidueMeans:
    """Running means of the terms of each residue, and standard deviation of the total.

    names : names of the residues; empty if there are no energies per residue
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self._statistics = Statistics()
        self._terms: tuple[str, ...] = ()

    def add(self, results: FrameResults) -> None:
        """Add frames."""
        if not self.names:
            return
        self._terms = tuple(results.residues)
        columns = {f"{term} {k}": column for term in self._terms for k, column in enumerate(results.residues[term].T)}
        self._statistics.add(FrameResults(columns, results.errors))

    def columns(self) -> dict[str, Floats]:
        """Return the mean of each term, (n_residues,) kcal/mol, and the standard deviation of the total, if any."""
        found = list(self._statistics.columns().values())
        means = np.array([of["mean"] for of in found]).reshape(-1, max(1, len(self.names)))
        spreads = np.array([of["sd"] for of in found]).reshape(means.shape)
        columns = dict(zip(self._terms, means, strict=False))
        return {**columns, SPREAD: spreads[self._terms.index("total")]} if found else {}

    def as_json(self) -> list[dict[str, Any]]:
        """Return one object per residue."""
        return residues_as_json(self.names, self.columns()) if self.columns() else []

    def lines(self) -> list[str]:
        """Return a table, if there are residues and frames."""
        columns = self.columns() if self.names else {}
        return ["", residue_table(self.names, [(None, columns)], "mean over frames, ")] if columns else []


Entry = tuple[int, Mapping[str, Any] | str]  # a frame number, with the result or the error


class Tally:
    """Running summary of completed frames: number, statistics, errors and, if requested, the results.

    n_earlier : frames of an earlier run; n_failed : failed frames; n_imaged : frames imaged in this run
    failed : first errors by frame number; seconds : elapsed time; parts : results, if kept
    """

    def __init__(self, keeps_rows: bool = False, residues: Sequence[str] = (), workers: int = 1) -> None:
        """Start the summary.

        keeps_rows : True to keep all results
        residues : names of the residues, for energies per residue
        workers : number of concurrent pieces, to exclude compilation from the rate; 0 to include it
        """
        self.n_earlier = self.n_failed = self.n_imaged = self._n = 0
        self._keeps_rows = keeps_rows
        self.parts: list[PieceResults[FrameResults]] = []
        self._statistics = Statistics()
        self._residues = ResidueMeans(residues)
        self.failed: dict[int, str] = {}
        self._start, self.seconds = time.perf_counter(), 0.0
        self._rate = Rate(workers)

    def add(self, part: PieceResults[FrameResults]) -> None:
        """Add frames."""
        self._n += len(part.frames)
        if part.is_earlier:
            self.n_earlier += len(part.frames)
            self._rate.earlier(self._n)
        else:
            self._rate.add(self._n)
        self._statistics.add(part.results)
        self._residues.add(part.results)
        self.n_failed += len(part.results.errors)
        self.n_imaged += part.results.n_imaged
        for place, reason in part.results.errors.items():
            if len(self.failed) < NAMED:
                self.failed[part.frames[place]] = reason
        if self._keeps_rows:
            self.parts.append(part)

    @property
    def n(self) -> int:
        """Number of frames."""
        return self._n

    def end(self) -> None:
        """Stop the clock."""
        self.seconds = time.perf_counter() - self._start

    def means(self) -> dict[str, float]:
        """Return the mean of each term, kcal/mol; empty without successful frames."""
        return {term: of["mean"] for term, of in self._statistics.columns().items()}

    def imaged(self) -> list[Finding]:
        """Return the finding about imaged frames, if any."""
        return imaged(self.n_imaged, self._n - self.n_earlier)

    def as_json(self) -> dict[str, object]:
        """Return the summary as a JSON-compatible dictionary."""
        return {
            **entries("frame", (entry for part in self.parts for entry in _entries(part))),
            "n_imaged": self.n_imaged,
            "statistics": self._statistics.columns(),
            **({"residues": self._residues.as_json()} if self._residues.names else {}),
            "frames_per_second": self._rate(),
            "seconds": {"frames": self.seconds},
        }

    def lines(self, how: str, total: float) -> list[str]:
        """Return a table of the statistics, and the rate. how : how frames were computed; total : elapsed time, s"""
        lines, columns = list[str](), dict(self._statistics.columns())
        lines += [finding.text for finding in self.imaged()]
        if columns:
            heads = ("", "mean", "sd", "min", "max")
            further = {name: columns.pop(name) for name in FURTHER_COLUMNS if name in columns}
            rows = [(name.replace("_", " "), *(f"{v:,.3f}" for v in of.values())) for name, of in columns.items()]
            lines += ["", "Energy of frames, kcal/mol", text_table(heads, rows, "<>>>>")]
            for name, values in further.items():
                mean, sd, least, most = (f"{value:{FURTHER_COLUMNS[name].form}}" for value in values.values())
                lines += ["", f"{FURTHER_COLUMNS[name].title}: mean {mean}, sd {sd}, {least} to {most}"]
        lines += self._residues.lines()
        earlier = f", {self.n_earlier:,} were already computed" if self.n_earlier else ""
        return [*lines, "", f"{how}: {frame_rate(self._rate())}, total {duration(total)}{earlier}"]


def imaged(n_imaged: int, n_frames: int) -> list[Finding]:
    """Return the finding that frames were imaged, if any were."""
    if not n_imaged:
        return []
    were = "was" if n_frames == 1 else "were"
    text = (
        f"{n_imaged:,} of {counted(n_frames, 'frame')} {were} imaged: molecules were made whole and placed "
        "next to each other"
    )
    return [Finding("repaired", text, code="imaged")]


def _entries(part: PieceResults[FrameResults]) -> list[Entry]:
    """Return each frame number with its results or error."""
    results = part.results
    energies = {name: values.tolist() for name, values in results.columns.items() if values.dtype.kind == "f"}
    others = {name: values.tolist() for name, values in results.columns.items() if name not in energies}  # n_pairs
    others |= {name: energies.pop(name) for name in FURTHER_COLUMNS if name in energies}
    found: list[Entry] = []
    for k, frame in enumerate(part.frames):
        energy, more = ({name: values[k] for name, values in of.items()} for of in (energies, others))
        found.append((frame, results.errors.get(k) or {"energy": energy, **more}))
    return found
