"""The ways to compute Born radii: a table of variants and the host steps of each.

Host steps take a Run and a System and return psi and Born radii, (n,) float64 each, in the order of the atoms.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..atoms import Atoms, Floats
from ..solvent_model import SolventModel
from ..tiles import Tiles
from ..variant import Variant
from .layout import Layout
from .places import Places
from .tiled import launch_blocks, launch_rows

if TYPE_CHECKING:
    from ..opencl.kernels import Run

ITEMS = 64  # of a group where the group does not matter


@dataclass(eq=False)
class System:
    """What all variants compute with, for one device and precision; arrays are (n,) or (n, 3) float64, A and e."""

    positions: Floats
    charges: Floats
    radii: Floats
    rho: Floats
    scaled: Floats
    tiles: Tiles
    layout: Layout
    model: SolventModel
    _places: Places | None = None
    _buffers: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, atoms: Atoms, model: SolventModel, layout: Layout) -> System:
        assert atoms.gb_radii is not None
        assert atoms.gb_scales is not None
        rho, tiles = atoms.gb_radii - model.offset, Tiles.of(atoms.positions, layout.tile)
        radii, scaled = atoms.gb_radii, atoms.gb_scales * rho
        return cls(atoms.positions, atoms.charges, radii, rho, scaled, tiles, layout, model)

    def move(self, atoms: Atoms) -> None:
        """Take on the positions of the same atoms elsewhere."""
        if atoms.positions is not self.positions:
            self.positions, self.tiles = atoms.positions, self.tiles.moved(atoms.positions)

    def places(self, run: Run) -> Places:
        """The tiles on the device."""
        if self._places is None:
            self._places = Places(run, self.tiles, self.charges, self.radii, self.rho, self.scaled)
        self._places.move(run, self.tiles)
        return self._places

    def buffer(self, run: Run, name: str, n: int) -> Any:
        """A buffer of n reals that is there as long as the system: making one costs more than a short kernel."""
        if name not in self._buffers:
            self._buffers[name] = run.empty(n)
        return self._buffers[name]

    @property
    def n(self) -> int:
        return len(self.rho)

    @property
    def pairs(self) -> float:
        """Ordered pairs, the cost of every variant."""
        return float(self.n) ** 2

    @property
    def atoms4(self) -> Floats:
        """(n, 4): x, y, z from the middle of the structure, which saves float32 digits, and the scaled radius."""
        middle = (self.positions.min(axis=0) + self.positions.max(axis=0)) / 2
        return np.column_stack([self.positions - middle, self.scaled])


class RadiiStep:
    """The kernel that ends most variants: Born integrals to psi and Born radii. Made ready before the first launch."""

    def __init__(self, run: Run, system: System, rho: Any, radii: Any, sums: Any, n_parts: int = 1) -> None:
        """rho, radii : buffers by place; sums : buffer (n_parts, n_places) of parts of the integrals"""
        self.run, self.n = run, rho.size // run.dtype.itemsize
        self.psi, self.born = system.buffer(run, "psi", self.n), system.buffer(run, "born", self.n)
        kernel = run.kernel("solvent/radii.cl", "born_radii", **system.model.radius_definitions)
        sizes = np.int32(self.n), np.int32(n_parts), run.vector4(*system.model.radius_constants)
        self.launch = run.prepare(kernel, (self.n,), (ITEMS,), *sizes, sums, rho, radii, self.psi, self.born)
        run.settle(rho, radii, self.psi, self.born)

    def __call__(self) -> tuple[Floats, Floats]:
        """Psi and Born radii by place."""
        self.launch()
        return _download(self.run, self.psi, self.born, self.n)


def _download(run: Run, psi: Any, born: Any, n: int) -> tuple[Floats, Floats]:
    return run.download(psi, n).astype(np.float64), run.download(born, n).astype(np.float64)


def sequential(run: Run, system: System, rows: int | None = None) -> tuple[Floats, Floats]:
    """The whole double loop in one work-item; `rows` of it where a sample is enough to time it."""
    n = system.n
    psi, born = run.empty(n), run.empty(n)
    kernel = run.kernel("solvent/ladder/sequential.cl", "born_radii_sequential", **system.model.radius_definitions)
    inputs = [run.upload(a) for a in (system.atoms4, system.rho, system.radii)]
    step = n if run.progress is None else max(1, int(2e7 / n))
    for first in range(0, rows or n, step):
        last = min(first + step, rows or n)
        sizes = np.int32(n), np.int32(first), np.int32(last), run.vector4(*system.model.radius_constants)
        run.launch(kernel, (1,), (1,), *sizes, *inputs, psi, born)
        if run.progress is not None:
            run.device.queue.finish()
            run.progress(last / n)
    return _download(run, psi, born, rows or n)


def inner(run: Run, system: System) -> tuple[Floats, Floats]:
    """A launch and a read-back for each atom; the host adds up."""
    n = system.n
    kernel = run.kernel("solvent/ladder/inner.cl", "hct_row")
    atoms, rho, radii = (run.upload(a) for a in (system.atoms4, system.rho, system.radii))
    config, contributions, sums = run.upload([n, 0], np.int32), run.empty(n), run.empty(n)
    row, integrals = np.empty(n, run.dtype), np.empty(n, run.dtype)
    radii_step = RadiiStep(run, system, rho, radii, sums)
    for i in range(n):
        run.write(config, np.array([n, i], np.int32))
        run.launch(kernel, (n,), (ITEMS,), config, atoms, rho, contributions)
        run.read(row, contributions)
        row[i] = 0
        integrals[i] = row.sum()
        if run.progress is not None and i % 64 == 0:
            run.progress(i / n)
    run.write(sums, integrals)
    return radii_step()


def outer(run: Run, system: System) -> tuple[Floats, Floats]:
    """A work-item an atom."""
    n = system.n
    psi, born = run.empty(n), run.empty(n)
    kernel = run.kernel("solvent/ladder/outer.cl", "born_radii_outer", **system.model.radius_definitions)
    inputs = [run.upload(a) for a in (system.atoms4, system.rho, system.radii)]
    group = (run.device.largest_group,)
    run.launch_rows(
        kernel, (n,), group, system.pairs, np.int32(n), run.vector4(*system.model.radius_constants), *inputs, psi, born
    )
    return _download(run, psi, born, n)


def pair(run: Run, system: System) -> tuple[Floats, Floats]:
    """A work-group an atom, then a kernel for the radii."""
    n = system.n
    kernel, group = run.group_kernel("solvent/ladder/pair.cl", "born_sums_pair", local_reals=1)
    sums = run.empty(n)
    atoms, rho, radii = (run.upload(a) for a in (system.atoms4, system.rho, system.radii))
    radii_step = RadiiStep(run, system, rho, radii, sums)
    run.launch_rows(kernel, (n * group,), (group,), system.pairs, np.int32(n), atoms, rho, sums)
    return radii_step()


def tiled(run: Run, system: System) -> tuple[Floats, Floats]:
    """Near and far tiles of sorted atoms: row by row on GPUs, blocks of two tiles with vectors of atoms on CPUs."""
    tiles, layout = system.tiles, system.layout
    n_parts = layout.parts(len(tiles)) if layout.blocks else layout.chunks(len(tiles))[0]
    places, sums = system.places(run), system.buffer(run, "sums", n_parts * tiles.n_places)
    radii_step = RadiiStep(run, system, places.rho, places.radii, sums, n_parts)
    launch = launch_blocks if layout.blocks else launch_rows
    launch(run, layout, len(tiles), system.pairs, float(system.rho.max()), places, sums)
    psi, born = radii_step()
    return tiles.scatter(psi), tiles.scatter(born)


VARIANTS = {
    "sequential": Variant(
        "solvent/ladder/sequential.cl",
        "born_radii_sequential",
        "the double loop, compiled, on one CPU core",
        sequential,
        sums=1,
    ),
    "inner": Variant("solvent/ladder/inner.cl", "hct_row", "host loop over atoms i, a work-item for each j", inner),
    "outer": Variant("solvent/ladder/outer.cl", "born_radii_outer", "a work-item for each atom", outer, sums=1),
    "pair": Variant(
        "solvent/ladder/pair.cl", "born_sums_pair", "a work-group for each atom, tree sum in local memory", pair
    ),
    "tiled": Variant("solvent/tiled.cl", "born_sums", "sorted tiles, series for far pairs, vectors on CPUs", tiled),
}


def choose_variant(kind: str, n_atoms: int) -> str:
    """The variant that `auto` stands for on a device of this kind; small molecules leave a GPU's tiles half empty."""
    return "pair" if kind == "GPU" and n_atoms < 1000 else "tiled"
