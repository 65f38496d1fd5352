"""Variants of the sums over pairs and of Born radii, and the default choice for a device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..common.arguments import described, is_among
from ..common.errors import InputError
from ..common.variant import Machine, Variant
from ..opencl.interface import LEAF
from ..solvent.accuracy import DEFAULT, checked_accuracy, pays
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


# `run` imports the class of a variant, so that names and help load quickly.
VARIANTS: dict[str, Variant[Callable[[], type[AnyPasses]]]] = {
    "rows": Variant(
        "energy/pair_rows.cl", "pair_rows", "each atom sums its own row of pairs; for GPUs", _rows, made_for="GPU",
        choices=RowsLayout.choices,
    ),
    "blocks": Variant(
        "energy/pair_blocks.cl", "pair_blocks", "each pair once, blocks of two tiles with vectors; for CPUs", _blocks,
        made_for="CPU", choices=BlocksLayout.choices,
    ),
    "squares": Variant(
        "energy/squares/pair.cl", "pair_squares", "each pair once, by tile pairs in groups; for GPUs", _squares,
        per_atom=False, made_for="GPU", choices=SquaresLayout.choices,
    ),
}  # fmt: skip


def choose_variant(kind: str, per_atom: bool) -> str:
    """Return the variant that "auto" uses on a device of this kind.

    per_atom : whether per-atom energies are requested, which `squares` does not support
    """
    if kind == "CPU":
        return "blocks"
    return "rows" if per_atom else "squares"


# Atoms; with fewer the tree is not faster, since radii take little of the time, and their error has to be measured.
LEAST_FOR_TREE = {"CPU": 60_000, "GPU": 100_000}


@dataclass(frozen=True)
class BornSums:
    """A method of computing Born integrals.

    summary : one line for help
    approximates : whether it is approximate, within a requested accuracy
    """

    summary: str
    approximates: bool = False


BORN = {
    "pairs": BornSums("over all pairs"),
    "tree": BornSums("distant boxes by moments, to a given accuracy", approximates=True),
    "surface": BornSums("from the surface, only for sgbnp and vdgbnp"),
}


@dataclass(frozen=True)
class Born:
    """Chosen method. name : key of BORN; accuracy : of the radii; None if they are exact"""

    name: str
    accuracy: float | None = None


def check_born(name: str, accuracy: float | None) -> float | None:
    """Check method and accuracy, and return the accuracy as a number. Raises InputError if they are invalid."""
    if not is_among(name, ("auto", *BORN)):
        raise InputError(f"Born radii cannot be computed by {described(name)}; choose auto, {', '.join(BORN)}")
    asked = checked_accuracy(accuracy)
    if asked is not None and name in BORN and not BORN[name].approximates:
        raise InputError(f"Born radii from {name} do not have an accuracy option; leave it out, or choose tree or auto")
    return asked


def chosen_born(name: str, asked: float | None, machine: Machine, n_atoms: int, tile: int, suits: bool) -> Born:
    """Choose how Born radii are computed on a machine; "auto" chooses the tree if it is faster.

    asked : requested accuracy; if None, "auto" uses the tree only in float32
    tile : atoms in a tile; suits : whether "auto" may use the tree

    Raises InputError for a tree with tiles that are not a multiple of its leaves.
    """
    fits = tile % LEAF == 0
    enough = asked or (DEFAULT if machine.precision == "float32" else None)
    if name == "auto":
        wanted = suits and fits and enough is not None and pays(n_atoms, enough, LEAST_FOR_TREE, machine.kind)
        name = next(key for key, sums in BORN.items() if sums.approximates == wanted)
    if not BORN[name].approximates:
        return Born(name)
    if not fits:
        raise InputError(f"a tree needs tiles of {LEAF} atoms or more, not {tile}; choose another variant")
    return Born(name, enough or DEFAULT)
