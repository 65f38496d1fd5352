"""Plan that solvent, nonbond and energy build on: a molecule prepared once, evaluated in many conformations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.modules import lazy_names

if not TYPE_CHECKING:  # names for tests, by the file that has them
    __getattr__ = lazy_names(
        __name__,
        {
            "conformations": "Encoding",
            "outputs": "norm2",
        },
    )
