"""Internal state of an ensemble: layout of rows on the device, their launches, and which results are current."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import cached_property, wraps
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar, cast
from weakref import ReferenceType

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ..atoms import Atoms, Floats
from ..common.arguments import atoms_mask, described, numbers
from ..common.errors import DeviceMemoryError, InputError, PeleError
from ..energy import Energy, EnergyBatch, Term
from ..energy.engine import Store, System, Tables
from ..energy.plan import batch_of
from ..energy.result import PASS_TERMS
from ..opencl.interface import N_TERMS, ROW, ROW_BLOCK, WORD

if TYPE_CHECKING:
    from ..minimize.job import Job
    from ..opencl.binding import BoundLaunch
    from ..opencl.device import Device
    from ..opencl.kernel import Arguments
    from ..opencl.memory import Buffer
    from ..opencl.queue import Queue

RowsLike = int | slice | ArrayLike | None
Lock = AbstractContextManager[bool]
Arrays = Sequence[Floats] | Floats  # one per row; a single array if all rows are of one molecule

Method = TypeVar("Method", bound=Callable[..., Any])


def locked(method: Method) -> Method:
    """Decorate a method so that objects with the same `_lock` run such methods in one thread at a time."""

    @wraps(method)
    def called(self: Any, *args: Any, **options: Any) -> Any:
        with self._lock:
            return method(self, *args, **options)

    return cast(Method, called)


Rows = NDArray[np.int64]
MOST_ROWS = 65_535  # per launch; the limit of CUDA devices for the second and third dimensions
ITEMS = 64  # work-items on a GPU that sum the energies of a row


@dataclass(eq=False)
class Group:
    """Rows whose molecules share launches.

    launches : launches of an evaluation; at_radii : of one at fixed Born radii, empty if radii are not held
    rows : numbers of the rows; slots of the tables are indices into them
    listed : slots that are currently launched
    """

    tables: Tables
    launches: Sequence[BoundLaunch]
    at_radii: Sequence[BoundLaunch]
    rows: Rows
    listed: Rows


@dataclass(frozen=True)
class RowLaunches:
    """Consecutive launches for `count` rows of the list, starting at index `first`."""

    launches: Sequence[BoundLaunch]
    count: int
    first: int


def _wrong_of(rows: object, n: int) -> str:
    """Describe an invalid selection of n rows by the first number out of range, the length of a mask, or its value."""
    try:
        given = np.asarray(rows)
    except ValueError:  # rows of different lengths
        return described(rows)
    if given.ndim == 1 and given.dtype.kind in "iu":
        outside = given[(given < -n) | (given >= n)]
        return described(int(outside[0])) if len(outside) else described(rows)
    return f"a mask of {len(given):,}" if given.ndim == 1 and given.dtype == bool else described(rows)


def joined(all_launches: Sequence[RowLaunches]) -> list[RowLaunches]:
    """Merge consecutive launches for the same rows, to save calls."""
    found: list[RowLaunches] = []
    for of in all_launches:
        if found and (found[-1].count, found[-1].first) == (of.count, of.first):
            found[-1] = RowLaunches([*found[-1].launches, *of.launches], of.count, of.first)
        else:
            found.append(of)
    return found


class State:
    """Rows of an ensemble, for all code that reads, moves or minimizes them.

    All data of molecules and rows, such as positions and results, are in one large buffer.

    atoms, frozen, offsets : of each row; offsets are positions minus those on the device, A
    device, precision, queue : of all rows
    systems : molecule of each row, None if it cannot be computed; with_molecule : rows that have one
    distinct : the molecules without repetition; numbers : index of each row's molecule among them
    store : allocator of the buffer; own : offset of each row in it
    coordinate, fine : data types of positions and of energies on the device; fine is float64 if supported
    options : of `Energy`, for all rows; scales : whether rows scale parameters
    failed, explained : messages by row, for positions that cannot be encoded and for energies that are not finite
    moves : (n_rows,) number of changes of the positions of each row; masks : number of changes of frozen atoms
    failed_last : (n_rows,) value of `moves` at which positions last failed; -1 for never
    has_radii : (n_rows,) whether rows have Born radii
    exchanger : the simulation that last exchanged complete rows; None if there was none
    followers : functions that recompute data that depends on an array of rows, by its name; weak references
    is_mapped : whether the host has mapped the memory of the rows, which excludes other uses
    lock : shared by all users of the rows
    """

    def __init__(self, atoms: tuple[Atoms, ...], device: Device, options: Mapping[str, Any], errors: str) -> None:
        """Set each row to its molecule's positions.

        errors : "record" to record molecules that cannot be computed, "raise" for an InputError
        """
        from ..opencl.queue import Queue

        self.atoms, self.device, self.scales = atoms, device, bool(options["scales"])
        self.options = {name: value for name, value in options.items() if name != "scales"}
        self.precision: str = options["precision"]
        self.failed: dict[int, str] = {}
        self._place_on(Queue(device, self.precision, profile=False), self._systems(errors))
        self.lock: Lock = RLock()
        self.offsets = np.zeros((len(self), 3))
        self.moves, self.masks = np.zeros(len(self), np.int64), 0
        self.failed_last = np.full(len(self), -1)
        self._versions = np.zeros(len(self), np.int64)  # incremented by any change that affects energies
        self._evaluated = np.full(len(self), -1)  # versions at the last evaluation
        self._rewrites = 0  # last seen count of rewritten buffers of terms
        self.has_radii = np.zeros(len(self), bool)
        self.explained: dict[int, str] = {}
        self.frozen: list[NDArray[np.bool_]] = [np.zeros(len(of), bool) for of in atoms]
        self._frozen_last = [np.zeros(len(of), np.int64) for of in atoms]  # last change at which each atom was frozen
        self.exchanger: object = None
        self.followers: dict[str, ReferenceType[Callable[[Rows], None]]] = {}
        self.is_mapped = False
        self._free: Buffer | None = None
        self.place(list(range(len(self))), [of.positions for of in atoms])

    def _systems(self, errors: str) -> list[System | None]:
        """Record the launches of each molecule, once for all its rows."""
        found: dict[int, System | str] = {}
        for k, atoms in enumerate(self.atoms):
            if id(atoms) not in found:
                try:
                    energy = Energy(atoms, born="pairs", device=self.device, rebuild_sites=True, **self.options)
                    found[id(atoms)] = System(energy, is_alone=len(self) == 1, is_scaled=self.scales)
                except PeleError as error:
                    if errors == "raise":
                        raise InputError(f"row {k}: {error}" if len(self) > 1 else str(error)) from error
                    found[id(atoms)] = str(error)
            of_row = found[id(atoms)]
            if isinstance(of_row, str):
                self.failed[k] = of_row
        of_rows = (found[id(atoms)] for atoms in self.atoms)
        return [None if isinstance(of_row, str) else of_row for of_row in of_rows]

    def _place_on(self, queue: Queue, systems: Sequence[System | None]) -> None:
        """Allocate the rows on a device. Raises DeviceMemoryError if they do not fit."""
        self.queue, self.systems = queue, systems
        there = [k for k, system in enumerate(systems) if system is not None]
        self.with_molecule = np.array(there, np.int64)
        number_of = {system: number for number, system in enumerate(dict.fromkeys(systems))}
        self.distinct = list(number_of)
        self.numbers = np.array([number_of[system] for system in systems], np.int64)
        self.n_atoms = np.array([0 if system is None else len(system.energy.atoms) for system in systems], np.int64)
        self.first_atoms = np.cumsum([0, *self.n_atoms])
        encodings = {system.passes.encoding.dtype for system in systems if system is not None}
        if len(encodings) > 1:
            raise InputError(
                "on a device without float64 molecules wider than 1,000 A cannot share an ensemble with others; "
                "create a separate ensemble"
            )
        self.coordinate = next(iter(encodings), np.dtype(np.float64))
        self.fine = queue.dtype if self.coordinate.kind == "i" else np.dtype(np.float64)
        self._lay_out()
        self.groups = list(self._groups())
        self.rows_on_device, self.steps_on_device, self._further = self._describe()
        self._listed = queue.empty(max(1, len(systems)), np.int32)
        self._listed_rows: Rows = np.zeros(0, np.int64)
        self.energies_on_device = queue.zeros(len(systems), self.fine)
        self.numbers_on_device = queue.zeros(len(systems), np.int32)

    def __len__(self) -> int:
        return len(self.atoms)

    def system(self, k: int) -> System:
        """Return the molecule of a row. Raises InputError if it cannot be computed."""
        system = self.systems[k]
        if system is None:
            raise InputError(self.failed[k])
        return system

    def follow(self, name: str, rows: Rows) -> None:
        """Recompute data that depends on an array of rows after it was written. name : of the array"""
        follow = self.followers[name]() if name in self.followers else None
        if follow is not None:
            follow(rows)

    @property
    def terms(self) -> tuple[Term, ...]:
        given = self.options["terms"]
        return (given,) if isinstance(given, Term) else tuple(given)

    @property
    def energy_options(self) -> dict[str, Any]:
        return {name: value for name, value in self.options.items() if name != "gradient"}

    def chosen(self, rows: RowsLike) -> Rows:
        """Return the numbers of rows. Raises InputError for unknown rows, and while the memory is mapped."""
        if self.is_mapped:
            raise InputError("the memory of the rows is mapped; leave the `with` block of mapped() first")
        if rows is None:
            return np.arange(len(self))
        if not isinstance(rows, bool | np.bool_):
            try:
                chosen: Rows = np.atleast_1d(np.arange(len(self))[rows])  # type: ignore[index]
            except (IndexError, TypeError, ValueError, OverflowError):
                pass
            else:
                if chosen.ndim == 1:
                    return chosen
        raise InputError(f"there are {len(self)} rows, so {_wrong_of(rows, len(self))} is invalid")

    def there(self, rows: RowsLike) -> Rows:
        """Return the numbers of rows without failed ones. Raises InputError as `chosen` does."""
        chosen = self.chosen(rows)
        return chosen[~np.isin(chosen, list(self.failed))] if self.failed else chosen

    @property
    def evaluated(self) -> NDArray[np.bool_]:
        """Return whether the results of each row are current, (n_rows,)."""
        self._see_rewrites()
        is_now: NDArray[np.bool_] = self._evaluated == self._versions
        return is_now

    def _see_rewrites(self) -> None:
        """Mark all rows as changed if buffers of terms were rewritten."""
        if self._rewrites != self.store.rewrites:
            self._rewrites = self.store.rewrites
            self._versions += 1

    def changed(self, rows: Rows | Sequence[int] | None, *, moved: bool = True) -> None:
        """Mark results of rows as outdated. moved : whether positions changed, or only restraints"""
        chosen = slice(None) if rows is None else rows
        self._versions[chosen] += 1
        self.moves[chosen] += moved

    def settled(self, rows: Rows | Sequence[int]) -> None:
        """Mark the results of rows as up to date."""
        self._see_rewrites()
        self._evaluated[rows] = self._versions[rows]
        for k in np.asarray(rows).tolist() if self.explained else ():
            self.explained.pop(k, None)

    def require_evaluated(self, rows: Rows) -> None:
        """Raise InputError for rows that were not evaluated since they changed."""
        old = [k for k in rows[~self.evaluated[rows]].tolist() if k not in self.failed]
        if old:
            raise InputError(f"row {old[0]} was not evaluated after its last change; call evaluate() first")

    def by_system(self, rows: Rows) -> list[tuple[Rows, System]]:
        """Indices into `rows` by molecule, without failed rows."""
        good = ~np.isin(rows, list(self.failed)) if self.failed else None
        return [(np.array(places, np.int64), system) for system, places in self._places(rows, good).items()]

    def evaluate(self, rows: RowsLike, keep_radii: bool = False) -> None:
        """Compute energies and gradients of rows on the device; failed rows are skipped.

        keep_radii : use the Born radii of the previous evaluation. Raises InputError for rows without radii
        """
        chosen = self.chosen(rows)
        good = self.there(chosen)
        if keep_radii and (new := good[~self.has_radii[good]]).size:
            raise InputError(f"row {new[0]} was never evaluated, so it has no radii to keep")
        self.start_evaluation(good, keep_radii)
        self.has_radii[good] = True
        self.settled(chosen)

    def batch(self, rows: list[int]) -> EnergyBatch:
        """Read the results of rows of one molecule."""
        results = self.read_buffer(rows, "results", self.precision)
        system = self.system(rows[0])
        return batch_of(system.energy, system.passes, results, np.asarray(self.read_positions(rows)))

    def read_positions(self, rows: list[int]) -> Arrays:
        """Read the positions of rows, (n, 3) A each; NaN for failed rows."""

        def read(there: Rows, system: System) -> Floats:
            positions = system.passes.decode(self.encoded(there.tolist()))
            if self.offsets[there].any():
                positions += self.offsets[there, None]
            return positions

        return self.read(rows, read, (3,))

    def read(self, rows: list[int], read: Callable[[Rows, System], Floats], shape: tuple[int, ...]) -> Arrays:
        """Read arrays of rows, (n, *shape) each; NaN for failed rows. One array if all rows are of one molecule.

        read : reads the arrays of some rows of one molecule
        """
        numbers_ = np.array(rows, np.int64)
        parts = self.by_system(numbers_)
        if len(parts) == 1 and len(parts[0][0]) == len(rows):
            return read(numbers_, parts[0][1])
        found: list[Floats] = [np.full((len(self.atoms[k]), *shape), np.nan) for k in rows]
        for places, system in parts:
            for place, values in zip(places.tolist(), read(numbers_[places], system), strict=True):
                found[place] = values
        return found

    def columns(self, rows: list[int], first: int, count: int) -> Arrays:
        """Read per-atom columns of the results of rows: column 0 is the Born radius, 1 to 3 the gradient.

        Returns (n,) or (n, count) for each row, NaN for failed rows.
        """
        shape = (count,) if count > 1 else ()

        def read(there: Rows, system: System) -> Floats:
            n = len(system.energy.atoms)
            begin = len(PASS_TERMS) * system.passes.n_energies + first * n
            found = self.read_part(there.tolist(), "results", begin, count * n)
            found = found.reshape(len(there), n, *shape)
            found[~are_numbers[there]] = np.nan
            return found

        _, are_numbers = self.read_energies()
        return self.read(rows, read, shape)

    def encoded(self, rows: list[int]) -> NDArray[Any]:
        """Read the positions of rows of one molecule in the device's encoding, (m, 3 n)."""
        return self.read_buffer(rows, "positions", self.coordinate)

    def put_back(self, jobs: Sequence[Job]) -> None:
        """Restore the positions of rows before their minimization."""
        for places, _ in self.by_system(np.array([job.number for job in jobs], np.int64)):
            there = [jobs[place] for place in places.tolist()]
            rows = [job.number for job in there]
            self.write_buffer(rows, "positions", np.stack([job.origin for job in there]))
            self.changed(rows, moved=False)

    def minimized(self, rows: list[int], offsets: Sequence[Floats]) -> None:
        """Mark rows as moved and evaluated, and sum their energies. offsets : (3,) A for each row, as in `offsets`"""
        self.changed(rows)
        self.offsets[rows] = offsets
        self.add_up(np.array(rows, np.int64))
        self.queue.submit()
        self.has_radii[rows] = True
        self.settled(rows)

    def place(self, rows: list[int], positions: Sequence[ArrayLike] | NDArray[Any], errors: str = "record") -> None:
        """Set the positions of rows; a row whose positions cannot be encoded fails until it is set again.

        positions : (n, 3) A for each row, or one array for all
        errors : "raise" for an InputError instead of a failed row, before any row is changed
        """
        failed: dict[int, str] = {}
        with ExitStack() as stack:
            ready = list(self._encoded(rows, positions, failed, stack))
            if failed and errors == "raise":
                k = min(failed)
                raise InputError(f"row {k}: {failed[k]}" if len(self) > 1 else failed[k])
            self.changed(rows)
            if self.failed or self.explained:
                for k in rows:
                    if self.systems[k] is not None:
                        self.failed.pop(k, None)
                    self.explained.pop(k, None)
            self.failed |= failed
            self.failed_last[list(failed)] = self.moves[list(failed)]
            for there, encoded, offsets in ready:
                self.offsets[there] = offsets
                self.write_buffer(there, "positions", encoded)

    def _encoded(
        self, rows: list[int], positions: Sequence[ArrayLike] | NDArray[Any], failed: dict[int, str], stack: ExitStack
    ) -> Iterator[tuple[list[int], NDArray[Any], Floats]]:
        """Encode positions by molecule: rows, encoded positions, offsets. failed : receives reasons of failures"""
        by_system = self._places(np.array(rows, np.int64))
        given: Arrays
        whole = positions if isinstance(positions, np.ndarray) and len(by_system) == 1 else np.zeros(0)
        if whole.dtype.kind in "iuf" and whole.shape[1:] == self.atoms[rows[0]].positions.shape:
            given = numbers("positions", whole)
        else:
            given = [self._checked(k, x) for k, x in zip(rows, positions, strict=True)]
        for system, places in by_system.items():
            there = [rows[place] for place in places]
            own = given if len(there) == len(rows) else [given[place] for place in places]
            shape = len(there), 3 * len(system.energy.atoms)
            out = stack.enter_context(self.pinned(shape, self.coordinate))
            encoded, offsets, reasons = system.passes.encoded(np.asarray(own), out)
            failed |= {there[k]: reason for k, reason in reasons.items()}
            yield there, encoded, offsets

    def _places(self, rows: Rows, good: NDArray[np.bool_] | None = None) -> dict[System, list[int]]:
        """Indices into `rows` by molecule, without rows that have none or are not `good`."""
        numbers_ = self.numbers[rows]
        kept = np.arange(len(rows)) if good is None else np.flatnonzero(good)
        found: dict[System, list[int]] = {}
        for number in dict.fromkeys(numbers_[kept].tolist()) if len(self.distinct) > 1 else [0]:
            system = self.distinct[number]
            places = kept if len(self.distinct) == 1 else kept[numbers_[kept] == number]
            if system is not None and len(places):
                found[system] = places.tolist()
        return found

    def _checked(self, k: int, positions: ArrayLike) -> Floats:
        """Return the positions (n, 3) of row k. Raises InputError for another shape."""
        given = numbers("positions", positions)
        if given.shape != self.atoms[k].positions.shape:
            raise InputError(f"positions of row {k} have shape {given.shape}; expected ({len(self.atoms[k])}, 3)")
        return given

    def freeze(self, rows: list[int], frozen: Sequence[ArrayLike]) -> None:
        """Set the frozen atoms of rows; nothing is changed if any mask is invalid.

        frozen : for each row a mask (n,), or indices of its atoms
        """
        found: dict[int, NDArray[np.bool_]] = {}
        for k, given in zip(rows, frozen, strict=True):
            found[k] = atoms_mask("frozen atoms", given if np.size(given) else [], len(self.atoms[k]), f"row {k}")
        self.masks += 1
        for k, mask in found.items():
            self.frozen[k] = mask
            self._frozen_last[k][mask] = self.masks
        self._free = None

    @property
    def free_on_device(self) -> Buffer:
        """Reals of all atoms of all rows: 0 for frozen atoms, 1 for others."""
        if self._free is None:
            self._free = self.queue.upload(1.0 - self.frozen_atoms)
        return self._free

    @property
    def frozen_atoms(self) -> NDArray[np.bool_]:
        """Return whether each atom on the device is frozen, (n_atoms of all rows with a molecule,)."""
        there = [mask for mask, n in zip(self.frozen, self.n_atoms, strict=True) if n]
        return np.concatenate(there) if there else np.zeros(0, bool)

    def frozen_after(self, masks: int) -> NDArray[np.bool_]:
        """Return whether each atom on the device is frozen, or has been since change number `masks`."""
        there = [last > masks for last, n in zip(self._frozen_last, self.n_atoms, strict=True) if n]
        return self.frozen_atoms | (np.concatenate(there) if there else False)

    def _lay_out(self) -> None:
        """Allocate the shared regions of molecules, then the rows in order."""
        systems = dict.fromkeys(system for system in self.systems if system is not None)
        for system in systems:
            _ = system.launches  # completes the list of arrays
        distinct = [system.recorder for system in systems]
        own = [self.system(k).recorder.own.size for k in self.with_molecule.tolist()]
        size, device = max(sum(recorder.shared.size for recorder in distinct) + sum(own), ROW_BLOCK), self.queue.device
        if size > device.largest_buffer:
            raise DeviceMemoryError(
                f"{len(self.systems):,} rows take {size / 2**30:.1f} GiB; {device} has buffers of "
                f"{device.largest_buffer / 2**30:.1f} GiB at most; use fewer rows"
            )
        queue, self.store = self.queue, Store(self.queue, size)
        queue.clear(self.store.buffer)
        self.own = np.zeros(len(self.systems), np.uint64)
        for recorder in distinct:
            self.store.share(recorder)
        for k in self.with_molecule.tolist():
            recorder = self.system(k).recorder
            first = self.store.take(recorder)
            assert first is not None
            self.own[k] = first
            if len(recorder.own.image):
                queue.write(self.store.buffer, recorder.own.image, first)
        queue.finish()

    @property
    def bytes_on_device(self) -> Buffer:
        return self.store.buffer

    def begins(self, rows: Rows) -> tuple[np.uint64, NDArray[np.uint64]]:
        """Offsets of the shared region and of the rows of one molecule."""
        return np.uint64(self.store.shared[self.system(int(rows[0])).recorder]), self.own[rows]

    def _groups(self) -> Iterator[Group]:
        by_key: dict[Hashable, list[int]] = {}
        for k in self.with_molecule.tolist():
            by_key.setdefault(self.system(k).key, []).append(k)
        for there in by_key.values():
            first, rows = self.system(there[0]), np.array(there, np.int64)
            tables = Tables(self.queue, [self.store], first, len(rows), self.begins(rows[:1]))
            for system in dict.fromkeys(self.system(k) for k in there):
                slots = np.flatnonzero([self.system(k) is system for k in there])
                tables.put(slots, system.rows, self.begins(rows[slots]))
            launches, at_radii = tables.bound(first.passes.launches), tables.bound(first.at_radii)
            yield Group(tables, launches, at_radii, rows, np.zeros(0, np.int64))

    def _describe(self) -> tuple[Buffer, Buffer, Buffer]:
        """Create the table of rows for driver kernels, steps of fixed-point positions, and ranges of term energies."""
        rows = np.zeros(max(1, len(self.systems)), ROW.dtype(self.queue.precision))
        steps, further = np.ones(len(rows)), np.zeros((len(rows), 2), np.int32)
        for k in self.with_molecule.tolist():
            system, passes = self.system(k), self.system(k).passes
            n, n_energies, own = len(passes.atoms), passes.n_energies, int(self.own[k])
            counted = sum(1 << bit for bit, name in enumerate(PASS_TERMS) if name in passes.contents.names)
            places = [(own + system.pieces[name].first) // ROW_BLOCK for name in ("positions", "results")]
            rows[k] = n, self.first_atoms[k], *places, n_energies, counted
            steps[k] = passes.encoding.step
            first = N_TERMS * n_energies + n * (4 if passes.options.gradient else 1)
            further[k] = first, passes.n_results - first
        queue = self.queue
        return queue.upload(rows, rows.dtype), queue.upload(steps), queue.upload(further, np.int32)

    def start_evaluation(self, rows: Rows, keep_radii: bool = False) -> None:
        """Start an evaluation of rows that have a molecule, and the sums of their energies.

        keep_radii : use the Born radii of the previous evaluation, if radii are held
        """
        self.launch(rows, keep_radii)
        self.add_up(rows)
        self.queue.submit()

    def launch(self, rows: Rows, keep_radii: bool = False) -> None:
        """Start an evaluation of rows that have a molecule, without the sums of energies."""
        self.queue_up(self.launches_of(rows, keep_radii))

    def launches_of(self, rows: Rows, keep_radii: bool = False) -> list[RowLaunches]:
        """Return the launches that evaluate rows, after listing these in the tables; valid until the next call."""
        wanted, found = np.zeros(len(self.systems), bool), []
        wanted[rows] = True
        for group in self.groups:
            slots = np.flatnonzero(wanted[group.rows])
            if not np.array_equal(group.listed, slots):
                group.tables.send(slots)
                group.listed = slots
            launches = (keep_radii and group.at_radii) or group.launches
            found += [RowLaunches(launches, count, first) for first, count in self.parts(len(slots))]
        return found

    def queue_up(self, launches: Sequence[RowLaunches]) -> None:
        for of in launches:
            self.queue.launch_bound(of.launches, of.count, first=of.first)

    @staticmethod
    def parts(n: int) -> Iterator[tuple[int, int]]:
        """First row and number of rows of each launch for n rows."""
        return ((first, min(MOST_ROWS, n - first)) for first in range(0, n, MOST_ROWS))

    def add_up(self, rows: Rows) -> None:
        """Start the sums of energies of rows."""
        self.list_rows(rows)
        for first, count in self.parts(len(rows)):
            if first:
                kernel, items = self._adding.kernel, self._adding.group[0]
                self.queue.launch(kernel, (items, count), (items, 1), self._adding_arguments, offset=(0, first))
            else:
                self._adding.shape = self._adding.shape[0], count
                self.queue.launch_bound([self._adding], 1)

    @cached_property
    def _adding(self) -> BoundLaunch:
        """Launch that sums the energies of listed rows, one group per row."""
        items = ITEMS if self.queue.device.kind == "GPU" else 1
        return self.queue.bind(
            "engine/energies.cl", "row_energies", (items, 1), (items, 1), self._adding_arguments, GROUP=items,
            **self.macros,
        )  # fmt: skip

    @property
    def _adding_arguments(self) -> Arguments:
        has_radii = any(self.system(k).passes.contents.has_gb for k in self.with_molecule.tolist())
        return dict(
            further=self._further, has_radii=has_radii, energies=self.energies_on_device,
            are_numbers=self.numbers_on_device, **self.arguments,
        )  # fmt: skip

    @property
    def macros(self) -> dict[str, int]:
        """Build definitions of kernels that use rows."""
        return {"FIXED_BITS": 8 * self.coordinate.itemsize if self.coordinate.kind == "i" else 0}

    @property
    def arguments(self) -> Arguments:
        """ENSEMBLE of cl/engine/rows.clh."""
        return dict(
            rows=self.rows_on_device, steps=self.steps_on_device, listed=self._listed, bytes=self.bytes_on_device
        )  # fmt: skip

    def list_rows(self, rows: Rows) -> None:
        """Set the rows for which drivers' kernels are launched."""
        if not np.array_equal(rows, self._listed_rows):
            self.queue.enqueue_write(self._listed, rows.astype(np.int32))
            self._listed_rows = rows.copy()

    def forget_lists(self) -> None:
        """Invalidate all lists of rows, after an interrupt that may have left them inconsistent."""
        self._listed_rows = np.full(1, -1)
        for group in self.groups:
            group.listed = np.full(1, -1)

    def read_buffer(self, rows: Sequence[int] | Rows, name: str, dtype: DTypeLike) -> NDArray[Any]:
        """Read a buffer of the passes for rows of one molecule, (n_rows, size), after all earlier launches."""
        return self.queue.gather(self.bytes_on_device, *self.places(rows, name), dtype)

    def read_part(self, rows: Sequence[int], name: str, first: int, count: int) -> Floats:
        """Read `count` reals starting at index `first` of such a buffer, (n_rows, count), as float64."""
        places, _ = self.places(rows, name)
        each = self.queue.dtype.itemsize
        before = first * each % WORD // each  # reads begin at whole words
        begin = places + np.uint64((first - before) * each)
        size, real = (count + before) * each, self.queue.dtype
        return self.queue.gather(self.bytes_on_device, begin, size, real, np.float64)[:, before:]

    def write_buffer(self, rows: Sequence[int], name: str, values: NDArray[Any]) -> None:
        """Write (n_rows, size) to a buffer of the passes for rows of one molecule, after all earlier launches."""
        self.queue.scatter(self.bytes_on_device, [(self.places(rows, name)[0], values)])

    def pinned(self, shape: tuple[int, int], dtype: DTypeLike) -> AbstractContextManager[NDArray[Any]]:
        """Lend a host array to be filled and then written to the device."""
        return self.queue.pinned(shape, dtype)

    def places(self, rows: Sequence[int] | Rows, name: str) -> tuple[NDArray[np.uint64], int]:
        """Return the offset of a buffer of the passes in each row of one molecule, and its size in bytes."""
        piece = self.system(rows[0]).pieces[name]
        return self.own[np.asarray(rows)] + np.uint64(piece.first), piece.size

    def copy_rows(self, sources: Rows, targets: Rows) -> None:
        """Start copying rows to other rows of the same molecules."""
        sizes = np.array([self.system(k).own.size for k in sources.tolist()], np.int64)
        there = self.bytes_on_device
        self.queue.move_pieces(there, there, self.own[sources], self.own[targets], sizes)
        for buffer, values in ((self.energies_on_device, self.fine), (self.numbers_on_device, np.dtype(np.int32))):
            array = self.queue.download(buffer, len(self.systems), values)
            array[targets] = array[sources]
            self.queue.write(buffer, array)

    def read_energies(self) -> tuple[Floats, NDArray[np.bool_]]:
        """Read the energies of all rows, kcal/mol, and whether the results of each are finite."""
        n = len(self.systems)
        energies = self.queue.download(self.energies_on_device, n, self.fine).astype(np.float64)
        return energies, self.queue.download(self.numbers_on_device, n, np.int32) != 0
