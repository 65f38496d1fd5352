"""Map with KeOps: sums of a formula over all pairs, compiled for the CPU or a GPU."""

from __future__ import annotations

import time
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from timing_tables.installed import load

from pele_ocl.atoms import Atoms
from pele_ocl.grid import Grid

from .peer import Array, MapPeer, points_of, relative_arrays, version_of

if TYPE_CHECKING:
    from torch import Tensor


def potmap(atoms: Atoms, precision: str, gpu: bool) -> MapPeer:
    """Sum q / |x - y| over atoms: on a GPU with PyTorch tensors, which stay there; else with NumPy arrays."""
    keops = load("pykeops")
    keops.set_verbose(False)  # it would write into the table
    torch = load("torch") if gpu else None
    if torch is not None and torch.cuda.is_available():
        from pykeops.torch import Genred

        where = torch.cuda.get_device_name()

        def put(array: Array) -> Tensor:
            return torch.from_numpy(array).cuda()

        def fetched(values: Tensor) -> Array:
            found: Array = values.cpu().numpy()
            return found

        def wait() -> None:
            torch.cuda.synchronize()
    else:
        from pykeops.numpy import Genred

        where = "CPU"

        def put(array: Array) -> Tensor:
            return np.ascontiguousarray(array)

        def fetched(values: Tensor) -> Array:
            found: Array = values
            return found

        def wait() -> None:
            pass

    formula = Genred("q * Rsqrt(SqDist(x, y))", ["x = Vi(3)", "y = Vj(3)", "q = Vj(1)"], reduction_op="Sum", axis=1)

    @lru_cache(maxsize=1)
    def placed(grid: Grid) -> list[Tensor]:
        positions, charges, axes = relative_arrays(atoms, grid, precision)
        return [put(array) for array in (points_of(axes), positions, charges[:, None])]

    def once(grid: Grid) -> tuple[float, Array]:
        arrays = placed(grid)
        wait()
        start = time.perf_counter()
        values = formula(*arrays, backend="auto")
        wait()
        return time.perf_counter() - start, fetched(values).reshape(grid.shape[::-1])

    return MapPeer(version_of("pykeops"), where, once)
