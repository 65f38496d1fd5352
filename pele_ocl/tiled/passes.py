"""Passes over tiles: the positions of each conformation are placed in the tiles first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ..atoms import Atoms
from ..plan.conformations import Encoding
from ..plan.passes import Passes
from ..solvent_model import SolventModel
from ..tiles import Tiles
from .series import series_macros
from .tables import SphereTables

if TYPE_CHECKING:
    from ..opencl.launch import Argument, KeptLaunch
    from ..opencl.run import Run


class TiledPasses(Passes):
    """Passes that begin with `place_tiles`; cl/common/place.clh says what is in the buffers that it fills.

    spheres : SphereTables of the molecule
    """

    def __init__(
        self, run: Run, atoms: Atoms, tiles: Tiles, encoding: Encoding, model: SolventModel, spheres: SphereTables
    ) -> None:
        super().__init__(run, encoding, len(atoms))
        self.atoms, self.tiles, self.model, self.spheres = atoms, tiles, model, spheres

    def allocate(self, sizes: Mapping[str, int], most: int) -> None:
        """As in Passes, with the buffers of placed atoms."""
        slots, boxes = self.tiles.n_slots, len(self.tiles)
        placed = {
            "spheres": 4 * slots, "points": 4 * slots, "x": slots, "y": slots, "z": slots, "series": 8 * slots,
            "origins": 4 * boxes, "extents": 4 * boxes,
        }  # fmt: skip
        super().allocate({**placed, **sizes}, most)

    def place(self) -> KeptLaunch:
        """The launch that brings positions to the tiles."""
        return self.each_slot(
            "common/place.cl", "place_tiles", np.int32(len(self.atoms)), self.run.dtype.type(self.encoding.step),
            self.buffers["positions"], *self.place_arguments(), **self.encoding.macros,
        )  # fmt: skip

    def place_arguments(self) -> list[Argument]:
        """PLACE_ARGUMENTS of cl/common/place.clh."""
        spheres = self.spheres
        return [
            self.encoding.origin_step, spheres.order, spheres.largest_s, spheres.scaled, spheres.charges,
            spheres.coefficients,
            *self.named("spheres", "points", "x", "y", "z", "series", "origins", "extents"),
        ]  # fmt: skip

    def each_slot(self, file: str, name: str, *args: Argument, shares: int = 1, **defines: int) -> KeptLaunch:
        """The launch of a kernel of a work-group a tile, of so many work-items a slot."""
        tile = self.tiles.size
        shape, group = (self.tiles.n_slots, shares), (tile, shares)
        return self.run.keep(file, name, shape, group, np.int32(len(self.tiles)), *args, TILE=tile, **defines)

    @property
    def reaches(self) -> list[Argument]:
        """How far spheres reach, and NECK_ARGUMENTS of cl/physics/neck.clh where the model has necks."""
        necks = self.spheres.necks
        return [self.spheres.reaches, *(necks.arguments if necks else ())]

    @property
    def integral_macros(self) -> dict[str, int]:
        """The build definitions of kernels that compute Born integrals or their slopes."""
        return series_macros(self.run.precision) | self.model.integral_definitions

    @property
    def gb_macros(self) -> dict[str, int]:
        """The build definitions of kernels that compute Born radii or their slopes."""
        return self.model.radius_definitions

    def solvent_constants(self) -> tuple[Argument, np.void]:
        """The solvent model as kernels of single atoms take it, cl/energy/terms.clh."""
        model, by_atom = self.model, self.spheres.constants
        return by_atom or self.run.vector4(*model.radius_constants), self.run.vector4(
            model.outside, model.kappa, 4 * np.pi * model.ace_tension, model.probe_radius
        )
