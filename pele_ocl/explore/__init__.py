"""PELE's Monte Carlo loop on ensembles: perturb the ligand and its receptor, minimize, accept or reject."""

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
    """Explore the binding of a ligand by PELE's Monte Carlo search, as set up by a control file (docs/explore.md).

    Like PELE, it writes report_N and trajectory_N for each explorer N. The states are not a Boltzmann sample, so no
    free energies can be computed from them.

    control : path of a control file such as "pele.conf" (`pele_ocl.explore.write_example` writes one); or a structure,
        together with `ligands`, for which a control file and the ligand's parameters are written to `output`
    output : folder for all files, instead of the paths in the control file; the default for a structure `complex.pdb`
        is complex_explore
    explorers : number of explorers, run as one batch; by default one, or with mpirun or srun one per process except
        the first
    seed : seed of the random numbers, instead of that in the control file
    steps : number of steps of each task, instead of numberOfPeleSteps
    complexes : initial structures, instead of those in the control file; explorers take them in turn
    set : values for $WORDS in the control file, such as {"BOX_RADIUS": "20"}
    templates, obc, pele_data, guess_radii : additional force field files, as in ForceField.load
    precision, device : as in `energy`
    resume : continue an interrupted run in the same folder
    overwrite : remove the files of an earlier run in the same folder
    workers : number of local processes to divide the explorers among, each with its own device or group of cores
    scheduler : address tcp://HOST:PORT, or scheduler file, of a Dask cluster to divide the explorers among
    shard : "K/N" to run part K of N of the explorers; "mpi" for one part per process of mpirun or srun, each on the
        next device; "mpi/N" for the first N processes only
    progress : called with the fraction of steps done; watch : object with the methods `tell` and `follow`, see
        explore.running.Watch
    preset : if `control` is a structure, settings of pele_platform: "induced_fit_fast" (default), "induced_fit_long",
        "induced_fit_exhaustive", "rescoring", "out_in", "in_out", "gpcr_orth" or "global"
    ligands : if `control` is a structure, the molecule to explore: a residue of the structure, or a molecule placed in
        its frame; further molecules are cofactors. `ligands`, `ligand_forcefield` and the other `ligand_` options are
        as in `read`

    Raises FormatError or InputError before the first step. The error code is "exists" if the folder contains a run, and
    "no_part" in an MPI process without explorers.

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
