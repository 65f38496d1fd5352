"""Errors that the grid leaves in Poisson-Boltzmann energies of a complex and its parts."""

from __future__ import annotations

from ..common.errors import InputError
from .energies import BindingEnergies
from .plan import Binding
from .poisson_boltzmann import PBEnergy


def grid_errors(binding: Binding, energies: BindingEnergies | None = None) -> dict[str, float]:
    """Measure how twice the spacing changes Poisson-Boltzmann energies, kcal/mol, of all systems and "delta".

    An upper estimate of each system's error of the grid, with "edges" and "smol" at up to 0.5 A. Else three times as
    much is, as PBErrors has it. In "delta" most of it cancels, and the change is of the size of the error left.

    energies : of `Binding.evaluate` at these positions, if they are there already

    Raises InputError for a plan with Generalized Born.
    """
    whole = binding.plans["complex"]
    if not isinstance(whole, PBEnergy):
        raise InputError("there is no grid with Generalized Born; make the Binding with pb=PBSolvent()")
    fine = binding.evaluate() if energies is None else energies
    systems = binding.systems
    grids = systems.grids(systems.positions(whole.atoms.positions[None]))
    coarse = {
        name: plan.energy_on_coarse_grid(grids[name][0])
        for name, plan in binding.plans.items()
        if isinstance(plan, PBEnergy)
    }
    coarse["delta"] = coarse["complex"] - coarse["receptor"] - coarse["ligand"]
    return {name: abs(float(terms.pb) - coarse[name]) for name, terms in fine.systems().items()}
