"""Map with a hand-written CUDA C++ kernel, the last one of the textbooks: eight points per thread."""

from __future__ import annotations

import time
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from timing_tables.installed import AbsentError, load

from pele_ocl.atoms import Atoms
from pele_ocl.grid import Grid

from .peer import Array, MapPeer, relative_arrays

if TYPE_CHECKING:
    from cupy import ndarray

COLUMNS, ROWS, POINTS = 32, 4, 8
SOURCE = """
// A thread owns POINTS points of a row, COLUMNS apart, so that neighbours write neighbouring words. All threads of a
// block bring a tile of atoms into shared memory, and all read it.
extern "C" __global__ void potential(
    const REAL4 *__restrict__ atoms, int n_tiles, const REAL *__restrict__ x, const REAL *__restrict__ y,
    const REAL *__restrict__ z, int nx, int ny, REAL *__restrict__ values)
{
    __shared__ REAL4 tile[TILE];
    const int first = blockIdx.x * COLUMNS * POINTS + threadIdx.x;
    const int row = blockIdx.y * ROWS + threadIdx.y;
    const int here = threadIdx.y * COLUMNS + threadIdx.x;
    const REAL y0 = y[row < ny ? row : 0], z0 = z[blockIdx.z];
    REAL at[POINTS], sum[POINTS];
    for (int p = 0; p < POINTS; p++) {
        const int i = first + p * COLUMNS;
        at[p] = x[i < nx ? i : 0];
        sum[p] = 0;
    }
    for (int t = 0; t < n_tiles; t++) {
        __syncthreads();
        tile[here] = atoms[t * TILE + here];
        __syncthreads();
        for (int a = 0; a < TILE; a++) {
            const REAL4 atom = tile[a];
            const REAL dy = y0 - atom.y, dz = z0 - atom.z;
            const REAL dyz2 = dy * dy + dz * dz;
            #pragma unroll
            for (int p = 0; p < POINTS; p++) {
                const REAL dx = at[p] - atom.x;
                sum[p] += atom.w * RSQRT(dx * dx + dyz2);
            }
        }
    }
    for (int p = 0; p < POINTS; p++) {
        const int i = first + p * COLUMNS;
        if (i < nx && row < ny)
            values[((size_t)blockIdx.z * ny + row) * nx + i] = sum[p];
    }
}
"""
MACROS = {
    "float32": ("-DREAL=float", "-DREAL4=float4", "-DRSQRT=rsqrtf"),
    "float64": ("-DREAL=double", "-DREAL4=double4", "-DRSQRT=rsqrt"),
}


def potmap(atoms: Atoms, precision: str, gpu: bool) -> MapPeer:
    """Return the map peer that runs the kernel above with CuPy, with CUDA's fast math."""
    if not gpu:
        raise AbsentError("CUDA is for GPUs")
    cupy = load("cupy")
    if not cupy.cuda.is_available():
        raise AbsentError("no CUDA device")
    tile = COLUMNS * ROWS
    sizes = tuple(f"-D{k}={v}" for k, v in {"COLUMNS": COLUMNS, "ROWS": ROWS, "POINTS": POINTS, "TILE": tile}.items())
    kernel = cupy.RawKernel(SOURCE, "potential", options=("--use_fast_math", *sizes, *MACROS[precision]))
    n_tiles = -(-len(atoms) // tile)

    @lru_cache(maxsize=1)
    def placed(grid: Grid) -> tuple[ndarray, list[ndarray]]:
        """Return a buffer of values, and atoms with axes; the last tile is padded with distant uncharged atoms."""
        positions, charges, axes = relative_arrays(atoms, grid, precision)
        padded = np.full((n_tiles * tile, 4), 1e4, precision)
        padded[:, 3] = 0
        padded[: len(atoms), :3], padded[: len(atoms), 3] = positions, charges
        return cupy.empty(grid.shape[::-1], precision), [cupy.asarray(array) for array in (padded, *axes)]

    def once(grid: Grid) -> tuple[float, Array]:
        values, arrays = placed(grid)
        nx, ny, nz = grid.shape
        blocks = -(-nx // (COLUMNS * POINTS)), -(-ny // ROWS), nz
        cupy.cuda.Device().synchronize()
        start = time.perf_counter()
        kernel(blocks, (COLUMNS, ROWS), (arrays[0], np.int32(n_tiles), *arrays[1:], np.int32(nx), np.int32(ny), values))
        cupy.cuda.Device().synchronize()
        return time.perf_counter() - start, cupy.asnumpy(values)

    name = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)["name"].decode()
    return MapPeer(cupy.__version__, name, once)
