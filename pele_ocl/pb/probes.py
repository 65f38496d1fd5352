"""Probes that touch the molecule, by the rules of `reference.pb.probe_points`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..atoms import Floats
from ..pb_model import SMALL, PBModel, PBSolute
from .launching import Launching

MOST_CELLS = 1 << 24


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


def probe_points(launching: Launching, solute: PBSolute, model: PBModel) -> Floats:
    """Centres of probes that touch an atom and overlap none, (m, 3) A, in the order of the atoms."""
    if model.probe < SMALL or model.surface == "spl2" or model.is_uniform:
        return np.empty((0, 3))
    run = launching.run
    reach = solute.radii.max() + max(model.probe, model.ion_radius) + 0.5
    sphere = sphere_of_points(math.ceil(4 * math.pi * reach**2 * model.density))
    radii = solute.radii + model.probe
    edge = float(radii.max()) + 1e-6
    while True:
        corner = solute.positions.min(axis=0) - 2 * edge
        cell = np.floor((solute.positions - corner) / edge).astype(np.int64)
        cells = cell.max(axis=0) + 3
        if float(np.prod(cells.astype(float))) <= MOST_CELLS:
            break
        edge *= 2  # atoms far apart
    number = (cell[:, 2] * cells[1] + cell[:, 1]) * cells[0] + cell[:, 0]
    order = np.argsort(number, kind="stable")
    starts = np.searchsorted(number[order], np.arange(int(cells.prod()) + 1))
    atoms = launching.vectors(np.column_stack([solute.positions, radii]))
    buffers: dict[str, Any] = {
        "atoms": atoms, "sphere": launching.vectors(sphere), "starts": run.upload(starts, np.int32),
        "members": run.upload(order, np.int32),
    }  # fmt: skip
    exposed = run.empty(len(radii) * len(sphere), np.uint8)
    launching.prepare(
        "pb/probes.cl", "find_exposed", (len(sphere), len(radii)), (64, 1), {}, **buffers, n_atoms=len(radii),
        n_points=len(sphere), cells=run.int4(*cells.tolist()), corner_x=corner[0], corner_y=corner[1],
        corner_z=corner[2], edge=edge, exposed=exposed,
    )()  # fmt: skip
    flags = run.download(exposed, len(radii) * len(sphere), np.uint8).reshape(len(radii), -1)
    flags[solute.radii < SMALL] = 0
    atom, point = np.nonzero(flags)
    found: Floats = radii[atom][:, None] * sphere[point] + solute.positions[atom]
    return found
