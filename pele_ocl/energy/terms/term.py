"""Interface of a term of the energy beside the passes over pairs."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from numpy.typing import ArrayLike, DTypeLike

from ...atoms import Atoms, Floats
from ...common.hashing import Hashed
from ...plan.conformations import Encoding
from ...tiles import Tiles
from ..options import Options

if TYPE_CHECKING:
    from ...opencl.binding import Array, Binder, Launch
    from ...opencl.kernel import Arguments

ITEMS = 64  # of a work-group of a kernel with one work-item per atom


@dataclass(frozen=True, eq=False)
class TermContext:
    """Binder, positions and outputs with which a term launches its kernels.

    queue : makes buffers and binds launches
    buffers : by name, "positions" and "results" among them, and its own of `sizes`; none before sizes are known
    result_sizes : energies of each term of the passes, n_energies, and reals of a conformation, n_results
    first_grouped : place of the first grouped term in the results of a conformation
    macros : build definitions of cl/energy/results.clh and of how positions are encoded
    tiles, place : for a term that runs first: the tiles, and what Placing of cl/common/place.clh has
    """

    queue: Binder
    atoms: Atoms
    encoding: Encoding
    options: Options
    buffers: dict[str, Array]
    result_sizes: Mapping[str, int]
    first_grouped: int
    macros: Mapping[str, int]
    tiles: Tiles
    place: Callable[[], Arguments]

    @property
    def run(self) -> Binder:
        """Former name of `queue`, for terms of users. Warns."""
        former = "TermContext.run is now TermContext.queue; the former name ends with the next release"
        warnings.warn(former, DeprecationWarning, stacklevel=2)
        return self.queue

    def upload_each(self, term: Term, name: str, values: ArrayLike, dtype: DTypeLike | None = None) -> Array:
        """Upload an array that each row of an ensemble has of its own, which begins with these values.

        `ensemble.values(term.name, name)[row] = values` writes it. name : of the array; dtype : reals by default
        """
        buffer = self.queue.upload_each(values, dtype)
        self.buffers[f"{name} of {term.name}"] = buffer
        return buffer

    def bind(self, file: str | Path, name: str, index: int, arguments: Arguments, **defines: int) -> Launch:
        """Bind a kernel of one work-item per atom.

        file : the Path of a kernel file anywhere, the text of one, or the name of one of cl/
        index : of its first term, as `TermKernels.launches` has it
        arguments : all but n_atoms, n_energies, n_results, term, step, positions and results
        """
        from ...opencl.building import kernel_file

        n = len(self.atoms)
        common = dict(n_atoms=n, **self.result_sizes, term=index, step=self.encoding.step)
        buffers = {of: self.buffers[of] for of in ("positions", "results")}
        given = dict(**common, **buffers, **arguments)
        return self.queue.bind(kernel_file(file), name, (n, 1), (ITEMS, 1), given, **self.macros, **defines)


@dataclass(frozen=True, eq=False)
class LaunchPart:
    """Part that a term has in a launch: its work-groups, arguments and build definitions."""

    n_groups: int
    arguments: Arguments
    macros: Mapping[str, int]


class TermKernels(ABC):
    """Kernels that add named terms to the energy after the passes; cl/energy/results.clh.

    Kernels of one term may be launched first, as the bonded terms are on GPUs: it then places the tiles; `runs_first`.

    Each kernel adds its gradient to `gradient` of the results, in the order of atoms, and writes energies by term.

    movable : if its energy stays the same when all atoms move together
    grouped : if the energies go to `grouped` of the results, of atoms only if these are wanted; else energies of atoms
        go to `further`
    merges_names : if its energies count in terms of the same names that are there already
    """

    movable: ClassVar[bool] = True
    grouped: ClassVar[bool] = False
    merges_names: ClassVar[bool] = False

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Names of its terms."""

    def sizes(self, context: TermContext) -> Mapping[str, int]:
        """Count the reals of one conformation in buffers of its own, by name."""
        return {}

    def runs_first(self, context: TermContext) -> bool:
        """Return whether its one launch is the first of all. That launch places the tiles and begins the gradient."""
        return False

    def part(self, context: TermContext, index: int, items: int) -> LaunchPart:
        """Give its part in a launch of all passes with so many work-items per group. Only of a term that runs first."""
        raise NotImplementedError(f"{type(self).__name__} does not run first")

    def stiffness(self, atoms: Atoms) -> Floats | float:
        """Return the stiffness of each atom, (n,) kcal/mol/A^2, which only makes minimization faster."""
        return 0.0

    @abstractmethod
    def launches(self, context: TermContext, index: int) -> list[Launch]:
        """Bind the launches that add the terms. index : of the first of them in `further` or `grouped`"""


class Term(TermKernels, Hashed):
    """Term of the energy beside the pair passes': a name, a definition, and kernels that add it.

    Its kernels run last. Each adds its gradient to `gradient` of the results, in the order of the atoms. It writes the
    energies of atoms to its part of `further`; cl/energy/results.clh.

    name : of the term in results
    """

    name: str

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    @abstractmethod
    def check(self, atoms: Atoms) -> None:
        """Raise InputError if the term does not fit the atoms."""

    @abstractmethod
    def energies(self, atoms: Atoms) -> tuple[Floats, Floats]:
        """Compute the energies of the atoms (n,) kcal/mol and the gradient (n, 3) kcal/mol/A in float64.

        This is the definition of the term.
        """
