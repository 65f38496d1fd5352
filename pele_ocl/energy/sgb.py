"""Born radii from the integral over the surface, and the energies of single atoms with them; docs/theory/sgb.md."""

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

CENTRES = 64  # atoms of a work-group on GPUs; on CPUs one has them all
MOST_PARTS = 32  # in which spheres are added up
WORK_ITEMS = 1 << 16  # of one conformation, which fill a GPU
PRODUCTS = 56  # of cl/energy/sgb/moments.clh, in float32 alone


class SurfaceRadii:
    """Launches that find exposed points, Born sums and energies of single atoms, of the passes of one molecule."""

    types: ClassVar[dict[str, np.dtype[Any]]] = {"exposed": np.dtype(np.int32)}  # of buffers that hold no reals

    def __init__(self, n_slots: int, precision: str, names: Sequence[str], width: int) -> None:
        """Share the spheres out. n_slots : of the tiles; names : of the terms; width : of vectors"""
        self._names, self._width = names, width
        self.n_slots, self.n_moments = n_slots, PRODUCTS * n_slots if precision == "float32" else 1
        most = max(1, min(MOST_PARTS, WORK_ITEMS // n_slots))
        self.n_spheres = -(-n_slots // most)
        self.n_parts = -(-n_slots // self.n_spheres)

    def sizes(self, sums: str) -> dict[str, int]:
        """Count the reals in each buffer, for one conformation. sums : name of the buffer of Born sums"""
        return {
            sums: self.n_parts * self.n_slots, "exposed": WORDS * self.n_slots, "areas": self.n_slots,
            "moments": self.n_moments,
        }  # fmt: skip

    def launches(self, passes: TiledPasses, sums: str) -> list[Launch]:
        """Bind the launches that leave Born sums (n_conformations, n_parts, n_slots) in the passes' buffer `sums`."""
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
        """Number of pairs of an atom and a point, about a sixth of them exposed."""
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
