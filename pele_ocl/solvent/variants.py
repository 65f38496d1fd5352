"""Ways to compute Born radii: a table of variants, and a device's best one.

Those of the thesis are in pele_ocl/ladder/solvent.py.
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

# Atoms from which on whole evaluations, the measured error among them, are faster, with energies and without.
LEAST_FOR_TREE = {"CPU": 30_000, "GPU": 80_000}
MOST_TRIED = 3000  # atoms; in larger molecules `pair` has no chance


def _tree_choices(machine: Machine, n_atoms: int) -> Sequence[Settings]:
    """Tiles that walk together, in float32 alone: who takes float64 wants its digits."""
    if machine.precision != "float32":
        return ()
    return ({}, {"tile": 32}) if machine.kind == "CPU" else ({}, {"own": 2}, {"walks": 8}, {"walks": 64})


VARIANTS: dict[str, Variant[Callable[..., SolventPasses]]] = {
    "pair": Variant(
        "solvent/pair.cl", "born_sums_pair", "a work-group for each atom, tree sum in local memory",
        partial(PlainPasses, Pair), choices=by_rule_up_to(MOST_TRIED),
    ),
    "tiled": Variant(
        "solvent/tiled.cl", "born_sums", "sorted tiles, series for far pairs, vectors on CPUs", Tiled,
        choices=SolventLayout.choices,
    ),
    "tree": Variant(
        "solvent/tree.cl", "born_sums_tree", "distant boxes by moments, to an accuracy", Tree,
        approximates=True, shared=True, choices=_tree_choices,
    ),
}  # fmt: skip


def choose_variant(kind: str, n_atoms: int, accuracy: float | None = None) -> str:
    """Return the variant of `auto` on a device of this kind; small molecules leave a GPU's tiles half
    empty.

    accuracy : that is enough; None where variants that approximate are not wanted
    """
    if accuracy is not None and pays(n_atoms, accuracy, LEAST_FOR_TREE, kind):
        return "tree"
    return "pair" if kind == "GPU" and n_atoms < 1000 else "tiled"
