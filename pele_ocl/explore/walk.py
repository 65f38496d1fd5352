"""State of explorers, base class of moves, and the Metropolis criterion."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..atoms import Atoms, Floats, Ints, require_atoms
from ..common.arguments import atoms_mask, flag, instance, number, whole_number
from ..common.errors import InputError
from ..common.installation import shipped
from ..energy import Term
from ..ensemble import Ensemble
from .box import Box
from .philox import Words, philox, uniform

if TYPE_CHECKING:
    from ..ensemble import DriverKernel
    from ..opencl.memory import Buffer

BOLTZMANN = 0.0019872  # kcal/mol/K
MOST_SEED = (1 << 32) - 1
_MOST_PAIRS = 1_000_000  # maximum number of difference vectors in memory
MOST_TRIES = (1 << 16) - 1  # maximum number of tries per trial, so that random numbers do not repeat


class Stage(IntEnum):
    """Streams of random numbers by purpose, the second word of the counter."""

    TRANSLATION = 0
    ROTATION = 1
    STEERING = 2
    RELIEF = 3
    ANM = 4
    SIDE_CHAINS = 5
    METROPOLIS = 6
    CHANGES = 7  # `random` metrics, for changes of parameters
    USER = 16  # user-defined moves use 16 and above


@dataclass
class Settings:
    """Parameters of an explorer, which may be changed between steps. The defaults are PELE's.

    A stage runs in every step that is a multiple of its frequency, counted from 1; 0 disables it.

    temperature : temperature of the Metropolis criterion, K
    translation_range : A; steering_update_frequency : steps between changes of the steering vector, 0 for none
    rotation_scaling, rotation_range : f and g, the mean rotation angle in full turns, and its spread
    trials, steric_trials : number of poses whose energies are compared, and maximum number of random moves per pose
    overlap_factor : factor of the sum of two radii, below which atoms clash
    com_constant : force constant of the restraint on the ligand's centre during a step, kcal/mol/A^2
    anm_frequency, side_chain_frequency, minimization_frequency : steps
    displacement : size of ANM moves, A
    side_chain_radius, minimization_radius : distances from the ligand, A
    near_only, proximity_distance : with near_only, stages after the perturbation are skipped if no receptor atom is
        within this distance of the ligand, A
    box : box for the ligand's centre, or None

    Raises InputError for invalid values.
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
                number(name, value, "a number, 0 or more", least=0)
            elif value is not None:
                instance(name, value, Box, "a box")


class Move:
    """Base class of moves, which change rows in place. Derive your own moves from it.

    Attributes that `prepare` sets must start with an underscore; they are not pickled.

    name : name in records; needs_near : whether `Settings.near_only` skips the move far from the receptor
    notes : messages from `prepare` about the move's input
    """

    name: ClassVar[str] = "move"
    needs_near: ClassVar[bool] = True
    notes: tuple[str, ...] = ()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_")}

    def terms(self, atoms: Atoms, ligand: Ints) -> Sequence[Term]:
        """Return the restraints that the move uses; their force constants must be 0 outside the move."""
        return ()

    def prepare(self, walk: Walk) -> None:
        """Build tables, kernels and arrays; called once before the first step."""

    def is_due(self, walk: Walk, row: int) -> bool:
        """Return whether the move is made in the row's current step."""
        return True

    def apply(self, walk: Walk, rows: Sequence[int]) -> None:
        """Change positions of rows of `walk.ensemble`.

        For a row that fails, set `walk.failures[row] = message`. For an unchanged row, remove the name of the move from
        `walk.made[row]`.
        """
        raise NotImplementedError

    def release(self, walk: Walk, rows: Sequence[int]) -> None:
        """Remove the restraints of the move before energies are compared."""


@dataclass(eq=False)
class Walk:
    """State of explorers. Each has two rows of an ensemble, for its current and its last accepted state.

    A row depends only on the explorer's number, the seed and its own state, so explorers are independent.

    ensemble : rows 0 to n - 1 are the current states; row n + k is the accepted state of row k
    atoms : the molecule of all rows; ligand : (m,) indices of the ligand's atoms
    seed : integer below 2^32
    explorers : (n,) number of each row's explorer, the key of its random numbers
    steps : (n,) number of the current step, from 1
    settings : settings of each row
    failures : messages about rows that failed in the current step; notes : about rows that continue
    made : names of the moves made in each row in the current step
    memory : data that moves keep for each row between steps: numbers, strings, arrays, and lists, tuples, sets and
        dicts of these
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
        """Start walks from the positions of atoms.

        explorers : number of explorers, or a list of their numbers
        terms, options : arguments of Ensemble

        Raises InputError if the ligand has no atoms or all of them, and for unknown options.
        """
        require_atoms(atoms)
        chosen = chosen_atoms("ligand", ligand, atoms)
        if not isinstance(explorers, list | tuple | range):
            explorers = range(whole_number("explorers", explorers, least=1))
        keyed = np.array([whole_number("explorers", k, most=MOST_SEED) for k in explorers], np.int64)
        n = len(keyed)
        if len(np.unique(keyed)) < n or not n:
            raise InputError("explorers must have different numbers")
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
        """Masses of the ligand's atoms divided by their sum, (m,)."""
        masses = self.atoms.masses[self.ligand]
        shares: Floats = masses / masses.sum()
        return shares

    @cached_property
    def receptor(self) -> Ints:
        """Indices of all atoms outside the ligand, (n - m,)."""
        others: Ints = np.setdiff1d(np.arange(len(self.atoms)), self.ligand)
        return others

    def center(self, x: Floats) -> Floats:
        """Return the centre of mass of the ligand, (3,) A, at positions x (n, 3) A."""
        masses = self._masses
        center: Floats = masses @ x[self.ligand]
        return center

    def nearest(self, x: Floats) -> float:
        """Return the distance from the ligand to the nearest receptor atom, A, at positions x (n, 3) A."""
        receptor, ligand = x[self.receptor], x[self.ligand]
        apart, own = receptor - ligand[0], ligand - ligand[0]
        away, widest = np.einsum("ij,ij->i", apart, apart) ** 0.5, np.einsum("ij,ij->i", own, own).max() ** 0.5
        there = receptor[away <= away.min() + widest + 1e-6]  # only these can be the nearest
        between = (there[:, np.newaxis] - part for part in in_parts(ligand, len(there)))
        return float(min(np.einsum("ijk,ijk->ij", of, of).min() for of in between) ** 0.5)

    @property
    def holds_radii(self) -> bool:
        """True if the ensemble's gradients use fixed Born radii."""
        return bool(self.ensemble.state.options["fixed_radii"])

    def are_near(self, rows: Sequence[int]) -> list[bool]:
        """Return for each row whether its ligand is within `Settings.proximity_distance` of the receptor."""
        positions = self.ensemble.positions[list(rows)]
        return [
            self.nearest(x) <= self.settings[row].proximity_distance for row, x in zip(rows, positions, strict=True)
        ]

    def is_multiple(self, row: int, frequency: int) -> bool:
        """Return whether the current step of a row is a multiple of a frequency; 0 means never."""
        return frequency > 0 and int(self.steps[row]) % frequency == 0

    def kernel(self, file: str, name: str) -> DriverKernel:
        """Build a kernel from a file in `cl/`."""
        return self.ensemble.kernel(shipped("cl") / file, name)

    def upload(self, values: ArrayLike, dtype: Any = None) -> Buffer:
        """Upload an array for kernels, by default with the ensemble's floating-point type."""
        return self.ensemble.state.queue.upload(np.asarray(values), dtype)

    def note(self, row: int, sentence: str) -> None:
        """Add a note for the user about a row in the current step."""
        self.notes.setdefault(row, []).append(sentence)

    def keep(self, rows: Sequence[int]) -> None:
        """Store the current states of rows as their accepted states."""
        if len(rows):
            self.ensemble.copy(list(rows), self.kept(rows))

    def place(self, rows: Sequence[int], positions: Sequence[Floats] | Floats) -> None:
        """Set the current and accepted positions of rows, (n, 3) A each.

        Entries of `memory`, such as a steering direction, are kept.
        """
        self.ensemble.positions[list(rows)] = list(positions)
        self.ensemble.evaluate(list(rows))
        self.keep(rows)

    def restore(self, rows: Sequence[int]) -> None:
        """Restore the last accepted states of rows."""
        if len(rows):
            self.ensemble.copy(self.kept(rows), list(rows))

    def kept(self, rows: Sequence[int]) -> list[int]:
        """Return the ensemble rows that contain the accepted states of rows."""
        return [len(self) + k for k in rows]

    def random(self, rows: Sequence[int], stage: int, draw: int = 0, index: ArrayLike = 0) -> Words:
        """Return four random 32-bit words for each row, (n_rows, 4), in the current step.

        draw, index : integers that distinguish the draws of a stage; an array of indices gives (n_rows, ..., 4)
        """
        indices = np.asarray(index, np.int64)
        chosen = np.array(rows, np.int64).reshape(-1, *(1,) * indices.ndim)
        explorers, steps = self.explorers[chosen], self.steps[chosen]
        return philox((self.seed, explorers), (steps, int(stage), draw, indices))

    def uniform(self, rows: Sequence[int], stage: int, draw: int = 0, index: ArrayLike = 0) -> Floats:
        """Return four random numbers in (0, 1) for each row, as in `random`."""
        return uniform(self.random(rows, stage, draw, index))


def in_parts(points: Floats, n: int) -> list[Floats]:
    """Divide points (m, 3) into parts to limit the memory for their differences from n other points."""
    return np.array_split(points, 1 + n * len(points) // _MOST_PAIRS)


def atoms_among(name: str, values: ArrayLike, atoms: Atoms) -> NDArray[np.bool_]:
    """Convert a mask or indices of atoms to a mask (n,). Raises InputError for other values."""
    return atoms_mask(name, values, len(atoms))


def chosen_atoms(name: str, values: ArrayLike, atoms: Atoms) -> Ints:
    """Convert a mask (n,) or indices of atoms to sorted indices, (m,).

    Raises InputError if no atoms or all atoms are chosen, and for indices out of range.
    """
    chosen = np.flatnonzero(atoms_among(name, values, atoms)).astype(np.int32)
    if not 0 < len(chosen) < len(atoms):
        raise InputError(f"{name} has {len(chosen)} of {len(atoms)} atoms; expected some but not all of them")
    return chosen


def is_accepted(rise: float, temperature: float, drawn: float) -> bool:
    """Return whether a step is accepted by the Metropolis criterion.

    rise : change in energy, kcal/mol; NaN is rejected
    temperature : K; drawn : uniform random number in (0, 1)
    """
    return rise < 0 or (temperature > 0 and math.exp(-rise / (BOLTZMANN * temperature)) > drawn)
