"""Arrays of terms and scale factors of parameters that may differ between rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..atoms import Floats
from ..common.arguments import described, numbers, text
from ..common.errors import InputError
from ..energy.engine import System
from ..energy.scales import KINDS, SCALES
from ..energy.terms import Growing, Interpolated
from .columns import Column
from .restraints import RowValues
from .state import State

if TYPE_CHECKING:
    from ..opencl.recording import BufferPiece


class TermArrays(RowValues):
    """An array of a term, uploaded by `TermContext.upload_each` in its `launches`."""

    def __init__(self, state: State, term: str, name: str) -> None:
        """Raises InputError if a molecule has no such array."""
        self._state, self.words = state, f"{text('name', name)} of {text('term', term)}"
        self._name, self._of = self.words, (term, name)
        for k in state.with_molecule.tolist():
            if self._name not in names_of_arrays(system := state.system(k)):
                there = ", ".join(names_of_arrays(system)) or "none"
                raise InputError(f"rows have no array {described(self._name)}; there are: {there}")

    def write(self, rows: Sequence[int], values: Sequence[ArrayLike]) -> None:
        """Write the array of rows, or nothing if any is invalid; a shared array is written for all rows."""
        given = dict(zip(rows, values, strict=True))
        for system in {self._state.system(k): None for k in rows}:
            if self._is_shared(system):
                one, *others = (of for k, of in given.items() if self._state.system(k) is system)
                if any(of is not one and not np.array_equal(of, one) for of in others):
                    raise InputError(f"{self._name} are shared by all rows of a molecule; write one array for all")
                state = self._state
                given |= {k: one for k in state.with_molecule.tolist() if state.systems[k] is system}
        super().write(list(given), list(given.values()))
        self._state.follow(self._name, np.array(list(given), np.int64))

    def _is_shared(self, system: System) -> bool:
        """Return whether all rows of a molecule share the array."""
        terms = (of for of in system.energy.further_terms if of.name == self._of[0])
        return any(isinstance(of, Growing) and of.shared for of in terms)

    def _has_derivatives(self, system: System) -> bool:
        """Return whether the array is a grid with derivatives along its last axis."""
        return any(of.name == self._of[0] and isinstance(of, Interpolated) for of in system.energy.further_terms)

    def _buffer(self, system: System) -> tuple[str, np.dtype[Any]]:
        return self._name, system.pieces[self._name].dtype

    def _shape(self, system: System) -> tuple[int, ...]:
        values = system.pieces[self._name].values
        assert values is not None
        return values.shape

    def _checked(self, k: int, system: System, values: ArrayLike) -> Floats:
        shape = self._shape(system)
        try:
            given = np.broadcast_to(numbers(self._name, values), shape)
        except ValueError:
            raise InputError(f"{self._name} of row {k} have shape {np.shape(values)}; expected {shape}") from None
        if not np.isfinite(given).all():
            raise InputError(f"{self._name} of row {k} must be finite numbers")
        if np.shape(values)[-1:] != shape[-1:] and self._has_derivatives(system) and given.any():
            raise InputError(
                f"{self._name} of row {k} contain a value and its derivatives at each node, {shape}; a single number "
                "can only be 0"
            )
        self._check_by_term(k, system, given)
        return given

    def _check_by_term(self, k: int, system: System, given: Floats) -> None:
        """Check values with the term's constructor, if they are a field, or with `_check_array` of a grid bias."""
        named, name = self._of
        for term in system.energy.further_terms:
            if term.name != named:
                continue
            try:
                if is_dataclass(term) and name in (of.name for of in fields(term) if of.init):
                    replace(term, **{name: given}).check(system.energy.atoms)
                elif isinstance(term, Interpolated):
                    term._check_array(name, given)
            except InputError as error:
                raise InputError(f"{self._name} of row {k}: {error}") from None

    def _decoded(self, system: System, raw: NDArray[Any]) -> Sequence[NDArray[Any]]:
        return list(raw.reshape(len(raw), *self._shape(system)))

    def _encode(self, system: System, values: Floats, raw: NDArray[Any], k: int) -> None:
        raw[:] = values.reshape(-1)


class Scales(Mapping[str, Column]):
    """Scale factors of the parameters of rows, one Column each: "charges", "lennard_jones" and "torsions".

    `scales["charges"][row] = 0.8` multiplies the charges of all atoms of a row, an array (n,) those of single atoms.
    Wells of pairs are multiplied by the geometric mean of both atoms' factors, torsions by that of their outer atoms.
    """

    def __init__(self, state: State) -> None:
        self._state = state

    def __getitem__(self, kind: str) -> Column:
        if kind not in KINDS:
            raise KeyError(f"no scales are named {described(kind)}; there are: {', '.join(KINDS)}")
        number = KINDS.index(kind)
        return Column(self._state, partial(self._read, number), partial(self._write, number), ndim=1)

    def __iter__(self) -> Any:
        return iter(KINDS)

    def __len__(self) -> int:
        return len(KINDS)

    def __repr__(self) -> str:
        return f"Scales({', '.join(KINDS)})"

    def _all(self, system: System, rows: list[int]) -> Floats:
        """Scale factors of rows of one molecule, (n_rows, n_kinds, n_atoms)."""
        raw = self._state.read_buffer(rows, SCALES, np.float64)
        return raw.reshape(len(rows), len(KINDS), -1).copy()

    def _by_system(self, rows: Sequence[int]) -> dict[System, list[int]]:
        found: dict[System, list[int]] = {}
        for k in rows:
            found.setdefault(self._state.system(k), []).append(k)
        return found

    def _read(self, number: int, rows: list[int]) -> list[Floats]:
        found: dict[int, Floats] = {}
        for system, own in self._by_system(rows).items():
            found |= zip(own, self._all(system, own)[:, number], strict=True)
        return [found[k] for k in rows]

    def _write(self, number: int, rows: list[int], values: Sequence[ArrayLike]) -> None:
        given = dict(zip(rows, values, strict=True))
        ready = []
        for system, own in self._by_system(rows).items():
            scales = self._all(system, own)
            for place, k in enumerate(own):
                scales[place, number] = _checked(k, given[k], scales.shape[2])
            assert system.scaled is not None
            ready.append((own, system.scaled.of(scales)))
        for own, buffers in ready:
            for name, array in buffers.items():
                self._state.write_buffer(own, name, array)
        self._state.changed(rows, moved=False)


def _checked(k: int, values: ArrayLike, n: int) -> Floats:
    """Check scale factors of row k. Raises InputError unless they are one or n numbers, 0 or more."""
    given = numbers("scales", values)
    if given.shape not in ((), (n,)):
        raise InputError(f"scales of row {k} have shape {given.shape}; expected one number or ({n},)")
    if not np.isfinite(given).all() or (given < 0).any():
        raise InputError(f"scales of row {k} must be finite numbers, 0 or more")
    return np.broadcast_to(given, n)


def names_of_arrays(system: System) -> list[str]:
    """Names of the per-row arrays of a molecule's terms."""
    return [
        name for name, piece in system.pieces.items()
        if _is_own(piece) and any(name.endswith(f" of {of}") for of in _terms(system))
    ]  # fmt: skip


def _terms(system: System) -> list[str]:
    return [term.name for term in system.energy.further_terms]


def _is_own(piece: BufferPiece) -> bool:
    return piece.values is not None and not piece.is_shared
