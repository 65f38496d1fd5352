"""Reference implementation of the total implicit-solvent energy; equation numbers of docs/theory/energy.md."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats, Ints
from ..gb_models import Necks, Spheres
from ..gb_models.solvent_model import SolventModel
from ..pairs import nonbonded_pairs
from ..pairs.dielectric import inverse_dielectrics
from .bonded import bonded_terms
from .sgb import nonpolar_sgb, surface_born_radii
from .solvent import (
    born_radii_of,
    coefficients,
    gb_distance,
    gb_factor,
    gb_self,
    necks_at,
    nonpolar,
    sander_terms,
    sphere_ends,
)
from .surface import surface_areas

ROWS = 256  # atoms at a time, so that memory is linear in the number of atoms
PAIR_TERMS = ("lennard_jones", "coulomb", "gb_pair")
TERMS = (*PAIR_TERMS, "gb_self", "nonpolar")


@dataclass(frozen=True, eq=False)
class ReferenceEnergy:
    """Reference result: per-atom energies, (n,) kcal/mol, and gradients, (n, 3) kcal/mol/A, of each term."""

    per_atom: dict[str, Floats]
    gradients: dict[str, Floats]
    born_radii: Floats

    @property
    def total(self) -> float:
        """Sum of all terms, kcal/mol."""
        return float(sum(values.sum() for values in self.per_atom.values()))

    @property
    def gradient(self) -> Floats:
        """Gradient of the sum, (n, 3) kcal/mol/A."""
        gradient: Floats = sum(self.gradients.values(), np.zeros_like(self.gradients["coulomb"]))
        return gradient


def energy(
    atoms: Atoms,
    model: SolventModel | None = None,
    *,
    fixed_radii: Floats | None = None,
    one_four: Literal["scale", "exclude"] = "scale",
    cutoff: float | None = None,
) -> ReferenceEnergy:
    """Compute all energy terms and their gradients; each energy is divided equally between its atoms.

    fixed_radii : (n,) constant Born radii, A; by default they depend on the positions
    one_four : "scale" adds 1-4 Lennard-Jones and Coulomb energies as separate terms, "exclude" omits them; GB always
        includes 1-4 pairs
    cutoff : of pair terms, A; the Born radii have no cutoff
    """
    model = model or SolventModel()
    atoms = model.choose_radii(atoms)
    n, in_vacuum = len(atoms), model.gb_model.vacuum
    if fixed_radii is not None:
        born = np.asarray(fixed_radii, np.float64)
    else:
        born = np.full(n, np.nan) if in_vacuum else _born_of(atoms, model)
    of_surface = model.gb_model.of_surface
    if of_surface and fixed_radii is None:
        fixed_radii = born  # constant in the gradient
    per_atom = {term: np.zeros(n) for term in PAIR_TERMS}
    gradients = {term: np.zeros((n, 3)) for term in TERMS}
    by_radius = {"gb_pair": np.zeros(n)}
    excluded = nonbonded_pairs(atoms).excluded
    for rows, d, r, counted in _pairs(atoms.positions, cutoff):
        kept = _kept(n, rows, excluded)
        terms = (_lennard_jones(atoms, rows, r), _coulomb(atoms, rows, r, model))
        for term, (values, slopes) in zip(PAIR_TERMS, terms, strict=False):
            per_atom[term][rows] = np.where(counted & kept, values, 0).sum(axis=1) / 2
            gradients[term][rows] = np.einsum("ij,ijk->ik", np.where(counted & kept, slopes, 0), d)
        if in_vacuum:
            continue
        values, slopes, radius_slopes = _gb_pair(atoms, rows, r, born, model)
        per_atom["gb_pair"][rows] = np.where(counted, values, 0).sum(axis=1) / 2
        gradients["gb_pair"][rows] = np.einsum("ij,ijk->ik", np.where(counted, slopes, 0), d)
        by_radius["gb_pair"][rows] = np.where(counted, radius_slopes, 0).sum(axis=1)
    more, more_gradients = bonded_terms(atoms, model, cutoff, one_four == "scale")
    if model.gb_model.own_dielectrics:
        _correct_dielectrics(atoms, model, born, cutoff, per_atom | more, gradients | more_gradients)
    for terms_of, corrections in ((per_atom, more), (gradients, more_gradients)):  # for pairs with specific parameters
        if "lennard_jones" in corrections:
            terms_of["lennard_jones"] += corrections.pop("lennard_jones")
    if in_vacuum:
        for term in ("gb_pair", "gb_self", "nonpolar"):
            per_atom.pop(term, None)
            gradients.pop(term)
        return ReferenceEnergy(per_atom | more, gradients | more_gradients, born)
    if of_surface:
        less = inverse_dielectrics(atoms, model) - 1
        own = model.coulomb_factor / 2 * atoms.charges**2 * less / born
        per_atom["gb_self"] = gb_self(atoms.charges, born, model) - own
        per_atom["nonpolar"] = nonpolar_sgb(atoms, born, model)
        return ReferenceEnergy(per_atom | more, gradients | more_gradients, born)
    assert atoms.gb_radii is not None
    per_atom["gb_self"] = gb_self(atoms.charges, born, model)
    per_atom["nonpolar"] = nonpolar(atoms.gb_radii, born, model)
    if model.surface == "lcpo":
        areas, slopes = surface_areas(atoms, model)
        per_atom["nonpolar"], gradients["nonpolar"] = model.surface_tension * areas, model.surface_tension * slopes
    by_radius["gb_self"] = _gb_self_slope(atoms.charges, born, model)
    by_radius["nonpolar"] = -6 * nonpolar(atoms.gb_radii, born, model) / born
    if fixed_radii is None:
        for term, gradient in _chain_rule(atoms, model, born, by_radius).items():
            gradients[term] += gradient
    if model.surface == "none":
        del per_atom["nonpolar"], gradients["nonpolar"]
    return ReferenceEnergy(per_atom | more, gradients | more_gradients, born)


def _born_of(atoms: Atoms, model: SolventModel) -> Floats:
    """Return Born radii, (n,) A."""
    return surface_born_radii(atoms, model) if model.gb_model.of_surface else born_radii_of(atoms, model)[1]


def _correct_dielectrics(
    atoms: Atoms, model: SolventModel, born: Floats, cutoff: float | None, per_atom: dict[str, Floats],
    gradients: dict[str, Floats],
) -> None:  # fmt: skip
    """Add the difference between eq. 3 of docs/theory/sgb.md and pair terms with a uniform dielectric constant."""
    inverses, pairs, n = inverse_dielectrics(atoms, model), nonbonded_pairs(atoms), len(atoms)
    direct = model.coulomb_factor * np.outer(atoms.charges, atoms.charges)
    terms = {"coulomb": direct * _kept(n, np.arange(n), pairs.excluded)}
    if "coulomb_14" in per_atom:
        scaled = np.zeros((n, n))
        scaled[tuple(pairs.one_four.atoms.T)] = model.coulomb_factor * pairs.one_four.parameters[:, 0]
        terms["coulomb_14"] = scaled + scaled.T
    for rows, d, r, counted in _pairs(atoms.positions, cutoff):
        less = np.where(counted, np.minimum(inverses[rows, None], inverses) - 1, 0)
        for term, charges in terms.items():
            values = less * charges[rows] / r
            per_atom[term][rows] += values.sum(axis=1) / 2
            gradients[term][rows] -= np.einsum("ij,ijk->ik", values / r**2, d)
        own, other = born[rows, None], born[None]
        gauss, f = np.exp(-(r**2) / (4 * own * other)), gb_distance(r, own, other)
        values = -less * direct[rows] / f
        per_atom["gb_pair"][rows] += values.sum(axis=1) / 2
        gradients["gb_pair"][rows] -= np.einsum("ij,ijk->ik", values * (1 - gauss / 4) / f**2, d)


def hct_slope(r: Floats, rho: Floats, s: Floats, rgb_max: float | None = None, series_first: bool = False) -> Floats:
    """Eq. 8: derivative of `reference.solvent.hct_term` with respect to r, 1/A^2."""
    begin, end, counts = sphere_ends(r, rho, s, rgb_max)
    lower, upper = 1 / begin, 1 / end
    slope = np.log(lower / upper) / (2 * r**2) - (1 + s**2 / r**2) * (lower**2 - upper**2) / 4
    result: Floats = np.where(counts, slope, 0.0)
    if not series_first:
        return result
    series, instead = sander_terms(r, rho, s, rgb_max, slope=True)
    return np.where(instead, series, result)


def neck_slope(r: Floats, necks: Necks, kinds: NDArray[np.intp], others: NDArray[np.intp]) -> Floats:
    """Return the derivative of `reference.solvent.neck_term` with respect to r, 1/A^2."""
    x, size, there = necks_at(r, necks, kinds, others)
    slope: Floats = np.where(there, -size * (2 * x + 1.8 * x**5) / (1 + x**2 + 0.3 * x**6) ** 2, 0.0)
    return slope


def radius_slope(psi: Floats, born: Floats, spheres: Spheres, model: SolventModel) -> Floats:
    """Eq. 7: derivative of a Born radius with respect to its integral, A^2."""
    return RADIUS_SLOPES[model.gb_model.function](psi, born, spheres, model)


def hct_radius_slope(psi: Floats, born: Floats, spheres: Spheres, model: SolventModel) -> Floats:
    """Return the derivative of eq. 13 of docs/theory/solvent.md."""
    return born**2


def obc_radius_slope(psi: Floats, born: Floats, spheres: Spheres, model: SolventModel) -> Floats:
    """Return the derivative of eqs. 5 and 6 of docs/theory/solvent.md."""
    alpha, beta, gamma = coefficients(spheres, model)
    tanh = np.tanh(alpha * psi - beta * psi**2 + gamma * psi**3)
    slope: Floats = (
        born**2 * (1 - tanh**2) * (alpha - 2 * beta * psi + 3 * gamma * psi**2) * spheres.rho / spheres.radii
    )
    return slope


# By the `function` of models, like RADIUS_FUNCTIONS.
RADIUS_SLOPES = {"GB_RADIUS_HCT": hct_radius_slope, "GB_RADIUS_OBC": obc_radius_slope}


def _pairs(
    positions: Floats, cutoff: float | None
) -> Iterator[tuple[NDArray[np.intp], Floats, Floats, NDArray[np.bool_]]]:
    """Yield rows of pairs: atoms i, vectors from all j, distances (1 for i = j), and a mask of pairs within cutoff."""
    for start in range(0, len(positions), ROWS):
        rows = np.arange(start, min(start + ROWS, len(positions)))
        d = positions[rows, None] - positions[None]
        r = np.linalg.norm(d, axis=2)
        counted = np.ones(r.shape, bool) if cutoff is None else r <= cutoff
        counted[np.arange(len(rows)), rows] = False
        r[np.arange(len(rows)), rows] = 1
        yield rows, d, r, counted


def _kept(n: int, rows: NDArray[np.intp], excluded: Ints) -> NDArray[np.bool_]:
    """Return a mask of pairs that are not excluded, (rows, n)."""
    kept = np.ones((len(rows), n), bool)
    for i, j in (excluded.T, excluded.T[::-1]):
        here = (i >= rows[0]) & (i <= rows[-1])
        kept[i[here] - rows[0], j[here]] = False
    return kept


def _lennard_jones(atoms: Atoms, rows: NDArray[np.intp], r: Floats) -> tuple[Floats, Floats]:
    """Eq. 2: energy and (dE/dr)/r."""
    assert atoms.lj_sigma is not None
    assert atoms.lj_epsilon is not None
    a, b = atoms.lj_sigma[rows, None], atoms.lj_sigma[None]
    sigma2 = a * b if atoms.combining == "geometric" else ((a + b) / 2) ** 2
    well = 4 * np.sqrt(atoms.lj_epsilon[rows, None] * atoms.lj_epsilon[None])
    s6 = (sigma2 / r**2) ** 3
    return well * (s6 * s6 - s6), -well * (12 * s6 * s6 - 6 * s6) / r**2


def _coulomb(atoms: Atoms, rows: NDArray[np.intp], r: Floats, model: SolventModel) -> tuple[Floats, Floats]:
    """Eq. 3: energy and (dE/dr)/r."""
    values = model.coulomb_constant * atoms.charges[rows, None] * atoms.charges[None] / (model.solute_dielectric * r)
    return values, -values / r**2


def _gb_pair(
    atoms: Atoms, rows: NDArray[np.intp], r: Floats, born: Floats, model: SolventModel
) -> tuple[Floats, Floats, Floats]:
    """Eqs. 4 and 5: energy, (dE/dr)/r and dE/dB for the atoms of the rows."""
    own, other = born[rows, None], born[None]
    charges = model.coulomb_constant * atoms.charges[rows, None] * atoms.charges[None]
    gauss = np.exp(-(r**2) / (4 * own * other))
    f = gb_distance(r, own, other)
    values = -charges * gb_factor(f, model)
    per_f = -values / f - charges * model.kappa * np.exp(-model.kappa * f) / model.solvent_dielectric / f
    return values, per_f * (1 - gauss / 4) / f, per_f * gauss * (other + r**2 / (4 * own)) / (2 * f)


def _gb_self_slope(charges: Floats, born: Floats, model: SolventModel) -> Floats:
    """Eq. 6: dE/dB of the self energies."""
    screened = np.exp(-model.kappa * born) / model.solvent_dielectric
    slope: Floats = (
        model.coulomb_constant
        / 2
        * charges**2
        * ((1 / model.solute_dielectric - screened) / born**2 - model.kappa * screened / born)
    )
    return slope


def _chain_rule(atoms: Atoms, model: SolventModel, born: Floats, by_radius: dict[str, Floats]) -> dict[str, Floats]:
    """Eq. 9: contribution of the derivatives with respect to Born radii to the gradients of terms."""
    spheres = model.spheres(atoms)
    rho, s, necks, options = spheres.rho, spheres.scaled, spheres.necks, (model.born_cutoff, model.series_first)
    psi, _ = born_radii_of(atoms, model)
    by_integral = radius_slope(psi, born, spheres, model)
    gradients = {term: np.zeros((len(atoms), 3)) for term in by_radius}
    for rows, d, r, counted in _pairs(atoms.positions, None):
        taken = hct_slope(r, rho[rows, None], s[None], *options) / 2
        given = hct_slope(r, rho[None], s[rows, None], *options) / 2
        if necks is not None:
            own, others = necks.kinds[rows, None], necks.kinds[None]
            taken, given = taken + neck_slope(r, necks, own, others), given + neck_slope(r, necks, others, own)
        taken, given = (np.where(counted, slopes / r, 0) for slopes in (taken, given))
        for term, slopes in by_radius.items():
            weights = slopes * by_integral
            gradients[term][rows] = np.einsum("ij,ijk->ik", weights[rows, None] * taken + weights * given, d)
    return gradients
