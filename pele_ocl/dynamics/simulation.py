"""Simulations: replicas of molecules that move in time on a device, thousands at once."""

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
from ..jobs.outputs import remove_run, require_replaceable
from ..opencl.interface import Halt
from ..results import Terms
from ..units import BOLTZMANN_KCAL
from . import checkpoint
from .amounts import steps_of, steps_or_time
from .bodies import Body, masses_of
from .files import CHECKPOINT, TRAJECTORIES, TRAJECTORIES_OF, SimulationFiles, files_of_run, names_of, require_no_run
from .hamiltonians import reduced_energies
from .hills import Hills, free_energy_of, variables_of
from .integrators import INTEGRATORS
from .motion import Motion
from .result import Simulated, SimulateResult
from .settings import FURTHER, MOST_STEPS, ROOM, Settings, every_of, rungs_of, solvent_in_bath, temperatures_of
from .timesteps import step_note

if TYPE_CHECKING:
    from ..minimize import MinimizeBatch

STEPS_AT_ONCE = 256  # that are started before the host waits
STEPS_A_FLUSH = 8  # that are started before the device is told to begin
_WHY = {
    Halt.FORCES: "the force on {} is no number",
    Halt.BONDS: "the bonds of {} cannot be held",
    Halt.SPEED: "{} goes more than 1 A in a step",
}


class Simulation(Suggests, Settled):
    """Implicit-solvent dynamics of many replicas on one device; docs/theory/dynamics.md.

    Nothing is read between steps. A replica depends only on its molecule, its number and the seed. So it is
    bit-identical in every run, with any other replicas. A replica that explodes stops; `errors` says when and why, and
    others continue.

    Positions, velocities, temperatures, frozen atoms and restraints of rows can be changed between runs, here or in the
    ensemble. Later reads use the new state: constrained bonds are reset, forces are computed, and a stopped replica
    restarts with new velocities. Threads may share a simulation; calls are then made one after another.

    molecules : an Atoms, a list of them, or an Ensemble whose rows are the replicas
    replicas : of each molecule, which start at its positions
    temperature : K, by default 300, of the heat bath and of the velocities drawn; or a list, one for each row. Fewer
        are repeated. If one temperature is given and no anneal, it is used for the screening by salt, unless the model
        has a temperature other than the default, 298.15 K. An Ensemble keeps its own model, including the screening
    timestep : fs. Values may also be texts with a unit, "1fs" and "310K", or Quantities of OpenMM
    friction : 1/ps, of the Langevin integrator, by default 1
    seed : of all random numbers
    integrator : "langevin", like OpenMM's LangevinMiddleIntegrator, or "verlet" at constant energy
    constraints : "hbonds" constrains bonds to hydrogen to the lengths of the force field
    hydrogen_mass : mass of hydrogens in Da, taken from their neighbours, for longer time steps
    exchange_every : steps, or time with a unit, between replica exchanges; consecutive replicas form a ladder over the
        temperatures
    exchange : what replicas exchange: "temperature", or "hamiltonian" for all properties of rows, such as scales,
        restraints and biases; temperatures may then be equal, and their number is that of rungs
    ladder_shape : (n, m) for two-dimensional ladders, with n m rungs row by row, such as n temperatures by m windows;
        exchanges need `exchange="hamiltonian"`, and alternate between the dimensions
    anneal : points (n, 2) of time in ps and temperature in K, with linear interpolation
    remove_motion : whether to remove the motion of the centre of mass; by default unless atoms are frozen or terms are
        added
    frozen : mask (n,) or indices of frozen atoms, in all replicas
    first_replica : number of the first replica of each molecule, which determines its random numbers. Equal molecules
        that are different objects of the list get different numbers
    options : of Ensemble, such as model, terms, precision, device

    `ensemble` has the rows; `notes` are messages about what was decided.

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
        self._masks, self._moves = -1, np.full(n, -1)  # of the ensemble's state, as they were taken up last
        self._lost = np.ones(n, bool)  # rows without velocities to go on with: not begun, stopped or failed
        self._behind = np.zeros(n, np.int64)  # steps that rows that go on have made less than `steps`
        self._hills = {
            term.name: Hills(self.ensemble, self._motion, term)
            for term in state.terms if isinstance(term, Growing)
        }  # fmt: skip
        for hills in self._hills.values():
            hills.check(*self._bath_range)
        self._under_way: Rows | None = None  # rows of a run that did not come to its end
        self._exchanger = object()  # by which the rows know who exchanged them last
        self._calls = False  # whether a function of the user is being called between steps
        self.velocities = Column(state, self._read_velocities, self._write_velocities)
        self._positions = Column(state, state.read_positions, self._write_positions)
        with self._lock:
            self._take_bodies()
            self._what = checkpoint.described(self.settings, self.ensemble.atoms, self._bodies, state)
            self._catch_up()
            # densities of an ensemble that was given may have been written before
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
        """List the rows of each molecule."""
        found: dict[int, list[int]] = {}
        for k, atoms in enumerate(self.ensemble.atoms):
            found.setdefault(id(atoms), []).append(k)
        return list(found.values())

    def _numbered(self) -> list[int]:
        """Count the rows of each molecule, from 0."""
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
        """Cut the molecules into what moves, by the atoms that are frozen now; these are at rest."""
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
        """Cut the molecule of each row into what moves, once for rows with the same frozen atoms."""
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
        """Find rows of each ladder, (n_ladders, n_rungs). Raises InputError if replicas fill no whole ladders."""
        n_rungs, first = len(self.settings.temperatures), self.settings.first_replica
        if self.settings.exchange_every is None:
            return np.zeros((0, n_rungs), np.int64)
        by_molecule = self._by_molecule()
        for rows in by_molecule:
            if len(rows) % n_rungs or first % n_rungs:
                raise InputError(
                    f"{len(rows):,} replicas from number {first:,} on fill no ladders of "
                    f"{n_rungs} temperatures; take a multiple of {n_rungs}"
                )
        return np.array([k for rows in by_molecule for k in rows]).reshape(-1, n_rungs)

    def _note(self) -> None:
        """Say what was decided."""
        bodies = [body for body in dict.fromkeys(self._bodies) if body is not None]
        held = sum(len(body.constraints.hydrogens) for body in bodies if body.constraints)
        notes = []
        if self.settings.hydrogen_mass is not None:
            notes.append(f"hydrogens weigh {self.settings.hydrogen_mass:g} Da, which their neighbours lack")
        if held:
            notes.append(f"{held:,} bonds to hydrogen keep the lengths of the force field")
        of_bodies = {body: atoms for body, atoms in zip(self._bodies, self.ensemble.atoms, strict=True) if body}
        found = (step_note(atoms, body, self.settings.timestep) for body, atoms in of_bodies.items())
        notes += [note for note in found if note][:1]
        notes += [hills.note for hills in self._hills.values() if hills.note]
        if self.removes_motion:
            notes.append("the centre of mass is kept at rest")
        rewrite(self, notes=tuple(notes))

    def _place(self, rows: Rows) -> None:
        """Bring bonds of rows that are held to their lengths."""
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
        """Rows that go on."""
        there = self.ensemble.state.there(None)
        return there[~self._lost[there]]

    @property
    def _goes_on(self) -> NDArray[np.bool_]:
        """Tell of each row if it goes on, (n_rows,)."""
        found = np.zeros(len(self), bool)
        found[self._rows] = True
        return found

    def _catch_up(self) -> None:
        """Take up what was written since: frozen atoms, positions, restraints.

        Rows that were placed get their bonds held. If they had stopped or failed, they begin again with velocities that
        are drawn. Then all rows have their forces and energies.
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
            to_place = there[has_moved | ~self._lost[there]]  # bonds that are held now may have other lengths
        self._place(to_place)
        self._moves[:] = state.moves
        if len(old := there[~state.evaluated[there]]):
            state.evaluate(old)
        if len(new := moved[self._lost[moved]]):
            self._draw(new)

    def _draw(self, rows: Rows) -> None:
        """Draw new velocities of rows, and let them move on."""
        motion = self._motion
        if self.settings.anneal:
            motion.write("temperatures", self.temperatures)
        motion.launch([motion.draw], rows)
        self._begin(rows, again=True)

    def _begin(self, rows: Rows, *, again: bool = False) -> None:
        """Let rows move on with the velocities on the device. again : whether these are at the time of the positions"""
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
        """Wait for the device, and go on without rows that stopped."""
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
        """Make steps of all replicas, with the exchanges and hills that are due. Returns the simulation.

        Earlier changes are applied first. An interrupted run ends after a complete step.

        steps : their number, or time with its unit, "10ps"
        every, call : a function that is called with the simulation after each step whose number is a multiple of
            `every` (a number, or a time). It may read and write everything that can be read and written between runs,
            but not call `run`, `write` or `restore`. If it raises, the run ends after that step

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
        """Call a function between steps: it may read and write rows, but not make steps or restore others."""
        self._calls = True
        try:
            call(self)
        finally:
            self._calls = False

    def _require_no_call(self) -> None:
        if self._calls:
            raise InputError(
                "a function that is called in the midst of a run cannot make steps, restore or begin files; "
                "it may read and write rows"
            )

    def _run(self, steps: int) -> Simulation:
        """Make steps, without calls between them."""
        self._require_own_rungs()
        if self._exchanges_all:
            self.ensemble.state.exchanger = self._exchanger
        self._catch_up()
        end, state, self._under_way = self.steps + steps, self.ensemble.state, self._rows
        state.changed(self._under_way)
        try:
            self._run_to(end)
            state.add_up(self._under_way)  # with rows that stopped, where they did
        except BaseException:
            with suppress(PeleError):  # of a device that fails; then the next call tries again
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
                self.__dict__["_steps"] += 1  # without the check of written attributes, which costs time
                self._add_hills(rows, self.steps)
                if every is not None and self.steps % every == 0:
                    self._motion.exchange(rows, self.steps // every - 1)
                if self.steps % STEPS_A_FLUSH == 1:
                    state.queue.submit()
            self._drop_stopped()

    def _add_hills(self, rows: Rows, step: int, *, missing: bool = False) -> None:
        """Start to add the hills that are due at a step, and to compute forces with them.

        missing : whether only those that were not added yet, after an interrupt
        """
        for hills in self._hills.values():
            number, rest = divmod(step, hills.pace)
            if rest == 0 and number and not (missing and hills.made >= number):
                hills.add(rows, number)
                self.ensemble.state.launch(rows)

    def _settle(self, steps: int) -> None:
        """End a run. Rows were evaluated; stopped ones that share a bias, which grew, are when they are read."""
        assert self._under_way is not None
        self._steps, state = steps, self.ensemble.state
        state.settled(self._under_way)
        if any(hills.term.shared for hills in self._hills.values()):
            state.changed(np.flatnonzero(self._lost), moved=False)
        self._moves[self._under_way] = state.moves[self._under_way]
        self._under_way = None

    def _recover(self) -> None:
        """End an interrupted run after the last step that the device began, and make that whole."""
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
        """Return whether rows exchange scales, restraints and biases."""
        return self.settings.exchange_every is not None and self.settings.exchange == "hamiltonian"

    def _require_own_rungs(self) -> None:
        """Raise InputError if another simulation of these rows has exchanged what they have of their own since."""
        if self._exchanges_all and self._motion.attempts and self.ensemble.state.exchanger is not self._exchanger:
            raise InputError(
                "another simulation exchanged what these rows have of their own, so that rungs are no longer known "
                "here; continue that one, or make a new one"
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
        """Messages about replicas that stopped, have no place, or no energy at their positions, by row."""
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

        They include restraints and other terms by name; terms that a molecule does not have are 0.
        """
        self._catch_up()
        rows, names = self._rows, self.ensemble.names
        values = np.full((len(self), len(names)), np.nan)
        values[rows] = self.ensemble.terms(rows).values
        return Terms(names, values)

    @property
    @locked
    def restraint_energies(self) -> Floats | None:
        """Energies of restraints and other terms, (n_rows,) kcal/mol, which are part of the potential energies.

        NaN for stopped replicas. None if there are no such terms.
        """
        names = {term.name for term in self.ensemble.state.options["terms"]}
        if not names:
            return None
        terms = self.term_energies
        found: Floats = terms.values[:, [name in names for name in terms.names]].sum(axis=1)
        return found

    @locked
    def u_kn(self, *, by_rung: bool = False) -> Floats:
        """Reduced energies U / (k_B T) of all replicas in the states of all replicas, (n_rows, n_rows), for MBAR.

        A state is a temperature with the scales, restraints and biases of a row. States are the first index, in the
        order of rows, or of rungs, ladder by ladder, with exchanges. NaN energies are replaced by infinity. Each
        state needs an evaluation of all rows.

        by_rung : for ladders that are alike, as in `rest2`: states are the rungs, `rungs` says which one each replica
            has, and the result is (n_rungs, n_rows). Each replica is evaluated in the states of its own ladder

        Raises InputError if replicas are of several molecules, one stopped or has no place, or there are no ladders.
        """
        if flag("by_rung", by_rung) and self.settings.exchange_every is None:
            raise InputError("there are no exchanges and no rungs; leave out `by_rung`")
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
        """Current state of each row, as numbered in `u_kn`, (n_rows,): its own number, or its rung and ladder."""
        if self.settings.exchange_every is None:
            return np.arange(len(self))
        self._require_own_rungs()
        return np.argsort(self._motion.read("row_of").ravel())

    @locked
    def variables(self, name: str) -> Floats:
        """Collective variables of a bias at the positions of rows, (n_rows, d); NaN of rows that have none.

        name : of a term on collective variables, such as Metadynamics
        """
        self._catch_up()
        return variables_of(self.ensemble, self.bias_term(name))[0]

    @locked
    def bias_energies(self, name: str) -> Floats:
        """Energies of a bias on collective variables at the positions of rows, (n_rows,) kcal/mol. name : of the term

        For stopped replicas at their last positions; NaN for those without a place. After a hill, this is included.
        """
        self._catch_up()
        return variables_of(self.ensemble, self.bias_term(name))[1]

    @locked
    def hills(self, name: str) -> Floats:
        """The last hill of each row, (n_rows, d + 1): its place, and its height in kcal/mol, or its weight.

        NaN of rows that had none yet.

        name : of Metadynamics or OPES
        """
        self._growing(name)
        return self._hills[name].last

    @locked
    def metadynamics_surface(self, name: str, row: int = 0) -> tuple[tuple[Floats, ...], Floats]:
        """Estimate the free energy from the bias of metadynamics, or the density of OPES, of a row.

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
            raise InputError(f"{name} gets no hills; it is a {type(term).__name__}")
        return term

    @property
    @locked
    def kinetic_energies(self) -> Floats:
        """(n_rows,) kcal/mol, without the motion of the centre of mass if that is removed; NaN for stopped replicas."""
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
        """Lowest and highest temperature of each row's heat bath in the schedule, or its current one, (n_rows,) K."""
        if self.settings.anneal:
            kelvins = [kelvin for _, kelvin in self.settings.anneal]
            return np.full(len(self), min(kelvins)), np.full(len(self), max(kelvins))
        current = self._motion.read("temperatures").astype(np.float64)
        return current, current

    @property
    @locked
    def temperatures(self) -> WritableValues:
        """Current temperatures of the rows' heat baths, (n_rows,) K; writable.

        Velocities adapt by friction, or immediately by `draw_velocities`. Raises InputError when writing temperatures
        that are set by exchanges or annealing.
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
        """Write temperatures of heat baths, (n_rows,) K, and scale velocities to them."""
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
            raise InputError(f"temperatures are set by {by}; make a simulation with other ones")
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
        """Hash of all that energies of the replicas' states depend on, which other simulations differ in.

        It stays the same while replicas move and exchange, and in a simulation that goes on from a checkpoint.
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
        """Exchanges tried and accepted between each rung and the next, (n_rungs - 1,) each, of all ladders.

        For two-dimensional ladders (2, n, m) each: with the next rung along the first and the second dimension.

        Raises InputError if there are no exchanges.
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
        """Write a checkpoint, .npz, with everything that further steps depend on, including restraints and frozen
        atoms.

        Raises FormatError if it cannot be written.
        """
        self._write_checkpoint(checkpoint.target_of(path))

    def restore(self, path: str | PathLike[str]) -> Simulation:
        """Continue from a checkpoint of a simulation with the same molecules and settings, bit for bit.

        Raises FormatError for an invalid file, InputError for that of another simulation, without changing this one.
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
        """Make steps, and write the files of `pele_ocl.simulate`: trajectories, tables, a checkpoint.

        output : the folder
        steps : to make; or time : to simulate, ps, or with a unit, "10ns"
        report_every, trajectory_format, trajectory_of, velocities : as in `pele_ocl.simulate`; frames are counted from
            here
        minimize : iterations of a minimization before the first frame
        resume : continue an interrupted run of this simulation in the folder
        overwrite : replace an earlier run in the folder, which is refused otherwise
        names : of the molecules, for their files; by default molecule, or molecule-1, molecule-2, ...
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
            raise InputError(f"names are {named}; different ones of {len(molecules):,} molecules are needed")
        if trajectory_of == "temperature" and self.settings.exchange_every is None:
            raise InputError("`trajectory_of=temperature` is about a ladder; make the simulation with `exchange_every`")
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
            remove_run(files_of_run(folder), [])
        structures = [Simulated(name, of) for name, of in zip(named, molecules, strict=True)]
        model = SolventModel.or_default(self.ensemble.state.options["model"])
        return SimulateResult.of_parts([files.run(watch=watch)], folder, structures, model)

    @locked
    def _write_checkpoint(self, path: Path, **more: NDArray[Any]) -> None:
        """Write a checkpoint as `save` does, and further arrays with it."""
        checkpoint.write(path, {**self._arrays(), "what": np.array(self._what), **more})

    @locked
    def _read_checkpoint(self, path: Path) -> dict[str, NDArray[Any]]:
        """Go on from a checkpoint as `restore` does, and give the further arrays that are in it."""
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
        """Read velocities at the positions, (n, 3) A/ps."""
        self._catch_up()
        failed = self.ensemble.state.failed
        self._motion.launch([self._motion.present], self.ensemble.state.there(rows))
        found = [self._motion.arrays["present"].read(k).astype(np.float64) for k in rows]
        return [np.full_like(v, np.nan) if k in failed else v for k, v in zip(rows, found, strict=True)]

    def _write_velocities(self, rows: list[int], velocities: Sequence[ArrayLike]) -> None:
        """Write velocities at the positions. A stopped replica restarts with them."""
        self._catch_up()
        array, state = self._motion.arrays["velocities"], self.ensemble.state
        given = [_velocities(k, values, len(state.atoms[k])) for k, values in zip(rows, velocities, strict=True)]
        if lost := [k for k in rows if k in state.failed]:
            raise InputError(f"row {lost[0]} has no place to go on from: {state.failed[lost[0]]}")
        for k, values in zip(rows, given, strict=True):
            values[state.frozen[k]] = 0
            array.write(values, k)
        self._begin(np.array(rows, np.int64), again=True)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        """Return all that further steps depend on."""
        self._catch_up()
        state, motion = self.ensemble.state, self._motion
        arrays: dict[str, NDArray[Any]] = {name: motion.read(name) for name in motion.state}
        arrays |= checkpoint.read_rows(state)
        arrays["energies"], arrays["steps"] = self.potential_energies, np.array(self.steps)
        arrays |= {f"hills of {name}": hills.state for name, hills in self._hills.items()}
        return arrays

    def _go_on_from(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `_arrays` gave."""
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
        # Velocities of centres stay those of the checkpoint: measured again, a GPU's sums differ in the last bit.
        state.evaluate(None)


def _again(ensemble: Ensemble, given: dict[str, Any], what: str, arrays: Mapping[str, NDArray[Any]]) -> Simulation:
    """Make the simulation that a pickle describes."""
    simulation = Simulation(ensemble, **given)
    simulation._what = what
    simulation._go_on_from(arrays)
    return simulation


def _ensemble_of(molecules: Atoms | Sequence[Atoms] | Ensemble, replicas: int, options: dict[str, Any]) -> Ensemble:
    """Take an ensemble, or make one of so many replicas of each molecule."""
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
        raise InputError(f"{given} is the ensemble's own; leave it out")
    if not molecules.state.options["gradient"]:
        raise InputError("dynamics need gradients; the ensemble was made with gradient=False")
    _require_whole_gradient(molecules)
    return molecules


def _require_whole_gradient(ensemble: Ensemble) -> None:
    """Raise InputError if Born radii are fixed in the gradient, which is then none of the energy."""
    if ensemble.state.options["fixed_radii"]:
        raise InputError("fixed_radii makes a gradient that is none of the energy; leave it out of dynamics")


def _velocities(k: int, values: ArrayLike, n: int) -> Floats:
    """Check velocities (n, 3) A/ps of row k, and copy them. Raises InputError for others than finite numbers."""
    given = numbers("velocities", values)
    try:
        found = np.broadcast_to(given, (n, 3)).copy()
    except ValueError:
        raise InputError(f"velocities of row {k} have shape {given.shape}; ({n}, 3) is needed") from None
    if not np.isfinite(found).all():
        raise InputError(f"velocities of row {k} must be finite numbers")
    return found
