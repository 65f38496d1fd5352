"""Tuning: the best measured variants and layouts on this machine, used by "auto"."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

from ...common.modules import lazy_names
from ...common.variant import Machine, Variant
from .choices import RULES, SIZES, Choice, offered
from .store import VARIABLE, TuningWarning, entries, tuning_path

if TYPE_CHECKING:
    from ...opencl.device import Device
    from .findings import BestChoice, Entry

__all__ = [
    "RULES",
    "SIZES",
    "BestChoice",
    "Choice",
    "Entry",
    "TuningWarning",
    "choices_for",
    "describe",
    "offered",
    "remembered",
    "trying",
    "tuning_path",
]  # fmt: skip


S = TypeVar("S")  # host code of a variant

REACH = {"atoms": 4, "pairs": 4, "evaluations": 16}  # largest ratio of a size to a measured one

_tried: ContextVar[tuple[str, Choice] | None] = ContextVar("tried", default=None)


def remembered(
    quantity: str, variants: Mapping[str, Variant[S]], device: Device, precision: str, size: int,
    without: Sequence[str] = (),
) -> Choice:  # fmt: skip
    """Return the best choice measured for the nearest size; RULES if there is none within a factor of REACH.

    quantity : key of SIZES; size : in its unit
    variants : of the quantity; choices that they do not offer are ignored
    without : variants that do not support the request
    """
    tried = _tried.get()
    if tried is not None:
        return tried[1] if tried[0] == quantity else RULES
    found = [entry for entry in entries() if entry.is_of(device) and entry.is_current]
    findings = [f for entry in found for f in entry.findings if (f.quantity, f.precision) == (quantity, precision)]
    ratios = {abs(math.log(finding.size / max(1, size))): finding for finding in findings}
    if not ratios or min(ratios) > math.log(REACH[SIZES[quantity]]) + 1e-9:
        return RULES
    choice = ratios[min(ratios)].choice
    known = choice.variant not in without and choice in choices_for(variants, device, precision, size)
    return choice if known else RULES


def choices_for(variants: Mapping[str, Variant[S]], device: Device, precision: str, size: int) -> list[Choice]:
    """All choices that the variants of a quantity offer on a device."""
    return offered(variants, Machine.of(device, precision), size)


@contextmanager
def trying(quantity: str, choice: Choice) -> Iterator[None]:
    """Use a choice for a quantity within the block, and the rules for all others."""
    token = _tried.set((quantity, choice))
    try:
        yield
    finally:
        _tried.reset(token)


def describe(device: Device) -> str:
    """Return a line that says how "auto" chooses on a device."""
    path = tuning_path()
    if path is None:
        return f"built-in rules, {VARIABLE} is off"
    alike = [entry for entry in entries() if (entry.device, entry.platform) == (device.name, device.platform)]
    for entry in alike:
        if entry.is_of(device) and entry.is_current:
            return f"as measured on {entry.date}, {path}"
    if alike:
        old = alike[0]
        made = f"pele-ocl {old.pele_ocl}, kernels {old.kernels}, driver {old.driver}"
        return f"built-in rules; {path} was measured with other versions ({made}), `pele-ocl tune` measures again"
    return "built-in rules; `pele-ocl tune` measures the best choice for this device"


if not TYPE_CHECKING:  # names by module
    __getattr__ = lazy_names(__name__, {"findings": "BestChoice Entry"})
