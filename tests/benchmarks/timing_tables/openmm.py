"""Energies and forces from OpenMM, for comparison with the energy, GB, and pairs within a cutoff."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pele_ocl.atoms import Atoms, Floats, exclusions
from pele_ocl.gb_models.solvent_model import SolventModel
from pele_ocl.pairs import nonbonded_pairs, own_lj_pairs
from pele_ocl.units import JOULE_PER_CALORIE
from timing_tables.installed import AbsentError, load

if TYPE_CHECKING:
    from openmm import Context, GBSAOBCForce, NonbondedForce, System

Indices = NDArray[np.integer]

NM_PER_A = 0.1
STEP_PS = 1e-9  # too short for the atoms to move
# OpenMM's platforms in the order of the table, and what they can compute in.
PLATFORMS = {
    "CUDA": ("float32", "float64"),
    "OpenCL": ("float32", "float64"),
    "CPU": ("float32",),
    "Reference": ("float64",),
}
PRECISIONS = {"float32": "single", "float64": "double"}


def platforms() -> list[str]:
    """Return the available OpenMM platforms; none without OpenMM."""
    try:
        openmm = load("openmm")
    except AbsentError:
        return []
    there = {openmm.Platform.getPlatform(k).getName() for k in range(openmm.Platform.getNumPlatforms())}
    return [name for name in PLATFORMS if name in there]


@dataclass(frozen=True, eq=False)
class OpenMM:
    """An OpenMM system on one of its platforms."""

    context: Context
    platform: str

    @classmethod
    def of(cls, system: System, positions: Floats, platform: str, precision: str) -> OpenMM:
        """positions : (n, 3) A

        Raises AbsentError if the platform is not available, has no device or does not support the precision.
        """
        openmm = load("openmm")
        if precision not in PLATFORMS[platform]:
            raise AbsentError(f"computes in {' and '.join(PLATFORMS[platform])}")
        if platform not in platforms():
            raise AbsentError("platform not available")
        properties = {"Precision": PRECISIONS[precision]} if len(PLATFORMS[platform]) > 1 else {}
        integrator = openmm.VerletIntegrator(STEP_PS)
        try:
            context = openmm.Context(system, integrator, openmm.Platform.getPlatformByName(platform), properties)
        except openmm.OpenMMException as error:
            raise AbsentError(str(error)) from error
        context.setPositions(positions * NM_PER_A)
        return cls(context, platform)

    @property
    def where(self) -> str:
        """Return the device of the platform."""
        if self.platform == "Reference":
            return "CPU, 1 core"
        name = "Threads" if self.platform == "CPU" else "DeviceName"
        value = self.context.getPlatform().getPropertyValue(self.context, name)
        return f"CPU, {value} threads" if self.platform == "CPU" else str(value)

    def evaluate(self, positions: Floats | None = None) -> tuple[float, Floats]:
        """Return energy, kcal/mol, and gradient, (n, 3) kcal/mol/A, at positions (n, 3) A, by default its current
        ones.
        """
        from openmm import unit

        if positions is not None:
            self.context.setPositions(positions * NM_PER_A)
        state = self.context.getState(getEnergy=True, getForces=True)
        energy = state.getPotentialEnergy().value_in_unit(unit.kilocalorie_per_mole)
        forces = state.getForces(asNumpy=True).value_in_unit(unit.kilocalorie_per_mole / unit.angstrom)
        return float(energy), -np.asarray(forces)

    def step(self, count: int) -> None:
        """Run steps of molecular dynamics; forces stay on the device."""
        self.context.getIntegrator().step(count)
        self.context.getState(getVelocities=True)  # waits for a GPU


def whole_energy(atoms: Atoms, model: SolventModel) -> System:
    """Return a System of NonbondedForce and GBSAOBCForce without cutoff: `energy` without bonded terms."""
    openmm = load("openmm")
    system, pairs, gb = _forces_of(atoms)
    _set_solvent(gb, model)
    apart = nonbonded_pairs(atoms)
    _exclude(pairs, apart.excluded)
    to_openmm = 1.0, NM_PER_A, JOULE_PER_CALORIE
    for (i, j), values in zip(apart.one_four.atoms.tolist(), apart.one_four.parameters * to_openmm, strict=True):
        pairs.addException(i, j, *values.tolist(), True)  # in place of its exclusion
    own = own_lj_pairs(atoms)
    for (i, j), values in zip(own.atoms.tolist(), own.parameters * to_openmm[1:], strict=True):
        pairs.addException(i, j, float(atoms.charges[i] * atoms.charges[j]), *values.tolist())
    pairs.setNonbondedMethod(openmm.NonbondedForce.NoCutoff)
    gb.setNonbondedMethod(openmm.GBSAOBCForce.NoCutoff)
    system.addForce(pairs)
    system.addForce(gb)
    return system


def gb_alone(atoms: Atoms, model: SolventModel) -> System:
    """Return a System of a GBSAOBCForce without cutoff: the energy of `solvent`."""
    system, _, gb = _forces_of(atoms)
    _set_solvent(gb, model)
    gb.setNonbondedMethod(load("openmm").GBSAOBCForce.NoCutoff)
    system.addForce(gb)
    return system


def pairs_within_cutoff(atoms: Atoms, cutoff: float, with_gb: bool = False) -> System:
    """Return a System of a NonbondedForce with the pairs of `pairs_within(atoms, cutoff)`; cutoff in A.

    The reaction field has the permittivity of vacuum, so the Coulomb energy is truncated at the cutoff and shifted by
    q_i q_j / cutoff for each pair. with_gb : also with a GBSAOBCForce with this cutoff, which applies to Born radii,
    too.
    """
    openmm = load("openmm")
    system, pairs, gb = _forces_of(atoms)
    _exclude(pairs, np.concatenate(exclusions(atoms.bonds, len(atoms))))
    pairs.setNonbondedMethod(openmm.NonbondedForce.CutoffNonPeriodic)
    pairs.setReactionFieldDielectric(1.0)
    gb.setNonbondedMethod(openmm.GBSAOBCForce.CutoffNonPeriodic)
    for force in (pairs, gb) if with_gb else (pairs,):
        force.setCutoffDistance(cutoff * NM_PER_A)
        system.addForce(force)
    return system


def _set_solvent(gb: GBSAOBCForce, model: SolventModel) -> None:
    gb.setSoluteDielectric(model.solute_dielectric)
    gb.setSolventDielectric(model.solvent_dielectric)
    gb.setSurfaceAreaEnergy(model.ace_tension * JOULE_PER_CALORIE / NM_PER_A**2)


def _exclude(pairs: NonbondedForce, excluded: Indices) -> None:
    for i, j in excluded.tolist():
        pairs.addException(i, j, 0.0, 1.0, 0.0)


def _forces_of(atoms: Atoms) -> tuple[System, NonbondedForce, GBSAOBCForce]:
    """Return a System of the atoms, and a NonbondedForce and a GBSAOBCForce with their parameters, not yet added."""
    openmm = load("openmm")
    assert atoms.lj_sigma is not None
    assert atoms.lj_epsilon is not None
    assert atoms.gb_radii is not None
    assert atoms.gb_scales is not None
    system, pairs, gb = openmm.System(), openmm.NonbondedForce(), openmm.GBSAOBCForce()
    columns = (
        atoms.charges, atoms.lj_sigma * NM_PER_A, atoms.lj_epsilon * JOULE_PER_CALORIE,
        atoms.gb_radii * NM_PER_A, atoms.gb_scales,
    )  # fmt: skip
    for charge, sigma, epsilon, radius, scale in zip(*(column.tolist() for column in columns), strict=True):
        system.addParticle(1.0)
        pairs.addParticle(charge, sigma, epsilon)
        gb.addParticle(charge, radius, scale)
    return system, pairs, gb
