"""Device arrays of a simulation, and the kernel launches of a step."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats
from ..ensemble.state import RowLaunches, Rows, joined
from .bodies import MOST_MEMBERS, Body
from .hamiltonians import Swaps, uninterrupted
from .integrators import INTEGRATORS
from .settings import Settings

if TYPE_CHECKING:
    from ..ensemble import DeviceArray, Ensemble
    from ..opencl.binding import BoundLaunch
    from ..opencl.kernel import Arguments
    from ..opencl.memory import Buffer

ITEMS = 64  # per work-group
SUMS = 5  # as in cl/dynamics/sums.clh
# Arrays saved in checkpoints.
STATE = ("velocities", "center_velocities", "stopped", "culprits", "done", "begins", "temperatures")
LADDER_STATE = ("row_of", "rung_of", "tried", "accepted")


class Motion:
    """Velocities and counters of rows on the device, and the launches that update them.

    arrays : device arrays by name; the next step depends only on those in STATE and on the positions
    moves : launches that advance rows and sum their kinetic energies
    """

    def __init__(
        self, ensemble: Ensemble, replicas: Sequence[int], settings: Settings, rungs: Sequence[int],
        ladders: NDArray[np.int64],
    ) -> None:  # fmt: skip
        """Allocate the arrays. Call `take_bodies` before any launch.

        replicas, rungs : of each row; ladders : (n_ladders, n_rungs) rows, empty without exchanges
        """
        self._ensemble, self._state, self._settings = ensemble, ensemble.state, settings
        self._ladders = ladders
        fine = ensemble.energy_dtype
        make: dict[str, tuple[Any, int, Any]] = {
            "velocities": ("atom", 3, fine), "present": ("atom", 3, fine), "center_velocities": ("row", 3, fine),
            "center": ("row", 3, fine), "kinetic": ("row", 1, fine), "stopped": ("row", 1, np.int32),
            "culprits": ("row", 1, np.int32), "done": ("row", 1, np.uint32), "begins": ("row", 1, np.int32),
            "temperatures": ("row", 1, None), "replicas": ("row", 1, np.uint32), "molecules": ("row", 1, np.uint32),
            "scales": ("row", 1, None), "rung_of": ("row", 1, np.int32),
        }  # fmt: skip
        self.arrays: dict[str, DeviceArray] = {name: ensemble.array(*of) for name, of in make.items()}
        self.write("replicas", np.array(replicas, np.uint32)[:, None])
        self.write("molecules", np.array(_numbers_of(ensemble.atoms), np.uint32)[:, None])
        self.write("temperatures", np.array(settings.temperatures)[list(rungs)][:, None])
        self.write("rung_of", np.array(rungs, np.int64)[:, None])
        if ladders.size:
            self._bind_ladders()

    def take_bodies(self, bodies: Sequence[Body | None], removes: bool) -> None:
        """Set the bodies of rows. bodies : of each row; removes : whether to remove the centre-of-mass motion"""
        self._common = {**self._state.arguments, **self._upload(bodies)}
        self._bind(removes)

    def _upload(self, bodies: Sequence[Body | None]) -> dict[str, Buffer]:
        """Upload each distinct body once."""
        queue, fine = self._state.queue, self._ensemble.energy_dtype
        distinct = list(dict.fromkeys(body for body in bodies if body is not None))
        clusters = np.cumsum([0, *(len(body.starts) - 1 for body in distinct)])
        atoms = np.cumsum([0, *(len(body.members) for body in distinct)])
        places = {body: (clusters[k], len(body.starts) - 1, atoms[k], 0) for k, body in enumerate(distinct)}
        table = [(0, 0, 0, 0) if body is None else places[body] for body in bodies]
        starts = [body.starts[:-1] + first for body, first in zip(distinct, atoms[:-1], strict=True)]
        self._most_clusters = max((len(body.starts) - 1 for body in distinct), default=1)
        return {
            "bodies": queue.upload(np.array(table), np.int32),
            "starts": queue.upload(np.concatenate([*starts, atoms[-1:]]), np.int32),
            "members": queue.upload(_joined([body.members for body in distinct]), np.int32),
            "lengths": queue.upload(_joined([body.lengths for body in distinct]), fine),
            "inverse_masses": queue.upload(_joined([body.inverse_masses for body in distinct]), fine),
        }

    def _bind(self, removes: bool) -> None:
        """Bind the kernel launches."""
        settings, queue, of = self._settings, self._state.queue, self.buffer
        schedule = queue.upload(np.array(settings.anneal), self._ensemble.energy_dtype)
        drawn: Arguments = dict(
            velocities=of("velocities"), replicas=of("replicas"), molecules=of("molecules"), done=of("done"),
            temperatures=of("temperatures"), seed=settings.seed,
        )  # fmt: skip
        kept: Arguments = dict(
            kinetic=of("kinetic"), stopped=of("stopped"), culprits=of("culprits"), done=of("done"),
            begins=of("begins"), removes=removes, dt=settings.dt,
        )  # fmt: skip
        items = ITEMS if queue.device.kind == "GPU" else 1
        fused = queue.device.kind == "GPU" and queue.device.has_device_fence
        stepping = dict(
            center_velocities=of("center_velocities"), schedule=schedule, n_points=len(settings.anneal),
            kept=settings.kept, noise=settings.noise, **(self._parts_of_sums() if fused else {}),
        )  # fmt: skip
        advance = self._of_clusters(
            "dynamics/step.cl", "advance", {**drawn, **kept, **stepping}, FUSED=int(fused), GROUP=items
        )
        self.draw = self._of_clusters("dynamics/velocities.cl", "draw_velocities", drawn)
        late = 0.5 * settings.dt if INTEGRATORS[settings.integrator].lags_half_a_step else 0.0
        self.present = self._of_clusters(
            "dynamics/velocities.cl", "present_velocities",
            dict(velocities=of("velocities"), begins=of("begins"), present=of("present"), late=late),
        )  # fmt: skip
        self.rescale = self._of_clusters(
            "dynamics/velocities.cl", "rescale",
            dict(velocities=of("velocities"), center_velocities=of("center_velocities"), scales=of("scales")),
        )  # fmt: skip
        measure, self.measure_present, self.begin = (
            queue.bind(
                "dynamics/motion.cl", "row_motion", (items, 1), (items, 1),
                dict(velocities=of(velocities), center_velocities=of(center), counts=counts, **kept, **self._common),
                GROUP=items, **self.macros,
            )
            for velocities, center, counts in (
                ("velocities", "center_velocities", 1), ("present", "center", 0), ("velocities", "center_velocities", 0)
            )
        )  # fmt: skip
        self.moves = [advance] if fused else [advance, measure]

    def _parts_of_sums(self) -> Arguments:
        """Allocate buffers for the partial sums of work-groups."""
        queue, n, most = self._state.queue, len(self._ensemble), -(-self._most_clusters // ITEMS)
        return dict(
            parts=queue.empty(n * most * SUMS, self._ensemble.energy_dtype), faults=queue.empty(n * most, np.int32),
            arrivals=queue.zeros(n, np.int32), most_groups=most,
        )  # fmt: skip

    def _bind_ladders(self) -> None:
        """Upload the initial rows of each ladder, and build the exchange kernel."""
        queue = self._state.queue
        counts = self._settings.dimensions * self._ladders.size
        sizes = {"row_of": self._ladders.size, "tried": counts, "accepted": counts}
        self._of_ladders = {name: queue.zeros(size, np.int32) for name, size in sizes.items()}
        self._attempts = queue.zeros(len(self._ladders), np.int32)
        queue.write(self._of_ladders["row_of"], self._ladders.astype(np.int32))
        self._first_rows = queue.upload(self._ladders[:, 0], np.int32)
        self._exchange = queue.kernel("dynamics/exchange.cl", "exchange", **self.macros)
        self._swaps = Swaps(self._ensemble, self._ladders) if self._settings.exchanges_hamiltonians else None

    @property
    def macros(self) -> dict[str, int]:
        """Preprocessor definitions for kernels that use rows and clusters."""
        members = MOST_MEMBERS if self._settings.constraints else 1
        return {"MOST_MEMBERS": members, **self._state.macros}

    def buffer(self, name: str) -> Buffer:
        """Return the buffer of an array."""
        return self.arrays[name].buffer

    def _of_clusters(self, file: str, name: str, arguments: Arguments, **defines: int) -> BoundLaunch:
        """Bind a launch with one work-item per cluster."""
        shape, macros = (self._most_clusters, 1), {**self.macros, **defines}
        return self._state.queue.bind(file, name, shape, (ITEMS, 1), {**self._common, **arguments}, **macros)

    def launch(self, launches: Sequence[BoundLaunch], rows: Rows) -> None:
        """Run the given launches for rows."""
        self._state.list_rows(rows)
        for first, count in self._state.parts(len(rows)):
            self._state.queue.launch_bound(launches, count, first=first)

    def launches_of_step(self, rows: Rows) -> list[RowLaunches]:
        """Return the launches of a step: they advance the rows, and compute forces at the new positions."""
        self._state.list_rows(rows)
        moves = [RowLaunches(self.moves, count, first) for first, count in self._state.parts(len(rows))]
        return joined([*moves, *self._state.launches_of(rows)])

    def exchange(self, rows: Rows, number: int) -> None:
        """Enqueue a replica exchange. number : index of the attempt, from 0"""
        self._state.add_up(rows)
        if self._swaps is not None:
            self._exchange_hamiltonians(self._swaps, rows, number)
            return
        n_ladders, n_rungs = self._ladders.shape
        arguments = dict(
            n_rungs=n_rungs, n_ladders=n_ladders, stopped=self.buffer("stopped"),
            energies=self._state.energies_on_device, replicas=self.buffer("replicas"),
            first_rows=self._first_rows, rung_of=self.buffer("rung_of"), temperatures=self.buffer("temperatures"),
            scales=self.buffer("scales"), attempts=self._attempts, number=number, seed=self._settings.seed,
            **self._of_ladders,
        )  # fmt: skip
        self._state.queue.launch(self._exchange, (n_rungs // 2 + 1, n_ladders), (1, 1), arguments)
        self.launch([self.rescale], rows)

    def _exchange_hamiltonians(self, swaps: Swaps, rows: Rows, number: int) -> None:
        """Enqueue a Hamiltonian exchange, followed by an evaluation of forces."""
        state, queue, (n_ladders, n_rungs) = self._state, self._state.queue, self._ladders.shape
        common: Arguments = dict(
            n_rungs=n_rungs, n_ladders=n_ladders, n_inner=self._settings.n_inner, number=number,
            energies=state.energies_on_device, before=swaps.before, partners=swaps.partners,
            row_of=self._of_ladders["row_of"], scales=self.buffer("scales"),
        )  # fmt: skip
        decided: Arguments = dict(
            seed=self._settings.seed, replicas=self.buffer("replicas"), first_rows=self._first_rows,
            rung_of=self.buffer("rung_of"), temperatures=self.buffer("temperatures"), tried=self._of_ladders["tried"],
            accepted=self._of_ladders["accepted"], attempts=self._attempts,
        )  # fmt: skip

        def launch(name: str, n_items: int, arguments: Arguments) -> None:
            kernel = queue.kernel("dynamics/hamiltonians.cl", name, **self.macros)
            queue.launch(kernel, (n_items, n_ladders), (1, 1), arguments)

        with uninterrupted():
            launch("pair_up", n_rungs, {**common, "stopped": self.buffer("stopped")})
            swaps.swap(self.macros)
            state.start_evaluation(rows)
            launch("decide", n_rungs, {**common, **decided})
            swaps.swap(self.macros)
            self.launch([self.rescale], rows)
            state.launch(rows)

    @property
    def attempts(self) -> int:
        """Number of exchange attempts so far, read from the device."""
        found = self._state.queue.download(self._attempts, len(self._ladders), np.int32)
        return int(found.max(initial=0))

    @attempts.setter
    def attempts(self, number: int) -> None:
        self._state.queue.write(self._attempts, np.full(len(self._ladders), number, np.int32))

    def read(self, name: str) -> NDArray[Any]:
        """Read an array: per atom (n, columns), per row (n_rows,) or (n_rows, 3), per rung (n_ladders, n_rungs).

        Exchange counts of two-dimensional ladders have shape (2, n_ladders, n_rungs).
        """
        if name in self.arrays:
            values = self.arrays[name].read()
            return values[:, 0] if values.shape[1] == 1 else values
        dimensions = 1 if name == "row_of" else self._settings.dimensions
        values = self._state.queue.download(self._of_ladders[name], dimensions * self._ladders.size, np.int32)
        return values.reshape(self._ladders.shape if dimensions == 1 else (dimensions, *self._ladders.shape))

    def write(self, name: str, values: NDArray[Any]) -> None:
        """Write an array of the shape returned by `read`, or with an additional axis of length 1."""
        if name in self.arrays:
            self.arrays[name].write(values.reshape(self.arrays[name].shape))
        else:
            self._state.queue.write(self._of_ladders[name], np.ascontiguousarray(values, np.int32))

    @property
    def state(self) -> tuple[str, ...]:
        """Names of all arrays that the next step depends on, apart from positions."""
        return (*STATE, *LADDER_STATE) if self._ladders.size else STATE


def _numbers_of(molecules: Sequence[Atoms]) -> list[int]:
    """Return a number for the molecule of each row, so that different molecules have different random numbers.

    Equal molecules that are different objects, such as two reads of a file, are distinguished by their order.
    """
    numbers: dict[int, int] = {}
    times = Counter[int]()
    for atoms in molecules:
        if id(atoms) not in numbers:
            content = zlib.crc32(atoms.charges.tobytes() + atoms.positions.tobytes())
            before = times[content]
            numbers[id(atoms)] = zlib.crc32(before.to_bytes(4, "little"), content) if before else content
            times[content] += 1
    return [numbers[id(atoms)] for atoms in molecules]


def _joined(arrays: Sequence[NDArray[Any]]) -> NDArray[Any] | Floats:
    return np.concatenate(arrays) if arrays else np.zeros(1)
