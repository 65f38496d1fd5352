"""Solvent energies on several devices: each has all atoms as sources, and a part of the tiles as targets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ..common.errors import InputError
from ..common.variant import Progress, Variant
from ..plan.evaluator import Outputs
from ..plan.passes import Passes
from .passes import SolventPasses
from .tiled import Tree

if TYPE_CHECKING:
    from ..opencl.device import Device
    from ..opencl.queue import Event, Queue

    Named = Device | int | str | None  # a device, or a description of one


class SharedPasses(Passes):
    """Passes on several devices with the same tiles and layout; Born radii are exchanged through the host.

    Each work-item computes the same as on one device, so that results are bit-identical.
    """

    def __init__(self, each: Sequence[Tree]) -> None:
        first = each[0]
        super().__init__(first.queue, first.encoding, first.atoms)
        self.n_results, self.buffers = first.n_results, first.buffers
        self.batch = min(passes.batch for passes in each)
        self.most_at_once = min(passes.most_at_once for passes in each)
        self.each = each
        self._queues: WeakKeyDictionary[Queue, list[Queue]] = WeakKeyDictionary()
        tiles = first.tiles
        bounds = np.linspace(0, len(tiles), len(each) + 1).astype(int).tolist()
        self._slots = [slice(start * tiles.size, end * tiles.size) for start, end in pairwise(bounds)]
        self._own = [tiles.order[slots][tiles.used[slots]] for slots in self._slots]
        for passes, (start, end) in zip(each, pairwise(bounds), strict=True):
            passes.narrow(start, end)

    def start(
        self, queue: Queue, positions: NDArray[Any], results: NDArray[Any], tell: Progress | None = None
    ) -> Sequence[Event]:
        from ..opencl.queue import Queue

        queues = [queue, *(Queue(of.queue.device, queue.precision, profile=queue.profile) for of in self.each[1:])]
        self._queues[queue] = queues[1:]  # without the key, which would keep itself alive
        m, n_slots = len(positions), self.each[0].tiles.n_slots
        inverses = np.empty((m, n_slots), queue.dtype)
        n_columns = self.each[0].n_columns
        parts = [np.empty((m, n_columns, self.n_atoms), queue.dtype) for _ in queues]

        def radii(k: int) -> None:
            passes = self.each[k]
            queues[k].write(passes.buffer("positions"), positions)
            passes.launch_radii(queues[k], m, _half(tell, k, 0))
            found = queues[k].download(passes.buffer("inv_born"), m * n_slots).reshape(m, n_slots)
            inverses[:, self._slots[k]] = found[:, self._slots[k]]

        def energies(k: int) -> None:
            passes = self.each[k]
            queues[k].write(passes.buffer("inv_born"), inverses)
            passes.launch_energy(queues[k], m, _half(tell, k, 1))

        def read(k: int) -> None:
            queues[k].read(parts[k], self.each[k].buffer("results"))

        for step in (radii, energies, read) if self.each[0].energies else (radii, read):
            self._on_all(step)
        self._merge(parts, results.reshape(m, n_columns, -1))
        done = queue.start_write(self.buffer("positions"), positions)  # for an event to wait for
        return done, done

    def _on_all(self, step: Callable[[int], None]) -> None:
        with ThreadPoolExecutor(len(self.each)) as pool:
            list(pool.map(step, range(len(self.each))))

    def _merge(self, parts: Sequence[NDArray[Any]], results: NDArray[Any]) -> None:
        """Copy the results of each device's atoms."""
        for part, own in zip(parts, self._own, strict=True):
            results[..., own] = part[..., own]

    def launch(self, queue: Queue, n_conformations: int, tell: Progress | None = None) -> None:
        raise InputError("several devices need the host in each evaluation, so it cannot be repeated on the device")

    def seconds(self, queue: Queue) -> Mapping[str, float]:
        """Seconds of the slowest device, for each step."""
        each = [passes.seconds(own) for passes, own in zip(self.each, [queue, *self._queues[queue]], strict=True)]
        return {name: max(seconds[name] for seconds in each) for name in each[0]}

    def unpack(self, results: NDArray[Any], part: slice, found: Outputs) -> None:
        self.each[0].unpack(results, part, found)


def _half(tell: Progress | None, k: int, half: int) -> Progress | None:
    """Report progress of one half of the work, only for the first device."""
    return None if tell is None or k else lambda share: tell((half + share) / 2)


def shared_passes(each: Sequence[SolventPasses]) -> Passes:
    """Combine the passes of one or several devices. Raises InputError if the variant runs only on one device."""
    if len(each) == 1:
        return each[0]
    trees = [passes for passes in each if isinstance(passes, Tree)]
    if len(trees) != len(each):
        raise InputError(f"{each[0].queue.device} and other devices cannot share a variant for a single device")
    return SharedPasses(trees)


def devices_of(device: Named | Sequence[Device | int | str]) -> Sequence[Named]:
    """Return a list of devices. Raises InputError if it is empty."""
    if isinstance(device, str) or not isinstance(device, Sequence):
        return [device]
    if not device:
        raise InputError("the list of devices is empty")
    return device


def others_like(
    first: Device, others: Sequence[Named], precision: str, variant: str, variants: Mapping[str, Variant[Any]]
) -> list[Device]:
    """Return the devices that share the work with the first.

    Raises InputError if the variant runs only on one device or the devices differ in kind, and DeviceError if one
    does not support the precision.
    """
    from ..opencl.device import get_device

    if others and not variants[variant].shared:
        able = " or ".join(name for name, each in variants.items() if each.shared)
        raise InputError(f"the variant {variant} runs on one device; choose {able} to use several devices")
    chosen = [get_device(other) for other in others]
    for device in chosen:
        device.require_precision(precision)
        like = (first.kind, first.vector_width(precision))
        if (device.kind, device.vector_width(precision)) != like:
            raise InputError(f"{first} and {device} differ; devices that share the work must be of the same kind")
    return chosen
