"""PELE's control file, `pele.conf`: the force field, the solvent and the structure that it names.

It is JSON with `//` comments, and with `$WORDS` where a program that prepares runs fills something in.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from ..common.errors import FormatError, printable
from ..common.notes import Note
from ..common.textfiles import lines, quoted

CONTROL = "pele.conf"  # the usual name of the file
DATA_FOLDERS = ("Data", "DataLocal")
FIRST_COMPLEX = "first_complex"  # code of the note that other complexes of the file were not taken
_MOST = 1e6
_DEFAULT_IONIC_STRENGTH = 0.15  # mol/L, PELE's own
# Solvents of PELE by their GB model here.
_SOLVENTS = {"OBC": "obc2", "VACUUM": "none", "VDGBNP": "vdgbnp", "SGBNP": "sgbnp"}
# Strings are left as they are, comments go. A comma before a bracket is not JSON.
_COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
# A word with $ becomes a string where a value may stand: behind a colon, or as an element of an array. Elsewhere it
# stands for settings that a program fills in, or for none, and goes.
_WORD = re.compile(r'"(?:\\.|[^"\\\n])*"|(?:([:,\[])(\s*))?(\$\{?\w+\}?)(?=\s*([^\s]?))')
_ANY_WORD = re.compile(r"\$\{?(\w+)\}?")
_LAST_COMMA = re.compile(r'("(?:\\.|[^"\\\n])*")|,(?=\s*[}\]])')


@dataclass(frozen=True)
class ControlFile:
    """Settings of a control file as far as energies need them.

    path : the file
    forcefield : name of the force field, "OPLS2005"; None where the file names none
    data : folders Data and DataLocal beside the file or in the working directory
    structures : the first complex of the file; empty if it is written as a `$WORD`
    gb : the GB model of the solvent, "none" in vacuum
    ionic_strength : mol/L, 0 where the Debye length is not used
    allow_missing_terminals : of ForceField
    notes : messages about settings that could not be followed
    ligand : a selection (docs/selection.md) of the part that is perturbed; None where no chains are named
    """

    path: Path
    forcefield: str | None
    data: tuple[Path, ...]
    structures: tuple[Path, ...]
    gb: str
    ionic_strength: float
    allow_missing_terminals: bool
    notes: tuple[str, ...] = ()
    ligand: str | None = None


def read_control(path: str | PathLike[str], words: Mapping[str, str] | None = None) -> ControlFile:
    """Read a control file. Raises FormatError, with the line where it is known, for all that is not one.

    words : texts in place of `$WORDS`, by their names
    """
    return settings_for_energies(Path(path), control_json(path, words))


def control_json(path: str | PathLike[str], words: Mapping[str, str] | None = None) -> object:
    """Read what a control file holds as JSON; `$WORDS` that are not given become texts. Raises FormatError."""
    return _json(Path(path), filled(path, words or {}))


def filled(path: str | PathLike[str], words: Mapping[str, str]) -> str:
    """Read the text of a control file with texts in place of `$WORDS`, by their names."""
    text = "".join(lines(path, "PELE control"))
    return _ANY_WORD.sub(lambda match: words.get(match[1], match[0]), text)


def words_in(value: object) -> tuple[str, ...]:
    """List the `$WORDS` in the texts of what a file holds, each once."""
    return tuple(dict.fromkeys(_each_word(value)))


def _each_word(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield from (match[0] for match in _ANY_WORD.finditer(value))
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _each_word(each)


def needed_for(found: object, words: Sequence[str], otherwise: str) -> str:
    """Say what is needed instead of a value that is refused; for a `$WORD` these are values of all words of the file.

    words : of the file, as in `words_in`; otherwise : what is needed instead of a value without a word
    """
    if not isinstance(found, str) or not _ANY_WORD.search(found):
        return otherwise
    which = "this word" if len(words) < 2 else f"each of the words {', '.join(words)}"
    return f"a value in place of {which}, by explore's `set`,"


def settings_for_energies(file: Path, whole: object) -> ControlFile:
    """Take what energies need from the JSON of a control file. Raises FormatError."""
    blocks = _Blocks(file, words_in(whole))
    start = blocks.block(whole, "Initialization", required=True)
    solvent = blocks.block(start, "Solvent")
    kind = blocks.text(solvent, "solventType", "SGBNP" if solvent else "VACUUM")
    if _ANY_WORD.search(kind):
        raise blocks.fault("solventType", kind, f"one of {', '.join(_SOLVENTS)}")
    kind = kind.upper()
    if kind not in _SOLVENTS:
        raise FormatError(f"{file}: the solventType {quoted(kind)} is none of {', '.join(_SOLVENTS)}")
    gb = _SOLVENTS[kind]
    strength = blocks.number(solvent, "ionicStrength", _DEFAULT_IONIC_STRENGTH)
    penalty = f"{file}: the penalty of ion pairs in SGBNP, whose table PELE keeps to itself, is left out"
    notes = [penalty] if gb == "sgbnp" else []
    paths = list(_complex(blocks, start))
    several = start.get("MultipleComplex")
    if isinstance(several, list) and len(several) > 1 and paths:
        taken = f"{file}: names {len(several)} complexes; the first, {printable(paths[0][:80])}, was taken"
        notes.append(Note(taken, code=FIRST_COMPLEX))
    return ControlFile(
        path=file,
        forcefield=blocks.text(start, "ForceField", "") or None,
        data=tuple(folder for name in DATA_FOLDERS if os.path.isdir(folder := beside(file, Path(name)))),
        structures=tuple(beside(file, Path(name)) for name in paths if "$" not in name),
        gb=gb,
        ionic_strength=strength if solvent and blocks.flag(solvent, "useDebyeLength", True) else 0.0,
        allow_missing_terminals=blocks.flag(start, "allowMissingTerminals", False),
        notes=tuple(notes),
        ligand=_ligand(blocks, whole),
    )


def _json(file: Path, text: str) -> object:
    def without_comment(match: re.Match[str]) -> str:
        token = match[0]
        return "\n" * token.count("\n") if token.startswith("/") else token

    def with_word(match: re.Match[str]) -> str:
        before, space, word, after = match.groups("")
        if not word:
            return match[0]
        is_value = before == ":" or (before in ("[", ",") and after in ("]", ","))
        return f'{before}{space}"{word}"' if is_value else before + space

    plain = _WORD.sub(with_word, _COMMENT.sub(without_comment, text))
    plain = _LAST_COMMA.sub(lambda match: match[1] or "", plain)
    try:
        found: object = json.loads(plain)
    except json.JSONDecodeError as error:
        raise FormatError(f"{file}:{error.lineno}: the control file is broken ({error.msg}); mend the line") from None
    except (RecursionError, ValueError):  # brackets in brackets; numbers of thousands of digits
        raise FormatError(f"{file}: the control file is broken; write it again") from None
    return found


def _complex(blocks: _Blocks, start: dict[str, object]) -> Iterator[str]:
    """Yield the paths of the first complex."""
    several = start.get("MultipleComplex")
    first = several[0] if isinstance(several, list) and several else start.get("Complex")
    files = first.get("files") if isinstance(first, dict) else None
    for each in files if isinstance(files, list) else []:
        if isinstance(each, dict):
            yield blocks.text(each, "path", "$")


def _ligand(blocks: _Blocks, whole: object) -> str | None:
    """Read the chains of the first command's selectionToPerturb."""
    commands = whole.get("commands") if isinstance(whole, dict) else None
    first = commands[0] if isinstance(commands, list) and commands else None
    names = blocks.block(blocks.block(first, "selectionToPerturb"), "chains").get("names")
    chains = [name for name in names if isinstance(name, str) and name.isalnum()] if isinstance(names, list) else []
    return f"chain {' '.join(chains)}" if chains else None


def beside(file: Path, name: Path) -> Path:
    """Resolve a path of the file.

    It is taken from the working directory, as in PELE, or from the file's folder if it is there.
    """
    beside = file.parent / name
    return beside if not os.path.exists(name) and os.path.exists(beside) else name  # unlike Path's, of any length


@dataclass(frozen=True)
class _Blocks:
    """Settings of a file, each of its type or FormatError. words : `$WORDS` that the file has"""

    file: Path
    words: tuple[str, ...] = ()

    def block(self, of: object, name: str, required: bool = False) -> dict[str, object]:
        """Return the block of that name, empty if there is none."""
        found = of.get(name) if isinstance(of, dict) else None
        if isinstance(found, dict):
            return found
        if required:
            raise FormatError(f"{self.file}: there is no block {name}, so it is no control file of PELE")
        return {}

    def text(self, of: dict[str, object], name: str, default: str) -> str:
        found = of.get(name, default)
        if not isinstance(found, str):
            raise self.fault(name, found, "a text")
        return found

    def number(self, of: dict[str, object], name: str, default: float) -> float:
        found = of.get(name, default)
        if isinstance(found, bool) or not isinstance(found, int | float) or not abs(found) < _MOST:
            raise self.fault(name, found, "a number")
        return float(found)

    def flag(self, of: dict[str, object], name: str, default: bool) -> bool:
        found = of.get(name, default)
        if not isinstance(found, bool):
            raise self.fault(name, found, "true or false")
        return found

    def fault(self, name: str, found: object, needed: str) -> FormatError:
        """Make the error about a value."""
        what = needed_for(found, self.words, needed)
        return FormatError(f"{self.file}: {name} is {quoted(found)}; {what} is needed")
