"""LCPO surfaces of a molecule in tiles: tables of the heavy atoms and the launch of their energies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..atoms import Atoms
from ..atoms.lcpo import lcpo_parameters
from ..common.errors import InputError
from ..gb_models.solvent_model import SolventModel
from ..plan.evaluator import Outputs
from .tiles import Tiles

if TYPE_CHECKING:
    from ..opencl.binding import Array, Binder, Launch
    from .passes import TiledPasses

NEIGHBOURS = 192  # largest number of neighbours of an atom; in folded proteins it is up to 70
TILES_AROUND = 256  # largest number of neighbouring tiles, listed once per tile on CPUs
FAR_AWAY = 1e4  # A, as in cl/common/surface.cl
ITEMS = 64  # per atom on GPUs


@dataclass(frozen=True, eq=False)
class SurfaceBuffers:
    """Buffers of the heavy atoms in the order of slots, described in cl/common/surface.cl."""

    n_heavy: int
    largest: Array
    starts: Array
    slots: Array
    atoms: Array
    radii: Array
    traits: Array

    @classmethod
    def of(cls, queue: Binder, atoms: Atoms, tiles: Tiles, model: SolventModel) -> SurfaceBuffers | None:
        """Upload the tables of a molecule; None if the model has another nonpolar term."""
        if model.surface != "lcpo":
            return None
        radii, *p = lcpo_parameters(atoms, model.lcpo_unknown, model.lcpo_rule).T
        reach = np.where(radii > 0, radii + model.probe_radius, 0.0)
        slots = np.flatnonzero(tiles.used & (radii[tiles.order] > 0))
        heavy = tiles.order[slots]
        p1, p2, p3, p4 = (model.surface_tension * values[heavy] for values in p)
        traits = np.zeros((tiles.n_slots, 4))
        bare = 4 * np.pi * p1 * reach[heavy] ** 2
        traits[slots] = np.stack([2 * np.pi * p2, 2 * np.pi * p3, 4 * np.pi**2 * p4, bare], axis=1)
        by_slot = np.full(tiles.n_slots, -FAR_AWAY)
        by_slot[slots] = reach[heavy]
        starts = np.searchsorted(slots, tiles.size * np.arange(len(tiles) + 1))
        return cls(
            len(heavy), queue.upload(tiles.largest(reach)), queue.upload(starts, np.int32),
            queue.upload(slots, np.int32), queue.upload(heavy, np.int32), queue.upload(by_slot), queue.upload(traits),
        )  # fmt: skip

    @property
    def sizes(self) -> dict[str, int]:
        """Reals per conformation in each buffer."""
        return {"pulls": 4 * self.n_heavy}

    def energies(self, passes: TiledPasses, gradient: bool) -> Launch:
        """Bind the launch that computes "pulls"; positions must be placed before."""
        queue, tiles = passes.queue, passes.tiles
        items, width = shape_for(queue)
        groups = len(tiles) if items == 1 else items * self.n_heavy
        arguments = dict(
            n_tiles=len(tiles), n_heavy=self.n_heavy, largest=self.largest, starts=self.starts, slots=self.slots,
            radii=self.radii, traits=self.traits, **passes.named("x", "y", "z", "origins", "extents", "pulls"),
        )  # fmt: skip
        return queue.bind(
            "common/surface.cl", "lcpo_energies", (groups, 1), (items, 1), arguments, width=width,
            TILE=tiles.size, GROUP=items, NEIGHBOURS=NEIGHBOURS, TILES_AROUND=TILES_AROUND, GRADIENT=int(gradient),
        )  # fmt: skip


def shape_for(queue: Binder) -> tuple[int, int]:
    """Work-items per atom, and reals in a vector."""
    return (1, queue.device.vector_width(queue.precision)) if queue.device.kind == "CPU" else (ITEMS, 1)


def check_surface(atoms: Atoms, model: SolventModel) -> None:
    """Raise InputError for atoms without parameters of the model's surface."""
    if model.surface == "lcpo" and not lcpo_parameters(atoms, model.lcpo_unknown, model.lcpo_rule).any():
        raise InputError("LCPO surfaces need heavy atoms, and there are none; choose the surface ace or none")


def crowding(atoms: Atoms, found: Outputs, k: int, model: SolventModel) -> InputError | None:
    """Return the error of a conformation with an atom that has too many LCPO neighbours, or None."""
    if model.surface != "lcpo":
        return None
    reach = lcpo_parameters(atoms, model.lcpo_unknown, model.lcpo_rule)[:, 0] + model.probe_radius
    reach[reach == model.probe_radius] = 0
    heavy = np.flatnonzero(reach)
    for i in heavy[found.bad_atoms(k)[heavy]].tolist():
        r2 = ((atoms.positions[heavy] - atoms.positions[i]) ** 2).sum(axis=1)
        count = int((r2 < (reach[heavy] + reach[i]) ** 2).sum()) - 1
        if count > NEIGHBOURS:
            return InputError(
                f"{atoms.describe(i)} has {count} neighbours, too many for an LCPO surface, which supports "
                f"up to {NEIGHBOURS}; check for overlapping molecules"
            )
    return None
