"""Binding energies: a complex's less its receptor's and its ligand's, frame by frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ..atoms import Atoms
from ..common.arguments import file_path, file_paths
from ..common.errors import InputError
from ..common.inputfile import InputFile, read_file
from ..common.modules import lazy_names, make_callable
from ..common.notes import heard_notes
from ..common.variant import Progress
from ..contract import Image
from ..gb_models.solvent_model import SolventModel
from ..jobs import Place, Shard
from ..jobs.reading import Models, MoleculeRead, Reading
from ..trajectories.choice import FrameChoice
from ..trajectories.frames import FrameWords
from ..trajectories.selection import Selection
from .energies import PARTS, BindingEnergies
from .frames import PartFrames, SoluteFrame, Way
from .parts import Chosen
from .plan import Binding
from .poisson_boltzmann import PBSolvent
from .result import BindingResult, BindingResults
from .spec import BindingFiles, BindingSpec
from .statistics import Spread, spread_of

if TYPE_CHECKING:
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

if not TYPE_CHECKING:  # names for tests, by the file that has them
    __getattr__ = lazy_names(
        __name__,
        {
            "alanine": "CH alanine_scan alanines_of interface_residues mutable_residues to_alanine unbonded",
            "decomposition": "Decomposition GROUPS Shares write_decomposition",
            "energies": "is_close",
            "naming": "amber_terms",
            "pele": "AtomGroups PoseEvaluator",
            "pictures": "draw_pairs draw_residues draw_running_mean write_coloured",
            "plan": "binding_trajectory grid_errors",
            "poisson_boltzmann": "PBEnergy PBSolvent default_model",
            "poses": "Poses evaluate_poses pose_rmsd read_poses",
            "separate": "separate_energies",
            "statistics": "MOST_SIGMA entropy_of interaction_entropy",
        },
    )

Path_ = str | PathLike[str]
Paths = Path_ | Sequence[Path_]


def binding(
    complex: Atoms | Path_,
    ligand: Chosen | Sequence[str],
    receptor: Chosen | None = None,
    *,
    strip: Chosen | None = None,
    trajectory: Paths = (),
    frames: FrameWords = None,
    select: Selection | None = None,
    topology: Path_ | None = None,
    image: Image | None = None,
    models: Models = "one",
    receptor_trajectory: Paths = (),
    ligand_trajectory: Paths = (),
    receptor_structure: Path_ | None = None,
    ligand_structure: Path_ | None = None,
    poses: Path_ | None = None,
    pb: bool | PBSolvent = False,
    nonlinear: bool = False,
    pb_surface: str | None = None,
    spacing: float | None = None,
    padding: float | None = None,
    idecomp: int | None = None,
    entropy: bool = False,
    alanine: str | Sequence[int] | None = None,
    compare: Path_ | None = None,
    one_four: Literal["scale", "exclude"] = "scale",
    cutoff: float | None = None,
    variant: str = "auto",
    precision: str = "float32",
    device: Device | int | str | None = None,
    model: SolventModel | None = None,
    like: str | None = None,
    reading: Reading | None = None,
    strict: bool = False,
    output: Path_ | None = None,
    decomposition: Path_ | None = None,
    residue_plot: Path_ | None = None,
    heat_map: Path_ | None = None,
    running_mean: Path_ | None = None,
    bfactor_pdb: Path_ | None = None,
    resume: bool = False,
    workers: int | None = None,
    scheduler: str | None = None,
    shard: Shard | str | None = None,
    attributes: Mapping[str, object] | None = None,
    progress: Progress | None = None,
) -> BindingResult | BindingResults:
    """Binding energy of a complex: its energy less the energies of its receptor and its ligand.

    Each has Born radii of its own: MM/GBSA, or MM/PBSA with `pb`, of one structure, of its models, over the frames of a
    trajectory, or over poses (docs/binding.md). The parts share the positions of the complex, unless they have
    trajectories of their own. `Binding` is the plan behind it, for loops.

    complex : Atoms, or a file of a structure or topology
    ligand, receptor : a selection (docs/selection.md), a mask or indices; the receptor is by default all atoms but
        ligands, water and stripped atoms. Several selections are several ligands, computed one by one
    strip : atoms in neither part besides water, or "none"; by default the counter-ions that the program of `like`
        strips
    trajectory : frames in place of the positions, of one file or several; frames, topology, image : as in
        `trajectory`; select : atoms of `topology`
    models : "one", or "all" to take all models of a PDB file as conformations
    receptor_trajectory, ligand_trajectory : frames of a part alone, of `receptor_structure`, `ligand_structure`, by
        default the part's atoms of the complex
    poses : file with positions of the ligand: molecules of SDF or mol2, or models of .pdb or .cif
    pb : True for a Poisson-Boltzmann solvent in place of Generalized Born, with `nonlinear`, `pb_surface`, `spacing`
        and `padding` (A) as of PBSolvent; or a PBSolvent
    idecomp : decomposition as AMBER numbers them: 1, 2 by residue, 3, 4 by pairs of residues
    entropy : True for interaction entropy and C2
    alanine : sites of an alanine scan: a selection, residues from 0, or "interface" for all within 5 A of the other
        part
    compare : JSON of another run, whose terms are subtracted
    one_four, cutoff, variant, precision, device : as in `energy`
    model, like : the solvent: a SolventModel, or that of a program, whose ions are then stripped, too
    reading : how files are read; strict : True to refuse what is noted otherwise
    output : file of the energies of every frame: .h5, .csv or .jsonl of a trajectory, as they come; else .h5, .csv or
        .json
    decomposition, residue_plot, heat_map, running_mean, bfactor_pdb : files of a decomposition, and pictures
    resume : True to go on with an interrupted run that wrote to `output`
    workers, scheduler, shard : as in `jobs.run`, for frames
    attributes : further ones of files; progress : called with the share that is done, 0 to 1

    Returns a BindingResult, kcal/mol, or BindingResults of several ligands. A frame that fails has NaN and its reason
    in `energies.errors`. Raises InputError for parts that hold no atom or share one and for wishes that do not go
    together, and FormatError for files that cannot be read or written.

        >>> import pele_ocl
        >>> from pele_ocl.common.installation import shipped
        >>> path = shipped("data") / "structures" / "trialanine.pdb"
        >>> result = pele_ocl.binding(path, "resid 3")
        >>> round(result.total)
        -2
        >>> result.table()["term"][-2:].tolist()
        ['nonpolar', 'total']
    """
    files = BindingFiles(*map(_path, (decomposition, residue_plot, heat_map, running_mean, bfactor_pdb)))
    spec = binding_spec(
        ligand, receptor, strip=strip, trajectory=trajectory, frames=frames, select=select, topology=topology,
        image=image, models=models, receptor_trajectory=receptor_trajectory, ligand_trajectory=ligand_trajectory,
        receptor_structure=receptor_structure, ligand_structure=ligand_structure, poses=poses, pb=pb,
        nonlinear=nonlinear, pb_surface=pb_surface, spacing=spacing, padding=padding,
        idecomp=files.scheme if idecomp is None else idecomp, entropy=entropy, alanine=alanine, compare=compare,
        one_four=one_four, cutoff=cutoff, variant=variant, precision=precision, device=device, model=model, like=like,
        reading=reading, strict=strict,
    )  # fmt: skip
    place = Place(workers, scheduler, device if isinstance(device, str) else None)
    part = Shard.of(shard) if isinstance(shard, str) else shard
    way = Way(_path(output), resume, place, part, progress)
    if not spec.frames.paths:
        way.refuse_sharing("one structure is computed at once")
        if resume:
            raise InputError("`resume` is about a trajectory; give one by `trajectory`")
    spec.check(way, files)
    with heard_notes() as heard:
        if isinstance(complex, Atoms):
            molecule = MoleculeRead(InputFile(Path("Atoms"), b""), spec.model.choose_radii(complex))
        else:
            molecule = spec.molecule(read_file(complex))
        results = spec.evaluate(molecule, way, attributes)
        for result in results:
            files.write(result)
            if way.output is not None and not result.is_recorded:
                result.save(way.output)
    results = [replace(result, heard=tuple(heard)) for result in results]
    return results[0] if len(spec.ligands) == 1 else BindingResults(tuple(results), molecule, tuple(heard))


def binding_spec(
    ligand: Chosen | Sequence[str], receptor: Chosen | None, *, strip: Chosen | None, trajectory: Paths,
    frames: FrameWords, select: Selection | None, topology: Path_ | None, image: Image | None, models: Models,
    receptor_trajectory: Paths, ligand_trajectory: Paths, receptor_structure: Path_ | None,
    ligand_structure: Path_ | None, poses: Path_ | None, pb: bool | PBSolvent, nonlinear: bool,
    pb_surface: str | None, spacing: float | None, padding: float | None, idecomp: int | None, entropy: bool,
    alanine: str | Sequence[int] | None, compare: Path_ | None, one_four: Literal["scale", "exclude"],
    cutoff: float | None, variant: str, precision: str, device: Device | int | str | None,
    model: SolventModel | None, like: str | None, reading: Reading | None, strict: bool,
) -> BindingSpec:  # fmt: skip
    """Describe the computation of `binding`, for workers and jobs; parameters as of `binding`."""
    choice = FrameChoice.of(_paths("trajectory", trajectory), frames, select, topology, image)
    constants = model if model is not None else SolventModel() if like is None else SolventModel.like(like)
    first = SoluteFrame(choice, strip, like) if choice.paths else None
    reading = reading or Reading(solvent=replace(constants, lcpo_unknown="refuse"))
    return BindingSpec(
        ligands=_ligands(ligand), receptor=receptor, strip=strip, reading=replace(reading, trajectory=first),
        models=models, frames=choice,
        receptor_frames=PartFrames(_paths("receptor_trajectory", receptor_trajectory), _path(receptor_structure)),
        ligand_frames=PartFrames(_paths("ligand_trajectory", ligand_trajectory), _path(ligand_structure)),
        poses=_path(poses), idecomp=idecomp, entropy=entropy, alanine=alanine, compare=_path(compare),
        pb=_pb_solvent(pb, nonlinear, pb_surface, spacing, padding), one_four=one_four, cutoff=cutoff,
        variant=variant, precision=precision, device=device, model=constants, like=like, strict=strict,
    )  # fmt: skip


def _ligands(given: Chosen | Sequence[str]) -> tuple[Chosen, ...]:
    """One ligand, or several if several selections are given."""
    if isinstance(given, list | tuple) and given and all(isinstance(each, str) for each in given):
        return tuple(given)
    return (given,)


def _pb_solvent(
    pb: bool | PBSolvent, nonlinear: bool, surface: str | None, spacing: float | None, padding: float | None
) -> PBSolvent | None:
    """Make the solvent of MM/PBSA. Raises InputError for words about it without it, or beside a PBSolvent."""
    given = {"nonlinear": nonlinear or None, "pb_surface": surface, "spacing": spacing, "padding": padding}
    names = ", ".join(f"`{name}`" for name, value in given.items() if value is not None)
    if isinstance(pb, PBSolvent):
        if names:
            raise InputError(f"the PBSolvent of `pb` has {names} of its own; leave them out")
        return pb
    if not pb:
        if names:
            raise InputError(f"{names} needs `pb`")
        return None
    own = {"surface": surface, "spacing": spacing, "padding": padding}
    kind = "nonlinear" if nonlinear else "linear"
    return PBSolvent(kind, **{name: value for name, value in own.items() if value is not None})  # type: ignore[arg-type]


def _path(given: Path_ | None) -> Path | None:
    return None if given is None else Path(given)


def _paths(name: str, given: Paths) -> tuple[Path, ...]:
    """Paths of one file or several."""
    several = (given,) if isinstance(given, str | PathLike) else file_paths(name, given)
    return tuple(file_path(each, name) for each in several)


make_callable(__name__)
