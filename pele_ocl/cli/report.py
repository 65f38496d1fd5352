"""Lines and figures that the outputs of all commands share."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from ..atoms import Atoms
from ..common.inputfile import InputFile
from ..formats import JsonText
from ..formats.maps.facts import map_facts as map_facts
from ..gb_models.solvent_model import SolventModel
from ..jobs import texts
from ..jobs.facts import area_facts as area_facts
from ..jobs.facts import composition_as_json as composition_as_json
from ..jobs.facts import settings as settings
from ..jobs.provenance import origin_of
from ..jobs.texts import Computation as Computation
from ..jobs.texts import area_lines as area_lines
from ..jobs.texts import choice_line as choice_line
from ..jobs.texts import columns_of as columns_of
from ..jobs.texts import counted as counted
from ..jobs.texts import duration as duration
from ..jobs.texts import energy_lines as energy_lines
from ..jobs.texts import label_columns as label_columns
from ..jobs.texts import model_line as model_line
from ..jobs.texts import software as software
from ..reading import MoleculeRead
from .clock import elapsed
from .command import CONSTANTS, current

_PASSING = {"--resume": False, "--workers": True, "--scheduler": True, "--shard": True}  # and whether a value follows


def binary_size(n_bytes: float) -> str:
    """Bytes for reading: `24.6 KiB`, `1.5 GiB`."""
    unit, power = next((u, p) for u, p in (("GiB", 30), ("MiB", 20), ("KiB", 10)) if n_bytes >= 2**p or p == 10)
    return f"{n_bytes / 2**power:,.1f} {unit}"


def headline(source: InputFile | None, atoms: Atoms) -> str:
    """Describe the molecule in one line."""
    return texts.headline("" if source is None else source.path.name, atoms)


def ending(how: Computation, kernel_seconds: float) -> str:
    """Tell how a result was computed and how long the command took, from its start to this line."""
    return texts.ending(how, kernel_seconds, elapsed())


def provenance(
    read: InputFile | MoleculeRead, call: Mapping[str, str] | None = None, coordinates: InputFile | Path | None = None
) -> dict[str, Any]:
    """Tell a file's provenance: the input and the SHA-256 of what was read, program, command, parameters.

    read : the molecule, or its file; call : facts of the call, by default of the one that is under way
    coordinates : file with the positions of a topology, by default the molecule's
    """
    facts = call_facts() if call is None else call
    if isinstance(read, MoleculeRead):
        return origin_of(read.source, read.coordinates, facts)
    return origin_of(read, coordinates, facts)


@dataclass(frozen=True)
class Call:
    """Command that is under way, for what workers write: of one structure, as if it were the only one.

    line : the command line without the structures; parameters : by name, as JSON has them
    """

    line: str
    parameters: Mapping[str, Any]

    @classmethod
    def now(cls) -> Call:
        """Take the call that is under way."""
        given = parameters_used(current())
        name = "paths" if "paths" in given else "path"
        structures = given[name] if isinstance(given[name], tuple) else (given[name],)
        given[name] = None  # there may be thousands
        return cls(command_line(without=set(map(str, structures))), json.loads(json.dumps(given, default=str)))

    def facts(self, path: Path, **instead: object) -> dict[str, str]:
        """Give the program, command and parameters of one structure; instead : parameters in place of its own"""
        own = {"paths": (path,), "path": path, **instead}
        lasting = {name: own.get(name, value) for name, value in self.parameters.items() if f"--{name}" not in _PASSING}
        return {
            "software": software(),
            "command": f"{self.line} {shlex.join([str(path)])}",
            "parameters": JsonText(json.dumps(lasting, default=str)),
        }


_FILES = ("output", "png", "surface_png")  # parameters that may have {name} in them


@dataclass(frozen=True)
class FileFacts:
    """Facts of the command that is under way, which files of a structure have; call : None where it has one."""

    call: Call | None

    @classmethod
    def now(cls, several: bool) -> FileFacts:
        """Take the call that is under way; several : if it is of several structures."""
        return cls(Call.now() if several else None)

    def __call__(self, path: Path) -> dict[str, Any]:
        """Give the facts of a structure's files."""
        if self.call is None:
            return call_facts()
        name = path.name.split(".")[0]
        given = {key: self.call.parameters.get(key) for key in _FILES}
        own = {key: json.loads(json.dumps(value).replace("{name}", name)) for key, value in given.items() if value}
        return self.call.facts(path, **own)


def call_facts() -> dict[str, str]:
    """Give the program, its command and its parameters."""
    parameters = parameters_used(current())
    lasting = {name: value for name, value in parameters.items() if f"--{name}" not in _PASSING}
    return {
        "software": software(),
        "command": command_line(),
        "parameters": JsonText(json.dumps(lasting, default=str)),
    }


def parameters_used(context: click.Context) -> dict[str, Any]:
    """Give the parameters of a command, with the constants of the solvent that were used, --like's among them."""
    constants: SolventModel | None = context.meta.get(CONSTANTS)
    used = {} if constants is None else constants.settings
    return {name: used.get(name, value) for name, value in context.params.items()}


def command_line(without: Collection[str] = ()) -> str:
    """Write the command line, less what its results do not depend on; without : further words to leave out"""
    words, kept = iter(sys.argv[1:]), ["pele-ocl"]
    for word in words:
        option, is_joined, _ = word.partition("=")
        if option in _PASSING:
            if _PASSING[option] and not is_joined:
                next(words, None)
        elif word not in without:
            kept.append(word)
    return shlex.join(kept)
