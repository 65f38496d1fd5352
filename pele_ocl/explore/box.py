"""Boxes that confine the centre of a ligand: sphere, prism, shell, cylinder or several spheres."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..atoms import Floats
from ..common.arguments import number, numbers
from ..common.errors import InputError
from ..common.readonly import read_only

Inside = NDArray[np.bool_]


class Box:
    """Region of space, including its boundary."""

    def contains(self, points: Floats) -> Inside:
        """Return a mask (...,) of points (..., 3) A, True inside the box."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Sphere(Box):
    """Sphere. center : (3,) A; radius : A"""

    center: ArrayLike
    radius: float

    def __post_init__(self) -> None:
        _point(self, "center")
        _length("radius", self.radius)

    def contains(self, points: Floats) -> Inside:
        return _distances(points, self.center) <= self.radius


@dataclass(frozen=True, eq=False)
class Spheres(Box):
    """Union of several spheres."""

    spheres: tuple[Sphere, ...]

    def __post_init__(self) -> None:
        if not self.spheres or not all(isinstance(sphere, Sphere) for sphere in self.spheres):
            raise InputError("a box of several spheres needs at least one Sphere")
        object.__setattr__(self, "spheres", tuple(self.spheres))

    def contains(self, points: Floats) -> Inside:
        inside: Inside = np.any([sphere.contains(points) for sphere in self.spheres], axis=0)
        return inside


@dataclass(frozen=True, eq=False)
class Shell(Box):
    """Space between two concentric spheres. center : (3,) A; inner, outer : radii, A"""

    center: ArrayLike
    inner: float
    outer: float

    def __post_init__(self) -> None:
        _point(self, "center")
        _length("outer", self.outer)
        number("inner", self.inner, "a number in Angstrom, 0 or more", least=0)
        if not self.inner < self.outer:
            raise InputError(
                f"a shell from {self.inner} to {self.outer} A has no inside; inner must be less than outer"
            )

    def contains(self, points: Floats) -> Inside:
        r = _distances(points, self.center)
        return (r >= self.inner) & (r <= self.outer)


@dataclass(frozen=True, eq=False)
class Prism(Box):
    """Rectangular prism aligned with the axes. center : (3,) A; sides : (3,) edge lengths along x, y and z, A"""

    center: ArrayLike
    sides: ArrayLike

    def __post_init__(self) -> None:
        _point(self, "center")
        _point(self, "sides")
        if not (np.asarray(self.sides) > 0).all():
            raise InputError("sides of a prism must be positive, in Angstrom")

    def contains(self, points: Floats) -> Inside:
        inside: Inside = (np.abs(points - np.asarray(self.center)) <= np.asarray(self.sides) / 2).all(axis=-1)
        return inside


@dataclass(frozen=True, eq=False)
class Cylinder(Box):
    """Cylinder. bottom, top : (3,) A, end points of its axis; radius : A"""

    bottom: ArrayLike
    top: ArrayLike
    radius: float

    def __post_init__(self) -> None:
        _point(self, "bottom")
        _point(self, "top")
        _length("radius", self.radius)
        if not np.linalg.norm(np.subtract(self.top, self.bottom)) > 0:
            raise InputError("bottom and top of a cylinder must be different points")

    def contains(self, points: Floats) -> Inside:
        axis = np.subtract(self.top, self.bottom)
        length = np.linalg.norm(axis)
        away = points - np.asarray(self.bottom)
        along = away @ (axis / length)
        beside = np.sqrt(np.maximum((away**2).sum(axis=-1) - along**2, 0))
        inside: Inside = (along >= 0) & (along <= length) & (beside <= self.radius)
        return inside


def _distances(points: Floats, center: ArrayLike) -> Floats:
    found: Floats = np.linalg.norm(points - np.asarray(center), axis=-1)
    return found


def _point(box: Box, name: str) -> None:
    """Convert a field of a box to an array (3,). Raises InputError unless it has three finite numbers."""
    values = numbers(name, getattr(box, name))
    if values.shape != (3,) or not np.isfinite(values).all():
        raise InputError(f"{name} of a box has shape {values.shape}; expected three finite numbers of Angstrom")
    object.__setattr__(box, name, read_only(values, np.float64))


def _length(name: str, value: float) -> None:
    number(name, value, "a positive number of Angstrom", above=0)
