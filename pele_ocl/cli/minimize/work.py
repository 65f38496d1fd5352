"""The work that a run was told to do, and the outcome of each structure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, cast

import click

from ...atoms import Atoms, Floats
from ...contract import of_energy, of_structure, require
from ...energy.options import Options as EnergyOptions
from ...formats.b_factors import read_b_factors
from ...formats.conformation_files import Content
from ...inputfile import InputFile
from ...minimize import MinimizeBatch, MinimizeResult, minimize_many
from ...minimize.many import EachOptions, as_done
from ...minimize.options import Stopping, descent_of
from ...opencl.device import get_device
from ...trajectories.fingerprints import content_of
from ..cluster import asked_of
from ..contract import is_strict
from ..frames import FrameOptions
from ..options import ReadAtoms
from ..report import provenance
from ..terminal import one_line
from .holding import Holding
from .journal import Journal, Row
from .progress import StructureLine
from .targets import Targets

_ATOMS_TOGETHER = {"GPU": 1 << 21}  # of the structures that are minimised together: many times what it has at once
_FEWER_ATOMS = 1 << 14  # of other devices, which compute one after the other anyway
_NOT_SETTINGS = ("paths", "output", "table", "resume", "as_json", "verbose")  # parameters that change no result


@dataclass(frozen=True, eq=False)
class Outcome:
    """A structure that is done.

    row : what --json prints; n_atoms : 0 where it could not be read or was done earlier
    sha256 : of what it was made from, "" where that could not be read; written : that of its file, where it has one
    positions : (n, 3) A, of a conformation that is still to be written; None of others, and of one that failed
    """

    row: Row
    n_atoms: int = 0
    sha256: str = ""
    positions: Floats | None = None
    written: str = ""

    @classmethod
    def failed_by(cls, reason: str, name: str, sha256: str = "") -> Outcome:
        """That of a structure that failed."""
        return cls({"name": name, "error": one_line(reason)}, sha256=sha256)

    @property
    def failed(self) -> bool:
        return "error" in self.row


def require_options(options: Mapping[str, Any]) -> None:
    """Raise InputError or DeviceError for options of the Minimizer with which no structure can be minimised."""
    Stopping(**{field.name: options[field.name] for field in fields(Stopping)})
    descent_of(options["method"], options["constraints"])
    EnergyOptions(True, True, False, options["cutoff"], options["one_four"])
    get_device(options["device"]).require_precision(options["precision"])


def findings_of(atoms: Atoms, before: object) -> Row:
    """The findings about a given start as a part of its row, empty where there are none; before : its energies.

    Raises InputError where --strict refuses them.
    """
    energies = {term: value for term, value in cast(Mapping[str, float | None], before).items() if value is not None}
    found = [*of_structure(atoms, "noted"), *of_energy(atoms, energies, atoms.positions)]
    require(found, is_strict())
    return {"findings": [finding.as_json() for finding in found]} if found else {}


def setting_of(name: str, value: object) -> str:
    """A parameter's value as the journal has it: files and folders by what they hold, wherever they are."""
    if name == "forcefield":  # names of force fields, and of files
        value = tuple(map(Path, str(value).split(",")))
    values = value if isinstance(value, tuple) else (value,)
    return str([content_of(each) or str(each) if isinstance(each, Path) else str(each) for each in values])


@dataclass(frozen=True)
class Work:
    """All that a run was told.

    options : of the Minimizer, the same for all structures
    are_many : whether one input has many conformations, as frames or, with models "all", as models
    """

    read_atoms: ReadAtoms
    options: Mapping[str, Any]
    holding: Holding
    targets: Targets
    over: FrameOptions
    models: str
    resume: bool

    @property
    def are_many(self) -> bool:
        return bool(self.over.paths) or self.models == "all"

    @property
    def atoms_together(self) -> int:
        """Atoms of the conformations that are minimised together."""
        return _ATOMS_TOGETHER.get(get_device(self.options["device"]).kind, _FEWER_ATOMS)

    @property
    def atoms_of_files(self) -> int:
        """Atoms of the files that are minimised together; 1 for each file by itself.

        Those of one topology share a plan, made of the first of them, on which the last digits of all depend. A GPU
        needs many structures at a time; a CPU gains nothing by them, and so each is the same in whatever company.
        """
        return _ATOMS_TOGETHER.get(get_device(self.options["device"]).kind, 1)

    @property
    def facts(self) -> dict[str, object]:
        """The facts that depend on the process that computes."""
        return {"device": str(get_device(self.options["device"]))}

    @property
    def for_workers(self) -> dict[str, object]:
        """The values with which a worker calls the command, in place of its own."""
        return {"output": self.targets.output, "table": None}

    def journal(self, names: Sequence[str] = ()) -> Journal:
        """The journal of the run. names : of the structures of all shards, in their order"""
        context = click.get_current_context()
        given = {name: value for name, value in context.params.items() if value and name not in _NOT_SETTINGS}
        settings = {name: setting_of(name, value) for name, value in given.items()}
        path, shard = self.targets.journal, asked_of(context).shard
        if shard is None or path is None:
            return Journal(path, settings, self.resume)
        return Journal(shard.path(path), settings, self.resume, {"shard": str(shard), "structures": list(names)})

    def as_done(
        self, molecules: Sequence[Atoms], each: EachOptions | None, progress: StructureLine | None
    ) -> Iterator[tuple[int, MinimizeResult | str]]:
        """The number of each molecule, and its result or why it has none, as they come."""
        return as_done(molecules, each, None, None if progress is None else progress.watch, self.options)

    def minimized(
        self, molecules: Sequence[Atoms], each: EachOptions | None, progress: StructureLine | None
    ) -> MinimizeBatch:
        """The results of molecules, each held as `each` says; failures are recorded."""
        watch = None if progress is None else progress.watch
        return minimize_many(molecules, each=each, errors="record", watch=watch, **self.options)

    def content(self, source: InputFile, atoms: Atoms, n: int) -> Content:
        """The content of a file of n conformations, with the occupancies and B-factors of the source."""
        b_factors = None if atoms.labels is None else read_b_factors(source, atoms.labels)
        return Content(
            atoms, n, str(source), b_factors, self.options["precision"],
            {**provenance(source), "notes": list(atoms.notes) or ""},
        )  # fmt: skip
