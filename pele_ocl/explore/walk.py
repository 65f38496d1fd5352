"""State of explorers, and the moves that change it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..atoms import Atoms, Floats, Ints, require_atoms
from ..common.arguments import atoms_chosen, flag, instance, number, whole_number
from ..common.errors import InputError
from ..common.installation import shipped
from ..energy import Term
from ..ensemble import Ensemble
from .box import Box
from .philox import Words, philox, uniform

if TYPE_CHECKING:
    from ..ensemble import DriverKernel
    from ..opencl.memory import Buffer

MOST_SEED = (1 << 32) - 1
_MOST_PAIRS = 1_000_000  # whose differences are in memory at once
MOST_TRIES = (1 << 16) - 1  # of a trial, so that each try has random numbers of its own


class Stage(IntEnum):
    """Purposes that random numbers are drawn for, the second number of their counter."""

    TRANSLATION = 0
    ROTATION = 1
    STEERING = 2
    RELIEF = 3
    ANM = 4
    SIDE_CHAINS = 5
    METROPOLIS = 6
    CHANGES = 7  # of parameters, by `random` metrics
    USER = 16  # moves of users: 16 and up


@dataclass
class Settings:
    """Parameters of an explorer, which may change from step to step. Defaults are PELE's.

    Frequencies count steps from 1: a stage is due if the step is a multiple; 0 is never.

    temperature : K of Metropolis' rule
    translation_range : A; steering_update_frequency : steps that a steering vector lasts, 0 for none
    rotation_scaling, rotation_range : f and g, the mean angle in full turns and its spread
    trials, steric_trials : poses whose energies are compared, and draws for each of them at most
    overlap_factor : of the sum of two radii, below which atoms clash
    com_constant : kcal/mol/A^2 that holds the ligand's centre where it was put, until Metropolis' rule
    anm_frequency, side_chain_frequency, minimization_frequency : steps
    displacement : A of a move along modes
    side_chain_radius, minimization_radius : A around the ligand
    near_only, proximity_distance : stages after the perturbation are left out if no receptor atom is so near, A
    box : of the ligand's centre, None for none

    Raises InputError for numbers that cannot be.
    """

    temperature: float = 1000.0
    translation_range: float = 1.0
    steering_update_frequency: int = 0
    rotation_scaling: float = 0.5
    rotation_range: float = 0.25
    trials: int = 10
    steric_trials: int = 500
    overlap_factor: float = 0.6
    com_constant: float = 0.0
    anm_frequency: int = 2
    side_chain_frequency: int = 3
    minimization_frequency: int = 1
    displacement: float = 1.0
    side_chain_radius: float = 6.0
    minimization_radius: float = 1000.0
    near_only: bool = True
    proximity_distance: float = 5.0
    box: Box | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if name in ("trials", "steric_trials"):
                whole_number(name, value, least=1, most=MOST_TRIES)
            elif name.endswith("_frequency"):
                whole_number(name, value)
            elif name == "near_only":
                flag(name, value)
            elif name != "box":
                number(name, value, "a number, 0 or more,", least=0)
            elif value is not None:
                instance(name, value, Box, "a box")


class Move:
    """Change of the rows of some explorers in place. One file is one move; a user's move is a class like it.

    Attributes that `prepare` makes have names with an underscore, and are left out of pickles.

    name : in records; needs_near : whether it is left out far from the receptor, as `Settings.near_only` has it
    notes : sentences of `prepare` about what the move was given
    """

    name: ClassVar[str] = "move"
    needs_near: ClassVar[bool] = True
    notes: tuple[str, ...] = ()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_")}

    def terms(self, atoms: Atoms, ligand: Ints) -> Sequence[Term]:
        """Return restraints that the move sets in rows; their force constants must be 0 outside of it."""
        return ()

    def prepare(self, walk: Walk) -> None:
        """Make tables, kernels and arrays, once, before the first step."""

    def is_due(self, walk: Walk, row: int) -> bool:
        """Return whether the move is made in the row's present step."""
        return True

    def apply(self, walk: Walk, rows: Sequence[int]) -> None:
        """Change positions of rows of `walk.ensemble`.

        A row that cannot go on gets `walk.failures[row] = sentence`. One that stays loses the name of the move in
        `walk.made[row]`.
        """
        raise NotImplementedError

    def release(self, walk: Walk, rows: Sequence[int]) -> None:
        """Take off what the move holds rows by, before energies are compared."""


@dataclass(eq=False)
class Walk:
    """State of explorers: a row of an ensemble each, and as many rows that keep their last accepted states.

    A row depends on its explorer's number, the seed and its state alone, so no explorer sees another.

    ensemble : rows 0 to n - 1 are the explorers'; row n + k keeps the accepted state of row k
    atoms : the molecule of all rows; ligand : (m,) its atoms that are moved
    seed : whole number below 2^32
    explorers : (n,) the explorer of each row, by which its random numbers are keyed
    steps : (n,) the step under way of each, from 1
    settings : of each row
    failures : messages about rows that failed in the step under way; notes : about rows that go on
    made : names of the moves that were made of each row in the step under way
    memory : anything that moves keep of a row from step to step, by keys of their own: numbers, texts, arrays, and
        lists, tuples, sets and dicts of these
    """

    ensemble: Ensemble
    atoms: Atoms
    ligand: Ints
    seed: int
    explorers: NDArray[np.int64]
    steps: NDArray[np.int64]
    settings: list[Settings]
    failures: dict[int, str] = field(default_factory=dict)
    notes: dict[int, list[str]] = field(default_factory=dict)
    made: list[set[str]] = field(default_factory=list)
    memory: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def of(
        cls, atoms: Atoms, ligand: ArrayLike, explorers: int | Sequence[int] = 1, *, seed: int = 0,
        settings: Settings | None = None, terms: Iterable[Term] = (), **options: Any,
    ) -> Walk:  # fmt: skip
        """Begin walks from the positions of atoms.

        explorers : how many, numbered from 0, or their numbers
        terms, options : of the ensemble

        Raises InputError for a ligand of none or all of the atoms, and for options that do not exist.
        """
        require_atoms(atoms)
        chosen = chosen_atoms("ligand", ligand, atoms)
        if not isinstance(explorers, list | tuple | range):
            explorers = range(whole_number("explorers", explorers, least=1))
        keyed = np.array([whole_number("explorers", k, most=MOST_SEED) for k in explorers], np.int64)
        n = len(keyed)
        if len(np.unique(keyed)) < n or not n:
            raise InputError("explorers must be numbered, each by another number")
        own = instance("settings", Settings() if settings is None else settings, Settings, "Settings")
        return cls(
            ensemble=Ensemble(atoms, 2 * n, terms=tuple(terms), **options), atoms=atoms, ligand=chosen,
            seed=whole_number("seed", seed, most=MOST_SEED), explorers=keyed, steps=np.zeros(n, np.int64),
            settings=[replace(own) for _ in range(n)], made=[set() for _ in range(n)], memory=[{} for _ in range(n)],
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.explorers)

    @cached_property
    def _masses(self) -> Floats:
        """Masses of the ligand's atoms as shares of all, (m,)."""
        masses = self.atoms.masses[self.ligand]
        shares: Floats = masses / masses.sum()
        return shares

    @cached_property
    def receptor(self) -> Ints:
        """Atoms that are not the ligand's, (n - m,)."""
        others: Ints = np.setdiff1d(np.arange(len(self.atoms)), self.ligand)
        return others

    def center(self, x: Floats) -> Floats:
        """Return the centre of mass of the ligand, (3,) A, of positions x (n, 3) A."""
        masses = self._masses
        center: Floats = masses @ x[self.ligand]
        return center

    def nearest(self, x: Floats) -> float:
        """Return the distance of the ligand to the nearest receptor atom, A, of positions x (n, 3) A."""
        receptor, ligand = x[self.receptor], x[self.ligand]
        apart, own = receptor - ligand[0], ligand - ligand[0]
        away, widest = np.einsum("ij,ij->i", apart, apart) ** 0.5, np.einsum("ij,ij->i", own, own).max() ** 0.5
        there = receptor[away <= away.min() + widest + 1e-6]  # no other atom can be the nearest
        between = (there[:, np.newaxis] - part for part in in_parts(ligand, len(there)))
        return float(min(np.einsum("ijk,ijk->ij", of, of).min() for of in between) ** 0.5)

    @property
    def holds_radii(self) -> bool:
        """Return whether the ensemble's gradients are at fixed Born radii."""
        return bool(self.ensemble.state.options["fixed_radii"])

    def are_near(self, rows: Sequence[int]) -> list[bool]:
        """Tell of rows if their ligands are as near to the receptor as `Settings.proximity_distance`."""
        positions = self.ensemble.positions[list(rows)]
        return [
            self.nearest(x) <= self.settings[row].proximity_distance for row, x in zip(rows, positions, strict=True)
        ]

    def is_multiple(self, row: int, frequency: int) -> bool:
        """Return whether the step under way of a row is a multiple of a frequency; 0 has none."""
        return frequency > 0 and int(self.steps[row]) % frequency == 0

    def kernel(self, file: str, name: str) -> DriverKernel:
        """Build a kernel of a file in the folder of all kernels, `cl`."""
        return self.ensemble.kernel(shipped("cl") / file, name)

    def upload(self, values: ArrayLike, dtype: Any = None) -> Buffer:
        """Put a table on the device that kernels take, reals by default."""
        return self.ensemble.state.queue.upload(np.asarray(values), dtype)

    def note(self, row: int, sentence: str) -> None:
        """Tell something of a row in the step under way that a user should know."""
        self.notes.setdefault(row, []).append(sentence)

    def keep(self, rows: Sequence[int]) -> None:
        """Keep the state of rows as accepted."""
        if len(rows):
            self.ensemble.copy(list(rows), self.kept(rows))

    def place(self, rows: Sequence[int], positions: Sequence[Floats] | Floats) -> None:
        """Put rows at positions, (n, 3) A of each, which are kept as their last accepted states.

        Entries of `memory`, a steering direction say, stay.
        """
        self.ensemble.positions[list(rows)] = list(positions)
        self.ensemble.evaluate(list(rows))
        self.keep(rows)

    def restore(self, rows: Sequence[int]) -> None:
        """Put rows back to their last accepted states."""
        if len(rows):
            self.ensemble.copy(self.kept(rows), list(rows))

    def kept(self, rows: Sequence[int]) -> list[int]:
        """Return the rows of the ensemble that keep the accepted states of rows."""
        return [len(self) + k for k in rows]

    def random(self, rows: Sequence[int], stage: int, draw: int = 0, index: ArrayLike = 0) -> Words:
        """Return four words of 32 bits for each row, (n_rows, 4), by the step under way.

        draw, index : whole numbers that tell the draws of a stage apart; an array of indices gives (n_rows, ..., 4)
        """
        indices = np.asarray(index, np.int64)
        chosen = np.array(rows, np.int64).reshape(-1, *(1,) * indices.ndim)
        explorers, steps = self.explorers[chosen], self.steps[chosen]
        return philox((self.seed, explorers), (steps, int(stage), draw, indices))

    def uniform(self, rows: Sequence[int], stage: int, draw: int = 0, index: ArrayLike = 0) -> Floats:
        """Return four numbers in (0, 1) for each row, as `random`."""
        return uniform(self.random(rows, stage, draw, index))


def in_parts(points: Floats, n: int) -> list[Floats]:
    """Divide points (m, 3) into parts whose differences from n others do not take much memory."""
    return np.array_split(points, 1 + n * len(points) // _MOST_PAIRS)


def atoms_among(name: str, values: ArrayLike, atoms: Atoms) -> NDArray[np.bool_]:
    """Return a mask (n,) of atoms for a mask or indices. Raises InputError for others."""
    mask = np.zeros(len(atoms), bool)
    chosen = atoms_chosen(name, values)
    try:
        mask[chosen if chosen.size else []] = True
    except (IndexError, TypeError, ValueError):
        raise InputError(f"{name} is no mask of {len(atoms)} atoms and no indices of them") from None
    return mask


def chosen_atoms(name: str, values: ArrayLike, atoms: Atoms) -> Ints:
    """Give atoms, (m,) from 0 and in order, of a mask (n,) or of indices.

    Raises InputError for none, for all, and for atoms that there are not.
    """
    chosen = np.flatnonzero(atoms_among(name, values, atoms)).astype(np.int32)
    if not 0 < len(chosen) < len(atoms):
        raise InputError(f"{name} has {len(chosen)} of {len(atoms)} atoms; some of them, and not all, are needed")
    return chosen
