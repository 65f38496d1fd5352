"""Options about what is held while other atoms move, and about when a structure is done."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Any

import click

from ...atoms import Atoms
from ...atoms.selection import Selection
from ...errors import InputError
from ...textfiles import number
from ...units import KJ_PER_MOL_NM
from ..command import INPUT
from ..options import Command, ReadAtoms
from .restraints import Reference, Restraint, terms_of

_UNITS = {"kcal/mol/A": 1.0, "kJ/mol/nm": KJ_PER_MOL_NM, "kcal/mol/nm": 0.1, "kJ/mol/A": 10 * KJ_PER_MOL_NM}
_FACTORS = {"": 1.0, **{unit.lower(): factor for unit, factor in _UNITS.items()}}
_ANGSTROM = str.maketrans({"Å": "a", "å": "a", "\N{ANGSTROM SIGN}": "a"})


def tolerance_of(text: str) -> float:
    """The rms gradient, kcal/mol/A, that a text says: `0.1`, `1kJ/mol/nm` or `0.1 kcal/mol/Å`.

    Raises InputError for anything else.
    """
    found = re.fullmatch(r"\s*([-+.\deE]+)\s*(\S*)\s*", text)
    value = number(found[1]) if found else None
    factor = _FACTORS.get(found[2].translate(_ANGSTROM).lower()) if found else None
    if value is None or factor is None or not 0 <= value < float("inf"):
        raise InputError(
            f"the tolerance is {text[:60]!r}; a number, 0 or more, is needed, of kcal/mol/A or with its unit: "
            f"{', '.join(_UNITS)}"
        )
    return value * factor


@dataclass(frozen=True)
class Holding:
    """Atoms that are held: restraints, to the positions of a reference where there is one; those that stay; and bonds.

    reference : a path until `referring` has read it
    """

    restraints: tuple[Restraint, ...]
    reference: Path | Reference | None
    freeze: Selection | None
    constraints: str | None

    def referring(self, read_atoms: ReadAtoms) -> Holding:
        """The same with the reference read."""
        if not isinstance(self.reference, Path):
            return self
        return replace(self, reference=Reference.of(self.reference, read_atoms))

    @property
    def each(self) -> Callable[[Atoms], dict[str, Any]] | None:
        """The function that gives the options of a Minimizer for each structure; None where all have the same."""
        return self.of if self.restraints or self.freeze is not None else None

    @property
    def to_starts(self) -> bool:
        """Whether each conformation is held to where itself began."""
        return self.reference is None and any(of.option == "--restrain" for of in self.restraints)

    def of(self, atoms: Atoms) -> dict[str, Any]:
        """The options for a molecule. Raises InputError for selections and a reference that do not fit."""
        assert not isinstance(self.reference, Path)
        terms = terms_of(self.restraints, self.reference, atoms)
        return {"terms": terms, "frozen": None if self.freeze is None else self.freeze.mask(atoms)}


def holding_options(command: Command) -> Command:
    """Options about what is held; the command gets `holding`."""

    @wraps(command)
    def gathered(
        *, restrain: tuple[str, ...], distance: tuple[str, ...], torsion: tuple[str, ...], reference: Path | None,
        freeze: str | None, constraints: str | None, **others: object,
    ) -> Any:  # fmt: skip
        if reference is not None and not restrain:
            raise click.UsageError("--reference has the places that --restrain holds atoms to; give that, too")
        frozen = None if freeze is None else Selection(freeze)
        given = {"--restrain": restrain, "--distance": distance, "--torsion": torsion}
        restraints = tuple(Restraint.of(option, text) for option, texts in given.items() for text in texts)
        return command(holding=Holding(restraints, reference, frozen, constraints), **others)

    decorated: Command = gathered
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


_OPTIONS: tuple[Callable[[Command], Command], ...] = (
    click.option(
        "--restrain", multiple=True, metavar="SELECTION:K[,FLAT]",
        help="Hold atoms at their first positions by K |x - x0|^2, K in kcal/mol/A^2: 'backbone:10'. FLAT is "
        "a distance, Angstrom, up to which they are free. Can be given several times, as --distance and "
        "--torsion.",
    ),
    click.option(
        "--distance", multiple=True, metavar="ATOM|ATOM:K,R0[,FLAT]",
        help="Hold two atoms, each a selection, at R0 Angstrom by K (r - R0)^2: "
        "'resid 10 and name OG|resname LIG and name N1:20,2.9,0.2'.",
    ),
    click.option(
        "--torsion", multiple=True, metavar="A|B|C|D:K,DEGREES[,FLAT]",
        help="Hold a torsion of four atoms at an angle, DEGREES and FLAT in degrees, K in kcal/mol/rad^2.",
    ),
    click.option(
        "--reference", type=INPUT, metavar="FILE",
        help="Structure with the positions that --restrain holds the atoms at.",
    ),
    click.option("--freeze", metavar="SELECTION", help="Atoms that do not move: 'not within 6 of resname LIG'."),
    click.option(
        "--constraints", type=click.Choice(["hbonds", "hbonds-present"]),
        help="Hold bonds to hydrogen at the force field's lengths, or at their present lengths.",
    ),
)  # fmt: skip
