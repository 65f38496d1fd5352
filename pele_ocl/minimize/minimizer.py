"""A molecule prepared once for a device and minimized from any number of conformations."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..atoms import Atoms, Floats
from ..common.arguments import array, callback, former_keywords
from ..common.errors import InputError, Suggests
from ..common.variant import Progress
from ..energy import Energy, Term
from ..energy.frozen import are_in_place
from ..gb_models.solvent_model import SolventModel
from .constraints import BondConstraints
from .driver import Driver
from .job import Protocol, Recipe
from .options import check_options, require_bounds, tolerance_of
from .result import MinimizeBatch, MinimizeResult

if TYPE_CHECKING:
    from ..opencl.device import Device
    from .method import Method

# Called with how many structures are done, how many there are, and the largest gradient of those that go on.
Watch = Callable[[int, int, float], None]


class Minimizer(Suggests):
    """Minimization of one molecule, prepared once; parameters as in `minimize`.

    energy : the plan that computes energies and gradients
    protocol : the method, bounds, rounds, moving atoms and restraints

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
            born="pairs",  # an energy without steps, whose gradient is its slope
            rebuild_sites=True,
        )  # fmt: skip
        self.energy = self._make(frozen=frozen)
        self._described: dict[str, Any] = dict(
            own, terms=self.energy.further_terms, frozen=self.energy.frozen if self.energy.frozen.any() else None,
            fixed_radii=fixed_radii, one_four=one_four, cutoff=cutoff, only_terms=only_terms, precision=precision,
            variant=self.energy.variant, device=self.energy.device, model=self.energy.model,
        )  # fmt: skip
        self._whole: Energy | None = None  # the same, with all that frozen atoms give each other
        self.protocol = Protocol(self.energy, **own)
        self._spare = deque[tuple[Recipe, Driver]]()  # for later calls

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        """Give atoms and options, the device by its title; a pickle makes the plan again on a device like it."""
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
        """Return a mask of the moving atoms, (n,)."""
        return self.protocol.free

    @property
    def constraints(self) -> BondConstraints | None:
        """Constrained bonds; None without any."""
        return self.protocol.constraints

    def minimize(self, positions: ArrayLike | None = None, *, progress: Progress | None = None) -> MinimizeResult:
        """Minimize from positions (n, 3) A, by default the atoms' own.

        progress : called with the fraction of the structures done, 0 or 1, whenever the host looks at the device

        Raises InputError for positions that do not fit, and, with the reason, for a structure that cannot be minimized.
        """
        start = self.atoms.positions if positions is None else array("positions", positions, "iuf", "numbers")
        if start.shape != self.atoms.positions.shape:
            raise InputError(f"positions have shape {start.shape}; ({len(self.atoms)}, 3) is needed")
        return self.minimize_batch(start[np.newaxis], progress=progress)[0]

    def minimize_batch(
        self, conformations: ArrayLike, *, errors: Literal["raise", "record"] = "raise",
        progress: Progress | None = None, watch: Watch | None = None,
    ) -> MinimizeBatch:  # fmt: skip
        """Minimize from conformations (m, n, 3) A together, with the same bits as for single ones.

        errors : "raise" for an InputError about the first failed structure, or "record" to continue
        progress : called with the fraction of the structures done, 0 to 1
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
            driver.stop()  # nothing may run on when its buffers go
            raise
        self._spare.append((recipe, driver))
        failures.check(len(given))
        return MinimizeBatch(results, dict(sorted(failures.reasons.items())), time.perf_counter() - begin)

    def _plan_for(self, conformations: Floats) -> Energy:
        """Plan of conformations (m, n, 3) A; it leaves nothing out if frozen atoms are elsewhere in any."""
        if are_in_place(conformations, self.atoms, self.energy.frozen):
            return self.energy
        self._whole = self._whole or self._make()
        return self._whole

    def _prepared(self, plan: Energy, is_alone: bool) -> tuple[Recipe, Driver]:
        """Lend what is prepared for a plan, and for one structure alone or several, which nobody else uses."""
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
