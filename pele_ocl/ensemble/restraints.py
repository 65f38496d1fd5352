"""Restraint values that may differ between rows: reference positions, force constants and targets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..atoms import Floats
from ..common.arguments import described, numbers, text
from ..common.errors import InputError
from ..energy.engine import System
from ..energy.terms import CenterRestraint, PositionalRestraint, Term
from ..energy.terms.internal import InternalRestraint
from .state import State

RESTRAINTS = PositionalRestraint, InternalRestraint, CenterRestraint


class RowValues:
    """Values of a restraint, one array per row, read from and written to the device.

    words : name of the values in messages; kinds : types of restraints that have such values
    """

    words: str
    kinds: ClassVar[tuple[type[Term], ...]] = RESTRAINTS

    def __init__(self, state: State, name: str) -> None:
        """name : of the restraint. Raises InputError if a molecule has no such restraint"""
        self._state, self._name = state, text("name", name)
        for k in state.with_molecule.tolist():
            system = state.system(k)
            if self._term(system) is None:
                raise InputError(
                    f"no restraint of the ensemble that has {self.words} is named {described(name)}; {_calls(system)}"
                )

    def read(self, rows: Sequence[int]) -> list[Floats]:
        """Read the values of rows, including failed ones."""
        found: dict[int, Floats] = {}
        for numbers_, system in self._by_system(rows):
            piece, kind = self._buffer(system)
            raw = self._state.read_buffer(numbers_, piece, kind)
            found |= zip(numbers_, self._decoded(system, raw), strict=True)
        return [found[k] for k in rows]

    def write(self, rows: Sequence[int], values: Sequence[ArrayLike]) -> None:
        """Write values of rows; nothing is written if any value is invalid."""
        given = dict(zip(rows, values, strict=True))
        ready: list[tuple[list[int], str, NDArray[Any]]] = []
        for numbers_, system in self._by_system(list(given)):
            piece, kind = self._buffer(system)
            raw = self._state.read_buffer(numbers_, piece, kind)
            for k, own in zip(numbers_, raw, strict=True):
                self._encode(system, self._checked(k, system, given[k]), own, k)
            ready.append((numbers_, piece, raw))
        for numbers_, piece, raw in ready:
            self._state.write_buffer(numbers_, piece, raw)
        self._state.changed(rows, moved=False)

    def _by_system(self, rows: Sequence[int]) -> Iterator[tuple[list[int], System]]:
        found: dict[System, list[int]] = {}
        for k in rows:
            found.setdefault(self._state.system(k), []).append(k)
        return ((numbers_, system) for system, numbers_ in found.items())

    def _checked(self, k: int, system: System, values: ArrayLike) -> Floats:
        """Check the values of row k and broadcast them."""
        given, shape = numbers(self.words, values), self._shape(system)
        if given.shape not in ((), shape) or not np.isfinite(given).all():
            raise InputError(f"{self.words} of row {k} have shape {given.shape}; expected finite numbers {shape}")
        return np.broadcast_to(given, shape)

    def _term(self, system: System) -> Term | None:
        """Return the restraint of a molecule, or None."""
        terms = (term for term in system.energy.further_terms if term.name == self._name)
        return next((term for term in terms if isinstance(term, self.kinds)), None)

    def _buffer(self, system: System) -> tuple[str, np.dtype[Any]]:
        """Name and data type of the buffer with the values."""
        passes = system.passes
        if isinstance(self._term(system), PositionalRestraint):
            return f"constants of {self._name}", passes.queue.dtype
        return f"parameters of {self._name}", self._state.fine

    def _shape(self, system: System) -> tuple[int, ...]:
        term = self._term(system)
        if isinstance(term, CenterRestraint):
            return (1,)
        return term.target_shape if isinstance(term, InternalRestraint) else (len(system.energy.atoms),)

    def _decoded(self, system: System, raw: NDArray[Any]) -> Sequence[Floats]:
        """Extract the values of rows from their buffers (n_rows, size)."""
        raise NotImplementedError

    def _encode(self, system: System, values: Floats, raw: NDArray[Any], k: int) -> None:
        """Store the values of row k in its buffer (size,)."""
        raise NotImplementedError


class References(RowValues):
    """Reference positions (n, 3) A of a positional restraint."""

    words, kinds = "references", (PositionalRestraint,)

    def _buffer(self, system: System) -> tuple[str, np.dtype[Any]]:
        return f"reference of {self._name}", self._state.coordinate

    def _shape(self, system: System) -> tuple[int, ...]:
        return len(system.energy.atoms), 3

    def _decoded(self, system: System, raw: NDArray[Any]) -> Sequence[Floats]:
        return list(system.passes.decode(raw))

    def _encode(self, system: System, values: Floats, raw: NDArray[Any], k: int) -> None:
        encoded, offsets, errors = system.passes.encoded(values[np.newaxis])
        if errors or offsets.any():
            raise InputError(errors.get(0, f"the references of row {k} are far from the molecule"))
        raw[:] = encoded[0]


class ForceConstants(RowValues):
    """Force constants of a restraint: per atom (n,), per distance or torsion (m,), or of a centre of mass (1,)."""

    words = "force constants"

    def _decoded(self, system: System, raw: NDArray[Any]) -> Sequence[Floats]:
        values = raw.astype(np.float64)
        return list(values if self._is_positional(system) else values.reshape(len(raw), -1, 4)[:, :, 0])

    def _encode(self, system: System, values: Floats, raw: NDArray[Any], k: int) -> None:
        if (values < 0).any():
            raise InputError(f"force constants of row {k} are negative; expected 0 or more")
        (raw if self._is_positional(system) else raw.reshape(-1, 4)[:, 0])[:] = values

    def _is_positional(self, system: System) -> bool:
        return isinstance(self._term(system), PositionalRestraint)


class Targets(RowValues):
    """Targets of a restraint: distances (m,) A, torsions (m,) rad, or a centre of mass (3,) A."""

    words, kinds = "targets", (InternalRestraint, CenterRestraint)

    def _shape(self, system: System) -> tuple[int, ...]:
        return self._restraint(system).target_shape

    def _decoded(self, system: System, raw: NDArray[Any]) -> Sequence[Floats]:
        parameters, origin = raw.astype(np.float64).reshape(len(raw), -1, 4), system.origin
        return [self._restraint(system).targets_of(own, origin) for own in parameters]

    def _encode(self, system: System, values: Floats, raw: NDArray[Any], k: int) -> None:
        restraint = self._restraint(system)
        restraint.check_targets(values)
        restraint.put_targets(values, raw.reshape(-1, 4), system.origin)

    def _restraint(self, system: System) -> InternalRestraint | CenterRestraint:
        term = self._term(system)
        assert isinstance(term, InternalRestraint | CenterRestraint)
        return term


KINDS: dict[str, type[RowValues]] = {"references": References, "force_constants": ForceConstants, "targets": Targets}


def values_of_rows(state: State, system: System, rows: list[int]) -> dict[str, NDArray[np.uint8]]:
    """Read all per-row arrays of rows of one molecule, bytes (n_rows, size), by buffer name."""
    return {name: state.read_buffer(rows, name, np.uint8) for name in first_values(system)}


def first_values(system: System) -> dict[str, NDArray[Any]]:
    """Initial values of a molecule's per-row arrays, by buffer name."""
    pieces = {name: system.pieces[name] for name in system.passes.buffers}
    return {name: of.values for name, of in pieces.items() if of.values is not None and not of.is_shared}


def _calls(system: System) -> str:
    """List the calls that return values of a molecule's restraints, for a message."""
    found = [
        f"ensemble.{kind}({term.name!r})"
        for term in system.energy.further_terms for kind, values in KINDS.items() if isinstance(term, values.kinds)
    ]  # fmt: skip
    return f"there are {', '.join(found)}" if found else "its molecules have no restraints"
