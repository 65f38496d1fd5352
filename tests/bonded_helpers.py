"""Molecules with bonded terms of OpenMM force fields, and their energies on its Reference platform."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from conftest import random_atoms

from pele_ocl import Atoms
from pele_ocl.atoms import (
    Angles,
    Bonded,
    Bonds,
    CMaps,
    Floats,
    HarmonicImpropers,
    Impropers,
    OneFourPairs,
    Torsions,
    UreyBradley,
)  # fmt: skip

STRUCTURES = Path(__file__).parent.parent / "data" / "structures"
KJ, NM = 4.184, 10.0  # kJ a kcal, A a nm
TABLES = {
    "bonds": Bonds, "urey_bradley": UreyBradley, "angles": Angles, "torsions": Torsions, "impropers": Impropers,
    "harmonic_impropers": HarmonicImpropers, "cmaps": CMaps, "one_four": OneFourPairs,
}  # fmt: skip
# The terms that a force of OpenMM's computes.
TERMS_OF = {
    "HarmonicBondForce": ("bond", "urey_bradley"),
    "HarmonicAngleForce": ("angle",),
    "PeriodicTorsionForce": ("torsion", "improper"),
    "CustomTorsionForce": ("improper",),
    "CMAPTorsionForce": ("cmap",),
    "CustomBondForce": ("lennard_jones_14",),
}
DNA = ("DA5", "DC", "DG", "DT3")


def of_every_kind(n: int, seed: int = 0) -> Atoms:
    """Return a chain of random atoms with terms of every kind, and 1-4 pairs with individual parameters."""
    rng, chain = np.random.default_rng(seed), np.arange(n)
    pairs, threes, fours, fives = (np.column_stack([chain[k : n - m + 1 + k] for k in range(m)]) for m in (2, 3, 4, 5))

    def constants(of, *columns):
        return np.column_stack([np.broadcast_to(column, len(of)) for column in columns])

    doubled = np.concatenate([fours, fours[::2], fours[::3, ::-1]])  # several cosines of some, one way or the other
    waves, phases = rng.integers(-3, 7, len(doubled)), rng.uniform(-4, 4, len(doubled))
    bonded = Bonded(
        bonds=Bonds(pairs, constants(pairs, rng.uniform(200, 500, len(pairs)), 1.4)),
        urey_bradley=UreyBradley(threes[:, [0, 2]], constants(threes, rng.uniform(5, 50, len(threes)), 2.4)),
        angles=Angles(threes, constants(threes, rng.uniform(40, 90, len(threes)), rng.uniform(1, 3, len(threes)))),
        torsions=Torsions(doubled, constants(doubled, rng.normal(0, 2, len(doubled)), waves, phases)),
        impropers=Impropers(fours[::4, [1, 2, 0, 3]], constants(fours[::4], 1.1, 2, np.pi)),
        harmonic_impropers=HarmonicImpropers(
            fours[::5, [2, 0, 1, 3]], constants(fours[::5], 90, rng.uniform(-3.1, 3.1, len(fours[::5])))
        ),
        cmaps=CMaps(fives[::3, [0, 1, 2, 3, 1, 2, 3, 4]], rng.integers(0, 2, (len(fives[::3]), 1))),
        maps=(rng.normal(0, 2, (24, 24)), rng.normal(0, 1, (5, 5))),
        one_four=OneFourPairs(fours[:, [0, 3]], rng.uniform((-0.2, 1.5, 0.01), (0.2, 2.5, 0.1), (len(fours), 3))),
        excluded=np.concatenate([pairs, threes[:, [0, 2]]]),
    )  # fmt: skip
    return replace(random_atoms(n, seed), bonds=pairs, bonded=bonded)


def forces_of(atoms: Atoms) -> dict:
    """Return OpenMM forces of the tables of `of_every_kind`, by the name of the term."""
    openmm = pytest.importorskip("openmm")
    bonded, forces = atoms.bonded, {}
    for term, table in (("bond", bonded.bonds), ("urey_bradley", bonded.urey_bradley)):
        forces[term] = openmm.HarmonicBondForce()
        for pair, (k, r0) in zip(table.atoms.tolist(), table.parameters.tolist(), strict=True):
            forces[term].addBond(*pair, r0 / NM, 2 * k * KJ * NM**2)
    forces["angle"] = openmm.HarmonicAngleForce()
    for three, (k, theta0) in zip(bonded.angles.atoms.tolist(), bonded.angles.parameters.tolist(), strict=True):
        forces["angle"].addAngle(*three, theta0, 2 * k * KJ)
    forces["torsion"] = openmm.CustomTorsionForce("k*(1+cos(n*theta-phase))")  # PeriodicTorsionForce takes n > 0 only
    for name in bonded.torsions.names:
        forces["torsion"].addPerTorsionParameter(name)
    for four, (k, n, phase) in zip(bonded.torsions.atoms.tolist(), bonded.torsions.parameters.tolist(), strict=True):
        forces["torsion"].addTorsion(*four, (k * KJ, n, phase))
    wrapped = "dtheta=min(away, 2*3.14159265358979323846-away); away=abs(theta-theta0)"
    forces["improper"] = openmm.CustomTorsionForce(f"harmonic*dtheta^2+k*(1+cos(2*theta-theta0)); {wrapped}")
    for name in ("harmonic", "k", "theta0"):
        forces["improper"].addPerTorsionParameter(name)
    for four, (k, _, phase) in zip(bonded.impropers.atoms.tolist(), bonded.impropers.parameters.tolist(), strict=True):
        forces["improper"].addTorsion(*four, (0.0, k * KJ, phase))
    table = bonded.harmonic_impropers
    for four, (k, phi0) in zip(table.atoms.tolist(), table.parameters.tolist(), strict=True):
        forces["improper"].addTorsion(*four, (k * KJ, 0.0, phi0))
    forces["cmap"] = openmm.CMAPTorsionForce()
    for values in bonded.maps:
        forces["cmap"].addMap(len(values), (values.T * KJ).ravel())
    for eight, (which,) in zip(bonded.cmaps.atoms.tolist(), bonded.cmaps.parameters.tolist(), strict=True):
        forces["cmap"].addTorsion(int(which), *eight)
    for term, kept in (("lennard_jones_14", 0), ("coulomb_14", 1)):
        forces[term] = openmm.NonbondedForce()
        for _ in range(len(atoms)):
            forces[term].addParticle(0, 1, 0)
        for pair, (charge, sigma, epsilon) in zip(
            bonded.one_four.atoms.tolist(), bonded.one_four.parameters.tolist(), strict=True
        ):
            forces[term].addException(*pair, charge * kept, sigma / NM, epsilon * KJ * (1 - kept))
    return forces


def computed(atoms: Atoms, force) -> tuple[float, Floats]:
    """Return energy, kcal/mol, and gradient, kcal/mol/A, of one force on OpenMM's Reference platform."""
    import openmm

    system = openmm.System()
    for _ in range(len(atoms)):
        system.addParticle(1.0)
    return _computed(system, force, atoms.positions / NM)


@dataclass(frozen=True, eq=False)
class Molecule:
    """Atoms with bonded terms, and energy, kcal/mol, and gradient, kcal/mol/A, by the names of terms."""

    atoms: Atoms
    forces: dict[tuple[str, ...], tuple[float, Floats]]


@cache
def molecule(name: str, force_field: str) -> Molecule:
    """Return a structure of data/structures, or "dna", with the parameters of an OpenMM XML file."""
    pytest.importorskip("openmm")
    from openmm import app

    field = app.ForceField(force_field)
    if name == "dna":
        topology, positions = _dna(field)
    else:
        pdb = app.PDBFile(str(STRUCTURES / f"{name}.pdb"))
        topology, positions = pdb.topology, np.array(pdb.getPositions(asNumpy=True)._value)
    system = field.createSystem(topology)
    if name == "dna":
        positions = _relaxed(system, positions)
    bonds = np.array([(bond[0].index, bond[1].index) for bond in topology.bonds()])
    joined = {frozenset(pair) for pair in bonds.tolist()}
    tables: dict[str, list] = {}
    maps, excluded, charges, wells = (), [], None, None
    forces: dict[tuple[str, ...], tuple[float, Floats]] = {}
    for force in system.getForces():
        kind = type(force).__name__
        if kind == "NonbondedForce":
            charges, wells, excluded = _nonbonded(force, tables)
            for term, which in (("coulomb_14", 1), ("lennard_jones_14", 0)):
                forces[(term,)] = _computed(system, _exceptions_alone(force, which), positions)
        elif kind in TERMS_OF:
            _read(force, joined, tables)
            forces[TERMS_OF[kind]] = _computed(system, force, positions)
        if kind == "CMAPTorsionForce":
            maps = tuple(_map(force, k) for k in range(force.getNumMaps()))
    if "harmonic_impropers" in tables:
        periodic, harmonic = (forces.pop(TERMS_OF[kind]) for kind in ("PeriodicTorsionForce", "CustomTorsionForce"))
        forces["torsion", "improper"] = periodic[0] + harmonic[0], periodic[1] + harmonic[1]
    if any(kind == "CustomBondForce" for kind in (type(force).__name__ for force in system.getForces())):
        tables["one_four"] = _with_own_wells(system, tables["one_four"])
    filled = {
        key: TABLES[key]([list(of) for of, _ in rows], [values for _, values in rows]) for key, rows in tables.items()
    }
    n = len(positions)
    atoms = Atoms(
        positions=positions * NM, charges=charges, lj_sigma=wells[:, 0], lj_epsilon=wells[:, 1],
        gb_radii=np.full(n, 1.5), gb_scales=np.full(n, 0.8), bonds=bonds,
        bonded=Bonded(**filled, maps=maps, excluded=excluded),
    )  # fmt: skip
    return Molecule(atoms, forces)


def _read(force, joined, tables) -> None:
    """Add the terms of a force to the tables: rows of atoms and parameters."""
    kind = type(force).__name__
    if kind == "HarmonicBondForce":
        for k in range(force.getNumBonds()):
            i, j, r0, constant = force.getBondParameters(k)
            table = tables.setdefault("bonds" if frozenset((i, j)) in joined else "urey_bradley", [])
            table.append(((i, j), (constant._value / 2 / KJ / NM**2, r0._value * NM)))
    elif kind == "HarmonicAngleForce":
        for k in range(force.getNumAngles()):
            *atoms, theta0, constant = force.getAngleParameters(k)
            tables.setdefault("angles", []).append((atoms, (constant._value / 2 / KJ, theta0._value)))
    elif kind == "PeriodicTorsionForce":
        for t in range(force.getNumTorsions()):
            *atoms, n, phase, constant = force.getTorsionParameters(t)
            chain = all(frozenset(pair) in joined for pair in pairwise(atoms))
            table = tables.setdefault("torsions" if chain else "impropers", [])
            table.append((atoms, (constant._value / KJ, n, phase._value)))
    elif kind == "CustomTorsionForce":
        for t in range(force.getNumTorsions()):
            *atoms, (constant, theta0) = force.getTorsionParameters(t)
            tables.setdefault("harmonic_impropers", []).append((atoms, (constant / KJ, theta0)))
    elif kind == "CMAPTorsionForce":
        for t in range(force.getNumTorsions()):
            which, *atoms = force.getTorsionParameters(t)
            tables.setdefault("cmaps", []).append((atoms, (which,)))


def _nonbonded(force, tables) -> tuple[Floats, Floats, list]:
    """Return charges, sigma and epsilon of atoms, and excluded pairs; 1-4 pairs are added to the tables."""
    excluded = []
    particles = np.array(
        [[value._value for value in force.getParticleParameters(k)] for k in range(force.getNumParticles())]
    )
    for k in range(force.getNumExceptions()):
        i, j, charge, sigma, epsilon = force.getExceptionParameters(k)
        excluded.append((i, j))
        if charge._value or epsilon._value:
            values = charge._value, sigma._value * NM, epsilon._value / KJ
            tables.setdefault("one_four", []).append(((i, j), values))
    return particles[:, 0], particles[:, 1:] * [NM, 1 / KJ], excluded


def _with_own_wells(system, rows) -> list:
    """Return 1-4 pairs whose Lennard-Jones terms are in a CustomBondForce, as for CHARMM."""
    (force,) = (force for force in system.getForces() if type(force).__name__ == "CustomBondForce")
    found = {frozenset(atoms): (values[0], 1.0, 0.0) for atoms, values in rows}
    names = [force.getPerBondParameterName(k) for k in range(force.getNumPerBondParameters())]
    for k in range(force.getNumBonds()):
        i, j, values = force.getBondParameters(k)
        by_name = dict(zip(names, values, strict=True))
        charge = found.get(frozenset((i, j)), (0.0,))[0]
        found[frozenset((i, j))] = charge, by_name["sigma"] * NM, by_name["epsilon"] / KJ
    return [(tuple(pair), values) for pair, values in found.items()]


def _map(force, k: int) -> Floats:
    """Return a map with origin 0, the axis of the first torsion first."""
    size, energy = force.getMapParameters(k)
    return np.array(energy._value).reshape(size, size).T / KJ


def _exceptions_alone(force, kept: int):
    """Return a NonbondedForce with only the charges (1) or only the Lennard-Jones terms (0) of its exceptions."""
    alone = copy.deepcopy(force)
    for k in range(alone.getNumParticles()):
        alone.setParticleParameters(k, 0.0, 1.0, 0.0)
    for k in range(alone.getNumExceptions()):
        i, j, charge, sigma, epsilon = alone.getExceptionParameters(k)
        alone.setExceptionParameters(k, i, j, charge * kept, sigma, epsilon * (1 - kept))
    return alone


def _computed(system, force, positions) -> tuple[float, Floats]:
    """Return energy, kcal/mol, and gradient, kcal/mol/A, of one force."""
    import openmm

    alone = openmm.System()
    for k in range(system.getNumParticles()):
        alone.addParticle(system.getParticleMass(k))
    alone.addForce(copy.deepcopy(force))
    context = openmm.Context(alone, openmm.VerletIntegrator(1e-3), openmm.Platform.getPlatformByName("Reference"))
    context.setPositions(positions)
    state = context.getState(getEnergy=True, getForces=True)
    return state.getPotentialEnergy()._value / KJ, -np.array(state.getForces(asNumpy=True)._value) / KJ / NM


def _dna(field):
    """Return a single strand from the templates of a force field, with scattered atoms."""
    from openmm import app

    topology = app.Topology()
    chain, rng, positions, before = topology.addChain(), np.random.default_rng(4), [], None
    for number, name in enumerate(DNA):
        template = field._templates[name]
        residue = topology.addResidue(name.rstrip("35"), chain)
        atoms = [topology.addAtom(atom.name, atom.element, residue) for atom in template.atoms]
        for i, j in template.bonds:
            topology.addBond(atoms[i], atoms[j])
        by_name = {atom.name: atom for atom in atoms}
        if before is not None:
            topology.addBond(before, by_name["P"])
        before = by_name.get("O3'")
        positions.append(rng.normal((0.7 * number, 0, 0), 0.25, (len(atoms), 3)))
    return topology, np.concatenate(positions)


def _relaxed(system, positions) -> Floats:
    """Return positions after a minimization of bonds and angles, a few tenths of an Angstrom away."""
    import openmm

    bonded = copy.deepcopy(system)
    for k in reversed(range(bonded.getNumForces())):
        if type(bonded.getForce(k)).__name__ not in ("HarmonicBondForce", "HarmonicAngleForce"):
            bonded.removeForce(k)
    context = openmm.Context(bonded, openmm.VerletIntegrator(1e-3), openmm.Platform.getPlatformByName("Reference"))
    context.setPositions(positions)
    openmm.LocalEnergyMinimizer.minimize(context, maxIterations=300)
    relaxed = np.array(context.getState(getPositions=True).getPositions(asNumpy=True)._value)
    return relaxed + np.random.default_rng(5).normal(0, 0.005, relaxed.shape)
