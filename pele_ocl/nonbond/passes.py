"""Launches of one evaluation of a pair list: atom records, pairs, sums of energies."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats
from ..opencl.interface import DESTINATION
from ..plan.evaluator import Outputs
from ..plan.passes import Passes
from .index import ITEMS
from .records import PairListTask, check_float32_span

if TYPE_CHECKING:
    from ..opencl.binding import Array, Launch
    from ..opencl.kernel import Arguments
    from ..opencl.queue import Queue

# Number of energies per conformation that are read by the host: those of all groups, or partial sums.
MOST_PARTS = 512

GROUP, PAIRS_AN_ITEM = 128, 4  # of kernels over pairs: work-items per group, pairs per work-item

Index = TypeVar("Index")


class ListPasses(Passes, Generic[Index]):
    """Kernels of a variant with their buffers, for up to `batch` conformations at a time.

    index : data built by the variant from the list, read-only
    """

    # Set by variants whose kernels support only single conformations.
    most_conformations: ClassVar[int | None] = None

    def __init__(self, queue: Queue, task: PairListTask, index: Index) -> None:
        super().__init__(queue, task.molecule.encoding, task.molecule.atoms)
        self.task, self.index = task, index
        self.first_energy = 3 * task.n_atoms if task.gradient else 0

    def make(self, most: int) -> None:
        """Allocate buffers for up to `most` conformations and bind the launches; called once."""
        molecule, queue, limit = self.task.molecule, self.queue, self.most_conformations
        self.n_slots = self._n_slots()
        self.n_groups = self._n_groups()
        points = np.dtype(np.int32) if queue.precision == "float32" else queue.dtype  # point4 of cl/nonbond/pair.clh
        self.allocate(
            self._common_sizes() | self._sizes(), most if limit is None else min(most, limit), {"points": points}
        )
        self.most_at_once = self.most_at_once if limit is None else min(self.most_at_once, limit)
        if not molecule.gb:
            self.buffers["traits"] = queue.upload(molecule.traits.values[self._order()])
        first = [*self._place(), *self._clear()]
        pairs = self._pairs()
        last = self._add_energies() if self._are_many else []
        self.launches = self.uncut = [*first, *pairs, *last]
        self.most_uncut = self.queue.most_uncut(self.launches)
        self._ends = len(first), len(first) + len(pairs)

    @classmethod
    @abstractmethod
    def prepare(cls, queue: Queue, task: PairListTask) -> Index:
        """Build the data that the variant needs once per list."""

    @classmethod
    def for_task(cls, task: PairListTask) -> type[ListPasses[Any]]:
        """Return the class of passes for the requested results."""
        return cls

    @property
    def steps(self) -> Mapping[str, slice]:
        """Slice of the launches over pairs, without making records and summing energies."""
        return {"kernel": slice(*self._ends)}

    def unpack(self, results: NDArray[Any], part: slice, found: Outputs) -> None:
        m, first = len(results), self.first_energy
        # In float64 and contiguous, so that all conformations are summed in the same order.
        by_group = results[:, first:].reshape(m, -1, 3).transpose(0, 2, 1).astype(np.float64, order="C")
        np.add.reduce(by_group, axis=2, out=found.energies[part])
        if found.gradients is not None:
            by_angstrom = found.gradients[part].reshape(m, first)
            per_step = 1 / self.encoding.step  # a power of two
            np.multiply(results[:, :first], per_step, out=by_angstrom, dtype=np.float64)  # float32 might overflow

    @abstractmethod
    def _pairs(self) -> list[Launch]:
        """Bind the launches over pairs."""

    @abstractmethod
    def _n_groups(self) -> int:
        """Number of groups that write energies."""

    def _from_own_middle(self, positions: NDArray[Any]) -> Floats:
        if self.queue.precision == "float32":
            span = float(np.ptp(positions, axis=0).max())
            if np.isfinite(span):
                check_float32_span(span)
        return super()._from_own_middle(positions)

    def _sizes(self) -> dict[str, int]:
        """Number of reals per conformation in each of the variant's buffers."""
        return {}

    def _clear(self) -> list[Launch]:
        """Bind the launches that precede those over pairs."""
        return []

    def _n_slots(self) -> int:
        """Number of atom records."""
        return self.task.n_atoms

    def _order(self) -> NDArray[np.intp]:
        """Atom in each slot, (n_slots,)."""
        return np.arange(self.n_slots)

    @property
    def _are_many(self) -> bool:
        """Whether the energies of groups are summed on the device."""
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
        return DESTINATION.pack(self.queue.precision, size=self.n_results, energies_first=first, energies_size=size)

    @property
    def energies(self) -> Array:
        """Array to which groups write their energies."""
        return self.buffers["energies" if self._are_many else "results"]

    def _place(self) -> list[Launch]:
        """Bind the launch that makes the atom records."""
        order, gb = self._order(), self.task.molecule.gb
        arguments = dict(
            n_slots=self.n_slots, n_atoms=self.task.n_atoms, order=self.queue.upload(order, np.int32),
            charges=self._charges(order), **self._in_steps, **self.named("positions", "points"),
            **(dict(constants=self._constants(order), **self.named("roots", "traits")) if gb else {}),
        )  # fmt: skip
        return [
            self.queue.bind(
                "nonbond/place.cl", "place_atoms", (self.n_slots, 1), (ITEMS, 1), arguments, **self.encoding.macros,
                **self.task.macros,
            )
        ]  # fmt: skip

    @property
    def _in_steps(self) -> Arguments:
        """STEP_ARGUMENT of cl/nonbond/point.clh."""
        return {} if self.encoding.is_fixed else dict(inv_step=1 / self.encoding.step)

    def _charges(self, order: NDArray[np.intp]) -> Array:
        return self.queue.upload(self.task.molecule.traits.charges[order])

    def _constants(self, order: NDArray[np.intp]) -> Array:
        """Upload the constants of the atoms in each slot, without Born radii."""
        return self.queue.upload(self.task.molecule.traits.values[order])

    def _add_energies(self) -> list[Launch]:
        """Bind the launch that sums the energies of groups."""
        sizes = dict(n_groups=self.n_groups, first=self.first_energy, size=self.n_results)
        return [
            self.queue.bind(
                "nonbond/energies.cl", "add_energies", (MOST_PARTS, 1), (ITEMS, 1),
                dict(**sizes, **self.named("energies", "results")), PARTS=MOST_PARTS,
            )
        ]  # fmt: skip


AnyPasses = ListPasses[Any]


class PlainPasses(ListPasses[Index]):
    """Passes for one conformation at a time, as in the thesis."""

    most_conformations: ClassVar[int | None] = 1

    @property
    def _are_many(self) -> bool:
        return True  # in a separate buffer, which keeps the kernels simple

    def _list_arguments(self, task: PairListTask) -> Arguments:
        """LIST_PARAMETERS of cl/nonbond/list.clh."""
        return dict(
            model=task.molecule.traits.model, n_pairs=task.n_pairs, pairs=task.pairs, **task.own_arguments,
            **self.named("points", "traits"),
        )  # fmt: skip


class PairPasses(PlainPasses[Index]):
    """Passes that begin with a kernel over pairs.

    pair_kernel : file and name of the kernel; pair_macros : its additional build definitions
    """

    pair_kernel: ClassVar[tuple[str, str]]
    pair_macros: ClassVar[dict[str, int]] = {}

    def __init__(self, queue: Queue, task: PairListTask, index: Index) -> None:
        super().__init__(queue, task, index)
        # On most GPUs float64 is slow, and is used only on request.
        doubles = queue.precision == "float64" or (queue.device.kind == "CPU" and queue.device.has_float64)
        self._macros = {"DOUBLES": int(doubles), **self.pair_macros, **task.macros}
        most = queue.device.ladder_group or GROUP
        file, kernel = self.pair_kernel
        _, self.group = queue.group_kernel(file, kernel, local_reals=6, most=most, **self._macros)

    def _n_groups(self) -> int:
        return max(1, -(-self.task.n_pairs // (self.group * PAIRS_AN_ITEM)))

    def _launch_pairs(self, task: PairListTask, **more: Array) -> Launch:
        file, kernel = self.pair_kernel
        return self.queue.bind(
            file, kernel, (self.n_groups * self.group, 1), (self.group, 1),
            dict(**more, **self._list_arguments(task), **self.named("energies")), GROUP=self.group, **self._macros,
        )  # fmt: skip


class EnergiesAlone(PairPasses[None]):
    """Computes each pair once, without gradient."""

    pair_kernel = "nonbond/pairs.cl", "pair_energies"

    @classmethod
    def prepare(cls, queue: Queue, task: PairListTask) -> None:
        return None

    def _pairs(self) -> list[Launch]:
        return [self._launch_pairs(self.task)]
