"""Kernels with their arguments and buffers: what a pipeline takes conformations through."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from ..common.threads import in_parts
from ..common.variant import Progress
from .conformations import Encoding
from .evaluator import Outputs

if TYPE_CHECKING:
    from ..opencl.binding import Array, Binder, BoundLaunch, Launch
    from ..opencl.memory import Buffer
    from ..opencl.queue import Queue
    from ..opencl.transfers import Event

# Bytes that one batch of conformations may take on a device, unless one alone takes more.
BATCH_BYTES = 1 << 30

# Conformations in one launch, of which each is a layer of groups in the third dimension: CUDA's devices take so many.
MOST_CONFORMATIONS = 65_535

# Numbers that BLAS adds up in one thread: with more it starts its own, which wait for each other and spin meanwhile.
_BLOCK = 8192


class Passes(ABC):
    """Launches of one evaluation, in order; nothing comes back to the host between them.

    queue : what makes the arrays and binds the launches: a queue, in which they can be launched, or the record of a row
    batch : conformations that are computed together; most_at_once : what it could be at most
    n_results : reals of a conformation that the host reads
    buffers : by name; "positions" (batch, 3 n) and "results" (batch, n_results) among them
    uncut, most_uncut : launches that may follow one another at once, for up to so many conformations
    """

    launches: Sequence[Launch]
    uncut: Sequence[Launch] = ()
    most_uncut: int = 0

    def __init__(self, queue: Binder, encoding: Encoding, n_atoms: int) -> None:
        self.queue, self.encoding, self.n_atoms = queue, encoding, n_atoms
        self.buffers: dict[str, Array] = {}

    def allocate(
        self, sizes: Mapping[str, int], most: int, types: Mapping[str, np.dtype[Any]] | None = None
    ) -> None:  # fmt: skip
        """Make buffers for up to `most` conformations.

        sizes : reals of one conformation in each buffer; "results" must be among them
        types : of buffers that hold other numbers, of the size of a real
        """
        queue, n_atoms, encoding = self.queue, self.n_atoms, self.encoding
        self.n_results = sizes["results"]
        bytes_each = sum(sizes.values()) * queue.dtype.itemsize
        fit_in_buffer = queue.device.largest_buffer // (max(sizes.values()) * queue.dtype.itemsize)
        fit = min(MOST_CONFORMATIONS, BATCH_BYTES // bytes_each, fit_in_buffer)
        self.most_at_once = max(1, fit)
        self.batch = min(most, self.most_at_once)
        kinds = types or {}
        self.buffers.update({name: queue.empty(self.batch * size, kinds.get(name)) for name, size in sizes.items()})
        self.buffers["positions"] = queue.empty(self.batch * 3 * n_atoms, encoding.dtype)

    @property
    def steps(self) -> Mapping[str, slice]:
        """Launches whose seconds are told apart, by name."""
        return {}

    def start(
        self, queue: Queue, positions: NDArray[Any], results: NDArray[Any], tell: Progress | None = None
    ) -> tuple[Event, Event]:
        """Have the device read encoded positions (m, 3 n), make all passes, and fill results (m, n_results).

        tell : called with the fraction done, where launches are so long that they come in parts

        Returns events to keep; when the last one has come all is done.
        """
        if not queue.profile and tell is None and len(positions) <= self.most_uncut:
            source, launches, target = self._straight
            return queue.through(source, positions, launches, target, results)
        read = queue.start_write(self.buffer("positions"), positions)
        self.launch(queue, len(positions), tell)
        return read, queue.start_read(results, self.buffer("results"))

    @cached_property
    def _straight(self) -> tuple[Buffer, Sequence[BoundLaunch], Buffer]:
        """Where positions go, launches that may follow one another, and where results are."""
        return self.buffer("positions"), bound(self.uncut), self.buffer("results")

    def launch(self, queue: Queue, n_conformations: int, tell: Progress | None = None) -> None:
        """Make all passes for the first n_conformations on the device."""
        queue.launch_bound(bound(self.launches), n_conformations, tell)

    def buffer(self, name: str) -> Buffer:
        """Return a buffer on the device, of passes that a queue made."""
        return cast("Buffer", self.buffers[name])

    def seconds(self, queue: Queue) -> Mapping[str, float]:
        """Seconds of a queue's kernels by name, "kernel" among them."""
        return {name: queue.elapsed(part) for name, part in {"kernel": slice(None), **self.steps}.items()}

    @abstractmethod
    def unpack(self, results: NDArray[Any], part: slice, found: Outputs) -> None:
        """Write results (m, n_results) where they belong: in part `part` of what is found."""

    def named(self, *names: str) -> dict[str, Array]:
        """Choose buffers, for kernels whose parameters have the same names."""
        return {name: self.buffers[name] for name in names}

    def is_plausible(self, results: NDArray[Any], part: slice, found: Outputs) -> bool:
        """Return whether all results are finite and all Born radii positive."""
        if not math.isfinite(norm2(results)) and not np.isfinite(results).all():  # large ones have no float32 square
            return False
        return found.born_radii is None or bool(np.minimum.reduce(found.born_radii[part], axis=None) > 0)


def bound(launches: Sequence[Launch]) -> Sequence[BoundLaunch]:
    """Return launches that a queue bound as what they are, so that it can launch them."""
    return cast("Sequence[BoundLaunch]", launches)


def norm2(values: NDArray[Any]) -> float:
    """Sum all squares, in a third of the time of a look at each number; not finite if one is not."""
    if values.size <= _BLOCK:
        return float(np.vdot(values, values))  # unlike `dot` it does not warn of overflows
    return sum(in_parts(values.shape[-1], lambda columns: _norm2_of_many(values[..., columns].ravel())))


def _norm2_of_many(flat: NDArray[Any]) -> float:
    """Sum by one call: threads that come back to Python for each block wait for each other."""
    return float(np.einsum("i,i->", flat, flat))
