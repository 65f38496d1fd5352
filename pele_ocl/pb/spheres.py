"""Lists of spheres near blocks of nodes, built on the device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..grid import Grid
from .cells import Cells, Spheres
from .launching import BLOCK, Launching
from .scan import add_up

if TYPE_CHECKING:
    from ..opencl.memory import Buffer
    from .probes import Probes


@dataclass(frozen=True, eq=False)
class SpheresOfBlocks:
    """Spheres near each block b: members[starts[b]:starts[b + 1]].

    The blocks of a row follow those of the previous row.
    """

    starts: Buffer
    members: Buffer
    spheres: Buffer

    @classmethod
    def of(
        cls, launching: Launching, grids: Sequence[Grid], rows: Sequence[Spheres], reach: float = 0.0,
        cells: Cells | None = None, in_order: bool = False,
    ) -> SpheresOfBlocks:  # fmt: skip
        """List the spheres that touch a block of nodes or the edges from it.

        grids : for each row, which differ only in their origins; rows : spheres of each row
        reach : distance added to the radii, A
        cells : existing cell lists of these spheres, if any
        in_order : whether to list the spheres of a block in the given order, else by cell
        """
        if not any(len(radii) for _, radii in rows):
            return cls.none(launching, grids)
        cells, blocks = cells or Cells.of(launching, rows), _blocks(launching, grids)
        common = {"n_rows": len(grids), **blocks, "reach": reach + _slack(launching), **cells.arguments}
        further, n_blocks = {"in_order": int(in_order)}, len(grids) * blocks["n_blocks"]
        starts, listed = _listed(launching, "spheres", n_blocks, n_blocks, common, further)
        return cls(starts, listed, cells.spheres)

    @classmethod
    def of_probes(
        cls, launching: Launching, grids: Sequence[Grid], probes: Probes, atoms: SpheresOfBlocks
    ) -> SpheresOfBlocks:  # fmt: skip
        """List the probes that touch a block of nodes or the edges from it, for blocks touched by an atom."""
        if not probes.count:
            return cls.none(launching, grids)
        blocks = _blocks(launching, grids)
        n_blocks = len(grids) * blocks.pop("n_blocks")
        common = {
            "n_probes": probes.count, **blocks, "far": probes.radius + _slack(launching), "atom_starts": atoms.starts,
            "probes": probes.centres, "rows_of_probes": probes.rows,
        }  # fmt: skip
        return cls(*_listed(launching, "probes", n_blocks, probes.count, common, {}), probes.centres)

    @classmethod
    def none(cls, launching: Launching, grids: Sequence[Grid]) -> SpheresOfBlocks:
        """Return empty lists."""
        queue = launching.queue
        starts = queue.zeros(len(grids) * _blocks(launching, grids)["n_blocks"] + 1, np.int32)
        return cls(starts, queue.zeros(1, np.int32), launching.vectors(np.zeros((1, 4))))

    def arguments(self, name: str) -> dict[str, Any]:
        """Return kernel arguments for these lists; `name`, "atom" or "probe", is the prefix of their names."""
        return {f"{name}_starts": self.starts, f"{name}_members": self.members, f"{name}_spheres": self.spheres}


def _slack(launching: Launching) -> float:
    """Return a tolerance, A, so that rounding does not exclude spheres that touch a block."""
    return 1e-6 if launching.queue.device.has_float64 else 1e-3


def _blocks(launching: Launching, grids: Sequence[Grid]) -> dict[str, Any]:
    """Return arguments for kernels over the blocks of grids; n_blocks : per grid"""
    blocks = [-(-n // BLOCK) for n in grids[0].shape]
    return {
        "n_blocks": int(np.prod(blocks)), "blocks": launching.queue.int4(*blocks), **place_of(launching, grids)
    }  # fmt: skip


def place_of(launching: Launching, grids: Sequence[Grid]) -> dict[str, Any]:
    """Return the arguments `origins`, for each grid, and `spacing`, common to all."""
    origins = launching.shared(
        ("origins", *(tuple(grid.origin.tolist()) for grid in grids)),
        lambda: launching.vectors([grid.origin for grid in grids]),
    )
    return {"origins": origins, "spacing": launching.vector(grids[0].spacing)}


def _listed(
    launching: Launching, what: str, n_blocks: int, n_items: int, common: dict[str, Any], further: dict[str, Any]
) -> tuple[Buffer, Buffer]:
    """Build the lists of all blocks: count, prefix sum, write. Returns starts and members.

    what : "spheres" or "probes"; n_items : work-items; further : arguments for writing only
    """
    queue, counts = launching.queue, launching.queue.zeros(n_blocks, np.int32)

    def over(kernel: str, **values: Any) -> Callable[[], None]:
        return launching.over_list("pb/near.cl", f"{kernel}_{what}", n_items, {}, **common, **values)

    over("count", counts=counts)()
    starts, length = add_up(launching, counts, n_blocks, f"{what} near nodes")
    listed = queue.empty(max(1, length), np.int32)
    over("list", list_starts=starts, listed=listed, **further, **({"counts": counts} if what == "probes" else {}))()
    return starts, listed
