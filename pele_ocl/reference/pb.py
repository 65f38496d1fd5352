"""Reference finite-difference Poisson-Boltzmann solver; equation numbers of docs/theory/poisson-boltzmann.md.

Arrays are (nz, ny, nx). An edge connects a node to the next one along an axis. Arrays of edges are (3, nz, ny, nx),
with x first; edges beyond the border of the grid are not used.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats
from ..grid import Grid
from ..pb_model import SMALL, PBModel, PBProblem, PBSolute

PIECES = 64  # parts of an edge, to determine its fraction in solvent
ALL_PIECES = np.uint64(2**64 - 1)
LARGEST_EXPONENT = 85.0  # in the Boltzmann factor of an ion, as in APBS
LEAST_PRODUCT = np.float32(1e-12)  # smaller products of splines are not multiplied further, as in APBS
NEAREST = 1e-2  # A, smallest distance at which the singular potential of an atom is evaluated

Codes = NDArray[np.uint8]
Bools = NDArray[np.bool_]


def rounded(x: float) -> int:
    """Round to the nearest integer, with halves rounded up."""
    return int(np.floor(x + 0.5))


def unit_points(wanted: float) -> Floats:
    """Return points on a unit sphere in rings, (m, 3), with m close to `wanted`."""
    n_rings = rounded(np.sqrt(np.pi * wanted / 4))
    points = []
    for ring in range(n_rings):  # the first ring is empty, and there is none at the south pole, as in APBS
        theta = np.pi / n_rings * ring
        around = rounded(np.sin(theta) * 2 * n_rings)
        for k in range(around):
            phi = 2 * np.pi / around * k
            points.append((np.cos(phi) * np.sin(theta), np.sin(phi) * np.sin(theta), np.cos(theta)))
    return np.array(points).reshape(-1, 3)


def probe_points(solute: PBSolute, model: PBModel) -> Floats:
    """Return centres of probes that touch an atom without overlap, (m, 3) A; eq. 4, and 4a for the surface "edges"."""
    if model.probe < SMALL:
        return np.empty((0, 3))
    reach = solute.radii.max() + max(model.probe, model.ion_radius) + 0.5
    sphere = unit_points(np.ceil(4 * np.pi * reach**2 * model.density))
    found = [np.empty((0, 3))]
    for a in np.flatnonzero(solute.radii >= SMALL):
        points = (solute.radii[a] + model.probe) * sphere + solute.positions[a]
        apart = np.sum((solute.positions - solute.positions[a]) ** 2, axis=1)
        near = np.flatnonzero(apart < (solute.radii + solute.radii[a] + 2 * model.probe + 1e-6) ** 2)
        for b in near[near != a]:
            x, y, z = (points - solute.positions[b]).T
            points = points[x * x + y * y + z * z >= (solute.radii[b] + model.probe) ** 2]
        found.append(points)
    if model.way == "cuts":
        found.append(circle_points(solute, model))
    return np.concatenate(found)


def circle_points(solute: PBSolute, model: PBModel) -> Floats:
    """Return centres of probes that touch two or three atoms without overlap, (m, 3) A; eq. 4a.

    They lie on the intersection circles of spheres with radii r + R. Exposed arcs have points at both ends, and evenly
    spaced points between them, at most as far apart as the density requires.
    """
    radii, found, turn = solute.radii + model.probe, [np.empty((0, 3))], 2 * np.pi
    for a, b in combinations(range(len(radii)), 2):
        apart = solute.positions[b] - solute.positions[a]
        d = np.sqrt(apart @ apart)
        if not abs(radii[a] - radii[b]) < d < radii[a] + radii[b] or max(solute.radii[a], solute.radii[b]) < SMALL:
            continue
        axis, along = apart / d, (d * d + radii[a] ** 2 - radii[b] ** 2) / (2 * d)
        middle, radius = solute.positions[a] + along * axis, np.sqrt(radii[a] ** 2 - along**2)
        u = np.cross(axis, np.eye(3)[0 if abs(axis[0]) < 0.6 else 1])
        u /= np.sqrt(u @ u)
        v = np.cross(axis, u)
        others = np.delete(np.arange(len(radii)), [a, b])
        to = solute.positions[others] - middle
        x, y = to @ u, to @ v
        reach, least = np.hypot(x, y), (radius**2 + (to**2).sum(axis=1) - radii[others] ** 2) / (2 * radius)
        if (least <= -reach).any():  # completely buried
            continue
        cuts = least < reach
        halves, middles = np.arccos(least[cuts] / reach[cuts]), np.arctan2(y[cuts], x[cuts])
        ends = np.concatenate([[0.0], np.mod(middles - halves, turn), np.mod(middles + halves, turn), [turn]])
        ends.sort()
        for begin, end in pairwise(ends):
            between = np.mod((begin + end) / 2 - middles + halves, turn)
            if end - begin < 1e-9 or (between < 2 * halves).any():
                continue
            pieces = max(1, int(np.ceil((end - begin) * radius * np.sqrt(model.density))))
            angles = begin + (end - begin) * np.arange(pieces + 1)[:, None] / pieces
            found.append(middle + radius * (np.cos(angles) * u + np.sin(angles) * v))
    return np.concatenate(found)


def mark(marked: NDArray[Any], origin: Floats, spacing: Floats, centres: Floats, radii: Floats, value: float) -> None:
    """Set all points within or on spheres to a value. origin : (3,) position of the first point of `marked`"""
    shape = marked.shape[::-1]
    for centre, radius in zip(centres - origin, radii, strict=True):
        first = np.maximum(0, np.ceil((centre - radius) / spacing - 0.5).astype(int))
        end = np.minimum(shape, np.floor((centre + radius) / spacing + 0.5).astype(int) + 1)
        if (first >= end).any():
            continue
        x, y, z = (centre[a] - spacing[a] * np.arange(first[a], end[a]) for a in range(3))
        # This order of operations gives the same result as APBS for points exactly on a sphere.
        within = ((z * z)[:, None, None] + (y * y)[:, None]) + x * x <= radius * radius
        marked[first[2] : end[2], first[1] : end[1], first[0] : end[0]][within] = value


def strictly_inside(grid: Grid, positions: Floats) -> Bools:
    """Return a mask (n,) of positions inside a grid, excluding its border."""
    return np.asarray(np.all((positions > grid.origin) & (positions < grid.last), axis=1))


def middle_codes(problem: PBProblem, grid: Grid, probes: Floats) -> Codes:
    """Return 1 for edges with midpoints in solvent and 0 for others, (3, nz, ny, nx); eq. 5."""
    solute, model = problem.solute, problem.model
    codes = np.ones((3, *grid.shape[::-1]), np.uint8)
    taken = strictly_inside(grid, solute.positions) & (solute.radii > SMALL)
    for axis in range(3):
        origin = grid.origin.copy()
        origin[axis] += 0.5 * grid.spacing[axis]
        mark(codes[axis], origin, grid.spacing, solute.positions[taken], solute.radii[taken] + model.probe, 0)
        mark(codes[axis], origin, grid.spacing, probes, np.full(len(probes), model.probe), 1)
    return codes


def smoothed_counts(codes: Codes) -> tuple[Codes, Codes]:
    """Count, for each edge, the existing neighbouring midpoints (up to nine), and those in solvent; eq. 6."""
    counts, solvents = np.zeros_like(codes), np.zeros_like(codes)
    padded = np.pad(codes.astype(np.int8), ((0, 0), (1, 1), (1, 1), (1, 1)), constant_values=-1)
    inner = [slice(1, -1)] * 3
    for axis in range(3):
        own = 2 - axis
        last = np.zeros(codes.shape[1:], np.bool_)
        last[tuple(slice(-1, None) if k == own else slice(None) for k in range(3))] = True
        for other in range(3):
            for back in (0, 1) if other != axis else (0,):
                for ahead in (0, 1) if other != axis else (0,):
                    part = list(inner)
                    if back:
                        part[2 - other] = slice(0, -2)
                    if ahead:
                        part[own] = slice(2, None)
                    there = padded[other][tuple(part)]
                    exists = (there >= 0) & ~(last & bool(ahead))
                    counts[axis] += exists
                    solvents[axis] += exists & (there == 1)
    return counts, solvents


def covered_pieces(grid: Grid, axis: int, centres: Floats, radii: Floats) -> NDArray[np.uint64]:
    """Return the PIECES of each edge along an axis with midpoints in a sphere, as bits, (nz, ny, nx)."""
    shape, spacing = grid.shape, grid.spacing
    pieces = np.zeros(shape[::-1], np.uint64)
    across = [a for a in range(3) if a != axis]
    for centre, radius in zip(centres - grid.origin, radii, strict=True):
        first = np.maximum(0, np.ceil((centre - radius) / spacing).astype(int) - (np.arange(3) == axis))
        end = np.minimum(shape, np.floor((centre + radius) / spacing).astype(int) + 1)
        if (first >= end).any():
            continue
        along = (centre[axis] - spacing[axis] * np.arange(first[axis], end[axis])) / spacing[axis]
        u, v = (centre[a] - spacing[a] * np.arange(first[a], end[a]) for a in across)
        room = radius * radius - ((v * v)[:, None] + u * u)  # across[0] is the fastest axis
        half = np.sqrt(np.maximum(room, 0)) / spacing[axis]
        t = along.reshape([-1 if a == axis else 1 for a in (2, 1, 0)])
        wide = np.expand_dims(half, 2 - axis)
        inside = np.expand_dims(room >= 0, 2 - axis)
        low = np.maximum(np.ceil(PIECES * (t - wide) - 0.5), 0)
        high = np.minimum(np.floor(PIECES * (t + wide) - 0.5), PIECES - 1)
        some = inside & (low <= high)
        left = np.where(some, low, 0).astype(np.uint64)
        right = np.where(some, PIECES - 1 - high, 0).astype(np.uint64)
        bits = np.where(some, (ALL_PIECES << left) & (ALL_PIECES >> right), np.uint64(0))
        pieces[first[2] : end[2], first[1] : end[1], first[0] : end[0]] |= bits
    return pieces


def edge_codes(problem: PBProblem, grid: Grid, probes: Floats) -> Codes:
    """Return the number of PIECES of each edge in solvent, (3, nz, ny, nx); eq. 7."""
    solute, model = problem.solute, problem.model
    taken = solute.radii > SMALL
    codes = np.empty((3, *grid.shape[::-1]), np.uint8)
    for axis in range(3):
        atoms = covered_pieces(grid, axis, solute.positions[taken], solute.radii[taken] + model.probe)
        solvent = ~atoms | covered_pieces(grid, axis, probes, np.full(len(probes), model.probe))
        codes[axis] = np.unpackbits(solvent[..., np.newaxis].view(np.uint8), axis=-1).sum(axis=-1)
    return codes


def spline_products(origin: Floats, grid: Grid, centres: Floats, radii: Floats, model: PBModel) -> Floats:
    """Return products over spheres of smooth steps from 0 inside to 1 outside, (nz, ny, nx); eq. 8."""
    window = model.window
    values = np.ones(grid.shape[::-1])
    for centre, radius in zip(centres - origin, radii, strict=True):
        reach = radius + window
        first = np.maximum(0, np.floor((centre - reach) / grid.spacing).astype(int))
        end = np.minimum(grid.shape, np.ceil((centre + reach) / grid.spacing).astype(int) + 1)
        if (first >= end).any():
            continue
        x, y, z = (centre[a] - grid.spacing[a] * np.arange(first[a], end[a]) for a in range(3))
        r2 = (z * z)[:, None, None] + (y * y)[:, None] + x * x
        t = (np.sqrt(r2) - radius + window) / (2 * window)
        step = 3 * t**2 - 2 * t**3 if model.surface == "spl2" else 35 * t**4 - 84 * t**5 + 70 * t**6 - 20 * t**7
        inner = max(0.0, radius - window)
        step = np.where(r2 <= inner * inner, 0.0, np.where(r2 >= reach * reach, 1.0, step))
        part = values[first[2] : end[2], first[1] : end[1], first[0] : end[0]]
        np.multiply(part, step, out=part, where=part > LEAST_PRODUCT)
    return values


def dielectrics(problem: PBProblem, grid: Grid, probes: Floats) -> Floats:
    """Return the dielectric constants of edges, (3, nz, ny, nx); eqs. 5 to 8."""
    solute, model = problem.solute, problem.model
    inner, outer = model.solute_dielectric, model.solvent_dielectric
    if model.is_uniform:
        return np.full((3, *grid.shape[::-1]), inner)
    if model.has_splines:
        taken = strictly_inside(grid, solute.positions) & (solute.radii > SMALL)
        products = []
        for axis in range(3):
            origin = grid.origin.copy()
            origin[axis] += 0.5 * grid.spacing[axis]
            products.append(spline_products(origin, grid, solute.positions[taken], solute.radii[taken], model))
        return inner + (outer - inner) * np.array(products)
    if model.surface == "edges":
        share = edge_codes(problem, grid, probes) / PIECES
    else:
        codes = middle_codes(problem, grid, probes)
        if model.surface == "mol":
            share = codes.astype(float)
        else:
            counts, solvents = smoothed_counts(codes)
            share = solvents / counts
    return harmonic(share, model)


def harmonic(share: Floats, model: PBModel) -> Floats:
    """Return harmonic averages of the dielectric constants. share : fraction of an edge in solvent; eq. 7"""
    constants: Floats = 1 / ((1 - share) / model.solute_dielectric + share / model.solvent_dielectric)
    return constants


def accessible(problem: PBProblem, grid: Grid) -> Floats:
    """Return the ion accessibility of each node, 0 to 1, (nz, ny, nx); eq. 9."""
    solute, model = problem.solute, problem.model
    if not model.has_salt:
        return np.zeros(grid.shape[::-1])
    if model.has_splines:
        taken = strictly_inside(grid, solute.positions) & (solute.radii > SMALL)
        radii = solute.radii[taken] + model.ion_radius
        return spline_products(grid.origin, grid, solute.positions[taken], radii, model)
    access, reach = np.ones(grid.shape[::-1]), solute.radii + model.ion_radius
    near = (solute.positions >= grid.origin - reach[:, None]) & (solute.positions <= grid.last + reach[:, None])
    taken = (solute.radii > SMALL) & near.all(axis=1)
    mark(access, grid.origin, grid.spacing, solute.positions[taken], reach[taken], 0)
    return access


def spline(t: Floats, degree: int) -> Floats:
    """Evaluate a B-spline with support from 0 to degree + 1; eq. 11."""
    if degree == 1:
        tent: Floats = np.maximum(0, 1 - np.abs(t - 1))
        return tent
    values: Floats = (t * spline(t, degree - 1) + (degree + 1 - t) * spline(t - 1, degree - 1)) / degree
    return values


def node_charges(problem: PBProblem, grid: Grid) -> Floats:
    """Return the charges assigned to nodes, (nz, ny, nx) e; eqs. 10 and 11."""
    solute, charges = problem.solute, np.zeros(grid.shape[::-1])
    degree = {"spl0": 1, "spl2": 2, "spl4": 4}[problem.model.charges]
    reach = degree // 2  # in spacings
    for position, charge in zip(solute.positions, solute.charges, strict=True):
        beyond = reach * grid.spacing
        if ((position <= grid.origin - beyond) | (position >= grid.last + beyond)).any():
            continue
        indices, weights = [], []
        for axis in range(3):
            place = (position[axis] - grid.origin[axis]) / grid.spacing[axis]
            low, high = int(np.floor(place)), int(np.ceil(place))
            if reach:
                index = np.arange(max(low - reach, 0), min(high + reach, grid.shape[axis] - 1) + 1)
                weights.append(spline((degree + 1) / 2 + (index - place), degree))
            else:
                index = np.array([low, low + 1])  # the second weight is 0 for a charge exactly on a node
                weights.append(np.array([1 - (place - low), place - low]))
            indices.append(index)
        np.add.at(
            charges,
            np.ix_(*indices[::-1]),
            charge * weights[2][:, None, None] * weights[1][:, None] * weights[0],
        )
    return charges


def border(grid: Grid) -> Bools:
    """Return a mask of the border nodes of a grid, (nz, ny, nx)."""
    border = np.ones(grid.shape[::-1], np.bool_)
    border[1:-1, 1:-1, 1:-1] = False
    return border


def node_positions(grid: Grid, nodes: Bools) -> Floats:
    """Return the positions of nodes, (m, 3) A."""
    positions: Floats = grid.origin + np.argwhere(nodes)[:, ::-1] * grid.spacing
    return positions


def screened_spheres(problem: PBProblem, points: Floats) -> Floats:
    """Return the potential of all atoms as charged spheres in salt solution, (m,) kT/e; eq. 12."""
    model, potential = problem.model, np.zeros(len(points))
    solute, kappa = problem.solute, problem.model.kappa
    for position, charge, radius in zip(solute.positions, solute.charges, solute.radii, strict=True):
        distance = np.sqrt(np.sum((points - position) ** 2, axis=1))
        damping = np.exp(-kappa * (distance - radius)) / (1 + kappa * radius) if kappa > SMALL else 1.0
        potential += model.boundary_factor / model.solvent_dielectric * charge / distance * damping
    return potential


def screened_molecule(problem: PBProblem, points: Floats) -> Floats:
    """Return the potential of a sphere with the molecule's charge, dipole and quadrupole, (m,) kT/e; eq. 13."""
    solute, model, kappa = problem.solute, problem.model, problem.model.kappa
    from_middle = solute.positions - solute.middle
    radius = (np.sqrt((from_middle**2).sum(axis=1)) + solute.radii).max()
    charge, dipole = solute.charges.sum(), solute.charges @ from_middle
    moments = np.einsum("a,ai,aj", solute.charges, from_middle, from_middle)
    quadrupole = 0.5 * (moments - np.eye(3) * np.trace(moments) / 3)
    outside = points - solute.middle
    r = np.sqrt((outside**2).sum(axis=1))
    e = model.solvent_dielectric / model.solute_dielectric
    t0, t1, t2 = (c / model.solvent_dielectric / r**power for c, power in ((1, 1), (-1, 3), (3, 5)))
    if kappa < SMALL:
        t1, t2 = t1 * 3 * e / (1 + 2 * e), t2 * 5 * e / (2 + 3 * e)
    else:
        a, k = kappa * radius, kappa * r
        damping = np.exp(a - k)
        t0 = t0 * damping / (1 + a)
        t1 = t1 * 3 * e * damping * (1 + k) / (1 + a + e * (2 + 2 * a + a * a))
        t2 = t2 * 5 * e * damping * (3 + 3 * k + k * k) / (6 + 6 * a + 2 * a * a + e * (9 + 9 * a + 4 * a * a + a**3))
    potential: Floats = model.boundary_factor * (
        charge * t0 - (outside @ dipole) * t1 + np.einsum("pi,ij,pj->p", outside, quadrupole, outside) * t2
    )
    return potential


def interpolated(values: Floats, grid: Grid, points: Floats) -> Floats:
    """Interpolate values trilinearly at points inside a grid, (m,); eq. 14."""
    place = (points - grid.origin) / grid.spacing
    last = np.array(grid.shape) - 1
    low = np.clip(np.floor(place), 0, last).astype(int)
    high = np.minimum(np.ceil(place).astype(int), last)
    share = place - low
    found = np.zeros(len(points))
    for corner in np.ndindex(2, 2, 2):
        index = [np.where(up, high[:, a], low[:, a]) for a, up in enumerate(corner)]
        weight = np.prod([share[:, a] if up else 1 - share[:, a] for a, up in enumerate(corner)], axis=0)
        found += weight * values[index[2], index[1], index[0]]
    return found


@dataclass(eq=False)
class Level:
    """Discretized equation on one grid, and its solution. potential : (nz, ny, nx) kT/e, with boundary values"""

    grid: Grid
    eps: Floats
    access: Floats
    charges: Floats
    potential: Floats
    edges: Floats = field(init=False)  # eps times face area divided by length
    salt: Floats = field(init=False)  # solvent dielectric times kappa^2 times volume, 0 if not accessible
    volume: float = field(init=False)

    def discretise(self, model: PBModel) -> Level:
        """Compute the coefficients of edges and nodes; eq. 3."""
        self.volume = float(np.prod(self.grid.spacing))
        self.edges = self.eps * (self.volume / self.grid.spacing**2)[:, None, None, None]
        self.salt = self.access * model.screening * self.volume
        return self


def level_of(problem: PBProblem, grid: Grid, probes: Floats, parent: Level | None) -> Level:
    """Set up the equation on a grid. parent : source of boundary values; None for those of the model"""
    model, potential, edge = problem.model, np.zeros(grid.shape[::-1]), border(grid)
    points = node_positions(grid, edge)
    if parent is not None:
        potential[edge] = interpolated(parent.potential, parent.grid, points)
    elif model.boundary != "zero":
        law = screened_spheres if model.boundary == "mdh" else screened_molecule
        potential[edge] = law(problem, points)
    eps, access = dielectrics(problem, grid, probes), accessible(problem, grid)
    return Level(grid, eps, access, node_charges(problem, grid), potential).discretise(model)


INNER = (slice(1, -1),) * 3


def applied(edges: Floats, salt: Floats, values: Floats) -> Floats:
    """Apply the linear operator of eq. 3 at the inner nodes, using boundary values; the result is 0 at the border."""
    out = np.zeros_like(values)
    for axis in range(3):
        own = 2 - axis
        lower = tuple(slice(0, -1) if k == own else slice(None) for k in range(3))
        upper = tuple(slice(1, None) if k == own else slice(None) for k in range(3))
        flow = edges[axis][lower] * (values[lower] - values[upper])
        out[lower] += flow
        out[upper] -= flow
    out += salt * values
    out[border_of(out)] = 0
    return out


def border_of(values: Floats) -> Bools:
    """Return a mask of the border of an array of nodes."""
    found = np.ones(values.shape, np.bool_)
    found[INNER] = False
    return found


def diagonal(edges: Floats, salt: Floats) -> Floats:
    """Return the diagonal of the operator, with 1 at the border."""
    total = salt.copy()
    for axis in range(3):
        own = 2 - axis
        lower = tuple(slice(0, -1) if k == own else slice(None) for k in range(3))
        upper = tuple(slice(1, None) if k == own else slice(None) for k in range(3))
        total[lower] += edges[axis][lower]
        total[upper] += edges[axis][lower]
    total[border_of(total)] = 1
    return total


def conjugate_gradients(edges: Floats, salt: Floats, right: Floats, tolerance: float) -> Floats:
    """Solve the linear equation with zero boundary values, to a residual norm below `tolerance`."""
    inverse, x, r = 1 / diagonal(edges, salt), np.zeros_like(right), right.copy()
    z = inverse * r
    p, rz = z.copy(), float((r * z).sum())
    while np.sqrt((r * r).sum()) > tolerance:
        q = applied(edges, salt, p)
        step = rz / float((p * q).sum())
        x += step * p
        r -= step * q
        z = inverse * r
        before, rz = rz, float((r * z).sum())
        p = z + rz / before * p
    return x


def ion_terms(model: PBModel, potential: Floats) -> tuple[Floats, Floats]:
    """Return the ion charge in a potential and its derivative, in units of kappa^2; u and 1 if linear; eq. 2."""
    if not model.is_nonlinear:
        return potential, np.ones_like(potential)
    value, slope = np.zeros_like(potential), np.zeros_like(potential)
    for ion in model.ions:
        exponent = np.clip(-ion.charge * potential, -LARGEST_EXPONENT, LARGEST_EXPONENT)
        factor = 0.5 * ion.concentration / model.ionic_strength * np.exp(exponent)
        value -= ion.charge * factor
        slope += ion.charge**2 * factor
    return value, slope


def residual(level: Level, model: PBModel) -> Floats:
    """Return the residual of eq. 3 at the inner nodes."""
    lacks = level.charges * model.charge_factor - applied(level.edges, np.zeros_like(level.salt), level.potential)
    lacks -= level.salt * ion_terms(model, level.potential)[0]
    lacks[border_of(lacks)] = 0
    return lacks


def solve(level: Level, model: PBModel, tolerance: float = 1e-12) -> None:
    """Solve for the potential by Newton's method, to a relative residual. The linear equation needs one step."""
    start = level.potential.copy()
    level.potential[INNER] = 0
    first = np.sqrt((residual(level, model) ** 2).sum())
    level.potential = start
    linear = PBModel(**{**vars(model), "equation": "linear"})
    for stage in (linear, model):
        lacks = residual(level, stage)
        norm = np.sqrt((lacks**2).sum())
        for _ in range(300):
            if norm <= tolerance * first:
                break
            slope = ion_terms(stage, level.potential)[1]
            goal = max(0.1 * tolerance * first, 1e-3 * norm)
            step, before, share = (
                conjugate_gradients(level.edges, level.salt * slope, lacks, goal),
                level.potential,
                1.0,
            )
            while True:
                level.potential = before + share * step
                lacks = residual(level, stage)
                found = np.sqrt((lacks**2).sum())
                if found < norm or share < 1e-3:
                    break
                share /= 2
            norm = found


def energy_terms(level: Level, problem: PBProblem, outside: Grid | None = None) -> Floats:
    """Return the energies of fixed charges, field and ions (osmotic pressure), (3,) kT; eqs. 15 to 18.

    outside : only include the region outside this grid
    """
    solute, model, grid, u = problem.solute, problem.model, level.grid, level.potential
    counts = np.ones(u.shape)
    on = ((solute.positions >= grid.origin) & (solute.positions <= grid.last)).all(axis=1)
    if outside is not None:
        low, high, half = outside.origin, outside.last, grid.spacing / 2
        within = [(axis > low[a] - half[a]) & (axis < high[a] + half[a]) for a, axis in enumerate(grid.axes())]
        counts[np.ix_(*within[::-1])] = 0
        on &= ~((solute.positions > low - 1e-12) & (solute.positions < high + 1e-12)).all(axis=1)
    if model.charges == "spl2":
        charged = float((counts * u * level.charges).sum())
    else:
        charged = float((solute.charges[on] * interpolated(u, grid, solute.positions[on])).sum())
    if not model.is_nonlinear:
        return np.array([charged, 0, 0])
    strained = 0.0
    lower = (slice(0, -1),) * 3
    for axis in range(3):
        upper = tuple(slice(1, None) if k == 2 - axis else slice(0, -1) for k in range(3))
        squares = ((u[lower] - u[upper]) / grid.spacing[axis]) ** 2
        strained += float((level.eps[axis][lower] * 0.5 * (counts[lower] + counts[upper]) * squares).sum())
    pressed, reached = 0.0, level.access > SMALL  # avoids overflow of exponentials elsewhere
    for ion in model.ions:
        factor = 0.5 * model.screening / model.ionic_strength * ion.concentration
        pressed += float(((counts * level.access)[reached] * factor * np.expm1(-ion.charge * u[reached])).sum())
    per = level.volume / model.charge_factor
    return np.array([charged, 0.5 * strained * per, pressed * per])


def total(terms: Floats, model: PBModel) -> float:
    """Return the total energy from its terms, kT; eq. 15 or 16."""
    return float(terms[0] - terms[1] - terms[2]) if model.is_nonlinear else float(0.5 * terms[0])


def energies(problem: PBProblem, tolerance: float = 1e-12) -> list[float]:
    """Return the total electrostatic energy on each grid, kT, including the self energies of charges on the grid."""
    probes = probe_points(problem.solute, problem.rolled)
    parent: Level | None = None
    around, found = np.zeros(3), []
    for grid in problem.grids:
        level = level_of(problem, grid, probes, parent)
        solve(level, problem.model, tolerance)
        if parent is not None:
            around = around + energy_terms(parent, problem, outside=grid)
        found.append(total(energy_terms(level, problem) + around, problem.model))
        parent = level
    return found
