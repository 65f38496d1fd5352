"""Relax predicted models with the protocols of AlphaFold and ColabFold, and report violations before and after."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from ..common.arguments import checked, file_path, former_keywords, one_output
from ..common.modules import make_callable, takes_structures
from ..common.variant import Progress
from ..jobs.provenance import Provenance
from ..minimize.minimizer import Watch
from .presets import PROTOCOLS, Protocol
from .relaxer import Relaxer
from .result import RelaxBatch, RelaxResult, Round, counts
from .violations import Violation, Violations

if TYPE_CHECKING:
    from ..opencl.device import Device

__all__ = [
    "PROTOCOLS",
    "Protocol",
    "RelaxBatch",
    "RelaxResult",
    "Relaxer",
    "Round",
    "Violation",
    "Violations",
    "counts",
    "relax",
]


@overload
def relax(
    what: str | PathLike[str], protocol: str | Protocol | PathLike[str] = "alphafold", **options: Any
) -> RelaxResult: ...
@overload
def relax(
    what: Sequence[str | PathLike[str]], protocol: str | Protocol | PathLike[str] = "alphafold", **options: Any
) -> RelaxBatch: ...
@former_keywords(like="protocol", path="what")  # type: ignore[misc]  # options are these keywords
@checked
@takes_structures("structure")
def relax(
    what: str | PathLike[str] | Sequence[str | PathLike[str]],
    protocol: str | Protocol | PathLike[str] = "alphafold",
    *,
    close_gaps: bool = False,
    max_iterations: int | None = None,
    precision: str = "float32",
    device: Device | int | str | None = None,
    strict: bool = False,
    output: str | PathLike[str] | None = None,
    table: str | PathLike[str] | None = None,
    resume: bool = False,
    errors: Literal["raise", "record"] = "raise",
    progress: Progress | None = None,
    watch: Watch | None = None,
    provenance: Provenance | None = None,
) -> RelaxResult | RelaxBatch:
    """Relax predicted models by restrained minimization with Amber99SB in vacuum, as AlphaFold does.

    Further rounds of minimization release residues that have violations. Models with the same sequence are prepared
    once. For repeated calls use Relaxer.

    what : a .pdb or .cif file, a list of them, or a pattern such as "predictions/*.pdb"; missing hydrogens are added,
        and other missing atoms if PDBFixer is installed
    protocol : "alphafold"; or "colabfold", with at most 2,000 iterations per round; or a Protocol. A path is taken as
        `output` instead: `relax(what, "relaxed.pdb")`
    close_gaps, max_iterations : as in Relaxer
    precision, device : as in `minimize`
    strict : refuse models with findings that otherwise only cause notes
    output : file to write, .pdb or .cif; for several models a folder, or a name such as "relaxed/{name}.pdb". By
        default nothing is written
    table : file for `result.table()`: .csv, .h5 or .json
    resume : continue an interrupted run of several models that wrote to `output`
    errors : if one of several models fails, "raise" an InputError, or "record" NaN and its message in `errors`
    progress : called with the fraction done, 0 to 1
    watch : called with the number of models done, the total number, and the current model's rms gradient, kcal/mol/A
    provenance : facts for the table

    Returns a RelaxResult for one model, a RelaxBatch for several.

    Raises FormatError or ParameterError for residues other than the amino acids of Amber99SB. Raises InputError for
    unknown options, for a model that cannot be minimized, and if PDBFixer is needed but not installed.

        >>> import pele_ocl
        >>> from pele_ocl.common.installation import shipped
        >>> result = pele_ocl.relax(shipped("data") / "structures" / "trialanine.pdb")
        >>> result.is_clean
        True
    """
    if isinstance(protocol, PathLike) or (
        isinstance(protocol, str) and protocol not in PROTOCOLS and set(protocol) & {".", "/"}
    ):
        output, protocol = one_output(protocol, output), "alphafold"
    from .running import relaxed
    from .spec import RelaxSpec

    if output is not None:
        file_path(output, "output")
    target = "" if output is None else str(output)  # as text, since a "/" at the end means a folder
    spec = RelaxSpec(target, protocol, close_gaps, max_iterations, precision, device, strict)
    tell = None if progress is None else (lambda done, n, _: progress(done / n))
    path = None if table is None else Path(table)
    told = tell if watch is None else watch
    return relaxed(what, spec, path, resume, errors, told, Provenance() if provenance is None else provenance)


make_callable(__name__)
