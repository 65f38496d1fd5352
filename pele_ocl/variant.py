"""Variants: each is one way to compute a quantity. Free of OpenCL, so that help and tests can list variants."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

S = TypeVar("S")  # the host steps of a quantity's variants

PRECISIONS = ("float32", "float64")

# Called with the share of the work done, 0 to 1.
Progress = Callable[[float], None]


@dataclass(frozen=True)
class Variant(Generic[S]):
    """One way to compute a quantity: a kernel file and the host steps around it.

    file : name in cl/
    kernel : name of its main kernel
    summary : one line for tables and help
    run : host steps; what it takes and gives is the quantity's matter
    exact : False where updates are lost to races
    cpu_only : True where it always runs on a CPU device
    float_atomics : whether it needs a device with atomic additions of reals of its own
    per_atom : whether it tells the energies of single atoms apart
    made_for : the kind of device it is made for, "CPU" or "GPU", on others slow; None for any
    sums : in how many numbers all terms of an atom are added up, one after the other; None where in so many that
        float32 keeps its digits (pele_ocl/bench/accuracy.py)
    """

    file: str
    kernel: str
    summary: str
    run: S
    exact: bool = True
    cpu_only: bool = False
    float_atomics: bool = False
    per_atom: bool = True
    made_for: str | None = None
    sums: int | None = None


def made_for(variants: Mapping[str, Variant[S]], kind: str) -> tuple[str, ...]:
    """The names of the variants for a kind of device; other kinds than CPUs run what is for GPUs."""
    fitting = (None, "CPU" if kind == "CPU" else "GPU")
    return tuple(name for name, variant in variants.items() if variant.made_for in fitting)
