"""Ligand perturbation: the rigid move of lowest energy among some without clashes.

It is PELE's "naive" perturbation (Borrelli et al., J. Comput. Chem. 31, 1224, 2010); docs/theory/explore.md says what
is PELE's and what is ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats, Ints
from ..atoms.torsions import Flexible, flexible_ligand, flexible_residues
from ..common.arguments import choice, flag, number
from ..common.errors import InputError
from ..energy.terms import CenterRestraint, Term
from .rigid import drawn_moves, random_directions
from .screen import Screen
from .walk import Move, Stage, Walk

CENTER = "ligand_center"  # name of the restraint
TRIES = 16, 64  # of each trial in the first launch of a step, and in later ones: most trials need few


class Perturbation(Move):
    """Translate, rotate and twist the ligand.

    Each of `Settings.trials` poses is the first valid one of `Settings.steric_trials` random moves. It is in the box,
    and its clashes can be relieved by rotating side chains. The pose with the lowest energy is chosen. If there is
    none, the row is unchanged, which `walk.memory[row]["without_pose"]` counts.

    ligand : its rotatable bonds, by default from `flexible_ligand`
    direction : "random", or "steered" along a vector that is kept for `Settings.steering_update_frequency` steps
    kind : of translation lengths: "centered", 0.75 to 1.25 of the range, or "spherical", up to it
    side_chains : whether side chains are rotated to relieve clashes; resolution : of rotations, degrees
    keeps_radii : whether poses are compared at the Born radii of the previous state, if the ensemble's gradients are,
        too
    """

    name: ClassVar[str] = "perturbation"
    needs_near: ClassVar[bool] = False

    def __init__(
        self,
        ligand: Flexible | None = None,
        *,
        direction: Literal["random", "steered"] = "random",
        kind: Literal["centered", "spherical"] = "centered",
        side_chains: bool = True,
        resolution: float = 10.0,
        keeps_radii: bool = True,
    ) -> None:
        choice("direction", direction, ("random", "steered"))
        choice("kind", kind, ("centered", "spherical"))
        number("resolution", resolution, "a positive number of degrees", above=0)
        self.ligand, self.direction, self.kind = ligand, direction, kind
        self.side_chains, self.resolution = flag("side_chains", side_chains), resolution
        self.keeps_radii = flag("keeps_radii", keeps_radii)

    def terms(self, atoms: Atoms, ligand: Ints) -> Sequence[Term]:
        return (CenterRestraint(self._flexible(atoms, ligand).core, 0.0, name=CENTER),)

    def prepare(self, walk: Walk) -> None:
        """Raises InputError for a ligand that is bonded to the receptor."""
        _require_free(walk.atoms, walk.ligand)
        flexible = self._flexible(walk.atoms, walk.ligand)
        residues = flexible_residues(walk.atoms, walk.receptor, self.resolution) if self.side_chains else []
        self._screen = Screen(walk, flexible, residues)

    def apply(self, walk: Walk, rows: Sequence[int]) -> None:
        positions = walk.ensemble.positions[list(rows)]
        centers = {row: walk.center(x) for row, x in zip(rows, positions, strict=True)}
        steering = {row: self._steering(walk, row, x) for row, x in zip(rows, positions, strict=True)}
        self._screen.begin(rows, positions, self._reach(walk, rows, positions))
        found = self._poses(walk, rows, centers, steering)
        lowest = self._lowest(walk, found)
        for row in rows:
            if lowest[row] < 0:
                walk.memory[row]["without_pose"] = walk.memory[row].get("without_pose", 0) + 1
                walk.made[row].discard(self.name)
        self._screen.take(lowest)
        held = [row for row in rows if walk.settings[row].com_constant > 0]
        if held:
            core = self._flexible(walk.atoms, walk.ligand).core
            weights = walk.atoms.masses[core] / walk.atoms.masses[core].sum()
            walk.ensemble.targets(CENTER)[held] = [weights @ x[core] for x in walk.ensemble.positions[held]]
            walk.ensemble.force_constants(CENTER)[held] = [[walk.settings[row].com_constant] for row in held]

    def release(self, walk: Walk, rows: Sequence[int]) -> None:
        held = [row for row in rows if walk.settings[row].com_constant > 0]
        if held:
            walk.ensemble.force_constants(CENTER)[held] = 0.0

    def _flexible(self, atoms: Atoms, ligand: Ints) -> Flexible:
        self.ligand = self.ligand or flexible_ligand(atoms, ligand)
        return self.ligand

    def _reach(self, walk: Walk, rows: Sequence[int], positions: Floats) -> Floats:
        """Return how far ligand atoms can go from the centre of the ligand now, (n_rows,) A.

        Torsions can stretch a ligand; twice its radius bounds that well.
        """
        stretch = 2.0 if self._flexible(walk.atoms, walk.ligand).side_chains else 1.0
        radii = [np.linalg.norm(x[walk.ligand] - walk.center(x), axis=1).max() for x in positions]
        ranges = [1.25 * walk.settings[row].translation_range for row in rows]
        reach: Floats = stretch * np.array(radii) + np.array(ranges)
        return reach

    def _steering(self, walk: Walk, row: int, x: Floats) -> Floats | None:
        """Return the steering vector (3,) of a row, a new one if its time is over; None without.

        A ligand far from the receptor is not steered, and its next cycle begins again.
        """
        memory, frequency = walk.memory[row], walk.settings[row].steering_update_frequency
        is_steered = self.direction == "steered" and frequency > 0
        if is_steered and walk.settings[row].near_only:
            is_steered = walk.nearest(x) <= walk.settings[row].proximity_distance
        if not is_steered:
            memory.pop("steering", None)
            return None
        vector, since, of = memory.get("steering", (None, 0, 0))
        if vector is None or of != frequency or walk.steps[row] - since >= frequency:
            vector, since = random_directions(walk.random([row], Stage.STEERING))[0], int(walk.steps[row])
            memory["steering"] = (vector, since, frequency)
        return np.asarray(vector, np.float64)

    def _poses(
        self, walk: Walk, rows: Sequence[int], centers: Mapping[int, Floats], steering: Mapping[int, Floats | None]
    ) -> dict[int, Ints]:
        """Find the try of each trial (n_trials,) of rows, -1 for none; screen the tries some at a time."""
        found = {row: np.full(walk.settings[row].trials, -1, np.int32) for row in rows}
        has_been_inside = {row: np.zeros(walk.settings[row].trials, bool) for row in rows}
        first, left = 0, list(rows)
        while left:
            n = TRIES[first > 0]
            tries, is_open = np.arange(first, first + n, dtype=np.int32), {}
            moves = drawn_moves(walk, left, tries, steering, self.kind)
            for row in left:
                settings = walk.settings[row]
                inside = np.ones((settings.trials, n), bool)
                if settings.box is not None:
                    inside = settings.box.contains(centers[row] + moves[row].translations)
                is_open[row] = inside & (tries < settings.steric_trials) & (found[row] < 0)[:, np.newaxis]
                has_been_inside[row] |= is_open[row].any(axis=1)
            found |= self._screen.find(moves, is_open, first)
            first += n
            left = [row for row in left if (found[row] < 0).any() and first < walk.settings[row].steric_trials]
        for row in rows:
            if not (has_been_inside[row] | (found[row] >= 0)).all():
                walk.memory[row].pop("steering", None)  # it leads out of the box
        return found

    def _lowest(self, walk: Walk, found: Mapping[int, NDArray[Any]]) -> dict[int, int]:
        """Return the trial of lowest energy of each row, -1 for none."""
        keeps = self.keeps_radii and walk.holds_radii
        best, lowest = dict.fromkeys(found, -1), dict.fromkeys(found, np.inf)
        for trial in range(max(map(len, found.values()))):
            rows = [row for row, tries in found.items() if trial < len(tries) and tries[trial] >= 0]
            if not rows:
                continue
            self._screen.take(dict.fromkeys(rows, trial))
            walk.ensemble.evaluate(rows, keep_radii=keeps)
            for row, energy in zip(rows, walk.ensemble.energies_of(rows).tolist(), strict=True):
                if energy < lowest[row]:
                    best[row], lowest[row] = trial, energy
        return best


def _require_free(atoms: Atoms, ligand: Ints) -> None:
    """Raise InputError if a bond joins the ligand and the receptor, which a move would tear."""
    pairs = atoms.bond_pairs
    crossing = pairs[np.isin(pairs, ligand).sum(axis=1) == 1]
    if len(crossing):
        words = [str(i) if atoms.labels is None else atoms.labels.atom(int(i)) for i in crossing[0]]
        raise InputError(
            f"the ligand is bonded to the receptor, {words[0]} to {words[1]}; a rigid move would tear that"
        )
