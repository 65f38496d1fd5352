"""Launches of a kernel on a case, with guard zones around arrays to detect invalid accesses."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats
from ..opencl import Device, Queue
from ..opencl.binding import whole_groups
from ..opencl.memory import Buffer, part_of
from .cases import Case
from .compiling import Compiled
from .quantities import Items, Quantity

ZONE = 4096  # numbers in the guard zone before and after an array
NOT_TO_BE_READ = {"f": np.nan, "i": 0}
INSTEAD = {"f": 0.5, "i": 1}  # alternative filling, to detect reads


@dataclass(frozen=True)
class Launch:
    """Launch parameters. group : work-group size along each axis; points_per_item : along x"""

    items: Items
    group: tuple[int, ...]
    points_per_item: int = 1

    def shape(self, case: Case) -> tuple[int, ...]:
        """Return the number of work-items along each axis, rounded up to whole groups."""
        x, *others = self.items(case, self.size)
        counts = [-(-x // self.points_per_item), *others]
        return tuple(whole_groups(n, group) for n, group in zip(counts, self.fitted(len(counts)), strict=True))

    def fitted(self, n_axes: int) -> tuple[int, ...]:
        """Return the work-group size for a number of axes."""
        return tuple([*self.group, 1, 1][:n_axes])

    @property
    def items_per_group(self) -> int:
        """Number of work-items in a group."""
        return math.prod(self.group)

    @property
    def size(self) -> int:
        """Number of work-items in a group along the first axis."""
        return self.group[0]


@dataclass(frozen=True, eq=False)
class Outcome:
    """Results of a launch.

    values : output, of the same shape as the exact values of the case; elements : output before summation
    beyond, before : arrays with writes after their end, and before their beginning
    changed : modified inputs; seconds : time of the kernel
    """

    values: Floats
    elements: Floats
    beyond: tuple[str, ...]
    before: tuple[str, ...]
    changed: tuple[str, ...]
    seconds: float


class Runner:
    """Runs a kernel on a device. is_guarded : whether to add guard zones, not needed with a simulator"""

    def __init__(
        self, device: Device, compiled: Compiled, quantity: Quantity, launch: Launch, is_guarded: bool = True
    ) -> None:
        self.compiled, self.quantity, self.launch, self.is_guarded = compiled, quantity, launch, is_guarded
        self.queue = Queue(device, compiled.precision)
        self.kernel = Queue(device, "float32").kernel(compiled.file, compiled.kernel)

    def outcome(self, case: Case, *, filled_again: str | None = None) -> Outcome:
        """Run the kernel once. filled_again : array whose guard zones have the alternative filling"""
        held: dict[str, tuple[Buffer, NDArray[Any], int]] = {}
        zone = ZONE if self.is_guarded else 0
        arguments: dict[str, Any] = {}
        shape = self.launch.shape(case)
        for of in self.compiled.parameters:
            if of.is_array:
                values = self._values(of.name, of.type, case, shape)
                whole = self._with_zone(values, of.name == filled_again)
                buffer = self.queue.empty(len(whole), whole.dtype)
                self.queue.write(buffer, whole)
                held[of.name] = buffer, whole, len(values)
                arguments[of.name] = _from(buffer, zone * whole.itemsize)
            else:
                arguments[of.name] = self._number(case.values[of.name])
        self.queue.events.clear()
        self._launch(shape, arguments)
        seconds = self.queue.kernel_seconds
        found = {
            name: self.queue.download(buffer, len(whole), whole.dtype) for name, (buffer, whole, _) in held.items()
        }
        output = self.quantity.output

        def differing(part: Callable[[int], slice]) -> tuple[str, ...]:
            """Return the names of arrays that were modified in a part, a slice determined by the length."""
            return tuple(
                name for name, (_, whole, n) in held.items() if not _same(found[name][part(n)], whole[part(n)])
            )

        beyond, before = differing(lambda n: slice(zone + n, None)), differing(lambda n: slice(zone))
        changed = tuple(name for name in differing(lambda n: slice(zone, zone + n)) if name != output)
        values = found[output][zone : zone + held[output][2]].view(self.queue.dtype).astype(np.float64)
        compared = np.array([values.sum()]) if case.added else values
        return Outcome(compared, values, beyond, before, changed, seconds)

    def _launch(self, shape: tuple[int, ...], arguments: dict[str, Any]) -> None:
        """Launch the kernel once, or once for each value of an argument that is a range."""
        several = [name for name, value in arguments.items() if isinstance(value, range)]
        for each in arguments[several[0]] if several else (None,):
            now = arguments | dict.fromkeys(several, each)
            self.queue.launch(self.kernel, shape, self.launch.fitted(len(shape)), now)

    def _number(self, value: Any) -> Any:
        """Convert an argument that is no array: a vector of four, or an unchanged number."""
        return self.queue.vector4(*value) if isinstance(value, np.ndarray) else value

    def _values(self, name: str, kind: str, case: Case, shape: tuple[int, ...]) -> NDArray[Any]:
        """Return the flat initial values of an array in the kernel's type; zeros for the output."""
        dtype = np.dtype(_numpy(kind))
        if name != self.quantity.output:
            return np.ascontiguousarray(case.values[name], dtype).ravel()
        return np.zeros(shape[0] // self.launch.size if case.added else len(case.exact), dtype)

    def _with_zone(self, values: NDArray[Any], again: bool) -> NDArray[Any]:
        """Return an array with a guard zone before and after."""
        fillings: Mapping[str, float] = INSTEAD if again else NOT_TO_BE_READ
        zone = np.full(ZONE if self.is_guarded else 0, fillings[values.dtype.kind.replace("u", "i")], values.dtype)
        return np.concatenate([zone, values, zone])


def _from(buffer: Buffer, first: int) -> Buffer:
    """Return the part of a buffer from a byte offset. Zone sizes satisfy the alignment of all devices."""
    return part_of(buffer, first, buffer.size - first) if first else buffer


def _numpy(kind: str) -> str:
    """Return the NumPy name of a scalar type, or of the elements of a vector type."""
    return {"float": "float32", "double": "float64", "int": "int32", "uint": "uint32"}[kind.rstrip("248")]


def _same(a: NDArray[Any], b: NDArray[Any]) -> bool:
    return bool(np.array_equal(a, b, equal_nan=a.dtype.kind == "f"))
