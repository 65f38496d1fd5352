"""Kernel times per molecule, in microseconds, if molecules share launches.

python tests/benchmarks/shared_launches.py [--count 30] [--residues 160,400] [--row 1 --parts 256] [--history 8]
    [--equal] [--device NAME]

The models are those of mixed.py. --row and --parts replace the default layout of `squares`; --history is the number of
pairs of steps stored by L-BFGS. With --equal, all have the topology of the middle one, and share launches like
conformations.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

import numpy as np
from mixed import models_of
from timing_tables.minimize import MODEL

from pele_ocl import Atoms, Energy
from pele_ocl.energy.layout import SquaresLayout
from pele_ocl.minimize import Minimizer
from pele_ocl.minimize.driver import LOOK, Driver, most_bytes
from pele_ocl.minimize.job import Recipe
from pele_ocl.minimize.lbfgs import Lbfgs
from pele_ocl.opencl import Queue, get_device
from pele_ocl.opencl.binding import BoundLaunch
from pele_ocl.units import KJ_PER_MOL_NM

REPEATS = 6


def show(queue: Queue, launches: Sequence[BoundLaunch], count: int) -> None:
    """Print microseconds of each launch per molecule, for `count` molecules."""
    for kept in launches:
        queue.finish()
        begin = time.perf_counter()
        for _ in range(REPEATS):
            queue.launch_bound([kept], count)
        queue.finish()
        taken = (time.perf_counter() - begin) / REPEATS / count
        print(f"  {kept.kernel.name:20s} {1e6 * taken:7.2f} us", flush=True)


def equal(atoms: Atoms, count: int, options: argparse.Namespace) -> None:
    """Time conformations of one molecule."""
    plan = Energy(atoms, model=MODEL, variant="squares", born="pairs", device=options.device)
    with plan._lent(count) as pipeline:
        print(f"{count} conformations of {len(atoms)} atoms")
        show(pipeline.passes.queue.new_queue(False), pipeline.passes.launches, count)


def different(models: Sequence[Atoms], options: argparse.Namespace) -> None:
    """Time molecules of different topologies."""
    with ExitStack() as stack:
        device = get_device(options.device)
        queues = [stack.enter_context(Queue(device, "float32", profile=False).independent_queue()) for _ in range(2)]
        driver = Driver(*queues)
        driver.reset(most_bytes(device))
        begin = time.perf_counter()
        plans = [Minimizer(atoms, tolerance=KJ_PER_MOL_NM, model=MODEL, device=options.device) for atoms in models]
        recipes = [Recipe.of(plan.protocol, plan.energy) for plan in plans]
        preparation = (time.perf_counter() - begin) / len(models)
        jobs = [job for k, recipe in enumerate(recipes) for job in recipe.jobs([k], models[k].positions[None])[0]]
        turns = driver.minimized(iter([jobs]))
        for _ in range(3):
            begin = time.perf_counter()
            next(turns)
        evaluation = (time.perf_counter() - begin) / LOOK / driver.n_seated
        print(
            f"{driver.n_seated} models, {np.mean([len(of) for of in models]):.0f} atoms on average: prepared in "
            f"{1e3 * preparation:.1f} ms each; an iteration {1e6 * evaluation:.1f} us each"
        )
        for seats in driver._by_key.values():
            show(queues[0], list(dict.fromkeys([*seats.begin, *seats.both[0]])), len(seats.jobs))


def main() -> None:
    """Read the options and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", default=30, type=int)
    parser.add_argument("--residues", default=(160, 400), type=lambda text: tuple(map(int, text.split(","))))
    parser.add_argument("--row", type=int)
    parser.add_argument("--parts", default=256, type=int)
    parser.add_argument("--history", type=int)
    parser.add_argument("--equal", action="store_true")
    parser.add_argument("--device")
    options = parser.parse_args()
    if options.row:
        rule = SquaresLayout.of
        SquaresLayout.of = lambda machine, n: replace(rule(machine, n), row=options.row, most_parts=options.parts)
    if options.history:
        Lbfgs.history = options.history
    models = sorted(models_of(options.count, options.residues, 0.1), key=len, reverse=True)
    if options.equal:
        equal(models[len(models) // 2], options.count, options)
    else:
        different(models, options)


if __name__ == "__main__":
    main()
