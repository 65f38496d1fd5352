"""Simulation settings: time step, friction, temperatures, exchanges, annealing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..atoms import Floats
from ..common.arguments import choice, described, flag, number, numbers, whole_number
from ..common.errors import InputError, KeywordError
from ..gb_models.solvent_model import SolventModel
from ..minimize.constraints import constraints_named
from ..units import in_unit
from .bodies import CONSTRAINTS
from .integrators import INTEGRATORS

ROOM = 300.0  # K, default temperature
FRICTION = 1.0  # 1/ps, default friction
MOST_TEMPERATURE = 100_000.0  # K
MOST_TIMESTEP = 20.0  # fs
FS = 1e-3  # ps per fs
EXCHANGES = "temperature", "hamiltonian"  # what replicas exchange
MOST_STEPS = 2**32 - 1  # limit of the counter on the device


@dataclass(frozen=True)
class Settings:
    """Validated settings of a simulation.

    temperatures : K, assigned to rows by `rungs_of`
    timestep : fs; friction : 1/ps, 0 without a heat bath
    integrator : key of INTEGRATORS
    exchange_every : steps between exchanges, None for no exchanges
    exchange : exchanged quantity, one of EXCHANGES
    ladder_shape : rungs along both dimensions of a ladder, None for one-dimensional ladders
    anneal : points (step, temperature in K), in order; empty for constant temperatures
    remove_motion : whether to remove the motion of the centre of mass; None removes it unless atoms are held
    """

    temperatures: tuple[float, ...]
    timestep: float
    friction: float
    seed: int
    integrator: str
    constraints: str | None
    hydrogen_mass: float | None
    exchange_every: int | None
    anneal: tuple[tuple[float, float], ...]
    remove_motion: bool | None
    first_replica: int
    exchange: str = "temperature"
    ladder_shape: tuple[int, int] | None = None

    @classmethod
    def checked(
        cls, *, temperature: float | str | Sequence[float | str], timestep: float | str, friction: float | None,
        seed: int, integrator: str, constraints: str | None, hydrogen_mass: float | None,
        exchange_every: int | str | None, anneal: ArrayLike | None, remove_motion: bool | None, first_replica: int,
        exchange: str = "temperature", ladder_shape: Sequence[int] | None = None, **further: Any,
    ) -> Settings:  # fmt: skip
        """Check settings. anneal : (n, 2) ps and K; further : other fields. Raises InputError for invalid values."""
        choice("integrator", integrator, tuple(INTEGRATORS))
        choice("exchange", exchange, EXCHANGES)
        if constraints is not None:
            constraints = constraints_named(constraints, CONSTRAINTS)
        needed = f"a time above 0 and up to {MOST_TIMESTEP:g} fs"
        step = number("timestep", in_unit("timestep", timestep, "fs"), needed, above=0.0, most=MOST_TIMESTEP)
        temperatures = temperatures_of(temperature)
        if exchange_every is None and exchange != "temperature":
            raise InputError("`exchange=hamiltonian` needs a ladder; also give `exchange_every`")
        if exchange_every is not None:
            exchange_every = every_of("exchange_every", exchange_every, step)
            if len(temperatures) < 2 or min(temperatures) <= 0:
                raise InputError("exchanges need two temperatures or more, all above 0 K")
            require_thermostat(integrator, "exchanges")
        return cls(
            temperatures, step, _friction(friction, integrator),
            whole_number("seed", seed, most=2**32 - 1), integrator, constraints,
            in_unit("hydrogen_mass", hydrogen_mass, "Da"), exchange_every,
            _schedule(anneal, step, len(temperatures), integrator),
            None if remove_motion is None else flag("remove_motion", remove_motion),
            whole_number("first_replica", first_replica), exchange=exchange,
            ladder_shape=_shape(ladder_shape, len(temperatures), exchange), **further,
        )  # fmt: skip

    @property
    def exchanges_hamiltonians(self) -> bool:
        """Whether complete Hamiltonians are exchanged, not only temperatures."""
        return self.exchange_every is not None and self.exchange == "hamiltonian"

    @property
    def dimensions(self) -> int:
        """Number of dimensions of a ladder, 1 or 2."""
        return 1 if self.ladder_shape is None else 2

    @property
    def n_inner(self) -> int:
        """Number of rungs along the last dimension of a ladder."""
        return len(self.temperatures) if self.ladder_shape is None else self.ladder_shape[1]

    def next_rungs(self) -> list[tuple[tuple[int, ...], int, int]]:
        """Return the pairs of neighbouring rungs, with the index of their counts in `Simulation.exchanges`."""
        if self.ladder_shape is None:
            return [((k,), k, k + 1) for k in range(len(self.temperatures) - 1)]
        n, m = self.ladder_shape
        found: list[tuple[tuple[int, ...], int, int]] = []
        found += [((0, i, j), i * m + j, (i + 1) * m + j) for i in range(n - 1) for j in range(m)]
        found += [((1, i, j), i * m + j, i * m + j + 1) for i in range(n) for j in range(m - 1)]
        return found

    @property
    def dt(self) -> float:
        """Time step in ps."""
        return FS * self.timestep

    @property
    def kept(self) -> float:
        """Factor by which friction reduces a velocity in a step."""
        return math.exp(-self.friction * self.dt)

    @property
    def noise(self) -> float:
        """Factor of the random thermal velocity added in a step."""
        return math.sqrt(-math.expm1(-2 * self.friction * self.dt))


# Fields passed on as keywords without checks in `checked`.
FURTHER = {of.name for of in fields(Settings)} - {"temperatures", *signature(Settings.checked).parameters}


def every_of(name: str, value: object, timestep: float) -> int:
    """Return an interval in steps, given as such, as a time with a unit such as "2ps", or as an OpenMM Quantity.

    name : the keyword, for error messages; timestep : fs

    Raises InputError for other values, and for a time that is not a whole number of steps.
    """
    if isinstance(value, str) and value.strip().isdecimal():
        value = int(value)
    if not isinstance(value, str) and not hasattr(value, "value_in_unit"):
        return whole_number(name, value, least=1)
    try:
        n = in_unit(name, value, "fs") / timestep
    except InputError:
        raise InputError(
            f"{name} is {described(value)}; expected a number of steps, or a time with its unit: 1000, 2ps"
        ) from None
    if round(n) < 1 or abs(n - round(n)) > 1e-6 * n:
        raise InputError(
            f"{name} is {value}, {n:.6g} time steps of {timestep:g} fs; choose a multiple of the time step"
        )
    return whole_number(name, round(n))


def require_thermostat(integrator: str, what: str) -> None:
    """Raise InputError if the integrator is not a thermostat. what : the feature that needs one"""
    if integrator in INTEGRATORS and not INTEGRATORS[integrator].is_thermostat:
        raise InputError(f"{what} need the integrator 'langevin', which controls temperatures")


def require_none_of(options: Mapping[str, object], *names: str) -> None:
    """Raise KeywordError if options that the caller sets itself were given."""
    if given := [name for name in names if name in options]:
        raise KeywordError(f"`{given[0]}` cannot be chosen here; leave it out")


def solvent_in_bath(
    model: SolventModel | None, temperature: float | str | Sequence[float | str] | None, anneal: object = None
) -> SolventModel:
    """Return the solvent model of a simulation, with salt screening at the temperature of the heat bath.

    A model with a temperature other than the default, 298.15 K, is unchanged; an explicit 298.15 K is treated like the
    default. The model is also unchanged if replicas have different temperatures, with annealing, and at 0 K.

    temperature : of all heat baths of the run, not only of a part of its rows, K; None if not given
    """
    model = SolventModel.or_default(model)
    baths = set() if temperature is None or anneal is not None else set(temperatures_of(temperature))
    if len(baths) != 1 or model.temperature != SolventModel.temperature or not model.ionic_strength:
        return model
    (bath,) = baths
    return replace(model, temperature=bath) if bath > 0 else model


def in_kelvin(given: Any) -> Any:
    """Convert one or several temperatures, given as strings with a unit or OpenMM Quantities, to K."""
    if isinstance(given, list | tuple):
        return [in_unit("temperature", each, "K") for each in given]
    return in_unit("temperature", given, "K")


def temperatures_of(given: Any) -> tuple[float, ...]:
    """Check the temperatures of heat baths, K. Raises InputError for invalid ones."""
    values = numbers("temperature", in_kelvin(given))
    if values.ndim > 1 or not values.size:
        raise InputError(f"temperature has shape {values.shape}; expected a number or a list of them")
    needed = f"a temperature of 0 to {MOST_TEMPERATURE:,.0f} K"
    return tuple(number("temperature", t, needed, least=0.0, most=MOST_TEMPERATURE) for t in values.ravel().tolist())


def rungs_of(
    count: int, rows_of_molecules: Sequence[Sequence[int]], first_replica: int, *, exchanges: bool
) -> list[int]:
    """Return the index of the temperature of each row. count : number of temperatures

    If there are as many temperatures as rows and no exchanges, they are assigned in order. Otherwise replica r of each
    molecule has temperature r modulo `count`. If `first_replica` is above 0, some temperatures may be unused.

    Raises InputError if a molecule has too few replicas to use all temperatures.
    """
    n_rows = sum(map(len, rows_of_molecules))
    if count == n_rows and not exchanges:
        return list(range(n_rows))
    fewest = min(map(len, rows_of_molecules))
    owner = "1 replica" if fewest == 1 else f"{fewest:,} replicas"
    one_each = "one" if n_rows == 1 else f"one for each of the {n_rows:,} rows"
    if not exchanges and not first_replica and fewest < count:
        raise InputError(
            f"{count:,} temperatures were given for {owner} of a molecule, which would not use {count - fewest:,} of "
            f"them; give {one_each}, or {count:,} replicas or more"
        )
    found = [0] * n_rows
    for rows in rows_of_molecules:
        for replica, k in enumerate(rows):
            found[k] = (replica + first_replica) % count
    return found


def points_of(anneal: Any) -> Any:
    """Convert points of annealing, given as strings with units or OpenMM Quantities, to ps and K."""
    if not isinstance(anneal, list | tuple):
        return anneal
    return [
        [in_unit("anneal", of, unit) for of, unit in zip(point, ("ps", "K"), strict=True)]
        if isinstance(point, list | tuple) and len(point) == 2 else point for point in anneal
    ]  # fmt: skip


def _friction(given: float | None, integrator: str) -> float:
    """Check the friction, 1/ps. Raises InputError if the integrator does not use friction."""
    bath = INTEGRATORS[integrator].is_thermostat
    if given is None:
        return FRICTION if bath else 0.0
    rate = number(
        "friction", in_unit("friction", given, "1/ps"), "a rate of 0 to 10,000 1/ps", least=0.0, most=10_000.0
    )
    if rate and not bath:
        raise InputError(
            f"a friction of {rate:g} 1/ps needs the integrator 'langevin'; {integrator!r} has none, so leave it out"
        )
    return rate


def _shape(given: Sequence[int] | None, n_rungs: int, exchange: str) -> tuple[int, int] | None:
    """Check the shape of two-dimensional ladders. Raises InputError if it does not match the number of rungs."""
    if given is None:
        return None
    values = [whole_number("ladder_shape", n, least=2) for n in given] if isinstance(given, list | tuple) else []
    if len(values) != 2 or values[0] * values[1] != n_rungs:
        said = values or described(given)
        raise InputError(
            f"ladder_shape is {said}; expected two numbers whose product is the number of temperatures, {n_rungs}, "
            "some of which may be equal"
        )
    if exchange != "hamiltonian":
        raise InputError(
            "two-dimensional ladders exchange everything that differs between replicas; also give "
            "`exchange=hamiltonian`"
        )
    return values[0], values[1]


def _schedule(
    anneal: ArrayLike | None, timestep: float, n_temperatures: int, integrator: str
) -> tuple[tuple[float, float], ...]:
    """Check an annealing schedule, and return it with times in steps."""
    if anneal is None:
        return ()
    points: Floats = numbers("anneal", points_of(anneal))
    if points.ndim != 2 or points.shape[1:] != (2,) or not len(points) or not np.isfinite(points).all():
        raise InputError(
            f"anneal has shape {points.shape}; expected finite points (n, 2) of time in ps and temperature in K"
        )
    times, temperatures = points.T
    if times[0] < 0 or (np.diff(times) <= 0).any():
        raise InputError("times of anneal must rise from 0 ps or later")
    if temperatures.min() < 0 or temperatures.max() > MOST_TEMPERATURE:
        raise InputError(f"temperatures of anneal must be 0 to {MOST_TEMPERATURE:,.0f} K")
    if n_temperatures > 1:
        raise InputError("annealing uses one temperature for all replicas; give one temperature, or no anneal")
    if not INTEGRATORS[integrator].is_thermostat:
        raise InputError("annealing needs the integrator 'langevin', which controls temperatures")
    return tuple(zip((times / (FS * timestep)).tolist(), temperatures.tolist(), strict=True))
