"""Comparison of mesh maps with periodic, smoothed maps: the method of PMEPot in VMD by scipy.fft, and torch-pme.

python tests/benchmarks/map_peers.py DEVICE [POINTS [SPACING]]

The peers compute the reciprocal part of a smooth particle-mesh Ewald sum (Aksimentiev & Schulten, Biophys. J. 88, 3745
(2005)): every charge is a Gaussian, with an Ewald factor of 0.25 1/A as in PMEPot, and the box is periodic. Their
map is the mesh itself. pele-ocl computes the potential of point charges without periodicity. Therefore each error is
relative to a different definition, by norm at 1,000 points: for pele-ocl, direct sums, for the peers, the sum over all
waves. "from open" is the norm of
their difference from the potential of point charges at points at least 12 A from all atoms, where a Gaussian is
equivalent to a point charge: the effect of periodicity. The molecule is neutral ubiquitin, in a box of POINTS times
SPACING A, 256 and 0.5 by default. Times are wall times, the best of five calls, with precomputed tables.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from pele_ocl import Atoms, Grid, potmap
from pele_ocl.opencl import get_device
from pele_ocl.units import COULOMB_KCAL_A

DATA = Path(__file__).parents[2] / "tests" / "data"
PERIODIC = "periodic | Gaussians"
EWALD, ACCURACY, CALLS, SAMPLES, APART = 0.25, 1e-4, 5, 1000, 12.0
HEAD = "| code | on | boundary | charges | error | from open | ms |\n|---|---|---|---|---|---|---|"
Floats = NDArray[np.floating]


def best(call: Callable[[], Floats]) -> tuple[float, Floats]:
    """Return the time of the fastest call in seconds, and its result."""
    values, seconds = call(), []
    for _ in range(CALLS):
        start = time.perf_counter()
        values = call()
        seconds.append(time.perf_counter() - start)
    return min(seconds), values


class SmoothPme:
    """Charges spread by cubic B-splines to a mesh (nz, ny, nx), times exp(-k^2/4a^2) 4 pi/k^2, in float32."""

    def __init__(self, positions: Floats, charges: Floats, n: int, spacing: float) -> None:
        self._places, self._charges, self._n = positions / spacing, charges, n
        waves = 2 * np.pi / (n * spacing) * np.fft.fftfreq(n, 1 / n)
        half = waves[: n // 2 + 1]
        k2 = waves[:, None, None] ** 2 + waves[:, None] ** 2 + half**2
        splines = (2 + np.cos(waves * spacing)) / 3  # of values at nodes
        k2[0, 0, 0] = np.inf
        factor = 4 * np.pi * COULOMB_KCAL_A * np.exp(-k2 / (4 * EWALD**2)) / k2 / spacing**3
        factor /= splines[:, None, None] * splines[:, None] * splines[: len(half)]
        self._factor = factor.astype(np.float32)

    def __call__(self) -> Floats:
        n, first = self._n, np.floor(self._places).astype(np.int64)
        t = self._places - first
        weights = np.stack([(1 - t) ** 3, 3 * t**3 - 6 * t**2 + 4, -3 * t**3 + 3 * t**2 + 3 * t + 1, t**3]) / 6
        nodes = (first + np.arange(-1, 3)[:, None, None]) % n  # (4, atoms, 3)
        x, y, z = np.moveaxis(nodes, 2, 0)
        wx, wy, wz = np.moveaxis(weights, 2, 0)
        flat = (z[:, None, None] * n + y[None, :, None]) * n + x[None, None, :]
        mesh = np.zeros(n**3, np.float32)
        shares = wz[:, None, None] * wy[None, :, None] * wx[None, None, :] * self._charges
        np.add.at(mesh, flat.ravel(), shares.ravel().astype(np.float32))
        workers = os.cpu_count()
        spectrum = scipy.fft.rfftn(mesh.reshape(n, n, n), workers=workers)
        spectrum *= self._factor
        found: Floats = scipy.fft.irfftn(spectrum, s=(n, n, n), workers=workers)
        return found


def torch_pme(positions: Floats, charges: Floats, n: int, spacing: float) -> tuple[str, Callable[[], Floats]]:
    """Compute the map with torch-pme, on a GPU if available; return the device and the call."""
    import torch
    from torchpme import CoulombPotential
    from torchpme.lib import KSpaceFilter, MeshInterpolator

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    options = dict(dtype=torch.float32, device=device)
    cell, shape = n * spacing * torch.eye(3, **options), torch.tensor([n] * 3, device=device)
    place, charge = torch.tensor(positions, **options), torch.tensor(charges, **options)[:, None]
    potential = CoulombPotential(smearing=2**-0.5 / EWALD).to(**options)
    mesh = MeshInterpolator(cell, shape, 7, "Lagrange")
    kernel = KSpaceFilter(cell, shape, potential, fft_norm="backward", ifft_norm="forward")

    def call() -> Floats:
        mesh.compute_weights(place)
        found = kernel(mesh.points_to_mesh(charge))[0] * (COULOMB_KCAL_A / (n * spacing) ** 3)
        values: Floats = found.permute(2, 1, 0).cpu().numpy()
        return values

    return torch.cuda.get_device_name() if device.type == "cuda" else f"CPU, {torch.get_num_threads()} threads", call


def all_waves(positions: Floats, charges: Floats, points: Floats, edge: float) -> Floats:
    """Return the potential at points (n, 3) as the sum over all significant waves, in float64."""
    most = int(np.ceil(2 * EWALD * 6 * edge / (2 * np.pi)))
    waves = 2 * np.pi / edge * np.arange(-most, most + 1)
    of_atoms, of_points = ([np.exp(-1j * np.outer(along, waves)) for along in each.T] for each in (positions, points))
    found = np.zeros(len(points))
    for k, wave in enumerate(waves):
        k2 = waves[:, None] ** 2 + waves**2 + wave**2
        k2[k2 == 0] = np.inf
        structure = (of_atoms[0] * (charges * of_atoms[2][:, k])[:, None]).T @ of_atoms[1]
        structure *= 4 * np.pi * COULOMB_KCAL_A * np.exp(-k2 / (4 * EWALD**2)) / k2 / edge**3
        partly = ((of_points[0].conj() @ structure) * of_points[1].conj()).sum(axis=1)
        found += (partly * of_points[2][:, k].conj()).real
    return found


def relative(found: Floats, expected: Floats) -> float:
    """Return the relative difference by norm."""
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


def row(
    code: str, on: str, what: str, call: Callable[[], Floats], errors: Callable[[Floats], tuple[float, float]]
) -> None:  # fmt: skip
    """Print a line; errors : of the values of a map"""
    seconds, values = best(call)
    error, from_open = errors(values)
    print(f"| {code} | {on} | {what} | {error:.1e} | {from_open:.1e} | {1e3 * seconds:.1f} |", flush=True)


def main() -> None:
    device = get_device(sys.argv[1])
    n, spacing = int([*sys.argv[2:3], "256"][0]), float([*sys.argv[3:4], "0.5"][0])
    data = np.load(DATA / "ubiquitin.npz")
    positions, charges = data["coordinates"] + 0.0123, data["charge"] - data["charge"].mean()
    positions += n * spacing / 2 - positions.mean(axis=0)
    atoms, grid = Atoms(positions=positions, charges=charges), Grid((0, 0, 0), spacing, (n, n, n))
    i, j, k = np.random.default_rng(1).integers(0, n, (3, SAMPLES))
    points = spacing * np.stack([i, j, k], axis=1)
    r = np.linalg.norm(points[:, None] - positions, axis=2)
    of_points, of_waves = COULOMB_KCAL_A / r @ charges, all_waves(positions, charges, points, n * spacing)
    is_apart = r.min(axis=1) >= APART

    def errors(own: Floats, values: Floats) -> tuple[float, float]:
        found = values[k, j, i]
        return relative(found, own), relative(found[is_apart], of_points[is_apart])

    print(f"{len(atoms):,} atoms, {n}^3 points, {spacing} A\n\n{HEAD}")
    row(
        "pele-ocl mesh", str(device), "open | points",
        lambda: potmap(atoms, grid, method="mesh", accuracy=ACCURACY, device=device).map.values,
        partial(errors, of_points),
    )  # fmt: skip
    pme = SmoothPme(positions, charges, n, spacing)
    row("PMEPot's method, scipy.fft", f"CPU, {os.cpu_count()} threads", PERIODIC, pme, partial(errors, of_waves))
    if find_spec("torchpme") and find_spec("torch"):
        where, call = torch_pme(positions, charges, n, spacing)
        row(f"torch-pme {version('torch-pme')}", where, PERIODIC, call, partial(errors, of_waves))


if __name__ == "__main__":
    main()
