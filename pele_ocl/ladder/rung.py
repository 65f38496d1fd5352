"""Rungs of a ladder: algorithms of the thesis and of textbooks, for teaching and comparison."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeVar

from ..common.variant import Variant

if TYPE_CHECKING:
    from typing_extensions import Self

S = TypeVar("S")  # host code of a variant
D = TypeVar("D")  # a Device


@dataclass(frozen=True)
class Rung(Variant[S]):
    """A variant in a ladder. "auto" and `tune` choose only among the engine's variants.

    exact : False if updates are lost to races
    cpu_only : True if it always runs on a CPU device
    float_atomics : whether it needs a device with native atomic additions of reals
    sums : number of partial sums per atom, each summed sequentially; None if there are enough for float32
        precision to be kept (pele_ocl/bench/bounds.py)
    """

    exact: bool = True
    cpu_only: bool = False
    float_atomics: bool = False
    sums: int | None = None

    @classmethod
    def of(cls, variant: Variant[Any]) -> Self:
        return cls(**{field.name: getattr(variant, field.name) for field in fields(variant)})

    def devices_for(self, devices: list[D]) -> list[D]:
        """Return the devices that run the work: the given ones, or a CPU if the rung runs only there."""
        from ..opencl.device import get_cpu_device

        if not self.cpu_only:
            return devices
        first: Any = devices[0]
        cpu: Any = get_cpu_device(first)
        return [cpu]
