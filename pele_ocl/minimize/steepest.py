"""Steepest descent: L-BFGS that keeps no pairs, without a preconditioner."""

from __future__ import annotations

from typing import ClassVar

from ..energy.passes import AnyPasses
from ..opencl.interface import Descent
from .lbfgs import Lbfgs
from .preconditioner import Preconditioner


class Steepest(Lbfgs):
    """Directions that are the gradient."""

    history: ClassVar[int] = 1  # its kernels have room for a pair, which never counts
    descent: ClassVar[Descent] = Descent.STEEPEST

    @classmethod
    def preconditioner_of(cls, passes: AnyPasses) -> Preconditioner | None:
        return None


METHOD = Steepest
