"""Memory that a map by multilevel summation takes on a device."""

from __future__ import annotations

import math
from itertools import pairwise

from ..mesh.memory import ATOM_REALS, FEW_REALS, Three
from ..problem import MapProblem
from .levels import LatticeLevel
from .plan import LatticePlan


def lattice_reals(problem: MapProblem, slab: Three) -> float:
    """Numbers that the lattices for a problem need on a device, about.

    slab : points along x, y, z, computed at a time
    """
    plan = LatticePlan.of(problem)
    nodes, levels = plan.preset.nodes, plan.levels
    narrow, wide = _of_points(plan, nodes, slab, float(problem.grid.spacing[2]))
    for fine, coarse in pairwise(levels):
        ways = _on_the_way(fine, coarse)
        narrow, wide = max(narrow, *ways), max(wide, *ways)
    own = sum(2 * level.n_points for level in levels) + plan.between.weights.size + plan.coarsest.weights.size
    return own + 2 * nodes * sum(slab) + narrow + wide + ATOM_REALS * problem.n_atoms + FEW_REALS


def _on_the_way(fine: LatticeLevel, coarse: LatticeLevel) -> tuple[float, float]:
    """Count points that are along x as in the one lattice, along z as in the other, along y either."""
    (_, fine_y, fine_z), (coarse_x, coarse_y, _) = fine.shape.tolist(), coarse.shape.tolist()
    return coarse_x * fine_y * fine_z, coarse_x * coarse_y * fine_z


def _of_points(plan: LatticePlan, nodes: int, slab: Three, step: float) -> tuple[float, float]:
    """Rows and planes of points (x, y, z), whose planes are `step` A apart, on the way from the lattice to the map."""
    px, py, pz = slab
    _, ny, nz = plan.levels[0].shape.tolist()
    reached = min(nz, int(pz * step / plan.geometry.spacing) + nodes + 1)
    return math.prod((px, ny, reached)), math.prod((px, py, reached))
