"""Conditions on metrics and trackers: `rmsd < 1.2 and not energy > 3`, `currentStep _every_ 5 _offset_ 2`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ...common.errors import FormatError
from ...common.textfiles import quoted

Values = Mapping[str, float]
Test = Callable[[Values], bool]

_TOKEN = re.compile(r"\s*(<=|>=|<|>|=|\(|\)|[^\s<>=()]+)")
_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq,
}  # fmt: skip
EVERY, OFFSET = "_every_", "_offset_"
_WORDS = ("and", "or", "not", EVERY, OFFSET)


@dataclass(frozen=True)
class Condition:
    """Condition of a control file.

    text : text in the file; sensors : names of the metrics and trackers that it uses
    """

    text: str
    sensors: tuple[str, ...]
    _test: Test

    def __call__(self, values: Values) -> bool:
        """Return whether the condition is true for the values of its sensors."""
        return self._test(values)


def parse_condition(text: str, words: str) -> Condition:
    """Parse a condition. words : its place in the file, for messages. Raises FormatError for invalid text."""
    return _Parser(text, words).whole()


def any_holds(conditions: Iterable[Condition], values: Values) -> bool:
    """Return whether any of the conditions is true."""
    return any(condition(values) for condition in conditions)


class _Parser:
    """Recursive-descent parser; `not` binds more tightly than `and`, and `and` more tightly than `or`."""

    def __init__(self, text: str, words: str) -> None:
        self._text, self._words = text, words
        self._tokens = _TOKEN.findall(text.strip())
        self._sensors: dict[str, None] = {}

    def whole(self) -> Condition:
        test = self._or()
        if self._tokens:
            raise self._fault(f"{quoted(self._tokens[0])} is not expected here")
        return Condition(self._text, tuple(self._sensors), test)

    def _or(self) -> Test:
        tests = [self._and()]
        while self._next("or"):
            tests.append(self._and())
        return tests[0] if len(tests) == 1 else lambda values: any(test(values) for test in tests)

    def _and(self) -> Test:
        tests = [self._not()]
        while self._next("and"):
            tests.append(self._not())
        return tests[0] if len(tests) == 1 else lambda values: all(test(values) for test in tests)

    def _not(self) -> Test:
        if self._next("not"):
            test = self._not()
            return lambda values: not test(values)
        if self._next("("):
            test = self._or()
            if not self._next(")"):
                raise self._fault("a closing parenthesis is missing")
            return test
        return self._comparison()

    def _comparison(self) -> Test:
        name = self._token()
        if name in _WORDS or name in _COMPARISONS:
            raise self._fault(f"expected the name of a metric instead of {quoted(name)}")
        self._sensors[name] = None
        if self._next(EVERY):
            period = self._number()
            offset = self._number() if self._next(OFFSET) else 0.0
            if period < 1 or period != int(period):
                raise self._fault(f"the period {period:g} is not a whole number from 1")
            return lambda values: values[name] >= 1 + offset and (values[name] - 1 - offset) % period == 0
        sign = self._token()
        if sign not in _COMPARISONS:
            raise self._fault(f"expected one of {' '.join(_COMPARISONS)} instead of {quoted(sign)}")
        compare, bound = _COMPARISONS[sign], self._number()
        return lambda values: compare(values[name], bound)

    def _next(self, token: str) -> bool:
        """Consume the next token if it equals `token`; return whether it does."""
        is_it = bool(self._tokens) and self._tokens[0] == token
        if is_it:
            self._tokens.pop(0)
        return is_it

    def _token(self) -> str:
        if not self._tokens:
            raise self._fault("it ends too early")
        found: str = self._tokens.pop(0)
        return found

    def _number(self) -> float:
        token = self._token()
        try:
            return float(token)
        except ValueError:
            raise self._fault(f"expected a number instead of {quoted(token)}") from None

    def _fault(self, why: str) -> FormatError:
        return FormatError(f"{self._words}: the condition {quoted(self._text)} cannot be read: {why}")
