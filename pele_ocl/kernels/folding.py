"""Removal of branches with constant conditions from OpenCL C sources."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .preprocessing import TOKEN, value_of

OPENING, CLOSING = "([{", ")]}"
CONSTANT = re.compile(r"[\d\s()!=<>&|+*-]+")
DECIDED = re.compile(r"(?:\A|(?<![=!<>])=|\breturn|[(,[?:])\s*([01])\s*\Z")  # a constant condition
COMMENTED_LINE = re.compile(r"(?<=\n)[ \t]*//[^\n]*\n[ \t]*\Z")


def folded(source: str) -> str:
    """Return a source, without macros, in which constant `if` and `?` are resolved."""
    return _folded(TOKEN.findall(source))


def _folded(tokens: Sequence[str]) -> str:
    done, at = "", 0
    while at < len(tokens):
        token = tokens[at]
        if token == "if":
            first = _code(tokens, at + 1)
            close = _closing(tokens, first)
            value = _constant(tokens[first + 1 : close])
            if value is not None:
                end = last = _statement_end(tokens, close + 1)
                other = _code(tokens, end)
                taken = tokens[close + 1 : end] if value else []
                if other < len(tokens) and tokens[other] == "else":
                    last = _statement_end(tokens, other + 1)
                    taken = taken if value else tokens[other + 1 : last]
                statement = _folded(taken).strip()
                done, at = (done + statement, last) if statement else _left_out(done, tokens, last)
                continue
        if token == "?" and (condition := DECIDED.search(done)):
            colon = _end_of_expression(tokens, at + 1, ":")
            end = _end_of_expression(tokens, colon + 1, "")
            taken = tokens[at + 1 : colon] if condition[1] == "1" else tokens[colon + 1 : end]
            done, at = done[: condition.start(1)] + _folded(taken).strip(), end
            continue
        done, at = done + token, at + 1
    return done


def _left_out(done: str, tokens: Sequence[str], at: int) -> tuple[str, int]:
    """Remove a statement with its `else`, line and comments. Returns the text before, and the index after it."""
    bare = re.sub(r"//[^\n]*|/\*.*?\*/", "", done, flags=re.DOTALL).rstrip()
    if bare.endswith(")"):  # body of a loop or of another condition
        return done + ";", at
    if re.search(r"\belse\Z", bare):
        done = done[: done.rindex("else")]
    line = at
    while line < len(tokens) and "\n" not in tokens[line] and (tokens[line].isspace() or tokens[line][:2] == "//"):
        line += 1
    if line == len(tokens) or "\n" in tokens[line]:
        at = line
    if not re.search(r"\n[ \t]*\Z", done):
        return done.rstrip(" \t"), at
    while COMMENTED_LINE.search(done):
        done = COMMENTED_LINE.sub("", done)
    return done.rstrip(), at


def _constant(tokens: Sequence[str]) -> bool | None:
    """Evaluate a condition; None if it is not constant."""
    text = "".join(tokens)
    return bool(value_of(text)) if CONSTANT.fullmatch(text) else None


def _code(tokens: Sequence[str], at: int) -> int:
    """Return the index of the next token other than spaces and comments."""
    while at < len(tokens) and (tokens[at].isspace() or tokens[at][:2] in ("//", "/*")):
        at += 1
    return at


def _closing(tokens: Sequence[str], at: int) -> int:
    """Return the index of the matching closing parenthesis, bracket or brace."""
    depth = 0
    for place in range(at, len(tokens)):
        token = tokens[place]
        depth += (token in OPENING) - (token in CLOSING) if len(token) == 1 else 0
        if not depth:
            return place
    raise ValueError(f"{tokens[at]} is never closed")


def _statement_end(tokens: Sequence[str], at: int) -> int:
    """Return the index of the end of a statement."""
    at = _code(tokens, at)
    word = tokens[at]
    if word == "{":
        return _closing(tokens, at) + 1
    if word in ("if", "for", "while", "_Pragma"):
        end = _statement_end(tokens, _closing(tokens, _code(tokens, at + 1)) + 1)
        other = _code(tokens, end)
        is_else = word == "if" and other < len(tokens) and tokens[other] == "else"
        return _statement_end(tokens, other + 1) if is_else else end
    if word == "do":
        at = _statement_end(tokens, at + 1)
    return _end_of_expression(tokens, at, ";") + 1


def _end_of_expression(tokens: Sequence[str], at: int, mark: str) -> int:
    """Return the index of the token that ends an expression, or of the end of the enclosing expression or statement."""
    conditions = 0
    while at < len(tokens):
        token = tokens[at]
        if token == mark and not conditions:
            return at
        if not mark and token in (";", ",", ")", "]", "}", ":") and not (token == ":" and conditions):
            return at
        conditions += (token == "?") - (token == ":")
        at = _closing(tokens, at) + 1 if len(token) == 1 and token in OPENING else at + 1
    return at
