"""Provenance of results in files and JSON: input, program and call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ..atoms import Atoms
from ..common.arguments import described
from ..common.errors import InputError
from ..common.inputfile import InputFile, NoFile
from .records import SCHEMA
from .texts import Computation, software

if TYPE_CHECKING:
    from ..report import Report

# Function that returns facts about a call for a structure, such as its command line.
Call: TypeAlias = Callable[[Path], Mapping[str, Any]]


@dataclass(frozen=True)
class _WithCoordinates:
    """Facts about a call with a separate coordinate file. call : function that returns the other facts, or None"""

    coordinates: InputFile | Path
    call: Call | None

    def __call__(self, path: Path) -> dict[str, Any]:
        file = self.coordinates
        # There is no SHA-256 of a trajectory that was only read in part.
        sha256 = {"coordinates_sha256": file.sha256} if isinstance(file, InputFile) else {}
        rest = {"software": software()} if self.call is None else self.call(path)
        return {"coordinates": str(file), **sha256, **rest}


def with_coordinates(call: Call | None, coordinates: InputFile | Path | None) -> Call | None:
    """Add the coordinate file of a topology to the facts about a call."""
    return call if coordinates is None else _WithCoordinates(coordinates, call)


def origin_of(
    source: InputFile, coordinates: InputFile | Path | None = None, call: Mapping[str, object] | None = None
) -> dict[str, Any]:
    """Return the input, the coordinate file of a topology, and the SHA-256 of both.

    call : facts about program and call; by default the program and its version

    There is no SHA-256 of a trajectory that was only read in part.
    """
    return {
        **({} if isinstance(source, NoFile) else {"input": str(source), "input_sha256": source.sha256}),
        **({} if coordinates is None else {"coordinates": str(coordinates)}),
        **({"coordinates_sha256": coordinates.sha256} if isinstance(coordinates, InputFile) else {}),
        **({"software": software()} if call is None else call),
    }


def how_computed(atoms: Atoms, how: Computation) -> dict[str, Any]:
    """Return device, variant, precision and notes of a result, for its file."""
    return {
        "device": how.device,
        "variant": how.variant,
        "precision": how.precision,
        "notes": list(atoms.notes) or "",
    }


def provenance(source: InputFile | None, call: Call | None = None) -> dict[str, Any]:
    """Return the input, its SHA-256 and the facts about the call; without a call, only the program."""
    if call is not None and not callable(call):
        raise InputError(f"call is {described(call)}; expected a function of a path")
    if source is None:
        return {"software": software()}
    return origin_of(source, call=None if call is None else call(source.path))


def origin(source: InputFile | None, atoms: Atoms, how: Computation, call: Call | None = None) -> dict[str, Any]:
    """Return the provenance of a computed result, with the device and notes about reading."""
    return {**provenance(source, call), **how_computed(atoms, how)}


def record_head(source: InputFile | None) -> dict[str, Any]:
    """Return the first part of a record: schema version, structure and SHA-256, both "" without a file."""
    sha256 = "" if source is None else source.sha256
    return {"schema": SCHEMA, "structure": "" if source is None else str(source), "sha256": sha256}


@dataclass(frozen=True)
class Provenance:
    """Provenance in the files of a job; front ends can extend it. It must be picklable, for workers."""

    def of_file(
        self, source: InputFile, target: Path | None, coordinates: InputFile | Path | None = None
    ) -> dict[str, object]:
        """Return the facts for a file with one structure.

        target : path of the file, None if the call writes no other; coordinates : coordinate file of a topology
        """
        return origin_of(source, coordinates, self.of_call())

    def of_call(self) -> dict[str, object]:
        """Return the facts for a file with all structures."""
        return {"software": software()}

    def save(self, table: Report, path: Path) -> None:
        """Write a table, with the facts about the call before its own."""
        from ..report import Report
        from .journal import make_folder

        make_folder(path.parent)
        Report(table.title, table.columns, {**self.of_call(), **table.facts}).save(path)
