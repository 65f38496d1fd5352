"""Grids: the places of their points, and what is no grid."""

import numpy as np
import pytest
from conftest import random_atoms

from pele_ocl import Atoms, Grid, InputError, Map


def test_points_and_indices_are_inverse():
    grid = Grid((-1.5, 2, 0.25), (0.5, 1, 0.75), (4, 3, 2))
    np.testing.assert_array_equal(grid.position((3, 2, 1)), [0, 4, 1])
    np.testing.assert_array_equal(grid.last, [0, 4, 1])
    np.testing.assert_allclose(grid.index(grid.position((1.25, 0.5, 1))), (1.25, 0.5, 1))
    x, y, z = grid.axes()
    np.testing.assert_array_equal(x, [-1.5, -1, -0.5, 0])
    np.testing.assert_array_equal(y, [2, 3, 4])
    np.testing.assert_array_equal(z, [0.25, 1])
    assert len(grid) == 24


@pytest.mark.parametrize("spacing", [0.5, 0.3, (0.4, 0.7, 1.1)])
@pytest.mark.parametrize("padding", [0, 10, 3.3])
def test_around_reaches_the_padding_and_not_a_step_more(spacing, padding):
    atoms = random_atoms(50)
    grid = Grid.around(atoms, padding, spacing)
    below = atoms.positions.min(axis=0) - padding - grid.origin
    above = grid.last - atoms.positions.max(axis=0) - padding
    for beyond in (below, above):
        assert (beyond >= -1e-6).all()
        assert (beyond < grid.spacing + 1e-6).all()
    np.testing.assert_allclose(grid.origin / grid.spacing, np.round(grid.origin / grid.spacing), atol=1e-9)


def test_around_keeps_points_off_atoms():
    atoms = Atoms(positions=[[1.0, 2.0, 3.0], [1.25, 2.1, 3.0], [3.0, 4.5, 1.0004]], charges=[1.0, 0, 0])
    grid = Grid.around(atoms, 0, 0.5)
    np.testing.assert_allclose(grid.origin, [0.75, 1.75, 0.75])
    np.testing.assert_allclose(grid.last, [3.25, 4.75, 3.25])
    more = Atoms(positions=[*atoms.positions, [0.75, 0.25, 7.25]], charges=np.zeros(4))
    np.testing.assert_allclose(Grid.around(more, 0, 0.5).origin, [0.625, 0.125, 0.625])
    off = Atoms(positions=[[1.0, 2.0, 3.01], [1.5, 2.02, 3.0]], charges=[1.0, 1])
    np.testing.assert_allclose(Grid.around(off, 0, 0.5).origin, [1, 2, 3])


def test_around_many_atoms_on_points_gives_up_moving():
    everywhere = np.stack(np.meshgrid(*[np.arange(8) / 8] * 3), axis=-1).reshape(-1, 3)
    np.testing.assert_array_equal(Grid.around(Atoms(positions=everywhere, charges=np.zeros(512)), 0, 0.5).origin, 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((0, 0, 0), 0.5, (4, 0, 2)), r"a grid's shape must be three whole numbers of at least 1: nx, ny, nz; not "),
        (((0, 0, 0), 0.5, (4, 2.5, 2)), r"a grid's shape must be three whole numbers"),
        (((0, 0, 0), 0, (1, 1, 1)), "a grid's spacing must be positive; not 0"),
        (((0, np.nan, 0), 1, (1, 1, 1)), "a grid's origin must be finite; not "),
        (((0, 0), 1, (1, 1, 1)), "a grid's origin must be three numbers, in Angstrom; not "),
        (((0, 0, 0), 1, (10**5, 10**5, 10**5)), "points is too large; choose a larger spacing"),
        (((0, -2e10, 0), 1, (1, 1, 1)), r"a grid must be within 1e\+10 A of 0; not from "),
        (((0, 0, 0), 1e10, (1, 1, 3)), r"a grid must be within 1e\+10 A of 0; not from "),
    ],
)
def test_what_is_no_grid(arguments, message):
    with pytest.raises(InputError, match=message):
        Grid(*arguments)


def test_what_does_not_fit():
    with pytest.raises(InputError, match="the padding must be 0 or more Angstrom, not -1"):
        Grid.around(random_atoms(3), -1)
    with pytest.raises(InputError, match="a spacing of 1e-30 A is too small for this molecule"):
        Grid.around(random_atoms(3), 5, 1e-30)
    with pytest.raises(InputError, match=r"values of shape \(2, 3, 4\) do not match a grid of \(4, 3, 2\) points"):
        Map(Grid((0, 0, 0), 1, (2, 3, 4)), np.zeros((2, 3, 4)))


def test_a_map_is_an_array_to_numpy():
    values = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    map_ = Map(Grid((0, 0, 0), 1, (4, 3, 2)), values)
    assert np.shares_memory(np.asarray(map_), map_.values)
    assert np.asarray(map_).dtype == np.float32
    assert np.asarray(map_, np.float64).dtype == np.float64
    assert not np.shares_memory(np.array(map_), map_.values)
    assert float(np.max(map_)) == 23.0
