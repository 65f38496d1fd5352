"""A molecule made ready for a device, whose Born radii and energy are wanted in one conformation after the other."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from ..atoms import Atoms, Floats, require_atoms
from ..errors import InputError
from ..plan.conformations import check_span
from ..reference import solvent as definition
from ..solvent_model import SolventModel
from ..tuning import remembered
from ..units import COULOMB_KCAL_A
from ..variant import PRECISIONS, Progress
from .checks import check_radii
from .layout import Layout
from .result import EnergyTerms, SolventResult
from .variants import ITEMS, VARIANTS, System, choose_variant

if TYPE_CHECKING:
    from ..opencl.device import Device
    from ..opencl.kernels import Run


class Solvent:
    """Born radii and implicit-solvent energy of one molecule, prepared once; parameters as in `solvent`."""

    def __init__(
        self,
        atoms: Atoms,
        *,
        variant: str = "auto",
        precision: str = "float32",
        device: Device | int | str | None = None,
        model: SolventModel | None = None,
    ) -> None:
        # OpenCL is loaded when it is first needed: reading files and the command's help do without.
        from ..opencl.device import get_cpu_device, get_device

        self.atoms, self.precision, self.model = atoms, precision, SolventModel.or_default(model)
        _check(atoms, variant, precision, self.model)
        device = get_device(device)
        choice = remembered("solvent", device, precision, len(atoms))
        if variant == "auto":
            variant = choice.variant or choose_variant(device.kind, len(atoms))
        self.variant, self.device = variant, get_cpu_device(device) if variant == "sequential" else device
        self.device.require_precision(precision)
        width, units = self.device.vector_width(precision), self.device.compute_units
        layout = choice.applied(variant, Layout.of(self.device.kind, width, len(atoms), units))
        self._system = System.of(atoms, self.model, layout)

    def __repr__(self) -> str:
        return f"Solvent({len(self.atoms):,} atoms, {self.variant}, {self.precision}, on {self.device})"

    def evaluate(self, positions: Floats | None = None, progress: Progress | None = None) -> SolventResult:
        """Born radii and energy at `positions` (n, 3) A, by default the atoms' own.

        progress : as in `solvent`

        Raises InputError for positions that do not fit and for coincident atoms.
        """
        from ..opencl.kernels import Run

        start = time.perf_counter()
        atoms = self.atoms if positions is None else self.atoms.moved(positions)
        if atoms is not self.atoms:
            _check_places(atoms)
        born_run, energy_run = Run(self.device, self.precision, progress), Run(self.device, self.precision, progress)
        with self.device.lock:
            self._system.move(atoms)
            psi, born = VARIANTS[self.variant].run(born_run, self._system)
            _check_radii(atoms, born)
            per_atom = _energies(energy_run, atoms, self._system, born)
        _check_energies(atoms, per_atom)
        seconds = {"born": born_run.kernel_seconds, "energy": energy_run.kernel_seconds}
        seconds |= {"kernel": sum(seconds.values()), "total": time.perf_counter() - start}
        device, model = str(self.device), self.model
        return SolventResult(atoms, model, born, psi, per_atom, device, self.variant, self.precision, seconds)


def _check(atoms: Atoms, variant: str, precision: str, model: SolventModel) -> None:
    if variant != "auto" and variant not in VARIANTS:
        raise InputError(f"there is no variant {variant!r}; choose auto, {', '.join(VARIANTS)}")
    if precision not in PRECISIONS:
        raise InputError(f"there is no precision {precision!r}; choose {' or '.join(PRECISIONS)}")
    require_atoms(atoms)
    atoms.require(("charges", "gb_radii", "gb_scales"), "the solvent energy")
    check_radii(atoms, model)
    _check_places(atoms)


def _check_places(atoms: Atoms) -> None:
    check_span(atoms.positions)
    atoms.require_apart()


def _check_radii(atoms: Atoms, born: Floats) -> None:
    bad = ~(np.isfinite(born) & (born > 0))
    if bad.any():
        i = int(np.argmax(bad))
        raise InputError(f"the Born radius of {atoms.describe(i)} comes out as {born[i]}; check its radius and scale")


def _check_energies(atoms: Atoms, per_atom: EnergyTerms) -> None:
    bad = ~np.isfinite(per_atom.total)
    if bad.any():
        i = int(np.argmax(bad))
        raise InputError(
            f"the energy of {atoms.describe(i)} is not finite; check its charge and the dielectric constants"
        )


def _energies(run: Run, atoms: Atoms, system: System, born: Floats) -> EnergyTerms:
    """The pair sum on the device; the terms of single atoms by their definition, on the host."""
    assert atoms.gb_radii is not None
    return EnergyTerms(
        definition.gb_self(atoms.charges, born, system.model),
        -COULOMB_KCAL_A / 2 * atoms.charges * _gb_potential(run, system, born),
        definition.nonpolar(atoms.gb_radii, born, system.model),
    )


def _gb_potential(run: Run, system: System, born: Floats) -> Floats:
    """Sum over all other atoms j of q_j times eq. 8, (n,) e/A."""
    tiles, layout, model, places = system.tiles, system.layout, system.model, system.places(run)
    macros = {"TILE": layout.tile, "VECTORS": layout.vectors, "SCREENED": int(model.kappa > 0)}
    kernel, add = (
        run.kernel("solvent/energy.cl", name, layout.width, **macros) for name in ("gb_potential", "add_potentials")
    )
    n, (n_chunks, tiles_per_chunk) = tiles.n_places, layout.chunks(len(tiles))
    inverses, potential = system.buffer(run, "inverses", n), system.buffer(run, "potential", n)
    parts = system.buffer(run, "parts", n_chunks * n)
    run.write(inverses, np.take(1 / born, tiles.order).astype(run.dtype))
    real = run.dtype.type
    run.launch_rows(
        kernel, layout.shape(tiles, n_chunks), layout.group, system.pairs,
        np.int32(len(tiles)), np.int32(tiles_per_chunk),
        real(1 / model.solute_dielectric), real(1 / model.solvent_dielectric), real(model.kappa),
        places.points, *places.axes, inverses, places.boxes[0], places.counts, parts,
    )  # fmt: skip
    run.launch(add, (n,), (ITEMS,), np.int32(n), np.int32(n_chunks), parts, potential)
    return tiles.scatter(run.download(potential, n))
