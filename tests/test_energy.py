"""Whole energy and its gradient on the devices: OpenMM, the definition, invariants, batches, errors."""

import json
import subprocess
import sys
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from conftest import DEVICES, load_system, random_atoms
from test_reference_energy import BRANCHES, OPENMM, SALT, bonded
from test_reference_nonbond import relative
from tolerance import BORN_RADIUS, ENERGY, GRADIENT

from pele_ocl import Atoms, InputError, ParameterError, PositionalRestraint, SolventModel, list_devices, read
from pele_ocl.common.installation import shipped
from pele_ocl.energy import TERMS, VARIANTS, Energy, choose_variant, energy, squares
from pele_ocl.energy.layout import BlocksLayout, RowsLayout, SquaresLayout
from pele_ocl.energy.tables import Masks
from pele_ocl.opencl import Device, Queue
from pele_ocl.opencl.building import GroupTooLargeError
from pele_ocl.pairs import nonbonded_pairs
from pele_ocl.plan import passes
from pele_ocl.reference.energy import energy as reference
from pele_ocl.tiles import Tiles

EVERY_VARIANT = pytest.mark.parametrize("variant", VARIANTS)
VACUUM = SolventModel(solvent_dielectric=1, surface_tension=0)


def magnitude(expected) -> float:
    """Size of an energy's parts, which may cancel in the sum, kcal/mol."""
    return sum(np.abs(values).sum() for values in expected.per_atom.values())


def assert_same(result, expected, precision):
    """A result is what the definition gives."""
    rounding = {"float32": 1e-7, "float64": 1e-14}[precision] * magnitude(expected)
    assert set(result.terms.names) == set(expected.per_atom)
    for term, value in zip(result.terms.names, result.energies, strict=True):
        assert value == pytest.approx(expected.per_atom[term].sum(), rel=ENERGY[precision], abs=rounding), term
    assert np.abs(result.born_radii / expected.born_radii - 1).max() < BORN_RADIUS[precision]
    if result.gradient is not None:
        error = np.linalg.norm(result.gradient - expected.gradient)
        assert error <= GRADIENT[precision] * np.linalg.norm(expected.gradient)


def options(device, precision, variant="auto", **more):
    return dict(device=device, precision=precision, variant=variant, **more)


# Against OpenMM and the definition


def assert_openmm(system, device, precision, variant):
    """Energy, gradient and Born radii with and without the surface term, and of Lennard-Jones and Coulomb alone."""
    arrays, energies, there = system.arrays, system.energies, options(device, precision, variant)
    bound, vacuum = GRADIENT[precision], -arrays["force_nb_with14"]
    whole = energy(system.atoms, model=OPENMM, **there)
    nonbonded = energies.get("openmm_nb_with14_kcal", energies["own_nb_with14_kcal"])
    expected = nonbonded + energies["openmm_gb_78.5sa_kcal"]
    assert whole.total == pytest.approx(expected, rel=ENERGY[precision])
    assert whole.gb_pair + whole.gb_self == pytest.approx(energies["own_gb_78.5_kcal"], rel=5 * ENERGY[precision])
    assert whole.nonpolar == pytest.approx(energies["own_ace_kcal"], rel=5 * ENERGY[precision])
    assert relative(whole.gradient, vacuum - arrays["force_gb_78.5_sa"]) < bound
    assert np.abs(whole.born_radii / arrays["born_radius"] - 1).max() < BORN_RADIUS[precision]
    if "force_gb_78.5_nosa" in arrays:
        bare = energy(system.atoms, model=replace(OPENMM, surface_tension=0), **there)
        assert relative(bare.gradient, vacuum - arrays["force_gb_78.5_nosa"]) < bound
        assert bare.nonpolar == 0
    alone = energy(system.atoms, model=VACUUM, **there)
    assert alone.gb_pair == alone.gb_self == 0
    assert relative(alone.gradient, vacuum) < bound
    if precision == "float64":
        assert alone.total == pytest.approx(nonbonded, rel=ENERGY[precision])
        # The part of the solvent, on its own scale.
        assert relative(whole.gradient - alone.gradient, -arrays["force_gb_78.5_sa"]) < bound


@EVERY_VARIANT
@pytest.mark.parametrize("name", ["hexapeptide", "ubiquitin", "src3"])
def test_openmm_energy_and_forces(device, precision, variant, name):
    assert_openmm(load_system(name), device, precision, variant)


@pytest.mark.slow
@EVERY_VARIANT
@pytest.mark.parametrize("name", ["enolase_dimer", "ruvab"])
def test_openmm_energy_and_forces_of_large_systems(device, precision, variant, name):
    assert_openmm(load_system(name), device, precision, variant)


def test_openmm_forces_without_one_four_and_surface(device, precision):
    system = load_system("hexapeptide")
    model = replace(OPENMM, surface_tension=0)
    result = energy(system.atoms, model=model, one_four="exclude", **options(device, precision))
    assert (
        relative(result.gradient, -system.arrays["force_nb_no14"] - system.arrays["force_gb_78.5_nosa"])
        < (GRADIENT[precision])
    )


@EVERY_VARIANT
@pytest.mark.parametrize("n", [1, 2, 31, 32, 33, 64, 65, 129, 300])
def test_awkward_sizes(device, precision, variant, n):
    atoms = bonded(n, seed=n) if n > 1 else random_atoms(1)
    assert_same(energy(atoms, **options(device, precision, variant)), reference(atoms), precision)


@EVERY_VARIANT
def test_salt_and_the_geometric_rule(device, variant):
    atoms, precision = bonded(150, seed=7, combining="geometric", one_four=(0.5, 0.25)), "float32"
    result = energy(atoms, model=SALT, **options(device, precision, variant))
    assert_same(result, reference(atoms, SALT), precision)


@EVERY_VARIANT
def test_energies_without_a_gradient(device, variant):
    atoms = bonded(150, seed=8)
    result = energy(atoms, gradient=False, **options(device, "float32", variant))
    assert result.gradient is None
    assert_same(result, reference(atoms), "float32")


@EVERY_VARIANT
def test_fixed_radii(device, precision, variant):
    atoms = bonded(150, seed=8)
    expected = reference(atoms, fixed_radii=reference(atoms).born_radii)
    assert_same(energy(atoms, fixed_radii=True, **options(device, precision, variant)), expected, precision)


@EVERY_VARIANT
@pytest.mark.parametrize("cutoff", [3.0, 8.0, 1e4])
def test_cutoff(device, precision, variant, cutoff):
    atoms = load_system("hexapeptide").atoms
    result = energy(atoms, cutoff=cutoff, **options(device, precision, variant))
    assert_same(result, reference(atoms, cutoff=cutoff), precision)


@cache
def far_bonded(cutoff):
    """Atoms whose bonds reach across the molecule, beyond the cutoff, in more tiles than there are parts on a CPU."""
    atoms = bonded(1100, seed=22)
    atoms = replace(atoms, positions=2 * atoms.positions)
    return atoms, reference(atoms, cutoff=cutoff)


@EVERY_VARIANT
@pytest.mark.parametrize("cutoff", [5.0, 15.0])
def test_exclusions_beyond_the_cutoff(device, precision, variant, cutoff):
    atoms, expected = far_bonded(cutoff)
    assert_same(energy(atoms, cutoff=cutoff, **options(device, precision, variant)), expected, precision)


@EVERY_VARIANT
def test_tiles_far_apart(device, precision, variant):
    """Molecules so far from each other that every short form of the pair terms is taken."""
    near = bonded(70, seed=9)
    shifts = [[0, 0, 0], [25, 0, 0], [0, 33, 0], [0, 0, 41], [60, 0, 0], [0, 250, 0], [0, 0, 1500]]
    places = [near.positions + np.array(shift) for shift in shifts]
    atoms = Atoms(
        positions=np.concatenate(places),
        **{
            name: np.tile(getattr(near, name), len(shifts))
            for name in ("charges", "lj_sigma", "lj_epsilon", "gb_radii", "gb_scales")
        },
    )
    assert_same(energy(atoms, **options(device, precision, variant)), reference(atoms), precision)


@EVERY_VARIANT
def test_small_spheres_beside_large_atoms(device, precision, variant):
    """A series holds from rho + s on, which is many times s here: tiles that are far by s alone are not."""
    atoms = bonded(400, seed=21)
    large = np.arange(400) % 9 == 0
    atoms = replace(
        atoms, gb_radii=np.where(large, 6.0, atoms.gb_radii), gb_scales=np.where(large, 0.05, 0.2),
        positions=1.8 * atoms.positions,
    )  # fmt: skip
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


# Invariants


@EVERY_VARIANT
@pytest.mark.parametrize("distance", [1e3, 1e5])
def test_nothing_is_lost_far_from_the_origin(device, precision, variant, distance):
    system = load_system("ubiquitin")
    there = system.atoms.positions + distance * np.array([1, -0.77, 0.33])
    # 1e5 A cost the float64 input itself five of its digits.
    bounds = (max(ENERGY[precision], 1e-9), max(GRADIENT[precision], 1e-8))
    expected = system.energies["openmm_nb_with14_kcal"] + system.energies["openmm_gb_78.5sa_kcal"]
    gradient = -system.arrays["force_nb_with14"] - system.arrays["force_gb_78.5_sa"]
    here = Energy(system.atoms, model=OPENMM, **options(device, precision, variant))
    moved = Energy(replace(system.atoms, positions=there), model=OPENMM, **options(device, precision, variant))
    for result in (here.evaluate(there), moved.evaluate()):
        assert result.total == pytest.approx(expected, rel=bounds[0])
        assert relative(result.gradient, gradient) < bounds[1]


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


@EVERY_VARIANT
def test_no_net_force_and_no_net_torque(device, precision, variant):
    atoms = load_system("src3").atoms
    gradient = energy(atoms, **options(device, precision, variant)).gradient
    torques = np.cross(atoms.positions - atoms.positions.mean(axis=0), gradient)
    for each in (gradient, torques):
        assert np.linalg.norm(each.sum(axis=0)) < GRADIENT[precision] * np.linalg.norm(each)


@EVERY_VARIANT
def test_same_bits_every_run(device, precision, variant):
    atoms = load_system("ubiquitin").atoms
    first, second = (energy(atoms, **options(device, precision, variant)) for _ in range(2))
    np.testing.assert_array_equal(first.energies, second.energies)
    np.testing.assert_array_equal(first.gradient, second.gradient)


@pytest.mark.parametrize("name", ["ubiquitin", "src3"])
def test_devices_agree(device, precision, name):
    """Every other device that there is agrees, chosen for the tests or not."""
    others = [d for d in list_devices() if d.kind != "simulator" and d.index != device.index]
    others = [d for d in others if precision == "float32" or d.has_float64]
    if not others:
        pytest.skip("there is no other device")
    atoms, bound = load_system(name).atoms, {"float32": 5e-6, "float64": 1e-11}[precision]
    here = energy(atoms, **options(device, precision))
    for other in others:
        there = energy(atoms, **options(other, precision))
        assert here.total == pytest.approx(there.total, rel=bound)
        np.testing.assert_allclose(here.energies, there.energies, rtol=bound)
        assert relative(here.gradient, there.gradient) < bound
        assert relative(here.born_radii, there.born_radii) < bound


# Clashes


PARTNERS = {"bonded": 21, "1-4": 23, "of the same molecule": 100, "last": 199}


def clashing(distance, partner, n=200):
    """Make a chain whose atom 20 has another one at this distance, A, and name the uninvolved atoms."""
    atoms = bonded(n, seed=13)
    positions = np.array(atoms.positions)
    positions[partner] = positions[20] + [0, distance, 0]
    return replace(atoms, positions=positions), np.delete(np.arange(n), [20, partner])


@EVERY_VARIANT
@pytest.mark.parametrize("partner", PARTNERS)
def test_a_clash_does_not_poison_other_atoms(device, precision, variant, partner):
    """Gradients of other atoms stay exact relative to their size; so do all energies but the pair's own."""
    atoms, others = clashing(0.1, PARTNERS[partner])
    per_atom = variant != "squares"
    result = energy(atoms, per_atom=per_atom, **options(device, precision, variant))
    expected = reference(atoms)
    assert relative(result.gradient[others], expected.gradient[others]) < GRADIENT[precision]
    if precision == "float64" or partner == "bonded":  # float32 has lost what r^-13 asks of the pair's own distance
        assert relative(result.gradient, expected.gradient) < GRADIENT[precision]
    lengths = np.linalg.norm(expected.gradient[others], axis=1)
    errors = np.linalg.norm(result.gradient - expected.gradient, axis=1)[others]
    assert (errors / np.maximum(lengths, np.median(lengths))).max() < 5 * GRADIENT[precision]
    assert np.abs(result.born_radii / expected.born_radii - 1).max() < BORN_RADIUS[precision]
    scale = magnitude(replace(expected, per_atom=expected.per_atom | {"lennard_jones": np.zeros(1)}))
    for term, value in zip(TERMS, result.energies, strict=True):
        exact = expected.per_atom[term].sum()
        if term == "lennard_jones":  # r^-12 of a distance that float32 holds to 1e-6
            assert value == pytest.approx(exact, rel=1e-4 if precision == "float32" else 1e-11)
        else:
            assert value == pytest.approx(exact, rel=ENERGY[precision], abs=ENERGY[precision] * 0.1 * scale), term
    if per_atom:
        for k, term in enumerate(TERMS):
            values = expected.per_atom[term][others]
            np.testing.assert_allclose(
                result.per_atom[others].values[:, k], values, rtol=0, atol=10 * ENERGY[precision] * np.abs(values).max()
            )


@EVERY_VARIANT
@pytest.mark.parametrize("partner", PARTNERS)
@pytest.mark.parametrize("distance", [0.03, 0.01, 3e-3, 1e-3, 3e-4, 1.1e-4])
def test_closer_atoms_are_right_or_an_error(device, variant, partner, distance):
    """Gradients up to 1e37 kcal/mol/A come out, larger ones never do."""
    atoms, others = clashing(distance, PARTNERS[partner])
    expected = reference(atoms)
    plan = Energy(atoms, **options(device, "float32", variant))
    if np.abs(expected.gradient).max() > 1e37:
        with pytest.raises(InputError, match="too large for float32; check for overlapping atoms"):
            plan.evaluate()
        return
    result = plan.evaluate()
    # Between bonded atoms the Born radii's own integral is what is steep.
    bound = GRADIENT["float32"] if distance > 1e-3 else 1e-4
    assert relative(result.gradient[others], expected.gradient[others]) < bound
    assert result.total == pytest.approx(expected.total, rel=1e-3)


@EVERY_VARIANT
def test_a_clash_does_not_poison_other_conformations(device, precision, variant):
    atoms, _ = clashing(0.1, 100)
    apart = bonded(200, seed=13)
    plan = Energy(apart, **options(device, precision, variant))
    batch = plan.evaluate_batch(np.stack([apart.positions, atoms.positions, apart.positions + 1]))
    alone = plan.evaluate()
    for k in (0, 2):
        np.testing.assert_allclose(batch.gradients[k], alone.gradient, rtol=0, atol=1e-3)
    np.testing.assert_array_equal(batch.gradients[0], alone.gradient)
    np.testing.assert_array_equal(batch.energies[0], alone.energies)
    assert batch.total[1] > 1e9


@EVERY_VARIANT
def test_a_batch_has_the_bits_of_its_members(device, precision, variant, monkeypatch):
    atoms = bonded(150, seed=15)
    conformations = atoms.positions + np.random.default_rng(1).normal(0, 0.05, (7, 150, 3))
    per_atom = variant != "squares"
    plan = Energy(atoms, per_atom=per_atom, **options(device, precision, variant))
    single = [plan.evaluate(positions) for positions in conformations]
    shares = []
    # Three at a time: two whole batches and one conformation.
    monkeypatch.setattr(passes, "MOST_CONFORMATIONS", 3)
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


@pytest.mark.parametrize(
    ("layout", "tile", "sentence"),
    [
        (BlocksLayout, 64, "a tile has 64 atoms; BlocksLayout allows 32 at most"),
        (SquaresLayout, 64, "a tile has 64 atoms; SquaresLayout allows 32 at most"),
        (RowsLayout, 24, "a tile has 24 atoms; expected a power of two and multiple of 8"),
        (RowsLayout, 4, "a tile has 4 atoms; expected a power of two and multiple of 8"),
    ],
)
def test_tiles_that_kernels_do_not_know_are_refused(layout, tile, sentence):
    with pytest.raises(ValueError, match=sentence):
        layout(8, tile, 1)


@pytest.mark.parametrize("size", [16, 32, 64])
@EVERY_VARIANT
def test_masks_hold_every_pair_where_it_is_met(size, variant):
    atoms = bonded(200, seed=17)
    tiles = Tiles.of(atoms.positions, size)
    excluded = nonbonded_pairs(atoms).excluded
    tile_order = VARIANTS[variant].run().tile_order(SquaresLayout(1, 32, 256))
    masks, ring = Masks.of(tiles, excluded, tile_order), variant != "rows"
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
    for pairs, met in zip((excluded, excluded[:0]), found, strict=True):
        once = {tuple(pair) for pair in pairs.tolist()}
        assert {tuple(sorted(pair)) for pair in met - itself} == once
        assert itself <= met
        if not ring:
            assert met - itself == once | {(j, i) for i, j in once}


def test_auto_is_a_variant_for_every_kind():
    assert choose_variant("CPU", per_atom=False) == "blocks"
    for kind in ("GPU", "simulator", "accelerator"):
        assert choose_variant(kind, per_atom=False) == "squares"
        assert choose_variant(kind, per_atom=True) == "rows"


@pytest.mark.parametrize("refused_by", ["device", "compiler"])
def test_rows_where_groups_must_be_small(device, refused_by, monkeypatch):
    """Many devices take fewer work-items to a group than the layout has, some compilers even fewer."""
    monkeypatch.setattr(RowsLayout, "of", lambda *_: RowsLayout(1, 16, 4))
    atoms, groups, build, keep, most = bonded(200, seed=17), [], Queue.kernel, Queue.bind_kernel, 16

    def build_if_small(queue, *args, **defines):
        items = defines.get("ITEMS", 16 * defines.get("PARTS", 1))
        if items > most and refused_by == "compiler":
            raise GroupTooLargeError(f"{items} work-items are too many")
        return build(queue, *args, **defines)

    def noted(queue, kernel, shape, group, *args, **how):
        groups.append(group[0])
        return keep(queue, kernel, shape, group, *args, **how)

    monkeypatch.setattr(Queue, "kernel", build_if_small)
    monkeypatch.setattr(Queue, "bind_kernel", noted)
    if refused_by == "device":
        monkeypatch.setattr(Device, "largest_group", most)
    result = energy(atoms, **options(device, "float32", "rows"))
    assert max(groups) == most
    assert_same(result, reference(atoms), "float32")


SQUARES = {
    "fused": SquaresLayout(1, 32, 256, shares=4, fused=True),
    "split": SquaresLayout(1, 32, 256, split=4, shares=4, fused=True),
    "rows of 3": SquaresLayout(1, 32, 256, row=3, shares=4),
    "tiles of 16": SquaresLayout(1, 16, 64, row=2, split=2, shares=2, fused=True),
}


@pytest.mark.parametrize("shape", SQUARES)
@pytest.mark.parametrize("options", [{}, {"fixed_radii": True}, {"gradient": False}], ids=["all", "fixed", "energy"])
def test_squares_of_every_shape_in_as_many_launches_as_memory_asks_for(
    device, precision, shape, options, monkeypatch, pytestconfig
):
    if device.vendor == "POCL" and (shape != "fused" or precision == "float64"):
        pytest.skip("PoCL compiles these for a minute each")
    if device.vendor == "POCL" and "fixed_radii" not in options and pytestconfig.option.markexpr:
        pytest.skip("PoCL compiles these for half a minute each, which `make test-all` takes")
    atoms = bonded(420, seed=17)
    expected = energy(atoms, device=device, precision="float64", **options)
    monkeypatch.setattr(SquaresLayout, "of", lambda *_: SQUARES[shape])
    launches = []
    for most in (256, 5):
        monkeypatch.setattr(squares, "MOST_LAYERS", most)
        plan = Energy(atoms, device=device, precision=precision, variant="squares", **options)
        result, again = plan.evaluate(), plan.evaluate()
        assert result.total == pytest.approx(expected.total, rel=ENERGY[precision])
        np.testing.assert_array_equal(again.energies, result.energies)
        if result.gradient is not None:
            assert relative(result.gradient, expected.gradient) < GRADIENT[precision]
            np.testing.assert_array_equal(again.gradient, result.gradient)
        launches.append(len(plan._idle[0].passes.launches))
        # More at a time, then fewer than there are buffers for.
        moved = atoms.positions + np.random.default_rng(3).normal(0, 0.02, (3, 420, 3))
        for conformations in (np.stack([*moved, atoms.positions]), np.stack([moved[1], atoms.positions])):
            batch = plan.evaluate_batch(conformations)
            np.testing.assert_array_equal(batch.energies[-1], result.energies)
            assert batch.total[-2] == plan.evaluate(conformations[-2]).total
            if batch.gradients is not None:
                np.testing.assert_array_equal(batch.gradients[-1], result.gradient)
    assert (launches[0] < launches[1]) == options.get("gradient", True)


@pytest.mark.parametrize("layout", SQUARES.values(), ids=SQUARES)
def test_layers_of_squares_are_no_more_than_there_is_room_for(layout):
    for n_tiles in (1, 2, 3, 40, 1000, 31_250):
        for most in (1, 40, 10_000):
            slabs = layout.slabs(n_tiles, most)
            steps = [step for slab in slabs for step in range(slab.first_step, slab.end_step)]
            assert steps == list(range(layout.rows(n_tiles) // 2 + 1))
            assert sum(slab.n_chunks for slab in slabs) == slabs[0].all_chunks
            assert all(slab.n_layers <= max(most, 2) for slab in slabs)


def test_chunks_of_squares_are_a_quarter_of_the_parts():
    """Chunks are so many as nearly as whole steps around the ring allow."""
    layout = SquaresLayout(1, 32, 256)
    for n_tiles in range(1, 1500):
        (slab,) = layout.slabs(n_tiles, 10_000)
        assert slab.n_chunks <= 96
        assert slab.steps_per_chunk == 1 or slab.n_chunks >= 48
    assert layout.slabs(139, 256)[0].steps_per_chunk == 1  # 4,400 atoms


def test_squares_keep_fewer_layers_where_memory_is_short(device, precision, monkeypatch):
    atoms = bonded(1200, seed=17)
    plan = Energy(atoms, device=device, precision=precision, variant="squares")
    expected = plan.evaluate()
    buffers = plan._idle[0].passes.buffers
    others = max(buffer.size for name, buffer in buffers.items() if name != "layers")
    monkeypatch.setattr(Device, "largest_buffer", max(others, buffers["layers"].size // 3))
    short = Energy(atoms, device=device, precision=precision, variant="squares")
    result = short.evaluate()
    assert len(short._idle[0].passes.launches) > len(plan._idle[0].passes.launches)
    assert result.total == pytest.approx(expected.total, rel=ENERGY[precision])
    assert relative(result.gradient, expected.gradient) < GRADIENT[precision]


def test_repeating_leaves_results_as_they_are(device):
    atoms = bonded(60, seed=17)
    plan, other = Energy(atoms, device=device), Energy(atoms, device=device)
    plan.repeat(2)
    np.testing.assert_array_equal(plan.evaluate().gradient, other.evaluate().gradient)
    other.repeat(3)
    np.testing.assert_array_equal(plan.evaluate().gradient, other.evaluate().gradient)


def test_repeating_takes_all_launches_each_time(device, monkeypatch):
    plan, made = Energy(bonded(60, seed=17), device=device), []
    plan.evaluate()
    monkeypatch.setattr(Queue, "launch_bound", lambda queue, launches, m, *_: made.append((list(launches), m)))
    plan.repeat(3)
    assert made == [(plan._idle[0].passes.launches, 1)] * 3


def test_what_is_no_molecule_no_batch_and_no_count_is_an_error(device):
    with pytest.raises(InputError, match="expected Atoms"):
        Energy("protein.pdb", device=device)
    with pytest.raises(InputError, match="SolventModel"):
        Energy(bonded(20, seed=17), model=3, device=device)
    plan = Energy(bonded(20, seed=17), device=device)
    positions = plan.atoms.positions
    for conformations in ([positions, positions[1:]], (positions for _ in range(3)), [["x"]]):
        with pytest.raises(InputError, match="conformations are not an array of numbers, or differ in shape"):
            plan.evaluate_batch(conformations)
    for count in (0, -1, 2.5, "3"):
        with pytest.raises(InputError, match="expected a whole number, 1 or more"):
            plan.repeat(count)


@pytest.mark.parametrize(("budget", "most"), [(1 << 40, 65_535), (1 << 24, None), (1, 1)])
def test_batches_are_no_larger_than_launches_and_memory_may_be(device, budget, most, monkeypatch):
    atoms = bonded(10)
    monkeypatch.setattr(passes, "BATCH_BYTES", budget)
    monkeypatch.setattr(Device, "largest_buffer", 1 << 40)
    found = Energy(atoms, device=device)._prepare(1).passes
    of_all = "positions", "arrivals", "bonded constants"
    each = sum(buffer.size for name, buffer in found.buffers.items() if name not in of_all)
    assert found.most_at_once == (most or budget // each)


@EVERY_VARIANT
def test_batches_fit_the_largest_buffer(device, variant, monkeypatch):
    atoms = bonded(150, seed=15)
    plan = Energy(atoms, device=device, variant=variant)
    single = plan.evaluate()
    largest = max(buffer.size for buffer in plan._idle[0].passes.buffers.values())
    monkeypatch.setattr(Device, "largest_buffer", 8 * largest)
    batch = plan.evaluate_batch(np.stack([atoms.positions] * 20))
    assert plan._idle[0].batch == 8
    np.testing.assert_array_equal(batch.total, [single.total] * 20)


# Errors


def test_atoms_too_close_for_float32_are_an_error(device):
    atoms = bonded(40, seed=18)
    positions = np.array(atoms.positions)
    positions[30] = positions[0] + [1e-3, 0, 0]
    with pytest.raises(InputError, match=r"too large for float32; check for overlapping atoms.* use float64"):
        energy(replace(atoms, positions=positions, lj_epsilon=np.full(40, 100.0)), device=device)


def test_atoms_at_one_place_are_named(device, precision):
    atoms = bonded(40, seed=19)
    positions = np.array(atoms.positions)
    positions[30] = positions[0]
    with pytest.raises(InputError, match="atom 0 and atom 30 are at the same position"):
        energy(replace(atoms, positions=positions), device=device, precision=precision)
    plan = Energy(atoms, device=device, precision=precision)
    with pytest.raises(InputError, match=r"^atom 0 and atom 30 are at the same position"):
        plan.evaluate(positions)
    with pytest.raises(InputError, match=r"^conformation 2 of 3: atom 0 and atom 30 are at the same position"):
        plan.evaluate_batch(np.stack([atoms.positions, positions, atoms.positions]))


@EVERY_VARIANT
@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("distance", [0, 3e-5, 9e-5])
@pytest.mark.parametrize("apart", [1, 2, 39])
def test_close_atoms_without_repulsion_are_named(device, precision, variant, gradient, distance, apart):
    """Bonded, at the ends of an angle, and far along the chain but without Lennard-Jones and charge."""
    if precision == "float64" and not gradient:
        pytest.skip("the kernels without a gradient, in float32, find them in the same lines")
    atoms = bonded(40, seed=19, charges=np.zeros(40), lj_epsilon=np.zeros(40))
    positions = np.array(atoms.positions)
    positions[apart] = positions[0] + [distance, 0, 0]
    plan = Energy(atoms, gradient=gradient, **options(device, precision, variant))
    with pytest.raises(InputError, match=f"^atom 0 and atom {apart} are at the same position"):
        plan.evaluate(positions)
    with pytest.raises(InputError, match=f"^conformation 2 of 3: atom 0 and atom {apart} are at the same position"):
        plan.evaluate_batch(np.stack([atoms.positions, positions, atoms.positions]))


@EVERY_VARIANT
def test_atoms_just_apart_have_an_energy(device, precision, variant):
    atoms = bonded(40, seed=19)
    positions = np.array(atoms.positions)
    positions[1] = positions[0] + [1.1e-4, 0, 0]
    result = Energy(atoms, **options(device, precision, variant)).evaluate(positions)
    expected = reference(replace(atoms, positions=positions))
    assert np.abs(result.born_radii / expected.born_radii - 1).max() < BORN_RADIUS[precision]
    assert result.total == pytest.approx(expected.total, rel=1e-5)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"gb_radii": [1.5, 0.09]}, ParameterError, "GB radius of atom 1 is 0.09 A, at or below the offset"),
        ({"lj_sigma": None}, InputError, "the energy needs lj_sigma, which these atoms do not have"),
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
        ({"cutoff": "12"}, "cutoff is '12'; expected a positive number"),
        ({"variant": "fast"}, "unknown variant 'fast'; choose auto, rows, blocks, squares"),
        ({"variant": "squares", "per_atom": True}, "squares does not compute energies per atom"),
        ({"precision": "float16"}, "unknown precision 'float16'; choose float32 or float64"),
        ({"one_four": "half"}, "one_four is 'half'; choose 'scale' or 'exclude'"),
        ({"cutoff": 0}, "cutoff is 0; expected a positive number of Angstrom"),
    ],
)
def test_unknown_options(given, message):
    with pytest.raises(InputError, match=message):
        energy(random_atoms(3), **given)


def test_bad_positions(device):
    plan = Energy(bonded(10), device=device)
    with pytest.raises(InputError, match=r"positions have shape \(9, 3\); expected \(10, 3\)"):
        plan.evaluate(np.zeros((9, 3)))
    with pytest.raises(InputError, match=r"positions have shape \(10, 3\); expected \(m, 10, 3\)"):
        plan.evaluate_batch(np.zeros((10, 3)))
    with pytest.raises(InputError, match=r"^the atoms span 1e\+06 A; a molecule up to 500,000 A can be computed"):
        plan.evaluate(np.outer(np.linspace(0, 1e6, 10), [1, 0, 0]))


def test_devices_without_float64_take_fixed_point_positions(device, monkeypatch):
    """Fixed-point positions are as good as float64, for molecules of any width, which then stays bounded."""
    monkeypatch.setattr(Device, "has_float64", False)
    monkeypatch.setattr(Device, "require_precision", lambda self, precision: None)
    plan = Energy(bonded(10), device=device)
    with pytest.raises(InputError, match=r"^the positions span 10,000 A, far more than those of the molecule"):
        plan.evaluate(np.outer(np.linspace(0, 1e4, 10), [1, 0, 0]))
    chain = bonded(60, seed=15)
    for distance in (0, 3e3, 3e5):
        wide = replace(chain, positions=chain.positions + np.outer(np.arange(60) // 30, [distance, 0.123, 0]))
        assert_same(energy(wide, device=device), reference(wide), "float32")
        restrained = energy(wide, terms=[PositionalRestraint(1.0, wide.positions + 0.5)], device=device)
        assert restrained.restraint == pytest.approx(60 * 0.75, rel=ENERGY["float32"])


def test_residues_need_labels_and_atoms(device):
    with pytest.raises(InputError, match="energies per residue need atoms with labels"):
        energy(random_atoms(3), device=device, per_atom=True).per_residue()


def test_the_gpus_variant_with_the_optimiser_that_users_have():
    """Tests build these kernels without it (conftest.COMPILED_PLAINLY); once, in a process of its own, with it."""
    code = (
        "import json, sys; from pele_ocl import Energy, read; atoms = read(sys.argv[1]); "
        "found = Energy(atoms, variant='squares', device=int(sys.argv[2])).evaluate(1.05 * atoms.positions); "
        "print(json.dumps([found.energy, found.gradient.tolist()]))"
    )
    path = shipped("data") / "structures" / "hexapeptide.pdb"
    words = [sys.executable, "-c", code, str(path), str(DEVICES[0].index)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    energies, gradient = json.loads(done.stdout)
    atoms = read(path)
    plan = Energy(atoms, variant="blocks", precision="float64", device=DEVICES[0])
    expected = plan.evaluate(1.05 * atoms.positions)
    assert energies == pytest.approx(expected.energy, rel=2e-6, abs=2e-4)
    assert np.linalg.norm(gradient - expected.gradient) < 5e-6 * np.linalg.norm(expected.gradient)
