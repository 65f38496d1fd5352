"""Constraints on bonds to hydrogen during minimization."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats, Ints
from ..atoms.radii import elements_of
from ..common.arguments import choice
from ..common.errors import InputError

if TYPE_CHECKING:
    from ..energy.passes import AnyPasses
    from ..opencl.binding import Array, Binder, Launch

KINDS = ("hbonds", "hbonds-present")
ITEMS = 64  # per work-group
MOST_HYDROGENS = 8  # per heavy atom
PRESENT = -1.0  # means the current length of a bond


def constraints_named(given: object, known: Sequence[str]) -> str:
    """Return the name of constraints, also for OpenMM's "HBonds" or openmm.app.HBonds.

    known : valid names. Raises InputError for others.
    """
    if type(given).__module__.startswith("openmm."):
        given = str(given)
    if isinstance(given, str) and given.lower() in known:
        return given.lower()
    if isinstance(given, str) and given in ("AllBonds", "HAngles"):
        raise InputError(f"constraints are {given}; only bonds to hydrogen can be constrained: {known[0]!r}")
    choice("constraints", given, known)
    return str(given)


@dataclass(frozen=True, eq=False)
class BondConstraints:
    """Constrained bonds, in clusters of a heavy atom and its hydrogens; docs/theory/restraints.md, section 2.

    heavy : (c,) heavy atoms; moves : (c,) whether they move
    starts : (c + 1,) index of the first hydrogen of each cluster
    hydrogens : (h,); lengths : (h,) A, PRESENT for the current length
    """

    heavy: Ints
    moves: NDArray[np.bool_]
    starts: Ints
    hydrogens: Ints
    lengths: Floats

    @classmethod
    def of(cls, atoms: Atoms, free: NDArray[np.bool_], kind: str) -> BondConstraints:
        """Create the clusters of a molecule. free : (n,) atoms that move; kind : of KINDS

        Raises InputError for missing bonds, lengths or elements, and for hydrogens that cannot be in a cluster.
        """
        kind = constraints_named(kind, KINDS)
        if atoms.labels is None:
            raise InputError("bonds to hydrogen need elements, which these atoms do not have; leave out constraints")
        bonds, lengths = _bonds_of(atoms, kind)
        is_hydrogen = elements_of(atoms.labels) == "H"
        ends = np.where(is_hydrogen[bonds[:, :1]], bonds[:, ::-1], bonds)  # the heavy atom first
        held = ~is_hydrogen[ends[:, 0]] & is_hydrogen[ends[:, 1]] & free[ends].any(axis=1)
        order = np.lexsort((ends[held, 1], ends[held, 0]))
        (heavy, hydrogens), lengths = ends[held][order].T, lengths[held][order]
        twice = np.flatnonzero(np.bincount(hydrogens, minlength=1) > 1)
        if len(twice):
            raise InputError(f"{atoms.describe(int(twice[0]))} is bonded to two heavy atoms; leave out constraints")
        _check_stuck(atoms, heavy, hydrogens, free)
        centers, starts, counts = np.unique(heavy, return_index=True, return_counts=True)
        if counts.max(initial=0) > MOST_HYDROGENS:
            owner = atoms.describe(int(centers[np.argmax(counts)]))
            raise InputError(f"{owner} has more than {MOST_HYDROGENS} hydrogens; leave out constraints")
        if not len(centers):
            raise InputError("there are no bonds to hydrogen to constrain; leave out constraints")
        return cls(centers, free[centers], np.append(starts, len(heavy)), hydrogens, lengths)

    def within(self, atoms: Atoms, free: NDArray[np.bool_]) -> BondConstraints | None:
        """Return the constraints of a structure with fewer moving atoms `free` (n,); None if no bond can move.

        Raises InputError for a moving heavy atom with a frozen hydrogen.
        """
        owners, moves = np.repeat(self.heavy, np.diff(self.starts)), free[self.hydrogens]
        _check_stuck(atoms, owners, self.hydrogens, free)
        heavy, starts = np.unique(owners[moves], return_index=True)
        if not len(heavy):
            return None
        hydrogens, lengths = self.hydrogens[moves], self.lengths[moves]
        return BondConstraints(heavy, free[heavy], np.append(starts, len(hydrogens)), hydrogens, lengths)

    def placed(self, conformations: Floats) -> Floats:
        """Return conformations (m, n, 3) A with each hydrogen moved along its bond to the constrained length."""
        centers, units = self._bonds(conformations)
        found = conformations.copy()
        held = self.lengths != PRESENT
        found[:, self.hydrogens[held]] = (centers + self.lengths[:, None] * units)[:, held]
        return found

    def tangent(self, positions: Floats, gradients: Floats) -> Floats:
        """Project gradients (m, n, 3) so that they do not change the lengths of bonds at positions (m, n, 3) A."""
        _, units = self._bonds(positions)
        found, owner = gradients * 1.0, np.repeat(np.arange(len(self.heavy)), np.diff(self.starts))
        along = (units * (found[:, self.hydrogens] - found[:, self.heavy[owner]])).sum(axis=2)
        matrices = np.add.reduceat(units[..., :, None] * units[..., None, :], self.starts[:-1], axis=1) + np.eye(3)
        sides = np.add.reduceat(along[..., None] * units, self.starts[:-1], axis=1)
        changes = np.linalg.solve(matrices, sides[..., None])[..., 0] * self.moves[:, None]
        found[:, self.heavy] += changes
        along -= (units * changes[:, owner]).sum(axis=2)
        found[:, self.hydrogens] -= along[..., None] * units
        return found

    def launches(self, passes: AnyPasses, queue: Binder, base: Array, free: Array) -> tuple[Launch, Launch]:
        """Bind the launches that project the gradient after an evaluation and restore bonds after a step.

        free : reals (n,) per structure, 0 for frozen atoms, 1 for others; fewer atoms may move than in the plan
        """
        n = len(self.heavy)
        fine = queue.dtype if passes.encoding.is_fixed else np.dtype(np.float64)
        clusters = dict(
            n_atoms=passes.n_atoms, step=passes.encoding.step, n_clusters=n,
            heavy=queue.upload(self.heavy, np.int32), starts=queue.upload(self.starts, np.int32),
            hydrogens=queue.upload(self.hydrogens, np.int32), free=free,
            **passes.named("positions"),
        )  # fmt: skip
        file = "minimize/constraints.cl"
        macros = {"MOST_HYDROGENS": MOST_HYDROGENS, **passes.encoding.macros, **passes.result_macros}
        project = queue.bind(
            file, "project_gradient", (n, 1), (ITEMS, 1),
            dict(**passes.result_sizes, **clusters, **passes.named("results")), **macros,
        )  # fmt: skip
        hold = queue.bind(
            file, "hold_bonds", (n, 1), (ITEMS, 1),
            dict(lengths=queue.upload(self.lengths, fine), base=base, **clusters), **macros,
        )  # fmt: skip
        return project, hold

    def _bonds(self, positions: Floats) -> tuple[Floats, Floats]:
        """Positions of the heavy atom and direction of each bond, (m, h, 3) each."""
        centers = positions[:, np.repeat(self.heavy, np.diff(self.starts))]
        bonds = positions[:, self.hydrogens] - centers
        lengths = np.linalg.norm(bonds, axis=2, keepdims=True)
        return centers, np.where(lengths > 0, bonds / np.where(lengths > 0, lengths, 1), [1.0, 0.0, 0.0])


def check_rigid(atoms: Atoms, free: NDArray[np.bool_], constraints: BondConstraints | None) -> None:
    """Raise InputError for moving atoms that only a constraint of the input holds together, without bond energy.

    free : (n,) atoms that move; constraints : those applied in the minimization
    """
    held = set[tuple[int, int]]()
    if constraints is not None:
        owners = np.repeat(constraints.heavy, np.diff(constraints.starts))
        held = {tuple(sorted(pair)) for pair in zip(owners.tolist(), constraints.hydrogens.tolist(), strict=True)}
    for i, j in atoms.rigid_pairs[free[atoms.rigid_pairs].any(axis=1)].tolist():
        if (i, j) not in held:
            raise InputError(
                f"{atoms.describe(i)} and {atoms.describe(j)} are constrained in the input and have no bond "
                "energy, so they would move apart; give a topology with flexible bonds (constraints=None and "
                "rigidWater=False in OpenMM, define = -DFLEXIBLE in GROMACS), or freeze them"
            )


def _check_stuck(atoms: Atoms, heavy: Ints, hydrogens: Ints, free: NDArray[np.bool_]) -> None:
    """Raise InputError for a moving heavy atom with a frozen hydrogen."""
    stuck = free[heavy] & ~free[hydrogens]
    if stuck.any():
        i, j = (atoms.describe(int(of[stuck][0])) for of in (hydrogens, heavy))
        raise InputError(f"{i} is frozen but {j} is not, and their bond is constrained; freeze both or none")


def _bonds_of(atoms: Atoms, kind: str) -> tuple[Ints, Floats]:
    """Unique bonds (m, 2) and their lengths (m,) A."""
    if kind == "hbonds-present":
        bonds = atoms.bond_pairs
        lengths = np.full(len(bonds), PRESENT)
    elif atoms.bonded is None:
        raise InputError(
            "bond lengths need a force field, which these atoms do not have; use hbonds-present, which "
            "keeps the current lengths"
        )
    else:
        bonds, lengths = atoms.bonded.bonds.atoms, atoms.bonded.bonds.parameters[:, 1]
    _, first = np.unique(np.sort(bonds, axis=1), axis=0, return_index=True)
    return bonds[first], lengths[first]
