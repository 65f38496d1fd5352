"""Work in each step of the single launch for an energy on PoCL, and the expected time for a number of cores.

python tests/benchmarks/tickets.py [--system ubiquitin] [--cores 16]

The parts are those for a CPU with this number of cores; a single thread executes them, ticket by ticket, and times each
with the processor's time stamp counter. For each step it prints the number of tickets, their work (the minimum of some
evaluations), the shortest and the longest; then the time in which the cores would complete these tickets, drawn in
order and waiting for each other, compared with an equal division of the work. Costs of caches and of thread
synchronization in PoCL are not included. Linux, x86-64.
"""

from __future__ import annotations

import argparse
import heapq
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

os.environ["POCL_MAX_PTHREAD_COUNT"] = "1"

import numpy as np
from numpy.typing import NDArray

from pele_ocl import Energy
from pele_ocl.bench.systems import load
from pele_ocl.energy import blocks
from pele_ocl.opencl import Queue, building, get_device

ROUNDS, MOST_TICKETS = 40, 4096
FILE = "energy/blocks_joined.cl"
BEGIN, END = "COUNTER(DRAWN))) {\n", "    }\n    // The last to leave"
CLOCK = """
INLINE ulong ticks(void) {
    uint low, high;
    __asm__ __volatile__("rdtsc" : "=a"(low), "=d"(high));
    return ((ulong)high << 32) | low;
}

kernel"""
TIMES = "(global ulong *)(counters + COUNTERS * COUNTER_STEP) + 2 * ticket"
# The step that waits for another one.
AFTER = {"born": "place", "radii": "born", "pairs": "radii", "weights": "pairs", "chain": "weights", "finish": "chain"}


def timed(text: str) -> str:
    """Make each ticket store its start and end times after the counters."""
    assert text.count(BEGIN) == text.count(END) == text.count("\nkernel") == 1
    text = text.replace("\nkernel", CLOCK, 1)
    text = text.replace(BEGIN, f"{BEGIN}        global ulong *times = {TIMES};\n        times[0] = ticks();\n")
    return text.replace(END, f"        times[1] = ticks();\n{END}")


def measured(plan: Energy) -> tuple[dict[str, NDArray[np.float64]], int]:
    """Return microseconds of the tickets of each step, and the parts."""
    plan.evaluate()
    evaluator = plan._idle[0]
    passes = evaluator.passes  # type: ignore[attr-defined]
    (launch,) = passes.launches
    arguments = dict(zip((each.name for each in launch.kernel.signature.parameters), launch.args, strict=True))
    queue, rounds, clock = Queue(plan.device, "float32"), [], []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        plan.evaluate()
        first = blocks.COUNTERS - 4 * MOST_TICKETS
        times = queue.download(arguments["counters"], blocks.COUNTERS, np.int32)[first:].view(np.uint64)
        rounds.append(times.reshape(-1, 2).astype(np.int64))
        clock.append((start, int(times[0])))
    seconds, counted = (clock[-1][k] - clock[0][k] for k in (0, 1))
    found = np.array(rounds)
    cost = np.min(found[:, :, 1] - found[:, :, 0], axis=0)[found[0, :, 1] > 0] * 1e6 * seconds / counted
    n_lots, n_parts = -(-int(arguments["n_tiles"]) // int(arguments["per_lot"])), int(arguments["n_parts"])
    count = dict(
        place=n_lots, born=n_parts, bonded=len(cost) - 4 * n_lots - 3 * n_parts, radii=n_lots, pairs=n_parts,
        weights=n_lots, chain=n_parts, finish=n_lots,
    )  # fmt: skip
    ends = np.cumsum(list(count.values()))
    return dict(zip(count, np.split(cost, ends[:-1]), strict=True)), n_parts


def simulated(cost: Mapping[str, NDArray[np.float64]], cores: int) -> float:
    """Return microseconds until all tickets are done, if each core draws the next one as soon as it is free."""
    free, end = [0.0] * cores, dict[str, float]()
    for step, tickets in cost.items():
        ready = end.get(AFTER.get(step, ""), 0.0)
        ready = max(ready, end["bonded"]) if step == "finish" else ready
        end[step] = ready
        for each in tickets.tolist():
            done = max(heapq.heappop(free), ready) + each
            end[step] = max(end[step], done)
            heapq.heappush(free, done)
    return max(free)


def lines(name: str, cores: int) -> Iterator[str]:
    """Yield the lines of the table of a system."""
    plan = Energy(load(name), variant="blocks", device=replace(get_device("pocl"), units=cores))
    cost, n_parts = measured(plan)
    yield f"{name}, {len(plan.atoms):,} atoms, {n_parts} parts for {cores} cores"
    for step, each in cost.items():
        if len(each):
            shortest, longest = each.min(), each.max()
            yield f"  {step:8s} {len(each):4d} tickets {each.sum():9.1f} us, each {shortest:6.2f} to {longest:7.2f}"
    work = sum(each.sum() for each in cost.values())
    yield f"  in all {work:.0f} us; {cores} cores {simulated(cost, cores):.0f} us, equal shares {work / cores:.0f} us"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--system", default="ubiquitin")
    parser.add_argument("--cores", type=int, default=16)
    given = parser.parse_args()
    shipped_source = building.source_of
    building.source_of = lambda file: timed(shipped_source(file)) if file == FILE else shipped_source(file)
    blocks.COUNTERS += 4 * MOST_TICKETS
    print(*lines(given.system, given.cores), sep="\n")


if __name__ == "__main__":
    main()
