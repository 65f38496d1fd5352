"""A molecule prepared once for a device and minimised from as many conformations as one likes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..atoms import Atoms, Floats
from ..atoms.close_pairs import close_pair
from ..common.arguments import array, callback, flag, former_keywords
from ..common.errors import InputError, Suggests
from ..common.variant import Progress
from ..energy import Energy, EnergyBatch, Term
from ..energy.engine.system import encoded
from ..energy.frozen import are_in_place
from ..energy.passes import AnyPasses, EnergyPasses
from ..gb_models.solvent_model import SolventModel
from ..opencl.interface import Descent, StepState
from ..plan.pipeline import Pipeline
from .bond_lengths import BondLengths
from .constraints import BondConstraints, check_rigid
from .iteration import Iteration
from .newton import NewtonIteration
from .options import EVALUATIONS_OF_NEWTON, Stopping, descent_of, rounds_of, tolerance_of
from .result import REASONS, MinimizeBatch, MinimizeResult
from .scheduler import PlanScheduler
from .seats import Seated

if TYPE_CHECKING:
    from ..opencl.device import Device

# Called with how many structures are done, how many there are, and the largest gradient of those that go on.
Watch = Callable[[int, int, float], None]

LEAST_APART = 1e-4  # A; the forces of closer atoms have no direction, and rounding would choose one
NONE_MOVES = "all atoms are frozen; leave some free to move"


class Minimizer(Suggests):
    """Minimisation of one molecule, prepared once; parameters as in `minimize`.

    energy : the plan that computes energies and gradients
    free : (n,) True for atoms that move; constraints : BondConstraints, None without
    descent, stopping, rounds : the method, the bounds and the rounds as they were chosen

    It pickles by its atoms and options, as plans do.

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
        method: str = "lbfgs",
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
    ) -> None:
        self.descent = descent_of(method, constraints)
        self.rounds = rounds_of(rounds)
        atoms = SolventModel.or_default(model).choose_radii(atoms)
        tolerance = tolerance_of(tolerance)
        self.stopping = Stopping(tolerance, max_gradient, energy_tolerance, max_iterations, max_seconds)
        self._make = partial(
            Energy, atoms, fixed_radii=fixed_radii, one_four=one_four, cutoff=cutoff, terms=terms,
            only_terms=only_terms, precision=precision, variant=variant, device=device, model=model,
            born="pairs",  # an energy without steps, whose gradient is its slope
            rebuild_sites=True,
        )  # fmt: skip
        self.energy = self._make(frozen=frozen)
        self._described: dict[str, Any] = dict(
            method=method, tolerance=tolerance, max_gradient=max_gradient, energy_tolerance=energy_tolerance,
            max_iterations=max_iterations, max_seconds=max_seconds, terms=self.energy.further_terms,
            frozen=self.energy.frozen if self.energy.frozen.any() else None, constraints=constraints,
            bond_repair=bond_repair, rounds=rounds, fixed_radii=fixed_radii, one_four=one_four, cutoff=cutoff,
            only_terms=only_terms, precision=precision, variant=self.energy.variant, device=self.energy.device,
            model=self.energy.model,
        )  # fmt: skip
        self._whole: Energy | None = None  # the same, with all that frozen atoms give each other
        self.free = ~self.energy.frozen & ~atoms.is_site
        self._iteration: WeakKeyDictionary[AnyPasses, Iteration] = WeakKeyDictionary()
        if not self.free.any():
            raise InputError(NONE_MOVES)
        self.constraints = None if constraints is None else BondConstraints.of(atoms, self.free, constraints)
        if max_iterations:
            check_rigid(atoms, self.free, self.constraints)
        # Nothing is moved where there are to be no steps, or where no energy depends on bonds.
        has_bonds = "bond" in self.energy._contents.names
        keeps_bonds = not flag("bond_repair", bond_repair) or max_iterations == 0 or not has_bonds
        self._lengths = None if keeps_bonds else BondLengths.of(atoms)

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        """Give atoms and options, the device by its title; a pickle makes the plan anew on a device like it."""
        return partial(type(self), **self._described), (self.atoms,)

    def __repr__(self) -> str:
        plan = self.energy
        return f"Minimizer({len(self.atoms):,} atoms, {plan.variant}, {plan.precision}, on {plan.device})"

    @property
    def atoms(self) -> Atoms:
        """Molecule that is minimised."""
        return self.energy.atoms

    def minimize(self, positions: ArrayLike | None = None, *, progress: Progress | None = None) -> MinimizeResult:
        """Minimise from positions (n, 3) A, by default the atoms' own.

        progress : called with the share of the structures done, 0 or 1, whenever the host looks at the device

        Raises InputError for positions that do not fit, and for a structure that cannot be minimised: it says why.
        """
        start = self.atoms.positions if positions is None else array("positions", positions, "iuf", "numbers")
        if start.shape != self.atoms.positions.shape:
            raise InputError(f"positions have shape {start.shape}; ({len(self.atoms)}, 3) is needed")
        return self.minimize_batch(start[np.newaxis], progress=progress)[0]

    def minimize_batch(
        self, conformations: ArrayLike, *, errors: Literal["raise", "record"] = "raise",
        progress: Progress | None = None, watch: Watch | None = None,
    ) -> MinimizeBatch:  # fmt: skip
        """Minimise from conformations (m, n, 3) A together; each gets the same bits as alone.

        errors : "raise" for an InputError that names the first structure that fails, or "record" to go on
        progress : called with the share of the structures done, 0 to 1
        watch : called at each look with the structures done, with all, and with the largest rms gradient of the
            others, kcal/mol/A

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
        plan = self._plan_for(given)
        with plan._lent(len(given)) as pipeline:
            assert isinstance(pipeline, Pipeline)
            structures, wrong = seated(self, pipeline, given, [self.free] * len(given))
            for k, error in wrong.items():
                failures.add(k, error)
            failures.check(len(given))
            self._minimize(pipeline, structures, len(given), begin, progress, watch)
        before = plan.evaluate_batch(computable(given, self.atoms), errors="record")
        finals = given.copy()
        for structure in structures:
            finals[structure.number] = structure.final
        after = plan.evaluate_batch(computable(finals, self.atoms), errors="record")
        for k, reason in after.errors.items():
            failures.add(k, InputError(reason))
        failures.check(len(given))
        results: list[MinimizeResult | None] = [None] * len(given)
        for structure in structures:
            k = structure.number
            if k not in failures.reasons:
                results[k] = self._result_of(structure, before, after, k)
        return MinimizeBatch(results, dict(sorted(failures.reasons.items())), time.perf_counter() - begin)

    def _minimize(
        self, pipeline: Pipeline, structures: Sequence[Seated], count: int, begin: float, progress: Progress | None,
        watch: Watch | None,
    ) -> None:  # fmt: skip
        """Minimise structures of one molecule, of so many with failed ones."""
        passes = pipeline.passes
        assert isinstance(passes, EnergyPasses)
        queue, n_done = passes.queue.anew(False), count - len(structures)
        scheduler = PlanScheduler(queue, pipeline, self._iteration_of(passes), self.stopping.max_seconds, begin)
        try:
            for done in scheduler.minimized(iter([structures])):
                n_done += len(done)
                if progress is not None and scheduler.looks:
                    progress(n_done / count)
                if watch is not None and scheduler.looks:
                    watch(n_done, count, scheduler.largest_rms)
        except BaseException:
            queue.finish()  # so that others may have its buffers
            raise

    def _placed(self, positions: Floats, free: NDArray[np.bool_]) -> Floats:
        """Give positions (n, 3) A as they begin: bonds of shaken ones near their lengths, held ones at them.

        free : (n,) atoms that move. Raises InputError if a bond is held between one that moves and one that does not.
        """
        restored = positions if self._lengths is None else self._lengths.restored(positions, free)
        constraints, sites = self._constraints_of(free), self.atoms.virtual_sites
        held = restored if constraints is None else constraints.placed(restored[np.newaxis])[0]
        return held if sites is None else sites.placed(held, free)

    def _constraints_of(self, free: NDArray[np.bool_]) -> BondConstraints | None:
        """Give the constraints of a structure with atoms `free` (n,) that move; None without any.

        Raises InputError as `_placed` does.
        """
        if self.constraints is None or np.array_equal(free, self.free):
            return self.constraints
        return self.constraints.within(self.atoms, free)

    def _plan_for(self, conformations: Floats) -> Energy:
        """Plan of conformations (m, n, 3) A; it leaves nothing out if frozen atoms are elsewhere in any."""
        if are_in_place(conformations, self.atoms, self.energy.frozen):
            return self.energy
        self._whole = self._whole or self._make()
        return self._whole

    def _iteration_of(self, passes: AnyPasses) -> Iteration:
        """Iteration that goes with some passes, made once."""
        if passes not in self._iteration:
            packed = self.stopping.packed(self.energy.precision)
            kind = NewtonIteration if self.descent == Descent.NEWTON else Iteration
            self._iteration[passes] = kind(
                passes, packed, self.descent, self.free, self.constraints, not passes.options.chain
            )
            passes.queue.finish()  # what was made there goes to another queue
        return self._iteration[passes]

    def _check_start(self, positions: Floats, free: NDArray[np.bool_]) -> None:
        """Raise InputError for positions (n, 3) A that no molecule has, with two atoms at one place, or if none moves.

        free : (n,) atoms that move
        """
        if not np.isfinite(positions).all() or close_pair(positions, LEAST_APART) is not None:
            self.atoms.moved(positions).require_apart(LEAST_APART)
        if not free.any():
            raise InputError(NONE_MOVES)

    def _result_of(self, structure: Seated, before: EnergyBatch, after: EnergyBatch, k: int) -> MinimizeResult:
        """Give the result of a structure that ended. before, after : energies in which it is conformation k"""
        assert after.gradients is not None
        given, final, state, free = structure.given, structure.final, structure.state, structure.free
        gradient, constraints = np.where(free[:, None], after.gradients[k], 0.0), self._constraints_of(free)
        if constraints is not None:
            gradient = constraints.tangent(final[np.newaxis], gradient[np.newaxis])[0]
        moved = final - given
        return MinimizeResult(
            atoms=self.atoms.moved(final),
            energy_before=before.terms[k],
            energy_after=after.terms[k],
            gradient=gradient,
            rms_gradient=float(np.sqrt((gradient**2).sum() / free.sum())),
            largest_gradient=float(np.sqrt((gradient**2).sum(axis=1).max())),
            iterations=int(state[StepState.ITERATIONS]),
            evaluations=int(state[StepState.EVALUATIONS]),
            stopped_by=REASONS[int(state[StepState.STOPPED]) - 1],
            restored=0 if self._lengths is None else self._lengths.n_restored(given),
            rms_displacement=float(np.sqrt((moved**2).sum(axis=1).mean())),
            seconds=structure.seconds,
        )


def seated(
    minimizer: Minimizer, pipeline: Pipeline, given: Floats, free: Sequence[NDArray[np.bool_]]
) -> tuple[list[Seated], dict[int, InputError]]:
    """Make structures that begin at positions (m, n, 3) A, and find why others cannot, by their numbers from 0.

    free : of each, (n,) atoms that move
    """
    starts, errors = np.array(given, np.float64), dict[int, InputError]()
    free = [moves & ~minimizer.atoms.is_site for moves in free]
    for k, (positions, moves) in enumerate(zip(given, free, strict=True)):
        try:
            minimizer._check_start(positions, moves)
            starts[k] = minimizer._placed(positions, moves)
        except InputError as error:
            errors[k] = error
    found, offsets, far = encoded(pipeline, starts)
    errors = {**{k: InputError(reason) for k, reason in far.items()}, **errors}
    good = (k for k in range(len(given)) if k not in errors)
    return [
        Seated(
            k, minimizer.stopping, minimizer.rounds, pipeline, given[k], free[k], found[k], offsets[k],
            EVALUATIONS_OF_NEWTON if minimizer.descent == Descent.NEWTON else 1,
        )
        for k in good
    ], errors  # fmt: skip


def computable(conformations: Floats, atoms: Atoms) -> Floats:
    """Conformations with the atoms' own positions in place of numbers that are not finite."""
    return np.where(np.isfinite(conformations), conformations, atoms.positions)
