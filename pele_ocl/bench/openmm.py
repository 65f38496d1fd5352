"""The same energy by OpenMM, where it is installed: the peer that the timing table holds us against."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..atoms import Atoms, Floats
from ..pairs import exclusions
from ..solvent_model import SolventModel
from ..units import JOULE_PER_CALORIE

NM_PER_A = 0.1
# OpenMM's platforms, in the order of the table. Its Reference platform is no rival; it takes seconds.
PLATFORMS = ("CUDA", "OpenCL", "CPU")
PRECISIONS = {"float32": "single", "float64": "double"}


def platforms() -> list[str]:
    """OpenMM's platforms that are there; none without OpenMM."""
    if importlib.util.find_spec("openmm") is None:
        return []
    import openmm

    there = {openmm.Platform.getPlatform(k).getName() for k in range(openmm.Platform.getNumPlatforms())}
    return [name for name in PLATFORMS if name in there]


@dataclass(frozen=True, eq=False)
class OpenMM:
    """A molecule made ready for a platform of OpenMM: NonbondedForce and GBSAOBCForce without a cutoff."""

    context: Any

    @classmethod
    def of(cls, atoms: Atoms, model: SolventModel, platform: str, precision: str) -> OpenMM:
        """Raises ValueError where the platform cannot compute in the precision, or not at all."""
        import openmm

        if platform == "CPU" and precision == "float64":
            raise ValueError("OpenMM's CPU platform computes in float32")
        properties = {} if platform == "CPU" else {"Precision": PRECISIONS[precision]}
        integrator = openmm.VerletIntegrator(0.001)
        try:
            context = openmm.Context(
                _system(atoms, model), integrator, openmm.Platform.getPlatformByName(platform), properties
            )
        except openmm.OpenMMException as error:
            raise ValueError(str(error)) from error
        context.setPositions(atoms.positions * NM_PER_A)
        return cls(context)

    def evaluate(self) -> tuple[float, Floats]:
        """Energy, kcal/mol, and gradient, (n, 3) kcal/mol/A."""
        from openmm import unit

        state = self.context.getState(getEnergy=True, getForces=True)
        energy = state.getPotentialEnergy().value_in_unit(unit.kilocalorie_per_mole)
        forces = state.getForces(asNumpy=True).value_in_unit(unit.kilocalorie_per_mole / unit.angstrom)
        return float(energy), -np.asarray(forces)


def _system(atoms: Atoms, model: SolventModel) -> Any:
    import openmm

    system, pairs, gb = forces_of(atoms)
    gb.setSoluteDielectric(model.solute_dielectric)
    gb.setSolventDielectric(model.solvent_dielectric)
    gb.setSurfaceAreaEnergy(model.surface_tension * JOULE_PER_CALORIE / NM_PER_A**2)
    excluded, one_four = exclusions(atoms.bonds, len(atoms))
    for i, j in excluded.tolist():
        pairs.addException(i, j, 0.0, 1.0, 0.0)
    by_coulomb, by_lj = atoms.one_four
    for i, j in one_four.tolist():
        charge_i, sigma_i, epsilon_i = pairs.getParticleParameters(i)
        charge_j, sigma_j, epsilon_j = pairs.getParticleParameters(j)
        well = by_lj * (epsilon_i * epsilon_j).sqrt()
        pairs.addException(i, j, by_coulomb * charge_i * charge_j, (sigma_i + sigma_j) / 2, well)
    pairs.setNonbondedMethod(openmm.NonbondedForce.NoCutoff)
    gb.setNonbondedMethod(openmm.GBSAOBCForce.NoCutoff)
    system.addForce(pairs)
    system.addForce(gb)
    return system


def forces_of(atoms: Atoms) -> tuple[Any, Any, Any]:
    """A System of the atoms, with a NonbondedForce and a GBSAOBCForce that know their parameters but are not in it."""
    import openmm

    assert atoms.lj_sigma is not None
    assert atoms.lj_epsilon is not None
    assert atoms.gb_radii is not None
    assert atoms.gb_scales is not None
    system, pairs, gb = openmm.System(), openmm.NonbondedForce(), openmm.GBSAOBCForce()
    sigma, epsilon = atoms.lj_sigma * NM_PER_A, atoms.lj_epsilon * JOULE_PER_CALORIE
    for charge, s, e, radius, scale in zip(
        atoms.charges, sigma, epsilon, atoms.gb_radii * NM_PER_A, atoms.gb_scales, strict=True
    ):
        system.addParticle(1.0)
        pairs.addParticle(charge, s, e)
        gb.addParticle(charge, radius, scale)
    return system, pairs, gb
