"""Host time of a kernel launch by number of buffers, and the minimum time of a call.

python tests/benchmarks/launches.py [DEVICE] launches an empty kernel many times in a queue without profiling.
The minimum time of a call includes the transfer of positions of n atoms to the device, launches of an empty kernel, and
the transfer of results of n atoms back, in consecutive calls. It is measured for three methods of transfer: through
host memory accessed by the device, as used by plans; from and to NumPy arrays; and without explicit copies, in mapped
memory used by kernel and host in turn.
"""

from __future__ import annotations

import sys

import numpy as np
import pyopencl as cl

from pele_ocl.bench.timing import wall_seconds_of_many
from pele_ocl.opencl import Device, Queue, get_device

BUFFERS = (1, 5, 10, 20, 30)
ATOMS = (1_231, 4_427, 30_211)
LAUNCHES = (1, 3, 5, 7)
SHAPE, GROUP = (2560, 1, 1), (32, 1, 1)


def seconds_a_launch(device: Device, n_buffers: int) -> float:
    """Time a kernel whose buffers are read only in a branch that is never taken."""
    (kernel, _kept), queue = empty_kernel(device, n_buffers), device.plain_queue

    def launch(count: int) -> None:
        for _ in range(count):
            cl.enqueue_nd_range_kernel(queue, kernel, SHAPE, GROUP)
        queue.finish()

    launch(10)
    return wall_seconds_of_many(launch)


def seconds_a_call(device: Device, n_atoms: int, n_launches: int, staged: bool = True) -> float:
    """Time transfers of positions (n, 3) float64 and results (n, 4) float32, with launches of ten buffers each."""
    (kernel, _kept), queue = empty_kernel(device, 10), Queue(device, "float32", profile=False)
    positions, results = np.zeros(3 * n_atoms), np.zeros(4 * n_atoms, np.float32)
    if staged:
        positions, results = queue.host_array(positions.shape, np.float64), queue.host_array(results.shape)
    inputs, outputs = queue.empty(3 * n_atoms, np.float64), queue.empty(4 * n_atoms)

    def call(count: int) -> None:
        for _ in range(count):
            written = queue.start_write(inputs, positions)
            for _ in range(n_launches):
                cl.enqueue_nd_range_kernel(queue.command_queue, kernel, SHAPE, GROUP)
            queue.wait(queue.start_read(results, outputs))
            del written

    call(10)
    return wall_seconds_of_many(call)


def seconds_a_mapped_call(device: Device, n_atoms: int) -> float:
    """Time a call with one launch, in host memory mapped for the kernel."""
    (kernel, _kept), queue, both = empty_kernel(device, 10), device.plain_queue, cl.mem_flags.READ_WRITE
    inputs = cl.Buffer(device.context, both | cl.mem_flags.ALLOC_HOST_PTR, 24 * n_atoms)
    outputs = cl.Buffer(device.context, both | cl.mem_flags.ALLOC_HOST_PTR, 16 * n_atoms)
    for k, buffer in enumerate((inputs, outputs)):
        kernel.set_arg(k, buffer)

    def call(count: int) -> None:
        write, read = cl.map_flags.WRITE_INVALIDATE_REGION, cl.map_flags.READ
        for _ in range(count):
            positions, _ = cl.enqueue_map_buffer(queue, inputs, write, 0, (3 * n_atoms,), np.float64)
            positions.base.release(queue)
            cl.enqueue_nd_range_kernel(queue, kernel, SHAPE, GROUP)
            results, _ = cl.enqueue_map_buffer(queue, outputs, read, 0, (4 * n_atoms,), np.float32)
            results.base.release(queue)
        queue.finish()

    call(10)
    return wall_seconds_of_many(call)


def empty_kernel(device: Device, n_buffers: int) -> tuple[cl.Kernel, list[cl.Buffer]]:
    """Return a kernel with its arguments set, and the buffers, which must be kept alive."""
    names = [f"b{k}" for k in range(n_buffers)]
    arguments = ", ".join(f"global float *{name}" for name in names)
    total = " + ".join(f"{name}[1]" for name in names)
    source = f"kernel void empty({arguments}) {{ if (get_global_id(0) > {SHAPE[0]}) b0[0] = {total}; }}"
    kernel = cl.Kernel(cl.Program(device.context, source).build(), "empty")
    buffers = [cl.Buffer(device.context, cl.mem_flags.READ_WRITE, 1 << 16) for _ in names]
    kernel.set_args(*buffers)
    return kernel, buffers


if __name__ == "__main__":
    device = get_device(sys.argv[1] if len(sys.argv) > 1 else None)
    print(device)
    for n_buffers in BUFFERS:
        print(f"{n_buffers:3d} buffers: {1e6 * seconds_a_launch(device, n_buffers):5.1f} us per launch")
    for n_atoms in ATOMS:
        floors = ", ".join(f"{n}: {1e6 * seconds_a_call(device, n_atoms, n):.0f} us" for n in LAUNCHES)
        print(f"floor of a call, {n_atoms:6,d} atoms, by launches: {floors}")
        plain, mapped = seconds_a_call(device, n_atoms, 1, staged=False), seconds_a_mapped_call(device, n_atoms)
        print(f"  one launch from NumPy's own memory {1e6 * plain:.0f} us, in mapped memory {1e6 * mapped:.0f} us")
