"""Energy minimization of one or many structures on a device."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from numpy.typing import ArrayLike

from ..atoms import Atoms
from ..common.arguments import checked, described, file_path, former_keywords
from ..common.errors import InputError, KeywordError
from ..common.indices import selection_text
from ..common.modules import make_callable, takes, takes_structures
from ..common.variant import Progress
from ..contract import Image
from ..energy import Term
from ..energy.restraints import Held, Texts
from ..gb_models.solvent_model import SolventModel
from ..jobs.provenance import Provenance
from ..jobs.shards import Place, Shard
from .minimizer import EachOptions, Minimizer, Watch, minimize_all
from .options import BOUNDS, METHODS, tolerance_of
from .result import REASONS, MinimizeBatch, MinimizeResult

if TYPE_CHECKING:
    from ..opencl.device import Device
    from ..reading import Reading
    from ..trajectories import Trajectory
    from ..trajectories.frames import FrameWords
    from ..trajectories.reading import Paths
    from .conformations import OpensFrames

__all__ = ["METHODS", "REASONS", "MinimizeBatch", "MinimizeResult", "Minimizer", "minimize", "minimize_many"]


What = Atoms | str | PathLike[str]  # to minimize


@overload
def minimize(
    what: What,
    output: str | PathLike[str] | None = None,
    *,
    models: Literal["one"] = "one",
    trajectory: None = None,
    **options: Any,
) -> MinimizeResult: ...
@overload
def minimize(
    what: What, output: str | PathLike[str] | None = None, *, models: Literal["all"], **options: Any
) -> MinimizeBatch: ...
@overload
def minimize(
    what: What, output: str | PathLike[str] | None = None, *, trajectory: Trajectory | Paths, **options: Any
) -> MinimizeBatch: ...
@overload
def minimize(what: Sequence[What], output: str | PathLike[str] | None = None, **options: Any) -> MinimizeBatch: ...
@former_keywords(largest="max_gradient", energy_change="energy_tolerance", restore="bond_repair")
@checked
@takes("reading", "solvent", ".options:Stopping")
@takes_structures("atoms")
def minimize(
    what: What | Sequence[What],
    output: str | PathLike[str] | None = None,
    *,
    method: str = "lbfgs",
    tolerance: float | str = 0.1,
    max_gradient: float | None = None,
    energy_tolerance: float | None = None,
    max_iterations: int = 10_000,
    max_seconds: float | None = None,
    terms: Sequence[Term] = (),
    frozen: ArrayLike | None = None,
    restrain: Texts = (),
    distance: Texts = (),
    torsion: Texts = (),
    reference: str | PathLike[str] | None = None,
    freeze: str | None = None,
    constraints: str | None = None,
    bond_repair: bool = True,
    rounds: int = 1,
    fixed_radii: bool = False,
    one_four: Literal["scale", "exclude"] = "scale",
    cutoff: float | None = None,
    only_terms: str | Sequence[str] | None = None,
    precision: str = "float32",
    variant: str = "auto",
    device: Device | int | str | None = None,
    model: SolventModel | int | None = None,
    strict: bool = False,
    models: Literal["one", "all"] = "one",
    trajectory: Trajectory | Paths | OpensFrames | None = None,
    frames: FrameWords = None,
    topology: str | PathLike[str] | None = None,
    image: Image | None = None,
    table: str | PathLike[str] | None = None,
    resume: bool = False,
    workers: int | None = None,
    scheduler: str | None = None,
    shard: str | Shard | None = None,
    errors: Literal["raise", "record"] = "raise",
    progress: Progress | None = None,
    watch: Watch | None = None,
    reading: Reading | None = None,
    provenance: Provenance | None = None,
    **words: Any,
) -> MinimizeResult | MinimizeBatch:
    """Minimize the energy of a structure; docs/theory/minimize.md describes the methods.

    For many calls with one molecule in memory use Minimizer, for many molecules in memory minimize_many.

    what : Atoms as in `energy`, with the bonded terms of a force field, or the path of a structure; or a list of
        these, or a glob pattern such as "designs/*.pdb". Also objects of other libraries (docs/libraries.md)
    output : file to write; for several structures a folder, or a name such as "minima/{name}.cif"; for a trajectory or
        all models one file. By default nothing is written
    method : "lbfgs", "newton" for truncated Newton as in PELE, "fire", or "steepest" for steepest descent
    tolerance : converged if the root mean square gradient of the n moving atoms, sqrt(sum |g|^2 / n), is at most
        this, kcal/mol/A, or text with a unit, "1kJ/mol/nm"; the same criterion as in OpenMM's minimizer, whose default
        is 10 * units.KJ_PER_MOL_NM
    max_gradient : converged if no atom's gradient is larger, kcal/mol/A
    energy_tolerance : converged if three consecutive iterations change the energy by less, kcal/mol
    max_iterations, max_seconds : limits; a structure that reaches them is not converged, which is not an error
    terms : additional terms, such as PositionalRestraint(10.0), for a molecule given as Atoms
    frozen : atoms that do not move, a mask (n,) or indices; interactions among them are computed once, as in `energy`,
        if all structures have them at the positions of `atoms`
    restrain : restrains atoms to their initial positions, "SELECTION:K" or "SELECTION:K,FLAT": "backbone:10", K in
        kcal/mol/A^2, FLAT in A; one text or several, like the next two
    distance : restrains the distance of two atoms given by selections, "ATOM|ATOM:K,R0" or with FLAT, R0 and FLAT in A
    torsion : restrains a torsion, "A|B|C|D:K,DEGREES" or with FLAT, K in kcal/mol/rad^2
    reference : structure with reference positions for `restrain`, by default the initial ones
    freeze : a selection of atoms that do not move: "not within 6 of resname LIG"; a mask, indices or an AtomGroup
    constraints : "hbonds" constrains bonds to hydrogen to the lengths of the force field, to 1e-5 A; "hbonds-present"
        to their current lengths; the gradient is then projected
    bond_repair : restore bond lengths before the first step if more than 2 % of the bonds are off by 0.5 A; the result
        has the number of restored bonds
    rounds : largest number of minimizations, each up to max_iterations; they end when no atom moves any more
    fixed_radii : keep the Born radii fixed within each round, like PELE's alphaUpdated: false
    one_four, cutoff, only_terms, precision, variant, device : as in `energy`
    model : a SolventModel, or the number of the model to read from a file with several
    strict : raise an error for findings that otherwise only cause notes
    models : "all" for all models of a PDB file; trajectory : files, or frames in memory, with starting positions for
        one structure, with frames, topology and image as in `pele_ocl.trajectory`
    table : file for `result.table()`: .csv, .h5 or .json
    resume : continue an interrupted run of several structures or frames that wrote to `output`
    workers, scheduler, shard : as in `jobs.run`, for several structures or frames
    errors : "record" for NaN and a message in `errors` if a structure fails; "raise" for an InputError, before any work
        if a file does not exist
    progress : called with the fraction done, 0 to 1
    watch : called with the number of structures done, the total number, and the largest rms gradient of the others,
        kcal/mol/A
    reading : how to read files, a Reading; or its fields as keywords, as in `pele_ocl.read` (forcefield, select,
        coordinates ...), and constants of the solvent (gb, like, ionic_strength ...)
    provenance : facts to write to files

    Returns the MinimizeResult of one structure, otherwise a MinimizeBatch. Results of several structures that were
    written to files load their atoms from these files when needed.

    Raises InputError for unknown options or combinations, and, with the reason, for a structure that cannot be
    minimized. Raises FormatError for files that cannot be read or written.

        >>> import pele_ocl
        >>> from pele_ocl.common.installation import shipped
        >>> path = shipped("data") / "structures" / "trialanine.pdb"
        >>> result = pele_ocl.minimize(path, tolerance="0.2kJ/mol/A", restrain="backbone:1")
        >>> result.converged, bool(result.total < result.energy_before.total)
        (True, True)
    """
    from ..energy.result import terms_listed
    from ..trajectories.given import FrameOptions
    from .conformations import Frames
    from .running import Run, described_by
    from .spec import MinimizeSpec

    taken: OpensFrames | None = None
    if words.get("select") is not None:
        words["select"] = selection_text("select", words["select"])
    first = FrameOptions.of_files(trajectory, frames, words.get("select") if reading is None else None, topology, image)
    if first is not None:
        taken = first
        words = words if topology is None else {name: value for name, value in words.items() if name != "select"}
    elif trajectory is not None:
        given_frames: Any = trajectory
        is_opened = hasattr(trajectory, "opened")
        taken = given_frames if is_opened else Frames(given_frames, frames, topology, image or "auto")
    else:
        given = {"frames": frames, "topology": topology, "image": image}
        for name, value in given.items():
            if value is not None:
                raise KeywordError(f"`{name}` applies to a trajectory; give one as `trajectory`")
    bounds = {name: words.pop(name) for name in BOUNDS if name in words}
    solvent, reads = described_by(minimize, words, model, reading, what, first)
    options: dict[str, Any] = {
        "method": method, "tolerance": tolerance_of(tolerance), "max_gradient": max_gradient,
        "energy_tolerance": energy_tolerance, "max_iterations": max_iterations, "max_seconds": max_seconds,
        "bond_repair": bond_repair, "rounds": rounds, "fixed_radii": fixed_radii, "one_four": one_four,
        "cutoff": cutoff, "only_terms": terms_listed(only_terms), "constraints": constraints, "precision": precision,
        "variant": variant, "device": device, "model": solvent, **bounds,
    }  # fmt: skip
    held = Held.of(restrain, distance, torsion, reference, freeze)
    if not isinstance(terms, list | tuple):
        raise InputError(f"terms are {described(terms)}; expected a list of restraints")
    if len(terms) or frozen is not None:
        if held != Held():
            raise InputError("choose one of `terms` and `restrain`, and one of `frozen` and `freeze`")
        options |= {"terms": terms, "frozen": frozen}
    tell = None if progress is None else (lambda done, n, _: progress(done / n))
    place = Place(workers, scheduler, None if device is None else str(device))
    if output is not None:
        file_path(output, "output")
    target = "" if output is None else str(output)  # a "/" at the end means a folder
    run = Run(
        MinimizeSpec(
            target, reads, options, strict, held.referring(reads),
            Provenance() if provenance is None else provenance,
        ),
        taken, models, None if table is None else Path(table), resume, place,
        Shard.of(shard) if isinstance(shard, str) else shard, errors, tell if watch is None else watch,
    )  # fmt: skip
    return run.minimized(what)


def minimize_many(
    molecules: Sequence[Atoms], *, each: EachOptions | None = None, errors: Literal["raise", "record"] = "raise",
    progress: Progress | None = None, watch: Watch | None = None, **options: object,
) -> MinimizeBatch:  # fmt: skip
    """Minimize different molecules, or conformations of one; each result depends only on its molecule.

    Molecules share launches; results are bit-identical to single runs on the same device (docs/theory/minimize.md,
    section 8).

    each : a function of the Atoms that returns further options, such as terms and frozen atoms
    errors, progress, watch : as in Minimizer.minimize_batch; errors name the first failed molecule
    options : as in Minimizer, the same for all

    >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
    >>> pele_ocl.minimize_many([atoms, atoms.moved(atoms.positions * 1.01)], max_iterations=2).iterations.tolist()
    [2, 2]
    """
    return minimize_all(molecules, each, errors, progress, watch, options)


make_callable(__name__)
