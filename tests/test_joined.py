"""One launch in place of several: the same bits, where a device has a fence."""

from dataclasses import replace

import numpy as np
import pytest
from bonded_helpers import of_every_kind
from conftest import random_atoms, random_pairs
from test_reference_energy import bonded

from pele_ocl import Ensemble, Nonbond, PositionalRestraint, Solvent, SolventModel
from pele_ocl.bench.systems import load
from pele_ocl.common.variant import Machine
from pele_ocl.energy import Energy, blocks, squares
from pele_ocl.energy.layout import BlocksLayout, Runs, SquaresLayout
from pele_ocl.nonbond import rows
from pele_ocl.opencl import Queue, building
from pele_ocl.plan.evaluator import Failures
from pele_ocl.solvent import passes
from pele_ocl.solvent.layout import SolventLayout

TURNS = 20
JOINED = SquaresLayout(1, 32, 256, split=2, shares=4, fused=True, joined=True)
CASES = {
    "energies": {"gradient": False},
    "all": {},
    "fixed radii": {"fixed_radii": True},
    "restraint": {"terms": [PositionalRestraint(10.0)]},
    "cutoff": {"cutoff": 9.0, "model": SolventModel(ionic_strength=0.1)},
}


def bits(result) -> list[np.ndarray]:
    arrays = result.energies, result.born_radii, getattr(result, "gradient", None), result.per_atom
    return [np.array(array) for array in arrays if array is not None]


def assert_same_bits(results, expected):
    for result in results:
        for array, other in zip(bits(result), bits(expected), strict=True):
            np.testing.assert_array_equal(array, other)


def conformations(atoms) -> np.ndarray:
    return atoms.positions + np.random.default_rng(3).normal(0, 0.02, (3, *atoms.positions.shape))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("with_bonds", [False, True], ids=["nonbonded", "bonded"])
def test_energy_in_one_launch(device, case, with_bonds, monkeypatch):
    if device.kind != "GPU" or not device.has_device_fence:
        pytest.skip("no GPU with a fence over the device")
    atoms, options = of_every_kind(100) if with_bonds else bonded(150, seed=17), dict(device=device, **CASES[case])
    monkeypatch.setattr(SquaresLayout, "of", lambda *_: JOINED)
    plan = Energy(atoms, variant="squares", **options)
    found = {k: [plan.evaluate(there) for _ in range(TURNS)] for k, there in enumerate(conformations(atoms))}
    monkeypatch.setattr(squares, "MOST_JOINED", 0)
    apart = Energy(atoms, variant="squares", **options)
    for k, there in enumerate(conformations(atoms)):
        assert_same_bits(found[k], apart.evaluate(there))
    one, several = plan._idle[0].passes.launches, apart._idle[0].passes.launches
    assert len(one) == 1 + len(CASES[case].get("terms", ()))
    assert len(several) > len(one) + 1
    batch = plan.evaluate_batch(conformations(atoms))
    np.testing.assert_array_equal(batch.energies, [found[k][0].energies for k in range(3)])


ON_CPUS = {
    **CASES, "necks": {"model": SolventModel(gb="gbn2")}, "energies of atoms": {"per_atom": True},
    "float64": {"precision": "float64"}, "surface": {"model": SolventModel(surface="lcpo")},
    "protein": {},  # steps that take long enough for a missing wait to be seen
}  # fmt: skip


@pytest.mark.parametrize("case", ON_CPUS)
@pytest.mark.parametrize("with_bonds", [False, True], ids=["nonbonded", "bonded"])
def test_energy_in_one_launch_on_cpus(device, case, with_bonds, monkeypatch):
    if device.kind != "CPU" or not device.has_device_fence or not device.can_yield:
        pytest.skip("no CPU whose work may wait for other work")
    atoms, options = of_every_kind(100) if with_bonds else bonded(150, seed=17), dict(device=device, **ON_CPUS[case])
    if case in ("necks", "surface"):  # of elements
        atoms = load("hexapeptide")
    elif case == "protein":
        atoms = load("ubiquitin")
    plans = []
    for most in (blocks.MOST_JOINED, 0):
        monkeypatch.setattr(blocks, "MOST_JOINED", most)
        plans.append(Energy(atoms, variant="blocks", **options))
        plans[-1].evaluate()
    one, apart = plans
    for there in conformations(atoms):
        assert_same_bits([one.evaluate(there) for _ in range(TURNS)], apart.evaluate(there))
    first, several = one._idle[0].passes.launches, apart._idle[0].passes.launches
    if case in ("fixed radii", "surface"):  # which may be held while positions move, and which precedes bonded terms
        assert len(first) == len(several)
        return
    assert len(first) == 1 + len(ON_CPUS[case].get("terms", ()))
    assert len(several) > len(first) + 1
    batch = one.evaluate_batch(conformations(atoms))
    np.testing.assert_array_equal(batch.energies[2], apart.evaluate(conformations(atoms)[2]).energies)


# The last ticket of a step, whose number the test writes behind the first counter, does nothing for a while.
DRAWS = "ticket = draw_ticket(COUNTER(DRAWN))) {\n"
IS_SLOW = """
        const int ends[] = {with_born, with_bonded, with_radii, with_pairs, with_weights, with_chain, to_finish};
        if (counters[1] && ticket == ends[counters[1] - 1] - 1) for (int k = 0; k < 20000; ++k) give_core_up();
"""
STEPS = ("placing", "Born sums", "bonded terms", "radii", "pairs", "weights", "chain rule")


@pytest.mark.parametrize("in_runs", [0, 20], ids=["every n-th tile", "runs"])
def test_steps_on_cpus_wait_for_slow_tickets(device, in_runs, monkeypatch):
    if device.kind != "CPU" or not device.has_device_fence or not device.can_yield:
        pytest.skip("no CPU whose work may wait for other work")
    shipped_source = building.source_of

    def source(file: str) -> str:
        text = shipped_source(file)
        if file == "energy/blocks_joined.cl":
            assert text.count(DRAWS) == 1
            text = text.replace(DRAWS, DRAWS + IS_SLOW)
        return text

    monkeypatch.setattr(building, "source_of", source)
    atoms = of_every_kind(100)
    layout = BlocksLayout.of(Machine.of(device, "float32"), len(atoms))
    monkeypatch.setattr(BlocksLayout, "of", lambda *_: replace(layout, in_runs=in_runs))
    plan = Energy(atoms, variant="blocks", device=device)
    plan.evaluate()
    monkeypatch.setattr(blocks, "MOST_JOINED", 0)
    apart = Energy(atoms, variant="blocks", device=device)
    one, other = conformations(atoms)[:2]
    expected = apart.evaluate(other)
    monkeypatch.setattr(BlocksLayout, "of", lambda *_: replace(layout, in_runs=0))
    usual = Energy(atoms, variant="blocks", device=device).evaluate(other)
    assert expected.total == pytest.approx(usual.total, rel=1e-6)
    assert np.linalg.norm(expected.gradient - usual.gradient) < 5e-6 * np.linalg.norm(usual.gradient)
    (launch,) = plan._idle[0].passes.launches
    counters = launch.args[[each.name for each in launch.kernel.signature.parameters].index("counters")]
    for k in range(len(STEPS)):
        plan.evaluate(one)  # leaves other values, which a step that does not wait would use
        Queue(device, "float32").write(counters, np.array([k + 1], np.int32), 1)
        found = plan.evaluate(other)
        Queue(device, "float32").write(counters, np.zeros(1, np.int32), 1)
        for array, wanted in zip(bits(found), bits(expected), strict=True):
            np.testing.assert_array_equal(array, wanted, err_msg=f"while {STEPS[k]} is slow")


@pytest.mark.parametrize("wanted", [1, 32, 128])
@pytest.mark.parametrize("n_tiles", [1, 2, 3, 4, 7, 16, 39, 141, 256])
def test_runs_of_tiles_meet_each_pair_once(n_tiles, wanted):
    """Parts and places are those of cl/common/runs.clh; every sum that is written is listed with its tile, once."""
    runs = Runs.of(n_tiles, wanted)
    met, written = set(), set()
    for part in range(runs.n_parts):
        first, first_step = part % runs.n_runs * runs.per_run, part // runs.n_runs * runs.per_cut
        for other in range(first, min(first + runs.per_run, n_tiles)):
            last_step = min(first_step + runs.per_cut - 1, (n_tiles - (2 * other < n_tiles)) // 2)
            for step in range(first_step, last_step + 1):
                tile = (other + step) % n_tiles
                pair = min(tile, other), max(tile, other)
                assert pair not in met
                met.add(pair)
                place = other - first + step - first_step
                assert place < runs.met
                written.add((tile, part, place))
            written.add((other, part, runs.met + other - first))
    assert len(met) == n_tiles * (n_tiles + 1) // 2
    starts, sums = runs.places_of_sums(n_tiles)
    tiles = np.repeat(np.arange(n_tiles), np.diff(starts))
    listed = [(tile, *places) for tile, places in zip(tiles.tolist(), sums.tolist(), strict=True)]
    assert len(set(listed)) == len(listed)
    assert written <= set(listed)
    assert {places[1:] for places in set(listed) - written}.isdisjoint({places[1:] for places in written})
    assert sums[:, 0].max() < runs.n_parts
    assert sums[:, 1].max() < runs.tiles_of_sums


def refuse(*given, **named):
    raise AssertionError("a copy")


def test_positions_and_results_of_a_cpu_are_not_copied(device, monkeypatch):
    if not device.shares_memory:
        pytest.skip("the device has separate memory")
    atoms = of_every_kind(60)
    there = conformations(atoms)
    with monkeypatch.context() as patch:
        patch.setitem(device.__dict__, "shares_memory", False)  # where it is cached
        copied = [Energy(atoms, device=device).evaluate(each) for each in there]
    plan = Energy(atoms, device=device)
    plan.evaluate()
    with monkeypatch.context() as patch:
        patch.setattr("pyopencl.enqueue_copy", refuse)
        for each, expected in zip(there, copied, strict=True):
            assert_same_bits([plan.evaluate(each)], expected)
    # They are with times, with progress, and in several chunks.
    assert_same_bits([plan.evaluate(there[0], profile=True)], copied[0])
    assert_same_bits([plan.evaluate(there[1], progress=lambda share: None)], copied[1])
    plan._most_together = 2
    batch = plan.evaluate_batch(there)
    np.testing.assert_array_equal(batch.energies, [each.energies for each in copied])
    # One that was started and given up does not disturb the next.
    evaluator = plan._borrow(1)
    evaluator.start(there[:1], Failures(1))
    plan._give_back(evaluator)
    assert_same_bits([plan.evaluate(there[2])], copied[2])


def test_a_row_alone_takes_one_launch_on_cpus(device):
    if device.kind != "CPU" or not device.has_device_fence or not device.can_yield:
        pytest.skip("no CPU whose work may wait for other work")
    atoms = of_every_kind(100)
    alone, two = (Ensemble(atoms, n, device=device) for n in (1, 2))
    assert len(alone.state.groups[0].launches) == 1
    for there in conformations(atoms):
        two.positions[1] = there
        two.evaluate()
        for _ in range(TURNS):
            alone.positions[0] = there
            assert alone.evaluate().energies[0] == two.energies[1]
            np.testing.assert_array_equal(alone.gradients[0], two.gradients[1])


def test_a_row_alone_takes_one_launch(device, monkeypatch):
    """An ensemble of one row has the launches of a plan for one conformation, and the bits of rows in company."""
    if device.kind != "GPU" or not device.has_device_fence:
        pytest.skip("no GPU with a fence over the device")
    monkeypatch.setattr(SquaresLayout, "of", lambda *_: JOINED)
    atoms = of_every_kind(100)
    alone, two = (Ensemble(atoms, n, device=device) for n in (1, 2))
    assert [len(rows.state.groups[0].launches) for rows in (alone, two)] == [1, 4]
    for there in conformations(atoms):
        two.positions[1] = there
        two.evaluate()
        for _ in range(TURNS):
            alone.positions[0] = there
            assert alone.evaluate().energies[0] == two.energies[1]
            np.testing.assert_array_equal(alone.gradients[0], two.gradients[1])


@pytest.mark.parametrize("model", [SolventModel(), SolventModel(ionic_strength=0.1)], ids=["water", "salt"])
def test_solvent_in_one_launch(device, precision, model, monkeypatch):
    if device.kind != "GPU" or not device.has_device_fence:
        pytest.skip("no GPU with a fence over the device")
    atoms = random_atoms(150)
    layout = SolventLayout(1, 1, 32, (64, 1), 256, shares=2, split=2, joined=True)
    monkeypatch.setattr(SolventLayout, "of", lambda *_: layout)
    plan = Solvent(atoms, variant="tiled", precision=precision, device=device, model=model)
    apart = [plan.evaluate(there, profile=True) for there in conformations(atoms)]
    launches = plan._idle[0].passes
    assert len(launches.joined) == 1
    launches.placing = launches.born = launches.energy = ()
    for there, expected in zip(conformations(atoms), apart, strict=True):
        assert_same_bits([plan.evaluate(there) for _ in range(TURNS)], expected)
    batch = plan.evaluate_batch(np.concatenate([conformations(atoms)] * 20))
    np.testing.assert_array_equal(batch.energies[2::3], [apart[2].energies] * 20)
    monkeypatch.setattr(passes, "MOST_JOINED", 0)
    assert not Solvent(atoms, variant="tiled", device=device)._prepare(1).passes.joined


@pytest.mark.parametrize("gb", [False, True], ids=["vacuum", "gb"])
def test_nonbond_without_records(device, precision, gb, monkeypatch):
    atoms, pairs = random_atoms(60), random_pairs(60, 700)
    results = []
    monkeypatch.setattr(rows, "FEW", {device.kind: 1000})
    for most in (1000, 0):
        monkeypatch.setattr(rows, "MOST_WITHOUT_RECORDS", {device.kind: most})
        plan = Nonbond(
            atoms, pairs, variant="rows", precision=precision, device=device, solvent="gb" if gb else "vacuum"
        )
        radii = np.linspace(1.5, 3.0, 60) if gb else None
        results.append([plan.evaluate(there, radii) for there in conformations(atoms)])
        assert len(plan._idle[0].passes.launches) == (1 if most else 2)
    for one, two in zip(*results, strict=True):
        np.testing.assert_array_equal(one.gradient, two.gradient)
        np.testing.assert_array_equal(one.energies, two.energies)


@pytest.mark.parametrize("kind", ["CPU", "GPU"])
def test_small_molecules_on_gpus_alone_take_one_launch(kind):
    machine = Machine(kind, "OTHER", 100, 1, "float32")
    assert [SquaresLayout.of(machine, n).joined for n in (1_231, 4_427)] == [kind == "GPU", False]
    assert [SolventLayout.of(kind, 1, n).joined for n in (1_231, 4_427)] == [kind == "GPU", False]
