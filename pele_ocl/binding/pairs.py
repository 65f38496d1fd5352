"""Energies between groups of atoms, such as residues: Lennard-Jones, Coulomb and GB, added up by pairs of groups."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats, Ints
from ..energy import Energy
from ..gb_models.solvent_model import SolventModel
from ..opencl.interface import PAIR_MODEL
from ..pairs import nonbonded_pairs
from ..tiles.tables import scaled_charges

SUMS = 4  # Lennard-Jones, Coulomb, GB of the complex, GB of the part
MOST_BYTES = 1 << 28  # of the sums of conformations that are computed together
ITEMS = (8, 8)  # of a work-group, the first dimension that of the second residue


class ResiduePairs:
    """Kernel of cl/binding/pairs.cl with the tables of a complex on its device."""

    def __init__(self, plan: Energy, groups: NDArray[np.intp], sides: Ints) -> None:
        """Upload tables.

        plan : of the complex; groups : (n_atoms,) number of each atom's group; sides : (n_groups,) number of its part
        """
        from ..opencl.queue import Queue

        atoms, model, cutoff = plan.atoms, plan.model, plan.options.cutoff
        self._queue, self._n_atoms, self._n_groups = (
            Queue(plan.device, plan.precision, False),
            len(atoms),
            len(sides),
        )
        queue = self._queue
        # The kernel finds the atoms of a group one behind the other.
        self._order = np.argsort(groups, kind="stable")
        places = np.empty(len(atoms), np.intp)
        places[self._order] = np.arange(len(atoms))
        starts = np.searchsorted(groups[self._order], np.arange(self._n_groups + 1))
        first, partners = excluded_entries(atoms, places)
        self._charges = scaled_charges(atoms, model, plan.precision)[self._order]
        self._tables = dict(
            wells=queue.upload(wells(atoms)[self._order]), starts=queue.upload(starts, np.int32),
            sides=queue.upload(sides, np.int32), excluded_starts=queue.upload(first, np.int32),
            excluded=queue.upload(partners, np.int32),
        )  # fmt: skip
        self._model = packed_model(model, plan.precision, cutoff)
        self._kernel = queue.kernel("binding/pairs.cl", "residue_pairs", **definitions(atoms, model, cutoff))

    @property
    def most_at_once(self) -> int:
        """Conformations that are computed together at most."""
        return max(1, MOST_BYTES // (SUMS * self._n_groups**2 * self._queue.dtype.itemsize))

    def energies(self, positions: Floats, born: Floats, born_of_parts: Floats) -> Floats:
        """(m, 4, n_groups, n_groups) kcal/mol: Lennard-Jones, Coulomb, GB with the complex's radii, and the parts'.

        Each pair of groups once, in the upper triangle; a group with itself on the diagonal; the last is 0 between
        atoms of two parts.

        positions : (m, n, 3) A, at most `most_at_once`; born, born_of_parts : (m, n) A
        """
        queue, m, n = self._queue, len(positions), self._n_groups
        positions, born, born_of_parts = (of[:, self._order] for of in (positions, born, born_of_parts))
        middle = positions.mean(axis=1, keepdims=True)
        charges = np.broadcast_to(self._charges, (m, self._n_atoms))[..., np.newaxis]
        points = queue.upload(np.concatenate([positions - middle, charges], axis=2))
        radii = queue.upload(np.stack([born, born_of_parts], axis=-1))
        sums = queue.zeros(m * SUMS * n * n)
        arguments = dict(
            n_groups=n, n_atoms=self._n_atoms, model=self._model, points=points, born=radii, energies=sums,
            **self._tables,
        )  # fmt: skip
        queue.launch(self._kernel, (n, n, m), (*ITEMS, 1), arguments)
        found: Floats = queue.download(sums, m * SUMS * n * n).reshape(m, SUMS, n, n).astype(np.float64)
        return found


def packed_model(model: SolventModel, precision: str, cutoff: float | None = None) -> np.void:
    """Constants of pairs, as kernels take them; cutoff : A, at which they end"""
    return PAIR_MODEL.pack(
        precision, outside=model.outside, kappa=model.kappa, cutoff2=0.0 if cutoff is None else cutoff**2
    )


def definitions(atoms: Atoms, model: SolventModel, cutoff: float | None = None) -> dict[str, int]:
    """Build definitions of kernels that evaluate pairs of these atoms."""
    return {
        "TILE": 1, "GRADIENT": 0, "COULOMB": 1, "SCREENED": int(model.kappa > 0), "CUTOFF": int(cutoff is not None),
        "GEOMETRIC": int(atoms.combining == "geometric"),
    }  # fmt: skip


def wells(atoms: Atoms) -> Floats:
    """(n, 2) Lennard-Jones parameters as kernels take them: half sigma, or its root, and sqrt(4 epsilon)."""
    assert atoms.lj_sigma is not None
    assert atoms.lj_epsilon is not None
    sigmas = np.sqrt(atoms.lj_sigma) if atoms.combining == "geometric" else atoms.lj_sigma / 2
    return np.column_stack([sigmas, np.sqrt(4 * atoms.lj_epsilon)])


def excluded_entries(atoms: Atoms, places: NDArray[np.intp] | None = None) -> tuple[Ints, Ints]:
    """First entry of each atom (n + 1,), and the atoms with which it has no Lennard-Jones and Coulomb energy.

    places : (n,) the place of each atom; by default they are in their own order
    """
    pairs: NDArray[np.integer] = nonbonded_pairs(atoms).excluded
    pairs = pairs if places is None else places[pairs]
    both = np.unique(np.concatenate([pairs, pairs[:, ::-1]]), axis=0) if len(pairs) else np.empty((0, 2), np.int32)
    first = np.searchsorted(both[:, 0], np.arange(len(atoms) + 1))
    return first.astype(np.int32), both[:, 1].astype(np.int32)
