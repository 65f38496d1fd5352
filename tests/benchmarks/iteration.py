"""Cost of an L-BFGS iteration in addition to the evaluation, by kernel, in microseconds.

python tests/benchmarks/iteration.py [--systems ubiquitin,src3,ruvab] [--count 200] [--device NAME]

Each structure starts with 0.1 A of noise, using Amber99SB with OBC II. --count evaluations are timed, and the same
number of iterations, both without waiting in between, and the host time of both; then each kernel by device time.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from timing_tables.minimize import minimizer_of, starts_of

from pele_ocl.bench.systems import SYSTEMS
from pele_ocl.common.installation import shipped
from pele_ocl.opencl import Queue
from pele_ocl.opencl.queue import seconds_of
from pele_ocl.reading import read

ROUNDS = 3
FIRST = 30  # iterations before any is timed, so that there are pairs
PROFILED = 10  # iterations by the device's clock


def best(queue: Queue, work: Callable[[], None], count: int) -> tuple[float, float]:
    """Return microseconds per repeat of `count`, and of the host: the best of some rounds."""
    found = []
    for _ in range(ROUNDS):
        queue.finish()
        begin = time.perf_counter()
        for _ in range(count):
            work()
        host = time.perf_counter() - begin
        queue.finish()
        found.append((time.perf_counter() - begin, host))
    whole, host = map(min, zip(*found, strict=True))
    return 1e6 * whole / count, 1e6 * host / count


def show(name: str, options: argparse.Namespace) -> None:
    """Print the lines of a structure."""
    atoms = read(shipped("data") / "structures" / SYSTEMS[name])
    start = np.asarray(starts_of(atoms, 0.1, 1))
    plan = minimizer_of(atoms, "lbfgs", 0.0, "float32", options.device)
    (recipe, driver), queue = plan._prepared(plan.energy, True), Queue(plan.energy.device, "float32", profile=False)
    jobs, _ = recipe.jobs([0], start)
    driver.make_room(jobs)
    driver._bring(jobs)
    seats = driver._seats_for(jobs[0])
    driver._seat(seats, jobs)
    seats.iterate(FIRST)
    print(f"{name}, {len(atoms)} atoms, {plan.energy.variant} on {plan.energy.device}")
    evaluation = best(queue, lambda: seats.evaluate(0, 1), options.count)
    iteration = best(queue, lambda: seats.iterate(1), options.count)
    for label, (whole, host) in {"evaluation": evaluation, "iteration": iteration}.items():
        print(f"  {label:20s} {whole:8.1f} us, of the host {host:6.1f} us")
    print(f"  in evaluations       {iteration[0] / evaluation[0]:8.2f}", flush=True)
    timed = queue.new_queue(True)
    queue.finish()
    for k in range(PROFILED):
        timed.launch_bound(seats.both[(seats.count + k) % 2], 1)
    timed.finish()
    for k, kept in enumerate(seats.both[0]):
        own = timed.events[k :: len(seats.both[0])]
        print(f"    {kept.kernel.name:18s} {1e6 * np.median([seconds_of(event) for event in own]):8.2f} us")


def main() -> None:
    """Read the options and print the lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--systems", default="ubiquitin,src3,ruvab", type=lambda text: text.split(","))
    parser.add_argument("--count", default=200, type=int)
    parser.add_argument("--device")
    options = parser.parse_args()
    for name in options.systems:
        show(name, options)


if __name__ == "__main__":
    main()
