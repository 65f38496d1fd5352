"""Variants: each is one way to compute a quantity. Free of OpenCL, so that help and tests can list variants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

S = TypeVar("S")  # the host steps of a quantity's variants
D = TypeVar("D")  # a device

PRECISIONS = ("float32", "float64")

# Called with the share of the work done, 0 to 1.
Progress = Callable[[float], None]

Setting = int | tuple[int, ...]
Settings = Mapping[str, Setting]  # fields of a variant's layout that differ from the rules', with their values


class Described(Protocol):
    """A device, as far as layouts depend on it."""

    @property
    def kind(self) -> str: ...
    @property
    def vendor(self) -> str: ...
    @property
    def compute_units(self) -> int: ...
    def vector_width(self, precision: str) -> int: ...


@dataclass(frozen=True)
class Machine:
    """Properties of a device that layouts depend on.

    kind : "CPU", "GPU" or other; units : compute units; width : reals in a vector of the precision
    """

    kind: str
    vendor: str
    units: int
    width: int
    precision: str

    @classmethod
    def of(cls, device: Described, precision: str) -> Machine:
        """Describe a device by the properties that layouts depend on."""
        return cls(device.kind, device.vendor, device.compute_units, device.vector_width(precision), precision)


# The settings that `pele-ocl tune` tries on a machine, for work of a size in the unit of tuning.SIZES.
Choices = Callable[[Machine, int], Sequence[Settings]]


def untried(machine: Machine, size: int) -> Sequence[Settings]:
    """No settings: `tune` leaves the variant out."""
    return ()


def by_rule(machine: Machine, size: int) -> Sequence[Settings]:
    """Return the settings of the rules alone."""
    return ({},)


def by_rule_up_to(most: int) -> Choices:
    """Make choices with the settings of the rules for work up to this size. `tune` leaves the variant out for more."""
    return lambda machine, size: by_rule(machine, size) if size <= most else ()


@dataclass(frozen=True)
class Variant(Generic[S]):
    """One way to compute a quantity: a kernel file and the host steps around it.

    file : name in cl/
    kernel : name of its main kernel
    summary : one line for tables and help
    run : host steps; what it takes and gives is the quantity's matter
    approximates : whether it leaves out what an accuracy allows
    per_atom : whether it tells the energies of single atoms apart
    shared : whether several devices may share its work
    made_for : the kind of device it is made for, "CPU" or "GPU", on others slow; None for any
    choices : the settings that `tune` tries on the kind of device it is made for. All are as exact as the rules', and
        give equal bits in every run
    """

    file: str
    kernel: str
    summary: str
    run: S
    approximates: bool = False
    per_atom: bool = True
    shared: bool = False
    made_for: str | None = None
    choices: Choices = untried

    def devices_for(self, devices: list[D]) -> list[D]:
        """Return the devices that share the work where these are asked for."""
        return devices


def made_for(variants: Mapping[str, Variant[S]], kind: str) -> tuple[str, ...]:
    """List the variants for a kind of device; other kinds than CPUs run what is for GPUs."""
    fitting = (None, "CPU" if kind == "CPU" else "GPU")
    return tuple(name for name, variant in variants.items() if variant.made_for in fitting)
