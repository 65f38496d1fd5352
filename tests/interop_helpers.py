"""Energies of tables in NumPy, and of OpenMM's Reference platform by class of force."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from pele_ocl import Atoms

KJ = 4.184
OPENMM_COULOMB = 138.935456 / KJ * 10  # kcal A/(mol e^2)


def dihedrals(positions, atoms):
    """Return dihedral angles of four atoms each, -pi to pi."""
    p = positions[atoms]
    a, b, c = p[:, 1] - p[:, 0], p[:, 2] - p[:, 1], p[:, 3] - p[:, 2]
    m, n = np.cross(a, b), np.cross(b, c)
    return np.arctan2(np.linalg.norm(b, axis=1) * (a * n).sum(axis=1), (m * n).sum(axis=1))


def periodic_spline(values, where):
    """Evaluate the periodic cubic spline through values at 2 pi k / n along the first axis, at one angle."""
    n = len(values)
    h = 2 * np.pi / n
    matrix = 4 * np.eye(n) + np.roll(np.eye(n), 1, axis=0) + np.roll(np.eye(n), -1, axis=0)
    bends = np.linalg.solve(matrix, 6 / h**2 * (np.roll(values, -1, axis=0) - 2 * values + np.roll(values, 1, axis=0)))
    k, t = divmod(where % (2 * np.pi), h)
    i, j = int(k) % n, (int(k) + 1) % n
    u, v = (h - t) / h, t / h
    return u * values[i] + v * values[j] + ((u**3 - u) * bends[i] + (v**3 - v) * bends[j]) * h**2 / 6


def energies(atoms: Atoms) -> dict[str, float]:
    """Return the energy of each table, and of all pairs including 1-4 pairs, kcal/mol."""
    x, b = atoms.positions, atoms.bonded

    def lengths(table):
        return np.linalg.norm(x[table.atoms[:, 0]] - x[table.atoms[:, 1]], axis=1)

    def harmonic(table, values):
        return float((table.parameters[:, 0] * (values - table.parameters[:, 1]) ** 2).sum())

    found = {name: harmonic(table, lengths(table)) for name, table in b.tables() if name in ("bonds", "urey_bradley")}
    i, j, k = b.angles.atoms.T
    u, v = x[i] - x[j], x[k] - x[j]
    bends = np.arctan2(np.linalg.norm(np.cross(u, v), axis=1), (u * v).sum(axis=1))
    found["angles"] = harmonic(b.angles, bends)
    for name in ("torsions", "impropers"):
        table = getattr(b, name)
        height, n, phase = table.parameters.T
        found[name] = float((height * (1 + np.cos(n * dihedrals(x, table.atoms) - phase))).sum())
    table = b.harmonic_impropers
    off = dihedrals(x, table.atoms) - table.parameters[:, 1]
    found["harmonic_impropers"] = float(
        (table.parameters[:, 0] * (off - 2 * np.pi * np.round(off / 2 / np.pi)) ** 2).sum()
    )
    found["cmaps"] = 0.0
    for row, number in zip(b.cmaps.atoms, b.cmaps.parameters[:, 0].astype(int), strict=True):
        first, second = dihedrals(x, row.reshape(2, 4))
        found["cmaps"] += float(periodic_spline(periodic_spline(b.maps[number], first), second))
    return found | {"pairs": _pairs(atoms) + _well(lengths(b.one_four), *b.one_four.parameters.T)}


def _pairs(atoms: Atoms) -> float:
    n = len(atoms)
    among = np.triu(np.ones((n, n), bool), 1)
    own = atoms.bonded.lj_pairs
    for i, j in np.concatenate([atoms.bonded.excluded, atoms.bonded.one_four.atoms, own.atoms]):
        among[min(i, j), max(i, j)] = False
    i, j = np.nonzero(among)
    s, e = atoms.lj_sigma, atoms.lj_epsilon
    sigma = (s[i] + s[j]) / 2 if atoms.combining == "arithmetic" else np.sqrt(s[i] * s[j])
    r = np.linalg.norm(atoms.positions[i] - atoms.positions[j], axis=1)
    by_rule = _well(r, atoms.charges[i] * atoms.charges[j], sigma, np.sqrt(e[i] * e[j]))
    i, j = own.atoms.T
    r = np.linalg.norm(atoms.positions[i] - atoms.positions[j], axis=1)
    return by_rule + _well(r, atoms.charges[i] * atoms.charges[j], *own.parameters.T)


def _well(r, charge_product, sigma, epsilon) -> float:
    return float((OPENMM_COULOMB * charge_product / r + 4 * epsilon * ((sigma / r) ** 12 - (sigma / r) ** 6)).sum())


def openmm_energies(system, positions) -> dict[str, float]:
    """Return the energy of each class of force at positions (n, 3) A, kcal/mol."""
    import openmm

    forces = system.getForces()
    for k, force in enumerate(forces):
        force.setForceGroup(k)
    context = openmm.Context(system, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatformByName("Reference"))
    context.setPositions(positions / 10)
    found: dict[str, float] = defaultdict(float)
    for k, force in enumerate(forces):
        found[type(force).__name__] += context.getState(getEnergy=True, groups={k}).getPotentialEnergy()._value / KJ
    return found


# The tables whose energy is that of the forces of a class, or of several.
FORCES_OF = (
    (("bonds", "urey_bradley"), ("HarmonicBondForce",)),
    (("angles",), ("HarmonicAngleForce",)),
    (
        ("torsions", "impropers", "harmonic_impropers"),
        ("PeriodicTorsionForce", "RBTorsionForce", "CustomTorsionForce"),
    ),
    (("cmaps",), ("CMAPTorsionForce",)),
    (("pairs",), ("NonbondedForce", "CustomNonbondedForce", "CustomBondForce")),
)


def assert_same_energies(atoms: Atoms, system) -> None:
    """Assert that every table has the energy of the forces from which it was created."""
    ours, theirs = energies(atoms), openmm_energies(system, atoms.positions)
    for tables, forces in FORCES_OF:
        mine, others = sum(ours[name] for name in tables), sum(theirs[name] for name in forces)
        tolerance = 1e-11 if tables != ("pairs",) else 2e-8  # Reference rounds Coulomb's constant
        assert abs(mine - others) <= tolerance * max(1.0, abs(others), 1e3 * (tables == ("pairs",))), (
            tables,
            mine,
            others,
        )
