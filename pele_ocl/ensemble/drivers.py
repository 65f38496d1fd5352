"""Kernels of drivers: programs that move rows of an ensemble on the device."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ..common import arguments
from ..common.errors import InputError
from ..common.inputfile import open_regular
from .columns import DeviceArray
from .state import Lock, RowsLike, State, locked

if TYPE_CHECKING:
    from ..opencl.memory import Buffer


_OWN = "energies", "are_numbers", "free"  # arguments that the ensemble provides


class DriverKernel:
    """A kernel that runs over rows of an ensemble; made by `Ensemble.kernel`.

    A call launches it for all atoms of the given rows. Its parameters after ENSEMBLE are passed by name: numbers, and
    arrays from `Ensemble.array`. The ensemble provides `energies` and `are_numbers` (one number per row) and `free`
    (one number per atom) if the kernel has parameters of these names.

    parameters : names of the parameters after ENSEMBLE
    """

    def __init__(self, state: State, source: str | Path, name: str, defines: Mapping[str, int], width: int = 1) -> None:
        from ..opencl.building import kernel_file, named_source

        words = _words_of(source)
        if arguments.text("name", name) not in (names := re.findall(r"\bkernel\s[^;{]*?\bvoid\s+(\w+)\s*\(", words)):
            where = str(source) if isinstance(source, Path) else "the source"
            there = f"; there are {', '.join(names)}" if names else ""
            raise InputError(f"no kernel is named {arguments.described(name)} in {where}{there}")
        file = kernel_file(source) if isinstance(source, Path) else named_source(words)
        macros = {**state.macros, **defines}
        self._state, self.name = state, name
        self._kernel = state.queue.kernel(file, name, width, **macros)
        names = [parameter.name for parameter in self._kernel.signature.parameters]
        self.parameters = names[4:]
        self._owned = [name for name in names if name in _OWN]
        if names[:4] != ["rows", "steps", "listed", "bytes"]:
            raise InputError(f"kernel {name} does not begin with ENSEMBLE, of cl/engine/rows.clh")

    def _own(self, name: str) -> Buffer:
        """Return the ensemble's buffer for a parameter."""
        state = self._state
        if name == "free":
            return self._state.free_on_device
        return state.energies_on_device if name == "energies" else state.numbers_on_device

    @property
    def _lock(self) -> Lock:
        return self._state.lock

    def __repr__(self) -> str:
        return f"DriverKernel({self.name}: {', '.join(self.parameters)})"

    @locked
    def __call__(
        self, rows: RowsLike = None, *, per: Literal["atom", "row"] | int = "atom", moves: bool = False,
        **values: object,
    ) -> None:  # fmt: skip
        """Launch the kernel for the atoms of rows, by default of all rows; failed rows are skipped.

        per : "row" for one work-item per row instead of per atom, or the number of work-items per row
        moves : whether the kernel moves atoms; its rows must then be evaluated again

        Raises InputError that names a missing or unknown parameter, or one of another type.
        """
        state = self._state
        chosen = state.there(rows)
        if not len(chosen):
            return
        given: dict[str, object] = {
            name: value.buffer if isinstance(value, DeviceArray) else value for name, value in values.items()
        }
        given |= {name: self._own(name) for name in self._owned if name not in given}
        arguments = {**state.arguments, **given}
        state.list_rows(chosen)
        n_items = int(state.n_atoms[chosen].max()) if per == "atom" else 1 if per == "row" else per
        group = 1 if n_items == 1 else min(64, state.device.largest_group)
        if per not in ("atom", "row") and state.device.kind == "CPU":
            group = 1  # these work-items are long, so single ones balance the load best
        for first, count in state.parts(len(chosen)):
            state.queue.launch(self._kernel, (n_items, count), (group, 1), arguments, offset=(0, first))
        if moves:
            state.changed(chosen)


def _words_of(source: object) -> str:
    """Read the source of a kernel from text or a file. Raises InputError if the file cannot be read."""
    if not isinstance(source, Path):
        words = arguments.text("source", source)
        if words.endswith((".cl", ".clh")):
            raise InputError(f"source is {arguments.described(source)}; a file's name is given as a Path")
        return words
    try:
        with open_regular(source) as stream:
            return stream.read().decode("utf-8")
    except (OSError, ValueError) as error:
        raise InputError(f"{source}: the kernel cannot be read: {error}") from None
