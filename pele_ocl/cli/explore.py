"""`pele-ocl explore`: PELE's loop by PELE's control file, and the program of its own that AdaptivePELE calls."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from ..errors import FormatError
from ..explore.control import read_simulation
from ..forcefield.control import filled
from ..inputfile import read_file
from ..jobs import Record
from ..jobs.explore import Exploration, Files, ForceFieldFiles, Steps, earlier_seed
from ..jobs.facts import composition_as_json, settings
from .clock import elapsed
from .command import INPUT, EachOnce
from .explore_page import write_pages
from .launchers import launched
from .options import debug_option, run_options
from .physics import physics_lines
from .progress import ProgressLine
from .records import failing_as_record, say_records, timed
from .report import counted, duration
from .tables import table
from .terminal import note, say

_SHOWN = 12  # explorers in the table


def _words(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    """WORD=VALUE of every --fill."""
    found = {}
    for text in given:
        word, equals, value = text.partition("=")
        if not equals or not word.isidentifier():
            raise click.BadParameter(f"{text!r} is not WORD=VALUE, as BOX_RADIUS=20 is")
        found[word] = value
    return found


@click.command(cls=EachOnce)
@click.argument("path", metavar="CONTROL", type=INPUT)
@click.option(
    "-n", "--explorers", type=click.IntRange(1, 1 << 16), metavar="N",
    help="Explorers, all in one batch; by default one, under mpirun or srun one for each process but the first.",
)  # fmt: skip
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="DIR",
    help="Write all files into this folder, in place of the paths in CONTROL.",
)  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), help="Seed of all random numbers, in place of CONTROL's.")
@click.option("--steps", type=click.IntRange(min=0), help="Steps of each explorer, in place of numberOfPeleSteps.")
@click.option(
    "--complex", "complexes", type=INPUT, multiple=True, metavar="FILE",
    help="Structure to begin with, in place of CONTROL's; several are given to the explorers in turn.",
)  # fmt: skip
@click.option(
    "--fill", "words", multiple=True, callback=_words, metavar="WORD=VALUE",
    help="Put a value in place of $WORD in CONTROL, as programs that prepare runs do.",
)  # fmt: skip
@click.option("--resume", is_flag=True, help="Go on with an interrupted run in the same folder.")
@click.option("--templates", type=INPUT, multiple=True, metavar="PATH", help="PELE template, or a folder of templates.")
@click.option("--obc", type=INPUT, multiple=True, metavar="FILE", help="OBC table, text or JSON.")
@click.option(
    "--pele-data", type=INPUT, multiple=True, metavar="DIR",
    help="PELE Data or DataLocal folder, beside the ones in the working directory and beside CONTROL.",
)  # fmt: skip
@click.option("--fallback", is_flag=True, help="Take radii by element and bonds for atoms without an OBC row.")
@run_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the table.")
@debug_option
def explore(
    path: Path, explorers: int | None, output: Path | None, seed: int | None, steps: int | None,
    complexes: tuple[Path, ...], words: dict[str, str], resume: bool, templates: tuple[Path, ...],
    obc: tuple[Path, ...], pele_data: tuple[Path, ...], fallback: bool, precision: str, device: str | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Explore how a ligand binds as PELE's CONTROL file says: perturb, move, minimise, Metropolis.

    Writes report_N and trajectory_N of each explorer N as PELE does. The walk is a search: its states are no
    Boltzmann sample, and give no free energies.
    """
    rank, size = launched()
    if rank > 0:
        return  # the first process runs the explorers of all
    if output is not None and output.exists() and not output.is_dir():
        raise FormatError(f"{output}: is no folder; name one for the reports")
    with failing_as_record(path, as_json):
        all_words = {**_known_words(output, seed, steps), **words}
        simulation = read_simulation(path, all_words)
        if resume and seed is None and simulation.seed is None:
            seed = earlier_seed(Files.of(simulation, output))  # the one that was drawn by the clock
        run = Exploration(
            simulation, explorers or max(size - 1, 1), folder=output, seed=seed, steps=steps,
            parameters=ForceFieldFiles(templates, obc, pele_data, fallback), complexes=complexes, precision=precision,
            device=device, text=filled(path, all_words),
        )  # fmt: skip
        for sentence in run.notes:
            note(f"Note: {sentence}")
        last = _run(run, resume)
        pages = write_pages(run)
    if as_json:
        say_records([_record(run, path, last)])
    else:
        say(_text(run, path, last, pages))


def _known_words(output: Path | None, seed: int | None, steps: int | None) -> dict[str, str]:
    """Words of templates that options say."""
    words = {"REPORT_NAME": "report", "TRAJECTORY_NAME": "trajectory.pdb", "TRAJ_NAME": "trajectory.pdb"}
    words |= {} if output is None else {"OUTPUT_PATH": str(output)}
    words |= {} if seed is None else {"SEED": str(seed)}
    words |= {} if steps is None else {"PELE_STEPS": str(steps)}
    return words


class ExploreLine(ProgressLine):
    """Progress line of explorers: steps an hour, acceptance, best energies, time left."""

    def __init__(self) -> None:
        super().__init__("Exploring")
        self.first = 0
        self.last_steps: Steps | None = None
        self.best: dict[str, float] = {}

    def __enter__(self) -> ExploreLine:
        return self

    def tell(self, steps: Steps) -> None:
        """Tell of a step."""
        if self.last_steps is None or self.last_steps.numbers != steps.numbers:
            self.first, self.start = steps.step, time.monotonic()
        self.last_steps = steps
        columns = {"energy": steps.energies, "binding": _column(steps, "Binding Energy")}
        for name, values in columns.items():
            if values is not None and np.isfinite(values).any():
                self.best[name] = min(self.best.get(name, np.inf), float(np.nanmin(values)))
        if steps.n_steps > self.first:
            self((steps.step - self.first) / (steps.n_steps - self.first))

    def told(self, share: float, seconds: float) -> str:
        steps = self.last_steps
        assert steps is not None
        done = (steps.step - self.first) * len(steps.numbers)
        rate = 3600 * done / seconds
        accepted = steps.accepted.sum() / max(1, steps.tried.sum())
        best = "".join(f", best {name} {value:.6g}" for name, value in self.best.items())
        left = duration(seconds * (1 - share) / share)
        begin = f"step {steps.step} of {steps.n_steps}, {rate:,.0f} steps/h, {accepted:.0%} accepted"
        return f"{begin}{best}, {left} left"


def _column(steps: Steps, name: str) -> np.ndarray[Any, Any] | None:
    return steps.values[:, steps.columns.index(name)] if name in steps.columns else None


def _run(run: Exploration, resume: bool) -> dict[int, Steps]:
    """Run all steps; give the last ones of each group of explorers, by the first explorer's number."""
    found: dict[int, Steps] = {}
    told = set[str]()
    with ExploreLine() as line:
        for steps in run.run(resume):
            found[steps.numbers[0]] = steps
            line.tell(steps)
            for number, why in steps.failures.items():
                if why not in told:
                    told.add(why)
                    note(f"Note: explorer {number}, step {steps.step}: {why}")
    return found


def _best(last: Mapping[int, Steps]) -> list[tuple[int, Steps, int]]:
    """Give number, group and row of each explorer, the lowest energy first."""
    rows = [(number, steps, k) for steps in last.values() for k, number in enumerate(steps.numbers)]
    return sorted(rows, key=lambda row: (float(row[1].energies[row[2]]), row[0]))


def _text(run: Exploration, path: Path, last: Mapping[int, Steps], pages: Sequence[Path]) -> str:
    """Make the lines that end a run."""
    rows = _best(last)
    columns = rows[0][1].columns
    heads = ["explorer", "accepted", "energy", *columns]
    cells = [
        [str(number), f"{steps.accepted[k]} of {steps.tried[k]}", f"{steps.energies[k]:.6g}"]
        + [f"{value:.6g}" for value in steps.values[k]]
        for number, steps, k in rows[:_SHOWN]
    ]
    atoms = run.groups[0].atoms
    first = f"{path}: {counted(len(run.numbers), 'explorer')} of {counted(len(atoms), 'atom')}, seed {run.seed}"
    taken = sum(int(steps.accepted.sum()) for steps in last.values())
    tried = sum(int(steps.tried.sum()) for steps in last.values())
    lines = [first, *physics_lines(run.model, atoms), "", table(heads, cells, ">" * len(heads))]
    lines += [f"and {len(rows) - _SHOWN} more explorers"] if len(rows) > _SHOWN else []
    lines += ["", f"{taken:,} of {tried:,} steps accepted; reports are {run.files.report}_N. The walk is a search:"]
    lines += ["its states are no Boltzmann sample, and their averages no free energies."]
    lines += [f"Pages of the states: {', '.join(map(str, pages))}"]
    lines += [f"{run.precision}, on {run.device_name}: in all {duration(elapsed())}"]
    return "\n".join(lines)


def _record(run: Exploration, path: Path, last: Mapping[int, Steps]) -> Record:
    """Make the record of a run."""
    atoms = run.groups[0].atoms
    explorers = [
        {
            "explorer": number, "steps": int(steps.tried[k]), "accepted": int(steps.accepted[k]),
            "energy": float(steps.energies[k]),
            "metrics": {name: _finite(value) for name, value in zip(steps.columns, steps.values[k], strict=True)},
        }
        for number, steps, k in sorted(_best(last), key=lambda row: row[0])
    ]  # fmt: skip
    result = {
        "n_atoms": len(atoms), "composition": composition_as_json(atoms), "seed": run.seed,
        "device": run.device_name, "precision": run.precision, "settings": settings(run.model, atoms),
        "is_search": True,
        "report": str(run.files.report), "trajectory": str(run.files.trajectory), "explorers": explorers,
        "notes": list(run.notes),
    }  # fmt: skip
    return Record(str(path), read_file(path).sha256, timed(result))


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
