"""Difference of two binding energies, with its error."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import erfc, hypot, sqrt
from os import PathLike

from ..common.errors import FormatError
from ..common.inputfile import read_file

_Numbers = Mapping[str, float | None]


@dataclass(frozen=True)
class Difference:
    """One mean less another, kcal/mol, and its standard error from both errors (of blocks if there are any)."""

    difference: float
    error: float

    @property
    def p_value(self) -> float | None:
        """Chance of a difference as large if there is none, of a normal distribution; None without an error."""
        return erfc(abs(self.difference) / self.error / sqrt(2)) if self.error > 0 else None


def compare(one: Mapping[str, _Numbers], other: Mapping[str, _Numbers]) -> dict[str, Difference]:
    """Subtract the terms of `other` from `one`'s, as far as both have them; each is `delta` of a report's JSON."""
    return {
        term: Difference(
            _of(one[term], "mean") - _of(other[term], "mean"), hypot(_error(one[term]), _error(other[term]))
        )
        for term in one
        if term in other
    }


def read_binding_report(path: str | PathLike[str]) -> Mapping[str, _Numbers]:
    """`delta` of a report that `pele-ocl binding --json` printed. Raises FormatError for another file."""
    try:
        report = json.loads(read_file(path).data)
        delta: Mapping[str, _Numbers] = report["delta"]
        _of(delta["total"], "mean")
    except (KeyError, TypeError, ValueError, UnicodeDecodeError):
        raise FormatError(f"{path}: is no report of `pele-ocl binding --json`") from None
    return delta


def _of(numbers: _Numbers, name: str) -> float:
    value = numbers[name]
    if value is None:
        raise ValueError(name)
    return float(value)


def _error(numbers: _Numbers) -> float:
    """Return the error of blocks, or the naive one if frames are too few for it."""
    blocked = numbers.get("sem_blocked")
    return _of(numbers, "sem") if blocked is None else float(blocked)
