"""Rigid-body moves of a ligand: translations and rotations with PELE's distributions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..atoms import Floats, Ints
from .philox import Words, normals, uniform
from .walk import MOST_TRIES, Stage, Walk

SPREAD = np.deg2rad(20.0)  # standard deviation of directions around a steering vector; PELE's value is not public
SMALL = 0.02  # rotation factor of the other angles
FULL = np.array([2 * np.pi, 2 * np.pi, np.pi])  # rad, full range of phi, psi and theta


@dataclass(frozen=True, eq=False)
class RigidMoves:
    """Rigid-body moves (n_trials, n_tries) of a ligand about its centre.

    rotations : (n_trials, n_tries, 3, 3); translations : (n_trials, n_tries, 3) A
    """

    rotations: Floats
    translations: Floats


def drawn_moves(
    walk: Walk, rows: Sequence[int], tries: Ints, steering: Mapping[int, Floats | None],
    kind: Literal["centered", "spherical"],
) -> dict[int, RigidMoves]:  # fmt: skip
    """Draw random moves of rows for all their trials.

    tries : (n_tries,) numbers of steric trials; steering : (3,) unit vector of each row, None for random directions
    kind : distribution of translation lengths, as in Perturbation
    """
    by_trials: dict[int, list[int]] = {}
    for row in rows:
        by_trials.setdefault(walk.settings[row].trials, []).append(row)
    found: dict[int, RigidMoves] = {}
    for n_trials, own in by_trials.items():
        found |= _drawn_moves(walk, own, n_trials, tries, steering, kind)
    return found


def _drawn_moves(
    walk: Walk, rows: list[int], n_trials: int, tries: Ints, steering: Mapping[int, Floats | None],
    kind: Literal["centered", "spherical"],
) -> dict[int, RigidMoves]:  # fmt: skip
    """Draw random moves of rows that all have `n_trials` trials."""
    settings = [walk.settings[row] for row in rows]
    index = (MOST_TRIES + 1) * np.arange(n_trials, dtype=np.int64)[:, None] + tries
    words = walk.random(rows, Stage.TRANSLATION, 0, index)
    first, second, third = (walk.random(rows, Stage.ROTATION, draw, index) for draw in range(3))
    directions = random_directions(words)
    steered = [place for place, row in enumerate(rows) if steering[row] is not None]
    if steered:
        vectors = np.array([steering[rows[place]] for place in steered])
        directions[steered] = directions_about(vectors[:, None, None], words[steered])
    frames = random_frames(third)
    scaling, spread, ranges = (
        np.array([getattr(own, name) for own in settings])[:, None, None]
        for name in ("rotation_scaling", "rotation_range", "translation_range")
    )
    turns = rotations_of(euler_angles(first, second, scaling, spread))
    rotations = frames @ turns @ np.swapaxes(frames, -1, -2)
    translations = lengths(uniform(words[..., 3]), ranges, kind) * directions
    return {row: RigidMoves(rotations[place], translations[place]) for place, row in enumerate(rows)}


def lengths(drawn: Floats, length: Floats | float, kind: Literal["centered", "spherical"]) -> Floats:
    """Convert uniform random numbers to lengths (..., 1) A: U[0.75, 1.25] or U[0, 1] times `length`."""
    least, most = (0.75, 1.25) if kind == "centered" else (0.0, 1.0)
    found: Floats = (length * (least + (most - least) * drawn))[..., None]
    return found


def random_directions(words: Words) -> Floats:
    """Convert random words (..., 4) to unit vectors (..., 3), uniformly distributed on the sphere."""
    height, turn = 2 * uniform(words[..., 0]) - 1, 2 * np.pi * uniform(words[..., 1])
    beside = np.sqrt(1 - height**2)
    return np.stack([beside * np.cos(turn), beside * np.sin(turn), height], axis=-1)


def directions_about(steering: Floats, words: Words) -> Floats:
    """Convert random words (..., 4) to unit vectors (..., 3) at normally distributed angles to `steering` (..., 3)."""
    angle, turn = SPREAD * normals(words[..., 0], words[..., 1])[0], 2 * np.pi * uniform(words[..., 2])
    across = np.eye(3)[np.argmin(np.abs(steering), axis=-1)]
    first = np.cross(steering, across)
    first /= np.sqrt(first[..., None, :] @ first[..., :, None])[..., 0]
    second = np.cross(steering, first)
    beside = np.cos(turn)[..., None] * first + np.sin(turn)[..., None] * second
    directions: Floats = np.cos(angle)[..., None] * steering + np.sin(angle)[..., None] * beside
    return directions


def euler_angles(first: Words, second: Words, scaling: Floats | float, spread: Floats | float) -> Floats:
    """Draw uncoupled angles phi, psi and theta, (..., 3) rad, from random words (..., 4).

    One, two or all three angles, with equal probability and chosen at random, have the factor `scaling`; the others
    have SMALL. An angle is +- U[1 - spread, 1 + spread] times its factor times its full range.
    """
    count = 1 + np.minimum((3 * uniform(first[..., 0])).astype(np.int64), 2)
    order = np.argsort(np.argsort(uniform(second[..., :3]), axis=-1, kind="stable"), axis=-1, kind="stable")
    scaling, spread = np.asarray(scaling)[..., None], np.asarray(spread)[..., None]
    factors = np.where(order < count[..., None], scaling, SMALL)
    sizes = 1 - spread + 2 * spread * uniform(first[..., 1:])
    signs = 1 - 2 * ((second[..., 3, None] >> np.arange(8, 11, dtype=np.uint32)) & 1).astype(np.float64)
    angles: Floats = signs * sizes * factors * FULL
    return angles


def rotations_of(angles: Floats) -> Floats:
    """Return rotation matrices (..., 3, 3): rotate by phi about z, theta about x, psi about z. angles : (..., 3) rad"""
    phi, psi, theta = np.moveaxis(angles, -1, 0)
    rotations: Floats = _about_z(psi) @ _about_x(theta) @ _about_z(phi)
    return rotations


def random_frames(words: Words) -> Floats:
    """Convert random words (..., 4) to uniformly distributed rotation matrices (..., 3, 3), by unit quaternions."""
    w, x = normals(words[..., 0], words[..., 1])
    y, z = normals(words[..., 2], words[..., 3])
    w, x, y, z = np.stack([w, x, y, z]) / np.sqrt(w**2 + x**2 + y**2 + z**2)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def _about_z(angle: Floats) -> Floats:
    c, s, zero, one = np.cos(angle), np.sin(angle), np.zeros_like(angle), np.ones_like(angle)
    return np.stack([np.stack(row, axis=-1) for row in ([c, -s, zero], [s, c, zero], [zero, zero, one])], axis=-2)


def _about_x(angle: Floats) -> Floats:
    c, s, zero, one = np.cos(angle), np.sin(angle), np.zeros_like(angle), np.ones_like(angle)
    return np.stack([np.stack(row, axis=-1) for row in ([one, zero, zero], [zero, c, -s], [zero, s, c])], axis=-2)
