"""Pairs of atoms separated by one, two or three bonds: 1-2, 1-3 and 1-4 pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .labels import Ints

_Indices = NDArray[np.int64]


def exclusions(bonds: Ints, n_atoms: int) -> tuple[Ints, Ints]:
    """Find the pairs of atoms separated by one or two bonds, and by three bonds.

    bonds : (m, 2) atom indices from 0, in any order; n_atoms : total number of atoms

    Returns (pairs_12_13, pairs_14), each (k, 2) with i < j, sorted. Pairs connected by several paths, as in rings, are
    classified by the shortest path.
    """
    one_two = _codes(np.asarray(bonds, np.int64).reshape(-1, 2), n_atoms)
    pairs = np.stack([one_two // max(n_atoms, 1), one_two % max(n_atoms, 1)], axis=1)
    first, second = np.concatenate([pairs, pairs[:, ::-1]]).T
    order = np.argsort(first, kind="stable")
    first, neighbours = first[order], second[order]
    starts = np.searchsorted(first, np.arange(n_atoms + 1))

    start, end = _walk(first, neighbours, neighbours, starts)
    one_three = _codes(np.stack([start, end], axis=1), n_atoms)
    start, end = _walk(start, end, neighbours, starts)
    excluded = _sorted_unique(np.concatenate([one_two, one_three]))
    one_four = _codes(np.stack([start, end], axis=1), n_atoms)
    one_four = one_four[~_among(one_four, excluded)]
    return _pairs(excluded, n_atoms), _pairs(one_four, n_atoms)


def _walk(start: _Indices, end: _Indices, neighbours: _Indices, starts: _Indices) -> tuple[_Indices, _Indices]:
    """Extend each path from `start` to `end` by all neighbours of its end."""
    counts = starts[end + 1] - starts[end]
    path = np.repeat(np.arange(len(end)), counts)
    within = np.arange(len(path)) - np.repeat(np.cumsum(counts) - counts, counts)
    return start[path], neighbours[starts[end[path]] + within]


def _codes(pairs: _Indices, n_atoms: int) -> _Indices:
    """Encode pairs as i * n + j with i < j, sorted and unique. Pairs of an atom with itself are dropped."""
    low, high = np.minimum(pairs[:, 0], pairs[:, 1]), np.maximum(pairs[:, 0], pairs[:, 1])
    return _sorted_unique((low * n_atoms + high)[low < high])


def _sorted_unique(codes: _Indices) -> _Indices:
    """Return the sorted unique codes. This and `_among` are several times faster than NumPy's functions, which hash."""
    ordered = np.sort(codes)
    return ordered[np.diff(ordered, prepend=-1) > 0]


def _among(codes: _Indices, ordered: _Indices) -> NDArray[np.bool_]:
    """Return a mask of the codes contained in the sorted array `ordered`."""
    if not len(ordered):
        return np.zeros(len(codes), bool)
    found: NDArray[np.bool_] = ordered[np.searchsorted(ordered, codes) % len(ordered)] == codes
    return found


def _pairs(codes: NDArray[Any], n_atoms: int) -> Ints:
    return np.stack(np.divmod(codes, max(n_atoms, 1)), axis=1).astype(np.int32)
