"""Peak rate of reciprocal square roots of a device, compared with the rate in a potential map.

python tests/benchmarks/ceiling.py DEVICE [POINTS [ATOMS]] times a kernel with only reciprocal square roots and, in the
same run, the map of POINTS^3 points (256) and ATOMS atoms (16,384) in float32, one root for each point and atom.
"""

from __future__ import annotations

import sys

import numpy as np
import pyopencl as cl

from pele_ocl import potmap
from pele_ocl.bench.potmap import random_system
from pele_ocl.bench.timing import mean_of_middle
from pele_ocl.common.installation import shipped
from pele_ocl.opencl import Device, get_device

ITEMS, ROUNDS, CHAINS = {"GPU": 1 << 20}, 8192, 8
ITEMS_ELSEWHERE = 1 << 10
RUNS = 5

# Independent chains hide the latency of a root. Each work-item has numbers of its own, and what they come to is
# written, so that no root is left out.
SOURCE = """
kernel void roots(global real *out, const real start, const int rounds) {
    realv x[CHAINS];
    for (int k = 0; k < CHAINS; ++k) x[k] = start + (real)k + (real)1e-6 * (real)get_global_id(0);
    for (int round = 0; round < rounds; ++round) {
        #pragma unroll
        for (int k = 0; k < CHAINS; ++k) x[k] = inverse_sqrt(x[k]);
    }
    realv sum = 0;
    for (int k = 0; k < CHAINS; ++k) sum += x[k];
    out[get_global_id(0)] = lane_sum(sum);
}
"""


def roots_a_second(device: Device) -> float:
    """Measure the rate of inverse_sqrt of cl/common/real.clh in float32."""
    width = device.vector_width("float32")
    options = [
        "-cl-std=CL1.2", "-cl-mad-enable", "-cl-denorms-are-zero", "-DREAL_BITS=32", f"-DWIDTH={width}",
        f"-DVENDOR_{device.vendor}=1", f"-DCHAINS={CHAINS}",
    ]  # fmt: skip
    source = (shipped("cl") / "common/real.clh").read_text() + SOURCE
    kernel = cl.Kernel(cl.Program(device.context, source).build(options), "roots")
    items = ITEMS.get(device.kind, ITEMS_ELSEWHERE)
    out = cl.Buffer(device.context, cl.mem_flags.WRITE_ONLY, 4 * items)

    def seconds() -> float:
        event = kernel(device.queue, (items,), None, out, np.float32(1.5), np.int32(ROUNDS))
        event.wait()
        return float(event.profile.end - event.profile.start) * 1e-9

    seconds()
    return width * items * ROUNDS * CHAINS / mean_of_middle(seconds, RUNS)


def evaluations_a_second(device: Device, points: int, n_atoms: int) -> float:
    """Measure the rate of the map that `auto` selects."""
    atoms, grid = random_system(points, n_atoms)
    potmap(atoms, grid, device=device)
    return len(grid) * n_atoms / mean_of_middle(lambda: potmap(atoms, grid, device=device).seconds["kernel"], RUNS)


if __name__ == "__main__":
    device = get_device(sys.argv[1] if len(sys.argv) > 1 else None)
    points, n_atoms = (int(size) for size in (*sys.argv[2:4], *(256, 16384)[len(sys.argv[2:4]) :]))
    # The map comes first, and long enough that a device has got to its clock when the roots' turn comes.
    evaluations, roots = evaluations_a_second(device, points, n_atoms), roots_a_second(device)
    print(
        f"{device}: {roots / 1e9:,.1f} billion roots per second; {evaluations / 1e9:,.1f} billion evaluations, "
        f"{evaluations / roots:.3f} of that, in a map of {points}^3 points and {n_atoms:,} atoms"
    )
