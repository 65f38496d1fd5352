"""Molecule arguments of functions: Atoms, or a file with options for reading."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from ..atoms import Atoms, Taken
from ..common.arguments import described, file_path, instance
from ..common.errors import InputError, KeywordError, UnexpectedKeywordError
from ..common.inputfile import InputFile, read_file
from ..reading import Reading

Structure: TypeAlias = Atoms | str | PathLike[str]


@dataclass(frozen=True, eq=False)
class Given:
    """A molecule argument of a function.

    source : the file, None for Atoms; chosen : selected atoms of the file, None for all
    coordinates : file with the positions of a topology, otherwise None
    """

    atoms: Atoms
    source: InputFile | None = None
    chosen: Taken | None = None
    coordinates: InputFile | Path | None = None


def reading_of(reading: Reading | None, options: Mapping[str, Any]) -> Reading:
    """Create a Reading with the given options. Raises TypeError for unknown options."""
    unknown = sorted(set(options) - set(Reading.__dataclass_fields__))
    if unknown:
        raise UnexpectedKeywordError(unknown[0], Reading.__dataclass_fields__)
    if reading is not None:
        instance("reading", reading, Reading, "a pele_ocl.jobs.Reading")
    if reading is not None and options:
        raise KeywordError(f"choose one of `reading` and `{next(iter(options))}`")
    return Reading(**options) if reading is None else reading


def given_molecule(
    what: object, reading: Reading | None = None, options: Mapping[str, Any] | None = None, number: int | None = None
) -> Given:
    """Return the given Atoms, or read a file.

    what : Atoms, or the path of a structure; reading, options : as in `reading_of`
    number : number of the model, by default as in the reading

    Raises InputError for other objects and for reading options with Atoms, and the errors of `pele_ocl.read`.
    """
    reads = reading_of(reading, options or {})
    if isinstance(what, Atoms):
        if options:
            raise KeywordError(f"`{next(iter(options))}` applies to reading files, but Atoms are given")
        return Given(what)
    if not isinstance(what, str | PathLike):
        raise InputError(f"expected a molecule, Atoms or the path of a structure, not {described(what)}")
    file_path(what)
    found = reads.one(read_file(what), number)
    return Given(found.atoms, found.source, found.chosen, found.coordinates)
