"""The interface of a further term of the energy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from ...atoms import Atoms, Floats

if TYPE_CHECKING:
    from ...opencl.launch import KeptLaunch
    from ..passes import AnyPasses


class Addend(ABC):
    """Kernels that add named terms to the energy behind the passes, or begin before them; cl/energy/results.clh.

    Each kernel adds its gradient to `gradient` of the results, in the order of the atoms, and writes energies by term.

    movable : whether its energy stays the same where all atoms move together
    grouped : whether the energies go to `grouped` of the results, of atoms only where these are wanted; otherwise those
        of atoms go to `further`
    joins : whether its energies count in terms of the same names that are there already
    """

    movable: ClassVar[bool] = True
    grouped: ClassVar[bool] = False
    joins: ClassVar[bool] = False

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Its terms."""

    def sizes(self, passes: AnyPasses) -> Mapping[str, int]:
        """Reals of one conformation in buffers of its own, by name."""
        return {}

    def begins(self, passes: AnyPasses) -> bool:
        """Whether its one launch is the first of all, begins the gradient and brings positions to the tiles."""
        return False

    def stiffness(self, atoms: Atoms) -> Floats | float:
        """How stiffly it holds each atom to its place, (n,) kcal/mol/A^2, which only makes minimisation faster."""
        return 0.0

    @abstractmethod
    def launches(self, passes: AnyPasses, index: int) -> list[KeptLaunch]:
        """The launches that add the terms. index : of the first of them in `further` or `grouped`"""


class Term(Addend):
    """A term of the energy beside those of the pair passes: a name, a definition, and kernels that add it.

    Its kernels run last. Each adds its gradient to `gradient` of the results, in the order of the atoms, and writes
    the energies of atoms to its part of `further`; cl/energy/results.clh.

    name : of the term in results
    """

    name: str

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    @abstractmethod
    def check(self, atoms: Atoms) -> None:
        """Raise InputError where the term does not fit the atoms."""

    @abstractmethod
    def energies(self, atoms: Atoms) -> tuple[Floats, Floats]:
        """The definition in float64: energies of the atoms (n,) kcal/mol and gradient (n, 3) kcal/mol/A."""
