"""`pele-ocl explore`: the PELE algorithm, run from a PELE control file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from ..common.errors import PeleError
from ..explore import explore as explored
from ..explore.example import write_example
from ..explore.presets import PRESETS
from ..explore.running import MOST_EXPLORERS, NO_PART, PartsFollowed
from ..explore.spec import Steps
from ..jobs.texts import figures
from .command import INPUT, EachOnce, command_option
from .groups import keywords, option, option_of, options
from .option_groups import StructureGroup, Workers
from .options import (
    PATH,
    debug_option,
    guess_radii_option,
    json_option,
    pele_data_option,
    run_options,
)
from .progress import ProgressLine, has_speed, time_left
from .showing import failing_as_record, say_records, timed_record
from .terminal import elapsed, say

_OF_LIGAND = (
    "ligand_file", "ligand_forcefield", "ligand_charges", "ligand_hydrogens", "ligand_ph", "ligand_template",
)  # fmt: skip


def _words(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    """Parse WORD=VALUE of every --set."""
    found = {}
    for text in given:
        word, equals, value = text.partition("=")
        if not equals or not word.isidentifier():
            raise click.BadParameter(f"{text!r} is not WORD=VALUE, such as BOX_RADIUS=20")
        found[word] = value
    return found


def _example(context: click.Context, _: click.Parameter, folder: Path | None) -> None:
    """Write the example, and exit."""
    if folder is not None:
        control = write_example(folder)
        say(f"{folder}: a complex, its ligand's parameters and a control file; pele-ocl explore {control} -o out")
        say(f"Other commands read {folder / 'complex.pdb'} with --pele-data {folder / 'DataLocal'}")
        context.exit()


@dataclass(frozen=True)
class Exploring:
    """Options for running a control file."""

    preset: str | None = option(
        "Settings of pele_platform for a structure, by default induced_fit_fast.", choices=list(PRESETS)
    )

    explorers: int | None = option(
        "Explorers, all in one batch; by default one, under mpirun or srun one for each process except the first.",
        "-n", type=click.IntRange(1, MOST_EXPLORERS), metavar="N", essential=True,
    )  # fmt: skip
    output: Path | None = option(
        "Write all files to this folder instead of the paths in CONTROL.", "-o", type=PATH, metavar="DIR",
        essential=True,
    )  # fmt: skip
    seed: int | None = option(
        "Seed of all random numbers, instead of CONTROL's.", type=click.IntRange(min=0), heading="Dynamics",
        essential=True,
    )  # fmt: skip
    steps: int | None = option(
        "Steps of each task, instead of numberOfPeleSteps.", type=click.IntRange(min=0), heading="Dynamics",
        essential=True,
    )  # fmt: skip
    complexes: tuple[Path, ...] = option(
        "Structure to start from, instead of CONTROL's; several are assigned to the explorers in turn.",
        "--complex", type=INPUT, metavar="FILE", essential=True,
    )  # fmt: skip
    set: tuple[str, ...] = option(
        "Replace $WORD in CONTROL by a value, as programs that prepare runs do.",
        callback=_words, metavar="WORD=VALUE", former=("--fill",),
    )  # fmt: skip
    shard: str | None = option(
        "Run part K of N of the explorers; mpi: under mpirun or srun a part for each process, with the next device, "
        "mpi/N for the first N.",
        metavar="K/N|mpi", heading="Devices and processes",
    )  # fmt: skip
    resume: bool = option("Continue an interrupted run in the same folder.", heading="Output")
    overwrite: bool = option(
        "Replace an earlier run in the folder; otherwise an existing run is an error.", heading="Output"
    )


def _ligand_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for molecules without parameters."""
    for name in reversed(_OF_LIGAND):
        command = option_of(StructureGroup, name)(command)
    return command


@click.command(cls=EachOnce)
@click.argument("path", metavar="CONTROL|STRUCTURE", type=INPUT)
@options(Exploring, Workers)
@_ligand_options
@click.option("--ranks", type=click.IntRange(min=1), hidden=True, help="As --shard mpi/N.")
@option_of(StructureGroup, "templates", essential=True)
@option_of(StructureGroup, "obc", essential=True)
@pele_data_option(", in addition to those in the working directory and next to CONTROL")
@guess_radii_option
@run_options
@json_option()
@command_option(
    "--example", type=PATH, is_flag=False, flag_value=Path("explore-example"), is_eager=True, expose_value=False,
    callback=_example, metavar="[DIR]", help="Write a small complex with its ligand and control file to DIR, and exit.",
    essential=True,
)  # fmt: skip
@debug_option
def explore(
    path: Path,
    exploring: Exploring,
    workers: Workers,
    ranks: int | None,
    ligand_file: tuple[Path, ...],
    as_json: bool,
    **computation: Any,
) -> None:
    """Explore how a ligand binds as PELE's CONTROL file says: perturb, move, minimize, Metropolis.

    Writes report_N and trajectory_N for each explorer N like PELE. The walk is a search: its states are not a Boltzmann
    sample and cannot be used for free energies. docs/explore.md has an example of a CONTROL file. For a STRUCTURE and
    its --ligand-file, the control file and the ligand's parameters are written to DIR, by default STRUCTURE_explore,
    and the run is started.
    """
    if ranks is not None and exploring.shard is None:
        exploring = replace(exploring, shard=f"mpi/{ranks}")
    try:
        with failing_as_record(path, as_json), ExploreLine() as line:
            result = explored(
                path, **keywords(exploring), **keywords(workers), **computation, ligands=ligand_file, watch=line
            )
    except PeleError as error:
        if error.code == NO_PART:
            return  # other processes run all explorers
        raise
    if as_json:
        record = result.record()
        say_records([timed_record(record)])
    else:
        say(result.text(total=elapsed()))


class ExploreLine(ProgressLine):
    """Progress line of explorers: steps per hour, acceptance, best energies, time left."""

    def __init__(self) -> None:
        super().__init__("Exploring")
        self.first_step = 0
        self.last_steps: Steps | None = None
        self.parts: PartsFollowed | None = None
        self.best: dict[str, float] = {}

    def __enter__(self) -> ExploreLine:
        return self

    def tell(self, steps: Steps) -> None:
        """Update the line after a step."""
        if self.last_steps is None or self.last_steps.numbers != steps.numbers:
            self.first_step = steps.step
        self.last_steps = steps
        for name, value in steps.lowest.items():
            self.best[name] = min(self.best.get(name, value), value)
        if steps.n_steps > self.first_step:
            self((steps.step - self.first_step) / (steps.n_steps - self.first_step))

    def follow(self, parts: PartsFollowed) -> None:
        """Show the progress of workers."""
        self.parts = parts
        if parts.first < parts.share < 1:
            self((parts.share - parts.first) / (1 - parts.first))

    def told(self, share: float, since: float, seconds: float) -> str:
        left = time_left(share, since, seconds)
        if self.parts is not None:
            of = self.parts
            done = of.first + share * (1 - of.first)
            rate = self._rate(of.explorers * of.n_steps * since * (1 - of.first), since, seconds)
            return f"step {of.n_steps * done:.0f} of {of.n_steps}, {rate}{left}"
        steps = self.last_steps
        assert steps is not None
        rate = self._rate(since * (steps.n_steps - self.first_step) * len(steps.numbers), since, seconds)
        accepted = steps.accepted.sum() / max(1, steps.tried.sum())
        best = "".join(f", best {name} {value:.6g}" for name, value in self.best.items())
        return f"step {steps.step} of {steps.n_steps}, {rate}{accepted:.0%} accepted{best}, {left}"

    @staticmethod
    def _rate(steps: float, since: float, seconds: float) -> str:
        """Return the speed as text. steps : number of steps of all explorers in `seconds`"""
        return f"{figures(3600 * steps / seconds)} steps/h, " if has_speed(since, seconds) else ""
