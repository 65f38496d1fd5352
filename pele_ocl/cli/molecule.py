"""The molecule that a command reads: one model of a file, or all of them as conformations."""

from __future__ import annotations

from pathlib import Path

import click

from ..inputfile import read_file
from ..jobs.reading import Molecule as Molecule
from ..jobs.reading import molecule_of
from .options import ReadAtoms

models_option = click.option(
    "--models", type=click.Choice(["one", "all"]), default="one", show_default=True,
    help="Take all models of a PDB file as conformations of one molecule.",
)  # fmt: skip


def read_molecule(path: Path, read_atoms: ReadAtoms, models: str = "one") -> Molecule:
    """Read a file once; models : "one", or "all" as --models says.

    Raises FormatError and ParameterError as the readers do.
    """
    return molecule_of(read_file(path), read_atoms, models)
