"""Minimization: known minima, stopping, batches, clashes, and OpenMM's minimizer."""

from __future__ import annotations

import gc
from dataclasses import replace

import numpy as np
import pytest

import pele_ocl
from pele_ocl import Atoms, Energy, InputError, Minimizer, PositionalRestraint, SolventModel, minimize_many
from pele_ocl.atoms import Angles, Bonded, Bonds
from pele_ocl.common.installation import shipped
from pele_ocl.minimize import minimize
from pele_ocl.minimize.options import Stopping
from pele_ocl.opencl import Device, Queue
from pele_ocl.opencl.interface import StepState, Stop
from pele_ocl.plan import plan as plans
from pele_ocl.units import KJ_PER_MOL_NM

METHODS = ("lbfgs", "steepest", "fire")
VACUUM = SolventModel(gb="none")
PEPTIDE = pele_ocl.read(shipped("data") / "structures" / "hexapeptide.pdb")
KEYS = (
    "name energy_before energy_after rms_gradient largest_gradient iterations evaluations stopped_by restored "
    "rms_displacement seconds"
)


def shaken(noise: float, seed: int = 1, atoms: Atoms = PEPTIDE) -> np.ndarray:
    return atoms.positions + noise * np.random.default_rng(seed).normal(size=atoms.positions.shape)


def three_atoms(positions: list[list[float]]) -> Atoms:
    """Two bonds of 1.0 and 1.3 A and an angle of 104 degrees, and nothing else."""
    bonded = Bonded(
        bonds=Bonds(atoms=[[0, 1], [1, 2]], parameters=[[400.0, 1.0], [300.0, 1.3]]),
        angles=Angles(atoms=[[0, 1, 2]], parameters=[[50.0, np.radians(104.0)]]),
        excluded=np.array([[0, 1], [1, 2], [0, 2]]),
    )
    return Atoms(positions, charges=np.zeros(3), lj_sigma=np.ones(3), lj_epsilon=np.zeros(3), bonded=bonded)


def rms(gradient: np.ndarray) -> float:
    """Return the root mean square of the atoms' gradients."""
    return float(np.sqrt((gradient**2).sum(axis=1).mean()))


@pytest.mark.parametrize("method", METHODS)
def test_bonds_and_angles_get_their_best_values(device, precision, method):
    tolerance = 1e-6 if precision == "float64" else 1e-3
    start = three_atoms([[1.4, 0.2, 0], [0, 0, 0.1], [0.3, 1.1, 0]])
    result = minimize(start, model=VACUUM, method=method, tolerance=tolerance, precision=precision, device=device)
    a, b = result.positions[0] - result.positions[1], result.positions[2] - result.positions[1]
    angle = np.degrees(np.arccos(a @ b / np.linalg.norm(a) / np.linalg.norm(b)))
    assert result.stopped_by == "gradient"
    assert result.converged
    assert np.linalg.norm(a) == pytest.approx(1.0, abs=tolerance / 100)
    assert np.linalg.norm(b) == pytest.approx(1.3, abs=tolerance / 100)
    assert angle == pytest.approx(104.0, abs=tolerance)
    assert result.energy_before.total > 50 > 1e-8 > result.energy_after.total


@pytest.mark.parametrize("method", METHODS)
def test_a_peptide_reaches_the_tolerance(device, precision, method):
    """Gradient and energies at the end, computed anew in float64."""
    start = shaken(0.1)
    result = Minimizer(PEPTIDE, method=method, tolerance=0.2, precision=precision, device=device).minimize(start)
    exact = Energy(PEPTIDE, precision="float64", device=device)
    before, after = exact.evaluate(start), exact.evaluate(result.positions)
    assert result.stopped_by == "gradient"
    assert rms(after.gradient) <= 0.2 * (1 + 1e-3)
    assert result.rms_gradient == pytest.approx(rms(after.gradient), rel=1e-3)
    assert result.largest_gradient == pytest.approx(np.linalg.norm(after.gradient, axis=1).max(), rel=1e-2)
    assert result.energy_before.total == pytest.approx(before.total, rel=1e-5)
    assert result.energy_after.total == pytest.approx(after.total, rel=1e-5)
    assert result.energy_after.bond == pytest.approx(after.terms.bond, rel=1e-4)
    assert after.total < before.total - 300
    moved = result.positions - start
    assert result.rms_displacement == pytest.approx(np.sqrt((moved**2).sum(axis=1).mean()))
    assert result.evaluations > result.iterations > 5
    again = Minimizer(result.atoms, tolerance=0.21, device=device).minimize()
    assert (again.iterations, again.evaluations, again.stopped_by) == (0, 1, "gradient")


@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 0.01), ("float64", 1e-6)])
def test_the_last_digits(device, precision, tolerance):
    if precision == "float64" and not device.has_float64:
        pytest.skip(f"{device} has no float64")
    result = minimize(PEPTIDE, tolerance=tolerance, precision=precision, device=device)
    assert result.stopped_by == "gradient"
    assert result.rms_gradient <= 1.01 * tolerance


def test_devices_without_float64(device, monkeypatch):
    """Fixed-point positions, and all sums in float32."""
    monkeypatch.setattr(Device, "has_float64", False)
    result = Minimizer(PEPTIDE, tolerance=0.05, device=device).minimize(shaken(0.1))
    assert result.stopped_by == "gradient"
    assert result.rms_gradient <= 0.0505


def test_out_of_reach_of_fixed_point_positions(device, monkeypatch):
    """A structure is computed about its own middle there, and ends where it began."""
    monkeypatch.setattr(Device, "has_float64", False)
    start = shaken(0.1) + np.array([700.0, -300.0, 1000.0])
    result = Minimizer(PEPTIDE, tolerance=5, device=device).minimize(start)
    assert result.stopped_by == "gradient"
    assert 0.01 < result.rms_displacement < 2
    assert np.abs(result.positions - start).max() < 5


def test_what_ends_it(device):
    def ended_by(**options: float) -> pele_ocl.MinimizeResult:
        return Minimizer(PEPTIDE, device=device, **{"tolerance": 0.0, **options}).minimize(shaken(0.1))

    result = ended_by(max_iterations=7)
    assert (result.stopped_by, result.iterations, result.converged) == ("iterations", 7, False)
    result = ended_by(max_gradient=20.0)
    assert result.stopped_by == "largest"
    assert result.largest_gradient <= 20.1
    assert ended_by(energy_tolerance=0.5).stopped_by == "energy"
    slow = Minimizer(PEPTIDE, tolerance=0.0, energy_tolerance=0.01, device=device).minimize()
    assert slow.stopped_by == "energy"
    assert slow.evaluations > 30  # its first steps are short and change little
    result = ended_by(max_seconds=1e-6)
    assert (result.stopped_by, result.converged) == ("time", False)
    assert np.isfinite(result.energy_after.total)
    assert ended_by(max_seconds=1e-6, rounds=50).iterations == result.iterations  # no time for another round
    result = ended_by()
    assert result.stopped_by == "stuck"
    assert result.rms_gradient < 0.01


def test_a_batch_has_the_bits_of_its_members(device, monkeypatch):
    """Also where structures wait for others to be done, and move between seats; and in every run."""
    starts = np.stack([shaken(noise, seed) for seed, noise in enumerate((0.02, 0.1, 0.0, 0.3, 0.05, 0.15, 0.01))])
    alone = [Minimizer(PEPTIDE, tolerance=0.5, device=device).minimize(start) for start in starts]
    shares, watched = [], []
    together = Minimizer(PEPTIDE, tolerance=0.5, device=device)
    batch = together.minimize_batch(starts, progress=shares.append, watch=lambda *seen: watched.append(seen))
    monkeypatch.setattr(plans, "CHUNK_ATOMS", 3 * len(PEPTIDE))
    few = Minimizer(PEPTIDE, tolerance=0.5, device=device).minimize_batch(starts)
    for one, *others in zip(alone, batch, together.minimize_batch(starts), few, strict=True):
        for other in others:
            np.testing.assert_array_equal(other.positions, one.positions)
            assert (other.iterations, other.evaluations) == (one.iterations, one.evaluations)
    assert len({one.iterations for one in alone}) > 3
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert watched[-1] == (7, 7, 0.0)
    assert watched[0][2] > 0.5


@pytest.mark.parametrize("method", ["lbfgs", "steepest"])
def test_a_joined_launch_has_the_same_bits(device, precision, method, monkeypatch):
    """On NVIDIA's GPUs, where one small molecule has its sums and its step in one launch; also a second time."""
    options = dict(method=method, tolerance=0.1, max_iterations=41, precision=precision, device=device)
    plan = Minimizer(PEPTIDE, **options)
    if not plan._prepared(plan.energy, True)[0].method.cleared:
        pytest.skip("not one of NVIDIA's")
    found = [plan.minimize(shaken(0.1)).positions for _ in range(2)]
    monkeypatch.setattr("pele_ocl.minimize.lbfgs.Lbfgs.may_join", lambda *_: False)
    apart = Minimizer(PEPTIDE, **options).minimize(shaken(0.1)).positions
    for positions in found:
        np.testing.assert_array_equal(positions, apart)


def test_nothing_runs_on_behind_an_error(device, monkeypatch):
    """Devices do an iteration while the host looks; others may have its buffers once that is done."""

    def interrupted(*_: object) -> None:
        waited.clear()
        raise KeyboardInterrupt

    waited, finish = [], Queue.finish
    monkeypatch.setattr(Queue, "finish", lambda queue: waited.append(queue) or finish(queue))
    with pytest.raises(KeyboardInterrupt):
        Minimizer(PEPTIDE, tolerance=0.5, device=device).minimize_batch(shaken(0.1)[np.newaxis], watch=interrupted)
    assert len(waited) == 1


@pytest.mark.parametrize("count", [12, pytest.param(200, marks=pytest.mark.slow)])
def test_clashes_end(device, precision, count):
    """Atoms 0.1 A apart, and molecules that are no molecules any more."""
    rng, starts = np.random.default_rng(0), []
    for k in range(count):
        start = shaken((0.1, 0.5, 1.0, 2.0)[k % 4], k)
        for _ in range(1 + k % 3):
            i, j = rng.choice(len(PEPTIDE), 2, replace=False)
            start[i] = start[j] + [0.06, 0.08, 0.0]
        starts.append(start)
    plan = Minimizer(PEPTIDE, tolerance=1.0, precision=precision, device=device)
    batch = plan.minimize_batch(np.stack(starts), errors="record")
    assert len(batch.errors) <= count // 50  # two atoms that attract each other at one place
    assert all("at the same position" in reason for reason in batch.errors.values())
    results = [result for _, result in batch.good]
    assert {result.stopped_by for result in results} == {"gradient"}
    assert max(result.energy_after.total for result in results) < -100  # some are tangled for good
    assert min(result.energy_before.total for result in results) > 1e3


def test_crossed_rings_end(device, precision, tmp_path):
    """One phenylalanine's ring runs through another's, which no step can take apart."""
    names, residues = PEPTIDE.labels.names, PEPTIDE.labels.residue_names
    ring = PEPTIDE.positions[np.isin(names, ["CG", "CD1", "CE1", "CZ", "CE2", "CD2"]) & (residues == "PHE")]
    centre = ring.mean(axis=0)
    across = (ring[0] - centre) / np.linalg.norm(ring[0] - centre)
    normal = np.cross(across, ring[1] - centre)
    normal /= np.linalg.norm(normal)
    frame = np.array([across, np.cross(normal, across), normal])
    turned = np.array([frame[0], frame[2], -frame[1]]).T @ frame
    other = (PEPTIDE.positions - centre) @ turned.T + centre + 1.39 * across
    pdb_path = shipped("data") / "structures" / "hexapeptide.pdb"
    lines = [line for line in pdb_path.read_text().splitlines() if line.startswith("ATOM")]
    moved = [
        f"{line[:21]}B{line[22:30]}{x:8.3f}{y:8.3f}{z:8.3f}{line[54:]}"
        for line, (x, y, z) in zip(lines, other, strict=True)
    ]
    (tmp_path / "crossed.pdb").write_text("\n".join([*lines, "TER", *moved, "END", ""]))
    atoms = pele_ocl.read(tmp_path / "crossed.pdb")
    result = minimize(atoms, tolerance=0.5, precision=precision, device=device)
    assert result.stopped_by == "gradient"
    assert np.isfinite(result.positions).all()
    assert result.energy_after.total < result.energy_before.total
    alone = minimize(PEPTIDE, tolerance=0.5, precision=precision, device=device).energy_after.total
    assert result.energy_after.total > 2 * alone + 20  # still one through the other


def test_failures_are_named(device):
    on_top, nowhere = shaken(0.1), shaken(0.1)
    on_top[5] = on_top[6]
    nowhere[3, 1] = np.nan
    minimizer = Minimizer(PEPTIDE, max_iterations=3, device=device)
    batch = minimizer.minimize_batch(np.stack([shaken(0.1), on_top, nowhere]), errors="record")
    assert list(batch.errors) == [1, 2]
    assert "are at the same position" in batch.errors[1]
    assert "positions of atom 3" in batch.errors[2]
    assert [k for k, _ in batch.good] == [0]
    assert np.isnan(batch[2].total)
    with pytest.raises(InputError, match="positions of atom 3"):
        _ = batch[2].positions
    with pytest.raises(InputError, match="positions of atom 3"):
        minimizer.minimize(nowhere)


def test_atoms_that_stay(device):
    frozen = np.arange(10, 40)
    start = shaken(0.1)
    result = Minimizer(PEPTIDE, frozen=frozen, tolerance=0.5, device=device).minimize(start)
    np.testing.assert_allclose(result.positions[frozen], start[frozen], atol=1e-12)
    moved = np.delete(np.arange(len(PEPTIDE)), frozen)
    assert result.stopped_by == "gradient"
    assert rms(result.gradient[moved]) == pytest.approx(result.rms_gradient)
    assert result.rms_gradient <= 0.505
    restraint = PositionalRestraint(1e4, start, atoms=frozen)
    held = Minimizer(PEPTIDE, terms=[restraint], tolerance=0.5, device=device).minimize(start)
    assert 0 < np.abs(held.positions - start)[frozen].max() < 0.05 < np.abs(held.positions - start)[moved].max()


def test_different_molecules(device):
    """Molecules of equal topology go together, each with its own names, and further options by molecule."""
    part = PEPTIDE[:60]
    other = PEPTIDE.moved(shaken(0.05))
    seen: list[tuple[int, int, float]] = []
    batch = minimize_many([PEPTIDE, part, other], tolerance=0.5, device=device, watch=lambda *x: seen.append(x))
    for result, atoms in zip(batch, (PEPTIDE, part, other), strict=True):
        assert result.stopped_by == "gradient"
        assert result.atoms.labels is atoms.labels
    np.testing.assert_array_equal(batch[1].positions, minimize(part, tolerance=0.5, device=device).positions)
    assert seen[-1] == (3, 3, 0.0)
    held = minimize_many([part, other], each=lambda atoms: {"frozen": [len(atoms) - 1]}, device=device)
    for result, atoms in zip(held, (part, other), strict=True):
        np.testing.assert_allclose(result.positions[-1], atoms.positions[-1], atol=1e-12)
    bad = part.moved(np.zeros((60, 3)))
    assert list(minimize_many([part, bad], errors="record", device=device).errors) == [1]
    with pytest.raises(InputError, match=r"molecule 2 of 2: .* at the same position"):
        minimize_many([part, bad], device=device)
    with pytest.raises(InputError, match=r"molecule 2 of 2: .* at the same position"):  # as its plan says
        minimize_many([other, bad], device=device)


@pytest.mark.parametrize("variant", ["blocks", pytest.param("squares", marks=pytest.mark.slow)])
def test_molecules_under_way_together_have_the_bits_of_each_alone(device, variant):
    """A failure ends neither the others nor their bits."""
    part, piece = PEPTIDE[:60], PEPTIDE[:40]
    molecules = [PEPTIDE, part, part.moved(np.zeros((60, 3))), piece, PEPTIDE.moved(shaken(0.05))]
    molecules.append(PEPTIDE[:30].moved(np.zeros((30, 3))))  # whose plan cannot be made
    seen: list[tuple[int, int, float]] = []
    same = {"tolerance": 0.5, "variant": variant, "device": device}
    batch = minimize_many(molecules, errors="record", watch=lambda *x: seen.append(x), **same)
    assert list(batch.errors) == [2, 5]
    for k in (0, 1, 3, 4):
        expected = Minimizer(molecules[k], **same).minimize()
        np.testing.assert_array_equal(batch[k].positions, expected.positions)
        assert batch[k].evaluations == expected.evaluations
    assert seen[-1][0] >= 5
    assert seen[-1][1:] == (6, 0.0)
    assert [done for done, _, _ in seen] == sorted(done for done, _, _ in seen)
    gc.collect()  # of other tests, whose queues would come back meanwhile
    n_queues = len(device.spare)
    assert n_queues >= 2
    with pytest.raises(InputError, match=r"molecule [36] of 6: .* at the same position"):
        minimize_many(molecules, **same)
    assert len(device.spare) == n_queues  # lent again, and given back by those that did not end


def test_molecules_without_room_beside_others_follow_alone(device, monkeypatch):
    same = {"tolerance": 2.0, "variant": "blocks", "device": device}
    molecules = [PEPTIDE, PEPTIDE[:90], PEPTIDE[:80]]
    alone = [minimize(atoms, **same).positions for atoms in molecules]
    for kept in (device.cached, device.staging):
        kept.clear()
    gc.collect()
    for counted in (device.buffers, device.mapped):
        counted.start()
    minimize(PEPTIDE, **same)
    needed = device.buffers.most + device.mapped.most
    monkeypatch.setattr(Device, "memory", property(lambda self: needed))
    seen: list[int] = []
    batch = minimize_many(molecules, errors="record", watch=lambda done, *_: seen.append(done), **same)
    assert not batch.errors
    for result, positions in zip(batch, alone, strict=True):
        np.testing.assert_array_equal(result.positions, positions)
    assert seen == sorted(seen)
    assert seen[-1] == 3
    monkeypatch.setattr(Device, "memory", property(lambda self: 1000))
    errors = minimize_many(molecules, errors="record", **same).errors
    assert list(errors) == [0, 1, 2]
    assert "choose a larger device" in errors[2]


def test_a_bound_that_no_gradient_reaches_has_a_square():
    packed = Stopping(tolerance=1e308, max_gradient=1e308).packed("float32")
    assert np.isfinite([packed["mean2"], packed["largest2"]]).all()


def test_time_ends_none_that_is_below_a_bound():
    states = np.zeros((4, len(StepState)))
    states[:, StepState.STOPPED], states[1:, StepState.EVALUATIONS] = Stop.TIME, 5  # the first one never began
    states[:, StepState.MOVING] = 10
    states[:, StepState.GRADIENT2], states[:, StepState.LARGEST2] = [0, 0.3, 0.5, 0.5], [0, 0.2, 0.04, 0.2]
    Stopping(tolerance=0.2, max_gradient=0.3).judge(states)
    assert states[:, StepState.STOPPED].tolist() == [Stop.TIME, Stop.GRADIENT, Stop.LARGEST, Stop.TIME]


def test_a_gradient_that_dips_on_a_slope_is_no_minimum(device):
    """Down the long slope of a hydroxyl group that turns, some have a gradient below the tolerance once."""
    plan = Minimizer(PEPTIDE, tolerance=3 * KJ_PER_MOL_NM, device=device)
    found = plan.minimize_batch(np.stack([shaken(0.1, seed) for seed in range(20)]))
    energies = [result.energy_after.total for result in found]
    assert {result.stopped_by for result in found} == {"gradient"}
    assert max(energies) - min(energies) < 0.5


def test_a_gradient_that_fell_at_once_ends_the_last_iteration_alone(device):
    start = three_atoms([[1.4, 0.2, 0], [0, 0, 0.1], [0.3, 1.1, 0]])
    options = dict(model=VACUUM, precision="float64", device=device)
    one = minimize(start, tolerance=0.0, max_iterations=1, **options)
    before = rms(Energy(start, model=VACUUM, precision="float64", device=device).evaluate().gradient)
    assert before > 2 * one.rms_gradient
    options["tolerance"] = 1.1 * one.rms_gradient
    last = minimize(start, max_iterations=1, **options)
    assert (last.stopped_by, last.iterations) == ("gradient", 1)
    assert minimize(start, **options).iterations > 1
    assert minimize(one.atoms, **options).iterations == 0


def test_what_is_reported(device):
    result = minimize(PEPTIDE, tolerance=1.0, device=device)
    report = result.numbers("peptide")
    assert list(report) == KEYS.split()
    assert report["name"] == "peptide"
    assert report["energy_after"]["total"] == result.energy_after.total
    broken = replace(result, energy_before=replace(result.energy_before, values=np.full(11, np.nan)))
    assert set(broken.numbers()["energy_before"].values()) == {None}


def test_not_above_openmm(device):
    """Means over three starts in OpenMM's own system lie within the scatter of its own runs."""
    openmm = pytest.importorskip("openmm")
    from openmm import app, unit

    path = str(shipped("data") / "structures" / "hexapeptide.pdb")
    pdb = app.PDBFile(path)
    system = app.ForceField("amber99sb.xml", "amber99_obc.xml").createSystem(pdb.topology)
    atoms = pele_ocl.from_openmm(pdb.topology, system, pdb.positions)
    options = dict(model=SolventModel.like("openmm", gb="obc2"), device=device)
    ours = Minimizer(atoms, tolerance=3 * KJ_PER_MOL_NM, **options)
    exact = Energy(atoms, **options)
    context = openmm.Context(system, openmm.VerletIntegrator(1e-9), openmm.Platform.getPlatformByName("Reference"))
    energies = []
    for seed in range(3):
        start = shaken(0.1, seed, atoms)
        context.setPositions(0.1 * start)
        openmm.LocalEnergyMinimizer.minimize(context, 3.0)
        found = context.getState(getPositions=True).getPositions(asNumpy=True).value_in_unit(unit.angstrom)
        energies.append((ours.minimize(start).energy_after.total, exact.evaluate(found).total))
    mine, theirs = np.mean(energies, axis=0)
    assert mine <= theirs + 5e-4 * abs(theirs)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "newton-raphson"}, "unknown method 'newton-raphson'; choose lbfgs, steepest, fire"),
        ({"tolerance": -1}, "tolerance is -1; expected a number in kcal/mol/A, 0 or more"),
        ({"max_gradient": 0}, "max_gradient is 0; expected a positive number of kcal/mol/A"),
        ({"max_iterations": 1.5}, "max_iterations is 1.5; expected a whole number"),
        ({"max_seconds": "soon"}, "max_seconds is 'soon'; expected a positive number of seconds"),
        ({"frozen": [96]}, "frozen atoms are neither a mask of 96 atoms nor indices of them"),
        ({"frozen": np.ones(96, bool)}, "all atoms are frozen; leave some atoms free"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(InputError, match=message):
        Minimizer(PEPTIDE, **options)


def test_a_batch_has_arrays_and_a_short_name(device):
    start = PEPTIDE.positions + np.random.default_rng(3).normal(0, 0.02, (3, *PEPTIDE.positions.shape))
    start[1, 5] = start[1, 4]
    batch = Minimizer(PEPTIDE, max_iterations=5, device=device).minimize_batch(start, errors="record")
    one, other = batch[0], batch[2]
    assert list(batch.errors) == [1]
    assert batch.positions.shape == batch.gradients.shape == start.shape
    np.testing.assert_array_equal(batch.positions[2], other.positions)
    np.testing.assert_array_equal(batch.gradients[0], one.gradient)
    assert np.isnan(batch.positions[1]).all()
    assert batch.terms.names == one.energy_after.names
    assert batch.energies.shape == (3, len(batch.terms.names))
    np.testing.assert_allclose(batch.total, [one.energy_after.total, np.nan, other.energy_after.total])
    np.testing.assert_allclose(batch.terms.total, batch.total)
    np.testing.assert_array_equal(
        batch.terms_before.coulomb[[0, 2]], [one.energy_before.coulomb, other.energy_before.coulomb]
    )
    assert batch.converged.tolist() == [False, False, False]
    assert batch.stopped_by.tolist() == ["iterations", "", "iterations"]
    assert batch.iterations.tolist() == [5, 0, 5]
    assert batch.evaluations.tolist() == [one.evaluations, 0, other.evaluations]
    for name in ("rms_gradient", "largest_gradient", "rms_displacement"):
        np.testing.assert_array_equal(getattr(batch, name), [getattr(one, name), np.nan, getattr(other, name)])
    low, high = sorted([one.total, other.total])
    assert repr(batch) == (
        f"MinimizeBatch(3 structures, 0 converged, 1 failed, total {low:.3f} to {high:.3f} kcal/mol)"
    )


def test_a_batch_of_molecules_of_several_sizes_lists_their_arrays(device):
    """Terms that one molecule lacks count nothing there."""
    alone = Atoms([[0.0, 0, 0], [3, 0, 0]], [0.5, -0.5], [3.0, 3], [0.1, 0.1], [1.5, 1.5], [0.8, 0.8])
    batch = minimize_many([PEPTIDE, alone], max_iterations=2, device=device)
    assert [len(positions) for positions in batch.positions] == [96, 2]
    assert batch.terms.names == batch[0].energy_after.names
    assert batch.terms.bond[1] == 0
    np.testing.assert_allclose(batch.terms.total, [result.energy_after.total for result in batch])
    failed = minimize_many([PEPTIDE.moved(0 * PEPTIDE.positions)], errors="record", device=device)
    assert repr(failed) == "MinimizeBatch(1 structures, 0 converged, 1 failed)"
    assert failed.positions == [None]
    assert failed.terms.names == ()
