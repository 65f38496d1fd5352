"""Frozen atoms: energy and gradient of moving ones are as if all were computed, in every variant."""

import numpy as np
import pytest
from bonded_helpers import of_every_kind
from test_energy import options
from test_reference_nonbond import relative
from tolerance import ENERGY, GRADIENT

from pele_ocl import InputError, SolventModel
from pele_ocl.energy import Energy
from pele_ocl.energy.frozen import Frozen
from pele_ocl.tiles import Tiles

ATOMS = of_every_kind(150, seed=7)
FROZEN = np.linalg.norm(ATOMS.positions - ATOMS.positions[40], axis=1) > 7
MOVED = ATOMS.moved(ATOMS.positions + np.where(FROZEN[:, None], 0, np.random.default_rng(2).normal(0, 0.05, (150, 3))))
MODELS = {"vacuum": SolventModel(gb="none"), "obc2": SolventModel()}


@pytest.mark.parametrize(
    ("variant", "model"), [("blocks", "vacuum"), ("blocks", "obc2"), ("squares", "obc2"), ("rows", "obc2")]
)
def test_as_if_all_were_computed(device, precision, variant, model):
    assert 40 < FROZEN.sum() < 140
    there = dict(model=MODELS[model], **options(device, precision, variant))
    whole = Energy(ATOMS, **there).evaluate(MOVED.positions)
    plan = Energy(ATOMS, frozen=FROZEN, **there)
    result = plan.evaluate(MOVED.positions)
    bound = 10 * ENERGY[precision] * np.abs(whole.energies).max()
    np.testing.assert_allclose(result.energies, whole.energies, rtol=0, atol=bound)
    assert not result.gradient[FROZEN].any()
    assert relative(result.gradient[~FROZEN], whole.gradient[~FROZEN]) < 3 * GRADIENT[precision]
    np.testing.assert_allclose(result.born_radii, whole.born_radii, rtol=20 * ENERGY[precision])
    batch = plan.evaluate_batch(np.stack([ATOMS.positions, MOVED.positions]))
    np.testing.assert_array_equal(batch[1].gradient, result.gradient)
    np.testing.assert_array_equal(batch[1].energies, result.energies)


@pytest.mark.parametrize(("variant", "model"), [("blocks", "vacuum"), ("blocks", "obc2"), ("squares", "obc2")])
def test_what_frozen_atoms_give_each_other_is_left_out(device, variant, model):
    """Energies computed once count for much, and nothing of them is computed again."""
    plan = Energy(ATOMS, frozen=FROZEN, model=MODELS[model], **options(device, "float64", variant))
    plan.evaluate()
    part = plan._frozen_part
    energies = dict(zip(plan.names, part.energies, strict=True))
    assert min(abs(energies[name]) for name in ("bond", "torsion", "coulomb_14")) > 1
    assert (min(abs(energies[name]) for name in ("lennard_jones", "coulomb")) > 1) == (model == "vacuum")
    assert (part.integrals.max() > 0.01) == (model != "vacuum")
    none = Frozen(0 * part.integrals, 0 * part.energies)
    bare = Energy(ATOMS, frozen=FROZEN, model=MODELS[model], **options(device, "float64", variant))
    bare._frozen_part = none
    assert abs(bare.evaluate().total - plan.evaluate().total) > 10


def test_clashes_of_atoms_that_move_spoil_no_digits(device, precision):
    """Energies among frozen atoms come from them alone."""
    clash = ATOMS.positions.copy()
    first, second = np.flatnonzero(~FROZEN)[:2]
    clash[second] = clash[first] + [0.02, 0, 0]
    there = dict(model=MODELS["vacuum"], **options(device, precision))
    expected = Energy(ATOMS, frozen=FROZEN, **there).evaluate().energies
    found = Energy(ATOMS.moved(clash), frozen=FROZEN, **there).evaluate(ATOMS.positions).energies
    np.testing.assert_allclose(found, expected, rtol=0, atol=10 * ENERGY[precision] * np.abs(expected).max())


def test_all_atoms_frozen_or_none(device):
    there = options(device, "float64")
    whole = Energy(ATOMS, **there).evaluate()
    for frozen in (np.ones(150, bool), [], np.arange(150)):
        result = Energy(ATOMS, frozen=frozen, **there).evaluate()
        np.testing.assert_allclose(result.energies, whole.energies, rtol=1e-11, atol=1e-9)
        assert result.gradient.any() == (len(frozen) == 0)


def test_frozen_tiles_come_last():
    """Frozen tiles that share a row with moving ones count as moving."""
    tiles = Tiles.of(ATOMS.positions, 8, FROZEN)
    held = FROZEN[tiles.order].reshape(-1, 8)
    assert (held.all(axis=1) == (np.arange(len(tiles)) >= tiles.first_frozen)).all()
    assert not held[: tiles.first_frozen].any()
    np.testing.assert_array_equal(np.sort(tiles.order[tiles.used]), np.arange(150))
    for row in (1, 2, 3, 100):
        first = tiles.aligned(row).first_frozen
        assert first == len(tiles) or (first % row == 0 and 0 <= first - tiles.first_frozen < row)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (dict(frozen=[150]), "frozen atoms are neither a mask of 150 atoms nor indices of them"),
        (dict(frozen=["a"]), "frozen atoms are not an array of indices or booleans"),
        (dict(frozen=[1], per_atom=True), "energies of single atoms are not available with frozen atoms"),
    ],
)
def test_what_does_not_fit(more, message):
    with pytest.raises(InputError, match=message):
        Energy(ATOMS, **more)


def test_frozen_atoms_are_in_their_places(device):
    plan = Energy(ATOMS, frozen=[7], **options(device, "float64"))
    with pytest.raises(InputError, match="is frozen, but not at the position of the plan"):
        plan.evaluate(ATOMS.positions + 0.01)
