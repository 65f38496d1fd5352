"""Tasks distributed to work-groups; each owns some neighbouring atoms."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...opencl.interface import BondedKind
from .tasks import MEMBERS, Tasks, stable_order


@dataclass(frozen=True, eq=False)
class Groups:
    """Tasks of each group: all in which one of its atoms is a member; cl/energy/terms/bonded.clh.

    size : atoms of a group
    shared : if a group adds to an atom's row of results in one slot, counted from its first one
    n_rows : rows of results, one of each term
    starts : (n_groups * kinds + 1,) first record of each kind
    members, places : (n_records, 4) atoms, and their slots, -1 for atoms of other groups; a CMAP term takes two records
    details : (n_records, 2) first row of parameters and count; 0 for the second record of a CMAP term
    slot_starts : (n_atoms * n_rows + 1,) first slot of each atom's share of each row of results
    """

    size: int
    shared: bool
    n_rows: int
    starts: NDArray[np.int32]
    members: NDArray[np.int32]
    places: NDArray[np.int32]
    details: NDArray[np.int32]
    slot_starts: NDArray[np.int32]

    @property
    def n_slots(self) -> int:
        """Slots in all."""
        return int(self.slot_starts[-1])

    @property
    def most_slots(self) -> int:
        """Slots of the group that has most."""
        firsts = np.append(self.slot_starts[: -1 : self.size * self.n_rows], self.slot_starts[-1])
        return int(np.diff(firsts).max())

    @classmethod
    def of(cls, tasks: Tasks, n_atoms: int, n_rows: int, size: int, shared: bool) -> Groups:
        """Sort the tasks of groups of `size` atoms by kind."""
        n_groups = -(-n_atoms // size)
        owners = tasks.members // size
        group, task = _copies(owners)
        members = tasks.members[task]
        own = owners[task] == group[:, None]
        keys = (members * n_rows + tasks.rows[task])[own]
        order = stable_order(keys)
        slots = np.empty(len(keys), np.int32)
        slots[order] = np.arange(len(keys))
        places = np.full(members.shape, -1, np.int32)
        places[own] = keys % (size * n_rows) if shared else slots

        kinds, counts = len(BondedKind), tasks.counts[task]
        codes, first = group * kinds + tasks.kinds[task], tasks.first[task]
        of_record: tuple[Any, Any] = slice(None), 0
        if members.shape[1] > MEMBERS:
            record, second = _records(tasks.kinds[task] == BondedKind.CROSS_TWISTS)
            codes, first, counts = codes[record], first[record], np.where(second, 0, counts[record])
            of_record = record, second.astype(np.intp)
        return cls(
            size,
            shared,
            n_rows,
            np.searchsorted(codes, np.arange(n_groups * kinds + 1)).astype(np.int32),
            np.maximum(_by_fours(members)[of_record], 0),
            _by_fours(places)[of_record],
            np.column_stack([first, counts]).astype(np.int32),
            np.append(0, np.cumsum(np.bincount(keys, minlength=n_atoms * n_rows))).astype(np.int32),
        )


def _copies(owners: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Groups and their tasks, by group and then in the order of the tasks. owners : (m, k) groups of members, or -1"""
    is_first = owners >= 0
    for other, one in combinations(range(owners.shape[1]), 2):
        is_first[:, one] &= owners[:, one] != owners[:, other]
    task, group = np.nonzero(is_first)[0], owners[is_first]
    order = stable_order(group)
    return group[order], task[order]


def _by_fours(columns: NDArray[np.int32]) -> NDArray[np.int32]:
    """Columns of members (m, k) as a record takes them, (m, k / 4, 4)."""
    return columns.reshape(len(columns), columns.shape[1] // MEMBERS, MEMBERS)


def _records(twice: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Find the task of each record, and if the record is its second one."""
    record = np.repeat(np.arange(len(twice)), 1 + twice)
    second = np.zeros(len(record), bool)
    second[1:] = record[1:] == record[:-1]
    return record, second
