"""Results of `minimize`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import index
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats, Ints, Strings
from ..common.errors import InputError
from ..energy.result import ALL_TERMS
from ..results import Terms

# In the order of opencl.interface.Stop, from 1.
REASONS = ("gradient", "largest", "energy", "iterations", "stuck", "time")
CONVERGED = ("gradient", "largest", "energy")


@dataclass(frozen=True, eq=False, kw_only=True)
class MinimizeResult:
    """One structure after its minimisation.

    atoms : the relaxed molecule
    energy_before, energy_after : Terms, kcal/mol; before, of the positions that were given, NaN if atoms
        overlapped too much for a number
    restored : bonds of a shaken start that were off their lengths and brought near them before the first step
        (docs/theory/minimize.md, section 4); 0 if it began from the positions that were given
    rms_gradient : root mean square of the gradients of the atoms that move, sqrt(sum |g|^2 / n), kcal/mol/A
    largest_gradient : the largest gradient of an atom, kcal/mol/A
    iterations : steps taken; evaluations : of energy and gradient
    stopped_by : of REASONS, by what it ended: "stuck" where no step lowered the energy any more, as rounding decides
    rms_displacement : of the atoms from where they began, without superposition, A
    seconds : from the begin of its batch until the structure was done, beside others if any were
    """

    atoms: Atoms
    energy_before: Terms
    energy_after: Terms
    gradient: Floats = field(repr=False)
    rms_gradient: float
    largest_gradient: float
    iterations: int
    evaluations: int
    stopped_by: str
    restored: int
    rms_displacement: float
    seconds: float

    @property
    def positions(self) -> Floats:
        """(n, 3) A."""
        return self.atoms.positions

    @property
    def total(self) -> float:
        """Sum of all terms after it, kcal/mol."""
        return float(self.energy_after.total)

    @property
    def converged(self) -> bool:
        """Tell if a bound of gradient or energy ended it, no limit."""
        return self.stopped_by in CONVERGED

    def to_dict(self, name: str = "") -> dict[str, object]:
        """Object of `pele-ocl minimize --json` for a structure of this name; None for what is not finite."""
        return {
            "name": name,
            "energy_before": _finite_columns(self.energy_before),
            "energy_after": _finite_columns(self.energy_after),
            "rms_gradient": self.rms_gradient,
            "largest_gradient": self.largest_gradient,
            "iterations": self.iterations,
            "evaluations": self.evaluations,
            "stopped_by": self.stopped_by,
            "restored": self.restored,
            "rms_displacement": self.rms_displacement,
            "seconds": self.seconds,
        }


def _finite_columns(terms: Terms) -> dict[str, float | None]:
    columns = {name: float(value) for name, value in terms.columns().items()}
    return {name: value if np.isfinite(value) else None for name, value in columns.items()}


@dataclass(frozen=True, eq=False, repr=False)
class MinimizeBatch(Sequence[MinimizeResult]):
    """Results of m structures, in their order: `batch[i]` is the MinimizeResult of one, its properties are arrays.

    results : the MinimizeResult of each structure, None where it failed
    errors : why structures failed, by their number from 0; asking for one of them raises that InputError
    seconds : of all

    Arrays have NaN, False, 0 or "" for structures that failed.
    """

    results: Sequence[MinimizeResult | None]
    errors: Mapping[int, str]
    seconds: float

    def __len__(self) -> int:
        return len(self.results)

    @overload
    def __getitem__(self, i: int) -> MinimizeResult: ...
    @overload
    def __getitem__(self, i: slice) -> Sequence[MinimizeResult]: ...
    def __getitem__(self, i: int | slice) -> MinimizeResult | Sequence[MinimizeResult]:
        if isinstance(i, slice):
            return [self[k] for k in range(len(self))[i]]
        k = range(len(self))[index(i)]
        result = self.results[k]
        if result is None:
            raise InputError(self.errors[k])
        return result

    def __iter__(self) -> Iterator[MinimizeResult]:
        return (self[k] for k in range(len(self)))

    @property
    def good(self) -> Iterator[tuple[int, MinimizeResult]]:
        """Structures that did not fail, with their numbers."""
        return ((k, result) for k, result in enumerate(self.results) if result is not None)

    def __repr__(self) -> str:
        done = [result for _, result in self.good]
        size = f"{len(self):,} structures, {int(self.converged.sum()):,} converged"
        if len(done) < len(self):
            size += f", {len(self) - len(done):,} failed"
        if not done:
            return f"MinimizeBatch({size})"
        lowest, highest = np.nanmin(self.total), np.nanmax(self.total)
        return f"MinimizeBatch({size}, total {lowest:.3f} to {highest:.3f} kcal/mol)"

    @property
    def positions(self) -> Floats | list[Floats | None]:
        """Positions after it, (m, n, 3) A; a list of (n, 3), None where one failed, if structures differ in size."""
        return self._stacked([None if result is None else result.positions for result in self.results])

    @property
    def gradients(self) -> Floats | list[Floats | None]:
        """Gradients after it, (m, n, 3) kcal/mol/A; a list as `positions` if structures differ in size."""
        return self._stacked([None if result is None else result.gradient for result in self.results])

    @property
    def terms(self) -> Terms:
        """Energies after it, of shape (m, n_terms), kcal/mol; 0 for terms that a molecule does not have."""
        return self._terms([None if result is None else result.energy_after for result in self.results])

    @property
    def terms_before(self) -> Terms:
        """Energies of the positions that were given, of shape (m, n_terms), kcal/mol."""
        return self._terms([None if result is None else result.energy_before for result in self.results])

    @property
    def energies(self) -> Floats:
        """Energies after it, (m, n_terms) kcal/mol, in the order of `terms.names`."""
        return self.terms.values

    @property
    def total(self) -> Floats:
        """Sum of all terms after it, (m,) kcal/mol."""
        return self._column("total", np.nan)

    @property
    def converged(self) -> NDArray[np.bool_]:
        """True for structures that a bound of gradient or energy ended, no limit, (m,)."""
        return self._column("converged", False)

    @property
    def stopped_by(self) -> Strings:
        """Reasons why each ended, (m,) of REASONS."""
        return self._column("stopped_by", "")

    @property
    def iterations(self) -> Ints:
        """Accepted steps, (m,)."""
        return self._column("iterations", 0)

    @property
    def evaluations(self) -> Ints:
        """Evaluations of energy and gradient, (m,)."""
        return self._column("evaluations", 0)

    @property
    def restored(self) -> Ints:
        """Bonds that were brought near their lengths before the first step, (m,)."""
        return self._column("restored", 0)

    @property
    def rms_gradient(self) -> Floats:
        """Root mean square gradients, (m,) kcal/mol/A."""
        return self._column("rms_gradient", np.nan)

    @property
    def largest_gradient(self) -> Floats:
        """Largest gradients of an atom, (m,) kcal/mol/A."""
        return self._column("largest_gradient", np.nan)

    @property
    def rms_displacement(self) -> Floats:
        """Root mean square displacements from where the atoms began, (m,) A."""
        return self._column("rms_displacement", np.nan)

    def _column(self, name: str, failed: object) -> NDArray[Any]:
        """One value of each structure, (m,). failed : where there is none"""
        return np.array([failed if result is None else getattr(result, name) for result in self.results])

    def _stacked(self, arrays: list[Floats | None]) -> Floats | list[Floats | None]:
        """(m, n, 3), NaN where there is none; the list where arrays differ in shape, or none is there."""
        shapes = {array.shape for array in arrays if array is not None}
        if len(shapes) != 1:
            return arrays
        nowhere = np.full(shapes.pop(), np.nan)
        return np.stack([nowhere if array is None else array for array in arrays])

    def _terms(self, each: list[Terms | None]) -> Terms:
        """Terms of all structures, under the names of any, in the order of results."""
        named = dict.fromkeys(name for terms in each if terms is not None for name in terms.names)
        names = (*(name for name in ALL_TERMS if name in named), *(name for name in named if name not in ALL_TERMS))
        values = np.full((len(each), len(names)), np.nan)
        for row, terms in zip(values, each, strict=True):
            if terms is not None:
                row[:] = [getattr(terms, name) if name in terms.names else 0.0 for name in names]
        return Terms(names, values)
