"""Different molecules minimized together."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ..atoms import Atoms
from ..common.arguments import callback, choice, described
from ..common.errors import DeviceError, DeviceMemoryError, InputError, KernelBuildError, PeleError
from ..common.variant import Progress
from ..gb_models.solvent_model import SolventModel, choose_radii_of
from ..plan.plan import CHUNK_ATOMS
from .driver import Driver, Jobs, most_bytes
from .job import Recipe
from .minimizer import Minimizer, Watch
from .result import MinimizeBatch, MinimizeResult

if TYPE_CHECKING:
    from ..opencl.device import Device

EachOptions = Callable[[Atoms], Mapping[str, object]]
Options = Mapping[str, Any]  # of a Minimizer
Done = tuple[int, MinimizeResult | str]  # number of a molecule, and its result or why there is none

SHARING = CHUNK_ATOMS // 4  # atoms; smaller molecules share launches, larger ones fill a device


def minimize_all(
    molecules: Sequence[Atoms], each: EachOptions | None, errors: str, progress: Progress | None, watch: Watch | None,
    options: Options,
) -> MinimizeBatch:  # fmt: skip
    """Minimize molecules, and give their results in order; parameters as in `minimize_many`."""
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
) -> Generator[Done, None, None]:  # fmt: skip
    """Yield each molecule's number and its result, or why it has none; parameters as in `minimize_many`."""
    for atoms in molecules:
        if not isinstance(atoms, Atoms):
            raise InputError(f"molecules hold {type(atoms).__name__}; Atoms are needed")
    yield from Together(molecules, each, options, progress, watch).minimized()


class Together:
    """Different molecules on their way to their minima; parameters as in `minimize_many`."""

    def __init__(
        self, molecules: Sequence[Atoms], each: EachOptions | None, options: Options,
        progress: Progress | None, watch: Watch | None,
    ) -> None:  # fmt: skip
        model = SolventModel.or_default(options.get("model"))
        self._molecules, self._each, self._options = choose_radii_of(model, molecules), each, options
        self._progress, self._watch = progress, watch
        self._done: set[int] = set()
        self._arrived = deque[Done]()  # not taken yet

    def minimized(self) -> Iterator[Done]:
        """Minimize all: small molecules share launches, and the others come one after another.

        If seconds are limited, each molecule has the device for itself.
        """
        numbers = range(len(self._molecules))
        small = [k for k in numbers if len(self._molecules[k]) < SHARING]
        if small and self._options.get("max_seconds") is None:
            try:
                yield from self._sharing(small)
            except DeviceMemoryError:  # for all together; each that is not done may find room
                yield from self._taken()
        for k in numbers:
            if k not in self._done:
                self._minimize(k)
                yield from self._taken()

    def _taken(self) -> Iterator[Done]:
        """Iterate over the results that have arrived."""
        while self._arrived:
            yield self._arrived.popleft()

    def _sharing(self, numbers: Sequence[int]) -> Iterator[Done]:
        """Minimize molecules by the same launches, but for molecules that cannot be so."""
        from ..opencl.device import get_device
        from ..opencl.queue import Queue

        device, precision = get_device(self._options.get("device")), self._options.get("precision", "float32")
        largest_first = sorted(numbers, key=lambda k: len(self._molecules[k]), reverse=True)
        with ExitStack() as stack:
            plain = Queue(device, precision, profile=False)
            queue, own_queue = (stack.enter_context(plain.beside()) for _ in range(2))
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
        """Prepare each structure when it is asked for, with None between the parts of the work."""
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
            except (DeviceError, KernelBuildError):  # alone it may do, or tells what is wrong
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
        """Minimize a molecule by launches of its own."""
        try:
            start = self._molecules[k].positions[np.newaxis]
            batch = self._minimizer(k).minimize_batch(start, errors="record", watch=self._tell)
        except PeleError as error:
            self._keep(k, str(error))
        else:
            self._keep(k, batch.errors[0] if batch.errors else batch[0])

    def _minimizer(self, k: int) -> Minimizer:
        """Prepare the minimizer of a molecule. Raises PeleError if there is none."""
        atoms = self._molecules[k]
        return Minimizer(atoms, **{**self._options, **({} if self._each is None else self._each(atoms))})

    def _keep(self, k: int, result: MinimizeResult | str) -> None:
        """Keep the result of a molecule, or why there is none."""
        self._done.add(k)
        if not isinstance(result, str):
            result = replace(result, atoms=self._molecules[k].moved(result.positions))
        self._arrived.append((k, result))

    def _tell(self, done: int, _: int, gradient: float) -> None:
        """Tell who asked how far all are. done : structures that are not kept yet; gradient : the largest under way"""
        n_done, n = len(self._done) + done, len(self._molecules)
        if self._progress is not None:
            self._progress(n_done / n)
        if self._watch is not None:
            self._watch(n_done, n, gradient)


def suits(minimizer: Minimizer, device: Device, precision: str) -> bool:
    """Return whether a molecule can be minimized together with others on a device."""
    energy, is_timed = minimizer.energy, minimizer.protocol.stopping.max_seconds is not None
    return not is_timed and energy.device is device and energy.precision == precision
