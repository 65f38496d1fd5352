"""Electrostatic potential maps: the potential of point charges at the points of a grid."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from numpy.typing import ArrayLike

from ..atoms import Atoms
from ..common import arguments
from ..common.errors import InputError, KeywordError
from ..common.inputfile import read_file
from ..common.modules import make_callable, takes, takes_structures
from ..common.variant import Progress
from ..contract import Image
from ..doors import matched, paths_of
from ..grid import Grid
from ..jobs import Place, Shard
from ..jobs.given import Given, given_molecule, reading_of
from ..jobs.provenance import Call
from ..painting import FOR_SURFACE, FOR_SURFACE_END, PB_SURFACE_END, SURFACE_UNIT
from ..pb_model import PBModel
from ..reading import Models, Reading
from ..trajectories import Trajectory
from ..trajectories.frames import FrameWords
from ..trajectories.given import FrameOptions
from ..trajectories.reading import Paths, opened
from ..trajectories.selection import Selection
from .methods import MAP_METHODS, METHODS, choose_variant
from .options import MapOptions
from .over import FramePotentials, potentials_over, potmap_over
from .plan import Potmap, planned, require_cutoff_method
from .poisson_boltzmann import METHOD as PB_METHOD
from .poisson_boltzmann import require_pb
from .problem import MapProblem
from .result import COMBINATIONS, FrameMaps, PotmapResult
from .spec import MapBatch, MapSpec, MapWork, OpensFrames, Tell
from .variants import VARIANTS

if TYPE_CHECKING:
    from ..opencl.device import Device

__all__ = [
    "COMBINATIONS",
    "MAP_METHODS",
    "METHODS",
    "VARIANTS",
    "FrameMaps",
    "FramePotentials",
    "MapBatch",
    "MapOptions",
    "MapProblem",
    "MapSpec",
    "MapWork",
    "Potmap",
    "PotmapResult",
    "choose_variant",
    "planned",
    "potentials_over",
    "potmap",
    "potmap_over",
]


Path_ = str | PathLike[str]
Paths_ = Path_ | Sequence[Path_]


@overload
def potmap(
    what: Atoms | Path_, grid: Grid | Paths_ | None = None, *, at_atoms: None = None, **options: Any
) -> PotmapResult: ...
@overload
def potmap(
    what: Atoms | Path_, grid: Grid | Paths_ | None = None, *, at_atoms: Selection, **options: Any
) -> FramePotentials: ...
@overload
def potmap(what: Sequence[Path_], grid: Grid | Paths_ | None = None, **options: Any) -> MapBatch: ...
@arguments.checked
@takes("reading")
@takes_structures("atoms")
def potmap(
    what: Atoms | Path_ | Sequence[Path_],
    grid: Grid | Paths_ | None = None,
    *,
    method: str = "direct",
    cutoff: float | None = None,
    smooth: bool = False,
    accuracy: float | None = None,
    variant: str = "auto",
    precision: str = "float32",
    device: Device | int | str | Sequence[Device | int | str] | None = None,
    dielectric: float | None = None,
    solute_dielectric: float | None = None,
    distance_dependent: bool = False,
    ionic_strength: float | None = None,
    kappa: float | None = None,
    min_distance: float = 0.0,
    field: bool = False,
    unit: str | None = None,
    temperature: float = MapOptions.temperature,
    pb: PBModel | None = None,
    progress: Progress | None = None,
    spacing: float = 0.5,
    padding: float | None = None,
    origin: ArrayLike | None = None,
    shape: ArrayLike | None = None,
    models: Models = "one",
    combine: str | None = None,
    trajectory: Trajectory | Paths | OpensFrames | None = None,
    frames: FrameWords = None,
    topology: Path_ | None = None,
    image: Image | None = None,
    align: Selection | bool = False,
    at_atoms: Selection | None = None,
    output: Paths_ = (),
    png: Path_ | None = None,
    surface_png: Path_ | None = None,
    scene: str | Sequence[str] = (),
    color_max: float | None = None,
    for_surface: bool = False,
    workers: int | None = None,
    scheduler: str | None = None,
    shard: Shard | str | None = None,
    reading: Reading | None = None,
    call: Call | None = None,
    tell: Tell | None = None,
    **read: Any,
) -> PotmapResult | FramePotentials | MapBatch:
    """Electrostatic potential of point charges at the points of a grid.

    phi(g) = k / dielectric * sum_i q_i / |g - r_i|          (docs/theory/potmap.md, eq. 1)

    what : Atoms with charges, or the path of a structure, which is read as by `pele_ocl.read`; atoms outside the grid
        are included. Several paths give one map each, written to files: `output="{name}.dx"`
    grid : points of the map. By default a grid with `spacing`, 0.5 A, and `padding`, 10 A, around all atoms, or with
        `origin`, A, and `shape`, the number of points along x, y and z. A path instead of the grid is the output:
        `potmap(what, "map.dx")`
    method : "direct", all atoms; "cutoff", atoms within `cutoff` A of a point, by default 12; "mesh", near atoms
        directly and the others by a mesh, to `accuracy`; "msm", the same by sums on lattices, without salt; "auto",
        direct or mesh, whichever is faster; "pb", the Poisson-Boltzmann equation on a grid that extends 10 A beyond all
        atoms
    smooth : whether the potential of the cutoff method is switched smoothly to 0 (eq. 5)
    accuracy : relative error of the potential and of the field, by norm, for mesh, msm and auto; by default 1e-4. The
        smallest value is 1e-7, in float32 1e-6, and for msm 1e-5; the largest is 0.1
    variant : key of VARIANTS, "auto", or a variant of pele_ocl.ladder
    device : where to compute, as in `solvent`; several devices share the work
    dielectric : relative permittivity, 1; with distance_dependent, the permittivity at r Angstrom is dielectric * r.
        For pb, the solvent's, 78.54; `solute_dielectric` is then that inside the molecule, 2
    ionic_strength : of a 1:1 salt, mol/L, 0. Together with dielectric and temperature it determines kappa, the inverse
        Debye length in 1/A, which can be given instead
    min_distance : A; closer points get the potential at this distance
    field : whether to compute the electric field
    unit : of units.POTENTIAL_UNITS, kcal/mol/e; kT/e uses `temperature`
    temperature : K
    pb : PBModel for the method pb, instead of dielectrics, salt and temperature. PBModel.like("apbs") uses the surface
        and charges of published pictures
    progress : called with the fraction done, 0 to 1
    models : "all" to combine the maps of all models of a file; `combine` selects "avg", "min", "max" or "stdev" as the
        map of the result, whose `maps` contains all four
    trajectory : a Trajectory, or paths or frames in memory that `pele_ocl.trajectory` accepts, with its `frames`,
        `topology` and `image`: maps of all frames, combined in the same way. `align` superposes frames on the
        structure, as in `potmap_over`
    at_atoms : atoms at which to compute the potential of all other charges in each frame, instead of a map
    output : files to write, .dx, .dx.gz, .cube, .mrc, .ccp4, .map or .h5, as by `save` of the result; a table with
        at_atoms
    png, surface_png : pictures to draw: the three central slices, and the molecular surface coloured by the map, from
        -color_max to color_max, by default a round number chosen from the values
    scene : programs, "pymol", "chimerax" or "vmd", for which a script is written next to the map
    for_surface : True for common settings of surface pictures, unless others are given: kT/e, dielectric 78.54, 0.15
        mol/L of salt, colours from -2 to 2, with pb from -5 to 5
    workers, scheduler : for several structures, the number of processes on this machine, or the address of a Dask
        cluster; shard : the part of the structures to compute, "1/10"
    reading, read : how files are read: a jobs.Reading, or its fields as keywords: `select`, `forcefield`, `model`,
        `coordinates`, `parameters`, `radii`
    call : function that returns facts about the call to store in files
    tell : called with a MapWork before the computation begins

    Returns a PotmapResult, whose `error` and `field_error` are measured if the method is approximate; FramePotentials
    with at_atoms; a MapBatch for several structures, with reasons for failures. The cost is proportional to atoms *
    points, with a mesh to atoms + points * log(points). Raises InputError for options that cannot be combined, and for
    a grid point on an atom without min_distance. Raises DeviceError if the device does not support the options.

        >>> import pele_ocl
        >>> ion = pele_ocl.Atoms(positions=[[0, 0, 0]], charges=[1.0])
        >>> map_ = pele_ocl.potmap(ion, spacing=2, padding=4, min_distance=0.1).map
        >>> map_.grid.shape
        (6, 6, 6)
    """
    if isinstance(grid, str | PathLike | Sequence):
        output, grid = arguments.one_output(grid, output), None
    arguments.callback("progress", progress)
    arguments.choice("models", models, ("one", "all"))
    if combine is not None:
        arguments.choice("combine", combine, COMBINATIONS)
    outputs = _files("output", output)
    programs = (scene,) if isinstance(scene, str) else arguments.texts("scene", scene)
    end, unit_of_end, unit_of_files = color_max, None, unit
    if arguments.flag("for_surface", for_surface):
        if end is None:
            end, unit_of_end = PB_SURFACE_END if method == PB_METHOD else FOR_SURFACE_END, SURFACE_UNIT
        unit = SURFACE_UNIT if unit is None else unit
        unit_of_files = unit
        dielectric = FOR_SURFACE["dielectric"] if dielectric is None and kappa is None and pb is None else dielectric
        ionic_strength = FOR_SURFACE["ionic_strength"] if ionic_strength is None and pb is None else ionic_strength
    options = MapOptions(
        method=method, cutoff=cutoff, smooth=smooth, accuracy=accuracy, variant=variant, precision=precision,
        device=device, dielectric=dielectric, distance_dependent=distance_dependent,
        ionic_strength=0.0 if ionic_strength is None else ionic_strength, kappa=kappa,
        min_distance=min_distance, field=field, unit=MapOptions.unit if unit is None else unit,
        temperature=temperature, pb=pb, solute_dielectric=solute_dielectric,
    )  # fmt: skip
    require_cutoff_method(options)
    if method == PB_METHOD:
        require_pb(options)
    if isinstance(what, Atoms) and read:
        given_molecule(what, reading, read)  # raises an error
    reads = reading_of(reading, read)
    first = None
    if not isinstance(what, Atoms):
        first = FrameOptions.of_files(trajectory, frames, reads.select, topology, image)
    if first is not None:  # a topology file gets its positions from the first frame
        trajectory = first
        reads = replace(reads, trajectory=first, select=None if topology is not None else reads.select)
    opens = None
    if trajectory is None or (isinstance(trajectory, list | tuple) and not trajectory):
        given = {"frames": frames, "topology": topology, "at_atoms": at_atoms}
        named = [name for name, value in given.items() if value is not None]
        named += ["image"] if image is not None else []
        named += ["align"] if align is not False else []
        if named:
            raise KeywordError(f"`{named[0]}` applies to a trajectory; give one as `trajectory`")
    else:
        opens = _opening(trajectory, frames, topology, image or "auto")
    spec = MapSpec(
        reads, models, options, grid=grid, spacing=spacing, padding=padding, origin=origin, shape=shape, frames=opens,
        combine=combine, align=align, at_atoms=at_atoms, outputs=outputs, png=_file("png", png),
        surface_png=_file("surface_png", surface_png), scenes=programs, color_max=end, color_unit=unit_of_end,
        file_unit=unit_of_files, call=call,
    )  # fmt: skip
    if opens is not None:
        _check_over(spec)
    if options.field and models == "all":
        raise KeywordError('choose one of `field` and `models="all"`')
    if combine is not None and models == "one" and opens is None:
        raise KeywordError('`combine` applies only to `models="all"` and trajectories')
    if options.field and outputs and not any(each.suffix.lower() == ".h5" for each in outputs):
        raise KeywordError("the field needs a file with several maps: give `output` the suffix .h5")
    what = matched(what)
    if not isinstance(what, Atoms) and paths_of(what) is None:
        paths = arguments.file_paths("structures", what)
        if opens is not None:
            raise arguments.several_structures(paths)
        part = Shard.of(shard) if isinstance(shard, str) else shard
        wanted = paths if part is None else part.part(paths, "structures")
        return spec.several(wanted, Place(workers, scheduler, None if device is None else str(device)))
    for name, value in (("workers", workers), ("scheduler", scheduler), ("shard", shard)):
        if value is not None:
            raise KeywordError(
                f"`{name}` distributes several structures; a single map is computed by one process, on all devices of "
                "`device`"
            )
    source = None if isinstance(what, Atoms) else arguments.file_path(what, "the structure")
    spec.require(source)
    if models == "all":
        if source is None:
            raise InputError('`models="all"` uses the models of a file; give its path instead of Atoms')
        if spec.reading.model is not None:
            raise KeywordError("choose one of `model` and `models`")
        found = spec.found(read_file(source), tell=tell, progress=progress)
    else:
        found = spec.found(given_molecule(what, spec.reading), tell=tell, progress=progress)
    written = spec.write(found)
    return replace(found, scenes=written) if written and isinstance(found, PotmapResult) else found


def _opening(
    trajectory: Trajectory | Paths | OpensFrames, frames: FrameWords, topology: Path_ | None, image: Image
) -> Callable[[Given], Trajectory]:  # fmt: skip
    """Return the function that opens the trajectory once the atoms are known."""

    def open_frames(given: Given) -> Trajectory:
        if isinstance(trajectory, OpensFrames):
            return trajectory.opened(given.atoms, given.chosen)
        return opened(given.atoms, trajectory, frames, given.chosen, topology, image)

    return open_frames


def _check_over(spec: MapSpec) -> None:
    """Raise KeywordError for options that cannot be combined with a trajectory."""
    if spec.models == "all":
        raise KeywordError('choose one of `models="all"` and `trajectory`')
    if spec.options.field:
        raise KeywordError("choose one of `field` and `trajectory`")
    if spec.options.method == PB_METHOD:
        raise KeywordError(
            '`method="pb"` computes maps of structures and models, not of frames; leave out `trajectory`'
        )
    if spec.at_atoms is not None:
        given = {name: getattr(spec, name) for name in ("origin", "padding", "grid", "combine", "png", "surface_png")}
        for name, value in {**given, "scene": spec.scenes or None}.items():
            if value is not None:
                raise KeywordError(f"`at_atoms` computes no map; leave out `{name}`")


def _files(name: str, given: Path_ | Iterable[Path_]) -> tuple[Path, ...]:
    several = (given,) if isinstance(given, str | PathLike) else given
    return tuple(map(Path, arguments.file_paths(name, several)))


def _file(name: str, given: Path_ | None) -> Path | None:
    return None if given is None else arguments.file_path(given, name)


make_callable(__name__)
