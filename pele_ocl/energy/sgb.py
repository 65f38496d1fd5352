"""Born radii from surface integrals, and the resulting energies of single atoms; docs/theory/sgb.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..gb_models.surface import POINTS, WORDS, sgb_figures, unit_points
from ..pairs.dielectric import inverse_dielectrics
from ..tiles.passes import TiledPasses
from ..tiles.tables import scaled_charges

if TYPE_CHECKING:
    from ..opencl.binding import Launch

CENTRES = 64  # atoms per work-group on GPUs; on CPUs one work-group has all atoms
MOST_PARTS = 32  # parts of the sum over spheres
WORK_ITEMS = 1 << 16  # per conformation, to fill a GPU
PRODUCTS = 56  # moments per atom in cl/energy/sgb/moments.clh; only in float32


class SurfaceRadii:
    """Launches of exposed points, Born sums and energies of single atoms for one molecule."""

    types: ClassVar[dict[str, np.dtype[Any]]] = {"exposed": np.dtype(np.int32)}  # of integer buffers

    def __init__(self, n_slots: int, precision: str, names: Sequence[str], width: int) -> None:
        """Divide the spheres into parts. n_slots : of the tiles; names : of the terms; width : of vectors"""
        self._names, self._width = names, width
        self.n_slots, self.n_moments = n_slots, PRODUCTS * n_slots if precision == "float32" else 1
        most = max(1, min(MOST_PARTS, WORK_ITEMS // n_slots))
        self.n_spheres = -(-n_slots // most)
        self.n_parts = -(-n_slots // self.n_spheres)

    def sizes(self, sums: str) -> dict[str, int]:
        """Return the reals per conformation in each buffer. sums : name of the buffer of Born sums"""
        return {
            sums: self.n_parts * self.n_slots, "exposed": WORDS * self.n_slots, "areas": self.n_slots,
            "moments": self.n_moments,
        }  # fmt: skip

    def launches(self, passes: TiledPasses, sums: str) -> list[Launch]:
        """Bind the launches that write Born sums (n_conformations, n_parts, n_slots) to the buffer `sums`."""
        queue, tiles, model = passes.queue, passes.tiles, passes.model
        figures = np.column_stack([tiles.by_slot(column) for column in sgb_figures(passes.atoms, model.gb).T])
        self._parameters = queue.upload(figures)
        common = dict(
            n_tiles=len(tiles), parameters=self._parameters, **passes.named("points", "origins", "exposed", "moments")
        )
        units, on_cpu = unit_points(), queue.device.kind == "CPU"
        items, centres = (1, self.n_slots) if on_cpu else (CENTRES, CENTRES)
        macros = {"TILE": tiles.size, "WORDS": WORDS, "ITEMS": items, "width": self._width}
        has_areas = "nonpolar" in self._names
        bare, reached = figures[:, :2].max(axis=0).tolist()
        return [
            queue.bind(
                "energy/sgb/points.cl", "exposed_points", (self.n_slots * items, 1), (items, 1),
                dict(
                    n_kinds=2 if has_areas else 1, probe=model.probe_radius, largest_bare=bare, largest_reached=reached,
                    columns=queue.upload(units.T), **passes.named("extents", "areas"), **common,
                ),
                **macros,
            ),
            queue.bind(
                "energy/sgb/integral.cl", "surface_integrals", (-(-self.n_slots // centres) * items, self.n_parts),
                (items, 1),
                dict(
                    n_centres=centres, n_parts=self.n_parts, n_spheres=self.n_spheres, sums=passes.buffers[sums],
                    units=queue.upload(np.column_stack([units, np.zeros(POINTS)])), **passes.named("x", "y", "z"),
                    **common,
                ),
                cost=self._cost, **macros,
            ),
        ]  # fmt: skip

    @property
    def _cost(self) -> float:
        """Number of pairs of an atom and an exposed point; about a sixth of the points are exposed."""
        return float(self.n_slots) ** 2 * POINTS / 6

    def single(self, passes: TiledPasses) -> Launch:
        """Bind the launch that corrects the energies of single atoms."""
        queue, tiles, model, names = passes.queue, passes.tiles, passes.model, self._names
        return passes.each_slot(
            "energy/sgb/single.cl", "sgb_single",
            dict(
                has_self=int("gb_self" in names), has_nonpolar=int("nonpolar" in names), outside=model.outside,
                kappa=model.kappa, parameters=self._parameters,
                charges=queue.upload(tiles.by_slot(scaled_charges(passes.atoms, model, queue.precision))),
                inverses=queue.upload(tiles.by_slot(inverse_dielectrics(passes.atoms, model))),
                **passes.named("areas", "born", "singles"),
            ),
        )  # fmt: skip
