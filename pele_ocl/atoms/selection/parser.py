"""Parser of selections: tokens, grammar and error messages.

either  = both ("or" both)*
both    = one ("and" one)*
one     = "not" one | "byres" one | "within" D "of" one | "around" D one | "(" either ")" | "(" mask ")" | word values

masks.py parses AMBER masks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...common.arguments import MOST_INT32
from ...common.errors import InputError, meant
from ..labels import Strings
from .masks import MaskParser, begins_mask
from .nearby import near
from .words import ALONE, NAMED, NUMBERED, Bools, Number, SelectableAtoms, clipped, present, with_names, with_numbers

Choice = Callable[[SelectableAtoms], Bools]

_TOKEN = re.compile(r'"[^"]*"|[()]|[<>=!]=?|[^\s()"<>=!]+|"')
_NUMBERS = re.compile(r"(-?\d{1,9})([A-Za-z]?)(?:[:-](-?\d{1,9})([A-Za-z]?))?")
_LOWEST, _HIGHEST = (-MOST_INT32, ""), (MOST_INT32, "~")  # "~" sorts after all insertion codes
_COMPARED = ("<", "<=", ">", ">=")
_OPERATORS = ("and", "or", "not")
_RELATIONS = ("byres", "within", "around")
# Keywords of PyMOL, VMD, MDTraj and AMBER, and the corresponding ones here.
_ELSEWHERE = {"chainid": "chain", "resi": "resid", "resseq": "resid", "residue": "resid", "resn": "resname",
              "segi": "segid", "elem": "element", "solvent": "water", "hydrogens": "hydrogen"}  # fmt: skip
KNOWN = (*ALONE, *NAMED, *NUMBERED, *_RELATIONS, *_OPERATORS)
_RESIDUE_NAME = re.compile(r"(?=.*[A-Z])[A-Z0-9]{1,4}[+-]?")  # as in structure files
_DEEPEST = 100  # levels of parentheses

_CALLED = {"resname": "no residue is named"}


@dataclass(frozen=True)
class Token:
    """A word, quoted name, operator or parenthesis, and its position in the text, from 1."""

    text: str
    place: int

    @property
    def is_quoted(self) -> bool:
        return self.text.startswith('"')

    @property
    def word(self) -> str:
        """The word, with operators in lower case."""
        return self.text.lower() if self.text.lower() in _OPERATORS else self.text

    @property
    def value(self) -> str:
        """The name without quotes."""
        return self.text[1:-1] if self.is_quoted else self.text


class Parser:
    """Parser of a selection; `choice` is the resulting function.

    empty : messages about words that matched nothing; unknown : those about unknown names
    """

    def __init__(self, text: str) -> None:
        """Raise InputError for an invalid selection, with the position of the error."""
        self._text = text
        self._tokens = [Token(found[0], found.start() + 1) for found in _TOKEN.finditer(text)]
        self._at = self._depth = 0
        self._of_masks = set[str]()
        self.empty: list[str] = []
        self.unknown: list[str] = []
        if not self._tokens:
            raise InputError("the selection is empty; write 'all', or an expression such as 'protein'")
        self.choice = self._either()
        if self._at < len(self._tokens):
            raise self._misplaced(self._tokens[self._at])

    @property
    def words(self) -> set[str]:
        """All words in the text."""
        return {token.text for token in self._tokens} | self._of_masks

    def _peek(self) -> str:
        """Return the next word, "" at the end."""
        return self._tokens[self._at].word if self._at < len(self._tokens) else ""

    def _take(self, needed: str) -> Token:
        """Consume the next token. Raises InputError at the end of the text."""
        if self._at == len(self._tokens):
            last = self._tokens[-1]
            raise InputError(
                f"the selection {clipped(self._text)!r} ends after {clipped(last.text)!r}; expected {needed}"
            )
        self._at += 1
        return self._tokens[self._at - 1]

    def _wrong(self, token: Token, why: str) -> InputError:
        return InputError(
            f"the selection {clipped(self._text)!r} has {clipped(token.text)!r} at character {token.place}; {why}"
        )

    def _misplaced(self, token: Token) -> InputError:
        """Create the error for a misplaced token."""
        if token.text == '"':
            return self._wrong(token, "expected a second quotation mark")
        if token.text == ")":
            return self._wrong(token, "there is no matching opening parenthesis")
        if token.word in KNOWN or token.text == "(":
            return self._wrong(token, "expected 'and' or 'or' before it")
        return self._wrong(token, _known(token.text))

    def _either(self) -> Choice:
        parts = [self._both()]
        while self._peek() == "or":
            self._at += 1
            parts.append(self._both())
        return parts[0] if len(parts) == 1 else lambda atoms: np.logical_or.reduce([part(atoms) for part in parts])

    def _both(self) -> Choice:
        parts = [self._one()]
        while self._peek() == "and":
            self._at += 1
            parts.append(self._one())
        return parts[0] if len(parts) == 1 else lambda atoms: np.logical_and.reduce([part(atoms) for part in parts])

    def _one(self) -> Choice:
        self._depth += 1
        token = self._take("a word such as protein")
        if self._depth > _DEEPEST:
            raise self._wrong(token, f"selections are at most {_DEEPEST} levels deep")
        found = self._behind(token)
        self._depth -= 1
        return found

    def _behind(self, token: Token) -> Choice:
        """Parse the expression that begins with a token."""
        if token.word == "not":
            negated = self._one()
            return lambda atoms: ~negated(atoms)
        if token.text == "(":
            return self._enclosed(token)
        if token.text in _RELATIONS:
            return self._related(token)
        if token.text in ALONE:
            return self._noted(ALONE[token.text], f"no atom is {token.text}", None)
        if token.text in NAMED:
            return self._named(token)
        if token.text in NUMBERED:
            return self._numbered(token)
        if token.word in ("and", "or", ")"):
            raise self._wrong(token, "expected a word such as protein")
        if token.text[0] in ":@!":
            raise self._wrong(
                token, "next to words, an AMBER mask must be in parentheses, as in 'protein and (:1-50@CA)'"
            )
        raise self._wrong(token, _known(token.text))

    def _enclosed(self, opening: Token) -> Choice:
        inner = self._masked(opening) if begins_mask(self._text[opening.place :]) else self._either()
        if self._peek() != ")":
            if self._at < len(self._tokens):
                raise self._misplaced(self._tokens[self._at])
            raise self._wrong(opening, "the parenthesis is not closed")
        self._at += 1
        return inner

    def _masked(self, opening: Token) -> Choice:
        """Parse an AMBER mask after a parenthesis, up to the closing one."""
        end, depth = opening.place, 1
        while end < len(self._text):
            depth += {"(": 1, ")": -1}.get(self._text[end], 0)
            if not depth:
                break
            end += 1
        mask = MaskParser(self._text[opening.place : end])
        mask.empty, mask.unknown = self.empty, self.unknown
        self._of_masks |= mask.words
        while self._at < len(self._tokens) and self._tokens[self._at].place <= end:
            self._at += 1
        return mask.choice

    def _related(self, token: Token) -> Choice:
        """Parse `byres`, `within` or `around` and the expression that follows."""
        distance = 0.0 if token.text == "byres" else self._distance(self._take("a distance in A"))
        if token.text == "within":
            of = self._take("'of'")
            if of.text != "of":
                raise self._wrong(of, f"expected 'of', as in 'within {distance:g} of protein'")
        is_enclosed = self._peek() == "("
        inner = self._one()
        if self._peek() in ("and", "or") and not is_enclosed:
            why = f"it is not clear what {token.text!r} extends to; put parentheses, as in '{token.text} "
            example = {"byres": "(...)", "within": f"{distance:g} of (...)", "around": f"{distance:g} (...)"}
            raise self._wrong(self._tokens[self._at], f"{why}{example[token.text]}'")
        if token.text == "byres":
            return lambda atoms: whole_residues(atoms, inner(atoms))
        return lambda atoms: _surroundings(atoms, inner(atoms), distance, with_group=token.text == "within")

    def _distance(self, token: Token) -> float:
        try:
            distance = float(token.text)
        except ValueError:
            distance = math.nan
        if not 0 <= distance < math.inf:
            raise self._wrong(token, "expected a distance in A")
        return distance

    def _named(self, token: Token) -> Choice:
        patterns = [self._name(self._take(f"a name for {token.text!r}"), token)]
        while self._at < len(self._tokens) and self._is_name(self._tokens[self._at]):
            patterns.append(self._name(self._take("a name"), token))
        column = NAMED[token.text]
        names = clipped(" ".join(text for text, _ in patterns))
        what = f"{_CALLED.get(token.text, f'no atom is {token.text}')} {names}"
        return self._noted(lambda atoms: with_names(column(atoms), patterns), what, column)

    def _name(self, value: Token, token: Token) -> tuple[str, bool]:
        if value.text in ('"', "(", ")") or value.word in _OPERATORS:
            raise self._wrong(value, f"expected a name for {token.text!r}")
        return value.value, value.is_quoted

    def _is_name(self, token: Token) -> bool:
        return token.text not in ('"', "(", ")") and token.word not in KNOWN

    def _numbered(self, token: Token) -> Choice:
        if self._peek() in _COMPARED:
            ranges = [self._compared(token)]
        else:
            ranges = [self._range(self._take(f"a number for {token.text!r}"), token)]
        while self._at < len(self._tokens) and _NUMBERS.fullmatch(self._peek()):
            ranges.append(self._range(self._take("a number"), token))
        column = NUMBERED[token.text]
        return self._noted(lambda atoms: with_numbers(*column(atoms), ranges), f"no atom has that {token.text}", None)

    def _compared(self, token: Token) -> tuple[Number, Number]:
        """Parse a comparison such as `resid >= 5` into a range."""
        operator = self._take("an operator").text
        value = self._take(f"a number for {token.text!r}")
        if not re.fullmatch(r"-?\d{1,9}", value.text):
            raise self._wrong(value, "expected a number")
        number = int(value.text)
        if operator.startswith("<"):
            return _LOWEST, (number, "~") if operator == "<=" else (number - 1, "~")
        return ((number, "") if operator == ">=" else (number + 1, "")), _HIGHEST

    def _range(self, value: Token, token: Token) -> tuple[Number, Number]:
        found = _NUMBERS.fullmatch(value.text)
        if found is None or (token.text == "index" and found[2]):
            raise self._wrong(value, f"expected a number for {token.text!r}, or a range such as 5:20")
        first, last = (int(found[1]), found[2]), (int(found[3] or found[1]), found[4] or ("" if found[3] else found[2]))
        if self._peek() == "to" and found[3] is None:
            self._at += 1
            end = _NUMBERS.fullmatch(self._take("a number").text)
            if end is None or end[3]:
                raise self._wrong(self._tokens[self._at - 1], "expected a number")
            last = (int(end[1]), end[2])
        if last < first:
            raise self._wrong(value, "a range begins with its lower number")
        return first, last

    def _noted(self, choice: Choice, what: str, column: Callable[[SelectableAtoms], Strings] | None) -> Choice:
        """Wrap a choice so that a message is recorded if it matches nothing."""

        def noted(atoms: SelectableAtoms) -> Bools:
            found = choice(atoms)
            if not found.any():
                there = "" if column is None else f" ({present(atoms, column(atoms))})"
                self.empty.append(f"{what}{there}")
                if column is not None:
                    self.unknown.append(self.empty[-1])
            return found

        return noted


def whole_residues(atoms: SelectableAtoms, chosen: Bools) -> Bools:
    """Extend a mask (n,) to complete residues."""
    number = atoms.names.residue_index
    return np.isin(number, number[chosen])


def _known(word: str) -> str:
    """List the known words, and suggest one for an unknown word."""
    ours = _ELSEWHERE.get(word.lower())
    if not ours and _RESIDUE_NAME.fullmatch(word):
        return f"for residues of that name write 'resname {word}'"
    near = f"; did you mean {ours!r}?" if ours else meant(word, KNOWN)
    return f"known words are {', '.join(KNOWN)}{near}"


def _surroundings(atoms: SelectableAtoms, group: Bools, distance: float, *, with_group: bool) -> Bools:
    if atoms.positions is None:
        raise InputError("the positions of the atoms are not known, so distances cannot be used")
    found = near(atoms.positions, group, distance)
    return found if with_group else found & ~group
