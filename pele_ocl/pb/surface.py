"""Dielectric coefficients of grid edges, and accessibility of nodes for ions."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats
from ..grid import Grid
from ..pb_model import SMALL, SURFACES, PBModel, PBProblem
from .colours import Colours
from .launching import Launching
from .probes import Probes
from .spheres import SpheresOfBlocks, place_of

if TYPE_CHECKING:
    from ..opencl.memory import Buffer

MOST_CODES = 256  # codes per axis, see cl/pb/operator.clh
PIECES = 64  # pieces per edge, see cl/pb/spheres.clh
_SOLVENTS = {"cuts": PIECES, "middles": 1, "smoothed": 99}  # codes of edges in solvent


@dataclass(eq=False)
class Coefficients:
    """Coefficients of grid edges: dielectric constant times the area of the face divided by the length of the edge.

    Arrays may contain several problems on grids of the same shape, each a row of `launching`.

    is_coded : whether edges are one-byte codes instead of wide numbers
    table : (3, MOST_CODES) coefficients by code
    edges : three arrays of codes or wide numbers; narrow : of codes or reals
    accesses : accessibility for ions; bytes or wide numbers
    solutes : (3,) coefficients of edges inside the molecule
    solvent_code : code of edges in solvent
    """

    launching: Launching
    colours: Colours
    is_coded: bool
    table: Floats
    edges: tuple[Buffer, ...]
    narrow: tuple[Buffer, ...]
    accesses: Buffer
    solutes: Floats
    has_salt: bool
    solvent_code: int = 0
    wide_table: Buffer = field(init=False)
    narrow_table: Buffer = field(init=False)

    def __post_init__(self) -> None:
        queue, table = self.launching.queue, self.table if self.is_coded else np.zeros(1)
        self.wide_table = queue.send(table.ravel(), self.launching.wide)
        self.narrow_table = queue.send(table.ravel())

    @property
    def macros(self) -> dict[str, int]:
        """Macros for kernels that use the coefficients."""
        return {"CODED": int(self.is_coded), "SALTED": int(self.has_salt)}

    @property
    def wide_arguments(self) -> dict[str, Any]:
        """Arguments for kernels in wide numbers."""
        x, y, z = self.edges
        return {"x_edges": x, "y_edges": y, "z_edges": z, "table": self.wide_table}

    @property
    def narrow_arguments(self) -> dict[str, Any]:
        """Arguments for kernels in reals."""
        x, y, z = self.narrow
        return {"x_edges": x, "y_edges": y, "z_edges": z, "table": self.narrow_table}

    def of_row(self, number: int) -> Coefficients:
        """Return the coefficients of one row."""
        own = copy(self)  # not `replace`, which would upload the tables
        own.launching, own.colours = self.launching.alone, self.colours.of_row(number)
        return own

    def _read(self, buffer: Buffer) -> NDArray[Any]:
        """Read an array of the first row, (nz, ny, nx)."""
        values = np.empty(self.colours.size, buffer.dtype)
        self.launching.queue.read(values, buffer, self.colours.first)
        return self.colours.merge(values)

    def on_host(self) -> Floats:
        """Return the coefficients, (3, nz, ny, nx)."""
        found = []
        for axis, buffer in enumerate(self.edges):
            merged = self._read(buffer)
            found.append(self.table[axis][merged] if self.is_coded else merged.astype(np.float64))
        return np.array(found)

    def codes_on_host(self) -> NDArray[Any]:
        """Return the codes, (3, nz, ny, nx)."""
        return np.array([self._read(each) for each in self.edges])

    def accesses_on_host(self) -> Floats:
        """Return the accessibility of nodes for ions, (nz, ny, nx), from 0 to 1."""
        if not self.has_salt:
            return np.zeros(self.colours.shape[::-1])
        return self._read(self.accesses).astype(np.float64)


def codes_table(model: PBModel) -> Floats:
    """Return the dielectric constants by code, (MOST_CODES,); unused codes have the solvent's."""
    codes = np.arange(MOST_CODES)
    if model.is_uniform:
        return np.full(MOST_CODES, model.solute_dielectric)
    share = codes / PIECES if model.way == "cuts" else codes.astype(float)
    if model.way == "smoothed":
        share = codes % 10 / np.maximum(codes // 10, 1)
    share = np.minimum(share, 1)
    constants: Floats = 1 / ((1 - share) / model.solute_dielectric + share / model.solvent_dielectric)
    return constants


def find_coefficients(launching: Launching, problem: PBProblem, grid: Grid, probes: Probes) -> Coefficients:
    """Compute the coefficients of a molecule on a grid. probes : from probe_points"""
    return coefficients_of_rows(launching, [problem], [grid], probes)


def coefficients_of_rows(
    launching: Launching, problems: Sequence[PBProblem], grids: Sequence[Grid], probes: Probes
) -> Coefficients:
    """Compute the coefficients of several molecules on grids in common launches.

    launching : with one row per problem; problems : with the same model; grids : with the same shape and spacing;
        probes : of all
    """
    model, queue, grid = problems[0].model, launching.queue, grids[0]
    factors, colours = float(np.prod(grid.spacing)) / grid.spacing**2, Colours(grid.shape).in_rows(launching.rows)
    size = launching.rows * colours.size
    is_coded = not model.has_splines or model.is_uniform
    accesses = _accesses(launching, problems, grids) if model.has_salt else queue.zeros(1, launching.wide)
    table = codes_table(model) * factors[:, None]
    if not is_coded:
        edges = _spline_edges(launching, problems, grids, factors)
        narrow = tuple(_narrowed(launching, each, size) for each in edges)
        return Coefficients(
            launching, colours, False, table, edges, narrow, accesses, model.solute_dielectric * factors, model.has_salt
        )
    codes = tuple(queue.zeros(size, np.uint8) for _ in range(3))
    if not model.is_uniform:
        _find_codes(launching, problems, grids, colours, probes, codes)
    if model.way == "smoothed" and not model.is_uniform:
        middles, codes = codes, tuple(queue.zeros(size, np.uint8) for _ in range(3))
        counted = {"grid": colours, **_by_axis("codes", middles), **_by_axis("counts", codes)}
        launching.over_nodes("pb/surface.cl", "count_middles", colours, {}, **counted)()
        launching.over_all_nodes("pb/surface.cl", "count_border_middles", colours, {}, **counted)()
    solutes = codes_table(model)[0] * factors
    solvent = 0 if model.is_uniform else _SOLVENTS[model.way]
    return Coefficients(launching, colours, True, table, codes, codes, accesses, solutes, model.has_salt, solvent)


def joined(launching: Launching, of_rows: Sequence[Coefficients]) -> Coefficients:
    """Concatenate the coefficients of single problems. launching : with one row per problem"""
    if len(of_rows) == 1:
        return of_rows[0]
    queue, first = launching.queue, of_rows[0]
    size = first.colours.size

    def concatenated(buffers: Sequence[Buffer]) -> Buffer:
        kind = buffers[0].dtype
        found, n_bytes = queue.empty(len(buffers) * size, kind), size * kind.itemsize
        for number, each in enumerate(buffers):  # which may be larger
            queue.copy_bytes(each, 0, found, number * n_bytes, n_bytes)
        return found

    edges = tuple(concatenated([each.edges[axis] for each in of_rows]) for axis in range(3))
    narrow = edges
    if not first.is_coded:
        narrow = tuple(concatenated([each.narrow[axis] for each in of_rows]) for axis in range(3))
    return replace(
        first, launching=launching, colours=first.colours.in_rows(len(of_rows)), edges=edges, narrow=narrow,
        accesses=concatenated([each.accesses for each in of_rows]) if first.has_salt else first.accesses,
    )  # fmt: skip


def _by_axis(name: str, buffers: tuple[Buffer, ...]) -> dict[str, Any]:
    return {f"{axis}_{name}": buffer for axis, buffer in zip("xyz", buffers, strict=True)}


def _middles(grids: Sequence[Grid]) -> Floats:
    """Return the midpoints of the first edges along x, y and z of each grid, (3 m, 3) A."""
    halves = 0.5 * np.diag(grids[0].spacing)
    return np.concatenate([grid.origin + halves for grid in grids])


def _is_strictly_inside(problem: PBProblem, grid: Grid) -> NDArray[np.bool_]:
    axes = problem.solute.axes
    inside = ((axes > grid.origin[:, None]) & (axes < grid.last[:, None])).all(axis=0)
    return np.asarray(inside & (problem.solute.radii > SMALL))


def _find_codes(
    launching: Launching, problems: Sequence[PBProblem], grids: Sequence[Grid], colours: Colours, probes: Probes,
    codes: tuple[Buffer, ...],
) -> None:  # fmt: skip
    """Compute the codes of edges from their midpoints, or from the number of their pieces in solvent."""
    model = problems[0].model
    cuts = model.way == "cuts"
    taken = [
        each.solute.radii > SMALL if cuts else _is_strictly_inside(each, grid)
        for each, grid in zip(problems, grids, strict=True)
    ]  # fmt: skip
    spheres = [
        (each.solute.positions[chosen], each.solute.radii[chosen] + model.probe)
        for each, chosen in zip(problems, taken, strict=True)
    ]  # fmt: skip
    cells = probes.cells if all(chosen.all() for chosen in taken) else None
    atoms = SpheresOfBlocks.of(launching, grids, spheres, cells=cells)
    covering = SpheresOfBlocks.of_probes(launching, grids, probes, atoms)
    over = launching.over_whole_blocks if launching.is_cpu and not cuts else launching.over_blocks
    place = place_of(launching, grids)
    if not cuts:
        place["origins"] = launching.vectors(_middles(grids))
    over(
        "pb/surface.cl", "cut_edges" if cuts else "mark_middles", colours, {}, grid=colours,
        **place, **atoms.arguments("atom"), **covering.arguments("probe"), **_by_axis("codes", codes),
    )()  # fmt: skip


def _windows(model: PBModel) -> Floats:
    return np.array([[model.window, model.window**2, model.window**3]])


def _spline_edges(
    launching: Launching, problems: Sequence[PBProblem], grids: Sequence[Grid], factors: Floats
) -> tuple[Buffer, ...]:
    model, queue, colours = problems[0].model, launching.queue, Colours(grids[0].shape).in_rows(launching.rows)
    spheres = []
    for each, grid in zip(problems, grids, strict=True):
        taken = _is_strictly_inside(each, grid)
        spheres.append((each.solute.positions[taken], each.solute.radii[taken]))
    atoms = SpheresOfBlocks.of(launching, grids, spheres, model.window, in_order=True)
    edges = tuple(queue.zeros(launching.rows * colours.size, launching.wide) for _ in range(3))
    constants = np.array([model.solute_dielectric, model.solvent_dielectric, *factors])
    launching.over_blocks(
        "pb/surface.cl", "spline_edges", colours, {}, grid=colours, **place_of(launching, grids),
        **atoms.arguments("atom"),
        degree=SURFACES[model.surface].degree, windows=launching.vectors(_windows(model)),
        constants=queue.send(constants, launching.wide), **_by_axis("edges", edges),
    )()  # fmt: skip
    return edges


def access_by_spheres(launching: Launching, grids: Sequence[Grid], spheres: SpheresOfBlocks) -> Buffer:
    """Mark the nodes outside of all spheres with 1, others with 0; bytes."""
    colours = Colours(grids[0].shape).in_rows(launching.rows)
    accesses = launching.queue.zeros(launching.rows * colours.size, np.uint8)
    launching.over_blocks(
        "pb/surface.cl", "mark_access", colours, {}, grid=colours, **place_of(launching, grids),
        **spheres.arguments("atom"), accesses=accesses,
    )()  # fmt: skip
    return accesses


def access_by_splines(launching: Launching, grids: Sequence[Grid], spheres: SpheresOfBlocks, model: PBModel) -> Buffer:
    """Compute the product of spline windows, from 0 inside to 1 outside of each sphere, at all nodes; wide numbers."""
    colours = Colours(grids[0].shape).in_rows(launching.rows)
    accesses = launching.queue.zeros(launching.rows * colours.size, launching.wide)
    launching.over_blocks(
        "pb/surface.cl", "spline_access", colours, {}, grid=colours, **place_of(launching, grids),
        **spheres.arguments("atom"), degree=SURFACES[model.surface].degree, windows=launching.vectors(_windows(model)),
        accesses=accesses,
    )()  # fmt: skip
    return accesses


def _accesses(launching: Launching, problems: Sequence[PBProblem], grids: Sequence[Grid]) -> Buffer:
    """Compute the accessibility of nodes for ions; the largest ion radius is used for all species."""
    model, spheres = problems[0].model, []
    for each, grid in zip(problems, grids, strict=True):
        solute = each.solute
        reach = solute.radii + model.ion_radius
        if model.has_splines:
            taken = _is_strictly_inside(each, grid)
        else:
            origin, last = grid.origin[:, None], grid.last[:, None]
            near = (solute.axes >= origin - reach) & (solute.axes <= last + reach)
            taken = (solute.radii > SMALL) & near.all(axis=0)
        spheres.append((solute.positions[taken], reach[taken]))
    if model.has_splines:
        atoms = SpheresOfBlocks.of(launching, grids, spheres, model.window, in_order=True)
        return access_by_splines(launching, grids, atoms, model)
    return access_by_spheres(launching, grids, SpheresOfBlocks.of(launching, grids, spheres))


def _narrowed(launching: Launching, wide: Buffer, size: int) -> Buffer:
    """Convert wide numbers to reals."""
    narrow = launching.queue.empty(size)
    launching.over_list("pb/narrow.cl", "narrow", size, {}, n=size, wide=wide, narrowed=narrow)()
    return narrow
