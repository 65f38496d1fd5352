"""Wall time of evaluations of existing plans with NumPy arrays, compared with OpenMM.

python tests/benchmarks/calls.py [PLATFORM [SYSTEM ...]] times energy, nonbond and solvent of systems, by default of
three, compared with a platform of OpenMM, by default CUDA, with new positions in every call and with unchanged
positions. After initialization, the calls are timed in short turns and in a new random order for each round, so that
other programs on the host affect all of them equally.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import cycle
from statistics import median

import numpy as np
from timing_tables import openmm

from pele_ocl import Energy, Nonbond, Solvent, SolventModel, pairs_within
from pele_ocl.atoms import Floats
from pele_ocl.bench.systems import load

SYSTEMS = ("ubiquitin", "src3", "ruvab")
CUTOFF = 12.0  # A
SECONDS, LEAST_ROUNDS, CALLS_A_TURN = 15.0, 10, 10


@dataclass
class Timed:
    """A call and its times, s. positions : (n, 3) A; the calls use them in turn"""

    call: Callable[[Floats], object]
    positions: cycle[Floats]
    times: list[float] = field(default_factory=list)

    def turn(self) -> None:
        """Run some calls and store the time per call."""
        for _ in range(CALLS_A_TURN):
            there = next(self.positions)
            start = time.perf_counter()
            self.call(there)
            self.times.append(time.perf_counter() - start)

    @property
    def microseconds(self) -> float:
        """Return the median time in microseconds."""
        return 1e6 * median(self.times)


def calls_of(name: str, platform: str) -> dict[tuple[str, str], tuple[Timed, Timed, Timed]]:
    """Return the calls by system and quantity: pele-ocl, and OpenMM with new and with unchanged positions."""
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
    found = {}
    for quantity, (plan, system) in works.items():
        peer = openmm.OpenMM.of(system, atoms.positions, platform, "float32")
        calls = plan.evaluate, peer.evaluate, lambda _, peer=peer: peer.evaluate()
        ours, moving, keeping = (Timed(call, cycle(given)) for call in calls)
        found[name, quantity] = ours, moving, keeping
    return found


def time_in_turns(calls: list[Timed]) -> None:
    """Time the calls in rounds; each round contains all calls."""
    for call in calls:
        call.turn()
        call.times.clear()
    shuffle, rounds, end = random.Random(0).shuffle, 0, time.perf_counter() + SECONDS
    while rounds < LEAST_ROUNDS or time.perf_counter() < end:
        shuffle(calls)
        for call in calls:
            call.turn()
        rounds += 1


if __name__ == "__main__":
    platform_name, *system_names = sys.argv[1:] or ["CUDA"]
    rows = {}
    for system_name in system_names or SYSTEMS:
        rows |= calls_of(system_name, platform_name)
    time_in_turns([call for calls in rows.values() for call in calls])
    for (system_name, quantity), calls in rows.items():
        ours, moving, keeping = (call.microseconds for call in calls)
        print(
            f"{system_name:9s} {quantity:7s} ours {ours:9.1f} us, OpenMM {moving:9.1f} us = {moving / ours:.2f}x, "
            f"its positions kept {keeping:9.1f} us = {keeping / ours:.2f}x"
        )
