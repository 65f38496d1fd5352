"""Dynamics: energies kept, temperatures, harmonic solids, exchanges, bonds held, and the bits of replicas."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from conftest import labels_of_elements, require
from test_minimize import PEPTIDE, VACUUM

from pele_ocl import (
    Atoms,
    DistanceRestraint,
    Energy,
    Ensemble,
    FormatError,
    InputError,
    PositionalRestraint,
    Simulation,
    minimize,
)
from pele_ocl.atoms import Angles, Bonded, Bonds, Torsions
from pele_ocl.dynamics import motion
from pele_ocl.opencl import Device
from pele_ocl.units import BOLTZMANN_KCAL

START = minimize(PEPTIDE, tolerance=0.5).atoms


def wells(n: int, k: float) -> tuple[Atoms, dict]:
    """Atoms that do not see each other, each in a harmonic well of k |x - x0|^2 kcal/mol; options of a simulation."""
    rng = np.random.default_rng(n)
    zeros = np.zeros(n)
    atoms = Atoms(
        rng.uniform(0, 30, (n, 3)), zeros, lj_sigma=zeros + 1, lj_epsilon=zeros,
        labels=labels_of_elements([("C", "O", "H")[i % 3] for i in range(n)]),
    )  # fmt: skip
    return atoms, {"model": VACUUM, "terms": [PositionalRestraint(k)]}


def total(simulation: Simulation) -> np.ndarray:
    return simulation.potential_energies + simulation.kinetic_energies


@pytest.mark.parametrize("constraints", [None, "hbonds"])
def test_verlet_is_of_second_order(device, constraints):
    """Halving the step quarters the error, float64, with bonds held and without, from where forces are large."""
    require(device, "float64")

    def end(timestep: float) -> np.ndarray:
        simulation = Simulation(
            PEPTIDE, integrator="verlet", timestep=timestep, constraints=constraints, precision="float64", seed=3,
            device=device,
        )  # fmt: skip
        simulation.run(round(3 / timestep))
        return np.stack([simulation.positions[0], simulation.velocities[0]])

    coarse, middle, fine = (end(timestep) for timestep in (0.5, 0.25, 0.125))
    for k in range(2):
        ratio = np.linalg.norm(coarse[k] - middle[k]) / np.linalg.norm(middle[k] - fine[k])
        assert ratio == pytest.approx(4.0, rel=0.05)


def test_energy_drifts_no_more_than_openmms(device):
    """NVE of the hexapeptide from one start: rms deviation of the total energy from its line, and the line's slope."""
    openmm = pytest.importorskip("openmm")
    system = hexapeptide_of_openmm()
    ours = Simulation(START, 4, integrator="verlet", timestep=1.0, temperature=300.0, device=device)
    velocities = ours.velocities[0]
    integrator = openmm.VerletIntegrator(1e-3)
    context = openmm.Context(system, integrator, openmm.Platform.getPlatformByName("CPU"))
    context.setPositions(START.positions / 10)
    context.setVelocities(velocities / 10)
    theirs, own = [], []
    for _ in range(40):
        ours.run(20)
        integrator.step(20)
        state = context.getState(energy=True)
        theirs.append((state.getKineticEnergy() + state.getPotentialEnergy())._value / 4.184)
        own.append(total(ours))
    assert not ours.errors
    fluctuation, slope = deviations(np.array(theirs)[:, None])
    own_fluctuation, own_slope = deviations(np.array(own))
    assert own_fluctuation.max() < 2 * fluctuation[0]
    assert abs(own_slope.mean()) < abs(slope[0]) + 0.3  # kcal/mol/ps, of 96 atoms


def deviations(energies: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Fit lines to energies (n_times, n): rms deviations from them, and slopes in kcal/mol/ps."""
    times = 0.02 * np.arange(len(energies))
    lines = np.polyfit(times, energies, 1)
    return (energies - times[:, None] * lines[0] - lines[1]).std(axis=0), lines[0]


def hexapeptide_of_openmm():
    """Make OpenMM's System of the hexapeptide in Amber99SB with OBC2."""
    from openmm import app

    file = app.PDBFile(str(Path(__file__).parent.parent / "data" / "structures" / "hexapeptide.pdb"))
    field = app.ForceField("amber99sb.xml", "amber99_obc.xml")
    return field.createSystem(file.topology)


@pytest.mark.parametrize("friction", [2.0, 50.0])
def test_a_harmonic_solid_has_its_temperature_and_its_spread(device, friction):
    """Positions vary by kT / 2k; the scheme is exact for harmonic wells, in positions and velocities."""
    k, n, kt = 15.0, 30, BOLTZMANN_KCAL * 300
    atoms, options = wells(n, k)
    simulation = Simulation(atoms, 64, friction=friction, timestep=4.0, seed=1, device=device, **options)
    assert not simulation.removes_motion
    simulation.run(400)
    spread, temperatures = np.zeros(n), np.zeros(n)
    for _ in range(20):
        simulation.run(37)
        spread += ((simulation.positions[:] - atoms.positions) ** 2).sum(axis=2).mean(axis=0) / 3 / 20
        v2 = (simulation.velocities[:] ** 2).sum(axis=2).mean(axis=0)
        temperatures += atoms.masses * v2 / 418.4 / 3 / BOLTZMANN_KCAL / 20
    assert spread.mean() == pytest.approx(kt / (2 * k), rel=0.02)
    np.testing.assert_allclose(spread, kt / (2 * k), rtol=0.12)
    assert temperatures.mean() == pytest.approx(300, rel=0.02)
    np.testing.assert_allclose(temperatures, 300, rtol=0.12)
    assert simulation.potential_energies.mean() == pytest.approx(1.5 * n * kt, rel=0.1)


def test_exchanges_follow_theory(device):
    """Acceptance between harmonic wells, where rows have been, and energies of each temperature."""
    n, temperatures = 8, np.array([300.0, 420.0, 600.0])
    atoms, options = wells(n, 5.0)
    simulation = Simulation(
        atoms, 96, temperature=temperatures.tolist(), exchange_every=40, friction=30.0, timestep=4.0, device=device,
        **options,
    )  # fmt: skip
    simulation.run(200)
    places, energies = [], [[], [], []]
    for _ in range(60):
        simulation.run(40)
        rungs = simulation.rungs
        places.append(rungs)
        np.testing.assert_allclose(simulation.temperatures, temperatures[rungs])
        assert (np.bincount(rungs, minlength=3) == 32).all()
        for rung in range(3):
            energies[rung].append(simulation.potential_energies[rungs == rung].mean())
    tried, accepted = simulation.exchanges
    assert (tried == 32 * np.array([33, 32])).all()
    rng = np.random.default_rng(0)
    for rung in range(2):
        kt = BOLTZMANN_KCAL * temperatures[rung : rung + 2]
        cold, warm = (kt_ * rng.gamma(1.5 * n, size=100_000) for kt_ in kt)  # energies of 3 n harmonic degrees
        expected = np.minimum(1, np.exp((1 / kt[0] - 1 / kt[1]) * (cold - warm))).mean()
        assert accepted[rung] / tried[rung] == pytest.approx(expected, abs=0.05)
    for rung in range(3):
        expected = 1.5 * n * BOLTZMANN_KCAL * temperatures[rung]
        assert np.mean(energies[rung]) == pytest.approx(expected, rel=0.03)
    # Each row is as often on each rung, and goes up as often as down.
    places = np.array(places)
    np.testing.assert_allclose([(places == rung).mean() for rung in range(3)], 1 / 3)
    moves = np.array([[((places[:-1] == a) & (places[1:] == b)).sum() for b in range(3)] for a in range(3)])
    assert abs(moves[0, 1] - moves[1, 0]) <= 96
    assert abs(moves[1, 2] - moves[2, 1]) <= 96
    assert min(moves[0, 1], moves[1, 2]) > 300
    assert ((places == 0).any(axis=0) & (places == 2).any(axis=0)).mean() > 0.9


def torsion_of_two_wells() -> tuple[Atoms, dict]:
    """Four atoms that rotate about their middle bond, begun in the upper of two wells; options of a simulation.

    E(phi) = 2 (1 + cos 2 phi) + 0.4 (1 + sin phi): wells at 90 degrees and, 0.8 kcal/mol lower, at -90.
    """
    bonded = Bonded(
        bonds=Bonds(atoms=[[0, 1], [1, 2], [2, 3]], parameters=[[100.0, 1.5]] * 3),
        angles=Angles(atoms=[[0, 1, 2], [1, 2, 3]], parameters=[[40.0, np.pi / 2]] * 2),
        torsions=Torsions(atoms=[[0, 1, 2, 3]] * 2, parameters=[[2.0, 2, 0.0], [0.4, 1, np.pi / 2]]),
        excluded=np.array(list(combinations(range(4), 2))),
    )
    zeros = np.zeros(4)
    atoms = Atoms(
        [[0, 1.5, 0], [0, 0, 0], [0, 0, 1.5], [-1.5, 0, 1.5]], zeros, lj_sigma=zeros + 1, lj_epsilon=zeros,
        labels=labels_of_elements(["C"] * 4), bonded=bonded,
    )  # fmt: skip
    return atoms, {"model": VACUUM}


def shares_of_the_upper_well(device, n_ladders: int, n_frames: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Shares of phi > 0 at 300, 520 and 900 K from exchange: of each ladder (n_ladders, 3), in theory, accepted."""
    atoms, options = torsion_of_two_wells()
    temperatures = np.array([300.0, 520.0, 900.0])
    simulation = Simulation(
        atoms, 3 * n_ladders, temperature=temperatures.tolist(), exchange_every=25, friction=10.0, timestep=4.0,
        device=device, **options,
    )  # fmt: skip
    simulation.run(3000)
    found = np.zeros((n_ladders, 3))
    for _ in range(n_frames):
        simulation.run(75)
        x = np.stack(simulation.positions[:])
        axis = x[:, 2] - x[:, 1]
        is_upper = np.einsum("ri,ri->r", np.cross(x[:, 0] - x[:, 1], x[:, 3] - x[:, 2]), axis) > 0
        rungs = simulation.rungs.reshape(n_ladders, 3)
        np.add.at(found, (np.arange(n_ladders)[:, None], rungs), is_upper.reshape(n_ladders, 3) / n_frames)
    phi = np.linspace(-np.pi, np.pi, 2001)[:-1] + np.pi / 2000
    weights = np.exp(-(2 * (1 + np.cos(2 * phi)) + 0.4 * (1 + np.sin(phi))) / (BOLTZMANN_KCAL * temperatures[:, None]))
    tried, accepted = simulation.exchanges
    return found, weights[:, phi > 0].sum(axis=1) / weights.sum(axis=1), accepted / tried


def test_exchange_fills_two_wells_as_theory_has_it(device):
    """All begin in the upper well, behind a barrier of 4 kcal/mol that hardly a row crosses at 300 K by itself."""
    found, theory, accepted = shares_of_the_upper_well(device, 64, 60)
    assert theory[0] == pytest.approx(0.217, abs=0.002)
    assert (accepted > 0.2).all()
    np.testing.assert_allclose(found.mean(axis=0), theory, atol=0.05)


def test_velocities_are_rescaled_with_an_exchange(device):
    """Two rows at the bottom of their wells, which exchange for certain; without friction, and with hardly any time."""
    atoms, options = wells(6, 5.0)
    simulation = Simulation(
        atoms, 2, temperature=[300.0, 400.0], exchange_every=1, friction=0.0, timestep=1e-6, device=device, **options
    )
    before = simulation.velocities[:]
    simulation.run(1)
    assert simulation.rungs.tolist() == [1, 0]
    assert simulation.temperatures.tolist() == [400.0, 300.0]
    factors = np.sqrt([4 / 3, 3 / 4])[:, None, None]
    np.testing.assert_allclose(simulation.velocities[:], factors * before, rtol=1e-5)


def test_bonds_to_hydrogen_are_held(device):
    """Rings, methyls and amines of a peptide, and water; with heavy hydrogens, at 4 fs; velocities along no bond."""
    for atoms in (START, water()):
        simulation = Simulation(
            atoms, 2, timestep=4.0, hydrogen_mass=3.0, constraints="hbonds", device=device, seed=5,
        )  # fmt: skip
        simulation.run(60)
        assert not simulation.errors
        held = simulation._bodies[0].constraints
        owners = np.repeat(held.heavy, np.diff(held.starts))
        for k in range(2):
            x, v = simulation.positions[k], simulation._motion.arrays["velocities"].read(k)
            bonds = x[held.hydrogens] - x[owners]
            np.testing.assert_allclose(np.linalg.norm(bonds, axis=1), held.lengths, atol=1e-5)
            along = (bonds * (v[held.hydrogens] - v[owners])).sum(axis=1) / held.lengths
            assert np.abs(along).max() < 1e-4  # A/ps
        masses = simulation.masses[0]
        assert masses.sum() == pytest.approx(atoms.masses.sum())
        assert masses[held.hydrogens].tolist() == [3.0] * len(held.hydrogens)
    assert simulation.freedom[0] == 9 - 2 - 3


def water() -> Atoms:
    """A water molecule of TIP3P in vacuum."""
    bonded = Bonded(
        bonds=Bonds(atoms=[[0, 1], [0, 2]], parameters=[[553.0, 0.9572], [553.0, 0.9572]]),
        angles=Angles(atoms=[[1, 0, 2]], parameters=[[100.0, np.radians(104.52)]]),
        excluded=np.array([[0, 1], [0, 2], [1, 2]]),
    )
    return Atoms(
        [[0, 0, 0], [0.9572, 0, 0], [-0.24, 0.9266, 0]], [-0.834, 0.417, 0.417], lj_sigma=[3.15, 1, 1],
        lj_epsilon=[0.152, 0, 0], gb_radii=[1.5, 1.2, 1.2], gb_scales=[0.85, 0.85, 0.85],
        labels=labels_of_elements(["O", "H", "H"]), bonded=bonded,
    )  # fmt: skip


def test_temperature_of_a_peptide_with_bonds_held(device):
    """Kinetic temperature at 2 fs, and the share of each kind of atom, within its statistical error."""
    simulation = Simulation(START, 48, constraints="hbonds", friction=20.0, seed=2, device=device)
    simulation.run(200)
    found = []
    for _ in range(20):
        simulation.run(20)
        found.append(simulation.kinetic_temperatures.mean())
    assert np.mean(found) == pytest.approx(300, rel=0.02)
    assert not simulation.errors


def test_a_replica_has_the_same_bits_alone_and_in_company(device):
    options = dict(constraints="hbonds", hydrogen_mass=2.0, temperature=[280.0, 350.0], seed=9, device=device)
    many = Simulation([START, PEPTIDE[:30]], [5, 2], **options).run(30)
    again = Simulation([START, PEPTIDE[:30]], [5, 2], **options).run(30)
    np.testing.assert_array_equal(many.positions[0:5], again.positions[0:5])
    np.testing.assert_array_equal(many.velocities[0:5], again.velocities[0:5])
    alone = Simulation(START, first_replica=3, **options)
    assert many.rungs.tolist() == [0, 1, 0, 1, 0, 0, 1]
    assert alone.rungs.tolist() == [1]
    assert Simulation(START, 4, first_replica=2**31 - 2, **options).rungs.tolist() == [0, 1, 0, 1]
    for _ in range(30):  # however many steps are started at once
        alone.run(1)
    np.testing.assert_array_equal(alone.positions[0], many.positions[3])
    np.testing.assert_array_equal(alone.velocities[0], many.velocities[3])
    other = Simulation(PEPTIDE[:30], first_replica=1, **options).run(30)
    np.testing.assert_array_equal(other.positions[0], many.positions[6])
    assert np.abs(many.positions[0] - many.positions[2]).max() > 0.01


def test_the_last_group_of_a_row_adds_up_what_all_left(device, monkeypatch):
    """Steps of GPUs leave kinetic energies and rest the centre of mass in their own launch; a replica has its bits."""
    if not device.has_device_fence:
        pytest.skip("no fence over the device")
    monkeypatch.setattr(type(device), "kind", "GPU")
    monkeypatch.setattr(motion, "ITEMS", 16)  # so that each row has three groups
    atoms, options = wells(40, 5.0)
    options |= {"variant": "blocks", "remove_motion": True, "device": device}
    simulations = [Simulation(atoms, n, **options).run(9) for n in (3, 1)]
    assert [len(each._motion.moves) for each in simulations] == [1, 1]
    several, alone = simulations
    left = several._motion.read("kinetic"), several._motion.read("center_velocities")
    velocities, masses = several.velocities[:], atoms.masses[:, None]
    centers = [(masses * v).sum(axis=0) / masses.sum() for v in velocities]
    kinetic = [
        0.5 * (masses * (v**2)).sum() / 418.4 - 0.5 * masses.sum() * (c @ c) / 418.4
        for v, c in zip(velocities, centers, strict=True)
    ]
    np.testing.assert_allclose(left[0], kinetic, rtol=1e-5)
    np.testing.assert_allclose(left[1], centers, rtol=1e-4)
    np.testing.assert_array_equal(several.positions[0], alone.positions[0])
    assert several.steps_made.tolist() == [9, 9, 9]
    velocities[1][39] = 1e4
    several.velocities[1] = velocities[1]
    assert "moves more than 1 A in a step" in several.run(1).errors[1]


def test_a_checkpoint_goes_on_with_the_same_bits(device, tmp_path):
    options = dict(temperature=[300.0, 303.0], exchange_every=7, seed=4, device=device, constraints="hbonds")
    whole = Simulation(START, 4, **options).run(33)
    Simulation(START, 4, **options).run(14).save(tmp_path / "half.npz")  # right after an exchange
    rest = Simulation(START, 4, **options).restore(tmp_path / "half.npz")
    assert rest.steps == 14
    rest.run(19)
    np.testing.assert_array_equal(rest.positions[:], whole.positions[:])
    np.testing.assert_array_equal(rest.velocities[:], whole.velocities[:])
    np.testing.assert_array_equal(rest.rungs, whole.rungs)
    np.testing.assert_array_equal(rest.exchanges, whole.exchanges)
    assert whole.exchanges[1].sum() > 0
    verlet = Simulation(START, integrator="verlet", device=device).run(5)
    verlet.save(tmp_path / "verlet.npz")
    other = Simulation(START, integrator="verlet", device=device).restore(tmp_path / "verlet.npz").run(5)
    np.testing.assert_array_equal(other.positions[0], verlet.run(5).positions[0])


def test_checkpoints_of_others_are_refused(device, tmp_path):
    Simulation(START, device=device).save(tmp_path / "a.npz")
    with pytest.raises(InputError, match=r"a.npz: the checkpoint has timestep 2.0, not 1.0"):
        Simulation(START, timestep=1.0, device=device).restore(tmp_path / "a.npz")
    with pytest.raises(InputError, match="is for other molecules"):
        Simulation(PEPTIDE[:30], device=device).restore(tmp_path / "a.npz")
    with pytest.raises(InputError, match="is for other molecules"):
        Simulation(START.moved(START.positions + 1.0), device=device).restore(tmp_path / "a.npz")
    for others in ({"model": VACUUM}, {"terms": [PositionalRestraint(5.0, START.positions + 0.1)]}, {"cutoff": 6.0}):
        with pytest.raises(
            InputError, match=r"a.npz: replica 0 has -[\d.]+ kcal/mol there .* continue with the solvent"
        ):
            Simulation(START, device=device, remove_motion=None, **others).restore(tmp_path / "a.npz")
    (tmp_path / "a.npz").write_bytes((tmp_path / "a.npz").read_bytes()[:500])
    with pytest.raises(FormatError, match="damaged"):
        Simulation(START, device=device).restore(tmp_path / "a.npz")


def test_a_replica_that_explodes_stops_and_says_why(device):
    rows = Ensemble(START, 3, device=device)
    clash = START.positions.copy()
    first, second = np.flatnonzero(START.labels.elements == "C")[[1, 20]]
    clash[second] = clash[first] + 0.05
    rows.positions[1] = clash
    simulation = Simulation(rows, constraints="hbonds", seed=6).run(40)
    assert list(simulation.errors) == [1]
    assert "stopped at step 1, 0.002 ps" in simulation.errors[1]
    assert np.isnan(simulation.potential_energies[1])
    alone = Simulation(START, constraints="hbonds", seed=6, device=device).run(40)
    np.testing.assert_array_equal(simulation.positions[0], alone.positions[0])


def test_devices_without_float64_hold_bonds_and_energy(device, monkeypatch):
    """Fixed-point positions and float32 velocities."""
    monkeypatch.setattr(Device, "has_float64", False)
    held = Simulation(START, 2, constraints="hbonds", device=device, seed=5).run(50)
    assert not held.errors
    assert held._motion.arrays["velocities"].dtype == np.float32
    bonds = held._bodies[0].constraints
    owners = np.repeat(bonds.heavy, np.diff(bonds.starts))
    lengths = np.linalg.norm(held.positions[0][bonds.hydrogens] - held.positions[0][owners], axis=1)
    np.testing.assert_allclose(lengths, bonds.lengths, atol=1e-5)
    verlet = Simulation(START, integrator="verlet", timestep=0.5, device=device)
    before = total(verlet)
    np.testing.assert_allclose(total(verlet.run(100)), before, atol=0.3)


def test_atoms_that_were_frozen_meanwhile_are_at_rest(device):
    """Whether or not anything was read while they were."""
    found = []
    for reads in (True, False):
        simulation = Simulation(START, 2, timestep=1.0, seed=1, device=device).run(5)
        simulation.ensemble.frozen[0] = [0, 1]
        if reads:
            assert not simulation.velocities[0][:2].any()
        simulation.ensemble.frozen[0] = [2]
        found.append(simulation.run(3).velocities[:])
    np.testing.assert_array_equal(*found)


def test_rows_that_had_no_place_meanwhile_begin_again(device):
    """With velocities that are drawn, whether or not anything was read while they had none."""
    found = []
    for reads in (True, False):
        simulation = Simulation(START, 2, timestep=1.0, seed=1, device=device).run(5)
        there = simulation.positions[0]
        simulation.ensemble.positions[0] = np.full_like(there, np.nan)
        if reads:
            assert list(simulation.errors) == [0]
        simulation.ensemble.positions[0] = there
        found.append(simulation.velocities[:])
    np.testing.assert_array_equal(*found)


def test_frozen_atoms_and_restraints_hold(device):
    frozen = np.arange(12)
    simulation = Simulation(
        START, 2, frozen=frozen, terms=[PositionalRestraint(5.0, atoms=[50])], constraints="hbonds", device=device
    ).run(100)
    assert not simulation.errors
    assert not simulation.removes_motion
    moved = np.abs(simulation.positions[:] - START.positions).max(axis=2)
    assert moved[:, 12:].max() > 0.3
    assert moved[:, 50].max() < 1.5
    np.testing.assert_allclose(moved[:, :12], 0, atol=1e-6)
    assert simulation.freedom[0] == 3 * 84 - len(simulation._bodies[0].constraints.hydrogens)


def test_the_center_of_mass_rests(device):
    def center(simulation: Simulation) -> np.ndarray:
        return (START.masses[:, None] * simulation.positions[0]).sum(axis=0) / START.masses.sum()

    kept, free = (Simulation(START, remove_motion=removes, device=device) for removes in (True, False))
    before = center(kept)
    assert np.abs(center(kept.run(200)) - before).max() < 0.02
    assert np.abs(center(free.run(200)) - before).max() > 0.05
    atom = Simulation(wells(1, 5.0)[0], model=VACUUM, device=device)  # at rest, with no freedom left
    assert np.isnan(atom.kinetic_temperatures).all()


def test_annealing_follows_its_schedule(device):
    atoms, options = wells(60, 10.0)
    anneal = [[0.0, 900.0], [0.4, 900.0], [1.2, 0.0]]
    simulation = Simulation(atoms, 8, anneal=anneal, friction=100.0, timestep=4.0, device=device, **options)
    assert simulation.temperatures[0] == 900
    simulation.run(100)
    assert simulation.kinetic_temperatures.mean() == pytest.approx(900, rel=0.12)
    simulation.run(100)
    assert simulation.temperatures[0] == pytest.approx(450)
    assert simulation.kinetic_temperatures.mean() == pytest.approx(450, rel=0.2)
    simulation.run(200)
    assert simulation.temperatures[0] == 0
    assert simulation.kinetic_temperatures.mean() < 5


def test_annealing_may_begin_late(device):
    atoms, options = wells(60, 10.0)
    anneal = [[0.4, 100.0], [0.8, 900.0]]  # a line through both has -700 K at the first step
    simulation = Simulation(atoms, 8, anneal=anneal, friction=100.0, timestep=4.0, device=device, **options).run(100)
    assert simulation.errors == {}
    assert simulation.temperatures[0] == 100
    assert simulation.kinetic_temperatures.mean() == pytest.approx(100, rel=0.15)


def test_positions_that_are_written_have_forces_of_their_own(device):
    options = dict(constraints="hbonds", device=device)
    moved = Simulation(START, seed=1, **options).run(20).positions[0]
    found, expected = (Simulation(START, seed=2, **options) for _ in range(2))
    for simulation in (found, expected):
        simulation.positions[0] = moved
    expected.ensemble.evaluate()
    np.testing.assert_allclose(found.run(1).positions[0], expected.run(1).positions[0], atol=1e-9)


def test_random_numbers_are_drawn_once(device):
    simulation = Simulation([START, START.moved(START.positions + 1.0)], temperature=300.0, device=device)
    first, second = simulation.velocities[:]
    assert abs(np.corrcoef(first.ravel(), second.ravel())[0, 1]) < 0.3
    simulation.run(1).draw_velocities()
    assert abs(np.corrcoef(first.ravel(), simulation.velocities[0].ravel())[0, 1]) < 0.3


def test_energies_that_are_no_numbers_are_not_exchanged(device):
    simulation = Simulation(START, 2, temperature=[300.0, 310.0], exchange_every=5, device=device)
    lost = START.positions.copy()
    lost[1:] = lost[0]
    simulation.positions[0] = lost
    simulation.ensemble.evaluate()
    assert np.isnan(simulation.potential_energies[0])
    simulation._motion.exchange(simulation._rows, 0)
    tried, accepted = simulation.exchanges
    assert (tried[0], accepted[0]) == (1, 0)


def test_replicas_are_minimized_first(device):
    simulation = Simulation(PEPTIDE, 2, constraints="hbonds", device=device)
    batch = simulation.minimize(max_iterations=20)
    assert (batch.total < simulation.potential_energies + 1e-2).all()
    assert simulation.run(20).errors == {}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"timestep": 0.0}, "timestep is 0; expected a time above 0"),
        ({"integrator": "euler"}, "integrator is 'euler'"),
        ({"temperature": [300.0], "exchange_every": 5}, "two temperatures or more"),
        (
            {"temperature": [300.0, 310.0], "exchange_every": 5, "replicas": 3},
            "do not form complete ladders of 2 temperatures",
        ),
        ({"hydrogen_mass": 6.0}, "use a smaller hydrogen_mass"),
        ({"anneal": [[1.0, 300.0], [0.5, 200.0]]}, "must rise"),
        ({"anneal": [[0.0, 300.0]], "temperature": [1.0, 2.0]}, "give one temperature"),
        ({"seed": -1}, "seed is -1"),
        ({"fixed_radii": True}, "not the derivative of the energy"),
        ({"temperature": "warm"}, "temperature"),
    ],
)
def test_what_cannot_be_is_refused(options, sentence):
    with pytest.raises(InputError, match=sentence):
        Simulation(PEPTIDE, **options)


def test_notes_tell_of_steps_that_are_too_long(device):
    def notes(**options) -> str:
        return " ".join(Simulation(START, device=device, **options).notes)

    said = "bonds to hydrogen vibrate too fast for steps of 2 fs; constrain them with `constraints='hbonds'`"
    assert said in notes()
    assert "too fast" not in notes(constraints="hbonds")
    assert "too fast" not in " ".join(Simulation(wells(1, 5.0)[0], model=VACUUM, device=device).notes)  # a carbon
    assert "angles of hydrogens vibrate too fast for steps of 4 fs" in notes(constraints="hbonds", timestep=4.0)
    assert "too fast" not in notes(constraints="hbonds", timestep=4.0, hydrogen_mass=3.0)


def test_bonds_without_lengths_are_refused():
    with pytest.raises(InputError, match="bond lengths need a force field"):
        Simulation(replace(PEPTIDE, bonded=None), constraints="hbonds", only_terms=["nonbonded"])


def test_random_numbers_are_philoxs(device):
    """Numbers of Random123's own test of Philox4x32-10 for counters and keys of zeros and of ones."""
    source = """
        #include "common/real.clh"
        #include "common/philox.clh"
        #include "engine/rows.clh"
        kernel void draw(ENSEMBLE, global uint *restrict found, const uint all) {
            if (get_global_id(0)) return;
            vstore4(philox((uint2)(all, all), (uint4)(all, all, all, all)), 0, found);
        }
    """
    ensemble = Ensemble(START, device=device)
    found = ensemble.array("row", 4, np.uint32)
    known = {0: "6627e8d5 e169c58d bc57ac4c 9b00dbd8", 2**32 - 1: "408f276d 41c83b0e a20bc7c6 6d5451fd"}
    for bits, numbers in known.items():
        ensemble.kernel(source, "draw")(found=found, all=bits)
        assert " ".join(f"{number:08x}" for number in found.read()[0]) == numbers


def test_each_row_has_its_temperature(device):
    """Of a list, in the order of rows, or by turns; never are temperatures left out. They can be written."""
    molecules = [START, PEPTIDE[:30], PEPTIDE[:41]]
    rows = Simulation(molecules, temperature=[300.0, 350.0, 400.0], device=device)
    assert rows.temperatures.tolist() == [300, 350, 400]
    assert Simulation(START, 4, temperature=[300.0, 350.0], device=device).temperatures.tolist() == [300, 350] * 2
    for given, count in ((START, 2), (molecules, 1)):
        with pytest.raises(
            InputError, match=f"temperatures were given for {count} replicas? of a molecule, which would not use"
        ):
            Simulation(given, count, temperature=[300.0, 350.0, 400.0, 460.0], device=device)
    atoms, options = wells(40, 5.0)
    simulation = Simulation(atoms, 4, temperature=100.0, friction=100.0, timestep=4.0, device=device, **options)
    simulation.temperatures[2:] = [500.0, 600.0]
    simulation.run(200)
    assert simulation.temperatures.tolist() == [100, 100, 500, 600]
    found = np.mean([simulation.run(20).kinetic_temperatures for _ in range(10)], axis=0)
    np.testing.assert_allclose(found, simulation.temperatures, rtol=0.25)
    simulation.temperatures = 250.0
    simulation.draw_velocities()
    np.testing.assert_allclose(simulation.kinetic_temperatures, 250, rtol=0.4)
    with pytest.raises(ValueError, match="read-only"):
        simulation.temperatures.fill(1.0)
    simulation.temperatures += 10
    simulation.temperatures[2:] *= 2
    simulation.temperatures[[0, 0]] -= 60
    shared = simulation.temperatures
    part = shared[1:3]
    part /= 4
    np.subtract(shared, 5, out=shared)
    assert simulation.temperatures.tolist() == shared.tolist() == [195, 60, 125, 515]
    assert part.tolist() == [60, 125]
    for wrong in ([1.0, 2.0], "warm", -1000.0):
        with pytest.raises(InputError):
            simulation.temperatures += wrong
    assert simulation.temperatures.tolist() == [195, 60, 125, 515]
    ladder = Simulation(START, 2, temperature=[300.0, 310.0], exchange_every=5, device=device)
    with pytest.raises(InputError, match="temperatures are set by exchanges"):
        ladder.temperatures[:] = 300.0
    with pytest.raises(InputError, match="temperatures are set by exchanges"):
        ladder.temperatures += 10


def test_equal_molecules_have_random_numbers_of_their_own(device):
    """Two reads of a file are two molecules; the first has the bits that it has alone."""
    again = START.moved(START.positions)
    both = Simulation([START, PEPTIDE[:30], again], 2, seed=1, device=device).run(10)
    assert len({x.tobytes() for x in (*both.positions[[0, 1]], *both.positions[[4, 5]])}) == 4
    alone = Simulation(START, first_replica=1, seed=1, device=device).run(10)
    np.testing.assert_array_equal(alone.positions[0], both.positions[1])
    other = Simulation([START, again], first_replica=1, seed=1, device=device).run(10)
    np.testing.assert_array_equal(other.positions[1], both.positions[5])  # by its number, in other company


def test_heavy_hydrogens_leave_no_note_out_where_steps_are_too_long(device):
    def notes(**options) -> str:
        return " ".join(Simulation(START, device=device, **options).notes)

    assert "bonds to hydrogen vibrate too fast" in notes(timestep=4.0, hydrogen_mass=1.1)
    assert "bonds to hydrogen vibrate too fast" in notes(timestep=5.0, hydrogen_mass=3.0)
    assert "angles of hydrogens vibrate too fast" in notes(timestep=4.0, hydrogen_mass=1.1, constraints="hbonds")
    assert "Da, vibrates too fast for steps of 4 fs" in notes(timestep=4.0, hydrogen_mass=4.5, constraints="hbonds")
    assert "too fast" not in notes(timestep=4.0, hydrogen_mass=4.0, constraints="hbonds")
    assert "too fast" not in notes(timestep=1.4, hydrogen_mass=3.0)


def test_velocities_are_drawn_at_the_temperature_of_the_schedule(device):
    atoms, options = wells(100, 5.0)
    simulation = Simulation(atoms, 4, anneal=[[0.0, 10.0], [0.04, 1000.0]], timestep=4.0, device=device, **options)
    assert simulation.kinetic_temperatures.mean() == pytest.approx(10, rel=0.2)
    simulation.run(10).draw_velocities()
    assert simulation.kinetic_temperatures.mean() == pytest.approx(1000, rel=0.2)


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_interrupted_run_goes_on_as_one_that_never_stopped(device, monkeypatch, when):
    """Also where the interrupt comes with an exchange."""
    options = dict(temperature=[300.0, 303.0], exchange_every=5, seed=4, device=device, constraints="hbonds")
    whole, stopped = (Simulation(START, 2, **options) for _ in range(2))
    whole.run(25)
    exchange, calls = motion.Motion.exchange, []

    def interrupted(self, rows, number):
        calls.append(number)
        if len(calls) == 2 and when == "before":
            raise KeyboardInterrupt
        exchange(self, rows, number)
        if len(calls) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(motion.Motion, "exchange", interrupted)
    with pytest.raises(KeyboardInterrupt):
        stopped.run(25)
    assert stopped.steps == 10
    fresh = [Energy(START, born="pairs", device=device).evaluate(x).total for x in stopped.positions[:]]
    np.testing.assert_allclose(stopped.ensemble.energies, fresh, atol=0.01)
    stopped.run(15)
    np.testing.assert_array_equal(stopped.positions[:], whole.positions[:])
    np.testing.assert_array_equal(stopped.exchanges, whole.exchanges)


def test_checkpoints_have_what_rows_have_of_their_own(device, tmp_path):
    """Targets and force constants within a flat well, where energies tell nothing; other restraints are refused."""
    away = float(np.linalg.norm(START.positions[0] - START.positions[20]))

    def made(force_constant: float = 1.0) -> Simulation:
        term = DistanceRestraint([[0, 20]], away, force_constant, flat=1.0, name="d")
        return Simulation(START, 2, terms=[term], seed=1, device=device)

    first = made()
    first.ensemble.targets("d")[1] = [away + 0.9]
    first.ensemble.force_constants("d")[1] = [50.0]
    first.ensemble.frozen[0] = range(5)
    first.run(2).save(tmp_path / "a.npz")
    again = made().restore(tmp_path / "a.npz")
    assert again.ensemble.targets("d")[1] == pytest.approx(away + 0.9)
    assert again.ensemble.force_constants("d")[1] == 50
    assert again.ensemble.frozen[0].sum() == 5
    np.testing.assert_array_equal(again.run(20).positions[:], first.run(20).positions[:])
    other = made(2.0)
    before = other.positions[:]
    with pytest.raises(InputError, match="the checkpoint has other restraints"):
        other.restore(tmp_path / "a.npz")
    np.testing.assert_array_equal(other.positions[:], before)
    assert other.steps == 0


def test_threads_share_simulations_and_ensembles(device):
    simulation = Simulation(PEPTIDE[:30], 2, timestep=1.0, device=device)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: simulation.run(25), range(4)))
    assert simulation.steps == 100
    assert simulation.steps_made.tolist() == [100, 100]
    rows = Ensemble(PEPTIDE[:30], 4, device=device)
    places = [PEPTIDE[:30].positions + 0.01 * np.random.default_rng(k).normal(size=(30, 3)) for k in range(4)]
    expected = [Energy(PEPTIDE[:30], born="pairs", device=device).evaluate(x).total for x in places]

    def energies(k: int) -> list[float]:
        found = []
        for _ in range(10):
            rows.positions[k] = places[k]
            rows.evaluate(k)
            found.append(float(rows.energies_of(k)[0]))
        return found

    with ThreadPoolExecutor(4) as pool:
        for found, energy in zip(pool.map(energies, range(4)), expected, strict=True):
            np.testing.assert_allclose(found, energy, atol=0.01)


def test_a_pickle_goes_on_with_the_same_bits(device):
    first = Simulation([START, PEPTIDE[:30]], 2, constraints="hbonds", seed=7, device=device).run(5)
    first.temperatures[0] = 350.0
    again = pickle.loads(pickle.dumps(first))
    assert again.steps == 5
    np.testing.assert_array_equal(again.temperatures, first.temperatures)
    for each in (first, again):
        each.run(20)
    for k in range(4):
        np.testing.assert_array_equal(again.positions[k], first.positions[k])


def test_amounts_and_constraints_of_openmm(device):
    unit, app = pytest.importorskip("openmm.unit"), pytest.importorskip("openmm.app")
    schedule = [[0, 310], [1, 0]]
    ours = Simulation(START, timestep=1.0, temperature=310.0, constraints="hbonds", anneal=schedule, device=device)
    theirs = Simulation(
        START, timestep=1 * unit.femtosecond, temperature=310 * unit.kelvin, friction=1 / unit.picosecond,
        constraints=app.HBonds, anneal=[["0ps", "310K"], [1000 * unit.femtosecond, 0 * unit.kelvin]], device=device,
    )  # fmt: skip
    assert theirs.settings == ours.settings
    with pytest.raises(
        InputError, match="constraints are AllBonds; only bonds to hydrogen can be constrained: 'hbonds'"
    ):
        Simulation(START, constraints=app.AllBonds, device=device)
