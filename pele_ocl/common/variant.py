"""Variants, alternative implementations of a quantity. Does not need OpenCL, so that help and tests can list them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

S = TypeVar("S")  # host steps of the variants of a quantity
D = TypeVar("D")  # device

PRECISIONS = ("float32", "float64")

# Called with the fraction of the work done, 0 to 1.
Progress = Callable[[float], None]

Setting = int | tuple[int, ...]
Settings = Mapping[str, Setting]  # fields of a layout that differ from the defaults, with their values


class Described(Protocol):
    """Device properties that affect layouts."""

    @property
    def kind(self) -> str: ...
    @property
    def vendor(self) -> str: ...
    @property
    def compute_units(self) -> int: ...
    def vector_width(self, precision: str) -> int: ...


@dataclass(frozen=True)
class Machine:
    """Device properties that affect layouts.

    kind : "CPU", "GPU" or other; units : compute units; width : vector width for the precision
    """

    kind: str
    vendor: str
    units: int
    width: int
    precision: str

    @classmethod
    def of(cls, device: Described, precision: str) -> Machine:
        """Create from a device and a precision."""
        return cls(device.kind, device.vendor, device.compute_units, device.vector_width(precision), precision)


# Returns the settings tried by `pele-ocl tune` on a machine, for a size in the unit of tuning.SIZES.
Choices = Callable[[Machine, int], Sequence[Settings]]


def untried(machine: Machine, size: int) -> Sequence[Settings]:
    """Return no settings, so that `tune` skips the variant."""
    return ()


def by_rule(machine: Machine, size: int) -> Sequence[Settings]:
    """Return only the default settings."""
    return ({},)


def by_rule_up_to(most: int) -> Choices:
    """Return a function that only offers the default settings up to this size; `tune` skips the variant above."""
    return lambda machine, size: by_rule(machine, size) if size <= most else ()


@dataclass(frozen=True)
class Variant(Generic[S]):
    """Implementation of a quantity: a kernel file and host steps.

    file : name in cl/
    kernel : name of its main kernel
    summary : one line for tables and help
    run : host steps, with arguments and results specific to the quantity
    approximates : whether it is approximate within an accuracy
    per_atom : whether it can compute energies of single atoms
    shared : whether its work can be divided between several devices
    made_for : kind of device for which it is fast, "CPU" or "GPU"; None for any
    choices : function that returns the settings tried by `tune` on this kind of device. All are as accurate as the
        default, and reproducible to the last bit
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
        """Return those of the requested devices that are used."""
        return devices


def made_for(variants: Mapping[str, Variant[S]], kind: str) -> tuple[str, ...]:
    """Return the variants for a kind of device; kinds other than CPU use those for GPUs."""
    fitting = (None, "CPU" if kind == "CPU" else "GPU")
    return tuple(name for name, variant in variants.items() if variant.made_for in fitting)
