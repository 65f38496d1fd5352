"""The files that a run reads and writes."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import click

from ...errors import FormatError
from ...formats import structure_suffix
from ...formats.conformation_files import require_suffix
from ..command import INPUT, EachOnce, Input, _File
from ..overwriting import refuse_overwriting, same_file

_NAME = "{name}"
_LIKE = {".pdb": ".pdb", ".ent": ".pdb", ".cif": ".cif", ".mmcif": ".cif"}


class Target(_File):
    """The path of a structure, of a folder of them, or a pattern of their names."""

    input: Input = INPUT


TARGET = Target()


def expanded(_: click.Context, __: click.Parameter, given: tuple[Path, ...]) -> tuple[Path, ...]:
    """The paths, each once, with the files in place of a pattern that a shell left as it is."""
    found: dict[Path, None] = {}
    for path in given:
        matches = [] if path.exists() else sorted(glob.glob(str(path), recursive=True))
        found |= dict.fromkeys(map(Path, matches)) if matches else {path: None}
    return tuple(found)


@dataclass(frozen=True)
class Targets:
    """The names of what is written.

    output : as the user gave it; is_folder : whether each input has a file of its own; journal : of results, None
        where there is one structure
    """

    output: Path
    files: dict[Path, Path]
    journal: Path | None

    @classmethod
    def of(cls, output: Path, paths: Sequence[Path], are_many: bool, report: Path | None) -> Targets:
        """The targets of inputs; are_many : whether one input has many conformations, which go to one file.

        Raises FormatError for what cannot be written, or would be written over an input.
        """
        is_folder = _NAME not in output.name and (output.is_dir() or str(output).endswith("/") or not output.suffix)
        if are_many and (is_folder or _NAME in output.name):
            raise FormatError(f"{output}: all conformations go to one file; name it, .pdb, .cif, .h5 or .nc")
        pattern = str(output / _NAME) if is_folder else str(output)
        if len(paths) > 1 and _NAME not in pattern:
            raise FormatError(f"{output}: is one file for {len(paths):,} structures; name a folder, or use {_NAME}")
        folder = output if is_folder else output.parent
        if is_folder or _NAME in pattern:
            folder.mkdir(parents=True, exist_ok=True)
        files = {path: _named(pattern, path, is_folder) for path in paths}
        _refuse(files)
        several = f"{output.name}.jsonl" if are_many else "minimize.jsonl"
        return cls(output, files, folder / several if are_many or len(paths) > 1 else None)

    def are_taken(self, path: Path) -> bool:
        """Whether a path is one of the files."""
        return any(same_file(path, target) for target in self.files.values())


def _named(pattern: str, path: Path, is_folder: bool) -> Path:
    """The file for an input."""
    suffix = structure_suffix(path)
    stem = Path(path.name.removesuffix(".gz")).stem
    target = Path(pattern.replace(_NAME, stem) + (_LIKE.get(suffix, ".pdb") if is_folder else ""))
    require_suffix(target)
    return target


def _refuse(files: dict[Path, Path]) -> None:
    """Raise FormatError for two files of one name, and for inputs that would be written over."""
    context = click.get_current_context()
    inputs = cast(EachOnce, context.command).inputs(context)
    seen: dict[Path, Path] = {}
    for path, target in files.items():
        other = seen.setdefault(target.absolute(), path)
        if other != path:
            raise FormatError(f"{target}: would be written for {other} and for {path}; minimise one of them by itself")
        refuse_overwriting(target, inputs)
