"""Gradient of every term of the energy is its slope, on the devices, in every branch of the formulas."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conftest import load_system
from test_reference_energy import BRANCHES, bonded, three_atoms
from test_reference_nonbond import relative
from tolerance import DIFFERENCES

from pele_ocl import Atoms, SolventModel
from pele_ocl.energy import VARIANTS, Energy

PARAMETERS = ("charges", "lj_sigma", "lj_epsilon", "gb_radii", "gb_scales")
VACUUM = SolventModel(solvent_dielectric=1, surface_tension=0)
# So much inside that Coulomb's energy is nothing beside that of the solvent.
SCREENED = SolventModel(solute_dielectric=1e6, surface_tension=0)
TERMS = {  # which parameters count, and the model
    "lennard_jones": (("lj_epsilon",), VACUUM),
    "coulomb": (("charges",), VACUUM),
    "gb": (("charges",), SCREENED),
    "gb_self": (("a charge",), SCREENED),
    "nonpolar": ((), SolventModel()),
    "together": (("charges", "lj_epsilon"), SolventModel()),
    "together with salt": (("charges", "lj_epsilon"), SolventModel(solute_dielectric=2, ionic_strength=0.15)),
}


def alone(atoms: Atoms, term: str) -> tuple[Atoms, SolventModel]:
    """Give the atoms nothing but what makes this term."""
    kept, model = TERMS[term]
    zeros = np.zeros(len(atoms))
    charges = atoms.charges if "charges" in kept else zeros
    if "a charge" in kept:  # meets no other one, so that there are no pairs
        charges = np.where(np.arange(len(atoms)) == 0, 0.7, 0.0)
    return replace(atoms, charges=charges, lj_epsilon=atoms.lj_epsilon if "lj_epsilon" in kept else zeros), model


def slopes(plan: Energy, step: float = 1e-4) -> np.ndarray:
    """Gradient of the total energy by central differences of fourth order, (n, 3) kcal/mol/A."""
    positions = plan.atoms.positions
    return slopes_along(plan, np.eye(positions.size), step).reshape(positions.shape)


def slopes_along(plan: Energy, directions: np.ndarray, step: float = 1e-4) -> np.ndarray:
    """Return the slopes along directions (m, 3 n), (m,) kcal/mol/A."""
    positions = plan.atoms.positions
    moves = step * np.array([-2, -1, 1, 2])[:, None, None] * directions
    before2, before, after, after2 = plan.evaluate_batch(positions + moves.reshape(-1, *positions.shape)).total.reshape(
        4, -1
    )
    return (before2 - 8 * before + 8 * after - after2) / (12 * step)


def molecules_apart() -> Atoms:
    """Four molecules so far from each other that every short form of the pair terms is taken."""
    near = bonded(24, seed=9)
    places = [near.positions + np.array(shift) for shift in ([0, 0, 0], [40, 0, 0], [0, 250, 0], [0, 0, 1500])]
    return Atoms(positions=np.concatenate(places), **{name: np.tile(getattr(near, name), 4) for name in PARAMETERS})


SYSTEMS = {
    "chain": lambda: bonded(70, seed=11),
    "hexapeptide": lambda: load_system("hexapeptide").atoms,
    "molecules apart": molecules_apart,
}


def plan_of(device, atoms: Atoms, variant: str, **options) -> Energy:
    if not device.has_float64:
        pytest.skip(f"{device} has no float64")
    return Energy(atoms, device=device, precision="float64", variant=variant, **options)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("term", TERMS)
@pytest.mark.parametrize("name", SYSTEMS)
def test_gradients_are_slopes(device, variant, term, name):
    """Along 30 random directions, in which every atom moves."""
    atoms, model = alone(SYSTEMS[name](), term)
    plan = plan_of(device, atoms, variant, model=model)
    gradient = plan.evaluate().gradient
    assert np.linalg.norm(gradient) > 1e-3
    directions = np.random.default_rng(4).normal(size=(30, gradient.size))
    assert relative(directions @ gradient.ravel(), slopes_along(plan, directions)) < DIFFERENCES


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("term", TERMS)
@pytest.mark.parametrize("branch", BRANCHES)
def test_gradients_of_overlapping_and_engulfed_spheres_are_slopes(device, variant, term, branch):
    atoms, model = alone(three_atoms(branch), term)
    plan = plan_of(device, atoms, variant, model=model)
    assert relative(plan.evaluate().gradient, slopes(plan)) < DIFFERENCES


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("options", [{"one_four": "exclude"}, {"cutoff": 5.0}], ids=str)
def test_gradients_with_options_are_slopes(device, variant, options):
    """Atom by atom."""
    plan = plan_of(device, bonded(70, seed=5), variant, **options)
    assert relative(plan.evaluate().gradient, slopes(plan)) < DIFFERENCES
