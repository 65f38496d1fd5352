"""The time that a launch costs the host, by the number of buffers that the kernel is given.

python docs/performance/launches.py [DEVICE] launches an empty kernel many times over into a queue that takes no times.
"""

from __future__ import annotations

import sys

import pyopencl as cl

from pele_ocl.bench.timing import wall_seconds_of_many
from pele_ocl.opencl.device import Device, get_device

BUFFERS = (1, 5, 10, 20, 30)
SHAPE, GROUP = (2560, 1, 1), (32, 1, 1)


def seconds_a_launch(device: Device, n_buffers: int) -> float:
    """Of a kernel that reads all of its buffers, in a branch that no work-item takes."""
    names = [f"b{k}" for k in range(n_buffers)]
    arguments = ", ".join(f"global float *{name}" for name in names)
    total = " + ".join(f"{name}[1]" for name in names)
    source = f"kernel void empty({arguments}) {{ if (get_global_id(0) > {SHAPE[0]}) b0[0] = {total}; }}"
    kernel = cl.Kernel(cl.Program(device.context, source).build(), "empty")
    buffers = [cl.Buffer(device.context, cl.mem_flags.READ_WRITE, 1 << 16) for _ in names]
    kernel.set_args(*buffers)
    queue = device.plain_queue

    def launch(count: int) -> None:
        for _ in range(count):
            cl.enqueue_nd_range_kernel(queue, kernel, SHAPE, GROUP)
        queue.finish()

    launch(10)
    return wall_seconds_of_many(launch)


if __name__ == "__main__":
    device = get_device(sys.argv[1] if len(sys.argv) > 1 else None)
    print(device)
    for n_buffers in BUFFERS:
        print(f"{n_buffers:3d} buffers: {1e6 * seconds_a_launch(device, n_buffers):5.1f} us a launch")
