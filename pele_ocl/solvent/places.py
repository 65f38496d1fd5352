"""A molecule's tiles on a device: what stays is there once, what moves is written for each conformation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats
from ..tiled.series import series_coefficients
from ..tiles import Tiles

if TYPE_CHECKING:
    from ..opencl.kernels import Run


class Moving:
    """An array that kernels read, of which some columns change."""

    def __init__(self, run: Run, values: NDArray[Any]) -> None:
        self.values = np.ascontiguousarray(values, run.dtype)
        self.buffer = run.empty(self.values.size)

    def write(self, run: Run, columns: Floats) -> None:
        """Replace the first columns, (n_columns, n), and bring all to the device."""
        for k, column in enumerate(columns):
            self.values[:, k] = column
        run.write(self.buffer, self.values)


class Places:
    """Buffers of spheres and charges by place; unused places hold spheres of no radius.

    scaled, rho, radii : (n_places,) A
    columns : (READY_TERMS, n_places) coefficients of the HCT series
    counts : (n_tiles,)
    spheres, points : (n_places, 4) x, y, z from the tile's origin, and scaled radius or charge
    series : (n_places, 8) x^2 + y^2 + z^2 and the coefficients
    axes : x, y and z, (n_places,) each
    origins, extents : (n_tiles, 4) of the boxes; the origins with the largest scaled radius
    """

    def __init__(self, run: Run, tiles: Tiles, charges: Floats, radii: Floats, rho: Floats, scaled: Floats) -> None:
        """charges, radii, rho, scaled : (n,) in the order of the atoms"""
        n, n_tiles = tiles.n_places, len(tiles)
        by_place = np.where(tiles.used, scaled[tiles.order], 0.0)
        coefficients = series_coefficients(by_place)
        self.scaled, self.columns = run.upload(by_place), run.upload(coefficients)
        self.rho, self.radii = run.upload(rho[tiles.order]), run.upload(radii[tiles.order])
        self.counts = run.upload(tiles.counts, np.int32)
        nowhere = np.zeros((n, 3))
        self._spheres = Moving(run, np.column_stack([nowhere, scaled[tiles.order]]))
        self._points = Moving(run, np.column_stack([nowhere, charges[tiles.order]]))
        self._series = Moving(run, np.column_stack([nowhere[:, :1], coefficients.T]))
        self._origins = Moving(run, np.column_stack([np.zeros((n_tiles, 3)), tiles.largest(scaled)]))
        self._extents = Moving(run, np.zeros((n_tiles, 4)))
        self.spheres, self.points, self.series = self._spheres.buffer, self._points.buffer, self._series.buffer
        self.axes = tuple(run.empty(n) for _ in range(3))
        self.boxes = self._origins.buffer, self._extents.buffer, self.counts
        self._tiles: Tiles | None = None

    def move(self, run: Run, tiles: Tiles) -> None:
        """Write where the atoms are, unless they are there already."""
        if tiles is self._tiles:
            return
        offsets = tiles.offsets.T
        self._spheres.write(run, offsets)
        self._points.write(run, offsets)
        self._series.write(run, (offsets[0] ** 2 + offsets[1] ** 2 + offsets[2] ** 2)[None])
        self._origins.write(run, tiles.origins.T)
        # float32 must not round a box so that an atom stands outside.
        self._extents.write(run, tiles.extents.T * (1 + 1e-6))
        for buffer, axis in zip(self.axes, offsets.astype(run.dtype), strict=True):
            run.write(buffer, axis)
        self._tiles = tiles
