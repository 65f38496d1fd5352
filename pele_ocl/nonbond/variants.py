"""The ways to add up a gradient over a pair list: a table of variants and the host steps of each.

Host steps take a Run and a Task, build what the variant needs once for the list, and return a function that evaluates:
it takes a Run and the buffers of the atoms' records and returns energies (3,) and gradient (n, 3), float64, or None for
the gradient where it was not asked for.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..opencl.shared import Role, Scatter
from ..variant import Variant
from .index import ITEMS, segments_by_counting, segments_by_sorting
from .records import Records
from .task import Evaluate, Evaluation, Task, energies_of, gradient_of
from .tiled import tiled

if TYPE_CHECKING:
    from ..opencl.kernels import Run

GROUP = 128
LANES = 32
PAIRS_AN_ITEM = 4


def sequential(run: Run, task: Task) -> Evaluate:
    """One loop in one work-item."""
    kernel = run.kernel("nonbond/ladder/sequential.cl", "nonbond_sequential", **task.switches)

    def evaluate(run: Run, records: Records) -> Evaluation:
        energies, gradient = run.empty(3), run.zeros(3 * task.n_atoms)
        run.launch(kernel, (1,), (1,), *_list_arguments(run, task, records), energies, gradient)
        return energies_of(run, energies, 1), gradient_of(run, task, records, gradient)

    return evaluate


def scattered(scatter: Scatter, native: bool, run: Run, task: Task) -> Evaluate:
    """A work-item a pair adds to both atoms' gradients, racing or atomically."""
    if native:
        run.device.require_float_atomics(run.precision)
    elif scatter == Scatter.ATOMIC and run.precision == "float64":
        run.device.require_int64_atomics()
    kernel, group = _pairs_kernel(run, task, scatter if task.gradient else Scatter.NONE, NATIVE_ATOMICS=int(native))

    def evaluate(run: Run, records: Records) -> Evaluation:
        gradient = run.zeros(3 * task.n_atoms)
        energies = _launch_pairs(run, kernel, group, task, records, gradient)
        return energies_of(run, *energies), gradient_of(run, task, records, gradient)

    return evaluate


def segmented(sorting: bool, grouped: bool, run: Run, task: Task) -> Evaluate:
    """Gradients stored by pair, then added up by atom over index lists made by sorting or counting."""
    if not task.gradient:
        return scattered(Scatter.NONE, False, run, task)
    if sorting:
        task, firsts = _sorted_by_first(run, task)
    else:
        firsts = segments_by_counting(run, task.pairs, task.n_pairs, task.n_atoms, Role.FIRSTS)
    build = segments_by_sorting if sorting else segments_by_counting
    seconds = build(run, task.pairs, task.n_pairs, task.n_atoms, Role.SECONDS)
    kernel, group = _pairs_kernel(run, task, Scatter.STORED)
    name = "group_sums" if grouped else "segment_sums"
    adding, adders = run.group_kernel(
        "nonbond/ladder/segments.cl", name, local_reals=3, most=GROUP, SORTED_FIRSTS=int(sorting)
    )
    shape = ((task.n_atoms * adders,), (adders,)) if grouped else ((task.n_atoms,), (ITEMS,))

    def evaluate(run: Run, records: Records) -> Evaluation:
        stored, gradient = run.empty(3 * task.n_pairs), run.empty(3 * task.n_atoms)
        lists = firsts.pairs, firsts.offsets, seconds.pairs, seconds.offsets
        sizes = np.int32(task.n_atoms), np.int32(task.n_pairs)
        energies = _launch_pairs(run, kernel, group, task, records, stored)
        run.launch(adding, *shape, *sizes, stored, *lists, gradient)
        return energies_of(run, *energies), gradient_of(run, task, records, gradient)

    return evaluate


def rows(run: Run, task: Task) -> Evaluate:
    """Several work-items an atom walk its full row; both directions computed, nothing scattered."""
    if not task.gradient:
        return scattered(Scatter.NONE, False, run, task)
    full = segments_by_counting(run, task.pairs, task.n_pairs, task.n_atoms, Role.BOTH)
    kernel, group = run.group_kernel(
        "nonbond/rows.cl", "nonbond_rows", local_reals=3, most=GROUP, LANES=LANES, **task.switches
    )
    lanes = min(LANES, group)
    n_groups = -(-task.n_atoms * lanes // group)
    own = (full.pairs, *task.own) if task.own else ()
    energies, gradient = run.empty(3 * n_groups), run.empty(3 * task.n_atoms)

    def evaluate(run: Run, records: Records) -> Evaluation:
        inputs = records.model, np.int32(task.n_atoms), full.offsets, full.neighbours, *own, *records.upload(run)
        run.launch(kernel, (n_groups * group,), (group,), *inputs, energies, gradient)
        return energies_of(run, energies, n_groups), gradient_of(run, task, records, gradient)

    return evaluate


def _sorted_by_first(run: Run, task: Task) -> tuple[Task, Any]:
    """The task with its pairs in the order of their first atom, and the segments of it."""
    firsts = segments_by_sorting(run, task.pairs, task.n_pairs, task.n_atoms, Role.FIRSTS)
    n, pairs = task.n_pairs, run.empty(2 * task.n_pairs, np.uint32)
    own = tuple(run.empty(n) for _ in task.own)
    if n:
        permute = run.kernel("nonbond/pair_index.cl", "permute_pairs")
        run.launch(permute, (n,), (ITEMS,), np.int32(n), firsts.pairs, task.pairs, pairs)
        permute = run.kernel("nonbond/pair_index.cl", "permute_reals")
        for before, after in zip(task.own, own, strict=True):
            run.launch(permute, (n,), (ITEMS,), np.int32(n), firsts.pairs, before, after)
    return Task(task.positions, n, pairs, own, task.switches), firsts


def _list_arguments(run: Run, task: Task, records: Records) -> tuple[Any, ...]:
    return records.model, np.int32(task.n_pairs), task.pairs, *task.own, *records.upload(run)


def _pairs_kernel(run: Run, task: Task, scatter: Scatter, **more: int) -> tuple[Any, int]:
    switches = {"SCATTER": scatter, **more, **task.switches}
    return run.group_kernel("nonbond/ladder/pairs.cl", "nonbond_pairs", local_reals=3, most=GROUP, **switches)


def _launch_pairs(run: Run, kernel: Any, group: int, task: Task, records: Records, gradient: Any) -> tuple[Any, int]:
    """The kernel over all pairs; the buffer of its groups' energies and how many there are."""
    n_groups = max(1, -(-task.n_pairs // (group * PAIRS_AN_ITEM)))
    energies = run.empty(3 * n_groups)
    run.launch(kernel, (n_groups * group,), (group,), *_list_arguments(run, task, records), energies, gradient)
    return energies, n_groups


VARIANTS = {
    "sequential": Variant(
        "nonbond/ladder/sequential.cl", "nonbond_sequential", "one loop over the list, compiled, on one CPU core",
        sequential,
    ),
    "naive": Variant(
        "nonbond/ladder/pairs.cl", "nonbond_pairs", "a work-item a pair, racing: wrong by design",
        partial(scattered, Scatter.NAIVE, False), exact=False,
    ),
    "atomic": Variant(
        "nonbond/ladder/pairs.cl", "nonbond_pairs", "a work-item a pair, additions by atomic compare-exchange",
        partial(scattered, Scatter.ATOMIC, False),
    ),
    "atomic-native": Variant(
        "nonbond/ladder/pairs.cl", "nonbond_pairs", "the same with the device's own atomic addition, where it has one",
        partial(scattered, Scatter.ATOMIC, True),
    ),
    "bitonic": Variant(
        "nonbond/ladder/bitonic.cl", "merge_step", "pairs sorted by a bitonic network, summed by atom",
        partial(segmented, True, False),
    ),
    "offsets": Variant(
        "nonbond/ladder/segments.cl", "segment_sums", "index lists by prefix sums, a work-item an atom adds",
        partial(segmented, False, False),
    ),
    "offsets-group": Variant(
        "nonbond/ladder/segments.cl", "group_sums", "index lists by prefix sums, a work-group an atom adds",
        partial(segmented, False, True),
    ),
    "rows": Variant("nonbond/rows.cl", "nonbond_rows", "full rows, 32 work-items an atom, nothing scattered", rows),
    "tiled": Variant(
        "nonbond/tiled.cl", "nonbond_tiled", "tiles of neighbours in vector lanes, each pair once; for CPUs", tiled
    ),
}  # fmt: skip

INEXACT = frozenset(name for name, variant in VARIANTS.items() if not variant.exact)


def choose_variant(kind: str, n_pairs: int) -> str:
    """The variant that `auto` stands for on a device of this kind."""
    return "tiled" if kind == "CPU" else "rows"
