"""Ways to sum over pairs: a table of variants, and which one suits a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..common.variant import Variant
from .layout import BlocksLayout, RowsLayout, SquaresLayout

if TYPE_CHECKING:
    from .passes import AnyPasses


def _rows() -> type[AnyPasses]:
    from .rows import Rows

    return Rows


def _blocks() -> type[AnyPasses]:
    from .blocks import Blocks

    return Blocks


def _squares() -> type[AnyPasses]:
    from .squares import Squares

    return Squares


# `run` loads the class of a variant's launches, so that names and help cost no time.
VARIANTS: dict[str, Variant[Callable[[], type[AnyPasses]]]] = {
    "rows": Variant(
        "energy/pair_rows.cl", "pair_rows", "each atom sums its own row of pairs; for GPUs", _rows, made_for="GPU",
        choices=RowsLayout.choices,
    ),
    "blocks": Variant(
        "energy/pair_blocks.cl", "pair_blocks", "each pair once, blocks of two tiles in vectors; for CPUs", _blocks,
        made_for="CPU", choices=BlocksLayout.choices,
    ),
    "squares": Variant(
        "energy/squares/pair.cl", "pair_squares", "each pair once, by tile pairs in groups; for GPUs", _squares,
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
