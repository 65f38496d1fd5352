"""Blocking of a map's points for `blocked` and `cutoff`, which depends on the device and the map."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from ..common.variant import Machine, Settings

# Work-group shapes along x, y and z of equal speed on GPUs; the first is used if all fit the map.
GPU_GROUPS = ((8, 8, 2), (4, 8, 4), (4, 16, 2), (2, 8, 8))
# Smaller groups for NVIDIA GPUs, where work-items process large blocks if a map has enough points for several groups
# per multiprocessor.
SMALL_GROUPS = ((8, 8, 1), (4, 8, 2), (2, 8, 4), (4, 4, 4))
MANY_POINTS = 1 << 21
FEW_POINTS = 1 << 19  # below this, small blocks use a GPU better
# On CPUs, computing dy^2 + dz^2 once per row costs as much as this many points (measured).
ROW_POINTS = 5
MOST_ROW_POINTS = 64


@dataclass(frozen=True)
class Blocking:
    """Division of a map's points into blocks for work-items and groups.

    width : reals per vector
    points : (vectors along x, slices along z) per work-item
    group : work-items along x, y and z
    soft : number of square roots per block that are computed without the special-function unit
    unroll : atoms per iteration of the loop over a run
    """

    width: int
    points: tuple[int, int]
    group: tuple[int, int, int]
    soft: int = 0
    unroll: int = 1

    @classmethod
    def of(
        cls, kind: str, vendor: str, width: int, precision: str, bare: bool, shape: tuple[int, int, int]
    ) -> Blocking:
        """Choose the blocking for a kind and vendor of device, with vectors of `width` reals.

        bare : whether only the plain Coulomb potential is needed; other potentials need more registers
        shape : (nx, ny, nz) of the map; padding is minimized
        """
        if kind == "CPU":
            if not bare:
                return cls(width, (1, 4), (1, 1, 1))
            choices = [v for v in (8, 4, 2, 1) if v * width <= MOST_ROW_POINTS or v == 1]
            vectors = min(choices, key=lambda v: -(-shape[0] // (v * width)) * (v * width + ROW_POINTS))
            slices = min((16, 8), key=lambda n: -(-shape[2] // n) * n)
            return cls(width, (vectors, slices), (1, 1, 1))
        points, soft, unroll, groups = (4, 2), 0, 1, GPU_GROUPS
        n_points = math.prod(shape)
        if bare and precision == "float32":
            points, unroll = (4, 2) if n_points < FEW_POINTS else (8, 4), 4
            if vendor == "NVIDIA" and n_points >= FEW_POINTS:
                points, soft = ((16, 4), 16) if n_points >= MANY_POINTS else ((8, 4), 8)
                unroll, groups = 1, SMALL_GROUPS
        blockings = [cls(1, points, group, soft, unroll) for group in groups]
        return min(blockings, key=lambda blocking: blocking.padded(shape))

    @staticmethod
    def choices(machine: Machine, n_evaluations: int) -> Sequence[Settings]:
        """List the settings that `tune` tries on a machine."""
        if machine.kind == "CPU":
            return [{"points": points} for points in product((1, 2, 4, 8), (4, 8, 16))]
        if machine.precision == "float64":
            return [{"points": points} for points in ((4, 2), (4, 4), (8, 2))]
        blocks = [((4, 2), 0, 1), ((4, 2), 0, 4), ((8, 4), 0, 1), ((8, 4), 0, 4)]
        if machine.vendor == "NVIDIA":
            blocks += [((8, 4), 8, 1), ((8, 4), 10, 1), ((16, 4), 16, 1), ((16, 4), 20, 1)]
        return [{"points": points, "soft": soft, "unroll": unroll} for points, soft, unroll in blocks]

    @property
    def pad(self) -> tuple[int, int, int]:
        """Points per group along x, y and z."""
        return (
            self.width * self.points[0] * self.group[0],
            self.group[1],
            self.points[1] * self.group[2],
        )

    @property
    def defines(self) -> dict[str, int]:
        """Macros for the kernels."""
        x, y, z = self.group
        return {
            "GROUP_X": x, "GROUP_Y": y, "GROUP_Z": z, "POINTS_X": self.points[0], "POINTS_Z": self.points[1],
            "SOFT": self.soft,
        }  # fmt: skip

    def padded(self, shape: tuple[int, int, int]) -> int:
        """Return the number of points of a map of shape (nx, ny, nz), including padding."""
        nx, ny, nz = (-(-n // p) * p for n, p in zip(shape, self.pad, strict=True))
        return nx * ny * nz

    def items(self, shape: tuple[int, int, int]) -> tuple[int, int, int]:
        """Return the work-items for a padded map of shape (nx, ny, nz)."""
        return shape[0] // (self.width * self.points[0]), shape[1], shape[2] // self.points[1]
