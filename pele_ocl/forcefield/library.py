"""Templates that are read when they are first asked for, and templates of several sources as one mapping."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from .links import LINK_FILES
from .template import Kind, Template
from .templates import read_template


class Library(Mapping[str, Template]):
    """Templates by name. A structure needs a fifth of a force field's; the others are not read.

    folder : holds templates and the files of links, and nothing else, in folders
    kind : of templates that do not tell it
    """

    def __init__(self, folder: Path, kind: Kind) -> None:
        files = sorted(file for file in folder.rglob("*") if file.is_file() and file.name not in LINK_FILES)
        self._files = {file.name.upper(): file for file in files}
        self._kind: Kind = kind
        self._read: dict[str, Template] = {}

    def __getitem__(self, name: str) -> Template:
        if name not in self._read:
            template = read_template(self._files[name])
            self._read[name] = template if template.kind else replace(template, kind=self._kind)
        return self._read[name]

    def __contains__(self, name: object) -> bool:
        return name in self._files

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


class Joined(Mapping[str, Template]):
    """The templates of several mappings; the first that has a name gives its template."""

    def __init__(self, *parts: Mapping[str, Template]) -> None:
        self._parts = parts

    def __getitem__(self, name: str) -> Template:
        part = next((part for part in self._parts if name in part), None)
        if part is None:
            raise KeyError(name)
        return part[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name for part in self._parts for name in part))

    def __len__(self) -> int:
        return sum(1 for _ in self)
