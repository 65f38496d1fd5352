"""Work of a run: its options, its journal, and its files of a structure each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import click

from ...atoms import Atoms
from ...common.hashing import content_of
from ...common.inputfile import InputFile
from ...energy.options import Options as EnergyOptions
from ...formats.b_factors import read_b_factors
from ...formats.conformation_files import Content
from ...jobs import Journal, Record, Shard
from ...jobs.running import run_with
from ...minimize import MinimizeBatch, minimize_many
from ...minimize.many import EachOptions
from ...minimize.options import Stopping, descent_of
from ...minimize.spec import ATOMS_TOGETHER, MinimizeSpec
from ...opencl.device import get_device
from ..cluster import cluster_options_of
from ..frames import FrameOptions
from ..options import ReadAtoms
from ..report import Call, provenance
from .progress import StructureLine
from .restraints import RestraintOptions
from .targets import OutputTargets

MINIMIZED = "minimized structures"  # the kind of a journal
_ATOMS_TOGETHER = ATOMS_TOGETHER
_FEWER_ATOMS = 1 << 14  # of other devices, which compute one after the other anyway
_NOT_SETTINGS = ("paths", "output", "table", "resume", "as_json", "verbose")  # parameters that change no result


def device_of(records: Sequence[Record], work: MinimizeRequest) -> str:
    """Name the devices that computed records, or the one that would have."""
    devices = dict.fromkeys(str(record["device"]) for record in records if "device" in record)
    return ", ".join(devices) or str(work.facts()["device"])


def require_options(options: Mapping[str, Any]) -> None:
    """Raise InputError or DeviceError for options of the Minimizer with which no structure can be minimised."""
    Stopping(**{field.name: options[field.name] for field in fields(Stopping)})
    descent_of(options["method"], options["constraints"])
    EnergyOptions(True, True, False, options["cutoff"], options["one_four"])
    get_device(options["device"]).require_precision(options["precision"])


def settings_given() -> dict[str, str]:
    """Write the parameters that results depend on as a journal has them: files by what they hold, wherever they are."""
    context = click.get_current_context()
    given = {name: value for name, value in context.params.items() if value and name not in _NOT_SETTINGS}
    return {name: parameter_text(name, value) for name, value in given.items()}


def parameter_text(name: str, value: object) -> str:
    """A parameter's value as the journal has it."""
    if name == "forcefield":  # names of force fields, and of files
        value = tuple(map(Path, str(value).split(",")))
    values = value if isinstance(value, tuple) else (value,)
    return str([content_of(each) or str(each) if isinstance(each, Path) else str(each) for each in values])


@dataclass(frozen=True)
class MinimizeRequest:
    """All that a run was told.

    options : of the Minimizer, the same for all structures
    are_many : whether one input has many conformations, as frames or, with models "all", as models
    call : of the command, which files name; strict : whether findings that are noted otherwise are refused
    """

    read_atoms: ReadAtoms
    options: Mapping[str, Any]
    held: RestraintOptions
    targets: OutputTargets
    trajectory: FrameOptions
    models: str
    call: Call
    strict: bool

    @property
    def are_many(self) -> bool:
        return bool(self.trajectory.paths) or self.models == "all"

    @property
    def atoms_together(self) -> int:
        """Atoms of the conformations that are minimised together."""
        return _ATOMS_TOGETHER.get(get_device(self.options["device"]).kind, _FEWER_ATOMS)

    def facts(self) -> dict[str, object]:
        """Give the facts that depend on the process that computes."""
        return {"device": str(get_device(self.options["device"]))}

    def journal(self, shard: Shard | None = None, names: Sequence[str] = ()) -> Journal:
        """Open the journal of the run; names : of the structures of all shards, in their order"""
        path = self.targets.journal
        own = path if shard is None or path is None else shard.path(path)
        return Journal(own, settings_given(), kind=MINIMIZED, shard=shard, items=names, waits=True)

    def minimized(
        self, molecules: Sequence[Atoms], each: EachOptions | None, progress: StructureLine | None
    ) -> MinimizeBatch:
        """Minimise molecules, each held as `each` says; failures are recorded."""
        watch = None if progress is None else progress.watch
        return minimize_many(molecules, each=each, errors="record", watch=watch, **self.options)

    def content(self, source: InputFile, atoms: Atoms, n: int, call: Mapping[str, str] | None = None) -> Content:
        """Make the content of a file of n conformations, with occupancies and B-factors of the source; call : facts"""
        b_factors = None if atoms.labels is None else read_b_factors(source, atoms.labels)
        return Content(
            atoms, n, str(source), b_factors, self.options["precision"],
            {**provenance(source, call, self.read_atoms.coordinates_of(source.path)), "notes": list(atoms.notes) or ""},
        )  # fmt: skip


def records_of_files(work: MinimizeRequest, paths: Sequence[Path], resume: bool) -> list[Record]:
    """Minimise all structures, or a shard; give their records, in their order."""
    context = click.get_current_context()
    cluster = cluster_options_of(context)
    wanted = paths if cluster.shard is None else cluster.shard.part(paths, "structures")
    place = cluster.place(context.params["device"])
    lean = replace(work, targets=replace(work.targets, files={}))  # there may be thousands
    with StructureLine(len(wanted)) as progress:
        spec = MinimizeSpec(
            output=str(work.targets.output), reading=work.read_atoms, options=work.options, strict=work.strict,
            held=work.held.each, content=_Contents(lean), watch=progress.watch, tell=progress.begin,
        )  # fmt: skip
        journal = work.journal(cluster.shard, list(map(str, paths)))
        passed_over = progress.pass_over_elsewhere if place.is_remote else progress.pass_over
        found = run_with(spec, list(wanted), journal, resume, place, passed_over)
        return list(progress.counted(found) if place.is_remote else found)


@dataclass(frozen=True)
class _Contents:
    """Contents of files, which are written as each structure's own call writes them."""

    work: MinimizeRequest

    def __call__(self, source: InputFile, target: Path) -> Callable[[Atoms], Content]:
        """Give the function that makes the content of atoms, for a file that was just read."""

        def content(atoms: Atoms) -> Content:
            return self.work.content(source, atoms, 1, self.work.call.facts(source.path, output=target, table=None))

        return content
