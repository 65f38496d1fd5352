"""Computation of one map: the options are checked, a method is chosen, and plans keep what is prepared."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from numpy.typing import ArrayLike

from ..atoms import Atoms, require_atoms
from ..common import arguments
from ..common.errors import InputError, KeywordError
from ..common.settled import Settled
from ..common.variant import PRECISIONS, Progress
from ..grid import Grid
from ..plan.selection import IN_LADDER, having
from ..potential_model import PotentialModel
from ..units import COULOMB_KCAL_A, debye_kappa, molar, potential_factor
from .accuracy import DEFAULT_ACCURACY, compute_accurately, method_for
from .facts import medium_facts
from .methods import COARSEST, MAP_METHODS, METHODS, SPLIT_METHODS, choose_variant, require_able
from .options import MapOptions, PlannedMap
from .plan import MapPlan
from .poisson_boltzmann import METHOD, pb_map, pb_plan
from .problem import MapProblem
from .result import PotmapResult
from .room import MeshRoom
from .touching import require_apart
from .variants import VARIANTS, MapVariant, tuned_choice

if TYPE_CHECKING:
    from ..opencl.device import Device


def one_map(atoms: Atoms, grid: Grid, *, progress: Progress | None = None, **options: Any) -> PotmapResult:
    """Compute the map of atoms on a grid; options, errors and the result as of `potmap`."""
    arguments.callback("progress", progress)
    return having(Potmap, options.get("variant", "auto"))(atoms, grid, **options).evaluate(progress=progress)


class Potmap(Settled):
    """Potential map of one molecule on one grid, prepared once; options as in `potmap`.

    Kernels, tables of a mesh and memory are kept on the devices from one evaluation to the next.

    atoms : at the positions of the first map; grid : Grid; method : key of MAP_METHODS
    variant : key of `variants`, never "auto"; of pb the solver; devices : Devices that share the work

    >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
    >>> plan = pele_ocl.Potmap(atoms, pele_ocl.Grid.around(atoms, padding=3, spacing=2.0))
    >>> plan.evaluate().map.grid.shape
    (10, 7, 8)
    """

    variants: ClassVar[Mapping[str, MapVariant]] = VARIANTS

    def __init__(self, atoms: Atoms, grid: Grid, **options: Any) -> None:
        """Check the options and choose a method. Raises InputError and DeviceError as `potmap` does."""
        unknown = sorted(set(options) - {field.name for field in fields(MapOptions)})
        if unknown:
            raise TypeError(f"Potmap() has no option {unknown[0]!r}; options are those of potmap()")
        self.atoms, self.grid, self._options = atoms, grid, MapOptions(**options)
        self._lock = threading.Lock()
        if self._options.method == METHOD:
            _check(atoms, grid, self._options, self.variants)
            plan = pb_plan(atoms, grid, self._options)[0]
            self.method, self.variant, self.devices = METHOD, plan.solver, [plan.device]
            return
        self._planned = planned(atoms, grid, self._options, self.variants)
        self.method, self.variant, self.devices = self._planned.method, self._planned.variant, self._planned.devices
        self._map = MapPlan(self._planned.problem, self._planned.steps, self.devices)

    def __repr__(self) -> str:
        return f"Potmap({len(self.atoms):,} atoms, {self.grid!r}, {self.variant}, {' + '.join(map(str, self.devices))})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by description; a device by its title."""
        options = vars(self._options) | {"device": self.devices}
        return partial(type(self), self.atoms, self.grid, **options), ()

    def evaluate(self, positions: ArrayLike | None = None, *, progress: Progress | None = None) -> PotmapResult:
        """Compute the map.

        positions : (n, 3) A of all atoms; by default the atoms' own. progress : called with the share done, 0 to 1

        Returns a PotmapResult. Raises InputError if a grid point is on an atom and there is no min_distance. Atoms that
        moved too far for the method are refused, too. Threads take turns.
        """
        start = time.perf_counter()
        arguments.callback("progress", progress)
        atoms, options = self.atoms if positions is None else self.atoms.moved(positions), self._options
        if self.method == METHOD:
            with self._lock:
                return pb_map(atoms, self.grid, options, progress)
        require_apart(atoms, self.grid, options.min_distance, options.precision)
        with self._lock:
            problem = self._map.problem.moved(atoms)
            if problem.box is not self._map.problem.box:
                require_able(self.method, problem)
            computed = compute_accurately(self._map, problem, progress)
        return PotmapResult(
            map=self._planned.map_of(computed.values[0]),
            field=computed.values[1:] if options.field else None,
            n_atoms=len(atoms),
            device=self._planned.device,
            variant=self.variant,
            precision=options.precision,
            seconds={"kernel": computed.seconds, "total": time.perf_counter() - start},
            method=self.method,
            error=computed.errors[0] if computed.errors else None,
            field_error=computed.errors[1] if len(computed.errors) > 1 else None,
            accuracy=computed.accuracy,
            wanted=computed.wanted,
            atoms=atoms,
            model=problem.model,
            settings=medium_facts(atoms, options),
        )


def planned(
    atoms: Atoms, grid: Grid, options: MapOptions, variants: Mapping[str, MapVariant] | None = None
) -> PlannedMap:
    """Plan the map that `potmap` is to compute, and how. Raises InputError and DeviceError as it does.

    variants : to choose from; by default the table, the engine's or the ladder's, that has the one of the options
    """
    variants = having(Potmap, options.variant).variants if variants is None else variants
    _check(atoms, grid, options, variants)
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
    room, accuracy = MeshRoom.of(devices, precision), options.accuracy or DEFAULT_ACCURACY
    problem = MapProblem.of(atoms, grid, model, factor, options.field, precision, accuracy, room)
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
    return PlannedMap(
        problem, method, variant, variants[variant], devices, options.unit, options.temperature, title, unit_charge
    )


def require_cutoff_method(options: MapOptions) -> None:
    """Raise KeywordError for a cutoff, or smoothing at one, of another method."""
    within = arguments.is_among(options.method, MAP_METHODS) and MAP_METHODS[options.method].within_cutoff
    if (options.cutoff is not None or arguments.flag("smooth", options.smooth)) and not within:
        raise KeywordError('`cutoff` and `smooth` belong to `method="cutoff"`; give it, or leave them out')


def _check(atoms: Atoms, grid: Grid, options: MapOptions, variants: Mapping[str, MapVariant]) -> None:
    """Raise InputError for options that do not fit."""
    method, variant, precision = options.method, options.variant, options.precision
    require_atoms(atoms)
    arguments.instance("grid", grid, Grid, "a Grid: Grid.around(atoms, padding=10, spacing=0.5)")
    arguments.flag("field", options.field)
    given = arguments.described
    if not arguments.is_among(method, METHODS):
        raise InputError(f"there is no method {given(method)}; choose {', '.join(METHODS)}")
    fitting = [name for name, each in variants.items() if method == each.method]
    if not arguments.is_among(variant, ("auto", *fitting)):
        raise InputError(
            f"the method {method} has no variant {given(variant)}; choose auto, {', '.join(fitting)}{IN_LADDER}"
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
