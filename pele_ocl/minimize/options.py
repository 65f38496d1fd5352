"""Methods of minimization and stopping criteria."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np

from ..atoms import Floats
from ..common.arguments import flag, number, whole_number
from ..common.errors import InputError, UnexpectedKeywordError
from ..common.textfiles import number as number_in
from ..opencl.interface import STOPPING, StepState, Stop
from ..units import KJ_PER_MOL_NM
from .constraints import KINDS, constraints_named

if TYPE_CHECKING:
    from .method import Method

METHODS = ("lbfgs", "steepest", "fire", "newton")  # modules of this folder, each with its class as METHOD
MOST_STEP = 0.2  # A, largest displacement of an atom per iteration
RAMP = 1e4  # kcal/mol/A; steepest descent is used while any atom's gradient is larger
NEVER = -1.0
MOST_ROUNDS = 1000
_MOST = 1e18  # kcal/mol/A, beyond which a criterion has no effect


@dataclass(frozen=True)
class Stopping:
    """Stopping criteria of a minimization; the first one met ends it. Raises InputError for invalid values.

    tolerance : root mean square gradient of the moving atoms, sqrt(sum |g|^2 / n), kcal/mol/A
    max_gradient : largest gradient of an atom, kcal/mol/A; None to ignore
    energy_tolerance : energy change of three consecutive iterations, kcal/mol; None to ignore
    max_iterations : accepted steps; max_seconds : wall time of one call, None for no limit
    """

    tolerance: float = 0.1
    max_gradient: float | None = None
    energy_tolerance: float | None = None
    max_iterations: int = 10_000
    max_seconds: float | None = None

    def __post_init__(self) -> None:
        number("tolerance", self.tolerance, "a number in kcal/mol/A, 0 or more", least=0)
        units = {"max_gradient": "kcal/mol/A", "energy_tolerance": "kcal/mol", "max_seconds": "seconds"}
        for name, unit in units.items():
            value = getattr(self, name)
            if value is not None:
                number(name, value, f"a positive number of {unit}", above=0)
        whole_number("max_iterations", self.max_iterations, most=1 << 24)

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Stopping:
        """Create criteria from options of a Minimizer; the tolerance may be text with a unit."""
        given = {name: options[name] for name in BOUNDS if name in options}
        return cls(**{**given, "tolerance": tolerance_of(given.get("tolerance", cls.tolerance))})

    @property
    def facts(self) -> dict[str, Any]:
        """Criteria by name, for records; None for unused ones."""
        return {of.name: getattr(self, of.name) for of in fields(self)}

    def judge(self, states: Floats) -> None:
        """Mark structures stopped by the time limit that have converged. states : (m, N_STATE), changed in place"""
        columns = states.T
        ended = (columns[StepState.STOPPED] == Stop.TIME) & (columns[StepState.EVALUATIONS] > 0)
        if self.max_gradient is not None:
            is_small = columns[StepState.LARGEST2] <= _square(self.max_gradient)
            states[ended & is_small, StepState.STOPPED] = Stop.LARGEST
        is_below = columns[StepState.GRADIENT2] <= columns[StepState.MOVING] * _square(self.tolerance)
        states[ended & is_below, StepState.STOPPED] = Stop.GRADIENT

    def packed(self, precision: str) -> np.void:
        """Return Stopping of cl/minimize/state.clh."""
        return STOPPING.pack(
            precision,
            mean2=_square(self.tolerance),
            largest2=NEVER if self.max_gradient is None else _square(self.max_gradient),
            energy=NEVER if self.energy_tolerance is None else self.energy_tolerance,
            iterations=self.max_iterations,
            most_step=MOST_STEP,
            ramp2=RAMP**2,
        )


BOUNDS = tuple(of.name for of in fields(Stopping))  # keyword arguments of minimizers


def _square(value: float) -> float:
    """Square of a criterion, limited so that it is finite in float32; no gradient is larger."""
    return min(float(value), _MOST) ** 2


_UNITS = {"kcal/mol/A": 1.0, "kJ/mol/nm": KJ_PER_MOL_NM, "kcal/mol/nm": 0.1, "kJ/mol/A": 10 * KJ_PER_MOL_NM}
_FACTORS = {"": 1.0, **{unit.lower(): factor for unit, factor in _UNITS.items()}}
_ANGSTROM = str.maketrans({"Å": "a", "å": "a", "\N{ANGSTROM SIGN}": "a"})


def tolerance_of(tolerance: float | str) -> float:
    """Return an rms gradient in kcal/mol/A from a number, or text such as `0.1`, `1kJ/mol/nm` or `0.1 kcal/mol/Å`.

    Raises InputError for invalid text.
    """
    if not isinstance(tolerance, str):
        return tolerance
    found = re.fullmatch(r"\s*([-+.\deE]+)\s*(\S*)\s*", tolerance)
    value = number_in(found[1]) if found else None
    factor = _FACTORS.get(found[2].translate(_ANGSTROM).lower()) if found else None
    if value is None or factor is None or not 0 <= value < float("inf"):
        raise InputError(
            f"the tolerance is {tolerance[:60]!r}; expected a number, 0 or more, of kcal/mol/A or with its unit: "
            f"{', '.join(_UNITS)}"
        )
    return value * factor


def check_options(options: Mapping[str, Any]) -> None:
    """Raise InputError for options of Minimizer that are unknown, or invalid for any molecule."""
    known = ("method", *BOUNDS, "constraints", "bond_repair", "rounds")
    if unknown := [name for name in options if name not in known]:
        raise InputError(f"unknown option {unknown[0]} of minimization; the options are {', '.join(known)}")
    method_of(options.get("method", "lbfgs"), options.get("constraints"))
    Stopping.of(options)
    rounds_of(options.get("rounds", 1))
    flag("bond_repair", options.get("bond_repair", True))
    if options.get("constraints") is not None:
        constraints_named(options["constraints"], KINDS)


def require_bounds(words: Mapping[str, Any], function: Callable[..., Any]) -> None:
    """Raise TypeError for further keywords of a function that are not fields of Stopping."""
    for word in words:
        if word not in BOUNDS:
            raise UnexpectedKeywordError(word, {*BOUNDS, *signature(function).parameters}, function.__name__)


def rounds_of(rounds: int) -> int:
    """Return the number of rounds. Raises InputError if it is out of range."""
    return whole_number("rounds", rounds, least=1, most=MOST_ROUNDS)


def method_of(method: object, constraints: str | None = None) -> type[Method]:
    """Return the class of a method. Raises InputError for unknown ones, and for unsupported constraints.

    method : a name of METHODS, or a class derived from Method
    """
    if isinstance(method, str) and method in METHODS:
        found: type[Method] = import_module(f".{method}", __package__).METHOD
    elif isinstance(method, type) and any(base.__name__ == "Method" for base in method.__mro__):
        found = method
    else:
        raise InputError(f"unknown method {method!r}; choose {', '.join(METHODS)}")
    if constraints is not None and not found.holds_bonds:
        raise InputError(f"{found.title} does not support constraints; use the method lbfgs, or leave out constraints")
    return found


def method_name(method: str | type[Method]) -> str:
    """Return the name of a method for records: that in METHODS, or that of its class."""
    return method.__name__ if isinstance(method, type) else method
