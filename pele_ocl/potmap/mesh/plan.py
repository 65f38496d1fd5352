"""The parameters of a mesh for a map."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from ..problem import MapProblem
from .geometry import nodes_around, transform_length
from .green import fine_waves
from .presets import FLOAT32_ACCURACY, PRESETS, Preset, preset_for
from .split import Split
from .window import Window

CUTOFFS = (3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 13.0, 17.0, 22.0)  # A, of the near part
# Costs on a CPU, in near pairs: of a node of the padded mesh with all its transforms, and of a node that a charge is
# spread onto. Their ratios are much the same on GPUs.
NODE_COST, SPREAD_COST = 30.0, 2.0
WAVE_COST = 10.0  # of a wave number of the host's table, half of what it takes there, since it serves further maps
# The same in evaluations of the direct sum, as measured on two cores: of a near pair, a node of the padded mesh, a node
# that a charge is spread onto, a point and component of the map, and an atom in the sums that measure the error.
PAIR_EVALUATIONS, NODE_EVALUATIONS, SPREAD_EVALUATIONS = 27.0, 40.0, 9.0
POINT_EVALUATIONS, ERROR_EVALUATIONS = 45.0, 11e3
ATOM_REALS = 60.0  # numbers of an atom on a device: its windows' weights, its place in the mesh and in the bins
FEW_REALS = 20e3  # numbers of tables that no size of a map changes much: of bins, pieces of windows and transforms
LARGEST_SCREENING = 7.0  # kappa times the cutoff; beyond, cosh has more terms than kernels take
MOST_WAVES = 2e8  # of the Green function's fine table, which the host makes; a cube of 420 nodes has as many


def cutoffs(problem: MapProblem) -> list[float]:
    """Those that a problem's screening allows and whose meshes the devices have room for; none where none does."""
    allowed = [cutoff for cutoff in CUTOFFS if problem.model.kappa * cutoff <= LARGEST_SCREENING]
    return [each for each in allowed or [LARGEST_SCREENING / problem.model.kappa] if _fits(problem, each)]


def _fits(problem: MapProblem, cutoff: float) -> bool:
    """Whether the mesh that goes with a cutoff is small enough for the devices, and its table for the host."""
    sizes = _sizes(problem, cutoff)
    if sizes.waves > MOST_WAVES or math.prod(sizes.shape) > problem.room.nodes:
        return False
    return max(sizes.lengths) <= problem.room.length


@dataclass(frozen=True)
class _Sizes:
    """Of a mesh: nodes along x, y, z, and wave numbers of its table in all."""

    shape: tuple[int, ...]
    waves: float

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """Of the transforms along x, y, z; asked for where the mesh is not far too large."""
        return tuple(transform_length(2 * n - 1) for n in self.shape)


def _sizes(problem: MapProblem, cutoff: float) -> _Sizes:
    """The sizes of the mesh that goes with a cutoff."""
    low, high = (tuple(end.tolist()) for end in problem.box)
    return _sizes_around(low, high, preset_for(problem.accuracy), cutoff)


@lru_cache(maxsize=64)  # of all cutoffs and a few presets, which are asked for again and again
def _sizes_around(low: tuple[float, ...], high: tuple[float, ...], preset: Preset, cutoff: float) -> _Sizes:
    """low, high : ends of the box of all atoms and points, A"""
    spacing = np.pi * cutoff / preset.c
    shape = nodes_around((np.array(low), np.array(high)), spacing, preset.nodes)[1]
    waves = float(np.prod(fine_waves(shape, spacing, cutoff).astype(float)))
    return _Sizes(tuple(shape.tolist()), waves)


def mesh_for(problem: MapProblem) -> tuple[Split, Window]:
    """The split and the window of least cost that keep the accuracy of a problem."""
    preset = preset_for(problem.accuracy)
    cutoff = _cheapest(problem)
    return _split(preset.c, cutoff, problem.model.kappa), _window(preset)


@lru_cache(maxsize=16)
def _split(c: float, cutoff: float, kappa: float) -> Split:
    """A split, kept with all that it has computed of itself."""
    return Split(c, cutoff, kappa)


@lru_cache(maxsize=16)
def _window(preset: Preset) -> Window:
    return Window(preset.nodes, preset.width, preset.window_degree)


def mesh_evaluations(problem: MapProblem) -> float:
    """The cost of the kernels of the mesh for a problem, in evaluations of the direct sum."""
    preset, cutoff = preset_for(problem.accuracy), _cheapest(problem)
    return (
        PAIR_EVALUATIONS * _near_pairs(problem, cutoff)
        + NODE_EVALUATIONS * math.prod(_sizes(problem, cutoff).lengths)
        + (SPREAD_EVALUATIONS * preset.nodes**3 + ERROR_EVALUATIONS) * problem.n_atoms
        + POINT_EVALUATIONS * problem.components * len(problem.grid)
    )


def mesh_reals(problem: MapProblem, slab: tuple[int, int, int]) -> float:
    """Numbers that the mesh for a problem needs on a device, about; slab : points along x, y, z, computed at a time"""
    preset, cutoff = preset_for(problem.accuracy), _cheapest(problem)
    sizes = _sizes(problem, cutoff)
    (nx, ny, nz), (lx, ly, lz) = sizes.shape, sizes.lengths
    pitch, (px, py, pz) = lx / 2 + 8, slab
    reached = min(nz, int(pz * problem.grid.spacing[2] / (np.pi * cutoff / preset.c)) + preset.nodes + 1)
    # A spectrum, and later the rows and planes of points between nodes and map, in the same memory.
    narrow = max(2 * pitch * ny * nz, px * ny * reached)
    wide = max(2 * pitch * ly * nz, px * py * reached)
    table = pitch * (ly / 2 + 1) * (lz / 2 + 1)
    weights = 2 * preset.nodes * sum(slab)
    return float(nx * ny * nz + narrow + wide + table + weights + ATOM_REALS * problem.n_atoms + FEW_REALS)


def table_waves(problem: MapProblem) -> float:
    """Wave numbers of the table of the Green function for the mesh of a problem; many where it is long and thin."""
    return _sizes(problem, _cheapest(problem)).waves


def _cheapest(problem: MapProblem) -> float:
    return min(cutoffs(problem), key=lambda cutoff: cost(problem, preset_for(problem.accuracy), cutoff))


def tighter(problem: MapProblem) -> float | None:
    """The next smaller accuracy that a mesh for this problem may have; None where there is none."""
    finest = FLOAT32_ACCURACY if problem.precision == "float32" else 0.0
    finer = [each.accuracy for each in PRESETS if finest <= each.accuracy < preset_for(problem.accuracy).accuracy]
    return max((each for each in finer if cutoffs(replace(problem, accuracy=each))), default=None)


def cost(problem: MapProblem, preset: Preset, cutoff: float) -> float:
    """Of the near part and the mesh, in near pairs."""
    sizes = _sizes(problem, cutoff)
    near, nodes = _near_pairs(problem, cutoff), math.prod(sizes.lengths)
    return near + WAVE_COST * sizes.waves + NODE_COST * nodes / 4 + SPREAD_COST * preset.nodes**3 * problem.n_atoms


def _near_pairs(problem: MapProblem, cutoff: float) -> float:
    """Pairs of points and atoms within the cutoff, about."""
    in_reach = 4 / 3 * np.pi * cutoff**3 / float(np.prod(problem.grid.spacing))
    return float(min(in_reach, len(problem.grid)) * problem.n_near)


def near_problem(problem: MapProblem, split: Split) -> MapProblem:
    """The near part of a problem."""
    near = split.near_polynomials(preset_for(problem.accuracy).near_degree)
    return replace(problem, model=replace(problem.model, cutoff=split.cutoff), near=near)
