"""Pictures of maps, looked at with the eyes of a program."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest
from maps_helpers import some_map

from pele_ocl.common.errors import FormatError, PeleError
from pele_ocl.formats import draw_slices
from pele_ocl.formats.maps.pictures import _figure
from pele_ocl.grid import Grid, Map


def charge_map(shape=(31, 21, 11), unit="kcal/mol/e") -> Map:
    """A potential that grows with x, positive on the right, and a spike near the middle."""
    grid = Grid((-15, -10, -5), 1.0, shape)
    x, y, z = grid.axes()
    values = x + 0 * y[:, None] + 0 * z[:, None, None]
    values[shape[2] // 2, shape[1] // 2, shape[0] // 2] = 1e6
    return Map(grid, values, unit, "A plane and a spike")


def image(path) -> np.ndarray:
    from matplotlib.image import imread

    return imread(path)[..., :3]


def test_a_picture_is_a_png_of_the_right_colours(tmp_path):
    draw_slices(tmp_path / "map.png", charge_map())
    pixels = image(tmp_path / "map.png")
    assert 1400 < pixels.shape[1] < 2000
    red = (pixels[..., 0] > pixels[..., 2] + 0.3).mean(axis=0)
    blue = (pixels[..., 2] > pixels[..., 0] + 0.3).mean(axis=0)
    third = pixels.shape[1] // 3  # the first panel: x runs to the right
    assert np.average(np.arange(third), weights=red[:third]) < np.average(np.arange(third), weights=blue[:third])
    assert os.listdir(tmp_path) == ["map.png"]


def test_slices_are_the_central_ones():
    map_ = some_map((5, 4, 9), dtype=np.float64)
    xy, xz, yz, _ = _figure(map_).axes
    np.testing.assert_array_equal(xy.images[0].get_array(), map_.values[4])
    np.testing.assert_array_equal(xz.images[0].get_array(), map_.values[:, 2])
    np.testing.assert_array_equal(yz.images[0].get_array(), map_.values[:, :, 2])
    (x0, _, z0), (hx, _, hz) = map_.grid.origin, map_.grid.spacing
    np.testing.assert_allclose(xz.images[0].get_extent(), (x0 - hx / 2, x0 + 4.5 * hx, z0 - hz / 2, z0 + 8.5 * hz))
    assert xy.get_title() == f"z = {z0 + 4 * hz:.2f} Å"
    assert (yz.get_xlabel(), yz.get_ylabel()) == ("y (Å)", "z (Å)")
    assert yz.get_title() == f"x = {x0 + 2 * hx:.2f} Å".replace("-", "\N{MINUS SIGN}")


def test_one_angstrom_is_as_long_in_every_panel():
    figure = _figure(some_map((5, 4, 9)))
    wide, high = figure.get_size_inches()
    scales = []
    for axes in figure.axes[:3]:
        box, (left, right, low, up) = axes.get_position(), axes.images[0].get_extent()
        scales += [box.width * wide / (right - left), box.height * high / (up - low)]
    np.testing.assert_allclose(scales, scales[0])


def test_a_spike_does_not_take_all_colours():
    figure = _figure(charge_map())
    assert 10 <= figure.axes[0].images[0].get_clim()[1] <= 20
    texts = [text.get_text() for text in figure.texts]
    assert texts[0] == "A plane and a spike"
    assert texts[1] == (
        "The whole map spans \N{MINUS SIGN}15 to 1,000,000 kcal/mol/e; colours are clipped at ±20, beyond which lie "
        "0.3% of these slices.\nLines: 0 (thick), ±1, ±4, ±10."
    )
    assert figure.axes[3].get_ylabel() == "kcal/mol/e"


def test_what_is_nowhere_below_zero_has_colours_from_zero():
    map_ = charge_map()
    figure = _figure(Map(map_.grid, np.abs(map_.values), "kcal/mol/e"))
    image_ = figure.axes[0].images[0]
    assert (image_.get_clim()[0], image_.get_cmap().name) == (0, "Blues")
    assert figure.texts[1].get_text().endswith("colours are clipped at 20, beyond which lie 0.3% of these slices.\n"
                                               "Lines: 1, 4, 10.")  # fmt: skip


def test_the_bar_has_numbers_in_the_style_of_the_sentence():
    figure = _figure(Map(Grid((0, 0, 0), 1, (4, 4, 4)), np.linspace(-9e5, 2e6, 64).reshape(4, 4, 4), "kcal/mol/e"))
    figure.draw_without_rendering()
    labels = {text.get_text() for text in figure.axes[3].get_yticklabels()}
    assert {"0", "1,000,000", "\N{MINUS SIGN}1,000,000"} <= labels


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 1, 60), (80, 1, 1), (2, 2, 2), (200, 3, 4)], ids=str)
def test_maps_of_any_shape(tmp_path, shape):
    draw_slices(tmp_path / "map.png", some_map(shape))
    assert image(tmp_path / "map.png").shape[0] > 200


def test_a_map_of_zeros(tmp_path):
    draw_slices(tmp_path / "map.png", Map(Grid((0, 0, 0), 1, (4, 4, 4)), np.zeros((4, 4, 4)), "V"))
    assert os.listdir(tmp_path) == ["map.png"]


def test_what_is_wrong(tmp_path, monkeypatch):
    with pytest.raises(FormatError, match=r"map\.jpg: unknown suffix; pictures end in \.png"):
        draw_slices(tmp_path / "map.jpg", some_map())
    with pytest.raises(FormatError, match="does not exist; create it first"):
        draw_slices(tmp_path / "none" / "map.png", some_map())
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(PeleError, match="pictures need matplotlib, which is not installed: pip install 'pele-ocl"):
        draw_slices(tmp_path / "map.png", some_map())
    assert os.listdir(tmp_path) == []
