"""Reference implementation of bonded terms and 1-4 pairs; equation numbers of docs/theory/bonded.md."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..atoms import Atoms, Bonded, Floats, Ints, OneFourPairs
from ..gb_models.solvent_model import SolventModel
from ..pairs import lj_corrections, nonbonded_pairs, own_lj_pairs


class TermValues(NamedTuple):
    """m terms of one kind: name of the term, atoms (m, k), energies (m,) kcal/mol, slopes (m, k, 3) kcal/mol/A."""

    term: str
    atoms: Ints
    energies: Floats
    slopes: Floats


def bonded_terms(
    atoms: Atoms, model: SolventModel | None = None, cutoff: float | None = None, one_four: bool = True
) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Compute per-atom energies (n,) kcal/mol and gradients (n, 3) kcal/mol/A of each bonded term.

    The energy of a term is divided equally between its atoms. For Lennard-Jones pairs with pair-specific parameters,
    the result is the correction to the sum over all pairs.

    cutoff : of pairs, A; one_four : whether to include 1-4 pairs
    """
    per_atom: dict[str, Floats] = {}
    gradients: dict[str, Floats] = {}
    for part in _parts(atoms, model or SolventModel(), cutoff, one_four):
        energies = per_atom.setdefault(part.term, np.zeros(len(atoms)))
        gradient = gradients.setdefault(part.term, np.zeros((len(atoms), 3)))
        k = part.atoms.shape[1]
        for member in range(k):
            np.add.at(energies, part.atoms[:, member], part.energies / k)
            np.add.at(gradient, part.atoms[:, member], part.slopes[:, member])
    return per_atom, gradients


def _parts(atoms: Atoms, model: SolventModel, cutoff: float | None, one_four: bool) -> Iterator[TermValues]:
    x, bonded = atoms.positions, atoms.bonded or Bonded()
    for term, bonds in (("bond", bonded.bonds), ("urey_bradley", bonded.urey_bradley)):
        if len(bonds):
            yield TermValues(term, bonds.atoms, *_harmonic(*distance(x[bonds.atoms]), *bonds.parameters.T))
    if len(bonded.angles):
        table = bonded.angles
        yield TermValues("angle", table.atoms, *_harmonic(*angle(x[table.atoms]), *table.parameters.T))
    for term, torsions in (("torsion", bonded.torsions), ("improper", bonded.impropers)):
        if len(torsions):
            k, n, phase = torsions.parameters.T
            phi, slopes = torsion(x[torsions.atoms])
            by_phi = -k * n * np.sin(n * phi - phase)
            yield TermValues(term, torsions.atoms, k * (1 + np.cos(n * phi - phase)), by_phi[:, None, None] * slopes)
    if len(bonded.harmonic_impropers):
        impropers = bonded.harmonic_impropers
        k, best = impropers.parameters.T
        phi, slopes = torsion(x[impropers.atoms])
        away = phi - best
        away -= 2 * np.pi * np.rint(away / (2 * np.pi))
        yield TermValues("improper", impropers.atoms, *_harmonic(away, slopes, k, np.zeros_like(k)))
    if len(bonded.cmaps):
        yield TermValues("cmap", bonded.cmaps.atoms, *_cmaps(x, bonded))
    if len(pairs := own_lj_pairs(atoms)):
        r, slopes = distance(x[pairs.atoms])
        own, by_rule = (_lennard_jones(r, *of.T) for of in lj_corrections(atoms, pairs))
        energies, by_r = (np.where(r <= (cutoff or np.inf), a - b, 0) for a, b in zip(own, by_rule, strict=True))
        yield TermValues("lennard_jones", pairs.atoms, energies, by_r[:, None, None] * slopes)
    if one_four:
        yield from _one_four(x, nonbonded_pairs(atoms).one_four, model, cutoff)


def distance(x: Floats) -> tuple[Floats, Floats]:
    """Return distances (m,) A of pairs (m, 2, 3) A, and their gradients (m, 2, 3)."""
    d = x[:, 0] - x[:, 1]
    r = np.linalg.norm(d, axis=1)
    along = d / r[:, None]
    return r, np.stack([along, -along], axis=1)


def angle(x: Floats) -> tuple[Floats, Floats]:
    """Eqs. 2 and 3: angles (m,) rad of three atoms (m, 3, 3) A, and gradients (m, 3, 3) rad/A."""
    first, second = x[:, 0] - x[:, 1], x[:, 2] - x[:, 1]
    normal = np.cross(first, second)
    sine = np.linalg.norm(normal, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        by_i = np.cross(first, normal) / ((first**2).sum(axis=1) * sine)[:, None]
        by_k = np.cross(normal, second) / ((second**2).sum(axis=1) * sine)[:, None]
    by_i[sine == 0], by_k[sine == 0] = 0, 0
    return np.arctan2(sine, (first * second).sum(axis=1)), np.stack([by_i, -by_i - by_k, by_k], axis=1)


def torsion(x: Floats) -> tuple[Floats, Floats]:
    """Eqs. 4 to 6: torsions (m,) rad of four atoms (m, 4, 3) A, and gradients (m, 4, 3) rad/A; 0 if collinear."""
    f, g, h = x[:, 0] - x[:, 1], x[:, 1] - x[:, 2], x[:, 3] - x[:, 2]
    a, b = np.cross(f, g), np.cross(h, g)
    a2, b2, length = (a**2).sum(axis=1), (b**2).sum(axis=1), np.linalg.norm(g, axis=1)
    on_line = (a2 == 0) | (b2 == 0)
    a2, b2 = np.where(on_line, 1, a2)[:, None], np.where(on_line, 1, b2)[:, None]
    phi = np.arctan2(-length * (f * b).sum(axis=1), (a * b).sum(axis=1))
    by_i, by_l = -length[:, None] * a / a2, length[:, None] * b / b2
    fg, hg = (f * g).sum(axis=1)[:, None], (h * g).sum(axis=1)[:, None]
    turn = (fg * a / a2 - hg * b / b2) / length[:, None]
    slopes = np.stack([by_i, -by_i + turn, -turn - by_l, by_l], axis=1)
    return np.where(on_line, 0, phi), np.where(on_line[:, None, None], 0, slopes)


def spline_weights(t: Floats, size: int) -> tuple[Floats, Floats]:
    """Return the weights of values at 0, ..., size - 1 in a periodic cubic spline at t, and their derivatives.

    Both have shape (m, size).
    """
    ring = np.eye(size)
    ahead, behind = np.roll(ring, 1, axis=1), np.roll(ring, -1, axis=1)
    knots = np.linalg.solve(4 * ring + ahead + behind, 3 * (ahead - behind))  # derivatives at the knots
    cell = np.floor(t).astype(np.int64)
    u = (t - cell)[:, None]
    left, right = cell % size, (cell + 1) % size
    weights = (
        (1 + 2 * u) * (1 - u) ** 2 * ring[left] + u**2 * (3 - 2 * u) * ring[right]
        + u * (1 - u) ** 2 * knots[left] - u**2 * (1 - u) * knots[right]
    )  # fmt: skip
    slopes = (
        6 * u * (1 - u) * (ring[right] - ring[left]) + (1 - u) * (1 - 3 * u) * knots[left]
        + u * (3 * u - 2) * knots[right]
    )  # fmt: skip
    return weights, slopes


def _harmonic(value: Floats, slopes: Floats, k: Floats, best: Floats) -> tuple[Floats, Floats]:
    """Eq. 1."""
    return k * (value - best) ** 2, (2 * k * (value - best))[:, None, None] * slopes


def _cmaps(x: Floats, bonded: Bonded) -> tuple[Floats, Floats]:
    """Eq. 7: bicubic spline of a CMAP."""
    table = bonded.cmaps
    first, by_first = torsion(x[table.atoms[:, :4]])
    second, by_second = torsion(x[table.atoms[:, 4:]])
    energies, slopes = np.empty(len(table)), np.empty((len(table), 8, 3))
    which = table.parameters[:, 0].astype(np.int64)
    for number, values in enumerate(bonded.maps):
        of, size = which == number, len(values)
        per_turn = size / (2 * np.pi)
        u, by_u = spline_weights(first[of] % (2 * np.pi) * per_turn, size)
        v, by_v = spline_weights(second[of] % (2 * np.pi) * per_turn, size)
        energies[of] = np.einsum("ma,ab,mb->m", u, values, v)
        slope_first = np.einsum("ma,ab,mb->m", by_u, values, v) * per_turn
        slope_second = np.einsum("ma,ab,mb->m", u, values, by_v) * per_turn
        slopes[of, :4] = slope_first[:, None, None] * by_first[of]
        slopes[of, 4:] = slope_second[:, None, None] * by_second[of]
    return energies, slopes


def _one_four(x: Floats, table: OneFourPairs, model: SolventModel, cutoff: float | None) -> Iterator[TermValues]:
    """Eqs. 8 and 9."""
    r, slopes = distance(x[table.atoms])
    charges, sigma, epsilon = np.where((r <= (cutoff or np.inf))[:, None], table.parameters, 0).T
    energies, by_r = _lennard_jones(r, sigma, epsilon)
    yield TermValues("lennard_jones_14", table.atoms, energies, by_r[:, None, None] * slopes)
    coulomb = model.coulomb_factor * charges / r
    yield TermValues("coulomb_14", table.atoms, coulomb, (-coulomb / r)[:, None, None] * slopes)


def _lennard_jones(r: Floats, sigma: Floats, epsilon: Floats) -> tuple[Floats, Floats]:
    """Return energies (m,) of pairs, and their derivatives with respect to r."""
    s6 = (sigma / r) ** 6
    return 4 * epsilon * (s6**2 - s6), -4 * epsilon * (12 * s6**2 - 6 * s6) / r
