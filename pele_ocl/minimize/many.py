"""Different molecules minimised together."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from ..arguments import callback, choice, described
from ..atoms import Atoms
from ..errors import DeviceError, DeviceMemoryError, InputError, KernelBuildError, PeleError
from ..plan.plan import CHUNK_ATOMS
from ..variant import Progress
from .minimizer import Minimizer, Turns, Watch
from .result import MinimizeBatch, MinimizeResult
from .scheduler import Structures
from .shared import Member, SharedScheduler

EachOptions = Callable[[Atoms], Mapping[str, object]]
Options = Mapping[str, Any]  # of a Minimizer

MOST_UNDER_WAY = 16  # molecules that do not share launches
SHARED = -1  # stands for all that share launches
SHARING = CHUNK_ATOMS // 4  # atoms; smaller molecules share launches
_DONE = object()


def minimize_all(
    molecules: Sequence[Atoms], each: EachOptions | None, errors: str, progress: Progress | None, watch: Watch | None,
    options: Options,
) -> MinimizeBatch:  # fmt: skip
    """Minimise molecules, and give their results in order; parameters as of `minimize_many`."""
    begin = perf_counter()
    choice("errors", errors, ("raise", "record"))
    if not isinstance(molecules, Sequence):
        raise InputError(f"molecules is {described(molecules)}; a list of Atoms is needed")
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
) -> Generator[tuple[int, MinimizeResult | str], None, None]:  # fmt: skip
    """Yield each molecule's number and its result, or why it has none; parameters as of `minimize_many`."""
    together = Together(molecules, each, options, progress, watch)
    for atoms in molecules:
        if not isinstance(atoms, Atoms):
            raise InputError(f"molecules hold {type(atoms).__name__}; Atoms are needed")
    with closing(together.minimized(range(len(molecules)), most_under_way(options))) as turns:
        is_over = False
        while not is_over:
            is_over = next(turns, _DONE) is _DONE
            while together.arrived:
                k = together.arrived.popleft()
                result = together.results[k]
                yield k, together.reasons[k] if result is None else result


class Together:
    """Results of different molecules as far as they are there, and how far the others are.

    results : None of molecules that are not done; reasons : of molecules that failed, by their number from 0
    arrived : numbers of molecules that are done or failed, in this order, for whoever takes them
    """

    def __init__(
        self, molecules: Sequence[Atoms], each: EachOptions | None, options: Options,
        progress: Progress | None, watch: Watch | None,
    ) -> None:  # fmt: skip
        self._molecules, self._each, self._options = molecules, each, options
        self._progress, self._watch = progress, watch
        self.results: list[MinimizeResult | None] = [None] * len(molecules)
        self.reasons: dict[int, str] = {}
        self.arrived = deque[int]()
        self._n_done = 0
        self._crowded: list[int] = []  # those for which the device had no room beside others
        self._under_way: dict[int, tuple[int, float]] = {}  # done and largest gradient of the others, by number

    def minimized(self, numbers: Sequence[int], most: int) -> Turns[None]:
        """Minimise molecules: small ones share launches, of the others `most` are under way at a time.

        If the device has no room for one beside others, it comes last and alone.
        """
        shares = may_share(self._options)
        sharing = [k for k in numbers if shares and len(self._molecules[k]) < SHARING]
        if sharing:
            yield from self._sharing(sharing, most)
        yield from self._apart([k for k in numbers if k not in set(sharing)], most)
        if self._crowded:
            crowded, self._crowded = self._crowded, []
            yield from self._apart(crowded, 1)

    def _apart(self, numbers: Sequence[int], most: int) -> Turns[None]:
        """Minimise molecules each with launches of its own."""
        sizes = [min(len(self._molecules[k]), CHUNK_ATOMS) for k in numbers]
        yield from by_turns([self._minimized(k, own_queue=most > 1) for k in numbers], sizes, most)

    def _sharing(self, numbers: Sequence[int], most: int) -> Turns[None]:
        """Minimise molecules with shared launches; then others, `most` at a time."""
        others: list[int] = []
        try:
            yield from self._together(numbers, others)
        except DeviceMemoryError:  # for all together; each that is not done may find room
            others = [k for k in numbers if self.results[k] is None and k not in self.reasons]
        self._under_way.pop(SHARED, None)
        yield from self._apart(others, most)

    def _together(self, numbers: Sequence[int], others: list[int]) -> Turns[None]:
        """Minimise molecules by the same launches. others : gets molecules that cannot be so"""
        from ..opencl.device import get_device

        device, precision = get_device(self._options.get("device")), self._options.get("precision", "float32")
        largest_first = sorted(numbers, key=lambda k: len(self._molecules[k]), reverse=True)
        with ExitStack() as stack:
            scheduler = SharedScheduler(device, precision, stack)
            for done in scheduler.minimized(self._structures(scheduler, largest_first, others)):
                for structure in done:
                    self._keep(structure.number, structure.result)
                if scheduler.looks:
                    self._tell(SHARED, 0, 0, scheduler.largest_gradient)
                yield

    def _structures(self, scheduler: SharedScheduler, numbers: Sequence[int], others: list[int]) -> Structures:
        """Prepare each structure when it is asked for, with None between the parts of the work.

        others : gets molecules that share no launches
        """
        for k in numbers:
            member = None
            try:
                minimizer = self._minimizer(k)
                yield None
                member = Member(minimizer) if scheduler.suits(minimizer) else None
                yield None
                fits = member is not None and scheduler.fits(member)
            except (DeviceError, KernelBuildError):  # alone it may do, or tells what is wrong
                fits = False
            except PeleError as error:
                self._keep(k, str(error))
                continue
            if member is None or not fits:
                others.append(k)
                continue
            structures, errors = member.structures([k], self._molecules[k].positions[np.newaxis])
            for reason in errors.values():
                self._keep(k, reason)
            yield structures

    def _keep(self, k: int, result: MinimizeResult | str) -> None:
        """Keep the result of a molecule, or why there is none."""
        self._n_done += 1
        self.arrived.append(k)
        if isinstance(result, str):
            self.reasons[k] = result
        else:
            self.results[k] = replace(result, atoms=self._molecules[k].moved(result.positions))

    def _minimizer(self, k: int) -> Minimizer:
        """Prepare the minimiser of a molecule. Raises PeleError if there is none."""
        atoms = self._molecules[k]
        return Minimizer(atoms, **{**self._options, **({} if self._each is None else self._each(atoms))})

    def _minimized(self, k: int, own_queue: bool) -> Turns[None]:
        """Minimise a molecule. own_queue : whether the device does so beside what others give it"""
        try:
            minimizer, start = self._minimizer(k), self._molecules[k].positions[np.newaxis]
            batch = yield from minimizer._in_turns(start, "record", None, partial(self._tell, k), own_queue)
        except PeleError as error:
            if own_queue and isinstance(error, DeviceMemoryError):
                self._crowded.append(k)
            else:
                self._keep(k, str(error))
        else:
            self._keep(k, batch.errors[0] if batch.errors else batch[0])
        self._under_way.pop(k, None)

    def _tell(self, k: int, done: int, _: int, gradient: float) -> None:
        """Tell who asked how far all are, by what is known of a molecule, or of SHARED."""
        self._under_way[k] = done, gradient
        dones, gradients = zip(*self._under_way.values(), strict=True)
        n_done = self._n_done + sum(dones)
        if self._progress is not None:
            self._progress(n_done / len(self._molecules))
        if self._watch is not None:
            self._watch(n_done, len(self._molecules), max(gradients))


def by_turns(works: Sequence[Turns[None]], sizes: Sequence[int], most: int) -> Turns[None]:
    """Give some works a turn each, over and over until they are done, or until this is closed.

    sizes : atoms that each has on the device; at a time there are CHUNK_ATOMS at most, of `most` works
    """
    waiting = deque(zip(works, sizes, strict=True))
    under_way: deque[tuple[Turns[None], int]] = deque()
    try:
        while waiting or under_way:
            n_atoms = sum(size for _, size in under_way)
            while waiting and len(under_way) < most and n_atoms + waiting[0][1] <= CHUNK_ATOMS:
                n_atoms += waiting[0][1]
                under_way.append(waiting.popleft())
            work = under_way[0][0]
            is_done = next(work, _DONE) is _DONE
            under_way.rotate(-1)
            if is_done:
                under_way.pop()
            yield
    finally:
        for work, _ in under_way:
            work.close()


def most_under_way(options: Options) -> int:
    """Count the molecules without shared launches that a device minimises at a time.

    A CPU gains nothing by more than one; and where seconds are limited each has the device for itself.
    """
    from ..opencl.device import get_device

    try:
        is_gpu = get_device(options.get("device")).kind == "GPU"
    except PeleError:  # of which each group will tell
        is_gpu = False
    return MOST_UNDER_WAY if is_gpu and options.get("max_seconds") is None else 1


def may_share(options: Options) -> bool:
    """Tell if molecules with these options may share launches; if seconds are limited, each has its own."""
    return options.get("max_seconds") is None
