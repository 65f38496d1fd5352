"""Lines and figures that the outputs of all commands share."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import asdict
from typing import Any, Protocol

import click
import numpy as np

from .. import __version__
from ..atoms import Atoms, Labels
from ..formats import JsonText
from ..grid import Map
from ..inputfile import InputFile
from ..solvent_model import SolventModel
from ..tuning import describe
from .clock import elapsed
from .command import COORDINATES
from .terminal import one_line


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
    """By what variants and layouts were chosen on the devices of a result."""
    from ..opencl.device import list_devices

    first = next(device for device in list_devices() if str(device) in devices)
    return f"Choice: {describe(first)}"


def headline(source: InputFile, atoms: Atoms) -> str:
    """The molecule in one line."""
    n_residues = "" if atoms.labels is None else f"{counted(len(atoms.labels.residue_starts), 'residue')}, "
    name = one_line(source.path.name)
    return f"{name}: {counted(len(atoms), 'atom')}, {n_residues}net charge {atoms.charges.sum():+.3f} e"


def ending(how: Computation, kernel_seconds: float) -> str:
    """How a result was computed and how long the command took, from its start to this line."""
    times = f"kernels {duration(kernel_seconds)}, in all {duration(elapsed())}"
    return f"{how.variant}, {how.precision}, on {how.device}: {times}"


def model_line(model: SolventModel) -> str:
    """The constants of the solvent model."""
    given = {name: value for name, value in asdict(model).items() if value is not None}
    values = {name: value if isinstance(value, str) else f"{value:g}" for name, value in given.items()}
    return "Solvent model: " + ", ".join(f"{name} {value}" for name, value in values.items())


def energy_lines(energy: dict[str, float]) -> list[str]:
    """Energies under a head, kcal/mol."""
    return [
        "Energy        kcal/mol",
        *(f"  {name.replace('_', ' '):17s}{value:13,.3f}" for name, value in energy.items()),
    ]


def origin(source: InputFile, atoms: Atoms, how: Computation) -> dict[str, Any]:
    """How a result was computed, for its file: the provenance, device, and what the reader noted."""
    return {
        **provenance(source),
        "device": how.device,
        "variant": how.variant,
        "precision": how.precision,
        "notes": list(atoms.notes) or "",
    }


def provenance(source: InputFile) -> dict[str, Any]:
    """Where a file's content comes from: the input and the SHA-256 of what was read, program, command, parameters."""
    context = click.get_current_context()
    places = context.meta.get(COORDINATES)
    return {
        "input": str(source),
        "input_sha256": source.sha256,
        **({} if places is None else {"coordinates": str(places), "coordinates_sha256": places.sha256}),
        "software": f"pele-ocl {__version__}",
        "command": shlex.join(["pele-ocl", *sys.argv[1:]]),
        "parameters": JsonText(json.dumps(context.params, default=str)),
    }


def map_facts(map_: Map) -> dict[str, Any]:
    """A map in figures, for JSON."""
    return {
        "shape": list(map_.grid.shape),
        "origin": map_.grid.origin.tolist(),
        "spacing": map_.grid.spacing.tolist(),
        "unit": map_.unit,
        "temperature": map_.temperature,
        "min": float(map_.values.min()),
        "max": float(map_.values.max()),
        "mean": float(map_.values.mean(dtype=np.float64)),
    }


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


def _three(numbers: list[float], form: str) -> str:
    return ", ".join(f"{value:{form}}" for value in numbers)


def label_columns(atoms: Atoms) -> dict[str, Any]:
    """The atoms' labels as columns of a table; none where there are no labels."""
    return {} if atoms.labels is None else columns_of(atoms.labels)


def columns_of(labels: Labels) -> dict[str, Any]:
    """Labels as columns of a table."""
    return {
        "chain": labels.chains,
        "residue_name": labels.residue_names,
        "residue_number": labels.residue_numbers,
        "insertion_code": labels.insertion_codes,
        "atom_name": labels.names,
        "element": labels.elements,
        "residue_index": labels.residue_index,
        "atom_index": np.arange(len(labels), dtype=np.int32),
    }
