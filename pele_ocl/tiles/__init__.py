"""A molecule's atoms sorted into tiles, its tiles on a device, and the series of the HCT integral there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.modules import lazy_names
from .tiles import Tiles, cpu_parts, tried_parts

__all__ = ["Tiles", "cpu_parts", "tried_parts"]

if not TYPE_CHECKING:  # names for tests, by the file that has them
    __getattr__ = lazy_names(
        __name__,
        {
            "dispatch": "born_dispatch ring_dispatch",
            "surface": "NEIGHBOURS",
            "tiles": "hilbert_keys kd_order",
        },
    )
