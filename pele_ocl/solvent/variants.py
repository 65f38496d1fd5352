"""Variants of Born radii, and the default choice for a device.

The variants of the thesis are in pele_ocl/ladder/solvent.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ..common.variant import Machine, Settings, Variant, by_rule_up_to
from .accuracy import pays
from .layout import SolventLayout
from .pair import Pair, PlainPasses
from .passes import SolventPasses
from .tiled import Tiled, Tree

# Smallest number of atoms for which evaluations, including the measured error, are faster, with and without energies.
LEAST_FOR_TREE = {"CPU": 30_000, "GPU": 80_000}
MOST_TRIED = 3000  # atoms; in larger molecules `pair` is never the fastest


def _tree_choices(machine: Machine, n_atoms: int) -> Sequence[Settings]:
    """Settings that `tune` tries for the tree, only in float32."""
    if machine.precision != "float32":
        return ()
    return ({}, {"tile": 32}) if machine.kind == "CPU" else ({}, {"own": 2}, {"walks": 8}, {"walks": 64})


VARIANTS: dict[str, Variant[Callable[..., SolventPasses]]] = {
    "pair": Variant(
        "solvent/pair.cl", "born_sums_pair", "one work-group per atom, tree sum in local memory",
        partial(PlainPasses, Pair), choices=by_rule_up_to(MOST_TRIED),
    ),
    "tiled": Variant(
        "solvent/tiled.cl", "born_sums", "sorted tiles, series for far pairs, vectors on CPUs", Tiled,
        choices=SolventLayout.choices,
    ),
    "tree": Variant(
        "solvent/tree.cl", "born_sums_tree", "distant boxes by moments, to a given accuracy", Tree,
        approximates=True, shared=True, choices=_tree_choices,
    ),
}  # fmt: skip


def choose_variant(kind: str, n_atoms: int, accuracy: float | None = None) -> str:
    """Return the variant that "auto" uses on a device of this kind; tiles of small molecules leave a GPU half empty.

    accuracy : sufficient accuracy; None to exclude approximate variants
    """
    if accuracy is not None and pays(n_atoms, accuracy, LEAST_FOR_TREE, kind):
        return "tree"
    return "pair" if kind == "GPU" and n_atoms < 1000 else "tiled"
