"""Choice of parameters for multilevel summation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from ..mesh.geometry import MeshGeometry, blocks_of, nodes_around
from ..mesh.parameters import FEW_REALS, NodeNeeds, Three, weight_reals
from ..problem import MapProblem
from .levels import LatticeLevel, Stencil, levels_from
from .splitting import Splitting

CUTOFFS = (4.0, 5.0, 6.0, 8.0, 10.0, 12.0, 15.0, 19.0, 24.0)  # A, for the near part; 12 in textbooks
# Costs in near pairs: per term of a lattice sum, and per point that a charge is spread to.
TERM_COST, SPREAD_COST = 0.08, 2.0
ALL_LEVELS = 8 / 7  # ratio of the points of all lattices to those of the finest


@dataclass(frozen=True)
class MsmPreset:
    """Parameters of multilevel summation; see docs/theory/msm.md, section 4.

    accuracy : error by norm around molecules
    nodes : P of the interpolant; order : of the splitting
    ratio : of the cutoff to the spacing of the finest lattice
    """

    accuracy: float
    nodes: int
    order: int
    ratio: float


PRESETS = (
    MsmPreset(1e-2, 4, 2, 3.5),
    MsmPreset(1e-3, 6, 3, 5.0),
    MsmPreset(1e-4, 10, 5, 6.0),
    MsmPreset(1e-5, 10, 5, 9.0),
)
FINEST = PRESETS[-1].accuracy


def preset_for(accuracy: float) -> MsmPreset:
    """Return the cheapest preset for an accuracy, which must be at least FINEST."""
    return next(preset for preset in PRESETS if preset.accuracy <= accuracy * (1 + 1e-9))


def lattice_needs(problem: MapProblem, slab: Three) -> NodeNeeds:
    """Estimate the memory of the lattices for a problem. slab : points along x, y, z that are computed together"""
    plan = LatticePlan.of(problem)
    nodes, levels = plan.preset.nodes, plan.levels
    narrow, wide = _of_points(plan, nodes, slab, float(problem.grid.spacing[2]))
    narrow = max(narrow, weight_reals(problem, nodes))
    for fine, coarse in pairwise(levels):
        ways = _on_the_way(fine, coarse)
        narrow, wide = max(narrow, *ways), max(wide, *ways)
    own = sum(2 * level.n_points for level in levels) + plan.between.weights.size + plan.coarsest.weights.size
    reals = own + 2 * nodes * sum(slab) + narrow + wide + FEW_REALS
    return NodeNeeds(reals, math.prod(blocks_of(plan.geometry)), plan.splitting.cutoff)


def _on_the_way(fine: LatticeLevel, coarse: LatticeLevel) -> tuple[float, float]:
    """Return the number of points after restriction along x, and after restriction along x and y."""
    (_, fine_y, fine_z), (coarse_x, coarse_y, _) = fine.shape.tolist(), coarse.shape.tolist()
    return coarse_x * fine_y * fine_z, coarse_x * coarse_y * fine_z


def _of_points(plan: LatticePlan, nodes: int, slab: Three, step: float) -> tuple[float, float]:
    """Return the number of points after interpolation along x, and after interpolation along x and y.

    step : distance between planes of points, A
    """
    px, py, pz = slab
    _, ny, nz = plan.levels[0].shape.tolist()
    reached = min(nz, int(pz * step / plan.geometry.spacing) + nodes + 1)
    return math.prod((px, ny, reached)), math.prod((px, py, reached))


@dataclass(frozen=True, eq=False)
class LatticePlan:
    """Lattices for a problem, and the stencils of the sums on them.

    geometry : of the finest lattice; levels : from the finest to the coarsest
    between : stencil of all lattices but the last; coarsest : of the last
    """

    splitting: Splitting
    preset: MsmPreset
    geometry: MeshGeometry
    levels: Sequence[LatticeLevel]
    between: Stencil
    coarsest: Stencil

    @classmethod
    def of(cls, problem: MapProblem) -> LatticePlan:
        """Choose the cheapest lattices for the accuracy of a problem."""
        splitting, preset = splitting_for(problem)
        spacing = splitting.cutoff / preset.ratio
        geometry = MeshGeometry.of(problem.box, spacing, preset.nodes)
        finest = LatticeLevel(np.round(geometry.corner / spacing).astype(np.int64), geometry.shape)
        between = Stencil.of(splitting.between, spacing, np.full(3, splitting.reach(spacing)))
        levels = levels_from(finest, preset.nodes, between.n_terms)
        coarsest = Stencil.of(splitting.coarsest, spacing, levels[-1].shape - 1)
        return cls(splitting, preset, geometry, levels, between, coarsest)


def cutoffs(problem: MapProblem) -> list[float]:
    """List the cutoffs whose lattices fit in the memory of the devices."""
    preset = preset_for(problem.accuracy)
    return [each for each in CUTOFFS if finest_level(problem, preset, each).n_points <= problem.most_nodes]


def finest_level(problem: MapProblem, preset: MsmPreset, cutoff: float) -> LatticeLevel:
    """Return the lattice used to spread charges and to interpolate at points."""
    return LatticeLevel(*nodes_around(problem.box, cutoff / preset.ratio, preset.nodes))


def splitting_for(problem: MapProblem) -> tuple[Splitting, MsmPreset]:
    """Choose the cheapest splitting for the accuracy of a problem."""
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
    """Return the next smaller accuracy that is possible for a problem; None if there is none."""
    finer = [each.accuracy for each in PRESETS if each.accuracy < preset_for(problem.accuracy).accuracy]
    return max((each for each in finer if cutoffs(replace(problem, accuracy=each))), default=None)


def near_problem(problem: MapProblem, splitting: Splitting) -> MapProblem:
    """Return the problem with only the near part."""
    return replace(problem, model=replace(problem.model, cutoff=splitting.cutoff), near=splitting.near)
