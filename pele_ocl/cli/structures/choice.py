"""The options --select, --without and --only, and the atoms that they leave."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import click
import numpy as np
from numpy.typing import NDArray

from ...atoms import Atoms
from ...atoms.selection import Selection

Bools = NDArray[np.bool_]
Chosen: TypeAlias = tuple[Atoms, Bools | None]

_KINDS = {"protein": "protein", "nucleic": "nucleic", "ligand": "ligand", "ion": "ion", "ions": "ion", "water": "water"}


def choice_options() -> list[Callable[..., Callable[..., object]]]:
    """The options `select`, `without` and `only`, which selection_of puts together."""
    return [
        click.option(
            "--select",
            metavar="EXPR",
            help="Atoms to take, in the words of MDAnalysis and VMD: 'protein and not resname NAP', or a mask of "
            "AMBER: ':1-50@CA'. Other atoms need no parameters.",
        ),
        click.option(
            "--without",
            metavar="NAMES",
            help="Leave out residues by name, such as HOH,NAP, or by kind: water, ion, ligand.",
        ),
        click.option("--only", metavar="KINDS", help="Take only these kinds: protein, nucleic, ligand, ion, water."),
    ]


def selection_of(select: str | None, without: str | None, only: str | None) -> Selection | None:
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
    return Selection(text) if text else None


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
