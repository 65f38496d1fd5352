"""Values between the points of a map."""

from __future__ import annotations

import numpy as np
import pytest
from maps_helpers import some_map

from pele_ocl.common.errors import InputError
from pele_ocl.grid import Grid, Map
from pele_ocl.sampling import sample

GRID = Grid((-13.257, 7.1234, 101.75), (0.5, 0.7, 1.3), (5, 4, 3))


def trilinear(x, y, z):
    """A function that linear interpolation along each axis gives back exactly."""
    return 3 - 0.2 * x + 0.7 * y + 0.01 * z + 0.3 * x * y - 0.05 * y * z + 0.02 * x * z - 0.004 * x * y * z


def trilinear_map(grid=GRID) -> Map:
    x, y, z = grid.axes()
    return Map(grid, trilinear(x, y[:, None], z[:, None, None]))


def test_points_of_the_grid_have_their_values():
    map_ = some_map((5, 4, 3))
    index = np.stack(np.meshgrid(*map(np.arange, map_.grid.shape), indexing="ij"), axis=-1).reshape(-1, 3)
    i, j, k = index.T
    np.testing.assert_allclose(sample(map_, map_.grid.position(index)), map_.values[k, j, i], rtol=1e-5)


def test_what_is_linear_along_each_axis_is_exact():
    rng = np.random.default_rng(3)
    positions = rng.uniform(GRID.origin, GRID.last, (1000, 3))
    np.testing.assert_allclose(sample(trilinear_map(), positions), trilinear(*positions.T), rtol=1e-12)


def test_scipy_agrees():
    interpolate = pytest.importorskip("scipy.interpolate")
    map_ = some_map((5, 4, 3), dtype=np.float64)
    positions = np.random.default_rng(4).uniform(map_.grid.origin, map_.grid.last, (500, 3))
    theirs = interpolate.RegularGridInterpolator(map_.grid.axes()[::-1], map_.values)(positions[:, ::-1])
    np.testing.assert_allclose(sample(map_, positions), theirs, rtol=1e-9, atol=1e-12)


def test_the_corners_belong_to_the_map():
    corners = np.array([GRID.origin, GRID.last, GRID.last + 1e-9 * GRID.spacing, GRID.origin - 1e-9 * GRID.spacing])
    np.testing.assert_allclose(sample(trilinear_map(), corners), trilinear(*corners.T), rtol=1e-6)


def test_a_map_of_one_point_and_of_a_plane():
    one = Map(Grid((1, 2, 3), 0.5, (1, 1, 1)), np.full((1, 1, 1), 7.0))
    assert sample(one, [(1, 2, 3)]).tolist() == [7]
    assert np.isnan(sample(one, [(1, 2, 3.1)], outside="nan")).all()
    plane = trilinear_map(Grid((0, 0, 5), 0.5, (4, 4, 1)))
    assert sample(plane, [(0.3, 1.2, 5)])[0] == pytest.approx(trilinear(0.3, 1.2, 5))


def test_no_positions():
    assert sample(trilinear_map(), np.empty((0, 3))).shape == (0,)


def test_positions_outside():
    map_ = trilinear_map()
    inner = map_.grid.position((1.5, 1.5, 1.5))
    with pytest.raises(
        InputError,
        match=r"2 positions are outside the map, number 2 at \(0\.000, 0\.000, 0\.000\) first; "
        r"the map reaches from \(-13\.257, 7\.123, 101\.750\) to \(-11\.257, 9\.223, 104\.350\) A",
    ):
        sample(map_, [inner, (0, 0, 0), map_.grid.last + 0.1])
    with pytest.raises(InputError, match="1 position is outside the map, number 1"):
        sample(map_, [(np.nan, 0, 0)])
    values = sample(map_, [inner, (0, 0, 0), map_.grid.last + 0.1, (np.inf, 0, 0)], outside="nan")
    assert np.isnan(values).tolist() == [False, True, True, True]
    assert values[0] == pytest.approx(trilinear(*inner))


def test_positions_of_another_shape():
    with pytest.raises(InputError, match=r"positions have shape \(3,\); expected \(n, 3\)"):
        sample(trilinear_map(), [1, 2, 3])
