"""The ways to sum over pairs: a table of variants, and which one suits a device."""

from __future__ import annotations

from ..variant import Variant
from .layout import SMALL
from .passes import Passes

VARIANTS = {
    "rows": Variant("energy_pair_rows.cl", "pair_rows", "each atom sums its own row of pairs; for GPUs", Passes),
    "blocks": Variant(
        "energy_pair_blocks.cl", "pair_blocks", "each pair once, blocks of two tiles in vectors; for CPUs", Passes
    ),
    "squares": Variant(
        "energy_pair_squares.cl", "pair_squares", "each pair once, squares of two tiles in groups; for GPUs", Passes
    ),
}

# Between these numbers of atoms a GPU has squares enough to be filled, and memory enough for their sums.
SQUARES = range(SMALL, 100_000)


def choose_variant(kind: str, n_atoms: int, per_atom: bool) -> str:
    """The variant that `auto` stands for on a device of this kind.

    per_atom : whether the energies of single atoms are wanted, which `squares` does not tell
    """
    if kind == "CPU":
        return "blocks"
    return "squares" if n_atoms in SQUARES and not per_atom else "rows"
