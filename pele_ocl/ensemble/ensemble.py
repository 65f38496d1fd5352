"""Structures that stay on a device between calls, one row each; used by samplers, minimizers and dynamics."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..atoms import Atoms, Floats
from ..common.arguments import choice, described, flag, former_keywords, whole_number
from ..common.errors import InputError
from ..common.settled import Settled
from ..energy import Term
from ..energy.engine import System
from ..energy.result import ALL_TERMS
from ..gb_models.solvent_model import SolventModel, choose_radii_of
from ..results import Terms
from .columns import Column, DeviceArray, MappedRows, mapped
from .drivers import DriverKernel
from .restraints import KINDS, RESTRAINTS
from .state import Arrays, Lock, Rows, RowsLike, State, locked
from .values import Scales, TermArrays, names_of_arrays

if TYPE_CHECKING:
    from ..minimize.driver import Driver
    from ..minimize.job import Job, Recipe
    from ..minimize.result import MinimizeBatch, MinimizeResult
    from ..opencl.device import Device

MOST_ROWS = 1 << 24  # per molecule
MOST_RECIPES = 256  # cached molecules with options of minimization
MOST_KEPT = 1 << 25  # bytes of minimization buffers kept between calls

Named = tuple[tuple[str, str], ...]  # options by name, as a key


class Ensemble(Settled):
    """Structures of one or many molecules on one device, one row each.

    Positions stay on the device between calls; `evaluate` computes energies and gradients there. Rows are read as
    arrays, and their positions are set by assignment. The results of a row depend only on its molecule and positions:
    they are bit-identical in any order and with any other rows. A failed row has a message in `errors`. After the
    positions of a row are set, reading its results raises InputError until it is evaluated. Threads may share an
    ensemble; their calls are serialized.

    molecules : an Atoms, or a list of them; identical objects share their tables
    copies : number of rows per molecule, which start at its positions
    gradient : False to compute only energies
    errors : "record" to record molecules that cannot be computed, "raise" for an InputError
    scales : True to allow each row to scale charges, Lennard-Jones wells and torsions (`scales`); each row then has
        its own parameters on the device
    other parameters : as in `Energy`, for all rows

    `atoms` has the Atoms of each row; `device` and `precision` are the same for all. `positions`, `gradients`,
    `born_radii` and `frozen` are Columns. `state` is internal and not stable.

    Raises InputError for unknown options, and DeviceMemoryError if the device has too little memory.

    >>> ensemble = pele_ocl.Ensemble([pele_ocl.read("data/structures/trialanine.pdb")] * 2)
    >>> ensemble.evaluate().energies.round(1).tolist()
    [-135.5, -135.5]
    """

    def __init__(
        self,
        molecules: Atoms | Sequence[Atoms],
        copies: int | Sequence[int] = 1,
        *,
        gradient: bool = True,
        fixed_radii: bool = False,
        one_four: Literal["scale", "exclude"] = "scale",
        cutoff: float | None = None,
        terms: Sequence[Term] = (),
        only_terms: Sequence[str] | None = None,
        precision: str = "float32",
        variant: str = "auto",
        device: Device | int | str | None = None,
        model: SolventModel | None = None,
        errors: Literal["raise", "record"] = "raise",
        scales: bool = False,
    ) -> None:
        from ..opencl.device import get_device

        choice("errors", errors, ("raise", "record"))
        options: dict[str, Any] = dict(
            gradient=flag("gradient", gradient), fixed_radii=fixed_radii, one_four=one_four, cutoff=cutoff,
            terms=terms, only_terms=only_terms,
            precision=precision, variant=variant, model=model, scales=flag("scales", scales),
        )  # fmt: skip
        self.device, self.precision = get_device(device), precision
        self.atoms: tuple[Atoms, ...] = _rows_of(molecules, copies, SolventModel.or_default(model))
        self.state = State(self.atoms, self.device, options, errors)
        self._driver: Driver | None = None  # for minimization
        self._recipes: dict[tuple[System, Named], Recipe | str] = {}  # prepared molecules, or errors
        self._known: set[Named] = set()  # valid options of minimization
        self.positions = Column(self.state, self.state.read_positions, self.state.place)
        self.gradients = Column(self.state, self._read_gradients)
        self.born_radii = Column(self.state, self._read_radii)
        self.frozen = Column(self.state, self._read_frozen, self.state.freeze, ndim=1)

    @property
    def _lock(self) -> Lock:
        return self.state.lock

    def __len__(self) -> int:
        return len(self.atoms)

    def __repr__(self) -> str:
        sizes = sorted({len(atoms) for atoms in self.atoms})
        size = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}"
        return f"Ensemble({len(self):,} rows of {size} atoms, {self.precision}, on {self.device})"

    @locked
    def __reduce__(self) -> tuple[Callable[..., Ensemble], tuple[object, ...]]:
        return _again, self._description()

    def _description(self) -> tuple[list[Atoms], list[int], dict[str, Any], dict[str, dict[Any, Any]]]:
        """Return molecules, the number of each row's molecule, options, and the state of rows, for pickling."""
        distinct = {id(atoms): atoms for atoms in self.atoms}
        numbers = {key: number for number, key in enumerate(distinct)}
        rows = [numbers[id(atoms)] for atoms in self.atoms]
        good = [k for k in range(len(self)) if k not in self.state.failed]
        state: dict[str, dict[Any, Any]] = {
            "positions": dict(zip(good, self.positions[good], strict=True)),
            "restraints": self._restraints(),
            "arrays": self._arrays(),
            "failed": {k: why for k, why in self.state.failed.items() if self.state.systems[k] is not None},
            "frozen": {k: mask for k, mask in enumerate(self.state.frozen) if mask.any()},
        }
        options = {**self.state.options, "scales": self.state.scales, "device": self.device}
        return list(distinct.values()), rows, options, state

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the terms of all rows, in the order of results."""
        found = dict.fromkeys(
            name for system in dict.fromkeys(self.state.systems) if system for name in system.energy.names
        )
        ordered = [name for name in ALL_TERMS if name in found]
        return (*ordered, *(name for name in found if name not in ordered))

    @property
    def energy_dtype(self) -> np.dtype[Any]:
        """Data type of energies on the device: float64 if supported; `fine` in kernels."""
        return self.state.fine

    @locked
    def evaluate(self, rows: RowsLike = None, *, keep_radii: bool = False) -> Ensemble:
        """Compute energies and gradients of rows on the device, by default of all rows. Returns the ensemble.

        rows : a number, a slice, a list of numbers, or a mask (n_rows,); failed rows are skipped
        keep_radii : True to use the Born radii of the previous evaluation; only with `fixed_radii`, and for evaluated
            rows

        Raises InputError if radii are to be kept and there are none.
        """
        chosen = self.state.chosen(rows)
        if flag("keep_radii", keep_radii) and not self.state.options["fixed_radii"]:
            raise InputError("only ensembles with fixed_radii=True keep radii")
        self.state.evaluate(chosen, keep_radii)
        return self

    @property
    def energies(self) -> Floats:
        """Energies of all rows from their last evaluation, (n_rows,) kcal/mol; NaN for failed rows.

        Raises InputError if a row was not evaluated.
        """
        return self.energies_of()

    @locked
    def energies_of(self, rows: RowsLike = None) -> Floats:
        """Energies of rows from their last evaluation, (n_chosen,) kcal/mol; NaN for failed rows.

        Raises InputError if a row was not evaluated.
        """
        chosen = self.state.chosen(rows)
        self.state.require_evaluated(chosen)
        energies, are_numbers = self.state.read_energies()
        energies[~are_numbers] = np.nan
        energies[list(self.state.failed)] = np.nan
        return energies[chosen]

    @property
    @locked
    def errors(self) -> dict[int, str]:
        """Reasons for failed rows, by index from 0."""
        state = self.state
        _, are_numbers = state.read_energies()
        there = state.with_molecule
        for k in there[state.evaluated[there] & ~are_numbers[there]].tolist():
            if k not in state.failed and k not in state.explained:
                state.explained[k] = state.batch([k]).errors.get(0, "its energy is not a number")
        return dict(sorted({**state.explained, **state.failed}.items()))

    @locked
    def terms(self, rows: RowsLike = None) -> Terms:
        """Energy terms of rows, (n_rows, n_terms) kcal/mol; 0 for terms that a molecule does not have.

        Terms of failed rows are NaN. Raises InputError if a row was not evaluated.
        """
        chosen, names = self.state.chosen(rows), self.names
        self.state.require_evaluated(chosen)
        values = np.full((len(chosen), len(names)), np.nan)
        for places, system in self.state.by_system(chosen):
            batch = self.state.batch(chosen[places].tolist())
            values[places] = 0
            for column, name in enumerate(system.energy.names):
                values[places, names.index(name)] = batch.terms.values[:, column]
        return Terms(names, values)

    def references(self, name: str) -> Column:
        """Reference positions of a positional restraint, which may differ between rows.

        name : name of the restraint; `ensemble.references("restraint")[3] = positions` sets them for row 3, (n, 3) A
        """
        return self._restraint_values("references", name, 2)

    def force_constants(self, name: str) -> Column:
        """Force constants of a restraint, which may differ between rows.

        name : name of the restraint; (n,) kcal/mol/A^2 for atoms, (m,) kcal/mol/A^2 for distances, (m,)
            kcal/mol/rad^2 for torsions, (1,) kcal/mol/A^2 for a centre of mass
        """
        return self._restraint_values("force_constants", name, 1)

    def targets(self, name: str) -> Column:
        """Targets of a named restraint, which may differ between rows.

        They are distances (m,) A, torsions (m,) rad, or the position of a centre of mass (3,) A.
        """
        return self._restraint_values("targets", name, 1)

    def values(self, term: str, name: str) -> Column:
        """Per-row array of a term, by the names of the term and of the array.

        For users' terms these are the arrays uploaded by `TermContext.upload_each`. `ensemble.values("morse",
        "lengths")[3] = lengths` sets it for row 3.
        """
        values = TermArrays(self.state, term, name)
        return Column(self.state, values.read, values.write, ndim=8)

    @property
    def scales(self) -> Scales:
        """Scale factors of charges, Lennard-Jones wells and torsions per row, for an ensemble with `scales=True`.

        `ensemble.scales["charges"][3] = 0.8` applies to all atoms of row 3, an array (n,) to single atoms. Pairs use
        the geometric mean of both atoms' factors, torsions that of their outer atoms.

        Raises InputError for other ensembles.
        """
        if not self.state.scales:
            raise InputError("rows have no scales; create the ensemble with `scales=True`")
        return Scales(self.state)

    def _restraint_values(self, kind: str, name: str, ndim: int) -> Column:
        values = KINDS[kind](self.state, name)
        return Column(self.state, values.read, values.write, ndim)

    @locked
    def copy(self, sources: RowsLike, targets: RowsLike) -> None:
        """Copy rows to other rows of the same molecules on the device: positions, results, restraint values.

        sources, targets : the same number of rows, or one source; all sources are read before targets are written

        Raises InputError if their molecules differ, and for repeated targets.
        """
        state = self.state
        begin, end = state.chosen(sources), state.chosen(targets)
        if len(begin) == 1:
            begin = np.repeat(begin, len(end))
        if len(begin) != len(end) or len(np.unique(end)) < len(end):
            raise InputError(f"{len(begin)} sources do not match {len(end)} targets, each given once")
        for k, to in zip(begin.tolist(), end.tolist(), strict=True):
            if k in state.failed or state.systems[k] is not state.systems[to]:
                raise InputError(f"row {k} cannot be copied to row {to}: their molecules are not the same Atoms")
        if len(begin):
            state.copy_rows(begin, end)
            is_known = state.evaluated[begin]
            state.changed(end)
            state.offsets[end], state.has_radii[end] = state.offsets[begin], state.has_radii[begin]
            state.settled(end[is_known])
            for to in end.tolist():
                state.explained.pop(to, None)
                state.failed.pop(to, None)

    @locked
    def array(self, per: Literal["atom", "row"], columns: int = 1, dtype: DTypeLike | None = None) -> DeviceArray:
        """Create a driver's array on the device, filled with zeros, with a number of columns per atom or per row.

        dtype : by default the ensemble's precision; "coordinate" for the data type of positions
        """
        choice("per", per, ("atom", "row"))
        whole_number("columns", columns, least=1)
        n = int(self.state.first_atoms[-1]) if per == "atom" else len(self)
        return DeviceArray(self.state, (n, columns), self._dtype_of(dtype), per)

    def _dtype_of(self, dtype: object) -> np.dtype[Any]:
        """Return the data type of a driver's array. Raises InputError for types that kernels do not support."""
        if dtype is None:
            return np.dtype(self.precision)
        if isinstance(dtype, str) and dtype == "coordinate":
            return self.state.coordinate
        try:
            kind: np.dtype[Any] = np.dtype(dtype)  # type: ignore[call-overload]
        except (TypeError, ValueError, SyntaxError):
            kind = np.dtype(object)
        if kind.kind not in "iuf" or kind.itemsize > 8:
            raise InputError(f"dtype is {described(dtype)}; expected a type of numbers or 'coordinate'")
        return kind

    def kernel(self, source: str | Path, name: str, width: int = 1, **defines: int) -> DriverKernel:
        """Build a driver's kernel that runs over rows; its first parameter is ENSEMBLE of cl/engine/rows.clh.

        source : source text of the kernel, or the Path of its file
        name : name of the kernel; width : reals in a `realv` of cl/common/real.clh; defines : macros

        Raises KernelBuildError with the compiler's message.
        """
        return DriverKernel(self.state, source, name, defines, whole_number("width", width, least=1, most=16))

    @locked
    @former_keywords(largest="max_gradient", energy_change="energy_tolerance", restore="bond_repair")
    def minimize(self, rows: RowsLike = None, **options: Any) -> MinimizeBatch:
        """Minimize rows from their current positions to local minima. Returns the result of `minimize_many`.

        Frozen atoms of a row do not move. options : as in Minimizer, such as tolerance and max_iterations

        >>> ensemble = pele_ocl.Ensemble([pele_ocl.read("data/structures/trialanine.pdb")] * 2)
        >>> ensemble.minimize(max_iterations=2).iterations.tolist()
        [2, 2]
        """
        from ..minimize.result import MinimizeBatch

        chosen = [k for k in self.state.chosen(rows).tolist() if k not in self.state.failed]
        if not self.state.options["gradient"]:
            return self._minimized_by_another(chosen, options)
        begin, state = time.perf_counter(), self.state
        named = self._named(options)
        found: dict[int, MinimizeResult | str] = {}
        jobs = self._jobs(np.unique(np.array(chosen, np.int64)), options, named, found)
        if jobs:
            try:
                self._run(jobs, options.get("max_seconds"))
            except BaseException:
                self._forget()
                state.put_back(jobs)
                raise
            found |= {job.number: job.result for job in jobs}
            done = [job for job in jobs if not isinstance(job.result, str)]
            if len(done) < len(jobs):
                state.put_back([job for job in jobs if isinstance(job.result, str)])
            if done:
                state.minimized([job.number for job in done], [job.offset for job in done])
        if failed := [k for k in chosen if isinstance(found[k], str)]:
            state.evaluate(failed)
        results = [found[k] for k in chosen]
        errors = {place: result for place, result in enumerate(results) if isinstance(result, str)}
        there = [None if isinstance(result, str) else result for result in results]
        return MinimizeBatch(there, errors, time.perf_counter() - begin)

    def _named(self, options: Mapping[str, Any]) -> Named:
        """Return options of Minimizer as a key. Raises InputError for unknown ones and those set by the ensemble."""
        from ..minimize.options import check_options

        named = tuple(sorted((name, repr(value)) for name, value in options.items()))
        if named not in self._known:
            own = self.state.energy_options
            if twice := [name for name in options if name in own or name in ("frozen", "device")]:
                raise InputError(f"{twice[0]} is set by the ensemble; leave it out")
            check_options(options)
            self._known.add(named)
        return named

    def _jobs(
        self, rows: Rows, options: Mapping[str, Any], named: Named, found: dict[int, MinimizeResult | str]
    ) -> list[Job]:  # fmt: skip
        """Create minimization jobs of rows. named : the options as a key; found : receives reasons of failures"""
        jobs: list[Job] = []
        state = self.state
        for there, system in state.by_system(rows):
            own_rows = rows[there]
            recipe = self._recipe(system, options, named)
            if isinstance(recipe, str):
                found |= dict.fromkeys(own_rows.tolist(), recipe)
                continue
            encoded, offsets = state.encoded(own_rows.tolist()), state.offsets[own_rows]
            given = system.passes.decode(encoded) + offsets[:, None]
            free = [~state.frozen[k] for k in own_rows.tolist()]
            own, errors = recipe.jobs(own_rows.tolist(), given, free, encoded, offsets, state.own[own_rows])
            found |= {k: str(error) for k, error in errors.items()}
            jobs += own
        return jobs

    def _recipe(self, system: System, options: Mapping[str, Any], named: Named) -> Recipe | str:
        """Prepare a molecule for minimization, once for all rows and calls; return a Recipe or the reason of a failure.

        Frozen atoms and restraint values are data of rows, so that changing them needs no new recipe.
        """
        from ..minimize.job import Protocol, Recipe

        key = system, named
        if key not in self._recipes:
            if len(self._recipes) >= MOST_RECIPES:
                self._forget()
            try:
                self._recipes[key] = Recipe(system, Protocol(system.energy, **options), is_resident=True)
            except InputError as error:
                self._recipes[key] = str(error)
        return self._recipes[key]

    def _run(self, jobs: Sequence[Job], limit: float | None) -> None:
        """Minimize structures in place. limit : seconds"""
        from ..minimize.driver import Driver

        if self._driver is None:
            stack, queue = ExitStack(), self.state.queue
            self._driver = Driver(queue, stack.enter_context(queue.independent_queue()), self.state.store)
            stack.callback(self._driver.stop)  # waits for the device
            weakref.finalize(self, stack.close).atexit = False
        self._driver.make_room(jobs)
        self._driver.begin(limit)
        for _ in self._driver.minimized(iter([jobs])):
            pass
        if self._driver.size > MOST_KEPT:
            self._driver.reset()

    def _forget(self) -> None:
        """Drop all objects cached for minimization."""
        self._recipes.clear()
        if self._driver is not None:
            self._driver.stop()
            self._driver.reset()

    def _minimized_by_another(self, rows: list[int], options: dict[str, Any]) -> MinimizeBatch:
        """Minimize rows of an ensemble without gradients, with a copy of it that has them."""
        molecules, numbers, own, state = self._description()
        other = _again(molecules, numbers, {**own, "gradient": True}, state)
        batch = other.minimize(rows, **options)
        good = [k for place, k in enumerate(rows) if place not in batch.errors]
        if good:
            self.state.place(good, list(other.positions[good]))
        self.state.evaluate(rows)
        return batch

    @locked
    def _restraints(self) -> dict[tuple[str, str], dict[int, Floats]]:
        """Read the values of restraints, by kind and name, and by row."""
        found: dict[tuple[str, str], dict[int, Floats]] = {}
        there = self.state.with_molecule.tolist()
        names = {term.name for k in there for term in self.state.system(k).energy.further_terms}
        for kind, values in KINDS.items():
            for name in names:
                with suppress(InputError):  # a restraint without this kind of value
                    found[kind, name] = dict(zip(there, values(self.state, name).read(there), strict=True))
        return found

    def _arrays(self) -> dict[tuple[str, str], dict[int, NDArray[Any]]]:
        """Read the arrays of users' terms and the scales, by term and name, and by row."""
        there, found = self.state.with_molecule.tolist(), dict[tuple[str, str], dict[int, NDArray[Any]]]()
        restraints = {of for k in there for of in self.state.system(k).energy.further_terms
                      if isinstance(of, RESTRAINTS)}  # fmt: skip
        for k in there:
            for name in names_of_arrays(self.state.system(k)):
                array, _, term = name.partition(" of ")
                if term not in {of.name for of in restraints}:
                    found.setdefault((term, array), {})[k] = self.values(term, array)[k]
        if self.state.scales:
            found |= {("", kind): dict(zip(there, column[there], strict=True)) for kind, column in self.scales.items()}
        return found

    @contextmanager
    def mapped(self, *, moves: bool = False) -> Iterator[MappedRows]:
        """Map the memory of rows on a CPU device as NumPy arrays, within a `with` block.

        Within the block nothing else of the ensemble can be used; after it the arrays must not be used.

        moves : whether the block changes positions; the rows must then be evaluated again

        Raises InputError for a device other than a CPU, or one without float64.
        """
        with self._lock:
            self.state.chosen(None)
            with mapped(self.state) as rows:
                self.state.is_mapped = True
                try:
                    yield rows
                finally:
                    self.state.is_mapped = False
                    if moves:
                        self.state.changed(None)

    @locked
    def finish(self) -> None:
        """Wait until the device has finished all work."""
        self.state.queue.finish()

    @locked
    def _read_gradients(self, rows: list[int]) -> Arrays:
        self.state.require_evaluated(np.array(rows, np.int64))
        if not self.state.options["gradient"]:
            raise InputError("there are no gradients; the ensemble was created with gradient=False")
        return self.state.columns(rows, 1, 3)

    @locked
    def _read_radii(self, rows: list[int]) -> Arrays:
        self.state.require_evaluated(np.array(rows, np.int64))
        found = self.state.columns(rows, 0, 1)
        for places, system in self.state.by_system(np.array(rows, np.int64)):
            for place in () if system.passes.contents.has_gb else places.tolist():
                found[place][:] = np.nan
        return found

    @locked
    def _read_frozen(self, rows: list[int]) -> list[NDArray[np.bool_]]:
        return [self.state.frozen[k].copy() for k in rows]


def _rows_of(molecules: Atoms | Sequence[Atoms], copies: int | Sequence[int], model: SolventModel) -> tuple[Atoms, ...]:
    """Return the Atoms of each row, with the GB radii of the model."""
    listed = [molecules] if isinstance(molecules, Atoms) else molecules
    if not isinstance(listed, Sequence) or not listed:
        raise InputError(f"molecules is {described(molecules)}; expected an Atoms or a list of them")
    for atoms in listed:
        if not isinstance(atoms, Atoms):
            raise InputError(f"molecules contain {type(atoms).__name__}; expected Atoms")
    given = copies if isinstance(copies, list | tuple) else [copies] * len(listed)
    counts = [whole_number("copies", n, least=1, most=MOST_ROWS) for n in given]
    if len(counts) != len(listed):
        raise InputError(f"copies are {len(counts)} numbers; expected one for each of {len(listed)} molecules")
    chosen = choose_radii_of(model, listed)
    return tuple(atoms for atoms, n in zip(chosen, counts, strict=True) for _ in range(n))


def _again(
    molecules: list[Atoms], rows: list[int], options: dict[str, Any], state: dict[str, dict[Any, Any]]
) -> Ensemble:
    """Unpickle an ensemble."""
    ensemble = Ensemble([molecules[k] for k in rows], errors="record", **options)
    ensemble.positions[list(state["positions"])] = list(state["positions"].values())
    for (values, name), of_rows in state["restraints"].items():
        KINDS[values](ensemble.state, name).write(list(of_rows), list(of_rows.values()))
    for (term, name), of_rows in state.get("arrays", {}).items():
        (ensemble.values(term, name) if term else ensemble.scales[name])[list(of_rows)] = list(of_rows.values())
    ensemble.state.failed |= state["failed"]  # rows with invalid positions must not get their molecule's
    for k, mask in state["frozen"].items():
        ensemble.frozen[k] = mask
    return ensemble
