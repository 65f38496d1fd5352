"""Promises that all plans keep: batches with bad members, threads, callbacks that compute, any order of calls."""

import copy
import gc
import inspect
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from conftest import random_atoms
from test_reference_energy import bonded

import pele_ocl
from pele_ocl import (
    Atoms,
    Binding,
    DeviceError,
    Grid,
    InputError,
    Minimizer,
    Nonbond,
    PositionalRestraint,
    Potmap,
    Solvent,
    SolventModel,
    all_pairs,
    pairs_within,
    potmap,
    read,
)  # fmt: skip
from pele_ocl.common.installation import shipped
from pele_ocl.energy import Energy
from pele_ocl.ladder import NonbondLadder, SolventLadder
from pele_ocl.plan import plan as plans
from pele_ocl.plan.conformations import Encoding


def nonbond_plan(atoms, plan=Nonbond, **options):
    return plan(atoms, pairs_within(atoms, 8), **options)


# The engine's own variants, and one of each ladder, which take one conformation after the other.
PLANS = {
    "energy": Energy,
    "solvent": Solvent,
    "solvent ladder": partial(SolventLadder, variant="outer"),
    "nonbond": nonbond_plan,
    "nonbond ladder": partial(nonbond_plan, plan=NonbondLadder, variant="offsets"),
}
EVERY_PLAN = pytest.mark.parametrize("kind", PLANS)


def make(kind, device, precision="float32", n=150, **more):
    return PLANS[kind](bonded(n, seed=15), device=device, precision=precision, **more)


def conformations_of(plan, m=7):
    noise = np.random.default_rng(1).normal(0, 0.05, (m, len(plan.atoms), 3))
    return plan.atoms.positions + noise


def arrays_of(result):
    """All numbers of a result or a batch."""
    names = ("gradient", "gradients", "born_radii", "psi")
    found = [result.energies, *(getattr(result, name) for name in names if getattr(result, name, None) is not None)]
    return [np.asarray(array) for array in found] + ([] if result.per_atom is None else [result.per_atom.values])


def assert_same_bits(result, other):
    for one, two in zip(arrays_of(result), arrays_of(other), strict=True):
        np.testing.assert_array_equal(one, two)


@EVERY_PLAN
def test_a_dropped_plan_leaves_the_device_at_once(kind, device):
    """Without the collector of garbage, which commands call seldom: each of many molecules would keep its own."""
    make(kind, device).evaluate()
    gc.collect()
    gc.disable()
    try:
        held = device.held_bytes
        make(kind, device).evaluate()
        assert device.held_bytes == held
    finally:
        gc.enable()


@EVERY_PLAN
def test_a_bad_member_is_recorded_and_the_others_are_right(kind, device, precision, monkeypatch):
    monkeypatch.setattr(plans, "CHUNK_ATOMS", 320)  # two at a time
    plan = make(kind, device, precision)
    conformations = conformations_of(plan, 9)
    expected = [plan.evaluate(positions) for positions in conformations]
    conformations[2, 30] = conformations[2, 0]
    conformations[5, 7, 1] = np.nan
    conformations[6, 3] = [0, 0, 1e6]
    batch = plan.evaluate_batch(conformations, errors="record")
    assert list(batch.errors) == [2, 5, 6]
    assert batch.errors[2].startswith("atom 0 and atom 30 are at the same position")
    assert "of atom 7 is" in batch.errors[5]
    assert "span" in batch.errors[6]
    for k, result in enumerate(expected):
        if k in batch.errors:
            assert all(np.isnan(array).all() for array in arrays_of(batch[k]))
        else:
            assert_same_bits(batch[k], result)
    with pytest.raises(InputError, match=r"^conformation 3 of 9: atom 0 and atom 30"):
        plan.evaluate_batch(conformations)
    with pytest.raises(InputError, match="errors is 'ignore'; choose 'raise' or 'record'"):
        plan.evaluate_batch(conformations, errors="ignore")


@EVERY_PLAN
def test_callbacks_may_compute(kind, device, precision, monkeypatch):
    """Callbacks compute with the plan and with another one, in the middle of a batch."""
    monkeypatch.setattr(plans, "CHUNK_ATOMS", 320)
    plan, other = make(kind, device, precision), make(kind, device, precision, n=90)
    conformations = conformations_of(plan)
    expected, others, own = plan.evaluate_batch(conformations), other.evaluate(), plan.evaluate()
    inside = []

    def compute(share):
        inside.append((plan.evaluate(), other.evaluate(), plan.evaluate_batch(conformations[:3])))

    assert_same_bits(plan.evaluate_batch(conformations, compute), expected)
    assert len(inside) >= 4  # once a chunk, and within the long launches of some variants
    for same, another, batch in inside:
        assert_same_bits(same, own)
        assert_same_bits(another, others)
        for k in range(3):
            assert_same_bits(batch[k], expected[k])
    plan.evaluate(progress=compute)


def test_idle_evaluators_serve_whom_they_fit_and_make_room(device, monkeypatch):
    plan = make("solvent", device, variant="tiled")
    conformations = conformations_of(plan)
    plan.evaluate_batch(conformations, lambda share: plan.evaluate())
    small, large = plan._idle
    plan._idle[:] = large, small
    plan.evaluate_batch(conformations)
    assert plan._idle == [small, large]

    def prepare(m, whole=plan._prepare):
        if plan._idle:  # as where the device is full
            raise DeviceError("this needs more memory")
        return whole(m)

    monkeypatch.setattr(plan, "_prepare", prepare)
    plan._idle[:] = small, small
    assert_same_bits(plan.evaluate_batch(conformations)[3], plan.evaluate(conformations[3]))
    assert len(plan._idle) == 1


@EVERY_PLAN
def test_eight_threads_on_two_plans(kind, device, precision):
    both = make(kind, device, precision), make(kind, device, precision, n=90)
    given = [conformations_of(plan) for plan in both]
    expected = [[plan.evaluate(positions) for positions in there] for plan, there in zip(both, given, strict=True)]
    tasks = [(which, k) for k in range(7) for which in (0, 1)] * 4

    def compute(task):
        which, k = task
        if k == 6:
            return both[which].evaluate_batch(given[which])[k]
        return both[which].evaluate(given[which][k])

    with ThreadPoolExecutor(8) as pool:
        for (which, k), result in zip(tasks, pool.map(compute, tasks), strict=True):
            assert_same_bits(result, expected[which][k])


@EVERY_PLAN
def test_any_order_of_calls_gives_the_same_bits(kind, device, precision, monkeypatch):
    """200 calls, single, in batches of any size, timed, repeated, and with errors in between."""
    monkeypatch.setattr(plans, "CHUNK_ATOMS", 320)
    plan, random = make(kind, device, precision, n=60), np.random.default_rng(3)
    conformations = conformations_of(plan)
    expected = [make(kind, device, precision, n=60).evaluate(positions) for positions in conformations]
    bad = np.array(conformations)
    bad[4, 5] = bad[4, 6]
    for _ in range(200):
        k, call, profile = int(random.integers(7)), int(random.integers(5)), bool(random.integers(2))
        if call == 0:
            assert_same_bits(plan.evaluate(conformations[k], profile=profile), expected[k])
        elif call == 1:
            batch = plan.evaluate_batch(conformations[: k + 1], profile=profile)
            assert_same_bits(batch[k], expected[k])
        elif call == 2:
            assert_same_bits(plan.evaluate_batch(bad, errors="record")[6], expected[6])
        elif call == 3:
            with pytest.raises(InputError, match="at the same position"):
                plan.evaluate(bad[4])
        else:
            plan.repeat(1)


@EVERY_PLAN
def test_results_pickle(kind, device):
    plan = make(kind, device, n=60)
    for result in (plan.evaluate(), plan.evaluate_batch(conformations_of(plan, 2))):
        again = pickle.loads(pickle.dumps(result))
        assert_same_bits(again, result)
        assert repr(again) == repr(result)


PEPTIDE = read(shipped("data") / "structures" / "hexapeptide.pdb")
SALT = SolventModel(ionic_strength=0.1)

# Plans with options that all decide on results.
PICKLED = {
    "energy": partial(Energy, fixed_radii=True, one_four="exclude", cutoff=9.0, model=SALT, precision="float64"),
    "energy of terms": partial(Energy, only_terms=["bond", "coulomb"], terms=PositionalRestraint(10.0)),
    "energy of frozen": partial(Energy, gradient=False, frozen=[1, 2, 3]),
    "energy per atom": partial(Energy, per_atom=True, variant="rows", born="tree", accuracy=1e-4),
    "solvent": partial(Solvent, variant="tree", accuracy=1e-4, model=SALT),
    "born radii": partial(SolventLadder, energy=False, variant="outer"),
    "nonbond": lambda atoms, **more: Nonbond(
        atoms, all_pairs(atoms), internal_dielectrics=np.linspace(1, 4, len(atoms)), model=SALT, **more
    ),
    "nonbond of a list": lambda atoms, **more: Nonbond(
        atoms, pairs_within(atoms, 8.0), solvent="vacuum", gradient=False, progress=print, **more
    ),
}


@pytest.mark.parametrize("kind", [pele_ocl.Energy, Solvent, Nonbond, Minimizer])
def test_descriptions_have_all_parameters(kind, device):
    """A parameter that is not described would be lost in a pickle without a word."""
    pairs = [all_pairs(PEPTIDE)] if kind is Nonbond else []
    made = kind(PEPTIDE, *pairs, device=device).__reduce__()[0]
    parameters = set(inspect.signature(kind).parameters) - {"atoms", "progress", "bounds"}  # callbacks are not pickled
    assert set(made.keywords) == parameters


@pytest.mark.parametrize("again", [lambda made: pickle.loads(pickle.dumps(made)), copy.deepcopy])
@pytest.mark.parametrize("kind", PICKLED)
def test_plans_pickle_by_their_description(kind, again, device):
    """Even after they were used, when they hold buffers and locks."""
    plan = PICKLED[kind](PEPTIDE, device=device)
    moved = PEPTIDE.positions + np.random.default_rng(0).normal(0, 0.01, PEPTIDE.positions.shape)
    moved[1:4] = PEPTIDE.positions[1:4]
    found = plan.evaluate(moved)
    made = again(plan)
    assert made is not plan
    assert made.device is plan.device
    assert repr(made) == repr(plan)
    assert_same_bits(made.evaluate(moved), found)


def test_a_minimizer_pickles_by_its_description(device):
    options = dict(method="fire", max_iterations=15, tolerance=1e-3, frozen=[0, 1], cutoff=12.0, model=SALT)
    plan = Minimizer(PEPTIDE, terms=PositionalRestraint(1.0), constraints="hbonds", device=device, **options)
    found = plan.minimize()
    made = pickle.loads(pickle.dumps(plan))
    assert repr(made) == repr(plan)
    np.testing.assert_array_equal(made.minimize().positions, found.positions)


def test_a_binding_pickles_with_what_was_chosen_when_it_was_made(device):
    ligand = np.arange(19)
    plan = Binding(PEPTIDE, ligand, like="sander", cutoff=15.0, idecomp=1, device=device)
    found = plan.evaluate()
    ligand[:] = 0
    made = pickle.loads(pickle.dumps(plan))
    assert (repr(made), made.notes, made.model) == (repr(plan), plan.notes, plan.model)
    again = made.evaluate()
    np.testing.assert_array_equal(again.delta.values, found.delta.values)
    assert again.decomposition is not None


def test_a_map_plan_pickles_by_its_description(device):
    grid = Grid.around(PEPTIDE, 4, 1.5)
    plan = Potmap(PEPTIDE, grid, field=True, device=device)
    found = plan.evaluate()
    made = pickle.loads(pickle.dumps(plan))
    assert repr(made) == repr(plan)
    np.testing.assert_array_equal(made.evaluate().map.values, found.map.values)


@pytest.mark.parametrize("method", ["direct", "cutoff", "mesh"])
def test_a_map_plan_gives_what_a_map_made_anew_gives(method, device):
    """Moved, back again, by two threads: nothing of an earlier map stays in the memory that is kept."""
    grid = Grid.around(PEPTIDE, 4, 0.9)
    plan = Potmap(PEPTIDE, grid, method=method, device=device)
    there = [PEPTIDE.positions, PEPTIDE.positions + np.array([0.4, -0.3, 0.2]), PEPTIDE.positions]
    anew = [potmap(PEPTIDE.moved(positions), grid, method=method, device=device) for positions in there]
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(plan.evaluate, there))
    for one, other in zip(found, anew, strict=True):
        size = np.abs(other.map.values).max()
        assert np.abs(one.map.values - other.map.values).max() <= (0 if method != "mesh" else 1e-4) * size
        np.testing.assert_array_equal(one.atoms.positions, other.atoms.positions)


def test_a_map_plan_refuses_an_atom_on_a_point(device):
    grid = Grid((0.0, 0.0, 0.0), 1.0, (3, 3, 3))
    atoms = Atoms([[0.5, 0.5, 0.5]], charges=[1.0])
    plan = Potmap(atoms, grid, device=device)
    with pytest.raises(InputError, match="is at the position of atom 0"):
        plan.evaluate([[1.0, 1.0, 1.0]])
    assert np.isfinite(plan.evaluate().map.values).all()
    with pytest.raises(TypeError, match="no option"):
        Potmap(atoms, grid, methods="mesh")


@pytest.mark.parametrize("span", [1.0, 800.0, 3e3, 5e5])
def test_encoded_positions_are_whole_steps(span):
    encoding = Encoding.of(span, doubles=False)
    positions = np.random.default_rng(0).uniform(-span / 2, span / 2, (100, 3))
    lowest, highest = positions.min(axis=0), positions.max(axis=0)
    shift, encoded = encoding.shift(lowest, highest), np.empty((100, 3), encoding.dtype)
    encoding.encode(positions - shift, encoded)
    assert np.abs(encoded * encoding.step - (positions - (shift + encoding.base))).max() <= encoding.step / 2
    assert np.abs(shift + encoding.base - (lowest + highest) / 2).max() <= encoding.step / 2
    assert encoding.step <= 2**-20


def test_a_batch_shows_how_many_failed():
    atoms = random_atoms(20)
    conformations = np.stack([atoms.positions] * 3)
    conformations[1, 0] = np.nan
    shown = repr(Energy(atoms).evaluate_batch(conformations, errors="record"))
    assert "3 conformations of 20 atoms, 1 failed, total " in shown
    assert "nan" not in shown


def test_a_warm_call_is_short(device):
    """Functions and files of the package that an evaluation goes through; each call costs a launch's time."""
    atoms = random_atoms(100)
    plan = Energy(atoms, device=device)
    for _ in range(2):
        plan.evaluate(atoms.positions + 0.1)
    root, calls = str(Path(pele_ocl.__file__).parent), []

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(root):
            calls.append(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        plan.evaluate(atoms.positions + 0.2)
    finally:
        sys.setprofile(None)
    assert 20 < len(calls) <= 38
    assert len(set(calls)) <= 14


def test_batches_and_maps_keep_copies_of_arrays_that_were_given(device):
    """What a caller does with its arrays afterwards changes nothing."""
    atoms = read(shipped("data") / "structures" / "trialanine.pdb")
    positions = np.stack([atoms.positions] * 2)
    grid = Grid((0, 0, 0), 1.0, (3, 3, 3))
    values, radii = np.ones((3, 3, 3)), np.full(len(atoms), 1.5)
    plans = [
        Energy(atoms, device=device), Solvent(atoms, device=device),
        Nonbond(atoms, all_pairs(atoms), device=device),
    ]  # fmt: skip
    batches = [plan.evaluate_batch(given) for plan in plans for given in (positions, positions[:], positions.view())]
    made, plan = pele_ocl.Map(grid, values), pele_ocl.PoissonBoltzmann(atoms, radii=radii, device=device)
    positions[:], values[:], radii[:] = 0, 2, 3
    for batch in batches:
        np.testing.assert_array_equal(batch[1].atoms.positions, atoms.positions)
    assert (made.values == 1).all()
    assert (plan.solute.radii == 1.5).all()
