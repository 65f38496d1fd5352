"""Molecules as functions take them: atoms, or a file and the options of its reading."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms
from ..common.arguments import described, file_path
from ..common.errors import InputError
from ..common.inputfile import InputFile, read_file
from .reading import Reading, Reads

Structure: TypeAlias = Atoms | str | PathLike[str]


@dataclass(frozen=True, eq=False)
class Given:
    """A molecule that a function was given.

    source : its file, None for atoms; chosen : (n_all,) True for each atom of the file that was taken, None for all
    """

    atoms: Atoms
    source: InputFile | None = None
    chosen: NDArray[np.bool_] | None = None


def reading_of(reading: Reads | None, options: Mapping[str, Any]) -> Reads:
    """Make the way to read files; options : of Reading. Raises TypeError for others."""
    unknown = sorted(set(options) - set(Reading.__dataclass_fields__))
    if unknown:
        raise TypeError(f"unexpected keyword argument {unknown[0]!r}")
    if reading is not None and options:
        raise InputError(f"choose one of `reading` and `{next(iter(options))}`")
    return Reading(**options) if reading is None else reading


def given_molecule(what: object, reading: Reads | None = None, options: Mapping[str, Any] | None = None) -> Given:
    """Take atoms, or read a file.

    what : Atoms, or the path of a structure; reading, options : of files, as of `reading_of`

    Raises InputError for anything else and for options of reading beside atoms, and as `pele_ocl.read` does.
    """
    reads = reading_of(reading, options or {})
    if isinstance(what, Atoms):
        if options:
            raise InputError(f"`{next(iter(options))}` is about reading a file, and the atoms are read already")
        return Given(what)
    if not isinstance(what, str | PathLike):
        raise InputError(f"a molecule is needed, Atoms or the path of a structure, not {described(what)}")
    file_path(what)
    source = read_file(what)
    atoms, chosen = reads.chosen(source)
    return Given(atoms, source, chosen)


def with_more_notes(atoms: Atoms, notes: tuple[str, ...]) -> Atoms:
    """Add notes to atoms."""
    return replace(atoms, notes=(*atoms.notes, *notes)) if notes else atoms
