"""Born radii and implicit-solvent energy: OBC Generalized Born with the ACE nonpolar term."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from ..atoms import Atoms, Floats, require_atoms
from ..errors import InputError
from ..reference import solvent as definition
from ..solvent_model import SolventModel
from ..tuning import remembered
from ..units import COULOMB_KCAL_A
from ..variant import PRECISIONS, Progress
from .checks import check_radii, check_span
from .layout import Layout
from .result import EnergyTerms, SolventResult
from .variants import VARIANTS, System, choose_variant

if TYPE_CHECKING:
    from ..opencl.device import Device
    from ..opencl.kernels import Run

__all__ = ["VARIANTS", "EnergyTerms", "SolventModel", "SolventResult", "choose_variant", "solvent"]


def solvent(
    atoms: Atoms,
    *,
    variant: str = "auto",
    precision: str = "float32",
    device: Device | int | str | None = None,
    model: SolventModel | None = None,
    progress: Progress | None = None,
) -> SolventResult:
    """Born radii and implicit-solvent energy of a molecule.

    The OBC model (Onufriev, Bashford and Case, Proteins 55, 383 (2004)) over HCT integrals, with the ACE nonpolar
    term; docs/theory/solvent.md has the formulas.

    atoms : Atoms with charges, gb_radii and gb_scales; n >= 1
    variant : key of VARIANTS, or "auto": how the Born radii are computed
    precision : "float32" or "float64"
    device : a Device, an index of `pele-ocl devices`, or part of a name; by default PELE_OCL_DEVICE or the best
    model : dielectric constants, ions, OBC coefficients; by default SolventModel()
    progress : called with the share done, 0 to 1, of the step at work

    Returns a SolventResult: radii in A, energies in kcal/mol. Cost n^2, memory linear in n.

    Raises InputError for coincident atoms and unknown options, ParameterError for a radius at or below the offset, and
    DeviceError where the device cannot do it.
    """
    # OpenCL is loaded when it is first needed: reading files and the command's help do without.
    from ..opencl.device import get_cpu_device, get_device
    from ..opencl.kernels import Run

    start = time.perf_counter()
    model = SolventModel.or_default(model)
    _check(atoms, variant, precision, model)
    device = get_device(device)
    choice = remembered("solvent", device, precision, len(atoms))
    if variant == "auto":
        variant = choice.variant or choose_variant(device.kind, len(atoms))
    if variant == "sequential":
        device = get_cpu_device(device)
    device.require_precision(precision)

    width, units = device.vector_width(precision), device.compute_units
    layout = Layout.of(device.kind, width, len(atoms), units)
    system = System.of(atoms, model, choice.applied(variant, layout))
    born_run, energy_run = Run(device, precision, progress), Run(device, precision, progress)
    with device.lock:
        psi, born = VARIANTS[variant].run(born_run, system)
        _check_radii(atoms, born)
        per_atom = _energies(energy_run, atoms, system, born)
    _check_energies(atoms, per_atom)

    seconds = {"born": born_run.kernel_seconds, "energy": energy_run.kernel_seconds}
    seconds |= {"kernel": sum(seconds.values()), "total": time.perf_counter() - start}
    return SolventResult(atoms, model, born, psi, per_atom, str(device), variant, precision, seconds)


def _check(atoms: Atoms, variant: str, precision: str, model: SolventModel) -> None:
    if variant != "auto" and variant not in VARIANTS:
        raise InputError(f"there is no variant {variant!r}; choose auto, {', '.join(VARIANTS)}")
    if precision not in PRECISIONS:
        raise InputError(f"there is no precision {precision!r}; choose {' or '.join(PRECISIONS)}")
    require_atoms(atoms)
    atoms.require(("charges", "gb_radii", "gb_scales"), "the solvent energy")
    check_radii(atoms, model)
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
        -COULOMB_KCAL_A / 2 * atoms.charges * _gb_potential(run, atoms, system, born),
        definition.nonpolar(atoms.gb_radii, born, system.model),
    )


def _gb_potential(run: Run, atoms: Atoms, system: System, born: Floats) -> Floats:
    """Sum over all other atoms j of q_j times eq. 8, (n,) e/A."""
    tiles, layout, model = system.tiles, system.layout, system.model
    kernel = run.kernel(
        "solvent_energy.cl", "gb_potential", layout.width,
        TILE=layout.tile, VECTORS=layout.vectors, SCREENED=int(model.kappa > 0),
    )  # fmt: skip
    n_chunks, tiles_per_chunk = layout.chunks(len(tiles))
    parts = run.empty(n_chunks * tiles.n_places)
    real = run.dtype.type
    run.launch_rows(
        kernel, layout.shape(tiles, n_chunks), layout.group, system.pairs,
        np.int32(len(tiles)), np.int32(tiles_per_chunk),
        real(1 / model.solute_dielectric), real(1 / model.solvent_dielectric), real(model.kappa),
        run.upload(np.column_stack([tiles.offsets, atoms.charges[tiles.order]])),
        *(run.upload(column) for column in tiles.offsets.T),
        run.upload(1 / born[tiles.order]),
        run.upload(np.column_stack([tiles.origins, np.zeros(len(tiles))])),
        run.upload(tiles.counts, np.int32),
        parts,
    )  # fmt: skip
    by_part = run.download(parts, n_chunks * tiles.n_places).reshape(n_chunks, -1)
    return tiles.scatter(by_part.sum(axis=0, dtype=np.float64))
