"""Table of the available integrators; docs/theory/dynamics.md defines their steps."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Integrator:
    """Properties of an integrator.

    title : name in reports
    is_thermostat : whether it controls the temperature by friction and noise; friction, exchanges and annealing need it
    lags_half_a_step : whether stored velocities are half a step behind the positions. The first step then applies half
        a kick, and half a kick is added to velocities that are read
    """

    title: str
    is_thermostat: bool
    lags_half_a_step: bool


INTEGRATORS = {  # by name
    "langevin": Integrator("Langevin", is_thermostat=True, lags_half_a_step=False),
    "verlet": Integrator("velocity Verlet", is_thermostat=False, lags_half_a_step=True),
}
