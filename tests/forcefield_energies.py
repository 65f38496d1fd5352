"""Energies of bonded tables in plain NumPy, by the formulas of their classes."""

from __future__ import annotations

import numpy as np

from pele_ocl.units import COULOMB_KCAL_A


def dihedrals(positions, atoms):
    """(m,) torsion angles, 0 for cis, of atoms (m, 4)."""
    a, b, c, d = (positions[atoms[:, k]] for k in range(4))
    first, axis, last = a - b, c - b, d - c
    normal, other = np.cross(axis, first), np.cross(axis, last)
    length = np.linalg.norm(axis, axis=1)
    return np.arctan2((np.cross(normal, other) * axis).sum(1), length * (normal * other).sum(1))


def energies(atoms):
    """kcal/mol of each table of atoms.bonded, by the name of its field."""
    bonded, x = atoms.bonded, atoms.positions
    i, j = (x[bonded.bonds.atoms[:, k]] for k in range(2))
    k, r0 = bonded.bonds.parameters.T
    found = {"bonds": (k * (np.linalg.norm(i - j, axis=1) - r0) ** 2).sum()}
    first, middle, last = (x[bonded.angles.atoms[:, k]] for k in range(3))
    u, v = first - middle, last - middle
    angle = np.arctan2(np.linalg.norm(np.cross(u, v), axis=1), (u * v).sum(1))
    k, theta0 = bonded.angles.parameters.T
    found["angles"] = (k * (angle - theta0) ** 2).sum()
    for name in ("torsions", "impropers"):
        table = getattr(bonded, name)
        k, n, phase = table.parameters.T
        found[name] = (k * (1 + np.cos(n * dihedrals(x, table.atoms) - phase))).sum()
    i, j = bonded.one_four.atoms.T
    r = np.linalg.norm(x[i] - x[j], axis=1)
    q, sigma, epsilon = bonded.one_four.parameters.T
    found["one_four"] = (COULOMB_KCAL_A * q / r + 4 * epsilon * ((sigma / r) ** 12 - (sigma / r) ** 6)).sum()
    return {name: float(value) for name, value in found.items()}
