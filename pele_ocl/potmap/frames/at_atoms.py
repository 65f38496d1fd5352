"""Potential at atoms of a molecule, of all its charges but the atom's own."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...atoms import Atoms, Floats
from ...common import arguments
from ...common.errors import InputError
from ...grid import Grid
from ..computing import planned
from ..methods import MAP_METHODS
from ..options import MapOptions
from ..slabs import first_evals

_METHODS = [name for name, each in MAP_METHODS.items() if each.atom_by_atom]
MOST_ATOMS = 1 << 20  # of all frames that are computed at a time


class AtomPotentials:
    """Potential at chosen atoms, by direct sums over all others: bonded atoms count as all do.

    phi_i = k / dielectric * sum_{j != i} q_j / |r_i - r_j|          (docs/theory/potmap.md, section 8)

    chosen : (k,) indices of the atoms; unit : of the values
    """

    def __init__(self, atoms: Atoms, chosen: NDArray[np.intp], options: MapOptions) -> None:
        """Raises InputError and DeviceError as `potmap` does, and for the field and methods that need a grid."""
        if options.field or not arguments.is_among(options.method, _METHODS):
            raise InputError(f"values at atoms have the methods {' and '.join(_METHODS)}, and no field; choose direct")
        self._atoms, self.chosen, self.unit = atoms, chosen, options.unit
        self._plan = planned(atoms, Grid(atoms.positions.mean(axis=0), 1.0, (1, 1, 1)), options)
        self._charges = self._plan.factor * atoms.charges

    @property
    def device(self) -> str:
        """Name of the device."""
        return str(self._plan.devices[0])

    def evaluate(self, positions: NDArray[np.floating]) -> tuple[Floats, dict[int, str]]:
        """Values (m, k) at positions (m, n, 3) A; NaN where a frame failed, and why, by its place among these."""
        errors = {int(k): self._fault(positions[k]) for k in np.flatnonzero(~np.isfinite(positions).all(axis=(1, 2)))}
        n, evals = len(self._atoms), first_evals(self._plan.devices[0])
        step = max(1, min(MOST_ATOMS // n, int(evals / (n * len(self.chosen)))))
        parts = [self._computed(positions[k : k + step]) for k in range(0, len(positions), step)]
        values = np.concatenate(parts)
        for k in np.flatnonzero(~np.isfinite(values).all(axis=1)):
            atom = int(self.chosen[np.flatnonzero(~np.isfinite(values[k]))[0]])
            errors.setdefault(int(k), f"another atom stands on {self._atoms.describe(atom)}")
        values[list(errors)] = np.nan
        return values, errors

    def _fault(self, positions: NDArray[np.floating]) -> str:
        """Say why positions are none."""
        try:
            self._atoms.moved(positions)
        except InputError as error:
            return str(error)
        raise AssertionError("these positions are finite")

    def _computed(self, positions: NDArray[np.floating]) -> Floats:
        """Values (m, k) of a few frames; in parts where a launch would be so long that a GPU's driver ends it."""
        from ...opencl.queue import Queue

        problem, device, (m, n, _) = self._plan.problem, self._plan.devices[0], positions.shape
        queue = Queue(device, problem.precision)
        atoms = np.empty((m, n, 4), problem.precision)
        with np.errstate(invalid="ignore"):  # of frames that are not finite, which are errors
            atoms[:, :, :3] = positions - positions.mean(axis=1, keepdims=True, dtype=np.float64)
        atoms[:, :, 3] = self._charges
        there, kernel = (
            queue.upload(atoms),
            queue.kernel("potmap/at_atoms.cl", "potential_at_atoms", **problem.switches),
        )
        step, parts = max(1, int(first_evals(device) / (m * n))), list[NDArray[np.floating]]()
        for first in range(0, len(self.chosen), step):
            chosen = self.chosen[first : first + step]
            k = len(chosen)
            found = queue.empty(m * k)
            queue.launch(
                kernel, (k, m), (min(32, k), 1),
                dict(
                    law=problem.law, n_atoms=n, n_chosen=k, chosen=queue.upload(chosen, np.int32), atoms=there,
                    potentials=found,
                ),
            )  # fmt: skip
            parts.append(queue.download(found, m * k).reshape(m, k))
        return np.concatenate(parts, axis=1).astype(np.float64)
