"""The launches of one evaluation, in order; nothing comes back to the host between them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms
from ..opencl.shared import N_TERMS, PAIR_MODEL, PAIR_SUMS
from ..solvent.tiled import series_macros
from ..solvent_model import SolventModel
from ..tiles import Tiles
from .layout import Layout
from .tables import Fixed, Tables

if TYPE_CHECKING:
    from ..opencl.kernels import KeptLaunch, Run


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


class Passes(ABC):
    """The kernels of a variant with their buffers, for up to `batch` conformations at a time."""

    variant: ClassVar[str]

    def __init__(
        self, run: Run, atoms: Atoms, tiles: Tiles, layout: Layout, options: Options, model: SolventModel, fixed: Fixed,
        most: int,
    ) -> None:  # fmt: skip
        """Buffers for up to `most` conformations, or as many as are computed at a time."""
        self.run, self.atoms, self.tiles, self.layout = run, atoms, tiles, layout
        self.options, self.model = options, model
        self.n_energies = len(atoms) if options.per_atom else len(tiles)
        sizes = self._common_sizes() | self._sizes()
        self.n_results = sizes["results"]
        most_in_buffers = run.device.largest_buffer // (max(sizes.values()) * run.dtype.itemsize)
        self.most_at_once = max(1, min(layout.batch(sum(sizes.values()) * run.dtype.itemsize), most_in_buffers))
        self.batch = min(most, self.most_at_once)
        self.tables = Tables.of(run, atoms, tiles, model, options.one_four, self.variant, layout.row)
        self.buffers = {name: run.empty(self.batch * size) for name, size in sizes.items()}
        self.place_type = np.dtype(np.int32 if run.precision == "float32" else np.float64)
        self.buffers["positions"] = run.empty(self.batch * 3 * len(atoms), self.place_type)
        self.launches = [
            self._place(fixed), *self._born(), *self._pairs(), *(self._chain() if options.chain else ()),
            *self._finish(),
        ]  # fmt: skip

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

    @abstractmethod
    def _sizes(self) -> dict[str, int]:
        """Reals in each buffer of the variant's own, for one conformation."""

    @abstractmethod
    def _born(self) -> list[KeptLaunch]:
        """Born radii, and energies of single atoms with their slopes."""

    @abstractmethod
    def _pairs(self) -> list[KeptLaunch]:
        """Energies of pairs with their slopes."""

    @abstractmethod
    def _chain(self) -> list[KeptLaunch]:
        """What Born radii add to the gradient."""

    @abstractmethod
    def _finish(self) -> list[KeptLaunch]:
        """Results in the order of the atoms, where the passes do not leave them so."""

    def _common_sizes(self) -> dict[str, int]:
        places, boxes, n = self.tiles.n_places, len(self.tiles), len(self.atoms)
        return {
            "spheres": 4 * places, "points": 4 * places, "x": places, "y": places, "z": places, "series": 8 * places,
            "origins": 4 * boxes, "extents": 4 * boxes, "traits": 4 * places, "born": places, "largest_born": boxes,
            "singles": 4 * places, "weights": places,
            "results": N_TERMS * self.n_energies + n * (4 if self.options.gradient else 1),
        }  # fmt: skip

    def _of(self, *names: str) -> list[Any]:
        return [self.buffers[name] for name in names]

    def _each_place(self, file: str, name: str, *args: Any, shares: int = 1, **defines: int) -> KeptLaunch:
        """A kernel of a work-group a tile, of so many work-items a place."""
        tile = self.layout.tile
        shape, group = (self.tiles.n_places, shares), (tile, shares)
        return self.run.keep(file, name, shape, group, np.int32(len(self.tiles)), *args, TILE=tile, **defines)

    def _place(self, fixed: Fixed) -> KeptLaunch:
        tables = self.tables
        return self._each_place(
            "energy/place.cl", "place_tiles", np.int32(len(self.atoms)), self.run.dtype.type(fixed.step),
            fixed.origin_step, self.buffers["positions"], tables.order, tables.largest_s, tables.scaled,
            tables.charges, tables.coefficients,
            *self._of("spheres", "points", "x", "y", "z", "series", "origins", "extents"),
        )  # fmt: skip

    def _atom_terms(self, n_parts: int, shares: int = 1) -> KeptLaunch:
        """Born radii and what goes with them, from parts of the Born integrals."""
        return self._each_place(
            "energy/radii.cl", "atom_terms", np.int32(n_parts), *self._solvent(), self.buffers["born_sums"],
            *self._atom_tables(), shares=shares, SHARES=shares, **self.model.radius_definitions,
        )  # fmt: skip

    @property
    def _largest_rho(self) -> Any:
        return self.run.dtype.type(self.tables.largest_rho)

    @property
    def _series(self) -> dict[str, int]:
        return series_macros(self.run.precision)

    def _solvent(self) -> tuple[Any, Any]:
        """The solvent's constants as the kernels of single atoms take them."""
        model = self.model
        return self.run.vector4(*model.radius_constants), self.run.vector4(
            model.solute_dielectric / model.solvent_dielectric, model.kappa, 4 * np.pi * model.surface_tension,
            model.probe_radius,
        )  # fmt: skip

    def _atom_tables(self) -> list[Any]:
        """ATOM_ARGUMENTS of cl/energy/terms.clh."""
        return [self.tables.parameters, *self._of("traits", "singles", "born", "largest_born")]

    def _pair_model(self) -> Any:
        """PairModel of cl/energy/pair.clh."""
        options, model = self.options, self.model
        return PAIR_MODEL.pack(
            self.run.precision,
            outside=model.solute_dielectric / model.solvent_dielectric,
            kappa=model.kappa,
            coulomb_scale=self.atoms.one_four[0],
            lj_scale=self.atoms.one_four[1],
            cutoff2=0.0 if options.cutoff is None else options.cutoff**2,
        )

    def _pair_tables(self) -> list[Any]:
        """PAIR_ARGUMENTS of cl/energy/pair.clh, and the masks."""
        tables = self.tables
        return [
            self._pair_model(), *self._of("points", "traits", "x", "y", "z", "born"), tables.charges, tables.sigmas,
            tables.epsilons, *self._of("origins", "extents", "largest_born"), tables.counts, *tables.masks,
        ]  # fmt: skip

    @property
    def _pair_macros(self) -> dict[str, int]:
        options = self.options
        return {
            "GRADIENT": int(options.gradient), "SCREENED": int(self.model.kappa > 0),
            "GEOMETRIC": int(self.atoms.combining == "geometric"), "CUTOFF": int(options.cutoff is not None),
        }  # fmt: skip

    def _chain_tables(self) -> list[Any]:
        """CHAIN_ARGUMENTS of cl/energy/chain.clh."""
        tables = self.tables
        return [
            self._largest_rho, *self._of("spheres", "x", "y", "z", "weights"), tables.scaled, tables.rho,
            tables.slopes, tables.slope_columns, *self._of("origins", "extents"), tables.counts,
        ]  # fmt: skip


class SumsOfPairs(Passes):
    """Passes that leave a column of sums at all places, in parts; cl/energy/sums.clh."""

    @property
    @abstractmethod
    def n_parts(self) -> int:
        """Parts in which the sums come."""

    def _sizes(self) -> dict[str, int]:
        return {"pair_sums": PAIR_SUMS * self.n_parts * self.tiles.n_places}

    def _finish(self) -> list[KeptLaunch]:
        options, tables = self.options, self.tables
        return [
            self._each_place(
                "energy/finish.cl", "finish", np.int32(len(self.atoms)), np.int32(self.n_parts),
                *self._of("pair_sums", "singles", "born"), tables.order, tables.counts, self.buffers["results"],
                GRADIENT=int(options.gradient), PER_ATOM=int(options.per_atom),
            )
        ]  # fmt: skip
