"""Metrics: one number per state of an explorer, written to reports and used in conditions.

Each metric is a class that evaluates the states of all explorers together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats, Labels, Residue, correspondence, counterparts, labels_of
from ..binding import Binding
from ..binding.pele import PoseEvaluator
from ..common.errors import InputError
from ..energy import Energy
from ..formats import read_structure
from ..gb_models.solvent_model import SolventModel
from ..gb_models.surface import unit_points
from ..trajectories.superposing import turns_onto
from .philox import philox, uniform
from .regions import is_close
from .rotations import torsions_of
from .walk import Stage

if TYPE_CHECKING:
    from ..opencl.device import Device

Bools = NDArray[np.bool_]
PROBE = 1.4  # A, radius of a water probe
SASA_POINTS = 500  # points per sphere
_RMIN = 2 ** (1 / 6)  # distance of the Lennard-Jones minimum, in units of sigma


@dataclass(frozen=True)
class States:
    """States of explorers.

    positions : (m, n, 3) A; explorers : (m,) their numbers; steps : (m,) numbers of their next steps
    seed : seed of their random numbers
    """

    positions: Floats
    explorers: NDArray[np.int64]
    steps: NDArray[np.int64]
    seed: int

    def __len__(self) -> int:
        return len(self.positions)


_SAME = 1e-6  # A; smaller distances are rounding errors of coordinates


class Metric:
    """Number computed from a state."""

    def evaluate(self, states: States) -> Floats:
        """Compute the metric of each state, (m,)."""
        raise NotImplementedError


class BindingEnergy(Metric):
    """Binding energy in kcal/mol, without relaxation: E(all) - E(bound part) - E(rest), with PELE's long cutoffs."""

    def __init__(
        self, atoms: Atoms, bound: Bools, model: SolventModel, precision: str = "float32",
        device: Device | str | None = None, has_cutoffs: bool = True,
    ) -> None:  # fmt: skip
        """bound : mask (n,) of the bound part"""
        parts = require_some(bound, "the bound part"), require_some(~bound, "the rest of the molecule")
        binding = Binding(atoms, *parts, model=model, precision=precision, device=device)
        self._poses = PoseEvaluator(binding, has_cutoffs)

    def evaluate(self, states: States) -> Floats:
        return self._poses.evaluate(states.positions).binding


class InternalEnergy(Metric):
    """Energy in kcal/mol of some atoms in isolation."""

    def __init__(
        self, atoms: Atoms, chosen: Bools, model: SolventModel, precision: str = "float32",
        device: Device | str | None = None,
    ) -> None:  # fmt: skip
        self._chosen = np.flatnonzero(require_some(chosen, "the selection"))
        part = atoms[self._chosen]
        self._energy = Energy(part, gradient=False, model=model, precision=precision, device=device, born="pairs")

    def evaluate(self, states: States) -> Floats:
        batch = self._energy.evaluate_batch(states.positions[:, self._chosen], errors="record")
        return batch.terms.total


class Rmsd(Metric):
    """Root mean square distance in A from a native structure.

    Atoms are matched by chain, residue and name, allowing for names used by other programs (`correspondence`). Atoms
    that the native structure lacks are ignored. Without superposition both structures must be in the same frame.

    n_chosen, n_compared : number of selected atoms, and of those that the native structure also has
    """

    def __init__(
        self, atoms: Atoms, native: Path, chosen: Bools, superposed: Bools | None = None, hydrogens: bool = False
    ) -> None:
        """superposed : mask (n,) of atoms to superpose first, None for none; hydrogens : whether to include them"""
        structure = read_structure(native)
        assert atoms.labels is not None
        keys = _keys(atoms.labels)
        compared = chosen if superposed is None else chosen | superposed
        _refuse_copies([keys[i] for i in np.flatnonzero(compared).tolist()], keys, _keys(structure.labels), native)
        places = _places(atoms.labels, structure.labels, compared, str(native))
        there = places >= 0
        heavy = np.ones(len(atoms), bool) if hydrogens else atoms.labels.elements != "H"
        self._own = np.flatnonzero(chosen & there & heavy)
        self.n_chosen, self.n_compared = int((chosen & heavy).sum()), len(self._own)
        self._target = structure.positions[places[self._own]]
        if not len(self._own):
            raise InputError(f"{native}: has none of the atoms to compare; chain, residue and name must be the same")
        self._by = np.flatnonzero(superposed & there & heavy) if superposed is not None else None
        if self._by is not None:
            if len(self._by) < 3:
                raise InputError(f"{native}: has {len(self._by)} of the atoms that are superposed; expected three")
            self._reference = structure.positions[places[self._by]]

    def evaluate(self, states: States) -> Floats:
        points = states.positions[:, self._own]
        if self._by is not None:
            points = _superposed(points, states.positions[:, self._by], self._reference)
        found: Floats = np.sqrt(((points - self._target) ** 2).sum(axis=2).mean(axis=1))
        return np.where(found < _SAME, 0.0, found)


class Sasa(Metric):
    """Accessible surface area of some atoms, relative to their area in isolation, 0 to 1.

    Radii are from PELE's templates (column 6 of NBON) where available, otherwise half the Lennard-Jones minimum.
    """

    def __init__(self, atoms: Atoms, chosen: Bools) -> None:
        self._chosen = np.flatnonzero(require_some(chosen, "the selection"))
        self._others = np.flatnonzero(~chosen)
        self._radii = sasa_radii(atoms) + PROBE
        self._points = unit_points(SASA_POINTS)

    def evaluate(self, states: States) -> Floats:
        return np.array([self._share(positions) for positions in states.positions])

    def _share(self, positions: Floats) -> float:
        own, radii = positions[self._chosen], self._radii[self._chosen]
        widest = float(radii.max() + self._radii[self._others].max(initial=0.0))
        near = self._others[is_close(positions[self._others], own, widest)]
        alone = seen = 0.0
        for k, (center, radius) in enumerate(zip(own, radii, strict=True)):
            free = self._free(self._points, center, radius, np.delete(own, k, axis=0), np.delete(radii, k))
            exposed = self._free(self._points[free], center, radius, positions[near], self._radii[near])
            alone += radius**2 * free.sum()
            seen += radius**2 * exposed.sum()
        return float(seen / alone) if alone else 0.0

    def _free(self, points: Floats, center: Floats, radius: float, around: Floats, radii: Floats) -> Bools:
        """Return a mask of the points (n_points, 3) of a unit sphere that are in none of the neighbouring spheres."""
        away = center - around  # the point u is in a sphere if |away + radius u|^2 < its radius squared
        squares = (away**2).sum(axis=1)
        meets = squares < (radius + radii) ** 2
        most = (radii[meets] ** 2 - radius**2 - squares[meets]) / (2 * radius)
        free: Bools = ~(points @ away[meets].T < most).any(axis=1)
        return free


class ComDistance(Metric):
    """Distance in A between the centres of mass of two groups of atoms."""

    def __init__(self, atoms: Atoms, first: Bools, second: Bools) -> None:
        self._centers = Center(atoms, first), Center(atoms, second)

    def evaluate(self, states: States) -> Floats:
        first, second = (center(states.positions) for center in self._centers)
        found: Floats = np.linalg.norm(first - second, axis=1)
        return found


class DistanceToPoint(Metric):
    """Distance in A from the centre of mass of some atoms to a point."""

    def __init__(self, atoms: Atoms, chosen: Bools, point: tuple[float, float, float]) -> None:
        self._center, self._point = Center(atoms, chosen), np.array(point)

    def evaluate(self, states: States) -> Floats:
        found: Floats = np.linalg.norm(self._center(states.positions) - self._point, axis=1)
        return found


class Angle(Metric):
    """Angle in degrees of three atoms, with the second at the vertex."""

    def __init__(self, atoms: tuple[int, int, int]) -> None:
        self._atoms = list(atoms)

    def evaluate(self, states: States) -> Floats:
        a, b, c = states.positions[:, self._atoms].transpose(1, 0, 2)
        u, v = a - b, c - b
        cosines = (u * v).sum(axis=1) / (np.linalg.norm(u, axis=1) * np.linalg.norm(v, axis=1))
        found: Floats = np.degrees(np.arccos(np.clip(cosines, -1, 1)))
        return found


class Dihedral(Metric):
    """Torsion angle in degrees of four atoms, -180 to 180."""

    def __init__(self, atoms: tuple[int, int, int, int]) -> None:
        self._atoms = list(atoms)

    def evaluate(self, states: States) -> Floats:
        found: Floats = np.degrees(torsions_of(*states.positions[:, self._atoms].transpose(1, 0, 2)))
        return found


class Random(Metric):
    """Random number in (0, 1), determined by the explorer and its next step.

    number : index that distinguishes several such metrics
    """

    def __init__(self, number: int) -> None:
        self._number = number

    def evaluate(self, states: States) -> Floats:
        words = philox((states.seed, states.explorers), (states.steps, int(Stage.CHANGES), 0, self._number))
        return uniform(words)[..., 0]


class Center:
    """Centre of mass of some atoms."""

    def __init__(self, atoms: Atoms, chosen: Bools) -> None:
        self._chosen = np.flatnonzero(require_some(chosen, "the selection"))
        masses = atoms.masses[self._chosen]
        self._weights = masses / masses.sum()

    def __call__(self, positions: Floats) -> Floats:
        """Return the centres of mass (m, 3) A for positions (m, n, 3) A."""
        found: Floats = np.einsum("a,mak->mk", self._weights, positions[:, self._chosen])
        return found


def sasa_radii(atoms: Atoms) -> Floats:
    """Return the atomic radii of the accessible surface, without the probe, (n,) A."""
    sigma = np.zeros(len(atoms)) if atoms.lj_sigma is None else atoms.lj_sigma
    radii = _RMIN * sigma / 2
    if atoms.sgb is not None:
        radii = np.where(np.isfinite(atoms.sgb[:, 1]), atoms.sgb[:, 1], radii)
    found: Floats = radii
    return found


def require_some(chosen: Bools, words: str) -> Bools:
    """Return the mask unchanged. Raises InputError if it has no atoms."""
    if not chosen.any():
        raise InputError(f"{words} has no atom")
    return chosen


Key = tuple[str, str, int, str, str]  # chain, residue name and number, insertion code, atom name


def _keys(labels: Labels) -> list[Key]:
    """Return a key for each atom: chain, residue and name."""
    columns = labels.chains, labels.residue_names, labels.residue_numbers, labels.insertion_codes, labels.names
    return list(zip(*(column.tolist() for column in columns), strict=True))


def _places(own: Labels, native: Labels, compared: Bools, source: str) -> NDArray[np.intp]:
    """Return the index of the native atom for each compared atom, (n,); -1 for all others."""
    chosen = np.flatnonzero(compared)
    found = np.full(len(own), -1, np.intp)
    if len(chosen):
        try:
            found[chosen] = correspondence(own, native, source).order[chosen]
        except InputError:  # the native structure has more or fewer atoms
            found[chosen] = counterparts(labels_of(own, chosen), native, source)
    return found


def _refuse_copies(compared: Sequence[Key], own: Sequence[Key], native: Sequence[Key], path: Path) -> None:
    """Raise InputError if a compared atom is not unique, in the complex or in the native structure."""
    for keys, where in ((native, str(path)), (own, "the complex")):
        counts = Counter(keys)
        copied = next((key for key in compared if counts[key] > 1), None)
        if copied is not None:
            chain, residue, number, code, name = copied
            raise InputError(
                f"{path}: {where} has {counts[copied]} atoms called {Residue(chain, residue, number, code)}:{name}, so "
                "it is ambiguous which is compared; give the copies different chains or numbers"
            )


def _superposed(points: Floats, by: Floats, reference: Floats) -> Floats:
    """Apply to points (m, k, 3) A the superposition of `by` (m, j, 3) on the reference (j, 3)."""
    middle, middles = reference.mean(axis=0), by.mean(axis=1, keepdims=True)
    turns, _ = turns_onto(reference - middle, by - middles)
    moved: Floats = (points - middles) @ turns + middle
    return moved
