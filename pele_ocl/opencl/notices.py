"""Notices of the runtime to the program that uses it, which may listen before OpenCL is loaded."""

from __future__ import annotations

from collections.abc import Callable


def _unheard(device: str) -> None:
    """The listener that does nothing."""


# Called with a device's name before a program is compiled for it, but not where a stored binary is loaded.
compiling: Callable[[str], None] = _unheard
