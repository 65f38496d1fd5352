"""Molecular energy in implicit solvent and its gradient."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, overload

from numpy.typing import ArrayLike

from ..atoms import Atoms
from ..common.arguments import checked
from ..common.errors import KeywordError, refuse_for_atoms
from ..common.modules import lazy_names, make_callable, takes, takes_structures

if TYPE_CHECKING:  # the same names as below, for checkers and editors
    from typing_extensions import Unpack

    from ..common.variant import Progress
    from ..gb_models.solvent_model import SolventModel
    from ..jobs.words import FileWords, SolventWords
    from ..opencl.device import Device
    from .plan import Energy
    from .result import TERMS, EnergyBatch, EnergyResult
    from .term_set import summary
    from .terms import Term
    from .variants import BORN, VARIANTS, choose_variant

__all__ = [
    "BORN",
    "TERMS",
    "VARIANTS",
    "Energy",
    "EnergyBatch",
    "EnergyResult",
    "Term",
    "choose_variant",
    "energy",
    "summary",
]


@overload
def energy(
    atoms: Atoms, *, gradient: bool = ..., fixed_radii: bool = ..., one_four: Literal["scale", "exclude"] = ...,
    cutoff: float | None = ..., per_atom: bool = ..., frozen: ArrayLike | None = ..., terms: Sequence[Term] = ...,
    only_terms: Sequence[str] | str | None = ..., precision: str = ..., variant: str = ..., born: str = ...,
    accuracy: float | None = ..., device: Device | int | str | None = ..., model: SolventModel | None = ...,
    **words: Unpack[SolventWords],
) -> EnergyResult: ...  # fmt: skip
@overload
def energy(
    atoms: str | PathLike[str] | Sequence[str | PathLike[str]], output: str | PathLike[str] | None = ..., *,
    gradient: bool = ..., fixed_radii: bool = ...,
    one_four: Literal["scale", "exclude"] = ..., cutoff: float | None = ..., per_atom: bool = ...,
    only_terms: Sequence[str] | str | None = ..., precision: str = ..., variant: str = ..., born: str = ...,
    accuracy: float | None = ..., device: Device | int | str | None = ..., model: SolventModel | int | None = ...,
    models: Literal["one", "all"] = ..., per_residue: bool = ..., strict: bool = ..., progress: Progress | None = ...,
    **words: Unpack[FileWords],
) -> Any: ...  # fmt: skip
@checked
@takes("object", "reading", "solvent", "trajectory", "run", ".spec:EnergySpec")
@takes_structures("either")
def energy(
    atoms: Atoms | str | PathLike[str] | Sequence[str | PathLike[str]],
    output: str | PathLike[str] | None = None,
    *,
    gradient: bool = True,
    fixed_radii: bool = False,
    one_four: Literal["scale", "exclude"] = "scale",
    cutoff: float | None = None,
    per_atom: bool = False,
    frozen: ArrayLike | None = None,
    terms: Sequence[Term] = (),
    only_terms: Sequence[str] | str | None = None,
    precision: str = "float32",
    variant: str = "auto",
    born: str = "auto",
    accuracy: float | None = None,
    device: Device | int | str | None = None,
    model: SolventModel | int | None = None,
    models: Literal["one", "all"] = "one",
    per_residue: bool = False,
    strict: bool = False,
    **words: Any,
) -> Any:
    """Compute the energy of a molecule and its gradient: bonded, Lennard-Jones, Coulomb, GB and nonpolar terms.

    The formulas are in docs/theory/energy.md. Use Energy to evaluate many conformations of one molecule.

    >>> import pele_ocl
    >>> result = pele_ocl.energy("data/structures/trialanine.pdb", gb="obc2")
    >>> print(f"{result.total:.1f} kcal/mol")
    -135.5 kcal/mol

    atoms : Atoms with charges, lj_sigma, lj_epsilon, gb_radii and gb_scales, as needed by the terms; n >= 1. Or a file
        path, several paths or a glob pattern; files are read and checked as by the command. Objects of other libraries
        are read like files: a Universe or an AtomGroup of MDAnalysis, a Trajectory of MDTraj, a Structure of ParmEd,
        Atoms of ASE, a Mol of RDKit, a PDBFile of OpenMM (docs/libraries.md)
    output : for files, table of results to write: .csv, .h5 or .json
    gradient : False to compute only energies
    fixed_radii : True for the gradient at fixed Born radii, as in PELE
    one_four : "scale" Lennard-Jones and Coulomb interactions of 1-4 pairs by atoms.one_four, or "exclude" them; pairs
        separated by one or two bonds are always excluded, and GB includes all pairs
    cutoff : A; applies to Lennard-Jones, Coulomb and GB, but not to Born radii; None for all pairs
    per_atom : True to compute energies per atom and per residue
    frozen : atoms that do not move, a mask (n,) or indices. Their gradient is 0, and constant interactions among them
        are computed once; their positions must be the same in all conformations
    terms : additional terms, such as PositionalRestraint(10.0)
    only_terms : names of the force field's terms to compute, such as ("bond", "angle") or "bond,angle"; bonded,
        nonbonded and gb are groups of terms; by default all
    precision : "float32" or "float64"
    variant : key of VARIANTS, or "auto"
    born : how Born radii are computed: a key of BORN, "pairs" or "tree", or "auto"; pair energies and the chain rule
        use all pairs. For sgbnp and vdgbnp it is always "surface". "auto" uses the tree for large molecules without
        frozen atoms in float32, and in float64 if an accuracy is given
    accuracy : largest relative error of a Born radius with "tree", 1e-6 to 1e-4; by default 1e-5
    device : a Device, an index from `pele-ocl devices`, or part of a name; by default PELE_OCL_DEVICE or the best
    model : GB model, constants, ions and nonpolar term; by default SolventModel(). For a file also the number of the
        model to read
    models : "all" to read all models of a PDB file as conformations of one molecule
    per_residue : True to record energies per residue, for a trajectory their means
    strict : True to raise an error where otherwise only a note is given: atoms too close, open disulphides,
        unreasonable energies
    words : further options of `pele-ocl energy`, with underscores. For reading: `forcefield`, `select`, `without`,
        `only`, `coordinates`, `parameters`, `radii`, `templates`, `obc`, `pele_data`, `ligands` and others of
        pele_ocl.jobs.Reading, and `pele_conf`, PELE's control file, which may also replace the structure. For the
        solvent: `like`, or fields of SolventModel such as `gb` and `ionic_strength`. For the run: `trajectory`,
        `frames`, `topology` and `image`; `resume`, `workers`, `scheduler`, `shard`; `progress`, called with the
        fraction done, 0 to 1; `errors`, "raise" to raise an error instead of recording NaN for a failed part

    Returns an EnergyResult, kcal/mol and A, with kernel times, and for "tree" the measured error. Returns an Evaluation
    with one result per model for all models, FrameEnergies for a trajectory, and Structures for several paths. Each has
    `table()`, `to_json()`, `text()` and `save(path)`. Time scales as n^2, memory as n.

    Raises InputError for coincident atoms, unknown options and overflowing energies, ParameterError for a radius at or
    below the offset, and DeviceError for a request that the device does not support. For files, also the errors of
    pele_ocl.read.
    """
    if isinstance(atoms, Atoms):
        refuse_for_atoms(output=output is not None, models=models != "one", per_residue=per_residue, strict=strict)
    if isinstance(atoms, Atoms) and not words and not isinstance(model, int):
        from .plan import Energy, EnergyAndAtoms

        plan = (EnergyAndAtoms if per_atom else Energy)(
            atoms, gradient=gradient, fixed_radii=fixed_radii, one_four=one_four, cutoff=cutoff,
            frozen=frozen, terms=terms, only_terms=_names(only_terms), precision=precision, variant=variant, born=born,
            accuracy=accuracy, device=device, model=model,
        )  # fmt: skip
        return plan.evaluate(profile=True)
    if output is not None:
        words["output"] = output
    from ..doors import Door
    from .spec import EnergySpec

    door = Door.of(energy, words, model, device, spec=EnergySpec)
    if isinstance(atoms, Atoms):
        door.require_atoms()
        if door.frames:
            from .plan import Energy

            plan = Energy(
                atoms, gradient=False, one_four=one_four, cutoff=cutoff, terms=terms, only_terms=_names(only_terms),
                precision=precision, variant=variant, born=born, accuracy=accuracy, device=device, model=door.model,
            )  # fmt: skip
            return door.over(plan)
        return energy(
            atoms, gradient=gradient, fixed_radii=fixed_radii, one_four=one_four, cutoff=cutoff, per_atom=per_atom,
            frozen=frozen, terms=terms, only_terms=only_terms, precision=precision, variant=variant, born=born,
            accuracy=accuracy, device=device, model=door.model,
        )  # fmt: skip
    if frozen is not None or terms != ():
        raise KeywordError("`frozen` and `terms` need Atoms; use pele_ocl.read for files")
    names = _names(only_terms)
    spec = EnergySpec(
        reading=door.reading, models=models, gradient=gradient, fixed_radii=fixed_radii, one_four=one_four,
        cutoff=cutoff, terms=None if names is None else tuple(names), precision=precision, variant=variant, born=born,
        accuracy=accuracy, device=door.run.device, model=door.model, per_residue=per_residue, strict=strict,
        mentioned=tuple(name for name in ("surface", "gb") if name in words), per_atom=per_atom,
        **door.own,
    )  # fmt: skip
    return door.evaluated(spec, atoms, alone={"models_all": models == "all", "fixed_radii": fixed_radii})


def _names(terms: Sequence[str] | str | None) -> Sequence[str] | None:
    """Split a text of term names at commas; spaces may replace underscores."""
    return ["_".join(name.split()) for name in terms.split(",")] if isinstance(terms, str) else terms


if not TYPE_CHECKING:  # names by module
    __getattr__ = lazy_names(
        __name__,
        {
            "plan": "Energy",
            "result": "TERMS EnergyBatch EnergyResult",
            "term_set": "summary",
            "terms": "Term",
            "variants": "BORN VARIANTS choose_variant",
        },
    )

make_callable(__name__)
