"""Ligand perturbation: the lowest-energy pose among several random moves without clashes.

This is PELE's "naive" perturbation (Borrelli et al., J. Comput. Chem. 31, 1224, 2010); docs/theory/explore.md lists the
differences from PELE.
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
TRIES = 16, 64  # tries per trial in the first launch of a step, and in later launches; most trials need few


class Perturbation(Move):
    """Translate and rotate the ligand, and rotate its flexible bonds.

    Each of `Settings.trials` trials takes the first valid pose among `Settings.steric_trials` random moves. A valid
    pose is in the box, and any clashes can be relieved by rotating side chains. Of these poses the one with the lowest
    energy is used. Without a valid pose the row is unchanged, and `walk.memory[row]["without_pose"]` is incremented.

    ligand : rotatable bonds of the ligand, by default from `flexible_ligand`
    direction : "random", or "steered" along a vector that is kept for `Settings.steering_update_frequency` steps
    kind : distribution of translation lengths: "centered" for 0.75 to 1.25 times the range, "spherical" for 0 to 1
        times the range
    side_chains : whether to rotate side chains to relieve clashes; resolution : angle step of rotations, degrees
    keeps_radii : whether energies of poses use the Born radii of the previous state, provided that the ensemble's
        gradients use fixed radii
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
        """Build the screen of poses. Raises InputError if the ligand is bonded to the receptor."""
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
        """Return an upper bound of the distance of ligand atoms from the current centre after a move, (n_rows,) A.

        Rotating bonds can stretch a flexible ligand; this is assumed to at most double its radius.
        """
        stretch = 2.0 if self._flexible(walk.atoms, walk.ligand).side_chains else 1.0
        radii = [np.linalg.norm(x[walk.ligand] - walk.center(x), axis=1).max() for x in positions]
        ranges = [1.25 * walk.settings[row].translation_range for row in rows]
        reach: Floats = stretch * np.array(radii) + np.array(ranges)
        return reach

    def _steering(self, walk: Walk, row: int, x: Floats) -> Floats | None:
        """Return the steering vector (3,) of a row, renewed when it has expired; None if the row is not steered.

        A ligand far from the receptor is not steered, and starts with a new vector when it returns.
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
        """Return the first valid try of each trial, (n_trials,) per row, -1 for none.

        Tries are screened in batches.
        """
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
                walk.memory[row].pop("steering", None)  # this direction leads out of the box
        return found

    def _lowest(self, walk: Walk, found: Mapping[int, NDArray[Any]]) -> dict[int, int]:
        """Return the trial with the lowest energy for each row, -1 for none."""
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
    """Raise InputError if the ligand is bonded to the receptor, since a move would break the bond."""
    pairs = atoms.bond_pairs
    crossing = pairs[np.isin(pairs, ligand).sum(axis=1) == 1]
    if len(crossing):
        words = [str(i) if atoms.labels is None else atoms.labels.atom(int(i)) for i in crossing[0]]
        raise InputError(
            f"the ligand is bonded to the receptor, {words[0]} to {words[1]}; a rigid move would break this bond"
        )
