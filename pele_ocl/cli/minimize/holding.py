"""Options about what is held while other atoms move, and about when a structure is done."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

import click

from ...atoms import Atoms
from ...energy import PositionalRestraint
from ...errors import InputError
from ...textfiles import number
from ...units import KJ_PER_MOL_NM
from ..options import Command

_UNITS = {"": 1.0, "kcal/mol/a": 1.0, "kj/mol/nm": KJ_PER_MOL_NM, "kcal/mol/nm": 0.1}


def tolerance_of(text: str) -> float:
    """The rms gradient, kcal/mol/A, that a text says: `0.1`, `1kJ/mol/nm` or `2.39kcal/mol/nm`.

    Raises InputError for anything else.
    """
    found = re.fullmatch(r"\s*([-+.\deE]+)\s*(\S*)\s*", text)
    value = number(found[1]) if found else None
    factor = _UNITS.get(found[2].lower()) if found else None
    if value is None or factor is None or not value >= 0:
        raise InputError(f"the tolerance is {text[:60]!r}; a number of kcal/mol/A is needed, or 1kJ/mol/nm, say")
    return value * factor


@dataclass(frozen=True)
class Holding:
    """Atoms that are held: selections with constants, kcal/mol/A^2; a selection that stays; and bonds."""

    restraints: tuple[tuple[str, float], ...]
    freeze: str | None
    constraints: str | None

    @property
    def each(self) -> Callable[[Atoms], dict[str, Any]] | None:
        """The function that gives the options of a Minimizer for each structure; None where all have the same."""
        return self.of if self.restraints or self.freeze is not None else None

    def of(self, atoms: Atoms) -> dict[str, Any]:
        """The options for a molecule. Raises InputError for selections that take no atom of it."""
        terms = [
            PositionalRestraint(constant, atoms=atoms.selected(text), name=f"restraint_{k}" if k > 1 else "restraint")
            for k, (text, constant) in enumerate(self.restraints, 1)
        ]
        return {"terms": terms, "frozen": None if self.freeze is None else atoms.selected(self.freeze)}


def holding_options(command: Command) -> Command:
    """Options about what is held; the command gets `holding`."""

    @wraps(command)
    def gathered(*, restrain: tuple[str, ...], freeze: str | None, constraints: str | None, **others: object) -> Any:
        return command(holding=Holding(tuple(map(_restraint, restrain)), freeze, constraints), **others)

    decorated: Command = gathered
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


def _restraint(text: str) -> tuple[str, float]:
    selection, _, constant = text.rpartition(":")
    value = number(constant)
    if not selection.strip() or value is None or not 0 <= value < float("inf"):
        raise InputError(f"--restrain {text[:60]!r}: SELECTION:K is needed, K in kcal/mol/A^2: 'backbone:10'")
    return selection, value


_OPTIONS: tuple[Callable[[Command], Command], ...] = (
    click.option(
        "--restrain", multiple=True, metavar="SELECTION:K",
        help="Hold atoms where they began by K |x - x0|^2, kcal/mol/A^2: 'backbone:10'; may be given several times.",
    ),
    click.option("--freeze", metavar="SELECTION", help="Atoms that stay: 'not within 6 of resname LIG'."),
    click.option(
        "--constraints", type=click.Choice(["hbonds", "hbonds-present"]),
        help="Hold bonds to hydrogen at the force field's lengths, or at those that they have.",
    ),
)  # fmt: skip
