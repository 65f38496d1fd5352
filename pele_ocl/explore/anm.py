"""Backbone moves along the normal modes of an elastic network, as in PELE's ANM (docs/theory/anm.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..atoms import Atoms, Floats, Ints, Labels
from ..atoms.labels import labels_of
from ..common.arguments import choice, instance, number, whole_number
from ..common.errors import InputError
from ..energy.terms import PositionalRestraint, Term
from ..minimize.options import check_options
from .modes import Modes, network_modes
from .regions import Region
from .walk import Move, Stage, Walk, atoms_among

PICKING = "random", "lowest", "defined"
DIRECTIONS = "random", "same", "oscillate"
MIXING = "main", "all", "none"
MAGNITUDES = "fixed", "biased", "scaled", "random"
NORMS = "max", "rms"
RESTRAINT = "anm"  # name of the term that restrains the nodes
MODES = "anm modes"  # key of a row's modes in its memory


class ANM(Move):
    """Move alpha carbons along the modes of their elastic network; all other atoms relax in a minimization.

    nodes : mask (n,) or indices of the network's atoms; by default the alpha carbons outside the ligand
    modes : modes to use, by default the lowest `count` modes at each explorer's initial positions; modes read from a
        file are matched to the nodes by atom name
    cutoff : cutoff distance of the springs, A
    network : further options of network_modes
    picking : how the main mode is chosen: "random", "lowest", or "defined" for mode number `defined`, from 1
    change_frequency : number of moves after which a new main mode is chosen
    direction : "random", "same" for always `first_direction`, or "oscillate" to alternate, starting with it
    mixing : "main" adds the other modes with weight 1 - main_weight; "all" mixes all modes randomly; "none" uses only
        the main mode
    thermal : with "all", whether modes are weighted by the inverse square root of their eigenvalues
    magnitude : how the size of a move follows from Settings.displacement: "fixed", "biased", "scaled" or "random"
    norm : how this size is measured: "max", the largest displacement of a node, or "rms" over all nodes
    steering : steering force, kcal/mol/A; divided by the displacement, it is the force constant towards the targets
    relaxation : force constant that restrains the nodes until the end of the step, kcal/mol/A^2; 0 for none
    region : atoms that move, as in Minimization
    options : options of Minimizer; the defaults are PELE's: truncated Newton, one round of 30 iterations to
        0.1 kcal/mol/A
    """

    name: ClassVar[str] = "anm"

    def __init__(
        self, nodes: ArrayLike | None = None, modes: Modes | None = None, *, count: int = 6, cutoff: float = 12.0,
        network: dict[str, Any] | None = None, picking: str = "random", defined: int = 1, change_frequency: int = 6,
        direction: str = "random", first_direction: int = 1, mixing: str = "main", main_weight: float = 0.6,
        thermal: bool = True, magnitude: str = "fixed", norm: str = "max", steering: float = 20.0,
        relaxation: float = 0.0, region: Region | None = None, **options: Any,
    ) -> None:  # fmt: skip
        """Raises InputError for options out of range."""
        self.nodes, self.modes = nodes, None if modes is None else instance("modes", modes, Modes, "Modes")
        self.count, self.cutoff, self.network = whole_number("count", count, least=1), cutoff, network or {}
        for label, value, choices in (
            ("picking", picking, PICKING), ("direction", direction, DIRECTIONS), ("mixing", mixing, MIXING),
            ("magnitude", magnitude, MAGNITUDES), ("norm", norm, NORMS),
        ):  # fmt: skip
            choice(label, value, choices)
        self.picking, self.direction, self.mixing = picking, direction, mixing
        self.magnitude, self.norm, self.thermal = magnitude, norm, thermal
        self.defined = whole_number("defined", defined, least=1)
        self.change_frequency = whole_number("change_frequency", change_frequency, least=1)
        self.first_direction = 1 if number("first_direction", first_direction, "1 or -1") > 0 else -1
        self.main_weight = number("main_weight", main_weight, "a number from 0 to 1", least=0, most=1)
        self.steering = number("steering", steering, "a force of kcal/mol/A, 0 or more", least=0)
        self.relaxation = number("relaxation", relaxation, "a number in kcal/mol/A^2, 0 or more", least=0)
        self.region = region or Region()
        self.options = {"method": "newton", "tolerance": 0.1, "max_iterations": 30, **options}
        check_options(self.options)

    def terms(self, atoms: Atoms, ligand: Ints) -> Sequence[Term]:
        # This constant is used to precondition restrained atoms; each row sets its own force constants.
        return [PositionalRestraint(self.steering, atoms=self._chosen(atoms, ligand), name=RESTRAINT)]

    def _chosen(self, atoms: Atoms, ligand: Ints) -> Ints:
        """Return the indices of the node atoms, in ascending order."""
        if self.nodes is not None:
            return np.flatnonzero(atoms_among("nodes", self.nodes, atoms)).astype(np.int32)
        if atoms.labels is None:
            raise InputError("alpha carbons need names, which these atoms do not have; give nodes")
        alpha = (atoms.labels.names == "CA") & (atoms.labels.elements == "C")
        alpha[ligand] = False
        return np.flatnonzero(alpha).astype(np.int32)

    def prepare(self, walk: Walk) -> None:
        self._nodes = self._chosen(walk.atoms, walk.ligand)
        self._remember_modes(walk, self._in_order(walk.atoms.labels))
        for memory in walk.memory:
            modes = memory[MODES]
            if modes.vectors.shape[1] != len(self._nodes):
                raise InputError(f"the modes have {modes.vectors.shape[1]} nodes; there are {len(self._nodes)}")
            if self.picking == "defined" and self.defined > len(modes):
                raise InputError(f"mode {self.defined} is defined; there are {len(modes)}")
        walk.ensemble.force_constants(RESTRAINT)[:] = np.zeros(len(walk.atoms))
        walk.ensemble.evaluate(keep_radii=walk.holds_radii)

    def _in_order(self, labels: Labels | None) -> Modes | None:
        """Return the user's modes, reordered to match the nodes if they have labels; None if there are none."""
        if self.modes is None or labels is None or self.modes.vectors.shape[1] != len(self._nodes):
            return self.modes
        modes, self.notes = self.modes.of_nodes(labels_of(labels, self._nodes.astype(np.intp)))
        return modes

    def _remember_modes(self, walk: Walk, given: Modes | None) -> None:
        """Store modes for each row without any: the given ones, or those computed at its positions.

        Rows with equal positions share them.
        """
        rows = [row for row, memory in enumerate(walk.memory) if MODES not in memory]
        starts = walk.ensemble.positions[rows] if given is None and rows else []
        known = {} if given is None else dict.fromkeys(rows, given)
        same: dict[bytes, Modes] = {}
        for row, x in zip(rows, starts, strict=False):
            nodes = x[self._nodes]
            if nodes.tobytes() not in same:
                same[nodes.tobytes()] = self._computed(nodes)
            known[row] = same[nodes.tobytes()]
        for row, modes in known.items():
            walk.memory[row][MODES] = modes

    def _computed(self, nodes: Floats) -> Modes:
        """Compute the modes of nodes (n_nodes, 3) A."""
        return network_modes(nodes, self.count, cutoff=self.cutoff, **self.network)

    def is_due(self, walk: Walk, row: int) -> bool:
        return walk.is_multiple(row, walk.settings[row].anm_frequency)

    def displacements(self, walk: Walk, rows: Sequence[int]) -> Floats:
        """Draw node displacements for rows, (n_rows, n_nodes, 3) A; store the chosen modes and directions."""
        drawn = walk.uniform(rows, Stage.ANM)
        found = np.empty((len(rows), len(self._nodes), 3))
        for place, row in enumerate(rows):
            modes: Modes = walk.memory[row][MODES]
            mixed = 2 * walk.uniform([row], Stage.ANM, 1, np.arange(len(modes)))[0, :, 0] - 1
            memory = walk.memory[row].setdefault(self.name, {"moves": 0, "mode": 0, "direction": 0})
            if memory["moves"] % self.change_frequency == 0:
                memory["mode"] = self._mode(drawn[place, 0], len(modes))
            memory["direction"] = self._direction(memory["direction"], drawn[place, 1])
            memory["moves"] += 1
            move = self._mixed(modes, memory["mode"], mixed)
            size = np.abs(self._size(walk.settings[row].displacement, modes, memory["mode"], drawn[place, 2]))
            lengths = np.linalg.norm(move, axis=1)
            one = lengths.max() if self.norm == "max" else np.sqrt((lengths**2).mean())
            found[place] = memory["direction"] * size / one * move
        return found

    def _mode(self, drawn: float, count: int) -> int:
        """Choose the index of the main mode. drawn : random number, 0 to 1; count : number of modes"""
        if self.picking == "random":
            return min(int(drawn * count), count - 1)
        return 0 if self.picking == "lowest" else self.defined - 1

    def _direction(self, before: int, drawn: float) -> int:
        """Choose the direction of a move, 1 or -1. before : direction of the previous move, 0 for none"""
        if self.direction == "random":
            return 1 if drawn < 0.5 else -1
        return self.first_direction if self.direction == "same" or before == 0 else -before

    def _mixed(self, modes: Modes, mode: int, drawn: NDArray[np.float64]) -> Floats:
        """Mix the modes into one vector (n_nodes, 3), eqs. 4 and 5. drawn : (m,) random numbers, -1 to 1"""
        values, vectors = modes.values, modes.vectors
        soft = drawn / np.sqrt(values)
        main: Floats = vectors[mode]
        if self.mixing == "none" or len(values) == 1:
            return main
        if self.mixing == "all":
            mixed: Floats = np.tensordot(soft if self.thermal else drawn, vectors, 1)
            return mixed
        soft[mode] = 0
        others = np.tensordot(soft, vectors, 1)
        others /= np.linalg.norm(others)
        found: Floats = self.main_weight * main + (1 - self.main_weight) * others
        return found

    def _size(self, displacement: float, modes: Modes, mode: int, drawn: float) -> float:
        """Return the size of a move, A, eq. 6. drawn : random number, 0 to 1"""
        if self.magnitude == "fixed":
            return displacement
        if self.magnitude == "random":
            return displacement * drawn
        biased = displacement * (0.625 + 0.375 * drawn)
        if self.magnitude == "biased":
            return biased
        stiffer = float(modes.values[mode] / modes.values[0])
        return biased / (0.6 * stiffer + 0.4)

    def apply(self, walk: Walk, rows: Sequence[int]) -> None:
        ensemble, rows = walk.ensemble, list(rows)
        moves, x = self.displacements(walk, rows), ensemble.positions[rows]
        targets, constants = x.copy(), np.zeros((len(rows), len(walk.atoms)))
        targets[:, self._nodes] += moves
        sizes = np.linalg.norm(moves, axis=2)
        one = sizes.max(axis=1) if self.norm == "max" else np.sqrt((sizes**2).mean(axis=1))
        constants[:, self._nodes] = (self.steering / np.maximum(one, 1e-6))[:, None]
        ensemble.references(RESTRAINT)[rows] = list(targets)
        ensemble.force_constants(RESTRAINT)[rows] = list(constants)
        free = [self.region.free(walk, row, own) for row, own in zip(rows, x, strict=True)]
        ensemble.frozen[rows] = [np.flatnonzero(~mask) for mask in free]
        batch = ensemble.minimize(rows, **self.options)
        for place, reason in batch.errors.items():
            walk.failures[rows[place]] = reason
        held = np.zeros(len(walk.atoms))
        held[self._nodes] = self.relaxation
        if self.relaxation:
            ensemble.references(RESTRAINT)[rows] = list(ensemble.positions[rows])
        ensemble.force_constants(RESTRAINT)[rows] = [held] * len(rows)

    def release(self, walk: Walk, rows: Sequence[int]) -> None:
        held = [row for row in rows if self.relaxation and self.name in walk.made[row]]
        if held:
            walk.ensemble.force_constants(RESTRAINT)[held] = np.zeros(len(walk.atoms))
