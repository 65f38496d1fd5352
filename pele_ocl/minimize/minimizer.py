"""Minimizers: for one molecule with any number of conformations, or for different molecules together."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..atoms import Atoms, Floats
from ..common.arguments import array, callback, choice, described, former_keywords
from ..common.errors import DeviceError, DeviceMemoryError, InputError, KernelBuildError, PeleError, Suggests
from ..common.variant import Progress
from ..energy import Energy, Term
from ..energy.frozen import are_in_place
from ..gb_models.solvent_model import SolventModel, choose_radii_of
from ..plan.plan import CHUNK_ATOMS
from .constraints import BondConstraints
from .driver import Driver, Jobs, most_bytes
from .job import Protocol, Recipe
from .options import check_options, require_bounds, tolerance_of
from .result import MinimizeBatch, MinimizeResult

if TYPE_CHECKING:
    from ..opencl.device import Device
    from .method import Method

SHARING = CHUNK_ATOMS // 4  # atoms; smaller molecules share launches, larger ones fill a device

# Called with the number of structures done, the total number, and the largest rms gradient of the running ones.
Watch = Callable[[int, int, float], None]
EachOptions = Callable[[Atoms], Mapping[str, object]]
Options = Mapping[str, Any]  # of a Minimizer
Done = tuple[int, MinimizeResult | str]  # number of a molecule, and its result or the reason of a failure


class Minimizer(Suggests):
    """Minimizer of one molecule, prepared for repeated use; parameters as in `minimize`.

    energy : the energy plan
    protocol : the method, stopping criteria, rounds, moving atoms and constraints

    It is pickled as its atoms and options, like plans.

    >>> minimizer = pele_ocl.Minimizer(pele_ocl.read("data/structures/trialanine.pdb"), max_iterations=5)
    >>> result = minimizer.minimize()
    >>> result.converged, bool(result.total < result.energy_before.total)
    (True, True)
    """

    @former_keywords(largest="max_gradient", energy_change="energy_tolerance", restore="bond_repair")
    def __init__(
        self,
        atoms: Atoms,
        *,
        method: str | type[Method] = "lbfgs",
        tolerance: float | str = 0.1,
        max_gradient: float | None = None,
        energy_tolerance: float | None = None,
        max_iterations: int = 10_000,
        max_seconds: float | None = None,
        terms: Sequence[Term] = (),
        frozen: ArrayLike | None = None,
        constraints: str | None = None,
        bond_repair: bool = True,
        rounds: int = 1,
        fixed_radii: bool = False,
        one_four: Literal["scale", "exclude"] = "scale",
        cutoff: float | None = None,
        only_terms: Sequence[str] | None = None,
        precision: str = "float32",
        variant: str = "auto",
        device: Device | int | str | None = None,
        model: SolventModel | None = None,
        **bounds: Any,
    ) -> None:
        """bounds : further fields of `minimize.options.Stopping`"""
        atoms = SolventModel.or_default(model).choose_radii(atoms)
        require_bounds(bounds, Minimizer)
        bounds |= {
            "tolerance": tolerance_of(tolerance), "max_gradient": max_gradient, "energy_tolerance": energy_tolerance,
            "max_iterations": max_iterations, "max_seconds": max_seconds,
        }  # fmt: skip
        own = {"method": method, "constraints": constraints, "bond_repair": bond_repair, "rounds": rounds, **bounds}
        check_options(own)
        self._make = partial(
            Energy, atoms, fixed_radii=fixed_radii, one_four=one_four, cutoff=cutoff, terms=terms,
            only_terms=only_terms, precision=precision, variant=variant, device=device, model=model,
            born="pairs",  # so that the energy is smooth
            rebuild_sites=True,
        )  # fmt: skip
        self.energy = self._make(frozen=frozen)
        self._described: dict[str, Any] = dict(
            own, terms=self.energy.further_terms, frozen=self.energy.frozen if self.energy.frozen.any() else None,
            fixed_radii=fixed_radii, one_four=one_four, cutoff=cutoff, only_terms=only_terms, precision=precision,
            variant=self.energy.variant, device=self.energy.device, model=self.energy.model,
        )  # fmt: skip
        self._whole: Energy | None = None  # the same plan including interactions among frozen atoms
        self.protocol = Protocol(self.energy, **own)
        self._spare = deque[tuple[Recipe, Driver]]()  # for later calls

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        """Return atoms and options, with the device by its name; unpickling makes a new plan on such a device."""
        return partial(type(self), **self._described), (self.atoms,)

    def __repr__(self) -> str:
        plan = self.energy
        return f"Minimizer({len(self.atoms):,} atoms, {plan.variant}, {plan.precision}, on {plan.device})"

    @property
    def atoms(self) -> Atoms:
        """The molecule."""
        return self.energy.atoms

    @property
    def free(self) -> NDArray[np.bool_]:
        """Mask of the moving atoms, (n,)."""
        return self.protocol.free

    @property
    def constraints(self) -> BondConstraints | None:
        """Constrained bonds, or None."""
        return self.protocol.constraints

    def minimize(self, positions: ArrayLike | None = None, *, progress: Progress | None = None) -> MinimizeResult:
        """Minimize from positions (n, 3) A, by default those of the atoms.

        progress : called at each check with the fraction of structures done, 0 or 1

        Raises InputError for positions of the wrong shape, and, with the reason, if minimization fails.
        """
        start = self.atoms.positions if positions is None else array("positions", positions, "iuf", "numbers")
        if start.shape != self.atoms.positions.shape:
            raise InputError(f"positions have shape {start.shape}; expected ({len(self.atoms)}, 3)")
        return self.minimize_batch(start[np.newaxis], progress=progress)[0]

    def minimize_batch(
        self, conformations: ArrayLike, *, errors: Literal["raise", "record"] = "raise",
        progress: Progress | None = None, watch: Watch | None = None,
    ) -> MinimizeBatch:  # fmt: skip
        """Minimize from conformations (m, n, 3) A together; results are bit-identical to those of single ones.

        errors : "raise" for an InputError for the first failed structure, or "record" to continue
        progress : called with the fraction of structures done, 0 to 1
        watch : called at each check with the number of structures done, the total number, and the largest rms gradient
            of the others, kcal/mol/A

        >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
        >>> minimizer = pele_ocl.Minimizer(atoms, max_iterations=2)
        >>> minimizer.minimize_batch([atoms.positions, atoms.positions * 1.01]).total.shape
        (2,)
        """
        callback("progress", progress)
        callback("watch", watch)
        begin = time.perf_counter()
        given, failures = self.energy._checked(conformations, errors)
        given = given.astype(np.float64)
        recipe, driver = self._prepared(self._plan_for(given), len(given) == 1)
        jobs, wrong = recipe.jobs(range(len(given)), given)
        for k, error in wrong.items():
            failures.add(k, error)
        failures.check(len(given))
        results: list[MinimizeResult | None] = [None] * len(given)
        n_done = len(wrong)
        driver.make_room(jobs)
        driver.begin(self.protocol.stopping.max_seconds, begin)
        try:
            for done in driver.minimized(iter([jobs])):
                n_done += len(done)
                for job in done:
                    if isinstance(job.result, str):
                        failures.add(job.number, InputError(job.result))
                    else:
                        results[job.number] = job.result
                if progress is not None and driver.looks:
                    progress(n_done / len(given))
                if watch is not None and driver.looks:
                    watch(n_done, len(given), driver.largest_rms)
        except BaseException:
            driver.stop()  # before its buffers are released
            raise
        self._spare.append((recipe, driver))
        failures.check(len(given))
        return MinimizeBatch(results, dict(sorted(failures.reasons.items())), time.perf_counter() - begin)

    def _plan_for(self, conformations: Floats) -> Energy:
        """Return the plan for conformations (m, n, 3) A; if frozen atoms have moved, the one with all interactions."""
        if are_in_place(conformations, self.atoms, self.energy.frozen):
            return self.energy
        self._whole = self._whole or self._make()
        return self._whole

    def _prepared(self, plan: Energy, is_alone: bool) -> tuple[Recipe, Driver]:
        """Lend a recipe and a driver to one call, for a plan and for one structure or several."""
        from ..opencl.queue import Queue

        for _ in range(len(self._spare)):
            try:
                recipe, driver = self._spare.popleft()
            except IndexError:
                break
            if recipe.system.energy is plan and recipe.recorder.is_shared != is_alone:
                return recipe, driver
            self._spare.append((recipe, driver))
        queue = Queue(plan.device, plan.precision, profile=False)
        return Recipe.of(self.protocol, plan, is_alone), Driver(queue, queue, is_steady=True)


def minimize_all(
    molecules: Sequence[Atoms], each: EachOptions | None, errors: str, progress: Progress | None, watch: Watch | None,
    options: Options,
) -> MinimizeBatch:  # fmt: skip
    """Minimize molecules and return their results in order; parameters as in `minimize_many`."""
    begin = perf_counter()
    choice("errors", errors, ("raise", "record"))
    if not isinstance(molecules, Sequence):
        raise InputError(f"molecules is {described(molecules)}; expected a list of Atoms")
    for name, function in (("each", each), ("progress", progress), ("watch", watch)):
        callback(name, function)
    results: list[MinimizeResult | None] = [None] * len(molecules)
    reasons: dict[int, str] = {}
    with closing(as_done(molecules, each, progress, watch, options)) as done:
        for k, result in done:
            if not isinstance(result, str):
                results[k] = result
            elif errors == "record":
                reasons[k] = result
            else:
                raise InputError(f"molecule {k + 1} of {len(molecules)}: {result}")
    assert all(result is not None or k in reasons for k, result in enumerate(results))
    return MinimizeBatch(results, dict(sorted(reasons.items())), perf_counter() - begin)


def as_done(
    molecules: Sequence[Atoms], each: EachOptions | None, progress: Progress | None, watch: Watch | None,
    options: Options,
) -> Generator[Done, None, None]:  # fmt: skip
    """Yield numbers of molecules with results or reasons of failures; parameters as in `minimize_many`."""
    for atoms in molecules:
        if not isinstance(atoms, Atoms):
            raise InputError(f"molecules contain {type(atoms).__name__}; expected Atoms")
    yield from Together(molecules, each, options, progress, watch).minimized()


class Together:
    """Minimizes different molecules together; parameters as in `minimize_many`."""

    def __init__(
        self, molecules: Sequence[Atoms], each: EachOptions | None, options: Options,
        progress: Progress | None, watch: Watch | None,
    ) -> None:  # fmt: skip
        model = SolventModel.or_default(options.get("model"))
        self._molecules, self._each, self._options = choose_radii_of(model, molecules), each, options
        self._progress, self._watch = progress, watch
        self._done: set[int] = set()
        self._arrived = deque[Done]()  # results not yielded yet

    def minimized(self) -> Iterator[Done]:
        """Minimize all: small molecules share launches, the others are minimized one after another.

        With a time limit, all molecules are minimized one after another.
        """
        numbers = range(len(self._molecules))
        small = [k for k in numbers if len(self._molecules[k]) < SHARING]
        if small and self._options.get("max_seconds") is None:
            try:
                yield from self._sharing(small)
            except DeviceMemoryError:  # of the shared store; the remaining ones may fit alone
                yield from self._taken()
        for k in numbers:
            if k not in self._done:
                self._minimize(k)
                yield from self._taken()

    def _taken(self) -> Iterator[Done]:
        while self._arrived:
            yield self._arrived.popleft()

    def _sharing(self, numbers: Sequence[int]) -> Iterator[Done]:
        """Minimize molecules with shared launches, except those for which this is not possible."""
        from ..opencl.device import get_device
        from ..opencl.queue import Queue

        device, precision = get_device(self._options.get("device")), self._options.get("precision", "float32")
        largest_first = sorted(numbers, key=lambda k: len(self._molecules[k]), reverse=True)
        with ExitStack() as stack:
            plain = Queue(device, precision, profile=False)
            queue, own_queue = (stack.enter_context(plain.independent_queue()) for _ in range(2))
            driver = Driver(queue, own_queue)
            driver.reset(most_bytes(device))
            stack.callback(driver.stop)
            for done in driver.minimized(self._jobs(driver, device, largest_first)):
                for job in done:
                    self._keep(job.number, job.result)
                if driver.looks:
                    self._tell(0, 0, driver.largest_rms)
                yield from self._taken()

    def _jobs(self, driver: Driver, device: Device, numbers: Sequence[int]) -> Jobs:
        """Prepare structures on demand, and yield None between steps of the preparation."""
        precision = self._options.get("precision", "float32")
        for k in numbers:
            recipe = None
            try:
                minimizer = self._minimizer(k)
                yield None
                if suits(minimizer, device, precision):
                    recipe = Recipe.of(minimizer.protocol, minimizer.energy)
                    _ = recipe.rows
                yield None
            except (DeviceError, KernelBuildError):  # try alone, for a result or the error
                recipe = None
            except PeleError as error:
                self._keep(k, str(error))
                continue
            if recipe is None or not driver.fits(recipe):
                continue
            jobs, errors = recipe.jobs([k], self._molecules[k].positions[np.newaxis])
            for reason in errors.values():
                self._keep(k, str(reason))
            yield jobs

    def _minimize(self, k: int) -> None:
        try:
            start = self._molecules[k].positions[np.newaxis]
            batch = self._minimizer(k).minimize_batch(start, errors="record", watch=self._tell)
        except PeleError as error:
            self._keep(k, str(error))
        else:
            self._keep(k, batch.errors[0] if batch.errors else batch[0])

    def _minimizer(self, k: int) -> Minimizer:
        """Create the minimizer of a molecule. Raises PeleError if it cannot be minimized."""
        atoms = self._molecules[k]
        return Minimizer(atoms, **{**self._options, **({} if self._each is None else self._each(atoms))})

    def _keep(self, k: int, result: MinimizeResult | str) -> None:
        """Store the result of a molecule, or the reason of a failure."""
        self._done.add(k)
        if not isinstance(result, str):
            result = replace(result, atoms=self._molecules[k].moved(result.positions))
        self._arrived.append((k, result))

    def _tell(self, done: int, _: int, gradient: float) -> None:
        """Report progress. done : finished structures not yet stored; gradient : largest rms gradient of the others"""
        n_done, n = len(self._done) + done, len(self._molecules)
        if self._progress is not None:
            self._progress(n_done / n)
        if self._watch is not None:
            self._watch(n_done, n, gradient)


def suits(minimizer: Minimizer, device: Device, precision: str) -> bool:
    """Return whether a molecule can be minimized together with others on a device."""
    energy, is_timed = minimizer.energy, minimizer.protocol.stopping.max_seconds is not None
    return not is_timed and energy.device is device and energy.precision == precision
