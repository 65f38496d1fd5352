"""Parser of AMBER masks such as `:1-50@CA`; docs/selection.md describes the supported syntax.

either  = both ("|" both)*
both    = one ("&" one)*
one     = ("!" one | "(" either ")" | residues [atoms] | atoms | "*") (("<" | ">") (":" | "@") D)*
residues = ":" list      numbers and ranges from 1 in the order of the file, or names
atoms   = "@" list | "@/" elements | "@%" types
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from ...common.errors import InputError
from ..labels import Strings
from .nearby import near
from .words import Bools, SelectableAtoms, clipped, present, with_names

Choice = Callable[[SelectableAtoms], Bools]

_BEGINS = re.compile(r"[\s(!]*([:@]|\*\s*($|[&|)]))")  # cannot begin a selection in words
_OPERATOR = re.compile(r"[\s)](and|or)[\s(]|\bnot[\s(]", re.IGNORECASE)
_ITEM = re.compile(r"[^\s,&|!():@<>]+")
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
_NUMBER = re.compile(r"\d+(\.\d*)?|\.\d+")
_DEEPEST = 100  # levels of parentheses


def begins_mask(text: str) -> bool:
    """Return whether a text begins like a mask: with `:`, `@` or a lone `*`, after any parentheses and `!`."""
    return _BEGINS.match(text) is not None


def is_mask(text: str) -> bool:
    """Return whether a text is a mask, not a selection in words with masks in parentheses."""
    return begins_mask(text) and _OPERATOR.search(text) is None


class MaskParser:
    """Parser of a mask; `choice` is the resulting function.

    words : "type" or "name" if the mask needs atom types or labels
    empty : messages about parts that matched nothing; unknown : those about unknown names
    """

    def __init__(self, text: str) -> None:
        """Raise InputError for an invalid mask, with the position of the error."""
        self._text, self._at, self._depth = text, 0, 0
        self.words: set[str] = set()
        self.empty: list[str] = []
        self.unknown: list[str] = []
        self.choice = self._either()
        if self._next():
            raise self._wrong("expected & or | before it" if self._next() in ":@!(*" else "it is not part of a mask")

    def _next(self) -> str:
        """Skip blanks and return the next character, "" at the end."""
        while self._at < len(self._text) and self._text[self._at].isspace():
            self._at += 1
        return self._text[self._at : self._at + 1]

    def _wrong(self, why: str) -> InputError:
        found = self._next()
        where = f"has {found!r} at character {self._at + 1}" if found else "ends too early"
        return InputError(f"the mask {clipped(self._text)!r} {where}; {why}")

    def _either(self) -> Choice:
        parts = self._joined("|", self._both)
        return parts[0] if len(parts) == 1 else lambda atoms: np.logical_or.reduce([part(atoms) for part in parts])

    def _both(self) -> Choice:
        parts = self._joined("&", self._one)
        return parts[0] if len(parts) == 1 else lambda atoms: np.logical_and.reduce([part(atoms) for part in parts])

    def _joined(self, operator: str, part: Callable[[], Choice]) -> list[Choice]:
        parts = [part()]
        while self._next() == operator:
            self._at += 1
            parts.append(part())
        return parts

    def _one(self) -> Choice:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._wrong(f"masks are at most {_DEEPEST} levels deep")
        found = self._behind(self._next())
        while self._next() in ("<", ">") and self._next():
            found = self._distant(found)
        self._depth -= 1
        return found

    def _behind(self, character: str) -> Choice:
        """Parse the expression that begins with a character."""
        if character == "!":
            self._at += 1
            negated = self._one()
            return lambda atoms: ~negated(atoms)
        if character == "(":
            self._at += 1
            inner = self._either()
            if self._next() != ")":
                raise self._wrong("a parenthesis is not closed")
            self._at += 1
            return inner
        if character == "*":
            self._at += 1
            return lambda atoms: np.ones(atoms.n_atoms, np.bool_)
        if character == ":":
            residues = self._list("residue")
            if self._next() != "@":
                return residues
            atoms_of = self._list("atom")
            return lambda atoms: residues(atoms) & atoms_of(atoms)
        if character == "@":
            return self._list("atom")
        raise self._wrong("expected a mask such as :1-50, :LIG or @CA")

    def _list(self, kind: str) -> Choice:
        """Parse `:` or `@` and the list that follows."""
        start = self._at
        self._at += 1
        column, what = (_residue_names, "no residue is named") if kind == "residue" else (_names, "no atom is named")
        lead = self._text[self._at : self._at + 1]
        if kind == "atom" and lead in ("/", "%"):
            self._at += 1
            column, what = (_elements, "no atom is element") if lead == "/" else (_types, "no atom has type")
        ranges, names = list[tuple[int, int]](), list[str]()
        while True:
            self._next()
            item = _ITEM.match(self._text, self._at)
            if item is None:
                raise self._wrong("expected a number, a range such as 1-50 or a name")
            number = _RANGE.fullmatch(item[0]) if lead not in ("/", "%") else None
            if number is None:
                names.append(item[0].replace("=", "*"))
            else:
                first, last = int(number[1]), int(number[2] or number[1])
                if not 1 <= first <= last:
                    raise self._wrong("numbers count from 1, and a range begins with its lower number")
                ranges.append((first, last))
            self._at = item.end()
            if self._next() != ",":
                break
            self._at += 1
        self.words.add("type" if lead == "%" else "name")
        said = self._text[start : self._at].strip()

        def chosen(atoms: SelectableAtoms) -> Bools:
            found = np.zeros(atoms.n_atoms, np.bool_)
            if ranges:
                index = atoms.names.residue_index if kind == "residue" else np.arange(atoms.n_atoms)
                for first, last in ranges:
                    found |= (index >= first - 1) & (index <= last - 1)
            if names:
                found |= with_names(column(atoms), [(name, False) for name in names])
            if not found.any():
                there = f" ({present(atoms, column(atoms))})" if names else ""
                self.empty.append(
                    f"{what} {clipped(', '.join(names))}{there}"
                    if names
                    else f"nothing has a number of {clipped(said)}; masks count {kind}s 1 to {index.max() + 1:,}"
                )
                if names:
                    self.unknown.append(self.empty[-1])
            return found

        return chosen

    def _distant(self, group: Choice) -> Choice:
        """Parse a distance criterion after an expression: within (`<@`, `<:`) or beyond (`>@`, `>:`)."""
        is_within = self._next() == "<"
        self._at += 1
        kind = self._next()
        if kind not in (":", "@") or not kind:
            raise self._wrong(
                f"{'<' if is_within else '>'}: is for residues and {'<' if is_within else '>'}@ for atoms"
            )
        self._at += 1
        self._next()
        number = _NUMBER.match(self._text, self._at)
        if number is None:
            raise self._wrong("expected a distance in A")
        self._at, distance = number.end(), float(number[0])

        def chosen(atoms: SelectableAtoms) -> Bools:
            if atoms.positions is None:
                raise InputError("the positions of the atoms are not known, so distances cannot be used")
            found = near(atoms.positions, group(atoms), distance)
            if kind == ":":
                index = atoms.names.residue_index
                found = np.isin(index, index[found])
            return found if is_within else ~found

        return chosen


def _residue_names(atoms: SelectableAtoms) -> Strings:
    return atoms.names.residue_names


def _names(atoms: SelectableAtoms) -> Strings:
    return atoms.names.names


def _elements(atoms: SelectableAtoms) -> Strings:
    return atoms.names.elements


def _types(atoms: SelectableAtoms) -> Strings:
    if atoms.types is None:
        raise InputError("the atom types are not known, so @% cannot be used; select elements with @/")
    return atoms.types
