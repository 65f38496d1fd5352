"""Conversion of OpenMM's nonbonded forces: charges, Lennard-Jones parameters, exclusions and 1-4 pairs."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...atoms import Floats, Ints, LennardJonesPairs, OneFourPairs
from ...atoms.combining import Combining, pairs_note, pairs_of_types, rule_of
from ...common.errors import InputError
from .forces import A_PER_NM, KCAL_PER_KJ, Forces, form, terms

if TYPE_CHECKING:
    from openmm import CustomBondForce, CustomNonbondedForce

Pair = tuple[int, int]
READ = ("NonbondedForce", "CustomNonbondedForce", "CustomBondForce")  # classes of forces that this module reads

# Lennard-Jones expressions in openmm.app and ParmEd: tables by type (CHARMM XML files; PSF and GROMACS with NBFIX;
# ParmEd, in two forms), square roots of C6 and C12 (GROMACS), geometric combining rules.
_TABLES = (form("acoef(type1, type2)/r^12 - bcoef(type1, type2)/r^6"),)
_ROOT_TABLES = tuple(
    form(f"(a/r6)^2-b/r6; {r6}; a=acoef(type1, type2); b=bcoef(type1, type2)")
    for r6 in ("r6=r^6", "r6=r2*r2*r2; r2=r^2")
)
_ROOTS = (form("A1*A2/r^12-C1*C2/r^6"),)
_GEOMETRIC = (form("4*epsilon*((sigma/r)^12-(sigma/r)^6); sigma=sqrt(sigma1*sigma2); epsilon=sqrt(epsilon1*epsilon2)"),)
_GEOMETRIC_ROOTS = (
    form("epsilon1*epsilon2*(sigr6^2-sigr6); sigr6=sigr2*sigr2*sigr2; sigr2=(sigc/r)^2; sigc=sigma1*sigma2"),
)
_SCALED_PAIR = re.compile(r"(\d+\.?\d*(?:e[-+]?\d+)?)\*epsilon\*\(\(sigma/r\)\^12-\(sigma/r\)\^6\);?")
_POWER_PAIR = re.compile(r"-C/r\^6\+A/r\^12;?")


@dataclass(frozen=True, eq=False)
class Nonbonded:
    """Charges (n,) e, sigma (n,) A, epsilon (n,) kcal/mol, combining rule, 1-4 pairs and excluded pairs (k, 2).

    lj_pairs : pairs with specific Lennard-Jones parameters (NBFIX)
    """

    charges: Floats
    sigma: Floats
    epsilon: Floats
    combining: Combining
    one_four: OneFourPairs
    excluded: Ints
    lj_pairs: LennardJonesPairs
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class _LennardJones:
    """Sigma (n,) nm, epsilon (n,) kJ/mol and combining rule of particles, and exceptions from the rule.

    types : (n,) types of the particles; by_type : sigma and epsilon of pairs of types, (t, t) each; own : (k, 2) pairs
        of types that do not follow the rule
    """

    sigma: Floats
    epsilon: Floats
    combining: Combining = "arithmetic"
    types: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, np.intp))
    by_type: tuple[Floats, Floats] = (np.zeros((0, 0)), np.zeros((0, 0)))
    own: NDArray[np.intp] = field(default_factory=lambda: np.zeros((0, 2), np.intp))


def nonbonded_parameters(forces: Forces, n: int) -> Nonbonded:
    """Read the nonbonded parameters of a System of n particles.

    Raises InputError unless there is exactly one NonbondedForce, and for unsupported custom forces.
    """
    of_class = forces.of("NonbondedForce")
    if len(of_class) != 1:
        raise InputError(f"the System has {len(of_class)} forces of the class NonbondedForce; expected exactly one")
    force = of_class[0]
    if force.getNumParticleParameterOffsets() or force.getNumExceptionParameterOffsets():
        raise InputError("the System's NonbondedForce has parameter offsets, which are not supported; remove them")
    particles = terms(force, "getNumParticles", "getParticleParameters", 3)
    found = _LennardJones(particles[:, 1], particles[:, 2])
    customs = forces.of("CustomNonbondedForce")
    rows = terms(force, "getNumExceptions", "getExceptionParameters", 5)
    if customs:
        found = _custom(customs, particles)
        _require_same_exclusions(customs[0], rows)
    exceptions = _exceptions(rows, forces)
    kept = (exceptions[:, 2] != 0) | (exceptions[:, 4] != 0)
    pairs = exceptions[:, :2].astype(np.int32)
    parameters = exceptions[:, 2:] * [1.0, A_PER_NM, KCAL_PER_KJ]
    sigma, epsilon = found.by_type
    lj_pairs = pairs_of_types(found.types, found.own, sigma * A_PER_NM, epsilon * KCAL_PER_KJ, pairs)
    return Nonbonded(
        charges=particles[:, 0],
        sigma=np.where(found.epsilon == 0, 0.0, found.sigma) * A_PER_NM,
        epsilon=found.epsilon * KCAL_PER_KJ,
        combining=found.combining,
        one_four=OneFourPairs(pairs[kept], parameters[kept]),
        excluded=pairs[~kept],
        lj_pairs=lj_pairs,
        notes=(*_notes(force.getNonbondedMethod() != force.NoCutoff), *pairs_note(lj_pairs)),
    )


def _notes(cut: bool) -> tuple[str, ...]:
    return ("the System's cutoff is not used: all pairs are computed",) if cut else ()


def _custom(customs: list[CustomNonbondedForce], particles: Floats) -> _LennardJones:
    """Read the Lennard-Jones parameters of the only CustomNonbondedForce."""
    force = customs[0]
    if len(customs) > 1 or particles[:, 2].any() or force.getNumInteractionGroups():
        raise InputError(
            f"the System has a CustomNonbondedForce ({force.getName()}) in addition to other Lennard-Jones terms; "
            "remove what is not part of the force field"
        )
    energy = form(force.getEnergyFunction())
    names = [force.getPerParticleParameterName(p) for p in range(force.getNumPerParticleParameters())]
    values = dict(zip(names, terms(force, "getNumParticles", "getParticleParameters", len(names)).T, strict=True))
    if energy in _ROOTS:
        return _LennardJones(*_from_coefficients(values["A"] ** 2, values["C"] ** 2), "geometric")
    if energy in _GEOMETRIC:
        return _LennardJones(values["sigma"], values["epsilon"], "geometric")
    if energy in _GEOMETRIC_ROOTS:
        return _LennardJones(values["sigma"] ** 2, values["epsilon"] ** 2 / 4, "geometric")
    if energy in _TABLES or energy in _ROOT_TABLES:
        a, b = (_table(force, name) for name in ("acoef", "bcoef"))
        types = values["type"].astype(np.intp)
        return _from_tables(a**2 if energy in _ROOT_TABLES else a, b, types)
    raise InputError(
        f"the System has a CustomNonbondedForce ({force.getName()}) of energy {force.getEnergyFunction()!r}, which is "
        "not supported; expected a NonbondedForce, or Lennard-Jones terms as written by openmm.app"
    )


def _table(force: CustomNonbondedForce, name: str) -> Floats:
    """Read a table by two types, (t, t), which is symmetric."""
    names = [force.getTabulatedFunctionName(k) for k in range(force.getNumTabulatedFunctions())]
    columns, rows, values = force.getTabulatedFunction(names.index(name)).getFunctionParameters()
    return np.array(values, np.float64).reshape(rows, columns)


def _from_coefficients(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return sigma and epsilon of a/r^12 - b/r^6; both 0 unless a and b are positive."""
    there = (a > 0) & (b > 0)
    sigma = np.where(there, np.divide(a, b, out=np.ones_like(a), where=there), 0.0) ** (1 / 6)
    return sigma, np.where(there, np.divide(b**2, 4 * a, out=np.zeros_like(a), where=there), 0.0)


def _from_tables(a: Floats, b: Floats, types: NDArray[np.intp]) -> _LennardJones:
    """Find the combining rule that most pairs of types follow, the parameters of the atoms, and the exceptions."""
    used = np.unique(types)
    sigma, epsilon = _from_coefficients(a, b)
    among = np.ix_(used, used)
    other_energies = np.argwhere((((a != 0) | (b != 0)) & (epsilon == 0))[among])
    if len(other_energies):
        i, j = (int(np.flatnonzero(types == used[t])[0]) for t in other_energies[0])
        raise InputError(
            f"the coefficients of the pair of atoms {i} and {j} are not those of a Lennard-Jones energy: expected "
            "both 0, or both positive"
        )
    rule, own = rule_of(sigma[among], epsilon[among])
    return _LennardJones(sigma.diagonal()[types], epsilon.diagonal()[types], rule, types, (sigma, epsilon), used[own])


def _require_same_exclusions(custom: CustomNonbondedForce, exceptions: Floats) -> None:
    excluded = {_pair(*custom.getExclusionParticles(k)) for k in range(custom.getNumExclusions())}
    if excluded != {_pair(*row) for row in exceptions[:, :2].astype(int).tolist()}:
        raise InputError(
            f"the CustomNonbondedForce ({custom.getName()}) and the NonbondedForce exclude different pairs; "
            "use the same exclusions in both"
        )


def _exceptions(rows: Floats, forces: Forces) -> Floats:
    """Return atoms, charge product, sigma and epsilon of all exceptions, (k, 5), with those in CustomBondForces."""
    rows = rows.copy()
    place = {_pair(i, j): k for k, (i, j) in enumerate(rows[:, :2].astype(int).tolist())}
    for force in forces.of("CustomBondForce"):
        if force.getNumBonds():
            for i, j, sigma, epsilon in _pair_energies(force).tolist():
                k = place.get(_pair(int(i), int(j)))
                if k is None or rows[k, 4]:
                    raise InputError(
                        f"the CustomBondForce ({force.getName()}) acts on atoms {int(i)} and {int(j)}, which are not "
                        "a 1-4 pair without Lennard-Jones energy of the NonbondedForce; remove that force"
                    )
                rows[k, 3:] = sigma, epsilon
    rows[rows[:, 4] == 0, 3] = 0.0
    return rows


def _pair_energies(force: CustomBondForce) -> Floats:
    """Return atoms, sigma nm and epsilon kJ/mol of the 1-4 pairs in a CustomBondForce, (k, 4)."""
    expression = re.sub(r"\s", "", force.getEnergyFunction())
    names = [force.getPerBondParameterName(p) for p in range(force.getNumPerBondParameters())]
    scaled = _SCALED_PAIR.fullmatch(expression)
    if not (scaled and names == ["sigma", "epsilon"]) and not (
        _POWER_PAIR.fullmatch(expression) and names == ["C", "A"]
    ):
        raise InputError(
            f"the System has a CustomBondForce ({force.getName()}) of energy {force.getEnergyFunction()!r}, which is "
            "not supported; remove it from the System"
        )
    rows = terms(force, "getNumBonds", "getBondParameters", 4)
    if scaled:
        rows[:, 3] *= float(scaled[1]) / 4
    else:
        rows[:, 2:] = np.stack(_from_coefficients(rows[:, 3], rows[:, 2]), axis=1)
    return rows


def _pair(i: int, j: int) -> Pair:
    return (i, j) if i < j else (j, i)
