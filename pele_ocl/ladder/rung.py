"""A rung of a ladder: a way of the thesis and of textbooks to compute a quantity, which teaches or is compared."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeVar

from ..common.variant import Variant

if TYPE_CHECKING:
    from typing_extensions import Self

S = TypeVar("S")  # the host steps of a quantity's variants
D = TypeVar("D")  # a Device


@dataclass(frozen=True)
class Rung(Variant[S]):
    """A variant with what a ladder needs to know. `auto` and `tune` choose among the engine's variants alone.

    exact : False where updates are lost to races
    cpu_only : True where it always runs on a CPU device
    float_atomics : whether it needs a device with atomic additions of reals of its own
    sums : in how many numbers all terms of an atom are summed one by one. None if there are so many that float32 keeps
        its digits (pele_ocl/bench/bounds.py)
    """

    exact: bool = True
    cpu_only: bool = False
    float_atomics: bool = False
    sums: int | None = None

    @classmethod
    def of(cls, variant: Variant[Any]) -> Self:
        """Make a rung of a variant of the engine."""
        return cls(**{field.name: getattr(variant, field.name) for field in fields(variant)})

    def devices_for(self, devices: list[D]) -> list[D]:
        """Return the devices that share the work where these are asked for: a CPU alone if it runs there only."""
        from ..opencl.device import get_cpu_device

        if not self.cpu_only:
            return devices
        first: Any = devices[0]
        cpu: Any = get_cpu_device(first)
        return [cpu]
