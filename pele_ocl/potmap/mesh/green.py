"""Fourier transform of the far part between mesh nodes, with free boundary conditions."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ...atoms import Floats
from ...common.threads import each
from .geometry import MeshGeometry
from .split import Middle, Split, Window

AT_ONCE = 1 << 17  # wave numbers of the fine table per step of a thread, to fit in a cache
ONE_THREAD = 1 << 18  # largest matrix product that OpenBLAS computes in the calling thread, in multiplications
SMALL = 1e-7  # wave number times distance, below which the wave number is treated as 0


def green_table(geometry: MeshGeometry, split: Split, window: Window, finer: float = 0.0) -> Floats:
    """Return the factors of _green_table; cached for maps of the same size."""
    return _green_table(
        geometry.spacing, tuple(geometry.shape.tolist()), tuple(geometry.lengths.tolist()), split, window, finer
    )


@lru_cache(maxsize=2)
def _green_table(
    h: float, nodes: tuple[int, ...], lengths: tuple[int, ...], split: Split, window: Window, finer: float
) -> Floats:
    """Compute the factors (nz/2 + 1, ny/2 + 1, nx/2 + 1) for the wave numbers of the padded mesh.

    See docs/theory/mesh.md, eq. 6. The Green function is truncated beyond all distances between nodes (Vico, Greengard
    and Ferrando, J. Comput. Phys. 323, 191 (2016)). Cosine sums over a finer table of wave numbers transform it to the
    distances between nodes, from which it is transformed to the wave numbers of the padded mesh. Both sums are combined
    in one matrix per axis.

    finer : spacing of the intermediate mesh, A, whose window is used to interpolate at points; 0 without one
    """
    shape = np.array(nodes)
    farthest = _farthest(shape, h, split.cutoff)
    fine = fine_waves(shape, h, split.cutoff)
    waves = [np.pi * np.arange(n + 1) / (n * h) for n in fine]
    factors = [1 / window.transformed(k * h / np.pi) ** 2 / (2 * n * h) for k, n in zip(waves, fine, strict=True)]
    if finer:
        factors = [each / window.transformed(k * finer / np.pi) for each, k in zip(factors, waves, strict=True)]
    to_lengths = [
        _product(_to_lengths(n, length), _to_distances(n, int(m)))
        for n, m, length in zip(nodes, fine, lengths, strict=True)
    ]
    kept = [int(np.count_nonzero(k < split.largest_k)) for k in waves]  # the far part is 0 beyond
    x, y, z = (matrix[:, :n] for matrix, n in zip(to_lengths, kept, strict=True))
    kx, ky, kz = (k[:n] for k, n in zip(waves, kept, strict=True))
    fx, fy, fz = (f[:n] for f, n in zip(factors, kept, strict=True))
    planes, table = np.empty((len(y), len(kz), len(x))), np.empty((len(z), len(y), len(x)))
    split.spectrum_of_many(np.zeros(1))  # tabulates the spectrum before threads use it

    def sum_planes(part: slice) -> None:
        across = split.largest_k**2 - kz[part.start] ** 2
        ny, nx = (int(np.count_nonzero(k * k < across)) for k in (ky, kx))  # the spectrum is 0 beyond
        k2 = kz[part, None, None] ** 2 + ky[:ny, None] ** 2 + kx[:nx] ** 2
        values = _truncated(k2, split, farthest)
        values *= fz[part, None, None] * fy[:ny, None] * fx[:nx]
        planes[:, part] = _product(y[:, :ny], _product(values, x[:, :nx].T)).transpose(1, 0, 2)

    def sum_rows(part: slice) -> None:
        table[:, part] = _product(z, planes[part]).transpose(1, 0, 2)

    _by_threads(sum_planes, len(kz), len(ky) * len(kx))
    _by_threads(sum_rows, len(y), len(kz) * len(x))
    return table


def _by_threads(work: Callable[[slice], None], count: int, size: int) -> None:
    """Run `work` in threads, on parts of `count` planes of `size` numbers."""
    step = max(1, AT_ONCE // size)
    each([slice(first, first + step) for first in range(0, count, step)], work)


def _product(a: Floats, b: Floats) -> Floats:
    """Return a @ b for a matrix and a stack of matrices, in blocks so small that BLAS uses only this thread.

    BLAS threads wait actively for each other, which takes several times as long if other threads use the cores.
    """
    side = max(2, math.isqrt(ONE_THREAD // a.shape[-1]))
    found = np.empty((*(a if a.ndim > b.ndim else b).shape[:-2], a.shape[-2], b.shape[-1]))
    for i in range(0, a.shape[-2], side):
        for j in range(0, b.shape[-1], side):
            np.matmul(a[..., i : i + side, :], b[..., j : j + side], out=found[..., i : i + side, j : j + side])
    return found


def middle_table(geometry: MeshGeometry, near: Split, far: Split, window: Window) -> Floats:
    """Compute the factors (nz/2 + 1, ny/2 + 1, nx/2 + 1) of the middle part; see docs/theory/mesh.md, section 7.

    The middle part ends at a finite distance, so its spectrum is used without truncation.
    """
    h, middle = geometry.spacing, Middle(near, far)
    kx, ky, kz = (2 * np.pi * np.arange(n // 2 + 1) / (n * h) for n in geometry.lengths.tolist())
    fx, fy, fz = (1 / window.transformed(k * h / np.pi) ** 2 / h for k in (kx, ky, kz))
    across, factors = ky[:, None] ** 2 + kx**2, fy[:, None] * fx
    table = np.empty((len(kz), len(ky), len(kx)))
    for plane, k, factor in zip(table, kz, fz, strict=True):
        plane[:] = middle.spectrum(k**2 + across) * (factor * factors)
    return table


def _farthest(shape: NDArray[np.int64], h: float, cutoff: float) -> float:
    """Return the distance at which the Green function is truncated, A."""
    return float(np.linalg.norm(shape * h)) + cutoff


def fine_waves(shape: NDArray[np.int64], h: float, cutoff: float) -> NDArray[np.int64]:
    """Return (3,) wave numbers of the fine table, half its period, for `shape` nodes along x, y, z."""
    waves: NDArray[np.int64] = np.ceil((shape + (_farthest(shape, h, cutoff) + cutoff) / h) / 2).astype(np.int64)
    return waves


def _truncated(k2: Floats, split: Split, farthest: float) -> Floats:
    """Return the spectrum of the far part with a truncated Green function at squared wave numbers."""
    k2 = np.maximum(k2, (SMALL / farthest) ** 2)  # avoids 0 / 0
    k, kappa = np.sqrt(k2), split.kappa
    if kappa:
        away = np.exp(-kappa * farthest) * (np.cos(k * farthest) + kappa * farthest * np.sinc(k * farthest / np.pi))
        green = 4 * np.pi / (k2 + kappa**2) * (1 - away)
    else:
        green = np.sin(k * (farthest / 2))
        green *= green
        green *= 8 * np.pi
        green /= k2
    share2 = np.minimum(k2 / split.largest_k**2, 1)
    spectrum: Floats = np.where(k2 < split.largest_k**2, green * split.spectrum_of_many(share2), 0.0)
    return spectrum


def _to_distances(n: int, fine: int) -> Floats:
    """Return the matrix (n, fine + 1) from wave numbers of either sign to distances of 0 to n - 1 nodes."""
    matrix = 2 * np.cos(np.pi * np.outer(np.arange(n), np.arange(fine + 1)) / fine)
    matrix[:, [0, -1]] /= 2
    return matrix


def _to_lengths(n: int, length: int) -> Floats:
    """Return the matrix (length / 2 + 1, n) from distances of 0 to n - 1 nodes of either sign to wave numbers."""
    matrix = 2 * np.cos(2 * np.pi * np.outer(np.arange(length // 2 + 1), np.arange(n)) / length)
    matrix[:, 0] = 1
    return matrix
