"""Probes that touch the molecule, by the rules of `reference.pb.probe_points`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..atoms import Floats
from ..pb_model import SMALL, PBModel, PBSolute
from .cells import Cells
from .launching import Launching

if TYPE_CHECKING:
    from ..opencl.memory import Buffer

POINTS = {True: 256, False: 16}  # of a sphere that a work-item does, on CPUs and else: cl/pb/probes.cl


def sphere_of_points(wanted: float) -> Floats:
    """Points of a unit sphere in rings, (m, 3); m is near `wanted`."""
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
    """Probes on a device that touch an atom and overlap none, in the order of the atoms.

    count : of all; radius : A; positions, radii : (n, 3) and (n,) A of the atoms, radii with the probe's
    centres : (count) vectors of centre and radius, A; starts : (n + 1) of each atom's among them
    """

    launching: Launching
    count: int
    radius: float
    positions: Floats
    radii: Floats
    centres: Buffer
    starts: Buffer

    def on_host(self) -> Floats:
        """Read the centres, (count, 3) A."""
        queue, wide = self.launching.queue, self.launching.wide
        values = queue.download(self.centres, 4 * max(1, self.count), wide).reshape(-1, 4)
        return values[: self.count, :3].astype(np.float64)


def probe_points(launching: Launching, solute: PBSolute, model: PBModel) -> Probes:
    """Find the probes that touch an atom and overlap none."""
    queue, count = launching.queue, len(solute.radii)
    radii = solute.radii + model.probe
    if model.probe < SMALL or model.has_splines or model.is_uniform:
        nothing = launching.vectors(np.zeros((1, 4)))
        return Probes(launching, 0, model.probe, solute.positions, radii, nothing, queue.zeros(count + 1, np.int32))
    reach = solute.radii.max() + max(model.probe, model.ion_radius) + 0.5
    sphere = sphere_of_points(math.ceil(4 * math.pi * reach**2 * model.density))
    cells, points = Cells.of(launching, solute.positions, radii), launching.vectors(sphere)
    exposed = queue.empty(count * len(sphere), np.uint8)
    group = 1 if launching.is_cpu else 64
    launching.prepare(
        "pb/probes.cl", "find_exposed", (-(-len(sphere) // POINTS[launching.is_cpu]), count), (group, 1), {},
        n_points=len(sphere), **cells.arguments, sphere=points, exposed=exposed,
    )()  # fmt: skip
    common: dict[str, Any] = {"n_atoms": count, "n_points": len(sphere), "exposed": exposed}
    counts, has_points = queue.empty(count, np.int32), queue.upload(solute.radii >= SMALL, np.uint8)
    launching.over_list("pb/probes.cl", "count_exposed", count, {}, **common, has_points=has_points, counts=counts)()
    ends = np.cumsum(queue.download(counts, count, np.int32), dtype=np.int64)
    starts = queue.upload(np.concatenate([[0], ends]), np.int32)
    centres = queue.empty(4 * max(1, int(ends[-1])), launching.wide)
    launching.over_list(
        "pb/probes.cl", "list_exposed", count, {}, **common, atoms=cells.spheres, sphere=points, starts=starts,
        probe=model.probe, probes=centres,
    )()  # fmt: skip
    return Probes(launching, int(ends[-1]), model.probe, solute.positions, radii, centres, starts)
