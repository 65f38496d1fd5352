"""Lines and figures that the outputs of all commands share."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click
import numpy as np

from ..atoms import Atoms
from ..atoms.selection import Composition
from ..common.inputfile import InputFile
from ..common.installation import installed_version
from ..formats import JsonText
from ..formats.maps.facts import map_facts as map_facts
from ..gb_models.solvent_model import SolventModel
from ..grid import Map
from ..jobs.facts import area_facts as area_facts
from ..jobs.facts import columns_of as columns_of
from ..jobs.facts import composition_as_json as composition_as_json
from ..jobs.facts import settings as settings
from ..reading import MoleculeRead
from .clock import elapsed
from .command import CONSTANTS
from .terminal import one_line

if TYPE_CHECKING:
    from ..potmap import PotmapResult

_PASSING = {"--resume": False, "--workers": True, "--scheduler": True, "--shard": True}  # and whether a value follows


class Computation(Protocol):
    """Any result: its device, variant and precision."""

    @property
    def device(self) -> str: ...

    @property
    def variant(self) -> str | None: ...

    @property
    def precision(self) -> str: ...


def duration(seconds: float) -> str:
    """Seconds for reading: `1.52 ms`, `12.30 s`, `7.5 minutes`, `2.3 hours`."""
    for unit, length in (("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.1f} {unit}"
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1e3 * seconds:.3g} ms"


def binary_size(n_bytes: float) -> str:
    """Bytes for reading: `24.6 KiB`, `1.5 GiB`."""
    unit, power = next((u, p) for u, p in (("GiB", 30), ("MiB", 20), ("KiB", 10)) if n_bytes >= 2**p or p == 10)
    return f"{n_bytes / 2**power:,.1f} {unit}"


def counted(n: int, what: str) -> str:
    """`1 atom`, `2 atoms`."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def choice_line(devices: str) -> str:
    """Tell by what variants and layouts were chosen on the devices of a result."""
    from ..opencl.device import list_devices
    from ..plan.tuning import describe

    first = next(device for device in list_devices() if str(device) in devices)
    return f"Choice: {describe(first)}"


def headline(source: InputFile | None, atoms: Atoms) -> str:
    """Describe the molecule in one line."""
    parts = [counted(len(atoms), "atom")]
    if atoms.labels is not None:
        composition = Composition.of(atoms.labels)
        is_mixed = composition.protein < len(atoms.labels.residue_starts)
        parts += composition.parts() if is_mixed else [counted(composition.protein, "residue")]
    charge = round(float(atoms.charges.sum()), 3) + 0.0  # never -0.000
    name = "" if source is None else f"{one_line(source.path.name)}: "
    return f"{name}{', '.join(parts)}, net charge {charge:+.3f} e"


def ending(how: Computation, kernel_seconds: float) -> str:
    """Tell how a result was computed and how long the command took, from its start to this line."""
    times = f"kernels {duration(kernel_seconds)}, in all {duration(elapsed())}"
    return f"{how.variant}, {how.precision}, on {how.device}: {times}"


def model_line(facts: Mapping[str, object]) -> str:
    """List the settings of a result."""
    texts = {
        name: f"{value:.10g}" if isinstance(value, float | int) else value
        for name, value in facts.items()
        if value not in (None, "") and not isinstance(value, list)
    }
    return "Solvent model: " + ", ".join(f"{name} {text}" for name, text in texts.items())


def area_lines(model: SolventModel, energy: dict[str, float]) -> list[str]:
    """Tell the surface area, if there is one."""
    return [f"Surface area  {area:,.1f} A^2 (LCPO)" for area in area_facts(model, energy).values()]


def energy_lines(energy: dict[str, float]) -> list[str]:
    """Energies under a head, kcal/mol."""
    return [
        "Energy        kcal/mol",
        *(f"  {name.replace('_', ' '):17s}{value:13,.3f}" for name, value in energy.items()),
    ]


def origin(
    read: InputFile | MoleculeRead, atoms: Atoms, how: Computation, call: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Tell how a result was computed, for its file: the provenance, device, and what the reader noted."""
    return {
        **provenance(read, call),
        "device": how.device,
        "variant": how.variant,
        "precision": how.precision,
        "notes": list(atoms.notes) or "",
    }


def provenance(
    read: InputFile | MoleculeRead, call: Mapping[str, str] | None = None, coordinates: InputFile | Path | None = None
) -> dict[str, Any]:
    """Tell a file's provenance: the input and the SHA-256 of what was read, program, command, parameters.

    read : the molecule, or its file; call : facts of the call, by default of the one that is under way
    coordinates : file with the positions of a topology, by default the molecule's

    A trajectory that was not read whole has no SHA-256.
    """
    source = read.source if isinstance(read, MoleculeRead) else read
    places = read.coordinates if isinstance(read, MoleculeRead) else coordinates
    return {
        "input": str(source),
        "input_sha256": source.sha256,
        **({} if places is None else {"coordinates": str(places)}),
        **({"coordinates_sha256": places.sha256} if isinstance(places, InputFile) else {}),
        **(call_facts() if call is None else call),
    }


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
        given = parameters_used(click.get_current_context())
        name = "paths" if "paths" in given else "path"
        structures = given[name] if isinstance(given[name], tuple) else (given[name],)
        given[name] = None  # there may be thousands
        return cls(command_line(without=set(map(str, structures))), json.loads(json.dumps(given, default=str)))

    def facts(self, path: Path, **instead: object) -> dict[str, str]:
        """Give the program, command and parameters of one structure; instead : parameters in place of its own"""
        own = {"paths": (path,), "path": path, **instead}
        lasting = {name: own.get(name, value) for name, value in self.parameters.items() if name != "resume"}
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
    parameters = parameters_used(click.get_current_context())
    lasting = {name: value for name, value in parameters.items() if name != "resume"}
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


def software() -> str:
    """Name the program and its version."""
    return f"pele-ocl {installed_version()}"


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


def map_lines(map_: Map) -> list[str]:
    """A map in figures, for reading."""
    facts = map_facts(map_)
    spacing = f"{facts['spacing'][0]:g}" if np.ptp(map_.grid.spacing) == 0 else _three(facts["spacing"], "g")
    return [
        f"Points        {' x '.join(f'{n:,}' for n in map_.grid.shape)}, {spacing} A apart",
        f"From          {_three(facts['origin'], '.3f')} A",
        f"To            {_three(map_.grid.last.tolist(), '.3f')} A",
        f"Values        {facts['min']:,.6g} to {facts['max']:,.6g}, mean {facts['mean']:,.6g} "
        + (one_line(map_.full_unit) or "(the file says no unit)"),
    ]


def error_lines(result: PotmapResult) -> list[str]:
    """Tell the measured errors of a map that approximates; nothing of direct sums."""
    kept = f" ({result.method} for {result.accuracy:g})" if result.accuracy else ""
    of = {"map": (result.error, "Error", "", kept), "field": (result.field_error, "Field error", "/A", "")}
    lines = []
    for name, (error, head, per, taken) in of.items():
        if error is None:
            continue
        size = f"{error.norm:.1e} +- {error.uncertainty:.0e} of the {name}'s root mean square{taken},"
        if not np.isfinite(error.norm):
            size = f"not to be given as a part of the {name}, which is 0 at the points compared{taken},"
        missed = result.wanted and error.norm > result.wanted
        lines += [
            f"{head:13} {size}",
            f"              at most {error.largest:.3g} {result.unit}{per}, measured at {error.points:,} points"
            + (f"; more than the {result.wanted:g} asked for: --method direct sums all atoms" if missed else ""),
        ]
    return lines


def _three(numbers: list[float], form: str) -> str:
    return ", ".join(f"{value:{form}}" for value in numbers)


def label_columns(atoms: Atoms) -> dict[str, Any]:
    """Give the atoms' labels as columns of a table; none if there are no labels."""
    return {} if atoms.labels is None else columns_of(atoms.labels)
