"""Wide systems: molecules far apart keep the digits of float32 at any width."""

import numpy as np
import pytest
from conftest import load_system
from test_energy import EVERY_VARIANT, options
from test_reference_nonbond import relative
from tolerance import ENERGY, GRADIENT

from pele_ocl import Atoms
from pele_ocl.energy import Energy
from pele_ocl.reference.energy import energy as reference


def two_apart(distance):
    """Two hexapeptides this far apart, A, at positions that are no multiples of anything."""
    one = load_system("hexapeptide").atoms
    arrays = {
        name: np.concatenate([getattr(one, name)] * 2)
        for name in ("charges", "lj_sigma", "lj_epsilon", "gb_radii", "gb_scales")
    }
    direction = np.array([0.6, 0.48, 0.64])
    positions = np.concatenate([one.positions, one.positions + distance * direction + [0.0123, 0.0456, 0.0789]])
    return Atoms(positions=positions, bonds=np.concatenate([one.bonds, one.bonds + len(one)]), **arrays)


@EVERY_VARIANT
@pytest.mark.parametrize("distance", [40, 300, 3e3, 3e4, 3e5, 4e5])
def test_gradients_hold_at_any_width(device, precision, variant, distance):
    atoms = two_apart(distance)
    expected = reference(atoms)
    plan = Energy(atoms, **options(device, precision, variant))
    result = plan.evaluate()
    assert relative(result.gradient, expected.gradient) < GRADIENT[precision]
    assert result.total == pytest.approx(expected.total, rel=ENERGY[precision])
    batch = plan.evaluate_batch(np.stack([atoms.positions, atoms.positions + 1e4]))
    np.testing.assert_array_equal(batch.gradients[0], result.gradient)
    assert relative(batch.gradients[1], expected.gradient) < GRADIENT[precision]
