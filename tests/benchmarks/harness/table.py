"""Comparison as tables in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from .charts import plain
from .comparison import MESH_ACCURACY, TOLERANCES, Row
from .markdown import table

ABOUT = {
    "potmap": "Potential map, direct sum; billion atom evaluations per second, with the data on the device.",
    "energy": "Lennard-Jones, Coulomb, GB and surface energy with the full gradient, all pairs.",
    "mesh": f"Potential map with an error by norm of {MESH_ACCURACY:g} at most. The error is measured at 1,000 points.",
    "minimize": "Minimization with Amber99SB and OBC II, no cutoff, without set-up.",
    "nonbond": "Lennard-Jones and Coulomb energy with gradient within a cutoff, for a fixed pair list.",
    "solvent": "Born radii with the GB and surface energy, all pairs. OpenMM always computes the forces, too.",
}


@dataclass(frozen=True, eq=False)
class Group:
    """Rows of one work in one precision: with and without numbers."""

    timed: Sequence[Row]
    missing: Sequence[Row]

    @classmethod
    def of(cls, rows: Iterable[Row]) -> Group:
        every = list(rows)
        return cls([row for row in every if row.seconds is not None], [row for row in every if row.seconds is None])

    @property
    def first(self) -> Row:
        return (*self.timed, *self.missing)[0]

    @property
    def title(self) -> str:
        return f"{self.first.work}: {self.first.system}, {self.first.precision}"

    def times_best_peer(self, row: Row, of: Callable[[Row], float | None]) -> float | None:
        """Return the speed-up over the fastest peer with a correct result; None without one."""
        peers = [of(peer) for peer in self.timed if not peer.ours and peer.agrees]
        known, own = [seconds for seconds in peers if seconds is not None], of(row)
        return min(known) / own if known and own is not None else None

    def section(self) -> str:
        """Return the group in Markdown."""
        lines = [f"### {self.title}", "", ABOUT[self.first.work], ""]
        if self.timed:
            lines += table(self._rate_cells() if self.first.work == "potmap" else self._time_cells(), texts=(0, 1))
        if any(row.sampled for row in self.timed):
            lines += ["", "\\* scaled from a part of the map"]
        failed = [f"- {row.code} failed: {row.reason}" for row in self.missing if not row.absent]
        absent = [f"{row.code} ({row.reason})" for row in self.missing if row.absent]
        if failed:
            lines += ["", *failed]
        if absent:
            lines += ["", f"Not timed: {', '.join(absent)}."]
        return "\n".join(lines) + "\n"

    def _rate_cells(self) -> list[list[str]]:
        cells = [["code", "on", "G evals/s", "best peer = 1", "error"]]
        for row in self.timed:
            assert row.seconds is not None
            rate = f"{plain(row.evaluations / row.seconds / 1e9, 4)}{'*' if row.sampled else ''}"
            ratio = _ratio(self.times_best_peer(row, lambda r: r.seconds))
            cells.append([row.code, row.where, rate, ratio, _error(row, "map")])
        return cells

    def _time_cells(self) -> list[list[str]]:
        names = list(dict.fromkeys(name for row in self.timed for name in row.errors))
        cells = [["code", "on", "ms", "best peer = 1", "ms per call", "best peer = 1", *(f"{n} error" for n in names)]]
        for row in self.timed:
            ratios = (
                self.times_best_peer(row, lambda r: r.seconds),
                self.times_best_peer(row, lambda r: r.call_seconds),
            )
            times, calls = _milliseconds(row.seconds), _milliseconds(row.call_seconds)
            errors = [_error(row, name) for name in names]
            cells.append([row.code, row.where, times, _ratio(ratios[0]), calls, _ratio(ratios[1]), *errors])
        return cells


def groups(rows: Iterable[Row]) -> list[Group]:
    """Group the rows by work and precision, in their order."""
    return [Group.of(some) for _, some in groupby(rows, key=lambda row: (row.work, row.system, row.precision))]


def markdown(rows: Iterable[Row], title: str, origin: str) -> str:
    """Return a page; origin : how it was created"""
    return "\n".join([f"## {title}", "", origin, *(group.section() for group in groups(rows))])


def disagreements(rows: Iterable[Row]) -> list[str]:
    """Return a sentence for each row whose error against float64 exceeds its tolerance."""
    return [
        f"{row.code} on {row.where}, {row.work} of {row.system}: error of the {name} {error:.1e}, more than "
        f"{TOLERANCES[row.precision][name]:.0e} in {row.precision}"
        for row in rows
        if not row.agrees
        for name, error in row.errors.items()
        if not error <= TOLERANCES[row.precision][name]
    ]


def _milliseconds(seconds: float | None) -> str:
    return "" if seconds is None else plain(1e3 * seconds, 4)


def _ratio(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:,.3g}"


def _error(row: Row, name: str) -> str:
    """Format an error; in bold with a word if it exceeds its tolerance."""
    if name not in row.errors:
        return ""
    error = row.errors[name]
    return f"{error:.1e}" if error <= TOLERANCES[row.precision][name] else f"**{error:.1e} disagrees**"
