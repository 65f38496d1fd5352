"""Reference implementation of Born radii and solvent energies; equation numbers of docs/theory/solvent.md."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats
from ..gb_models import Necks, Spheres
from ..gb_models.necks import REACH
from ..gb_models.solvent_model import SolventModel

ROWS = 256  # atoms at a time, so that memory is linear in the number of atoms
SANDER_TERMS = 5  # terms of the series in sander


def sphere_ends(r: Floats, rho: Floats, s: Floats, rgb_max: float | None) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Return the integration limits of spheres, A, and a mask of spheres that contribute, as in `hct_term`."""
    limit = np.inf if rgb_max is None else rgb_max
    begin, end = np.maximum(rho, np.abs(r - s)), np.minimum(r + s, limit)
    counts = (rho < end) & (begin < limit)
    return begin, np.where(counts, end, begin), counts


def sander_terms(
    r: Floats, rho: Floats, s: Floats, rgb_max: float | None, slope: bool
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return HCT terms (1/A) of sander, or derivatives (1/A^2), and a mask of pairs for which they differ from eq. 2.

    sander uses twice the series of eq. 4, truncated after SANDER_TERMS terms, if r > 4s, even for overlapping spheres.
    The mask contains all pairs with s < 0, and overlapping spheres with r > 4s that lie completely within rgb_max (A).
    For s < 0, the term is 0 if the sphere is not completely within rgb_max.
    """
    k = np.arange(1, SANDER_TERMS + 1)
    factors = 2 * k / (2 * k + 1)
    powers = (s / r)[..., None] ** (2 * k + 1)
    series = (-(2 * k + 2) * factors * powers).sum(-1) / r**2 if slope else (factors * powers).sum(-1) / r
    within = r + np.abs(s) < (np.inf if rgb_max is None else rgb_max)
    instead = (s < 0) | ((r > 4 * s) & (r < rho + s) & within)
    return np.where(within, series, 0.0), np.broadcast_to(instead, series.shape)


def hct_term(r: Floats, rho: Floats, s: Floats, rgb_max: float | None = None, series_first: bool = False) -> Floats:
    """Eq. 2: HCT term, 1/A, of spheres with scaled radius s at distance r, for offset radii rho, A.

    rgb_max : cutoff of spheres, A; None for no cutoff
    series_first : whether to use the series before checking for overlaps, as in sander; see SolventModel
    """
    begin, end, counts = sphere_ends(r, rho, s, rgb_max)
    lower, upper = 1 / begin, 1 / end
    term = (
        lower
        - upper
        + r / 4 * (upper**2 - lower**2)
        + np.log(upper / lower) / (2 * r)
        + s**2 / (4 * r) * (lower**2 - upper**2)
    )
    term = np.where(rho < s - r, term + 2 * (1 / rho - lower), term)
    result: Floats = np.where(counts, term, 0.0)
    if not series_first:
        return result
    series, instead = sander_terms(r, rho, s, rgb_max, slope=False)
    return np.where(instead, series, result)


def necks_at(
    r: Floats, necks: Necks, kinds: NDArray[np.intp], others: NDArray[np.intp]
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Return r - d0 (A), m0 (1/A) and a mask of necks between atoms of these kinds at distances r."""
    there = r < necks.radii[kinds] + necks.radii[others] + REACH
    return r - necks.distances[others, kinds], necks.sizes[others, kinds], there


def neck_term(r: Floats, necks: Necks, kinds: NDArray[np.intp], others: NDArray[np.intp]) -> Floats:
    """Eq. 1 of docs/theory/gb-models.md: neck integrals between atoms of these kinds at distances r, 1/A."""
    x, size, there = necks_at(r, necks, kinds, others)
    term: Floats = np.where(there, size / (1 + x**2 + 0.3 * x**6), 0.0)
    return term


def _distances(positions: Floats, atoms: NDArray[np.intp]) -> Iterator[tuple[NDArray[np.intp], Floats]]:
    """Yield rows of the distance matrix for the given atoms, ROWS at a time; infinite on the diagonal."""
    for start in range(0, len(atoms), ROWS):
        rows = atoms[start : start + ROWS]
        r = np.linalg.norm(positions[rows, None] - positions[None], axis=2)
        r[np.arange(len(rows)), rows] = np.inf
        yield rows, r


def hct_radius(psi: Floats, spheres: Spheres, model: SolventModel) -> Floats:
    """Eq. 13: Born radii of Hawkins, Cramer and Truhlar, A."""
    return spheres.rho / (1 - psi)


def coefficients(spheres: Spheres, model: SolventModel) -> tuple[Floats, Floats, Floats]:
    """Return alpha, beta and gamma of atoms, (n,) each."""
    constants = model.radius_constants if spheres.constants is None else spheres.constants
    alpha, beta, gamma, _ = np.broadcast_to(constants, (len(spheres.radii), 4)).T
    return alpha, beta, gamma


def obc_radius(psi: Floats, spheres: Spheres, model: SolventModel) -> Floats:
    """Eqs. 5 and 6: Born radii of Onufriev, Bashford and Case, A."""
    alpha, beta, gamma = coefficients(spheres, model)
    polynomial = alpha * psi - beta * psi**2 + gamma * psi**3
    born: Floats = 1 / (1 / spheres.rho - np.tanh(polynomial) / spheres.radii)
    return born


# By the `function` of models, the macro that selects the same function in kernels.
RADIUS_FUNCTIONS = {"GB_RADIUS_HCT": hct_radius, "GB_RADIUS_OBC": obc_radius}


def born_radii(
    positions: Floats, radii: Floats, scales: Floats, model: SolventModel, atoms: NDArray[np.intp] | None = None
) -> tuple[Floats, Floats]:
    """Eqs. 1 to 6: psi and Born radii (A) of the given atoms, by default of all.

    positions (n, 3) A, radii (n,) A, scales (n,)
    """
    atoms = np.arange(len(radii)) if atoms is None else atoms
    rho = radii - model.offset
    return _radii_of(positions, Spheres(radii, rho, scales * rho), model, atoms)


def born_radii_of(atoms: Atoms, model: SolventModel, rows: NDArray[np.intp] | None = None) -> tuple[Floats, Floats]:
    """Return psi and Born radii (A) of the given atoms, by default of all, for any GB model."""
    return _radii_of(atoms.positions, model.spheres(atoms), model, np.arange(len(atoms)) if rows is None else rows)


def _radii_of(
    positions: Floats, spheres: Spheres, model: SolventModel, atoms: NDArray[np.intp]
) -> tuple[Floats, Floats]:
    integrals = []
    for rows, r in _distances(positions, atoms):
        apart = np.isfinite(r)
        distances = np.where(apart, r, 1.0)
        terms = (
            hct_term(distances, spheres.rho[rows, None], spheres.scaled[None], model.born_cutoff, model.series_first)
            / 2
        )
        if spheres.necks is not None:
            kinds = spheres.necks.kinds
            terms = terms + neck_term(distances, spheres.necks, kinds[rows, None], kinds[None])
        integrals.append(np.where(apart, terms, 0.0).sum(axis=1))
    psi = spheres.rho[atoms] * np.concatenate(integrals)
    own = Spheres(
        spheres.radii[atoms], spheres.rho[atoms], spheres.scaled[atoms],
        None if spheres.constants is None else spheres.constants[atoms],
    )  # fmt: skip
    return psi, RADIUS_FUNCTIONS[model.gb_model.function](psi, own, model)


def gb_distance(r: Floats, born_i: Floats, born_j: Floats) -> Floats:
    """Eq. 7: effective distance f of two charges, A."""
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
    """Eq. 10: half of the pair energies of each atom, (n,) kcal/mol, so that the sum counts every pair once."""
    energy = np.empty(len(charges))
    for rows, r in _distances(positions, np.arange(len(charges))):
        apart = np.isfinite(r)
        f = gb_distance(np.where(apart, r, 1.0), born[rows, None], born[None])
        potential = np.where(apart, charges[None] * gb_factor(f, model), 0.0).sum(axis=1)
        energy[rows] = -model.coulomb_constant / 2 * charges[rows] * potential
    return energy


def nonpolar(radii: Floats, born: Floats, model: SolventModel) -> Floats:
    """Eq. 11: ACE surface term of each atom, (n,) kcal/mol."""
    energy: Floats = 4 * np.pi * model.ace_tension * (radii + model.probe_radius) ** 2 * (radii / born) ** 6
    return energy
