"""Library: the templates of a folder, each read when it is first asked for."""

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
