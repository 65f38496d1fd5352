"""Explorers: PELE's Monte Carlo loop on the rows of an ensemble."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..atoms import Atoms, Floats, require_atoms
from ..common.arguments import array, callback, described, flag, instance, number, numbers, whole_number
from ..common.errors import InputError, PeleError, Suggests
from ..energy import Term
from ..trajectories.superposing import Superposition
from .box import Box
from .minimization import Minimization
from .perturbation import Perturbation
from .walk import Move, Settings, Stage, Walk, chosen_atoms, is_accepted

Watch = Callable[[Walk, str, Sequence[int]], None]  # called after a move, with its name and the rows that it moved


@dataclass(frozen=True, eq=False)
class Step:
    """One step of an explorer.

    explorer : number of the explorer; step : number of the step, from 1; row : row of the walk
    accepted : whether the step was accepted; energy : energy of the explorer after the step, kcal/mol
    proposed : energy of the proposed state, kcal/mol; NaN if the step failed or no move was performed
    made : names of the moves; reason : why the step was rejected, "" if accepted
    stages : energies after each move, kcal/mol, if the Explorer records them
    notes : messages of moves, such as about a minimization that did not converge
    """

    explorer: int
    step: int
    row: int
    accepted: bool
    energy: float
    proposed: float
    made: tuple[str, ...]
    reason: str
    stages: dict[str, float]
    notes: tuple[str, ...]
    _walk: Walk = field(repr=False)

    @property
    def positions(self) -> Floats:
        """Positions of the explorer, (n, 3) A; valid until its next step."""
        (kept,) = self._walk.kept([self.row])
        found: Floats = self._walk.ensemble.positions[kept]
        return found


class Explorer(Suggests):
    """PELE's Monte Carlo loop: perturb, move side chains and backbone, minimize, accept or reject by Metropolis.

    Many independent explorers run as one batch. They search for states of low energy: since the moves are not
    reversible, they do not sample a statistical ensemble.

    atoms : the complex, with bonds and labels; ligand : mask (n,) or indices of the perturbed atoms
    moves : moves of a step, in order; by default Perturbation and Minimization
    temperature : K; seed : integer below 2^32
    explorers : number of explorers, or a list of their numbers, which select their random number streams
    box : box for the ligand's centre; settings : further parameters of all explorers
    positions : initial positions, (n_explorers, n, 3) A; by default those of atoms
    terms : restraints in all steps, included in the energies that are compared
    removes_bulk : whether receptors are superposed on their initial positions by their alpha carbons, if they have at
        least three
    stage_energies : whether energies are computed after each move; watch : called after each move
    other parameters : options of `Ensemble`; gradients use fixed Born radii unless `fixed_radii=False`

    The state is in `walk`: the ensemble, and the settings of each explorer, which may be changed between steps. A
    pickled explorer continues identically.

    Raises InputError if the ligand has no atoms or all of them, and if an energy cannot be computed.

    >>> from pele_ocl.explore import Perturbation
    >>> atoms = pele_ocl.read("complex.pdb")
    >>> ligand = pele_ocl.selection(atoms, "chain L")
    >>> explorer = pele_ocl.Explorer(atoms, ligand, [Perturbation()], explorers=2, seed=1)
    >>> explorer.energies.shape
    (2,)
    """

    def __init__(
        self, atoms: Atoms, ligand: ArrayLike, moves: Sequence[Move] | None = None, *,
        temperature: float | None = None, seed: int = 0, explorers: int | Sequence[int] = 1, box: Box | None = None,
        settings: Settings | None = None, positions: ArrayLike | None = None, terms: Sequence[Term] = (),
        removes_bulk: bool = True, stage_energies: bool = False, watch: Watch | None = None, **options: Any,
    ) -> None:  # fmt: skip
        self.moves = _sequence("moves", [Perturbation(), Minimization()] if moves is None else moves, Move)
        callback("watch", watch)
        self.walk = self._begun(atoms, ligand, terms, explorers, seed, settings, options)
        for own in self.walk.settings:
            if temperature is not None:
                own.temperature = number("temperature", temperature, "a number in K, 0 or more", least=0)
            if box is not None:
                own.box = instance("box", box, Box, "a box")
        self._stage_energies, self._watch = flag("stage_energies", stage_energies), watch
        if positions is not None:
            starts = numbers("positions", positions)
            if starts.shape != (needed := (len(self), len(atoms), 3)):
                raise InputError(f"positions have shape {starts.shape}; expected {needed}")
            self.walk.ensemble.positions[self._rows] = list(starts)
        self._superposed = self._superpositions() if flag("removes_bulk", removes_bulk) else []
        self._prepare()

    def _begun(
        self, atoms: Atoms, ligand: ArrayLike, terms: Sequence[Term], explorers: int | Sequence[int], seed: int,
        settings: Settings | None, options: dict[str, Any],
    ) -> Walk:  # fmt: skip
        """Build the walk with the restraints of all moves."""
        require_atoms(atoms)
        chosen = chosen_atoms("ligand", ligand, atoms)
        own = [*_sequence("terms", terms, Term), *(term for move in self.moves for term in move.terms(atoms, chosen))]
        return Walk.of(
            atoms, chosen, explorers, seed=seed, settings=settings, terms=own, **{"fixed_radii": True, **options}
        )  # fmt: skip

    def _superpositions(self) -> list[Superposition]:
        """Return the superposition of each row on its initial positions.

        Empty if the receptor has fewer than three alpha carbons.
        """
        atoms, labels = self.walk.atoms, self.walk.atoms.labels
        if labels is None:
            return []
        alpha = (labels.names == "CA") & (labels.elements == "C")
        alpha[self.walk.ligand] = False
        known: dict[bytes, Superposition] = {}
        starts = self.walk.ensemble.positions[self._rows] if alpha.sum() >= 3 else []
        for x in starts:
            if x.tobytes() not in known:
                known[x.tobytes()] = Superposition(atoms.moved(x), alpha)
        return [known[x.tobytes()] for x in starts]

    def _prepare(self) -> None:
        """Evaluate the initial states and prepare the moves. Raises InputError if an energy fails."""
        walk = self.walk
        walk.ensemble.evaluate(self._rows)
        walk.keep(self._rows)
        energies = walk.ensemble.energies_of(self._rows)
        if (bad := np.flatnonzero(np.isnan(energies))).size:
            reason = walk.ensemble.errors.get(int(bad[0]), "its energy is not a number")
            raise InputError(f"explorer {walk.explorers[bad[0]]} cannot start: {reason}")
        for move in self.moves:
            move.prepare(walk)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_watch": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore pickled explorers, which continue identically."""
        self.__dict__.update(state)
        self.walk.ensemble.evaluate()
        for move in self.moves:
            move.prepare(self.walk)

    def __len__(self) -> int:
        return len(self.walk)

    def __repr__(self) -> str:
        names = ", ".join(move.name for move in self.moves)
        return f"Explorer({len(self)} of {len(self.walk.atoms):,} atoms: {names})"

    @property
    def _rows(self) -> list[int]:
        return list(range(len(self.walk)))

    @property
    def energies(self) -> Floats:
        """Current energies of the explorers, (n_explorers,) kcal/mol."""
        return self.walk.ensemble.energies_of(self.walk.kept(self._rows))

    def run(self, steps: int) -> Iterator[Step]:
        """Perform steps of all explorers and yield the results, step by step, ordered by explorer."""
        return (step for _ in range(whole_number("steps", steps)) for step in self.step())

    def step(self, rows: Sequence[int] | None = None) -> list[Step]:
        """Perform one step of the explorers in some rows, by default of all.

        An interrupted step is undone.
        """
        walk = self.walk
        rows = self._rows if rows is None else self._chosen(rows)
        steps, memory = walk.steps[rows].copy(), [_remembered(walk.memory[row]) for row in rows]
        try:
            return self._stepped(rows)
        except BaseException:  # e.g. an interrupt; the next call makes the same step
            walk.steps[rows] = steps
            for row, before in zip(rows, memory, strict=True):
                walk.memory[row] = before
            with suppress(PeleError):  # the device may have failed
                walk.restore(rows)
            raise

    def _stepped(self, rows: list[int]) -> list[Step]:
        """Perform one step of rows."""
        walk = self.walk
        walk.steps[rows] += 1
        walk.failures.clear()
        walk.notes.clear()
        stages: dict[int, dict[str, float]] = {row: {} for row in rows}
        for row in rows:
            walk.made[row].clear()
        for move in self.moves:
            self._make(move, rows, stages)
        for move in self.moves:
            move.release(walk, rows)
        outside = self._finish(rows)
        return self._decide(rows, outside, stages)

    def _chosen(self, rows: Sequence[int]) -> list[int]:
        """Return the row numbers as a list. Raises InputError if one is out of range or repeated."""
        chosen = array("rows", rows, "iu", "numbers of rows")
        if chosen.ndim != 1 or len(np.unique(chosen)) < chosen.size or not np.isin(chosen, self._rows).all():
            raise InputError(f"rows are numbers from 0 to {len(self) - 1}, each given once")
        found: list[int] = chosen.tolist()
        return found

    def _make(self, move: Move, rows: Sequence[int], stages: dict[int, dict[str, float]]) -> None:
        """Perform a move in the rows for which it is due."""
        walk = self.walk
        due = [row for row in rows if row not in walk.failures and move.is_due(walk, row)]
        if move.needs_near:
            asked = [row for row in due if walk.settings[row].near_only]
            far = {
                row for row, is_near in zip(asked, walk.are_near(asked) if asked else (), strict=True) if not is_near
            }
            due = [row for row in due if row not in far]
        if not due:
            return
        for row in due:
            walk.made[row].add(move.name)
        move.apply(walk, due)
        for row in due:
            if row in walk.ensemble.state.failed:  # it has no positions; later moves must skip it
                walk.failures.setdefault(row, walk.ensemble.state.failed[row])
        good = [row for row in due if row not in walk.failures]
        if self._stage_energies and good:
            walk.ensemble.evaluate(good)
            for row, energy in zip(good, walk.ensemble.energies_of(good).tolist(), strict=True):
                stages[row][move.name] = energy
        if self._watch is not None:
            self._watch(walk, move.name, due)

    def _finish(self, rows: Sequence[int]) -> set[int]:
        """Superpose and evaluate the moved complexes; return the rows with a ligand outside the box."""
        walk, ensemble = self.walk, self.walk.ensemble
        moved = [row for row in rows if walk.made[row] and row not in walk.failures]
        if not moved:
            return set()
        positions = ensemble.positions[moved]
        drifting = [k for k, row in enumerate(moved) if walk.made[row] - {Perturbation.name}]
        if self._superposed and drifting:
            for of in dict.fromkeys(self._superposed[moved[k]] for k in drifting):  # equal starts share one
                own = [k for k in drifting if self._superposed[moved[k]] is of]
                positions[own] = of(positions[own])[0]
            ensemble.positions[[moved[k] for k in drifting]] = list(positions[drifting])
        ensemble.evaluate(moved)
        boxes = [walk.settings[row].box for row in moved]
        return {
            row
            for row, x, box in zip(moved, positions, boxes, strict=True)
            if box is not None and not box.contains(walk.center(x))
        }

    def _decide(self, rows: Sequence[int], outside: set[int], stages: dict[int, dict[str, float]]) -> list[Step]:
        """Accept or reject the steps of rows, and return a Step for each."""
        walk, ensemble = self.walk, self.walk.ensemble
        before = dict(zip(rows, ensemble.energies_of(walk.kept(rows)).tolist(), strict=True))
        moved = [row for row in rows if walk.made[row] and row not in walk.failures]
        after = dict(zip(moved, ensemble.energies_of(moved).tolist(), strict=True))
        errors = ensemble.errors if any(np.isnan(energy) for energy in after.values()) else {}
        drawn = dict(zip(rows, walk.uniform(rows, Stage.METROPOLIS)[:, 0].tolist(), strict=True))
        reasons: dict[int, str] = {}
        for row in rows:
            energy = after.get(row, np.nan)
            if row in walk.failures:
                reasons[row] = walk.failures[row]
            elif row not in after:
                reasons[row] = "no move was performed"
            elif np.isnan(energy):
                reasons[row] = errors.get(row, "its energy is not a number")
            elif row in outside:
                reasons[row] = "the ligand left the box"
            elif not is_accepted(energy - before[row], walk.settings[row].temperature, drawn[row]):
                reasons[row] = "the energy increased too much"
        walk.keep([row for row in rows if row not in reasons])
        walk.restore([row for row in rows if row in reasons])
        return [
            Step(
                explorer=int(walk.explorers[row]), step=int(walk.steps[row]), row=row, accepted=row not in reasons,
                energy=before[row] if row in reasons else after[row], proposed=after.get(row, np.nan),
                made=tuple(move.name for move in self.moves if move.name in walk.made[row]),
                reason=reasons.get(row, ""), stages=stages[row],
                notes=tuple(walk.notes.get(row, ())), _walk=walk,
            )
            for row in rows
        ]  # fmt: skip


def _remembered(memory: dict[str, Any]) -> dict[str, Any]:
    """Copy a row's memory of the moves. Arrays and other objects are shared: moves replace them, never modify them."""
    return {key: copy.deepcopy(of) if isinstance(of, dict | list | set) else of for key, of in memory.items()}


def _sequence(name: str, values: object, kind: Any) -> tuple[Any, ...]:
    """Return the values as a tuple. Raises InputError if they are not a list or tuple of this type."""
    if not isinstance(values, list | tuple):
        raise InputError(f"{name} is {described(values)}; expected a list of {kind.__name__}")
    return tuple(instance(name, value, kind, f"a {kind.__name__}") for value in values)
