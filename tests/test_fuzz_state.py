"""Random chains of writes, runs, reads, saves and restores on a Simulation and its Ensemble, beside a model in NumPy.

PELE_OCL_CHAINS sets the number of chains; 120 take a minute on two cores. Thousands: tests/benchmarks/state_chains.py.
"""

from __future__ import annotations

import copy
import os
import pickle
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
from conftest import labels_of_elements, require
from test_minimize import VACUUM

from pele_ocl import (
    OPES,
    Atoms,
    Binding,
    DistanceRestraint,
    DistanceVariable,
    Energy,
    Ensemble,
    Grid,
    GridBias,
    InputError,
    Metadynamics,
    Nonbond,
    PairList,
    PoissonBoltzmann,
    PositionalRestraint,
    Potmap,
    Simulation,
    Solvent,
)
from pele_ocl.energy.terms import Growing, Interpolated
from pele_ocl.energy.terms.grid_bias import hill, interpolated
from pele_ocl.opencl import Device
from pele_ocl.units import BOLTZMANN_KCAL
from pele_ocl.units import COULOMB_KCAL_A as COULOMB

N, ROWS, OPERATIONS = 5, 4, 40
DT, KCAL = 1e-3, 418.4  # ps; Da A^2/ps^2
CHAINS = int(os.environ.get("PELE_OCL_CHAINS", "4"))
ZEROS = np.zeros(N)
PAIRS = np.triu_indices(N, 1)
CHARGES = np.array([0.2, -0.3, 0.1, 0.25, -0.25])
ATOMS = Atoms(
    np.random.default_rng(0).uniform(0, 8, (N, 3)), CHARGES, lj_sigma=ZEROS + 1, lj_epsilon=ZEROS,
    labels=labels_of_elements(["C", "O", "N", "C", "S"]),
)  # fmt: skip
MASSES = ATOMS.masses[:, None]
GRID = np.random.default_rng(1).normal(0, 0.5, (7, 2))
BIAS = GridBias(DistanceVariable(0, 4), GRID, [(0.0, 15.0)])
TERMS = [PositionalRestraint(3.0), DistanceRestraint([[0, 3], [1, 2]], [4.0, 5.0], 1.0), BIAS]
PROBABILITY = OPES(DistanceVariable(1, 3), 0.5, 4.0, 3, bounds=[(0.0, 12.0)])  # each row has its own
HILLS = Metadynamics(DistanceVariable(0, 2), 0.5, 0.2, 4, bias_factor=5.0, bounds=[(0.0, 12.0)], shared=True)
GROWING = ((PROBABILITY, (1, 3)), (HILLS, (0, 2)))


@dataclass
class Row:
    """A row as it should be: velocities as they are kept, half a step late unless it begins."""

    x: np.ndarray = field(default_factory=lambda: ATOMS.positions.copy())
    v: np.ndarray = field(default_factory=lambda: np.zeros((N, 3)))
    begins: bool = True
    reference: np.ndarray = field(default_factory=lambda: ATOMS.positions.copy())
    constants: np.ndarray = field(default_factory=lambda: np.full(N, 3.0))
    targets: np.ndarray = field(default_factory=lambda: np.array([4.0, 5.0]))
    grid: np.ndarray = field(default_factory=lambda: GRID)
    scales: np.ndarray = field(default_factory=lambda: np.ones(N))  # of charges
    frozen: np.ndarray = field(default_factory=lambda: np.zeros(N, bool))
    density: np.ndarray = field(default_factory=lambda: np.zeros_like(PROBABILITY.first_grid))
    grids: dict = field(default_factory=lambda: {of.name: of.first_grid for of, _ in GROWING})
    hills: dict = field(default_factory=lambda: {of.name: (np.nan, np.nan) for of, _ in GROWING})  # the last ones
    temperature: float = 300.0
    is_lost: bool = False  # stopped
    has_no_place: bool = False

    def energy(self) -> tuple[float, np.ndarray]:
        """Energy and its gradient by their definition."""
        away = self.x - self.reference
        energy, gradient = (self.constants[:, None] * away**2).sum(), 2 * self.constants[:, None] * away
        for (i, j), target in zip(((0, 3), (1, 2)), self.targets, strict=True):
            d = self.x[i] - self.x[j]
            r = np.linalg.norm(d)
            energy += (r - target) ** 2
            gradient[i] += 2 * (r - target) * d / r
            gradient[j] -= 2 * (r - target) * d / r
        for of in self.biases():
            energy += self.bias(*of, gradient)
        return energy + self.coulomb(gradient), gradient

    def biases(self) -> list:
        """Biases of the row: their grids, their terms and the atoms of their distances."""
        return [(self.grid, BIAS, (0, 4)), *((self.grids[of.name], of, pair) for of, pair in GROWING)]

    def bias(self, grid: np.ndarray, term: Interpolated, pair: tuple[int, int], gradient: np.ndarray) -> float:
        """Energy of a bias on a distance; adds its gradient."""
        d = self.x[pair[0]] - self.x[pair[1]]
        r = np.linalg.norm(d)
        bias, (slope,) = interpolated(grid, term.axes, [r])
        gradient[pair[0]] += slope * d / r
        gradient[pair[1]] -= slope * d / r
        return bias

    def distance(self, pair: tuple[int, int]) -> float:
        return float(np.linalg.norm(self.x[pair[0]] - self.x[pair[1]]))

    def follow(self) -> None:
        """Compute the bias of OPES by its density and the temperature."""
        kt, p, barrier = BOLTZMANN_KCAL * self.temperature, self.density[:, 0], PROBABILITY.barrier
        share = 1 - kt / barrier
        explored = p[(p > 0) & (p >= p.max() * np.exp(-barrier / kt))]
        scaled = self.density / (explored.mean() if len(explored) else 1.0)
        q = scaled[:, 0] + np.exp(-barrier / kt / share)
        self.grids["opes"] = share * kt * np.stack([np.log(q), scaled[:, 1] / q], axis=1)

    def warm(self, temperature: float) -> None:
        """Let the heat bath have another temperature."""
        is_new, self.temperature = temperature != self.temperature, temperature
        if is_new:
            self.follow()

    def coulomb(self, gradient: np.ndarray) -> float:
        """Energy of charges as they are scaled; adds its gradient."""
        charges, (i, j) = CHARGES * self.scales, PAIRS
        d = self.x[i] - self.x[j]
        r2 = (d**2).sum(axis=1)
        pairs = COULOMB * charges[i] * charges[j] / np.sqrt(r2)
        forces = (pairs / r2)[:, None] * d
        np.subtract.at(gradient, i, forces)
        np.add.at(gradient, j, forces)
        return float(pairs.sum())

    def kick(self) -> np.ndarray:
        """Change of the velocities in a step."""
        return np.where(self.frozen[:, None], 0, -KCAL * DT * self.energy()[1] / MASSES)

    def step(self) -> None:
        self.v = self.v + self.kick() * (0.5 if self.begins else 1)
        self.x = np.where(self.frozen[:, None], self.x, self.x + DT * self.v)
        self.begins = False

    def shown(self) -> np.ndarray:
        return self.v if self.begins else self.v + 0.5 * self.kick()

    def set_velocities(self, v: np.ndarray) -> None:
        self.v, self.begins, self.is_lost = np.where(self.frozen[:, None], 0, v), True, False


class Chain:
    """A simulation and its model."""

    def __init__(self, seed: int, device: object, folder: Path) -> None:
        self.rng, self.device, self.folder = np.random.default_rng(seed), device, folder
        self.simulation = self.made()
        self.rows, self.steps, self.saved = [Row() for _ in range(ROWS)], 0, None
        for k, row in enumerate(self.rows):
            row.set_velocities(self.simulation.velocities[k])

    def made(self) -> Simulation:
        options = dict(integrator="verlet", timestep=1.0, precision="float64", seed=1, device=self.device)
        return Simulation(ATOMS, ROWS, model=VACUUM, terms=[*TERMS, PROBABILITY, HILLS], scales=True, **options)

    def near(self) -> np.ndarray:
        return ATOMS.positions + self.rng.normal(0, 0.2, (N, 3))

    def place(self, k: int, x: np.ndarray) -> None:
        """Let the model know of written positions; a lost row's velocities are drawn, which no model knows."""
        row = self.rows[k]
        was_lost = row.is_lost or row.has_no_place
        row.x, row.has_no_place = x, False
        if was_lost:
            row.set_velocities(self.simulation.velocities[k])

    def write_positions(self, k: int) -> None:
        x = self.near()
        where = self.simulation if self.rng.random() < 0.5 else self.simulation.ensemble
        where.positions[k] = x
        self.place(k, x)

    def write_positions_twice(self, k: int) -> None:
        first, last = self.near(), self.near()
        self.simulation.positions[[k, k]] = [first, last]
        self.place(k, last)

    def write_velocities(self, k: int) -> None:
        if not self.rows[k].has_no_place:
            v = self.rng.normal(0, 3, (N, 3))
            self.simulation.velocities[k] = v
            self.rows[k].set_velocities(v)

    def write_restraints(self, k: int) -> None:
        row, ensemble = self.rows[k], self.simulation.ensemble
        kind = self.rng.integers(4)
        if kind == 0:
            ensemble.references("restraint")[k] = row.reference = self.near()
        elif kind == 1:
            ensemble.force_constants("restraint")[k] = row.constants = self.rng.uniform(0, 5, N)
        elif kind == 2:
            ensemble.values("bias", "grid")[k] = row.grid = self.rng.normal(0, 0.5, GRID.shape)
        else:
            ensemble.targets("distance_restraint")[k] = row.targets = self.rng.uniform(3, 6, 2)

    def write_growing(self, k: int) -> None:
        """Write the density of a row, or the grid that all share."""
        row, ensemble = self.rows[k], self.simulation.ensemble
        if self.rng.random() < 0.5:
            row.density = np.abs(self.rng.normal(0, self.rng.integers(2), row.density.shape))
            ensemble.values("opes", "density")[k] = row.density
            row.follow()
        else:
            grid = self.rng.normal(0, 0.2, HILLS.first_grid.shape)
            ensemble.values("metadynamics", "grid")[k] = grid
            for row in self.rows:
                row.grids["metadynamics"] = grid

    def write_scales(self, k: int) -> None:
        scales = self.simulation.ensemble.scales
        self.rows[k].scales = self.rng.uniform(0, 1.2, N) if self.rng.random() < 0.5 else np.full(N, 0.7)
        scales["charges"][k] = self.rows[k].scales if self.rng.random() < 0.5 else self.rows[k].scales.copy()
        scales["torsions"][k] = self.rng.uniform(0, 1)  # of which there are none

    def change_temperatures(self, k: int) -> None:
        """Velocities as they are kept go by the root of the temperatures."""
        wanted = self.rng.integers(100, 400, ROWS).astype(float)
        self.simulation.change_temperatures(wanted)
        for row, t in zip(self.rows, wanted.tolist(), strict=True):
            if not row.is_lost and not row.has_no_place:
                row.v = row.v * np.sqrt(t / row.temperature)
            row.warm(t)

    def run_with_calls(self, k: int) -> None:
        """Read and write a row in a call every few steps; one row may be stopped by then."""
        every, ends = int(self.rng.integers(1, 4)), self.steps + 8

        def call(simulation: Simulation) -> None:
            assert simulation is self.simulation
            self.stepped(simulation.steps - self.steps)
            getattr(self, str(self.rng.choice(["write_restraints", "write_scales", "write_growing"])))(k)
            if self.rng.random() < 0.3:
                self.write_temperatures(k)
                self.write_positions(k)
            self.check()

        self.simulation.run(8, every=every, call=call)
        self.stepped(ends - self.steps)

    def freeze(self, k: int) -> None:
        row = self.rows[k]
        row.frozen = self.rng.random(N) < 0.3
        row.v = np.where(row.frozen[:, None], 0, row.v)
        self.simulation.ensemble.frozen[k] = row.frozen

    def write_temperatures(self, k: int) -> None:
        temperature = float(self.rng.integers(100, 400))
        self.simulation.temperatures[k] = temperature
        self.rows[k].warm(temperature)

    def draw(self, k: int) -> None:
        self.simulation.draw_velocities()
        self.take_velocities()

    def take_velocities(self) -> None:
        for k, row in enumerate(self.rows):
            if not row.is_lost and not row.has_no_place:
                row.set_velocities(self.simulation.velocities[k])

    def run(self, k: int, count: int | None = None) -> None:
        count = int(self.rng.integers(0, 12)) if count is None else count
        self.simulation.run(count)
        self.stepped(count)

    def stepped(self, count: int) -> None:
        going = [row for row in self.rows if not row.is_lost and not row.has_no_place]
        for _ in range(count):
            self.steps += 1
            for row in going:
                row.step()
            for term, pair in GROWING:
                if self.steps % term.pace == 0:
                    self.add_hills(going, term, pair)

    def add_hills(self, going: list[Row], term: Growing, pair: tuple[int, int]) -> None:
        """Add the hills of rows where they are."""
        new = []
        for row in going:
            energy = interpolated(row.grids[term.name], term.axes, [row.distance(pair)])[0]
            height = term.first_height * np.exp(-energy * term.decay / (BOLTZMANN_KCAL * row.temperature))
            row.hills = {**row.hills, term.name: (row.distance(pair), height)}
            new.append(height * hill(term.axes, [row.distance(pair)], [0.5]))
        if term is PROBABILITY:
            for row, of in zip(going, new, strict=True):
                row.density = row.density + of
                row.follow()
        elif new:
            grid = self.rows[0].grids[term.name] + sum(new)
            for row in self.rows:
                row.grids[term.name] = grid

    def interrupt(self, k: int) -> None:
        """End a run by an interrupt, before or after the launches of a step."""
        state, at, before = self.simulation.ensemble.state, self.rng.integers(1, 9), self.rng.random() < 0.5
        own, calls = state.queue_up, [0]

        def queue_up(launches):
            calls[0] += 1
            if calls[0] == at and before:
                raise KeyboardInterrupt
            own(launches)
            if calls[0] == at:
                raise KeyboardInterrupt

        state.queue_up = queue_up
        try:
            self.simulation.run(10)
        except KeyboardInterrupt:
            pass
        finally:
            del state.queue_up
        self.stepped(self.simulation.steps - self.steps)

    def explode(self, k: int) -> None:
        row = self.rows[k]
        if row.has_no_place or row.frozen.all():
            return
        v = np.full((N, 3), 1e4)
        self.simulation.velocities[k] = v
        row.set_velocities(v)
        row.is_lost = True
        self.run(k, 2)
        assert "moves more than 1 A in a step" in self.simulation.errors[k]
        row.x = self.simulation.positions[k]

    def lose(self, k: int) -> None:
        """Write positions that are no numbers: the simulation refuses them, the ensemble has a record."""
        nowhere = np.full((N, 3), np.nan)
        with pytest.raises(InputError, match="expected a finite number"):
            self.simulation.positions[k] = nowhere
        if self.rng.random() < 0.5:
            self.simulation.ensemble.positions[k] = nowhere
            self.rows[k].has_no_place = True

    def refuse(self, k: int) -> None:
        simulation = self.simulation
        for column, values in (
            (simulation.positions, np.zeros((N + 1, 3))), (simulation.velocities, np.full((N, 3), np.nan)),
            (simulation.temperatures, -1.0), (simulation.temperatures, np.nan),
            (simulation.ensemble.targets("distance_restraint"), [np.inf, 1.0]),
            (simulation.ensemble.values("opes", "density"), -1.0), (simulation.temperatures, 2100.0),
        ):  # fmt: skip
            with pytest.raises(InputError):
                column[k] = values
        with pytest.raises(InputError):
            simulation.ensemble.frozen[k] = [N]

    def copy(self, k: int) -> None:
        source, target = self.rows[k], self.rows[(k + 1) % ROWS]
        if source.has_no_place:
            return
        self.simulation.ensemble.copy(k, (k + 1) % ROWS)
        target.reference, target.constants, target.targets = source.reference, source.constants, source.targets
        target.grid, target.scales = source.grid, source.scales
        target.density, target.grids = source.density, dict(source.grids)
        self.place((k + 1) % ROWS, source.x)

    def evaluate(self, k: int) -> None:
        self.simulation.ensemble.evaluate(k if self.rng.random() < 0.5 else None)

    def minimize(self, k: int) -> None:
        self.simulation.ensemble.minimize([k], max_iterations=3)
        if not self.rows[k].has_no_place:
            self.place(k, self.simulation.ensemble.positions[k])

    def minimize_all(self, k: int) -> None:
        if all(row.is_lost or row.has_no_place for row in self.rows):
            return
        self.simulation.minimize(max_iterations=2)
        for number, row in enumerate(self.rows):
            if not row.is_lost and not row.has_no_place:
                row.x = self.simulation.positions[number]
        self.take_velocities()

    def save(self, k: int) -> None:
        self.simulation.save(self.folder / "a.npz")
        self.saved = copy.deepcopy((self.rows, self.steps))

    def restore(self, k: int) -> None:
        if self.saved is not None:
            if self.rng.random() < 0.5:
                self.simulation = self.made()
            self.simulation.restore(self.folder / "a.npz")
            self.rows, self.steps = copy.deepcopy(self.saved)

    def pickle(self, k: int) -> None:
        self.simulation = pickle.loads(pickle.dumps(self.simulation))

    def check(self) -> None:
        """Compare all that can be read, in some order, with the model."""
        simulation, rows, ensemble = self.simulation, self.rows, self.simulation.ensemble
        energies = np.array([row.energy()[0] for row in rows])
        goes_on = np.array([not row.is_lost and not row.has_no_place for row in rows])
        there = np.array([not row.has_no_place for row in rows])

        def of_ensemble() -> None:
            try:
                found = ensemble.energies
            except InputError:
                return  # which is right for rows that were written
            np.testing.assert_allclose(found, np.where(there, energies, np.nan), rtol=1e-7, atol=1e-7)
            np.testing.assert_allclose(ensemble.terms().total, found, rtol=1e-7, atol=1e-7)

        def potential() -> None:
            wanted = np.where(goes_on, energies, np.nan)
            np.testing.assert_allclose(simulation.potential_energies, wanted, rtol=1e-7, atol=1e-7)
            added = wanted - [row.coulomb(np.zeros((N, 3))) for row in rows]
            np.testing.assert_allclose(simulation.restraint_energies, added, rtol=1e-7, atol=1e-7)
            of_ensemble()

        def kinetic() -> None:
            v2 = np.array([(MASSES * row.shown() ** 2).sum() for row in rows])
            wanted = np.where(goes_on, v2 / 2 / KCAL, np.nan)
            np.testing.assert_allclose(simulation.kinetic_energies, wanted, rtol=1e-6, atol=1e-9)

        def places() -> None:
            for k in np.flatnonzero(there).tolist():
                np.testing.assert_allclose(simulation.positions[k], rows[k].x, atol=1e-9)
            for k in np.flatnonzero(goes_on).tolist():
                np.testing.assert_allclose(simulation.velocities[k], rows[k].shown(), atol=1e-6)

        def others() -> None:
            assert set(simulation.errors) == set(np.flatnonzero(~goes_on).tolist())
            assert simulation.freedom.tolist() == [3 * int((~row.frozen).sum()) for row in rows]
            assert simulation.temperatures.tolist() == [row.temperature for row in rows]
            assert simulation.steps == self.steps
            for k, row in enumerate(rows):
                np.testing.assert_array_equal(ensemble.frozen[k], row.frozen)
                np.testing.assert_allclose(ensemble.targets("distance_restraint")[k], row.targets)
                np.testing.assert_allclose(ensemble.references("restraint")[k], row.reference, atol=1e-12)
                np.testing.assert_array_equal(ensemble.values("bias", "grid")[k], row.grid)
                found = {name: ensemble.values(name, "grid")[k] for name in row.grids}
                for name, grid in row.grids.items():
                    np.testing.assert_allclose(found[name], grid, rtol=1e-6, atol=1e-7)
                np.testing.assert_allclose(ensemble.values("opes", "density")[k], row.density, rtol=1e-6, atol=1e-7)
                np.testing.assert_array_equal(ensemble.scales["charges"][k], row.scales)

        def biases() -> None:
            for number, (_, term, pair) in enumerate(rows[0].biases()):
                wanted = [row.bias(*row.biases()[number], np.zeros((N, 3))) for row in rows]
                found, places = simulation.bias_energies(term.name), simulation.variables(term.name)[:, 0]
                np.testing.assert_allclose(found[there], np.array(wanted)[there], rtol=1e-7, atol=1e-7)
                np.testing.assert_allclose(places[there], np.array([row.distance(pair) for row in rows])[there])
            for term, _ in GROWING:
                wanted = [row.hills[term.name] for row in rows]
                np.testing.assert_allclose(simulation.hills(term.name)[goes_on], np.array(wanted)[goes_on], rtol=1e-7)

        checks = [of_ensemble, potential, kinetic, places, others, biases]
        for number in self.rng.permutation(len(checks))[: int(self.rng.integers(1, len(checks) + 1))]:
            checks[number]()


OF_CHAIN = (
    "write_positions", "write_positions_twice", "write_velocities", "write_restraints", "freeze", "write_temperatures",
    "draw", "run", "run", "run", "interrupt", "explode", "lose", "refuse", "copy", "evaluate", "minimize",
    "write_scales", "write_growing", "write_growing", "change_temperatures", "run_with_calls", "minimize_all", "save",
    "restore", "pickle",
)  # fmt: skip


def make_chain(seed: int, device: Device, folder: Path) -> None:
    """Make a chain of calls; a failure tells the calls that led to it."""
    chain, made = Chain(seed, device, folder), []
    for _ in range(OPERATIONS):
        made.append((str(chain.rng.choice(OF_CHAIN)), int(chain.rng.integers(ROWS))))
        try:
            getattr(chain, made[-1][0])(made[-1][1])
            chain.check()
        except BaseException as error:
            error.add_note(f"after {made}")
            raise


def make_chain_of_methods(seed: int, device: Device, folder: Path) -> None:
    """Let hills, exchanges of Hamiltonians and noise go on after writes, by a checkpoint and a pickle at any step."""
    rng = np.random.default_rng(seed)
    on = dict(bounds=[(0.0, 12.0)], bias_factor=5, name="hills", shared=seed % 5 == 0)
    variable = DistanceVariable(1, 3)
    bias = OPES(variable, 0.5, 4.0, 5, **on) if seed % 3 == 2 else Metadynamics(variable, 0.5, 0.2, 5, **on)
    exchanged = {} if seed % 2 else dict(exchange_every=4, exchange="hamiltonian")

    def made() -> Simulation:
        return Simulation(
            ATOMS, ROWS, temperature=[300.0] * ROWS, model=VACUUM, terms=[*TERMS, bias], timestep=1.0, scales=True,
            seed=seed, device=device, **exchanged,
        )  # fmt: skip

    simulation = made()
    for _ in range(6):
        k, ensemble = int(rng.integers(ROWS)), simulation.ensemble
        for column, values in (
            (ensemble.scales["charges"], rng.uniform(0, 1, N)),
            (ensemble.values("bias", "grid"), rng.normal(0, 0.5, GRID.shape)),
            (ensemble.values("hills", bias.grown), np.abs(rng.normal(0, 0.1, bias.first_grid.shape))),
            (ensemble.targets("distance_restraint"), rng.uniform(3, 6, 2)),
            (simulation.positions, ATOMS.positions + rng.normal(0, 0.1, (N, 3))),
        ):
            if rng.random() < 0.5:
                column[k] = values
        simulation.run(int(rng.integers(0, 12)))
        simulation.save(folder / "a.npz")
        others = [made().restore(folder / "a.npz"), pickle.loads(pickle.dumps(simulation))]
        steps = int(rng.integers(1, 12))
        for of in (simulation, *others):
            of.run(steps)
        for other in others:
            for name in ("positions", "velocities"):
                np.testing.assert_array_equal(getattr(other, name)[:], getattr(simulation, name)[:])
            np.testing.assert_array_equal(other.potential_energies, simulation.potential_energies)
            for name in {"grid", bias.grown}:
                np.testing.assert_array_equal(
                    other.ensemble.values("hills", name)[:], simulation.ensemble.values("hills", name)[:]
                )
            np.testing.assert_array_equal(other.states, simulation.states)


@pytest.mark.parametrize("seed", range(CHAINS))
def test_a_chain_of_calls_is_what_its_model_is(device, tmp_path, seed):
    require(device, "float64")
    make_chain(seed, device, tmp_path)


@pytest.mark.parametrize("seed", range(max(1, CHAINS // 4)))
def test_methods_go_on_with_the_same_bits(device, tmp_path, seed):
    require(device, "float64")
    make_chain_of_methods(seed, device, tmp_path)


SPHERES = replace(ATOMS, gb_radii=ZEROS + 1.5, gb_scales=ZEROS + 0.8)
OBJECTS = {
    "Energy": lambda **options: Energy(ATOMS, model=VACUUM, **options),
    "Solvent": lambda **options: Solvent(SPHERES, **options),
    "Nonbond": lambda **options: Nonbond(ATOMS, PairList(N, [0], [1]), **options),
    "Binding": lambda **options: Binding(ATOMS, np.array([0]), model=VACUUM, **options),
    "PoissonBoltzmann": lambda **options: PoissonBoltzmann(ATOMS, spacing=4.0, radii=np.ones(N), **options),
    "Potmap": lambda **options: Potmap(ATOMS, Grid.around(ATOMS, spacing=4.0), **options),
    "Ensemble": lambda **options: Ensemble(ATOMS, 2, model=VACUUM, **options),
    "Simulation": lambda **options: Simulation(ATOMS, 2, model=VACUUM, **options),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_attributes_that_nothing_would_follow_cannot_be_written(name, device):
    """Public ones, whether they are there or not; rows are written by their columns."""
    made = OBJECTS[name](device=device)
    public = [attribute for attribute in vars(made) if not attribute.startswith("_")]
    assert public
    for attribute in (*public, "model", "precision", "timestep", "modle"):
        before = getattr(made, attribute, None)
        with pytest.raises(InputError, match=f"{name}.{attribute} cannot be written"):
            setattr(made, attribute, 1)
        assert getattr(made, attribute, None) is before
    if name in ("Ensemble", "Simulation"):
        with pytest.raises(InputError, match=r"write its rows, positions\[...\]"):
            made.positions = np.zeros((2, N, 3))
