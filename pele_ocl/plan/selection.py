"""Selection of the variant, the device and the layout of a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from ..common.arguments import described, is_among
from ..common.errors import InputError
from ..common.modules import public
from ..common.variant import PRECISIONS, Variant
from .tuning import Choice, remembered

if TYPE_CHECKING:
    from ..opencl.device import Device


# Returns the name of a variant for a kind of device and a size.
Automatic = Callable[[str, int], str]


IN_LADDER = "; use pele_ocl.ladder for the rungs of the ladder"  # end of error messages


class Offering(Protocol):
    """A plan class with a table of variants."""

    variants: ClassVar[Mapping[str, Any]]


P = TypeVar("P", bound=Offering)


def having(plan: type[P], variant: object) -> type[P]:
    """Return the plan class that has a variant: the given class, or that of its ladder.

    The given class has no rungs of the ladder, so that results with lost updates are never returned by default.
    """
    if isinstance(variant, str) and (variant == "auto" or variant in plan.variants):
        return plan
    found: type[P] = public("ladder").ladder_of(plan)
    return found


@dataclass(frozen=True)
class DeviceChoice:
    """Device, name of the variant, and the best choice measured on the device."""

    device: Device
    variant: str
    choice: Choice


def check_plan_options(
    precision: str, variant: str, variants: Mapping[str, Variant[Any]], per_atom: bool = False, more: str = ""
) -> None:
    """Raise InputError for an unknown precision or variant, or one that does not support the request.

    more : end of the message about unknown variants
    """
    if not is_among(precision, PRECISIONS):
        raise InputError(f"unknown precision {described(precision)}; choose {' or '.join(PRECISIONS)}")
    if not is_among(variant, ("auto", *variants)):
        raise InputError(f"unknown variant {described(variant)}; choose auto, {', '.join(variants)}{more}")
    if variant == "auto":
        return
    if per_atom and not variants[variant].per_atom:
        able = " or ".join(name for name, other in variants.items() if other.per_atom)
        raise InputError(f"{variant} does not compute energies per atom; choose variant {able}")


def select(
    quantity: str, variants: Mapping[str, Variant[Any]], automatic: Automatic, *, variant: str, precision: str,
    device: Device | int | str | None, size: int, per_atom: bool,
) -> DeviceChoice:  # fmt: skip
    """Select the device, and the variant that "auto" uses on it.

    quantity : as in tuning; size : size of the work, in the unit of tuning
    automatic : rule for the variant if nothing was measured, from the kind of device and the size

    Raises DeviceError if the device does not support the precision.
    """
    # Imported on first use: reading files and the command's help do not need OpenCL.
    from ..opencl.device import get_device

    chosen = get_device(device)
    unable = [name for name, other in variants.items() if per_atom and not other.per_atom]
    choice = remembered(quantity, variants, chosen, precision, size, without=unable)
    name = (choice.variant or automatic(chosen.kind, size)) if variant == "auto" else variant
    (chosen,) = variants[name].devices_for([chosen])
    chosen.require_precision(precision)
    return DeviceChoice(chosen, name, choice)
