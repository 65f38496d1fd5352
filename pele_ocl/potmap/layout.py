"""How `blocked` and `cutoff` are laid out on a device: pure functions of what the device is and what the map needs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Layout:
    """Blocks of points.

    width : reals in a vector
    points : (vectors along x, slices along z) that a work-item owns
    group : work-items along x, y and z
    soft : roots of a work-item's block that are computed without the special-function unit
    unroll : atoms in a turn of the loop over a run
    """

    width: int
    points: tuple[int, int]
    group: tuple[int, int, int]
    soft: int = 0
    unroll: int = 1

    @classmethod
    def of(cls, kind: str, vendor: str, width: int, precision: str, bare: bool) -> Layout:
        """The layout for a device of this kind and vendor, whose vectors hold `width` reals.

        bare : plain Coulomb potential; else the sums and roots of a point need more registers
        """
        if kind == "CPU":
            vectors = max(1, min(4, 32 // width))
            return cls(width, (vectors, 16 // vectors) if bare else (1, 4), (1, 1, 1))
        if not bare or precision == "float64":
            return cls(1, (4, 2), (8, 8, 2))
        return cls(1, (8, 4), (8, 8, 2), 8) if vendor == "NVIDIA" else cls(1, (8, 4), (8, 8, 2), unroll=4)

    @property
    def pad(self) -> tuple[int, int, int]:
        """Points of a group along x, y and z."""
        return (
            self.width * self.points[0] * self.group[0],
            self.group[1],
            self.points[1] * self.group[2],
        )

    @property
    def defines(self) -> dict[str, int]:
        """The macros of the kernels."""
        x, y, z = self.group
        return {
            "GROUP_X": x, "GROUP_Y": y, "GROUP_Z": z, "POINTS_X": self.points[0], "POINTS_Z": self.points[1],
            "SOFT": self.soft,
        }  # fmt: skip

    def items(self, shape: tuple[int, int, int]) -> tuple[int, int, int]:
        """Work-items for a padded map of (nx, ny, nz) points."""
        return shape[0] // (self.width * self.points[0]), shape[1], shape[2] // self.points[1]
