"""Interface of energy terms outside the passes over pairs."""

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

ITEMS = 64  # per work-group of a kernel with one work-item per atom


@dataclass(frozen=True, eq=False)
class TermContext:
    """Buffers and settings with which a term binds its kernels.

    queue : makes buffers and binds launches
    buffers : by name, including "positions", "results" and those of `sizes`; empty until sizes are known
    result_sizes : n_energies, energies per term of the passes, and n_results, reals per conformation
    first_grouped : index of the first grouped term in the results of a conformation
    macros : build definitions of cl/energy/results.clh and of the encoding of positions
    tiles, place : for a term that runs first: the tiles, and PLACE_PARAMETERS of cl/common/place.clh
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
        """Former name of `queue`, for users' terms. Gives a DeprecationWarning."""
        former = "TermContext.run is now TermContext.queue; the former name will be removed in the next release"
        warnings.warn(former, DeprecationWarning, stacklevel=2)
        return self.queue

    def upload_each(self, term: Term, name: str, values: ArrayLike, dtype: DTypeLike | None = None) -> Array:
        """Upload an array that each row of an ensemble has separately, with these initial values.

        `ensemble.values(term.name, name)[row] = values` sets it. name : of the array; dtype : reals by default
        """
        buffer = self.queue.upload_each(values, dtype)
        self.buffers[f"{name} of {term.name}"] = buffer
        return buffer

    def bind(self, file: str | Path, name: str, index: int, arguments: Arguments, **defines: int) -> Launch:
        """Bind a kernel with one work-item per atom.

        file : Path of any kernel file, its text, or the name of a file in cl/
        index : of the kernel's first term, as in `TermKernels.launches`
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
    """Contribution of a term to a launch of several passes: work-groups, arguments and build definitions."""

    n_groups: int
    arguments: Arguments
    macros: Mapping[str, int]


class TermKernels(ABC):
    """Kernels that add named terms to the energy after the passes; cl/energy/results.clh.

    Each kernel adds its gradient to `gradient` of the results, in the order of atoms, and writes energies by term. The
    kernels of one term may run before the passes and place the tiles, as the bonded terms do on GPUs; `runs_first`.

    movable : whether the energy is invariant to translation
    grouped : whether energies are written to `grouped` of the results, per atom only if requested; otherwise to
        `further`, always per atom
    merges_names : whether the energies are added to existing terms of the same names
    """

    movable: ClassVar[bool] = True
    grouped: ClassVar[bool] = False
    merges_names: ClassVar[bool] = False

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Names of the terms."""

    def sizes(self, context: TermContext) -> Mapping[str, int]:
        """Reals per conformation in the term's buffers, by name."""
        return {}

    def runs_first(self, context: TermContext) -> bool:
        """Return whether the term runs before the passes, in one launch that places tiles and initializes gradients."""
        return False

    def part(self, context: TermContext, index: int, items: int) -> LaunchPart:
        """Return the term's part of a joint launch with `items` work-items per group, if it runs first."""
        raise NotImplementedError(f"{type(self).__name__} does not run first")

    def stiffness(self, atoms: Atoms) -> Floats | float:
        """Return the stiffness of each atom, (n,) kcal/mol/A^2, used only to speed up minimization."""
        return 0.0

    @abstractmethod
    def launches(self, context: TermContext, index: int) -> list[Launch]:
        """Bind the launches that add the terms. index : of the first term in `further` or `grouped`"""


class Term(TermKernels, Hashed):
    """Additional energy term: a name, a definition and kernels.

    The kernels run last. Each adds its gradient to `gradient` of the results, in the order of the atoms, and writes
    the energies of atoms to its part of `further`; cl/energy/results.clh.

    name : name of the term in results
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

        This defines the term.
        """
