"""The bonded terms and 1-4 pairs of a molecule, as one launch: behind the passes, or on GPUs before them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...atoms import Atoms, OneFourPairs
from ...solvent_model import SolventModel
from ..terms.term import Addend
from .groups import Groups
from .tasks import Tasks

if TYPE_CHECKING:
    from ...opencl.kernel import Kernel
    from ...opencl.launch import Argument, KeptLaunch
    from ..passes import AnyPasses

# Atoms and work-items of a group. Fewer atoms in a group mean more groups, and more terms that two of them compute.
ATOMS_CPU, ITEMS_CPU = 128, 1
ATOMS_GPU, ITEMS_GPU = 32, 256
LOCAL_BYTES = 40 << 10  # of local memory that a group takes at most

BONDED_TERMS = {  # the tables of each term
    "bond": ("bonds",),
    "angle": ("angles",),
    "torsion": ("torsions",),
    "improper": ("impropers", "harmonic_impropers"),
    "urey_bradley": ("urey_bradley",),
    "cmap": ("cmaps",),
}
ONE_FOUR_TERMS = ("lennard_jones_14", "coulomb_14")


def bonded_names(atoms: Atoms) -> tuple[str, ...]:
    """The terms of which the atoms have any, 1-4 pairs apart."""
    if atoms.bonded is None:
        return ()
    lengths = {name: len(table) for name, table in atoms.bonded.tables()}
    return tuple(term for term, tables in BONDED_TERMS.items() if any(lengths[name] for name in tables))


class BondedTerms(Addend):
    """Bonded terms of some names, 1-4 pairs among them.

    one_four : the 1-4 pairs, where they count
    tasks : what is computed
    """

    grouped: ClassVar[bool] = True

    def __init__(self, atoms: Atoms, one_four: OneFourPairs | None, model: SolventModel, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._n_atoms = len(atoms)
        self.tasks = Tasks.of(atoms, one_four, model, self._names)
        self._groups: dict[tuple[int, bool], Groups] = {}

    def __bool__(self) -> bool:
        """Whether there is anything to compute."""
        return len(self.tasks) > 0

    def within(self, atoms: NDArray[np.bool_], inside: bool = True) -> BondedTerms:
        """Those of which all atoms are among some, (n,), or all others."""
        some = copy(self)
        some.tasks, some._groups = self.tasks.within(atoms, inside), {}
        return some

    @property
    def names(self) -> tuple[str, ...]:
        return self._names

    def sizes(self, passes: AnyPasses) -> Mapping[str, int]:
        size, items = self._shape(passes)
        groups = self._groups_of(size, items == 1)
        return {} if self._local_slots(passes, groups) else {"bonded_slots": 4 * groups.n_slots}

    def begins(self, passes: AnyPasses) -> bool:
        return self._shape(passes)[1] % passes.tiles.size == 0

    def launches(self, passes: AnyPasses, index: int) -> list[KeptLaunch]:
        run, encoding = passes.run, passes.encoding
        most_items = self._shape(passes)[1]
        begins, tile, n_tiles = self.begins(passes), passes.tiles.size, len(passes.tiles)
        least = tile if begins else 1
        places = {"TILE": tile} if begins else {}

        def build(lots: int) -> Kernel:
            items = lots * least
            return run.kernel(
                "energy/terms/bonded.cl", "bonded_terms", GEOMETRIC=0, **places, **self.macros(passes, items),
                **encoding.macros, **passes.result_macros,
            )  # fmt: skip

        kernel, lots = run.built_to_fit(most_items // least, build, least)
        items = lots * least
        n_groups = self.n_groups(passes) + (-(-n_tiles * tile // items) if begins else 0)
        return [
            run.keep_kernel(
                kernel, (n_groups * items, 1), (items, 1),
                np.int32(self._n_atoms), run.dtype.type(encoding.step), *passes.named("positions", "results"),
                *([np.int32(n_tiles), *passes.place_arguments()] if begins else []),
                *self.arguments(passes, index, items),
            )
        ]  # fmt: skip

    def n_groups(self, passes: AnyPasses) -> int:
        """Work-groups of bonded terms."""
        return -(-self._n_atoms // self._shape(passes)[0])

    def macros(self, passes: AnyPasses, items: int) -> dict[str, int]:
        """The build definitions of cl/energy/terms/bonded.clh for groups of so many work-items."""
        size = self._shape(passes)[0]
        return {
            "ATOMS": size, "ITEMS": items, "BONDED_TERMS": len(self._names), "BEGINS": int(self.begins(passes)),
            "LOCAL_SLOTS": self._local_slots(passes, self._groups_of(size, items == 1)),
            "PER_ATOM": int(passes.options.per_atom),
        }  # fmt: skip

    def arguments(self, passes: AnyPasses, index: int, items: int) -> list[Argument]:
        """BONDED_ARGUMENTS of cl/energy/terms/bonded.clh, for groups of so many work-items."""
        run, groups = passes.run, self._groups_of(self._shape(passes)[0], items == 1)
        fine = run.dtype if passes.encoding.is_fixed else np.dtype(np.float64)
        slots = passes.buffers.get("bonded_slots") or run.empty(0)
        cutoff = passes.options.cutoff
        cutoff2 = np.finfo(run.dtype).max if cutoff is None else run.dtype.type(cutoff**2)
        return [
            np.int32(passes.n_energies), np.int32(index), np.int32(groups.n_slots), cutoff2,
            run.upload(groups.starts, np.int32), run.upload(groups.members, np.int32),
            run.upload(groups.places, np.int32), run.upload(groups.details, np.int32),
            run.upload(self.tasks.parameters, fine), run.upload(groups.slot_starts, np.int32), slots,
        ]  # fmt: skip

    def _shape(self, passes: AnyPasses) -> tuple[int, int]:
        """Atoms and work-items of a group."""
        is_cpu = passes.run.device.kind == "CPU"
        size, items = (ATOMS_CPU, ITEMS_CPU) if is_cpu else (ATOMS_GPU, ITEMS_GPU)
        return max(size, passes.tiles.size), min(items, passes.run.device.largest_group)

    def _local_slots(self, passes: AnyPasses, groups: Groups) -> int:
        """Slots in a group's local memory, in one of few sizes, each a kernel of its own; 0 where it has too little."""
        if groups.shared:
            return groups.size * len(self._names)
        slots = 1 << max(8, (groups.most_slots - 1).bit_length())
        run, n_energies = passes.run, groups.size * len(self._names)
        taken = run.dtype.itemsize * (4 * slots + n_energies) + 4 * (n_energies + 1)
        return slots if taken <= min(LOCAL_BYTES, run.device.handle.local_mem_size) else 0

    def _groups_of(self, size: int, shared: bool) -> Groups:
        if (size, shared) not in self._groups:
            self._groups[size, shared] = Groups.of(self.tasks, self._n_atoms, len(self._names), size, shared)
        return self._groups[size, shared]
