"""Restraints and frozen atoms as texts that name atoms by selections, and the terms that they make of a molecule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite, radians
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ..atoms import Atoms, Floats, correspondence, selectable
from ..atoms.selection import Selection
from ..common.arguments import file_path
from ..common.arguments import texts as several_texts
from ..common.errors import InputError
from ..common.hashing import content_of
from ..common.indices import is_group, selection_text
from ..common.inputfile import read_file
from ..common.notes import note
from ..common.textfiles import number
from ..reading import Reading
from .terms import DistanceRestraint, PositionalRestraint, Term, TorsionRestraint

Texts = str | Sequence[str]  # one restraint, or several


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


# By keyword. Numbers come behind the last colon, as selections have colons of their own: `resid 5:20`.
FORMS = {
    "restrain": Form(1, "expected SELECTION:K, K in kcal/mol/A^2, or SELECTION:K,FLAT, FLAT in A: 'heavy:10,0.5'"),
    "distance": Form(2, "expected ATOM|ATOM:K,R0 or ATOM|ATOM:K,R0,FLAT, kcal/mol/A^2 and A: 'index 4|index 9:5,3'"),
    "torsion": Form(
        4, "expected A|B|C|D:K,DEGREES or A|B|C|D:K,DEGREES,FLAT, K in kcal/mol/rad^2, degrees from -360 to 360",
        -360.0, 360.0,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Restraint:
    """A restraint as given.

    keyword, text : as given; selections : of its atoms
    constant : kcal/mol/A^2, of a torsion kcal/mol/rad^2; target, flat : A, of a torsion degrees; 0 of positions
    """

    keyword: str
    text: str
    selections: tuple[Selection, ...]
    constant: float
    target: float
    flat: float

    @classmethod
    def of(cls, keyword: str, text: str) -> Restraint:
        """Read a restraint from a text. Raises InputError for one that is none."""
        form = FORMS[keyword]
        before, _, behind = text.rpartition(":")
        texts = tuple(selection.strip() for selection in before.split("|"))
        values = form.values(behind)
        if len(texts) != form.selections or not all(texts) or values is None:
            raise InputError(f"`{keyword}` {text[:60]!r}: {form.written}")
        if _ends_in_range(text, before):
            raise InputError(
                f"`{keyword}` {text[:60]!r}: this is a selection without K; "
                f"'{text[:60]}:10', say, or '({before[:60]}):{behind[:20]}' where that is K"
            )
        return cls(keyword, text, tuple(map(Selection, texts)), *values)

    def members(self, atoms: Atoms) -> list[int]:
        """Find the atom of each selection. Raises InputError if one takes several, or none."""
        found = list[int]()
        for selection in self.selections:
            chosen = np.flatnonzero(selection.mask(selectable(atoms)))
            if len(chosen) > 1:
                raise InputError(f"`{self.keyword}`: {selection.text!r} selects {len(chosen):,} atoms; expected one")
            found.append(int(chosen[0]))
        if len(set(found)) < len(found):
            raise InputError(f"`{self.keyword}` {self.text[:60]!r}: names an atom twice; expected different ones")
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
    def of(cls, path: Path, reads: Reading) -> Reference:
        """Read all atoms of the reference."""
        return cls(path, reads.unparameterised(read_file(path), whole=True))

    def positions(self, atoms: Atoms) -> Floats:
        """Return the positions (n, 3) A of a molecule's atoms. Raises InputError if its atoms are others."""
        n_atoms = len(atoms), len(self.atoms)
        same = correspondence(atoms.labels, self.atoms.labels, str(self.path), n_atoms=n_atoms, among=True)
        for sentence in same.notes:
            note(f"Note: {sentence}")
        return self.atoms.positions[same.order]


def terms_of(restraints: Sequence[Restraint], reference: Reference | None, atoms: Atoms) -> list[Term]:
    """Make the terms of a molecule. Raises InputError for selections that do not fit it, and for another reference."""
    by_keyword = {keyword: [of for of in restraints if of.keyword == keyword] for keyword in FORMS}
    places = None if reference is None else reference.positions(atoms)
    described = selectable(atoms)
    found: list[Term] = [
        PositionalRestraint(
            of.constant, places, of.selections[0].mask(described), of.flat, f"restraint_{k}" if k > 1 else "restraint"
        )
        for k, of in enumerate(by_keyword["restrain"], 1)
    ]
    if given := by_keyword["distance"]:
        members = [of.members(atoms) for of in given]
        found.append(DistanceRestraint(members, *_columns([(of.target, of.constant, of.flat) for of in given])))
    if given := by_keyword["torsion"]:
        members = [of.members(atoms) for of in given]
        values = [(radians(of.target), of.constant, radians(of.flat)) for of in given]
        found.append(TorsionRestraint(members, *_columns(values)))
    return found


def _columns(rows: Sequence[tuple[float, float, float]]) -> tuple[Floats, Floats, Floats]:
    targets, constants, flats = np.array(rows).T
    return targets, constants, flats


H = TypeVar("H", bound="Held")


@dataclass(frozen=True)
class Held:
    """Atoms that are held: restraints, to the positions of a reference if there is one, and frozen atoms.

    reference : a path until `referring` has read it
    """

    restraints: tuple[Restraint, ...] = ()
    reference: Path | Reference | None = None
    freeze: Selection | None = None

    @classmethod
    def of(
        cls, restrain: Texts = (), distance: Texts = (), torsion: Texts = (),
        reference: str | PathLike[str] | None = None, freeze: str | None = None,
    ) -> Held:  # fmt: skip
        """Read restraints from texts.

        restrain : "SELECTION:K" or "SELECTION:K,FLAT", K in kcal/mol/A^2 and FLAT in A: "backbone:10"
        distance : "ATOM|ATOM:K,R0" or "ATOM|ATOM:K,R0,FLAT", K in kcal/mol/A^2, R0 and FLAT in A
        torsion : "A|B|C|D:K,ANGLE" or "A|B|C|D:K,ANGLE,FLAT", K in kcal/mol/rad^2, ANGLE and FLAT in degrees
        reference : structure file with the positions that `restrain` holds atoms at, by default where they begin
        freeze : selection of atoms that do not move

        Raises InputError for a text that is none of these, and for a reference without `restrain`.
        """
        given = {"restrain": restrain, "distance": distance, "torsion": torsion}
        for name, value in given.items():
            if is_group(value):
                raise InputError(
                    f"`{name}` takes texts of selections and numbers; restraints of atoms by index are `terms` of "
                    "Atoms, such as pele_ocl.PositionalRestraint(10.0, atoms=group.indices)"
                )
        listed = {
            name: several_texts(name, (texts,) if isinstance(texts, str) else texts) for name, texts in given.items()
        }
        restraints = tuple(Restraint.of(name, text) for name, texts in listed.items() for text in texts)
        if reference is not None and not listed["restrain"]:
            raise InputError("`reference` contains the reference positions of `restrain`; also give `restrain`")
        path = None if reference is None else Path(file_path(reference, "reference"))
        return cls(restraints, path, None if freeze is None else Selection(selection_text("freeze", freeze)))

    def referring(self: H, reads: Reading) -> H:
        """Read the reference."""
        if not isinstance(self.reference, Path):
            return self
        return replace(self, reference=Reference.of(self.reference, reads))

    def settings(self) -> dict[str, str]:
        """Return the restraints as texts that identify a journal; the reference is identified by its content."""
        found = {
            keyword: str([of.text for of in self.restraints if of.keyword == keyword])
            for keyword in FORMS
            if any(of.keyword == keyword for of in self.restraints)
        }
        if self.freeze is not None:
            found["freeze"] = self.freeze.text
        if self.reference is not None:
            path = self.reference if isinstance(self.reference, Path) else self.reference.path
            found["reference"] = str(content_of(path) or path)
        return found

    @property
    def each(self) -> Callable[[Atoms], dict[str, Any]] | None:
        """Function that gives the options of a Minimizer for each structure; None if all have the same."""
        return self.options if self.restraints or self.freeze is not None else None

    @property
    def to_starts(self) -> bool:
        """True if each conformation is restrained to its own initial positions."""
        return self.reference is None and any(of.keyword == "restrain" for of in self.restraints)

    def options(self, atoms: Atoms) -> dict[str, Any]:
        """Make `terms` and `frozen` for a molecule. Raises InputError for what does not fit it."""
        assert not isinstance(self.reference, Path)
        terms = terms_of(self.restraints, self.reference, atoms)
        return {"terms": terms, "frozen": None if self.freeze is None else self.freeze.mask(selectable(atoms))}
