"""Restraints and frozen atoms given as text with atom selections, and the terms made from them."""

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
    """Syntax of a restraint: selections separated by |, a colon, and numbers separated by commas.

    selections : number of selections; written : for messages; least, most : allowed range of the target
    """

    selections: int
    written: str
    least: float = 0.0
    most: float = inf

    def values(self, text: str) -> tuple[float, float, float] | None:
        """Parse the force constant, the target and the flat bottom, 0 if not given; None for invalid text."""
        words = [number(word.strip()) for word in text.split(",")]
        known = [value for value in words if value is not None and isfinite(value)]
        if len(known) < len(words):
            return None
        if self.selections == 1:
            known.insert(1, 0.0)  # positional restraints have no target
        if len(known) == 2:
            known.append(0.0)
        if len(known) != 3:
            return None
        constant, target, flat = known
        is_allowed = min(constant, flat) >= 0 and self.least <= target <= self.most
        return (constant, target, flat) if is_allowed else None


# By keyword. Numbers follow the last colon, since selections also contain colons: `resid 5:20`.
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
    """A parsed restraint.

    keyword, text : as given; selections : of its atoms
    constant : kcal/mol/A^2, for a torsion kcal/mol/rad^2
    target, flat : A, for a torsion degrees; the target of a positional restraint is 0
    """

    keyword: str
    text: str
    selections: tuple[Selection, ...]
    constant: float
    target: float
    flat: float

    @classmethod
    def of(cls, keyword: str, text: str) -> Restraint:
        """Parse a restraint. Raises InputError for invalid text."""
        form = FORMS[keyword]
        before, _, behind = text.rpartition(":")
        texts = tuple(selection.strip() for selection in before.split("|"))
        values = form.values(behind)
        if len(texts) != form.selections or not all(texts) or values is None:
            raise InputError(f"`{keyword}` {text[:60]!r}: {form.written}")
        if _ends_in_range(text, before):
            raise InputError(
                f"`{keyword}` {text[:60]!r}: this selection has no K; write "
                f"for example '{text[:60]}:10', or '({before[:60]}):{behind[:20]}' if the last number is K"
            )
        return cls(keyword, text, tuple(map(Selection, texts)), *values)

    def members(self, atoms: Atoms) -> list[int]:
        """Return the atom of each selection. Raises InputError if a selection has several atoms, or none."""
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
    """Return whether the last colon of a text belongs to a range, `resid 1:2`, not to a restraint, `name CA:2`.

    before : the text before that colon
    """
    # Atom names, and words after them, may contain colons.
    return _is_selection(text) and not _is_selection(f"{before}:x")


def _is_selection(text: str) -> bool:
    try:
        Selection(text)
    except InputError:
        return False
    return True


@dataclass(frozen=True, eq=False)
class Reference:
    """Structure with reference positions for restraints."""

    path: Path
    atoms: Atoms

    @classmethod
    def of(cls, path: Path, reads: Reading) -> Reference:
        return cls(path, reads.unparameterised(read_file(path), whole=True))

    def positions(self, atoms: Atoms) -> Floats:
        """Return reference positions (n, 3) A for a molecule's atoms. Raises InputError if the atoms differ."""
        n_atoms = len(atoms), len(self.atoms)
        same = correspondence(atoms.labels, self.atoms.labels, str(self.path), n_atoms=n_atoms, among=True)
        for sentence in same.notes:
            note(f"Note: {sentence}")
        return self.atoms.positions[same.order]


def terms_of(restraints: Sequence[Restraint], reference: Reference | None, atoms: Atoms) -> list[Term]:
    """Create terms for a molecule. Raises InputError if the selections or the reference do not fit it."""
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
    """Restraints and frozen atoms.

    reference : structure with reference positions, a path until `referring` reads it; None for the initial positions
    """

    restraints: tuple[Restraint, ...] = ()
    reference: Path | Reference | None = None
    freeze: Selection | None = None

    @classmethod
    def of(
        cls, restrain: Texts = (), distance: Texts = (), torsion: Texts = (),
        reference: str | PathLike[str] | None = None, freeze: str | None = None,
    ) -> Held:  # fmt: skip
        """Parse restraints. Raises InputError for text with another syntax, and for a reference without `restrain`.

        restrain : "SELECTION:K" or "SELECTION:K,FLAT", K in kcal/mol/A^2 and FLAT in A: "backbone:10"
        distance : "ATOM|ATOM:K,R0" or "ATOM|ATOM:K,R0,FLAT", K in kcal/mol/A^2, R0 and FLAT in A
        torsion : "A|B|C|D:K,ANGLE" or "A|B|C|D:K,ANGLE,FLAT", K in kcal/mol/rad^2, ANGLE and FLAT in degrees
        reference : structure file with reference positions for `restrain`; by default the initial positions
        freeze : selection of atoms that do not move
        """
        given = {"restrain": restrain, "distance": distance, "torsion": torsion}
        for name, value in given.items():
            if is_group(value):
                raise InputError(
                    f"`{name}` accepts selections with numbers; for atoms by index use `terms` with "
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
        """Return a copy with the reference structure read."""
        if not isinstance(self.reference, Path):
            return self
        return replace(self, reference=Reference.of(self.reference, reads))

    def settings(self) -> dict[str, str]:
        """Return the restraints as text that identifies a journal; a reference is identified by its content."""
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
        """Function that returns Minimizer options for a structure; None if there are no restraints or frozen atoms."""
        return self.options if self.restraints or self.freeze is not None else None

    @property
    def to_starts(self) -> bool:
        """Whether each conformation is restrained to its initial positions."""
        return self.reference is None and any(of.keyword == "restrain" for of in self.restraints)

    def options(self, atoms: Atoms) -> dict[str, Any]:
        """Return `terms` and `frozen` for a molecule. Raises InputError if the selections do not fit it."""
        assert not isinstance(self.reference, Path)
        terms = terms_of(self.restraints, self.reference, atoms)
        return {"terms": terms, "frozen": None if self.freeze is None else self.freeze.mask(selectable(atoms))}
