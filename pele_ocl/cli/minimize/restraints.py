"""Restraints as they stand on the command line, and the terms of the energy that they are of a molecule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite, radians
from pathlib import Path

import numpy as np

from ...atoms import Atoms, Floats
from ...atoms.selection import Selection
from ...energy import DistanceRestraint, PositionalRestraint, Term, TorsionRestraint
from ...errors import InputError
from ...inputfile import read_file
from ...textfiles import number
from ..options import ReadAtoms


@dataclass(frozen=True)
class Form:
    """How a restraint is written: selections with | between them, a colon, and numbers with commas.

    selections : how many; written : for messages; least, most : of the target, where there is one
    """

    selections: int
    written: str
    least: float = 0.0
    most: float = inf

    def values(self, text: str) -> tuple[float, float, float] | None:
        """The constant, the target and the flat bottom, each 0 where it has none; None for another text."""
        words = [number(word.strip()) for word in text.split(",")]
        known = [value for value in words if value is not None and isfinite(value)]
        if len(known) < len(words):
            return None
        if self.selections == 1:
            known.insert(1, 0.0)  # positions have no target
        if len(known) == 2:
            known.append(0.0)
        if len(known) != 3:
            return None
        constant, target, flat = known
        is_allowed = min(constant, flat) >= 0 and self.least <= target <= self.most
        return (constant, target, flat) if is_allowed else None


# By option. Numbers come behind the last colon, as selections have colons of their own: `resid 5:20`.
FORMS = {
    "--restrain": Form(1, "SELECTION:K is needed, K in kcal/mol/A^2, or SELECTION:K,FLAT, FLAT in A: 'heavy:10,0.5'"),
    "--distance": Form(2, "ATOM|ATOM:K,R0 or ATOM|ATOM:K,R0,FLAT is needed, kcal/mol/A^2 and A: 'index 4|index 9:5,3'"),
    "--torsion": Form(
        4, "A|B|C|D:K,DEGREES or A|B|C|D:K,DEGREES,FLAT is needed, K in kcal/mol/rad^2, degrees from -360 to 360",
        -360.0, 360.0,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Restraint:
    """A restraint as it was given.

    option, text : as in the shell; selections : of its atoms
    constant : kcal/mol/A^2, of a torsion kcal/mol/rad^2; target, flat : A, of a torsion degrees; 0 of positions
    """

    option: str
    text: str
    selections: tuple[Selection, ...]
    constant: float
    target: float
    flat: float

    @classmethod
    def of(cls, option: str, text: str) -> Restraint:
        """That of a text. Raises InputError for one that is none."""
        form = FORMS[option]
        before, _, behind = text.rpartition(":")
        texts = tuple(selection.strip() for selection in before.split("|"))
        values = form.values(behind)
        if len(texts) != form.selections or not all(texts) or values is None:
            raise InputError(f"{option} {text[:60]!r}: {form.written}")
        if _ends_in_range(text, before):
            raise InputError(
                f"{option} {text[:60]!r}: this is a selection as a whole, and K is lacking; '{text[:60]}:10', say, or "
                f"'({before[:60]}):{behind[:20]}' where that is K"
            )
        return cls(option, text, tuple(map(Selection, texts)), *values)

    def members(self, atoms: Atoms) -> list[int]:
        """The atom of each selection. Raises InputError where one takes several, or none."""
        found = list[int]()
        for selection in self.selections:
            chosen = np.flatnonzero(selection.mask(atoms))
            if len(chosen) > 1:
                raise InputError(f"{self.option}: {selection.text!r} takes {len(chosen):,} atoms; one is needed")
            found.append(int(chosen[0]))
        if len(set(found)) < len(found):
            raise InputError(f"{self.option} {self.text[:60]!r}: names an atom twice; different ones are needed")
        return found


def _ends_in_range(text: str, before: str) -> bool:
    """Whether a text is a selection whose last colon is in a range of numbers: `resid 1:2`, but not `name CA:2`.

    before : what comes before that colon
    """
    # A name may be any text, colons included, and so may be a word behind it.
    return _is_selection(text) and not _is_selection(f"{before}:x")


def _is_selection(text: str) -> bool:
    try:
        Selection(text)
    except InputError:
        return False
    return True


@dataclass(frozen=True, eq=False)
class Reference:
    """The structure to whose positions atoms are held."""

    path: Path
    atoms: Atoms

    @classmethod
    def of(cls, path: Path, read_atoms: ReadAtoms) -> Reference:
        """That of a file, of which the same atoms are taken as of the structures."""
        return cls(path, read_atoms.unparameterised(read_file(path)))

    def positions(self, atoms: Atoms) -> Floats:
        """Those (n, 3) A of a molecule's atoms. Raises InputError where its atoms are others."""
        own = self.atoms
        if len(own) != len(atoms):
            raise InputError(f"{self.path}: has {len(own):,} atoms, the structure {len(atoms):,}; the same are needed")
        if own.labels is not None and atoms.labels is not None:
            others = np.flatnonzero(own.labels.names != atoms.labels.names)
            if len(others):
                here, there = (of.describe(int(others[0])) for of in (own, atoms))
                raise InputError(f"{self.path}: has {here} where the structure has {there}; one order is needed")
        return own.positions


def terms_of(restraints: Sequence[Restraint], reference: Reference | None, atoms: Atoms) -> list[Term]:
    """The terms of a molecule. Raises InputError for selections that do not fit it, and for another reference."""
    by_option = {option: [of for of in restraints if of.option == option] for option in FORMS}
    places = None if reference is None else reference.positions(atoms)
    found: list[Term] = [
        PositionalRestraint(
            of.constant, places, of.selections[0].mask(atoms), of.flat, f"restraint_{k}" if k > 1 else "restraint"
        )
        for k, of in enumerate(by_option["--restrain"], 1)
    ]
    if given := by_option["--distance"]:
        members = [of.members(atoms) for of in given]
        found.append(DistanceRestraint(members, *_columns([(of.target, of.constant, of.flat) for of in given])))
    if given := by_option["--torsion"]:
        members = [of.members(atoms) for of in given]
        values = [(radians(of.target), of.constant, radians(of.flat)) for of in given]
        found.append(TorsionRestraint(members, *_columns(values)))
    return found


def _columns(rows: Sequence[tuple[float, float, float]]) -> tuple[Floats, Floats, Floats]:
    targets, constants, flats = np.array(rows).T
    return targets, constants, flats
