"""Definition of potential maps: analytic values, and the field as the potential's gradient."""

import numpy as np
import pytest
from conftest import random_atoms
from tolerance import DIFFERENCES

from pele_ocl import Atoms, Grid, InputError
from pele_ocl.potential_model import PotentialModel
from pele_ocl.reference import potmap as reference
from pele_ocl.units import COULOMB_KCAL_A

MODELS = {
    "coulomb": PotentialModel(),
    "dielectric": PotentialModel(dielectric=80.0),
    "distance-dependent": PotentialModel(dielectric=4.0, distance_dependent=True),
    "screened": PotentialModel(kappa=0.12),
    "clamped": PotentialModel(min_distance=1.5),
    "screened distance-dependent": PotentialModel(kappa=0.3, distance_dependent=True),
    "smooth": PotentialModel(cutoff=9.0, smooth=True),
    "all": PotentialModel(2.0, True, 0.1, 1.0, 8.0, True),
}


def at(atoms, *point, **model):
    return reference.potmap(atoms, Grid(point, 1.0, (1, 1, 1)), PotentialModel(**model))[0, 0, 0]


@pytest.fixture(scope="module")
def charge():
    return Atoms(positions=[[1.0, -2.0, 3.0]], charges=[0.5])


def test_one_charge(charge):
    bare = 0.5 * COULOMB_KCAL_A
    assert at(charge, 1, -2, 7) == pytest.approx(bare / 4, rel=1e-15)
    assert at(charge, 1, -2, 7, dielectric=80) == pytest.approx(bare / 4 / 80, rel=1e-15)
    assert at(charge, 1, -2, 7, dielectric=4, distance_dependent=True) == pytest.approx(bare / 64, rel=1e-15)
    assert at(charge, 1, -2, 7, kappa=0.1) == pytest.approx(bare / 4 * np.exp(-0.4), rel=1e-15)
    assert at(charge, 1, -2, 7, min_distance=5) == pytest.approx(bare / 5, rel=1e-15)
    assert at(charge, 1, -2, 3, min_distance=5) == pytest.approx(bare / 5, rel=1e-15)
    assert at(charge, 1, -2, 7, cutoff=5) == pytest.approx(bare / 4, rel=1e-15)
    assert at(charge, 1, -2, 7, cutoff=5, smooth=True) == pytest.approx(bare / 4 * (1 - 16 / 25) ** 2, rel=1e-14)
    assert at(charge, 1, -2, 7, cutoff=4) == 0
    assert at(charge, 1, -2, 3) == np.inf


def test_a_map_is_x_fastest():
    atoms = Atoms(positions=[[10.0, 0, 0]], charges=[1.0])
    values = reference.potmap(atoms, Grid((0, 0, 0), (1, 2, 3), (4, 3, 2)))
    assert values.shape == (2, 3, 4)
    for k, j, i in np.ndindex(2, 3, 4):
        assert values[k, j, i] == pytest.approx(COULOMB_KCAL_A / np.linalg.norm([i - 10, 2 * j, 3 * k]), rel=1e-14)


def test_smoothing_leaves_neither_step_nor_kink():
    model = PotentialModel(cutoff=10.0, smooth=True)
    near = np.array([(10 - 1e-4) ** 2])
    assert 0 < reference.potential(near, model)[0] < 1e-9
    assert 0 < reference.slope(near, model)[0] < 1e-5
    plain = PotentialModel(cutoff=10.0)
    assert reference.potential(near, plain)[0] == pytest.approx(0.1, rel=1e-4)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_the_field_is_minus_the_gradient(model):
    atoms = random_atoms(30, 3)
    centre = Grid((2.2, 3.1, 1.3), 1.0, (2, 2, 2))
    field = reference.field(atoms, centre, model)
    step = 1e-5
    for axis in range(3):
        shift = step * np.eye(3)[axis]
        there, back = (
            reference.potmap(atoms, Grid(centre.origin + s * shift, 1.0, centre.shape), model) for s in (1, -1)
        )
        differences = (back - there) / (2 * step)
        assert np.linalg.norm(field[axis] - differences) < DIFFERENCES * np.linalg.norm(field)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dielectric": 0}, "the dielectric is 0; it must be positive, 0.001 to 1,000,000"),
        ({"kappa": -1}, "kappa is -1; expected a finite number of at least 0"),
        ({"min_distance": float("nan")}, "min_distance is nan; expected a finite number of at least 0"),
        ({"smooth": True}, "smoothing needs a cutoff; choose the cutoff method"),
        ({"cutoff": 0}, "the cutoff is 0 A; expected a finite number beyond the minimum distance"),
        ({"cutoff": 2, "min_distance": 3}, "the cutoff is 2 A; expected a finite number beyond the minimum distance"),
    ],
)
def test_what_a_model_refuses(options, message):
    with pytest.raises(InputError) as error:
        PotentialModel(**options)
    assert str(error.value) == message
