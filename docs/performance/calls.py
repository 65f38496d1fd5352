"""Calls of kept plans beside OpenMM's, by the clock on the wall, in turns: positions in and arrays out, all NumPy.

python docs/performance/calls.py [PLATFORM [SYSTEM ...]] times energy, nonbond and solvent of systems, by default of
three, against a platform of OpenMM, CUDA where none is named: with new positions in every call, and with the positions
that its context keeps.
Turns are short and their order is drawn anew each time, so that what else the host does meets all alike.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from statistics import median

import numpy as np

from pele_ocl import Energy, Nonbond, Solvent, SolventModel, pairs_within
from pele_ocl.bench.peers import openmm
from pele_ocl.bench.systems import load

SYSTEMS = ("ubiquitin", "src3", "ruvab")
CUTOFF = 12.0  # A
SECONDS, LEAST_ROUNDS, CALLS_A_TURN = 1.5, 10, 10


def seconds_of(calls: list[Callable[[int], object]]) -> list[float]:
    """Median seconds of each of some calls, which take turns and are given the number of the call."""
    times: list[list[float]] = [[] for _ in calls]
    turns, shuffle = list(zip(calls, times, strict=True)), random.Random(0).shuffle
    for call in calls:
        for k in range(10):
            call(k)
    rounds, end = 0, time.perf_counter() + SECONDS
    while rounds < LEAST_ROUNDS or time.perf_counter() < end:
        shuffle(turns)
        for call, taken in turns:
            for k in range(CALLS_A_TURN):
                start = time.perf_counter()
                call(k)
                taken.append(time.perf_counter() - start)
        rounds += 1
    return [median(taken) for taken in times]


def compare(name: str, platform: str) -> None:
    """Print a line for each quantity of a system."""
    atoms, model = load(name), SolventModel()
    moved = atoms.positions + np.random.default_rng(0).normal(0, 0.01, atoms.positions.shape)
    given = np.array(atoms.positions), moved
    works = {
        "energy": (Energy(atoms), openmm.whole_energy(atoms, model)),
        "nonbond": (
            Nonbond(atoms, pairs_within(atoms, CUTOFF), solvent="vacuum"), openmm.pairs_within_cutoff(atoms, CUTOFF),
        ),
        "solvent": (Solvent(atoms), openmm.gb_alone(atoms, model)),
    }  # fmt: skip
    for quantity, (plan, system) in works.items():
        peer = openmm.OpenMM.of(system, atoms.positions, platform, "float32")
        ours, moving, keeping = seconds_of(
            [
                lambda k, plan=plan: plan.evaluate(given[k % 2]),
                lambda k, peer=peer: peer.evaluate(given[k % 2]),
                lambda k, peer=peer: peer.evaluate(),
            ]
        )
        print(
            f"{name:9s} {quantity:7s} ours {1e6 * ours:9.1f} us, OpenMM {1e6 * moving:9.1f} us = {moving / ours:.2f}x, "
            f"its positions kept {1e6 * keeping:9.1f} us = {keeping / ours:.2f}x",
            flush=True,
        )


if __name__ == "__main__":
    platform_name, *system_names = sys.argv[1:] or ["CUDA"]
    for system_name in system_names or SYSTEMS:
        compare(system_name, platform_name)
