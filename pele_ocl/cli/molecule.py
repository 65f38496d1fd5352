"""The molecule that a command reads: one model of a file, or all of them as conformations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import click

from ..atoms import Atoms, Floats
from ..formats import read_conformations
from ..inputfile import InputFile, read_file
from .options import ReadAtoms
from .structures.choice import Bools

models_option = click.option(
    "--models", type=click.Choice(["one", "all"]), default="one", show_default=True,
    help="Take all models of a PDB file as conformations of one molecule.",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Molecule:
    """A molecule as it was read.

    source : the file
    atoms : of the only model, or of the first
    numbers : of the models, in the order of the file; empty where one model was asked for
    conformations : (m, n, 3) A, a row for each of `numbers`
    chosen : (n_all,) True for each atom of the file that was taken, None where all were
    """

    source: InputFile
    atoms: Atoms
    numbers: list[int] = field(default_factory=list)
    conformations: Floats | None = None
    chosen: Bools | None = None

    def models(self) -> Iterator[Atoms]:
        """The atoms of each model."""
        if self.conformations is None:
            yield self.atoms
        else:
            yield from map(self.atoms.moved, self.conformations)


def read_molecule(path: Path, read_atoms: ReadAtoms, models: str = "one") -> Molecule:
    """Read a file once; models : "one", or "all" as --models says.

    Raises FormatError and ParameterError as the readers do.
    """
    source = read_file(path)
    if models == "one":
        atoms, chosen = read_atoms.chosen(source)
        return Molecule(source, atoms, chosen=chosen)
    numbers, conformations = read_conformations(source)
    # The first of all models is asked for by its number, so that no note says that the others were not read.
    atoms, chosen = read_atoms.chosen(source, numbers[0])
    return Molecule(source, atoms, numbers, conformations if chosen is None else conformations[:, chosen], chosen)
