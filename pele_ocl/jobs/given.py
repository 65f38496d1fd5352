"""Molecules as functions take them: atoms, or a file and the options of its reading."""

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
    """A molecule that a function was given.

    source : its file, None for atoms; chosen : the atoms of the file that were taken, None for all
    coordinates : file with the positions of a topology, else None
    """

    atoms: Atoms
    source: InputFile | None = None
    chosen: Taken | None = None
    coordinates: InputFile | Path | None = None


def reading_of(reading: Reading | None, options: Mapping[str, Any]) -> Reading:
    """Make the way to read files; options : of Reading. Raises TypeError for others."""
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
    """Take atoms, or read a file.

    what : Atoms, or the path of a structure; reading, options : of files, as in `reading_of`
    number : of the model, by default that of the reading

    Raises InputError for anything else and for reading options given with Atoms, and as `pele_ocl.read` does.
    """
    reads = reading_of(reading, options or {})
    if isinstance(what, Atoms):
        if options:
            raise KeywordError(f"`{next(iter(options))}` is about reading a file, and the atoms are read already")
        return Given(what)
    if not isinstance(what, str | PathLike):
        raise InputError(f"expected a molecule, Atoms or the path of a structure, not {described(what)}")
    file_path(what)
    found = reads.one(read_file(what), number)
    return Given(found.atoms, found.source, found.chosen, found.coordinates)
