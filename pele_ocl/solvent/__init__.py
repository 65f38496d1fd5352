"""Born radii and implicit-solvent energy: Generalized Born with a nonpolar term."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, overload

from ..atoms import Atoms
from ..common.arguments import checked
from ..common.errors import refuse_for_atoms
from ..common.modules import lazy_names, make_callable, takes, takes_structures

if TYPE_CHECKING:  # the same names as below, for checkers and editors
    from typing_extensions import Unpack

    from ..common.variant import Progress
    from ..gb_models.solvent_model import SolventModel
    from ..jobs.words import FileWords, SolventWords
    from ..opencl.device import Device
    from .error import RadiusError
    from .plan import Solvent
    from .result import SolventBatch, SolventResult
    from .variants import VARIANTS, choose_variant

__all__ = [
    "VARIANTS",
    "RadiusError",
    "Solvent",
    "SolventBatch",
    "SolventResult",
    "choose_variant",
    "solvent",
]


@overload
def solvent(
    atoms: Atoms, *, variant: str = ..., precision: str = ...,
    device: Device | int | str | Sequence[Device | int | str] | None = ..., model: SolventModel | None = ...,
    progress: Progress | None = ..., accuracy: float | None = ..., energy: bool = ..., **words: Unpack[SolventWords],
) -> SolventResult: ...  # fmt: skip
@overload
def solvent(
    atoms: str | PathLike[str] | Sequence[str | PathLike[str]], output: str | PathLike[str] | None = ..., *,
    variant: str = ..., precision: str = ...,
    device: Device | int | str | Sequence[Device | int | str] | None = ..., model: SolventModel | int | None = ...,
    progress: Progress | None = ..., accuracy: float | None = ..., energy: bool = ...,
    models: Literal["one", "all"] = ..., per_residue: bool = ..., strict: bool = ..., **words: Unpack[FileWords],
) -> Any: ...  # fmt: skip
@checked
@takes("object", "reading", "solvent", "trajectory", "run", ".spec:SolventSpec")
@takes_structures("either")
def solvent(
    atoms: Atoms | str | PathLike[str] | Sequence[str | PathLike[str]],
    output: str | PathLike[str] | None = None,
    *,
    variant: str = "auto",
    precision: str = "float32",
    device: Device | int | str | Sequence[Device | int | str] | None = None,
    model: SolventModel | int | None = None,
    progress: Progress | None = None,
    accuracy: float | None = None,
    energy: bool = True,
    models: Literal["one", "all"] = "one",
    per_residue: bool = False,
    strict: bool = False,
    **words: Any,
) -> Any:
    """Compute the Born radii and the implicit-solvent energy of a molecule.

    The default is the OBC model (Onufriev, Bashford and Case, Proteins 55, 383 (2004)) with HCT integrals and the ACE
    nonpolar term; the formulas are in docs/theory/solvent.md. Use Solvent to evaluate many conformations of one
    molecule.

    >>> import pele_ocl
    >>> result = pele_ocl.solvent("data/structures/trialanine.pdb")
    >>> print(f"{result.gb_pair + result.gb_self:.1f} kcal/mol")
    -122.7 kcal/mol

    atoms : Atoms with charges, gb_radii and gb_scales; n >= 1. Or a file path, several paths or a glob pattern; files
        are read and checked as by the command. Or an object of another library (docs/libraries.md)
    output : for files, table of results to write: .csv, .h5 or .json
    variant : how Born radii are computed: a key of VARIANTS, "auto", or a rung of pele_ocl.ladder
    precision : "float32" or "float64"
    device : a Device, an index from `pele-ocl devices`, or part of a name; by default PELE_OCL_DEVICE or the best. A
        sequence of identical devices divides the work of "tree"
    model : GB model, constants, ions and nonpolar term; by default SolventModel(). For a file also the number of the
        model to read
    progress : called with the fraction done of the current step, 0 to 1
    accuracy : largest relative error of a Born radius with "tree", 1e-6 to 1e-4; by default 1e-5. "auto" uses "tree"
        for large molecules in float32, and in float64 if an accuracy is given
    energy : False to compute only Born radii; coincident atoms of later conformations may then not be detected
    models : "all" to read all models of a PDB file as conformations of one molecule
    per_residue : True to record energies per residue
    strict : True to raise an error where otherwise only a note is given: atoms too close, open disulphides
    words : further options of `pele-ocl solvent`, with underscores: for reading, solvent and run, as in `energy`

    Returns a SolventResult: radii in A, energies in kcal/mol, and for "tree" the measured error. Returns an Evaluation
    with one result per model for all models, FrameEnergies for a trajectory, and Structures for several paths. Each has
    `table()`, `to_json()`, `text()` and `save(path)`. Time scales as n^2, for Born radii by "tree" as n log n; memory
    as n.

    Raises InputError for coincident atoms and unknown options, ParameterError for a radius at or below the offset, and
    DeviceError for a request that the device does not support. For files, also the errors of pele_ocl.read.
    """
    if isinstance(atoms, Atoms):
        refuse_for_atoms(output=output is not None, models=models != "one", per_residue=per_residue, strict=strict)
    if isinstance(atoms, Atoms) and not words and not isinstance(model, int):
        from ..plan.selection import having
        from .plan import Solvent

        start = time.perf_counter()
        plan = having(Solvent, variant)(
            atoms, variant=variant, precision=precision, device=device, model=model, accuracy=accuracy, energy=energy
        )
        result = plan.evaluate(profile=True, progress=progress)
        return replace(result, seconds={**result.seconds, "total": time.perf_counter() - start})
    if output is not None:
        words["output"] = output
    from ..doors import Door
    from .spec import SolventSpec

    door = Door.of(solvent, {**words, "progress": progress}, model, spec=SolventSpec)
    if isinstance(atoms, Atoms):
        door.require_atoms()
        if door.frames:
            from ..plan.selection import having
            from .plan import Solvent

            return door.over(
                having(Solvent, variant)(
                    atoms, variant=variant, precision=precision, device=device, model=door.model, accuracy=accuracy
                )
            )
        return solvent(
            atoms, variant=variant, precision=precision, device=device, model=door.model, progress=progress,
            accuracy=accuracy, energy=energy,
        )  # fmt: skip
    several = tuple(map(str, device)) if isinstance(device, Sequence) and not isinstance(device, str) else None
    chosen = several or (None if device is None else str(device))
    spec = SolventSpec(
        reading=door.reading, models=models, energy=energy, variant=variant, accuracy=accuracy, precision=precision,
        device=chosen, model=door.model, per_residue=per_residue, strict=strict, **door.own,
    )  # fmt: skip
    alone = {"energy=False": not energy, "models_all": models == "all", "per_residue": per_residue}
    return replace(door, run=replace(door.run, device=chosen if isinstance(chosen, str) else None)).evaluated(
        spec, atoms, alone=alone
    )


if not TYPE_CHECKING:  # names by module
    __getattr__ = lazy_names(
        __name__,
        {
            "error": "RadiusError",
            "plan": "Solvent",
            "result": "SolventBatch SolventResult",
            "variants": "VARIANTS choose_variant",
        },
    )

make_callable(__name__)
