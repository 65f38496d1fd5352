"""Map with JAX: array operations compiled by XLA."""

from __future__ import annotations

import os
import time
from functools import lru_cache
from typing import TYPE_CHECKING

from timing_tables.installed import load

from pele_ocl.atoms import Atoms
from pele_ocl.grid import Grid

from .peer import Array, MapPeer, points_of, relative_arrays

if TYPE_CHECKING:
    from jax import Array as Tensor


def potmap(atoms: Atoms, precision: str, gpu: bool) -> MapPeer:
    """Compile the expression over all distances with jax.jit; XLA fuses it into a loop."""
    # By default JAX reserves most of a GPU's memory, which other codes in the comparison need.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    jax = load("jax")
    jax.config.update("jax_enable_x64", True)  # float32 stays float32; without it float64 would become that
    device = jax.devices()[0] if gpu else jax.devices("cpu")[0]

    def sums(points: Tensor, positions: Tensor, charges: Tensor) -> Tensor:
        dx, dy, dz = (points[:, d : d + 1] - positions[None, :, d] for d in range(3))
        return (charges * jax.lax.rsqrt(dx * dx + dy * dy + dz * dz)).sum(1)

    # Its autotuner compiles this sum in ways that take minutes; what it would choose is what there is without it.
    tuned = gpu and tuple(map(int, jax.__version__.split(".")[:2])) >= (0, 9)
    options = {"xla_gpu_experimental_enable_fusion_autotuner": False} if tuned else None
    potential = jax.jit(sums, compiler_options=options)

    @lru_cache(maxsize=1)
    def placed(grid: Grid) -> tuple[Tensor, Tensor, Tensor]:
        positions, charges, axes = relative_arrays(atoms, grid, precision)
        arrays: tuple[Tensor, Tensor, Tensor] = jax.device_put((points_of(axes), positions, charges), device)
        jax.block_until_ready(arrays)
        return arrays

    def once(grid: Grid) -> tuple[float, Array]:
        arrays = placed(grid)
        start = time.perf_counter()
        values = potential(*arrays).block_until_ready()
        return time.perf_counter() - start, jax.device_get(values).reshape(grid.shape[::-1])

    where = f"CPU, {os.cpu_count()} cores" if device.platform == "cpu" else str(device.device_kind)
    return MapPeer(jax.__version__, where, once)
