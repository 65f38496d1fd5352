"""Bonded terms and 1-4 pairs of a molecule in one launch: after the passes, or before them on GPUs.

A launch that runs before the passes also places the tiles and initializes the gradient to which the passes add.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...atoms import Atoms, OneFourPairs
from ...gb_models.solvent_model import SolventModel
from ...opencl.interface import BondedKind
from ..terms.term import LaunchPart, TermContext, TermKernels
from .tasks import MEMBERS, ONE_FOUR_TERMS, TABLES_OF_TERMS, Tasks, stable_order

if TYPE_CHECKING:
    from ...opencl.binding import Launch
    from ...opencl.kernel import Arguments, Kernel


@dataclass(frozen=True, eq=False)
class Groups:
    """Tasks of each group of atoms: all tasks with a member in the group; cl/energy/terms/bonded.clh.

    size : atoms per group
    shared : whether a group sums each atom's contributions to a row of results in one slot, counted from its first one
    n_rows : rows of results, one per term
    starts : (n_groups * kinds + 1,) first record of each kind
    members, places : (n_records, 4) atoms, and their slots, -1 for atoms of other groups; a CMAP term takes two records
    details : (n_records, 2) first row of parameters and number of rows; 0 for the second record of a CMAP term
    slot_starts : (n_atoms * n_rows + 1,) first slot of each atom's contributions to each row of results
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
        return int(self.slot_starts[-1])

    @property
    def most_slots(self) -> int:
        """Largest number of slots of a group."""
        firsts = np.append(self.slot_starts[: -1 : self.size * self.n_rows], self.slot_starts[-1])
        return int(np.diff(firsts).max())

    @classmethod
    def of(cls, tasks: Tasks, n_atoms: int, n_rows: int, size: int, shared: bool) -> Groups:
        """Sort the tasks by group of `size` atoms, then by kind."""
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
    """Assign tasks to the groups of all members; return groups and tasks by group. owners : (m, k) groups, or -1"""
    is_first = owners >= 0
    for other, one in combinations(range(owners.shape[1]), 2):
        is_first[:, one] &= owners[:, one] != owners[:, other]
    task, group = np.nonzero(is_first)[0], owners[is_first]
    order = stable_order(group)
    return group[order], task[order]


def _by_fours(columns: NDArray[np.int32]) -> NDArray[np.int32]:
    """Reshape columns of members (m, k) to records (m, k / 4, 4)."""
    return columns.reshape(len(columns), columns.shape[1] // MEMBERS, MEMBERS)


def _records(twice: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the task of each record, and whether it is the task's second record."""
    record = np.repeat(np.arange(len(twice)), 1 + twice)
    second = np.zeros(len(record), bool)
    second[1:] = record[1:] == record[:-1]
    return record, second


# Atoms and work-items per group. With smaller groups more terms are computed in two or more groups.
ATOMS_CPU, ITEMS_CPU = 128, 1
ATOMS_GPU, ITEMS_GPU = 32, 256
CONSTANTS = "bonded constants"  # name of the buffer with all parameters
LOCAL_BYTES = 40 << 10  # largest local memory of a group


def most_terms() -> int:
    """Largest number of terms in an atom's energy: all bonded terms, so that molecules share kernels."""
    return len(TABLES_OF_TERMS) + len(ONE_FOUR_TERMS)


def bonded_names(atoms: Atoms) -> tuple[str, ...]:
    """Names of the bonded terms of a molecule, without 1-4 pairs."""
    if atoms.bonded is None:
        return ()
    lengths = {name: len(table) for name, table in atoms.bonded.tables()}
    return tuple(term for term, of in TABLES_OF_TERMS.items() if any(lengths[name] for name in of.tables))


class BondedTerms(TermKernels):
    """Kernels of the named bonded terms and 1-4 pairs.

    one_four : the 1-4 pairs; None to leave them out
    tasks : the interactions to compute
    """

    grouped: ClassVar[bool] = True

    def __init__(self, atoms: Atoms, one_four: OneFourPairs | None, model: SolventModel, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._n_atoms = len(atoms)
        self.tasks = Tasks.of(atoms, one_four, model, self._names)
        self._groups: dict[tuple[int, bool], Groups] = {}

    def __bool__(self) -> bool:
        return len(self.tasks) > 0

    def within(self, atoms: NDArray[np.bool_], inside: bool = True) -> BondedTerms:
        """Select the terms whose atoms are all in the mask (n,), or all others."""
        some = copy(self)
        some.tasks, some._groups = self.tasks.within(atoms, inside), {}
        return some

    @property
    def names(self) -> tuple[str, ...]:
        return self._names

    def sizes(self, context: TermContext) -> Mapping[str, int]:
        size, items = self._shape(context)
        groups = self._groups_of(size, items == 1)
        return {} if self._local_slots(context, groups) else {"bonded_slots": 4 * groups.n_slots}

    def runs_first(self, context: TermContext) -> bool:
        return self._shape(context)[1] % context.tiles.size == 0

    def is_of_single_items(self, context: TermContext) -> bool:
        return self._shape(context)[1] == 1

    def launches(self, context: TermContext, index: int) -> list[Launch]:
        queue, runs_first = context.queue, self.runs_first(context)
        tile, n_tiles, most_items = context.tiles.size, len(context.tiles), self._shape(context)[1]
        least = tile if runs_first else 1
        first = {"TERMS_FIRST": 1, "TILE": tile} if runs_first else {"TERMS_FIRST": 0}

        def build(lots: int) -> Kernel:
            items = lots * least
            return queue.kernel(
                "energy/terms/bonded.cl", "bonded_terms", GEOMETRIC=0, **first, **self._macros(context, items),
                **context.macros,
            )  # fmt: skip

        kernel, lots = queue.built_to_fit(most_items // least, build, least)
        items = lots * least
        part = self.part(context, index, items)
        n_groups = part.n_groups + (-(-n_tiles * tile // items) if runs_first else 0)
        arguments = dict(
            n_atoms=self._n_atoms, n_results=context.result_sizes["n_results"], step=context.encoding.step,
            **{name: context.buffers[name] for name in ("positions", "results")}, **part.arguments,
            **(dict(n_tiles=n_tiles, **context.place()) if runs_first else {}),
        )  # fmt: skip
        return [queue.bind_kernel(kernel, (n_groups * items, 1), (items, 1), arguments)]

    def part(self, context: TermContext, index: int, items: int) -> LaunchPart:
        n_groups = -(-self._n_atoms // self._shape(context)[0])
        return LaunchPart(n_groups, self._arguments(context, index, items), self._macros(context, items))

    def _macros(self, context: TermContext, items: int) -> dict[str, int]:
        """Build definitions of cl/energy/terms/bonded.clh for groups of `items` work-items, without TERMS_FIRST."""
        size = self._shape(context)[0]
        return {
            "ATOMS": size, "ITEMS": items, "MOST_TERMS": most_terms(),
            "LOCAL_SLOTS": self._local_slots(context, self._groups_of(size, items == 1)),
        }  # fmt: skip

    def _arguments(self, context: TermContext, index: int, items: int) -> Arguments:
        """Arguments of Bonded, cl/energy/terms/bonded.clh, for groups of `items` work-items."""
        queue, groups = context.queue, self._groups_of(self._shape(context)[0], items == 1)
        fine = queue.dtype if context.encoding.is_fixed else np.dtype(np.float64)
        slots = context.buffers.get("bonded_slots") or queue.empty(0)
        cutoff = context.options.cutoff
        constants = context.buffers.get(CONSTANTS) or queue.upload_parameters(self.tasks.parameters, fine)
        context.buffers[CONSTANTS] = constants
        return dict(
            n_energies=context.result_sizes["n_energies"], n_terms=len(self._names), per_atom=context.options.per_atom,
            first_energy=context.first_grouped + index * context.result_sizes["n_energies"], n_slots=groups.n_slots,
            cutoff2=np.finfo(queue.dtype).max if cutoff is None else cutoff**2,
            kind_starts=queue.upload(groups.starts, np.int32), members=queue.upload(groups.members, np.int32),
            places=queue.upload(groups.places, np.int32), details=queue.upload(groups.details, np.int32),
            constants=constants, slot_starts=queue.upload(groups.slot_starts, np.int32),
            all_slots=slots,
        )  # fmt: skip

    def _shape(self, context: TermContext) -> tuple[int, int]:
        """Number of atoms and of work-items per group."""
        is_cpu = context.queue.device.kind == "CPU"
        size, items = (ATOMS_CPU, ITEMS_CPU) if is_cpu else (ATOMS_GPU, ITEMS_GPU)
        return max(size, context.tiles.size), min(items, context.queue.device.largest_group)

    def _local_slots(self, context: TermContext, groups: Groups) -> int:
        """Slots of a group in local memory, rounded up so that molecules share kernels; 0 if they do not fit."""
        if groups.shared:
            return groups.size * most_terms()
        slots = 1 << max(8, (groups.most_slots - 1).bit_length())
        queue, n_energies = context.queue, groups.size * most_terms()
        taken = queue.dtype.itemsize * (4 * slots + n_energies) + 4 * (n_energies + 1)
        return slots if taken <= min(LOCAL_BYTES, queue.device.handle.local_mem_size) else 0

    def _groups_of(self, size: int, shared: bool) -> Groups:
        if (size, shared) not in self._groups:
            self._groups[size, shared] = Groups.of(self.tasks, self._n_atoms, len(self._names), size, shared)
        return self._groups[size, shared]
