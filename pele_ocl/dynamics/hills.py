"""Metadynamics and OPES hills, added to the biases of rows on the device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakMethod

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats
from ..common.errors import InputError
from ..energy.terms import OPES, Growing, Interpolated
from ..ensemble.state import MOST_ROWS, Rows
from ..opencl.interface import VARIABLE_REALS
from ..units import BOLTZMANN_KCAL
from .hamiltonians import uninterrupted

if TYPE_CHECKING:
    from ..ensemble import Ensemble
    from ..opencl.memory import Buffer
    from .motion import Motion

HILL = 4  # numbers per hill, as in cl/dynamics/hills.cl
ITEMS = 64  # per work-group
MOST_TOGETHER = 10.0  # kcal/mol, total height that walkers may add at one time without a warning


class Hills:
    """Hills of a history-dependent bias in all rows of a simulation.

    pace : steps between hills
    """

    def __init__(self, ensemble: Ensemble, motion: Motion, term: Growing) -> None:
        self._state, self._motion, self.term, self.pace = ensemble.state, motion, term, term.pace
        state, queue = self._state, self._state.queue
        fine, n = state.fine, len(state.systems)
        names = list(dict.fromkeys([term.grown, "grid"]))
        places, variables = np.zeros((len(names), n), np.uint64), np.zeros(n, np.uint64)
        owners = np.arange(n)
        firsts: dict[int, int] = {}
        for k in state.with_molecule.tolist():
            places[:, k] = [state.places([k], f"{name} of {term.name}")[0][0] for name in names]
            variables[k] = state.places([k], term.found)[0][0]
            if term.shared:
                owners[k] = firsts.setdefault(id(state.systems[k]), k)
        self._owners = owners
        axes = [(axis.n, axis.first, axis.spacing, axis.is_periodic) for axis in term.axes]
        self._macros = {"N_VARIABLES": len(term.axes), **motion.macros}
        self._hills = queue.zeros(n * HILL, fine)
        self.state = None
        self._made = queue.zeros(1, np.uint32)
        self._places = dict(zip(names, (queue.upload(of, np.uint64) for of in places), strict=True))
        self._of_variables = queue.upload(variables, np.uint64)
        self._axes = queue.upload(np.array(axes, np.float64), fine)
        self._widths = queue.upload(np.asarray(term.widths), fine)
        self._inverses = queue.zeros(n, fine)
        self._items = min(ITEMS, queue.device.largest_group)
        self._listed: Rows = np.zeros(0, np.int64)
        if isinstance(term, OPES):
            state.followers[f"{term.grown} of {term.name}"] = WeakMethod(self.follow)

    def check(self, coldest: Floats, hottest: Floats) -> None:
        """Raise InputError for heat-bath temperatures not supported by the bias.

        coldest, hottest : (n_rows,) K, temperature range of each row during the run
        """
        term, name = self.term, self.term.name
        if term.decay and not (coldest > 0).all():
            raise InputError(f"hills of {name} depend on the temperature, which must be above 0 K")
        if not isinstance(term, OPES):
            return
        if term.shared and not np.array_equal(hottest, hottest[self._owners]):
            raise InputError(f"replicas that share the bias {name} of OPES must have one temperature")
        highest = float(hottest.max(initial=0.0))
        if term.bias_factor is None and term.barrier <= BOLTZMANN_KCAL * highest:
            raise InputError(
                f"`barrier` of {name} is {term.barrier:g} kcal/mol, and k_B T {BOLTZMANN_KCAL * highest:.3g} kcal/mol "
                f"at {highest:g} K; OPES needs a barrier above k_B T, or a `bias_factor`"
            )
        lowest = float(coldest.min(initial=highest))
        factor = term.bias_factor or term.barrier / (BOLTZMANN_KCAL * lowest)
        # Epsilon, exp(-barrier / (k_B T (1 - 1 / factor))), must not underflow.
        most = -np.log(np.finfo(self._state.fine).tiny) * (1 - 1 / factor)
        if (times := term.barrier / (BOLTZMANN_KCAL * lowest)) > most:
            raise InputError(
                f"`barrier` of {name} is {term.barrier:g} kcal/mol, {times:,.0f} k_B T at {lowest:g} K; at most "
                f"{most:,.0f} are possible, as weights of Gaussians would be 0"
            )

    def follow(self, rows: Rows, *, explored: bool = False) -> None:
        """Enqueue the update of OPES biases from densities, after densities or temperatures have changed.

        explored : skip rows whose density is zero everywhere, since their grid may have been set directly
        """
        if not isinstance(self.term, OPES):
            return
        state, queue = self._state, self._state.queue
        chosen = np.intersect1d(rows, state.with_molecule)
        if explored and len(chosen):
            self._measure(self.term, queue.upload(chosen, np.int32), len(chosen))
            chosen = chosen[queue.download(self._inverses, len(state.systems), state.fine)[chosen] > 0]
        if len(chosen):
            self._of_density(self.term, queue.upload(chosen, np.int32), len(chosen))
            queue.submit()
            state.changed(chosen, moved=False)

    @property
    def note(self) -> str:
        """Warning about high hills added by many walkers at the same time, or "" otherwise."""
        most, height = int(np.bincount(self._owners).max(initial=0)), self.term.first_height
        together = most * height
        if not self.term.shared or isinstance(self.term, OPES) or together <= MOST_TOGETHER:
            return ""
        return (
            f"{most:,} replicas add hills of {height:g} kcal/mol to one bias together, {together:,.0f} "
            "kcal/mol if they are at the same place; choose a lower `height`"
        )

    def add(self, rows: Rows, number: int) -> None:
        """Enqueue a hill for each row at its current variables. number : hills per row after this one

        Forces must be computed again afterwards.
        """
        if not np.array_equal(rows, self._listed):
            self._list(rows)
        with uninterrupted():
            self._add(rows, number)

    def _add(self, rows: Rows, number: int) -> None:
        state, queue, term = self._state, self._state.queue, self.term
        self._launch(
            "measure_hills", (len(rows), 1),
            dict(
                n_rows=len(rows), walkers=self._walkers, stopped=self._motion.buffer("stopped"),
                temperatures=self._motion.buffer("temperatures"), places=self._of_variables, height=term.first_height,
                decay=term.decay, bytes=state.bytes_on_device, hills=self._hills,
            ),
        )  # fmt: skip
        n_nodes = self._n_nodes
        self._launch(
            "add_hills", (n_nodes, self._n_grids),
            dict(
                n_nodes=n_nodes, number=number, owners=self._of_grids, starts=self._starts, walkers=self._walkers,
                places=self._places[term.grown], bytes=state.bytes_on_device, axes=self._axes, widths=self._widths,
                hills=self._hills, made=self._made,
            ),
        )  # fmt: skip
        if isinstance(term, OPES):
            self._of_density(term, self._of_grids, self._n_grids)
        for places in self._places.values() if term.shared else ():
            n_numbers = n_nodes << len(term.axes)
            targets, owners = self._shared
            self._launch(
                "share_grids", (n_numbers, self._n_targets),
                dict(
                    n_numbers=n_numbers, owners=owners, targets=targets, places=places, bytes=state.bytes_on_device
                ),
            )  # fmt: skip
        queue.submit()

    @property
    def _n_nodes(self) -> int:
        return int(np.prod([axis.n for axis in self.term.axes]))

    def _measure(self, term: OPES, owners: Buffer, n: int) -> dict[str, Any]:
        """Enqueue the measurement of the densities of n rows; return the arguments for use by the next kernel."""
        given: dict[str, Any] = dict(
            n_nodes=self._n_nodes, owners=owners, temperatures=self._motion.buffer("temperatures"),
            densities=self._places[term.grown], bytes=self._state.bytes_on_device, barrier_height=term.barrier,
            inverses=self._inverses,
        )  # fmt: skip
        self._launch("measure_density", (self._items, n), given, "dynamics/opes.cl")
        return given

    def _of_density(self, term: OPES, owners: Buffer, n: int) -> None:
        """Enqueue the computation of the biases of n rows from their densities."""
        given = self._measure(term, owners, n)
        given |= dict(grids=self._places["grid"], inverse_factor=1 / (term.bias_factor or np.inf))
        self._launch("bias_of_density", (self._n_nodes, n), given, "dynamics/opes.cl")

    def _launch(
        self, name: str, shape: tuple[int, int], arguments: dict[str, Any], file: str = "dynamics/hills.cl"
    ) -> None:
        queue, items = self._state.queue, self._items
        kernel = queue.kernel(file, name, **self._macros, **({} if file == "dynamics/hills.cl" else {"GROUP": items}))
        for first in range(0, shape[1], MOST_ROWS):
            queue.launch(
                kernel, (shape[0], min(MOST_ROWS, shape[1] - first)), (items, 1), arguments, offset=(0, first)
            )  # fmt: skip

    def _list(self, rows: Rows) -> None:
        """Set the rows that deposit hills."""
        queue, owners = self._state.queue, self._owners[rows]
        order = np.argsort(owners, kind="stable")
        of_grids, starts = np.unique(owners[order], return_index=True)
        self._n_grids, self._listed = len(of_grids), rows.copy()
        self._walkers = queue.upload(rows[order], np.int32)
        self._of_grids = queue.upload(of_grids, np.int32)
        self._starts = queue.upload(np.append(starts, len(rows)), np.int32)
        if self.term.shared:  # stopped rows also have the bias
            there = self._state.with_molecule
            self._n_targets = len(there)
            self._shared = queue.upload(there, np.int32), queue.upload(self._owners[there], np.int32)

    @property
    def made(self) -> int:
        """Number of hills added per row so far, read from the device."""
        return int(self._state.queue.download(self._made, 1, np.uint32)[0])

    @made.setter
    def made(self, number: int) -> None:
        self._state.queue.write(self._made, np.full(1, number, np.uint32))

    @property
    def state(self) -> NDArray[np.floating[Any]]:
        """Last hills on the device, (n_rows, HILL), NaN before the first; None resets them."""
        n = len(self._state.systems)
        return self._state.queue.download(self._hills, n * HILL, self._state.fine).reshape(n, HILL)

    @state.setter
    def state(self, hills: NDArray[np.floating[Any]] | None) -> None:
        n, fine = len(self._state.systems), self._state.fine
        self._state.queue.write(self._hills, np.full(n * HILL, np.nan if hills is None else hills.ravel(), fine))

    @property
    def last(self) -> Floats:
        """Last hill of each row, (n_rows, d + 1): its centre and its height in kcal/mol; NaN before the first."""
        chosen: Floats = self.state[:, [*range(len(self.term.axes)), HILL - 1]].astype(np.float64)
        return chosen


def variables_of(ensemble: Ensemble, term: Interpolated) -> tuple[Floats, Floats]:
    """Read the collective variables (n_rows, d) and bias energies (n_rows,) kcal/mol of the last evaluation.

    Values of failed rows are NaN.
    """
    state = ensemble.state
    found = np.full((len(ensemble), VARIABLE_REALS), np.nan)
    for rows, _ in ensemble.state.by_system(np.arange(len(ensemble))):
        found[rows] = state.read_buffer(rows, term.found, ensemble.precision)
    return found[:, : len(term.axes)], found[:, -1]


def free_energy_of(grown: Floats, term: Growing, temperature: float) -> Floats:
    """Estimate the free energy from the array of accumulated hills, (n_1, ...) kcal/mol, with a minimum of 0.

    It is -V bias_factor / (bias_factor - 1) for a metadynamics bias V, and -k_B T ln P for an OPES density P.
    """
    values = grown[..., 0]
    if isinstance(term, OPES):
        with np.errstate(divide="ignore"):
            found: Floats = -BOLTZMANN_KCAL * temperature * np.log(values)
    else:
        found = -values if term.bias_factor is None else -values * term.bias_factor / (term.bias_factor - 1)
    return found - found.min() if np.isfinite(found).any() else found
