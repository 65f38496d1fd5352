"""Rows of ensembles minimized: shared launches, molecules prepared once, results that depend on a row alone."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from rows_minimized import entered
from test_minimize import PEPTIDE, VACUUM, shaken

from pele_ocl import (
    CenterRestraint,
    DistanceRestraint,
    Ensemble,
    InputError,
    Minimizer,
    PositionalRestraint,
    TorsionRestraint,
)
from pele_ocl.ensemble import ensemble as ensembles
from pele_ocl.minimize import driver
from pele_ocl.minimize.driver import Seats
from pele_ocl.minimize.job import Recipe
from pele_ocl.opencl import Queue
from pele_ocl.opencl.binding import BoundLaunch

LARGE = PEPTIDE[:57]
MOLECULES = [LARGE, PEPTIDE[:30], LARGE, PEPTIDE[:41]]
RNG = np.random.default_rng(0)
STARTS = [shaken(0.1, k, atoms) for k, atoms in enumerate(MOLECULES)]
REFERENCES = [shaken(0.1, k + 10, atoms) for k, atoms in enumerate(MOLECULES)]
CONSTANTS = [RNG.uniform(0, 10, len(atoms)) for atoms in MOLECULES]
FROZEN = [RNG.choice(len(atoms), 4 * k, replace=False) for k, atoms in enumerate(MOLECULES)]
TARGETS = RNG.uniform(3, 5, (len(MOLECULES), 2))
ANGLES = RNG.uniform(-3, 3, (len(MOLECULES), 1))
CENTERS = [atoms.positions[:20].mean(axis=0) + RNG.normal(size=3) for atoms in MOLECULES]
OF_ENSEMBLE = ("fixed_radii", "model", "precision")
SLOW = pytest.mark.slow


def rows_of(order: Sequence[int], device: object, **options: Any) -> Ensemble:
    """Rows with starts, frozen atoms, references, force constants and targets of their own."""
    terms = [
        PositionalRestraint(5.0), DistanceRestraint([[0, 10], [5, 20]], 4.0, 1.0),
        TorsionRestraint([[0, 4, 8, 12]], 1.0, 5.0), CenterRestraint(np.arange(20), 20.0),
    ]  # fmt: skip
    ensemble = Ensemble([MOLECULES[k] for k in order], terms=terms, device=device, **options)
    ensemble.positions[:] = [STARTS[k] for k in order]
    ensemble.references("restraint")[:] = [REFERENCES[k] for k in order]
    ensemble.force_constants("restraint")[:] = [CONSTANTS[k] for k in order]
    ensemble.targets("distance_restraint")[:] = [TARGETS[k] for k in order]
    ensemble.targets("torsion_restraint")[:] = [ANGLES[k] for k in order]
    ensemble.targets("center_restraint")[:] = [CENTERS[k] for k in order]
    return ensemble


def minimized(order: Sequence[int], device: object, **options: Any) -> list[tuple[Any, ...]]:
    """All that each row of an ensemble gives, as it is."""
    ensemble = rows_of(order, device, **{name: value for name, value in options.items() if name in OF_ENSEMBLE})
    if "constraints" not in options:
        ensemble.frozen[:] = [FROZEN[k] for k in order]
    batch = ensemble.minimize(**{name: value for name, value in options.items() if name not in OF_ENSEMBLE})
    assert not batch.errors
    for k, result in zip(order, batch, strict=True):
        if "constraints" not in options:
            np.testing.assert_allclose(result.positions[FROZEN[k]], STARTS[k][FROZEN[k]], atol=1e-12)
    return [
        (
            result.positions.tobytes(), result.gradient.tobytes(), result.energy_before.values.tobytes(),
            result.energy_after.values.tobytes(), result.iterations, result.evaluations, result.stopped_by,
            ensemble.positions[k].tobytes(), ensemble.energies[k],
        )
        for k, result in enumerate(batch)
    ]  # fmt: skip


@pytest.mark.parametrize(
    "options",
    [
        {}, {"method": "newton", "rounds": 3, "fixed_radii": True, "max_iterations": 3},
        {"constraints": "hbonds", "model": VACUUM}, {"tolerance": 0.0, "energy_tolerance": 0.5},
        pytest.param({"method": "newton"}, marks=SLOW), pytest.param({"method": "fire"}, marks=SLOW),
        pytest.param({"method": "steepest"}, marks=SLOW), pytest.param({"rounds": 2, "max_iterations": 8}, marks=SLOW),
        pytest.param({"fixed_radii": True}, marks=SLOW), pytest.param({"precision": "float64"}, marks=SLOW),
    ],
    ids=[
        "lbfgs", "newton in rounds with fixed radii", "constraints", "energy change", "newton", "fire", "steepest",
        "rounds", "fixed radii", "float64",
    ],
)  # fmt: skip
def test_a_row_has_the_same_bits_in_any_order_and_company(device, options):
    """With frozen atoms, references, force constants and targets that differ by row, by all methods."""
    options = {"tolerance": 1.0, "max_iterations": 30, **options}
    alone = [minimized([k], device, **options)[0] for k in range(len(MOLECULES))]
    assert len({of[0] for of in alone}) == len(alone)
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1] * 8):
        assert minimized(order, device, **options) == [alone[k] for k in order]


def test_rows_share_launches_and_molecules_are_prepared_once(device, monkeypatch):
    """Whatever is frozen in rows, and however often they are minimized; other options prepare them anew."""
    prepared: list[int] = []
    own = Recipe.__init__

    def counted(self, system, *args, **named):
        prepared.append(len(system.energy.atoms))
        own(self, system, *args, **named)

    monkeypatch.setattr(Recipe, "__init__", counted)
    launched: list[tuple[str, int]] = []
    launch = Queue.launch_bound

    def kept(self, launches: Sequence[BoundLaunch], count: int, *args, **named) -> None:
        launched.extend((each.kernel.name, count) for each in launches)
        launch(self, launches, count, *args, **named)

    monkeypatch.setattr(Queue, "launch_bound", kept)
    ensemble = Ensemble([PEPTIDE[:30]] * 6, terms=[PositionalRestraint(5.0)], device=device)
    for call in range(3):
        ensemble.positions[:] = [shaken(0.1, k, MOLECULES[1]) for k in range(6)]
        ensemble.frozen[:] = [[k, call + 10] for k in range(6)]
        ensemble.references("restraint")[:] = [shaken(0.1, k + call, MOLECULES[1]) for k in range(6)]
        launched.clear()
        assert not ensemble.minimize(method="newton", max_iterations=4, tolerance=0.01).errors
        assert {count for name, count in launched if name == "step_newton"} == {6}
    assert prepared == [30]
    ensemble.minimize(max_iterations=2)
    assert prepared == [30, 30]
    ensemble.minimize([1, 2], max_iterations=2)
    assert prepared == [30, 30]


@pytest.mark.parametrize("place", [0, 2, 3], ids=["first", "middle", "last"])
@pytest.mark.parametrize("kind", ["same place", "all frozen", "hydrogen frozen", "no molecule"])
def test_a_bad_row_is_a_record_and_nothing_else(device, place, kind):
    molecule, options = MOLECULES[1], {"tolerance": 1.0, "constraints": "hbonds"}
    places = [shaken(0.05, seed, molecule) for seed in range(3)]
    good = Ensemble(molecule, 3, device=device)
    good.positions[:] = places
    expected = [result.positions.tobytes() for result in good.minimize(**options)]
    molecules = [molecule] * 4
    if kind == "no molecule":
        molecules[place] = molecule.moved(np.zeros((30, 3)))
    ensemble = Ensemble(molecules, device=device, errors="record")
    bad = np.array(places[0])
    if kind == "same place":
        bad[3] = bad[2]
    ensemble.positions[:] = [*places[:place], bad, *places[place:]]
    if kind == "all frozen":
        ensemble.frozen[place] = np.arange(30)
    elif kind == "hydrogen frozen":
        ensemble.frozen[place] = np.flatnonzero(molecule.labels.elements == "H")[:1]
    rows = [0, 1, 2, 3] if kind != "no molecule" else [k for k in range(4) if k != place]
    batch = ensemble.minimize(**options)
    assert len(batch) == len(rows)
    assert [batch.results[rows.index(k)].positions.tobytes() for k in rows if k != place] == expected
    if kind != "no molecule":
        assert set(batch.errors) == {place}
        words = {
            "same place": "same position",
            "all frozen": "all atoms are frozen",
            "hydrogen frozen": "bond is constrained",
        }
        assert words[kind] in batch.errors[place]
        np.testing.assert_allclose(ensemble.positions[place], bad, atol=1e-9)  # where it was


def test_values_that_rows_have_of_their_own(device):
    """References, force constants and targets give the energies that plans with these restraints give."""
    ensemble = rows_of([0, 1, 2, 3], device)
    ensemble.evaluate()
    for k, atoms in enumerate(MOLECULES):
        terms = [
            PositionalRestraint(1.0, reference=REFERENCES[k]), DistanceRestraint([[0, 10], [5, 20]], TARGETS[k], 1.0),
            TorsionRestraint([[0, 4, 8, 12]], ANGLES[k], 5.0), CenterRestraint(np.arange(20), 20.0, CENTERS[k]),
        ]  # fmt: skip
        away = ((STARTS[k] - REFERENCES[k]) ** 2).sum(axis=1)
        expected = [CONSTANTS[k] @ away, *(term.energies(atoms.moved(STARTS[k]))[0].sum() for term in terms[1:])]
        found = ensemble.terms(k)
        given = [float(getattr(found, term.name)[0]) for term in terms]
        np.testing.assert_allclose(given, expected, rtol=1e-4)
        np.testing.assert_allclose(ensemble.force_constants("restraint")[k], CONSTANTS[k], rtol=1e-6)
        np.testing.assert_allclose(ensemble.targets("torsion_restraint")[k], ANGLES[k], rtol=1e-6)
        np.testing.assert_allclose(ensemble.targets("center_restraint")[k], CENTERS[k], atol=1e-5)
    ensemble.force_constants("distance_restraint")[1] = 0.0
    with pytest.raises(InputError, match="row 1 was not evaluated"):
        ensemble.terms(1)
    assert float(ensemble.evaluate().terms(1).distance_restraint[0]) == 0
    np.testing.assert_array_equal(ensemble.targets("distance_restraint")[0], TARGETS[0].astype(ensemble.energy_dtype))
    ensemble.copy(0, 2)
    for values in (ensemble.targets("distance_restraint"), ensemble.force_constants("restraint")):
        np.testing.assert_array_equal(values[2], values[0])
    for column, value, words in (
        (ensemble.force_constants("restraint"), -1.0, "negative"),
        (ensemble.force_constants("restraint"), [1.0, 2.0], "shape"),
        (ensemble.targets("distance_restraint"), -1.0, "0 or more"), (ensemble.targets("torsion_restraint"), 9.0, "pi"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=words):
            column[1] = value
    for wrong in (
        lambda: ensemble.targets("restraint"), lambda: ensemble.references("distance_restraint"),
        lambda: ensemble.force_constants("none"),
    ):  # fmt: skip
        with pytest.raises(InputError, match="no restraint of the ensemble") as refused:
            wrong()
        assert "ensemble.targets('distance_restraint')" in str(refused.value)


def test_time_ends_rows_where_they_are(device):
    ensemble = rows_of([0, 1, 2, 3], device)
    batch = ensemble.minimize(tolerance=0.0, max_seconds=1e-6)
    assert set(batch.stopped_by) == {"time"}
    assert np.isfinite(batch.total).all()
    assert set(ensemble.minimize(tolerance=1.0, max_seconds=1000.0).stopped_by) == {"gradient"}


def test_wrong_options_are_named(device):
    ensemble = Ensemble(MOLECULES[1], 2, device=device)
    for options, words in (
        ({"tolerance": -1}, "tolerance"), ({"method": "best"}, "unknown method"), ({"speed": 3}, "unknown option"),
        ({"rounds": 0}, "rounds"), ({"frozen": [1]}, "by the ensemble"), ({"precision": "float32"}, "by the ensemble"),
        ({"constraints": "all"}, "constraints"), ({"method": "newton", "constraints": "hbonds"}, "not support"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=words):
            ensemble.minimize(**options)


def test_more_rows_than_have_room_at_a_time(device, monkeypatch):
    """They take each other's places, with the same bits; also where molecules make room, and are prepared anew."""
    expected = minimized([0, 1, 2, 3, 1, 1], device, tolerance=1.0)
    monkeypatch.setattr(driver, "MOST_ATOMS", 100)
    assert minimized([0, 1, 2, 3, 1, 1], device, tolerance=1.0) == expected
    monkeypatch.setattr(driver, "most_bytes", lambda device: 1)
    assert minimized([0, 1, 2, 3, 1, 1], device, tolerance=1.0) == expected
    monkeypatch.setattr(ensembles, "MOST_RECIPES", 1)
    assert minimized([0, 1, 2, 3, 1, 1], device, tolerance=1.0) == expected


def test_a_row_minimizes_as_its_molecule_does_alone(device):
    """By the launches of a plan, with the same number of steps and the same end but for rounding."""
    ensemble = Ensemble(PEPTIDE[:57], 2, device=device)
    ensemble.positions[1] = start = shaken(0.1, 3, PEPTIDE[:57])
    ensemble.frozen[1] = np.arange(9)
    found = ensemble.minimize(1, method="newton", tolerance=0.5)[0]
    alone = Minimizer(PEPTIDE[:57], frozen=np.arange(9), method="newton", tolerance=0.5, device=device).minimize(start)
    assert abs(found.iterations - alone.iterations) <= 1
    np.testing.assert_allclose(found.positions, alone.positions, atol=0.01)


def test_a_pickle_keeps_what_rows_have_of_their_own(device):
    ensemble = rows_of([0, 1, 2, 3], device)
    ensemble.frozen[:] = FROZEN
    again = pickle.loads(pickle.dumps(ensemble))
    np.testing.assert_array_equal(again.evaluate().energies, ensemble.evaluate().energies)
    options = {"tolerance": 1.0, "method": "newton"}
    for one, other in zip(ensemble.minimize(**options), again.minimize(**options), strict=True):
        np.testing.assert_array_equal(one.positions, other.positions)


def test_the_tolerance_is_of_the_atoms_that_move(device):
    """Few of them do; the root mean square over all atoms is half as large."""
    ensemble = Ensemble(LARGE, 8, device=device)
    ensemble.positions[:] = [shaken(0.1, seed, LARGE) for seed in range(8)]
    ensemble.frozen[:] = np.arange(14, 57)
    for method in ("newton", "lbfgs"):
        batch = ensemble.minimize(tolerance=0.5, method=method)
        assert set(batch.stopped_by) == {"gradient"}
        assert batch.rms_gradient.max() <= 0.505
        ensemble.positions[:] = [shaken(0.1, seed, LARGE) for seed in range(8)]


def test_no_row_waits_for_others_after_other_options(device, monkeypatch):
    """The molecule of a call before leaves its bytes to all rows of the next one."""
    seated: list[int] = []
    take = Seats.take
    monkeypatch.setattr(Seats, "take", lambda self, own: seated.append(len(own)) or take(self, own))
    ensemble = Ensemble([MOLECULES[1], PEPTIDE[:20]], [5, 3], device=device)
    for options in ({"max_iterations": 2}, {"max_iterations": 3}, {"tolerance": 0.5, "max_iterations": 1}):
        seated.clear()
        assert not ensemble.minimize(**options).errors
        assert sum(seated) == 8
        assert len(seated) <= 2  # all at once, or by the kernels of each molecule


@pytest.mark.parametrize("most", [0, 1, 3, 8, 13])
def test_iterations_that_are_started_are_those_that_are_counted(device, monkeypatch, most):
    started: list[int] = []
    iterate = Seats.iterate

    def counted(self, count):
        started.append(count if self.jobs else 0)
        iterate(self, count)

    monkeypatch.setattr(Seats, "iterate", counted)
    ensemble = Ensemble(MOLECULES[1], 3, device=device)
    batch = ensemble.minimize(max_iterations=most, tolerance=0.0)
    assert sum(started) == batch.evaluations[0] >= most + 1
    started.clear()
    result = Minimizer(MOLECULES[1], max_iterations=most, tolerance=0.0, device=device).minimize()
    assert sum(started) == result.evaluations


def test_rows_are_minimized_where_they_are(device):
    """No second plan is made, and little is kept on the device beside the rows."""
    ensemble = Ensemble(PEPTIDE, 40, device=device)
    kept = device.held_bytes
    ensemble.minimize(max_iterations=2)
    assert device.held_bytes - kept < ensembles.MOST_KEPT
    found = ensemble.energies
    np.testing.assert_array_equal(found, ensemble.evaluate().energies)
    assert ensemble.minimize([3], tolerance=0.5)[0].stopped_by == "gradient"


def test_a_large_store_of_the_minimizer_is_given_back(device, monkeypatch):
    """With all that holds it, such as launches that copied to it; the next call makes another one."""
    ensemble = Ensemble(PEPTIDE, 40, device=device)
    ensemble.minimize(max_iterations=1)
    kept = ensemble._driver.size
    gc.collect()
    held = device.held_bytes
    monkeypatch.setattr(ensembles, "MOST_KEPT", 0)
    ensemble.minimize(max_iterations=1)
    gc.collect()
    assert device.held_bytes < held - 0.9 * kept
    assert not ensemble.minimize(max_iterations=1).errors


def test_rows_without_gradients(device):
    """They get to the minima that rows with gradients get to."""
    plain, other = (Ensemble(MOLECULES[1], 2, gradient=of, device=device) for of in (True, False))
    for ensemble in (plain, other):
        ensemble.positions[0] = shaken(0.1, 3, MOLECULES[1])
    batches = [ensemble.minimize(tolerance=1.0) for ensemble in (plain, other)]
    np.testing.assert_array_equal(batches[0][0].positions, batches[1][0].positions)
    np.testing.assert_allclose(other.energies, plain.energies, rtol=1e-6)


def test_rows_are_where_they_were_after_an_interrupt(device, monkeypatch):
    ensemble = Ensemble(MOLECULES[1], 3, device=device)
    ensemble.positions[:] = places = [shaken(0.1, k, MOLECULES[1]) for k in range(3)]
    ensemble.evaluate()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(driver.Driver, "_look", interrupted)
        with pytest.raises(KeyboardInterrupt):
            ensemble.minimize()
    np.testing.assert_allclose(ensemble.positions[:], places, atol=1e-12)
    with pytest.raises(InputError, match="was not evaluated"):
        ensemble.energies  # noqa: B018
    assert not ensemble.minimize(tolerance=1.0).errors


def test_minimizing_a_row_enters_few_classes_and_files(device):
    """All of them must be read to follow the call, so each one more needs a reason."""
    rows = Ensemble(PEPTIDE[:30], 2, device=device)
    rows.minimize([0], max_iterations=2)
    rows.positions[0] = PEPTIDE[:30].positions
    classes, files, _ = entered(lambda: rows.minimize([0], max_iterations=2))
    assert len(classes) <= 12, sorted(each.__name__ for each in classes)
    assert len(files) <= 15, sorted(files)
