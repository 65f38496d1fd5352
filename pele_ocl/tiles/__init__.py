"""A molecule's tiles on the device and the series of the HCT integral, which solvent and energy share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.lazy import lazy_names

if not TYPE_CHECKING:  # names for tests, by the file that has them
    __getattr__ = lazy_names(
        __name__,
        {
            "dispatch": "born_dispatch ring_dispatch",
            "surface": "NEIGHBOURS",
        },
    )
