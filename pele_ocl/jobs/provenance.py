"""Provenance of results, as their files and JSON objects have it: the input, the program, the call."""

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

# Facts of the call that a structure's results are from, such as its command line.
Call: TypeAlias = Callable[[Path], Mapping[str, Any]]


@dataclass(frozen=True)
class _WithCoordinates:
    """Facts of a call that read the positions of a topology from a file; call : gives the others, None for none"""

    coordinates: InputFile | Path
    call: Call | None

    def __call__(self, path: Path) -> dict[str, Any]:
        file = self.coordinates
        # A trajectory that was not read whole has no SHA-256.
        sha256 = {"coordinates_sha256": file.sha256} if isinstance(file, InputFile) else {}
        rest = {"software": software()} if self.call is None else self.call(path)
        return {"coordinates": str(file), **sha256, **rest}


def with_coordinates(call: Call | None, coordinates: InputFile | Path | None) -> Call | None:
    """Add the file of a topology's positions to the facts of a call."""
    return call if coordinates is None else _WithCoordinates(coordinates, call)


def origin_of(
    source: InputFile, coordinates: InputFile | Path | None = None, call: Mapping[str, object] | None = None
) -> dict[str, Any]:
    """Say what a file was computed from: the input, the coordinates of a topology, and the SHA-256 of both.

    call : facts of the program and the call; by default the program and its version

    A trajectory that was not read whole has no SHA-256.
    """
    return {
        **({} if isinstance(source, NoFile) else {"input": str(source), "input_sha256": source.sha256}),
        **({} if coordinates is None else {"coordinates": str(coordinates)}),
        **({"coordinates_sha256": coordinates.sha256} if isinstance(coordinates, InputFile) else {}),
        **({"software": software()} if call is None else call),
    }


def how_computed(atoms: Atoms, how: Computation) -> dict[str, Any]:
    """Say how a result was computed, for its file: device, variant, precision, and what was noted."""
    return {
        "device": how.device,
        "variant": how.variant,
        "precision": how.precision,
        "notes": list(atoms.notes) or "",
    }


def provenance(source: InputFile | None, call: Call | None = None) -> dict[str, Any]:
    """Facts of a file of results: the input and its SHA-256, then the call's; only the program without one."""
    if call is not None and not callable(call):
        raise InputError(f"call is {described(call)}; expected a function of a path")
    if source is None:
        return {"software": software()}
    return origin_of(source, call=None if call is None else call(source.path))


def origin(source: InputFile | None, atoms: Atoms, how: Computation, call: Call | None = None) -> dict[str, Any]:
    """Provenance of a computed result, with the device and the reader's notes."""
    return {**provenance(source, call), **how_computed(atoms, how)}


def record_head(source: InputFile | None) -> dict[str, Any]:
    """Beginning of a record: its version, the structure and its SHA-256, empty of atoms that no file brought."""
    sha256 = "" if source is None else source.sha256
    return {"schema": SCHEMA, "structure": "" if source is None else str(source), "sha256": sha256}


@dataclass(frozen=True)
class Provenance:
    """Facts that the files of a job name; a front end adds its own. It pickles, for workers."""

    def of_file(
        self, source: InputFile, target: Path | None, coordinates: InputFile | Path | None = None
    ) -> dict[str, object]:
        """Return the facts of a file that is made of one structure.

        target : its path, None if it is all that the call writes; coordinates : file with the positions of a topology
        """
        return origin_of(source, coordinates, self.of_call())

    def of_call(self) -> dict[str, object]:
        """Return the facts of a file that is made of all structures."""
        return {"software": software()}

    def save(self, table: Report, path: Path) -> None:
        """Write a table with the facts of the call before its own."""
        from ..report import Report
        from .journal import make_folder

        make_folder(path.parent)
        Report(table.title, table.columns, {**self.of_call(), **table.facts}).save(path)
