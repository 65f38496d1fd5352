"""Radius functions of GB models are headers that all kernels take: OBC with its constants, HCT without tanh."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import random_atoms

from pele_ocl import Energy, SolventModel
from pele_ocl.energy import VARIANTS as ENERGY_VARIANTS
from pele_ocl.ladder import SOLVENT as VARIANTS
from pele_ocl.ladder import SolventLadder
from pele_ocl.reference import solvent as definition

ATOMS = random_atoms(40)


MODELS = {name: SolventModel(gb=name) for name in ("hct", "obc1")}


def expected_radii(model):
    psi, born = definition.born_radii(ATOMS.positions, ATOMS.gb_radii, ATOMS.gb_scales, SolventModel(gb="obc1"))
    return (ATOMS.gb_radii - model.offset) / (1 - psi) if model.gb == "hct" else born


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("variant", [name for name, own in VARIANTS.items() if not own.approximates])
def test_radii_follow_the_models_function(variant, model, device, precision):
    plan = SolventLadder(ATOMS, variant=variant, precision=precision, device=device, model=model)
    rtol = 1e-10 if precision == "float64" else 1e-5
    np.testing.assert_allclose(plan.evaluate().born_radii, expected_radii(model), rtol=rtol)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("variant", ENERGY_VARIANTS)
def test_the_gradient_has_the_models_slope(variant, model, device):
    """Against differences of the energy: dB/dI is in it by the chain rule."""
    device.require_precision("float64")
    plan = Energy(ATOMS, variant=variant, precision="float64", device=device, model=model)
    result = plan.evaluate()
    np.testing.assert_allclose(result.born_radii, expected_radii(model), rtol=1e-10)
    along = np.random.default_rng(1).normal(size=ATOMS.positions.shape)
    step = 1e-5
    energies = [plan.evaluate(ATOMS.positions + sign * step * along).total for sign in (1, -1)]
    slope = (energies[0] - energies[1]) / (2 * step)
    assert slope == pytest.approx((result.gradient * along).sum(), rel=1e-7)
