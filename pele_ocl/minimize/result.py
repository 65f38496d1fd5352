"""The results of `minimize`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import index
from typing import overload

import numpy as np

from ..atoms import Atoms, Floats
from ..errors import InputError
from ..results import Terms

REASONS = ("gradient", "largest", "energy", "iterations", "stuck", "time")  # in the order of opencl.shared.Stop, from 1
CONVERGED = ("gradient", "largest", "energy")


@dataclass(frozen=True, eq=False, kw_only=True)
class MinimizeResult:
    """One structure after its minimisation.

    atoms : the relaxed molecule
    energy_before, energy_after : Terms, kcal/mol; those before are of the positions that were given, NaN where atoms
        overlapped too much for a number
    restored : bonds of a shaken start that were off their lengths, and brought near them before the first step:
        docs/theory/minimize.md, section 4; 0 where it began from the positions that were given
    rms_gradient : root mean square of the gradients of the atoms that move, sqrt(sum |g|^2 / n), kcal/mol/A
    largest_gradient : the largest gradient of an atom, kcal/mol/A
    iterations : steps taken; evaluations : of energy and gradient
    stopped_by : of REASONS, by what it ended: "stuck" where no step lowered the energy any more, as rounding decides
    rms_displacement : of the atoms from where they began, without superposition, A
    seconds : from the begin of the batch that it was part of to when the structure was done, beside others if any were
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
    def converged(self) -> bool:
        """Whether a bound of gradient or energy ended it, no limit."""
        return self.stopped_by in CONVERGED

    def to_dict(self, name: str = "") -> dict[str, object]:
        """The object of `pele-ocl minimize --json` for a structure of this name; None for what is not finite."""
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


@dataclass(frozen=True, eq=False)
class MinimizeBatch(Sequence[MinimizeResult]):
    """The results of several structures, in their order.

    errors : why structures failed, by their number from 0; asking for one of them raises that InputError
    seconds : of all
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
        """The structures that did not fail, with their numbers."""
        return ((k, result) for k, result in enumerate(self.results) if result is not None)
