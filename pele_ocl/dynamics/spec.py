"""Simulation of structures in independent parts, by one or several processes."""

from __future__ import annotations

import csv
import gc
import heapq
import inspect
import json
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..atoms import Atoms
from ..common.errors import InputError
from ..common.hashing import sha256_of
from ..common.inputfile import InputFile, read_file
from ..common.writing import refuse_overwriting, replacing
from ..contract import of_structure, require
from ..ensemble import Ensemble
from ..gb_models.solvent_model import SolventModel
from ..jobs.outputs import held_already
from ..jobs.shards import Shard
from ..jobs.spec import Spec
from ..opencl.device import get_device
from ..reading import Reading
from .bias_words import BiasWords
from .files import (
    CHECKPOINT,
    PARTS,
    TABLES,
    SimulationFiles,
    names_of,
    remove_files,
    require_no_run,
    require_velocities,
)
from .settings import FURTHER, ROOM, rungs_of, solvent_in_bath, temperatures_of
from .simulation import Simulation

_NOT_SETTINGS = ("output", "held", "watch", "resume", "overwrite", "inputs", "shard")
_OF_SIMULATION = FURTHER | inspect.signature(Simulation).parameters.keys()  # other options are passed to Ensemble


@dataclass(frozen=True, eq=False)
class SimulateSpec(Spec[range]):
    """Simulate replicas of structures; each item of `spec.items()` is a part, a range of replicas.

    Parts write trajectories to the folder `output`, and separate tables and checkpoints; `join` merges the tables. A
    part that was started before continues from its checkpoint.

    paths : paths of the structures, or Atoms; `names` are used for their files
    replicas : number of replicas of each structure; together : replicas per part, complete ladders; None for all
    shard : divides the replicas among several processes; None for no sharding. All shards share `output`
    n_steps : number of time steps; every : steps between reports
    reading : how files are read; options : keywords of pele_ocl.Simulation
    held : function that returns further options for the atoms of a single structure, such as restraints
    trajectory : "nc", "dcd", "xtc", "h5", "xyz" or "none"; by_temperature : True for a trajectory of each temperature
    velocities : True to write velocities to trajectories, only for "nc" and "h5"
    minimized : minimization iterations before the first step
    strict : True to reject findings that otherwise only cause notes; resume : True to continue a run in `output`
    overwrite : True to replace an earlier run in `output`; it is removed when the first part can begin
    inputs : further files that are read, which are never removed
    bias : collective variables and biases of the structure
    watch : called with the simulation before its first step and after each report, only in this process
    """

    paths: tuple[Path | Atoms, ...]
    output: str
    n_steps: int
    replicas: int = 1
    together: int | None = None
    every: int = 1000
    reading: Reading = field(default_factory=Reading)
    options: Mapping[str, Any] = field(default_factory=dict)
    held: Callable[[Atoms], Mapping[str, Any]] | None = None
    trajectory: str = "nc"
    by_temperature: bool = False
    velocities: bool = False
    minimized: int = 200
    strict: bool = False
    resume: bool = False
    overwrite: bool = False
    inputs: tuple[Path, ...] = ()
    watch: Callable[[Simulation], None] | None = None
    shard: Shard | None = None
    bias: BiasWords | None = None

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"watch": None}

    def settings(self) -> dict[str, str]:
        """Return the fields as strings, except those that do not affect results."""
        found = {name: text for name, text in super().settings().items() if name not in _NOT_SETTINGS}
        held = [sha256_of(of) for of in self.paths if isinstance(of, Atoms)]
        return found | {"options": sha256_of(self.options)} | ({"paths": str([*self.names, *held])} if held else {})

    @cached_property
    def names(self) -> list[str]:
        """Names of the structures, used for their files."""
        return names_of(self.paths)

    @cached_property
    def _read(self) -> dict[str, tuple[InputFile | str, Atoms]]:
        """Cache of the structures read, by name."""
        return {}

    def molecule(self, structure: Path | Atoms) -> tuple[InputFile | str, Atoms]:
        """Return the file (or name, without a file) and the atoms of a structure. Files are read only once.

        structure : one of `paths`

        Raises InputError for a rejected structure.
        """
        name = self.names[next(k for k, of in enumerate(self.paths) if of is structure or of == structure)]
        if name not in self._read:
            source = name if isinstance(structure, Atoms) else read_file(structure)
            atoms = structure if isinstance(structure, Atoms) else self.reading.chosen(read_file(source))[0]
            require(
                of_structure(atoms, "noted", places_sites=True),
                self.strict,
                structure if isinstance(structure, Path) else None,
            )
            self._read[name] = source, atoms
        return self._read[name]

    @property
    def molecules(self) -> list[tuple[InputFile | str, Atoms]]:
        """Files and atoms of all structures."""
        return [self.molecule(of) for of in self.paths]

    @property
    def first_replica(self) -> int:
        """Number of the first replica."""
        return int(self.options.get("first_replica", 0))

    @property
    def model(self) -> SolventModel:
        """Solvent model of all parts; the salt screening depends on the temperatures of the whole run."""
        of = self.options
        return solvent_in_bath(of.get("model"), of.get("temperature"), of.get("anneal"))

    @property
    def n_rungs(self) -> int:
        """Number of replicas per ladder, which are simulated on one device; 1 without exchanges."""
        if self.options.get("exchange_every") is None:
            return 1
        return len(temperatures_of(self._baths))

    def items(self) -> list[range]:
        """Divide the replicas into parts.

        Raises InputError for incomplete ladders, and if the folder contains a run with other parts. Raises FormatError
        for an existing run without `resume`, and for inputs that would be overwritten.
        """
        if self.together is not None and self.together % self.n_rungs:
            raise InputError(
                f"parts of {self.together:,} replicas are not complete ladders of {self.n_rungs} temperatures, which "
                f"must be on one device; use a multiple of {self.n_rungs}"
            )
        if self.velocities:
            require_velocities(self.trajectory)
        for name in self.names:
            for path in self.paths:
                if not isinstance(path, Atoms):
                    refuse_overwriting(Path(self.output) / f"{name}.pdb", path)
        self._require_free()
        self._temperatures(range(0))
        return self._parts_of(self.shard)

    @property
    def _baths(self) -> Any:
        given = self.options.get("temperature")
        return ROOM if given is None else given

    def _temperatures(self, part: range) -> Any:
        """Return the temperatures of the rows of a part; for ladders, of the rungs.

        Raises InputError if the run would not use all temperatures.
        """
        baths, n = temperatures_of(self._baths), self.replicas
        if len(baths) == 1 or self.options.get("exchange_every") is not None:
            return self.options.get("temperature")
        rows = [range(k * n, (k + 1) * n) for k in range(len(self.paths))]
        rungs = rungs_of(len(baths), rows, self.first_replica, exchanges=False)
        return [baths[rungs[of[replica - self.first_replica]]] for of in rows for replica in part]

    @property
    def replicas_of_shard(self) -> range:
        """Replicas of the shard, or all without sharding. Raises InputError for more shards than ladders."""
        return self._replicas_of(self.shard)

    def _replicas_of(self, shard: Shard | None) -> range:
        every = range(self.first_replica, self.first_replica + self.replicas)
        if shard is None:
            return every
        ladders = shard.part(range(-(-self.replicas // self.n_rungs)), "replicas" if self.n_rungs == 1 else "ladders")
        return every[ladders.start * self.n_rungs : ladders.stop * self.n_rungs]

    def _parts_of(self, shard: Shard | None) -> list[range]:
        own = self._replicas_of(shard)
        size = self.together or len(own)
        return [range(first, min(first + size, own.stop)) for first in range(own.start, own.stop, size)]

    @property
    def _parts(self) -> list[range]:
        """Parts of all shards."""
        shards = [None] if self.shard is None else [Shard(k + 1, self.shard.count) for k in range(self.shard.count)]
        return [part for shard in shards for part in self._parts_of(shard)]

    def _require_free(self) -> None:
        """Raise FormatError or InputError if the folder contains a run that would be overwritten."""
        output = Path(self.output)
        if self.overwrite:
            return
        if not self.resume and self.shard is None:
            require_no_run(output)
        elif not self.resume:
            own = [self._folder(part) / TABLES[0] for part in self._parts_of(self.shard)]
            if any(path.exists() for path in (output / CHECKPOINT, *own)):
                raise held_already(output)
        begun = [folder for folder in (output, *output.glob(f"{PARTS}/*")) if (folder / CHECKPOINT).exists()]
        if (self.resume or self.shard is not None) and not set(begun) <= set(map(self._folder, self._parts)):
            raise InputError(
                f"{output}: the interrupted run was divided differently; give the same number of replicas, of "
                "workers and of shards, and the same `replicas_per_device`"
            )

    def remove_earlier(self) -> None:
        """Remove the files of an earlier run in `output`. Raises FormatError if any of them is an input."""
        remove_files(Path(self.output), [*(of for of in self.paths if not isinstance(of, Atoms)), *self.inputs])

    def _folder(self, part: range) -> Path:
        """Return the folder for tables and checkpoint of a part."""
        output = Path(self.output)
        return output if len(part) == self.replicas else output / PARTS / f"{part.start:05d}-{part.stop - 1:05d}"

    def name(self, item: range) -> str:
        """Return a name with the range of replicas."""
        return f"replicas {item.start:,} to {item.stop - 1:,}"

    def sha256(self, item: range) -> str:
        """Return a hash of the structures and the range of replicas."""
        marks = [of.sha256 if isinstance(of, InputFile) else sha256_of(atoms) for of, atoms in self.molecules]
        return sha256_of([*marks, item.start, item.stop])

    def facts(self) -> dict[str, object]:
        """Return the device name, for records."""
        return {"device": str(get_device(self.options.get("device")))}

    def compute(self, item: range) -> dict[str, Any]:
        """Simulate a part, and return its last rows, exchanges and timings."""
        gc.collect()  # frees the device memory of the previous part, which has reference cycles
        atoms = [molecule for _, molecule in self.molecules]
        held = {} if self.held is None else self.held(atoms[0])
        own = {"first_replica": item.start, "temperature": self._temperatures(item)}
        options = {**self.options, "model": self.model, **own, **held}
        of_ensemble = {name: options.pop(name) for name in options.keys() - _OF_SIMULATION}
        if self.bias is not None:
            of_ensemble["terms"] = [*of_ensemble.get("terms", ()), *self.bias.terms(atoms[0])]
        simulation = Simulation(Ensemble(atoms, len(item), **of_ensemble), **options)
        if self.bias is not None:
            self.bias.prepare(simulation, [replica + item.start for replica in simulation.replicas])
        for k, reason in simulation.errors.items():
            raise InputError(f"{self.molecules[k // len(item)][0]}: {reason}")
        recorder = SimulationFiles(
            simulation, Path(self.output), self._folder(item), self.names,
            self.trajectory, by_temperature=self.by_temperature, every=self.every, n_steps=self.n_steps,
            sources=[source for source, _ in self.molecules], minimized=self.minimized, velocities=self.velocities,
            labels={} if self.bias is None else self.bias.labels,
        )  # fmt: skip
        is_first = item.start == self.first_replica
        if self.overwrite and is_first:
            self.remove_earlier()  # only now, since a refused run must not remove an earlier one
        found = recorder.run(has_structures=is_first, watch=self.watch)
        of_all = {"first_replica": self.first_replica, "temperatures": list(temperatures_of(self._baths))}
        return found | {"dynamics": found["dynamics"] | of_all}

    def join(self) -> None:
        """Merge the tables of all parts, in the same order as in a run without parts.

        A shard does nothing if parts of other shards are not finished.
        """
        if len(self._parts) == 1:
            return
        output, places = Path(self.output), {name: k for k, name in enumerate(self.names)}
        folders = [self._folder(part) for part in self._parts]
        if self.shard is not None and not all(_steps_in(folder) == self.n_steps for folder in folders):
            return

        def of_line(line: str) -> tuple[int, int, int]:
            row = json.loads(line)
            return row["step"], places[row["structure"]], row["replica"]

        _merge([folder / TABLES[1] for folder in folders], output / TABLES[1], of_line, has_head=False)

        def of_row(line: str) -> tuple[int, int, int]:
            step, _, structure, replica = next(csv.reader([line]))[:4]
            return int(step), places[structure], int(replica)

        _merge([folder / TABLES[0] for folder in folders], output / TABLES[0], of_row, has_head=True)


def _merge(paths: Sequence[Path], target: Path, key: Callable[[str], tuple[int, int, int]], *, has_head: bool) -> None:
    """Merge sorted tables. key : sort key of a line; has_head : whether the tables begin with a header line"""
    with ExitStack() as stack:
        streams, head = list[Iterator[str]](), ""
        for path in paths:
            stream = stack.enter_context(open(path, encoding="utf-8"))
            head = stream.readline() if has_head else ""
            streams.append(stream)
        temporary = stack.enter_context(replacing(target))
        with open(temporary, "w", encoding="utf-8") as file:
            file.write(head)
            file.writelines(heapq.merge(*streams, key=key))


def _steps_in(folder: Path) -> int | None:
    """Read the number of steps from the checkpoint of a part; None without a valid checkpoint."""
    try:
        with np.load(folder / CHECKPOINT) as arrays:
            return int(arrays["steps"])
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
