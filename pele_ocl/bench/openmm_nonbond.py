"""Nearest counterpart of a nonbonded evaluation with a cutoff on OpenMM's CPU platform, on a timing table's atoms.

It is not the same energy: there is no GB pair term alone. NonbondedForce computes none; GBSAOBCForce computes Born
radii and their part of the gradient, too. Ours does more than the one and less than both together.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from .installed import AbsentError
from .nonbond import Case, Timing
from .openmm import OpenMM, pairs_within_cutoff
from .timing import wall_seconds

# Names in the table, and whether GBSAOBCForce comes with NonbondedForce.
PEERS = {"OpenMM": False, "OpenMM+OBC": True}


def measure(case: Case, cutoff: float, runs: int = 5) -> Iterator[Timing]:
    """Time energy and gradient by OpenMM's CPU platform, by the clock on the wall; nothing where it is not installed.

    Its own pair list stands throughout, as ours does; preparing is making a context and the first evaluation.
    """
    for name, with_gb in PEERS.items():
        start = time.perf_counter()
        try:
            system = pairs_within_cutoff(case.atoms, cutoff, with_gb)
            peer = OpenMM.of(system, case.atoms.positions, "CPU", "float32")
        except AbsentError:
            return
        peer.evaluate()
        prepare = time.perf_counter() - start
        seconds = wall_seconds(peer.evaluate, runs)
        yield Timing(
            case.name, len(case.atoms), len(case), "own", "float32", True, name, "OpenMM's CPU platform", prepare,
            seconds, None, None, None,
        )  # fmt: skip
