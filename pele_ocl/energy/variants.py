"""The ways to sum over pairs: a table of variants, and which one suits a device."""

from __future__ import annotations

from ..variant import Variant
from .passes import Passes

VARIANTS = {
    "rows": Variant("energy_pair_rows.cl", "pair_rows", "each atom sums its own row of pairs; suits GPUs", Passes),
    "blocks": Variant(
        "energy_pair_blocks.cl",
        "pair_blocks",
        "each pair once for both atoms, in blocks of two tiles; suits CPUs",
        Passes,
    ),
}


def choose_variant(kind: str) -> str:
    """The variant that `auto` stands for on a device of this kind."""
    return "blocks" if kind == "CPU" else "rows"
