"""Maps of one molecule and of its models: options are checked, a method is chosen, plans keep what is ready."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..atoms import Atoms, require_atoms
from ..common import arguments
from ..common.errors import InputError, KeywordError
from ..common.settled import Settled
from ..common.variant import PRECISIONS, Progress
from ..grid import Grid
from ..plan.selection import IN_LADDER, having
from ..potential_model import PotentialModel
from ..units import COULOMB_KCAL_A, debye_kappa, molar, potential_factor
from .blocking import Blocking
from .methods import COARSEST, MAP_METHODS, METHODS, SPLIT_METHODS, choose_variant, require_able
from .options import MapOptions
from .plan import DEFAULT_ACCURACY, MapPlan, method_for
from .poisson_boltzmann import METHOD, pb_map, pb_plan
from .problem import MapProblem, require_apart
from .result import COMBINATIONS, PotmapResult
from .slabs import MOST_POINTS
from .variants import VARIANTS, MapVariant, tuned_choice

if TYPE_CHECKING:
    from ..opencl.device import Device


FIRST_EVALS = 2e7
ENOUGH_SECONDS = 0.02
FILLED_SLICES = 16


def one_map(atoms: Atoms, grid: Grid, *, progress: Progress | None = None, **options: Any) -> PotmapResult:
    """Compute the map of atoms on a grid; options, errors and the result as in `potmap`."""
    arguments.callback("progress", progress)
    return having(Potmap, options.get("variant", "auto"))(atoms, grid, **options).evaluate(progress=progress)


class Potmap(Settled):
    """Potential map of one molecule on one grid, prepared once; options as in `potmap`.

    Kernels, tables of a mesh and memory are kept on the devices from one evaluation to the next.

    atoms : with the positions of the first map; grid : Grid; method : key of MAP_METHODS
    variant : key of `variants`, never "auto"; the solver for pb; devices : Devices that share the work

    >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
    >>> plan = pele_ocl.Potmap(atoms, pele_ocl.Grid.around(atoms, padding=3, spacing=2.0))
    >>> plan.evaluate().map.grid.shape
    (10, 7, 8)
    """

    variants: ClassVar[Mapping[str, MapVariant]] = VARIANTS
    _elsewhere: ClassVar[str] = IN_LADDER  # for the error of a variant that there is not

    def __init__(self, atoms: Atoms, grid: Grid, **options: Any) -> None:
        """Check the options and choose a method. Raises InputError and DeviceError as `potmap` does."""
        unknown = sorted(set(options) - {field.name for field in fields(MapOptions)})
        if unknown:
            raise TypeError(f"Potmap() has no option {unknown[0]!r}; options are those of potmap()")
        self.atoms, self.grid, self._options = atoms, grid, MapOptions(**options)
        self._lock, self._is_new = threading.Lock(), True  # the plan's problem is at the atoms' own positions
        if self._options.method == METHOD:
            _check(atoms, grid, self._options, type(self))
            plan = pb_plan(atoms, grid, self._options)[0]
            self.method, self.variant, self.devices = METHOD, plan.solver, [plan.device]
            return
        self._plan = planned(atoms, grid, self._options, type(self))
        self.method, self.variant, self.devices = self._plan.method, self._plan.name, self._plan.devices

    def __repr__(self) -> str:
        return f"Potmap({len(self.atoms):,} atoms, {self.grid!r}, {self.variant}, {' + '.join(map(str, self.devices))})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by description; a device by its title."""
        options = vars(self._options) | {"device": self.devices}
        return partial(type(self), self.atoms, self.grid, **options), ()

    def evaluate(self, positions: ArrayLike | None = None, *, progress: Progress | None = None) -> PotmapResult:
        """Compute the map.

        positions : (n, 3) A of all atoms; by default the atoms' own. progress : called with the fraction done, 0 to 1

        Returns a PotmapResult. Raises InputError if a grid point is on an atom and there is no min_distance. Atoms that
        moved too far for the method are also refused. Threads take turns.
        """
        start = time.perf_counter()
        arguments.callback("progress", progress)
        atoms, options = self.atoms if positions is None else self.atoms.moved(positions), self._options
        if self.method == METHOD:
            with self._lock:
                return pb_map(atoms, self.grid, options, progress)
        require_apart(atoms, self.grid, options.min_distance, options.precision)
        with self._lock:
            is_there, self._is_new = self._is_new and positions is None, False
            problem = self._plan.problem if is_there else self._plan.problem.moved(atoms)
            if problem.box is not self._plan.problem.box:
                require_able(self.method, problem)
            values, seconds, errors = self._plan.compute_accurately(problem, progress)
            map_, field = self._plan.map_of(values[0]), values[1:] if options.field else None
            spent = {"kernel": seconds, "total": time.perf_counter() - start}
            return self._plan.result(atoms, map_, spent, errors, field)


def planned(atoms: Atoms, grid: Grid, options: MapOptions, plan: type[Potmap] | None = None) -> MapPlan:
    """Plan the map that `potmap` is to compute, and how. Raises InputError and DeviceError as it does.

    plan : whose variants there are to choose from; by default the class, the engine's or the ladder's, that has the one
        of the options
    """
    plan = having(Potmap, options.variant) if plan is None else plan
    variants = plan.variants
    _check(atoms, grid, options, plan)
    if options.method == METHOD:
        raise InputError("maps of frames are not made by the method pb; choose another, or give structures or models")
    precision = options.precision
    salt = options.kappa
    if salt is None:
        salt = _salt(options.ionic_strength, options.permittivity, options.temperature)
    by_cutoff = options.method != "auto" and MAP_METHODS[options.method].within_cutoff
    reach = options.reach if by_cutoff else None
    model = PotentialModel(
        options.permittivity, options.distance_dependent, salt, options.min_distance, reach, options.smooth
    )
    factor = COULOMB_KCAL_A * potential_factor(options.unit, options.temperature)
    devices = _devices(options.device, variants.get(options.variant), precision)
    accuracy = options.accuracy or DEFAULT_ACCURACY
    problem = MapProblem.of(atoms, grid, model, factor, options.field, precision, accuracy).on(devices)
    method, variant = options.method, options.variant
    if method == "auto":
        method = method_for(problem, devices)
    else:
        require_able(method, problem)
    if variant == "auto":
        tuned = tuned_choice(problem, devices[0]).variant if method == "direct" else None
        variant = tuned or choose_variant(method)
    if options.field:
        _require_field(method, variant, variants)
    title = f"{model.name} of {len(atoms):,} atoms"
    unit_charge = factor / options.permittivity
    return MapPlan(problem, options, method, variant, variants[variant], devices, title, unit_charge)


def require_cutoff_method(options: MapOptions) -> None:
    """Raise KeywordError for a cutoff, or smoothing at one, of another method."""
    within = arguments.is_among(options.method, MAP_METHODS) and MAP_METHODS[options.method].within_cutoff
    if (options.cutoff is not None or arguments.flag("smooth", options.smooth)) and not within:
        raise KeywordError('`cutoff` and `smooth` belong to `method="cutoff"`; give it, or leave them out')


def _check(atoms: Atoms, grid: Grid, options: MapOptions, plan: type[Potmap]) -> None:
    """Raise InputError for options that do not fit."""
    method, variant, precision = options.method, options.variant, options.precision
    require_atoms(atoms)
    arguments.instance("grid", grid, Grid, "a Grid: Grid.around(atoms, padding=10, spacing=0.5)")
    arguments.flag("field", options.field)
    given = arguments.described
    if not arguments.is_among(method, METHODS):
        raise InputError(f"there is no method {given(method)}; choose {', '.join(METHODS)}")
    fitting = [name for name, each in plan.variants.items() if method == each.method]
    if not arguments.is_among(variant, ("auto", *fitting)):
        raise InputError(
            f"the method {method} has no variant {given(variant)}; choose auto, {', '.join(fitting)}{plan._elsewhere}"
        )
    require_cutoff_method(options)
    for name in ("pb", "solute_dielectric"):
        if getattr(options, name) is not None and method != METHOD:
            raise KeywordError(f"`{name}` is of the method pb, not of {method}; choose that, or leave it out")
    if not arguments.is_among(precision, PRECISIONS):
        raise InputError(f"there is no precision {given(precision)}; choose {' or '.join(PRECISIONS)}")
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
    """List the devices that share the work; raise for one that cannot do it. variant : None for "auto\""""
    from ..opencl.device import get_device

    chosen = device if isinstance(device, Sequence) and not isinstance(device, str) else [device]
    if not chosen:
        raise InputError("there is no device in the list of devices")
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
        raise InputError(f"an accuracy is of the methods {those} and auto, not of {method}; choose one of them")
    best = SPLIT_METHODS.get(method, SPLIT_METHODS["mesh"]).finest[precision]
    if not arguments.is_finite(accuracy) or not best <= accuracy <= COARSEST:
        raise InputError(
            f"the accuracy is {arguments.described(accuracy)}; of the method {method} in {precision} it may be "
            f"{best:g} to {COARSEST:g}, such as 1e-4"
        )


def _salt(ionic_strength: float, dielectric: float, temperature: float) -> float:
    """Compute the inverse Debye length, 1/A, of a salt."""
    molar("ionic_strength", ionic_strength)
    PotentialModel(dielectric)  # checks it
    potential_factor("kT/e", temperature)
    return debye_kappa(ionic_strength, dielectric, temperature)


def estimate_seconds(atoms: Atoms, grid: Grid, **options: Any) -> float:
    """Seconds of the kernels for the whole map, roughly, from one of its middle; options as in `potmap`.

    Raises what `potmap` would for the whole map.
    """
    require_apart(atoms, grid, options.get("min_distance", 0.0), options.get("precision", "float32"))
    points = FIRST_EVALS / max(1, len(atoms))
    while True:
        part = middle_part(grid, points)
        one_map(atoms, part, **options)  # builds the kernels
        seconds = one_map(atoms, part, **options).seconds["kernel"]
        if len(part) == len(grid) or seconds > ENOUGH_SECONDS:
            return seconds * len(grid) / len(part)
        points = 8 * len(part)


def memory_bytes(atoms: Atoms, grid: Grid, options: MapOptions) -> int:
    """Bytes that a map by one of SPLIT_METHODS takes on each of its devices, at most, by a rule.

    Raises what `potmap` would, InputError if no nodes have room.
    """
    plan = planned(atoms, grid, options)
    problem, slabs = plan.problem, [_largest_slab(plan.problem, device) for device in plan.devices]
    reals_for = SPLIT_METHODS[plan.method].reals
    reals = max(reals_for(problem, slab) + problem.components * math.prod(slab) for slab in slabs)
    return int(reals * np.dtype(problem.precision).itemsize)


def _largest_slab(problem: MapProblem, device: Device) -> tuple[int, int, int]:
    """Points along x, y, z that a device computes at a time by one of SPLIT_METHODS, with their padding."""
    width, precision, shape = device.vector_width(problem.precision), problem.precision, problem.grid.shape
    pad = Blocking.of(device.kind, device.vendor, width, precision, False, shape).pad
    nx, ny, nz = (-(-n // p) * p for n, p in zip(shape, pad, strict=True))
    most = MOST_POINTS // (problem.components * nx * ny)
    return nx, ny, min(nz, max(pad[2], most))


def middle_part(grid: Grid, points: float) -> Grid:
    """Cut out about so many points of a grid: slices from its middle, or rows of a block's depth."""
    nx, ny, nz = grid.shape
    fewest = min(nz, FILLED_SLICES)
    rows = int(min(ny, max(1, points / (nx * fewest))))
    slices = int(min(nz, max(fewest, points / (nx * rows))))
    first = (0, (ny - rows) // 2, (nz - slices) // 2)
    return Grid(grid.position(first), grid.spacing, (nx, rows, slices))


def potmap_models(
    models: Iterable[Atoms], grid: Grid, *, failed: dict[int, str] | None = None, **options: Any
) -> PotmapResult:
    """Compute maps of all models on one grid in one pass, and keep no more than the sums.

    models : Atoms of each model; options as in `potmap`, but `field`
    failed : takes why models have no map, by index from 0, and others count; by default the first is an error

    Returns the result of the last model with the mean as its map, all COMBINATIONS in `maps`, the seconds of all models
    and the largest measured error. stdev belongs to the models themselves, with their number below the sum. Raises
    InputError if there is no model, or the field is asked for, and as `potmap` does.
    """
    if options.get("field"):
        raise InputError("the field of many models is not summed up; ask for it model by model")
    mean = np.zeros(grid.shape[::-1])
    squares = np.zeros_like(mean)
    lowest: NDArray[np.floating] | None = None
    highest: NDArray[np.floating] | None = None
    result, n, worst = None, 0, None
    seconds = {"kernel": 0.0, "total": 0.0}
    for place, atoms in enumerate(models):
        try:
            result = one_map(atoms, grid, **options)
        except InputError as error:
            if failed is None:
                raise
            failed[place] = str(error)
            continue
        n += 1
        values = result.map.values
        # Welford's running mean and sum of squares about it.
        away = values - mean
        mean += away / n
        squares += away * (values - mean)
        lowest = values if lowest is None else np.minimum(lowest, values)
        highest = values if highest is None else np.maximum(highest, values)
        seconds = {name: seconds[name] + result.seconds[name] for name in seconds}
        if result.error is not None and (worst is None or result.error.norm > worst.norm):
            worst = result.error
    if result is None or lowest is None or highest is None:
        raise InputError(f"no model has a map: {next(iter(failed.values()))}" if failed else "there is no model to map")
    found = zip(COMBINATIONS, (mean, lowest, highest, np.sqrt(squares / n)), strict=True)
    own = result.map
    maps = {
        name: replace(own, values=values.astype(own.values.dtype), title=f"{name} of {n} models: {own.title}")
        for name, values in found
    }
    return replace(result, map=maps["avg"], maps=maps, n_models=n, seconds=seconds, error=worst)
