"""The launches of one evaluation, in order; nothing comes back to the host between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms
from ..errors import KernelBuildError
from ..solvent.tiled import series_macros
from ..solvent_model import SolventModel
from ..tiles import Tiles
from .layout import Layout
from .tables import Fixed, Tables

if TYPE_CHECKING:
    from ..opencl.kernels import KeptLaunch, Run

PAIR_SUMS = 7  # columns of cl/energy_sums.clh
N_TERMS = 5
LOCAL_REALS = 16  # of local memory that an atom takes at most in `rows`

# Kernels over pairs: file and kernel of each quantity, for each variant.
KERNELS = {
    ("born", "rows"): ("energy_born_rows.cl", "born_rows"),
    ("born", "squares"): ("solvent_tiled.cl", "born_sums"),
    ("born", "blocks"): ("solvent_blocks.cl", "born_sums_blocks"),
    ("pair", "rows"): ("energy_pair_rows.cl", "pair_rows"),
    ("pair", "blocks"): ("energy_pair_blocks.cl", "pair_blocks"),
    ("pair", "squares"): ("energy_pair_squares.cl", "pair_squares"),
    ("chain", "squares"): ("energy_chain_squares.cl", "chain_squares"),
    ("chain", "rows"): ("energy_chain_rows.cl", "chain_rows"),
    ("chain", "blocks"): ("energy_chain_blocks.cl", "chain_blocks"),
}


@dataclass(frozen=True)
class Options:
    """What the kernels are built for.

    gradient : whether it is wanted; chain : whether Born radii follow the positions in it
    per_atom : whether energies of single atoms are wanted
    cutoff : of the pair terms, A; None for all pairs
    one_four : what becomes of 1-4 pairs, "scale" or "exclude"
    """

    gradient: bool
    chain: bool
    per_atom: bool
    cutoff: float | None
    one_four: Literal["scale", "exclude"]


class Passes:
    """The kernels of a variant with their buffers, for up to `batch` conformations at a time."""

    def __init__(
        self, run: Run, variant: str, atoms: Atoms, tiles: Tiles, layout: Layout, options: Options, model: SolventModel,
        fixed: Fixed, most: int,
    ) -> None:  # fmt: skip
        """Buffers for up to `most` conformations, or as many as are computed at a time."""
        self.run, self.variant, self.tiles, self.layout, self.options = run, variant, tiles, layout, options
        self.born_parts, self.pair_parts = layout.sums(variant, len(tiles))
        self.n_energies = len(atoms) if options.per_atom else len(tiles)
        sizes = self._sizes(len(atoms))
        self.n_results = sizes["results"]
        most_in_buffers = run.device.largest_buffer // (max(sizes.values()) * run.dtype.itemsize)
        self.most_at_once = max(1, min(layout.batch(sum(sizes.values()) * run.dtype.itemsize), most_in_buffers))
        self.batch = min(most, self.most_at_once)
        self.tables = Tables.of(run, atoms, tiles, model, options.one_four, variant, layout.row)
        self.buffers = {name: run.empty(self.batch * size) for name, size in sizes.items()}
        self.place_type = np.dtype(np.int32 if run.precision == "float32" else np.float64)
        self.buffers["positions"] = run.empty(self.batch * 3 * len(atoms), self.place_type)
        self.launches = [
            self._place(len(atoms), fixed),
            *((self._born_rows(model),) if variant == "rows" else (self._born_sums(), self._atom_terms(model))),
            self._pairs(atoms, model),
            *(self._chain() if options.chain else ()),
            self._finish(len(atoms)),
        ]

    def start(self, run: Run, positions: NDArray[Any], results: NDArray[Any]) -> tuple[Any, Any]:
        """Have the device read encoded positions, of shape (m, 3 n), make all passes, and fill results (m, n_results).

        Returns events to keep; when the last one has come all is done.
        """
        read = run.start_write(self.buffers["positions"], positions)
        run.launch_kept(self.launches, len(positions))
        return read, run.start_read(results, self.buffers["results"])

    def taken_apart(self, results: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
        """Energies (m, n_energies, N_TERMS), Born radii (m, n) and gradients (m, n, 3) in the results."""
        m, first = len(results), N_TERMS * self.n_energies
        n = (self.n_results - first) // (4 if self.options.gradient else 1)
        gradients = results[:, first + n :].reshape(m, n, 3) if self.options.gradient else None
        return results[:, :first].reshape(m, -1, N_TERMS), results[:, first : first + n], gradients

    def _sizes(self, n_atoms: int) -> dict[str, int]:
        """Reals in each buffer, for one conformation."""
        options, places, boxes = self.options, self.tiles.n_places, len(self.tiles)
        has_recoil = self.variant == "squares" and options.gradient
        return {
            "spheres": 4 * places, "points": 4 * places, "x": places, "y": places, "z": places, "series": 8 * places,
            "origins": 4 * boxes, "extents": 4 * boxes, "born_sums": self.born_parts * places, "traits": 4 * places,
            "born": places, "largest_born": boxes, "radius_slopes": places, "energy_slopes": places,
            "atom_energies": 2 * places, "pair_sums": PAIR_SUMS * self.pair_parts * places, "weights": places,
            "recoil": self.layout.recoil(boxes) * has_recoil,
            "results": N_TERMS * self.n_energies + n_atoms * (4 if options.gradient else 1),
        }  # fmt: skip

    def _of(self, *names: str) -> list[Any]:
        return [self.buffers[name] for name in names]

    def _each_place(self, file: str, name: str, *args: Any, shares: int = 1, **defines: int) -> KeptLaunch:
        """A kernel of a work-group a tile, of so many work-items a place."""
        tile = self.layout.tile
        shape, group = (self.tiles.n_places, shares), (tile, shares)
        return self.run.keep(file, name, shape, group, np.int32(len(self.tiles)), *args, TILE=tile, **defines)

    def _sum_at_places(self, file: str, name: str, *args: Any, **defines: int) -> KeptLaunch:
        """A kernel that adds up parts for each place."""
        shares = self.layout.shares if self.variant == "squares" else 1
        return self._each_place(file, name, *args, shares=shares, SHARES=shares, **defines)

    def _over_pairs(self, quantity: str, variant: str, *args: Any, **defines: int) -> KeptLaunch:
        """A pass over pairs."""
        layout, n_tiles = self.layout, len(self.tiles)
        if variant == "rows":
            return self._over_rows(quantity, *args, **defines)
        if variant == "blocks":
            group, shape, share = 1, (self.born_parts, 1), [np.int32(self.born_parts)]
        else:
            n_chunks, per_chunk = layout.chunks(n_tiles) if quantity == "born" else layout.step_chunks(n_tiles)
            group, shape, share = layout.tile, (layout.rows(n_tiles) * layout.tile, n_chunks), [np.int32(per_chunk)]
            defines["ROW"] = layout.row
        file, name = KERNELS[quantity, variant]
        return self.run.keep(
            file, name, shape, (group, 1), np.int32(n_tiles), *share, *args, width=layout.width, TILE=layout.tile,
            **defines,
        )  # fmt: skip

    def _over_rows(self, quantity: str, *args: Any, **defines: int) -> KeptLaunch:
        """A pass row by row, in groups as large as the device allows the kernel."""
        layout, (file, name) = self.layout, KERNELS[quantity, "rows"]
        device, items, parts = self.run.device, layout.tile // layout.width, layout.parts_of_rows
        local_bytes = layout.tile * LOCAL_REALS * self.run.dtype.itemsize
        while parts > 1 and (
            parts * local_bytes > device.handle.local_mem_size or parts * items > device.largest_group
        ):
            parts //= 2
        while True:
            shape = len(self.tiles) * items * parts, 1
            try:
                kept = self.run.keep(
                    file, name, shape, (items * parts, 1), np.int32(len(self.tiles)), *args, width=layout.width,
                    TILE=layout.tile, PARTS=parts, **defines,
                )  # fmt: skip
                if parts == 1 or kept.group[0] == items * parts:
                    return kept
            except KernelBuildError:  # how some compilers say that the group is too large
                if parts == 1:
                    raise
            parts //= 2

    def _recoil(self) -> tuple[list[Any], dict[str, int]]:
        """The buffer of `squares` as an argument, where there is one, and the macros that go with it."""
        if self.variant == "squares" and self.options.gradient:
            return [self.buffers["recoil"]], {"RECOIL": 1, "ROW": self.layout.row}
        return [], {"RECOIL": 0}

    def _place(self, n_atoms: int, fixed: Fixed) -> KeptLaunch:
        tables = self.tables
        return self._each_place(
            "energy_place.cl", "place_tiles", np.int32(n_atoms), self.run.dtype.type(fixed.step), fixed.origin_step,
            self.buffers["positions"], tables.order, tables.largest_s, tables.scaled, tables.charges,
            tables.coefficients,
            *self._of("spheres", "points", "x", "y", "z", "series", "origins", "extents"),
        )  # fmt: skip

    def _born_sums(self) -> KeptLaunch:
        tables, macros = self.tables, series_macros(self.run.precision)
        largest_rho = self.run.dtype.type(tables.largest_rho)
        places, boxes = self._of("spheres", "x", "y", "z"), [*self._of("origins", "extents"), tables.counts]
        series, sums = self._of("series", "born_sums")
        if self.variant == "blocks":
            return self._over_pairs(
                "born", "blocks", np.int32(0), np.int32(len(self.tiles)), largest_rho, *places, tables.scaled,
                tables.rho, series, tables.coefficient_columns, *boxes, sums, **macros,
            )  # fmt: skip
        return self._over_pairs("born", "squares", largest_rho, *places, tables.rho, series, *boxes, sums, **macros)

    def _solvent(self, model: SolventModel) -> tuple[Any, Any]:
        """The solvent's constants as the kernels of single atoms take them."""
        return self.run.vector4(model.alpha, model.beta, model.gamma, model.offset), self.run.vector4(
            model.solute_dielectric / model.solvent_dielectric, model.kappa, 4 * np.pi * model.surface_tension,
            model.probe_radius,
        )  # fmt: skip

    def _atom_tables(self) -> list[Any]:
        """What the kernels of single atoms read and write, in their order."""
        tables = self.tables
        return [
            tables.rho, tables.radii, tables.charges, tables.wells,
            *self._of("traits", "born", "largest_born", "radius_slopes", "energy_slopes", "atom_energies"),
        ]  # fmt: skip

    def _born_rows(self, model: SolventModel) -> KeptLaunch:
        return self._over_pairs(
            "born", "rows", self.run.dtype.type(self.tables.largest_rho), *self._solvent(model),
            *self._of("spheres", "x", "y", "z", "series", "origins", "extents"), self.tables.counts,
            *self._atom_tables(), **series_macros(self.run.precision),
        )  # fmt: skip

    def _atom_terms(self, model: SolventModel) -> KeptLaunch:
        return self._sum_at_places(
            "energy_radii.cl", "atom_terms", np.int32(self.born_parts), *self._solvent(model),
            self.buffers["born_sums"], *self._atom_tables(), RECOIL=0,
        )  # fmt: skip

    def _pairs(self, atoms: Atoms, model: SolventModel) -> KeptLaunch:
        tables, options = self.tables, self.options
        scales = {
            "outside": model.solute_dielectric / model.solvent_dielectric, "kappa": model.kappa,
            "coulomb_scale": atoms.one_four[0], "lj_scale": atoms.one_four[1],
            "cutoff2": 0.0 if options.cutoff is None else options.cutoff**2,
        }  # fmt: skip
        more = [self.buffers["recoil"]] if self.variant == "squares" else []
        slopes = self._of("radius_slopes", "energy_slopes", "weights") if self.variant == "rows" else []
        packed = np.array(tuple(scales.values()), dtype=[(name, self.run.dtype) for name in scales])
        defines = {"PER_ATOM": int(options.per_atom)} if self.variant == "blocks" else {}
        return self._over_pairs(
            "pair", self.variant, packed[()], *self._of("points", "traits", "x", "y", "z", "born"), tables.charges,
            tables.sigmas, tables.epsilons, *self._of("origins", "extents", "largest_born"), tables.counts,
            *tables.masks, *slopes, self.buffers["pair_sums"], *more,
            GRADIENT=int(options.gradient), SCREENED=int(model.kappa > 0),
            GEOMETRIC=int(atoms.combining == "geometric"), CUTOFF=int(options.cutoff is not None), **defines,
        )  # fmt: skip

    def _weights(self) -> KeptLaunch:
        tables, (recoil, defines) = self.tables, self._recoil()
        return self._sum_at_places(
            "energy_radii.cl", "chain_weights", np.int32(self.pair_parts),
            *self._of("pair_sums", "born", "radius_slopes", "energy_slopes"), tables.counts, *recoil,
            self.buffers["weights"], **defines,
        )  # fmt: skip

    def _chain(self) -> list[KeptLaunch]:
        tables, (recoil, _) = self.tables, self._recoil()
        chain = self._over_pairs(
            "chain", self.variant, self.run.dtype.type(tables.largest_rho),
            *self._of("spheres", "x", "y", "z", "weights"), tables.scaled, tables.rho, tables.slopes,
            tables.slope_columns, *self._of("origins", "extents"), tables.counts, self.buffers["pair_sums"], *recoil,
            **series_macros(self.run.precision),
        )  # fmt: skip
        return [chain] if self.variant == "rows" else [self._weights(), chain]

    def _finish(self, n_atoms: int) -> KeptLaunch:
        options, tables, (recoil, defines) = self.options, self.tables, self._recoil()
        return self._sum_at_places(
            "energy_finish.cl", "finish", np.int32(n_atoms), np.int32(self.pair_parts),
            *self._of("pair_sums", "atom_energies", "born"), tables.order, tables.counts, *recoil,
            self.buffers["results"], GRADIENT=int(options.gradient), PER_ATOM=int(options.per_atom), **defines,
        )  # fmt: skip
