import numpy as np
import pytest
from conftest import random_atoms

from pele_ocl.tiles import Tiles
from pele_ocl.tiles.tiles import hilbert_keys, kd_order


def test_hilbert_curve_visits_every_cell_and_steps_to_a_neighbour():
    cells = np.stack(np.meshgrid(*[np.arange(8.0)] * 3), -1).reshape(-1, 3)
    keys = hilbert_keys(cells, bits=3)
    assert sorted(keys) == list(range(512))
    steps = np.abs(np.diff(cells[np.argsort(keys)], axis=0)).sum(axis=1)
    assert (steps == 1).all()


@pytest.mark.parametrize("n", [1, 31, 32, 33, 1000])
def test_tiles_hold_every_atom_once_and_inside_their_box(n):
    atoms = random_atoms(n)
    tiles = Tiles.of(atoms.positions, 32)
    assert len(tiles) == -(-n // 32)
    assert tiles.n_slots == 32 * len(tiles)
    assert sorted(tiles.order[:n]) == list(range(n))
    assert (tiles.order[n:] == tiles.order[n - 1]).all()

    offsets = tiles.offsets.reshape(len(tiles), 32, 3)
    assert (np.abs(offsets) <= tiles.extents[:, None]).all()
    middle = (atoms.positions.min(axis=0) + atoms.positions.max(axis=0)) / 2
    np.testing.assert_allclose(
        (offsets + tiles.origins[:, None]).reshape(-1, 3), atoms.positions[tiles.order] - middle, atol=1e-12
    )


def test_origins_are_exact_in_float32():
    tiles = Tiles.of(random_atoms(5000).positions, 32)
    assert (tiles.origins == tiles.origins.astype(np.float32)).all()


def test_scatter_undoes_the_order():
    values = np.arange(100.0)
    tiles = Tiles.of(random_atoms(100).positions, 32)
    np.testing.assert_array_equal(tiles.scatter(values[tiles.order]), values)


def test_tiles_are_compact():
    # 32 atoms at 0.1 per A^3 fill a cube of 6.8 A; a curve's pieces are at most about twice as long.
    tiles = Tiles.of(random_atoms(20000).positions, 32)
    assert np.median(2 * tiles.extents.max(axis=1)) < 15


@pytest.mark.parametrize("n", [1, 7, 8, 9, 500, 1024])
def test_halves_of_a_kd_tree_lie_on_both_sides_of_a_plane(n):
    positions = random_atoms(n).positions
    order = kd_order(positions, 8)
    assert sorted(order) == list(range(n))
    size = 8
    while size < n:
        for first in range(0, n - size, 2 * size):
            lower, upper = (positions[order[k : k + size]] for k in (first, first + size))
            assert (lower.max(axis=0) <= upper.min(axis=0)).any()
        size *= 2


def test_nested_tiles_are_nodes_of_the_tree_where_nothing_is_cut():
    positions = random_atoms(3000).positions
    tiles = Tiles.nested(positions, 32, 8)
    np.testing.assert_array_equal(tiles.order[:3000], kd_order(positions, 8))
    assert tiles.extents.max(axis=1).mean() < 0.9 * Tiles.of(positions, 32).extents.max(axis=1).mean()
    stray = np.concatenate([positions, [[1e4, 0, 0]]])
    cut = Tiles.nested(stray, 32, 8)
    assert cut.extents.max() < 50
    assert cut.counts.sum() == 3001
    assert sorted(cut.order[cut.used]) == list(range(3001))


def test_a_tile_never_spans_a_gap():
    rng = np.random.default_rng(0)
    blobs = np.concatenate([rng.uniform(0, 8, (40, 3)) + np.array(place) for place in ([0, 0, 0], [5e4, 0, 0])])
    positions = np.concatenate([blobs, [[0, 1e4, 0]]])
    tiles = Tiles.of(positions, 32)
    assert tiles.extents.max() < 50
    assert tiles.counts.sum() == len(positions)
    values = np.arange(float(len(positions)))
    np.testing.assert_array_equal(tiles.scatter(values[tiles.order]), values)


def test_moved_tiles_are_those_of_the_new_positions():
    positions = random_atoms(333).positions
    tiles = Tiles.of(positions, 32)
    same, larger = tiles.moved(positions + 5), tiles.moved(2 * positions)
    np.testing.assert_allclose(same.offsets, tiles.offsets, atol=1e-12)
    np.testing.assert_array_equal(larger.order, tiles.order)
    middle = positions.min(axis=0) + positions.max(axis=0)
    places = larger.offsets.reshape(-1, 32, 3) + larger.origins[:, None]
    np.testing.assert_allclose(places.reshape(-1, 3), (2 * positions - middle)[tiles.order], atol=1e-12)
    assert (np.abs(larger.offsets.reshape(-1, 32, 3)) <= larger.extents[:, None]).all()
