"""Simulations: replicas of molecules that move in time on a device, thousands at once."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..atoms import Atoms, Floats
from ..common.arguments import file_path, whole_number
from ..common.errors import InputError
from ..energy.engine.rows import Rows
from ..ensemble import Column, Ensemble
from ..opencl.interface import Halt
from ..units import BOLTZMANN_KCAL
from . import checkpoint
from .bodies import Body, masses_of
from .integrators import INTEGRATORS
from .motion import Motion
from .settings import MOST_STEPS, Settings

if TYPE_CHECKING:
    from ..minimize import MinimizeBatch

LONGEST_STEP = 1.0  # fs that free bonds to hydrogen of common mass bear
LONGEST_HELD_STEP = 3.0  # fs that its angles bear if bonds are held
MOST_OF_HYDROGEN = 1.5  # Da of one with its own mass
STEPS_AT_ONCE = 256  # that are started before the host waits
STEPS_A_FLUSH = 8  # that are started before the device is told to begin
_WHY = {
    Halt.FORCES: "the force on {} is no number",
    Halt.BONDS: "the bonds of {} cannot be held",
    Halt.SPEED: "{} goes more than 1 A in a step",
}


class Simulation:
    """Implicit-solvent dynamics of many replicas on one device; docs/theory/dynamics.md.

    Nothing is read between steps. A replica depends on its molecule, its number and the seed alone. So it has the same
    bits in every run, alone and in company. One that explodes stops; `errors` says when and why, and others go on.

    molecules : an Atoms, a list of them, or an Ensemble whose rows are the replicas
    replicas : of each molecule, which begin at its positions
    temperature : K, of the heat bath and of the velocities drawn; of a list replica r takes number r modulo its length
    timestep : fs
    friction : 1/ps, of the Langevin integrator, by default 1; the other has none
    seed : of all random numbers
    integrator : "langevin" as OpenMM's LangevinMiddleIntegrator, or "verlet" at constant energy
    constraints : "hbonds" holds the bonds to hydrogen at the lengths of the force field
    hydrogen_mass : Da that hydrogens take from their neighbours, so that time steps may be longer
    exchange_every : steps between replica exchanges; successive replicas are a ladder over the temperatures
    anneal : points (n, 2) of time in ps and temperature in K, linear between them
    remove_motion : if the centre of mass is kept at rest; by default unless atoms are frozen or terms are added
    frozen : mask (n,) or indices of atoms that stay, in all replicas
    first_replica : number of the first replica of each molecule, by which random numbers are drawn
    options : of Ensemble, such as model, terms, precision, device

    `ensemble` has the rows; `notes` are sentences on what was decided.

    Raises InputError for what cannot be, DeviceMemoryError where the device has no room.
    """

    def __init__(
        self,
        molecules: Atoms | Sequence[Atoms] | Ensemble,
        replicas: int = 1,
        *,
        temperature: float | Sequence[float] = 300.0,
        timestep: float = 2.0,
        friction: float | None = None,
        seed: int = 0,
        integrator: str = "langevin",
        constraints: str | None = None,
        hydrogen_mass: float | None = None,
        exchange_every: int | None = None,
        anneal: ArrayLike | None = None,
        remove_motion: bool | None = None,
        frozen: ArrayLike | None = None,
        first_replica: int = 0,
        **options: Any,
    ) -> None:
        self.settings = Settings.checked(
            temperature=temperature, timestep=timestep, friction=friction, seed=seed, integrator=integrator,
            constraints=constraints, hydrogen_mass=hydrogen_mass, exchange_every=exchange_every, anneal=anneal,
            remove_motion=remove_motion, first_replica=first_replica,
        )  # fmt: skip
        self.ensemble = _ensemble_of(molecules, replicas, options)
        if frozen is not None:
            self.ensemble.frozen[:] = [frozen] * len(self.ensemble)
        self.notes: tuple[str, ...] = ()
        self.steps = 0
        self.replicas = self._numbered()
        self._bodies = self._bodies_of_rows()
        self.removes_motion = self._removes_motion()
        self._rows: Rows = self.ensemble.state.there(None)
        own = [self._temperature(replica) for replica in self.replicas]
        numbers = [replica + first_replica for replica in self.replicas]
        self._motion = Motion(
            self.ensemble, self._bodies, numbers, self.settings, own, self.removes_motion, self._ladders()
        )
        self.velocities = Column(self.ensemble.state, self._read_velocities, self._write_velocities)
        self._note()
        self._place(self._rows)
        self.draw_velocities()

    def __len__(self) -> int:
        return len(self.ensemble)

    def __repr__(self) -> str:
        return f"Simulation({len(self):,} replicas after {self.steps:,} steps, on {self.ensemble.device})"

    def _numbered(self) -> list[int]:
        """Count the rows of each molecule, from 0."""
        counts: dict[int, int] = {}
        found = []
        for atoms in self.ensemble.atoms:
            found.append(counts.get(id(atoms), 0))
            counts[id(atoms)] = found[-1] + 1
        return found

    def _bodies_of_rows(self) -> list[Body | None]:
        """Cut the molecule of each row into what moves, once for rows with the same frozen atoms."""
        found: dict[tuple[int, bytes], Body] = {}
        bodies: list[Body | None] = []
        for k, atoms in enumerate(self.ensemble.atoms):
            frozen = self.ensemble.state.frozen[k]
            key = id(atoms), frozen.tobytes()
            if k in self.ensemble.state.failed:
                bodies.append(None)
                continue
            if key not in found:
                masses = masses_of(atoms, self.settings.hydrogen_mass)
                found[key] = Body.of(atoms, masses, ~frozen & ~atoms.is_site, self.settings.constraints is not None)
            bodies.append(found[key])
        return bodies

    def _removes_motion(self) -> bool:
        if self.settings.remove_motion is not None:
            return self.settings.remove_motion
        is_held = any(mask.any() for mask in self.ensemble.state.frozen) or bool(self.ensemble.state.options["terms"])
        return not is_held

    def _temperature(self, replica: int) -> float:
        """Temperature that a replica begins with, K."""
        settings = self.settings
        if settings.anneal:
            return settings.anneal[0][1]
        return settings.temperatures[(replica + settings.first_replica) % len(settings.temperatures)]

    def _ladders(self) -> NDArray[np.int64]:
        """Find rows of each ladder, (n_ladders, n_rungs). Raises InputError where replicas fill no whole ladders."""
        n_rungs = len(self.settings.temperatures)
        if self.settings.exchange_every is None:
            return np.zeros((0, n_rungs), np.int64)
        of_molecule: dict[int, list[int]] = {}
        for k, atoms in enumerate(self.ensemble.atoms):
            of_molecule.setdefault(id(atoms), []).append(k)
        for rows in of_molecule.values():
            if len(rows) % n_rungs or self.settings.first_replica % n_rungs:
                raise InputError(
                    f"{len(rows):,} replicas from number {self.settings.first_replica:,} on fill no ladders of "
                    f"{n_rungs} temperatures; take a multiple of {n_rungs}"
                )
        return np.array([k for rows in of_molecule.values() for k in rows]).reshape(-1, n_rungs)

    def _note(self) -> None:
        """Say what was decided."""
        held = sum(len(body.constraints.hydrogens) for body in set(self._bodies) if body and body.constraints)
        notes = []
        if self.settings.hydrogen_mass is not None:
            notes.append(f"hydrogens weigh {self.settings.hydrogen_mass:g} Da, which their neighbours lack")
        if held:
            notes.append(f"{held:,} bonds to hydrogen keep the lengths of the force field")
            if self.settings.timestep > LONGEST_HELD_STEP and self.settings.hydrogen_mass is None:
                notes.append(
                    f"angles of hydrogens vibrate too fast for steps of {self.settings.timestep:g} fs; give them a "
                    "hydrogen_mass of 3"
                )
        elif self.settings.timestep > LONGEST_STEP and self.settings.hydrogen_mass is None and self._has_light_atoms:
            notes.append(
                f"bonds to hydrogen vibrate too fast for steps of {self.settings.timestep:g} fs; hold them by "
                "constraints"
            )
        if self.removes_motion:
            notes.append("the centre of mass is kept at rest")
        self.notes = tuple(notes)

    @property
    def _has_light_atoms(self) -> bool:
        """Tell if an atom that moves is no heavier than a hydrogen."""
        return any((body.masses[body.free] < MOST_OF_HYDROGEN).any() for body in set(self._bodies) if body)

    def _place(self, chosen: Rows) -> None:
        """Bring bonds of rows that are held to their lengths."""
        rows_of: dict[Body, list[int]] = {}
        for k in chosen.tolist():
            body = self._bodies[k]
            if body is not None:
                rows_of.setdefault(body, []).append(k)
        for body, rows in rows_of.items():
            if body.constraints is not None:
                placed = body.constraints.placed(np.stack(self.ensemble.state.read_positions(rows)))
                self.ensemble.positions[rows] = list(placed)

    def minimize(self, **options: object) -> MinimizeBatch:
        """Minimise all replicas from where they are, and draw velocities anew. options : as of Ensemble.minimize"""
        options = {"constraints": self.settings.constraints, **options}
        batch = self.ensemble.minimize(self._rows, **options)
        self._place(self._rows)
        self.draw_velocities()
        return batch

    def draw_velocities(self) -> None:
        """Draw velocities of each replica at its temperature, and compute the forces where it is."""
        self._motion.launch([self._motion.draw], self._rows)
        self._begin()

    def _begin(self) -> None:
        """Begin with the velocities on the device."""
        n = len(self)
        self._motion.write("begins", np.full(n, int(INTEGRATORS[self.settings.integrator].lags_half_a_step), np.int32))
        self._motion.launch([self._motion.begin], self._rows)
        self._evaluate()

    def _evaluate(self) -> None:
        """Compute forces and energies of all rows that go on, where they are."""
        self.ensemble.evaluate(self._rows)

    def run(self, steps: int) -> Simulation:
        """Make so many steps of all replicas, with the exchanges that fall due. Returns the simulation."""
        whole_number("steps", steps, most=MOST_STEPS - self.steps)
        self._catch_up()
        every, resident = self.settings.exchange_every, self.ensemble.state.resident
        end = self.steps + steps
        while self.steps < end and len(self._rows):
            stop = min(end, self.steps + STEPS_AT_ONCE)
            launches = self._motion.launches_of_step(self._rows)
            while self.steps < stop:
                resident.queue_up(launches)
                self.steps += 1
                if every is not None and self.steps % every == 0:
                    self._motion.exchange(self._rows, self.steps // every - 1)
                if self.steps % STEPS_A_FLUSH == 1:
                    resident.queue.submit()
            self._drop_stopped()
        self.steps = end
        resident.add_up(self._rows)
        self._mark_evaluated()
        return self

    def _catch_up(self) -> None:
        """Hold bonds and compute forces of rows whose positions or restraints were written."""
        rows = self._rows[~self.ensemble.state.evaluated[self._rows]]
        if len(rows):
            self._place(rows)
            self.ensemble.evaluate(rows)

    def _mark_evaluated(self) -> None:
        """Let the ensemble know that its rows were evaluated where they are."""
        self.ensemble.state.evaluated[self._rows] = True
        self.ensemble.state.explained.clear()

    def _drop_stopped(self) -> None:
        """Wait for the device, and go on without rows that stopped."""
        stopped = self._motion.read("stopped")
        if stopped[self._rows].any():
            self._rows = self._rows[stopped[self._rows] == 0]

    @property
    def steps_made(self) -> NDArray[np.int64]:
        """Steps that each replica made, (n_rows,); fewer of one that stopped."""
        return self._motion.read("done").astype(np.int64)

    @property
    def time(self) -> float:
        """Time that was simulated, ps."""
        return self.steps * self.settings.dt

    @property
    def positions(self) -> Column:
        """Positions of rows, (n, 3) A."""
        return self.ensemble.positions

    @property
    def errors(self) -> dict[int, str]:
        """Sentences on replicas that stopped, by their rows."""
        found = dict(self.ensemble.state.failed)
        stopped, culprits, done = (self._motion.read(name) for name in ("stopped", "culprits", "done"))
        for k in np.flatnonzero(stopped).tolist():
            why = _WHY[Halt(int(stopped[k]))].format(self.ensemble.atoms[k].describe(int(culprits[k])))
            found[k] = f"stopped at step {int(done[k]):,}, {done[k] * self.settings.dt:.3f} ps: {why}"
        return dict(sorted(found.items()))

    @property
    def potential_energies(self) -> Floats:
        """(n_rows,) kcal/mol; NaN of replicas that stopped."""
        energies, are_numbers = self.ensemble.state.resident.energies()
        return np.where(self._goes_on & are_numbers, energies, np.nan)

    @property
    def kinetic_energies(self) -> Floats:
        """(n_rows,) kcal/mol, without the centre's motion where that is taken off; NaN of replicas that stopped."""
        self._motion.launch([self._motion.present, self._motion.measure_present], self._rows)
        kinetic = self._motion.read("kinetic").astype(np.float64)
        return np.where(self._goes_on, kinetic, np.nan)

    @property
    def freedom(self) -> NDArray[np.int64]:
        """Degrees of freedom, (n_rows,)."""
        of_center = 3 if self.removes_motion else 0
        return np.array([0 if body is None else max(0, body.freedom - of_center) for body in self._bodies])

    @property
    def kinetic_temperatures(self) -> Floats:
        """Temperatures of the velocities, (n_rows,) K; NaN of replicas that stopped or have no freedom."""
        freedom = np.where(self.freedom > 0, self.freedom, np.nan)
        return 2 * self.kinetic_energies / (freedom * BOLTZMANN_KCAL)

    @property
    def temperatures(self) -> Floats:
        """Temperatures of the heat baths that rows are coupled to now, (n_rows,) K."""
        if self.settings.anneal:
            times, values = np.array(self.settings.anneal).T
            return np.full(len(self), np.interp(self.steps, times, values))
        return self._motion.read("temperatures").astype(np.float64)

    @property
    def rungs(self) -> NDArray[np.int32]:
        """Places of the rows' temperatures in the list of them, rungs of a ladder, (n_rows,) from 0."""
        return self._motion.read("rung_of")

    @property
    def exchanges(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Exchanges tried and accepted between each rung and the next, (n_rungs - 1,) each, of all ladders.

        Raises InputError if there are no exchanges.
        """
        if self.settings.exchange_every is None:
            raise InputError("there are no exchanges; give exchange_every")
        tried, accepted = (self._motion.read(name)[:, :-1].sum(axis=0) for name in ("tried", "accepted"))
        return tried, accepted

    @property
    def masses(self) -> list[Floats]:
        """Masses of the atoms of each row, (n,) Da."""
        return [np.zeros(0) if body is None else body.masses for body in self._bodies]

    def save(self, path: str | PathLike[str]) -> None:
        """Write a checkpoint, .npz: all that further steps depend on. Raises FormatError where it cannot be written."""
        save(self, path)

    def restore(self, path: str | PathLike[str]) -> Simulation:
        """Go on from a checkpoint of a simulation of the same molecules and settings, with the same bits.

        Raises FormatError for a file that is none, InputError for one of another simulation.
        """
        restore(self, path)
        return self

    def _described(self) -> str:
        """Write what a checkpoint must agree in with this simulation."""
        ensemble = self.ensemble
        return checkpoint.described(self.settings, ensemble.atoms, self._bodies, ensemble.state.resident)

    @property
    def _goes_on(self) -> NDArray[np.bool_]:
        """Rows that did not stop, (n_rows,)."""
        found = np.zeros(len(self), bool)
        found[self._rows] = True
        return found

    def _read_velocities(self, rows: list[int]) -> list[Floats]:
        """Read velocities at the positions, (n, 3) A/ps."""
        self._motion.launch([self._motion.present], self._rows)
        return [self._motion.arrays["present"].read(k).astype(np.float64) for k in rows]

    def _write_velocities(self, rows: list[int], velocities: Sequence[ArrayLike]) -> None:
        for k, values in zip(rows, velocities, strict=True):
            self._motion.arrays["velocities"].write(values, k)
        begins = self._motion.read("begins")
        begins[rows] = int(INTEGRATORS[self.settings.integrator].lags_half_a_step)
        self._motion.write("begins", begins)
        self._motion.launch([self._motion.begin], self._rows)


def save(simulation: Simulation, path: str | PathLike[str], **more: NDArray[Any]) -> None:
    """Write the checkpoint of a simulation, and further arrays with it."""
    target = checkpoint.target_of(path)
    simulation._catch_up()
    ensemble, motion = simulation.ensemble, simulation._motion
    arrays: dict[str, NDArray[Any]] = {name: motion.read(name) for name in motion.state}
    arrays["positions"] = checkpoint.read_positions(ensemble.state.resident)
    arrays["offsets"] = ensemble.state.offsets
    arrays["energies"] = simulation.potential_energies
    arrays["steps"] = np.array(simulation.steps)
    arrays["what"] = np.array(simulation._described())
    checkpoint.write(target, arrays | more)


def restore(simulation: Simulation, path: str | PathLike[str]) -> dict[str, NDArray[Any]]:
    """Set a simulation to a checkpoint, and give the further arrays that are in it."""
    source, motion, ensemble = file_path(path), simulation._motion, simulation.ensemble
    needed = (*motion.state, "positions", "offsets", "energies", "steps", "what")
    arrays = checkpoint.read(source, needed)
    checkpoint.require_same(str(arrays["what"]), simulation._described(), source)
    for name in motion.state:
        motion.write(name, arrays[name])
    checkpoint.write_positions(ensemble.state.resident, arrays["positions"])
    ensemble.state.offsets[:] = arrays["offsets"]
    simulation.steps = int(arrays["steps"])
    there = ensemble.state.there(None)
    simulation._rows = there[arrays["stopped"][there] == 0]
    simulation._evaluate()
    checkpoint.require_same_energies(simulation.potential_energies, arrays["energies"], source)
    return {name: array for name, array in arrays.items() if name not in needed}


def _ensemble_of(molecules: Atoms | Sequence[Atoms] | Ensemble, replicas: int, options: dict[str, Any]) -> Ensemble:
    """Take an ensemble, or make one of so many replicas of each molecule."""
    if not isinstance(molecules, Ensemble):
        made = Ensemble(molecules, replicas, **options)
        _require_whole_gradient(made)
        return made
    if replicas != 1 or options:
        given = "replicas" if replicas != 1 else next(iter(options))
        raise InputError(f"{given} is the ensemble's own; leave it out")
    if not molecules.state.options["gradient"]:
        raise InputError("dynamics need gradients; the ensemble was made with gradient=False")
    _require_whole_gradient(molecules)
    return molecules


def _require_whole_gradient(ensemble: Ensemble) -> None:
    """Raise InputError where Born radii are fixed in the gradient, which is then none of the energy."""
    if ensemble.state.options["fixed_radii"]:
        raise InputError("fixed_radii makes a gradient that is none of the energy; leave it out of dynamics")
