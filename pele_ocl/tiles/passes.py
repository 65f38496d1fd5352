"""Passes over tiles, which begin by placing the positions of each conformation in the tiles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..atoms import Atoms
from ..gb_models.solvent_model import SolventModel
from ..plan.conformations import Encoding
from ..plan.passes import Passes
from .tables import SphereTables, series_macros
from .tiles import Tiles

if TYPE_CHECKING:
    from ..opencl.binding import Array, Binder, Launch
    from ..opencl.kernel import Arguments


PLACED = ("spheres", "points", "x", "y", "z", "series", "origins", "extents")  # buffers filled by placing


def place_arguments(encoding: Encoding, spheres: SphereTables, buffers: Mapping[str, Array]) -> Arguments:
    """PLACE_PARAMETERS of cl/common/place.clh."""
    return dict(
        origin_step=encoding.origin_step, order=spheres.order, largest_s=spheres.largest_s, s=spheres.scaled,
        charges=spheres.charges, coefficients=spheres.coefficients, **{name: buffers[name] for name in PLACED},
    )  # fmt: skip


class TiledPasses(Passes):
    """Passes that begin with `place_tiles`; cl/common/place.clh describes the buffers that it fills.

    spheres : SphereTables of the molecule
    """

    def __init__(
        self, queue: Binder, atoms: Atoms, tiles: Tiles, encoding: Encoding, model: SolventModel, spheres: SphereTables
    ) -> None:
        super().__init__(queue, encoding, atoms)
        self.tiles, self.model, self.spheres = tiles, model, spheres

    def allocate(
        self, sizes: Mapping[str, int], most: int, types: Mapping[str, np.dtype[Any]] | None = None
    ) -> None:  # fmt: skip
        """Allocate the buffers of Passes, and those of placed atoms."""
        slots, boxes = self.tiles.n_slots, len(self.tiles)
        placed = {
            "spheres": 4 * slots, "points": 4 * slots, "x": slots, "y": slots, "z": slots, "series": 8 * slots,
            "origins": 4 * boxes, "extents": 4 * boxes,
        }  # fmt: skip
        super().allocate({**placed, **sizes}, most, types)

    def place(self) -> Launch:
        """Bind the launch that places positions in the tiles."""
        arguments = dict(n_atoms=len(self.atoms), step=self.encoding.step, positions=self.buffers["positions"])
        return self.each_slot(
            "common/place.cl", "place_tiles", {**arguments, **self.place_arguments()}, **self.encoding.macros
        )  # fmt: skip

    def place_arguments(self) -> Arguments:
        """PLACE_PARAMETERS of cl/common/place.clh."""
        return place_arguments(self.encoding, self.spheres, self.buffers)

    def each_slot(
        self, file: str, name: str, arguments: Arguments, shares: int = 1, **defines: int
    ) -> Launch:  # fmt: skip
        """Bind a kernel with one work-group per tile and `shares` work-items per slot. arguments : all but n_tiles"""
        tile = self.tiles.size
        shape, group = (self.tiles.n_slots, shares), (tile, shares)
        return self.queue.bind(
            file, name, shape, group, {"n_tiles": len(self.tiles), **arguments}, TILE=tile, **defines
        )

    @property
    def reaches(self) -> Arguments:
        """Reaches of the spheres, and NECK_PARAMETERS of cl/physics/neck.clh if the model has necks."""
        necks = self.spheres.necks
        return dict(reaches=self.spheres.reaches, **(necks.arguments if necks else {}))

    @property
    def integral_macros(self) -> dict[str, int]:
        """Build definitions of kernels that compute Born integrals or their derivatives."""
        return series_macros(self.queue.precision) | self.model.integral_definitions

    @property
    def gb_macros(self) -> dict[str, int]:
        """Build definitions of kernels that compute Born radii or their derivatives."""
        return self.model.radius_definitions

    def solvent_constants(self) -> Arguments:
        """Arguments RADIUS_PARAMETER and `solvent` of kernels over single atoms, cl/energy/terms.clh."""
        model, vector4 = self.model, self.queue.vector4
        return dict(
            radius_constants=self.spheres.constants or vector4(*model.radius_constants),
            solvent=vector4(model.outside, model.kappa, 4 * np.pi * model.ace_tension, model.probe_radius),
        )
