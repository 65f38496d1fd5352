"""FIRE (Bitzek et al. 2006): molecular dynamics that is stopped whenever the energy increases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from ..opencl.interface import StepState
from .method import Method

if TYPE_CHECKING:
    from ..opencl.binding import Launch

FIRST_STEP = 0.01  # initial time step, A (mol/kcal)^1/2
FIRST_MIX = 0.1  # initial weight of the gradient's direction in the velocity


class Fire(Method):
    """FIRE steps: velocities mixed with the direction of the gradient; cl/minimize/fire.cl."""

    def init(self, state: NDArray[Any]) -> None:
        state[StepState.LENGTH], state[StepState.MIX] = FIRST_STEP, FIRST_MIX

    def step(self, before: str, after: str) -> list[Launch]:
        return [self.measure(), self.moving("minimize/fire.cl", "step_fire", before, after)]


METHOD = Fire
