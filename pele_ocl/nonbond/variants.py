"""Variants of nonbonded sums over pair lists, and the default choice for a device.

The variants of the thesis are in pele_ocl/ladder/nonbond.py.
"""

from __future__ import annotations

from ..common.variant import Variant, by_rule
from .passes import AnyPasses
from .rows import Rows
from .tiled import Tiled

VARIANTS: dict[str, Variant[type[AnyPasses]]] = {
    "rows": Variant(
        "nonbond/rows.cl", "nonbond_rows", "full rows, 32 work-items per atom, no scattering", Rows, choices=by_rule
    ),
    "tiled": Variant(
        "nonbond/tiled.cl", "nonbond_tiled", "tiles of neighbours in vector lanes, each pair once; for CPUs", Tiled,
        made_for="CPU", choices=by_rule,
    ),
}  # fmt: skip


def choose_variant(kind: str, n_pairs: int) -> str:
    """Return the variant that "auto" uses on a device of this kind."""
    return "tiled" if kind == "CPU" else "rows"
