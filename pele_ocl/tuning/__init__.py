"""What was measured to be best on this machine, for `auto` and the layouts of kernels."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from .choices import CHOICES, RULES, SIZES, Choice, Machine
from .notes import VARIABLE, Entry, Finding, TuningWarning, entries, tuning_path

if TYPE_CHECKING:
    from ..opencl.device import Device

__all__ = [
    "CHOICES", "RULES", "SIZES", "Choice", "Entry", "Finding", "Machine", "TuningWarning", "choices_for", "describe",
    "remembered", "trying", "tuning_path",
]  # fmt: skip

_tried: ContextVar[tuple[str, Choice] | None] = ContextVar("tried", default=None)


def remembered(quantity: str, device: Device, precision: str, size: int, without: Sequence[str] = ()) -> Choice:
    """What was measured to be best for the size nearest to this one; RULES where nothing is known.

    quantity : key of CHOICES; size : in the unit of SIZES
    without : variants that cannot do what is wanted
    """
    tried = _tried.get()
    if tried is not None:
        return tried[1] if tried[0] == quantity else RULES
    found = [entry for entry in entries() if entry.is_of(device) and entry.is_current]
    findings = [f for entry in found for f in entry.findings if (f.quantity, f.precision) == (quantity, precision)]
    if not findings:
        return RULES
    choice = min(findings, key=lambda finding: abs(math.log(finding.size / max(1, size)))).choice
    known = choice.variant not in without and choice in choices_for(quantity, device, precision, size)
    return choice if known else RULES


def choices_for(quantity: str, device: Device, precision: str, size: int) -> list[Choice]:
    """What there is to choose from on a device."""
    return CHOICES[quantity](Machine.of(device, precision), size)


@contextmanager
def trying(quantity: str, choice: Choice) -> Iterator[None]:
    """Within the block a quantity is computed by this choice, and all others by the rules."""
    token = _tried.set((quantity, choice))
    try:
        yield
    finally:
        _tried.reset(token)


def describe(device: Device) -> str:
    """What `auto` goes by on a device, in one line."""
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
        return f"built-in rules; {path} was measured with other versions ({made}), `pele-ocl tune` renews it"
    return "built-in rules; `pele-ocl tune` measures what is best on this device"
