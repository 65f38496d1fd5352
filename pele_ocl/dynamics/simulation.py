"""Simulation of thousands of replicas of molecules on one device."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from inspect import signature
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..atoms import Atoms, Floats
from ..common.arguments import choice, file_path, flag, function, numbers, text, texts, whole_number
from ..common.errors import InputError, PeleError, Suggests, UnexpectedKeywordError
from ..common.hashing import sha256_of
from ..common.settled import Settled, rewrite
from ..energy.terms import Growing, Interpolated
from ..ensemble import Column, Ensemble
from ..ensemble.columns import WritableValues
from ..ensemble.state import Lock, Rows, locked
from ..gb_models.solvent_model import SolventModel
from ..jobs.outputs import require_replaceable
from ..opencl.interface import Halt
from ..results import Terms
from ..units import BOLTZMANN_KCAL
from . import checkpoint
from .amounts import steps_of, steps_or_time
from .bodies import Body, masses_of
from .files import CHECKPOINT, TRAJECTORIES, TRAJECTORIES_OF, SimulationFiles, names_of, remove_files, require_no_run
from .hamiltonians import reduced_energies
from .hills import Hills, free_energy_of, variables_of
from .integrators import INTEGRATORS
from .motion import Motion
from .result import Simulated, SimulateResult
from .settings import FURTHER, MOST_STEPS, ROOM, Settings, every_of, rungs_of, solvent_in_bath, temperatures_of
from .timesteps import step_note

if TYPE_CHECKING:
    from ..minimize import MinimizeBatch

STEPS_AT_ONCE = 256  # enqueued before the host waits
STEPS_A_FLUSH = 8  # enqueued between flushes of the queue
_WHY = {
    Halt.FORCES: "the force on {} is not a number",
    Halt.BONDS: "the bonds of {} cannot be constrained",
    Halt.SPEED: "{} moves more than 1 A in a step",
}


class Simulation(Suggests, Settled):
    """Implicit-solvent dynamics of many replicas on one device; docs/theory/dynamics.md.

    No data are read from the device between steps. A replica depends only on its molecule, its number and the seed; it
    is bit-identical in every run and with any number of other replicas. A replica that explodes is stopped, while
    others continue; `errors` contains the time and the reason.

    Positions, velocities, temperatures, frozen atoms and restraints of rows can be changed between runs, here or in the
    ensemble. Constrained bonds are then reset, forces are recomputed, and a stopped replica restarts with new
    velocities. A simulation can be shared between threads; their calls are serialized.

    molecules : an Atoms, a list of them, or an Ensemble whose rows are the replicas
    replicas : number of replicas of each molecule, which start at its positions
    temperature : of the heat bath and the initial velocities, K, by default 300; or a list with one per row, or fewer,
        which are repeated. A single temperature without annealing is also used for salt screening, unless the model
        has a temperature other than the default, 298.15 K. The model of an Ensemble is not changed
    timestep : fs. Values may also be strings with a unit, such as "1fs" and "310K", or OpenMM Quantities
    friction : 1/ps, of the Langevin integrator, by default 1
    seed : seed of all random numbers
    integrator : "langevin", like OpenMM's LangevinMiddleIntegrator, or "verlet" at constant energy
    constraints : "hbonds" constrains bonds to hydrogen to the lengths of the force field
    hydrogen_mass : mass of hydrogens in Da, taken from their neighbours, for longer time steps
    exchange_every : interval of replica exchange, in steps or a time with a unit; consecutive replicas form a ladder
        over the temperatures
    exchange : exchanged quantity: "temperature", or "hamiltonian" for all properties of rows, such as scales,
        restraints and biases. Temperatures may then be equal; their number is the number of rungs
    ladder_shape : (n, m) for two-dimensional ladders, with n m rungs row by row, such as n temperatures by m windows;
        exchanges need `exchange="hamiltonian"`, and alternate between the dimensions
    anneal : points (n, 2) of time in ps and temperature in K, with linear interpolation
    remove_motion : whether to remove the motion of the centre of mass; by default unless atoms are frozen or terms are
        added
    frozen : mask (n,) or indices of frozen atoms, in all replicas
    first_replica : number of the first replica of each molecule, which determines its random numbers. Equal molecules
        that are different objects in the list have different random numbers
    options : keywords of Ensemble, such as model, terms, precision, device

    `ensemble` contains the rows; `notes` are messages about automatic choices.

    Raises InputError for invalid input, DeviceMemoryError if the memory of the device is too small.

    >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
    >>> simulation = pele_ocl.Simulation(atoms, replicas=4, temperature=300, constraints="hbonds")
    >>> len(simulation.ensemble), simulation.potential_energies.shape
    (4, (4,))
    """

    def __init__(
        self,
        molecules: Atoms | Sequence[Atoms] | Ensemble,
        replicas: int = 1,
        *,
        temperature: float | str | Sequence[float | str] | None = None,
        timestep: float | str = 2.0,
        friction: float | None = None,
        seed: int = 0,
        integrator: str = "langevin",
        constraints: str | None = None,
        hydrogen_mass: float | None = None,
        exchange_every: int | str | None = None,
        exchange: Literal["temperature", "hamiltonian"] = "temperature",
        ladder_shape: Sequence[int] | None = None,
        anneal: ArrayLike | None = None,
        remove_motion: bool | None = None,
        frozen: ArrayLike | None = None,
        first_replica: int = 0,
        **options: Any,
    ) -> None:
        if not isinstance(molecules, Ensemble):
            options["model"] = solvent_in_bath(options.get("model"), temperature, anneal)
        given: dict[str, Any] = dict(
            {name: options.pop(name) for name in FURTHER if name in options},
            temperature=ROOM if temperature is None else temperature, timestep=timestep, friction=friction, seed=seed,
            integrator=integrator,
            constraints=constraints, hydrogen_mass=hydrogen_mass, exchange_every=exchange_every, anneal=anneal,
            exchange=exchange, ladder_shape=ladder_shape, remove_motion=remove_motion, first_replica=first_replica,
        )  # fmt: skip
        self.settings = Settings.checked(**given)
        self._given = copy.deepcopy(given)
        self.ensemble = _ensemble_of(molecules, replicas, options)
        if frozen is not None:
            self.ensemble.frozen[:] = [frozen] * len(self.ensemble)
        self.notes: tuple[str, ...] = ()
        self._steps = 0
        self.removes_motion: bool
        self.replicas = self._numbered()
        state, n = self.ensemble.state, len(self.ensemble)
        count = len(self.settings.temperatures)
        rungs = rungs_of(count, self._by_molecule(), first_replica, exchanges=exchange_every is not None)
        numbers = [replica + first_replica for replica in self.replicas]
        self._motion = Motion(self.ensemble, numbers, self.settings, rungs, self._ladders())
        self._masks, self._moves = -1, np.full(n, -1)  # versions of the ensemble's state at the last update
        self._lost = np.ones(n, bool)  # rows without valid velocities: new, stopped or failed
        self._behind = np.zeros(n, np.int64)  # `steps` minus the steps of each running row
        self._hills = {
            term.name: Hills(self.ensemble, self._motion, term)
            for term in state.terms if isinstance(term, Growing)
        }  # fmt: skip
        for hills in self._hills.values():
            hills.check(*self._bath_range)
        self._under_way: Rows | None = None  # rows of a run in progress or interrupted
        self._exchanger = object()  # marks the simulation that last exchanged the rows
        self._calls = False  # whether a user function is running between steps
        self.velocities = Column(state, self._read_velocities, self._write_velocities)
        self._positions = Column(state, state.read_positions, self._write_positions)
        with self._lock:
            self._take_bodies()
            self._what = checkpoint.described(self.settings, self.ensemble.atoms, self._bodies, state)
            self._catch_up()
            # The densities of an existing ensemble may have been set before.
            for hills in self._hills.values() if self.ensemble is molecules else ():
                hills.follow(state.there(None), explored=True)

    @property
    def _lock(self) -> Lock:
        return self.ensemble.state.lock

    def __len__(self) -> int:
        return len(self.ensemble)

    def __repr__(self) -> str:
        return f"Simulation({len(self):,} replicas after {self.steps:,} steps, on {self.ensemble.device})"

    @locked
    def __reduce__(self) -> tuple[Callable[..., Simulation], tuple[object, ...]]:
        return _again, (self.ensemble, self._given, self._what, self._arrays())

    def _by_molecule(self) -> list[list[int]]:
        """Return the rows of each molecule."""
        found: dict[int, list[int]] = {}
        for k, atoms in enumerate(self.ensemble.atoms):
            found.setdefault(id(atoms), []).append(k)
        return list(found.values())

    def _numbered(self) -> list[int]:
        """Return the replica number of each row within its molecule, from 0."""
        found = [0] * len(self.ensemble)
        for rows in self._by_molecule():
            for number, k in enumerate(rows):
                found[k] = number
        return found

    @property
    def steps(self) -> int:
        """Number of steps made."""
        return self._steps

    def _take_bodies(self) -> None:
        """Update the bodies for the current frozen atoms, and set the velocities of newly frozen atoms to zero."""
        state, motion = self.ensemble.state, self._motion
        self._bodies = self._bodies_of_rows()
        rewrite(self, removes_motion=self._removes_motion())
        motion.take_bodies(self._bodies, self.removes_motion)
        if self._masks >= 0:
            velocities = motion.read("velocities")
            velocities[state.frozen_after(self._masks)] = 0
            motion.write("velocities", velocities)
        self._masks = state.masks
        self._note()

    def _bodies_of_rows(self) -> list[Body | None]:
        """Return the body of each row; rows with the same molecule and frozen atoms share one."""
        found: dict[tuple[int, bytes], Body] = {}
        bodies: list[Body | None] = []
        for k, atoms in enumerate(self.ensemble.atoms):
            frozen = self.ensemble.state.frozen[k]
            key = id(atoms), frozen.tobytes()
            if self.ensemble.state.systems[k] is None:
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

    def _ladders(self) -> NDArray[np.int64]:
        """Return the rows of each ladder, (n_ladders, n_rungs). Raises InputError for incomplete ladders."""
        n_rungs, first = len(self.settings.temperatures), self.settings.first_replica
        if self.settings.exchange_every is None:
            return np.zeros((0, n_rungs), np.int64)
        by_molecule = self._by_molecule()
        for rows in by_molecule:
            if len(rows) % n_rungs or first % n_rungs:
                raise InputError(
                    f"{len(rows):,} replicas from index {first:,} on do not form complete "
                    f"ladders of {n_rungs} temperatures; use a multiple of {n_rungs}"
                )
        return np.array([k for rows in by_molecule for k in rows]).reshape(-1, n_rungs)

    def _note(self) -> None:
        """Update the notes about automatic choices."""
        bodies = [body for body in dict.fromkeys(self._bodies) if body is not None]
        held = sum(len(body.constraints.hydrogens) for body in bodies if body.constraints)
        notes = []
        if self.settings.hydrogen_mass is not None:
            notes.append(f"hydrogens have a mass of {self.settings.hydrogen_mass:g} Da, taken from their neighbours")
        if held:
            notes.append(f"{held:,} bonds to hydrogen are constrained to the lengths of the force field")
        of_bodies = {body: atoms for body, atoms in zip(self._bodies, self.ensemble.atoms, strict=True) if body}
        found = (step_note(atoms, body, self.settings.timestep) for body, atoms in of_bodies.items())
        notes += [note for note in found if note][:1]
        notes += [hills.note for hills in self._hills.values() if hills.note]
        if self.removes_motion:
            notes.append("the motion of the centre of mass is removed")
        rewrite(self, notes=tuple(notes))

    def _place(self, rows: Rows) -> None:
        """Reset the constrained bonds of rows to their lengths."""
        rows_of: dict[Body, list[int]] = {}
        for k in rows.tolist():
            body = self._bodies[k]
            if body is not None and body.constraints is not None:
                rows_of.setdefault(body, []).append(k)
        for body, own in rows_of.items():
            assert body.constraints is not None
            state = self.ensemble.state
            state.place(own, list(body.constraints.placed(np.asarray(state.read_positions(own)))))

    @property
    def _rows(self) -> Rows:
        """Running rows."""
        there = self.ensemble.state.there(None)
        return there[~self._lost[there]]

    @property
    def _goes_on(self) -> NDArray[np.bool_]:
        """Mask of running rows, (n_rows,)."""
        found = np.zeros(len(self), bool)
        found[self._rows] = True
        return found

    def _catch_up(self) -> None:
        """Apply changes made since the last update: frozen atoms, positions, restraints.

        The constrained bonds of rows with new positions are reset. Rows that had stopped or failed restart with new
        velocities. Forces and energies of all rows are then up to date.
        """
        state = self.ensemble.state
        there = state.there(None)
        if self._under_way is not None:
            self._recover()
        self._lost[list(state.failed)] = True
        self._lost[state.failed_last > self._moves] = True
        has_moved = self._moves[there] != state.moves[there]
        moved, to_place = there[has_moved], there[has_moved]
        if self._masks != state.masks:
            self._take_bodies()
            self._begin(self._rows)
            to_place = there[has_moved | ~self._lost[there]]  # newly constrained bonds may have other lengths
        self._place(to_place)
        self._moves[:] = state.moves
        if len(old := there[~state.evaluated[there]]):
            state.evaluate(old)
        if len(new := moved[self._lost[moved]]):
            self._draw(new)

    def _draw(self, rows: Rows) -> None:
        """Draw new velocities for rows, and start them."""
        motion = self._motion
        if self.settings.anneal:
            motion.write("temperatures", self.temperatures)
        motion.launch([motion.draw], rows)
        self._begin(rows, again=True)

    def _begin(self, rows: Rows, *, again: bool = False) -> None:
        """Start rows with the velocities on the device. again : whether these are synchronous with positions"""
        motion = self._motion
        if again:
            if self._lost[rows].any():
                for name in ("stopped", "culprits"):
                    values = motion.read(name)
                    values[rows] = 0
                    motion.write(name, values)
                self._behind[rows] = self.steps - motion.read("done")[rows].astype(np.int64)
                self._lost[rows] = False
            begins = motion.read("begins")
            begins[rows] = int(INTEGRATORS[self.settings.integrator].lags_half_a_step)
            motion.write("begins", begins)
        motion.launch([motion.begin], rows)
        self._drop_stopped()

    def _drop_stopped(self) -> None:
        """Wait for the device, and exclude stopped rows from further steps."""
        self._lost |= self._motion.read("stopped") != 0

    @locked
    def minimize(self, **options: object) -> MinimizeBatch:
        """Minimize all replicas, and draw new velocities. options : as in Ensemble.minimize"""
        self._catch_up()
        batch = self.ensemble.minimize(self._rows, **{"constraints": self.settings.constraints, **options})
        self._catch_up()
        self._draw(self._rows)
        return batch

    @locked
    def draw_velocities(self) -> None:
        """Draw velocities of each running replica at its current temperature."""
        self._catch_up()
        self._draw(self._rows)

    @locked
    def run(
        self, steps: int | str, *, every: int | str | None = None, call: Callable[[Simulation], object] | None = None
    ) -> Simulation:  # fmt: skip
        """Advance all replicas by time steps, including exchanges and hills. Returns the simulation.

        Earlier changes are applied first. An interrupted run ends after a complete step.

        steps : number of steps, or a time with a unit such as "10ps"
        every, call : a function called with the simulation after each step that is a multiple of `every` (a number of
            steps, or a time). It may read and change the simulation as between runs, but not call `run`, `write` or
            `restore`. If it raises an error, the run ends after that step

            >>> import pele_ocl
            >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
            >>> simulation = pele_ocl.Simulation(atoms, 2, seed=1)
            >>> found = []
            >>> _ = simulation.run(30, every=10, call=lambda of: found.append(of.potential_energies.shape))
            >>> found
            [(2,), (2,), (2,)]
        """
        self._require_no_call()
        steps = steps_or_time("steps", steps, self.settings.timestep, most=MOST_STEPS - self.steps)
        if (every is None) != (call is None):
            raise InputError("give both of `every` and `call`, or none")
        end = self.steps + steps
        if every is not None and call is not None:
            every = every_of("every", every, self.settings.timestep)
            function("call", call)
            while (stop := (self.steps // every + 1) * every) <= end:
                self._run(stop - self.steps)
                self._call(call)
        return self._run(end - self.steps)

    def _call(self, call: Callable[[Simulation], object]) -> None:
        """Call a user's function between steps. It may read and write rows, but not make steps or restore."""
        self._calls = True
        try:
            call(self)
        finally:
            self._calls = False

    def _require_no_call(self) -> None:
        if self._calls:
            raise InputError(
                "a function that is called during a run must not run, restore or start files; it "
                "may read and write rows"
            )

    def _run(self, steps: int) -> Simulation:
        """Perform steps without calls of user functions."""
        self._require_own_rungs()
        if self._exchanges_all:
            self.ensemble.state.exchanger = self._exchanger
        self._catch_up()
        end, state, self._under_way = self.steps + steps, self.ensemble.state, self._rows
        state.changed(self._under_way)
        try:
            self._run_to(end)
            state.add_up(self._under_way)  # including stopped rows
        except BaseException:
            with suppress(PeleError):  # if the device fails, the next call tries again
                self._recover()
            raise
        self._settle(end)
        return self

    def _run_to(self, end: int) -> None:
        every, state = self.settings.exchange_every, self.ensemble.state
        while self.steps < end and len(rows := self._rows):
            stop = min(end, self.steps + STEPS_AT_ONCE)
            launches = self._motion.launches_of_step(rows)
            while self.steps < stop:
                state.queue_up(launches)
                self.__dict__["_steps"] += 1  # bypasses the slow attribute check
                self._add_hills(rows, self.steps)
                if every is not None and self.steps % every == 0:
                    self._motion.exchange(rows, self.steps // every - 1)
                if self.steps % STEPS_A_FLUSH == 1:
                    state.queue.submit()
            self._drop_stopped()

    def _add_hills(self, rows: Rows, step: int, *, missing: bool = False) -> None:
        """Enqueue the hills due at a step, and the evaluation of forces with them.

        missing : only add hills that are still missing after an interrupt
        """
        for hills in self._hills.values():
            number, rest = divmod(step, hills.pace)
            if rest == 0 and number and not (missing and hills.made >= number):
                hills.add(rows, number)
                self.ensemble.state.launch(rows)

    def _settle(self, steps: int) -> None:
        """End a run. Stopped rows with a shared, changed bias are marked for evaluation when they are read."""
        assert self._under_way is not None
        self._steps, state = steps, self.ensemble.state
        state.settled(self._under_way)
        if any(hills.term.shared for hills in self._hills.values()):
            state.changed(np.flatnonzero(self._lost), moved=False)
        self._moves[self._under_way] = state.moves[self._under_way]
        self._under_way = None

    def _recover(self) -> None:
        """End an interrupted run after completing the last step started on the device."""
        rows, state, motion = self._under_way, self.ensemble.state, self._motion
        assert rows is not None
        state.forget_lists()
        self._drop_stopped()
        made = motion.read("done").astype(np.int64) + self._behind
        last = int(made[rows].max()) if len(rows) else self.steps
        if len(late := rows[(made[rows] < last) & ~self._lost[rows]]):
            state.queue_up(motion.launches_of_step(late))
            self._drop_stopped()
        state.evaluate(rows)
        if self._hills:
            self._add_hills(rows[~self._lost[rows]], last, missing=True)
            state.add_up(rows)
        every = self.settings.exchange_every
        if every is not None and last and last % every == 0 and motion.attempts < last // every:
            motion.exchange(rows[~self._lost[rows]], last // every - 1)
        self._settle(last)

    @property
    def _exchanges_all(self) -> bool:
        """Whether rows exchange scales, restraints and biases."""
        return self.settings.exchange_every is not None and self.settings.exchange == "hamiltonian"

    def _require_own_rungs(self) -> None:
        """Raise InputError if another simulation has since exchanged the Hamiltonians of these rows."""
        if self._exchanges_all and self._motion.attempts and self.ensemble.state.exchanger is not self._exchanger:
            raise InputError(
                "another simulation exchanged the data of these rows, so their rungs are unknown; continue "
                "that simulation, or create a new one"
            )

    @property
    @locked
    def steps_made(self) -> NDArray[np.int64]:
        """Steps made by each replica, (n_rows,); fewer if it stopped."""
        return self._motion.read("done").astype(np.int64)

    @property
    def time(self) -> float:
        """Simulated time, ps."""
        return self.steps * self.settings.dt

    @property
    def positions(self) -> Column:
        """Positions of rows, (n, 3) A. A stopped replica restarts from written positions."""
        return self._positions

    def _write_positions(self, rows: list[int], positions: Sequence[ArrayLike]) -> None:
        self.ensemble.state.place(rows, positions, errors="raise")

    @property
    @locked
    def errors(self) -> dict[int, str]:
        """Messages about replicas that stopped, or have no valid positions or energy, by row."""
        self._catch_up()
        found = dict(self.ensemble.state.failed)
        stopped, culprits, done = (self._motion.read(name) for name in ("stopped", "culprits", "done"))
        for k in np.flatnonzero(stopped).tolist():
            why = _WHY[Halt(int(stopped[k]))].format(self.ensemble.atoms[k].describe(int(culprits[k])))
            found.setdefault(k, f"stopped at step {int(done[k]):,}, {done[k] * self.settings.dt:.3f} ps: {why}")
        return dict(sorted({**self.ensemble.errors, **found}.items()))

    @property
    @locked
    def potential_energies(self) -> Floats:
        """Energies with all restraints and other terms, (n_rows,) kcal/mol; NaN for stopped replicas."""
        self._catch_up()
        energies, are_numbers = self.ensemble.state.read_energies()
        return np.where(self._goes_on & are_numbers, energies, np.nan)

    @property
    @locked
    def term_energies(self) -> Terms:
        """Terms of the potential energies, (n_rows, n_terms) kcal/mol; NaN for stopped replicas.

        Restraints and other added terms are listed by name. Terms that a molecule does not have are 0.
        """
        self._catch_up()
        rows, names = self._rows, self.ensemble.names
        values = np.full((len(self), len(names)), np.nan)
        values[rows] = self.ensemble.terms(rows).values
        return Terms(names, values)

    @property
    @locked
    def restraint_energies(self) -> Floats | None:
        """Energies of restraints and other added terms, (n_rows,) kcal/mol, included in the potential energies.

        NaN for stopped replicas; None without such terms.
        """
        names = {term.name for term in self.ensemble.state.options["terms"]}
        if not names:
            return None
        terms = self.term_energies
        found: Floats = terms.values[:, [name in names for name in terms.names]].sum(axis=1)
        return found

    @locked
    def u_kn(self, *, by_rung: bool = False) -> Floats:
        """Compute the reduced energies U / (k_B T) of all replicas in all states, (n_rows, n_rows), for MBAR.

        A state is the temperature, scales, restraints and biases of a row. States are the first axis, in the order of
        rows or, with exchanges, of the rungs of each ladder. NaN energies are replaced by infinity. Each state requires
        an evaluation of all rows.

        by_rung : for equivalent ladders, as in `rest2`: the states are the rungs, and the result is (n_rungs, n_rows).
            Each replica is evaluated in the states of its own ladder; `rungs` contains its current state

        Raises InputError if there are several molecules, a stopped replica or one without positions, or no ladders.
        """
        if flag("by_rung", by_rung) and self.settings.exchange_every is None:
            raise InputError("without exchanges there are no rungs; leave out `by_rung`")
        self._require_own_rungs()
        self._catch_up()
        if self._lost.any():
            k = int(np.argmax(self._lost))
            raise InputError(f"replica {k} has no energies in the states of others: {self.errors[k]}")
        ladders = self._motion.read("row_of").astype(np.int64) if by_rung else np.argsort(self.states)[None]
        return reduced_energies(self.ensemble, np.asarray(self.temperatures), ladders)

    @property
    @locked
    def states(self) -> NDArray[np.int64]:
        """Current state of each row, numbered as in `u_kn`, (n_rows,)."""
        if self.settings.exchange_every is None:
            return np.arange(len(self))
        self._require_own_rungs()
        return np.argsort(self._motion.read("row_of").ravel())

    @locked
    def variables(self, name: str) -> Floats:
        """Return the current collective variables of a bias, (n_rows, d); NaN for rows without them.

        name : name of a bias term, such as Metadynamics
        """
        self._catch_up()
        return variables_of(self.ensemble, self.bias_term(name))[0]

    @locked
    def bias_energies(self, name: str) -> Floats:
        """Return the current energies of a bias, (n_rows,) kcal/mol, including the last hill. name : of the bias term

        Stopped replicas are evaluated at their last positions; values are NaN for replicas without valid positions.
        """
        self._catch_up()
        return variables_of(self.ensemble, self.bias_term(name))[1]

    @locked
    def hills(self, name: str) -> Floats:
        """Return the last hill of each row, (n_rows, d + 1): its centre, and its height in kcal/mol or its weight.

        Values are NaN before the first hill.

        name : name of the Metadynamics or OPES term
        """
        self._growing(name)
        return self._hills[name].last

    @locked
    def metadynamics_surface(self, name: str, row: int = 0) -> tuple[tuple[Floats, ...], Floats]:
        """Estimate the free energy from the metadynamics bias, or the OPES density, of a row.

        Returns the nodes along each variable, (n_1,), ..., and the energies, (n_1, ...) kcal/mol, with a minimum of 0.
        """
        term = self._growing(name)
        n = len(self)
        whole_number("row", row, least=-n, most=n - 1)
        grown = np.asarray(self.ensemble.values(name, term.grown)[row % n], np.float64)
        return tuple(axis.nodes for axis in term.axes), free_energy_of(grown, term, float(self.temperatures[row]))

    def bias_term(self, name: str) -> Interpolated:
        """Return the bias on collective variables of this name. Raises InputError if there is none."""
        text("name", name)
        found = {term.name: term for term in self.ensemble.state.terms if isinstance(term, Interpolated)}
        if name not in found:
            raise InputError(
                f"no bias on collective variables is named {name!r}; there are: {', '.join(found) or 'none'}"
            )
        return found[name]

    def _growing(self, name: str) -> Growing:
        term = self.bias_term(name)
        if not isinstance(term, Growing):
            raise InputError(f"{name} has no hills; it is a {type(term).__name__}")
        return term

    @property
    @locked
    def kinetic_energies(self) -> Floats:
        """Kinetic energies, (n_rows,) kcal/mol, without the centre-of-mass motion if removed; NaN if stopped."""
        self._catch_up()
        self._motion.launch([self._motion.present, self._motion.measure_present], self._rows)
        kinetic = self._motion.read("kinetic").astype(np.float64)
        return np.where(self._goes_on, kinetic, np.nan)

    @property
    @locked
    def freedom(self) -> NDArray[np.int64]:
        """Degrees of freedom, (n_rows,)."""
        self._catch_up()
        of_center = 3 if self.removes_motion else 0
        return np.array([0 if body is None else max(0, body.freedom - of_center) for body in self._bodies])

    @property
    @locked
    def kinetic_temperatures(self) -> Floats:
        """Temperatures of the velocities, (n_rows,) K; NaN for replicas that stopped or have no degrees of freedom."""
        freedom = np.where(self.freedom > 0, self.freedom, np.nan)
        return 2 * self.kinetic_energies / (freedom * BOLTZMANN_KCAL)

    @property
    def _bath_range(self) -> tuple[Floats, Floats]:
        """Lowest and highest temperature of each row in the annealing schedule, or its current one, (n_rows,) K."""
        if self.settings.anneal:
            kelvins = [kelvin for _, kelvin in self.settings.anneal]
            return np.full(len(self), min(kelvins)), np.full(len(self), max(kelvins))
        current = self._motion.read("temperatures").astype(np.float64)
        return current, current

    @property
    @locked
    def temperatures(self) -> WritableValues:
        """Current temperatures of the rows' heat baths, (n_rows,) K; writable.

        Velocities adapt through friction, or immediately with `draw_velocities`. Temperatures controlled by exchanges
        or annealing cannot be written; this raises InputError.
        """
        if self.settings.anneal:
            times, values = np.array(self.settings.anneal).T
            found = np.full(len(self), np.interp(self.steps, times, values))
        else:
            found = self._motion.read("temperatures").astype(np.float64)
        return WritableValues.of(found, self._write_temperatures)

    @temperatures.setter
    def temperatures(self, values: ArrayLike) -> None:
        self.temperatures[:] = values

    @locked
    def change_temperatures(self, temperatures: ArrayLike) -> None:
        """Set the temperatures of heat baths, (n_rows,) K, and rescale velocities accordingly."""
        before = np.asarray(self.temperatures)
        self.temperatures[:] = numbers("temperatures", temperatures)
        factors = np.sqrt(np.divide(self.temperatures, before, out=np.ones(len(self)), where=before > 0))
        self._catch_up()
        self._motion.write("scales", factors)
        self._motion.launch([self._motion.rescale], self._rows)

    @locked
    def _write_temperatures(self, values: Floats) -> None:
        if self.settings.anneal or self.settings.exchange_every is not None:
            by = "the schedule of annealing" if self.settings.anneal else "exchanges"
            raise InputError(f"temperatures are set by {by}; create a simulation with other temperatures")
        found = np.array(temperatures_of(values))
        for hills in self._hills.values():
            hills.check(found, found)
        before = self._motion.read("temperatures")
        self._motion.write("temperatures", found)
        changed = np.flatnonzero(self._motion.read("temperatures") != before)
        for hills in self._hills.values() if len(changed) else ():
            hills.follow(changed)

    @property
    @locked
    def _digest_of_states(self) -> str:
        """Hash of everything that determines the energies of states, to distinguish simulations.

        It does not change when replicas move or exchange, or when a simulation continues from a checkpoint.
        """
        state = self.ensemble.state
        temperatures = np.sort(np.asarray(self.temperatures))
        return sha256_of([self._what, state.options, temperatures, checkpoint.own_values(state)])

    @property
    @locked
    def rungs(self) -> NDArray[np.int32]:
        """Indices of the rows' temperatures, the rungs of a ladder, (n_rows,) from 0."""
        self._require_own_rungs()
        return self._motion.read("rung_of")

    @property
    @locked
    def exchanges(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Numbers of tried and accepted exchanges between each rung and the next, (n_rungs - 1,), over all ladders.

        For two-dimensional ladders, both have shape (2, n, m), with the dimension of the exchange first.

        Raises InputError without replica exchange.
        """
        if self.settings.exchange_every is None:
            raise InputError("there are no exchanges; give exchange_every")
        tried, accepted = (self._motion.read(name).sum(axis=-2) for name in ("tried", "accepted"))
        if (shape := self.settings.ladder_shape) is not None:
            return tried.reshape(2, *shape), accepted.reshape(2, *shape)
        return tried[:-1], accepted[:-1]

    @property
    @locked
    def masses(self) -> list[Floats]:
        """Masses of the atoms of each row, (n,) Da."""
        return [np.zeros(0) if body is None else body.masses for body in self._bodies]

    def save(self, path: str | PathLike[str]) -> None:
        """Write a checkpoint, .npz, with the complete state, including restraints and frozen atoms.

        Raises FormatError if the file cannot be written.
        """
        self._write_checkpoint(checkpoint.target_of(path))

    def restore(self, path: str | PathLike[str]) -> Simulation:
        """Continue from a checkpoint of a simulation with the same molecules and settings, bit for bit.

        Raises FormatError for an invalid file, InputError for a checkpoint of a different simulation. The state is
        unchanged after an error.
        """
        self._require_no_call()
        self._read_checkpoint(file_path(path))
        return self

    def write(
        self, output: str | PathLike[str], *, steps: int | None = None, time: float | str | None = None,
        report_every: int | str = 1000, trajectory_format: str = "nc", trajectory_of: str = "replica",
        velocities: bool = False, minimize: int = 0,
        resume: bool = False, overwrite: bool = False, names: Sequence[str] | None = None,
        watch: Callable[[Simulation], None] | None = None,
    ) -> SimulateResult:  # fmt: skip
        """Perform steps, and write the same files as `pele_ocl.simulate`: trajectories, tables, a checkpoint.

        output : output folder
        steps : number of steps; or time : simulated time in ps, or with a unit such as "10ns"
        report_every, trajectory_format, trajectory_of, velocities : as in `pele_ocl.simulate`; the current state is the
            first frame
        minimize : minimization iterations before the first frame
        resume : continue an interrupted run of this simulation in the folder
        overwrite : replace an earlier run in the folder, which is otherwise an error
        names : names of the molecules, used for files; by default molecule, or molecule-1, molecule-2, ...
        watch : called with the simulation before its first step and after each report

        Raises InputError for invalid input, FormatError for a folder with another run.

            >>> import tempfile, pele_ocl
            >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
            >>> run = pele_ocl.Simulation(atoms, 2, seed=1).write(tempfile.mkdtemp(), time="0.04ps", report_every=10)
            >>> run.steps, [path.name for path in run.trajectories]
            (20, ['molecule-00000.nc', 'molecule-00001.nc'])
        """
        self._require_no_call()
        n_steps = steps_of(steps, time, self.settings.timestep)
        choice("trajectory_format", trajectory_format, TRAJECTORIES)
        choice("trajectory_of", trajectory_of, TRAJECTORIES_OF)
        every = every_of("report_every", report_every, self.settings.timestep)
        folder, molecules = file_path(output, "output"), list(dict.fromkeys(self.ensemble.atoms))
        named = names_of(molecules) if names is None else list(texts("names", names))
        if len(named) != len(molecules) or len(set(named)) < len(named):
            raise InputError(f"names are {named}; expected a different one for each of {len(molecules):,} molecules")
        if trajectory_of == "temperature" and self.settings.exchange_every is None:
            raise InputError("`trajectory_of=temperature` needs a ladder; create the simulation with `exchange_every`")
        if watch is not None:
            function("watch", watch)
        require_replaceable(flag("overwrite", overwrite), flag("resume", resume), folder)
        if not (resume or overwrite):
            require_no_run(folder)
        elif resume and not (folder / CHECKPOINT).is_file():
            whole_number("steps", n_steps, most=MOST_STEPS - self.steps)
        files = SimulationFiles(
            self, folder, folder, named, trajectory_format, by_temperature=trajectory_of == "temperature",
            every=every, n_steps=n_steps, sources=named, minimized=whole_number("minimize", minimize),
            velocities=flag("velocities", velocities),
        )  # fmt: skip
        if overwrite:
            remove_files(folder)
        structures = [Simulated(name, of) for name, of in zip(named, molecules, strict=True)]
        model = SolventModel.or_default(self.ensemble.state.options["model"])
        return SimulateResult.of_parts([files.run(watch=watch)], folder, structures, model)

    @locked
    def _write_checkpoint(self, path: Path, **more: NDArray[Any]) -> None:
        """Write a checkpoint as in `save`, with additional arrays."""
        checkpoint.write(path, {**self._arrays(), "what": np.array(self._what), **more})

    @locked
    def _read_checkpoint(self, path: Path) -> dict[str, NDArray[Any]]:
        """Continue from a checkpoint as in `restore`, and return its additional arrays."""
        before = self._arrays()
        arrays = checkpoint.read(path, (*self._motion.state, "positions", "offsets", "energies", "steps", "what"))
        checkpoint.require_same(str(arrays["what"]), self._what, path)
        try:
            self._go_on_from(arrays)
            checkpoint.require_same_energies(self.potential_energies, arrays["energies"], path)
            checkpoint.require_same_restraints(str(arrays["what"]), self._what, path)
        except BaseException:
            self._go_on_from(before)
            raise
        return {name: array for name, array in arrays.items() if name not in (*before, "what")}

    def _read_velocities(self, rows: list[int]) -> list[Floats]:
        """Read velocities at the time of the positions, (n, 3) A/ps."""
        self._catch_up()
        failed = self.ensemble.state.failed
        self._motion.launch([self._motion.present], self.ensemble.state.there(rows))
        found = [self._motion.arrays["present"].read(k).astype(np.float64) for k in rows]
        return [np.full_like(v, np.nan) if k in failed else v for k, v in zip(rows, found, strict=True)]

    def _write_velocities(self, rows: list[int], velocities: Sequence[ArrayLike]) -> None:
        """Write velocities at the time of the positions. A stopped replica restarts with them."""
        self._catch_up()
        array, state = self._motion.arrays["velocities"], self.ensemble.state
        given = [_velocities(k, values, len(state.atoms[k])) for k, values in zip(rows, velocities, strict=True)]
        if lost := [k for k in rows if k in state.failed]:
            raise InputError(f"row {lost[0]} has no positions to continue from: {state.failed[lost[0]]}")
        for k, values in zip(rows, given, strict=True):
            values[state.frozen[k]] = 0
            array.write(values, k)
        self._begin(np.array(rows, np.int64), again=True)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        """Return the complete state of the simulation."""
        self._catch_up()
        state, motion = self.ensemble.state, self._motion
        arrays: dict[str, NDArray[Any]] = {name: motion.read(name) for name in motion.state}
        arrays |= checkpoint.read_rows(state)
        arrays["energies"], arrays["steps"] = self.potential_energies, np.array(self.steps)
        arrays |= {f"hills of {name}": hills.state for name, hills in self._hills.items()}
        return arrays

    def _go_on_from(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore the state returned by `_arrays`."""
        state, motion = self.ensemble.state, self._motion
        checkpoint.write_rows(state, arrays)
        self._take_bodies()
        for name in motion.state:
            motion.write(name, arrays[name])
        self._steps = int(arrays["steps"])
        if self.settings.exchange_every is not None:
            motion.attempts = self.steps // self.settings.exchange_every
            state.exchanger = self._exchanger
        for name, hills in self._hills.items():
            hills.made = self.steps // hills.pace
            hills.state = arrays.get(f"hills of {name}")
        self._lost[:] = arrays["stopped"] != 0
        self._lost[list(state.failed)] = True
        self._behind = self.steps - arrays["done"].astype(np.int64)
        self._moves[:] = state.moves
        # Do not recompute the centre-of-mass velocities: on a GPU, the sums could differ in the last bit.
        state.evaluate(None)


def _again(ensemble: Ensemble, given: dict[str, Any], what: str, arrays: Mapping[str, NDArray[Any]]) -> Simulation:
    """Restore a simulation from a pickle."""
    simulation = Simulation(ensemble, **given)
    simulation._what = what
    simulation._go_on_from(arrays)
    return simulation


def _ensemble_of(molecules: Atoms | Sequence[Atoms] | Ensemble, replicas: int, options: dict[str, Any]) -> Ensemble:
    """Return the given ensemble, or create one with the given number of replicas of each molecule."""
    known = (*signature(Simulation).parameters, *signature(Ensemble).parameters)
    if unknown := [name for name in options if name not in known]:
        raise UnexpectedKeywordError(unknown[0], known, "Simulation")
    if not isinstance(molecules, Ensemble):
        for n in replicas if isinstance(replicas, list | tuple) else [replicas]:
            whole_number("replicas", n, least=1)
        made = Ensemble(molecules, replicas, **options)
        _require_whole_gradient(made)
        return made
    if replicas != 1 or options:
        given = "replicas" if replicas != 1 else next(iter(options))
        raise InputError(f"{given} is set by the ensemble; leave it out")
    if not molecules.state.options["gradient"]:
        raise InputError("dynamics needs gradients; the ensemble was created with gradient=False")
    _require_whole_gradient(molecules)
    return molecules


def _require_whole_gradient(ensemble: Ensemble) -> None:
    """Raise InputError for `fixed_radii`, whose gradient is not the derivative of the energy."""
    if ensemble.state.options["fixed_radii"]:
        raise InputError(
            "with fixed_radii the gradient is not the derivative of the energy; do not use it for dynamics"
        )


def _velocities(k: int, values: ArrayLike, n: int) -> Floats:
    """Check and copy the velocities (n, 3) A/ps of row k. Raises InputError if they are not finite."""
    given = numbers("velocities", values)
    try:
        found = np.broadcast_to(given, (n, 3)).copy()
    except ValueError:
        raise InputError(f"velocities of row {k} have shape {given.shape}; expected ({n}, 3)") from None
    if not np.isfinite(found).all():
        raise InputError(f"velocities of row {k} must be finite numbers")
    return found
