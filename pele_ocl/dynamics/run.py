"""Simulation of structures in many replicas, in this process or by workers, with files in a folder."""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from numpy.typing import ArrayLike

from ..atoms import Atoms
from ..common.arguments import callback, checked, choice, described, file_path, flag, number, whole_number
from ..common.errors import InputError, KeywordError, PeleError
from ..common.inputfile import InputFile
from ..common.modules import takes, takes_structures, with_words
from ..common.notes import note
from ..common.variant import Progress
from ..contract import of_structure
from ..doors import Door
from ..energy.options import require_near
from ..energy.restraints import Held, Texts
from ..energy.result import terms_listed
from ..energy.terms import Term
from ..formats.tables import folder_path
from ..gb_models.solvent_model import SolventModel
from ..jobs.checks import Checks
from ..jobs.journal import Journal
from ..jobs.outputs import require_replaceable
from ..jobs.running import run_with
from ..jobs.shards import Place, Shard
from ..minimize.constraints import constraints_named
from ..units import in_unit
from .amounts import notes_of_reports, steps_of
from .bias_words import BiasWords
from .bodies import CONSTRAINTS
from .files import TRAJECTORIES, TRAJECTORIES_OF
from .result import Part, Simulated, SimulateResult
from .settings import FURTHER, every_of, points_of, temperatures_of
from .simulation import Simulation
from .spec import SimulateSpec

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..jobs.words import StructureWords
    from ..opencl.device import Device

Structure = Atoms | str | PathLike[str]
Watch = Callable[[Simulation], None]


@checked
@takes("object", "reading", "solvent", ".settings:Settings")
@takes_structures("atoms")
def simulate(
    what: Structure | Sequence[Structure],
    output: str | PathLike[str],
    *,
    steps: int | None = None,
    time: float | str | None = None,
    replicas: int = 1,
    temperatures: float | str | Sequence[float | str] | None = None,
    timestep: float | str = 2.0,
    friction: float | None = None,
    seed: int = 0,
    integrator: str = "langevin",
    constraints: str | None = None,
    hydrogen_mass: float | None = None,
    exchange_every: int | str | None = None,
    exchange: Literal["temperature", "hamiltonian"] = "temperature",
    ladder_shape: Sequence[int] | None = None,
    anneal: ArrayLike | None = None,
    minimize: int = 200,
    keep_center_motion: bool = False,
    report_every: int | str = 1000,
    trajectory_format: Literal["pdb", "cif", "h5", "nc", "dcd", "xtc", "xyz", "none"] = "nc",
    trajectory_of: Literal["replica", "temperature"] = "replica",
    velocities: bool = False,
    resume: bool = False,
    overwrite: bool = False,
    replicas_per_device: int | None = None,
    first_replica: int = 0,
    workers: int | None = None,
    scheduler: str | None = None,
    shard: str | Shard | None = None,
    frozen: ArrayLike | None = None,
    terms: Sequence[Term] = (),
    restrain: Texts = (),
    distance: Texts = (),
    torsion: Texts = (),
    reference: str | PathLike[str] | None = None,
    freeze: str | None = None,
    bias: str | PathLike[str] | Mapping[str, Any] | None = None,
    fixed_radii: bool = False,
    one_four: Literal["scale", "exclude"] = "scale",
    cutoff: float | None = None,
    only_terms: Sequence[str] | str | None = None,
    variant: str = "auto",
    precision: str = "float32",
    device: Device | int | str | None = None,
    model: SolventModel | int | None = None,
    strict: bool = False,
    progress: Progress | None = None,
    watch: Watch | None = None,
    **words: Unpack[StructureWords],
) -> SimulateResult:
    """Simulate many replicas of structures in implicit solvent, and write the results to a folder.

    Each replica is a separate trajectory. It depends on the structure, its number and the seed, not on other replicas.
    The folder contains the trajectories, each structure as a PDB file, and the tables energies.csv and energies.jsonl,
    with a row for each replica and report. A replica that explodes stops, and `errors` of the result names it.

    what : path of a structure, Atoms, or several of these
    output : folder for all files
    steps : number of time steps; or time : simulated time in ps, or with a unit such as "10ns"
    replicas : number of replicas of each structure
    temperatures : temperatures of the heat bath, K: one for all replicas, one for each replica of all structures in
        order, or fewer, which are repeated; by default the `temperature` of the solvent, otherwise 300
    timestep : fs; friction : 1/ps, of the heat bath, by default 1. Values may also be strings with a unit, such as
        "1fs" and "310K", or OpenMM Quantities
    seed, integrator, constraints, hydrogen_mass, exchange_every, exchange, ladder_shape, anneal : as in Simulation
    minimize : minimization iterations before the first step, 0 for none
    keep_center_motion : do not remove the motion of the centre of mass; by default it is removed unless atoms are
        restrained
    report_every : interval between frames and table rows, in steps, or a time with a unit such as "2ps"
    trajectory_format : a format of `write_conformations`: "nc" (AMBER's NetCDF), "dcd", "xtc", "h5" (MDTraj's HDF5),
        "xyz", "pdb", "cif"; or "none"
    trajectory_of : write a trajectory for each "replica", or for each "temperature" of a ladder
    velocities : also write velocities to the trajectories; only supported by the formats nc and h5
    resume : continue an interrupted run in the folder, bit for bit; the run may also be extended
    overwrite : replace an earlier run in the folder, which is otherwise an error
    replicas_per_device : replicas of each structure simulated at a time on one device, complete ladders; by default
        all, or an equal part for each worker
    workers : number of processes on this machine, each with a device or a group of cores; scheduler : address of a
        Dask cluster, tcp://HOST:PORT, or its scheduler file. By default, everything runs in this process
    shard : "K/N" for the K-th of N equal parts of the replicas, for array jobs that share the folder; the last shard
        to finish merges the tables
    first_replica : number of the first replica of each structure, which determines its random numbers
    frozen : fixed atoms, a mask (n,) or indices; terms : further energy terms, such as PositionalRestraint(10.0)
    restrain, distance, torsion, reference, freeze : restraints and frozen atoms, as strings with selections, as in
        `minimize`
    bias : TOML file with collective variables and biases, or a mapping with the same keywords; see docs/sampling.md.
        The variables are then added to the tables, and a file COLVAR.N in PLUMED's format is written for each replica
    fixed_radii, one_four, cutoff, only_terms, variant, precision, device : as in `energy`, with the full gradient
    model : the solvent; or the number of the model of a file to read
    strict : reject structures with findings that otherwise only cause notes
    progress : called with the fraction of all steps done; watch : called with the Simulation before its first step and
        after each report, only if the simulation runs in this process
    words : keywords for reading files, such as `forcefield`, `select` and `coordinates` (see jobs.Reading), or
        `reading` itself; and for the solvent, `like` and fields of SolventModel such as `gb` and `ionic_strength`

    Raises InputError and FormatError before the run for input that cannot be simulated or written, and for a folder
    with a run that would be overwritten.

        >>> import tempfile, pele_ocl
        >>> folder = tempfile.mkdtemp()
        >>> run = pele_ocl.simulate("data/structures/trialanine.pdb", folder, steps=40, replicas=2, report_every=20)
        >>> run.steps, len(run.table()), [path.name for path in run.trajectories]
        (40, 6, ['trialanine-00000.nc', 'trialanine-00001.nc'])
    """
    if not isinstance(what, Atoms | str | PathLike | Sequence):
        raise InputError(f"the structure is {described(what)}; expected Atoms, the path of a file or several of these")
    listed = [what] if isinstance(what, Atoms | str | PathLike) else list(what)
    n_steps = steps_of(steps, time, timestep)
    timestep, friction = in_unit("timestep", timestep, "fs"), in_unit("friction", friction, "1/ps")
    hydrogen_mass, anneal = in_unit("hydrogen_mass", hydrogen_mass, "Da"), points_of(anneal)
    constraints = None if constraints is None else constraints_named(constraints, CONSTRAINTS)
    callback("progress", progress)
    callback("watch", watch)
    choice("trajectory_format", trajectory_format, TRAJECTORIES)
    choice("trajectory_of", trajectory_of, TRAJECTORIES_OF)
    whole_number("replicas", replicas, least=1)
    step = number("timestep", timestep, "a time above 0", above=0.0)
    every = every_of("report_every", report_every, step)
    exchange_every = None if exchange_every is None else every_of("exchange_every", exchange_every, step)
    whole_number("minimize", minimize)
    whole_number("first_replica", first_replica)
    if replicas_per_device is not None:
        whole_number("replicas_per_device", replicas_per_device, least=1)
    given: dict[str, Any] = {**words}
    further = {name: given.pop(name) for name in FURTHER if name in given}
    door = Door.of(simulate, given, model, device)
    require_near(cutoff)
    solvent = door.model
    if temperatures is not None:
        temperatures = list(temperatures_of(temperatures))
    elif "temperature" in door.given or solvent.temperature != SolventModel.temperature:
        temperatures = [solvent.temperature]
    if flag("fixed_radii", fixed_radii):
        raise KeywordError(
            "with `fixed_radii` the gradient is not the derivative of the energy; do not use it for dynamics"
        )
    if solvent.gb_model.holds_radii:
        raise KeywordError(f"`gb={solvent.gb}` has no gradient of its complete energy, which dynamics needs; use obc2")
    if trajectory_of == "temperature" and exchange_every is None:
        raise KeywordError("`trajectory_of=temperature` needs a ladder; also give `exchange_every`")
    held = Held.of(restrain, distance, torsion, reference, freeze).referring(door.reading)
    if held.each is not None and (len(terms) or frozen is not None):
        raise KeywordError("give either `terms` and `frozen`, or restraints and frozen atoms as texts")
    biases = None if bias is None else BiasWords.of(bias)
    if len(listed) > 1 and (held.each is not None or len(terms) or frozen is not None or biases is not None):
        raise KeywordError("restraints, biases and frozen atoms need a single structure; give one")
    is_removed = not flag("keep_center_motion", keep_center_motion)
    place = Place(workers, scheduler, None if device is None else str(device))
    part = Shard.given(shard)
    options = {
        "temperature": temperatures, "timestep": timestep, "friction": friction, "seed": seed,
        "integrator": integrator, "constraints": constraints, "hydrogen_mass": hydrogen_mass,
        "exchange_every": exchange_every, "exchange": exchange, "ladder_shape": ladder_shape,
        "anneal": anneal,
        "remove_motion": None if is_removed else False,
        "first_replica": first_replica, "frozen": frozen, "terms": terms, "one_four": one_four, "cutoff": cutoff,
        "only_terms": terms_listed(only_terms),
        "variant": variant, "precision": precision, "device": device, "model": solvent, **further,
    }  # fmt: skip
    structures = tuple(of if isinstance(of, Atoms) else Path(file_path(of)) for of in listed)
    files = tuple(of for of in structures if isinstance(of, Path))
    folder = folder_path(file_path(output, "output"), "the files of the run")
    require_replaceable(flag("overwrite", overwrite), resume, folder, part is not None)
    spec = SimulateSpec(
        paths=structures, output=str(folder), n_steps=n_steps, replicas=replicas,
        together=replicas_per_device,
        every=every, reading=replace(door.reading, structures=files, solvent=solvent), options=options,
        held=held.each, trajectory=trajectory_format, by_temperature=trajectory_of == "temperature", minimized=minimize,
        strict=flag("strict", strict), resume=flag("resume", resume), overwrite=overwrite, shard=part,
        velocities=flag("velocities", velocities), bias=biases,
        inputs=(*door.reading.files, *([] if reference is None else [Path(file_path(reference))])),
    )  # fmt: skip
    if replicas_per_device is None and place.is_remote:
        spec = replace(spec, together=_share(spec, place))
    return _Run(spec, place, progress, watch).result()


with_words(simulate)


def _share(spec: SimulateSpec, place: Place) -> int:
    """Return the number of replicas per part if the ladders are divided equally among the workers.

    Raises InputError for a cluster, where the number of workers is not fixed.
    """
    if place.workers is None:
        raise KeywordError(
            "`scheduler` needs `replicas_per_device=N`, the number of replicas that a worker simulates at a time"
        )
    n_ladders = -(-len(spec.replicas_of_shard) // spec.n_rungs)
    return spec.n_rungs * -(-n_ladders // place.workers)


class _Run:
    """A call of `simulate`, which computes parts of the replicas one after another or by workers."""

    def __init__(self, spec: SimulateSpec, place: Place, progress: Progress | None, watch: Watch | None) -> None:
        self._spec, self._place, self._progress, self._watch = spec, place, progress, watch
        self._told = set[str]()
        self._part, self._is_new = 0, False

    def result(self) -> SimulateResult:
        """Simulate all parts and merge the tables. Raises the error of the first failed part."""
        spec = self._spec
        structures = [self._structure(k) for k in range(len(spec.paths))]
        parts = spec.items()
        self._n_parts, seconds = len(parts), None
        if self._place.is_remote:
            begin = clock.perf_counter()
            found = list(self._by_workers(parts))
            seconds = clock.perf_counter() - begin
        else:
            watched = replace(spec, watch=self._watched)
            found = []
            for self._part, part in enumerate(parts):
                self._is_new = True
                found.append(watched.compute(part))
        result = SimulateResult.of_parts(found, Path(spec.output), structures, spec.model, seconds)
        if self._place.is_remote:
            self._tell([*result.shared["notes"], *(": ".join(of) for of in result.shared["notes_of_structures"])])
        spec.join()
        if spec.bias is not None:
            result.write_colvar(spec.bias.labels)
        return result

    def _structure(self, k: int) -> Simulated:
        """Read a structure, and report findings about it."""
        spec, name = self._spec, self._spec.names[k]
        try:
            source, atoms = spec.molecule(spec.paths[k])
            checks = Checks(source, spec.strict)
            checks.add(*of_structure(atoms, places_sites=True))
        except PeleError as error:
            error.fields.setdefault("structure", name if isinstance(spec.paths[k], Atoms) else spec.paths[k])
            raise
        sha256 = source.sha256 if isinstance(source, InputFile) else ""
        return Simulated(name, atoms, str(source), sha256, tuple(checks.as_json()))

    def _by_workers(self, parts: Sequence[range]) -> list[Part]:
        """Simulate several parts at a time. An earlier run is removed once workers have connected."""
        found, spec = [], replace(self._spec, overwrite=False)
        begin = spec.remove_earlier if self._spec.overwrite else None
        with Journal(None, {}) as journal:
            for record in run_with(spec, parts, journal, False, self._place, begin=begin):
                if record.failed:
                    raise InputError(record.error)
                found.append(record.result)
                self._tell_share(len(found) / len(parts))
        return found

    def _watched(self, simulation: Simulation) -> None:
        """Report notes and progress, and call `watch`, before the first step and after each report."""
        if self._is_new:
            self._tell([*simulation.notes, *notes_of_reports(self._spec.n_steps, self._spec.every)])
        if self._watch is not None:
            self._watch(simulation)
        self._is_new = False
        self._tell_share((self._part + simulation.steps / self._spec.n_steps) / self._n_parts)

    def _tell_share(self, share: float) -> None:
        if self._progress is not None:
            self._progress(share)

    def _tell(self, sentences: Sequence[str]) -> None:
        for sentence in sentences:
            if sentence not in self._told:
                self._told.add(sentence)
                note(f"Note: {sentence}")
