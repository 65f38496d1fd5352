"""Time of energy and gradient on a CPU by number of cores, compared with peak arithmetic performance.

python tests/benchmarks/cores.py [--device pocl] [--cores 1,2,4,8,16] [--systems ubiquitin,src3]

prints, for each number of threads of PoCL, milliseconds of a call and how many times faster than one thread it is. The
first line of each is a kernel that only multiplies and adds independent vectors. Processors that share the units of a
core between two threads, as many cloud machines do, do not benefit from the second thread in this test, and no other
compute-bound kernel benefits more. Each number of threads is measured in a separate process.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle

import numpy as np
import pyopencl as cl

from pele_ocl import Energy
from pele_ocl.atoms import Floats
from pele_ocl.bench.systems import load
from pele_ocl.opencl import Device, get_device

ROUNDS = 30
GROUPS, CHAINS, STEPS = 512, 10, 20_000  # chains of dependent operations in a work-item, enough to hide their latency
ARITHMETIC = f"""kernel void arithmetic(global float *out) {{
    float16 sums[{CHAINS}];
    for (int k = 0; k < {CHAINS}; ++k) sums[k] = (float16)(get_global_id(0) + k);
    for (int step = 0; step < {STEPS}; ++step)
        #pragma unroll
        for (int k = 0; k < {CHAINS}; ++k) sums[k] = sums[k] * 0.999f + 0.1f;
    float16 sum = 0;
    for (int k = 0; k < {CHAINS}; ++k) sum += sums[k];
    out[get_global_id(0)] = sum.s0 + sum.s7 + sum.sf;
}}"""


def fastest(call: Callable[[], object]) -> float:
    """Return the time of the fastest of some calls in milliseconds, after two warm-up calls."""
    times = []
    for _ in range(ROUNDS + 2):
        start = time.perf_counter()
        call()
        times.append(1e3 * (time.perf_counter() - start))
    return min(times[2:])


def arithmetic(device: Device) -> Callable[[], object]:
    """Return a call of the arithmetic kernel."""
    queue = cl.CommandQueue(device.context)
    kernel = cl.Kernel(cl.Program(device.context, ARITHMETIC).build(["-cl-mad-enable"]), "arithmetic")
    out = cl.Buffer(device.context, cl.mem_flags.READ_WRITE, 4 * GROUPS)

    def call() -> None:
        kernel.set_args(out)
        cl.enqueue_nd_range_kernel(queue, kernel, (GROUPS,), (1,)).wait()

    return call


def _call(plan: Energy, turns: Iterator[Floats]) -> None:
    plan.evaluate(next(turns))


def measured(device_name: str, systems: list[str]) -> dict[str, float]:
    """Return the milliseconds of each call in this process."""
    device = get_device(device_name)
    times = {"arithmetic": fastest(arithmetic(device))}
    for name in systems:
        atoms = load(name)
        plan, noise = Energy(atoms, device=device), np.random.default_rng(0).normal(0, 0.01, atoms.positions.shape)
        turns = cycle([atoms.positions, atoms.positions + noise])
        times[name] = fastest(partial(_call, plan, turns))
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="pocl")
    parser.add_argument("--cores", default="1,2,4,8,16")
    parser.add_argument("--systems", default="ubiquitin,src3")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.here:
        print(json.dumps(measured(given.device, given.systems.split(","))))
        return
    alone: dict[str, float] = {}
    for cores in map(int, given.cores.split(",")):
        done = subprocess.run(
            [sys.executable, __file__, "--here", "--device", given.device, "--systems", given.systems],
            env=os.environ | {"POCL_MAX_PTHREAD_COUNT": str(cores)}, check=True, capture_output=True, text=True,
        )  # fmt: skip
        times = json.loads(done.stdout.splitlines()[-1])
        alone = alone or times
        for name, milliseconds in times.items():
            print(
                f"{cores:3d} threads  {name:10s} {milliseconds:8.3f} ms  {alone[name] / milliseconds:5.2f}x", flush=True
            )


if __name__ == "__main__":
    main()
