"""Options that choose atoms."""

from __future__ import annotations

from collections.abc import Callable

import click

from ..reading import Bools as Bools
from ..reading import Reading as StructureReader
from ..reading import selection_of as selection_of

__all__ = ["Bools", "StructureReader", "choice_options", "selection_of"]


def choice_options() -> list[Callable[..., Callable[..., object]]]:
    """List the options `select`, `without` and `only`, which a Reading puts together."""
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
