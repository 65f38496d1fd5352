"""Plan of the map of one molecule on one grid: checks options, chooses a method, and reuses data on devices.

If the measured error is too large, the map is computed again with a finer mesh.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..atoms import Atoms, require_atoms
from ..common import arguments
from ..common.errors import InputError, KeywordError
from ..common.settled import Settled
from ..common.threads import started
from ..common.variant import PRECISIONS, Progress
from ..grid import Grid, Map
from ..plan.selection import IN_LADDER, having
from ..potential_model import PotentialModel
from ..units import COULOMB_KCAL_A, debye_kappa, molar, potential_factor
from .corrections import correct
from .error import MapError, Sample
from .mesh import mesh_evaluations, table_waves
from .methods import (
    COARSEST,
    MAP_METHODS,
    METHODS,
    SPLIT_METHODS,
    choose_variant,
    finer_accuracy,
    require_able,
)
from .options import MapOptions, medium_facts
from .poisson_boltzmann import METHOD, pb_map, pb_plan
from .problem import MapProblem, require_apart
from .result import PotmapResult
from .slabs import (
    LAUNCH_SECONDS,
    MapSlab,
    RemainingSlabs,
    Scratch,
    atoms_a_launch,
    evaluations_per_second,
    first_evals,
    slab_depth,
)
from .variants import VARIANTS, MapVariant, tuned_choice

if TYPE_CHECKING:
    from ..opencl.device import Device
    from ..opencl.queue import Queue

DEFAULT_ACCURACY = 1e-4
# Measured host time in addition to kernels, s: per map with a mesh, and per wave number of its table.
MESH_SECONDS, WAVE_SECONDS = 0.02, 45e-9
FINER_TRIES = 2  # for maps without atoms in them


class DeviceMap:
    """Kernels, tables and memory of a map on one device, reused for other positions.

    problem : at the positions of the last `move`
    evals : evaluations per launch of about LAUNCH_SECONDS, estimated from previous launches
    """

    def __init__(self, problem: MapProblem, variant: MapVariant, device: Device) -> None:
        self.device, self.problem, self.evals = device, problem, first_evals(device)
        self._variant = variant
        self._corrected = MAP_METHODS[self._variant.method].is_corrected(problem.precision)
        self._setup = self.queue()
        self.method = self._variant.run(self._setup, problem)
        self._slab: MapSlab | None = None
        self._memory = Scratch.kept(device, "map")

    def queue(self) -> Queue:
        """Create a queue on the device."""
        from ..opencl.queue import Queue

        return Queue(self.device, self.problem.precision)

    def move(self, queue: Queue, problem: MapProblem) -> None:
        """Set new positions of the same atoms; tables that are still valid are reused."""
        if problem is not self.problem:
            self.method = (self.method.moved or self._variant.run)(queue, problem)
            self.problem = problem

    def slab(self, queue: Queue, first: int, last: int) -> MapSlab:
        """Return slices `first` to `last` - 1, set to 0; the memory of a slab with the same slices is reused."""
        kept = self._slab
        if kept is not None and (kept.first, kept.last) == (first, last):
            queue.clear(kept.map, size=kept.n_bytes)
            return replace(kept, problem=self.problem)
        self._slab = kept = None  # frees its memory before allocating more
        self._slab = MapSlab.on(queue, self.problem, first, last, self.method.pad, self._memory)
        return self._slab

    def add(self, queue: Queue, slab: MapSlab, first: int, last: int) -> None:
        """Launch the addition of atoms `first` to `last` - 1; with the last atom, also the corrections near atoms."""
        self.method.add(queue, slab, first, last)
        if last == self.problem.n_atoms and self._corrected:
            queue.submit()  # the host prepares the corrections meanwhile
            correct(queue, slab)

    def atoms_a_launch(self, slab: MapSlab) -> int:
        """Return the number of atoms for the next launch; all for methods that need all atoms."""
        if self.method.atoms_a_point is not None:
            return max(1, self.problem.n_atoms)
        return atoms_a_launch(slab.n_points, self.evals)

    def compute(self, work: RemainingSlabs, worker: int) -> float:
        """Compute this device's part of a map, slab by slab. Returns the kernel time, s."""
        problem, seconds = work.problem, 0.0
        self.move(self._setup, problem)
        while (slices := work.take(worker, self._depth(), self.method.pad[2])) is not None:
            first, last = slices
            queue = self.queue()
            slab = self.slab(queue, first, last)
            done = 0
            while done < problem.n_atoms and not work.stopped:
                count = min(problem.n_atoms - done, self.atoms_a_launch(slab))
                launch = self.queue()
                self.add(launch, slab, done, done + count)
                work.do_meanwhile(launch)
                took = launch.kernel_seconds
                seconds += took
                done += count
                work.note(last - first, count)
                evals = slab.n_points * (self.method.atoms_a_point or count)
                self.evals = evals * min(8.0, LAUNCH_SECONDS / max(took, 1e-6))
            squares = slab.squares(queue) if self._variant.approximates else None
            slab.download(queue, work.slices(first, last))
            if squares is not None:
                work.squares[:, first:last] = squares()
        setup, self._setup = self._setup, self.queue()
        return seconds + setup.kernel_seconds

    def _depth(self) -> int:
        return slab_depth(self.device, self.problem, self.evals, self.method)


class Potmap(Settled):
    """Potential map of one molecule on one grid, prepared once; options as in `potmap`.

    Kernels, mesh tables and memory stay on the devices between evaluations.

    atoms : with the positions of the first map; grid : Grid; method : key of MAP_METHODS
    variant : key of `variants`, never "auto"; the solver for pb; devices : Devices that share the work

    >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
    >>> plan = pele_ocl.Potmap(atoms, pele_ocl.Grid.around(atoms, padding=3, spacing=2.0))
    >>> plan.evaluate().map.grid.shape
    (10, 7, 8)
    """

    variants: ClassVar[Mapping[str, MapVariant]] = VARIANTS
    _elsewhere: ClassVar[str] = IN_LADDER  # for the error message about unknown variants

    def __init__(self, atoms: Atoms, grid: Grid, **options: Any) -> None:
        """Check the options and choose a method. Raises InputError and DeviceError as `potmap` does."""
        unknown = sorted(set(options) - {field.name for field in fields(MapOptions)})
        if unknown:
            raise TypeError(f"Potmap() has no option {unknown[0]!r}; options are those of potmap()")
        self.atoms, self.grid, self._options = atoms, grid, MapOptions(**options)
        self._lock, self._is_new = threading.Lock(), True  # the problem has the atoms' own positions
        _check(atoms, grid, self._options, type(self))
        if self._options.method == METHOD:
            plan = pb_plan(atoms, grid, self._options)[0]
            self.method, self.variant, self.devices = METHOD, plan.solver, [plan.device]
        else:
            self._choose()

    def _choose(self) -> None:
        """Choose method, variant and devices, and create the problem of the first map, `_problem`."""
        atoms, options, variants = self.atoms, self._options, self.variants
        salt = options.kappa
        if salt is None:
            salt = _salt(options.ionic_strength, options.permittivity, options.temperature)
        by_cutoff = options.method != "auto" and MAP_METHODS[options.method].within_cutoff
        reach = options.reach if by_cutoff else None
        model = PotentialModel(
            options.permittivity, options.distance_dependent, salt, options.min_distance, reach, options.smooth
        )
        factor = COULOMB_KCAL_A * potential_factor(options.unit, options.temperature)
        self.devices = _devices(options.device, variants.get(options.variant), options.precision)
        accuracy = options.accuracy or DEFAULT_ACCURACY
        problem = MapProblem.of(atoms, self.grid, model, factor, options.field, options.precision, accuracy)
        self._problem = problem = problem.on(self.devices)
        self.method, self.variant = options.method, options.variant
        if self.method == "auto":
            self.method = method_for(problem, self.devices)
        else:
            require_able(self.method, problem)
        if self.variant == "auto":
            tuned = tuned_choice(problem, self.devices[0]).variant if self.method == "direct" else None
            self.variant = tuned or choose_variant(self.method)
        if options.field:
            _require_field(self.method, self.variant, variants)
        self._steps, self._title = variants[self.variant], f"{model.name} of {len(atoms):,} atoms"
        self._factor = factor / options.permittivity  # potential of a unit charge at 1 A, without salt
        self._wanted = problem.accuracy if self.method in SPLIT_METHODS else 0.0  # by norm, for the first problem
        self._parts: dict[int, DeviceMap] = {}

    @property
    def problem(self) -> MapProblem:
        """Grid and atoms in the form used by kernels, at the positions of the last map."""
        return self._problem

    def __repr__(self) -> str:
        return f"Potmap({len(self.atoms):,} atoms, {self.grid!r}, {self.variant}, {' + '.join(map(str, self.devices))})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle atoms, grid and options; devices are pickled by title."""
        options = vars(self._options) | {"device": self.devices}
        return partial(type(self), self.atoms, self.grid, **options), ()

    def evaluate(self, positions: ArrayLike | None = None, *, progress: Progress | None = None) -> PotmapResult:
        """Compute the map.

        positions : (n, 3) A of all atoms; by default the atoms' own. progress : called with the fraction done, 0 to 1

        Returns a PotmapResult. Raises InputError if a grid point is on an atom without min_distance, or if atoms moved
        too far for the method. Concurrent calls are serialized.
        """
        start = time.perf_counter()
        arguments.callback("progress", progress)
        atoms, options = self.atoms if positions is None else self.atoms.moved(positions), self._options
        if self.method == METHOD:
            with self._lock:
                return pb_map(atoms, self.grid, options, progress)
        apart = started(
            len(atoms), partial(require_apart, atoms, self.grid, options.min_distance, options.precision)
        )  # fmt: skip
        if not self._steps.approximates:
            apart()
        with self._lock:
            is_there, self._is_new = self._is_new and positions is None, False
            problem = self._problem if is_there else self._problem.moved(atoms)
            if problem.box is not self._problem.box:
                require_able(self.method, problem)
            values, seconds, errors = self._compute_accurately(problem, progress, apart)
            map_, field = self._map_of(values[0]), values[1:] if options.field else None
            spent = {"kernel": seconds, "total": time.perf_counter() - start}
            return self._result(atoms, map_, spent, errors, field)

    def _map_of(self, values: NDArray[np.floating], what: str = "") -> Map:
        """Return values (nz, ny, nx) as a Map. what : prefix of the title"""
        unit = self._options.unit
        kelvin = self._options.temperature if unit == "kT/e" else None
        return Map.owning(self.problem.grid, values, unit, what + self._title, kelvin)

    def _result(
        self, atoms: Atoms, map_: Map, seconds: Mapping[str, float], errors: Sequence[MapError | None] = (),
        field: NDArray[np.floating] | None = None, **more: Any,
    ) -> PotmapResult:  # fmt: skip
        """Create the result of a map. errors : of the potential and the field; more : additional fields"""
        potential_error, field_error = (*errors, None, None)[:2]
        approximates = bool(errors) and self.method in SPLIT_METHODS
        return PotmapResult(
            map=map_,
            field=field,
            n_atoms=len(atoms),
            device=" + ".join(map(str, self.devices)),
            variant=self.variant,
            precision=self.problem.precision,
            seconds=seconds,
            method=self.method,
            error=potential_error,
            field_error=field_error,
            accuracy=self.problem.accuracy if approximates else 0.0,
            wanted=self._wanted if approximates else 0.0,
            atoms=atoms,
            model=self.problem.model,
            settings=medium_facts(atoms, self._options),
            **more,
        )

    def _part(self, number: int) -> DeviceMap:
        """Return the DeviceMap of a device, created on first use."""
        if number not in self._parts:
            self._parts[number] = DeviceMap(self.problem, self._steps, self.devices[number])
        return self._parts[number]

    def _refine(self, accuracy: float) -> None:
        """Use a finer mesh or finer lattices from now on, and free those in use."""
        self._parts.clear()
        self._problem = replace(self.problem, accuracy=accuracy)

    def _compute(
        self, problem: MapProblem | None = None, progress: Progress | None = None,
        meanwhile: Callable[[], object] | None = None,
    ) -> RemainingSlabs:  # fmt: skip
        """Compute the map, returned as `values` of the RemainingSlabs.

        problem : with new positions of the same atoms; progress : called with the fraction done, 0 to 1
        meanwhile : called by the host while a device computes, if the variant approximates
        """
        self._problem = problem or self.problem
        approximates = self._steps.approximates
        work = RemainingSlabs(
            self.problem, progress, self.devices[0].results, len(self.devices), meanwhile if approximates else None
        )
        if self.problem.n_atoms == 0:
            work.values[:] = 0
        else:
            work.seconds = self._shared(work)
        return work

    def _compute_accurately(
        self, problem: MapProblem | None = None, progress: Progress | None = None,
        apart: Callable[[], object] = lambda: None,
    ) -> tuple[NDArray[np.floating], float, tuple[MapError, ...]]:  # fmt: skip
        """Compute a map; if the accuracy is not reached, use finer meshes or lattices.

        problem : with new positions of the same atoms; the plan keeps the final mesh
        apart : raises InputError if an atom is on a point; called while a device computes

        Returns the values (components, nz, ny, nx), the kernel time of the slowest device, and the errors of the
        potential and, if computed, of the field; no errors for direct sums.
        """
        seconds = 0.0
        self._problem = problem or self.problem
        sample = self._begin_sample()

        def meanwhile() -> None:
            apart()
            sample()

        while True:
            work = self._compute(progress=progress, meanwhile=meanwhile)
            seconds += work.seconds
            if not self._steps.approximates or not self.problem.n_atoms:
                return work.values, seconds, ()
            errors = sample().errors(work.values, work.sums_of_squares)
            missed = any(error.norm > self._wanted for error in errors)
            finer = finer_accuracy(self.method, self.problem) if missed else None
            if finer is None:
                return work.values, seconds, errors
            self._refine(finer)

    def _begin_sample(self) -> Callable[[], Sample]:
        """Return a function that waits for sums at sample points; on a GPU with many atoms, a thread starts them."""
        problem, device = self.problem, self.devices[0]

        def begin() -> Sample:
            return Sample(problem, device)

        if self._steps.approximates and device.kind == "GPU":
            begin = started(problem.n_atoms, lambda: Sample(problem, device).waited_for())
        return cache(begin)

    def _shared(self, work: RemainingSlabs) -> float:
        """Distribute the work to the devices. Returns the kernel time of the slowest one."""
        if all(device.kind != "CPU" for device in self.devices):
            work.start()
        if len(self.devices) == 1:
            return self._part(0).compute(work, 0)

        def share(number: int) -> float:
            try:
                return self._part(number).compute(work, number)
            except BaseException:
                work.stopped = True  # stops the other devices
                raise

        with ThreadPoolExecutor(len(self.devices)) as pool:
            try:
                return max(pool.map(share, range(len(self.devices))))
            finally:
                work.stopped = True  # if interrupted


def planned(atoms: Atoms, grid: Grid, options: MapOptions) -> Potmap:
    """Return the plan of a map for `potmap`. Raises InputError and DeviceError as `potmap` does."""
    kind = having(Potmap, options.variant)
    if options.method == METHOD:
        _check(atoms, grid, options, kind)
        raise InputError("the method pb does not support frames; choose another, or give structures or models")
    return kind(atoms, grid, **vars(options))


def method_for(problem: MapProblem, devices: Sequence[Device]) -> str:
    """Estimate which method is faster on the devices, "direct" or "mesh"."""
    if SPLIT_METHODS["mesh"].lacks(problem) or not problem.n_atoms:
        return "direct"
    rate = sum(map(evaluations_per_second, devices))
    mesh = sum(
        mesh_evaluations(each) / rate + WAVE_SECONDS * table_waves(each) + MESH_SECONDS for each in _tries(problem)
    )
    return "mesh" if mesh < problem.evaluations * problem.components / rate else "direct"


def _tries(problem: MapProblem) -> Iterator[MapProblem]:
    """Yield the problem with each accuracy that may be tried, in order.

    Away from a molecule, the contributions of its atoms cancel, and the relative error is larger, so finer meshes are
    probably needed.
    """
    yield problem
    for _ in range(0 if problem.n_near else FINER_TRIES):
        finer = finer_accuracy("mesh", problem)
        if finer is None:
            return
        problem = replace(problem, accuracy=finer)
        yield problem


def require_cutoff_method(options: MapOptions) -> None:
    """Raise KeywordError if `cutoff` or `smooth` is given for another method."""
    within = arguments.is_among(options.method, MAP_METHODS) and MAP_METHODS[options.method].within_cutoff
    if (options.cutoff is not None or arguments.flag("smooth", options.smooth)) and not within:
        raise KeywordError('`cutoff` and `smooth` need `method="cutoff"`; give it, or leave them out')


def _check(atoms: Atoms, grid: Grid, options: MapOptions, plan: type[Potmap]) -> None:
    """Raise InputError for invalid options."""
    method, variant, precision = options.method, options.variant, options.precision
    require_atoms(atoms)
    arguments.instance("grid", grid, Grid, "a Grid: Grid.around(atoms, padding=10, spacing=0.5)")
    arguments.flag("field", options.field)
    given = arguments.described
    if not arguments.is_among(method, METHODS):
        raise InputError(f"unknown method {given(method)}; choose {', '.join(METHODS)}")
    fitting = [name for name, each in plan.variants.items() if method == each.method]
    if not arguments.is_among(variant, ("auto", *fitting)):
        raise InputError(
            f"the method {method} has no variant {given(variant)}; choose auto, {', '.join(fitting)}{plan._elsewhere}"
        )
    require_cutoff_method(options)
    for name in ("pb", "solute_dielectric"):
        if getattr(options, name) is not None and method != METHOD:
            raise KeywordError(f"`{name}` belongs to the method pb, not to {method}; choose pb, or leave it out")
    if not arguments.is_among(precision, PRECISIONS):
        raise InputError(f"unknown precision {given(precision)}; choose {' or '.join(PRECISIONS)}")
    atoms.require((), "a potential map")
    _check_accuracy(method, options.accuracy, precision)


def _require_field(method: str, variant: str, variants: Mapping[str, MapVariant]) -> None:
    """Raise InputError for a variant without the electric field; `variant` is the chosen one, never "auto"."""
    if not variants[variant].has_field:
        others = [name for name, each in variants.items() if each.has_field and each.method == method]
        raise InputError(
            f"the variant {variant} computes no field; choose {', '.join(others) or 'another method'}, or leave out "
            "the field"
        )


def _devices(
    device: Device | int | str | Sequence[Device | int | str] | None, variant: MapVariant | None, precision: str
) -> list[Device]:
    """Return the devices that share the work. Raises DeviceError for unsupported devices. variant : None for "auto\""""
    from ..opencl.device import get_device

    chosen = device if isinstance(device, Sequence) and not isinstance(device, str) else [device]
    if not chosen:
        raise InputError("the list of devices is empty")
    devices = [get_device(choice) for choice in chosen]
    if variant is not None:
        devices = variant.devices_for(devices)
    for each in devices:
        each.require_precision(precision)
    return devices


def _check_accuracy(method: str, accuracy: float | None, precision: str) -> None:
    if accuracy is None:
        return
    if method not in (*SPLIT_METHODS, "auto"):
        those = ", ".join(SPLIT_METHODS)
        raise InputError(f"an accuracy applies to the methods {those} and auto, not to {method}; choose one of them")
    best = SPLIT_METHODS.get(method, SPLIT_METHODS["mesh"]).finest[precision]
    if not arguments.is_finite(accuracy) or not best <= accuracy <= COARSEST:
        raise InputError(
            f"the accuracy is {arguments.described(accuracy)}; for the method {method} in {precision} it can be "
            f"{best:g} to {COARSEST:g}, such as 1e-4"
        )


def _salt(ionic_strength: float, dielectric: float, temperature: float) -> float:
    """Return the inverse Debye length of a salt, 1/A."""
    molar("ionic_strength", ionic_strength)
    PotentialModel(dielectric)  # checks the dielectric
    potential_factor("kT/e", temperature)
    return debye_kappa(ionic_strength, dielectric, temperature)
