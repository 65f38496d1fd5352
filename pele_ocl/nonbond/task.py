"""What host steps of the nonbonded variants take and give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..atoms import Floats
from .records import Records

if TYPE_CHECKING:
    from ..opencl.kernels import Run


@dataclass(frozen=True, eq=False)
class Task:
    """A pair list on its device, and the switches of the kernels that walk it.

    positions : (n_atoms, 3) A, for variants that sort atoms in space
    pairs : buffer (n_pairs, 2) uint32; own : buffers of sigma^2 and charge products, or empty
    """

    positions: Floats
    n_pairs: int
    pairs: Any
    own: tuple[Any, ...]
    switches: dict[str, int]

    @property
    def n_atoms(self) -> int:
        return len(self.positions)

    @property
    def gradient(self) -> bool:
        return bool(self.switches["GRADIENT"])


Evaluation = tuple[Floats, Floats | None]
Evaluate = Callable[["Run", Records], Evaluation]


def energies_of(run: Run, energies: Any, n_groups: int) -> Floats:
    """Energies (3,) from the buffer (n_groups, 3) of what each work-group summed, kcal/mol."""
    by_group = run.download(energies, 3 * n_groups).reshape(n_groups, 3)
    total: Floats = np.einsum("ij->j", by_group.astype(np.float64))  # four times as fast as sum(axis=0)
    return total


def gradient_of(run: Run, task: Task, records: Records, gradient: Any) -> Floats | None:
    """Gradient (n_atoms, 3) kcal/mol/A from the kernels' buffer, None where it was not asked for."""
    if not task.gradient:
        return None
    by_step = run.download(gradient, 3 * task.n_atoms).reshape(-1, 3)
    by_angstrom: Floats = np.multiply(by_step, 1 / records.step, dtype=np.float64)  # a power of two
    return by_angstrom
