"""Reader of PELE control files, `pele.conf`: force field, solvent and structures.

The format is JSON with `//` comments and with placeholders `$WORD`, which programs that prepare runs replace.
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

CONTROL = "pele.conf"  # usual name of the file
DATA_FOLDERS = ("Data", "DataLocal")
FIRST_COMPLEX = "first_complex"  # code of the note that only the first complex is used
_MOST = 1e6
_DEFAULT_IONIC_STRENGTH = 0.15  # mol/L, as in PELE
# GB models of PELE's solvents.
_SOLVENTS = {"OBC": "obc2", "VACUUM": "none", "VDGBNP": "vdgbnp", "SGBNP": "sgbnp"}
# Comments outside of strings, which are removed, like trailing commas below.
_COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
# A placeholder becomes a string if it is a value, after a colon or in an array. Elsewhere, it represents optional
# settings and is removed.
_WORD = re.compile(r'"(?:\\.|[^"\\\n])*"|(?:([:,\[])(\s*))?(\$\{?\w+\}?)(?=\s*([^\s]?))')
_ANY_WORD = re.compile(r"\$\{?(\w+)\}?")
_LAST_COMMA = re.compile(r'("(?:\\.|[^"\\\n])*")|,(?=\s*[}\]])')


@dataclass(frozen=True)
class ControlFile:
    """Settings of a control file that are needed for energies.

    path : the file
    forcefield : name of the force field, such as "OPLS2005"; None if the file does not name one
    data : directories Data and DataLocal next to the file or in the working directory
    structures : files of the first complex; empty if it is a placeholder
    gb : GB model of the solvent, "none" in vacuum
    ionic_strength : mol/L, 0 if the Debye length is not used
    allow_missing_terminals : as in ForceField
    notes : messages about settings that are not supported
    ligand : selection (docs/selection.md) of the perturbed molecule; None if the file does not name its chains
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
    """Read a control file. Raises FormatError, with the line if known, if it is invalid.

    words : values of the placeholders by name
    """
    return settings_for_energies(Path(path), control_json(path, words))


def control_json(path: str | PathLike[str], words: Mapping[str, str] | None = None) -> object:
    """Parse a control file as JSON. Placeholders without a value become texts. Raises FormatError."""
    return _json(Path(path), filled(path, words or {}))


def filled(path: str | PathLike[str], words: Mapping[str, str]) -> str:
    """Read the text of a control file with placeholders replaced by their values."""
    text = "".join(lines(path, "PELE control"))
    return _ANY_WORD.sub(lambda match: words.get(match[1], match[0]), text)


def words_in(value: object) -> tuple[str, ...]:
    """List the distinct placeholders in the texts of a parsed file."""
    return tuple(dict.fromkeys(_each_word(value)))


def _each_word(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield from (match[0] for match in _ANY_WORD.finditer(value))
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _each_word(each)


def needed_for(found: object, words: Sequence[str], otherwise: str) -> str:
    """Describe what is needed instead of an invalid value, for messages: values for the placeholders if it has any.

    words : placeholders in the file, from `words_in`; otherwise : description for a value without placeholders
    """
    if not isinstance(found, str) or not _ANY_WORD.search(found):
        return otherwise
    which = "this word" if len(words) < 2 else f"each of the words {', '.join(words)}"
    return f"a value in place of {which}, by explore's `set`"


def settings_for_energies(file: Path, whole: object) -> ControlFile:
    """Extract the settings for energies from a parsed control file. Raises FormatError."""
    blocks = _Blocks(file, words_in(whole))
    start = blocks.block(whole, "Initialization", required=True)
    solvent = blocks.block(start, "Solvent")
    kind = blocks.text(solvent, "solventType", "SGBNP" if solvent else "VACUUM")
    if _ANY_WORD.search(kind):
        raise blocks.fault("solventType", kind, f"one of {', '.join(_SOLVENTS)}")
    kind = kind.upper()
    if kind not in _SOLVENTS:
        raise FormatError(f"{file}: the solventType {quoted(kind)} is not one of {', '.join(_SOLVENTS)}")
    gb = _SOLVENTS[kind]
    strength = blocks.number(solvent, "ionicStrength", _DEFAULT_IONIC_STRENGTH)
    penalty = f"{file}: the penalty of ion pairs in SGBNP, whose table is not public, is left out"
    notes = [penalty] if gb == "sgbnp" else []
    paths = list(_complex(blocks, start))
    several = start.get("MultipleComplex")
    if isinstance(several, list) and len(several) > 1 and paths:
        taken = f"{file}: names {len(several)} complexes; the first, {printable(paths[0][:80])}, was used"
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
        raise FormatError(
            f"{file}:{error.lineno}: the control file is damaged ({error.msg}); correct the line"
        ) from None
    except (RecursionError, ValueError):  # deeply nested brackets; numbers with thousands of digits
        raise FormatError(f"{file}: the control file is damaged; write it again") from None
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
    """Return a selection of the chains in selectionToPerturb of the first command."""
    commands = whole.get("commands") if isinstance(whole, dict) else None
    first = commands[0] if isinstance(commands, list) and commands else None
    names = blocks.block(blocks.block(first, "selectionToPerturb"), "chains").get("names")
    chains = [name for name in names if isinstance(name, str) and name.isalnum()] if isinstance(names, list) else []
    return f"chain {' '.join(chains)}" if chains else None


def beside(file: Path, name: Path) -> Path:
    """Resolve a path in a control file relative to the working directory, as in PELE, or to the directory of the file.

    The latter is used only if the path exists there and not in the working directory.
    """
    beside = file.parent / name
    return beside if not os.path.exists(name) and os.path.exists(beside) else name  # any length


@dataclass(frozen=True)
class _Blocks:
    """Access to settings with type checks. words : placeholders in the file"""

    file: Path
    words: tuple[str, ...] = ()

    def block(self, of: object, name: str, required: bool = False) -> dict[str, object]:
        """Return a block by name, empty if there is none."""
        found = of.get(name) if isinstance(of, dict) else None
        if isinstance(found, dict):
            return found
        if required:
            raise FormatError(f"{self.file}: has no block {name}, so it is not a control file of PELE")
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
        """Create the error about an invalid value."""
        what = needed_for(found, self.words, needed)
        return FormatError(f"{self.file}: {name} is {quoted(found)}; expected {what}")
