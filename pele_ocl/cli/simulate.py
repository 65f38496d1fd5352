"""`pele-ocl simulate`: molecular dynamics of many replicas."""

from __future__ import annotations

import time
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import click

from ..common.errors import InputError
from ..common.textfiles import number
from ..dynamics import Simulation
from ..dynamics.bodies import CONSTRAINTS
from ..dynamics.files import TRAJECTORIES, TRAJECTORIES_OF
from ..dynamics.integrators import INTEGRATORS
from ..dynamics.result import SECONDS_A_DAY, speed_text
from ..dynamics.run import simulate as simulated
from ..dynamics.settings import EXCHANGES, FRICTION
from .command import EachOnce
from .groups import keywords, option, options
from .option_groups import Amount
from .options import (
    overwrite_option,
    pair_options,
    pair_variant_option,
    place_options,
    report_options,
    run_options,
    solvent_flags,
    strict_option,
    structure_flags,
    surface_options,
    words_of,
)
from .progress import ProgressLine, time_left
from .showing import failing_as_record, say_records, timed_record
from .structures import TARGET, Holding, constraints_option
from .structures import files as expanded
from .terminal import elapsed, note, say

__all__ = ["simulate"]

NAMED = 5  # stopped replicas reported individually
_POSITIVE, _NATURAL = click.IntRange(min=1), click.IntRange(min=0)


def _temperatures(_: click.Context, __: click.Parameter, text: str | None) -> list[float] | None:
    """Parse numbers separated by commas."""
    values = [number(word.strip().removesuffix("K")) for word in text.split(",")] if text is not None else []
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        raise InputError(f"--temperatures {str(text)[:60]!r}: give numbers separated by commas, K")
    return known or None


def _shape(_: click.Context, __: click.Parameter, text: str | None) -> list[int] | None:
    """Parse integers separated by commas."""
    words = text.split(",") if text is not None else []
    if not all(word.strip().isdecimal() for word in words):
        raise InputError(f"--ladder-shape {str(text)[:60]!r}: give two integers separated by a comma")
    return [int(word) for word in words] or None


def _schedule(_: click.Context, __: click.Parameter, text: str | None) -> list[list[float]] | None:
    """Parse points PS:K separated by commas."""
    if text is None:
        return None
    points = [[number(word.strip()) for word in point.split(":")] for point in text.split(",")]
    found = [[value for value in point if value is not None] for point in points]
    if any(len(point) != 2 for point in points) or any(len(point) != 2 for point in found):
        raise InputError(f"--anneal {text[:60]!r}: give points PS:K separated by commas, such as 0:600,80:300")
    return found


@dataclass(frozen=True)
class Dynamics:
    """Options for replicas, dynamics and output."""

    heading: ClassVar[str] = "Dynamics"

    replicas: int = option("Replicas of each structure.", like=simulated, type=_POSITIVE, essential=True)
    first_replica: int = option(
        "Number of the first replica; --shard is simpler.", like=simulated, type=_NATURAL, hidden=True,
        heading="Options",
    )  # fmt: skip
    steps: int | None = option("Number of time steps.", type=_POSITIVE)
    time: str | None = option("Time to simulate, with its unit: 500ps, 10ns.", metavar="T", essential=True)
    temperatures: str | None = option(
        "Temperatures of the heat bath, K: one for all, one for each replica of all structures in their order, or "
        "fewer, assigned to replicas in turn. By default --temperature if given, else 300.",
        metavar="T[,T...]", callback=_temperatures, essential=True,
    )  # fmt: skip
    timestep: float = option("Time step, fs.", like=simulated, type=Amount("fs"), essential=True)
    friction: float | None = option(
        "Friction of the heat bath, 1/ps.",
        type=Amount("1/ps"),
        like=simulated,
        show_default=f"{FRICTION}; none with verlet",
    )
    seed: int = option("Seed of all random numbers.", like=simulated, show_default=True)
    integrator: str = option(
        "Langevin dynamics, like OpenMM's LangevinMiddleIntegrator, or velocity Verlet at constant energy.",
        like=simulated, choices=INTEGRATORS,
    )  # fmt: skip
    hydrogen_mass: float | None = option(
        "Mass of hydrogens, taken from their neighbours, Da; 3 to 4 allow steps of 4 fs.", metavar="DA"
    )
    exchange_every: str | None = option(
        "Exchange temperatures between replicas every N steps, or time with its unit, 1ps. A ladder has one replica "
        "per temperature of --temperatures.",
        metavar="N|T", essential=True,
    )  # fmt: skip
    exchange: str = option(
        "Exchange only temperatures, or everything that differs between replicas, such as targets of --bias; "
        "temperatures can then be equal.",
        like=simulated, choices=EXCHANGES,
    )  # fmt: skip
    ladder_shape: str | None = option(
        "Two-dimensional ladders of N by M rungs, row by row, such as temperatures by windows of --bias.",
        metavar="N,M", callback=_shape,
    )  # fmt: skip
    anneal: str | None = option(
        "Temperature as a function of time, linear between the points: 0:600,20:600,80:300.", metavar="PS:K,PS:K...",
        callback=_schedule,
    )  # fmt: skip
    minimize: int = option(
        "Iterations of minimization before the first step; 0 for none.", like=simulated, type=_NATURAL, metavar="N",
        essential=True,
    )  # fmt: skip
    bias: Path | None = option(
        "TOML file with collective variables and biases of one structure, named as in PLUMED; docs/sampling.md.",
        metavar="FILE", heading="Options",
    )  # fmt: skip
    keep_center_motion: bool = option(
        "Do not remove the motion of the centre of mass. Never removed if atoms are restrained or frozen.",
        former=("--keep-motion",),
    )
    report_every: str = option(
        "Write frames and energies every N steps, or time with its unit, 2ps.", like=simulated, metavar="N|T",
        heading="Output",
    )  # fmt: skip
    trajectory_format: str = option(
        "Format of the trajectories.", like=simulated, choices=TRAJECTORIES, former=("--trajectory",), heading="Output",
        essential=True,
    )  # fmt: skip
    trajectory_of: str = option(
        "Write a trajectory of each replica, or of each temperature of a ladder.", like=simulated,
        choices=TRAJECTORIES_OF, heading="Output",
    )  # fmt: skip
    velocities: bool = option("Also write velocities to the trajectories; only for nc and h5.", heading="Output")
    resume: bool = option("Continue an interrupted run in DIR, bit-identically.", heading="Output")
    replicas_per_device: int | None = option(
        "Replicas of each structure that one device simulates at a time; only whole ladders. By default all, or an "
        "equal part for each of --workers.",
        type=_POSITIVE, metavar="N", former=("--together",), heading="Devices and processes",
    )  # fmt: skip
    shard: str | None = option(
        "Simulate part K of N of the replicas, for SLURM arrays that share DIR; the last part joins the tables.",
        metavar="K/N", heading="Devices and processes",
    )  # fmt: skip


@click.command(cls=EachOnce)
@click.argument("paths", metavar="IN...", type=TARGET.input, nargs=-1, required=True, callback=expanded)
@click.option(
    "-o", "--output", type=TARGET, metavar="DIR", required=True,
    help="Folder for trajectories, the table of energies, the structure and the checkpoint.",
)  # fmt: skip
@options(Dynamics)
@overwrite_option
@place_options
@options(Holding)
@constraints_option(CONSTRAINTS)
@pair_options
@pair_variant_option
@run_options
@structure_flags
@solvent_flags
@surface_options
@strict_option
@report_options
@words_of
def simulate(
    paths: tuple[Path, ...], output: Path, dynamics: Dynamics, holding: Holding, cutoff: float | None,
    terms: str | None, words: dict[str, Any], as_json: bool, verbose: bool, **computation: Any,
) -> None:  # fmt: skip
    """Simulate many replicas of the structures in IN together, in implicit solvent.

    Each replica is a separate trajectory. It depends on the structure, its number and the seed, not on other replicas.
    DIR contains the trajectories, the structure as a PDB file, and the tables energies.csv and energies.jsonl, with a
    row for each replica and report. Energies in kcal/mol, times in ps, temperatures in K. A replica that becomes
    unstable is stopped and reported; the others continue, and the exit code is 1. --resume continues an interrupted
    run.
    """
    with failing_as_record(paths[0], as_json), Pace() as pace:
        result = simulated(
            paths, output, **keywords(dynamics), **keywords(holding), **computation, **words,
            cutoff=cutoff, only_terms=terms, progress=pace, watch=pace.watch,
        )  # fmt: skip
    for k, reason in list(result.errors.items())[: None if verbose else NAMED]:
        note(f"{result.rows[k]['structure']}, replica {result.rows[k]['replica']}: {reason}")
    if as_json:
        say_records(map(timed_record, result.records()))
    else:
        say(result.text(total=elapsed()))
    if result.errors:
        raise click.exceptions.Exit(1)


class Pace(ProgressLine):
    """Progress line of a run; without workers, it also shows ns/day in total and per replica."""

    def __init__(self) -> None:
        super().__init__("Simulating")
        self._of: weakref.ref[Simulation] | None = None  # a strong reference would keep its device memory allocated
        self._begin = self._ns = 0.0
        self._replicas = 0

    def __enter__(self) -> Pace:
        return self

    def watch(self, simulation: Simulation) -> None:
        """Update the line before the first step, and after each report."""
        if self._of is None or self._of() is not simulation:
            self._of, self._first = weakref.ref(simulation), simulation.steps
            self._begin = time.monotonic()
        self._ns = (simulation.steps - self._first) * simulation.settings.dt * 1e-3
        self._replicas = len(simulation) - len(simulation.errors)

    def told(self, share: float, since: float, seconds: float) -> str:
        if self._of is None or not self._ns:
            return super().told(share, since, seconds)
        of_one = self._ns / max(time.monotonic() - self._begin, 1e-9) * SECONDS_A_DAY
        rates = speed_text(self._replicas * of_one, of_one, self._replicas)
        return f"{100 * share:3.0f} %, {rates}, {time_left(share, since, seconds)}"
