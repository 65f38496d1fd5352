"""Conversion of OpenMM's bonded forces to tables: from kJ/mol, nm and k/2 to kcal/mol, A and k."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...atoms import (
    Angles,
    Bonded,
    Bonds,
    CMaps,
    Floats,
    HarmonicImpropers,
    Impropers,
    Ints,
    LennardJonesPairs,
    OneFourPairs,
    Torsions,
    UreyBradley,
)
from ...common.errors import InputError
from .forces import A_PER_NM, KCAL_PER_KJ, Forces, form, terms

if TYPE_CHECKING:
    from openmm import CustomTorsionForce

READ = (  # classes of forces that this module reads
    "HarmonicBondForce", "HarmonicAngleForce", "PeriodicTorsionForce", "RBTorsionForce", "CMAPTorsionForce",
    "CustomTorsionForce",
)  # fmt: skip
# Energy expressions for harmonic impropers in openmm.app and ParmEd, with the factor of k.
_HARMONIC = {
    form(energy): factor
    for energy, factor in (
        ("k*min(dtheta, 2*pi-dtheta)^2; dtheta = abs(theta-theta0)", 1.0),
        ("0.5*k*min(dtheta, 2*pi-dtheta)^2; dtheta = abs(theta-theta0)", 0.5),
        ("k*(theta-theta0)^2", 1.0),
        ("0.5*k*(theta-theta0)^2", 0.5),
        (
            "0.5*k*(thetap-theta0)^2; thetap = step(-(theta-theta0+pi))*2*pi+theta+step(theta-theta0-pi)*(-2*pi)",
            0.5,
        ),
        (
            "k*dtheta_torus^2; dtheta_torus = dtheta - floor(dtheta/(2*pi)+0.5)*(2*pi); dtheta = theta - theta0",
            1.0,
        ),
    )
}
# The ones that are not periodic. OpenMM's theta is -pi to pi, so they are equivalent only if theta0 is 0.
_UNWRAPPED = (form("k*(theta-theta0)^2"), form("0.5*k*(theta-theta0)^2"))
# Coefficients of cos(n psi) in cos^m psi; rows m and columns n from 0 to 5.
_POWERS = np.array(
    [
        [1, 0, 0, 0, 0, 0],
        [0, 1, 0, 0, 0, 0],
        [1 / 2, 0, 1 / 2, 0, 0, 0],
        [0, 3 / 4, 0, 1 / 4, 0, 0],
        [3 / 8, 0, 1 / 2, 0, 1 / 8, 0],
        [0, 5 / 8, 0, 5 / 16, 0, 1 / 16],
    ]
)


def bonded_tables(
    forces: Forces, bonds: Ints, one_four: OneFourPairs, excluded: Ints, lj_pairs: LennardJonesPairs
) -> Bonded:
    """Convert all bonded terms of a System.

    bonds : (m, 2) bonded atoms, i < j. Harmonic bonds between other atoms become Urey-Bradley terms, and torsions whose
        atoms are not bonded consecutively become impropers
    one_four, excluded, lj_pairs : pairs to include in the result

    Raises InputError for a CustomTorsionForce that is not harmonic.
    """
    chain = _Chains(bonds)
    pairs = forces.rows("HarmonicBondForce", "getNumBonds", "getBondParameters", 4)
    stretched = np.stack([pairs[:, 3] * KCAL_PER_KJ / A_PER_NM**2 / 2, pairs[:, 2] * A_PER_NM], axis=1)
    between = pairs[:, :2].astype(np.int32)
    real = chain.bonded(between[:, 0], between[:, 1])
    bent = forces.rows("HarmonicAngleForce", "getNumAngles", "getAngleParameters", 5)
    turned = np.concatenate([_periodic(forces), _ryckaert_bellemans(forces)])
    turned = turned[turned[:, 4] != 0]
    around, figures = turned[:, :4].astype(np.int32), turned[:, 4:]
    proper = chain.chains(around)
    held = list(_harmonic(forces))
    maps, placed = _cmaps(forces)
    return Bonded(
        bonds=Bonds(between[real], stretched[real]),
        urey_bradley=UreyBradley(between[~real], stretched[~real]),
        angles=Angles(bent[:, :3].astype(np.int32), np.stack([bent[:, 4] * KCAL_PER_KJ / 2, bent[:, 3]], axis=1)),
        torsions=Torsions(around[proper], figures[proper]),
        impropers=Impropers(around[~proper], figures[~proper]),
        harmonic_impropers=HarmonicImpropers(
            np.concatenate([np.empty((0, 4), np.int32), *(atoms for atoms, _ in held)]),
            np.concatenate([np.empty((0, 2)), *(parameters for _, parameters in held)]),
        ),
        cmaps=placed,
        maps=maps,
        one_four=one_four,
        excluded=excluded,
        lj_pairs=lj_pairs,
    )


class _Chains:
    """Bonds of a molecule, for testing whether atoms are bonded."""

    def __init__(self, bonds: Ints) -> None:
        self.keys = np.sort(_keys(bonds[:, 0], bonds[:, 1]))

    def bonded(self, i: Ints, j: Ints) -> NDArray[np.bool_]:
        """Return a mask (m,) of the bonded pairs of atoms i (m,) and j (m,)."""
        return np.isin(_keys(i, j), self.keys)

    def chains(self, atoms: Ints) -> NDArray[np.bool_]:
        """Return a mask (m,) of the rows of four atoms (m, 4) that are bonded consecutively."""
        first, second, third = (self.bonded(atoms[:, k], atoms[:, k + 1]) for k in range(3))
        return first & second & third


def _keys(i: Ints, j: Ints) -> NDArray[np.int64]:
    """Return an integer for each pair that does not depend on the order of its atoms."""
    low, high = np.minimum(i, j).astype(np.int64), np.maximum(i, j).astype(np.int64)
    return low << 32 | high


def _periodic(forces: Forces) -> Floats:
    """Return four atoms, k kcal/mol, n and phase of each periodic torsion, (m, 7)."""
    found = forces.rows("PeriodicTorsionForce", "getNumTorsions", "getTorsionParameters", 7)
    return np.concatenate(
        [found[:, :4], found[:, 6:7] * KCAL_PER_KJ, found[:, 4:5], found[:, 5:6]],
        axis=1,
    )


def _ryckaert_bellemans(forces: Forces) -> Floats:
    """Expand Ryckaert-Bellemans torsions, sums of c_m cos^m psi with psi = phi - pi, to rows (m, 7) with n from 0 to 5.

    c cos(n psi) = c (-1)^n (1 + cos(n phi)) - c (-1)^n. A term with n = 0 contains the constants.
    """
    found = forces.rows("RBTorsionForce", "getNumTorsions", "getTorsionParameters", 10)
    signs = np.array([1, -1, 1, -1, 1, -1])
    cosines = found[:, 4:] @ _POWERS * signs * KCAL_PER_KJ
    constants = (cosines[:, 0] - cosines[:, 1:].sum(axis=1)) / 2  # for n = 0, whose energy is 2 k
    k = np.concatenate([constants[:, None], cosines[:, 1:]], axis=1)
    n = np.broadcast_to(np.arange(6.0), k.shape)
    atoms = np.repeat(found[:, :4], 6, axis=0)
    return np.concatenate([atoms, k.reshape(-1, 1), n.reshape(-1, 1), np.zeros((len(atoms), 1))], axis=1)


def _harmonic(forces: Forces) -> Iterator[tuple[Ints, Floats]]:
    """Yield the atoms (m, 4) and parameters (m, 2) of each CustomTorsionForce."""
    for force in forces.of("CustomTorsionForce"):
        if not force.getNumTorsions():
            continue
        factor, k, angle = _columns(force)
        found = terms(force, "getNumTorsions", "getTorsionParameters", 6)
        parameters = np.stack([factor * KCAL_PER_KJ * found[:, 4 + k], found[:, 4 + angle]], axis=1)
        yield found[:, :4].astype(np.int32), parameters


def wrapping_notes(forces: Forces) -> Iterator[str]:
    """Yield notes about harmonic impropers that are not periodic in the System, but are here."""
    for force in forces.of("CustomTorsionForce"):
        if form(force.getEnergyFunction()) not in _UNWRAPPED or not force.getNumTorsions():
            continue
        _, _, angle = _columns(force)
        turned = terms(force, "getNumTorsions", "getTorsionParameters", 6)[:, 4 + angle] != 0
        if turned.any():
            yield (
                f"{int(turned.sum()):,} impropers of {force.getEnergyFunction()!r} have a theta0 other than 0; they "
                "are periodic here but not in OpenMM, so energies differ if theta - theta0 exceeds half a turn"
            )


def _columns(force: CustomTorsionForce) -> tuple[float, int, int]:
    """Return the factor of k and the columns of k and theta0. Raises InputError if the energy is not harmonic."""
    names = [force.getPerTorsionParameterName(p) for p in range(force.getNumPerTorsionParameters())]
    factor = _HARMONIC.get(form(force.getEnergyFunction()))
    if factor is None or sorted(names) != ["k", "theta0"]:
        raise InputError(
            f"the System has a CustomTorsionForce ({force.getName()}) of energy {force.getEnergyFunction()!r}; only "
            "harmonic impropers are supported, k*min(dtheta, 2*pi-dtheta)^2 with dtheta = abs(theta-theta0)"
        )
    return factor, names.index("k"), names.index("theta0")


def _cmaps(forces: Forces) -> tuple[tuple[Floats, ...], CMaps]:
    """Convert the CMAP maps and terms."""
    maps: list[Floats] = []
    rows: list[list[int]] = []
    for force in forces.of("CMAPTorsionForce"):
        first = len(maps)
        for k in range(force.getNumMaps()):
            size, energies = force.getMapParameters(k)
            values = np.array(getattr(energies, "_value", energies), np.float64) * KCAL_PER_KJ
            maps.append(values.reshape(size, size).T)  # the first angle runs fastest in OpenMM
        for k in range(force.getNumTorsions()):
            number, *atoms = force.getTorsionParameters(k)
            rows.append([*atoms, first + number])
    found = np.array(rows, np.float64).reshape(-1, 9)
    return tuple(maps), CMaps(found[:, :8].astype(np.int32), found[:, 8:])
