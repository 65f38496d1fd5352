"""Structures to minimize: starting positions, molecules prepared for a device, and the progress of each structure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Bonds, Floats
from ..atoms.close_pairs import close_pair
from ..common.arguments import flag
from ..common.errors import InputError
from ..energy import Energy
from ..energy.engine import Recorded, System
from ..opencl.interface import N_STATE, StepState, Stop
from ..results import Terms
from .constraints import BondConstraints, check_rigid
from .options import Stopping, method_of, rounds_of
from .result import REASONS, MinimizeResult

if TYPE_CHECKING:
    from ..opencl.recording import BufferPiece, RecordedLaunch, Recorder
    from ..plan.evaluator import Outputs
    from .method import Method

COUNTS = [StepState.ITERATIONS, StepState.EVALUATIONS]
FREE = "free"  # buffer that marks the moving atoms

LEAST_APART = 1e-4  # A; between closer atoms, rounding determines the direction of forces
NONE_MOVES = "all atoms are frozen; leave some atoms free"

# Bonds of noisy structures are first brought near their equilibrium lengths.
OFF = 0.5  # A, deviation from the equilibrium length that does not occur in relaxed structures
TORN = 3.0  # A; such bonds have to pass other atoms, which is left to the minimizer
SHAKEN = 0.02  # fraction of bonds with deviations from OFF to TORN, above which the whole structure is noisy
LEAST_LENGTH = 1e-6  # A; coinciding atoms have no direction, and stay
SWEEPS = 20
SHARE = 0.25  # fraction of the excess length by which each atom of a bond moves in a sweep; a single bond needs 0.5

Own = Mapping[str, NDArray[Any]]  # values (m, size) of structures, by buffer name


class Protocol:
    """Method, stopping criteria, moving atoms and constraints for one molecule; independent of devices.

    atoms : the molecule; free : (n,) True for moving atoms, by default for all structures
    constraints : BondConstraints or None
    method, stopping, rounds : as chosen
    """

    def __init__(
        self, energy: Energy, *, method: str | type[Method] = "lbfgs", constraints: str | None = None,
        bond_repair: bool = True, rounds: int = 1, **bounds: Any,
    ) -> None:  # fmt: skip
        """energy : the energy plan; bounds : fields of Stopping; others as in Minimizer

        Raises InputError if no atom moves, and for bonds that cannot be constrained.
        """
        self.atoms = atoms = energy.atoms
        self.method, self.rounds = method_of(method, constraints), rounds_of(rounds)
        self.stopping = Stopping.of(bounds)
        self.free = ~energy.frozen & ~atoms.is_site
        if not self.free.any():
            raise InputError(NONE_MOVES)
        self.constraints = None if constraints is None else BondConstraints.of(atoms, self.free, constraints)
        if self.stopping.max_iterations:
            check_rigid(atoms, self.free, self.constraints)
        # Bonds are restored only before steps, and only if the energy depends on them.
        has_bonds = "bond" in energy.names
        keeps_bonds = not flag("bond_repair", bond_repair) or self.stopping.max_iterations == 0 or not has_bonds
        self._bonds = None if keeps_bonds or atoms.bonded is None else atoms.bonded.bonds

    def starts(self, given: Floats, free: Sequence[NDArray[np.bool_]]) -> tuple[Floats, dict[int, InputError]]:
        """Return starting positions for given positions (m, n, 3) A, and reasons of failures by index.

        free : (n,) moving atoms of each structure
        """
        starts, errors = np.array(given, np.float64), dict[int, InputError]()
        for k, (positions, moves) in enumerate(zip(given, free, strict=True)):
            try:
                self._check_start(positions, moves)
                starts[k] = self._placed(positions, moves)
            except InputError as error:
                errors[k] = error
        return starts, errors

    def _check_start(self, positions: Floats, free: NDArray[np.bool_]) -> None:
        """Raise InputError for invalid positions (n, 3) A, coinciding atoms, or if no atom moves.

        free : (n,) atoms that move
        """
        if not np.isfinite(positions).all() or close_pair(positions, LEAST_APART) is not None:
            self.atoms.moved(positions).require_apart(LEAST_APART)
        if not free.any():
            raise InputError(NONE_MOVES)

    def _placed(self, positions: Floats, free: NDArray[np.bool_]) -> Floats:
        """Return starting positions, with bonds restored if they are noisy, constraints satisfied, and sites placed.

        free : (n,) moving atoms. Raises InputError for a constrained bond with only one moving atom
        """
        restored = positions if self._bonds is None else with_bonds_restored(self._bonds, positions, free)
        constraints, sites = self._constraints_of(free), self.atoms.virtual_sites
        held = restored if constraints is None else constraints.placed(restored[np.newaxis])[0]
        return held if sites is None else sites.placed(held, free)

    def _constraints_of(self, free: NDArray[np.bool_]) -> BondConstraints | None:
        """Return the constraints of a structure with moving atoms `free` (n,), or None.

        Raises InputError as `_placed` does.
        """
        if self.constraints is None or np.array_equal(free, self.free):
            return self.constraints
        return self.constraints.within(self.atoms, free)

    def n_restored(self, given: Floats) -> int:
        """Number of bonds that are restored before the first step, at given positions (n, 3) A."""
        return 0 if self._bonds is None else n_restored(self._bonds, given)

    def along(self, gradient: Floats, positions: Floats, free: NDArray[np.bool_]) -> Floats:
        """Project a gradient (n, 3) at positions (n, 3) A to the allowed motions of moving atoms `free` (n,)."""
        found: Floats = np.where(free[:, None], gradient, 0.0)
        constraints = self._constraints_of(free)
        return found if constraints is None else constraints.tangent(positions[np.newaxis], found[np.newaxis])[0]


class Recipe(Recorded):
    """A molecule prepared for minimization on a device, with recorded launches and arrays per structure.

    system : the molecule; its rows have positions and results
    recorder : of the minimizer's data: the molecule's own, or a separate one if rows are minimized in place
    method : the recorded launches of an iteration; real : data type of reals
    """

    def __init__(self, system: System, protocol: Protocol, is_resident: bool = False) -> None:
        """is_resident : whether rows are in another store; then only the minimizer's data is allocated"""
        self.system, self.protocol, self.is_resident = system, protocol, is_resident
        self.recorder: Recorder = system.recorder
        if is_resident:
            _ = system.rows  # lays out the arrays of rows
            from ..opencl.recording import Recorder

            self.recorder = Recorder(
                system.energy.device, system.energy.precision, is_shared=system.recorder.is_shared,
                store=1,
            )  # fmt: skip
        passes = system.passes
        self.method = protocol.method(
            passes, self.recorder, protocol.stopping.packed(system.energy.precision), protocol.free,
            protocol.constraints, not passes.options.chain,
        )  # fmt: skip
        self._states: dict[int, NDArray[Any]] = {}  # initial states of rounds, by the number of moving atoms
        self.real = np.dtype(system.energy.precision)
        self.before = self.recorder.empty(passes.n_results)  # results at the given positions

    @classmethod
    def of(cls, protocol: Protocol, energy: Energy, is_alone: bool = False) -> Recipe:
        """Prepare a molecule whose structures are transferred. is_alone : whether there is only one structure"""
        return cls(System(energy, is_alone=is_alone), protocol)

    @cached_property
    def launches(self) -> list[RecordedLaunch]:
        of = self.method
        listed = [*of.begin, *of.evaluation, *of.both[0], *of.both[1], *of.builds]
        return self.recorder.recorded(listed)

    @cached_property
    def pieces(self) -> Mapping[str, BufferPiece]:
        """Pieces of a structure's arrays: FREE, those of `Method.arrays`, and buffers of the passes."""
        return self.recorder.named({**self.system.passes.buffers, **self.method.arrays, FREE: self.method.free})

    @property
    def size(self) -> int:
        """Bytes of a structure, including shared data."""
        return self.recorder.shared.size + self.recorder.own.size

    def first_state(self, n_moving: int) -> NDArray[Any]:
        """Return the initial state of a structure. n_moving : number of moving atoms"""
        if n_moving not in self._states:
            self._states[n_moving] = self.method.first_state(n_moving)
        return self._states[n_moving].copy()

    def jobs(
        self, numbers: Sequence[int], given: Floats, free: Sequence[NDArray[np.bool_]] | None = None,
        encoded: NDArray[Any] | None = None, offsets: Floats | None = None, firsts: NDArray[np.uint64] | None = None,
    ) -> tuple[list[Job], dict[int, InputError]]:  # fmt: skip
        """Create jobs for structures at positions (m, n, 3) A, and return reasons of failures.

        numbers : of the structures; free : (n,) moving atoms of each, by default those of the protocol
        encoded, offsets, firsts : for resident rows: `given` as on the device, offsets from positions on the device,
            and byte offsets of the rows
        """
        given = np.asarray(given, np.float64)
        sites = self.protocol.atoms.is_site
        masks = [moves & ~sites for moves in ([self.protocol.free] * len(given) if free is None else free)]
        starts, errors = self.protocol.starts(given, masks)
        far: dict[int, str] = {}
        if encoded is None or offsets is None:
            encoded, offsets, far = self.system.passes.encoded(given)
        begin, begin_offsets = encoded, offsets
        if len(moved := np.flatnonzero((starts != given).any(axis=(1, 2)))):  # all others keep their encoded positions
            begin, begin_offsets = encoded.copy(), offsets.copy()
            begin[moved], begin_offsets[moved], reasons = self.system.passes.encoded(starts[moved])
            far |= {int(moved[k]): reason for k, reason in reasons.items()}
        errors = {**{k: InputError(reason) for k, reason in far.items()}, **errors}
        found = [
            Job(
                numbers[k], self, given[k], masks[k], encoded[k], begin[k], begin_offsets[k],
                first=-1 if firsts is None else int(firsts[k]),
            )
            for k in range(len(given)) if k not in errors
        ]  # fmt: skip
        return found, {numbers[k]: error for k, error in errors.items()}


@dataclass(eq=False)
class Job:
    """A structure to minimize, with its progress.

    number : of the structure in the call; recipe : of its molecule
    given : (n, 3) A, given positions; free : (n,) moving atoms
    origin, start : (3 n) encoded `given`, and encoded positions at the start of the round
    offset : (3,) A, positions minus those on the device
    first, scratch : byte offsets of its row and of the minimizer's data; slot : in the tables while it has a seat
    round : from 0; counted : iterations and evaluations of previous rounds
    evaluations : evaluations started in this round; left : estimated number of evaluations still to start
    is_late : whether the time limit was reached before the first iteration
    state, final : (N_STATE,) and (n, 3) A at the end; seconds : from the start of the driver until then
    result : MinimizeResult, or the reason of a failure; "" until it is known
    """

    number: int
    recipe: Recipe
    given: Floats
    free: NDArray[np.bool_]
    origin: NDArray[Any]
    start: NDArray[Any]
    offset: Floats
    first: int = -1
    scratch: int = -1
    slot: int = -1
    round: int = 0
    counted: Floats = field(default_factory=lambda: np.zeros(len(COUNTS)))
    evaluations: int = 0
    left: int = 1
    state: Floats = field(default_factory=lambda: np.zeros(N_STATE))
    final: Floats = field(default_factory=lambda: np.zeros(0))
    seconds: float = 0.0
    is_late: bool = False
    result: MinimizeResult | str = ""

    def __post_init__(self) -> None:
        self.left = self.left_of(0)

    @property
    def stopping(self) -> Stopping:
        return self.recipe.protocol.stopping

    @property
    def is_moved(self) -> bool:
        """Return whether starting positions differ from the given ones, by restored or constrained bonds."""
        return self.origin is not self.start and not np.array_equal(self.origin, self.start)

    def place(self, piece: BufferPiece) -> int:
        """Return the byte offset of a piece in its store."""
        return (self.scratch if piece.store or not self.recipe.is_resident else self.first) + piece.first

    def first_state(self) -> NDArray[Any]:
        state = self.recipe.first_state(int(self.free.sum()))
        state[StepState.STOPPED] = Stop.TIME if self.is_late else Stop.RUNNING
        return state

    def left_of(self, accepted: int) -> int:
        """Number of evaluations until max_iterations, after `accepted` steps, plus one for the starting positions."""
        return self.recipe.protocol.method.each * (self.stopping.max_iterations - accepted) + 1

    def look_at(self, state: Floats, behind: int) -> None:
        """Update `left` from a state (N_STATE,). behind : evaluations started since"""
        left = self.left_of(int(state[StepState.ITERATIONS])) - (state[StepState.EVALUATIONS] > 0)
        self.left = max(1, int(left)) - behind

    def end(self, base: NDArray[Any], state: Floats, seconds: float) -> None:
        """End the round. base : (3 n) final encoded positions; state : (N_STATE,)"""
        self.state, self.seconds, self.start = state.copy(), seconds, base
        self.state[COUNTS] += self.counted
        self.final = self.recipe.system.passes.decode(base[np.newaxis])[0] + self.offset
        self.final[~self.free] = self.given[~self.free]  # without rounding by the encoding
        if (sites := self.recipe.protocol.atoms.virtual_sites) is not None:
            self.final = sites.placed(self.final, self.free)

    def goes_on(self) -> bool:
        """Return whether another round follows: the structure moved, and time is left."""
        moved = self.state[StepState.ITERATIONS] > self.counted[0] and self.state[StepState.STOPPED] != Stop.TIME
        return bool(moved) and self.round + 1 < self.recipe.protocol.rounds

    def result_of(self, before: Outputs, after: Outputs, k: int) -> MinimizeResult:
        """Create the result. before, after : outputs in which this structure has index k"""
        assert after.gradients is not None
        protocol, state, names = self.recipe.protocol, self.state, self.recipe.system.passes.contents.names
        gradient = protocol.along(after.gradients[k], self.final, self.free)
        moved = self.final - self.given
        return MinimizeResult(
            atoms=protocol.atoms.moved(self.final),
            energy_before=Terms._unchecked(names, before.energies[k]),
            energy_after=Terms._unchecked(names, after.energies[k]),
            gradient=gradient,
            rms_gradient=float(np.sqrt((gradient**2).sum() / self.free.sum())),
            largest_gradient=float(np.sqrt((gradient**2).sum(axis=1).max())),
            iterations=int(state[StepState.ITERATIONS]),
            evaluations=int(state[StepState.EVALUATIONS]),
            stopped_by=REASONS[int(state[StepState.STOPPED]) - 1],
            restored=protocol.n_restored(self.given),
            rms_displacement=float(np.sqrt((moved**2).sum(axis=1).mean())),
            seconds=self.seconds,
        )

    def begin_again(self) -> None:
        """Start the next round at the final positions of the last one."""
        self.round, self.evaluations, self.counted = self.round + 1, 0, self.state[COUNTS]
        self.left = self.left_of(0)


def computable(conformations: Floats, atoms: Atoms) -> Floats:
    """Replace non-finite coordinates of conformations by those of the atoms."""
    return np.where(np.isfinite(conformations), conformations, atoms.positions)


def with_bonds_restored(bonds: Bonds, positions: Floats, free: NDArray[np.bool_]) -> Floats:
    """Restore bond lengths of noisy positions (n, 3) A approximately; docs/theory/minimize.md, section 4.

    free : (n,) atoms that move
    """
    if not n_restored(bonds, positions):
        return positions
    found, shares = positions.copy(), np.where(free[bonds.atoms], SHARE, 0.0)  # fraction of the excess per atom
    n, (i, j), (of_i, of_j) = len(found), bonds.atoms.T, shares.T
    for _ in range(SWEEPS):  # over all bonds
        vectors, lengths, excess = _excess(bonds, found)
        pulls = np.where(np.abs(excess) < TORN, excess / np.maximum(lengths, LEAST_LENGTH), 0.0)
        for axis in range(3):
            along = pulls * vectors[:, axis]
            found[:, axis] += np.bincount(i, of_i * along, n) - np.bincount(j, of_j * along, n)
    return found


def n_restored(bonds: Bonds, positions: Floats) -> int:
    """Number of bonds to restore at positions (n, 3) A; 0 if there are few."""
    if not np.isfinite(positions).all():  # the minimizer raises an error
        return 0
    excess = np.abs(_excess(bonds, positions)[2])
    n_off = int(((excess > OFF) & (excess < TORN)).sum())
    return n_off if n_off > SHAKEN * len(excess) else 0


def _excess(bonds: Bonds, positions: Floats) -> tuple[Floats, Floats, Floats]:
    """Vectors, lengths and excess lengths of bonds at positions (n, 3) A."""
    i, j = bonds.atoms.T
    vectors = np.take(positions, j, axis=0) - np.take(positions, i, axis=0)
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    return vectors, lengths, lengths - bonds.parameters[:, 1]
