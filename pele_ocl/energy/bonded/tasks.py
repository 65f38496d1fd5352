"""Bonded terms as tasks of a kernel: members, rows of results and parameters, including splines of CMAP maps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...atoms import Atoms, Bonded, Floats, OneFourPairs, Torsions
from ...gb_models.solvent_model import SolventModel
from ...opencl.interface import BondedKind


class TermTables(NamedTuple):
    """Tables of a term in Atoms.bonded. has_springs : whether its tasks are SPRINGS, used by preconditioners"""

    tables: tuple[str, ...]
    has_springs: bool = True


MEMBERS = 4  # per task; a CMAP term has twice as many, the atoms of two torsions
HARMONIC = (  # table, term, kind of its tasks
    ("bonds", "bond", BondedKind.STRETCH),
    ("urey_bradley", "urey_bradley", BondedKind.STRETCH),
    ("angles", "angle", BondedKind.BEND),
    ("harmonic_impropers", "improper", BondedKind.HOLD),
)
ONE_FOUR_TERMS = ("lennard_jones_14", "coulomb_14")
# Kinds with a branch in cl/minimize/springs.clh: harmonic or periodic in one coordinate.
SPRINGS = (BondedKind.STRETCH, BondedKind.BEND, BondedKind.TWIST, BondedKind.HOLD)
WITHIN = {BondedKind.BEND: (0.0, np.pi), BondedKind.HOLD: (-np.inf, np.inf)}  # range of the angle of each kind

TABLES_OF_TERMS = {  # in the order of results
    "bond": TermTables(("bonds",)),
    "angle": TermTables(("angles",)),
    "torsion": TermTables(("torsions",)),
    "improper": TermTables(("impropers", "harmonic_impropers")),
    "urey_bradley": TermTables(("urey_bradley",)),
    "cmap": TermTables(("cmaps",), has_springs=False),
}

_Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Tasks:
    """m tasks; each computes the energy of a few atoms and its gradient.

    kinds : (m,) BondedKind
    members : (m, 4) atoms, padded with -1; (m, 8) if any task has more than four
    rows : same shape, row of the results to which each member's contribution is added
    first : (m,) first row of parameters; counts : (m,) number of rows, or size of the map
    parameters : (k, 4) as used by the kernel
    """

    kinds: _Indices
    members: NDArray[np.int32]
    rows: NDArray[np.int32]
    first: _Indices
    counts: _Indices
    parameters: Floats

    def __len__(self) -> int:
        return len(self.kinds)

    @classmethod
    def of(cls, atoms: Atoms, one_four: OneFourPairs | None, model: SolventModel, names: Sequence[str]) -> Tasks:
        """Create the tasks of the named terms, sorted by kind. one_four : None to leave 1-4 pairs out"""
        bonded = Bonded() if atoms.bonded is None else atoms.bonded
        parts = [_harmonic(bonded, *of, names) for of in HARMONIC if of[1] in names]
        parts += [
            _torsions(table, names.index(term))
            for table, term in ((bonded.torsions, "torsion"), (bonded.impropers, "improper"))
            if term in names
        ]
        if "cmap" in names:
            parts.append(_cmaps(bonded, names.index("cmap")))
        if one_four is not None:
            parts.append(_pairs(one_four, model, names))
        return cls.joined(parts or [cls.plain(BondedKind.MEET, np.empty((0, 2), np.int64), 0, np.empty((0, 0)))])

    def within(self, atoms: NDArray[np.bool_], inside: bool = True) -> Tasks:
        """Select the tasks whose members are all in the mask (n,), or all others."""
        return self._those((np.append(atoms, True)[self.members].all(axis=1)) == inside)

    @property
    def springs(self) -> Tasks:
        """Tasks that depend on one coordinate: those of the kinds in SPRINGS."""
        return self._those(np.isin(self.kinds, SPRINGS))

    def _those(self, chosen: NDArray[np.bool_]) -> Tasks:
        return replace(
            self, kinds=self.kinds[chosen], members=self.members[chosen], rows=self.rows[chosen],
            first=self.first[chosen], counts=self.counts[chosen],
        )  # fmt: skip

    @classmethod
    def joined(cls, parts: Sequence[Tasks]) -> Tasks:
        """Join parts, each with tasks of one kind, and sort them by kind."""
        offsets = np.cumsum([0, *(len(part.parameters) for part in parts)]).tolist()
        tasks = [(part, offset) for part, offset in zip(parts, offsets, strict=False) if len(part)] or [(parts[0], 0)]
        tasks.sort(key=lambda of: int(of[0].kinds[0]) if len(of[0]) else 0)
        width = max(part.members.shape[1] for part in parts)
        return cls(
            np.concatenate([part.kinds for part, _ in tasks]),
            np.concatenate([_widened(part.members, width, -1) for part, _ in tasks]),
            np.concatenate([_widened(part.rows, width, 0) for part, _ in tasks]),
            np.concatenate([part.first + offset for part, offset in tasks]),
            np.concatenate([part.counts for part, _ in tasks]),
            np.concatenate([part.parameters for part in parts]),
        )

    @classmethod
    def plain(cls, kind: BondedKind, members: NDArray[np.integer], rows: ArrayLike, parameters: Floats) -> Tasks:
        """Tasks with one row of parameters each. members : (m, up to 8); rows : broadcast to the shape of members"""
        m, width = len(members), max(MEMBERS, members.shape[1])
        all_rows = _widened(np.broadcast_to(np.asarray(rows, np.int32), members.shape), width, 0)
        four = np.zeros((m, 4))
        four[:, : parameters.shape[1]] = parameters
        padded = _widened(members.astype(np.int32), width, -1)
        return cls(np.full(m, kind, np.int64), padded, all_rows, np.arange(m), np.ones(m, np.int64), four)


def stable_order(keys: NDArray[np.integer]) -> NDArray[np.intp]:
    """Stable argsort of integers from 0 to 2^32 - 1, 16 bits at a time, for which NumPy uses radix sort."""
    order: NDArray[np.intp] = np.argsort((keys & 0xFFFF).astype(np.uint16), kind="stable")
    high = (keys >> 16).astype(np.uint16)
    return order[np.argsort(high[order], kind="stable")] if high.any() else order


def _widened(columns: NDArray[np.int32], width: int, value: int) -> NDArray[np.int32]:
    """Pad columns (m, k) with a value to a width."""
    m, k = columns.shape
    return columns if k == width else np.concatenate([columns, np.full((m, width - k), value, np.int32)], axis=1)


def _harmonic(bonded: Bonded, name: str, term: str, kind: BondedKind, names: Sequence[str]) -> Tasks:
    """Create the tasks of a harmonic term; equilibrium angles are stored as cosine, sine and excess over the range."""
    table = getattr(bonded, name)
    kept = table.parameters[:, 0] != 0
    parameters = table.parameters[kept]
    if kind in WITHIN:
        k, best = parameters.T
        nearest = np.clip(best, *WITHIN[kind])
        parameters = np.column_stack([k, np.cos(nearest), np.sin(nearest), nearest - best])
    return Tasks.plain(kind, table.atoms[kept], names.index(term), parameters)


def _torsions(table: Torsions, row: int) -> Tasks:
    """Create one task per torsion with all its cosine terms, sorted by n; terms with k = 0 are left out."""
    k, n, phase = table.parameters[table.parameters[:, 0] != 0].T
    atoms = table.atoms[table.parameters[:, 0] != 0].astype(np.int64)
    atoms = np.where((atoms[:, 0] > atoms[:, 3])[:, None], atoms[:, ::-1], atoms)  # equal torsions in both directions
    phase, n = np.where(n < 0, -phase, phase), np.abs(n)
    order = np.lexsort((n, *atoms.T[::-1]))
    k, n, phase, atoms = k[order], n[order], phase[order], atoms[order]
    is_new = np.ones(len(atoms), bool)
    is_new[1:] = (atoms[1:] != atoms[:-1]).any(axis=1)
    first = np.flatnonzero(is_new)
    tasks = Tasks.plain(BondedKind.TWIST, atoms[first], row, np.empty((len(first), 0)))
    series = np.column_stack([n, k, k * np.cos(phase), k * np.sin(phase)])
    return Tasks(tasks.kinds, tasks.members, tasks.rows, first, np.diff(np.append(first, len(atoms))), series)


def _cmaps(bonded: Bonded, row: int) -> Tasks:
    """Create the tasks of CMAP terms; the 16 coefficients per cell of a map are four rows of parameters."""

    tasks = Tasks.plain(BondedKind.CROSS_TWISTS, bonded.cmaps.atoms, row, np.empty((len(bonded.cmaps), 0)))
    sizes = np.array([len(of) for of in bonded.maps], np.int64)
    starts = np.cumsum(4 * sizes**2) - 4 * sizes**2
    which = bonded.cmaps.parameters[:, 0].astype(np.int64)
    parameters = np.concatenate([patches(of).reshape(-1, 4) for of in bonded.maps])
    return Tasks(tasks.kinds, tasks.members, tasks.rows, starts[which], sizes[which], parameters)


def _pairs(one_four: OneFourPairs, model: SolventModel, names: Sequence[str]) -> Tasks:
    """Create the tasks of 1-4 pairs; each atom is a member twice, for Lennard-Jones and for Coulomb."""
    charges, sigma, epsilon = one_four.parameters.T
    of_lj, of_coulomb = ONE_FOUR_TERMS
    by_coulomb = model.coulomb_factor if of_coulomb in names else 0.0
    by_lj = 4.0 if of_lj in names else 0.0
    rows = np.repeat([names.index(term) if term in names else 0 for term in ONE_FOUR_TERMS], 2)
    parameters = np.column_stack([by_coulomb * charges, sigma**2, by_lj * epsilon])
    return Tasks.plain(BondedKind.MEET, np.tile(one_four.atoms, 2), rows, parameters)


# Maps values and slopes at the ends of an interval, (f0, f1, f'0, f'1), to the coefficients of its cubic polynomial.
HERMITE: Floats = np.array([[1, 0, 0, 0], [0, 0, 1, 0], [-3, 3, -2, -1], [2, -2, 1, 1]], np.float64)


def periodic_slopes(values: Floats) -> Floats:
    """Slopes of the periodic cubic spline through values (s, ...) along the first axis, spaced by 1."""
    s = len(values)
    ring = 4 * np.eye(s) + np.roll(np.eye(s), 1, axis=0) + np.roll(np.eye(s), -1, axis=0)
    rises = 3 * (np.roll(values, -1, axis=0) - np.roll(values, 1, axis=0))
    return np.linalg.solve(ring, rises).astype(np.float64)


def patches(values: Floats) -> Floats:
    """Bicubic coefficients of the cells of a periodic map (s, s), (s, s, 4, 4)."""
    first = periodic_slopes(values)
    second = periodic_slopes(values.T).T
    both = periodic_slopes(first.T).T

    def corners(of: Floats) -> Floats:
        """Values at the four corners of the cells, (s, s, 2, 2)."""
        right = np.roll(of, -1, axis=0)
        columns = [np.stack([edge, np.roll(edge, -1, axis=1)], axis=-1) for edge in (of, right)]
        return np.stack(columns, axis=-2)

    known = np.concatenate(
        [
            np.concatenate([corners(values), corners(second)], axis=-1),
            np.concatenate([corners(first), corners(both)], axis=-1),
        ],
        axis=-2,
    )
    found: Floats = HERMITE @ known @ HERMITE.T
    return found
