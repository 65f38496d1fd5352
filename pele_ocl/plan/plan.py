"""A molecule prepared once for a device and evaluated in any number of conformations."""

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
B = TypeVar("B")  # results of many

# Atoms of all conformations in a chunk: enough to fill any device, few enough for the host's caches.
CHUNK_ATOMS = 1 << 17

MOST_REPEATS = 1_000_000


class Loan:
    """An evaluator that is one user's until the end of the block; a class, since a generator takes longer."""

    def __init__(self, evaluator: Evaluator, give_back: Callable[[Evaluator], None]) -> None:
        self._evaluator, self._give_back = evaluator, give_back

    def __enter__(self) -> Evaluator:
        return self._evaluator

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if not isinstance(error, DeviceError):  # after which counters may stand where a launch left them
            self._give_back(self._evaluator)


class Plan(Suggests, Settled, ABC, Generic[R, B]):
    """Common part of `Solvent`, `Nonbond` and `Energy`: construction, checks, evaluation, batches.

    Several threads may use a plan at once, and so may progress callbacks of its own evaluations. Each evaluation
    borrows an evaluator, with kernels and buffers of its own.

    atoms : the molecule; precision : "float32" or "float64"
    device : Device that computes; variant : key of `variants`, never "auto"
    quantity : name of what is computed, as in results and tunings

    A plan pickles by its atoms and options, and is made again on a device of the same title.
    """

    quantity: ClassVar[str]
    variants: ClassVar[Mapping[str, Variant[Any]]]
    model: Any  # the SolventModel

    def __init__(
        self, atoms: Atoms, *, precision: str, variant: str, device: Device | int | str | None, size: int,
        per_atom: bool = False,
    ) -> None:  # fmt: skip
        """Select device, variant and layout.

        size : of the work, in the unit in which the quantity is tuned
        per_atom : whether energies of single atoms are wanted

        Raises InputError for options that do not exist, DeviceError if the device cannot do it.
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
        """Pickle by atoms, options and the device's title: reading makes the plan again on a device like it."""
        return partial(type(self), **self._described()), (self.atoms,)

    @abstractmethod
    def _described(self) -> dict[str, Any]:
        """Return the options of the constructor that make this plan."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Names of the terms, in the order of results."""

    def _settings_of_results(self) -> dict[str, object]:
        """Return the options that decide on results, by which a file of them is known again."""
        return {"quantity": self.quantity, "terms": list(self.names)}

    @property
    def _is_made_anew(self) -> bool:
        """True if each conformation of a trajectory has a plan of its own, as a pair list follows from positions."""
        return False

    def _frames_function(self) -> Callable[[Any, Progress | None], Any] | None:
        """Make the function that evaluates frames of such a trajectory; None where a batch of the plan does."""
        return None

    @cached_property
    def _how(self) -> Mapping[str, Any]:
        """Options that results carry, with the device's title in its place."""
        return {**self._described(), "device": self._title}

    def evaluate(
        self, positions: ArrayLike | None = None, *, profile: bool = False, progress: Progress | None = None
    ) -> R:
        """Evaluate positions (n, 3) A, by default the atoms' own.

        profile : True to measure kernel times, which makes launches slower
        progress : called with the fraction done, 0 to 1

        Raises InputError for positions that do not fit or span more than 500,000 A, and for results that overflow. On
        devices without float64 a molecule may become twice as wide as it was and 128 A more.

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
        """Check the shape of positions (n, 3) A, which may still be no numbers; the atoms' own by default."""
        own = self.atoms.positions
        given = own if positions is None else numbers("positions", positions)
        if given.shape != own.shape:
            raise InputError(f"positions have shape {given.shape}; expected ({len(own)}, 3)")
        return given

    def _evaluate_one(
        self, given: Floats, profile: bool, progress: Progress | None, failures: Failures, radii: Floats | None,
        start: float,
    ) -> R:  # fmt: skip
        """Evaluate positions (n, 3) A that `_given` checked.

        radii : for `Evaluator.take_radii`; start : of the time that is "total"

        With times or progress wanted, as `pele_ocl.energy` has it, the evaluator computes at once (`compute`). Without,
        it is started and finished, and the host makes arrays and atoms in between.
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
            raise  # counters may stand where a launch left them, so nobody else gets the evaluator
        except BaseException:
            self._give_back(evaluator)
            raise
        self._give_back(evaluator)
        self._amend(found)
        seconds["total"] = time.perf_counter() - start
        return self._result(atoms, found, seconds)

    def _placed(self, given: Floats) -> Atoms:
        """Put the atoms at positions that the evaluator finds to be numbers, or found so."""
        return self.atoms if given is self.atoms.positions else placed(self.atoms, given)

    def evaluate_batch(
        self, conformations: ArrayLike, progress: Progress | None = None, *, profile: bool = False,
        errors: Literal["raise", "record"] = "raise",
    ) -> B:  # fmt: skip
        """Evaluate conformations (m, n, 3) A together; results are the same as for single ones, bit for bit. The batch
        has a copy of them.

        progress : called with the fraction of the conformations done, 0 to 1
        profile : as in `evaluate`
        errors : "raise" for an InputError that names the first conformation that fails, or "record" to go on. Its
            results are NaN then, and `errors` of the batch says why

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
        """Evaluate what was evaluated last so many times more, with positions and results left on the device.

        For timing: what a step costs a program that moves nothing to and fro. It takes one conformation of a batch, or
        the atoms' own positions if nothing was evaluated yet.
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
        """Return the rule for `auto` if nothing was measured."""

    @abstractmethod
    def _prepare(self, m: int) -> Evaluator:
        """An evaluator for up to m conformations at a time."""

    @abstractmethod
    def _outputs(self, m: int) -> Outputs:
        """Arrays for the results of m conformations."""

    @abstractmethod
    def _result(self, atoms: Atoms, found: Outputs, seconds: Mapping[str, float]) -> R:
        """Make the result of the one conformation that was evaluated."""

    @abstractmethod
    def _batch(self, positions: Floats, found: Outputs, errors: Mapping[int, str], seconds: Mapping[str, float]) -> B:
        """Make the results of a batch."""

    def _checked(self, conformations: ArrayLike, errors: str) -> tuple[Floats, Failures]:
        """Check and copy conformations (m, n, 3) A, and make a record of failures."""
        choice("errors", errors, ("raise", "record"))
        given = own_array(as_conformations(conformations, len(self.atoms)), conformations)
        return given, Failures(len(given), record=errors == "record")

    def _check_places(self, conformations: Floats) -> None:
        """Raise InputError for conformations (m, n, 3) A that the plan cannot compute."""

    def _amend(self, found: Outputs) -> None:
        """Put right what the evaluator does not know of."""

    def _compute(
        self, conformations: Floats, profile: bool, progress: Progress | None, failures: Failures,
        radii: Floats | None = None,
    ) -> tuple[Outputs, Mapping[str, float]]:  # fmt: skip
        """Results of all conformations, NaN where they failed, and the kernels' seconds where wanted.

        radii : that `Evaluator.take_radii` takes
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
        """An evaluator for up to m conformations at a time that nobody else uses meanwhile."""
        return Loan(self._borrow(m), self._give_back)

    def _borrow(self, m: int) -> Evaluator:
        """An evaluator for m conformations that nobody else uses."""
        m = min(m, self._most_together)
        with self._lock:
            for k in range(len(self._idle) - 1, -1, -1):
                if self._idle[k].takes(m):
                    return self._idle.pop(k)
            unfit = self._idle.pop() if self._idle else None
        del unfit  # and what it holds on the device, before more is asked for
        try:
            return self._prepare(m)
        except DeviceError:
            if not self._drop_idle():
                raise
        return self._prepare(m)  # once the error is gone, with what it held, too

    def _drop_idle(self) -> bool:
        """Free what nobody uses at the moment; whether there was anything."""
        with self._lock:
            idle, self._idle = self._idle, []
        return bool(idle)

    def _give_back(self, evaluator: Evaluator) -> None:
        with self._lock:
            self._idle.append(evaluator)
