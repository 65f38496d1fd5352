"""`pele-ocl explore`: PELE's loop by PELE's control file, and the program of its own that AdaptivePELE calls."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Any

import click
import numpy as np

from ..common.errors import FormatError
from ..common.inputfile import read_file
from ..explore.control import read_simulation
from ..explore.run_files import Files, Said, earlier_seed, ends_of, said_of
from ..explore.spec import Exploration, ExploreWork, ForceFieldFiles, Steps
from ..forcefield.control import filled
from ..formats import is_structure
from ..jobs import Place, Record, Shard, shared
from ..jobs.facts import composition_as_json, settings
from .clock import elapsed
from .cluster import cluster_options_of, place_options
from .command import INPUT, EachOnce
from .explore_page import pages_of, write_pages
from .json_lines import NAMED, failing_as_record, say_records, timed
from .launchers import device_of_rank, launched
from .options import (
    debug_option,
    fallback_option,
    json_option,
    obc_option,
    pele_data_option,
    run_options,
    templates_option,
)
from .physics import physics_lines
from .progress import ProgressLine
from .report import counted, duration
from .tables import table
from .terminal import note, say

_SHOWN = 12  # explorers in the table
FOLLOW_SECONDS = 1.0  # between looks at the journals of workers


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
@click.option("--steps", type=click.IntRange(min=0), help="Steps of each task, in place of numberOfPeleSteps.")
@click.option(
    "--complex", "complexes", type=INPUT, multiple=True, metavar="FILE",
    help="Structure to begin with, in place of CONTROL's; several are given to the explorers in turn.",
)  # fmt: skip
@click.option(
    "--fill", "words", multiple=True, callback=_words, metavar="WORD=VALUE",
    help="Put a value in place of $WORD in CONTROL, as programs that prepare runs do.",
)  # fmt: skip
@click.option(
    "--ranks", type=click.IntRange(min=1), default=1, show_default=True, metavar="N",
    help="Under mpirun or srun, share the explorers out to the first N processes, each with the next device.",
)  # fmt: skip
@place_options
@click.option("--resume", is_flag=True, help="Go on with an interrupted run in the same folder.")
@templates_option
@obc_option
@pele_data_option(", beside the ones in the working directory and beside CONTROL")
@fallback_option
@run_options
@json_option()
@debug_option
def explore(
    path: Path, explorers: int | None, output: Path | None, seed: int | None, steps: int | None,
    complexes: tuple[Path, ...], words: dict[str, str], ranks: int, resume: bool, templates: tuple[Path, ...],
    obc: tuple[Path, ...], pele_data: tuple[Path, ...], fallback: bool, precision: str, device: str | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Explore how a ligand binds as PELE's CONTROL file says: perturb, move, minimise, Metropolis.

    Writes report_N and trajectory_N of each explorer N as PELE does. The walk is a search: its states are no
    Boltzmann sample, and give no free energies. A CONTROL file is shown in docs/explore.md.
    """
    rank, size = launched()
    if ranks > size:
        raise click.UsageError(f"--ranks {ranks} needs as many processes, by mpirun or srun; there are {size}")
    cluster = cluster_options_of(click.get_current_context())
    if ranks > 1 and cluster.is_remote:
        raise click.UsageError("choose one of --ranks, --workers and --scheduler")
    n = explorers or max(size - 1, 1)
    ranks = min(ranks, n)  # more would keep cores without an explorer
    if rank >= ranks:
        return  # others run the explorers of all
    if output is not None and output.exists() and not output.is_dir():
        raise FormatError(f"{output}: is no folder; name one for the reports")
    with failing_as_record(path, as_json):
        if is_structure(path):
            raise FormatError(
                f"{path}: is a structure, and explore takes a control file of PELE, which names it; docs/explore.md "
                "shows one"
            )
        all_words = {**_known_words(output, seed, steps), **words}
        simulation = read_simulation(path, all_words)
        if resume and seed is None and simulation.seed is None:
            seed = earlier_seed(Files.of(simulation, output))  # the one that was drawn by the clock
        options: dict[str, Any] = {
            "folder": output, "seed": seed, "steps": steps, "complexes": complexes, "precision": precision,
            "parameters": ForceFieldFiles(templates, obc, pele_data, fallback), "text": filled(path, all_words),
            "device": device if ranks == 1 else device_of_rank(device, ranks),
        }  # fmt: skip
        if cluster.is_remote:
            run = Exploration(simulation, n, **options, here=False)
            options |= {"seed": run.seed, "device": None}  # which each worker has its own of
            files = _run_by_workers(run, ExploreWork(simulation, n, options), cluster.place(device), resume)
        else:
            part = Shard(rank + 1, ranks)
            run = Exploration(simulation, n, **options, part=part)
            # Of a run that is over other processes may have steps left, or its pages be lacking, if it was killed then.
            lacks_pages = part.count > 1 or not all(page.exists() for page in pages_of(run))
            if not (resume and lacks_pages and run.is_over):
                _run(run, resume)
            files = [run.files]
        journals = [own.journal for own in files]
        explored, device_name = ends_of(journals)
        said = said_of(journals)
        _tell(said)
        pages = write_pages(run)
    if as_json:
        say_records([_record(run, path, explored, said, device_name)])
    else:
        say(_text(run, path, explored, device_name, pages))


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


class PartsLine(ProgressLine):
    """Progress line of workers: how many steps their journals have.

    journals : of the parts; steps : of each explorer; explorers, molecules : of all parts
    """

    def __init__(self, journals: Sequence[Path], steps: int, explorers: int, molecules: int = 1) -> None:
        super().__init__("Exploring")
        self._read, self._steps, self._explorers = dict.fromkeys(journals, 0), steps, explorers
        self._lines, self._molecules = dict.fromkeys(journals, 0), molecules
        self._first = -1.0  # share that there was at first
        self._is_over = Event()
        self._thread = Thread(target=self._follow, daemon=True)

    def __enter__(self) -> PartsLine:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.join()
        super().__exit__(kind, error, trace)

    def share_done(self) -> float:
        """Read what was added to the journals; give the share of all steps that they have."""
        for path, place in self._read.items():
            with suppress(OSError), path.open("rb") as file:  # it may not be there yet
                if os.fstat(file.fileno()).st_size < place:  # it was begun anew
                    place = self._lines[path] = 0
                file.seek(place)
                added = file.read()
                self._read[path], self._lines[path] = place + len(added), self._lines[path] + added.count(b"\n")
        done = (max(0, lines - 2) for lines in self._lines.values())  # less the head and the initial states
        return min(1.0, sum(done) / (len(self._read) * max(1, self._steps * self._molecules)))

    def _follow(self) -> None:
        while not self._is_over.wait(FOLLOW_SECONDS):
            share = self.share_done()
            self._first = share if self._first < 0 else self._first
            if self._first < share < 1:
                self((share - self._first) / (1 - self._first))

    def told(self, share: float, seconds: float) -> str:
        done = self._steps * (self._first + share * (1 - self._first))
        rate = 3600 * self._explorers * self._steps * share * (1 - self._first) / seconds
        left = duration(seconds * (1 - share) / share)
        return f"step {done:.0f} of {self._steps}, {rate:,.0f} steps/h, {left} left"


def _column(steps: Steps, name: str) -> np.ndarray[Any, Any] | None:
    return steps.values[:, steps.columns.index(name)] if name in steps.columns else None


def _run(run: Exploration, resume: bool) -> None:
    """Run all steps, and tell how far they are."""
    told = set[str]()
    with ExploreLine() as line:
        for k, steps in enumerate(run.run(resume)):
            for sentence in run.notes if k == 0 else ():
                note(f"Note: {sentence}")
            line.tell(steps)
            for number, why in steps.failures.items():
                if why not in told:
                    told.add(why)
                    note(f"Note: explorer {number}, step {steps.step}: {why}")


def _run_by_workers(run: Exploration, work: ExploreWork, place: Place, resume: bool) -> list[Files]:
    """Have each worker run a part of the explorers; give the files of the parts. run : whose notes become the parts'"""
    with shared(work, place) as done:
        files = run.files.parts(min(done.n_workers, len(run.numbers)))
        if not resume:
            run.begin_anew(files)
        with PartsLine([own.journal for own in files], run.n_steps, len(run.numbers), len(run.groups)):
            for notes in done.results([own.part for own in files]):
                run.notes = tuple(dict.fromkeys((*run.notes, *notes)))
    for sentence in run.notes:
        note(f"Note: {sentence}")
    return files


def _tell(said: Mapping[int, Said]) -> None:
    """Tell the sentences about explorers that go on, the most frequent first."""
    counts = Counter[str]()
    for own in said.values():
        counts.update({sentence: len(steps) for sentence, steps in own.notes.items()})
    for sentence, n in counts.most_common(NAMED):
        note(f"Note: {sentence}, in {counted(n, 'step')}")
    if len(counts) > NAMED:
        note(f"Note: {len(counts) - NAMED:,} more notes about steps are in the journal and in the record of --json")


def _text(
    run: Exploration, path: Path, explored: Sequence[Mapping[str, Any]], device: str, pages: Sequence[Path]
) -> str:
    """Make the lines that end a run. explored : what became of each explorer"""
    rows = sorted(explored, key=lambda own: (own["energy"], own["explorer"]))
    columns = list(rows[0]["metrics"])
    heads = ["explorer", "accepted", "energy", *columns]
    cells = [
        [str(own["explorer"]), f"{own['accepted']} of {own['steps']}", f"{own['energy']:.6g}"]
        + [f"{value:.6g}" if value is not None else "-" for value in map(own["metrics"].get, columns)]
        for own in rows[:_SHOWN]
    ]
    atoms = run.groups[0].atoms
    first = f"{path}: {counted(len(rows), 'explorer')} of {counted(len(atoms), 'atom')}, seed {run.seed}"
    taken, tried = (sum(own[name] for own in rows) for name in ("accepted", "steps"))
    lines = [first, *physics_lines(run.model, atoms), "", table(heads, cells, ">" * len(heads))]
    lines += [f"and {len(rows) - _SHOWN} more explorers"] if len(rows) > _SHOWN else []
    lines += ["", f"{taken:,} of {tried:,} steps accepted; reports are {run.files.report}_N. The walk is a search:"]
    lines += ["its states are no Boltzmann sample, and their averages no free energies."]
    lines += [f"Pages of the states: {', '.join(map(str, pages))}"]
    lines += [f"{run.precision}, on {device}: in all {duration(elapsed())}"]
    return "\n".join(lines)


def _record(
    run: Exploration, path: Path, explored: Sequence[Mapping[str, Any]], said: Mapping[int, Said], device: str
) -> Record:
    """Make the record of a run. explored : what became of each explorer; said : of some of them"""
    atoms = run.groups[0].atoms
    explorers = [
        {
            **own, "failures": _with_steps(said.get(own["explorer"], Said()).failures),
            "notes": _with_steps(said.get(own["explorer"], Said()).notes),
        }
        for own in explored
    ]  # fmt: skip
    result = {
        "n_atoms": len(atoms), "composition": composition_as_json(atoms), "seed": run.seed,
        "device": device, "precision": run.precision, "settings": settings(run.model, atoms),
        "is_search": True,
        "report": str(run.files.report), "trajectory": str(run.files.trajectory), "explorers": explorers,
        "notes": list(run.notes),
    }  # fmt: skip
    return Record(str(path), read_file(path).sha256, timed(result))


def _with_steps(sentences: Mapping[str, Sequence[int]]) -> list[dict[str, object]]:
    """Give sentences with the steps that they are about."""
    return [{"text": text, "steps": list(steps)} for text, steps in sentences.items()]
