"""Total and binding energies of poses as in PELE, with its long cutoffs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats
from ..energy import Energy, Term
from ..pairs.dielectric import inverse_dielectrics
from ..tiles.tables import scaled_charges
from .decomposing import definitions, excluded_entries, packed_model, wells
from .plan import Binding

NEUTRAL, MIXED, CHARGED = 15.0, 20.0, 30.0  # A, cutoffs between groups: both neutral, one charged, both charged
_LEAST_CHARGE = 0.5  # e, minimum for a charged group, since OPLS charges of neutral groups do not sum exactly to 0
_BACKBONE = ("N", "CA", "C", "O", "OXT", "H", "HN", "H1", "H2", "H3", "HA", "HA2", "HA3", "1HA", "2HA", "HXT")
_MOST_ATOMS = 1 << 20  # maximum number of atoms of conformations that are computed together
_ITEMS = 64  # work-group size


@dataclass(frozen=True, eq=False)
class AtomGroups:
    """Groups of atoms.

    index : (n,) group of each atom; charged : mask (g,) of charged groups; sides : (g,) part of each group
    """

    index: NDArray[np.intp]
    charged: NDArray[np.bool_]
    sides: NDArray[np.intp]

    @classmethod
    def of(cls, atoms: Atoms, sides: NDArray[np.intp] | None = None) -> AtomGroups:
        """Build the groups: backbone and side chain of each residue with a backbone; other residues are one group.

        sides : (n,) part of each atom, 0 or 1; groups do not span parts
        """
        assert atoms.labels is not None
        names, residues = atoms.labels.names, atoms.labels.residue_index
        halves = 2 * residues
        for start, end in zip(starts := atoms.labels.residue_starts, [*starts[1:], len(atoms)], strict=True):
            if {"N", "CA", "C"} <= set(names[start:end]):
                halves[start:end] += ~np.isin(names[start:end], _BACKBONE)
        own = np.zeros(len(atoms), np.intp) if sides is None else sides
        _, firsts, index = np.unique(2 * halves + own, return_index=True, return_inverse=True)
        return cls(index, np.abs(np.bincount(index, atoms.charges)) > _LEAST_CHARGE, own[firsts])

    def __len__(self) -> int:
        return len(self.charged)


class FarGroups:
    """Kernel of cl/binding/far.cl with the device tables of a complex."""

    def __init__(self, binding: Binding) -> None:
        from ..opencl.queue import Queue

        atoms, parts = binding.atoms, binding.parts
        sides = np.zeros(len(atoms), np.intp)
        sides[parts.ligand] = 1
        self._parts, self._groups = parts, AtomGroups.of(atoms, sides)
        index, n = self._groups.index, len(self._groups)
        self._order = np.argsort(index, kind="stable")  # makes the atoms of a group contiguous
        places = np.empty_like(self._order)
        places[self._order] = np.arange(len(atoms))
        self._starts = np.searchsorted(index[self._order], np.arange(n + 1))
        first, partners = excluded_entries(atoms, places)
        queue = self._queue = Queue(binding.device, binding.precision, False)
        self._charges = scaled_charges(atoms, binding.model, binding.precision)[self._order]
        self._model = packed_model(binding.model, binding.precision)
        tables: dict[str, NDArray[np.integer]] = dict(
            groups=index[self._order], starts=self._starts, sides=self._groups.sides, excluded_starts=first,
            excluded=partners,
        )  # fmt: skip
        self._tables = {name: queue.upload(table, np.int32) for name, table in tables.items()}
        self._tables["wells"] = queue.upload(wells(atoms)[self._order])
        self._tables["inverses"] = queue.upload(inverse_dielectrics(atoms, binding.model)[self._order])
        self._kernel = queue.kernel("binding/far.cl", "far_groups", **definitions(atoms, binding.model))

    def energies(self, positions: Floats, born: Floats, born_of_parts: Floats) -> Floats:
        """Compute the energies beyond PELE's cutoffs, (m, 2) kcal/mol: of the complex, and of receptor plus ligand.

        positions : (m, n, 3) A; born, born_of_parts : Born radii in the complex and in the parts, (m, n) A
        """
        size = max(1, _MOST_ATOMS // len(self._order))
        pieces = [slice(first, first + size) for first in range(0, len(positions), size)]
        return np.concatenate([self._of_piece(positions[k], born[k], born_of_parts[k]) for k in pieces])

    def _of_piece(self, positions: Floats, born: Floats, born_of_parts: Floats) -> Floats:
        queue, m, n, groups = self._queue, len(positions), len(self._order), self._groups
        ordered = (positions - positions.mean(axis=1, keepdims=True))[:, self._order]
        sizes = np.diff(self._starts)
        centroids = np.add.reduceat(ordered, self._starts[:-1], axis=1) / sizes[:, np.newaxis]
        radii = np.stack([born, born_of_parts], axis=-1)[:, self._order]
        sums = queue.zeros(m * n * 2)
        arguments = dict(
            n_groups=len(groups), n_atoms=n, model=self._model, born=queue.upload(radii), energies=sums,
            points=queue.upload(_with_column(ordered, self._charges)),
            centroids=queue.upload(_with_column(centroids, groups.charged)), neutral2=NEUTRAL**2, mixed2=MIXED**2,
            charged2=CHARGED**2, **self._tables,
        )  # fmt: skip
        queue.launch(self._kernel, (n, m), (_ITEMS, 1), arguments)
        found: Floats = queue.download(sums, m * n * 2).reshape(m, n, 2).astype(np.float64).sum(axis=1)
        return found


def _with_column(points: Floats, column: NDArray[np.generic]) -> Floats:
    """Append values (n,) as a column to points (m, n, 3), giving (m, n, 4)."""
    return np.concatenate([points, np.broadcast_to(column, points.shape[:2])[..., np.newaxis]], axis=2)


@dataclass(frozen=True)
class PoseEnergies:
    """Energies of poses, kcal/mol; NaN for failed poses.

    total : (m,) energies of the complex; binding : (m,) binding energies; errors : error messages of failed poses, by
        index from 0
    """

    total: Floats
    binding: Floats
    errors: Mapping[int, str]


class PoseEvaluator:
    """Evaluates poses of a complex.

    has_cutoffs : whether PELE's long cutoffs are applied to nonbonded energies
    of_explore : whether totals are those of pele-ocl's explorers, which include restraints and have no cutoffs
    terms : these restraints
    """

    def __init__(
        self, binding: Binding, has_cutoffs: bool = True, *, of_explore: bool = False, terms: Sequence[Term] = ()
    ) -> None:
        self.binding, self._of_explore = binding, of_explore
        self._far = FarGroups(binding) if has_cutoffs else None
        self._restraints: Energy | None = None
        self._names = [name for term in terms for name in term.names]
        if terms:
            plan, bonded = binding.plans["complex"], binding.atoms.bonded
            unasked = "coulomb" if bonded is None or not len(bonded.bonds) else "bond"  # Energy needs at least one term
            self._restraints = Energy(
                binding.atoms, gradient=False, terms=terms, only_terms=(unasked,), precision=plan.precision,
                device=plan.device, model=binding.model.in_vacuum(),
            )  # fmt: skip

    def evaluate(self, conformations: NDArray[np.floating]) -> PoseEnergies:
        """Compute the energies of conformations (m, n, 3) A of all atoms given to the plan."""
        positions = np.asarray(self.binding.parts.of_complex(np.asarray(conformations)), np.float64)
        batches = self.binding.systems.batches(positions, errors="record")
        energies = self.binding.systems.joined(batches)
        total, binding = energies.complex.total, energies.total
        if self._far is not None:
            radii = (self.binding.parts.born_radii(batches, of_parts) for of_parts in (False, True))
            whole, parts = self._far.energies(positions, *radii).T
            total, binding = total - (0.0 if self._of_explore else whole), binding - (whole - parts)
        if self._restraints is not None:
            found = self._restraints.evaluate_batch(positions, errors="record").terms.columns()
            total = total + sum(found[name] for name in self._names)
        return PoseEnergies(total, binding, energies.errors)
