"""Molecules of different topologies that share launches: each as it is alone."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from test_minimize import PEPTIDE, VACUUM, shaken

from pele_ocl import (
    Atoms,
    DeviceError,
    KernelBuildError,
    MinimizeBatch,
    Minimizer,
    PeleError,
    PositionalRestraint,
    energy,
    minimize_many,
)
from pele_ocl.atoms import Impropers
from pele_ocl.common.errors import DeviceMemoryError
from pele_ocl.energy.engine import give_gap_back, take_gap
from pele_ocl.minimize import driver, method, minimizer
from pele_ocl.minimize.job import Recipe
from pele_ocl.opencl import Device

MOLECULES = [PEPTIDE[:n].moved(shaken(0.1, n, PEPTIDE[:n])) for n in (88, 30, 57, 41)]
# Without impropers, so that it has fewer terms than the others.
MOLECULES[2] = replace(MOLECULES[2], bonded=replace(MOLECULES[2].bonded, impropers=Impropers()))


@pytest.fixture
def sharing(monkeypatch) -> list[int]:
    """Two or three molecules at a time; the numbers of those that shared launches."""
    monkeypatch.setattr(driver, "MOST_ATOMS", 150)
    entered: list[int] = []
    own = Recipe.jobs

    def counted(self, numbers, *args):
        if self.recorder.is_shared:
            entered.extend(numbers)
        return own(self, numbers, *args)

    monkeypatch.setattr(Recipe, "jobs", counted)
    return entered


def assert_as_alone(batch: MinimizeBatch, molecules: list[Atoms], **options: object) -> None:
    for result, atoms in zip(batch, molecules, strict=True):
        alone = Minimizer(atoms, **options).minimize()
        np.testing.assert_array_equal(result.positions, alone.positions)
        np.testing.assert_array_equal(result.gradient, alone.gradient)
        np.testing.assert_array_equal(result.energy_before.values, alone.energy_before.values)
        np.testing.assert_array_equal(result.energy_after.values, alone.energy_after.values)
        assert (result.evaluations, result.stopped_by) == (alone.evaluations, alone.stopped_by)


SLOW = pytest.mark.slow
CASES = [
    {}, pytest.param({"fixed_radii": True}, marks=SLOW), pytest.param({"method": "fire"}, marks=SLOW),
    pytest.param({"model": VACUUM, "constraints": "hbonds"}, marks=SLOW),
    pytest.param({"variant": "squares"}, marks=SLOW), pytest.param({"precision": "float64"}, marks=SLOW),
    {"method": "newton", "rounds": 3, "fixed_radii": True, "max_iterations": 4},
    pytest.param({"rounds": 2, "max_iterations": 10}, marks=SLOW), {"frozen": np.arange(9)},
]  # fmt: skip


@pytest.mark.parametrize(
    "options",
    CASES,
    ids=[
        "lbfgs", "fixed radii", "fire", "constraints in vacuum", "squares", "float64", "newton in rounds", "rounds",
        "frozen",
    ],
)  # fmt: skip
def test_each_has_the_bits_that_it_has_alone(device, sharing, options):
    """Structures leave their seats while others come in."""
    options = {"tolerance": 1.0, "max_iterations": 60, "device": device, **options}
    batch = minimize_many(MOLECULES, **options)
    assert sorted(sharing) == [0, 1, 2, 3]
    assert len({result.evaluations for result in batch}) > 1
    assert_as_alone(batch, MOLECULES, **options)
    again = minimize_many(MOLECULES, **options)
    for one, other in zip(batch, again, strict=True):
        np.testing.assert_array_equal(one.positions, other.positions)


def test_newton_beside_a_larger_molecule(device, monkeypatch):
    """A launch has as many groups as its largest molecule; smaller ones have fewer chunks."""
    own = method.Shape.of
    monkeypatch.setattr(method.Shape, "of", lambda device, n: replace(own(device, n), chunk=32))
    monkeypatch.setattr(driver.Seats, "is_at_work", property(lambda self: True))  # until the next one is ready
    molecules = [MOLECULES[0], MOLECULES[1]]
    options = {"method": "newton", "tolerance": 1.0, "max_iterations": 5, "device": device}
    assert_as_alone(minimize_many(molecules, **options), molecules, **options)


@pytest.mark.parametrize("iterations", [0, 3])
def test_none_is_lost_where_all_leave_at_once(device, sharing, monkeypatch, iterations):
    """Also where the device is done sooner than the host with a part of its work."""
    monkeypatch.setattr(driver.Seats, "is_at_work", property(lambda self: False))
    batch = minimize_many(MOLECULES, max_iterations=iterations, device=device)
    assert [result.iterations for result in batch] == [iterations] * 4
    relaxed = [result.atoms for result in minimize_many(MOLECULES, tolerance=1.0, device=device)]
    again = minimize_many(relaxed, tolerance=2.0, device=device)
    assert [result.iterations for result in again] == [0] * 4


@pytest.mark.slow
def test_options_of_each_and_what_shares_no_launches(device, sharing):
    """Molecules with restraints and with frozen atoms share launches; those with little time do not."""

    def each(atoms: Atoms) -> dict[str, object]:
        if len(atoms) == 41:
            return {"max_seconds": 100.0}
        return {"frozen": [0, 1]} if len(atoms) == 30 else {"terms": [PositionalRestraint(5.0)]}

    batch = minimize_many(MOLECULES, each=each, tolerance=1.0, device=device)
    assert sorted(sharing) == [0, 1, 2]
    np.testing.assert_allclose(batch[1].positions[:2], MOLECULES[1].positions[:2], atol=1e-12)
    assert_as_alone([batch[2]], [MOLECULES[2]], tolerance=1.0, device=device, terms=[PositionalRestraint(5.0)])


def test_no_room_and_kernels_that_cannot_serve_rows(device, sharing, monkeypatch):
    """Such molecules come one after the other."""
    monkeypatch.setattr(driver, "MOST_BYTES", 1 << 18)
    batch = minimize_many(MOLECULES[:2], tolerance=1.0, device=device)
    assert sharing == [1]
    assert_as_alone(batch, MOLECULES[:2], tolerance=1.0, device=device)

    def refusing(error: PeleError) -> Callable[..., None]:
        def refuse(*_: object) -> None:
            raise error

        return refuse

    for owner, name, error in (
        (driver.Seats, "_to_tables", DeviceMemoryError("no room for tables")),
        (minimizer, "suits", DeviceError("no names of arguments")),
        (minimizer, "suits", KernelBuildError("no kernel of this form")),
        (minimizer, "most_bytes", DeviceMemoryError("no room for the large buffer")),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, refusing(error))
            again = minimize_many(MOLECULES[:2], tolerance=1.0, device=device)
        for one, other in zip(again, batch, strict=True):
            np.testing.assert_array_equal(one.positions, other.positions)


def test_failures_are_named_and_others_go_on(device, sharing):
    flat, lost = MOLECULES[1].moved(np.zeros((30, 3))), MOLECULES[2].moved(MOLECULES[2].positions)
    far = np.array(MOLECULES[1].positions)
    far[3] += 1e6
    molecules = [MOLECULES[0], flat, lost, MOLECULES[1].moved(far), MOLECULES[1]]
    seen: list[tuple[int, int, float]] = []
    batch = minimize_many(molecules, errors="record", tolerance=1.0, device=device, watch=lambda *x: seen.append(x))
    assert "at the same position" in batch.errors[1]
    assert set(batch.errors) == {1, 3}  # the last one is of their topology, and well
    good = [0, 2, 4]
    assert_as_alone([batch[k] for k in good], [molecules[k] for k in good], tolerance=1.0, device=device)
    assert seen[-1] == (5, 5, 0.0)
    batch = minimize_many(molecules[3:] + molecules[:1], errors="record", tolerance=1.0, device=device)
    assert "span" in batch.errors[0]
    assert set(batch.errors) == {0}


@pytest.mark.parametrize("place", [0, 2, 4], ids=["first", "middle", "last"])
def test_a_result_depends_on_its_structure_alone(device, place):
    """Same bits alone, in any order and in any company, a bad structure of its own topology among it."""
    options = {"tolerance": 1.0, "device": device, "errors": "record"}
    alike = [PEPTIDE.moved(shaken(0.1, seed)) for seed in (1, 2, 3)]
    bad = PEPTIDE.moved(np.zeros((len(PEPTIDE), 3)))
    alone = [minimize_many([atoms], **options)[0] for atoms in alike]
    company = [*alike[::-1], MOLECULES[1]]
    company.insert(place, bad)
    batch = minimize_many(company, **options)
    assert set(batch.errors) == {place}
    good = [result for _, result in batch.good][2::-1]
    for one, other in zip(good, alone, strict=True):
        np.testing.assert_array_equal(one.positions, other.positions)
        np.testing.assert_array_equal(one.energy_after.values, other.energy_after.values)
        assert one.evaluations == other.evaluations


@pytest.mark.parametrize("more", [{}, {"fixed_radii": True}, {"constraints": "hbonds"}])
def test_shaken_starts_are_as_alone(device, sharing, more):
    """Bonds are restored before the first step, and the energies before belong to the given positions."""
    molecules = [PEPTIDE[:n].moved(shaken(0.3, n, PEPTIDE[:n])) for n in (88, 30, 57)]
    batch = minimize_many(molecules, tolerance=5.0, device=device, **more)
    assert sorted(sharing) == [0, 1, 2]
    assert_as_alone(batch, molecules, tolerance=5.0, device=device, **more)
    for result, atoms in zip(batch, molecules, strict=True):
        assert result.restored > 0
        assert result.energy_before.total == pytest.approx(energy(atoms, device=device).total, rel=1e-5)


def test_gaps_of_a_store():
    gaps = [(0, 100)]
    assert [take_gap(gaps, 40), take_gap(gaps, 40), take_gap(gaps, 40)] == [0, 40, None]
    give_gap_back(gaps, 0, 40)
    assert take_gap(gaps, 50) is None
    assert take_gap(gaps, 30) == 0
    give_gap_back(gaps, 40, 40)
    assert take_gap(gaps, 70) == 30
    give_gap_back(gaps, 0, 30)
    give_gap_back(gaps, 30, 70)
    assert take_gap(gaps, 100) == 0


def test_packs_give_queues_and_memory_back(device: Device, sharing):
    held = []
    for _ in range(2):
        minimize_many(MOLECULES[:2], tolerance=1.0, device=device)
        gc.collect()
        held.append((len(device.spare), device.held_bytes))
    assert held[0] == held[1]


@pytest.mark.parametrize("is_shared", [True, False])
def test_results_come_as_they_are_done(is_shared, device, request):
    """One that is far from its minimum comes last, and one that fails holds none up."""
    if is_shared:
        request.getfixturevalue("sharing")
    flat = PEPTIDE[:41].moved(np.zeros((41, 3)))
    molecules = [flat, PEPTIDE[:57].moved(shaken(0.1, 1, PEPTIDE[:57])), PEPTIDE[:30]]
    taken: list[int] = []
    there: list[int] = []  # of these at each look

    def watch(*_: object) -> None:
        there.append(len(taken))

    for k, result in minimizer.as_done(molecules, None, None, watch, {"tolerance": 0.5, "device": device}):
        taken.append(k)
        assert isinstance(result, str) is (k == 0)
    assert sorted(taken) == [0, 1, 2]
    assert there[-1] > 0  # some were taken while the last was under way
