"""Parameters of multilevel summation for a map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..mesh.geometry import MeshGeometry, nodes_around
from ..problem import MapProblem
from .levels import LatticeLevel, Stencil, levels_from
from .presets import PRESETS, MsmPreset, preset_for
from .splitting import Splitting

CUTOFFS = (4.0, 5.0, 6.0, 8.0, 10.0, 12.0, 15.0, 19.0, 24.0)  # A, of the near part; the text books have 12
# Costs in near pairs: of a term of a lattice's sum, and of a point that a charge is spread onto.
TERM_COST, SPREAD_COST = 0.08, 2.0
ALL_LEVELS = 8 / 7  # points of all lattices, over those of the finest


@dataclass(frozen=True, eq=False)
class LatticePlan:
    """Lattices for a problem, and the weights of the sums on them.

    geometry : of the finest lattice; levels : from that to the coarsest
    between : weights on all lattices but the last; coarsest : on that
    """

    splitting: Splitting
    preset: MsmPreset
    geometry: MeshGeometry
    levels: Sequence[LatticeLevel]
    between: Stencil
    coarsest: Stencil

    @classmethod
    def of(cls, problem: MapProblem) -> LatticePlan:
        """Choose the lattices of least cost that keep the accuracy of a problem."""
        splitting, preset = splitting_for(problem)
        spacing = splitting.cutoff / preset.ratio
        geometry = MeshGeometry.of(problem.box, spacing, preset.nodes)
        finest = LatticeLevel(np.round(geometry.corner / spacing).astype(np.int64), geometry.shape)
        between = Stencil.of(splitting.between, spacing, np.full(3, splitting.reach(spacing)))
        levels = levels_from(finest, preset.nodes, between.n_terms)
        coarsest = Stencil.of(splitting.coarsest, spacing, levels[-1].shape - 1)
        return cls(splitting, preset, geometry, levels, between, coarsest)


def cutoffs(problem: MapProblem) -> list[float]:
    """List the cutoffs whose lattices the devices have room for."""
    preset = preset_for(problem.accuracy)
    return [each for each in CUTOFFS if finest_level(problem, preset, each).n_points <= problem.room.nodes]


def finest_level(problem: MapProblem, preset: MsmPreset, cutoff: float) -> LatticeLevel:
    """Make the lattice that charges are spread onto and points take from."""
    return LatticeLevel(*nodes_around(problem.box, cutoff / preset.ratio, preset.nodes))


def splitting_for(problem: MapProblem) -> tuple[Splitting, MsmPreset]:
    """Choose the splitting of least cost that keeps the accuracy of a problem."""
    preset = preset_for(problem.accuracy)
    return Splitting(preset.order, min(cutoffs(problem), key=lambda each: cost(problem, preset, each))), preset


def cost(problem: MapProblem, preset: MsmPreset, cutoff: float) -> float:
    """Estimate the cost of near part and lattices, in near pairs."""
    points = finest_level(problem, preset, cutoff).n_points
    terms = 4 / 3 * np.pi * (2 * preset.ratio) ** 3
    in_reach = 4 / 3 * np.pi * cutoff**3 / float(np.prod(problem.grid.spacing))
    near = min(in_reach, len(problem.grid)) * problem.n_near
    return float(near + TERM_COST * ALL_LEVELS * terms * points + SPREAD_COST * preset.nodes**3 * problem.n_atoms)


def tighter(problem: MapProblem) -> float | None:
    """Find the next smaller accuracy that a problem may have; None if there is none."""
    finer = [each.accuracy for each in PRESETS if each.accuracy < preset_for(problem.accuracy).accuracy]
    return max((each for each in finer if cutoffs(replace(problem, accuracy=each))), default=None)


def near_problem(problem: MapProblem, splitting: Splitting) -> MapProblem:
    """Return the near part of a problem."""
    return replace(problem, model=replace(problem.model, cutoff=splitting.cutoff), near=splitting.near)
