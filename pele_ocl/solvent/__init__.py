"""Born radii and implicit-solvent energy: Generalized Born with a nonpolar term."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..atoms import Atoms
from ..common.modules import lazy_names, make_callable
from ..common.variant import Progress
from ..gb_models.solvent_model import SolventModel
from .error import RadiusError
from .plan import Solvent
from .result import SolventBatch, SolventResult
from .variants import VARIANTS, choose_variant

if TYPE_CHECKING:
    from ..opencl.device import Device

__all__ = [
    "VARIANTS",
    "RadiusError",
    "Solvent",
    "SolventBatch",
    "SolventModel",
    "SolventResult",
    "choose_variant",
    "solvent",
]

if not TYPE_CHECKING:  # names for tests, by the file that has them
    __getattr__ = lazy_names(
        __name__,
        {
            "error": "SAMPLE SEED RadiusCheck SampledRadii sample_of",
            "layout": "SolventLayout",
            "sharing": "shared_passes",
            "tree_sums": "TreeShape TreeSums",
        },
    )


def solvent(
    atoms: Atoms,
    *,
    variant: str = "auto",
    precision: str = "float32",
    device: Device | int | str | Sequence[Device | int | str] | None = None,
    model: SolventModel | None = None,
    progress: Progress | None = None,
    accuracy: float | None = None,
    energy: bool = True,
) -> SolventResult:
    """Born radii and implicit-solvent energy of a molecule.

    By default the OBC model (Onufriev, Bashford and Case, Proteins 55, 383 (2004)) over HCT integrals, with the ACE
    nonpolar term; docs/theory/solvent.md has the formulas. Use Solvent to evaluate many conformations of one molecule.

    atoms : Atoms with charges, gb_radii and gb_scales; n >= 1
    variant : key of VARIANTS, or "auto": how the Born radii are computed
    precision : "float32" or "float64"
    device : a Device, an index of `pele-ocl devices`, or part of a name; by default PELE_OCL_DEVICE or the best. A
        sequence of several, which are alike, shares the work of "tree"
    model : GB model, constants, ions, nonpolar term; by default SolventModel()
    progress : called with the share done, 0 to 1, of the step at work
    accuracy : worst relative error of a Born radius that "tree" may make, 1e-6 to 1e-4; by default 1e-5. "auto" takes
        "tree" for large molecules in float32, in float64 where an accuracy is given
    energy : False for Born radii alone; what energies would give away, atoms of a later conformation at the same place,
        may then pass unnoticed

    Returns a SolventResult: radii in A, energies in kcal/mol, and of "tree" the error that was measured. Cost n^2, of
    Born radii alone by "tree" n log n; memory linear in n.

    Raises InputError for coincident atoms and unknown options, and ParameterError for a radius at or below the offset.
    Raises DeviceError if the device cannot do it.
    """
    start = time.perf_counter()
    plan = Solvent(
        atoms, variant=variant, precision=precision, device=device, model=model, accuracy=accuracy, energy=energy
    )
    result = plan.evaluate(profile=True, progress=progress)
    return replace(result, seconds={**result.seconds, "total": time.perf_counter() - start})


make_callable(__name__)
