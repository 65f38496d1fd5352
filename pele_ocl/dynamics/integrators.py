"""Integrators of a simulation, each an entry of one table; docs/theory/dynamics.md has their step."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Integrator:
    """Way to make time steps.

    title : in reports
    is_thermostat : if friction and noise hold the temperature of a heat bath; else friction, exchanges and annealing
        are refused
    lags_half_a_step : if velocities kept between steps are of half a step before the positions; the first step then has
        half a kick, and velocities that are shown have half a kick more
    """

    title: str
    is_thermostat: bool
    lags_half_a_step: bool


INTEGRATORS = {  # by the names that users write
    "langevin": Integrator("Langevin", is_thermostat=True, lags_half_a_step=False),
    "verlet": Integrator("velocity Verlet", is_thermostat=False, lags_half_a_step=True),
}
