"""Walks: random numbers equal to the kernels', and states that are kept and restored."""

from __future__ import annotations

import numpy as np
import pytest
from test_minimize import PEPTIDE

from pele_ocl import Ensemble, InputError
from pele_ocl.explore import Settings, Stage, Walk
from pele_ocl.explore.philox import normals, philox, uniform

DRAW = """
#include "engine/rows.clh"
#include "common/philox.clh"
kernel void draw(ENSEMBLE, global uint *restrict words, global real *restrict numbers, const uint seed) {
    const Structure own = structure_here(rows, steps, listed, bytes);
    const int i = get_global_id(0);
    if (i >= own.n_atoms) return;
    const uint4 bits = philox((uint2)(seed, own.number), (uint4)(i, 7u, 4294967295u, 3u * i));
    const uint drawn[4] = {bits.x, bits.y, bits.z, bits.w};
    for (int k = 0; k < 4; ++k) words[4 * (own.first_atom + i) + k] = drawn[k];
    numbers[own.first_atom + i] = uniform(bits.x);
}
"""


def test_philox_has_the_words_of_its_authors():
    """Known answers that the authors publish with their code (Random123, kat_vectors)."""
    zeros = philox((0, 0), (0, 0, 0, 0))
    assert [f"{word:08x}" for word in zeros] == ["6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8"]
    ones = philox((2**32 - 1,) * 2, (2**32 - 1,) * 4)
    assert [f"{word:08x}" for word in ones] == ["408f276d", "41c83b0e", "a20bc7c6", "6d5451fd"]


def test_philox_has_the_words_of_the_kernels(device):
    rows = Ensemble(PEPTIDE, 3, device=device)
    words, values = rows.array("atom", 4, np.uint32), rows.array("atom")
    rows.kernel(DRAW, "draw")(words=words, numbers=values, seed=2**32 - 5)
    i = np.arange(len(PEPTIDE))
    expected = philox((2**32 - 5, np.arange(3)[:, None]), (i, 7, 2**32 - 1, 3 * i)).reshape(-1, 4)
    np.testing.assert_array_equal(words.read(), expected)
    np.testing.assert_array_equal(values.read().ravel(), uniform(expected[:, 0]).astype(np.float32))


def test_numbers_are_uniform_and_normal():
    words = philox((1, 2), (np.arange(20_000), 0, 0, 0))
    assert np.abs(np.histogram(uniform(words), 20, (0, 1))[0] / 4000 - 1).max() < 0.08  # 5 standard deviations
    drawn = np.stack(normals(words[:, 0], words[:, 1]))
    assert abs(drawn.mean()) < 0.025
    assert abs(drawn.std() - 1) < 0.02


def test_numbers_of_an_explorer_do_not_depend_on_its_row(device):
    ligand = np.arange(5)
    all_of_them = Walk.of(PEPTIDE, ligand, 4, seed=3, device=device)
    alone = Walk.of(PEPTIDE, ligand, [2], seed=3, device=device)
    for walk in (all_of_them, alone):
        walk.steps[:] = 9
    expected = all_of_them.random([2, 1], Stage.ANM, 5)
    np.testing.assert_array_equal(alone.random([0], Stage.ANM, 5)[0], expected[0])
    assert (expected[0] != expected[1]).any()
    many = alone.random([0], Stage.ANM, 5, np.arange(3))
    np.testing.assert_array_equal(many[0, 0], expected[0])
    assert many.shape == (1, 3, 4)
    assert (alone.uniform([0], Stage.ANM) < 1).all()
    drawn = {tuple(walk_words) for stage in Stage for walk_words in alone.random([0], stage)}
    assert len(drawn) == len(Stage)


def test_states_are_kept_and_restored(device):
    walk = Walk.of(PEPTIDE, np.arange(5), 2, device=device)
    walk.ensemble.evaluate([0, 1])
    walk.keep([0, 1])
    energy, start = walk.ensemble.energies_of([0])[0], walk.ensemble.positions[0]
    for k in (0, 1):
        walk.ensemble.positions[k] = start + 0.1 * k + 0.01 * np.random.default_rng(k).normal(size=start.shape)
    walk.keep([1])
    moved = walk.ensemble.positions[1]
    walk.restore([0, 1])
    np.testing.assert_array_equal(walk.ensemble.positions[[0, 1]], [start, moved])
    assert walk.ensemble.energies_of([0]) == energy


def test_wrong_walks_are_refused(device):
    for ligand in ([], np.ones(len(PEPTIDE), bool), [len(PEPTIDE)], ["a"]):
        with pytest.raises(InputError):
            Walk.of(PEPTIDE, ligand, 1, device=device)
    for options in ({"explorers": 0}, {"explorers": [1, 1]}, {"seed": -1}, {"seed": 2**32}, {"settings": 3}):
        with pytest.raises(InputError):
            Walk.of(PEPTIDE, [0], device=device, **options)
    for wrong in ({"trials": 0}, {"steric_trials": 1 << 16}, {"anm_frequency": -1}, {"overlap_factor": np.nan}):
        with pytest.raises(InputError):
            Settings(**wrong)
    walk = Walk.of(PEPTIDE, [0], 2, settings=Settings(temperature=5.0), device=device)
    walk.settings[0].temperature = 7.0
    assert walk.settings[1].temperature == 5.0
