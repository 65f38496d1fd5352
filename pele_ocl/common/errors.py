"""Everything pele-ocl raises on purpose.

Each message is one sentence that names the file, line or atom, and says what to do. The command line prints it
after ``Error:`` and exits with 1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from numbers import Real
from typing import Any

MOST_NEAR = 0.6  # share of equal characters from which a name is suggested for another
INTERRUPTED = 130  # the exit code after Ctrl-C, as shells have it
_LONGEST = 4_000  # characters of a sentence
_LONGEST_VALUE = 80  # of a value in a sentence


def meant(word: str, known: Iterable[str]) -> str:
    """Suggest the known name that is nearest to a word, as the end of a sentence; "" if none is near."""
    from difflib import get_close_matches  # `import pele_ocl` does without it

    near = get_close_matches(word, sorted(known), 1, MOST_NEAR)
    return f"; did you mean {near[0]!r}?" if near else ""


class UnexpectedKeywordError(TypeError):
    """A keyword that a function does not have. known : those that it has beside its signature's"""

    def __init__(self, word: str, known: Iterable[str], function: str = "") -> None:
        self.word, self.known = word, tuple(known)
        of = f"{function}() got an " if function else ""
        super().__init__(f"{of}unexpected keyword argument {word!r}{meant(word, self.known)}")


def printable(text: str) -> str:
    """Write every character that a terminal would obey, or cannot show, as an escape: `\\x1b`.

    Line ends stay. Names from files and paths go through this before they are shown.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def shortened(text: str) -> str:
    """Leave out the middle of a text that is longer than any sentence: it quotes what a damaged file holds."""
    if len(text) <= _LONGEST:
        return text
    return f"{text[: _LONGEST // 2]} ... {len(text) - _LONGEST:,} more characters ... {text[-_LONGEST // 2 :]}"


_KEYWORD = re.compile(r"`([a-z][a-z0-9_]*)(?:=([^`]+))?`")


def worded(text: str, spell: Callable[[str, str | None], str | None]) -> str:
    """Write the keywords of a sentence as a front end spells them.

    text : with keywords in backquotes, also with a value: "choose one with `model`", "give `models='all'`"
    spell : gives the words for a keyword and its value (None where it has none), or None to leave them as they are

        >>> worded("go on with `resume=True`", lambda name, value: f"--{name}")
        'go on with --resume'
    """
    return _KEYWORD.sub(lambda found: spell(found[1], found[2]) or found[0], text)


def described(value: object) -> str:
    """A value for messages: a number or a short text as it is, the type of anything else; of results how to go on."""
    if isinstance(value, bool) or type(value).__name__ == "bool_":  # NumPy's, which is not imported here
        return str(value)
    if isinstance(value, Real):
        try:
            return f"{float(value):g}"
        except OverflowError:
            return "a number beyond all limits"
    if value is None or (isinstance(value, str) and len(value) <= _LONGEST_VALUE):
        return repr(value)
    saved = ", which its `save` writes to a file" if hasattr(value, "save") and hasattr(value, "to_json") else ""
    return f"of type {type(value).__name__}{saved}"


class PeleError(Exception):
    """Base of every error that a user can cause or mend. Its text is safe to show on a terminal, and not endless.

    message : one sentence; keywords of functions are in backquotes, which `worded` replaces
    code : word by which programs tell the error from others; by default that of its class (docs/records.md)
    fields : what the sentence is about, by name: a file, an atom, a number

        >>> InputError("two atoms stand at one place", code="same_place", place="a.pdb").code
        'same_place'
    """

    code = "error"

    def __init__(self, message: object = "", *, code: str | None = None, **fields: Any) -> None:
        super().__init__(message)
        self.fields = fields
        if code is not None:
            self.code = code

    def __str__(self) -> str:
        return shortened(printable(super().__str__()))


class InputError(PeleError):
    """Values that cannot be computed with: wrong shapes, infinite coordinates, coincident atoms."""

    code = "input"


class KeywordError(InputError):
    """Keywords of a function that do not go together, or of which one lacks another."""

    code = "keywords"


def refuse_for_atoms(**values: object) -> None:
    """Raise KeywordError for keywords about files that were given with Atoms; values : by name, false if not given"""
    for name, value in values.items():
        if value:
            raise KeywordError(f"Atoms are given; `{name}` is about files, whose path is then needed")


class FormatError(PeleError):
    """A file that does not hold what its format promises."""

    code = "format"


class ParameterError(PeleError):
    """An atom or residue for which the force field or the solvent table has no parameters."""

    code = "parameter"


class DeviceError(PeleError):
    """No OpenCL device, a choice that matches none, or a device without what the work needs."""

    code = "device"


class DeviceMemoryError(DeviceError):
    """A device without room for the work, or without room beside what else is on it."""

    code = "device_memory"


class KernelBuildError(PeleError):
    """A kernel that the device's compiler refused, whose lines the text has."""

    code = "kernel_build"

    def __str__(self) -> str:
        return printable(Exception.__str__(self))


class DeviceWarning(UserWarning):
    """An OpenCL runtime or a device that answers with an error is left out; the others are used."""


class CacheWarning(UserWarning):
    """Compiled kernels cannot be kept on disk, or were found damaged: they are built anew, and results are the same."""
