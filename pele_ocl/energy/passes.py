"""Launches of one energy evaluation, in order.

Each variant is the last class in a chain of subclasses:

Passes (plan/passes.py) : buffers and launches of any quantity, and transfers of conformations
TiledPasses (tiles/passes.py) : positions are first placed in tiles
EnergyPasses (here) : the steps of an energy evaluation, terms outside the passes, and results
Squares (squares.py) : pairs of tile rows, with partial sums in layers per tile; for GPUs
SumsOfPairs (here) : sums by slot, reordered by atom in the last step
Rows (rows.py) : SumsOfPairs in which each atom sums its own pairs; for GPUs
Blocks (blocks.py) : SumsOfPairs with each pair once, in blocks of two tiles; for CPUs
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats
from ..common.arguments import described
from ..common.errors import InputError
from ..common.variant import Machine
from ..gb_models.solvent_model import SolventModel
from ..opencl.interface import PAIR_MODEL, PAIR_SUMS
from ..plan.conformations import Encoding
from ..plan.evaluator import Failures, Outputs
from ..solvent.tree_sums import TreeShape, TreeSums
from ..tiles import Tiles
from ..tiles.passes import TiledPasses, place_arguments
from ..tiles.surface import SurfaceBuffers
from ..tiles.tables import SphereTables, scaled_charges
from .frozen import Frozen
from .layout import EnergyLayout
from .options import Options
from .result import PASS_TERMS
from .sites import site_launches
from .tables import PairTables, TileOrder
from .term_set import TermSet
from .terms import TermKernels
from .terms.term import TermContext

if TYPE_CHECKING:
    from ..opencl.binding import Binder, Launch
    from ..opencl.kernel import Arguments
    from ..opencl.queue import Queue
    from .sgb import SurfaceRadii

L = TypeVar("L", bound=EnergyLayout)

RADII = ("traits", "singles", "born", "largest_born")  # buffers of Born radii and quantities derived from them


class EnergyPasses(TiledPasses, Generic[L]):
    """Kernels of a variant with their buffers, for up to `batch` conformations at a time.

    contents : the terms, including those computed outside the passes
    frozen : the interactions to leave out, or None
    tree : tree from which Born radii are computed; None if they are computed from all pairs
    reason : makes the error of a failed conformation from positions, outputs and index
    """

    reason: Callable[[NDArray[Any], Outputs, int], InputError]

    layout_type: ClassVar[type[EnergyLayout]]
    leaves_out: ClassVar[bool] = True  # whether kernels can leave out the interactions among frozen atoms

    def __init__(
        self, queue: Binder, atoms: Atoms, tiles: Tiles, layout: L, options: Options, model: SolventModel,
        encoding: Encoding, contents: TermSet, frozen: Frozen | None = None, accuracy: float | None = None,
    ) -> None:  # fmt: skip
        atoms, model = contents.for_passes(atoms, model)
        spheres = SphereTables.of(
            queue, atoms, tiles, model, scaled_charges(atoms, model, queue.precision), layout.width
        )
        super().__init__(queue, atoms, tiles, encoding, model, spheres)
        self.layout, self.options, self.contents, self.frozen = layout, options, contents, frozen
        self.surface = SurfaceBuffers.of(queue, atoms, tiles, model)
        self.n_energies = len(atoms) if options.per_atom else len(tiles)
        shape = TreeShape.of(layout.width, len(atoms))
        self.tree = None if accuracy is None else TreeSums(tiles, model, shape, accuracy)
        self.of_surface: SurfaceRadii | None = None
        if model.gb_model.of_surface:
            from .sgb import SurfaceRadii

            self.of_surface = SurfaceRadii(tiles.n_slots, queue.precision, contents.names, layout.width)
        self.tables = PairTables.of(
            queue, atoms, tiles, model, contents.excluded, self.tile_order(layout), "gb_self" in contents.names,
            None if frozen is None else frozen.integrals,
        )  # fmt: skip
        self.context = TermContext(
            queue, atoms, encoding, options, self.buffers, self.result_sizes, self.first_grouped,
            {**encoding.macros, **self.result_macros}, tiles,
            partial(place_arguments, encoding, spheres, self.buffers),  # a method would make a reference cycle
        )  # fmt: skip

    def make(self, most: int) -> None:
        """Allocate buffers for up to `most` conformations and bind the launches; called once."""
        sizes = self._common_sizes(len(self.atoms)) | self._sizes() | (self.surface.sizes if self.surface else {})
        sizes |= self.tree.sizes("born_sums") if self.tree else {}
        sizes |= self.of_surface.sizes("born_sums") if self.of_surface else {}
        for kernels in self.contents.term_kernels:
            sizes |= kernels.sizes(self.context)
        self.allocate(sizes, most, self.of_surface.types if self.of_surface else {})
        before, after = self._of_sites
        self.launches = self.uncut = [*before, *self._passes(), *self._after_passes, *after]
        self.most_uncut = self.queue.most_uncut(self.launches)

    @classmethod
    def layout_for(cls, machine: Machine, n_atoms: int) -> EnergyLayout:
        layout: EnergyLayout = cls.layout_type.of(machine, n_atoms)  # type: ignore[attr-defined]
        return layout

    def _passes(self) -> list[Launch]:
        """Bind the launches of the passes, up to the results."""
        return [*self._first(), *self._radii(), *self._from_radii()]

    def _first(self) -> list[Launch]:
        """Bind the launch that places the tiles; it may belong to a term."""
        return [*([] if self.first_kernels else [self.place()]), *self._launches_of(self.contents.grouped, first=True)]

    def _radii(self) -> list[Launch]:
        if self.model.gb_model.vacuum:
            return self._no_radii()
        if self.of_surface:
            return self._born_of_surface(self.of_surface)
        return self._born() if self.tree is None else self._born_of(self.tree)

    def _from_radii(self) -> list[Launch]:
        return [*self._pairs(), *(self._chain() if self.options.chain else ()), *self._finish()]

    @cached_property
    def _after_passes(self) -> list[Launch]:
        """Launches after the passes, bound once, since rows write restraint values to their buffers."""
        contents = self.contents
        return [*self._surface(), *self._launches_of(contents.grouped), *self._launches_of(contents.further)]

    @cached_property
    def apart_at_radii(self) -> tuple[list[Launch], list[Launch]]:
        """Two lists of launches: up to the Born radii, which are left in the buffers RADII; and all that follow."""
        before, after = self._of_sites
        first, radii = [*before, *self._first()], self._radii()
        return [*first, *radii], [*first, *self._from_radii(), *self._after_passes, *after]

    @cached_property
    def _of_sites(self) -> tuple[list[Launch], list[Launch]]:
        return site_launches(self.context)

    @property
    def first_frozen(self) -> np.int32:
        """First frozen tile; passes leave out interactions among frozen tiles."""
        return np.int32(len(self.tiles) if self.frozen is None else self.tiles.first_frozen)

    @property
    def first_frozen_pair(self) -> np.int32:
        """First frozen tile of the pair pass; with GB none, since Born-radius derivatives need all pairs."""
        return self.first_frozen if self.model.gb_model.vacuum else np.int32(len(self.tiles))

    def measured(self, queue: Queue, positions: Floats) -> tuple[Floats, Floats]:
        """Born integrals (n_slots,) computed by the passes at positions (n, 3) A, and energies (n_terms,).

        queue : on which the passes were made
        """
        encoded = np.empty(positions.size, self.encoding.dtype)
        shifted = positions - self.encoding.shift(positions.min(axis=0), positions.max(axis=0))
        self.encoding.encode(shifted.ravel(), encoded)
        queue.write(self.buffer("positions"), encoded)
        self.launch(queue, 1)
        found = Outputs.empty(1, len(self.atoms), len(self.contents.names), born_radii=True)
        self.unpack(queue.download(self.buffer("results"), self.n_results)[np.newaxis], slice(1), found)
        slots, n_parts = self.tiles.n_slots, self.tree.n_parts if self.tree else self.n_born_parts
        parts = queue.download(self.buffer("born_sums"), n_parts * slots) if n_parts else np.zeros(slots)
        return parts.astype(np.float64).reshape(-1, slots).sum(axis=0), found.energies[0]

    @property
    def n_born_parts(self) -> int:
        """Number of parts of the Born integrals, (n_slots,) each, in passes over all pairs."""
        return 0

    @property
    def n_columns(self) -> int:
        """Number of reals per atom in the results: Born radius, gradient, energies of further terms."""
        return (4 if self.options.gradient else 1) + self._n_further

    @property
    def _n_further(self) -> int:
        return sum(len(kernels.names) for kernels in self.contents.further)

    def _launches_of(self, term_kernels: Sequence[TermKernels], first: bool = False) -> list[Launch]:
        """Bind the launches of terms after or before the passes; their results are consecutive."""
        index = np.cumsum([0, *(len(kernels.names) for kernels in term_kernels)]).tolist()
        return [
            launch
            for kernels, k in zip(term_kernels, index, strict=False)
            if self._runs_first(kernels) == first
            for launch in self._listed(kernels, k)
        ]

    def _listed(self, kernels: TermKernels, index: int) -> Sequence[Launch]:
        """Bind the launches of a term, which may be a user's. Raises InputError if it does not return launches."""
        found = kernels.launches(self.context, index)
        if not isinstance(found, list | tuple) or not all(hasattr(launch, "kernel") for launch in found):
            raise InputError(
                f"launches of {' and '.join(kernels.names)} are {described(found)}; expected a list of "
                "results of context.bind"
            )
        return found

    def _runs_first(self, kernels: TermKernels) -> bool:
        """Return whether the kernels of a term run before the passes or are joined with them."""
        return kernels.runs_first(self.context)

    @cached_property
    def first_kernels(self) -> TermKernels | None:
        """Term that runs before the passes: it places the tiles and initializes the gradient. None if there is none."""
        return next((kernels for kernels in self.contents.grouped if self._runs_first(kernels)), None)

    @property
    def first_macros(self) -> dict[str, int]:
        """Build definition for passes that add to a gradient initialized by a term."""
        return {"TERMS_FIRST": int(self.first_kernels is not None)}

    def unpacked(self, results: NDArray[Any], positions: Floats) -> tuple[Outputs, dict[int, str]]:
        """Unpack results (m, n_results) at positions (m, n, 3) A, with NaN and a reason for failed ones."""
        m, options = len(results), self.options
        failures = Failures(m, record=True)
        found = Outputs.empty(
            m, self.n_atoms, len(self.contents.names), gradients=options.gradient, born_radii=True,
            per_atom=options.per_atom,
        )  # fmt: skip
        self.unpack_and_check(results, slice(0, m), positions, found, failures, self.reason)
        for k in failures.reasons:
            found.erase(k)
        return found, failures.in_order if failures.reasons else {}

    def unpack(self, results: NDArray[Any], part: slice, found: Outputs) -> None:
        m, n, first = len(results), self.n_atoms, len(PASS_TERMS) * self.n_energies
        assert found.born_radii is not None
        found.born_radii[part] = results[:, first : first + n]
        if found.gradients is not None:
            found.gradients[part].reshape(m, 3 * n)[:] = results[:, first + n : first + 4 * n]
        # In float64 and contiguous, so that all conformations are summed in the same order.
        values = results.take(self._places, axis=1).astype(np.float64).reshape(m, -1, self.n_energies)
        if self._are_in_order:
            np.add.reduce(values, axis=2, out=found.energies[part])
        else:
            found.energies[part] = 0
            self._add(found.energies[part], values.sum(axis=2), self._columns)
        if found.per_atom is not None:
            found.per_atom[part] = 0
            self._add(found.per_atom[part], values.transpose(0, 2, 1), self._columns)
        if self.contents.further:
            self._unpack_further(results, part, found)
        if self.frozen is not None:
            found.energies[part] += self.frozen.energies

    def _unpack_further(self, results: NDArray[Any], part: slice, found: Outputs) -> None:
        """Add the per-atom energies of further terms, stored after the columns of the passes."""
        m, n, n_further = len(results), len(self.atoms), self._n_further
        columns = self.contents.columns([name for kernels in self.contents.further for name in kernels.names])
        further = results[:, self.first_grouped - n * n_further : self.first_grouped].reshape(m, n_further, n)
        values = further.astype(np.float64, order="C")
        self._add(found.energies[part], values.sum(axis=2), columns)
        if found.per_atom is not None:
            self._add(found.per_atom[part], values.transpose(0, 2, 1), columns)

    @staticmethod
    def _add(sums: NDArray[Any], values: NDArray[Any], columns: NDArray[np.intp]) -> None:
        """Add values (..., k) to k columns of sums, some of which may be the same."""
        for k, column in enumerate(columns.tolist()):
            sums[..., column] += values[..., k]

    @cached_property
    def _columns(self) -> NDArray[np.intp]:
        """Columns of the terms of the passes and of grouped terms, sorted."""
        return np.sort(self.contents.columns(self._computed))

    @property
    def _computed(self) -> list[str]:
        """Names of the terms of the passes and of grouped terms, in the order of the results."""
        return [*PASS_TERMS, *(name for kernels in self.contents.grouped for name in kernels.names)]

    @cached_property
    def _are_in_order(self) -> bool:
        return np.array_equal(self._columns, np.arange(len(self.contents.names)))

    @cached_property
    def _places(self) -> NDArray[np.intp]:
        """Indices in the results of the energies of `_columns`, term by term."""
        rows, n_pass = np.arange(self.n_energies), len(PASS_TERMS)
        places = [rows * n_pass + k for k in range(n_pass)]
        places += [self.first_grouped + k * self.n_energies + rows for k in range(len(self._computed) - n_pass)]
        counted = [
            (name, place) for name, place in zip(self._computed, places, strict=True) if name in self.contents.names
        ]
        by_column = sorted(counted, key=lambda term: self.contents.names.index(term[0]))
        return np.concatenate([place for _, place in by_column]).astype(np.intp)

    @cached_property
    def first_grouped(self) -> int:
        """Index of the first grouped term in the results of a conformation, after the per-atom columns."""
        return len(PASS_TERMS) * self.n_energies + len(self.atoms) * self.n_columns

    @classmethod
    def row_tiles(cls, layout: L) -> int:
        """Number of tiles in a row, which belongs to one group."""
        return cls.tile_order(layout).row_tiles

    @classmethod
    @abstractmethod
    def tile_order(cls, layout: L) -> TileOrder:
        """Return the order in which the pair pass visits tiles."""

    @abstractmethod
    def _sizes(self) -> dict[str, int]:
        """Number of reals per conformation in each of the variant's buffers."""

    @abstractmethod
    def _born(self) -> list[Launch]:
        """Bind the launches of Born radii, and of energies of single atoms and their derivatives."""

    @abstractmethod
    def _pairs(self) -> list[Launch]:
        """Bind the launches of pair energies and their derivatives."""

    @abstractmethod
    def _chain(self) -> list[Launch]:
        """Bind the launches of the gradient through the Born radii."""

    @abstractmethod
    def _finish(self) -> list[Launch]:
        """Bind the launches that reorder results by atoms, if the passes leave them in another order."""

    def _common_sizes(self, n: int) -> dict[str, int]:
        slots, boxes = self.tiles.n_slots, len(self.tiles)
        return {
            "traits": 4 * slots, "born": slots, "largest_born": boxes, "singles": 4 * slots, "weights": slots,
            "results": self.result_sizes["n_results"],
        }  # fmt: skip

    @property
    def result_macros(self) -> dict[str, int]:
        """Build definitions of cl/energy/results.clh."""
        return {"GRADIENT": int(self.options.gradient)}

    @cached_property
    def result_sizes(self) -> Mapping[str, int]:
        """Sizes from which kernels compute indices in the results; cl/energy/results.clh."""
        n_grouped = sum(len(kernels.names) for kernels in self.contents.grouped)
        return {"n_energies": self.n_energies, "n_results": self.first_grouped + n_grouped * self.n_energies}

    def _no_radii(self) -> list[Launch]:
        """Bind the launch that replaces Born radii in vacuum."""
        self.buffers.setdefault("born_sums", self.queue.empty(1))
        return [self._atom_terms(0)]

    def _born_of(self, tree: TreeSums) -> list[Launch]:
        """Bind the launches of Born radii from a tree; they include frozen atoms."""
        return [*tree.launches(self, "born_sums"), self._atom_terms(tree.n_parts)]

    def _born_of_surface(self, surface: SurfaceRadii) -> list[Launch]:
        return [*surface.launches(self, "born_sums"), self._atom_terms(surface.n_parts), surface.single(self)]

    def _surface(self) -> list[Launch]:
        """Bind the launches of nonpolar energies from the surface area."""
        surface, options = self.surface, self.options
        if surface is None:
            return []
        return [
            surface.energies(self, options.gradient),
            self.each_slot(
                "energy/surface.cl", "add_surface",
                dict(
                    n_atoms=len(self.atoms), **self.result_sizes, per_atom=options.per_atom, n_heavy=surface.n_heavy,
                    term=PASS_TERMS.index("nonpolar"), starts=surface.starts, atoms=surface.atoms,
                    **self.named("pulls", "results"),
                ),
                **self.result_macros,
            ),
        ]  # fmt: skip

    def _atom_terms(self, parts: int | Arguments, shares: int = 1, **defines: int) -> Launch:
        """Bind Born radii and energies of single atoms. parts : number of parts of the Born integrals, or `_parts`"""
        arguments = dict(
            **({"n_parts": parts} if isinstance(parts, int) else parts), sums=self.buffers["born_sums"],
            **self.solvent_constants(), **self._atom_tables(),
        )  # fmt: skip
        return self.each_slot(
            "energy/radii.cl", "atom_terms", arguments, shares=shares, SHARES=shares, **self.gb_macros, **defines
        )

    def _atom_tables(self) -> Arguments:
        """Return the arrays of SingleAtoms, cl/energy/terms.clh."""
        return dict(parameters=self.tables.parameters, **self.named("traits", "singles", "born", "largest_born"))

    def _pair_model(self) -> np.void:
        """PairModel of cl/energy/pair.clh."""
        options, model, has_gb = self.options, self.model, "gb_pair" in self.contents.names
        return PAIR_MODEL.pack(
            self.queue.precision,
            outside=model.outside if has_gb else 1.0,
            kappa=model.kappa if has_gb else 0.0,
            cutoff2=0.0 if options.cutoff is None else options.cutoff**2,
        )

    def _pair_tables(self) -> Arguments:
        """Arguments of passes over pairs, and the exclusion masks."""
        tables, spheres = self.tables, self.spheres
        return dict(
            model=self._pair_model(), charges=spheres.charges, sigmas=tables.sigmas, epsilons=tables.epsilons,
            counts=spheres.counts, **tables.masks,
            **self.named("points", "traits", "x", "y", "z", "born", "origins", "extents", "largest_born"),
        )  # fmt: skip

    @property
    def _pair_macros(self) -> dict[str, int]:
        options, names = self.options, self.contents.names
        return {
            "SCREENED": int(self.model.kappa > 0 and "gb_pair" in names), "COULOMB": int("coulomb" in names),
            "GEOMETRIC": int(self.atoms.combining == "geometric"),
            "CUTOFF": int(options.cutoff is not None), "GRADIENT": int(options.gradient),
        }  # fmt: skip

    def _chain_tables(self) -> Arguments:
        """Return the arguments of passes of the chain rule."""
        tables, spheres = self.tables, self.spheres
        return dict(
            s=spheres.scaled, rho=spheres.rho, series=tables.slopes, columns=tables.slope_columns,
            counts=spheres.counts, **self.reaches,
            **self.named("spheres", "x", "y", "z", "weights", "origins", "extents"),
        )  # fmt: skip


AnyPasses = EnergyPasses[Any]  # with any layout


class SumsOfPairs(EnergyPasses[L]):
    """Passes with sums by slot, in several parts; cl/energy/sums.clh."""

    @property
    @abstractmethod
    def n_parts(self) -> int:
        """Number of parts of the sums."""

    def _sizes(self) -> dict[str, int]:
        return {"pair_sums": PAIR_SUMS * self.n_parts * self.slots_of_sums}

    @property
    def slots_of_sums(self) -> int:
        """Number of slots for which a part has sums."""
        return self.tiles.n_slots

    @property
    def _parts(self) -> Arguments:
        """Arguments of kernels that sum the parts."""
        return dict(n_parts=self.n_parts)

    @property
    def _parts_macros(self) -> dict[str, int]:
        return {}

    def _finish(self) -> list[Launch]:
        return [
            self.each_slot(
                "energy/finish.cl", "finish",
                dict(counts=self.spheres.counts, **self.named("pair_sums"), **self._to_finish()), **self._finish_macros,
            )
        ]  # fmt: skip

    def _to_finish(self) -> Arguments:
        """Return FINISH_PARAMETERS of cl/energy/finish.clh."""
        return dict(
            n_atoms=len(self.atoms), **self.result_sizes, per_atom=self.options.per_atom, **self._parts,
            order=self.spheres.order, **self.named("singles", "born", "results"),
        )  # fmt: skip

    @property
    def _finish_macros(self) -> dict[str, int]:
        return {**self.result_macros, **self.first_macros, **self._parts_macros}
