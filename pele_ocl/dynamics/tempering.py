"""Solute tempering, simulated tempering, and samples of replicas in all states; docs/theory/sampling.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..atoms import Atoms, Floats, Ints, require_atoms, selectable
from ..atoms.selection import Selection
from ..common.arguments import atoms_mask, checked, described, flag, numbers, texts, whole_number
from ..common.errors import InputError
from ..common.modules import takes_structures
from ..units import BOLTZMANN_KCAL
from .mbar import MBAR
from .settings import require_none_of, require_thermostat, temperatures_of
from .simulation import Simulation


@checked
@takes_structures("atoms")
def rest2(
    atoms: Atoms,
    temperatures: Sequence[float],
    *,
    ladders: int = 1,
    hot: ArrayLike | str | None = None,
    exchange_every: int | str = 500,
    **options: Any,
) -> Simulation:
    """Create a simulation with solute tempering (REST2): all replicas at the first temperature, with scaled energies.

    In rung m, charges of hot atoms are scaled by sqrt(T_0/T_m), Lennard-Jones wells and torsions by T_0/T_m (Wang,
    Friesner and Berne, J. Phys. Chem. B 2011, 115, 9431). Impropers, CMAPs and the nonpolar energy are not scaled.

    temperatures : effective temperatures of the rungs, K, increasing
    ladders : number of ladders of replicas
    hot : indices, a mask (n,) or a selection of the hot atoms; by default all
    exchange_every : interval of exchanges, in steps or a time with a unit; options : of Simulation and Ensemble

    Raises InputError for invalid temperatures.

        >>> import pele_ocl
        >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
        >>> simulation = pele_ocl.rest2(atoms, [300, 400, 500], exchange_every=10, timestep=1.0).run(30)
        >>> simulation.temperatures.tolist(), sorted(simulation.rungs.tolist())
        ([300.0, 300.0, 300.0], [0, 1, 2])
    """
    require_atoms(atoms)
    require_none_of(options, "temperature", "replicas", "exchange", "scales")
    of_rungs = _ladder(temperatures)
    whole_number("ladders", ladders, least=1)
    mask = np.ones(len(atoms), np.bool_) if hot is None else _hot(hot, atoms)
    n = len(of_rungs)
    simulation = Simulation(
        atoms, n * ladders, temperature=[float(of_rungs[0])] * n, exchange_every=exchange_every,
        exchange="hamiltonian", scales=True, **options,
    )  # fmt: skip
    shares = np.tile(of_rungs[0] / of_rungs, ladders)[:, None]
    scales = simulation.ensemble.scales
    scales["charges"][:] = list(np.where(mask, np.sqrt(shares), 1.0))
    scales["lennard_jones"][:] = list(np.where(mask, shares, 1.0))
    scales["torsions"][:] = list(np.where(mask, shares, 1.0))
    return simulation


def _hot(hot: ArrayLike | str, atoms: Atoms) -> NDArray[np.bool_]:
    """Return a mask (n,) of hot atoms. Raises InputError if there are none."""
    if isinstance(hot, str):
        return Selection(hot).mask(selectable(atoms))
    mask = atoms_mask("hot atoms", hot, len(atoms))
    if not mask.any():
        raise InputError("`hot` contains no atoms; leave it out for all atoms")
    return mask


def _ladder(temperatures: Sequence[float]) -> Floats:
    """Return the temperatures of rungs, (n_rungs,) K. Raises InputError unless two or more increase strictly."""
    found: Floats = np.array(temperatures_of(temperatures))
    if len(found) < 2 or found[0] <= 0 or (np.diff(found) <= 0).any():
        raise InputError("a ladder needs two or more increasing temperatures above 0 K")
    return found


class StateSamples:
    """Sample the energies of replicas in all states, for MBAR; pass it as `call` to `Simulation.run`.

        >>> import pele_ocl
        >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
        >>> samples = pele_ocl.StateSamples()
        >>> simulation = pele_ocl.rest2(atoms, [300, 400], exchange_every=10, timestep=1.0)
        >>> _ = simulation.run(40, every=10, call=samples)
        >>> samples.u_kn.shape, samples.states.tolist()[:2] in ([0, 1], [1, 0])
        ((2, 8), True)

    A call raises InputError, and takes no samples, if a replica has stopped or has no energy, or if the states of the
    simulation have changed: molecule, settings, solvent, temperatures, scales or restraints.

    names : names of bias terms whose collective variables are stored
    by_rung : whether all ladders are equivalent and the states are their rungs, as in `Simulation.u_kn`
    """

    def __init__(self, names: Sequence[str] = (), *, by_rung: bool = False) -> None:
        self._names, self._by_rung = texts("names", names), flag("by_rung", by_rung)
        self._digest = ""  # of the states
        self._u: list[Floats] = []
        self._states: list[Ints] = []
        self._variables: list[Floats] = []

    def __call__(self, simulation: Simulation) -> None:
        """Take a sample of all replicas."""
        if not isinstance(simulation, Simulation):
            raise InputError(f"the simulation is {described(simulation)}; expected a Simulation")
        digest = simulation._digest_of_states
        if self._u and self._digest != digest:
            raise InputError(
                "these samples belong to another simulation or to other states; create new ones for this one"
            )
        u_kn = simulation.u_kn(by_rung=self._by_rung)
        states = (simulation.rungs if self._by_rung else simulation.states).astype(np.int32)
        if not (there := np.isfinite(u_kn[states, np.arange(len(states))])).all():
            k = int(np.argmin(there))
            raise InputError(f"replica {k} has no energy at its positions: {simulation.errors[k]}")
        variables = [simulation.variables(name) for name in self._names]
        self._digest = digest
        self._u.append(u_kn)
        self._states.append(states)
        if variables:
            self._variables.append(np.concatenate(variables, axis=1))

    def __repr__(self) -> str:
        return f"StateSamples({len(self._u):,} times)"

    @property
    def u_kn(self) -> Floats:
        """Reduced energies, (n_states, n_times n_rows), as in `Simulation.u_kn`; samples by time, then by row."""
        self._require_samples()
        return np.concatenate(self._u, axis=1)

    @property
    def states(self) -> Ints:
        """State of each sample, (n_times n_rows,)."""
        self._require_samples()
        return np.concatenate(self._states)

    @property
    def variables(self) -> Floats:
        """Sampled collective variables, (n_times n_rows, d). Raises InputError if none are stored."""
        self._require_samples()
        if not self._names:
            raise InputError("no variables were recorded; give the `names` of their terms")
        return np.concatenate(self._variables)

    def mbar(self) -> MBAR:
        """Combine all states by MBAR. Raises InputError if there are no samples."""
        return MBAR(self.u_kn, self.states)

    def _require_samples(self) -> None:
        if not self._u:
            raise InputError("there are no samples yet; pass this object as `call` to `Simulation.run`")


class SimulatedTempering:
    """Simulated tempering of independent replicas; pass it as `call` to `Simulation.run`.

    At each call, a move of each replica to a neighbouring rung is accepted by the Metropolis criterion for
    exp(-U / (k_B T_m) + g_m) (Marinari and Parisi, Europhys. Lett. 1992, 19, 451), and its velocities are scaled to the
    new temperature. Random numbers depend on the seed and the step of the simulation. Weights g_m are given, or
    determined by the Wang-Landau method while `increment` is not 0. The increment is halved when every rung has been
    visited at least half as often as the average.

    temperatures : of the rungs, K; replicas start on the rung closest to their temperature
    weights : (n_rungs,) g_m; None to determine them

    `weights` and `increment` are the current values, and `visits` counts visits of rungs since the increment last
    changed. A checkpoint of the simulation does not contain them. To continue, create
    `SimulatedTempering(temperatures, weights)`, or pickle this object.
    """

    def __init__(self, temperatures: Sequence[float], weights: ArrayLike | None = None) -> None:
        self.temperatures = _ladder(temperatures)
        n = len(self.temperatures)
        self.increment = 1.0 if weights is None else 0.0
        self.weights = np.zeros(n) if weights is None else numbers("weights", weights).copy()
        if self.weights.shape != (n,) or not np.isfinite(self.weights).all():
            raise InputError(f"weights have shape {self.weights.shape}; expected ({n},) finite numbers")
        self.visits = np.zeros(n, np.int64)
        self._tried, self._accepted = np.zeros((2, n - 1), np.int64)

    def __repr__(self) -> str:
        return f"SimulatedTempering({len(self.temperatures)} rungs, increment {self.increment:g})"

    @property
    def exchanges(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Numbers of tried and accepted moves between each rung and the next, (n_rungs - 1,)."""
        return self._tried.copy(), self._accepted.copy()

    def rungs_of(self, simulation: Simulation) -> Ints:
        """Return the rungs of the replicas, (n_rows,)."""
        if not isinstance(simulation, Simulation):
            raise InputError(f"the simulation is {described(simulation)}; expected a Simulation")
        apart = np.abs(np.asarray(simulation.temperatures)[:, None] - self.temperatures)
        return np.asarray(apart.argmin(axis=1), np.int64)

    def __call__(self, simulation: Simulation) -> None:
        """Try a move of each replica to a neighbouring rung."""
        rungs, n = self.rungs_of(simulation), len(self.temperatures)
        require_thermostat(simulation.settings.integrator, "moves between temperatures")
        energies = simulation.potential_energies
        key = simulation.settings.seed + (simulation.settings.first_replica << 32)
        rng = np.random.Generator(np.random.Philox(key=key, counter=simulation.steps))
        up, chance = rng.random((2, len(rungs)))
        goes_on = np.isfinite(energies)  # replicas without energy are ignored
        other = np.where(goes_on, np.clip(rungs + np.where(up < 0.5, 1, -1), 0, n - 1), rungs)
        beta = 1 / (BOLTZMANN_KCAL * self.temperatures)
        gain = self.weights[other] - self.weights[rungs] - (beta[other] - beta[rungs]) * energies
        moves = chance < np.exp(np.minimum(gain, 0.0))  # False where gain is NaN
        after = np.where(moves, other, rungs)
        lower = np.minimum(rungs, other)[other != rungs]
        np.add.at(self._tried, lower, 1)
        np.add.at(self._accepted, lower, moves[other != rungs])
        if not np.allclose(self.temperatures[after], simulation.temperatures, rtol=1e-6, atol=0):
            simulation.change_temperatures(self.temperatures[after])
        np.add.at(self.visits, after[goes_on], 1)
        if self.increment:
            np.subtract.at(self.weights, after[goes_on], self.increment)
            self.weights -= self.weights[0]
            if self.visits.min() >= max(20, 0.5 * self.visits.mean()):
                self.increment, self.visits = self.increment / 2, np.zeros(n, np.int64)
