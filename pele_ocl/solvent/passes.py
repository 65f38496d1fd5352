"""Launches of one evaluation of the solvent energy, in order."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms
from ..common.threads import in_parts
from ..common.variant import Progress
from ..gb_models.solvent_model import SolventModel
from ..plan.conformations import Encoding
from ..plan.evaluator import Outputs
from ..plan.passes import bound
from ..tiles import Tiles
from ..tiles.passes import TiledPasses
from ..tiles.surface import SurfaceBuffers
from ..tiles.tables import SphereTables, scaled_charges
from .layout import SolventLayout
from .result import TERMS

if TYPE_CHECKING:
    from ..opencl.binding import Launch
    from ..opencl.kernel import Arguments
    from ..opencl.queue import Queue

ITEMS = 64  # per work-group, where tiles do not matter
MOST_JOINED = 128  # largest number of tiles of all conformations for which all passes are one launch
RADII = 2  # last columns of the results, cl/solvent/atoms.clh: Born radius, psi; the terms come first


class SolventPasses(TiledPasses):
    """Born radii, then the GB potential over tiles; variants differ in how they compute the radii.

    accuracy : largest relative error of a Born radius, for approximate variants
    n_columns : columns of the results, each for all atoms; two without energies
    born, energy : launches of the two steps; joined : all of them in as few launches as possible, or empty
    """

    born: Sequence[Launch]

    def __init__(
        self, queue: Queue, atoms: Atoms, tiles: Tiles, layout: SolventLayout, model: SolventModel, encoding: Encoding,
        accuracy: float, energies: bool,
    ) -> None:  # fmt: skip
        spheres = SphereTables.of(
            queue, atoms, tiles, model, scaled_charges(atoms, model, queue.precision), layout.width
        )
        super().__init__(queue, atoms, tiles, encoding, model, spheres)
        self.layout, self.accuracy = layout, accuracy
        self.energies, self.n_columns = energies, RADII + (len(TERMS) if energies else 0)
        self.surface = SurfaceBuffers.of(queue, atoms, tiles, model) if energies else None

    def make(self, most: int) -> None:
        """Allocate buffers for up to `most` conformations and bind the launches; called once."""
        tiles = self.tiles
        sizes = {"inv_born": tiles.n_slots, "results": self.n_columns * len(self.atoms), **self._sizes()}
        sizes |= self.surface.sizes if self.surface else {}
        if self.energies:
            n_chunks, _ = self.layout.chunks(len(tiles))
            sizes["potential"] = n_chunks * tiles.n_slots
        self.allocate(sizes, most)
        self.placing = [self.place()]
        self.born = self._born()
        surface = self._surface()
        self.energy_of_pairs = [self._potential(), self._pair_energies()] if self.energies else []
        self.energy = [*self._before_energy(), *self.energy_of_pairs, *surface]
        joined = self._joined() if self.energies else []
        self.joined = [*joined, *surface] if joined else []
        self.uncut, self.most_uncut = self.joined, self.most_joined if self.joined else 0

    @property
    def pairs(self) -> float:
        """Number of ordered pairs of a conformation, the cost of a step."""
        return float(len(self.atoms)) ** 2

    def launch(self, queue: Queue, n_conformations: int, tell: Progress | None = None) -> None:
        if self.joined and not queue.profile and tell is None and n_conformations <= self.most_joined:
            queue.launch_bound(bound(self.joined), n_conformations)
            return
        steps = 2 if self.energies else 1
        self.launch_radii(queue, n_conformations, tell and (lambda share: tell(share / steps)))
        self.launch_energy(queue, n_conformations, tell and (lambda share: tell((1 + share) / 2)))

    def launch_radii(self, queue: Queue, n_conformations: int, tell: Progress | None = None) -> None:
        """Launch the steps up to the Born radii."""
        queue.begin_step("place")
        queue.launch_bound(bound(self.placing), n_conformations)
        queue.begin_step("born")
        self._launch_born(queue, n_conformations, tell)

    def launch_energy(self, queue: Queue, n_conformations: int, tell: Progress | None = None) -> None:
        """Launch the step from Born radii to energies."""
        queue.begin_step("energy")
        queue.launch_bound(bound(self.energy), n_conformations, tell)

    def seconds(self, queue: Queue) -> Mapping[str, float]:
        place, energy = (queue.launched_seconds(queue.step(name)) for name in ("place", "energy"))
        born = self._born_seconds(queue)
        return {"place": place, "born": born, "energy": energy, "kernel": born + energy}

    def unpack(self, results: NDArray[Any], part: slice, found: Outputs) -> None:
        columns = results.reshape(len(results), self.n_columns, -1)
        terms = columns[:, :-RADII].transpose(0, 2, 1)
        targets = [(found.born_radii, columns[:, -2]), (found.psi, columns[:, -1]), (found.per_atom, terms)]

        def copy(atoms: slice) -> None:
            for target, source in targets:
                if target is not None:
                    target[part, atoms] = source[:, atoms]

        in_parts(self.n_atoms, copy)
        if found.per_atom is not None:
            np.add.reduce(found.per_atom[part], axis=1, out=found.energies[part])

    @abstractmethod
    def _sizes(self) -> dict[str, int]:
        """Number of reals per conformation in each of the variant's buffers."""

    @abstractmethod
    def _born(self) -> list[Launch]:
        """Bind the launches of Born radii."""

    @property
    def most_joined(self) -> int:
        """Largest number of conformations for which all passes are one launch."""
        return MOST_JOINED // len(self.tiles)

    def _joined(self) -> list[Launch]:
        """Bind the joined launch of all passes except that of the surface, if the variant has one."""
        return []

    def _before_energy(self) -> list[Launch]:
        """Bind the launches before the potential that are not among those of Born radii."""
        return []

    def _launch_born(self, queue: Queue, n_conformations: int, tell: Progress | None) -> None:
        queue.launch_bound(bound(self.born), n_conformations, tell)

    def _born_seconds(self, queue: Queue) -> float:
        return queue.launched_seconds(queue.step("born"))

    def of_atoms(self, name: str, arguments: Arguments) -> Launch:
        """Bind a kernel of cl/solvent/atoms.cl. arguments : in addition to those common to all kernels there"""
        shares, spheres = self.layout.shares, self.spheres
        common = dict(n_atoms=len(self.atoms), charges=spheres.charges, order=spheres.order, counts=spheres.counts)
        return self.each_slot(
            "solvent/atoms.cl", name, dict(**common, **self.named("results"), **arguments), shares=shares,
            SHARES=shares, ENERGIES=int(self.energies), **self.gb_macros,
        )  # fmt: skip

    def _potential(self) -> Launch:
        """Bind the launch of the GB potential, in parts, for charges scaled by `scaled_charges`."""
        layout, model, spheres, n_tiles = self.layout, self.model, self.spheres, len(self.tiles)
        n_chunks, tiles_per_chunk = layout.chunks(n_tiles)
        arguments = dict(
            n_tiles=n_tiles, tiles_per_chunk=tiles_per_chunk, counts=spheres.counts, **self.potential_model,
            **self.columns, **self.named("points", "inv_born", "origins", "extents", "potential"),
        )  # fmt: skip
        return self.queue.bind(
            "solvent/energy.cl", "gb_potential", layout.shape(self.tiles, n_chunks), layout.group, arguments,
            width=layout.width, cost=self.pairs, TILE=layout.tile, VECTORS=layout.vectors,
            SCREENED=int(model.kappa > 0),
        )  # fmt: skip

    @property
    def columns(self) -> Arguments:
        """Return COLUMN_PARAMETERS of cl/common/tiles.clh."""
        return self.named("x", "y", "z") if self.layout.width > 1 else {}

    @property
    def potential_model(self) -> Arguments:
        """Solvent constants of the potential, for charges scaled by `scaled_charges`."""
        return dict(inv_inside=1, inv_outside=self.model.outside, kappa=self.model.kappa)

    def _surface(self) -> list[Launch]:
        """Bind the launches of nonpolar energies from the surface area."""
        surface, n_heavy = self.surface, self.surface.n_heavy if self.surface else 0
        if surface is None:
            return []
        return [
            surface.energies(self, False),
            self.queue.bind(
                "solvent/surface.cl", "keep_surface", (n_heavy, 1), (ITEMS, 1),
                dict(
                    n_atoms=len(self.atoms), n_heavy=n_heavy, n_columns=self.n_columns,
                    column=TERMS.index("nonpolar"), atoms=surface.atoms, **self.named("pulls", "results"),
                ),
            ),
        ]  # fmt: skip

    def _pair_energies(self) -> Launch:
        n_chunks, _ = self.layout.chunks(len(self.tiles))
        return self.of_atoms("pair_energies", dict(n_parts=n_chunks, **self.named("potential")))
