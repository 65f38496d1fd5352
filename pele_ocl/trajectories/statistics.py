"""Running mean, standard deviation, minimum and maximum of energies."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from .streaming import FrameResults


class Statistics:
    """Running statistics of floating-point columns over successful frames.

    n : number of successful frames; n_failed : number of failed frames
    """

    def __init__(self) -> None:
        self.n = self.n_failed = 0
        self._names: tuple[str, ...] = ()
        self._mean = self._squares = self._lowest = self._highest = np.zeros(0)

    def add(self, results: FrameResults) -> None:
        """Add frames."""
        energies = {name: column for name, column in results.columns.items() if column.dtype.kind == "f"}
        table = np.stack([np.asarray(column, np.float64) for column in energies.values()])
        good = table[:, np.isfinite(table).all(axis=0)]
        self.n_failed += table.shape[1] - good.shape[1]
        if not self._names:
            self._names = tuple(energies)
            self._mean = np.zeros(len(table))
            self._squares = np.zeros(len(table))
            self._lowest, self._highest = np.full(len(table), np.inf), np.full(len(table), -np.inf)
        if not good.size:
            return
        # Update by Chan, Golub and LeVeque 1979 for the mean and sum of squares of combined samples.
        m, mean = good.shape[1], good.mean(axis=1)
        away = mean - self._mean
        self._squares = (
            self._squares + ((good - mean[:, np.newaxis]) ** 2).sum(axis=1) + away**2 * (self.n * m / (self.n + m))
        )
        self._mean = self._mean + away * (m / (self.n + m))
        self._lowest = np.minimum(self._lowest, good.min(axis=1))
        self._highest = np.maximum(self._highest, good.max(axis=1))
        self.n += m

    def columns(self) -> Mapping[str, Mapping[str, float]]:
        """Return "mean", "sd" (population), "min" and "max" of each column; empty without successful frames."""
        if not self.n:
            return {}
        deviation: NDArray[np.float64] = np.sqrt(self._squares / self.n)
        rows = zip(self._names, self._mean, deviation, self._lowest, self._highest, strict=True)
        return {
            name: {"mean": float(mean), "sd": float(sd), "min": float(low), "max": float(high)}
            for name, mean, sd, low, high in rows
        }
