"""The call of a command as its files and JSON objects name it: the program, the command line, the parameters."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from ..gb_models.solvent_model import IN_VACUUM, OF_SOLVENT, solvent_of
from ..jobs.provenance import Provenance, origin_of

if TYPE_CHECKING:
    from ..common.inputfile import InputFile

VACUUM, NO_GB = "vacuum", "none"  # of --solvent and of --gb: no solvent
_PASSING = {"resume": False, "workers": True, "scheduler": True, "shard": True}  # and whether a value follows
_FILES = ("output", "png", "surface_png")  # parameters that may have {name} in them
_STRUCTURES = ("path", "paths")  # parameters that name the structures


@dataclass(frozen=True)
class Call:
    """Call of a command, which pickles.

    words : of the command line behind the program's name
    parameters : by name; constants : values that are used in place of some of them, those of `like` among them
    given : names of the parameters that the user or a control file gave; of_file : of those that a control file gave
    outputs : files that the call was asked to write
    """

    words: tuple[str, ...]
    parameters: Mapping[str, Any]
    constants: Mapping[str, Any] = field(default_factory=dict)
    given: frozenset[str] = field(default=frozenset(), repr=False)
    of_file: frozenset[str] = field(default=frozenset(), repr=False)
    outputs: tuple[Path, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, context: click.Context, outputs: Sequence[Path] = ()) -> Call:
        """Describe the call of a context of click. Raises KeywordError for a solvent that contradicts itself."""
        sources = {name: context.get_parameter_source(name) for name in context.params}
        given = frozenset(name for name, of in sources.items() if of not in (None, ParameterSource.DEFAULT))
        of_file = frozenset(name for name, of in sources.items() if of == ParameterSource.DEFAULT_MAP)
        call = cls(tuple(sys.argv[1:]), dict(context.params), given=given, of_file=of_file, outputs=tuple(outputs))
        if "gb" not in context.params:
            return call
        words = call.take(OF_SOLVENT)
        vacuum = call.parameters.get("solvent") == VACUUM
        solvent = solvent_of(words | ({"gb": NO_GB} if vacuum else {}), "solvent='vacuum'" if vacuum else "gb='none'")
        return replace(call, constants=solvent.settings)

    def take(self, names: Collection[str]) -> dict[str, Any]:
        """Take those of some parameters that were given; without a solvent none about it that a file gave."""
        there = self.parameters
        found = {name: there[name] for name in there if name in names and name in self.given}
        in_vacuum = there.get("solvent") == VACUUM or ("gb" in self.given and there["gb"] == NO_GB)
        idle = self.of_file & {*OF_SOLVENT, "radii"} - {"like", *IN_VACUUM} if in_vacuum else frozenset()
        return {name: value for name, value in found.items() if name not in idle}

    def __call__(self, structure: Path) -> dict[str, str]:
        """Return the facts of the files of a structure."""
        if not isinstance(self.parameters.get("path"), tuple):
            return self.facts()
        name = structure.name.split(".")[0]
        files = {key: self.parameters.get(key) for key in _FILES}
        own = {key: _named(value, name) for key, value in files.items() if value}
        return self.facts_of(structure, **own)

    def facts(self) -> dict[str, str]:
        """Return the program, its command and its parameters."""
        return self._facts(self._line(), {})

    def facts_of(self, structure: Path, **instead: object) -> dict[str, str]:
        """Return the facts of one of several structures, as if it were the only one.

        instead : parameters in place of the call's own
        """
        line = f"{self._line(set(map(str, self._structures)))} {shlex.join([str(structure)])}"
        own = {"paths": (structure,), "path": structure, **instead}
        return self._facts(line, own)

    @property
    def _structures(self) -> tuple[Any, ...]:
        named = next((self.parameters[name] for name in reversed(_STRUCTURES) if name in self.parameters), ())
        return named if isinstance(named, tuple) else (named,)

    def _facts(self, line: str, own: Mapping[str, Any]) -> dict[str, str]:
        from ..formats import JsonText
        from ..jobs.texts import software

        used = {**self.parameters, **self.constants, **own}
        lasting = {name: used[name] for name in self.parameters if name not in _PASSING}
        return {"software": software(), "command": line, "parameters": JsonText(json.dumps(lasting, default=str))}

    def _line(self, without: Collection[str] = ()) -> str:
        """Write the command line, less what its results do not depend on; without : further words to leave out"""
        words, kept = iter(self.words), ["pele-ocl"]
        for word in words:
            name, is_joined, _ = word.removeprefix("--").partition("=")
            if word.startswith("--") and name in _PASSING:
                if _PASSING[name] and not is_joined:
                    next(words, None)
            elif word not in without:
                kept.append(word)
        return shlex.join(kept)


def _named(files: object, name: str) -> object:
    """Put the name of a structure into the names of files, as JSON writes it."""
    return json.loads(json.dumps(files, default=str).replace("{name}", name))


@dataclass(frozen=True)
class CommandProvenance(Provenance):
    """Facts about the command line, which files of one structure name as if it were the only one."""

    call: Call

    def of_file(
        self, source: InputFile, target: Path | None, coordinates: InputFile | Path | None = None
    ) -> dict[str, object]:
        own = self.call.facts() if target is None else self.call.facts_of(source.path, output=target, table=None)
        return origin_of(source, coordinates, own)

    def of_call(self) -> dict[str, object]:
        return dict(self.call.facts())
