"""The interface of a further term of the energy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from ...atoms import Atoms, Floats

if TYPE_CHECKING:
    from ...opencl.launch import KeptLaunch
    from ..passes import AnyPasses


class Term(ABC):
    """A term of the energy beside those of the pair passes: a name, a definition, and kernels that add it.

    Its kernels run last. Each adds its gradient to `gradient` of the results, in the order of the atoms, and writes
    the energies of atoms to its part of `further`; cl/energy/results.clh.

    name : of the term in results
    movable : whether its energy stays the same where all atoms move together
    """

    name: str
    movable: ClassVar[bool] = True

    @abstractmethod
    def check(self, atoms: Atoms) -> None:
        """Raise InputError where the term does not fit the atoms."""

    @abstractmethod
    def energies(self, atoms: Atoms) -> tuple[Floats, Floats]:
        """The definition in float64: energies of the atoms (n,) kcal/mol and gradient (n, 3) kcal/mol/A."""

    @abstractmethod
    def launches(self, passes: AnyPasses, index: int) -> list[KeptLaunch]:
        """The launches that add the term. index : of the term among the further ones"""
