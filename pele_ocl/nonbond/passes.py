"""The launches of one evaluation of a pair list: records of the atoms, pairs, sums of energies."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..opencl.shared import DESTINATION
from ..plan.found import Found
from ..plan.passes import Passes
from .task import Task

if TYPE_CHECKING:
    from ..opencl.launch import KeptLaunch
    from ..opencl.memory import Buffer
    from ..opencl.run import Run

# Energies of a conformation that come to the host: those of all groups, or of as many parts of them.
MOST_PARTS = 512

ITEMS = 64  # of a group where the group does not matter

Index = TypeVar("Index")


class ListPasses(Passes, Generic[Index]):
    """The kernels of a variant with their buffers, for up to `batch` conformations at a time.

    index : what the variant built from the list, which only is read
    """

    # Variants whose kernels take no more than one conformation say so.
    most_conformations: ClassVar[int | None] = None

    def __init__(self, run: Run, task: Task, index: Index, most: int) -> None:
        """Make buffers for up to `most` conformations."""
        molecule = task.molecule
        super().__init__(run, molecule.encoding, task.n_atoms)
        self.task, self.index = task, index
        self.n_slots = self._n_slots()
        self.n_groups = self._n_groups()
        self.first_energy = 3 * task.n_atoms if task.gradient else 0
        limit = self.most_conformations
        self.allocate(self._common_sizes() | self._sizes(), most if limit is None else min(most, limit))
        self.most_at_once = self.most_at_once if limit is None else min(self.most_at_once, limit)
        if not molecule.gb:
            self.buffers["traits"] = run.upload(molecule.traits.values[self._order()])
        first = [*self._place(), *self._clear()]
        pairs = self._pairs()
        last = self._add_energies() if self._are_many else []
        self.launches = [*first, *pairs, *last]
        self._ends = len(first), len(first) + len(pairs)

    @classmethod
    @abstractmethod
    def prepare(cls, run: Run, task: Task) -> Index:
        """Build what the variant needs once for a list."""

    @classmethod
    def for_task(cls, task: Task) -> type[ListPasses[Any]]:
        """The passes that compute what is wanted."""
        return cls

    @property
    def steps(self) -> Mapping[str, slice]:
        """The kernels over pairs, without what makes records before and adds up energies of groups behind."""
        return {"kernel": slice(*self._ends)}

    def unpack(self, results: NDArray[Any], part: slice, found: Found) -> None:
        m, first = len(results), self.first_energy
        # In float64 and one after the other in memory, so that each conformation is added up in the same order.
        by_group = results[:, first:].reshape(m, -1, 3).transpose(0, 2, 1).astype(np.float64, order="C")
        np.add.reduce(by_group, axis=2, out=found.energies[part])
        if found.gradients is not None:
            by_angstrom = found.gradients[part].reshape(m, first)
            per_step = 1 / self.encoding.step  # a power of two
            np.multiply(results[:, :first], per_step, out=by_angstrom, dtype=np.float64)  # float32 might overflow

    @abstractmethod
    def _pairs(self) -> list[KeptLaunch]:
        """The kernels over pairs."""

    @abstractmethod
    def _n_groups(self) -> int:
        """How many groups leave energies."""

    def _sizes(self) -> dict[str, int]:
        """Reals in each buffer of the variant's own, for one conformation."""
        return {}

    def _clear(self) -> list[KeptLaunch]:
        """The launches that come before the kernels over pairs."""
        return []

    def _n_slots(self) -> int:
        """How many records there are."""
        return self.task.n_atoms

    def _order(self) -> NDArray[np.intp]:
        """The atom in each slot, (n_slots,)."""
        return np.arange(self.n_slots)

    @property
    def _are_many(self) -> bool:
        """Whether the energies of groups are added up on the device."""
        return self.n_groups > MOST_PARTS

    def _common_sizes(self) -> dict[str, int]:
        energies = 6 * MOST_PARTS if self._are_many else 3 * self.n_groups
        sizes = {"points": 4 * self.n_slots, "results": self.first_energy + energies}
        if self._are_many:
            sizes["energies"] = 3 * self.n_groups
        if self.task.molecule.gb:
            sizes |= {"roots": self.task.n_atoms, "traits": 4 * self.n_slots}
        return sizes

    @property
    def destination(self) -> np.void:
        """Destination of cl/nonbond/results.clh."""
        first, size = (0, 3 * self.n_groups) if self._are_many else (self.first_energy, self.n_results)
        return DESTINATION.pack(self.run.precision, size=self.n_results, energies_first=first, energies_size=size)

    @property
    def energies(self) -> Buffer:
        """The buffer in which the groups leave their energies."""
        return self.buffers["energies" if self._are_many else "results"]

    def _place(self) -> list[KeptLaunch]:
        """The launch that makes the records of the atoms."""
        order = self._order()
        constants = (self._constants(order), *self.named("roots", "traits")) if self.task.molecule.gb else ()
        return [
            self.run.keep(
                "nonbond/place.cl", "place_atoms", (self.n_slots, 1), (ITEMS, 1), np.int32(self.n_slots),
                np.int32(self.task.n_atoms), *self._in_steps, self.buffers["positions"],
                self.run.upload(order, np.int32), self._charges(order), *constants, self.buffers["points"],
                **self.encoding.macros, **self.task.macros,
            )
        ]  # fmt: skip

    @property
    def _in_steps(self) -> tuple[np.float64, ...]:
        """STEP_ARGUMENT of cl/nonbond/point.clh."""
        return () if self.encoding.is_fixed else (np.float64(1 / self.encoding.step),)

    def _charges(self, order: NDArray[np.intp]) -> Buffer:
        """The charges of the atoms in each slot."""
        return self.run.upload(self.task.molecule.traits.charges[order])

    def _constants(self, order: NDArray[np.intp]) -> Buffer:
        """The traits of the atoms in each slot, but for Born radii."""
        return self.run.upload(self.task.molecule.traits.values[order])

    def _add_energies(self) -> list[KeptLaunch]:
        """The launch that adds up the energies of many groups."""
        sizes = np.int32(self.n_groups), np.int32(self.first_energy), np.int32(self.n_results)
        return [
            self.run.keep(
                "nonbond/energies.cl", "add_energies", (MOST_PARTS, 1), (ITEMS, 1), *sizes,
                *self.named("energies", "results"), PARTS=MOST_PARTS,
            )
        ]  # fmt: skip


AnyPasses = ListPasses[Any]
