"""Poisson-Boltzmann calculations of a molecule."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ..atoms import Atoms, Floats
from ..common import arguments
from ..common.errors import DeviceError, InputError, PeleError
from ..common.settled import Settled
from ..common.variant import Progress
from ..grid import Grid, Map
from ..pb_model import (
    LEAST_DENSE,
    SMALL,
    SURFACES,
    PBMaps,
    PBModel,
    PBProblem,
    PBSolute,
    grid_around,
    grid_at,
    grid_beyond,
)
from .charges import NodeWeights
from .equation import StoppedError
from .given_maps import charges_on, coefficients_on
from .launching import Launching
from .levels import Batch, Geometry, Solution, SolverChoice, can_be_rows, solve_grids
from .probes import probe_points
from .reaction import require_room
from .result import PBErrors, PBResult
from .rows import most_rows, rows_at_once, sets_at_once
from .solvers import SOLVERS

if TYPE_CHECKING:
    from ..opencl.device import Device
    from ..opencl.queue import Queue

COARSE = 0.5  # A; above this, grids with twice the spacing do not resolve atoms
# Offsets, in grid spacings, of the coarser grids used to estimate the error; "edges" needs more for coarse grids.
SHIFTS = ((0.0, 0.0, 0.0), (0.5, 0.5, 0.5))
MORE_SHIFTS = (*SHIFTS, (0.5, 0.0, 0.0), (0.0, 0.5, 0.5), (0.25, 0.5, 0.75))
FINEST = {True: 1e-14, False: 1e-6}  # smallest tolerance with and without float64
MOST_SHIFTS = 1000


class PoissonBoltzmann(Settled):
    """Electrostatics of a molecule in salt water, by the Poisson-Boltzmann equation on a grid.

    atoms : Atoms with charges
    model : dielectrics, salt, surface, charges and boundary; by default PBModel()
    grids : Grid, or several for focusing, the coarsest first; by default one around the molecule
    spacing, padding : of the grid around the molecule, A; ignored if grids are given
    wide : whether to take boundary values from a coarser grid that extends 15 A farther. Maps need this far from the
        molecule, especially for long ones; it costs about 10 %. The effect on energies is small
    radii : (n,) A of the atoms' spheres; by default atoms.gb_radii, the fifth column of a PQR file. Or the name of a
        set of `Atoms.with_radii`, such as "pdb2pqr-parse"
    reaction : True for only the reaction field of the solvent, without the charges' own potential. One solution gives
        the solvation energy from a medium with the solute's dielectric. False for the complete potential, as in
        APBS. Energies then contain self energies on the grid, and only differences on the same grid are meaningful
    solver : key of SOLVERS
    tolerance : relative norm of the residual at which the solver stops, computed in float64
    max_iterations : of the linear solver on a grid
    given : PBMaps instead of dielectric constants, accessibility and charges of the atoms; requires reaction=False
    device : a Device, an index of `pele-ocl devices`, or part of a name; by default PELE_OCL_DEVICE or the best

    Raises InputError for invalid values and ParameterError for atoms without radii. Raises DeviceError if the tolerance
    needs float64 and the device does not support it.

    >>> ion = pele_ocl.Atoms(positions=[[0, 0, 0]], charges=[1.0], gb_radii=[2.0])
    >>> plan = pele_ocl.PoissonBoltzmann(ion, spacing=0.5, padding=4)
    >>> plan.solve().energy < 0
    True
    """

    def __init__(
        self, atoms: Atoms, model: PBModel | None = None, *, grids: Grid | Sequence[Grid] | None = None,
        spacing: float = 0.5, padding: float = 10.0, wide: bool = False,
        radii: ArrayLike | str | None = None, reaction: bool = True,
        solver: str = "mgcg", tolerance: float = 1e-6, max_iterations: int = 100_000,
        given: PBMaps | None = None, device: Device | int | str | None = None,
    ) -> None:  # fmt: skip
        from ..opencl.device import get_device

        self.model = arguments.instance("model", PBModel() if model is None else model, PBModel, "a PBModel")
        if isinstance(radii, str):
            atoms, radii = atoms.with_radii(radii), None
        self.solute = PBSolute.of(atoms, radii, needs_spheres=self.model.has_border)
        self.atoms = atoms
        self.reaction = arguments.flag("reaction", reaction)
        arguments.choice("solver", solver, tuple(SOLVERS))
        arguments.number("spacing", spacing, "a number in A, 0.01 to 100", least=0.01, most=100)
        arguments.number("padding", padding, "a number in A, 1 to 10,000", least=1, most=1e4)
        self.solver, self.tolerance = solver, arguments.number(
            "tolerance", tolerance, "a number, 1e-14 to 0.1", least=1e-14, most=0.1
        )  # fmt: skip
        self.given = arguments.instance("given", PBMaps() if given is None else given, PBMaps, "PBMaps")
        if reaction and not self.given.is_empty:
            raise InputError(
                "maps need reaction=False, because the reaction potential is computed from the atoms' surface"
            )
        self.max_iterations = arguments.whole_number("max_iterations", max_iterations, least=1)
        self.grids = self._chosen(grids, spacing, padding)
        self._around: tuple[Grid, ...] = ()  # coarser grid for boundary values
        if arguments.flag("wide", wide) and grids is None:
            self._around = (grid_beyond(self.grids[0], self.solute, self.model.boundary),)
        self._problem(atoms.positions)  # checks positions and grids
        self.device = get_device(device)
        if self.tolerance < FINEST[self.device.has_float64]:
            raise DeviceError(
                f"{self.device} has no float64, which a tolerance of {tolerance:g} needs; choose 1e-6 or more, or "
                "another device"
            )

    def __repr__(self) -> str:
        points = " and ".join(" x ".join(map(str, grid.shape)) for grid in self.grids)
        return f"PoissonBoltzmann({len(self.atoms):,} atoms, {points} points, {self.model.surface}, {self.solver})"

    def solve(
        self, positions: ArrayLike | None = None, *, keep_map: bool = True, grid_error: bool | None = None,
        extrapolate: bool = False, shifts: int = 0, seed: int = 0, parts: bool = False,
        progress: Progress | None = None,
    ) -> PBResult:  # fmt: skip
        """Solve the equation, and measure the error of the energy.

        positions : (n, 3) A, of another conformation; by default the atoms' own
        keep_map : whether the result has a map of the potential
        grid_error : whether to solve on two coarser grids, which takes a quarter of the time of the energy, or above
            0.5 A on five, which take two thirds; by default if `reaction`
        extrapolate : whether to extrapolate to a spacing of 0 from three spacings; the order is 2 for edges, else 1
        shifts : number of randomly shifted grids over which the energy is averaged
        seed : of their random numbers
        parts : whether levels have the parts of the energy; requires reaction=False
        progress : called with the fraction done, 0 to 1

        Returns a PBResult. Memory: about 32 bytes per node, 40 for the nonlinear equation; time linear in the nodes.
        Raises InputError for positions that do not fit, PeleError if the solver stops early, DeviceError if there is
        not enough memory.

        >>> ion = pele_ocl.Atoms(positions=[[0, 0, 0]], charges=[1.0], gb_radii=[2.0])
        >>> plan = pele_ocl.PoissonBoltzmann(ion, spacing=0.5, padding=4)
        >>> plan.solve(keep_map=True).map.grid.shape == plan.solve().levels[-1].grid.shape
        True
        """
        start = time.perf_counter()
        keep_map, extrapolate = arguments.flag("keep_map", keep_map), arguments.flag("extrapolate", extrapolate)
        with_grid = self.reaction if grid_error is None else arguments.flag("grid_error", grid_error)
        arguments.whole_number("shifts", shifts, most=MOST_SHIFTS)
        arguments.whole_number("seed", seed)
        if arguments.flag("parts", parts) and self.reaction:
            raise InputError("a reaction energy has no parts; request them with reaction=False")
        arguments.callback("progress", progress)
        tell = progress or (lambda share: None)
        moved = self.atoms.positions if positions is None else arguments.positions_of(positions)
        problem = self._problem(moved)
        seconds: dict[str, float] = {}
        for factor in (2, 4) if extrapolate else ():  # checks grids before the computation
            self._require_room(replace(problem, grids=self._coarser_grids(problem.grids, factor)))
        coarser = self._coarser_problems(problem) if with_grid or extrapolate else []
        steps = 1 + len(coarser) + 2 * extrapolate + shifts
        solved = self._solved(problem, seconds, keep_map, parts=parts)
        tell(1 / steps)
        begun = time.perf_counter()
        errors = self._errors(problem, solved, coarser, extrapolate, shifts, seed, tell, steps)
        seconds["errors"] = time.perf_counter() - begun
        atoms = self.atoms if positions is None else replace(self.atoms, positions=moved)
        grid = problem.grids[-1]
        title = f"Poisson-Boltzmann potential of {len(atoms):,} atoms"
        values = solved.potential
        found = None if values is None else Map.owning(grid, values, "kT/e", title, self.model.temperature)
        seconds["total"] = time.perf_counter() - start
        return PBResult(
            atoms, self.model, self.reaction, solved.energy, solved.potentials, found, tuple(solved.levels), errors,
            self.solver, str(self.device), dict(seconds),
        )  # fmt: skip

    def solve_states(
        self, charges: ArrayLike, positions: ArrayLike | None = None, *, progress: Progress | None = None
    ) -> list[PBResult]:
        """Solve the equation for charge states of one conformation, such as a residue with and without a proton.

        The surface, its coefficients and the coarser grids are computed once. Results have no map and no grid error.

        charges : (s, n) e, for each state; positions : (n, 3) A, by default the atoms' own
        progress : called with the fraction done, 0 to 1

        Returns a list of s PBResults. Raises InputError for another shape, and the errors of `solve`.
        """
        states = arguments.numbers("charges", charges)
        if states.ndim != 2 or states.shape[1] != len(self.atoms) or not np.isfinite(states).all():
            raise InputError(f"charges have shape {states.shape}; expected (s, {len(self.atoms)}) finite numbers")
        arguments.callback("progress", progress)
        moved = self.atoms.positions if positions is None else arguments.positions_of(positions)
        problem = self._problem(moved)
        own = [replace(problem, solute=replace(problem.solute, charges=of_state)) for of_state in states]
        geometry, results = self._geometry(is_kept=True), list[PBResult]()
        with naming("state", len(states)):
            for solved, seconds in self._in_rows(own, geometry):
                atoms = replace(self.atoms, positions=moved, charges=states[len(results)])
                results.append(self._without_map(atoms, solved, seconds))
                if progress is not None:
                    progress(len(results) / len(states))
        return results

    def solve_frames(
        self, conformations: ArrayLike, grids: Sequence[Grid] | None = None, *, rows: int | None = None,
        progress: Progress | None = None,
    ) -> list[PBResult]:  # fmt: skip
        """Solve the equation for several conformations.

        With "mgcg", conformations on grids of equal shape and spacing are solved together on GPUs. Results do not
        depend on the other conformations. They have no map and no grid error.

        conformations : (m, n, 3) A; grids : for each conformation; by default the plan's own
        rows : maximum number solved together; by default 1 on CPUs, else limited by the device's memory. On a GPU, up
            to three sets are solved concurrently, which needs correspondingly more memory
        progress : called with the fraction done, 0 to 1

        Returns a list of m PBResults. Raises InputError for a conformation that does not fit its grid, and PeleError if
        the solver stops early; both messages contain the number of the conformation.
        """
        arguments.callback("progress", progress)
        if rows is not None:
            arguments.whole_number("rows", rows, least=1)
        frames = arguments.numbers("conformations", conformations)
        if frames.ndim != 3 or frames.shape[1:] != self.solute.positions.shape:
            raise InputError(f"conformations have shape {frames.shape}; expected (m, {len(self.atoms)}, 3)")
        if grids is not None and not isinstance(grids, tuple | list):
            raise InputError(f"grids is {arguments.described(grids)}; expected a list of Grids")
        if grids is not None and len(grids) != len(frames):
            raise InputError(f"there are {len(grids)} grids for {len(frames)} conformations; give one for each")
        problems, results = list[PBProblem](), list[PBResult]()
        for number, frame in enumerate(frames):
            try:
                problems.append(self._problem(frame, None if grids is None else (grids[number],)))
            except InputError as error:
                raise InputError(f"conformation {number + 1} of {len(frames)}: {error}") from None
        with naming("conformation", len(frames)):
            for solved, seconds in self._in_rows(problems, rows=rows):
                atoms = replace(self.atoms, positions=frames[len(results)])
                results.append(self._without_map(atoms, solved, seconds))
                if progress is not None:
                    progress(len(results) / len(frames))
        return results

    def maps(self, positions: ArrayLike | None = None) -> dict[str, Map]:
        """Compute maps of the equation's coefficients on the finest grid without solving it.

        positions : (n, 3) A, of another conformation; by default the atoms' own

        Returns "dielx", "diely" and "dielz", dielectric constants at the midpoints of the edges along an axis;
        "access", accessibility of nodes for ions, 0 to 1; "charge", charges of nodes, e.
        """
        from ..opencl.queue import Queue

        problem = self._problem(self.atoms.positions if positions is None else arguments.positions_of(positions))
        launching, grid = Launching(Queue(self.device, "float32", profile=False)), problem.grids[-1]
        probes = probe_points(launching, problem.solute, problem.rolled)
        coefficients = coefficients_on(launching, problem, grid, probes)
        constants = coefficients.on_host() / (float(np.prod(grid.spacing)) / grid.spacing**2)[:, None, None, None]
        charges = charges_on(problem, grid, NodeWeights.of(problem, grid))
        found = {}
        for axis, name in enumerate(("dielx", "diely", "dielz")):
            origin = grid.origin + np.where(np.arange(3) == axis, 0.5 * grid.spacing, 0.0)
            found[name] = Map.owning(Grid(origin, grid.spacing, grid.shape), constants[axis], "", "dielectric constant")
        found["access"] = Map.owning(grid, coefficients.accesses_on_host(), "", "access of ions")
        found["charge"] = Map.owning(grid, charges.on_grid(grid.shape), "e", "charges of nodes")
        return found

    def _geometry(self, is_kept: bool = False) -> Geometry:
        from ..opencl.queue import Queue

        return Geometry(Launching(Queue(self.device, "float32", profile=False)), is_kept)

    @property
    def _choice(self) -> SolverChoice:
        return SolverChoice(self.reaction, self.solver, self.tolerance, self.max_iterations)

    def _in_rows(
        self, problems: Sequence[PBProblem], geometry: Geometry | None = None, rows: int | None = None
    ) -> Iterator[tuple[Solution, dict[str, float]]]:
        """Solve problems, in batches of similar problems that fit in the device's memory; times are divided equally.

        geometry : common geometry of problems that differ only in charges; by default each has a temporary one
        rows : maximum batch size; by default from rows_at_once

        Raises StoppedError with the number of the problem.
        """
        from ..opencl.queue import Turns

        parts = self._batches(problems, rows)
        launching = self._geometry().launching if geometry is None else geometry.launching
        sizes = [(part.stop - part.start) * max(map(len, problems[part.start].grids)) for part in parts]
        n_threads = 1 if geometry else min(len(parts), sets_at_once(self.device, max(sizes, default=1)))
        if n_threads <= 1:
            for part in parts:
                yield from self._solved_part(problems, part, geometry, launching.queue)
            return

        turns = Turns()  # without them, a thread that launches continuously blocks others through Python's global lock

        with ExitStack() as stack:
            queues = deque(
                stack.enter_context(launching.queue.independent_queue(turns, reuses_memory=True))
                for _ in range(n_threads)
            )

            def in_own_queue(part: slice) -> list[tuple[Solution, dict[str, float]]]:
                with turns:
                    queue = queues.popleft()
                    try:
                        return self._solved_part(problems, part, None, queue)
                    finally:
                        queues.append(queue)

            pool = ThreadPoolExecutor(n_threads)
            try:
                for found in pool.map(in_own_queue, parts):
                    yield from found
            finally:
                turns.is_over = True  # ends the other sets after an error or an interrupt
                pool.shutdown(cancel_futures=True)

    def _solved_part(
        self, problems: Sequence[PBProblem], part: slice, geometry: Geometry | None, queue: Queue
    ) -> list[tuple[Solution, dict[str, float]]]:
        """Solve one batch of problems. geometry : as in _in_rows"""
        own, launching = problems[part], Launching(queue)
        launching.keeps = not launching.is_cpu
        batch = Batch([geometry or Geometry(launching) for _ in own], own, self._choice)
        try:
            found = batch.solve(False)
        except StoppedError as error:
            error.row += part.start
            raise
        seconds = {**batch.seconds, "total": sum(batch.seconds.values())}
        return [(each, {name: value / len(found) for name, value in seconds.items()}) for each in found]

    def _batches(self, problems: Sequence[PBProblem], rows: int | None) -> list[slice]:
        """Divide problems into batches; batches of similar problems have nearly equal sizes.

        rows : maximum batch size
        """
        found: list[slice] = []
        while (done := found[-1].stop if found else 0) < len(problems):
            first, count = problems[done], 1
            while done + count < len(problems) and can_be_rows(
                [first, problems[done + count]], self._choice, self.device
            ):
                count += 1
            largest = max(first.grids, key=len)
            n_parts = -(-count // min(rows or rows_at_once(self.device, len(largest)), most_rows(largest)))
            bounds = [done - (-k * count // n_parts) for k in range(n_parts + 1)]
            found += [slice(*ends) for ends in pairwise(bounds)]
        return found

    def _without_map(self, atoms: Atoms, solved: Solution, seconds: dict[str, float]) -> PBResult:
        """Return a result without map and grid error."""
        errors = PBErrors(solved.solver_error * self.model.kcal_per_kt)
        return PBResult(
            atoms, self.model, self.reaction, solved.energy, solved.potentials, None, tuple(solved.levels), errors,
            self.solver, str(self.device), seconds,
        )  # fmt: skip

    def _chosen(self, grids: Grid | Sequence[Grid] | None, spacing: float, padding: float) -> tuple[Grid, ...]:
        if grids is None:
            return (grid_around(self.solute, spacing, padding),)
        if isinstance(grids, Grid):
            return (grids,)
        if not isinstance(grids, tuple | list):
            raise InputError(f"grids is {arguments.described(grids)}; expected a Grid or a list of them")
        return tuple(grids)

    def _coarser_grids(self, grids: tuple[Grid, ...], factor: int) -> tuple[Grid, ...]:
        """Return grids with larger spacings; a grid for boundary values is derived from the finest."""
        if not self._around:
            return _coarser(grids, factor)
        (coarse,) = _coarser(grids[-1:], factor)
        return grid_beyond(coarse, self.solute, self.model.boundary), coarse

    def _problem(self, positions: Floats, grids: tuple[Grid, ...] | None = None) -> PBProblem:
        """Return the problem of a conformation. grids : by default the plan's own

        Raises InputError if the conformation does not fit the grids.
        """
        grids = (*self._around, *self.grids) if grids is None else grids
        if positions.shape != self.solute.positions.shape or not np.isfinite(positions).all():
            raise InputError(
                f"positions have shape {positions.shape}; expected {self.solute.positions.shape} finite numbers"
            )
        problem = PBProblem(replace(self.solute, positions=positions), self.model, grids, self.given)
        if self.reaction:
            require_room(problem)
        else:
            problem.require_atoms_on_grid()
        return problem

    def _solved(self, problem: PBProblem, seconds: dict[str, float], keep: bool, *, parts: bool = False) -> Solution:
        """Solve a problem in a new queue. parts : as in solve"""
        return solve_grids(self._geometry(), problem, replace(self._choice, parts=parts), seconds, keep)

    def _require_room(self, problem: PBProblem) -> PBProblem:
        """Return the problem. Raises InputError if its grids are too small for the molecule."""
        if self.reaction:
            require_room(problem)
        return problem

    def _coarser_problems(self, problem: PBProblem) -> list[PBProblem]:
        """Return problems with twice the spacing, whose energies are used to estimate the grid error.

        Their grids are offset by fractions of the spacing, so that an accidentally accurate energy on one of them does
        not hide the error. A single grid is placed in a coarser one, so that the estimate includes the boundary error.
        The probe density is reduced in proportion to the number of surface nodes.
        """
        finest = problem.grids[-1]
        _require_measurable(finest)
        shifts = MORE_SHIFTS if self.model.way == "cuts" and _is_coarse(finest) else SHIFTS
        found = [each for shift in shifts if (each := self._coarser_problem(problem, np.array(shift))) is not None]
        if not found:
            self._require_room(replace(problem, grids=self._coarser_grids(problem.grids, 2)))  # raises the error
        return found

    def _coarser_problem(self, problem: PBProblem, shift: Floats) -> PBProblem | None:
        """Return a problem with twice the spacing; None if its grid is too small for the molecule.

        shift : (3,) offset of the finest grid, in its spacings
        """
        *outer, finest = problem.grids
        spacing = 2 * finest.spacing
        steps = np.maximum(np.ceil((finest.last - finest.origin) / spacing / 8 - 1e-9) * 8, 8).astype(np.int64)
        density = max(LEAST_DENSE, problem.density / 4) if self.model.way == "cuts" else problem.density
        coarse = grid_at((finest.origin + finest.last) / 2 + shift * spacing, spacing, steps + 1)
        if outer and not self._around:
            parents = [Grid(each.origin, each.spacing * 2, _halved(each)) for each in outer]
        else:
            parents = [grid_beyond(coarse, problem.solute, self.model.boundary)]
        for grids in ((*parents, coarse), (coarse,)):
            with suppress(InputError):  # the border may be too close to the molecule
                return self._require_room(replace(problem, grids=grids, density=density))
        return None

    def _errors(
        self, problem: PBProblem, solved: Solution, coarser: Sequence[PBProblem], extrapolate: bool,
        shifts: int, seed: int, tell: Progress, steps: int,
    ) -> PBErrors:  # fmt: skip
        """Estimate the errors of an energy by solving on other grids. coarser : from _coarser_problems"""
        unit, done = self.model.kcal_per_kt, 1
        errors = PBErrors(solved.solver_error * unit)

        def energy_of(other: PBProblem) -> float:
            nonlocal done
            energy = self._solved(other, {}, keep=False).energy * unit
            done += 1
            tell(done / steps)
            return energy

        def energy_on(grids: tuple[Grid, ...]) -> float:
            return energy_of(replace(problem, grids=grids))

        fine, surface = solved.energy * unit, SURFACES[self.model.surface]
        if coarser:
            changes = [fine - energy_of(each) for each in coarser]
            told = safety_of(self.model.surface, problem.grids[-1]) * float(np.sqrt(np.mean(np.square(changes))))
            errors = replace(errors, grid=told)
        if extrapolate:
            coarse = energy_on(self._coarser_grids(problem.grids, 2))
            share = 1 / (2**surface.order - 1)
            extrapolated = fine + share * (fine - coarse)
            before = coarse + share * (coarse - energy_on(self._coarser_grids(problem.grids, 4)))
            errors = replace(errors, extrapolated=extrapolated, extrapolation=abs(extrapolated - before))
        if shifts:
            draws = np.random.default_rng(seed).uniform(-0.5, 0.5, (shifts, 3))
            energies = [energy_on(tuple(_moved(grid, draw) for grid in problem.grids)) for draw in draws]
            spread = float(np.std(energies, ddof=1)) / shifts**0.5 if shifts > 1 else None
            errors = replace(errors, shifted=float(np.mean(energies)), shifts=spread)
        return errors


@contextmanager
def naming(what: str, count: int) -> Iterator[None]:
    """Add the number of the failed problem, of `count`, to errors of the solver."""
    try:
        yield
    except StoppedError as error:
        raise PeleError(f"{what} {error.row + 1} of {count}: {error}") from None


def safety_of(surface: str, grid: Grid) -> float:
    """Return the factor from the rms energy change at twice the spacing to an upper estimate of the error."""
    own = SURFACES[surface]
    return own.safety_if_coarse if _is_coarse(grid) else own.safety


def _is_coarse(grid: Grid) -> bool:
    return bool((grid.spacing > COARSE + SMALL).any())


def _halved(grid: Grid) -> list[int]:
    """Return the shape of a grid with twice the spacing that covers at least the same box."""
    return [max(int(np.ceil((n - 1) / 16 - 1e-9)), 1) * 8 + 1 for n in grid.shape]


def _require_measurable(grid: Grid) -> None:
    """Raise InputError for a grid with too few points to estimate the error."""
    if any((n - 1) // 2 < 4 for n in grid.shape):
        points = " x ".join(map(str, grid.shape))
        raise InputError(
            f"the error of a grid of {points} points cannot be measured with fewer points; give 9 or more along each "
            "axis, or grid_error=False"
        )


def _moved(grid: Grid, share: Floats) -> Grid:
    """Translate a grid by a fraction of its spacing."""
    return Grid(grid.origin + share * grid.spacing, grid.spacing, grid.shape)


def _coarser(grids: tuple[Grid, ...], factor: int) -> tuple[Grid, ...]:
    """Return grids with the same borders and larger spacings. Raises InputError if their shapes do not allow it."""
    for grid in grids:
        if any((n - 1) % factor or (n - 1) // factor < 4 for n in grid.shape):
            points = " x ".join(map(str, grid.shape))
            raise InputError(
                f"the error of a grid of {points} points cannot be measured with {factor} times the spacing; give "
                f"numbers of points that are a multiple of {factor} plus one, or grid_error=False"
            )
    return tuple(
        Grid(grid.origin, grid.spacing * factor, [(n - 1) // factor + 1 for n in grid.shape]) for grid in grids
    )
