"""Options about what is held and when a structure is done, and the terms that restraints are."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from math import inf, isfinite, radians
from pathlib import Path
from typing import Any

import click
import numpy as np

from ...atoms import Atoms, Floats, correspondence, selectable
from ...atoms.selection import Selection
from ...common.errors import InputError
from ...common.inputfile import read_file
from ...common.textfiles import number
from ...energy.terms import DistanceRestraint, PositionalRestraint, Term, TorsionRestraint
from ...units import KJ_PER_MOL_NM
from ..command import INPUT
from ..options import Command, ReadAtoms
from ..terminal import note


@dataclass(frozen=True)
class Form:
    """Form of a restraint: selections with | between them, a colon, and numbers with commas.

    selections : how many; written : for messages; least, most : of the target, if there is one
    """

    selections: int
    written: str
    least: float = 0.0
    most: float = inf

    def values(self, text: str) -> tuple[float, float, float] | None:
        """Read the constant, the target and the flat bottom, each 0 if there is none; None for another text."""
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
        """Read a restraint from a text. Raises InputError for one that is none."""
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
        """Find the atom of each selection. Raises InputError if one takes several, or none."""
        found = list[int]()
        for selection in self.selections:
            chosen = np.flatnonzero(selection.mask(selectable(atoms)))
            if len(chosen) > 1:
                raise InputError(f"{self.option}: {selection.text!r} takes {len(chosen):,} atoms; one is needed")
            found.append(int(chosen[0]))
        if len(set(found)) < len(found):
            raise InputError(f"{self.option} {self.text[:60]!r}: names an atom twice; different ones are needed")
        return found


def _ends_in_range(text: str, before: str) -> bool:
    """True if a text is a selection whose last colon is in a range of numbers: `resid 1:2`, but not `name CA:2`.

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
    """Structure whose positions atoms are held to."""

    path: Path
    atoms: Atoms

    @classmethod
    def of(cls, path: Path, read_atoms: ReadAtoms) -> Reference:
        """Read all atoms of the reference."""
        return cls(path, read_atoms.unparameterised(read_file(path), whole=True))

    def positions(self, atoms: Atoms) -> Floats:
        """Give the positions (n, 3) A of a molecule's atoms. Raises InputError if its atoms are others."""
        n_atoms = len(atoms), len(self.atoms)
        same = correspondence(atoms.labels, self.atoms.labels, str(self.path), n_atoms=n_atoms, among=True)
        for sentence in same.notes:
            note(f"Note: {sentence}")
        return self.atoms.positions[same.order]


def terms_of(restraints: Sequence[Restraint], reference: Reference | None, atoms: Atoms) -> list[Term]:
    """Make the terms of a molecule. Raises InputError for selections that do not fit it, and for another reference."""
    by_option = {option: [of for of in restraints if of.option == option] for option in FORMS}
    places = None if reference is None else reference.positions(atoms)
    described = selectable(atoms)
    found: list[Term] = [
        PositionalRestraint(
            of.constant, places, of.selections[0].mask(described), of.flat, f"restraint_{k}" if k > 1 else "restraint"
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


_UNITS = {"kcal/mol/A": 1.0, "kJ/mol/nm": KJ_PER_MOL_NM, "kcal/mol/nm": 0.1, "kJ/mol/A": 10 * KJ_PER_MOL_NM}
_FACTORS = {"": 1.0, **{unit.lower(): factor for unit, factor in _UNITS.items()}}
_ANGSTROM = str.maketrans({"Å": "a", "å": "a", "\N{ANGSTROM SIGN}": "a"})


def tolerance_of(text: str) -> float:
    """Read the rms gradient, kcal/mol/A, from a text: `0.1`, `1kJ/mol/nm` or `0.1 kcal/mol/Å`.

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
class RestraintOptions:
    """Options about what is held: restraints, to the positions of a reference if there is one; frozen atoms; bonds.

    reference : a path until `referring` has read it
    """

    restraints: tuple[Restraint, ...]
    reference: Path | Reference | None
    freeze: Selection | None
    constraints: str | None

    def referring(self, read_atoms: ReadAtoms) -> RestraintOptions:
        """Read the reference."""
        if not isinstance(self.reference, Path):
            return self
        return replace(self, reference=Reference.of(self.reference, read_atoms))

    @property
    def each(self) -> Callable[[Atoms], dict[str, Any]] | None:
        """Function that gives the options of a Minimizer for each structure; None if all have the same."""
        return self.of if self.restraints or self.freeze is not None else None

    @property
    def to_starts(self) -> bool:
        """True if each conformation is held to where itself began."""
        return self.reference is None and any(of.option == "--restrain" for of in self.restraints)

    def of(self, atoms: Atoms) -> dict[str, Any]:
        """Make the options for a molecule. Raises InputError for selections and a reference that do not fit."""
        assert not isinstance(self.reference, Path)
        terms = terms_of(self.restraints, self.reference, atoms)
        return {"terms": terms, "frozen": None if self.freeze is None else self.freeze.mask(selectable(atoms))}


def restraint_options(command: Command, *, constraints: Sequence[str] = ("hbonds", "hbonds-present")) -> Command:
    """Options about what is held; the command gets `held`. constraints : that it knows"""

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
        return command(held=RestraintOptions(restraints, reference, frozen, constraints), **others)

    decorated: Command = gathered
    for option in (_constraints_option(constraints), *reversed(_OPTIONS)):
        decorated = option(decorated)
    return decorated


_CONSTRAINTS = {"hbonds": "at the force field's lengths", "hbonds-present": "at their present lengths"}


def _constraints_option(known: Sequence[str]) -> Callable[[Command], Command]:
    lengths = ", or ".join(_CONSTRAINTS[name] for name in known)
    return click.option("--constraints", type=click.Choice(known), help=f"Hold bonds to hydrogen {lengths}.")


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
)  # fmt: skip
