"""The options --select, --without and --only, and the atoms that they leave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import click
import numpy as np
from numpy.typing import NDArray

from ...atoms import Atoms
from ...atoms.selection import Selection
from ...inputfile import InputFile

Bools = NDArray[np.bool_]
Chosen: TypeAlias = tuple[Atoms, Bools | None]

_KINDS = {"protein": "protein", "nucleic": "nucleic", "ligand": "ligand", "ion": "ion", "ions": "ion", "water": "water"}


@dataclass(frozen=True)
class AtomsReader:
    """Reads the atoms that a command's options choose.

    chosen(source, number) : Atoms of a model, by default the one that --model says, and (n,) True for each atom of the
        file that was taken, None where all were
    unparameterised(source) : the same Atoms without charges and other parameters, which need no force field
    of_frames(source, over) : Atoms of another file than IN, whose own frames `over` has; a topology's positions are the
        first of these
    require_forcefield() : raises where a structure needs a force field that cannot be had
    """

    chosen: Callable[..., Chosen]
    unparameterised: Callable[[InputFile], Atoms]
    require_forcefield: Callable[[], None]
    of_frames: Callable[..., Atoms]

    def __call__(self, source: InputFile, number: int | None = None) -> Atoms:
        """The chosen atoms of a file; number : of the model, by default that of --model."""
        return self.chosen(source, number)[0]


def choice_options() -> list[Callable[..., Callable[..., object]]]:
    """The options `select`, `without` and `only`, which chosen_text puts together."""
    return [
        click.option(
            "--select",
            metavar="EXPR",
            help="Atoms to take, in words of MDAnalysis and VMD: 'protein and not resname NAP', or a mask of AMBER: "
            "':1-50@CA'. What is left out needs no template.",
        ),
        click.option(
            "--without", metavar="NAMES", help="Leave residues of these names out: HOH,NAP; also water, ion, ligand."
        ),
        click.option("--only", metavar="KINDS", help="Take these kinds alone: protein, nucleic, ligand, ion, water."),
    ]


def chosen_text(select: str | None, without: str | None, only: str | None) -> str | None:
    """One selection of what the three options say, None where none is given.

    Raises InputError, before any file is read, for a text that is no selection.
    """
    parts = []
    if select is not None:
        parts.append(select)
    if without is not None:
        parts.append(
            f"not ({' or '.join(_KINDS.get(name) or _residue(name) for name in _split('--without', without))})"
        )
    if only is not None:
        kinds = _split("--only", only)
        unknown = next((kind for kind in kinds if kind not in _KINDS), None)
        if unknown is not None:
            raise click.UsageError(f"--only {only}: there is no kind {unknown!r}; choose of {', '.join(_KINDS)}")
        parts.append(" or ".join(_KINDS[kind] for kind in kinds))
    text = " and ".join(parts if len(parts) == 1 else [f"({part})" for part in parts])
    return Selection(text).text if text else None


def _split(option: str, names: str) -> list[str]:
    """The names between commas."""
    found = [name.strip() for name in names.split(",")]
    if not all(found):
        raise click.UsageError(f"{option} {names} lacks a name before or behind a comma")
    return found


def _residue(name: str) -> str:
    """The selection of a residue name; * and ? stand for any letters."""
    if set(name) & set('()" '):
        raise click.UsageError(f"--without {name}: names of residues are needed, without blanks and parentheses")
    return f"resname {name}" if any(c in name for c in "*?") else f'resname "{name}"'
