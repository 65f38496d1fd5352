"""Nonbonded energy and gradient on the devices: the references, list order, odd lists, invariants, errors."""

import sys
import time
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from conftest import has_native_atomics, load_system, random_atoms, random_pairs, require, without
from test_reference_nonbond import TERMS, differences, relative
from tolerance import DIFFERENCES, ENERGY, GRADIENT

from pele_ocl import Atoms, DeviceError, InputError, SolventModel
from pele_ocl.atoms.charges import rounded_charges
from pele_ocl.ladder import NONBOND as VARIANTS
from pele_ocl.ladder import NonbondLadder
from pele_ocl.nonbond import Nonbond, choose_variant, nonbond
from pele_ocl.opencl import Device, Queue, building, get_cpu_device
from pele_ocl.pairs import PairList, all_pairs, pairs_within
from pele_ocl.reference.nonbond import nonbond as reference
from pele_ocl.solvent import solvent

SALT = SolventModel(ionic_strength=0.15)
EXACT = [name for name in VARIANTS if name != "naive"]
SAME_BITS = [name for name in EXACT if not name.startswith("atomic")]
PLAN = sys.modules["pele_ocl.nonbond.plan"]  # the function has taken its package's name
LARGE = ["src3", "enolase_dimer", "ruvab"]


@pytest.fixture(params=EXACT)
def exact(request, device):
    """Each variant that the device has and that loses nothing."""
    if request.param == "atomic-native" and not has_native_atomics(device):
        pytest.skip(f"{device} has no atomic floating-point addition")
    return request.param


@pytest.fixture
def same_bits(exact):
    if exact not in SAME_BITS:
        pytest.skip(f"{exact} adds in any order")
    return exact


def born_radii(n, seed=3):
    return np.random.default_rng(seed).uniform(1, 5, n)


def definition(atoms, pairs, **more):
    return reference(
        atoms,
        pairs.first,
        pairs.second,
        pairs.one_four,
        sigma2=pairs.sigma2,
        charge_products=pairs.charge_products,
        **more,
    )


def sizes(atoms, pairs, **more):
    """Sums of the pairs' energies with nothing cancelling: what rounding is relative to."""
    unsigned = None if pairs.charge_products is None else np.abs(pairs.charge_products)
    positive = replace(pairs, labels=None, charge_products=unsigned)
    sums = definition(replace(atoms, charges=np.abs(atoms.charges)), positive, **more)
    i, j = pairs.first, pairs.second
    sigma = (atoms.lj_sigma[i] + atoms.lj_sigma[j]) / 2  # no less than the geometric mean
    sigma2 = sigma**2 if pairs.sigma2 is None else pairs.sigma2
    s6 = (sigma2 / ((atoms.positions[i] - atoms.positions[j]) ** 2).sum(axis=1)) ** 3
    depth = 4 * np.sqrt(atoms.lj_epsilon[i] * atoms.lj_epsilon[j])
    return {"lennard_jones": (depth * (s6 * s6 + s6)).sum(), "coulomb": sums.coulomb, "gb_pair": -sums.gb_pair}


def assert_same(result, expected, precision, scale=None):
    """Energies and gradient; energies relative to `scale`, by default themselves."""
    for term in TERMS:
        value, wanted = getattr(result, term), getattr(expected, term)
        assert abs(value - wanted) <= ENERGY[precision] * (abs(wanted) if scale is None else scale[term]), term
    if result.gradient is not None:
        assert relative(result.gradient, expected.gradient) < GRADIENT[precision]


# Against the references


def assert_openmm(system, device, precision, variant, one_four, key):
    pairs = all_pairs(system.atoms, one_four)
    result = nonbond(system.atoms, pairs, solvent="vacuum", variant=variant, precision=precision, device=device)
    lennard_jones, coulomb = (system.energies[f"own_nb_no14_{term}_kcal"] for term in ("lj", "coulomb"))
    if one_four == "scale":
        more, more_coulomb = (system.energies[f"own_nb_14_{term}_kcal"] for term in ("lj", "coulomb"))
        # 1-4 pairs repel what the others attract: in the hexapeptide a fortieth of the Coulomb energies is left, and
        # with it forty times the rounding of charges.
        lennard_jones, coulomb = lennard_jones + more, coulomb + more_coulomb
    assert result.lennard_jones == pytest.approx(lennard_jones, rel=ENERGY[precision])
    assert result.coulomb == pytest.approx(coulomb, rel=ENERGY[precision])
    # The two have opposite signs; of what is left no more can be asked than of them.
    assert result.total == pytest.approx(
        lennard_jones + coulomb, abs=ENERGY[precision] * (abs(lennard_jones) + abs(coulomb))
    )
    assert relative(result.gradient, -system.arrays[f"force_nb_{key}"]) < GRADIENT[precision]
    assert (result.variant, result.precision, result.n_pairs, result.exact) == (variant, precision, len(pairs), True)


KINDS = pytest.mark.parametrize(("one_four", "key"), [("exclude", "no14"), ("scale", "with14")])


@KINDS
@pytest.mark.parametrize("name", ["hexapeptide", "ubiquitin"])
def test_energies_and_gradients_are_openmms(device, precision, exact, name, one_four, key):
    assert_openmm(load_system(name), device, precision, exact, one_four, key)


@pytest.mark.slow
@KINDS
@pytest.mark.parametrize("name", LARGE)
def test_energies_and_gradients_of_large_systems_are_openmms(device, precision, exact, name, one_four, key):
    assert_openmm(load_system(name), device, precision, exact, one_four, key)


@pytest.mark.parametrize(
    ("combining", "model", "left_out", "precision"),
    [
        ("arithmetic", SALT, (), "float32"),
        ("arithmetic", SALT, (), "float64"),
        ("geometric", SALT, ("sigma2", "charge_products"), "float64"),
        pytest.param("arithmetic", SolventModel(), ("charge_products",), "float32", marks=pytest.mark.slow),
        pytest.param("arithmetic", SolventModel(), ("sigma2",), "float32", marks=pytest.mark.slow),
    ],
)
def test_options_reach_the_kernels(device, precision, exact, combining, model, left_out):
    require(device, precision)
    atoms = replace(random_atoms(70), combining=combining, one_four=(0.5, 0.4))
    pairs = without(random_pairs(70, 700), *left_out)
    more = dict(model=model, internal_dielectrics=np.random.default_rng(4).choice([1.0, 2.0, 4.0, 8.0], 70))
    result = nonbond(atoms, pairs, born_radii(70), variant=exact, precision=precision, device=device, **more)
    more["born_radii"] = born_radii(70)
    assert_same(result, definition(atoms, pairs, **more), precision, sizes(atoms, pairs, **more))


def test_products_of_charges_are_not_rounded_alike(device, exact):
    """Equal atom types meet thousands of times in float32; their products must not all be off the same way."""
    system = load_system("ubiquitin")
    (pairs,) = all_pairs(system.atoms).chunks(10**7)
    radii = system.arrays["born_radius"]
    result = nonbond(system.atoms, pairs, radii, variant=exact, device=device)
    expected = definition(system.atoms, pairs, born_radii=radii)
    for term in TERMS:
        assert getattr(result, term) == pytest.approx(getattr(expected, term), rel=ENERGY["float32"] / 5), term


@pytest.mark.parametrize("solute", [1, 4])
def test_born_radii_come_from_solvent(device, precision, exact, solute):
    system = load_system("ubiquitin")
    model, pairs = SolventModel(solute_dielectric=solute), pairs_within(system.atoms, 9, "scale")
    result = nonbond(system.atoms, pairs, variant=exact, precision=precision, device=device, model=model)
    expected = definition(system.atoms, pairs, born_radii=system.arrays["born_radius"], model=model)
    assert_same(result, expected, precision, {term: 4 * abs(getattr(expected, term)) for term in TERMS})
    where = get_cpu_device(device) if exact == "sequential" else device
    given = solvent(system.atoms, precision=precision, device=where, model=model).born_radii
    same = nonbond(system.atoms, pairs, given, variant=exact, precision=precision, device=device, model=model)
    assert same.total == pytest.approx(result.total, rel=1e-12)


def test_energies_without_gradient_are_the_same(device, exact):
    atoms, pairs, precision = random_atoms(200), random_pairs(200, 5000), "float32"
    options = dict(variant=exact, precision=precision, device=device)
    with_it, without_it = (nonbond(atoms, pairs, born_radii(200), gradient=g, **options) for g in (True, False))
    assert without_it.gradient is None
    assert without_it.net_force == 0
    for term in TERMS:
        assert getattr(without_it, term) == pytest.approx(getattr(with_it, term), rel=ENERGY[precision])


@pytest.mark.parametrize("gb", [True, False], ids=["gb", "vacuum"])
@pytest.mark.parametrize("model", [SolventModel(), SALT], ids=["water", "salt"])
def test_gradient_is_that_of_our_own_energy(device, exact, gb, model):
    if not device.has_float64:
        pytest.skip(f"{device} has no float64")
    atoms, pairs = random_atoms(12), without(random_pairs(12, 50), "sigma2", "charge_products")
    plan = NonbondLadder(
        atoms, pairs, solvent="gb" if gb else "vacuum", variant=exact, precision="float64", device=device, model=model
    )
    radii = born_radii(12) if gb else None
    numeric = differences(lambda positions: plan.evaluate(positions, radii).total, atoms.positions)
    assert relative(plan.evaluate(born_radii=radii).gradient, numeric) < DIFFERENCES


# Order of the list


def test_order_of_the_list_does_not_matter(device, precision, exact):
    atoms, pairs = random_atoms(300), random_pairs(300, 9000)
    expected = definition(atoms, pairs, born_radii=born_radii(300))
    scale = sizes(atoms, pairs, born_radii=born_radii(300)) if precision == "float32" else None
    for order in (pairs, pairs.shuffled(1), pairs.shuffled(2)):
        result = nonbond(atoms, order, born_radii(300), variant=exact, precision=precision, device=device)
        assert_same(result, expected, precision, scale)


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
def test_tiled_in_vectors_of_any_width(device, precision, width, monkeypatch):
    if device.kind == "CPU" and width > device.vector_width(precision):
        pytest.skip("wider than this compiler bears")
    monkeypatch.setattr(Device, "vector_width", lambda self, precision: width)
    atoms, pairs, radii = random_atoms(45), random_pairs(45, 600), born_radii(45)
    result = nonbond(atoms, pairs, radii, variant="tiled", precision=precision, device=device)
    scale = sizes(atoms, pairs, born_radii=radii)
    assert_same(result, definition(atoms, pairs, born_radii=radii), precision, scale)


@pytest.mark.parametrize("parts", [2, 7, 40])
def test_tiled_in_any_number_of_parts(device, parts, monkeypatch):
    """Some parts hold several tiles, and some none."""
    monkeypatch.setattr("pele_ocl.nonbond.tiled.PARTS_A_UNIT", {device.kind: parts})
    atoms, pairs, radii = random_atoms(45), random_pairs(45, 600), born_radii(45)
    result = nonbond(atoms, pairs, radii, variant="tiled", precision="float64", device=device)
    assert_same(result, definition(atoms, pairs, born_radii=radii), "float64")


def test_same_bits_for_the_same_list(device, precision, same_bits):
    atoms, pairs = random_atoms(500), random_pairs(500, 20000)
    options = dict(variant=same_bits, precision=precision, device=device)
    first, *others = (nonbond(atoms, pairs, born_radii(500), **options) for _ in range(4))
    for other in others:
        assert other.energy == first.energy
        np.testing.assert_array_equal(other.gradient, first.gradient)


# Odd lists


def test_an_empty_list(device, precision, exact):
    atoms = random_atoms(5)
    result = nonbond(atoms, PairList(5, [], []), variant=exact, precision=precision, device=device)
    assert result.energy == dict.fromkeys((*TERMS, "total"), 0)
    assert (result.gradient == 0).all()
    assert (result.n_pairs, result.net_force) == (0, 0)


def test_one_pair_touches_two_atoms(device, precision, exact):
    atoms, pairs = random_atoms(7), PairList(7, [5], [2])
    result = nonbond(atoms, pairs, born_radii(7), variant=exact, precision=precision, device=device)
    assert_same(result, definition(atoms, pairs, born_radii=born_radii(7)), precision)
    assert set(np.flatnonzero(np.abs(result.gradient).sum(axis=1))) == {2, 5}


def test_a_lone_atom_and_two(device, precision, exact):
    alone = Atoms(positions=[[1e5, 0, 0]], charges=[1], lj_sigma=[3], lj_epsilon=[0.1])
    result = nonbond(alone, all_pairs(alone), [2.0], variant=exact, precision=precision, device=device)
    assert (result.total, len(result.gradient)) == (0, 1)
    atoms = random_atoms(2)
    result = nonbond(atoms, all_pairs(atoms), born_radii(2), variant=exact, precision=precision, device=device)
    assert_same(result, definition(atoms, PairList(2, [0], [1]), born_radii=born_radii(2)), precision)


def test_an_atom_in_ten_thousand_pairs(device, precision, exact):
    atoms, others = random_atoms(10_003), np.arange(1, 10_001)
    swapped = others % 3 == 0
    pairs = PairList(10_003, np.where(swapped, others, 0), np.where(swapped, 0, others))
    result = nonbond(atoms, pairs, born_radii(10_003), variant=exact, precision=precision, device=device)
    scale = {term: 1 + 10 * abs(getattr(result, term)) for term in TERMS}  # both signs come
    assert_same(result, definition(atoms, pairs, born_radii=born_radii(10_003)), precision, scale)
    assert (result.gradient[10_001:] == 0).all()


@pytest.mark.parametrize("n_pairs", [2**k + d for k in (7, 9, 10) for d in (-1, 0, 1)])
def test_lengths_beside_powers_of_two(device, exact, n_pairs):
    atoms, pairs = random_atoms(60), random_pairs(60, n_pairs, seed=n_pairs)
    result = nonbond(atoms, pairs, born_radii(60), variant=exact, device=device)
    scale = sizes(atoms, pairs, born_radii=born_radii(60))
    assert_same(result, definition(atoms, pairs, born_radii=born_radii(60)), "float32", scale)


# Invariants


def moments(result, positions):
    """Net force and net torque, each by the norm of what it is a sum of."""
    centred = positions - positions.mean(axis=0)
    torques = np.cross(centred, result.gradient)
    net, torque = np.linalg.norm(result.gradient.sum(axis=0)), np.linalg.norm(torques.sum(axis=0))
    return net / np.linalg.norm(result.gradient), torque / np.linalg.norm(torques)


def test_no_net_force_and_no_net_torque(device, precision, exact):
    system = load_system("ubiquitin")
    pairs = pairs_within(system.atoms, 9).shuffled()
    radii = system.arrays["born_radius"]
    result = nonbond(system.atoms, pairs, radii, variant=exact, precision=precision, device=device)
    assert max(moments(result, system.atoms.positions)) < GRADIENT[precision]
    assert result.net_force < GRADIENT[precision] * np.linalg.norm(result.gradient)


def test_translation_and_rotation_leave_the_energy(device, precision, exact):
    system = load_system("ubiquitin")
    pairs, radii = pairs_within(system.atoms, 9), system.arrays["born_radius"]
    turn, _ = np.linalg.qr(np.random.default_rng(6).normal(size=(3, 3)))
    plan = NonbondLadder(system.atoms, pairs, variant=exact, precision=precision, device=device)
    here = plan.evaluate(born_radii=radii)
    # 1e5 A cost the float64 input itself five of its digits.
    for move, bound in ((np.array([3.0, -4.0, 5.0]), 1e-11), (np.array([1e5, -1e5, 7.7]), 1e-8)):
        there = plan.evaluate(system.atoms.positions + move, radii)
        assert_same(
            there, here, precision, {t: abs(getattr(here, t)) * max(1, bound / ENERGY[precision]) for t in TERMS}
        )
    turned = plan.evaluate(system.atoms.positions @ turn, radii)
    assert_same(replace(turned, gradient=turned.gradient @ turn.T), here, precision)


def test_charges_scale_the_energy_squared(device, exact):
    atoms, pairs = random_atoms(100), without(random_pairs(100, 2000), "sigma2", "charge_products")
    one, two = (
        nonbond(a, pairs, born_radii(100), variant=exact, device=device)
        for a in (atoms, replace(atoms, charges=2 * atoms.charges))
    )
    assert (two.coulomb, two.gb_pair) == pytest.approx((4 * one.coulomb, 4 * one.gb_pair), rel=1e-6)
    assert two.lennard_jones == one.lennard_jones or exact.startswith("atomic")


# Chunks and plans


@pytest.mark.parametrize("kind", ["PairList", "AllPairs", "own values"])
def test_chunks_give_the_same(device, precision, exact, kind, monkeypatch):
    atoms = load_system("hexapeptide").atoms
    pairs = all_pairs(atoms, "scale")
    if kind == "PairList":
        pairs = pairs_within(atoms, 9, "scale").shuffled()
    if kind == "own values":
        pairs = random_pairs(96, 1000)
    options = dict(variant=exact, precision=precision, device=device)
    whole = nonbond(atoms, pairs, **options)
    monkeypatch.setattr(PLAN, "CHUNK", 333)
    shares = []
    plan = NonbondLadder(atoms, pairs, progress=shares.append, **options)
    for _ in range(2):  # chunks are prepared anew for each evaluation
        scale = {term: 30 * abs(getattr(whole, term)) for term in TERMS}
        assert_same(plan.evaluate(), whole, precision, scale if precision == "float32" else None)
    once = -(-len(pairs) // 333)
    assert len(shares) == 2 * once
    assert shares[:once] == sorted(shares[:once])
    assert shares[once - 1] == shares[-1] == 1


def test_chunks_of_one_pair_more_or_less(device, monkeypatch):
    atoms, pairs = random_atoms(30), random_pairs(30, 100)
    expected = definition(atoms, pairs, born_radii=born_radii(30))
    scale = sizes(atoms, pairs, born_radii=born_radii(30))
    for chunk in (1, 50, 99, 100, 101):
        monkeypatch.setattr(PLAN, "CHUNK", chunk)
        assert_same(nonbond(atoms, pairs, born_radii(30), device=device), expected, "float32", scale)


def test_a_plan_is_prepared_once(device, precision, exact, monkeypatch):
    atoms, pairs = random_atoms(100), random_pairs(100, 2000)
    options = dict(variant=exact, precision=precision, device=device)
    plan = NonbondLadder(atoms, pairs, **options)
    first = plan.evaluate(born_radii=born_radii(100))
    moved = atoms.positions + np.random.default_rng(1).normal(0, 0.02, (100, 3)) + 50
    other = born_radii(100, seed=8)
    fresh = nonbond(replace(atoms, positions=moved), pairs, other, **options)
    monkeypatch.setattr(Nonbond, "_prepare", lambda *_: pytest.fail("prepared again"))
    second = plan.evaluate(moved, other)
    assert second.seconds["prepare"] == first.seconds["prepare"]
    assert second.total == pytest.approx(fresh.total, rel=ENERGY[precision])
    assert relative(second.gradient, fresh.gradient) < (1e-6 if precision == "float32" else 1e-13)
    np.testing.assert_array_equal(second.atoms.positions, moved)
    again = plan.evaluate(born_radii=born_radii(100))
    assert relative(again.gradient, first.gradient) < (1e-6 if precision == "float32" else 1e-13)


def test_a_plan_gives_what_a_new_one_gives(device, precision, same_bits):
    """Whatever it computed before: other places, other units of length, other radii and the same."""
    atoms, pairs = random_atoms(100), random_pairs(100, 2000)
    options = dict(variant=same_bits, precision=precision, device=device)
    plan = NonbondLadder(atoms, pairs, **options)
    radii = born_radii(100)
    for scale, born in ((1, radii), (1, radii.copy()), (3, radii), (3, 2 * radii), (1, 2 * radii), (1, None)):
        moved = scale * atoms.positions + 7
        expected = NonbondLadder(atoms, pairs, **options).evaluate(moved, born)
        result = plan.evaluate(moved, born)
        assert result.energy == expected.energy
        np.testing.assert_array_equal(result.gradient, expected.gradient)


def test_seconds_say_what_took_them(device, exact):
    result = nonbond(random_atoms(200), random_pairs(200, 5000), variant=exact, device=device)
    assert result.seconds["total"] > result.seconds["kernel"] > 0
    builds = exact in ("bitonic", "offsets", "offsets-group", "rows", "tiled")
    assert (result.seconds["prepare"] > 0) == builds


def test_building_kernels_is_no_preparation(device, monkeypatch):
    build = building._build
    monkeypatch.setattr(building, "_build", lambda *arguments: (time.sleep(0.2), build(*arguments))[1])
    device.kernels.clear()
    device.programs.clear()
    result = nonbond(random_atoms(200), random_pairs(200, 5000), born_radii(200), variant="offsets", device=device)
    assert result.seconds["total"] > 0.7
    assert result.seconds["prepare"] < 0.2


def test_result_adds_up(device):
    result = nonbond(random_atoms(50), random_pairs(50, 300), device=device)
    assert result.total == result.lennard_jones + result.coulomb + result.gb_pair == result.energy["total"]
    assert list(result.energy) == [*TERMS, "total"]


# Choice


def test_auto_is_an_exact_variant_for_every_kind_and_size(device):
    for kind in ("GPU", "CPU", "accelerator", "simulator"):
        for n in (0, 1, 10**3, 10**5, 10**8):
            assert choose_variant(kind, n) in SAME_BITS
    result = nonbond(random_atoms(9), random_pairs(9, 20), device=device)
    assert (result.variant, result.exact) == (choose_variant(device.kind, 20), True)


def test_naive_says_that_it_is_wrong(device, precision):
    atoms, pairs = random_atoms(300), random_pairs(300, 40_000).shuffled()
    result = nonbond(atoms, pairs, born_radii(300), variant="naive", precision=precision, device=device)
    assert result.exact is False
    # Its energies come by a tree like all others'; what its gradient loses is up to the race.
    exact = nonbond(atoms, pairs, born_radii(300), variant="rows", precision=precision, device=device)
    assert result.total == pytest.approx(exact.total, rel=1e-4 if precision == "float32" else 1e-9)
    assert np.isfinite(result.gradient).all()
    assert nonbond(atoms, pairs, variant="naive", gradient=False, device=device).exact  # there is nothing to lose


def test_atomic_native_needs_the_device(device, precision, monkeypatch):
    monkeypatch.setattr(Device, "has_float_atomics", lambda self, which: which != precision)
    with pytest.raises(DeviceError, match=f"no atomic addition of {precision} numbers; choose `variant='atomic'`"):
        nonbond(random_atoms(5), random_pairs(5, 4), variant="atomic-native", precision=precision, device=device)


# Errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"solvent": "oil"}, "unknown solvent 'oil'; choose gb or vacuum"),
        (
            {"variant": "fast"},
            "unknown variant 'fast'; choose auto, sequential, naive, atomic, atomic-native, bitonic",
        ),
        ({"precision": "float16"}, "unknown precision 'float16'; choose float32 or float64"),
        ({"born_radii": np.ones(4)}, "born_radii must be 5 positive numbers, one per atom"),
        ({"born_radii": np.ones((5, 1))}, "born_radii must be 5 positive numbers"),
        ({"born_radii": [1, 1, 0, 1, 1]}, "born_radii must be 5 positive numbers"),
        ({"born_radii": [1, 1, np.nan, 1, 1]}, "born_radii must be 5 positive numbers"),
        ({"internal_dielectrics": np.ones(6)}, "internal_dielectrics must be 5 positive numbers, one per atom"),
        ({"internal_dielectrics": [1, 1, -1, 1, 1]}, "internal_dielectrics must be 5 positive numbers"),
        ({"pairs": PairList(6, [0], [1])}, "the pair list is for 6 atoms; there are 5"),
    ],
)
def test_wrong_options_are_sentences(device, options, message):
    arguments = {"atoms": random_atoms(5), "pairs": random_pairs(5, 4), "device": device} | options
    with pytest.raises(InputError, match=message):
        nonbond(**arguments)


@pytest.mark.parametrize("name", ["lj_sigma", "lj_epsilon"])
def test_missing_parameters_are_named(device, name):
    with pytest.raises(InputError, match=f"the nonbonded energy needs {name}, which these atoms do not have"):
        nonbond(replace(random_atoms(5), **{name: None}), random_pairs(5, 4), device=device)


def test_only_radii_that_must_be_computed_need_their_parameters(device):
    atoms = replace(random_atoms(5), gb_radii=None)
    with pytest.raises(InputError, match="needs gb_radii"):
        nonbond(atoms, random_pairs(5, 4), device=device)
    nonbond(atoms, random_pairs(5, 4), born_radii(5), device=device)
    nonbond(atoms, random_pairs(5, 4), solvent="vacuum", device=device)


def test_coincident_atoms_are_named(device):
    atoms = random_atoms(5)
    positions = atoms.positions.copy()
    positions[4] = positions[1]
    plan = Nonbond(atoms, all_pairs(atoms), device=device)
    with pytest.raises(InputError, match="atom 1 and atom 4 are at the same position"):
        plan.evaluate(positions, born_radii(5))


@pytest.mark.parametrize("gradient", [True, False])
def test_energies_that_overflow_are_an_error(device, gradient):
    atoms = Atoms(
        positions=[[5, 0, 0], [0, 0, 0], [0, 0, 1e-3]], charges=[0, 1, 1], lj_sigma=[3] * 3, lj_epsilon=[1] * 3
    )
    message = "the energy of atom 1 is not finite" if gradient else "the energy is not finite"
    with (
        np.errstate(invalid="ignore"),
        pytest.raises(InputError, match=f"{message} in float32; check charges and dist"),
    ):
        nonbond(atoms, all_pairs(atoms), np.ones(3), gradient=gradient, device=device)


@pytest.mark.parametrize("positions", [np.zeros((4, 3)), np.zeros((5, 2)), np.full((5, 3), np.nan)])
def test_positions_must_fit(device, positions):
    plan = Nonbond(random_atoms(5), random_pairs(5, 4), device=device)
    with pytest.raises(InputError, match=r"position|charges has shape"):
        plan.evaluate(positions, born_radii(5))


def test_no_atoms(device):
    empty = Atoms(positions=np.empty((0, 3)), charges=[], lj_sigma=[], lj_epsilon=[])
    with pytest.raises(InputError, match="needs at least one atom; it has none"):
        nonbond(empty, PairList(0, [], []), device=device)


@pytest.mark.parametrize(
    ("variant", "limit"),
    [
        *product(("atomic", "bitonic", "rows"), [16]), ("offsets-group", 1),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in [("offsets", 16), ("offsets-group", 16)]),
        pytest.param("bitonic", 1, marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_devices_of_small_groups(device, variant, limit, monkeypatch):
    monkeypatch.setattr(Queue, "_most_items", lambda self, kernel: limit)
    device.kernels.clear()
    device.programs.clear()
    atoms = random_atoms(40)
    listed = random_pairs(40, 300)
    pairs = PairList(40, listed.first, listed.second)
    result = nonbond(atoms, pairs, solvent="vacuum", variant=variant, precision="float64", device=device)
    expected = reference(atoms, pairs.first, pairs.second)
    device.kernels.clear()
    device.programs.clear()
    assert result.coulomb == pytest.approx(expected.coulomb, rel=1e-11)
    np.testing.assert_allclose(result.gradient, expected.gradient, atol=1e-9 * np.linalg.norm(expected.gradient))


def test_float32_holds_molecules_of_a_size(device):
    atoms = random_atoms(3)
    positions = atoms.positions + np.array([[0, 0, 0], [9000, 0, 0], [0, 9, 0]])
    far = replace(atoms, positions=positions)
    pairs = PairList(3, np.array([0], np.int32), np.array([2], np.int32))
    with pytest.raises(InputError, match=r"the atoms span \d,\d+ A, more than the 4,000 A that float32 supports"):
        nonbond(far, pairs, solvent="vacuum", device=device)


def test_rounded_charges_keep_their_running_sums():
    charges = np.tile([-0.4157, 0.2719, 0.0337, 0.1101], 5000)
    rounded = rounded_charges(charges).astype(float)
    assert np.abs(rounded - charges).max() < 1e-7
    assert (rounded == charges.astype(np.float32)).mean() > 0.7  # the others take what these leave over
    assert np.abs(np.cumsum(rounded) - np.cumsum(charges)).max() < 1e-7
    assert np.abs(np.cumsum(charges.astype(np.float32).astype(float)) - np.cumsum(charges)).max() > 1e-5
