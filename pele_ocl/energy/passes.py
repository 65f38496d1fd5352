"""The launches of one evaluation of the energy, in order."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms
from ..opencl.shared import PAIR_MODEL, PAIR_SUMS
from ..plan.conformations import Encoding
from ..plan.found import Found
from ..solvent_model import SolventModel
from ..tiled.passes import TiledPasses
from ..tiled.surface import Surface
from ..tiled.tables import SphereTables, scaled_charges
from ..tiles import Tiles
from ..variant import Machine
from .contents import Contents
from .layout import EnergyLayout
from .masks import TileOrder
from .options import Options
from .result import PASS_TERMS
from .tables import PairTables
from .terms import Addend

if TYPE_CHECKING:
    from ..opencl.launch import Argument, KeptLaunch
    from ..opencl.run import Run

L = TypeVar("L", bound=EnergyLayout)


class EnergyPasses(TiledPasses, Generic[L]):
    """The kernels of a variant with their buffers, for up to `batch` conformations at a time.

    contents : the terms, and what adds to the gradient and to the energies behind the passes
    """

    layout_type: ClassVar[type[EnergyLayout]]

    def __init__(
        self, run: Run, atoms: Atoms, tiles: Tiles, layout: L, options: Options, model: SolventModel,
        encoding: Encoding, contents: Contents, most: int,
    ) -> None:  # fmt: skip
        self.run, self.tiles, self.layout, self.options = run, tiles, layout, options
        self.contents = contents
        atoms, model = contents.for_passes(atoms, model)
        self.atoms = atoms
        spheres = SphereTables.of(run, atoms, tiles, model, scaled_charges(atoms, model, run.precision), layout.width)
        self.surface = Surface.of(run, atoms, tiles, model)
        self.n_energies = len(atoms) if options.per_atom else len(tiles)
        sizes = self._common_sizes(len(atoms)) | self._sizes() | (self.surface.sizes if self.surface else {})
        for addend in contents.addends:
            sizes |= addend.sizes(self)
        super().__init__(run, atoms, tiles, encoding, model, spheres, sizes, most)
        self.tables = PairTables.of(
            run, atoms, tiles, model, contents.excluded, self.tile_order(layout), "gb_self" in contents.names
        )
        self.launches = [
            *([] if self._begun else [self.place()]), *self._behind(contents.grouped, begin=True),
            *(self._no_radii() if model.gb_model.vacuum else self._born()), *self._pairs(),
            *(self._chain() if options.chain else ()), *self._finish(), *self._surface(),
            *self._behind(contents.grouped), *self._behind(contents.further),
        ]  # fmt: skip

    @classmethod
    def layout_for(cls, machine: Machine, n_atoms: int) -> EnergyLayout:
        """The layout for a machine and a number of atoms."""
        layout: EnergyLayout = cls.layout_type.of(machine, n_atoms)  # type: ignore[attr-defined]
        return layout

    @property
    def n_columns(self) -> int:
        """Reals of an atom behind the energies in the results: Born radius, gradient, energies of further terms."""
        return (4 if self.options.gradient else 1) + self.term_macros["MORE_TERMS"]

    def _behind(self, addends: Sequence[Addend], begin: bool = False) -> list[KeptLaunch]:
        """Launches behind the passes, or those that begin, whose terms stand in the results one after the other."""
        first = np.cumsum([0, *(len(addend.names) for addend in addends)]).tolist()
        return [
            launch
            for addend, k in zip(addends, first, strict=False)
            if addend.begins(self) == begin
            for launch in addend.launches(self, k)
        ]

    @cached_property
    def _begun(self) -> bool:
        """Whether there is an addend that begins."""
        return any(addend.begins(self) for addend in self.contents.grouped)

    @property
    def begun_macros(self) -> dict[str, int]:
        """The build definition of kernels that leave the gradient of the passes."""
        return {"BEGUN": int(self._begun)}

    def unpack(self, results: NDArray[Any], part: slice, found: Found) -> None:
        m, n, first = len(results), len(self.atoms), len(PASS_TERMS) * self.n_energies
        assert found.born_radii is not None
        found.born_radii[part] = results[:, first : first + n]
        if found.gradients is not None:
            found.gradients[part] = results[:, first + n : first + 4 * n].reshape(m, n, 3)
        found.energies[part] = 0
        if found.per_atom is not None:
            found.per_atom[part] = 0
        by_row = results[:, :first].reshape(m, -1, len(PASS_TERMS))
        self._add(found, part, by_row[:, :, self._counted].transpose(0, 2, 1), self.contents.columns(PASS_TERMS))
        for section, n_terms, columns in self._sections:
            self._add(found, part, results[:, section].reshape(m, n_terms, -1), columns)

    @staticmethod
    def _add(found: Found, part: slice, energies: NDArray[Any], columns: NDArray[np.intp]) -> None:
        """Add energies (m, n_terms, n_atoms or n_tiles) to what is found of the terms that stand in these columns."""
        # In float64 and one after the other in memory, so that each conformation is added up in the same order.
        values = energies.astype(np.float64, order="C")
        found.energies[part, columns] += values.sum(axis=2)
        if found.per_atom is not None:
            found.per_atom[part][:, :, columns] += values.transpose(0, 2, 1)

    @cached_property
    def _counted(self) -> slice | list[int]:
        """The terms of the passes that count."""
        counted = [k for k, name in enumerate(PASS_TERMS) if name in self.contents.names]
        return slice(None) if len(counted) == len(PASS_TERMS) else counted

    @cached_property
    def _sections(self) -> list[tuple[slice, int, NDArray[np.intp]]]:
        """Where in the results the energies of each addend stand, of how many terms, and their columns among all."""
        n, contents, sections = len(self.atoms), self.contents, []
        start = len(PASS_TERMS) * self.n_energies + n * (self.n_columns - self.term_macros["MORE_TERMS"])
        for addends, rows in ((contents.further, n), (contents.grouped, self.n_energies)):
            for addend in addends:
                stop = start + rows * len(addend.names)
                sections.append((slice(start, stop), len(addend.names), contents.columns(addend.names)))
                start = stop
        return sections

    @classmethod
    @abstractmethod
    def tile_order(cls, layout: L) -> TileOrder:
        """The order in which the pair pass meets tiles."""

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
        """The gradient by way of the Born radii."""

    @abstractmethod
    def _finish(self) -> list[KeptLaunch]:
        """Results in the order of the atoms, where the passes do not leave them so."""

    def _common_sizes(self, n: int) -> dict[str, int]:
        slots, boxes = self.tiles.n_slots, len(self.tiles)
        return {
            "traits": 4 * slots, "born": slots, "largest_born": boxes, "singles": 4 * slots, "weights": slots,
            "results": (len(PASS_TERMS) + self.term_macros["GROUPED_TERMS"]) * self.n_energies + n * self.n_columns,
        }  # fmt: skip

    @property
    def result_macros(self) -> dict[str, int]:
        """The build definitions of cl/energy/results.clh."""
        return {"GRADIENT": int(self.options.gradient), **self.term_macros}

    @property
    def term_macros(self) -> dict[str, int]:
        """Of them those that count what is behind the passes."""
        counts = [sum(len(addend.names) for addend in of) for of in (self.contents.further, self.contents.grouped)]
        return dict(zip(("MORE_TERMS", "GROUPED_TERMS"), counts, strict=True))

    def _no_radii(self) -> list[KeptLaunch]:
        """The launches in place of those of Born radii where there is no solvent."""
        self.buffers.setdefault("born_sums", self.run.empty(1))
        return [self._atom_terms(0)]

    def _surface(self) -> list[KeptLaunch]:
        """The nonpolar energies where they follow from the surface."""
        surface, options = self.surface, self.options
        if surface is None:
            return []
        return [
            surface.energies(self, options.gradient),
            self.each_slot(
                "energy/surface.cl", "add_surface", np.int32(len(self.atoms)), np.int32(surface.n_heavy),
                np.int32(PASS_TERMS.index("nonpolar")), surface.starts, surface.atoms, *self.named("pulls", "results"),
                PER_ATOM=int(options.per_atom), **self.result_macros,
            ),
        ]  # fmt: skip

    def _atom_terms(self, n_parts: int, shares: int = 1) -> KeptLaunch:
        """Born radii and energies of single atoms, from parts of the Born integrals."""
        return self.each_slot(
            "energy/radii.cl", "atom_terms", np.int32(n_parts), *self.solvent_constants(), self.buffers["born_sums"],
            *self._atom_tables(), shares=shares, SHARES=shares, **self.gb_macros,
        )  # fmt: skip

    def _atom_tables(self) -> list[Argument]:
        """ATOM_ARGUMENTS of cl/energy/terms.clh."""
        return [self.tables.parameters, *self.named("traits", "singles", "born", "largest_born")]

    def _pair_model(self) -> np.void:
        """PairModel of cl/energy/pair.clh."""
        options, model, has_gb = self.options, self.model, "gb_pair" in self.contents.names
        return PAIR_MODEL.pack(
            self.run.precision,
            outside=model.outside if has_gb else 1.0,
            kappa=model.kappa if has_gb else 0.0,
            cutoff2=0.0 if options.cutoff is None else options.cutoff**2,
        )

    def _pair_tables(self) -> list[Argument]:
        """PAIR_ARGUMENTS of cl/energy/pair.clh, and the masks."""
        tables, spheres = self.tables, self.spheres
        return [
            self._pair_model(), *self.named("points", "traits", "x", "y", "z", "born"), spheres.charges,
            tables.sigmas, tables.epsilons, *self.named("origins", "extents", "largest_born"), spheres.counts,
            *tables.masks,
        ]  # fmt: skip

    @property
    def _pair_macros(self) -> dict[str, int]:
        options, names = self.options, self.contents.names
        return {
            "SCREENED": int(self.model.kappa > 0 and "gb_pair" in names), "COULOMB": int("coulomb" in names),
            "GEOMETRIC": int(self.atoms.combining == "geometric"),
            "CUTOFF": int(options.cutoff is not None), "GRADIENT": int(options.gradient),
        }  # fmt: skip

    def _chain_tables(self) -> list[Argument]:
        """CHAIN_ARGUMENTS of cl/energy/chain.clh."""
        tables, spheres = self.tables, self.spheres
        return [
            *self.reaches, *self.named("spheres", "x", "y", "z", "weights"), spheres.scaled, spheres.rho,
            tables.slopes, tables.slope_columns, *self.named("origins", "extents"), spheres.counts,
        ]  # fmt: skip


AnyPasses = EnergyPasses[Any]  # of whatever layout


class SumsOfPairs(EnergyPasses[L]):
    """Passes that leave a column of sums at all slots, in parts; cl/energy/sums.clh."""

    @property
    @abstractmethod
    def n_parts(self) -> int:
        """Parts in which the sums come."""

    def _sizes(self) -> dict[str, int]:
        return {"pair_sums": PAIR_SUMS * self.n_parts * self.tiles.n_slots}

    def _finish(self) -> list[KeptLaunch]:
        spheres = self.spheres
        return [
            self.each_slot(
                "energy/finish.cl", "finish", np.int32(len(self.atoms)), np.int32(self.n_parts),
                *self.named("pair_sums", "singles", "born"), spheres.order, spheres.counts, self.buffers["results"],
                PER_ATOM=int(self.options.per_atom), **self.result_macros, **self.begun_macros,
            )
        ]  # fmt: skip
