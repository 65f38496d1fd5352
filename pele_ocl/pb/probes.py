"""Solvent probes that touch the molecule; follows `reference.pb.probe_points`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ..atoms import Floats
from ..pb_model import SMALL, PBModel, PBSolute
from .cells import Cells
from .launching import LIST_GROUP, Launching
from .scan import add_up, require_listable

if TYPE_CHECKING:
    from ..opencl.memory import Buffer

GROUP = 64  # work-group size
POINTS = {True: 256, False: 16}  # points per work-item, on CPUs and other devices, see cl/pb/probes.cl
LANES = {True: 4, False: 16}  # work-items per atom for circles, on CPUs and other devices


@lru_cache(maxsize=8)
def sphere_of_points(wanted: float) -> Floats:
    """Return points of a unit sphere in rings, (m, 3), where m is close to `wanted`."""
    n_rings = math.floor(math.sqrt(math.pi * wanted / 4) + 0.5)
    rings = [np.empty((0, 3))]
    for ring in range(n_rings):
        theta = math.pi / n_rings * ring
        sine, cosine = np.sin(theta), np.cos(theta)
        around = math.floor(sine * 2 * n_rings + 0.5)
        phi = 2 * np.pi / max(around, 1) * np.arange(around)
        rings.append(np.stack([np.cos(phi) * sine, np.sin(phi) * sine, np.full(around, cosine)], axis=1))
    return np.concatenate(rings)


@dataclass(frozen=True, eq=False, repr=False)
class Probes:
    """Probes on a device that touch at least one atom and overlap none: first those on spheres, then those on circles.

    count : total number; radius : A
    centres : (count) vectors of centre and radius, A; rows : (count) row of each probe's molecule
    cells : cell lists of all atoms, enlarged by the probe radius; None without probes
    """

    launching: Launching
    count: int
    radius: float
    centres: Buffer
    rows: Buffer
    cells: Cells | None = None

    def on_host(self) -> Floats:
        """Return the centres, (count, 3) A."""
        queue, wide = self.launching.queue, self.launching.wide
        values = queue.download(self.centres, 4 * max(1, self.count), wide).reshape(-1, 4)
        return values[: self.count, :3].astype(np.float64)


def points_wanted(solute: PBSolute, model: PBModel) -> int:
    """Return the number of points per sphere that gives the requested density on the largest sphere."""
    reach = float(solute.radii.max()) + max(model.probe, model.ion_radius) + 0.5
    return math.ceil(4 * math.pi * reach**2 * model.density)


def probe_points(launching: Launching, solute: PBSolute, model: PBModel) -> Probes:
    """Find the probes that touch an atom and overlap none; for the "cuts" surfaces also those that touch two atoms."""
    return probes_of_rows(launching, [solute], model)


def probes_of_rows(launching: Launching, solutes: Sequence[PBSolute], model: PBModel) -> Probes:
    """Find the probes of several molecules; points_wanted must be the same for all."""
    queue, rows = launching.queue, len(solutes)
    if model.probe < SMALL or model.has_splines or model.is_uniform:
        return Probes(launching, 0, model.probe, launching.vectors(np.zeros((1, 4))), queue.zeros(1, np.int32))
    wanted = points_wanted(solutes[0], model)
    sphere = sphere_of_points(wanted)
    points, chunks = len(sphere), -(-len(sphere) // POINTS[launching.is_cpu])
    cells = Cells.of(launching, [(each.positions, each.radii + model.probe) for each in solutes])
    count, most = cells.count, max(cells.counts)
    has_points = queue.send(np.concatenate([each.radii for each in solutes]) >= SMALL, np.uint8)
    atoms = _with_neighbours(launching, cells)
    exposed, counts = queue.empty(count * points, np.uint8), queue.empty(count * chunks, np.int32)
    common: dict[str, Any] = {
        "n_points": points, "n_chunks": chunks, **atoms, "exposed": exposed,
        "sphere": launching.large(("sphere", wanted), lambda: launching.vectors(sphere)),
    }  # fmt: skip

    def over(kernel: str, **values: Any) -> None:
        group = 1 if launching.is_cpu else GROUP
        launching.prepare("pb/probes.cl", kernel, (chunks, most, rows), (group, 1), {}, **common, **values)()

    over("find_exposed", has_points=has_points, counts=counts)
    starts, found = add_up(launching, counts, count * chunks, "probes")
    has_circles = model.way == "cuts" and most > 1
    circles = _Circles.of(launching, cells.counts, atoms, has_points, model) if has_circles else None
    total = found + (circles.count if circles else 0)
    require_listable(total, "probes")
    centres, of_rows = queue.empty(4 * max(1, total), launching.wide), queue.empty(max(1, total), np.int32)
    probes = {"probes": centres, "rows_of_probes": of_rows}
    over("list_exposed", starts=starts, probe=model.probe, **probes)
    if circles:
        circles.write(found, probes)
    return Probes(launching, total, model.probe, centres, of_rows, cells)


def _with_neighbours(launching: Launching, cells: Cells) -> dict[str, Any]:
    """List the neighbours of each atom, whose spheres intersect its own; returns arguments of kernels."""
    counts = launching.queue.empty(cells.count, np.int32)

    def over(kernel: str, **values: Any) -> None:
        launching.prepare(
            "pb/probes.cl", kernel, (max(cells.counts), 1, len(cells.counts)), (LIST_GROUP,), {}, **cells.arguments,
            **values,
        )()  # fmt: skip

    over("count_neighbours", counts=counts)
    starts, length = add_up(launching, counts, cells.count, "neighbours of atoms")
    neighbours = launching.queue.empty(max(1, length), np.int32)
    over("list_neighbours", neighbour_starts=starts, neighbours=neighbours)
    return {
        "first_atoms": cells.arguments["first_spheres"], "atoms": cells.spheres, "neighbour_starts": starts,
        "neighbours": neighbours,
    }  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Circles:
    """Probes that touch two atoms, on circles. count : total number; write : writes them, starting at an index"""

    count: int
    write: Callable[[int, dict[str, Buffer]], None]

    @classmethod
    def of(
        cls, launching: Launching, of_rows: Sequence[int], atoms: dict[str, Any], has_points: Buffer, model: PBModel
    ) -> _Circles:
        """Count the probes. Neighbours on a circle are at most as far apart as points with the model's density.

        of_rows : number of atoms in each row; atoms : from _with_neighbours
        """
        lanes, n_counts = LANES[launching.is_cpu], sum(of_rows) * LANES[launching.is_cpu]
        counts = launching.queue.empty(n_counts, np.int32)

        def over(kernel: str, **values: Any) -> None:
            group = (1, 1) if launching.is_cpu else (lanes, GROUP // lanes)
            launching.prepare(
                "pb/probes.cl", kernel, (lanes, max(of_rows), len(of_rows)), group, {}, n_lanes=lanes,
                **atoms, has_points=has_points, step=model.density**-0.5, probe=model.probe, **values,
            )()  # fmt: skip

        over("count_circle_points", counts=counts)
        starts, count = add_up(launching, counts, n_counts, "probes")
        return cls(count, lambda first, probes: over("list_circle_points", starts=starts, first=first, **probes))
