"""State of the rows of an ensemble: what each has on its device, and what is known of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import wraps
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..atoms import Atoms, Floats
from ..common.arguments import atoms_mask, described, numbers
from ..common.errors import InputError, PeleError
from ..energy import Energy, EnergyBatch, Term
from ..energy.engine.rows import ResidentRows, Rows
from ..energy.engine.system import System
from ..energy.result import PASS_TERMS

if TYPE_CHECKING:
    from ..opencl.device import Device
    from ..opencl.memory import Buffer

RowsLike = int | slice | ArrayLike | None
Lock = AbstractContextManager[bool]
Arrays = Sequence[Floats] | Floats  # of rows: one array if all are of one molecule


Method = TypeVar("Method", bound=Callable[..., Any])


def locked(method: Method) -> Method:
    """Let one thread at a time call a method of objects that share their `_lock`; others wait."""

    @wraps(method)
    def called(self: Any, *args: Any, **options: Any) -> Any:
        with self._lock:
            return method(self, *args, **options)

    return cast(Method, called)


class State:
    """Rows of an ensemble as they are; what reads, moves or minimizes rows works on this.

    atoms, frozen, offsets : of each row, the last in A from the place that its molecule has on the device
    resident : the rows on the device; device, precision : of all
    options : of `Energy`, for all rows; scales : if rows scale parameters
    failed, explained : messages about rows that cannot be placed, or whose energies are no numbers, by their numbers
    moves : (n_rows,) how often the positions of each were changed; masks : how often frozen atoms were
    has_radii : (n_rows,) if rows have Born radii
    exchanger : what exchanged all that rows have of their own last, whose rungs are theirs; None if nothing did
    is_mapped : if the host uses the memory of the rows, as long as nothing else may
    lock : that all who use the rows share
    """

    def __init__(self, atoms: tuple[Atoms, ...], device: Device, options: Mapping[str, Any], errors: str) -> None:
        """Place each row at its molecule's positions.

        errors : "record" to record molecules that cannot be computed, "raise" for an InputError
        """
        from ..opencl.queue import Queue

        self.atoms, self.device, self.scales = atoms, device, bool(options["scales"])
        self.options = {name: value for name, value in options.items() if name != "scales"}
        self.precision: str = options["precision"]
        self.failed: dict[int, str] = {}
        systems = self._systems(errors)
        self.resident = ResidentRows(Queue(device, self.precision, profile=False), systems)
        self.lock: Lock = RLock()
        self.offsets = np.zeros((len(self), 3))
        self.moves, self.masks = np.zeros(len(self), np.int64), 0
        self._versions = np.zeros(len(self), np.int64)  # of all that energies depend on
        self._evaluated = np.full(len(self), -1)  # versions at the last evaluation
        self._rewrites = 0  # of buffers of terms, that were seen
        self.has_radii = np.zeros(len(self), bool)
        self.explained: dict[int, str] = {}
        self.frozen: list[NDArray[np.bool_]] = [np.zeros(len(of), bool) for of in atoms]
        self.exchanger: object = None
        self.is_mapped = False
        self._free: Buffer | None = None
        self.place(list(range(len(self))), [of.positions for of in atoms])

    def _systems(self, errors: str) -> list[System | None]:
        """Record the molecule of each row, once for all rows of the same Atoms."""
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

    def __len__(self) -> int:
        return len(self.atoms)

    def system(self, k: int) -> System:
        """Molecule of a row as it is recorded. Raises InputError if it cannot be computed."""
        system = self.resident.systems[k]
        if system is None:
            raise InputError(self.failed[k])
        return system

    @property
    def terms(self) -> tuple[Term, ...]:
        """Further terms of all rows."""
        given = self.options["terms"]
        return (given,) if isinstance(given, Term) else tuple(given)

    @property
    def energy_options(self) -> dict[str, Any]:
        """Options of `Energy` that all rows have, less the gradient."""
        return {name: value for name, value in self.options.items() if name != "gradient"}

    def chosen(self, rows: RowsLike) -> Rows:
        """Return the numbers of rows. Raises InputError for rows that there are not, and while their memory is
        mapped."""
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
        raise InputError(f"there are {len(self)} rows; {described(rows)} is none of them")

    def there(self, rows: RowsLike) -> Rows:
        """Return the numbers of rows that did not fail. Raises InputError as `chosen` does."""
        chosen = self.chosen(rows)
        return chosen[~np.isin(chosen, list(self.failed))] if self.failed else chosen

    @property
    def evaluated(self) -> NDArray[np.bool_]:
        """Tell of each row if it was evaluated as it is, (n_rows,)."""
        self._see_rewrites()
        is_now: NDArray[np.bool_] = self._evaluated == self._versions
        return is_now

    def _see_rewrites(self) -> None:
        """Take note of buffers of terms that were written, which change the energies of all rows."""
        if self._rewrites != self.resident.store.rewrites:
            self._rewrites = self.resident.store.rewrites
            self._versions += 1

    def changed(self, rows: Rows | Sequence[int] | None, *, moved: bool = True) -> None:
        """Let it be known that rows changed, so that results that they had are of another state.

        moved : whether their positions changed, or only restraints
        """
        chosen = slice(None) if rows is None else rows
        self._versions[chosen] += 1
        self.moves[chosen] += moved

    def settled(self, rows: Rows | Sequence[int]) -> None:
        """Let it be known that the results of rows are of the state that they are in."""
        self._see_rewrites()
        self._evaluated[rows] = self._versions[rows]
        for k in np.asarray(rows).tolist() if self.explained else ():
            self.explained.pop(k, None)

    def require_evaluated(self, rows: Rows) -> None:
        """Raise InputError for rows that were not evaluated since they changed."""
        old = [k for k in rows[~self.evaluated[rows]].tolist() if k not in self.failed]
        if old:
            raise InputError(f"row {old[0]} was not evaluated where it is now; call evaluate() first")

    def by_system(self, rows: Rows) -> list[tuple[Rows, System]]:
        """Places in `rows` by molecule; without failed rows."""
        good = ~np.isin(rows, list(self.failed)) if self.failed else None
        return [(np.array(places, np.int64), system) for system, places in self._places(rows, good).items()]

    def evaluate(self, rows: RowsLike, keep_radii: bool = False) -> None:
        """Compute energies and gradients of rows on the device; failed rows are passed over.

        keep_radii : at the Born radii that rows have. Raises InputError for a row that has none
        """
        chosen = self.chosen(rows)
        good = self.there(chosen)
        if keep_radii and (new := good[~self.has_radii[good]]).size:
            raise InputError(f"row {new[0]} was never evaluated, and has no radii to be kept")
        self.resident.evaluate(good, keep_radii)
        self.has_radii[good] = True
        self.settled(chosen)

    def batch(self, rows: list[int]) -> EnergyBatch:
        """Read the energies of rows of one molecule as results have them."""
        results = self.resident.read(rows, "results", self.precision)
        return self.resident.system(rows[0]).energies(results, np.asarray(self.read_positions(rows)))

    def read_positions(self, rows: list[int]) -> Arrays:
        """Read the positions of rows, (n, 3) A each; NaN of rows that failed."""

        def read(there: Rows, system: System) -> Floats:
            positions = system.pipeline.decode(self.encoded(there.tolist()))
            if self.offsets[there].any():
                positions += self.offsets[there, None]
            return positions

        return self.read(rows, read, (3,))

    def read(self, rows: list[int], read: Callable[[Rows, System], Floats], shape: tuple[int, ...]) -> Arrays:
        """Read arrays of rows, (n, *shape) each; NaN of rows that failed. One array if all are of one molecule.

        read : gives those of some rows of one molecule
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
        """Read columns of the atoms from the results of rows: Born radii are the first one, three of gradients follow.

        Returns (n,) or (n, count) of each row, NaN of rows that failed.
        """
        shape = (count,) if count > 1 else ()

        def read(there: Rows, system: System) -> Floats:
            n = len(system.energy.atoms)
            begin = len(PASS_TERMS) * system.passes.n_energies + first * n
            found = self.resident.read_part(there.tolist(), "results", begin, count * n)
            found = found.reshape(len(there), n, *shape)
            found[~are_numbers[there]] = np.nan
            return found

        _, are_numbers = self.resident.energies()
        return self.read(rows, read, shape)

    def encoded(self, rows: list[int]) -> NDArray[Any]:
        """Read the positions of rows of one molecule as the device has them, (m, 3 n)."""
        return self.resident.read(rows, "positions", self.resident.coordinate)

    def put_back(self, rows: Sequence[int], encoded: Sequence[NDArray[Any]]) -> None:
        """Place rows where `encoded` had them, before something moved them."""
        for places, _ in self.by_system(np.array(rows, np.int64)):
            there = [rows[place] for place in places.tolist()]
            self.resident.write(there, "positions", np.stack([encoded[place] for place in places.tolist()]))
            self.changed(there, moved=False)

    def minimized(self, rows: list[int], offsets: Sequence[Floats]) -> None:
        """Take note of rows that were moved and evaluated where they are, and add up their energies.

        offsets : (3,) A of each, from the place that its molecule has on the device
        """
        self.changed(rows)
        self.offsets[rows] = offsets
        self.resident.add_up(np.array(rows, np.int64))
        self.resident.queue.submit()
        self.has_radii[rows] = True
        self.settled(rows)

    def place(self, rows: list[int], positions: Sequence[ArrayLike] | NDArray[Any], errors: str = "record") -> None:
        """Place rows; a structure that cannot be is a failed row until it is placed again.

        positions : (n, 3) A of each, or one array of all
        errors : "raise" for an InputError in place of a failed row, before any row is changed
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
                    if self.resident.systems[k] is not None:
                        self.failed.pop(k, None)
                    self.explained.pop(k, None)
            self.failed |= failed
            for there, encoded, offsets in ready:
                self.offsets[there] = offsets
                self.resident.write(there, "positions", encoded)

    def _encoded(
        self, rows: list[int], positions: Sequence[ArrayLike] | NDArray[Any], failed: dict[int, str], stack: ExitStack
    ) -> Iterator[tuple[list[int], NDArray[Any], Floats]]:
        """Encode positions by molecule: rows, encoded positions, offsets. failed : gets why some cannot be"""
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
            out = stack.enter_context(self.resident.pinned(shape, self.resident.coordinate))
            encoded, offsets, reasons = system.encoded(np.asarray(own), out)
            failed |= {there[k]: reason for k, reason in reasons.items()}
            yield there, encoded, offsets

    def _places(self, rows: Rows, good: NDArray[np.bool_] | None = None) -> dict[System, list[int]]:
        """Places in `rows` by molecule; without rows that have none, and those that are not `good`."""
        resident, numbers_ = self.resident, self.resident.numbers[rows]
        kept = np.arange(len(rows)) if good is None else np.flatnonzero(good)
        found: dict[System, list[int]] = {}
        for number in dict.fromkeys(numbers_[kept].tolist()) if len(resident.distinct) > 1 else [0]:
            system = resident.distinct[number]
            places = kept if len(resident.distinct) == 1 else kept[numbers_[kept] == number]
            if system is not None and len(places):
                found[system] = places.tolist()
        return found

    def _checked(self, k: int, positions: ArrayLike) -> Floats:
        """Positions (n, 3) of row k. Raises InputError for another shape."""
        given = numbers("positions", positions)
        if given.shape != self.atoms[k].positions.shape:
            raise InputError(f"positions of row {k} have shape {given.shape}; ({len(self.atoms[k])}, 3) is needed")
        return given

    def freeze(self, rows: list[int], frozen: Sequence[ArrayLike]) -> None:
        """Freeze atoms of rows, and no others; no row if one is wrong.

        frozen : of each row a mask (n,), or indices of its atoms
        """
        found: dict[int, NDArray[np.bool_]] = {}
        for k, given in zip(rows, frozen, strict=True):
            found[k] = atoms_mask("frozen atoms", given if np.size(given) else [], len(self.atoms[k]), f"row {k}")
        for k, mask in found.items():
            self.frozen[k] = mask
        self._free = None
        self.masks += 1

    @property
    def free_on_device(self) -> Buffer:
        """Reals of all atoms of all rows: 1, or 0 of atoms that are frozen."""
        if self._free is None:
            self._free = self.resident.queue.upload(1.0 - self.frozen_atoms)
        return self._free

    @property
    def frozen_atoms(self) -> NDArray[np.bool_]:
        """Tell of all atoms on the device if they are frozen, (n_atoms of all rows that have a molecule there,)."""
        there = [mask for mask, n in zip(self.frozen, self.resident.n_atoms, strict=True) if n]
        return np.concatenate(there) if there else np.zeros(0, bool)
