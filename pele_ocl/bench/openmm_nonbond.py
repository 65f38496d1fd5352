"""The nearest that OpenMM's CPU platform has to a nonbonded evaluation with a cutoff, on the atoms of a timing table.

It is not the same energy. With a cutoff NonbondedForce computes the Coulomb energy by a reaction field, and there
is no GB pair term alone: GBSAOBCForce computes Born radii and their part of the gradient, too. Ours does more than the
one and less than both together.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..atoms import Atoms
from ..pairs import exclusions
from .nonbond import Case, Timing
from .openmm import NM_PER_A, forces_of
from .timing import mean_of_middle

# Names in the table, and whether GBSAOBCForce comes with NonbondedForce.
PEERS = {"OpenMM": False, "OpenMM+OBC": True}


def measure(case: Case, cutoff: float, runs: int = 5) -> Iterator[Timing]:
    """Time energy and gradient by OpenMM's CPU platform, by the clock on the wall; nothing where it is not installed.

    Its own pair list stands throughout, as ours does; preparing is making a context and the first evaluation.
    """
    if importlib.util.find_spec("openmm") is None:
        return
    for name, with_gb in PEERS.items():
        start = time.perf_counter()
        context = context_of(case.atoms, cutoff, with_gb)
        evaluate(context)
        prepare = time.perf_counter() - start
        seconds = mean_of_middle(lambda: evaluate(context), runs)  # noqa: B023
        yield Timing(
            case.name, len(case.atoms), len(case), "own", "float32", True, name, "OpenMM's CPU platform", prepare,
            seconds, None, None, None,
        )  # fmt: skip


def context_of(atoms: Atoms, cutoff: float, with_gb: bool) -> Any:
    """The pairs of pairs_within(atoms, cutoff) on OpenMM's CPU platform; cutoff in A."""
    import openmm

    platform = openmm.Platform.getPlatformByName("CPU")
    context = openmm.Context(_system(atoms, cutoff, with_gb), openmm.VerletIntegrator(0.001), platform)
    context.setPositions(atoms.positions * NM_PER_A)
    return context


def evaluate(context: Any) -> float:
    """Seconds of an evaluation of energy and forces."""
    start = time.perf_counter()
    context.getState(getEnergy=True, getForces=True)
    return time.perf_counter() - start


def _system(atoms: Atoms, cutoff: float, with_gb: bool) -> Any:
    import openmm

    system, pairs, gb = forces_of(atoms)
    # As pairs_within does: no pairs up to three bonds apart.
    for i, j in np.concatenate(exclusions(atoms.bonds, len(atoms))).tolist():
        pairs.addException(i, j, 0.0, 1.0, 0.0)
    pairs.setNonbondedMethod(openmm.NonbondedForce.CutoffNonPeriodic)
    gb.setNonbondedMethod(openmm.GBSAOBCForce.CutoffNonPeriodic)
    for force in (pairs, gb) if with_gb else (pairs,):
        force.setCutoffDistance(cutoff * NM_PER_A)
        system.addForce(force)
    return system
