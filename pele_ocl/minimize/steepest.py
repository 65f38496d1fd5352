"""Steepest descent: L-BFGS without history and preconditioner."""

from __future__ import annotations

from typing import ClassVar

from ..energy.passes import AnyPasses
from ..opencl.interface import Descent
from .lbfgs import Lbfgs
from .preconditioner import Preconditioner


class Steepest(Lbfgs):
    """Steps along the negative gradient."""

    history: ClassVar[int] = 1  # kernels need at least one pair, which is not used
    descent: ClassVar[Descent] = Descent.STEEPEST

    @classmethod
    def preconditioner_of(cls, passes: AnyPasses) -> Preconditioner | None:
        return None


METHOD = Steepest
