"""Report of a simulation: text for the screen, or one JSON object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from ...atoms import Atoms
from ...common.inputfile import InputFile
from ...dynamics.files import names_of
from ...dynamics.integrators import INTEGRATORS
from ...dynamics.spec import SimulateSpec
from ...gb_models.solvent_model import SolventModel
from ...jobs import Record
from ...jobs.facts import composition_as_json, settings
from ..json_lines import say_records, timed
from ..physics import physics_lines
from ..report import counted, duration, headline
from ..terminal import note, one_line, say
from .running import SimulationOutcome

NAMED = 5  # replicas that stopped, told one by one
_OF_ALL = ("step", "time_ps", "structure")  # columns that all rows of a record share


@dataclass(frozen=True)
class SimulatedStructure:
    """A structure as it was read; findings : as JSON has them"""

    source: InputFile
    atoms: Atoms
    findings: list[dict[str, object]]


def report(
    spec: SimulateSpec, outcome: SimulationOutcome, molecules: Sequence[SimulatedStructure], constants: SolventModel,
    as_json: bool, verbose: bool,
) -> None:  # fmt: skip
    """Print what a run came to; exit with 1 where replicas stopped."""
    stopped = [row for row in outcome.rows if row["error"] is not None]
    for row in stopped[: None if verbose else NAMED]:
        note(f"{row['structure']}, replica {row['replica']}: {row['error']}")
    if as_json:
        say_records(_records(spec, outcome, molecules, constants))
    else:
        say("\n".join(_lines(spec, outcome, molecules, constants)))
    if stopped:
        click.get_current_context().exit(1)


def _records(
    spec: SimulateSpec, outcome: SimulationOutcome, molecules: Sequence[SimulatedStructure], constants: SolventModel
) -> Iterator[Record]:
    """Make the record of each structure, with its replicas."""
    shared = outcome.shared
    for molecule, name in zip(molecules, names_of(spec.paths), strict=True):
        rows = [row for row in outcome.rows if row["structure"] == name]
        result = {
            "n_atoms": len(molecule.atoms),
            "composition": composition_as_json(molecule.atoms),
            "device": shared["device"],
            "precision": shared["precision"],
            "settings": settings(constants, molecule.atoms),
            "dynamics": shared["dynamics"],
            "folder": spec.output,
            "steps": shared["steps"],
            "time_ps": shared["time_ps"],
            "ns_per_day": outcome.ns_per_day,
            "exchanges": outcome.exchanges,
            "replicas": [{key: value for key, value in row.items() if key not in _OF_ALL} for row in rows],
            "n_failed": sum(row["error"] is not None for row in rows),
            "notes": [
                *molecule.atoms.notes,
                *shared["notes"],
                *(sentence for structure, sentence in shared["notes_of_structures"] if structure == name),
            ],
            "findings": molecule.findings,
            "seconds": {"steps": outcome.seconds},
        }
        yield Record(str(molecule.source), molecule.source.sha256, timed(result))


def _lines(
    spec: SimulateSpec, outcome: SimulationOutcome, molecules: Sequence[SimulatedStructure], constants: SolventModel
) -> list[str]:  # fmt: skip
    shared, own = outcome.shared, outcome.shared["dynamics"]
    lines = [headline(of.source, of.atoms) for of in molecules]
    lines += physics_lines(constants, molecules[0].atoms, cutoff=spec.options["cutoff"])
    integrator = INTEGRATORS[own["integrator"]]
    parts = [f"{integrator.title} in steps of {own['timestep']:g} fs"]
    parts += [f"friction {own['friction']:g} 1/ps"] if integrator.is_thermostat else []
    parts += [f"bonds held: {own['constraints']}"] if own["constraints"] else []
    parts += [f"seed {own['seed']}"]
    lines.append(f"Dynamics      {', '.join(parts)}")
    lines.append(f"Replicas      {counted(len(outcome.rows), 'replica')}, {outcome.n_failed:,} stopped")
    lines.append(f"Time          {shared['time_ps']:,.3f} ps in {shared['steps']:,} steps")
    for name in names_of(spec.paths):
        rows = [row for row in outcome.rows if row["structure"] == name and row["error"] is None]
        for bath in sorted({row["bath_K"] for row in rows}, key=lambda kelvin: kelvin or 0.0):
            lines += _means([row for row in rows if row["bath_K"] == bath], name)
    for of in outcome.exchanges:
        cold, warm = of["temperatures"]
        share = of["accepted"] / max(1, of["tried"])
        lines.append(f"Exchanges     {cold:g} and {warm:g} K: {of['accepted']:,} of {of['tried']:,}, {share:.3f}")
    speed = outcome.ns_per_day
    if not speed["all"]:
        lines.append("Speed         no steps were left to make")
    else:
        lines.append(
            f"Speed         {speed['all']:,.4g} ns/day in all, {speed['replica']:,.4g} a replica; "
            f"{duration(outcome.seconds)} on {shared['device']}"
        )
    return [*lines, f"Written to    {one_line(spec.output)}"]


def _means(rows: Sequence[Mapping[str, Any]], name: str) -> list[str]:
    """Write what replicas of a structure have in the mean; rows : of the ones that go on, all of one heat bath"""

    def mean(column: str) -> float:
        return float(sum(row[column] for row in rows)) / len(rows)

    bath = "" if rows[0]["bath_K"] is None else f", of the heat bath {rows[0]['bath_K']:.1f} K"
    energies = [("potential", "potential_kcal_mol"), ("kinetic", "kinetic_kcal_mol")]
    if rows[0]["restraints_kcal_mol"] is not None:
        energies[:1] = [("potential, with restraints", "potential_kcal_mol"), ("restraints", "restraints_kcal_mol")]
    width = max(16, *(len(title) for title, _ in energies))
    return [
        f"At the end, means of {counted(len(rows), 'replica')} of {one_line(name)}",
        *(f"  {title:<{width}} {mean(column):13,.3f} kcal/mol" for title, column in energies),
        f"  {'temperature':<{width}} {mean('temperature_K'):13,.1f} K{bath}",
    ]
