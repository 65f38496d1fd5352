"""Declarations in OpenCL C sources, and those required by a kernel."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .preprocessing import TOKEN

NAME = re.compile(r"[A-Za-z_]\w*")
APART = re.compile(r"(?:\A|(?<=\n))(?:[ \t]*\n)*(?://[^\n]*\n)+[ \t]*\n")


@dataclass(frozen=True)
class Declaration:
    """A function, type, variable or directive at file scope, with the comments before it.

    names : declared names; empty for directives, which are always needed

    Comments followed by a blank line are omitted, because they describe something else, such as macros.
    """

    text: str
    names: frozenset[str]
    uses: frozenset[str]

    @property
    def is_kernel(self) -> bool:
        """Whether this is a kernel."""
        return re.search(r"\b(__)?kernel\b", _code(self.text)) is not None


def declarations(source: str) -> Iterator[Declaration]:
    """Yield the declarations of a source without macros."""
    text, depth = "", 0
    for found in TOKEN.finditer(source):
        token = found[0]
        text += token
        depth += len(re.findall(r"[{(\[]", token)) - len(re.findall(r"[})\]]", token)) if len(token) == 1 else 0
        if depth or not (token in ("}", ";") or "\n" in token):
            continue
        code = _code(text).strip()
        is_body = token == "}" and not re.match(r"typedef|struct|enum|union", code)
        is_body = is_body and not code.partition("{")[0].rstrip().endswith("=")
        if token == ";" or is_body or (code.startswith("#") and "\n" in token):
            yield _declaration(text, code)
            text = ""
    if _code(text).strip():
        yield _declaration(text, _code(text).strip())


def needed(source: str, kernel: str | None) -> str:
    """Return the declarations required by a kernel, in order. kernel : None for all kernels"""
    every = list(declarations(source))
    kept = [(each.is_kernel and kernel in (None, *each.names)) or not each.names for each in every]
    while True:
        used = frozenset().union(*(each.uses for each, keep in zip(every, kept, strict=True) if keep))
        now = [keep or (bool(each.names & used) and not each.is_kernel) for each, keep in zip(every, kept, strict=True)]
        if now == kept:
            break
        kept = now
    return "".join(each.text for each, keep in zip(every, kept, strict=True) if keep)


def _declaration(text: str, code: str) -> Declaration:
    words = frozenset(NAME.findall(code))
    text = APART.sub("\n", text)
    if code.startswith("#"):
        return Declaration(text, frozenset(), words)
    bare = re.sub(r"__attribute__\s*\(\(.*?\)\)\s*\)?", " ", code, flags=re.DOTALL) if "__attribute__" in code else code
    if code.startswith("enum"):
        names = NAME.findall(bare[bare.index("{") :])
    elif code.startswith("typedef"):
        names = NAME.findall(bare)[-1:]
    else:
        head = re.split(r"[({=\[;]", bare, maxsplit=1)[0]
        names = NAME.findall(head)[-1:]
    return Declaration(text, frozenset(names), words - frozenset(names))


def _code(text: str) -> str:
    """Return text without comments."""
    return re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)
