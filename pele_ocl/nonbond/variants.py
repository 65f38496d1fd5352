"""Ways to add up a gradient over a pair list: a table of variants, and a device's best one."""

from __future__ import annotations

from ..common.variant import Variant, by_rule, by_rule_up_to
from .ladder.scattered import Atomic, AtomicNative, Naive
from .ladder.segmented import Bitonic, Offsets, OffsetsGroup
from .ladder.sequential import Sequential
from .passes import AnyPasses
from .rows import Rows
from .tiled import Tiled

MOST_TRIED = 300_000  # pairs; of more the ladder's variants have no chance

VARIANTS: dict[str, Variant[type[AnyPasses]]] = {
    "sequential": Variant(
        "nonbond/ladder/sequential.cl", "nonbond_sequential", "one loop over the list, compiled, on one CPU core",
        Sequential, cpu_only=True,
    ),
    "naive": Variant(
        "nonbond/ladder/pairs.cl", "nonbond_pairs", "a work-item a pair, racing: wrong by design", Naive, exact=False
    ),
    "atomic": Variant(
        "nonbond/ladder/pairs.cl", "nonbond_pairs", "a work-item a pair, additions by atomic compare-exchange", Atomic
    ),
    "atomic-native": Variant(
        "nonbond/ladder/pairs.cl", "nonbond_pairs", "the same with the device's own atomic addition, where it has one",
        AtomicNative, float_atomics=True,
    ),
    "bitonic": Variant(
        "nonbond/ladder/bitonic.cl", "merge_step", "pairs sorted by a bitonic network, summed by atom", Bitonic,
        choices=by_rule_up_to(MOST_TRIED),
    ),
    "offsets": Variant(
        "nonbond/ladder/segments.cl", "segment_sums", "index lists by prefix sums, a work-item an atom adds", Offsets,
        choices=by_rule_up_to(MOST_TRIED),
    ),
    "offsets-group": Variant(
        "nonbond/ladder/segments.cl", "group_sums", "index lists by prefix sums, a work-group an atom adds",
        OffsetsGroup, choices=by_rule_up_to(MOST_TRIED),
    ),
    "rows": Variant(
        "nonbond/rows.cl", "nonbond_rows", "full rows, 32 work-items an atom, nothing scattered", Rows, choices=by_rule
    ),
    "tiled": Variant(
        "nonbond/tiled.cl", "nonbond_tiled", "tiles of neighbours in vector lanes, each pair once; for CPUs", Tiled,
        made_for="CPU", choices=by_rule,
    ),
}  # fmt: skip


def choose_variant(kind: str, n_pairs: int) -> str:
    """Return the variant of `auto` on a device of this kind."""
    return "tiled" if kind == "CPU" else "rows"
