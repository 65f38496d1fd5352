"""Branches of a source of OpenCL C that a constant decides: the one that is taken stays, without its condition."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .preprocessing import TOKEN, value_of

OPENING, CLOSING = "([{", ")]}"
CONSTANT = re.compile(r"[\d\s()!=<>&|+*-]+")
DECIDED = re.compile(r"(?:\A|(?<![=!<>])=|\breturn|[(,[?:])\s*([01])\s*\Z")  # the condition of a whole expression
COMMENTED_LINE = re.compile(r"(?<=\n)[ \t]*//[^\n]*\n[ \t]*\Z")


def folded(source: str) -> str:
    """Return a source without macros, its constant `if` and `?` resolved."""
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
    """Leave a statement out with its `else`, line and comments: the text before it, and where the next one begins."""
    bare = re.sub(r"//[^\n]*|/\*.*?\*/", "", done, flags=re.DOTALL).rstrip()
    if bare.endswith(")"):  # it is the body of a loop or of another condition
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
    """Compute a condition; None if it is no constant."""
    text = "".join(tokens)
    return bool(value_of(text)) if CONSTANT.fullmatch(text) else None


def _code(tokens: Sequence[str], at: int) -> int:
    """Find the next token that is no blank and no comment."""
    while at < len(tokens) and (tokens[at].isspace() or tokens[at][:2] in ("//", "/*")):
        at += 1
    return at


def _closing(tokens: Sequence[str], at: int) -> int:
    """Find the end of what a parenthesis, bracket or brace opens."""
    depth = 0
    for place in range(at, len(tokens)):
        token = tokens[place]
        depth += (token in OPENING) - (token in CLOSING) if len(token) == 1 else 0
        if not depth:
            return place
    raise ValueError(f"{tokens[at]} is never closed")


def _statement_end(tokens: Sequence[str], at: int) -> int:
    """Find where a statement ends."""
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
    """Find the mark that ends an expression; without one, where a larger expression or statement goes on."""
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
