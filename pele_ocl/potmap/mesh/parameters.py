"""Choice of mesh parameters for a map."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from ..problem import MapProblem
from .geometry import BLOCK, Box, MeshGeometry, SheetGeometry, blocks_of, nodes_around, transform_length
from .green import fine_waves
from .split import Split, Window

FEW_REALS = 30e3  # size of tables that hardly depends on the map: bins, window polynomials and transforms

Three = tuple[int, int, int]
CUTOFFS = (3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 13.0, 17.0, 22.0)  # A, for the near part
# Costs on a CPU, in near pairs: per node of the padded mesh including all transforms, and per node that a charge is
# spread to. Their ratios are similar on GPUs.
NODE_COST, SPREAD_COST = 12.0, 0.7
WAVE_COST = 5.0  # per wave number of the host's table; reduced, because other maps reuse the table
# Costs in evaluations of the direct sum, measured on two cores: per near pair, node of the padded mesh, node that a
# charge is spread to, point and component of the map, and atom in the sums that measure the error.
PAIR_EVALUATIONS, NODE_EVALUATIONS, SPREAD_EVALUATIONS = 27.0, 40.0, 9.0
POINT_EVALUATIONS, ERROR_EVALUATIONS = 45.0, 11e3
SHEET_COST = 2.7  # per wave number of a sheet, relative to the padded mesh, where most lines are zero
RATIOS = (2, 4)  # smallest and largest ratio of the cutoffs of two levels
MOST_CHOSEN = 64
LARGEST_SCREENING = 7.0  # kappa times the cutoff; above this, cosh needs more terms than kernels support
MOST_WAVES = 2e8  # in the fine table of the Green function, computed by the host; corresponds to a cube of 420 nodes


@dataclass(frozen=True)
class MeshPreset:
    """Parameters of the split and the window; see docs/theory/mesh.md.

    accuracy : error by norm around molecules
    c : bandwidth of the split; the spacing of the mesh is pi cutoff / c
    nodes : P, number of nodes per axis that a charge is spread to; even
    width : bandwidth of the window divided by pi P / 2
    near_degree : degree of the near part's polynomial in the squared distance
    window_degree : degree of the window's polynomial between two nodes
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
FLOAT32_ACCURACY = 1e-6  # best accuracy of float32 maps


def preset_for(accuracy: float) -> MeshPreset:
    """Return the cheapest preset for an accuracy, which must be at least FINEST."""
    return next(preset for preset in PRESETS if preset.accuracy <= accuracy * (1 + 1e-9))


@dataclass(frozen=True)
class NodeNeeds:
    """Memory for nodes on a device.

    reals : number of reals for nodes, tables and weights of charges
    n_blocks : maximum number of blocks for sorting charges; cutoff : of the near part, A
    """

    reals: float
    n_blocks: int
    cutoff: float


def weight_reals(problem: MapProblem, window_nodes: int) -> int:
    """Return the number of weights of all charges; see cl/potmap/mesh/spread.clh."""
    return problem.n_atoms * (3 * window_nodes + 2 * BLOCK)


def mesh_needs(problem: MapProblem, slab: Three) -> NodeNeeds:
    """Estimate the memory of the mesh for a problem. slab : points along x, y, z that are computed together"""
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
    """Memory needed to interpolate from a mesh to points (px, py, pz), whose planes are `step` A apart."""

    def __init__(self, geometry: MeshGeometry, points: Three, step: float) -> None:
        self.geometry, self._points, self._step = geometry, points, step / geometry.spacing
        self._shape: list[int] = geometry.shape.tolist()
        self._lengths: list[int] = geometry.lengths.tolist()
        # Numbers of a row of a spectrum: padded to a vector of lines, which has at most 16 (LineLayout.bundle).
        self._pitch: float = self._lengths[0] / 2 + 16

    def own_reals(self, window_nodes: int) -> float:
        """Return the number of reals for nodes, table and weights."""
        _, length_y, length_z = self._lengths
        table = self._pitch * (length_y / 2 + 1) * (length_z / 2 + 1)
        return float(np.prod(np.array(self._shape, float))) + table + 2 * window_nodes * sum(self._points)

    def narrow(self, window_nodes: int) -> float:
        """Return the number of reals of a spectrum; later used for rows of points between nodes and map."""
        _, ny, nz = self._shape
        return max(2 * self._pitch * ny * nz, float(self._points[0] * ny * self._reached(window_nodes)))

    def wide(self, window_nodes: int) -> float:
        """Return the number of reals of a spectrum with padded columns; later used for planes of points."""
        (px, py, _), nz = self._points, self._shape[2]
        return max(2 * self._pitch * self._lengths[1] * nz, float(px * py * self._reached(window_nodes)))

    def _reached(self, window_nodes: int) -> int:
        """Return the number of planes of nodes used by the points."""
        return min(self._shape[2], int(self._points[2] * self._step) + window_nodes + 1)


@dataclass(frozen=True)
class MeshParameters:
    """Parameters of the mesh, or meshes, for a problem.

    near, far : split at the end of the near part, and split at the beginning of the Coulomb part. They are equal for
        one level; with two levels, the middle part is between them
    """

    preset: MeshPreset
    near: Split
    far: Split
    window: Window

    @property
    def has_sheets(self) -> bool:
        """True if the middle part has separate meshes."""
        return self.far != self.near


@dataclass(frozen=True)
class Levels:
    """Cutoffs of the near part and of the middle part, A; equal without a middle part."""

    cutoff: float
    reach: float

    @property
    def two(self) -> bool:
        return self.reach > self.cutoff


def levels(problem: MapProblem) -> list[Levels]:
    """List the possible levels, given the screening of a problem and the memory for meshes; the list may be empty.

    Two levels are included if a single mesh is large or does not fit.
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
    """Return whether the mesh of a cutoff fits the devices, and its table the host."""
    sizes = _sizes(problem, cutoff)
    if sizes.waves > MOST_WAVES or math.prod(sizes.shape) > problem.most_nodes:
        return False
    return max(sizes.lengths) <= problem.longest_line


def sheets_of(problem: MapProblem, chosen: Levels) -> SheetGeometry | None:
    """Return the sheets of two levels; None if they do not fit in memory together with the coarse mesh."""
    preset = preset_for(problem.accuracy)
    if math.prod(_sizes(problem, chosen.reach).shape) > problem.most_nodes / 2:
        return None
    sheets = SheetGeometry.of(problem, np.pi * chosen.cutoff / preset.c, chosen.reach, preset.nodes)
    return sheets if sheets is not None and sheets.lengths.max() <= problem.longest_line else None


@dataclass(frozen=True)
class _Sizes:
    """Sizes of a mesh: nodes along x, y, z, and total wave numbers of its table."""

    shape: tuple[int, ...]
    waves: float

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """Lengths of the transforms along x, y, z; computed only when needed."""
        return tuple(transform_length(2 * n - 1) for n in self.shape)


def _sizes(problem: MapProblem, cutoff: float) -> _Sizes:
    """Return the sizes of the mesh for a cutoff."""
    low, high = (tuple(end.tolist()) for end in problem.box)
    return _sizes_around(low, high, preset_for(problem.accuracy), cutoff)


@lru_cache(maxsize=64)  # for all cutoffs and a few presets
def _sizes_around(low: tuple[float, ...], high: tuple[float, ...], preset: MeshPreset, cutoff: float) -> _Sizes:
    """low, high : ends of the box of all atoms and points, A"""
    spacing = np.pi * cutoff / preset.c
    shape = nodes_around((np.array(low), np.array(high)), spacing, preset.nodes)[1]
    waves = float(np.prod(fine_waves(shape, spacing, cutoff).astype(float)))
    return _Sizes(tuple(shape.tolist()), waves)


def mesh_for(problem: MapProblem) -> MeshParameters:
    """Choose the cheapest splits and window for the accuracy of a problem."""
    preset, chosen = preset_for(problem.accuracy), cheapest(problem)
    near, far = (_split(preset.c, cutoff, problem.model.kappa) for cutoff in (chosen.cutoff, chosen.reach))
    return MeshParameters(preset, near, far, _window(preset))


@lru_cache(maxsize=16)
def _split(c: float, cutoff: float, kappa: float) -> Split:
    """Return a split; cached with its tables."""
    return Split(c, cutoff, kappa)


@lru_cache(maxsize=16)
def _window(preset: MeshPreset) -> Window:
    return Window(preset.nodes, preset.width, preset.window_degree)


def mesh_evaluations(problem: MapProblem) -> float:
    """Estimate the kernel cost of the mesh for a problem, in evaluations of the direct sum."""
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
    """Return the number of wave numbers in the table of the Green function; large for long, thin meshes."""
    return _sizes(problem, cheapest(problem).reach).waves


def cheapest(problem: MapProblem) -> Levels:
    """Choose the cheapest levels; cached for problems of the same size."""
    (low, high), grid = problem.box, problem.grid
    key = (
        *low.tolist(), *high.tolist(), *grid.shape, *grid.spacing.tolist(), problem.n_atoms, problem.n_near,
        problem.accuracy, problem.model.kappa, problem.longest_line, problem.most_nodes, problem.most_one_level,
    )  # fmt: skip
    chosen = _chosen.get(key)
    if chosen is None:
        chosen = min(levels(problem), key=lambda each: cost(problem, preset_for(problem.accuracy), each))
        if len(_chosen) >= MOST_CHOSEN:  # a second lookup of the key would race with other threads
            _chosen.clear()
        _chosen[key] = chosen
    return chosen


_chosen: dict[tuple[object, ...], Levels] = {}


def forget() -> None:
    """Clear cached choices, for scripts that change the parameters."""
    _chosen.clear()


def tighter(problem: MapProblem) -> float | None:
    """Return the next smaller accuracy for which a mesh is possible; None if there is none."""
    finest = FLOAT32_ACCURACY if problem.precision == "float32" else 0.0
    finer = [each.accuracy for each in PRESETS if finest <= each.accuracy < preset_for(problem.accuracy).accuracy]
    return max((each for each in finer if levels(replace(problem, accuracy=each))), default=None)


def cost(problem: MapProblem, preset: MeshPreset, chosen: Levels) -> float:
    """Estimate the cost of near part and meshes, in near pairs."""
    waves, nodes = _sizes(problem, chosen.reach).waves, _padded_nodes(problem, chosen)
    found = _near_pairs(problem, chosen.cutoff) + WAVE_COST * waves + NODE_COST / 4 * nodes
    spread = SPREAD_COST * preset.nodes**3
    sheets = sheets_of(problem, chosen) if chosen.two else None
    if sheets is not None:
        found += NODE_COST / 4 * SHEET_COST * _sheet_nodes(sheets) + spread * problem.n_near
    return found + spread * problem.n_atoms


def coarse_geometry(problem: MapProblem, chosen: Levels) -> MeshGeometry:
    """Return the mesh around all atoms and points."""
    preset = preset_for(problem.accuracy)
    return MeshGeometry.of(problem.box, np.pi * chosen.reach / preset.c, preset.nodes)


def _padded_nodes(problem: MapProblem, chosen: Levels) -> int:
    return math.prod(_sizes(problem, chosen.reach).lengths)


def _sheet_nodes(sheets: SheetGeometry) -> float:
    """Return the total wave numbers of all sheets."""
    return sheets.n_sheets * float(np.prod(sheets.lengths.astype(float)))


def far_box(problem: MapProblem, parameters: MeshParameters) -> Box:
    """Return the box for the mesh of the far part: all atoms and points, and with sheets also their nodes."""
    margin = parameters.near.spacing * (parameters.window.nodes / 2) if parameters.has_sheets else 0.0
    low, high = problem.box
    return low - margin, high + margin


def _near_pairs(problem: MapProblem, cutoff: float) -> float:
    """Estimate the number of pairs of points and atoms within the cutoff."""
    in_reach = 4 / 3 * np.pi * cutoff**3 / float(np.prod(problem.grid.spacing))
    return float(min(in_reach, len(problem.grid)) * problem.n_near)


def near_problem(problem: MapProblem, split: Split) -> MapProblem:
    """Return the problem with only the near part."""
    near = split.near_polynomials(preset_for(problem.accuracy).near_degree)
    return replace(problem, model=replace(problem.model, cutoff=split.cutoff), near=near)
