"""OpenCL runtimes and what is peculiar to them: where they are found, what they write, what they compile for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...common.modules import lazy_names
from .platforms import find_platforms
from .processor import name_processors

__all__ = ["find_platforms", "name_processors"]

if not TYPE_CHECKING:  # names for tests, by the file that has them
    __getattr__ = lazy_names(
        __name__,
        {
            "processor": "HASWELL KEPT_BYTES known_name rename writable_parts",
        },
    )
