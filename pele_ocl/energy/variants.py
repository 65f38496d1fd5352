"""Ways to sum over pairs: a table of variants, and which one suits a device."""

from __future__ import annotations

from ..common.variant import Variant
from .blocks import Blocks
from .layout import BlocksLayout, RowsLayout, SquaresLayout
from .passes import AnyPasses
from .rows import Rows
from .squares import Squares

VARIANTS: dict[str, Variant[type[AnyPasses]]] = {
    "rows": Variant(
        "energy/pair_rows.cl", "pair_rows", "each atom sums its own row of pairs; for GPUs", Rows, made_for="GPU",
        choices=RowsLayout.choices,
    ),
    "blocks": Variant(
        "energy/pair_blocks.cl", "pair_blocks", "each pair once, blocks of two tiles in vectors; for CPUs", Blocks,
        made_for="CPU", choices=BlocksLayout.choices,
    ),
    "squares": Variant(
        "energy/squares/pair.cl", "pair_squares", "each pair once, by tile pairs in groups; for GPUs", Squares,
        per_atom=False, made_for="GPU", choices=SquaresLayout.choices,
    ),
}  # fmt: skip


def choose_variant(kind: str, per_atom: bool) -> str:
    """Choose the variant of `auto` on a device of this kind.

    per_atom : whether the energies of single atoms are wanted, which `squares` does not tell
    """
    if kind == "CPU":
        return "blocks"
    return "rows" if per_atom else "squares"
