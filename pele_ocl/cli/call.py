"""Description of a command call, stored in output files and JSON: program, command line, parameters."""

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

VACUUM, NO_GB = "vacuum", "none"  # values of --solvent and --gb for no solvent
_PASSING = {"resume": False, "workers": True, "scheduler": True, "shard": True}  # options to omit; whether with a value
_FILES = ("output", "png", "surface_png")  # parameters that may contain {name}
_STRUCTURES = ("path", "paths")  # parameters with the structures


@dataclass(frozen=True)
class Call:
    """Picklable description of a command call.

    words : arguments of the command line
    parameters : by name; constants : values that replace parameters, such as those set by `like`
    given : names of parameters set by the user or a control file; of_file : names of those set by a control file
    outputs : requested output files
    """

    words: tuple[str, ...]
    parameters: Mapping[str, Any]
    constants: Mapping[str, Any] = field(default_factory=dict)
    given: frozenset[str] = field(default=frozenset(), repr=False)
    of_file: frozenset[str] = field(default=frozenset(), repr=False)
    outputs: tuple[Path, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, context: click.Context, outputs: Sequence[Path] = ()) -> Call:
        """Create from a click context. Raises KeywordError for contradictory solvent options."""
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
        """Return the given parameters among `names`, without a control file's solvent settings in vacuum."""
        there = self.parameters
        found = {name: there[name] for name in there if name in names and name in self.given}
        in_vacuum = there.get("solvent") == VACUUM or ("gb" in self.given and there["gb"] == NO_GB)
        idle = self.of_file & {*OF_SOLVENT, "radii"} - {"like", *IN_VACUUM} if in_vacuum else frozenset()
        return {name: value for name, value in found.items() if name not in idle}

    def __call__(self, structure: Path) -> dict[str, str]:
        """Return the facts for the files of a structure."""
        if not isinstance(self.parameters.get("path"), tuple):
            return self.facts()
        name = structure.name.split(".")[0]
        files = {key: self.parameters.get(key) for key in _FILES}
        own = {key: _named(value, name) for key, value in files.items() if value}
        return self.facts_of(structure, **own)

    def facts(self) -> dict[str, str]:
        """Return the program, the command line and the parameters."""
        return self._facts(self._line(), {})

    def facts_of(self, structure: Path, **instead: object) -> dict[str, str]:
        """Return the facts for one of several structures, as in a call with only this structure.

        instead : parameters that replace those of the call
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
        """Return the command line without options that do not affect results. without : further words to omit"""
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
    """Replace {name} in file names by the name of a structure, and convert to JSON types."""
    return json.loads(json.dumps(files, default=str).replace("{name}", name))


@dataclass(frozen=True)
class CommandProvenance(Provenance):
    """Provenance with the command line; files of one structure contain a call with only this structure."""

    call: Call

    def of_file(
        self, source: InputFile, target: Path | None, coordinates: InputFile | Path | None = None
    ) -> dict[str, object]:
        own = self.call.facts() if target is None else self.call.facts_of(source.path, output=target, table=None)
        return origin_of(source, coordinates, own)

    def of_call(self) -> dict[str, object]:
        return dict(self.call.facts())
