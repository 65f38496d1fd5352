"""Born radii and implicit-solvent energy, defined; equation numbers are those of docs/theory/solvent.md."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats
from ..solvent_model import SolventModel

ROWS = 256  # atoms at a time, so that memory stays linear in atoms


def hct_term(r: Floats, rho: Floats, s: Floats) -> Floats:
    """Eq. 2: the HCT term of spheres of scaled radius s at distances r for atoms of offset radius rho, A; 1/A."""
    lower = 1 / np.maximum(rho, np.abs(r - s))
    upper = 1 / (r + s)
    term = (
        lower
        - upper
        + r / 4 * (upper**2 - lower**2)
        + np.log(upper / lower) / (2 * r)
        + s**2 / (4 * r) * (lower**2 - upper**2)
    )
    term = np.where(rho < s - r, term + 2 * (1 / rho - lower), term)
    result: Floats = np.where(rho < r + s, term, 0.0)
    return result


def _distances(positions: Floats, atoms: NDArray[np.intp]) -> Iterator[tuple[NDArray[np.intp], Floats]]:
    """Rows of the distance matrix for the given atoms, ROWS at a time; infinite for an atom and itself."""
    for start in range(0, len(atoms), ROWS):
        rows = atoms[start : start + ROWS]
        r = np.linalg.norm(positions[rows, None] - positions[None], axis=2)
        r[np.arange(len(rows)), rows] = np.inf
        yield rows, r


def hct_radius(psi: Floats, rho: Floats, radii: Floats, model: SolventModel) -> Floats:
    """Eq. 13: Born radii of Hawkins, Cramer and Truhlar, A."""
    return rho / (1 - psi)


def obc_radius(psi: Floats, rho: Floats, radii: Floats, model: SolventModel) -> Floats:
    """Eqs. 5 and 6: Born radii of Onufriev, Bashford and Case, A."""
    polynomial = model.alpha * psi - model.beta * psi**2 + model.gamma * psi**3
    born: Floats = 1 / (1 / rho - np.tanh(polynomial) / radii)
    return born


# By the name of the model.
RADIUS_FUNCTIONS = {"hct": hct_radius, "obc1": obc_radius, "obc2": obc_radius}


def born_radii(
    positions: Floats, radii: Floats, scales: Floats, model: SolventModel, atoms: NDArray[np.intp] | None = None
) -> tuple[Floats, Floats]:
    """Eqs. 1 to 6: psi and Born radii (A) of the given atoms, by default of all.

    positions (n, 3) A, radii (n,) A, scales (n,)
    """
    atoms = np.arange(len(radii)) if atoms is None else atoms
    rho = radii - model.offset
    s = scales * rho
    integrals = []
    for rows, r in _distances(positions, atoms):
        apart = np.isfinite(r)
        terms = hct_term(np.where(apart, r, 1.0), rho[rows, None], s[None])
        integrals.append(np.where(apart, terms, 0.0).sum(axis=1) / 2)
    rho, radii = rho[atoms], radii[atoms]
    psi = rho * np.concatenate(integrals)
    return psi, RADIUS_FUNCTIONS[model.gb](psi, rho, radii, model)


def gb_distance(r: Floats, born_i: Floats, born_j: Floats) -> Floats:
    """Eq. 7: the effective distance f of two charges, A."""
    product = born_i * born_j
    f: Floats = np.sqrt(r**2 + product * np.exp(-(r**2) / (4 * product)))
    return f


def gb_factor(f: Floats, model: SolventModel) -> Floats:
    """Eq. 8: (1/eps_in - exp(-kappa f)/eps_solv) / f, 1/A."""
    factor: Floats = (1 / model.solute_dielectric - np.exp(-model.kappa * f) / model.solvent_dielectric) / f
    return factor


def gb_self(charges: Floats, born: Floats, model: SolventModel) -> Floats:
    """Eq. 9: self energy of each atom, (n,) kcal/mol."""
    energy: Floats = -model.coulomb_constant / 2 * charges**2 * gb_factor(born, model)
    return energy


def gb_pair(positions: Floats, charges: Floats, born: Floats, model: SolventModel) -> Floats:
    """Eq. 10: half of the pair energies of each atom, so that their sum counts a pair once, (n,) kcal/mol."""
    energy = np.empty(len(charges))
    for rows, r in _distances(positions, np.arange(len(charges))):
        apart = np.isfinite(r)
        f = gb_distance(np.where(apart, r, 1.0), born[rows, None], born[None])
        potential = np.where(apart, charges[None] * gb_factor(f, model), 0.0).sum(axis=1)
        energy[rows] = -model.coulomb_constant / 2 * charges[rows] * potential
    return energy


def nonpolar(radii: Floats, born: Floats, model: SolventModel) -> Floats:
    """Eq. 11: the ACE surface term of each atom, (n,) kcal/mol."""
    energy: Floats = 4 * np.pi * model.ace_tension * (radii + model.probe_radius) ** 2 * (radii / born) ** 6
    return energy
