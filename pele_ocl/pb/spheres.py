"""Lists of the spheres near each block of nodes, made on the device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..common.errors import InputError
from ..grid import Grid
from .cells import Cells, Spheres
from .launching import BLOCK, Launching
from .scan import add_up

if TYPE_CHECKING:
    from ..opencl.memory import Buffer
    from .probes import Probes

MOST_LISTED = 2**31 - 1


@dataclass(frozen=True, eq=False)
class SpheresOfBlocks:
    """Spheres of each block: members[starts[b]:starts[b + 1]]. Spheres that touch none are left out.

    The blocks of a row follow those of the row before.
    """

    starts: Buffer
    members: Buffer
    spheres: Buffer

    @classmethod
    def of(
        cls, launching: Launching, grids: Sequence[Grid], rows: Sequence[Spheres], reach: float = 0.0,
        cells: Cells | None = None, in_order: bool = False,
    ) -> SpheresOfBlocks:  # fmt: skip
        """Spheres that touch a block of nodes or an edge that leads from it.

        grids : of each row, which differ only in their origins; rows : spheres of each
        reach : A, how much farther a sphere counts
        cells : of these spheres, if they are there already
        in_order : whether a block has its spheres in the order given, else by cells
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
        """Probes that touch a block of nodes or an edge that leads from it, if an atom does, too."""
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
        """Lists without a sphere."""
        queue = launching.queue
        starts = queue.zeros(len(grids) * _blocks(launching, grids)["n_blocks"] + 1, np.int32)
        return cls(starts, queue.zeros(1, np.int32), launching.vectors(np.zeros((1, 4))))

    def arguments(self, name: str) -> dict[str, Any]:
        """Arguments of a kernel for these lists. name : "atom" or "probe" """
        return {f"{name}_starts": self.starts, f"{name}_members": self.members, f"{name}_spheres": self.spheres}


def _slack(launching: Launching) -> float:
    """Distance, A, by which rounding may not leave out a sphere that touches a block."""
    return 1e-6 if launching.queue.device.has_float64 else 1e-3


def _blocks(launching: Launching, grids: Sequence[Grid]) -> dict[str, Any]:
    """Arguments of a kernel over the blocks of grids; n_blocks : of each."""
    blocks = [-(-n // BLOCK) for n in grids[0].shape]
    return {
        "n_blocks": int(np.prod(blocks)), "blocks": launching.queue.int4(*blocks), **place_of(launching, grids)
    }  # fmt: skip


def place_of(launching: Launching, grids: Sequence[Grid]) -> dict[str, Any]:
    """Arguments `origins`, of each grid, and `spacing`, of all."""
    origins = launching.shared(
        ("origins", *(tuple(grid.origin.tolist()) for grid in grids)),
        lambda: launching.vectors([grid.origin for grid in grids]),
    )
    return {"origins": origins, "spacing": launching.vector(grids[0].spacing)}


def _listed(
    launching: Launching, what: str, n_blocks: int, n_items: int, common: dict[str, Any], further: dict[str, Any]
) -> tuple[Buffer, Buffer]:
    """Starts and members of the lists of all blocks: counted, summed, and written.

    what : "spheres" or "probes"; n_items : work-items; further : arguments for writing alone
    """
    queue, counts = launching.queue, launching.queue.zeros(n_blocks, np.int32)

    def over(kernel: str, **values: Any) -> Callable[[], None]:
        return launching.over_list("pb/near.cl", f"{kernel}_{what}", n_items, {}, **common, **values)

    over("count", counts=counts)()
    starts, length = add_up(launching, counts, n_blocks)
    if length > MOST_LISTED:
        raise InputError(f"{what} near nodes are too many; choose a larger spacing or a smaller density of the surface")
    listed = queue.empty(max(1, length), np.int32)
    over("list", list_starts=starts, listed=listed, **further, **({"counts": counts} if what == "probes" else {}))()
    return starts, listed
