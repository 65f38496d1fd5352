"""PELE's loop on ensembles: move a ligand and its receptor, minimize, and keep the step by Metropolis' rule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import TYPE_CHECKING

from ..atoms.torsions import Flexible, flexible_ligand, flexible_residues
from ..common.arguments import checked
from ..common.modules import make_callable
from ..common.variant import Progress
from ..jobs.shards import Shard
from ..reading import Ligands
from .anm import ANM
from .box import Box, Cylinder, Prism, Shell, Sphere, Spheres
from .example import write_example
from .explorer import Explorer, Step
from .minimization import Minimization
from .modes import Modes, network_modes, read_nmd, write_nmd
from .perturbation import Perturbation
from .poses import Measures, Refined
from .refiner import Refiner
from .refining import RefineBatch, refine
from .regions import Region
from .result import ExploreResult
from .rot_assign import read_rot_assign
from .rotamers import RotamerLibrary, read_side_file
from .running import Paths, Watch, call_of
from .side_chains import SideChainPredictor, SideChains, predict_side_chains
from .spawning import Cluster, Clusters
from .walk import Move, Settings, Stage, Walk

if TYPE_CHECKING:
    from ..ligand import Hydrogens
    from ..opencl.device import Device

__all__ = [
    "ANM", "Box", "Cluster", "Clusters", "Cylinder", "ExploreResult", "Explorer", "Flexible", "Measures",
    "Minimization", "Modes", "Move", "Perturbation", "Prism", "RefineBatch", "Refined", "Refiner", "Region",
    "RotamerLibrary", "Settings", "Shell", "SideChainPredictor", "SideChains", "Sphere", "Spheres", "Stage", "Step",
    "Walk", "explore", "flexible_ligand", "flexible_residues", "network_modes", "predict_side_chains", "read_nmd",
    "read_rot_assign", "read_side_file", "refine", "write_example", "write_nmd",
]  # fmt: skip


@checked
def explore(
    control: str | PathLike[str],
    output: str | PathLike[str] | None = None,
    *,
    explorers: int | None = None,
    seed: int | None = None,
    steps: int | None = None,
    complexes: Paths = (),
    set: Mapping[str, str] | None = None,
    templates: Paths = (),
    obc: Paths = (),
    pele_data: Paths = (),
    guess_radii: bool = False,
    precision: str = "float32",
    device: Device | int | str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    workers: int | None = None,
    scheduler: str | None = None,
    shard: str | Shard | None = None,
    progress: Progress | None = None,
    watch: Watch | None = None,
    preset: str | None = None,
    ligands: Ligands = (),
    ligand_forcefield: str = "gaff2",
    ligand_charges: str = "mmff",
    ligand_hydrogens: Hydrogens = "given",
    ligand_ph: float | None = None,
    ligand_template: Iterable[str] | str = (),
) -> ExploreResult:
    """Explore the binding of a ligand with a control file of PELE: perturb, move, minimize, Metropolis;
    docs/explore.md.

    Writes report_N and trajectory_N for each explorer N like PELE. The walk is a search: its states are not a Boltzmann
    sample and give no free energies.

    control : path of the control file, "pele.conf" (`pele_ocl.explore.write_example` writes one); or a structure with
        `ligands`, for which a control file is written to `output` with the structure and the ligand's parameters
    output : folder of all files, instead of the paths in the control file; for a structure `complex.pdb` by default
        complex_explore
    explorers : all in one batch; by default one, under mpirun or srun one for each process except the first
    seed : of all random numbers, instead of that in the control file
    steps : of each task, instead of numberOfPeleSteps
    complexes : initial structures, instead of those in the control file; several are assigned to explorers in turn
    set : values of $WORDS in the control file: {"BOX_RADIUS": "20"}
    templates, obc, pele_data, guess_radii : further files of the force field, as in ForceField.load
    precision, device : as in `energy`
    resume : continue an interrupted run in the same folder
    overwrite : replace an earlier run in the folder; its files of other explorers are removed
    workers : processes on this machine that share the explorers, each with a device or a group of cores
    scheduler : of a Dask cluster whose workers share them, tcp://HOST:PORT or its file
    shard : "K/N" for the K-th of N parts of the explorers, "mpi" for a part for each process of mpirun or srun, each
        with the next device, "mpi/N" for parts for the first N
    progress : called with the fraction of all steps done; watch : an object with `tell` and `follow`, as of
        explore.running.Watch
    preset : for a structure, settings of pele_platform: "induced_fit_fast" (default), "induced_fit_long",
        "induced_fit_exhaustive", "rescoring", "out_in", "in_out", "gpcr_orth" or "global"
    ligands : for a structure, the molecule to explore, a residue of the structure or placed in its frame; further ones
        are cofactors. They, `ligand_forcefield` and the others are as in `read`

    Raises FormatError and InputError before any step; with the code "exists" for a folder with a run, and "no_part" in
    a process of a launcher without explorers.

    >>> result = pele_ocl.explore("pele.conf", "out2", explorers=2, steps=1)
    >>> [path.name for path in result.reports]
    ['report_1', 'report_2']
    >>> list(result.states().keys())[:5]
    ['explorer', 'task', 'step', 'accepted', 'energy']
    """
    call = call_of(
        control, explorers=explorers, output=output, seed=seed, steps=steps, complexes=complexes,
        words={} if set is None else set, templates=templates, obc=obc, pele_data=pele_data, guess_radii=guess_radii,
        precision=precision, device=device, resume=resume, overwrite=overwrite, workers=workers,
        scheduler=scheduler, shard=shard, progress=progress, watch=watch, preset=preset,
        ligand=dict(
            ligands=ligands, ligand_forcefield=ligand_forcefield, ligand_charges=ligand_charges,
            ligand_hydrogens=ligand_hydrogens, ligand_ph=ligand_ph, ligand_template=ligand_template,
        ),
    )  # fmt: skip
    return call.result()


make_callable(__name__)
