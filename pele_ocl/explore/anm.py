"""Moves of the backbone along the modes of an elastic network, as PELE's ANM; docs/theory/anm.md."""

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
RESTRAINT = "anm"  # name of the term that holds the nodes
MODES = "anm modes"  # of a row, in its memory


class ANM(Move):
    """Move alpha carbons along modes of their network; all other atoms follow by minimization.

    nodes : mask (n,) or atoms of the network; by default alpha carbons outside of the ligand
    modes : by default the lowest `count` modes at each explorer's initial positions; nodes of modes from a file are
        matched by name
    cutoff : A, of their springs
    network : further options of network_modes
    picking : of the main mode: "random", "lowest", or "defined", number `defined` from 1
    change_frequency : moves after which a new main mode is picked
    direction : "random", "same", which is `first_direction`, or "oscillate", which starts with it
    mixing : "main" adds the other modes with weight 1 - main_weight; "all" mixes modes randomly; "none" uses one
    thermal : whether "all" weights modes by the inverse square roots of their eigenvalues
    magnitude : of Settings.displacement: "fixed", "biased", "scaled", "random"
    norm : of the displacement: "max", the largest of a node, or "rms" over all nodes
    steering : kcal/mol/A; divided by the displacement it is the force constant towards the targets of nodes
    relaxation : kcal/mol/A^2, restraint on nodes until the end of the step; 0 for none
    region : atoms that move, as in Minimization
    options : of Minimizer; PELE's are the defaults: truncated Newton, one round of 30 iterations to 0.1 kcal/mol/A
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
        self.steering = number("steering", steering, "a force of kcal/mol/A, 0 or more,", least=0)
        self.relaxation = number("relaxation", relaxation, "a number of kcal/mol/A^2, 0 or more,", least=0)
        self.region = region or Region()
        self.options = {"method": "newton", "tolerance": 0.1, "max_iterations": 30, **options}
        check_options(self.options)

    def terms(self, atoms: Atoms, ligand: Ints) -> Sequence[Term]:
        # The constant that restrained atoms are preconditioned with; rows get their own.
        return [PositionalRestraint(self.steering, atoms=self._chosen(atoms, ligand), name=RESTRAINT)]

    def _chosen(self, atoms: Atoms, ligand: Ints) -> Ints:
        """Atoms of the nodes, in order."""
        if self.nodes is not None:
            return np.flatnonzero(atoms_among("nodes", self.nodes, atoms)).astype(np.int32)
        if atoms.labels is None:
            raise InputError("alpha carbons are found by names, which these atoms lack; give nodes")
        alpha = (atoms.labels.names == "CA") & (atoms.labels.elements == "C")
        alpha[ligand] = False
        return np.flatnonzero(alpha).astype(np.int32)

    def prepare(self, walk: Walk) -> None:
        self._nodes = self._chosen(walk.atoms, walk.ligand)
        self._remember_modes(walk, self._in_order(walk.atoms.labels))
        for memory in walk.memory:
            modes = memory[MODES]
            if modes.vectors.shape[1] != len(self._nodes):
                raise InputError(f"the modes are of {modes.vectors.shape[1]} nodes; there are {len(self._nodes)}")
            if self.picking == "defined" and self.defined > len(modes):
                raise InputError(f"mode {self.defined} is defined; there are {len(modes)}")
        walk.ensemble.force_constants(RESTRAINT)[:] = np.zeros(len(walk.atoms))
        walk.ensemble.evaluate(keep_radii=walk.holds_radii)

    def _in_order(self, labels: Labels | None) -> Modes | None:
        """Modes that were given, in the order of the nodes if they name theirs."""
        if self.modes is None or labels is None or self.modes.vectors.shape[1] != len(self._nodes):
            return self.modes
        modes, self.notes = self.modes.of_nodes(labels_of(labels, self._nodes.astype(np.intp)))
        return modes

    def _remember_modes(self, walk: Walk, given: Modes | None) -> None:
        """Store the given modes, or those at its positions, for each row that has none; equal rows share them."""
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
        """Modes of the nodes (n_nodes, 3) A."""
        return network_modes(nodes, self.count, cutoff=self.cutoff, **self.network)

    def is_due(self, walk: Walk, row: int) -> bool:
        return walk.is_multiple(row, walk.settings[row].anm_frequency)

    def displacements(self, walk: Walk, rows: Sequence[int]) -> Floats:
        """Draw random displacements of the nodes of rows, (n_rows, n_nodes, 3) A, and store modes and directions."""
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
        """Pick the main mode among so many."""
        if self.picking == "random":
            return min(int(drawn * count), count - 1)
        return 0 if self.picking == "lowest" else self.defined - 1

    def _direction(self, before: int, drawn: float) -> int:
        """Return the direction after another one; 0 is none."""
        if self.direction == "random":
            return 1 if drawn < 0.5 else -1
        return self.first_direction if self.direction == "same" or before == 0 else -before

    def _mixed(self, modes: Modes, mode: int, drawn: NDArray[np.float64]) -> Floats:
        """Mix modes to a vector (n_nodes, 3), eqs. 4 and 5. drawn : (m,) from -1 to 1"""
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
        """Displacement of a move, A, eq. 6. drawn : from 0 to 1"""
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
