"""Map with PyTorch: array operations one by one, and compiled."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

from timing_tables.installed import AbsentError, load

from pele_ocl.atoms import Atoms
from pele_ocl.grid import Grid

from .peer import Array, MapPeer, points_of, relative_arrays

if TYPE_CHECKING:
    from torch import Tensor

Potential: TypeAlias = "Callable[[Tensor, Tensor, Tensor], Tensor]"  # of points, positions, charges

# Distances per eager operation: as many as fit into the cache of a CPU, and enough to keep a GPU busy.
DISTANCES = {"cpu": 1 << 18, "cuda": 1 << 24}


def eager(atoms: Atoms, precision: str, gpu: bool) -> MapPeer:
    """Compute distances of some points to all atoms at a time, limited by memory."""
    torch = load("torch")
    where = _where(torch, gpu)
    at_once = max(1, DISTANCES[where] // len(atoms))

    def potential(points: Tensor, positions: Tensor, charges: Tensor) -> Tensor:
        return torch.cat([_potential(torch, some, positions, charges) for some in torch.split(points, at_once)])

    return _peer(torch, where, atoms, precision, potential)


def compiled(atoms: Atoms, precision: str, gpu: bool) -> MapPeer:
    """Apply torch.compile to the same expression, which fuses it into a loop without storing distances."""
    torch = load("torch")
    if not hasattr(torch, "compile"):
        raise AbsentError(f"torch {torch.__version__} has no compile")

    def potential(points: Tensor, positions: Tensor, charges: Tensor) -> Tensor:
        return _potential(torch, points, positions, charges)

    by_shape: dict[tuple[int, ...], Potential] = {}

    def by_compiled(points: Tensor, positions: Tensor, charges: Tensor) -> Tensor:
        if points.shape not in by_shape:
            torch.compiler.reset()  # or the second shape makes it compile for all shapes, which is slower
            by_shape.clear()
            by_shape[points.shape] = torch.compile(potential, dynamic=False)
        return by_shape[points.shape](points, positions, charges)

    return _peer(torch, _where(torch, gpu), atoms, precision, by_compiled)


def _where(torch: ModuleType, gpu: bool) -> str:
    return "cuda" if gpu and torch.cuda.is_available() else "cpu"


def _potential(torch: ModuleType, points: Tensor, positions: Tensor, charges: Tensor) -> Tensor:
    dx, dy, dz = (points[:, d : d + 1] - positions[None, :, d] for d in range(3))
    return (charges * torch.rsqrt(dx * dx + dy * dy + dz * dz)).sum(1)


def _peer(torch: ModuleType, where: str, atoms: Atoms, precision: str, potential: Potential) -> MapPeer:
    def synchronize() -> None:
        if where == "cuda":
            torch.cuda.synchronize()

    @lru_cache(maxsize=1)
    def placed(grid: Grid) -> list[Tensor]:
        positions, charges, axes = relative_arrays(atoms, grid, precision)
        return [torch.from_numpy(array).to(where) for array in (points_of(axes), positions, charges)]

    def once(grid: Grid) -> tuple[float, Array]:
        arrays = placed(grid)
        synchronize()
        start = time.perf_counter()
        values = potential(*arrays)
        synchronize()
        return time.perf_counter() - start, values.cpu().numpy().reshape(grid.shape[::-1])

    name = torch.cuda.get_device_name() if where == "cuda" else f"CPU, {torch.get_num_threads()} threads"
    return MapPeer(torch.__version__, name, once)
