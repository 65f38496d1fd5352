"""Dispatch of a pass to work-groups: each part once, near tiles first, and equal bits in any order."""

import numpy as np
import pytest
from conftest import load_system

from pele_ocl import Energy
from pele_ocl.energy import squares
from pele_ocl.tiles import Tiles
from pele_ocl.tiles import tiles as dispatch
from pele_ocl.tiles.tiles import born_dispatch, ring_dispatch

CHAIN = np.arange(600.0)[:, None] * np.array([1.5, 0.0, 0.0])  # atoms on a line: tiles are near where numbers are


def shares(n_rows, n_chunks):
    return {(row, chunk) for row in range(n_rows) for chunk in range(n_chunks)}


@pytest.mark.parametrize("row", [1, 3])
@pytest.mark.parametrize("most", [0, dispatch.MOST_TILES])
def test_each_share_once(row, most, monkeypatch):
    monkeypatch.setattr(dispatch, "MOST_TILES", most)
    tiles = Tiles.of(CHAIN, 32)
    n_rows = -(-len(tiles) // row)
    born = born_dispatch(tiles, row, 4)
    ring = ring_dispatch(tiles, row, range(2, n_rows // 2 + 1), 2)
    assert sorted(map(tuple, born)) == sorted(shares(n_rows, -(-len(tiles) // 4)))
    assert sorted(map(tuple, ring)) == sorted(shares(n_rows, -(-(n_rows // 2 - 1) // 2)))
    assert len(born) + len(ring) == len({*map(tuple, born)}) + len({*map(tuple, ring)})


def test_near_tiles_come_first():
    tiles = Tiles.of(CHAIN, 32)
    row, chunk = born_dispatch(tiles, 1, 1).T
    middle, half = tiles.origins[:, 0], tiles.extents[:, 0]
    gaps = np.maximum(np.abs(middle[row] - middle[chunk]) - half[row] - half[chunk], 0)
    assert gaps[0] == 0 < gaps[-1]
    assert np.diff(gaps).min() > -1e-9
    steps = ring_dispatch(tiles, 1, range(len(tiles) // 2 + 1), 1)
    last = (len(tiles) - (2 * steps[:, 0] < len(tiles))) // 2
    missing = steps[:, 1] > last
    assert missing[-missing.sum() :].all()  # what the other half of the ring does comes last


def backwards(order):
    return lambda *args: order(*args)[::-1]


def test_results_do_not_depend_on_it(device, monkeypatch):
    atoms = load_system("hexapeptide").atoms
    expected = Energy(atoms, variant="squares", device=device).evaluate()
    monkeypatch.setattr(squares, "born_dispatch", backwards(born_dispatch))
    monkeypatch.setattr(squares, "ring_dispatch", backwards(ring_dispatch))
    found = Energy(atoms, variant="squares", device=device).evaluate()
    np.testing.assert_array_equal(found.terms.values, expected.terms.values)
    np.testing.assert_array_equal(found.gradient, expected.gradient)
