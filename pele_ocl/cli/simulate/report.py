"""Report of a simulation: text for the screen, or one JSON object."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from ...atoms import Atoms
from ...dynamics import Simulation
from ...inputfile import InputFile
from ...jobs import Record
from ...jobs.facts import composition_as_json, settings
from ...solvent_model import SolventModel
from ..physics import physics_lines
from ..records import say_records, timed
from ..report import counted, duration, headline
from ..terminal import note, one_line, say
from .recording import SimulationFiles
from .running import rate

NAMED = 5  # replicas that stopped, told one by one
_OF_ALL = ("step", "time_ps", "structure")  # columns that all rows of a record share


@dataclass(frozen=True)
class SimulatedStructure:
    """A structure as it was read; findings : as JSON has them"""

    source: InputFile
    atoms: Atoms
    findings: list[dict[str, object]]


Pace = tuple[float, int]  # seconds, and the steps that were made in them


def report(
    simulation: Simulation, recorder: SimulationFiles, molecules: Sequence[SimulatedStructure], pace: Pace,
    constants: SolventModel, as_json: bool, verbose: bool,
) -> None:  # fmt: skip
    """Print what a run came to; exit with 1 where replicas stopped."""
    errors = simulation.errors
    for k in list(errors)[: None if verbose else NAMED]:
        note(f"{recorder.structures[k]}, replica {recorder.replicas[k]}: {errors[k]}")
    if as_json:
        say_records(_records(simulation, recorder, molecules, pace, constants))
    else:
        say("\n".join(_lines(simulation, recorder, molecules, pace, constants)))
    if errors:
        click.get_current_context().exit(1)


def _exchanges(simulation: Simulation) -> list[dict[str, Any]]:
    """Exchanges between neighbouring temperatures."""
    if simulation.settings.exchange_every is None:
        return []
    baths, (tried, accepted) = simulation.settings.temperatures, simulation.exchanges
    return [
        {"temperatures": [baths[k], baths[k + 1]], "tried": int(tried[k]), "accepted": int(accepted[k])}
        for k in range(len(baths) - 1)
    ]


def _records(
    simulation: Simulation,
    recorder: SimulationFiles,
    molecules: Sequence[SimulatedStructure],
    pace: Pace,
    constants: SolventModel,
) -> Iterator[Record]:
    """Make the record of each structure, with its replicas."""
    table, speed = recorder.table(), rate(simulation, pace[1], pace[0])
    for molecule, name in zip(molecules, recorder.names, strict=True):
        rows = [row for row in table if row["structure"] == name]
        result = {
            "n_atoms": len(molecule.atoms),
            "composition": composition_as_json(molecule.atoms),
            "device": str(simulation.ensemble.device),
            "precision": simulation.ensemble.precision,
            "settings": settings(constants, molecule.atoms),
            "dynamics": asdict(simulation.settings),
            "folder": str(recorder.folder),
            "steps": simulation.steps,
            "time_ps": round(simulation.time, 6),
            "ns_per_day": {"all": speed * len(simulation), "replica": speed},
            "exchanges": _exchanges(simulation),
            "replicas": [{key: value for key, value in row.items() if key not in _OF_ALL} for row in rows],
            "n_failed": sum(row["error"] is not None for row in rows),
            "notes": [*molecule.atoms.notes, *simulation.notes],
            "findings": molecule.findings,
            "seconds": {"steps": pace[0]},
        }
        yield Record(str(molecule.source), molecule.source.sha256, timed(result))


def _lines(
    simulation: Simulation,
    recorder: SimulationFiles,
    molecules: Sequence[SimulatedStructure],
    pace: Pace,
    constants: SolventModel,
) -> list[str]:
    lines = [headline(of.source, of.atoms) for of in molecules]
    lines += physics_lines(constants, molecules[0].atoms, cutoff=simulation.ensemble._options["cutoff"])
    going = ~np.isnan(simulation.potential_energies)
    own = simulation.settings
    how = "Langevin" if own.integrator == "langevin" else "velocity Verlet"
    parts = [f"{how} in steps of {own.timestep:g} fs"]
    parts += [f"friction {own.friction:g} 1/ps"] if own.integrator == "langevin" else []
    parts += [f"bonds held: {own.constraints}"] if own.constraints else []
    parts += [f"seed {own.seed}"]
    lines.append(f"Dynamics      {', '.join(parts)}")
    lines.append(f"Replicas      {counted(len(simulation), 'replica')}, {len(simulation) - int(going.sum()):,} stopped")
    lines.append(f"Time          {simulation.time:,.3f} ps in {simulation.steps:,} steps")
    for name in recorder.names:
        lines += _means(simulation, np.array([of == name for of in recorder.structures]) & going, name)
    for of in _exchanges(simulation):
        cold, warm = of["temperatures"]
        share = of["accepted"] / max(1, of["tried"])
        lines.append(f"Exchanges     {cold:g} and {warm:g} K: {of['accepted']:,} of {of['tried']:,}, {share:.3f}")
    speed, device = rate(simulation, pace[1], pace[0]), simulation.ensemble.device
    if not pace[1]:
        lines.append("Speed         no steps were left to make")
    elif going.any():
        lines.append(
            f"Speed         {speed * len(simulation):,.4g} ns/day in all, {speed:,.4g} a replica; "
            f"{duration(pace[0])} on {device}"
        )
    return [*lines, f"Written to    {one_line(str(recorder.folder))}"]


def _means(simulation: Simulation, rows: NDArray[np.bool_], name: str) -> list[str]:
    """Write what replicas of a structure have in the mean; rows : (n_rows,) the ones that go on"""
    if not rows.any():
        return []
    has_bath = simulation.settings.integrator != "verlet"
    bath = f", of the heat bath {simulation.temperatures[rows].mean():.1f} K" if has_bath else ""
    return [
        f"At the end, means of {counted(int(rows.sum()), 'replica')} of {one_line(name)}",
        f"  potential        {simulation.potential_energies[rows].mean():13,.3f} kcal/mol",
        f"  kinetic          {simulation.kinetic_energies[rows].mean():13,.3f} kcal/mol",
        f"  temperature      {simulation.kinetic_temperatures[rows].mean():13,.1f} K{bath}",
    ]
