"""Binding energies: the energy of a complex minus those of its receptor and its ligand, for each frame."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import fields, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..atoms import Atoms
from ..common.arguments import array, checked, file_path, file_paths, flag, former_keywords, several_structures
from ..common.errors import InputError, KeywordError
from ..common.inputfile import NoFile, read_file
from ..common.modules import lazy_names, make_callable, takes, takes_structures
from ..common.notes import heard_notes
from ..doors import Door, matched, paths_of
from ..formats import is_structure, is_topology
from ..gb_models.solvent_model import SolventModel
from ..jobs.structures import structures_by
from ..reading import Models, MoleculeRead, Reading
from ..trajectories.given import FrameOptions, trajectory_paths
from .energies import PARTS, BindingEnergies
from .frames import PartFrames, SoluteFrame
from .parts import Chosen
from .plan import Binding
from .poisson_boltzmann import PBSolvent
from .result import BindingResult, BindingResults
from .spec import BindingFiles, BindingSpec
from .statistics import Spread, spread_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..jobs.words import ProgressWords
    from ..opencl.device import Device

__all__ = [
    "PARTS",
    "Binding",
    "BindingEnergies",
    "BindingResult",
    "BindingResults",
    "BindingSpec",
    "PBSolvent",
    "Spread",
    "binding",
    "spread_of",
]

if not TYPE_CHECKING:  # names for tests, by module
    __getattr__ = lazy_names(
        __name__,
        {
            "poisson_boltzmann": "PBSolvent",
        },
    )

Path_ = str | PathLike[str]
Paths = Path_ | Sequence[Path_]


@former_keywords(pb_surface="dielectric_surface")
@checked
@takes("object", "reading", "solvent", "trajectory", "run")
@takes_structures("atoms")
def binding(
    complex: Atoms | Path_ | Sequence[Path_],
    ligand: Chosen | Sequence[str],
    receptor: Chosen | None = None,
    *,
    strip: Chosen | None = None,
    models: Models = "one",
    receptor_trajectory: Paths = (),
    ligand_trajectory: Paths = (),
    receptor_structure: Path_ | None = None,
    ligand_structure: Path_ | None = None,
    poses: Path_ | None = None,
    pb: bool | PBSolvent = False,
    nonlinear: bool = False,
    dielectric_surface: str | None = None,
    spacing: float | None = None,
    padding: float | None = None,
    idecomp: int | None = None,
    entropy: bool = False,
    alanine: str | Sequence[int] | None = None,
    compare: Path_ | None = None,
    decomposition: Path_ | None = None,
    residue_plot: Path_ | None = None,
    heat_map: Path_ | None = None,
    running_mean: Path_ | None = None,
    bfactor_pdb: Path_ | None = None,
    one_four: Literal["scale", "exclude"] = "scale",
    cutoff: float | None = None,
    variant: str = "auto",
    precision: str = "float32",
    device: Device | int | str | None = None,
    model: SolventModel | int | None = None,
    strict: bool = False,
    **words: Unpack[ProgressWords],
) -> Any:
    """Compute the binding energy of a complex: its energy minus the energies of its receptor and its ligand.

    The default solvent is that of `energy`, OBC2; `gb="gbn2", solute_dielectric=2` gives the scores of `screen`.

    The method is MM/GBSA, with Born radii computed for each part, or MM/PBSA with `pb`, for one structure, its models,
    the frames of a trajectory, or poses (docs/binding.md). The parts have the positions of the complex, unless separate
    trajectories are given. For repeated calls use `Binding`.

    complex : Atoms, the path of a structure or topology, several paths or a pattern, or an object of another library
        (docs/libraries.md)
    ligand, receptor : a selection (docs/selection.md), a mask or indices, or an MDAnalysis AtomGroup; the default
        receptor is all atoms except ligands, water and stripped atoms. A list of selections defines several ligands,
        which are computed one by one
    strip : atoms to exclude from both parts in addition to water, or "none"; by default the counter-ions that the
        program `like` strips
    models : "one", or "all" to use all models of a PDB file as conformations
    receptor_trajectory, ligand_trajectory : separate trajectories of the parts, with the atoms of `receptor_structure`
        and `ligand_structure`, by default those of the complex
    poses : file with positions of the ligand: molecules of SDF or mol2, or models of .pdb or .cif
    pb : True for Poisson-Boltzmann instead of Generalized Born, with `nonlinear`, `dielectric_surface`, `spacing`
        and `padding` (A) as in PBSolvent; or a PBSolvent
    idecomp : decomposition scheme, numbered as in AMBER: 1, 2 per residue, 3, 4 per pair of residues
    entropy : True to estimate the interaction entropy and the C2 entropy
    alanine : sites of an alanine scan: a selection, residue indices, or "interface" for all residues within 5 A of the
        other part
    compare : JSON file of another run; its terms are subtracted
    decomposition, residue_plot, heat_map, running_mean, bfactor_pdb : files to write for the decomposition and plots
    one_four, cutoff, variant, precision, device : as in `energy`
    model : a SolventModel, or the number of the model to read from a file
    strict : True to refuse structures with findings that otherwise only cause notes
    words : keywords for files, the solvent model and the run, as in `energy`: `forcefield`, `select`, `coordinates`;
        `like`, `gb`, `ionic_strength`; `trajectory`, `frames`, `topology`, `image`; `output` (file for the energies of
        every frame), `resume`, `workers`, `scheduler`, `shard`, `progress`

    Returns a BindingResult, in kcal/mol; BindingResults for several ligands, Structures for several paths. Failed
    frames have NaN, and an error message in `energies.errors`. Raises InputError for parts without atoms or with common
    atoms and for options that cannot be combined, and FormatError for files that cannot be read or written.

        >>> import pele_ocl
        >>> from pele_ocl.common.installation import shipped
        >>> path = shipped("data") / "structures" / "trialanine.pdb"
        >>> result = pele_ocl.binding(path, "resid 3")
        >>> round(result.total)
        -2
        >>> result.table()["term"][-2:].tolist()
        ['nonpolar', 'total']
    """
    complex = matched(complex)
    pb = pb if isinstance(pb, PBSolvent) else flag("pb", pb)
    sites = alanine if alanine is None or isinstance(alanine, str) else _residues(alanine)
    files = BindingFiles(*map(_path, (decomposition, residue_plot, heat_map, running_mean, bfactor_pdb)))
    door = Door.of(binding, words, model, device)
    if pb and "gb" in door.given:
        raise KeywordError("`pb` replaces `gb`")
    for name, given in (("ligand", ligand), ("receptor", receptor)):
        _refuse_file(name, given)
    run, like = door.run, words.get("like")
    trajectory = _frames(door)
    first = SoluteFrame(trajectory, strip, like)
    reading = replace(
        door.reading, solvent=replace(door.model, lcpo_unknown="refuse"), trajectory=first,
        select=None if trajectory.topology is not None else door.reading.select,
    )  # fmt: skip
    spec = BindingSpec(
        ligands=_ligands(ligand), receptor=receptor, strip=strip, reading=reading, models=models, frames=trajectory,
        receptor_frames=PartFrames(_paths("receptor_trajectory", receptor_trajectory), _path(receptor_structure)),
        ligand_frames=PartFrames(_paths("ligand_trajectory", ligand_trajectory), _path(ligand_structure)),
        poses=_path(poses, "poses"), idecomp=files.scheme if idecomp is None else idecomp,
        entropy=entropy, alanine=sites,
        compare=_path(compare), pb=_pb_solvent(pb, nonlinear, dielectric_surface, spacing, padding), one_four=one_four,
        cutoff=cutoff, variant=variant, precision=precision, device=device, model=door.model, like=like, strict=strict,
    )  # fmt: skip
    spec.check(run, files)
    start = time.perf_counter()
    if not isinstance(complex, Atoms) and paths_of(complex) is None:
        if files.given:
            raise KeywordError("decompositions and pictures need a single structure; give one, or leave out its file")
        if trajectory.paths:
            raise several_structures(complex)  # type: ignore[arg-type]
        every = tuple(map(Path, complex))  # type: ignore[arg-type]
        return structures_by(replace(spec, reading=replace(reading, structures=every)), every, run)
    if not trajectory.paths:
        run.refuse_sharing("one structure is computed by one process")
        trajectory.require_alone()
    with heard_notes() as heard:
        if isinstance(complex, Atoms):
            if about := sorted(door.given & {"reading", *(of.name for of in fields(Reading))} - {"trajectory"}):
                raise KeywordError(f"`{about[0]}` needs files; give a path instead of Atoms")
            molecule = MoleculeRead(NoFile(), door.model.choose_radii(complex))
        else:
            molecule = spec.molecule(read_file(complex))  # type: ignore[arg-type]
        results = spec.evaluate(molecule, run)
        for result in results:
            run.without_failures(result.energies)
            files.write(result)
            if run.output is not None and not result.is_recorded:
                result.save(run.output)
    seconds = time.perf_counter() - start
    results = [replace(result, heard=tuple(heard), seconds=seconds) for result in results]
    return results[0] if len(results) == 1 else BindingResults(tuple(results), molecule, tuple(heard))


def _refuse_file(name: str, given: object) -> None:
    """Raise KeywordError if a file is given instead of a selection. name : keyword of the part"""
    if isinstance(given, str | PathLike) and is_structure(given):
        advice = "; topologies of the parts are `pele_ocl.mmpbsa`'s" if is_topology(given) else ""
        raise KeywordError(
            f'`{name}` is {str(given)!r}, a file; choose its atoms of the complex, as in "resname LIG"{advice}'
        )


def _frames(door: Door) -> FrameOptions:
    """Collect the keywords for a trajectory."""
    words, run = door.frames, door.run
    topology = words.get("topology")
    paths = trajectory_paths(words.get("trajectory"))
    select = door.reading.select if paths else None
    return FrameOptions(
        paths, words.get("frames"), select, _path(topology), run.resume and bool(paths), words.get("image")
    )


def _ligands(given: Chosen | Sequence[str]) -> tuple[Chosen, ...]:
    """Return one ligand, or several for a list of selections."""
    if isinstance(given, list | tuple) and given and all(isinstance(each, str) for each in given):
        return tuple(given)
    return (given,)


def _pb_solvent(
    pb: bool | PBSolvent, nonlinear: bool, surface: str | None, spacing: float | None, padding: float | None
) -> PBSolvent | None:
    """Build the solvent for MM/PBSA. Raises KeywordError for its keywords without `pb` or with a PBSolvent."""
    given = {"nonlinear": nonlinear or None, "dielectric_surface": surface, "spacing": spacing, "padding": padding}
    names = ", ".join(f"`{name}`" for name, value in given.items() if value is not None)
    if isinstance(pb, PBSolvent):
        if names:
            raise KeywordError(f"the PBSolvent of `pb` has {names} of its own; leave them out")
        return pb
    if not pb:
        if names:
            raise KeywordError(f"{names} needs `pb`")
        return None
    own = {"surface": surface, "spacing": spacing, "padding": padding}
    kind = "nonlinear" if nonlinear else "linear"
    return PBSolvent(kind, **{name: value for name, value in own.items() if value is not None})  # type: ignore[arg-type]


def _residues(given: Sequence[int]) -> list[int]:
    """Return residue indices as a list. Raises InputError for anything else."""
    found = array("alanine", given, "iu", "numbers of residues")
    if found.ndim != 1:
        raise InputError(f"alanine has shape {found.shape}; expected a list of numbers of residues, or a selection")
    return [int(number) for number in found]


def _path(given: Path_ | None, name: str = "path") -> Path | None:
    return None if given is None else file_path(given, name)


def _paths(name: str, given: Paths) -> tuple[Path, ...]:
    """Return the paths of one or several files."""
    several = (given,) if isinstance(given, str | PathLike) else file_paths(name, given)
    return tuple(file_path(each, name) for each in several)


make_callable(__name__)
