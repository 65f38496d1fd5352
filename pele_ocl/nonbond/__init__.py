"""Nonbonded energy and gradient over a pair list: Lennard-Jones, Coulomb and the GB pair term."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, overload

from ..atoms import Atoms
from ..common.arguments import checked
from ..common.errors import refuse_for_atoms
from ..common.modules import lazy_names, make_callable, takes, takes_structures
from ..pairs import AllPairs, PairList

if TYPE_CHECKING:  # the same names as below, for checkers and editors
    from typing_extensions import Unpack

    from ..atoms import Floats
    from ..common.variant import Progress
    from ..gb_models.solvent_model import SolventModel
    from ..jobs.words import EvaluationWords, SolventWords
    from ..opencl.device import Device
    from ..pairs import Pairs
    from .plan import Nonbond
    from .result import NonbondBatch, NonbondResult
    from .variants import VARIANTS, choose_variant

__all__ = ["VARIANTS", "Nonbond", "NonbondBatch", "NonbondResult", "choose_variant", "nonbond"]


@overload
def nonbond(
    atoms: Atoms, pairs: Pairs, born_radii: Floats | None = ..., *, solvent: Literal["gb", "vacuum"] | None = ...,
    gradient: bool = ..., variant: str = ..., precision: str = ..., device: Device | int | str | None = ...,
    model: SolventModel | None = ..., internal_dielectrics: Floats | None = ..., progress: Progress | None = ...,
    **words: Unpack[SolventWords],
) -> NonbondResult: ...  # fmt: skip
@overload
def nonbond(
    atoms: Atoms | str | PathLike[str] | Sequence[str | PathLike[str]],
    pairs: Pairs | str | PathLike[str] | None = ...,
    born_radii: Floats | None = ..., *, solvent: Literal["gb", "vacuum"] | None = ..., gradient: bool = ...,
    variant: str = ..., precision: str = ..., device: Device | int | str | None = ...,
    model: SolventModel | int | None = ..., internal_dielectrics: Floats | None = ..., progress: Progress | None = ...,
    cutoff: float | None = ..., one_four: Literal["exclude", "scale"] = ...,
    internal_dielectric: Literal["uniform", "vdgbnp"] = ..., models: Literal["one", "all"] = ..., strict: bool = ...,
    write_pairs: str | PathLike[str] | None = ..., **words: Unpack[EvaluationWords],
) -> Any: ...  # fmt: skip
@checked
@takes("object", "reading", "solvent", "trajectory", "run", ".spec:NonbondSpec")
@takes_structures("either")
def nonbond(
    atoms: Atoms | str | PathLike[str] | Sequence[str | PathLike[str]],
    pairs: Pairs | str | PathLike[str] | None = None,
    born_radii: Floats | None = None,
    *,
    solvent: Literal["gb", "vacuum"] | None = None,
    gradient: bool = True,
    variant: str = "auto",
    precision: str = "float32",
    device: Device | int | str | None = None,
    model: SolventModel | int | None = None,
    internal_dielectrics: Floats | None = None,
    progress: Progress | None = None,
    cutoff: float | None = None,
    one_four: Literal["exclude", "scale"] = "exclude",
    internal_dielectric: Literal["uniform", "vdgbnp"] = "uniform",
    models: Literal["one", "all"] = "one",
    strict: bool = False,
    write_pairs: str | PathLike[str] | None = None,
    **words: Any,
) -> Any:
    """Compute Lennard-Jones, Coulomb and GB energies over a pair list, and the gradient at fixed Born radii.

    The formulas are in docs/theory/nonbond.md. Use Nonbond to evaluate one list many times.

    >>> import pele_ocl
    >>> result = pele_ocl.nonbond("data/structures/trialanine.pdb", cutoff=8.0)
    >>> print(result.n_pairs, "pairs")
    297 pairs

    atoms : Atoms with charges, lj_sigma and lj_epsilon. Or a file path, read and checked as by the command; or several
        paths
    pairs : PairList or AllPairs, in any order. By default the pairs within `cutoff`; "all"; "split" for PELE's short
        list; or for a file the path of a list
    born_radii : (n,) A; by default computed by `solvent`
    solvent : "gb", the default, or "vacuum" for no GB term
    variant : key of VARIANTS, "auto", or a rung of pele_ocl.ladder
    precision, device, model, progress : as in `solvent`
    internal_dielectrics : (n,) internal dielectric of each atom; pairs use the larger one (PELE's VDGBNP). By default
        the model's solute dielectric
    cutoff : A, 12 by default; one_four : "exclude" pairs separated by three bonds, or "scale" them
    internal_dielectric : "vdgbnp" for PELE's dielectric constants by residue
    models, strict : as in `energy`; write_pairs : file for the list, .h5, .npz or text
    words : further options of `pele-ocl nonbond`, with underscores: for reading, solvent and run, as in `energy`;
        `output`, a file to write

    Returns a NonbondResult, kcal/mol and A. Returns an Evaluation with one result per model for all models,
    FrameEnergies for a trajectory, and Structures for several paths. Each has `table()`, `to_json()`, `text()` and
    `save(path)`. Time scales with the number of pairs.

    Raises InputError for coincident atoms, and for options or arrays that do not fit,
    and DeviceError for a request that the device does not support.
    """
    if isinstance(atoms, Atoms):
        refuse_for_atoms(models=models != "one", strict=strict, write_pairs=write_pairs)
    if isinstance(atoms, Atoms) and isinstance(pairs, PairList | AllPairs) and not words and not isinstance(model, int):
        from ..plan.selection import having
        from .plan import Nonbond

        plan = having(Nonbond, variant)(
            atoms, pairs, solvent="gb" if solvent is None else solvent, gradient=gradient, variant=variant,
            precision=precision, device=device, model=model, internal_dielectrics=internal_dielectrics,
            progress=progress,
        )  # fmt: skip
        return plan.evaluate(born_radii=born_radii, profile=True)
    from .spec import evaluated

    return evaluated(
        atoms, pairs, born_radii, solvent=solvent, gradient=gradient, variant=variant, precision=precision,
        device=device, model=model, internal_dielectrics=internal_dielectrics, progress=progress, cutoff=cutoff,
        one_four=one_four, internal_dielectric=internal_dielectric, models=models, strict=strict,
        write_pairs=write_pairs, words=words, function=nonbond,
    )  # fmt: skip


if not TYPE_CHECKING:  # names by module
    __getattr__ = lazy_names(
        __name__,
        {"plan": "Nonbond", "result": "NonbondBatch NonbondResult", "variants": "VARIANTS choose_variant"},
    )

make_callable(__name__)
