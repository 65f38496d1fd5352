"""Reference implementation of nonbonded terms over a pair list; equation numbers of docs/theory/nonbond.md."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats
from ..gb_models.solvent_model import SolventModel

BLOCK = 1 << 18  # pairs at a time, to limit memory


@dataclass(frozen=True, eq=False)
class ReferenceNonbonded:
    """Energies, kcal/mol, and their gradient, (n, 3) kcal/mol/A."""

    lennard_jones: float
    coulomb: float
    gb_pair: float
    gradient: Floats


def nonbond(
    atoms: Atoms,
    first: NDArray[np.int32],
    second: NDArray[np.int32],
    one_four: NDArray[np.bool_] | None = None,
    born_radii: Floats | None = None,
    model: SolventModel | None = None,
    internal_dielectrics: Floats | None = None,
    sigma2: Floats | None = None,
    charge_products: Floats | None = None,
) -> ReferenceNonbonded:
    """Eqs. 1 to 6 over the pairs (first[p], second[p]), with constant Born radii.

    one_four : (p,) mask of pairs scaled by atoms.one_four
    born_radii : (n,) A; None for no GB term
    internal_dielectrics : (n,) per atom; by default the solute dielectric of the model
    sigma2, charge_products : (p,) A^2 and e^2, which replace values from the atoms
    """
    model = model or SolventModel()
    inside = np.full(len(atoms), model.solute_dielectric) if internal_dielectrics is None else internal_dielectrics
    gradient = np.zeros((len(atoms), 3))
    sums = np.zeros(3)
    for start in range(0, len(first), BLOCK):
        part = slice(start, start + BLOCK)
        i, j = first[part], second[part]
        d = atoms.positions[i] - atoms.positions[j]
        r2 = (d * d).sum(axis=1)
        scale_coulomb, scale_lj = _scales(atoms, None if one_four is None else one_four[part], len(i))
        s2 = _sigma2(atoms, i, j) if sigma2 is None else sigma2[part]
        charges = atoms.charges[i] * atoms.charges[j] if charge_products is None else charge_products[part]
        eps = np.maximum(inside[i], inside[j])
        terms = [_lennard_jones(atoms, i, j, s2, r2, scale_lj), _coulomb(charges, r2, eps, scale_coulomb, model)]
        if born_radii is not None:
            terms.append(_gb(charges, r2, born_radii[i] * born_radii[j], eps, model))
        pull = np.sum([slope for _, slope in terms], axis=0)[:, None] * d
        np.add.at(gradient, i, pull)
        np.subtract.at(gradient, j, pull)
        sums[: len(terms)] += [energy.sum() for energy, _ in terms]
    return ReferenceNonbonded(float(sums[0]), float(sums[1]), float(sums[2]), gradient)


def pair_terms(
    atoms: Atoms, first: NDArray[np.int32], second: NDArray[np.int32]
) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """Eqs. 1 to 3: energies, kcal/mol, and (dE/dr)/r of each pair, for Lennard-Jones and for Coulomb in vacuum."""
    r2 = ((atoms.positions[first] - atoms.positions[second]) ** 2).sum(axis=1)
    ones = np.ones(len(first))
    charges = atoms.charges[first] * atoms.charges[second]
    sigma2 = _sigma2(atoms, first, second)
    return (
        _lennard_jones(atoms, first, second, sigma2, r2, ones),
        _coulomb(charges, r2, ones, ones, SolventModel()),
    )


def _scales(atoms: Atoms, one_four: NDArray[np.bool_] | None, n: int) -> tuple[Floats, Floats]:
    flags = np.zeros(n, bool) if one_four is None else one_four
    return np.where(flags, atoms.one_four[0], 1.0), np.where(flags, atoms.one_four[1], 1.0)


def _sigma2(atoms: Atoms, i: NDArray[np.int32], j: NDArray[np.int32]) -> Floats:
    """Eq. 2."""
    assert atoms.lj_sigma is not None
    a, b = atoms.lj_sigma[i], atoms.lj_sigma[j]
    sigma2: Floats = a * b if atoms.combining == "geometric" else ((a + b) / 2) ** 2
    return sigma2


def _lennard_jones(
    atoms: Atoms, i: NDArray[np.int32], j: NDArray[np.int32], sigma2: Floats, r2: Floats, scale: Floats
) -> tuple[Floats, Floats]:
    """Eq. 1: energy and (dE/dr)/r of each pair."""
    assert atoms.lj_epsilon is not None
    well = 4 * np.sqrt(atoms.lj_epsilon[i] * atoms.lj_epsilon[j]) * scale
    s6 = (sigma2 / r2) ** 3
    return well * (s6 * s6 - s6), -well * (12 * s6 * s6 - 6 * s6) / r2


def _coulomb(charges: Floats, r2: Floats, eps: Floats, scale: Floats, model: SolventModel) -> tuple[Floats, Floats]:
    """Eq. 3."""
    energy = model.coulomb_constant * charges / (eps * np.sqrt(r2)) * scale
    return energy, -energy / r2


def _gb(charges: Floats, r2: Floats, product: Floats, eps: Floats, model: SolventModel) -> tuple[Floats, Floats]:
    """Eqs. 4 to 6."""
    gauss = np.exp(-r2 / (4 * product))
    f = np.sqrt(r2 + product * gauss)
    screened = np.exp(-model.kappa * f) / model.solvent_dielectric
    energy = -model.coulomb_constant * charges * (1 / eps - screened) / f
    per_f = -energy / f - model.coulomb_constant * charges * model.kappa * screened / f
    return energy, per_f * (1 - gauss / 4) / f
