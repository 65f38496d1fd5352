"""Umbrella sampling with one replica per window; docs/theory/sampling.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..atoms import Atoms, Floats, require_atoms
from ..common.arguments import checked, number, numbers, whole_number
from ..common.errors import InputError
from ..common.modules import takes_structures
from ..energy.terms import GridBias, Term, Variable
from ..energy.terms.grid_bias import Axis, Range
from ..energy.terms.variables import checked_variables
from ..report import Column, Report, Reported
from ..units import BOLTZMANN_KCAL, in_unit
from .amounts import steps_or_time
from .mbar import MBAR, FreeEnergyResult
from .settings import ROOM, every_of, require_none_of, require_thermostat
from .simulation import Simulation

if TYPE_CHECKING:
    from ..atoms import Ints

NAME = "umbrella"
MOST = 1e6  # largest force constant
NODES = 120  # grid nodes of a torsion
FARTHEST = 100.0  # A from the last centre to the end of the bias grid


@dataclass(frozen=True, eq=False, repr=False)
class UmbrellaResult(Reported):
    """Samples from umbrella sampling.

    simulation : simulation with one replica per window, at the final positions
    centers, force_constants : (n_windows, d) of the windows
    variables : (n_times, n_windows, d) sampled variables
    temperature : K
    """

    simulation: Simulation
    centers: Floats
    force_constants: Floats
    variables: Floats
    temperature: float

    def __post_init__(self) -> None:
        for of in (self.centers, self.force_constants, self.variables):
            of.flags.writeable = False  # because MBAR results are cached

    @property
    def u_kn(self) -> Floats:
        """Reduced bias energies, (n_states, n_times n_windows); samples by time, then by window.

        The energy of the molecule is omitted because it is the same in all windows. Equal windows are one state; states
        are in order of first occurrence.
        """
        samples = self.variables.reshape(-1, self.variables.shape[2])
        return np.stack([self._bias(k, samples) for k in self._distinct[0]]) / self._kt

    @property
    def states(self) -> Ints:
        """State of each sample, (n_times n_windows,)."""
        return np.tile(self._distinct[1], len(self.variables))

    @cached_property
    def _distinct(self) -> tuple[list[int], Ints]:
        """Return the first window of each state, and the state of each window."""
        firsts: dict[tuple[float, ...], int] = {}
        windows = map(tuple, np.concatenate([self.centers, self.force_constants], axis=1).tolist())
        keys = [firsts.setdefault(window, k) for k, window in enumerate(windows)]
        distinct = list(firsts.values())
        return distinct, np.searchsorted(distinct, keys).astype(np.int32)

    def table(self) -> Report:
        """Return a table with the variables of each sample of each window."""
        n_times, n_windows, d = self.variables.shape
        columns: dict[str, Any] = {
            "sample": np.repeat(np.arange(n_times), n_windows), "window": np.tile(np.arange(n_windows), n_times),
        }  # fmt: skip
        flat = self.variables.reshape(-1, d)
        columns |= {f"variable_{k + 1}": Column(flat[:, k], self._units[k], form=".4f") for k in range(d)}
        facts = {
            "temperature": self.temperature, "centers": self.centers.tolist(),
            "force_constants": self.force_constants.tolist(),
        }  # fmt: skip
        return Report("Samples of umbrella windows", columns, facts)

    def to_json(self) -> dict[str, Any]:
        """Return the table in JSON form."""
        return self.table().to_json()

    def save(self, path: str | PathLike[str]) -> None:
        """Write the table as CSV, JSON or HDF5, depending on the suffix."""
        self.table().save(path)

    def mbar(self) -> MBAR:
        """Combine the windows by MBAR."""
        return self._mbar

    @cached_property
    def _mbar(self) -> MBAR:
        return MBAR(self.u_kn, self.states)

    def free_energy(
        self, bins: int | Sequence[ArrayLike], *, blocks: int = 5, names: Sequence[str] = ()
    ) -> FreeEnergyResult:  # fmt: skip
        """Compute the unbiased free energy of the variables. bins, blocks, names : as in `pele_ocl.free_energy`"""
        samples = self.variables.reshape(-1, self.variables.shape[2])
        return self.mbar().free_energy(
            samples, bins, self.temperature, u_n=np.zeros(len(samples)), blocks=blocks, names=names, units=self._units
        )

    @property
    def _units(self) -> list[str]:
        return [of.unit for of in self.simulation.bias_term(NAME).members]

    @property
    def _kt(self) -> float:
        return BOLTZMANN_KCAL * self.temperature

    def _bias(self, k: int, samples: Floats) -> Floats:
        term = self.simulation.bias_term(NAME)
        away = np.stack([axis.away(x, c) for axis, x, c in zip(term.axes, samples.T, self.centers[k], strict=True)])
        found: Floats = self.force_constants[k] @ away**2
        return found

    def __repr__(self) -> str:
        n_times, n_windows, d = self.variables.shape
        return f"UmbrellaResult({n_windows:,} windows on {d} variables, {n_times:,} samples each)"


@checked
@takes_structures("atoms")
def umbrella(
    atoms: Atoms,
    variables: Variable | Sequence[Variable],
    centers: ArrayLike,
    force_constants: ArrayLike,
    *,
    steps: int | str,
    sample_every: int | str = 100,
    equilibrate: int | str = 0,
    minimize: int = 0,
    positions: ArrayLike | None = None,
    temperature: float = ROOM,
    **options: Any,
) -> UmbrellaResult:
    """Run umbrella sampling: all windows in one simulation, with a harmonic bias k (s - s0)^2 on each variable.

    variables : one to three collective variables
    centers : s0, (n_windows,) or (n_windows, d); force_constants : k, a number or an array of the same shape, in
        kcal/mol per squared unit of the variable
    steps : sampling steps; sample_every : interval of samples; equilibrate : steps before sampling. All three may also
        be times with a unit, such as "10ps"
    minimize : minimization iterations of each window before equilibration; 0 for none
    positions : (n_windows, n, 3) A, initial positions; by default those of the molecule
    temperature : K; options : keywords of Simulation and Ensemble

    Raises InputError for invalid windows.

        >>> import pele_ocl, numpy as np
        >>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
        >>> phi = pele_ocl.TorsionVariable([4, 6, 8, 14])
        >>> run = pele_ocl.umbrella(atoms, phi, np.radians([-120, -60]), 10.0, steps=40, sample_every=10, timestep=1.0)
        >>> run, run.u_kn.shape
        (UmbrellaResult(2 windows on 1 variables, 4 samples each), (2, 8))
    """
    require_atoms(atoms)
    require_none_of(options, "replicas", "anneal")
    require_thermostat(options.get("integrator", "langevin"), "samples of windows")
    members = checked_variables(variables)
    temperature = number("temperature", in_unit("temperature", temperature, "K"), "a temperature above 0 K", above=0.0)
    at = numbers("centers", centers).copy()  # the result makes it read-only
    at = at[:, None] if at.ndim == 1 else at
    if at.ndim != 2 or not len(at) or at.shape[1] != len(members) or not np.isfinite(at).all():
        raise InputError(f"centers have shape {np.shape(centers)}; expected finite numbers (n_windows, {len(members)})")
    given = numbers("force_constants", force_constants)
    given = given[:, None] if given.shape == at.shape[:1] else given
    if (
        given.shape not in ((), at.shape, (len(at), 1))
        or not np.isfinite(given).all()
        or (not 0 <= given.min() <= given.max() < MOST)
    ):
        raise InputError(f"force_constants have shape {given.shape}; expected one or {at.shape} numbers, 0 to 1e6")
    stiff = np.broadcast_to(given, at.shape).copy()
    timestep = in_unit("timestep", options.get("timestep", 2.0), "fs")
    timestep = number("timestep", timestep, "a time above 0", above=0.0)
    every = every_of("sample_every", sample_every, timestep)
    if (steps := steps_or_time("steps", steps, timestep)) < every:
        raise InputError(
            f"steps are {steps:,}, with a sample every {every:,}; choose more steps, or a smaller `sample_every`"
        )
    equilibrate = steps_or_time("equilibrate", equilibrate, timestep)
    axes, bounds = harmonic_axes(members, at)
    grids = [harmonic_grid(axes, center, k) for center, k in zip(at, stiff, strict=True)]
    term = GridBias(members, grids[0], bounds, NAME)
    others = options.get("terms", ())
    listed = (others,) if isinstance(others, Term) else others
    options["terms"] = (*listed, term) if isinstance(listed, list | tuple) else listed  # Ensemble raises the error
    simulation = Simulation(atoms, len(at), temperature=temperature, **options)
    simulation.ensemble.values(NAME, "grid")[:] = grids
    if positions is not None:
        simulation.positions[:] = positions
    if whole_number("minimize", minimize):
        simulation.minimize(max_iterations=minimize)
    simulation.run(equilibrate)
    found: list[Floats] = []
    end = simulation.steps + steps
    while simulation.steps < end:
        simulation.run(min(every, end - simulation.steps))
        found.append(simulation.variables(NAME))
    for k, why in simulation.errors.items():
        raise InputError(f"window {k}: {why}")
    return UmbrellaResult(simulation, at, stiff, np.stack(found), float(temperature))


def harmonic_axes(variables: Sequence[Variable], centers: Floats) -> tuple[list[Axis], list[Range | None]]:
    """Choose the grid axes and their bounds for harmonic wells at centers (n, d)."""
    bounds: list[Range | None] = []
    for of, at in zip(variables, centers.T, strict=True):
        if of.period and np.abs(at).max() > of.period:
            raise InputError(f"a torsion's centre is {at[np.abs(at).argmax()]:g}; expected radians, -2 pi to 2 pi")
        bounds.append(None if of.period else (min(0.0, float(at.min())), float(at.max()) + FARTHEST))
    axes = [Axis.of(of, span, n=NODES if of.period else 2) for of, span in zip(variables, bounds, strict=True)]
    return axes, bounds


def harmonic_grid(axes: Sequence[Axis], center: Floats, force_constants: Floats) -> Floats:
    """Return the grid of a harmonic well, exactly interpolated by cubics except half a turn from a torsion's centre."""
    d = len(axes)
    grid = np.zeros((*(axis.n for axis in axes), 1 << d))
    for k, (axis, at, stiff) in enumerate(zip(axes, center, force_constants, strict=True)):
        away = axis.away(axis.nodes, at)
        shape = [-1 if of == k else 1 for of in range(d)]
        grid[..., 0] += (stiff * away**2).reshape(shape)
        grid[..., 1 << k] += (2 * stiff * away * axis.spacing).reshape(shape)
    return grid
