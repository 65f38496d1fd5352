"""A molecule prepared once for a device and minimised from as many conformations as one likes."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arguments import array, callback, flag, whole_number
from ..atoms import Atoms, Floats
from ..atoms.close_pairs import close_pair
from ..energy import Energy, EnergyBatch, Term
from ..energy.frozen import are_in_place
from ..energy.passes import AnyPasses, EnergyPasses
from ..errors import InputError
from ..opencl.shared import Descent, StepState, Stop
from ..plan.evaluator import Failures
from ..plan.pipeline import Pipeline
from ..solvent_model import SolventModel
from ..variant import Progress
from .bond_lengths import BondLengths
from .constraints import BondConstraints
from .newton import NewtonSteps
from .options import Stopping, descent_of
from .pool import Pool
from .result import REASONS, MinimizeBatch, MinimizeResult
from .steps import Steps

if TYPE_CHECKING:
    from ..opencl.device import Device
    from ..opencl.memory import Queue
    from ..opencl.run import Run

# Called with how many structures are done, how many there are, and the largest gradient of those that go on.
Watch = Callable[[int, int, float], None]

Done = TypeVar("Done")
Turns = Generator[None, None, Done]  # work that others' work may come between, and what it gives in the end

MOST_ROUNDS = 1000
LEAST_APART = 1e-4  # A; the forces of closer atoms have no direction, and rounding would choose one
COUNTS = [StepState.ITERATIONS, StepState.EVALUATIONS]


class Minimizer:
    """Minimisation of one molecule, prepared once; parameters as in `minimize`.

    energy : the plan that computes energies and gradients
    free : (n,) True for atoms that move; constraints : BondConstraints, None without
    descent, stopping, rounds : the method, the bounds and the rounds as they were chosen

    It pickles by its atoms and options, as plans do.
    """

    def __init__(
        self,
        atoms: Atoms,
        *,
        method: str = "lbfgs",
        tolerance: float = 0.1,
        largest: float | None = None,
        energy_change: float | None = None,
        max_iterations: int = 10_000,
        max_seconds: float | None = None,
        terms: Sequence[Term] = (),
        frozen: ArrayLike | None = None,
        constraints: str | None = None,
        restore: bool = True,
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
        self.rounds = whole_number("rounds", rounds, least=1, most=MOST_ROUNDS)
        self.stopping = Stopping(tolerance, largest, energy_change, max_iterations, max_seconds)
        self._make = partial(
            Energy, atoms, fixed_radii=fixed_radii, one_four=one_four, cutoff=cutoff, terms=terms,
            only_terms=only_terms, precision=precision, variant=variant, device=device, model=model,
            born="pairs",  # an energy without steps, whose gradient is its slope
        )  # fmt: skip
        self.energy = self._make(frozen=frozen)
        self._described: dict[str, Any] = dict(
            method=method, tolerance=tolerance, largest=largest, energy_change=energy_change,
            max_iterations=max_iterations, max_seconds=max_seconds, terms=self.energy.further_terms,
            frozen=self.energy.frozen if self.energy.frozen.any() else None, constraints=constraints, restore=restore,
            rounds=rounds, fixed_radii=fixed_radii, one_four=one_four, cutoff=cutoff, only_terms=only_terms,
            precision=precision, variant=self.energy.variant, device=self.energy.device, model=self.energy.model,
        )  # fmt: skip
        self._whole: Energy | None = None  # the same, with all that frozen atoms give each other
        self.free = np.logical_not(self.energy.frozen)
        self._steps: WeakKeyDictionary[AnyPasses, Steps] = WeakKeyDictionary()
        if not self.free.any():
            raise InputError("all atoms are frozen; leave some free to move")
        self._kind = constraints
        self.constraints = None if constraints is None else BondConstraints.of(atoms, self.free, constraints)
        # Nothing is moved where there are to be no steps, or where no energy depends on bonds.
        keeps_bonds = not flag("restore", restore) or max_iterations == 0 or "bond" not in self.energy._contents.names
        self._lengths = None if keeps_bonds else BondLengths.of(atoms, self.free)

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        """By atoms and options, the device by its title: a pickle makes the plan anew on a device like it."""
        return partial(type(self), **self._described), (self.atoms,)

    def __repr__(self) -> str:
        plan = self.energy
        return f"Minimizer({len(self.atoms):,} atoms, {plan.variant}, {plan.precision}, on {plan.device})"

    @property
    def atoms(self) -> Atoms:
        """The molecule."""
        return self.energy.atoms

    @property
    def _can_share(self) -> bool:
        """Whether its launches can be shared with other molecules."""
        is_timed, leaves_out = self.stopping.max_seconds is not None, bool(self.energy.frozen.any())
        return self.rounds == 1 and self.descent != Descent.NEWTON and not leaves_out and not is_timed

    def _keep_in_place(self, frozen: NDArray[np.bool_]) -> None:
        """Have atoms (n,) stay where they are, wherever that is, whose energies are computed all the same.

        Raises InputError where none is left to move.
        """
        if frozen.all():
            raise InputError("all atoms are frozen; leave some free to move")
        self.free = ~frozen
        if self.constraints is not None:
            self.constraints = BondConstraints.of(self.atoms, self.free, str(self._kind))
        if self._lengths is not None:
            self._lengths = BondLengths.of(self.atoms, self.free)

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
        watch : called at each look with the structures done, with all, and with the largest root mean square gradient
            of those that go on, kcal/mol/A
        """
        callback("progress", progress)
        callback("watch", watch)
        return finished(self._in_turns(conformations, errors, progress, watch))

    def _in_turns(
        self, conformations: ArrayLike, errors: Literal["raise", "record"], progress: Progress | None,
        watch: Watch | None, aside: bool = False,
    ) -> Turns[MinimizeBatch]:  # fmt: skip
        """As minimize_batch, in turns: each leaves the device at work and ends before the host waits for it.

        aside : whether the device does the work beside what others give it meanwhile
        """
        begin = time.perf_counter()
        given, failures = self.energy._checked(conformations, errors)
        given = given.astype(np.float64)
        self._check_starts(given, failures)
        start = self._placed(given)
        plan = self._plan_for(start)
        before = plan.evaluate_batch(computable(given, self.atoms), errors="record")
        with self.energy.device.lend_queue() if aside else nullcontext() as queue:
            pool, seconds = yield from self._in_rounds(plan, start, failures, begin, progress, watch, queue)
        pool.final[:, ~self.free] = given[:, ~self.free]  # to the last digit
        after = plan.evaluate_batch(computable(pool.final, self.atoms), errors="record")
        for k, reason in after.errors.items():
            failures.add(k, InputError(reason))
        failures.check(len(given))
        results = [
            None
            if k in failures.reasons
            else self._result(given[k], pool.final[k], pool.states[k], before, after, k, float(seconds[k]))
            for k in range(len(given))
        ]
        return MinimizeBatch(results, dict(sorted(failures.reasons.items())), time.perf_counter() - begin)

    def _placed(self, given: Floats) -> Floats:
        """Conformations (m, n, 3) A as they begin: bonds of shaken ones near their lengths, held ones at them."""
        restored = given if self._lengths is None else self._lengths.restored(given)
        return restored if self.constraints is None else self.constraints.placed(restored)

    def _plan_for(self, conformations: Floats) -> Energy:
        """The plan of conformations (m, n, 3) A: it leaves nothing out where frozen atoms are elsewhere in any."""
        if are_in_place(conformations, self.atoms, self.energy.frozen):
            return self.energy
        self._whole = self._whole or self._make()
        return self._whole

    def _in_rounds(
        self, plan: Energy, start: Floats, failures: Failures, begin: float, progress: Progress | None,
        watch: Watch | None, queue: Queue | None,
    ) -> Turns[tuple[Pool, Floats]]:  # fmt: skip
        """Minimise in rounds, each from where the last one ended; the structures that it still moved take part."""
        pool, seconds = yield from self._run(plan, start, failures, begin, progress, watch, queue)
        moving = np.flatnonzero(_may_go_on(pool))
        for _ in range(self.rounds - 1):
            if not len(moving):
                break
            failures = Failures(len(moving), record=True)
            more, until = yield from self._run(plan, pool.final[moving], failures, begin, progress, watch, queue)
            still = _may_go_on(more)
            more.states[:, COUNTS] += pool.states[moving][:, COUNTS]
            pool.final[moving], pool.states[moving], seconds[moving] = more.final, more.states, until
            moving = moving[still]
        return pool, seconds

    def _run(
        self, plan: Energy, given: Floats, failures: Failures, begin: float, progress: Progress | None,
        watch: Watch | None, queue: Queue | None,
    ) -> Turns[tuple[Pool, Floats]]:  # fmt: skip
        """Minimise all; where they ended, and the seconds until each did."""
        seconds, limit = np.zeros(len(given)), self.stopping.max_seconds
        with plan._lent(len(given)) as pipeline:
            assert isinstance(pipeline, Pipeline)
            passes = pipeline.passes
            assert isinstance(passes, EnergyPasses)
            run = passes.run.anew(False) if queue is None else passes.run.with_queue(queue)
            with _nothing_left(run):
                pool = Pool(run, pipeline, self._steps_of(passes), given, failures)
                while pool:
                    pool.start()
                    yield
                    states = pool.look()
                    done = pool.states[:, StepState.STOPPED] != Stop.RUNNING
                    done[list(failures.reasons)] = True
                    now = time.perf_counter() - begin
                    seconds[done & (seconds == 0)] = now
                    if progress is not None:
                        progress(float(done.mean()))
                    if watch is not None:
                        goes_on = states[:, StepState.STOPPED] == Stop.RUNNING
                        largest = states[goes_on, StepState.GRADIENT2].max(initial=0.0)
                        watch(int(done.sum()), len(given), float(np.sqrt(largest / self.free.sum())))
                    if limit is not None and now > limit:
                        pool.stop(Stop.TIME)
                        self.stopping.judge(pool.states, int(self.free.sum()))
                        seconds[seconds == 0] = now
        return pool, seconds

    def _steps_of(self, passes: AnyPasses) -> Steps:
        """The steps that go with some passes, made once."""
        if passes not in self._steps:
            packed = self.stopping.packed(self.energy.precision, int(self.free.sum()))
            kind = NewtonSteps if self.descent == Descent.NEWTON else Steps
            self._steps[passes] = kind(
                passes, packed, self.descent, self.free, self.constraints, not passes.options.chain
            )
            passes.run.finish()  # what was made there goes to another queue
        return self._steps[passes]

    def _check_starts(self, given: Floats, failures: Failures) -> None:
        """Record the conformations that are no positions, or in which two atoms stand at one place."""
        for k, start in enumerate(given):
            if not np.isfinite(start).all() or close_pair(start, LEAST_APART) is not None:
                try:
                    self.atoms.moved(start).require_apart(LEAST_APART)
                except InputError as error:
                    failures.add(k, error)
        failures.check(len(given))

    def _result(
        self, given: Floats, final: Floats, state: Floats, before: EnergyBatch, after: EnergyBatch, k: int,
        seconds: float,
    ) -> MinimizeResult:  # fmt: skip
        """The result of a structure.

        given, final : (n, 3) A, where it began and ended; state : (N_STATE,) in the end
        before, after : energies in which it is conformation k
        """
        assert after.gradients is not None
        gradient = np.where(self.free[:, None], after.gradients[k], 0.0)
        if self.constraints is not None:
            gradient = self.constraints.tangent(final[np.newaxis], gradient[np.newaxis])[0]
        moved = final - given
        return MinimizeResult(
            atoms=self.atoms.moved(final),
            energy_before=before.terms[k],
            energy_after=after.terms[k],
            gradient=gradient,
            rms_gradient=float(np.sqrt((gradient**2).sum() / self.free.sum())),
            largest_gradient=float(np.sqrt((gradient**2).sum(axis=1).max())),
            iterations=int(state[StepState.ITERATIONS]),
            evaluations=int(state[StepState.EVALUATIONS]),
            stopped_by=REASONS[int(state[StepState.STOPPED]) - 1],
            restored=0 if self._lengths is None else self._lengths.n_restored(given),
            rms_displacement=float(np.sqrt((moved**2).sum(axis=1).mean())),
            seconds=seconds,
        )


@contextmanager
def _nothing_left(run: Run) -> Iterator[None]:
    """Where work is left by an error or closed: waits for the device, so that others may have its buffers."""
    try:
        yield
    except BaseException:
        run.finish()
        raise


def finished(turns: Turns[Done]) -> Done:
    """The result of all turns, one behind the other."""
    while True:
        try:
            next(turns)
        except StopIteration as end:
            done: Done = end.value
            return done


def _may_go_on(pool: Pool) -> NDArray[np.bool_]:
    """Which structures were moved, and have time left, (m,)."""
    states = pool.states
    return np.asarray((states[:, StepState.ITERATIONS] > 0) & (states[:, StepState.STOPPED] != Stop.TIME))


def computable(conformations: Floats, atoms: Atoms) -> Floats:
    """The conformations, with the atoms' own positions in place of what is not finite."""
    return np.where(np.isfinite(conformations), conformations, atoms.positions)
