"""Parameters of a mesh for a map."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from ..problem import MapProblem
from .geometry import BLOCK, Box, MeshGeometry, SheetGeometry, blocks_of, nodes_around, transform_length
from .green import fine_waves
from .split import Split, Window

FEW_REALS = 30e3  # numbers of tables that no size of a map changes much: of bins, pieces of windows and transforms

Three = tuple[int, int, int]
CUTOFFS = (3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 13.0, 17.0, 22.0)  # A, of the near part
# Costs on a CPU, in near pairs: of a node of the padded mesh with all its transforms, and of a node that a charge is
# spread onto. Their ratios are much the same on GPUs.
NODE_COST, SPREAD_COST = 12.0, 0.7
WAVE_COST = 5.0  # of a wave number of the host's table, a part of what it takes there, since it serves further maps
# The same in evaluations of the direct sum, as measured on two cores: of a near pair, a node of the padded mesh, a node
# that a charge is spread onto, a point and component of the map, and an atom in the sums that measure the error.
PAIR_EVALUATIONS, NODE_EVALUATIONS, SPREAD_EVALUATIONS = 27.0, 40.0, 9.0
POINT_EVALUATIONS, ERROR_EVALUATIONS = 45.0, 11e3
SHEET_COST = 2.7  # of a wave number of a sheet, in those of the padded mesh, most of whose lines are zero
RATIOS = (2, 4)  # of the cutoffs of two levels, the least and the largest
MOST_CHOSEN = 64
LARGEST_SCREENING = 7.0  # kappa times the cutoff; beyond, cosh has more terms than kernels take
MOST_WAVES = 2e8  # of the Green function's fine table, which the host makes; a cube of 420 nodes has as many


@dataclass(frozen=True)
class MeshPreset:
    """Parameters of the split and of the window; docs/theory/mesh.md.

    accuracy : the error by norm that it keeps around molecules
    c : bandwidth of the split, so that the mesh's spacing is pi cutoff / c
    nodes : P, of the mesh that a charge is spread onto along each axis; even
    width : bandwidth of the window over pi P / 2
    near_degree : of the near part's polynomial in the squared distance
    window_degree : of the window's polynomial between two nodes
    """

    accuracy: float
    c: float
    nodes: int
    width: float
    near_degree: int
    window_degree: int


PRESETS = (
    MeshPreset(1e-3, 8, 6, 1.2, 7, 8),
    MeshPreset(1e-4, 10, 8, 1.2, 8, 10),
    MeshPreset(1e-5, 13, 10, 1.2, 10, 12),
    MeshPreset(1e-6, 15, 10, 1.2, 11, 12),
    MeshPreset(1e-7, 17, 12, 1.1, 13, 14),
)
FINEST = PRESETS[-1].accuracy
FLOAT32_ACCURACY = 1e-6  # the best that float32 maps can have


def preset_for(accuracy: float) -> MeshPreset:
    """Return the cheapest preset that keeps an accuracy, which is at least FINEST."""
    return next(preset for preset in PRESETS if preset.accuracy <= accuracy * (1 + 1e-9))


@dataclass(frozen=True)
class NodeNeeds:
    """Memory of nodes on a device.

    reals : numbers of nodes and tables, and of the weights of charges
    n_blocks : by which charges are sorted, at most; cutoff : of the near part, A
    """

    reals: float
    n_blocks: int
    cutoff: float


def weight_reals(problem: MapProblem, window_nodes: int) -> int:
    """Count the weights of all charges: cl/potmap/mesh/spread.clh."""
    return problem.n_atoms * (3 * window_nodes + 2 * BLOCK)


def mesh_needs(problem: MapProblem, slab: Three) -> NodeNeeds:
    """Estimate the memory of the mesh for a problem; slab : points along x, y, z, computed at a time"""
    chosen, n_nodes = cheapest(problem), preset_for(problem.accuracy).nodes
    coarse, slice_spacing = coarse_geometry(problem, chosen), float(problem.grid.spacing[2])
    sheets = sheets_of(problem, chosen) if chosen.two else None
    if sheets is None:
        meshes = [_Taken(coarse, slab, slice_spacing)]
    else:
        nx, ny, nz = sheets.shape.tolist()
        meshes = [
            _Taken(coarse, (nx, ny, nz), sheets.spacing),
            _Taken(sheets.nodes_of(0), (slab[0], slab[1], min(slab[2], sheets.depth)), slice_spacing),
        ]
    own = sum(mesh.own_reals(n_nodes) for mesh in meshes)
    narrow = max(weight_reals(problem, n_nodes), *(mesh.narrow(n_nodes) for mesh in meshes))
    reals = own + narrow + max(mesh.wide(n_nodes) for mesh in meshes) + FEW_REALS
    return NodeNeeds(reals, max(math.prod(blocks_of(mesh.geometry)) for mesh in meshes), chosen.cutoff)


class _Taken:
    """A mesh and the points (px, py, pz) that take from it at a time, whose planes are `step` A apart."""

    def __init__(self, geometry: MeshGeometry, points: Three, step: float) -> None:
        self.geometry, self._points, self._step = geometry, points, step / geometry.spacing
        self._shape: list[int] = geometry.shape.tolist()
        self._lengths: list[int] = geometry.lengths.tolist()
        self._pitch: float = self._lengths[0] / 2 + 8  # numbers of a row of a spectrum

    def own_reals(self, window_nodes: int) -> float:
        """Count the reals of nodes, table and weights."""
        _, length_y, length_z = self._lengths
        table = self._pitch * (length_y / 2 + 1) * (length_z / 2 + 1)
        return float(np.prod(np.array(self._shape, float))) + table + 2 * window_nodes * sum(self._points)

    def narrow(self, window_nodes: int) -> float:
        """Count the reals of a spectrum; rows of points between nodes and map later use its memory."""
        _, ny, nz = self._shape
        return max(2 * self._pitch * ny * nz, float(self._points[0] * ny * self._reached(window_nodes)))

    def wide(self, window_nodes: int) -> float:
        """Count the reals of a spectrum of whole columns, and of planes of points."""
        (px, py, _), nz = self._points, self._shape[2]
        return max(2 * self._pitch * self._lengths[1] * nz, float(px * py * self._reached(window_nodes)))

    def _reached(self, window_nodes: int) -> int:
        """Planes of nodes that the points take from."""
        return min(self._shape[2], int(self._points[2] * self._step) + window_nodes + 1)


@dataclass(frozen=True)
class MeshParameters:
    """Parameters of the mesh, or meshes, for a problem.

    near, far : the split at which the near part ends, and the split at which the far part becomes Coulomb's. They are
        one unless there are two levels, whose middle part lies between them
    """

    preset: MeshPreset
    near: Split
    far: Split
    window: Window

    @property
    def has_sheets(self) -> bool:
        """True if the middle part has meshes of its own."""
        return self.far != self.near


@dataclass(frozen=True)
class Levels:
    """End of the near part, and of the middle part if there is one, A; equal if there is none."""

    cutoff: float
    reach: float

    @property
    def two(self) -> bool:
        return self.reach > self.cutoff


def levels(problem: MapProblem) -> list[Levels]:
    """List the levels that a problem's screening allows and whose meshes have room; none may.

    Two levels are among them where the mesh of one is large, or has no room.
    """
    allowed = [cutoff for cutoff in CUTOFFS if problem.model.kappa * cutoff <= LARGEST_SCREENING]
    fitting = [each for each in allowed or [LARGEST_SCREENING / problem.model.kappa] if _fits(problem, each)]
    one = [Levels(cutoff, cutoff) for cutoff in fitting]
    if one and len(fitting) == len(allowed) and _padded_nodes(problem, one[0]) <= problem.most_one_level:
        return one
    least, largest = RATIOS
    two = [Levels(near, far) for far in fitting for near in allowed if least * near <= far <= largest * near]
    return one + [each for each in two if sheets_of(problem, each) is not None]


def _fits(problem: MapProblem, cutoff: float) -> bool:
    """Return whether a cutoff's mesh is small enough for the devices, and its table for the host."""
    sizes = _sizes(problem, cutoff)
    if sizes.waves > MOST_WAVES or math.prod(sizes.shape) > problem.most_nodes:
        return False
    return max(sizes.lengths) <= problem.longest_line


def sheets_of(problem: MapProblem, chosen: Levels) -> SheetGeometry | None:
    """Plan the sheets of two levels; None if they, or the coarse mesh beside them, have no room."""
    preset = preset_for(problem.accuracy)
    if math.prod(_sizes(problem, chosen.reach).shape) > problem.most_nodes / 2:
        return None
    sheets = SheetGeometry.of(problem, np.pi * chosen.cutoff / preset.c, chosen.reach, preset.nodes)
    return sheets if sheets is not None and sheets.lengths.max() <= problem.longest_line else None


@dataclass(frozen=True)
class _Sizes:
    """Sizes of a mesh: nodes along x, y, z, and wave numbers of its table in all."""

    shape: tuple[int, ...]
    waves: float

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """Lengths of the transforms along x, y, z; asked for if the mesh is not far too large."""
        return tuple(transform_length(2 * n - 1) for n in self.shape)


def _sizes(problem: MapProblem, cutoff: float) -> _Sizes:
    """Compute the sizes of the mesh that goes with a cutoff."""
    low, high = (tuple(end.tolist()) for end in problem.box)
    return _sizes_around(low, high, preset_for(problem.accuracy), cutoff)


@lru_cache(maxsize=64)  # of all cutoffs and a few presets, which are asked for again and again
def _sizes_around(low: tuple[float, ...], high: tuple[float, ...], preset: MeshPreset, cutoff: float) -> _Sizes:
    """low, high : ends of the box of all atoms and points, A"""
    spacing = np.pi * cutoff / preset.c
    shape = nodes_around((np.array(low), np.array(high)), spacing, preset.nodes)[1]
    waves = float(np.prod(fine_waves(shape, spacing, cutoff).astype(float)))
    return _Sizes(tuple(shape.tolist()), waves)


def mesh_for(problem: MapProblem) -> MeshParameters:
    """Choose the split, or splits, and the window of least cost that keep the accuracy of a problem."""
    preset, chosen = preset_for(problem.accuracy), cheapest(problem)
    near, far = (_split(preset.c, cutoff, problem.model.kappa) for cutoff in (chosen.cutoff, chosen.reach))
    return MeshParameters(preset, near, far, _window(preset))


@lru_cache(maxsize=16)
def _split(c: float, cutoff: float, kappa: float) -> Split:
    """A split, kept with all that it has computed of itself."""
    return Split(c, cutoff, kappa)


@lru_cache(maxsize=16)
def _window(preset: MeshPreset) -> Window:
    return Window(preset.nodes, preset.width, preset.window_degree)


def mesh_evaluations(problem: MapProblem) -> float:
    """Estimate the cost of the kernels of the mesh for a problem, in evaluations of the direct sum."""
    preset, chosen = preset_for(problem.accuracy), cheapest(problem)
    sheets = sheets_of(problem, chosen) if chosen.two else None
    finer = 0.0 if sheets is None else NODE_EVALUATIONS * SHEET_COST * _sheet_nodes(sheets)
    return (
        PAIR_EVALUATIONS * _near_pairs(problem, chosen.cutoff)
        + NODE_EVALUATIONS * _padded_nodes(problem, chosen)
        + finer
        + (SPREAD_EVALUATIONS * preset.nodes**3 * (1 + chosen.two) + ERROR_EVALUATIONS) * problem.n_atoms
        + POINT_EVALUATIONS * problem.components * len(problem.grid)
    )


def table_waves(problem: MapProblem) -> float:
    """Count the wave numbers in the table of a problem's Green function; many if the mesh is long and thin."""
    return _sizes(problem, cheapest(problem).reach).waves


def cheapest(problem: MapProblem) -> Levels:
    """Choose the levels of least cost, which are kept for further problems of a size."""
    (low, high), grid = problem.box, problem.grid
    key = (
        *low.tolist(), *high.tolist(), *grid.shape, *grid.spacing.tolist(), problem.n_atoms, problem.n_near,
        problem.accuracy, problem.model.kappa, problem.longest_line, problem.most_nodes, problem.most_one_level,
    )  # fmt: skip
    chosen = _chosen.get(key)
    if chosen is None:
        chosen = min(levels(problem), key=lambda each: cost(problem, preset_for(problem.accuracy), each))
        if len(_chosen) >= MOST_CHOSEN:  # to look a key up again would race with other threads
            _chosen.clear()
        _chosen[key] = chosen
    return chosen


_chosen: dict[tuple[object, ...], Levels] = {}


def forget() -> None:
    """Choose again, as scripts want it that change what there is to choose from."""
    _chosen.clear()


def tighter(problem: MapProblem) -> float | None:
    """Find the next smaller accuracy that a mesh for this problem may have; None if there is none."""
    finest = FLOAT32_ACCURACY if problem.precision == "float32" else 0.0
    finer = [each.accuracy for each in PRESETS if finest <= each.accuracy < preset_for(problem.accuracy).accuracy]
    return max((each for each in finer if levels(replace(problem, accuracy=each))), default=None)


def cost(problem: MapProblem, preset: MeshPreset, chosen: Levels) -> float:
    """Estimate the cost of the near part and the mesh or meshes, in near pairs."""
    waves, nodes = _sizes(problem, chosen.reach).waves, _padded_nodes(problem, chosen)
    found = _near_pairs(problem, chosen.cutoff) + WAVE_COST * waves + NODE_COST / 4 * nodes
    spread = SPREAD_COST * preset.nodes**3
    sheets = sheets_of(problem, chosen) if chosen.two else None
    if sheets is not None:
        found += NODE_COST / 4 * SHEET_COST * _sheet_nodes(sheets) + spread * problem.n_near
    return found + spread * problem.n_atoms


def coarse_geometry(problem: MapProblem, chosen: Levels) -> MeshGeometry:
    """Make the mesh that goes around everything."""
    preset = preset_for(problem.accuracy)
    return MeshGeometry.of(problem.box, np.pi * chosen.reach / preset.c, preset.nodes)


def _padded_nodes(problem: MapProblem, chosen: Levels) -> int:
    return math.prod(_sizes(problem, chosen.reach).lengths)


def _sheet_nodes(sheets: SheetGeometry) -> float:
    """Wave numbers of all sheets of a map."""
    return sheets.n_sheets * float(np.prod(sheets.lengths.astype(float)))


def far_box(problem: MapProblem, parameters: MeshParameters) -> Box:
    """Find the box inside the mesh of the far part: all atoms and points, or the nodes they take from."""
    margin = parameters.near.spacing * (parameters.window.nodes / 2) if parameters.has_sheets else 0.0
    low, high = problem.box
    return low - margin, high + margin


def _near_pairs(problem: MapProblem, cutoff: float) -> float:
    """Pairs of points and atoms within the cutoff, about."""
    in_reach = 4 / 3 * np.pi * cutoff**3 / float(np.prod(problem.grid.spacing))
    return float(min(in_reach, len(problem.grid)) * problem.n_near)


def near_problem(problem: MapProblem, split: Split) -> MapProblem:
    """Return the near part of a problem."""
    near = split.near_polynomials(preset_for(problem.accuracy).near_degree)
    return replace(problem, model=replace(problem.model, cutoff=split.cutoff), near=near)
