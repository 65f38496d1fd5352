"""The choices that there are for each quantity and kind of device: the one place that lists them.

Rules without figures of any machine (`choose_variant`, `of` of the layouts) pick a good one; `pele-ocl tune` measures
which is best. All are as exact as what the rules pick, and give the same bits every run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, TypeVar

from ..tiles import cpu_parts

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from ..opencl.device import Device

L = TypeVar("L", bound="DataclassInstance")

Value = int | tuple[int, ...]

SMALL_ATOMS = 3000  # plain variants have a chance in molecules up to here
SMALL_PAIRS = 300_000


@dataclass(frozen=True)
class Choice:
    """A variant and the settings of its layout that differ from the rules'.

    variant : None for the one that the rules say
    settings : fields of the quantity's layout with their values; all others are as the rules say
    """

    variant: str | None = None
    settings: tuple[tuple[str, Value], ...] = ()

    @classmethod
    def of(cls, variant: str, **settings: Value) -> Choice:
        """A choice with its settings by name."""
        return cls(variant, tuple(sorted(settings.items())))

    def __str__(self) -> str:
        values = (f"{name}={_text(value)}" for name, value in self.settings)
        return " ".join([self.variant or "rules", *values])

    def applied(self, variant: str, layout: L) -> L:
        """The layout of a variant as this choice has it; that of the rules where the choice is another variant."""
        if variant != self.variant or not self.settings:
            return layout
        return replace(layout, **dict(self.settings))


RULES = Choice()


def _text(value: Value) -> str:
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)


@dataclass(frozen=True)
class Machine:
    """The properties of a device that choices depend on.

    kind : "CPU", "GPU" or other; units : compute units; width : reals in a vector of the precision
    """

    kind: str
    vendor: str
    units: int
    width: int
    precision: str

    @classmethod
    def of(cls, device: Device, precision: str) -> Machine:
        """The machine that a device is."""
        return cls(device.kind, device.vendor, device.compute_units, device.vector_width(precision), precision)

    @property
    def parts(self) -> tuple[int, ...]:
        """The numbers of parts that a CPU's work may be cut into."""
        most = cpu_parts(self.units)
        return most // 2, most, 2 * most


def _solvent(machine: Machine, n_atoms: int) -> list[Choice]:
    plain = [Choice.of("pair")] if n_atoms <= SMALL_ATOMS else []
    if machine.kind == "CPU":
        layouts = product((16, 32, 64), machine.parts)
        return plain + [
            Choice.of("tiled", tile=tile, vectors=max(1, min(4, tile // machine.width)), most_chunks=chunks)
            for tile, chunks in layouts
            if tile >= machine.width
        ]
    return plain + [
        Choice.of("tiled", tile=tile, vectors=vectors, row=row, most_chunks=chunks)
        for tile, vectors, row, chunks in product((32, 64), (1, 2), (1, 2, 3), (128, 256))
        if vectors == min(row, 2)
    ]


def _nonbond(machine: Machine, n_pairs: int) -> list[Choice]:
    plain = ["bitonic", "offsets", "offsets-group"] if n_pairs <= SMALL_PAIRS else []
    tiled = ["tiled"] if machine.kind == "CPU" else []
    return [Choice.of(variant) for variant in ("rows", *tiled, *plain)]


def _energy(machine: Machine, n_atoms: int) -> list[Choice]:
    if machine.kind == "CPU":
        return [
            Choice.of("blocks", tile=tile, most_parts=parts)
            for tile, parts in product((16, 32), machine.parts)
            if tile >= machine.width
        ]
    rows = [
        Choice.of("rows", tile=tile, parts_of_rows=parts) for tile, parts in ((16, 16), (16, 32), (32, 8), (32, 16))
    ]
    fused = [Choice.of("squares", row=1, most_parts=256, split=split, fused=1) for split in (1, 2, 4)]
    squares = [
        Choice.of("squares", row=row, most_parts=parts, split=1, fused=0)
        for row, parts in product((1, 2, 3), (128, 256))
    ]
    return rows + squares + (fused if n_atoms <= SMALL_ATOMS else [])


def _potmap(machine: Machine, n_evaluations: int) -> list[Choice]:
    plain = [Choice.of(name) for name in ("gather", "coarsened", "coalesced")]
    if machine.kind == "CPU":
        return plain + [Choice.of("blocked", points=points) for points in product((1, 2, 4, 8), (4, 8, 16))]
    if machine.precision == "float64":
        return plain + [Choice.of("blocked", points=points) for points in ((4, 2), (4, 4), (8, 2))]
    blocks = [((4, 2), 0, 1), ((4, 2), 0, 4), ((8, 4), 0, 1), ((8, 4), 0, 4)]
    if machine.vendor == "NVIDIA":
        blocks += [((8, 4), 8, 1), ((8, 4), 10, 1), ((16, 4), 16, 1), ((16, 4), 20, 1)]
    return plain + [Choice.of("blocked", points=points, soft=soft, unroll=unroll) for points, soft, unroll in blocks]


# Of each quantity: its choices for a machine and a size, and what sizes are counted in.
CHOICES: dict[str, Callable[[Machine, int], list[Choice]]] = {
    "solvent": _solvent, "nonbond": _nonbond, "energy": _energy, "potmap": _potmap,
}  # fmt: skip
SIZES = {"solvent": "atoms", "nonbond": "pairs", "energy": "atoms", "potmap": "evaluations"}
