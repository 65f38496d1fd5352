"""The whole energy and its gradient on the devices: OpenMM, the definition, invariants, batches, errors."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import DEVICES, load_system, random_atoms
from test_reference_energy import BRANCHES, OPENMM, SALT, bonded
from test_reference_nonbond import differences, relative
from tolerance import BORN_RADIUS, DIFFERENCES, ENERGY, GRADIENT

from pele_ocl import Atoms, InputError, ParameterError, SolventModel
from pele_ocl.energy import TERMS, VARIANTS, Energy, choose_variant, energy
from pele_ocl.energy.layout import Layout
from pele_ocl.energy.masks import Masks
from pele_ocl.pairs import exclusions
from pele_ocl.reference.energy import energy as reference
from pele_ocl.tiles import Tiles

EVERY_VARIANT = pytest.mark.parametrize("variant", VARIANTS)


def magnitude(expected) -> float:
    """Size of an energy's parts, which may cancel in the sum, kcal/mol."""
    return sum(np.abs(values).sum() for values in expected.per_atom.values())


def assert_same(result, expected, precision):
    """A result is what the definition gives."""
    scale = magnitude(expected)
    for term, value in zip(TERMS, result.energies, strict=True):
        assert value == pytest.approx(expected.per_atom[term].sum(), rel=ENERGY[precision], abs=1e-7 * scale), term
    assert np.abs(result.born_radii / expected.born_radii - 1).max() < BORN_RADIUS[precision]
    if result.gradient is not None:
        error = np.linalg.norm(result.gradient - expected.gradient)
        assert error <= GRADIENT[precision] * np.linalg.norm(expected.gradient)


def options(device, precision, variant="auto", **more):
    return dict(device=device, precision=precision, variant=variant, **more)


# Against OpenMM and the definition


@EVERY_VARIANT
@pytest.mark.parametrize("name", ["hexapeptide", "ubiquitin", "src3"])
def test_openmm_energy_and_forces(device, precision, variant, name):
    system = load_system(name)
    result = energy(system.atoms, model=OPENMM, **options(device, precision, variant))
    expected = system.energies["openmm_nb_with14_kcal"] + system.energies["openmm_gb_78.5sa_kcal"]
    assert result.total == pytest.approx(expected, rel=ENERGY[precision])
    assert (
        relative(result.gradient, -system.arrays["force_nb_with14"] - system.arrays["force_gb_78.5_sa"])
        < (GRADIENT[precision])
    )
    assert np.abs(result.born_radii / system.arrays["born_radius"] - 1).max() < BORN_RADIUS[precision]
    assert result.nonpolar == pytest.approx(system.energies["own_ace_kcal"], rel=5 * ENERGY[precision])


def test_openmm_forces_without_one_four_and_surface(device, precision):
    system = load_system("hexapeptide")
    model = replace(OPENMM, surface_tension=0)
    result = energy(system.atoms, model=model, one_four="exclude", **options(device, precision))
    assert (
        relative(result.gradient, -system.arrays["force_nb_no14"] - system.arrays["force_gb_78.5_nosa"])
        < (GRADIENT[precision])
    )
    assert result.nonpolar == 0


@EVERY_VARIANT
@pytest.mark.parametrize("n", [1, 2, 31, 32, 33, 64, 65, 129, 300])
def test_awkward_sizes(device, precision, variant, n):
    atoms = bonded(n, seed=n) if n > 1 else random_atoms(1)
    assert_same(energy(atoms, **options(device, precision, variant)), reference(atoms), precision)


@EVERY_VARIANT
@pytest.mark.parametrize("combining", ["arithmetic", "geometric"])
def test_salt_and_combining_rules(device, precision, variant, combining):
    atoms = bonded(150, seed=7, combining=combining, one_four=(0.5, 0.25))
    result = energy(atoms, model=SALT, **options(device, precision, variant))
    assert_same(result, reference(atoms, SALT), precision)


@EVERY_VARIANT
def test_fixed_radii(device, precision, variant):
    atoms = bonded(150, seed=8)
    expected = reference(atoms, fixed_radii=reference(atoms).born_radii)
    assert_same(energy(atoms, fixed_radii=True, **options(device, precision, variant)), expected, precision)


@EVERY_VARIANT
def test_cutoff(device, precision, variant):
    atoms = load_system("hexapeptide").atoms
    for cutoff in (3.0, 8.0, 1e4):
        result = energy(atoms, cutoff=cutoff, **options(device, precision, variant))
        assert_same(result, reference(atoms, cutoff=cutoff), precision)


@EVERY_VARIANT
def test_tiles_far_apart(device, precision, variant):
    """Molecules so far from each other that every short form of the pair terms is taken."""
    near = bonded(70, seed=9)
    places = [near.positions + np.array(shift) for shift in ([0, 0, 0], [60, 0, 0], [0, 250, 0], [0, 0, 1500])]
    atoms = Atoms(
        positions=np.concatenate(places),
        **{
            name: np.tile(getattr(near, name), 4)
            for name in ("charges", "lj_sigma", "lj_epsilon", "gb_radii", "gb_scales")
        },
    )
    assert_same(energy(atoms, **options(device, precision, variant)), reference(atoms), precision)


@EVERY_VARIANT
@pytest.mark.parametrize("branch", BRANCHES)
def test_overlapping_and_engulfed_spheres(device, precision, variant, branch):
    rho, s = BRANCHES[branch]
    atoms = bonded(40, seed=10)
    radii, scales = np.array(atoms.gb_radii), np.array(atoms.gb_scales)
    positions = np.array(atoms.positions)
    positions[1] = positions[0] + [0.6, 0.5, 0.62]
    radii[:2], scales[1] = (rho + 0.09, s + 0.09), 1.0
    atoms = replace(atoms, positions=positions, gb_radii=radii, gb_scales=scales)
    assert_same(energy(atoms, **options(device, precision, variant)), reference(atoms), precision)


# The gradient as a slope


@EVERY_VARIANT
@pytest.mark.parametrize("alone", ["lennard_jones", "coulomb and gb", "nonpolar", "together"])
def test_gradient_is_the_slope_of_the_energy(device, variant, alone):
    if not device.has_float64:
        pytest.skip(f"{device} has no float64")
    atoms = bonded(34, seed=11)
    zeros = np.zeros(34)
    if alone in ("lennard_jones", "nonpolar"):
        atoms = replace(atoms, charges=zeros)
    if alone in ("coulomb and gb", "nonpolar"):
        atoms = replace(atoms, lj_epsilon=zeros)
    model = SolventModel(surface_tension=0.0054 if alone in ("nonpolar", "together") else 0.0)
    plan = Energy(atoms, model=model, **options(device, "float64", variant))
    moved = [0, 3, 33]

    def total(places):
        positions = np.array(atoms.positions)
        positions[moved] = places
        return plan.evaluate(positions).total

    slope = differences(total, atoms.positions[moved])
    assert relative(plan.evaluate().gradient[moved], slope) < DIFFERENCES


# Invariants


def test_translation_changes_nothing_even_far_away(device, precision):
    atoms = load_system("ubiquitin").atoms
    there = replace(atoms, positions=atoms.positions + np.array([1e5, -1e5, 7.7]))
    near, far = (energy(a, **options(device, precision)) for a in (atoms, there))
    # 1e5 A cost the float64 input itself five of its digits.
    assert far.total == pytest.approx(near.total, rel=max(ENERGY[precision], 1e-9))
    assert relative(far.gradient, near.gradient) < max(GRADIENT[precision], 1e-8)


def test_rotation_and_order_change_nothing(device, precision):
    atoms = bonded(200, seed=12)
    order = np.random.default_rng(5).permutation(200)
    rotation, _ = np.linalg.qr(np.random.default_rng(6).normal(size=(3, 3)))
    place = np.argsort(order)
    turned = Atoms(
        positions=(atoms.positions @ rotation)[order],
        bonds=place[atoms.bonds],
        **{
            name: getattr(atoms, name)[order] for name in ("charges", "lj_sigma", "lj_epsilon", "gb_radii", "gb_scales")
        },
    )
    first, second = (energy(a, **options(device, precision)) for a in (atoms, turned))
    assert second.total == pytest.approx(first.total, rel=ENERGY[precision])
    assert relative(second.gradient, (first.gradient @ rotation)[order]) < GRADIENT[precision]


def test_gradients_add_up_to_nothing(device, precision):
    result = energy(load_system("src3").atoms, **options(device, precision))
    assert np.linalg.norm(result.gradient.sum(axis=0)) < GRADIENT[precision] * np.linalg.norm(result.gradient)


@EVERY_VARIANT
def test_same_bits_every_run(device, precision, variant):
    atoms = load_system("ubiquitin").atoms
    first, second = (energy(atoms, **options(device, precision, variant)) for _ in range(2))
    np.testing.assert_array_equal(first.energies, second.energies)
    np.testing.assert_array_equal(first.gradient, second.gradient)


def test_devices_agree(device, precision):
    atoms = load_system("ubiquitin").atoms
    here, there = (energy(atoms, **options(d, precision)) for d in (device, DEVICES[0]))
    assert here.total == pytest.approx(there.total, rel={"float32": 5e-6, "float64": 1e-11}[precision])
    assert relative(here.gradient, there.gradient) < {"float32": 5e-6, "float64": 1e-11}[precision]


@EVERY_VARIANT
def test_a_clash_does_not_poison_other_atoms(device, precision, variant):
    atoms = bonded(200, seed=13)
    positions = np.array(atoms.positions)
    positions[100] = positions[20] + [0.1, 0, 0]
    atoms = replace(atoms, positions=positions)
    result, expected = energy(atoms, **options(device, precision, variant)), reference(atoms)
    others = np.delete(np.arange(200), [20, 100])
    assert result.lennard_jones > 1e9
    assert relative(result.gradient[others], expected.gradient[others]) < GRADIENT[precision]
    assert np.abs(result.born_radii / expected.born_radii - 1).max() < BORN_RADIUS[precision]
    assert result.gb_self == pytest.approx(expected.per_atom["gb_self"].sum(), rel=5 * ENERGY[precision])


# Energies of atoms


@pytest.mark.parametrize("variant", ["rows", "blocks"])
def test_energies_of_atoms(device, precision, variant):
    atoms = bonded(150, seed=14)
    result = energy(atoms, per_atom=True, **options(device, precision, variant))
    expected = reference(atoms)
    for k, term in enumerate(TERMS):
        np.testing.assert_allclose(
            result.per_atom[:, k], expected.per_atom[term],
            atol=10 * ENERGY[precision] * np.abs(expected.per_atom[term]).max(),
        )  # fmt: skip
    np.testing.assert_allclose(result.per_atom.sum(axis=0), result.energies, rtol=1e-12)
    whole = energy(atoms, **options(device, precision, variant))
    np.testing.assert_allclose(whole.energies, result.energies, rtol=5 * ENERGY[precision])
    assert whole.per_atom is None


def test_energies_alone(device, precision):
    atoms = load_system("hexapeptide").atoms
    alone, both = (energy(atoms, gradient=g, **options(device, precision)) for g in (False, True))
    assert alone.gradient is None
    np.testing.assert_allclose(alone.energies, both.energies, rtol=ENERGY[precision])
    assert both.energy["total"] == both.total == pytest.approx(sum(both.energies))
    assert list(both.energy) == [*TERMS, "total"]


# Batches


@EVERY_VARIANT
def test_a_batch_has_the_bits_of_its_members(device, precision, variant, monkeypatch):
    atoms = bonded(150, seed=15)
    conformations = atoms.positions + np.random.default_rng(1).normal(0, 0.05, (7, 150, 3))
    per_atom = variant != "squares"
    plan = Energy(atoms, per_atom=per_atom, **options(device, precision, variant))
    single = [plan.evaluate(positions) for positions in conformations]
    shares = []
    # Three at a time: two whole batches and one conformation.
    monkeypatch.setattr(Layout, "batch", lambda *_: 3)
    batch = Energy(atoms, per_atom=per_atom, **options(device, precision, variant)).evaluate_batch(
        conformations, shares.append
    )
    assert shares == [3 / 7, 6 / 7, 1]
    assert len(batch) == 7
    for k, result in enumerate(single):
        np.testing.assert_array_equal(batch.energies[k], result.energies)
        np.testing.assert_array_equal(batch.gradients[k], result.gradient)
        np.testing.assert_array_equal(batch.born_radii[k], result.born_radii)
        if per_atom:
            np.testing.assert_array_equal(batch.per_atom[k], result.per_atom)
        assert batch.total[k] == result.total
    assert_same(single[3], reference(replace(atoms, positions=conformations[3])), precision)


def test_a_plan_grows_with_its_batches(device):
    atoms = bonded(40, seed=16)
    plan = Energy(atoms, device=device)
    first = plan.evaluate()
    batch = plan.evaluate_batch(np.stack([atoms.positions] * 3))
    for k in range(3):
        np.testing.assert_array_equal(batch.gradients[k], first.gradient)
    np.testing.assert_array_equal(plan.evaluate().gradient, first.gradient)


# What a device is given


@pytest.mark.parametrize("size", [16, 32, 64])
@EVERY_VARIANT
def test_masks_hold_every_pair_where_it_is_met(size, variant):
    atoms = bonded(200, seed=17)
    tiles = Tiles.of(atoms.positions, size)
    excluded, scaled = exclusions(atoms.bonds, 200)
    masks, ring = Masks.of(tiles, excluded, scaled, variant), variant != "rows"
    found = [set(), set()]
    for row in range(len(tiles)):
        partners = masks.partners[masks.starts[row] : masks.starts[row + 1]]
        steps = (partners - row) % len(tiles) if ring else partners
        assert (np.diff(steps) > 0).all()
        for partner, words in zip(partners, masks.words[masks.starts[row] : masks.starts[row + 1]], strict=True):
            vector, single = (partner, row) if variant == "blocks" else (row, partner)
            for kind, word, lane in np.argwhere(words):
                for bit in range(32):
                    if words[kind, word, lane] >> np.uint32(bit) & 1:
                        pair = tiles.order[vector * size + lane], tiles.order[single * size + 32 * word + bit]
                        found[kind].add(tuple(map(int, pair)))
    itself = {(i, i) for i in range(200)}
    for pairs, met in zip((excluded, scaled), found, strict=True):
        once = {tuple(pair) for pair in pairs.tolist()}
        assert {tuple(sorted(pair)) for pair in met - itself} == once
        assert itself <= met
        if not ring:
            assert met - itself == once | {(j, i) for i, j in once}


def test_auto_is_a_variant_for_every_kind():
    assert choose_variant("CPU", 30_000, False) == "blocks"
    for kind in ("GPU", "simulator", "accelerator"):
        assert [choose_variant(kind, n, False) for n in (96, 30_000, 1_000_000)] == ["rows", "squares", "rows"]
        assert choose_variant(kind, 30_000, True) == "rows"


# Errors


def test_atoms_too_close_for_float32_are_an_error(device):
    atoms = bonded(40, seed=18)
    positions = np.array(atoms.positions)
    positions[30] = positions[0] + [1e-3, 0, 0]
    with pytest.raises(InputError, match=r"too large for float32; check for atoms on top of each other.* use float64"):
        energy(replace(atoms, positions=positions, lj_epsilon=np.full(40, 100.0)), device=device)


def test_atoms_at_one_place_are_named(device, precision):
    atoms = bonded(40, seed=19)
    positions = np.array(atoms.positions)
    positions[30] = positions[0]
    with pytest.raises(InputError, match="atom 0 and atom 30 stand at the same place"):
        energy(replace(atoms, positions=positions), device=device, precision=precision)
    plan = Energy(atoms, device=device, precision=precision)
    with pytest.raises(InputError, match="atom 0 and atom 30 stand at the same place"):
        plan.evaluate(positions)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"gb_radii": [1.5, 0.09]}, ParameterError, "GB radius of atom 1 is 0.09 A, at or below the offset"),
        ({"lj_sigma": None}, InputError, "the energy needs lj_sigma, which these atoms lack"),
        ({"positions": [[0, 0, 0], [1e6, 0, 0]]}, InputError, r"the atoms span 1e\+06 A"),
    ],
)
def test_bad_atoms(changes, error, message):
    values = dict(
        positions=np.eye(3)[:2], charges=[0, 1], gb_radii=[1.5, 1.5], gb_scales=[0.8, 0.8], lj_sigma=[1, 1],
        lj_epsilon=[0.1, 0.1],
    )  # fmt: skip
    with pytest.raises(error, match=message):
        energy(Atoms(**(values | changes)))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"variant": "fast"}, "there is no variant 'fast'; choose auto, rows, blocks, squares"),
        ({"variant": "squares", "per_atom": True}, "squares does not tell the energies of atoms apart"),
        ({"precision": "float16"}, "there is no precision 'float16'; choose float32 or float64"),
        ({"one_four": "half"}, "one_four is 'half'; choose 'scale' or 'exclude'"),
        ({"cutoff": 0}, "cutoff is 0; a positive number of Angstrom is needed"),
    ],
)
def test_unknown_options(given, message):
    with pytest.raises(InputError, match=message):
        energy(random_atoms(3), **given)


def test_bad_positions(device):
    plan = Energy(bonded(10), device=device)
    with pytest.raises(InputError, match=r"positions have shape \(9, 3\); \(10, 3\) is needed"):
        plan.evaluate(np.zeros((9, 3)))
    with pytest.raises(InputError, match=r"positions have shape \(10, 3\); \(m, 10, 3\) is needed"):
        plan.evaluate_batch(np.zeros((10, 3)))
    with pytest.raises(InputError, match="positions hold numbers that are not finite"):
        plan.evaluate(np.full((10, 3), np.nan))
    with pytest.raises(InputError, match=r"conformation 0 spans 10,000 A, far more than the molecule's own positions"):
        plan.evaluate(np.outer(np.linspace(0, 1e4, 10), [1, 0, 0]))


def test_residues_need_labels_and_atoms(device):
    with pytest.raises(InputError, match="energies per residue need atoms with labels"):
        energy(random_atoms(3), device=device, per_atom=True).per_residue()
