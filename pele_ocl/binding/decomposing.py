"""Energy decomposition: sum pair energies between groups of atoms on the device, and assign them to residues."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats, Ints, OneFourPairs
from ..common.arguments import whole_number
from ..common.errors import InputError
from ..energy import Energy, EnergyBatch
from ..gb_models.solvent_model import SolventModel
from ..opencl.interface import PAIR_MODEL
from ..pairs import lj_corrections, nonbonded_pairs, own_lj_pairs
from ..tiles.tables import scaled_charges
from ..trajectories.files import Positions
from .decomposition import GROUPS, IN_RESIDUES, SPLITS, Decomposition, Moments, Shares, grouping
from .energies import aligned
from .parts import Parts
from .poisson_boltzmann import PBEnergy

SUMS = 4  # Lennard-Jones, Coulomb, GB of the complex, GB of the part
MOST_BYTES = 1 << 28  # maximum size of the sums of conformations that are computed together
ITEMS = (8, 8)  # work-group size; the first dimension is the second residue


class ResiduePairs:
    """Kernel of cl/binding/pairs.cl with the device tables of a complex."""

    def __init__(self, plan: Energy, groups: NDArray[np.intp], sides: Ints) -> None:
        """Upload the tables.

        plan : plan of the complex; groups : (n_atoms,) group of each atom; sides : (n_groups,) part of each group
        """
        from ..opencl.queue import Queue

        atoms, model, cutoff = plan.atoms, plan.model, plan.options.cutoff
        self._queue, self._n_atoms, self._n_groups = (
            Queue(plan.device, plan.precision, False),
            len(atoms),
            len(sides),
        )
        queue = self._queue
        # The kernel requires the atoms of a group to be contiguous.
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
        """Maximum number of conformations computed together."""
        return max(1, MOST_BYTES // (SUMS * self._n_groups**2 * self._queue.dtype.itemsize))

    def energies(self, positions: Floats, born: Floats, born_of_parts: Floats) -> Floats:
        """Compute the energies of pairs of groups, (m, 4, n_groups, n_groups) kcal/mol.

        The terms are Lennard-Jones, Coulomb, GB with the Born radii of the complex, and GB with those of the parts,
        which is 0 between different parts. Each pair of groups appears once, in the upper triangle; the diagonal has
        the energies within groups.

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
    """Pack the model's constants for the kernels. cutoff : A, None for no cutoff"""
    return PAIR_MODEL.pack(
        precision, outside=model.outside, kappa=model.kappa, cutoff2=0.0 if cutoff is None else cutoff**2
    )


def definitions(atoms: Atoms, model: SolventModel, cutoff: float | None = None) -> dict[str, int]:
    """Return the preprocessor definitions of kernels that evaluate pairs of these atoms."""
    return {
        "TILE": 1, "GRADIENT": 0, "COULOMB": 1, "SCREENED": int(model.kappa > 0), "CUTOFF": int(cutoff is not None),
        "GEOMETRIC": int(atoms.combining == "geometric"),
    }  # fmt: skip


def wells(atoms: Atoms) -> Floats:
    """Return Lennard-Jones parameters for the kernels, (n, 2).

    They are sigma / 2, or sqrt(sigma) for geometric combining, and sqrt(4 epsilon).
    """
    assert atoms.lj_sigma is not None
    assert atoms.lj_epsilon is not None
    sigmas = np.sqrt(atoms.lj_sigma) if atoms.combining == "geometric" else atoms.lj_sigma / 2
    return np.column_stack([sigmas, np.sqrt(4 * atoms.lj_epsilon)])


def excluded_entries(atoms: Atoms, places: NDArray[np.intp] | None = None) -> tuple[Ints, Ints]:
    """Return the excluded partners of each atom as a list, and the first entry of each atom, (n + 1,).

    Excluded pairs have no Lennard-Jones and Coulomb energy. places : (n,) new index of each atom, by default unchanged
    """
    pairs: NDArray[np.integer] = nonbonded_pairs(atoms).excluded
    pairs = pairs if places is None else places[pairs]
    both = np.unique(np.concatenate([pairs, pairs[:, ::-1]]), axis=0) if len(pairs) else np.empty((0, 2), np.int32)
    first = np.searchsorted(both[:, 0], np.arange(len(atoms) + 1))
    return first.astype(np.int32), both[:, 1].astype(np.int32)


_OF_PAIRS = ("lennard_jones", "coulomb", "gb_pair", "lennard_jones_14", "coulomb_14")


class Decomposer:
    """Accumulates the contributions of residues and of pairs of residues over conformations.

    A pair energy is divided equally between the residues of its two atoms, a bonded term equally among its atoms. GB
    self energies and surface energies belong to the residue of their atom. Contributions of pairs form a matrix whose
    row sums are the contributions of residues. Its diagonal contains bonded terms and terms within a residue.
    """

    def __init__(
        self, plan: Energy, parts: Parts, idecomp: int = 2, is_backbone: NDArray[np.bool_] | None = None,
        kept: NDArray[np.intp] | None = None,
    ) -> None:  # fmt: skip
        """Prepare the decomposition of a complex.

        plan : plan of the complex, built with per_atom=True; parts : atoms of the parts
        idecomp : 1 and 2 per residue, 3 and 4 also per pair of residues; see `grouping`
        is_backbone : mask (n,) of the complex's atoms, to decompose pairs also into sidechain and backbone
        kept : residues (k,) whose pairs are stored for every conformation, for `by_frame`

        Raises InputError if the atoms have no residues, or a residue belongs to both parts.
        """
        self.idecomp = whole_number("idecomp", idecomp, least=1, most=4)
        if not plan.model.gb_model.is_pairwise:
            raise InputError(f"energies of {plan.model.gb} are not decomposed; use another GB model")
        if isinstance(plan, PBEnergy) and (self.idecomp > 2 or plan.solvent.equation != "linear"):
            what = "by pairs" if self.idecomp > 2 else "with the nonlinear equation"
            raise InputError(
                f"Poisson-Boltzmann energies cannot be decomposed {what}; use idecomp 1 or 2 with the linear equation"
            )
        labels = plan.atoms.labels
        if labels is None:
            raise InputError("a decomposition needs residues, which these atoms do not have")
        if not plan.options.per_atom:
            raise InputError("a decomposition needs energies per atom; create the Binding with per_atom=True")
        self._plan, self._parts, self.residues, self._starts = plan, parts, labels.residues, labels.residue_starts
        side = np.zeros(len(labels), np.int32)
        side[parts.ligand] = 1
        self._sides = side[self._starts]
        sizes = np.diff(self._starts, append=len(labels))
        if (np.repeat(self._sides, sizes) != side).any():
            cut = int(np.flatnonzero(np.repeat(self._sides, sizes) != side)[0])
            raise InputError(f"the residue of {plan.atoms.describe(cut)} is in both parts; use whole residues")
        self._residue_of = np.repeat(np.arange(len(sizes)), sizes)
        self._groups = grouping(plan.names, self.idecomp)
        self._moments = _moments()
        # For pairs, each residue is one group of atoms, or two: sidechain, then backbone.
        self._splits = ("total",) if is_backbone is None else SPLITS
        self._is_backbone = is_backbone
        self._group_of: NDArray[np.intp] = (
            self._residue_of if is_backbone is None else 2 * self._residue_of + is_backbone
        )
        self._group_sides = self._sides if is_backbone is None else np.repeat(self._sides, 2)
        self._split_moments = {split: _moments() for split in self._splits}
        self._kept, self._of_frames = kept, {split: list[dict[str, Floats]]() for split in self._splits}
        self._kernel = ResiduePairs(plan, self._group_of, self._group_sides) if self.idecomp > 2 else None
        scaled = plan.options.one_four == "scale"
        self._one_four = nonbonded_pairs(plan.atoms).one_four if scaled else OneFourPairs()
        self._lj_pairs = own_lj_pairs(plan.atoms)

    def add(self, batches: Mapping[str, EnergyBatch], positions: Positions) -> None:
        """Add conformations of the complex (m, n, 3) with their batches; failed ones are ignored."""
        good = np.ones(len(positions), bool)
        for batch in batches.values():
            good[list(batch.errors)] = False
        of_atoms = self._of_atoms(batches)
        by_residue = {name: np.add.reduceat(of[good], self._starts, axis=1) for name, of in of_atoms.items()}
        _add(self._moments, {name: of @ self._groups for name, of in by_residue.items()})
        if self._kernel is None:
            return
        by_group = {name: self._by_group(of_atoms[name][good], of) for name, of in by_residue.items()}
        most, places = self._kernel.most_at_once, np.flatnonzero(good)
        born = [self._parts.born_radii(batches, of_parts) for of_parts in (False, True)]
        for first in range(0, len(places), most):
            chosen, part = places[first : first + most], slice(first, first + most)
            sums = self._kernel.energies(np.asarray(positions[chosen], np.float64), born[0][chosen], born[1][chosen])
            for k, place in enumerate(chosen.tolist()):
                rest = {name: of[part][k] for name, of in by_group.items()}
                found = self._matrices(sums[k], np.asarray(positions[place], np.float64), rest)
                for split in self._splits:
                    of = {name: self._rows_of(matrix, split) for name, matrix in found.items()}
                    _add(self._split_moments[split], of)
                    if self._kept is not None:
                        self._of_frames[split].append({n: m[0][np.ix_(self._kept, self._kept)] for n, m in of.items()})

    def result(self) -> Decomposition:
        """Return the decomposition over all added conformations. Raises InputError if there are none."""
        n = self._moments["delta"][0].n
        if not n:
            raise InputError("no frame has energies, so a decomposition cannot be computed")
        pairs = {} if self._kernel is None else {split: _shares(of) for split, of in self._split_moments.items()}
        return Decomposition(
            self.residues, self._sides == 1, _shares(self._moments), pairs.pop("total", None), n, self.idecomp, pairs
        )

    def by_frame(self) -> dict[str, dict[str, Floats]]:
        """Return the pairs of the kept residues, (m, k, k, n_groups), by split, and by "complex" and "parts"."""
        return {
            split: {name: np.stack([of[name] for of in frames]) for name in ("complex", "parts")}
            for split, frames in self._of_frames.items()
        }

    def _by_group(self, of_atoms: Floats, by_residue: Floats) -> Floats:
        """Return the energies of groups of atoms, (m, n_groups_of_atoms, n_terms), from those of atoms and residues."""
        if self._is_backbone is None:
            return by_residue
        of_backbone = np.add.reduceat(of_atoms * self._is_backbone[:, np.newaxis], self._starts, axis=1)
        both = np.stack([by_residue - of_backbone, of_backbone], axis=2)
        found: Floats = both.reshape(len(both), -1, both.shape[-1])
        return found

    def _rows_of(self, matrix: Floats, split: str) -> Floats:
        """Return the energies of a split of each residue with all other residues.

        The shape is (1, n_residues, n_residues, n_groups).
        """
        if self._is_backbone is None:
            return matrix
        n = len(self.residues)
        rows: Floats = matrix.reshape(1, n, 2, n, 2, -1).sum(axis=4)
        found: Floats = rows.sum(axis=2) if split == "total" else rows[:, :, int(split == "backbone")]
        return found

    def _of_atoms(self, batches: Mapping[str, EnergyBatch]) -> dict[str, Floats]:
        """Return the energies of atoms in the complex and in their parts, (m, n, n_terms)."""
        of: dict[str, Floats] = {}
        for name, batch in batches.items():
            assert batch.per_atom is not None
            of[name] = aligned(batch.per_atom, self._plan.names)
        parts = np.empty_like(of["complex"])
        parts[:, self._parts.receptor] = of["receptor"]
        parts[:, self._parts.ligand] = of["ligand"]
        return {"complex": of["complex"], "parts": parts}

    def _matrices(self, sums: Floats, positions: Floats, by_group: Mapping[str, Floats]) -> dict[str, Floats]:
        """Return the matrices of pairs of atom groups of one conformation, (1, n, n, n_groups), by name."""
        one_four, own_pairs = self._of_one_four(positions), self._of_lj_pairs(positions)
        same_side = self._group_sides[:, None] == self._group_sides
        found = {}
        for name, gb in (("complex", sums[2]), ("parts", sums[3])):
            counted = 1.0 if name == "complex" else same_side
            pairs = {"lennard_jones": (sums[0] + own_pairs) * counted, "coulomb": sums[1] * counted, "gb_pair": gb}
            terms = {**pairs, **{term: matrix * counted for term, matrix in one_four.items()}}
            found[name] = self._matrix(terms, by_group[name])[np.newaxis]
        return found

    def _matrix(self, terms: Mapping[str, Floats], by_group: Floats) -> Floats:
        """Return the symmetric matrix of pairs of atom groups, with half of each pair energy in either triangle.

        terms : pair terms, in upper triangles; by_group : all other terms by atom group, added on the diagonal
        """
        names, n = self._plan.names, len(self._group_sides)
        matrix = np.zeros((n, n, len(GROUPS)))
        diagonal = np.arange(n)
        for k, name in enumerate(names):
            if name in _OF_PAIRS:
                half = (terms[name] + terms[name].T) / 2
                matrix[:, :, np.argmax(self._groups[k])] += half
            else:
                matrix[diagonal, diagonal, np.argmax(self._groups[k])] += by_group[:, k]
        return matrix

    def _of_one_four(self, positions: Floats) -> dict[str, Floats]:
        """Compute the energies of 1-4 pairs between atom groups, in upper triangles, on the host, as they are few."""
        n = len(self._group_sides)
        found = {name: np.zeros((n, n)) for name in ("lennard_jones_14", "coulomb_14")}
        if not len(self._one_four):
            return found
        charges, sigma, epsilon = self._one_four.parameters.T
        residues, r2, counts = self._of_pairs(self._one_four.atoms, positions)
        np.add.at(found["lennard_jones_14"], residues, counts * _lennard_jones(r2, sigma, epsilon))
        np.add.at(found["coulomb_14"], residues, counts * self._plan.model.coulomb_factor * charges / np.sqrt(r2))
        return found

    def _of_lj_pairs(self, positions: Floats) -> Floats:
        """Compute the corrections for pair-specific Lennard-Jones parameters, in an upper triangle of atom groups."""
        n = len(self._group_sides)
        found = np.zeros((n, n))
        if len(self._lj_pairs):
            own, by_rule = lj_corrections(self._plan.atoms, self._lj_pairs)
            residues, r2, counts = self._of_pairs(self._lj_pairs.atoms, positions)
            np.add.at(found, residues, counts * (_lennard_jones(r2, *own.T) - _lennard_jones(r2, *by_rule.T)))
        return found

    def _of_pairs(self, pairs: Ints, positions: Floats) -> tuple[tuple[NDArray[np.intp], ...], Floats, Floats]:
        """Return for pairs (k, 2) their sorted atom groups, r^2 (k,) A^2, and 1 within the cutoff, else 0."""
        i, j = pairs.T
        r2 = ((positions[i] - positions[j]) ** 2).sum(axis=1)
        cutoff = self._plan.options.cutoff
        counts = np.ones(len(r2)) if cutoff is None else (r2 <= cutoff**2).astype(np.float64)
        return tuple(np.sort(self._group_of[np.stack([i, j])], axis=0)), r2, counts


def _moments() -> dict[str, tuple[Moments, Moments]]:
    """Return empty Moments for the groups and for their sum, by the names of IN_RESIDUES."""
    return {name: (Moments(), Moments()) for name in IN_RESIDUES}


def _lennard_jones(r2: Floats, sigma: Floats, epsilon: Floats) -> Floats:
    """Return the Lennard-Jones energies of pairs, (k,)."""
    s6 = (sigma**2 / r2) ** 3
    energies: Floats = 4 * epsilon * (s6 * s6 - s6)
    return energies


def _add(moments: Mapping[str, tuple[Moments, Moments]], of: Mapping[str, Floats]) -> None:
    """Add "complex", "parts" and their difference to the moments of the groups and of their sum."""
    of = {**of, "delta": of["complex"] - of["parts"]}
    if len(of["delta"]):
        for name, (groups, total) in moments.items():
            groups.add(of[name])
            total.add(of[name].sum(axis=-1))


def _shares(moments: Mapping[str, tuple[Moments, Moments]]) -> dict[str, Shares]:
    return {name: Shares(groups.mean, groups.sd, total.sd) for name, (groups, total) in moments.items()}
