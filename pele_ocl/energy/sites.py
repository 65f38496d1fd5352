"""Launches that place virtual sites before an evaluation and distribute their gradients to their parents after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..atoms import Atoms
from ..common.errors import InputError

if TYPE_CHECKING:
    from ..opencl.binding import Launch
    from .terms.term import TermContext

ITEMS = 64  # per work-group
_FILE = "energy/sites.cl"


def check_sites(atoms: Atoms) -> None:
    """Raise InputError for virtual sites without a rule."""
    if atoms.virtual_sites is not None and len(atoms.virtual_sites.unknown):
        i = int(atoms.virtual_sites.unknown[0])
        raise InputError(
            f"{atoms.describe(i)} is a virtual site with an unknown rule or missing parents, so it cannot "
            "be moved; give an OpenMM System that defines it, or a model without such sites"
        )


def site_launches(context: TermContext) -> tuple[list[Launch], list[Launch]]:
    """Bind the launches before and after an evaluation; both lists are empty if there are no sites to rebuild."""
    sites, queue = context.atoms.virtual_sites, context.queue
    if sites is None or not context.options.rebuild_sites:
        return [], []
    fine = queue.dtype if context.encoding.is_fixed else np.dtype(np.float64)
    order, starts = sites.groups
    n = len(starts) - 1
    common = dict(
        n_atoms=len(context.atoms), step=context.encoding.step, n_clusters=n, starts=queue.upload(starts, np.int32),
        sites=queue.upload(sites.atoms[order], np.int32), parents=queue.upload(sites.parents[order], np.int32),
        weights=queue.upload(sites.weights[order], fine), positions=context.buffers["positions"],
    )  # fmt: skip
    place = queue.bind(_FILE, "place_sites", (n, 1), (ITEMS, 1), common, **context.macros)
    if not context.options.gradient:
        return [place], []
    results = dict(**context.result_sizes, results=context.buffers["results"])
    spread = queue.bind(_FILE, "spread_sites", (n, 1), (ITEMS, 1), {**common, **results}, **context.macros)
    return [place], [spread]
