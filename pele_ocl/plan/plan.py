"""Base class of plans: a molecule prepared once for a device and evaluated for any number of conformations."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ..atoms import Atoms, Floats, placed
from ..common.arguments import callback, choice, flag, numbers, whole_number
from ..common.errors import DeviceError, InputError, Suggests
from ..common.readonly import own_array
from ..common.settled import Settled
from ..common.variant import Progress, Variant
from .conformations import as_conformations
from .evaluator import Evaluator, Failures, Outputs, untold
from .selection import Automatic, select

if TYPE_CHECKING:
    from ..opencl.device import Device

R = TypeVar("R")  # result of one conformation
B = TypeVar("B")  # result of a batch

# Atoms of all conformations in a chunk: enough to fill any device, few enough for the host's caches.
CHUNK_ATOMS = 1 << 17

MOST_REPEATS = 1_000_000


class Loan:
    """Context manager that lends an evaluator; a class, because a generator is slower."""

    def __init__(self, evaluator: Evaluator, give_back: Callable[[Evaluator], None]) -> None:
        self._evaluator, self._give_back = evaluator, give_back

    def __enter__(self) -> Evaluator:
        return self._evaluator

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if not isinstance(error, DeviceError):  # after which the evaluator's counters may be invalid
            self._give_back(self._evaluator)


class Plan(Suggests, Settled, ABC, Generic[R, B]):
    """Base of `Solvent`, `Nonbond` and `Energy`: construction, checks, evaluation, batches.

    Threads may share a plan, and progress callbacks may use it during its own evaluations. Each evaluation borrows an
    evaluator with its own kernels and buffers.

    atoms : the molecule; precision : "float32" or "float64"
    device : Device that computes; variant : key of `variants`, never "auto"
    quantity : name of the computed quantity, as in results and tuning

    A plan is pickled as its atoms and options; unpickling makes a new plan on a device with the same name.
    """

    quantity: ClassVar[str]
    variants: ClassVar[Mapping[str, Variant[Any]]]
    model: Any  # the SolventModel

    def __init__(
        self, atoms: Atoms, *, precision: str, variant: str, device: Device | int | str | None, size: int,
        per_atom: bool = False,
    ) -> None:  # fmt: skip
        """Select device, variant and layout.

        size : size of the work, in the unit of tuning
        per_atom : whether per-atom energies are requested

        Raises InputError for unknown options, and DeviceError if the device does not support them.
        """
        self.atoms, self.precision = atoms, precision
        selection = select(
            self.quantity, self.variants, self._automatic(per_atom), variant=variant, precision=precision,
            device=device, size=size, per_atom=per_atom,
        )  # fmt: skip
        self.device, self.variant, self._choice = selection.device, selection.variant, selection.choice
        self._title = str(self.device)
        self._most_together = max(1, CHUNK_ATOMS // len(atoms))
        self._idle: list[Evaluator] = []
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        size = f"{len(self.atoms):,} atoms"
        return f"{type(self).__name__}({size}, {self.variant}, {self.precision}, on {self.device})"

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        """Pickle as atoms, options and the name of the device."""
        return partial(type(self), **self._described()), (self.atoms,)

    @abstractmethod
    def _described(self) -> dict[str, Any]:
        """Return the constructor's options for this plan."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Names of the terms, in the order of results."""

    def _settings_of_results(self) -> dict[str, object]:
        """Return the options that affect results, which identify a file of results."""
        return {"quantity": self.quantity, "terms": list(self.names)}

    @property
    def _is_made_anew(self) -> bool:
        """Whether each conformation of a trajectory needs a new plan, since the pair list depends on positions."""
        return False

    def _frames_function(self) -> Callable[[Any, Progress | None], Any] | None:
        """Return a function that evaluates frames of such a trajectory; None if a batch of the plan does."""
        return None

    @cached_property
    def _how(self) -> Mapping[str, Any]:
        """Options stored in results, with the name of the device."""
        return {**self._described(), "device": self._title}

    def evaluate(
        self, positions: ArrayLike | None = None, *, profile: bool = False, progress: Progress | None = None
    ) -> R:
        """Evaluate positions (n, 3) A, by default those of the atoms.

        profile : True to measure kernel times, which slows down launches
        progress : called with the fraction done, 0 to 1

        Raises InputError for positions of the wrong shape or a span above 500,000 A, and for overflowing results. On
        devices without float64 the span may at most double and grow by another 128 A.

        >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
        >>> plan = pele_ocl.Energy(atoms, gradient=False)
        >>> round(plan.evaluate(atoms.positions + 5.0).total, 1)
        -135.5
        """
        start = time.perf_counter()
        if profile is not False or progress is not None:
            flag("profile", profile)
            callback("progress", progress)
        return self._evaluate_one(self._given(positions), profile, progress, Failures(1), None, start)

    def _given(self, positions: ArrayLike | None) -> Floats:
        """Return positions (n, 3) A, by default those of the atoms, after a check of their shape."""
        own = self.atoms.positions
        given = own if positions is None else numbers("positions", positions)
        if given.shape != own.shape:
            raise InputError(f"positions have shape {given.shape}; expected ({len(own)}, 3)")
        return given

    def _evaluate_one(
        self, given: Floats, profile: bool, progress: Progress | None, failures: Failures, radii: Floats | None,
        start: float,
    ) -> R:  # fmt: skip
        """Evaluate positions (n, 3) A checked by `_given`.

        radii : for `Evaluator.take_radii`; start : start of the time "total"

        Profiling and progress use `compute`. Otherwise `start` and `finish` are used, and the host makes arrays and
        atoms in between.
        """
        conformations = given[np.newaxis]
        if profile or progress is not None:
            found, seconds = self._compute(conformations, profile, progress, failures, radii)
            return self._result(self._placed(given), found, {**seconds, "total": time.perf_counter() - start})
        self._check_places(conformations)
        evaluator = self._borrow(1)
        try:
            if radii is not None:
                evaluator.take_radii(radii)
            evaluator.start(conformations, failures)
            found = self._outputs(1)  # while the device computes
            atoms = self._placed(given)
            seconds = dict(evaluator.finish(found, failures))
        except DeviceError:
            raise  # the evaluator's counters may be invalid, so it is not given back
        except BaseException:
            self._give_back(evaluator)
            raise
        self._give_back(evaluator)
        self._amend(found)
        seconds["total"] = time.perf_counter() - start
        return self._result(atoms, found, seconds)

    def _placed(self, given: Floats) -> Atoms:
        """Return the atoms at given positions; the evaluator checks the values."""
        return self.atoms if given is self.atoms.positions else placed(self.atoms, given)

    def evaluate_batch(
        self, conformations: ArrayLike, progress: Progress | None = None, *, profile: bool = False,
        errors: Literal["raise", "record"] = "raise",
    ) -> B:  # fmt: skip
        """Evaluate conformations (m, n, 3) A together; results are bit-identical to those of single ones.

        The batch has a copy of the conformations.

        progress : called with the fraction of the conformations done, 0 to 1
        profile : as in `evaluate`
        errors : "raise" for an InputError that names the first failed conformation, or "record" to continue with NaN as
            its results and the reason in `errors` of the batch

        >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
        >>> nowhere = np.full((33, 3), np.nan)
        >>> batch = pele_ocl.Energy(atoms).evaluate_batch([atoms.positions, nowhere], errors="record")
        >>> batch.total.round(1).tolist(), list(batch.errors)
        ([-135.5, nan], [1])
        """
        start = time.perf_counter()
        flag("profile", profile)
        callback("progress", progress)
        given, failures = self._checked(conformations, errors)
        found, seconds = self._compute(given, profile, progress, failures)
        return self._batch(given, found, failures.in_order, {**seconds, "total": time.perf_counter() - start})

    def repeat(self, count: int) -> None:
        """Repeat the last evaluation `count` times, with positions and results left on the device.

        This measures the cost of a step without transfers. It uses one conformation of a batch, or the atoms' positions
        if nothing was evaluated before.
        """
        whole_number("count", count, least=1, most=MOST_REPEATS)
        if not self._idle:
            self.evaluate()
        evaluator = self._borrow(1)
        try:
            evaluator.repeat(count)
        finally:
            self._give_back(evaluator)

    @abstractmethod
    def _automatic(self, per_atom: bool) -> Automatic:
        """Return the rule for "auto" if nothing was measured."""

    @abstractmethod
    def _prepare(self, m: int) -> Evaluator:
        """Create an evaluator for up to m conformations at a time."""

    @abstractmethod
    def _outputs(self, m: int) -> Outputs:
        """Allocate the results of m conformations."""

    @abstractmethod
    def _result(self, atoms: Atoms, found: Outputs, seconds: Mapping[str, float]) -> R:
        """Create the result of the evaluated conformation."""

    @abstractmethod
    def _batch(self, positions: Floats, found: Outputs, errors: Mapping[int, str], seconds: Mapping[str, float]) -> B:
        """Create the result of a batch."""

    def _checked(self, conformations: ArrayLike, errors: str) -> tuple[Floats, Failures]:
        """Check and copy conformations (m, n, 3) A; return them with an empty Failures."""
        choice("errors", errors, ("raise", "record"))
        given = own_array(as_conformations(conformations, len(self.atoms)), conformations)
        return given, Failures(len(given), record=errors == "record")

    def _check_places(self, conformations: Floats) -> None:
        """Raise InputError for conformations (m, n, 3) A that the plan cannot compute."""

    def _amend(self, found: Outputs) -> None:
        """Correct results after the evaluation, such as gradients of frozen atoms."""

    def _compute(
        self, conformations: Floats, profile: bool, progress: Progress | None, failures: Failures,
        radii: Floats | None = None,
    ) -> tuple[Outputs, Mapping[str, float]]:  # fmt: skip
        """Return the results of all conformations, NaN for failed ones, and kernel seconds if profiled.

        radii : for `Evaluator.take_radii`
        """
        self._check_places(conformations)
        found = self._outputs(len(conformations))
        with self._lent(len(conformations)) as evaluator:
            if radii is not None:
                evaluator.take_radii(radii)
            seconds = evaluator.compute(conformations, found, failures, profile=profile, tell=progress or untold)
        for k in failures.reasons:
            found.erase(k)
        self._amend(found)
        return found, seconds

    def _lent(self, m: int) -> Loan:
        """Lend an evaluator for up to m conformations at a time."""
        return Loan(self._borrow(m), self._give_back)

    def _borrow(self, m: int) -> Evaluator:
        """Take an idle evaluator for m conformations, or make one."""
        m = min(m, self._most_together)
        with self._lock:
            for k in range(len(self._idle) - 1, -1, -1):
                if self._idle[k].takes(m):
                    return self._idle.pop(k)
            unfit = self._idle.pop() if self._idle else None
        del unfit  # frees its memory on the device before more is allocated
        try:
            return self._prepare(m)
        except DeviceError:
            if not self._drop_idle():
                raise
        return self._prepare(m)  # after the error, which also holds memory, is gone

    def _drop_idle(self) -> bool:
        """Free the idle evaluators. Returns whether there were any."""
        with self._lock:
            idle, self._idle = self._idle, []
        return bool(idle)

    def _give_back(self, evaluator: Evaluator) -> None:
        with self._lock:
            self._idle.append(evaluator)
