"""Pair lists prepared for a variant on a device, as a whole or in pieces, and their evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats
from ..common.errors import InputError
from ..common.variant import Progress
from ..pairs import PairList
from ..plan.evaluator import Evaluator, Failures, Outputs
from ..plan.passes import Explain
from ..plan.pipeline import Chunk, Pipeline
from .passes import AnyPasses
from .records import MoleculeRecords, PairListTask

if TYPE_CHECKING:
    from ..opencl.device import Device
    from ..opencl.queue import Event


class ListPipeline(Pipeline):
    """Pipeline of conformations and their Born radii through the passes of a pair list.

    prepare_seconds : kernel time of preparing the list
    """

    passes: AnyPasses

    def __init__(self, atoms: Atoms, passes: AnyPasses, explain: Explain, prepare_seconds: float) -> None:
        super().__init__(atoms, passes, explain)
        self.prepare_seconds = prepare_seconds
        self._radii: Floats | None = None  # (n,) on the device, for all conformations
        self._coming: Floats | None = None  # to be written to the device
        self._writing: list[tuple[Event, NDArray[Any]]] = []  # kept until the end

    def take_radii(self, born_radii: Floats | None) -> None:
        known = self._radii is not None and born_radii is not None and np.array_equal(self._radii, born_radii)
        self._coming = None if known else born_radii

    def finish(self, found: Outputs, failures: Failures) -> Mapping[str, float]:
        super().finish(found, failures)
        self._writing.clear()
        return {"prepare": self.prepare_seconds}

    def compute(
        self, conformations: Floats, found: Outputs, failures: Failures, *, profile: bool, tell: Progress
    ) -> Mapping[str, float]:
        seconds = super().compute(conformations, found, failures, profile=profile, tell=tell)
        self._writing.clear()
        return {"prepare": self.prepare_seconds, **seconds}

    def _start(
        self, chunk: Chunk, conformations: NDArray[Any], failures: Failures, tell: Progress | None = None
    ) -> None:
        self._bring_radii(chunk)
        super()._start(chunk, conformations, failures, tell)

    def _bring_radii(self, chunk: Chunk) -> None:
        """Write the Born radii of a chunk to the device if they have changed."""
        coming = self._coming
        if coming is None:
            return
        self._radii = None
        rows = coming[chunk.part] if coming.ndim == 2 else np.broadcast_to(coming, (self.batch, len(coming)))
        roots = self.passes.task.molecule.traits.roots(rows)
        self._writing.append((chunk.queue.start_write(self.passes.buffer("roots"), roots), roots))
        if coming.ndim == 1:
            self._radii, self._coming = coming, None


@dataclass(frozen=True, eq=False)
class DeviceList:
    """A pair list on a device with the data built from it by a variant; evaluators share it, read-only.

    seconds : kernel time of building it
    """

    passes: type[AnyPasses]
    device: Device
    precision: str
    task: PairListTask
    index: Any
    seconds: float

    @classmethod
    def of(
        cls, passes: type[AnyPasses], device: Device, precision: str, molecule: MoleculeRecords, pairs: PairList,
        gradient: bool,
    ) -> DeviceList:  # fmt: skip
        """Prepare a list for the passes of a variant."""
        from ..opencl.queue import Queue

        queue = Queue(device, precision)
        task = PairListTask.of(queue, molecule, pairs, gradient)
        passes = passes.for_task(task)
        index = passes.prepare(queue, task)
        return cls(passes, device, precision, task, index, queue.elapsed_seconds)

    def __len__(self) -> int:
        return self.task.n_pairs

    def pipeline(self, most: int, explain: Explain) -> ListPipeline:
        """Create an evaluator for up to `most` conformations at a time."""
        from ..opencl.queue import Queue

        queue = Queue(self.device, self.precision)
        passes = self.passes(queue, self.task, self.index)
        passes.make(most)
        queue.finish()  # evaluations may go to another queue
        return ListPipeline(self.task.molecule.atoms, passes, explain, self.seconds)


class Piecewise(Evaluator):
    """Evaluates a list in pieces; each is prepared in every call and freed before the next.

    most : conformations at a time; n_pairs : total number of pairs
    """

    def __init__(
        self, atoms: Atoms, n_pairs: int, pieces: Callable[[], Iterator[DeviceList]], explain: Explain, most: int
    ) -> None:
        self._atoms = atoms
        self._n_pairs, self._pieces, self._explain, self._most = n_pairs, pieces, explain, most
        self._radii: Floats | None = None

    def takes(self, m: int) -> bool:
        return m <= self._most

    def take_radii(self, born_radii: Floats | None) -> None:
        self._radii = born_radii

    def compute(
        self, conformations: Floats, found: Outputs, failures: Failures, *, profile: bool, tell: Progress
    ) -> Mapping[str, float]:
        seconds = {"prepare": 0.0, "kernel": 0.0} if profile else {"prepare": 0.0}
        for array in found.arrays():
            array.fill(0.0)
        m, n, n_terms = *conformations.shape[:2], found.energies.shape[1]
        own, done = Outputs.empty(m, n, n_terms, gradients=found.gradients is not None), 0
        if not self._n_pairs:  # no kernel checks the positions
            self._check_finite(conformations, failures)
        for piece in self._pieces():
            pipeline = piece.pipeline(self._most, self._explain)
            pipeline.take_radii(self._radii)
            told = _share(tell, done / self._n_pairs, len(piece) / self._n_pairs)
            taken = pipeline.compute(conformations, own, failures, profile=profile, tell=told)
            for name, value in taken.items():
                seconds[name] = seconds.get(name, 0.0) + value
            for sums, part in zip(found.arrays(), own.arrays(), strict=True):
                sums += part
            done += len(piece)
            del piece, pipeline  # frees their memory on the device before the next piece
        failures.check(m)
        return seconds

    def _check_finite(self, conformations: Floats, failures: Failures) -> None:
        for k in np.flatnonzero(~np.isfinite(conformations).all(axis=(1, 2))).tolist():
            try:
                self._atoms.moved(conformations[k])  # the error names the atom
            except InputError as error:
                failures.add(k, error)


def _share(tell: Progress, begin: float, share: float) -> Progress:
    """Report progress of a fraction `share` of the work that begins at `begin`."""
    return lambda done: tell(min(1.0, begin + done * share))
