"""The bonded terms and 1-4 pairs of a molecule, as one launch behind the passes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ...atoms import Atoms, OneFourPairs
from ..terms.term import Addend
from .groups import Groups
from .tasks import Tasks

if TYPE_CHECKING:
    from ...opencl.launch import KeptLaunch
    from ..passes import AnyPasses

# Atoms and work-items of a group. Fewer atoms in a group mean more groups, and more terms that two of them compute.
ATOMS_CPU, ITEMS_CPU = 128, 1
ATOMS_GPU, ITEMS_GPU = 32, 128

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
    """

    grouped: ClassVar[bool] = True

    def __init__(
        self, atoms: Atoms, one_four: OneFourPairs | None, solute_dielectric: float, names: Sequence[str]
    ) -> None:
        self._names = tuple(names)
        self._n_atoms = len(atoms)
        self._tasks = Tasks.of(atoms, one_four, solute_dielectric, self._names)
        self._groups: dict[tuple[int, bool], Groups] = {}

    def __bool__(self) -> bool:
        """Whether there is anything to compute."""
        return len(self._tasks) > 0

    @property
    def names(self) -> tuple[str, ...]:
        return self._names

    def sizes(self, passes: AnyPasses) -> Mapping[str, int]:
        size, items = self._shape(passes)
        return {} if items == 1 else {"bonded_slots": 4 * self._groups_of(size, False).n_slots}

    def launches(self, passes: AnyPasses, index: int) -> list[KeptLaunch]:
        run, encoding = passes.run, passes.encoding
        size, items = self._shape(passes)
        groups = self._groups_of(size, items == 1)
        fine = run.dtype if encoding.is_fixed else np.dtype(np.float64)
        slots = passes.buffers.get("bonded_slots") or run.empty(0)
        real, cutoff = run.dtype.type, passes.options.cutoff
        cutoff2 = np.finfo(run.dtype).max if cutoff is None else real(cutoff**2)
        return [
            run.keep(
                "energy/terms/bonded.cl", "bonded_terms", (-(-self._n_atoms // size) * items, 1), (items, 1),
                np.int32(self._n_atoms), np.int32(passes.n_energies), np.int32(index), np.int32(groups.n_slots),
                real(encoding.step), cutoff2, passes.buffers["positions"], run.upload(groups.starts, np.int32),
                run.upload(groups.members, np.int32), run.upload(groups.places, np.int32),
                run.upload(groups.details, np.int32), run.upload(self._tasks.parameters, fine),
                run.upload(groups.slot_starts, np.int32), slots, passes.buffers["results"],
                ATOMS=size, ITEMS=items, TERMS=len(self._names), PER_ATOM=int(passes.options.per_atom), GEOMETRIC=0,
                **encoding.macros, **passes.result_macros,
            )
        ]  # fmt: skip

    def _shape(self, passes: AnyPasses) -> tuple[int, int]:
        """Atoms and work-items of a group."""
        is_cpu = passes.run.device.kind == "CPU"
        size, items = (ATOMS_CPU, ITEMS_CPU) if is_cpu else (ATOMS_GPU, ITEMS_GPU)
        return max(size, passes.tiles.size), min(items, passes.run.device.largest_group)

    def _groups_of(self, size: int, shared: bool) -> Groups:
        if (size, shared) not in self._groups:
            self._groups[size, shared] = Groups.of(self._tasks, self._n_atoms, len(self._names), size, shared)
        return self._groups[size, shared]
