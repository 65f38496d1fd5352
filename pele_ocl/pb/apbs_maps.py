"""Maps written by APBS besides the potential: accessibility for solvent and ions, and functions of the potential."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..atoms import Floats
from ..grid import Grid, Map
from ..pb_model import SMALL, PBModel
from .launching import Launching
from .plan import PoissonBoltzmann
from .probes import probe_points
from .spheres import SpheresOfBlocks
from .surface import access_by_spheres, access_by_splines

if TYPE_CHECKING:
    from ..opencl.memory import Buffer

ACCESS, OF_POTENTIAL = {"smol", "sspl", "vdw", "ivdw"}, {"lap", "edens", "ndens", "qdens"}
_NEEDED = {"edens": {"smol"}, "ndens": {"ivdw"}, "qdens": {"ivdw"}}  # accessibility maps required
_MOST = 85  # largest exponent, as in the solver


def access_maps(plan: PoissonBoltzmann, names: Set[str]) -> dict[str, Map]:
    """Compute accessibility maps at the nodes of the finest grid.

    Values are 1 or 0; "sspl" also has values in between.

    names : "smol", for solvent probes; "vdw", outside of the atoms' spheres; "sspl", with a spline window at their
        surfaces; "ivdw", for ions, outside of spheres enlarged by the ion radius
    """
    from ..opencl.queue import Queue

    launching, grid = Launching(Queue(plan.device, "float32", profile=False)), plan.grids[-1]
    model, solute, found = plan.model, plan.solute, dict[str, Map]()
    taken = solute.radii > SMALL
    positions, radii = solute.positions[taken], solute.radii[taken]

    def keep(name: str, values: Floats) -> None:
        found[name] = Map.owning(grid, values, "", "access")

    def outside_of(spheres: SpheresOfBlocks) -> Floats:
        return _on_host(launching, grid, access_by_spheres(launching, [grid], spheres), np.dtype(np.uint8))

    for name, further in (("vdw", 0.0), ("ivdw", model.ion_radius)):
        if name in names:
            keep(name, outside_of(SpheresOfBlocks.of(launching, [grid], [(positions, radii + further)])))
    if "sspl" in names:
        atoms = SpheresOfBlocks.of(launching, [grid], [(positions, radii)], model.window, in_order=True)
        shares = access_by_splines(launching, [grid], atoms, replace(model, surface="spl2"))
        keep("sspl", _on_host(launching, grid, shares, launching.wide))
    if "smol" in names:
        # APBS uses the molecular surface here, regardless of the dielectric surface.
        rolled = replace(model, surface="mol", solute_dielectric=1, solvent_dielectric=2)
        atoms = SpheresOfBlocks.of(launching, [grid], [(positions, radii + model.probe)])
        probes = SpheresOfBlocks.of_probes(launching, [grid], probe_points(launching, solute, rolled), atoms)
        keep("smol", np.maximum(outside_of(atoms), 1 - outside_of(probes)))
    return found


def _on_host(launching: Launching, grid: Grid, accesses: Buffer, kind: np.dtype[np.generic]) -> Floats:
    from .colours import Colours

    colours = Colours(grid.shape)
    return colours.merge(launching.queue.download(accesses, colours.size, kind)).astype(np.float64)


def maps_of_potential(plan: PoissonBoltzmann, potential: Map, names: Set[str]) -> dict[str, Map]:
    """Compute maps derived from a potential on the finest grid, with APBS's formulas.

    names : "lap", a third of the Laplacian, kT/e/A^2, 0 at the border; "edens", dielectric constant times the squared
        gradient, (kT/e/A)^2; "ndens" and "qdens", concentration and charge density of the ions, mol/L and e mol/L
    """
    grid, model, found = potential.grid, plan.model, dict[str, Map]()
    u = np.asarray(potential.values, np.float64)
    access = access_maps(plan, set[str]().union(*(_NEEDED.get(name, set()) for name in names)))
    if "lap" in names:
        values, inner = np.zeros_like(u), (slice(1, -1),) * 3
        for axis in range(3):
            ahead, behind = np.roll(u, -1, 2 - axis), np.roll(u, 1, 2 - axis)
            values[inner] += ((ahead - 2 * u + behind) / (3 * grid.spacing[axis] ** 2))[inner]
        found["lap"] = Map.owning(grid, values, "kT/e/A^2", "")
    if "edens" in names:
        squares = sum(np.gradient(u, h, axis=2 - axis) ** 2 for axis, h in enumerate(grid.spacing))
        inside, outside = model.solute_dielectric, model.solvent_dielectric
        constants = inside + (outside - inside) * access["smol"].values
        found["edens"] = Map.owning(grid, constants * squares, "(kT/e/A)^2", "")
    for name, power in (("ndens", 0), ("qdens", 1)):
        if name in names:
            values = access["ivdw"].values * _concentrations(model, u, power)
            found[name] = Map.owning(grid, values, "mol/L", "")
    return found


def _concentrations(model: PBModel, u: Floats, power: int) -> Floats:
    """Sum ion concentrations at a potential, each multiplied by a power of the ion's charge, mol/L.

    For the linear equation, the exponential is expanded to second order.
    """
    total = np.zeros_like(u)
    for ion in model.ions:
        x = -ion.charge * u
        share = np.exp(np.clip(x, -_MOST, _MOST)) if model.is_nonlinear else 1 + x + 0.5 * x * x
        total += ion.concentration * ion.charge**power * share
    return total
