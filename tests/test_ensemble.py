"""Structures that live on a device: what a row gives depends on that row alone."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from test_minimize import PEPTIDE, shaken

from pele_ocl import Energy, Ensemble, InputError, PositionalRestraint, SolventModel, minimize_many
from pele_ocl.atoms import Impropers, Torsions
from pele_ocl.reference.energy import energy as reference_energy

SIZES = (88, 30, 57, 41)
MOLECULES = [PEPTIDE[:n] for n in SIZES]
DRIFT = """
#include "engine/rows.clh"

kernel void drift(ENSEMBLE, global const real *restrict velocities, const real dt) {
    const Structure own = structure_here(rows, steps, listed, bytes);
    const int i = get_global_id(0);
    if (i >= own.n_atoms) return;
    for (int axis = 0; axis < 3; ++axis) move_atom(&own, i, axis, dt * velocities[3 * (own.first_atom + i) + axis]);
}
"""


def bits(ensemble: Ensemble, k: int) -> tuple[bytes, ...]:
    """All that row k gives, as it is."""
    arrays = ensemble.terms(k).values, ensemble.gradients[k], ensemble.born_radii[k]
    return tuple(np.asarray(array).tobytes() for array in arrays)


@pytest.mark.parametrize(
    "options",
    [{}, {"fixed_radii": True}, {"model": SolventModel(gb="gbn2")}, {"model": SolventModel(gb="none")},
     {"cutoff": 9.0}, {"terms": [PositionalRestraint(5.0)]}, {"variant": "squares"}, {"variant": "rows"}],
    ids=["plain", "fixed radii", "gbn2", "vacuum", "cutoff", "restraint", "squares", "rows"],
)  # fmt: skip
def test_rows_are_what_plans_give(device, options, tolerance_of_rows):
    molecules = [atoms.with_radii("mbondi3") if "gbn2" in repr(options) else atoms for atoms in MOLECULES]
    ensemble = Ensemble(molecules, device=device, **options)
    places = [shaken(0.02, k, atoms) for k, atoms in enumerate(molecules)]
    ensemble.positions[:] = places
    ensemble.evaluate()
    assert not ensemble.errors
    for k, (atoms, here) in enumerate(zip(molecules, places, strict=True)):
        expected = Energy(atoms, device=device, born="pairs", **options).evaluate(here)
        np.testing.assert_allclose(ensemble.positions[k], here, atol=1e-6)
        np.testing.assert_allclose(ensemble.energies[k], expected.total, rtol=tolerance_of_rows)
        scale = np.abs(expected.gradient).max()
        np.testing.assert_allclose(ensemble.gradients[k], expected.gradient, atol=tolerance_of_rows * scale)
        np.testing.assert_allclose(ensemble.born_radii[k], expected.born_radii, rtol=tolerance_of_rows)
        for name in expected.terms.names:
            found = getattr(ensemble.terms(k), name)
            np.testing.assert_allclose(found, getattr(expected, name), rtol=tolerance_of_rows, atol=1e-5 * scale)


@pytest.fixture
def tolerance_of_rows() -> float:
    return 2e-5  # two builds of one kernel may round in other ways


def test_a_row_has_the_same_bits_in_any_order_and_company(device):
    molecules = [*MOLECULES, PEPTIDE]
    places = [shaken(0.05, k, atoms) for k, atoms in enumerate(molecules)]

    def evaluated(order: list[int]) -> list[tuple[bytes, ...]]:
        ensemble = Ensemble([molecules[k] for k in order], device=device)
        ensemble.positions[:] = [places[k] for k in order]
        ensemble.evaluate()
        energies = ensemble.energies
        return [(*bits(ensemble, place), energies[place].tobytes()) for place in range(len(order))]

    alone = [evaluated([k])[0] for k in range(len(molecules))]
    assert evaluated([0, 1, 2, 3, 4]) == alone
    assert evaluated([4, 3, 2, 1, 0]) == alone[::-1]
    assert evaluated([2, 0, 4, 1, 3] * 20) == [alone[k] for k in [2, 0, 4, 1, 3] * 20]
    ensemble = Ensemble(molecules, device=device)
    ensemble.positions[:] = places
    ensemble.evaluate([3])
    ensemble.evaluate([0, 4])
    assert [bits(ensemble, k) for k in (0, 3, 4)] == [alone[k][:-1] for k in (0, 3, 4)]
    with pytest.raises(InputError, match="row 1 was not evaluated"):
        ensemble.gradients[1]


def test_molecules_with_other_terms_share_launches(device):
    """Numbers of terms are arguments of kernels, and so data of a row."""
    assert PEPTIDE.bonded is not None
    fewer = replace(PEPTIDE, bonded=replace(PEPTIDE.bonded, torsions=Torsions(), impropers=Impropers()))
    together = Ensemble([PEPTIDE, fewer, PEPTIDE], device=device).evaluate()
    assert len(together.state.groups) == 1
    for k, atoms in enumerate((PEPTIDE, fewer)):
        alone = Ensemble([atoms], device=device).evaluate()
        assert bits(together, k)[1:] == bits(alone, 0)[1:]
        found, expected = together.terms(k), alone.terms(0)
        assert [getattr(found, name) for name in expected.names] == [getattr(expected, name) for name in expected.names]
        assert together.energies[k] == alone.energies[0]


@pytest.mark.parametrize("place", [0, 2, 4], ids=["first", "middle", "last"])
@pytest.mark.parametrize("kind", ["same place", "not a number", "far", "no molecule"])
def test_a_bad_row_is_a_record_and_nothing_else(device, place, kind):
    places = [shaken(0.05, seed) for seed in range(4)]
    expected = Ensemble(PEPTIDE, 4, device=device)
    expected.positions[:] = places
    good = [bits(expected.evaluate(), k) for k in range(4)]
    bad = np.array(places[0])
    if kind == "same place":
        bad[:] = 0
    elif kind == "not a number":
        bad[5, 1] = np.nan
    elif kind == "far":
        bad[5] = 1e7
    molecules = [PEPTIDE] * 5
    if kind == "no molecule":
        molecules[place] = PEPTIDE.moved(np.zeros((len(PEPTIDE), 3)))
    ensemble = Ensemble(molecules, device=device, errors="record")
    ensemble.positions[:] = [*places[:place], bad, *places[place:]]
    ensemble.evaluate()
    assert list(ensemble.errors) == [place]
    assert np.flatnonzero(np.isnan(ensemble.energies)).tolist() == [place]
    assert [bits(ensemble, k) for k in range(5) if k != place] == good
    if kind != "no molecule":
        ensemble.copy((place + 1) % 5, place)
        assert not ensemble.errors
        assert bits(ensemble, place) == bits(ensemble, (place + 1) % 5)


def test_copies_of_rows(device):
    ensemble = Ensemble([PEPTIDE, MOLECULES[1]], [3, 2], device=device)
    places = [shaken(0.05, k) for k in range(3)]
    ensemble.positions[:3] = places
    before = [bits(ensemble.evaluate(), k) for k in range(5)]
    ensemble.copy([0, 1, 2], [1, 2, 0])  # around
    assert [bits(ensemble, k) for k in range(5)] == [before[k] for k in (2, 0, 1, 3, 4)]
    np.testing.assert_allclose(ensemble.positions[1], places[0], atol=1e-6)
    for sources, targets, why in (([0], [3], "molecules"), ([0, 1], [2, 2], "once"), ([0, 1], [2], "2 sources")):
        with pytest.raises(InputError, match=why):
            ensemble.copy(sources, targets)


def test_a_kernel_of_a_driver_gets_arguments_by_name(device):
    ensemble = Ensemble([PEPTIDE, MOLECULES[1]], device=device)
    drift, velocities = ensemble.kernel(DRIFT, "drift"), ensemble.array("atom", 3)
    velocities.write([1.0, 0.0, -2.0])
    velocities.write(0.0, row=0)
    ensemble.evaluate()
    drift(velocities=velocities, dt=0.5, moves=True)
    np.testing.assert_allclose(ensemble.positions[0], PEPTIDE.positions, atol=1e-6)
    np.testing.assert_allclose(
        ensemble.positions[1] - MOLECULES[1].positions, np.tile([0.5, 0, -1], (30, 1)), atol=1e-6
    )
    with pytest.raises(InputError, match="row 0 was not evaluated after its last change"):
        _ = ensemble.energies
    for wrong, why in (
        ({"velocities": velocities}, "lacks dt"), ({"velocities": velocities, "dt": 1, "t": 2}, "has no t"),
        ({"velocities": 1.0, "dt": 1}, "is an array"), ({"velocities": velocities, "dt": velocities}, "is a real"),
        ({"velocities": velocities, "dt": "long"}, "not 'long'"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=why):
            drift(**wrong)
    with pytest.raises(InputError, match="does not begin with ENSEMBLE"):
        ensemble.kernel('#include "engine/rows.clh"\nkernel void none(global real *x) { x[0] = 1; }', "none")


def test_minimized_rows_keep_what_is_frozen_and_their_own_references(device):
    ensemble = Ensemble(PEPTIDE, 3, terms=[PositionalRestraint(10.0)], device=device)
    places = [shaken(0.05, seed) for seed in range(3)]
    ensemble.positions[:] = places
    ensemble.references("restraint")[2] = PEPTIDE.positions + 1.0
    ensemble.frozen[1] = np.arange(20)
    batch = ensemble.minimize(tolerance=0.5)
    assert not batch.errors
    assert all(result.converged for result in batch)
    moved = [np.abs(here - there).max(axis=1) for here, there in zip(ensemble.positions[:], places, strict=True)]
    assert moved[0].max() < 0.5
    assert moved[1][:20].max() < 1e-12
    assert moved[1][20:].min() > 0
    np.testing.assert_allclose(ensemble.positions[2].mean(axis=0) - PEPTIDE.positions.mean(axis=0), 1.0, atol=0.05)
    assert ensemble.evaluate().terms().restraint.max() < 20
    alone = minimize_many(
        [PEPTIDE.moved(places[0])], tolerance=0.5, terms=[PositionalRestraint(10.0, reference=PEPTIDE.positions)],
        device=device,
    )  # fmt: skip
    np.testing.assert_allclose(batch[0].energy_after.total, alone[0].energy_after.total, atol=0.05)


def test_an_ensemble_pickles_by_its_description(device):
    ensemble = Ensemble([PEPTIDE, MOLECULES[1]], [2, 1], device=device)
    ensemble.positions[1] = shaken(0.05)
    ensemble.frozen[0] = [1, 2]
    again = pickle.loads(pickle.dumps(ensemble))
    assert again.device is ensemble.device
    np.testing.assert_allclose(again.evaluate().energies, ensemble.evaluate().energies, rtol=1e-6)
    np.testing.assert_array_equal(again.frozen[0], ensemble.frozen[0])


def test_a_pickle_keeps_failed_rows_and_references(device):
    """A row that failed comes back failed, not as its molecule; restraints hold to the references that rows have."""
    ensemble = Ensemble(PEPTIDE, 3, terms=[PositionalRestraint(1.0)], device=device)
    nowhere = PEPTIDE.positions.copy()
    nowhere[3] = np.nan
    ensemble.positions[1] = nowhere
    for row in (1, 2):
        ensemble.references("restraint")[row] = PEPTIDE.positions + 0.5
    again = pickle.loads(pickle.dumps(ensemble))
    assert again.errors == ensemble.errors
    assert list(again.errors) == [1]
    np.testing.assert_array_equal(again.evaluate().energies, ensemble.evaluate().energies)
    for each in (ensemble, again):
        each.positions[1] = PEPTIDE.positions
        np.testing.assert_allclose(each.evaluate().terms().restraint, [0, 72, 72], rtol=1e-4)


@pytest.mark.parametrize("velocity", [np.inf, np.nan])
def test_a_row_that_a_driver_moves_to_nowhere_is_a_record(device, velocity):
    ensemble = Ensemble(PEPTIDE, 2, device=device)
    drift, velocities = ensemble.kernel(DRIFT, "drift"), ensemble.array("atom", 3)
    values = np.zeros((2 * len(PEPTIDE), 3))
    values[-1] = velocity
    velocities.write(values)
    drift(velocities=velocities, dt=1.0, moves=True)
    ensemble.evaluate()
    assert np.isfinite(ensemble.energies).tolist() == [True, False]
    assert "finite" in ensemble.errors[1]


def test_the_name_of_a_file_is_no_text_of_a_kernel(device):
    with pytest.raises(InputError, match="given as a Path"):
        Ensemble(PEPTIDE, device=device).kernel("drift.cl", "drift")


def test_drivers_are_launched_in_parts(device, monkeypatch):
    """All rows are moved, even more than a launch of CUDA takes in its second dimension."""
    monkeypatch.setattr("pele_ocl.ensemble.state.MOST_ROWS", 2)
    ensemble = Ensemble(MOLECULES[1], 5, device=device)
    drift, velocities = ensemble.kernel(DRIFT, "drift"), ensemble.array("atom", 3)
    velocities.write(1.0)
    drift([0, 1, 2, 4], velocities=velocities, dt=0.5, moves=True)
    moved = [float(np.abs(x - MOLECULES[1].positions).max()) for x in ensemble.positions[:]]
    np.testing.assert_allclose(moved, [0.5, 0.5, 0.5, 0, 0.5], atol=1e-6)
    energies = ensemble.evaluate().energies
    np.testing.assert_allclose(energies, energies[0], rtol=1e-5)


def test_arguments_of_other_types_are_input_errors(device):
    ensemble = Ensemble(PEPTIDE, np.int64(2), device=device)
    array = ensemble.array("row", 2)
    ensemble.frozen[0] = [3]
    ensemble.frozen[0] = []
    assert not ensemble.frozen[0].any()
    array.write([1, 2], row=-1)
    assert array.read().tolist() == [[0, 0], [1, 2]]
    for wrong in (
        lambda: ensemble.evaluate(True), lambda: ensemble.evaluate([[0, 1]]),
        lambda: ensemble.positions.__setitem__(slice(None), 5), lambda: Ensemble(PEPTIDE, 2.5, device=device),
        lambda: Ensemble(PEPTIDE, None, device=device), lambda: Ensemble(PEPTIDE, True, device=device),
        lambda: array.read(2), lambda: array.write(1, row=-3), lambda: array.write(np.zeros((9, 9))),
        lambda: ensemble.array("atom", -1), lambda: ensemble.array("atom", "two"),
        lambda: ensemble.array("atom", dtype="nope"),
    ):  # fmt: skip
        with pytest.raises(InputError):
            wrong()


def test_wrong_rows_are_named(device):
    ensemble = Ensemble(PEPTIDE, 2, device=device)
    with pytest.raises(InputError, match="there are 2 rows"):
        ensemble.evaluate([2])
    with pytest.raises(InputError, match=r"shape \(5, 3\)"):
        ensemble.positions[0] = np.zeros((5, 3))
    with pytest.raises(InputError, match="cannot be written"):
        ensemble.gradients[0] = np.zeros((96, 3))
    with pytest.raises(InputError, match="no restraint"):
        ensemble.references("restraint")
    with pytest.raises(InputError, match="an Atoms or a list of them"):
        Ensemble([], device=device)


def test_no_row_is_written_as_any_other(device):
    """An empty list of rows, as masks make it, changes nothing."""
    ensemble = Ensemble(PEPTIDE, 2, device=device)
    energies = ensemble.evaluate().energies
    none = np.zeros(2, bool)
    ensemble.positions[none] = np.zeros((0, len(PEPTIDE), 3))
    ensemble.positions[[]] = []
    ensemble.frozen[none] = []
    np.testing.assert_array_equal(ensemble.energies, energies)
    assert len(ensemble.minimize([])) == 0


def test_memory_of_a_cpu_is_mapped_without_a_copy(device, monkeypatch):
    """All that rows have, for one molecule and for several; what is written moves rows."""
    if device.kind != "CPU":
        with pytest.raises(InputError, match="separate memory"), Ensemble(PEPTIDE, device=device).mapped():
            pass
        return
    ensemble = Ensemble(PEPTIDE, 3, device=device)
    ensemble.positions[:] = [shaken(0.05, seed) for seed in range(3)]
    ensemble.positions[1] = ensemble.positions[1] + 1e5  # computed about its own middle
    ensemble.evaluate()
    positions, gradients, radii = ensemble.positions[:], ensemble.gradients[:], ensemble.born_radii[:]
    energies = ensemble.energies
    with ensemble.mapped() as rows:
        np.testing.assert_allclose(rows.positions + rows.origins[:, None], positions, atol=1e-9)
        np.testing.assert_array_equal(rows.gradients, gradients)
        np.testing.assert_array_equal(rows.born_radii, radii)
        np.testing.assert_array_equal(rows.energies, energies)
        assert np.shares_memory(np.from_dlpack(rows.gradients), rows.gradients)
        address = rows.positions.ctypes.data
        for asked in (ensemble.evaluate, lambda: ensemble.positions[0], ensemble.minimize, lambda: ensemble.copy(0, 1)):
            with pytest.raises(InputError, match="is mapped"):
                asked()
    with ensemble.mapped(moves=True) as rows:
        assert rows.positions.ctypes.data == address
        rows.positions[2, 0] += 0.25
    np.testing.assert_allclose(ensemble.positions[2][0], positions[2][0] + 0.25, atol=1e-9)
    np.testing.assert_array_equal(ensemble.positions[:2], positions[:2])
    with pytest.raises(InputError, match="not evaluated"):
        _ = ensemble.energies
    assert ensemble.evaluate().energies[2] != energies[2]
    assert (ensemble.energies[:2] == energies[:2]).all()
    flat = PEPTIDE.moved(np.zeros((96, 3)))
    several = Ensemble([MOLECULES[1], flat, PEPTIDE], device=device, errors="record", gradient=False)
    with several.evaluate().mapped() as rows:
        assert [None if array is None else array.shape for array in rows.positions] == [(30, 3), None, (96, 3)]
        assert rows.gradients is None
        np.testing.assert_allclose(rows.positions[2] + rows.origins[2], PEPTIDE.positions, atol=1e-9)
    monkeypatch.setattr("pele_ocl.opencl.device.Device.has_float64", False)
    with pytest.raises(InputError, match="no float64"), Ensemble(PEPTIDE, device=device).mapped():
        pass


def test_a_row_with_results_that_are_no_numbers_has_no_energy(device):
    """If the kernel finds such results, a sum that is a number is no energy."""
    ensemble = Ensemble(PEPTIDE, 3, device=device).evaluate()
    ensemble.state.queue.write(ensemble.state.numbers_on_device, np.array([1, 0, 1], np.int32))
    assert np.flatnonzero(np.isnan(ensemble.energies)).tolist() == [1]
    assert list(ensemble.errors) == [1]


@pytest.mark.parametrize("variant", ["auto", "rows"])
def test_radii_are_kept_where_one_asks(device, variant):
    """The energy and gradient of the reference at the radii of the evaluation before; a copy brings its radii along."""
    device.require_precision("float64")
    atoms = PEPTIDE
    ensemble = Ensemble(atoms, 2, fixed_radii=True, precision="float64", variant=variant, device=device)
    radii = ensemble.evaluate().born_radii[0]
    moved = atoms.positions + np.random.default_rng(3).normal(0, 0.05, atoms.positions.shape)
    ensemble.positions[0] = moved
    ensemble.evaluate([0], keep_radii=True)
    expected = reference_energy(atoms.moved(moved), fixed_radii=radii)
    assert ensemble.energies_of([0]) == pytest.approx([expected.total], abs=1e-6)
    np.testing.assert_array_equal(ensemble.born_radii[0], radii)
    np.testing.assert_allclose(ensemble.gradients[0], expected.gradient, atol=1e-5)
    anew = ensemble.evaluate([0]).energies_of([0])
    assert abs(anew - expected.total) > 0.01
    ensemble.copy(1, 0)
    ensemble.positions[0] = moved
    assert ensemble.evaluate([0], keep_radii=True).energies_of([0]) == pytest.approx([expected.total], abs=1e-6)
    with pytest.raises(InputError, match="fixed_radii"):
        Ensemble(atoms, device=device).evaluate(keep_radii=True)
    with pytest.raises(InputError, match="never evaluated"):
        Ensemble(atoms, fixed_radii=True, device=device).evaluate(keep_radii=True)


def test_restraints_of_rows_count_at_radii_that_are_kept_too(device):
    """One buffer of references for both ways of evaluating."""
    ensemble = Ensemble(PEPTIDE, terms=[PositionalRestraint(2.0, atoms=[0])], fixed_radii=True, device=device)
    before = float(ensemble.evaluate().energies[0])
    away = PEPTIDE.positions.copy()
    away[0, 0] += 1.5
    ensemble.references("restraint")[0] = away
    for keeps in (False, True):
        assert ensemble.evaluate(keep_radii=keeps).energies - before == pytest.approx([4.5], abs=1e-3)


@pytest.mark.parametrize("options", [{}, {"variant": "squares"}, {"model": SolventModel(gb="none")}])
def test_rows_scale_their_parameters(device, options):
    """Scaled rows are what molecules with scaled parameters are; others have the bits of an ensemble without scales."""
    atoms, rng = PEPTIDE[:41], np.random.default_rng(3)
    charges, wells, torsions = (rng.uniform(0.2, 1.3, len(atoms)) for _ in range(3))
    ensemble = Ensemble([atoms, MOLECULES[0]], [2, 1], scales=True, device=device, **options)
    ensemble.scales["charges"][1] = charges
    ensemble.scales["lennard_jones"][1] = wells
    ensemble.scales["torsions"][1] = torsions
    bonded = atoms.bonded
    quarter, table = bonded.one_four, bonded.torsions
    (i, j), by = quarter.atoms.T, quarter.parameters.copy()
    by[:, 0] *= charges[i] * charges[j]
    by[:, 2] *= np.sqrt(wells[i] * wells[j])
    heights = table.parameters.copy()
    heights[:, 0] *= np.sqrt(torsions[table.atoms[:, 0]] * torsions[table.atoms[:, 3]])
    scaled = replace(
        atoms, charges=atoms.charges * charges, lj_epsilon=atoms.lj_epsilon * wells,
        bonded=replace(
            bonded, one_four=replace(quarter, parameters=by), torsions=Torsions(table.atoms, heights)
        ),
    )  # fmt: skip
    expected = Energy(scaled, device=device, born="pairs", **options).evaluate()
    ensemble.evaluate()
    np.testing.assert_allclose(ensemble.terms(1).values[0], expected.terms.values, rtol=2e-5)
    scale = np.abs(expected.gradient).max()
    np.testing.assert_allclose(ensemble.gradients[1], expected.gradient, atol=2e-5 * scale)
    plain = Ensemble([atoms, MOLECULES[0]], device=device, **options).evaluate()
    assert bits(ensemble, 0) == bits(plain, 0)
    ensemble.copy(1, 0)
    np.testing.assert_array_equal(ensemble.scales["charges"][0], charges)
    again = pickle.loads(pickle.dumps(ensemble)).evaluate()
    assert bits(again, 0) == bits(ensemble, 1)
    ensemble.scales["charges"][:] = ensemble.scales["lennard_jones"][:] = ensemble.scales["torsions"][:] = 1.0
    assert bits(ensemble.evaluate(), 1) == bits(plain, 0)


def test_scales_that_cannot_be(device):
    with pytest.raises(InputError, match="rows have no scales; create the ensemble with `scales=True`"):
        _ = Ensemble(PEPTIDE[:30], device=device).scales
    ensemble = Ensemble(PEPTIDE[:30], scales=True, device=device)
    for wrong in (-0.5, [1.0, 2.0], np.nan):
        with pytest.raises(InputError, match=r"scales of row 0 (have shape|must be finite numbers)"):
            ensemble.scales["charges"][0] = wrong
    with pytest.raises(InputError, match="rows have no array 'b of a'; there are: none"):
        ensemble.values("a", "b")


def test_large_rows_pass_by_memory_that_the_device_reads(device, monkeypatch):
    """Many rows are encoded, sent, read and made float64 in parts, with the bits of a few."""
    places = PEPTIDE.positions + np.random.default_rng(0).normal(0, 0.02, (5, *PEPTIDE.positions.shape))
    molecules = [PEPTIDE] * 3 + [PEPTIDE[:30]] + [PEPTIDE] * 2
    own = [*places[:3], places[3][:30], *places[3:]]

    def results() -> list[np.ndarray]:
        found = []
        for ensemble, given in (
            (Ensemble(PEPTIDE, 5, device=device), places),
            (Ensemble(molecules, device=device), own),
        ):
            ensemble.positions[:] = given
            ensemble.evaluate()
            for column in (ensemble.positions, ensemble.gradients, ensemble.born_radii):
                found += list(column[:])
        return found

    expected = results()
    monkeypatch.setattr("pele_ocl.opencl.queue.PINNED", 1)
    monkeypatch.setattr("pele_ocl.common.threads.LEAST", 1)
    monkeypatch.setattr("pele_ocl.common.threads.PART", 300)
    for one, other in zip(results(), expected, strict=True):
        np.testing.assert_array_equal(one, other)
    ensemble = Ensemble(PEPTIDE, 2, device=device)
    ensemble.positions[:] = places[:2].astype(np.float32)  # numbers of another type
    np.testing.assert_allclose(ensemble.positions[:], places[:2], atol=1e-5)
    with pytest.raises(InputError, match="have shape"):
        ensemble.positions[:] = places[:2, :5]


def test_columns_have_what_arrays_have(device):
    ensemble = Ensemble([PEPTIDE] * 2, gradient=True, device=device).evaluate()
    n = len(PEPTIDE)
    for column, of_row in (
        (ensemble.positions, (n, 3)), (ensemble.gradients, (n, 3)), (ensemble.born_radii, (n,)),
        (ensemble.frozen, (n,)),
    ):  # fmt: skip
        whole = column[:]
        assert column.shape == np.shape(column) == whole.shape == (2, *of_row)
        assert (column.ndim, column.dtype, len(column)) == (whole.ndim, whole.dtype, 2)
        assert [array.tobytes() for array in column] == [array.tobytes() for array in whole]
        assert np.asarray(column).tobytes() == whole.tobytes()
    velocities = ensemble.array("atom", 3)
    velocities.write(2.0)
    assert len(velocities) == 2 * n
    assert np.asarray(velocities).tobytes() == velocities.read().tobytes()


def test_columns_of_several_molecules_have_no_single_shape(device):
    column = Ensemble(MOLECULES[:2], device=device).positions
    assert [len(array) for array in column] == [88, 30]
    assert column.dtype == np.float64
    for wrong in (lambda: column.shape, lambda: np.asarray(column)):
        with pytest.raises(InputError, match=r"shapes \(88, 3\) and \(30, 3\)"):
            wrong()
