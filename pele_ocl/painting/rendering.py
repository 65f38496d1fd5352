"""Rendering of a shaded surface with a depth buffer.

Triangles of a molecular surface are a few pixels wide. Each is sampled at points less than a pixel apart. The sample
closest to the viewer determines the colour of a pixel.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats
from .surface import Surface

_LIGHT = np.array([-0.35, 0.5, 0.8]) / np.linalg.norm([-0.35, 0.5, 0.8])  # right, up, towards the viewer
_AMBIENT, _DIFFUSE, _GLOSS, _SHARPNESS = 0.45, 0.6, 0.12, 20.0
_EDGE = 3.0  # A, depth difference to a neighbouring pixel for the darkest outline
_PARTS = 32  # groups of triangles by size; samples per triangle depend on the largest of a group


@dataclass(frozen=True)
class Frame:
    """Pixels of a view. left, low : lower left corner, A; scale : pixels per Angstrom; width, height : pixels"""

    left: float
    low: float
    scale: float
    width: int
    height: int

    @classmethod
    def around(cls, flat: Floats, width: int, margin: float = 1.0) -> Frame:
        """Create a frame around points (n, 2) A, with a margin, A."""
        first, last = flat.min(axis=0) - margin, flat.max(axis=0) + margin
        scale = width / float(last[0] - first[0])
        return cls(float(first[0]), float(first[1]), scale, width, max(math.ceil((last[1] - first[1]) * scale), 1))


def render(surface: Surface, rgb: Floats, axes: Floats, frame: Frame) -> Floats:
    """Render pixels (height, width, 3) from 0 to 1, with a white background, the lowest row first.

    rgb : (n_vertices, 3) colours; axes : rows that point right, up and towards the viewer
    """
    turned, normals = surface.vertices @ axes.T, surface.normals @ axes.T
    facing = (surface.crosses @ axes[2]) > 0
    faces = surface.faces[facing]
    places = (turned[:, :2] - (frame.left, frame.low)) * frame.scale
    longest = np.linalg.norm(places[faces] - places[np.roll(faces, 1, axis=1)], axis=2).max(axis=1)
    order = np.argsort(longest, kind="stable")
    depth = np.full(frame.width * frame.height, -np.inf)
    colour = np.ones((len(depth), 3))
    for part in np.array_split(order, min(_PARTS, len(faces))) if len(faces) else []:
        some, weights = faces[part], _weights(float(longest[part[-1]]))
        xyz = _mixed(np.column_stack([places, turned[:, 2]]), some, weights)
        pixel = xyz[:, 1].astype(np.intp) * frame.width + xyz[:, 0].astype(np.intp)
        before = depth.copy()
        np.maximum.at(depth, pixel, xyz[:, 2])
        which = np.flatnonzero((xyz[:, 2] == depth[pixel]) & (xyz[:, 2] > before[pixel]))
        drawn = pixel[which]
        chosen, share = some[which // len(weights)], weights[which % len(weights)]
        colour[drawn] = _shaded(
            np.einsum("nk,nkc->nc", share, rgb[chosen]), np.einsum("nk,nkc->nc", share, normals[chosen])
        )
    shape = frame.height, frame.width
    return _outlined(colour.reshape(*shape, 3), depth.reshape(shape))


def _weights(longest: float) -> Floats:
    """Return barycentric coordinates (m, 3) of samples less than a pixel apart. longest : longest edge, pixels"""
    n = int(np.ceil(longest / 0.8)) + 1
    a, b = np.meshgrid(np.arange(n + 1), np.arange(n + 1))
    a, b = a[a + b <= n], b[a + b <= n]
    return np.stack([a, b, n - a - b], axis=1) / n


def _mixed(values: Floats, faces: NDArray[np.int32], weights: Floats) -> Floats:
    """Interpolate values (n_vertices, k) to all samples of the triangles, (n_faces * m, k)."""
    mixed: Floats = (weights @ values[faces]).reshape(-1, values.shape[1])
    return mixed


def _shaded(rgb: Floats, normals: Floats) -> Floats:
    """Return shaded colours (n, 3), with Lambert diffuse and Blinn-Phong specular reflection."""
    unit = normals / np.maximum(np.linalg.norm(normals, axis=1), 1e-12)[:, None]
    half = _LIGHT + np.array([0.0, 0.0, 1.0])
    light = _AMBIENT + _DIFFUSE * np.maximum(unit @ _LIGHT, 0)
    gloss = _GLOSS * np.maximum(unit @ (half / np.linalg.norm(half)), 0) ** _SHARPNESS
    lit: Floats = np.clip(rgb * light[:, None] + gloss[:, None], 0, 1)
    return lit


def _outlined(colour: Floats, depth: Floats) -> Floats:
    """Darken pixels at depth discontinuities, to outline the surface and its parts."""
    padded = np.pad(depth, 1, constant_values=-np.inf)
    around = [padded[1:-1, :-2], padded[1:-1, 2:], padded[:-2, 1:-1], padded[2:, 1:-1]]
    with np.errstate(invalid="ignore"):  # background minus background
        steps = np.max([np.nan_to_num(near - depth, nan=0.0, posinf=_EDGE) for near in around], axis=0)
    colour = colour * (1 - 0.55 * np.clip(steps / _EDGE, 0, 1))[..., None]
    return colour
