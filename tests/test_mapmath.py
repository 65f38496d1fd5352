"""Sums and differences of maps."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from maps_helpers import some_map
from test_cli import error_of, run

from pele_ocl import Grid, InputError, Map, combine_maps, read_map, sample, write_map

UNIT = {"unit": "kcal/mol/e"}


@pytest.fixture
def maps():
    return [some_map(seed=k, **UNIT) for k in range(3)]


def test_maps_are_combined_point_by_point(maps):
    a, b, c = (map_.values.astype(np.float64) for map_ in maps)
    found = combine_maps(maps, (1, -1, 0.5))
    np.testing.assert_allclose(found.values, a - b + 0.5 * c, rtol=1e-6)
    assert (found.values.dtype, found.unit, found.grid) == (np.float32, "kcal/mol/e", maps[0].grid)
    other = maps[1].in_unit("kJ/mol/e")
    np.testing.assert_allclose(combine_maps([maps[0], other], (1, -1)).values, a - b, rtol=1e-5)
    wide = replace(maps[1], values=b)
    assert combine_maps([maps[0], wide], (1, 1)).values.dtype == np.float64


def test_points_to_the_digits_of_formats_are_the_same(maps):
    grid = maps[0].grid
    near = replace(maps[1], grid=Grid(grid.origin + 1e-4, grid.spacing, grid.shape))
    assert np.isfinite(combine_maps([maps[0], near], (1, -1)).values).all()
    with pytest.raises(InputError, match="map 2 is on another grid than the first: 4 x 3 x 2 points from"):
        combine_maps([maps[0], replace(maps[1], grid=Grid(grid.origin + 1e-2, grid.spacing, grid.shape))], (1, -1))


def test_maps_are_taken_onto_the_first_grid():
    """A field that is linear in x, y and z is the same between points."""
    coarse, fine = Grid((0, 0, 0), (2, 3, 1), (4, 3, 5)), Grid((0.5, 1, 0.25), 0.75, (7, 5, 4))

    def linear(grid):
        x, y, z = np.meshgrid(*grid.axes(), indexing="ij")
        return Map(grid, (2 * x - y + 3 * z).T.copy(), **UNIT)

    found = combine_maps([linear(fine), linear(coarse)], (1, -1), onto_first=True)
    np.testing.assert_allclose(found.values, 0, atol=1e-12)
    rough = some_map((4, 3, 5), **UNIT)
    rough = replace(rough, grid=coarse)
    found = combine_maps([linear(fine), rough], (0, 1), onto_first=True)
    i, j, k = 3, 2, 1
    assert found.values[k, j, i] == pytest.approx(sample(rough, [fine.position((i, j, k))])[0])
    part = combine_maps([linear(coarse), linear(fine)], (1, -1), onto_first=True)
    assert (part.grid.origin.tolist(), part.grid.shape) == ([2, 3, 1], (2, 1, 2))
    np.testing.assert_allclose(part.values, 0, atol=1e-12)
    whole = combine_maps([linear(coarse), linear(fine)], (1, 0), onto_first=True)
    np.testing.assert_allclose(whole.values, linear(coarse).values[1:3, 1:2, 1:3])
    with pytest.raises(InputError, match="map 2 does not overlap with the first"):
        combine_maps([linear(coarse), linear(Grid((90, 0, 0), 1, (4, 4, 4)))], (1, 1), onto_first=True)


def test_what_cannot_be_combined(maps):
    with pytest.raises(InputError, match="one for each of the 3 maps"):
        combine_maps(maps, (1, 2))
    with pytest.raises(InputError, match="map 2 has no unit and the first 'kcal/mol/e'"):
        combine_maps([maps[0], replace(maps[1], unit="")], (1, 1))
    with pytest.raises(InputError, match="not finite everywhere"):
        combine_maps(maps, (1, 1, 1e300))
    with pytest.raises(InputError, match="map is of type ndarray"):
        combine_maps([maps[0].values], (1,))


def test_command(maps, tmp_path):
    a, b, c = (tmp_path / name for name in ("a.dx", "b.mrc", "c.h5"))
    for path, map_ in zip((a, b, c), maps, strict=True):
        write_map(path, map_)
    values = [map_.values.astype(np.float64) for map_ in maps]
    output = tmp_path / "out.h5"
    found = json.loads(run("mapmath", a, "-", b, "+", c, "--scale", 2, "-o", output, "--json").stdout)
    assert found["factors"] == [2, -2, 2]
    np.testing.assert_allclose(read_map(output).values, 2 * (values[0] - values[1] + values[2]), rtol=1e-5, atol=1e-3)
    told = run("mapmath", "--mean", a, b, c, "-o", output).stdout
    assert f"{a} {b} {c}" in told
    np.testing.assert_allclose(read_map(output).values, np.mean(values, axis=0), rtol=1e-5, atol=1e-3)
    moved = tmp_path / "moved.h5"
    write_map(moved, replace(maps[0], grid=Grid((0, 0, 0), 1, maps[0].grid.shape)))
    assert "--onto-first" in error_of("mapmath", a, "-", moved)
    assert "the same file as the input" in error_of("mapmath", a, "-", b, "-o", b)


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        (("-", "a.dx"), "- is not a map"),
        (("a.dx", "-", "+", "b.dx"), "+ is not a map"),
        (("a.dx", "b.dx"), "+ or - is missing before b.dx"),
        (("a.dx", "-"), "no map after the last -"),
    ],
)
def test_wrong_usage(terms, message):
    assert message in run("mapmath", *terms, code=2).stderr
