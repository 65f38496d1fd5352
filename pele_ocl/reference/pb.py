"""Poisson-Boltzmann by finite differences, defined step by step; equation numbers: docs/theory/poisson-boltzmann.md.

Arrays are (nz, ny, nx). An edge leads from its node to the next one along its axis; arrays of edges are
(3, nz, ny, nx), axis x first, and edges that lead out of the grid are not used.
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

PIECES = 64  # that an edge is cut into where its share of solvent is counted
ALL_PIECES = np.uint64(2**64 - 1)
LARGEST_EXPONENT = 85.0  # of an ion's Boltzmann factor, as in APBS
LEAST_PRODUCT = np.float32(1e-12)  # of splines: smaller ones are left as they are, as in APBS
NEAREST = 1e-2  # A: the singular potential of an atom is taken no closer

Codes = NDArray[np.uint8]
Bools = NDArray[np.bool_]


def rounded(x: float) -> int:
    """Round to the nearest whole number, halves upwards."""
    return int(np.floor(x + 0.5))


def unit_points(wanted: float) -> Floats:
    """Points of a unit sphere in rings, (m, 3); m is near `wanted`."""
    n_rings = rounded(np.sqrt(np.pi * wanted / 4))
    points = []
    for ring in range(n_rings):  # the first has no points and the south pole no ring, as in APBS
        theta = np.pi / n_rings * ring
        around = rounded(np.sin(theta) * 2 * n_rings)
        for k in range(around):
            phi = 2 * np.pi / around * k
            points.append((np.cos(phi) * np.sin(theta), np.sin(phi) * np.sin(theta), np.cos(theta)))
    return np.array(points).reshape(-1, 3)


def probe_points(solute: PBSolute, model: PBModel) -> Floats:
    """Centres of probes that touch an atom and overlap none, (m, 3) A; eq. 4, for edges by shares 4a, too."""
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
    """Centres of probes that touch two atoms and overlap none, (m, 3) A, the ones that touch three among them; eq. 4a.

    They are on the circles where two spheres r + R meet. Parts of a circle that no other sphere holds have points at
    both ends, and between them as far apart as points of the density are, or nearer.
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
        if (least <= -reach).any():  # all of it is held
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
    """Set what lies within spheres, their surface included, to a value. origin : (3,) of the first point of `marked`"""
    shape = marked.shape[::-1]
    for centre, radius in zip(centres - origin, radii, strict=True):
        first = np.maximum(0, np.ceil((centre - radius) / spacing - 0.5).astype(int))
        end = np.minimum(shape, np.floor((centre + radius) / spacing + 0.5).astype(int) + 1)
        if (first >= end).any():
            continue
        x, y, z = (centre[a] - spacing[a] * np.arange(first[a], end[a]) for a in range(3))
        # In this order of arithmetic points exactly on a sphere count as APBS counts them.
        within = ((z * z)[:, None, None] + (y * y)[:, None]) + x * x <= radius * radius
        marked[first[2] : end[2], first[1] : end[1], first[0] : end[0]][within] = value


def strictly_inside(grid: Grid, positions: Floats) -> Bools:
    """Find the positions inside a grid and not on its border, (n,) True or False."""
    return np.asarray(np.all((positions > grid.origin) & (positions < grid.last), axis=1))


def middle_codes(problem: PBProblem, grid: Grid, probes: Floats) -> Codes:
    """Find if edges' middles lie in solvent, 0 or 1, (3, nz, ny, nx); eq. 5."""
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
    """Count the nine middles within a step of each, as many as exist, and as many as lie in solvent; eq. 6."""
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
    """Find the PIECES of each edge along an axis with their midpoints in a sphere, as bits, (nz, ny, nx)."""
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
        room = radius * radius - ((v * v)[:, None] + u * u)  # across[0] runs fastest
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
    """Count an edge's PIECES in solvent, (3, nz, ny, nx); eq. 7."""
    solute, model = problem.solute, problem.model
    taken = solute.radii > SMALL
    codes = np.empty((3, *grid.shape[::-1]), np.uint8)
    for axis in range(3):
        atoms = covered_pieces(grid, axis, solute.positions[taken], solute.radii[taken] + model.probe)
        solvent = ~atoms | covered_pieces(grid, axis, probes, np.full(len(probes), model.probe))
        codes[axis] = np.unpackbits(solvent[..., np.newaxis].view(np.uint8), axis=-1).sum(axis=-1)
    return codes


def spline_products(origin: Floats, grid: Grid, centres: Floats, radii: Floats, model: PBModel) -> Floats:
    """Products over spheres of a step from 0 within to 1 without, (nz, ny, nx); eq. 8."""
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
    """Dielectric constants of the edges, (3, nz, ny, nx); eqs. 5 to 8."""
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
    """Put both parts of edges in series: dielectric constants for a share of each in solvent; eq. 7."""
    constants: Floats = 1 / ((1 - share) / model.solute_dielectric + share / model.solvent_dielectric)
    return constants


def accessible(problem: PBProblem, grid: Grid) -> Floats:
    """Share of ions' access to each node, 0 to 1, (nz, ny, nx); eq. 9."""
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
    """Evaluate a B-spline that is not 0 between 0 and degree + 1; eq. 11."""
    if degree == 1:
        tent: Floats = np.maximum(0, 1 - np.abs(t - 1))
        return tent
    values: Floats = (t * spline(t, degree - 1) + (degree + 1 - t) * spline(t - 1, degree - 1)) / degree
    return values


def node_charges(problem: PBProblem, grid: Grid) -> Floats:
    """Charges on the nodes, (nz, ny, nx) e; eqs. 10 and 11."""
    solute, charges = problem.solute, np.zeros(grid.shape[::-1])
    degree = {"spl0": 1, "spl2": 2, "spl4": 4}[problem.model.charges]
    reach = degree // 2  # spacings
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
                index = np.array([low, low + 1])  # the second has no weight where both are one
                weights.append(np.array([1 - (place - low), place - low]))
            indices.append(index)
        np.add.at(
            charges,
            np.ix_(*indices[::-1]),
            charge * weights[2][:, None, None] * weights[1][:, None] * weights[0],
        )
    return charges


def border(grid: Grid) -> Bools:
    """Nodes of the six faces of a grid, (nz, ny, nx)."""
    border = np.ones(grid.shape[::-1], np.bool_)
    border[1:-1, 1:-1, 1:-1] = False
    return border


def node_positions(grid: Grid, nodes: Bools) -> Floats:
    """Positions of nodes, (m, 3) A."""
    positions: Floats = grid.origin + np.argwhere(nodes)[:, ::-1] * grid.spacing
    return positions


def screened_spheres(problem: PBProblem, points: Floats) -> Floats:
    """Potential of every atom as a sphere in salt water, (m,) kT/e; eq. 12."""
    model, potential = problem.model, np.zeros(len(points))
    solute, kappa = problem.solute, problem.model.kappa
    for position, charge, radius in zip(solute.positions, solute.charges, solute.radii, strict=True):
        distance = np.sqrt(np.sum((points - position) ** 2, axis=1))
        damping = np.exp(-kappa * (distance - radius)) / (1 + kappa * radius) if kappa > SMALL else 1.0
        potential += model.boundary_factor / model.solvent_dielectric * charge / distance * damping
    return potential


def screened_molecule(problem: PBProblem, points: Floats) -> Floats:
    """Potential of one sphere with the molecule's charge, dipole and quadrupole, (m,) kT/e; eq. 13."""
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
    """Values of a grid at points inside, (m,), from the eight nodes around each; eq. 14."""
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
    """Equation on one grid, and its solution. potential : (nz, ny, nx) kT/e, with values at the border"""

    grid: Grid
    eps: Floats
    access: Floats
    charges: Floats
    potential: Floats
    edges: Floats = field(init=False)  # eps times face area over length
    salt: Floats = field(init=False)  # solvent dielectric times kappa^2 times volume, where ions come
    volume: float = field(init=False)

    def discretise(self, model: PBModel) -> Level:
        """Weigh edges and nodes; eq. 3."""
        self.volume = float(np.prod(self.grid.spacing))
        self.edges = self.eps * (self.volume / self.grid.spacing**2)[:, None, None, None]
        self.salt = self.access * model.screening * self.volume
        return self


def level_of(problem: PBProblem, grid: Grid, probes: Floats, parent: Level | None) -> Level:
    """Make the equation on a grid. parent : gives the values at the border; None for the model's own."""
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
    """Apply the linear operator of eq. 3 at the inner nodes; 0 at the border, whose values count."""
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
    """Find the border of an array of nodes."""
    found = np.ones(values.shape, np.bool_)
    found[INNER] = False
    return found


def diagonal(edges: Floats, salt: Floats) -> Floats:
    """Find the operator's diagonal; 1 at the border."""
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
    """Solve the linear equation with zeros at the border, to a residual smaller than `tolerance` by its norm."""
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
    """Find the charge of ions in a potential and its slope, in units of kappa^2; u and 1 if linear; eq. 2."""
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
    """Find the residual of eq. 3 at the inner nodes."""
    lacks = level.charges * model.charge_factor - applied(level.edges, np.zeros_like(level.salt), level.potential)
    lacks -= level.salt * ion_terms(model, level.potential)[0]
    lacks[border_of(lacks)] = 0
    return lacks


def solve(level: Level, model: PBModel, tolerance: float = 1e-12) -> None:
    """Find the potential, to a relative residual; one step of Newton's method solves the linear equation."""
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
    """Charges in the potential, the field's energy and the ions' pressure, (3,) kT; eqs. 15 to 18.

    outside : only what lies outside this grid counts
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
    pressed, reached = 0.0, level.access > SMALL  # elsewhere exponentials may overflow
    for ion in model.ions:
        factor = 0.5 * model.screening / model.ionic_strength * ion.concentration
        pressed += float(((counts * level.access)[reached] * factor * np.expm1(-ion.charge * u[reached])).sum())
    per = level.volume / model.charge_factor
    return np.array([charged, 0.5 * strained * per, pressed * per])


def total(terms: Floats, model: PBModel) -> float:
    """Energy of its terms, kT; eq. 15 or 16."""
    return float(terms[0] - terms[1] - terms[2]) if model.is_nonlinear else float(0.5 * terms[0])


def energies(problem: PBProblem, tolerance: float = 1e-12) -> list[float]:
    """Total electrostatic energy on each grid, kT, self energies of charges on the grid included."""
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
