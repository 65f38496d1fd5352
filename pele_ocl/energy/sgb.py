"""Born radii from the integral over the surface, and the energies of single atoms with them; docs/theory/sgb.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..gb_models.surface import WORDS, sgb_figures, unit_points
from ..pairs.dielectric import inverse_dielectrics
from ..tiled.tables import scaled_charges

if TYPE_CHECKING:
    from ..opencl.launch import KeptLaunch
    from .passes import AnyPasses

CENTRES = 64  # atoms of a work-group on GPUs; on CPUs one has them all
MOST_PARTS = 32  # in which spheres are added up
WORK_ITEMS = 1 << 16  # of one conformation, which fill a GPU


class SurfaceRadii:
    """Launches that find exposed points, Born sums and energies of single atoms, of the passes of one molecule."""

    def __init__(self, n_slots: int) -> None:
        """n_slots : of the tiles"""
        self.n_slots = n_slots
        most = max(1, min(MOST_PARTS, WORK_ITEMS // n_slots))
        self.n_spheres = -(-n_slots // most)
        self.n_parts = -(-n_slots // self.n_spheres)

    def sizes(self, sums: str) -> dict[str, int]:
        """Reals in each buffer, for one conformation; sums : the name of the one of the Born sums."""
        return {sums: self.n_parts * self.n_slots, "exposed": WORDS * self.n_slots, "areas": self.n_slots}

    def launches(self, passes: AnyPasses, sums: str) -> list[KeptLaunch]:
        """The launches that leave the Born sums (n_conformations, n_parts, n_slots) in the passes' buffer `sums`."""
        run, tiles, model = passes.run, passes.tiles, passes.model
        figures = np.column_stack([tiles.by_slot(column) for column in sgb_figures(passes.atoms, model.gb).T])
        self._parameters = run.upload(figures)
        units = run.upload(np.column_stack([unit_points(), np.zeros(32 * WORDS)]))
        items, centres = (1, self.n_slots) if run.device.kind == "CPU" else (CENTRES, CENTRES)
        macros = {"TILE": tiles.size, "WORDS": WORDS}
        return [
            run.keep(
                "energy/sgb/points.cl", "exposed_points", (self.n_slots * WORDS, 1), (WORDS, 1), np.int32(len(tiles)),
                np.int32(1 if model.surface == "none" else 2), run.dtype.type(model.probe_radius),
                *passes.named("points", "origins"), self._parameters, units, *passes.named("exposed", "areas"), **macros,
            ),
            run.keep(
                "energy/sgb/integral.cl", "surface_integrals", (-(-self.n_slots // centres) * items, self.n_parts),
                (items, 1), *map(np.int32, (len(tiles), centres, self.n_parts, self.n_spheres)),
                *passes.named("points", "x", "y", "z", "origins"), self._parameters, units,
                *passes.named("exposed", sums), width=passes.layout.width, ITEMS=items, **macros,
            ),
        ]  # fmt: skip

    def single(self, passes: AnyPasses) -> KeptLaunch:
        """The launch that puts the energies of single atoms right."""
        run, tiles, model, names = passes.run, passes.tiles, passes.model, passes.contents.names
        inverses = inverse_dielectrics(passes.atoms, model)
        return passes.each_slot(
            "energy/sgb/single.cl", "sgb_single", np.int32("gb_self" in names), np.int32("nonpolar" in names),
            run.dtype.type(model.outside), run.dtype.type(model.kappa),
            run.upload(tiles.by_slot(scaled_charges(passes.atoms, model, run.precision))),
            run.upload(tiles.by_slot(inverses)), self._parameters, *passes.named("areas", "born", "singles"),
        )  # fmt: skip
