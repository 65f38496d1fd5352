"""Keywords that public functions share, as types for checkers and editors, and as signatures for `help`.

A function that sorts further keywords by a Door says which groups it takes: `@takes("reading", "solvent")`. Types and
defaults of the keywords are those of the dataclasses that they fill: Reading, SolventModel and Run.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from importlib import import_module
from inspect import Parameter, Signature, signature
from os import PathLike
from typing import Any, Literal, TypeAlias, TypedDict

from ..common.variant import Progress
from ..forcefield import ForceField
from ..gb_models.solvent_model import SolventModel
from ..ligand import Hydrogens
from ..reading import Ligands, Reading
from .shards import Run, Shard

Path_: TypeAlias = str | PathLike[str]
Paths: TypeAlias = Path_ | Sequence[Path_]


class ReadingWords(TypedDict, total=False):
    """How files are read: fields of Reading."""

    forcefield: ForceField | str | Sequence[str] | None
    select: str | None
    coordinates: Paths
    parameters: Paths
    radii: str | None
    without: str | None
    only: str | None
    templates: Paths
    obc: Paths
    pele_data: Paths
    guess_radii: bool
    allow_missing_terminals: bool
    allow_scripts: bool
    ligands: Ligands
    ligand_forcefield: str
    ligand_charges: str
    ligand_hydrogens: Hydrogens
    pele_conf: Path_ | None
    ligand_ph: float | None
    ligand_template: Sequence[str] | str


class ReadingOptions(ReadingWords, total=False):
    """How files are read, with the number of the model."""

    model: int | None


class SolventWords(TypedDict, total=False):
    """The solvent: `like`, and fields of SolventModel."""

    like: str | None
    solute_dielectric: float
    solvent_dielectric: float
    ionic_strength: float
    temperature: float
    offset: float
    alpha: float
    beta: float
    gamma: float
    surface_tension: float | None
    probe_radius: float
    born_cutoff: float | None
    gbn_convention: str
    gb: str
    coulomb_constant: float
    kappa_convention: str
    surface: str
    lcpo_unknown: str
    default_radii: str | None
    lcpo_rule: str


class TrajectoryWords(TypedDict, total=False):
    """A trajectory in place of the positions of a structure."""

    trajectory: Paths | None
    frames: str | slice | int | None
    topology: Path_ | None
    image: str | None


class ProcessWords(TypedDict, total=False):
    """How a computation runs: fields of Run."""

    resume: bool
    workers: int | None
    scheduler: str | None
    shard: str | Shard | None
    call: Mapping[str, object] | None
    keep: bool
    errors: Literal["raise", "record"]


class RunWords(ProcessWords, total=False):
    """How a computation runs, and what it writes: fields of Run."""

    output: Path_ | None


class MoleculeWords(ReadingWords, SolventWords, total=False):
    """Of functions that read structures and have a solvent, and a `reading` of their own."""


class StructureWords(MoleculeWords, total=False):
    """Of functions that read structures and have a solvent."""

    reading: Reading | None


class FileWords(StructureWords, TrajectoryWords, ProcessWords, total=False):
    """Of functions that evaluate structures, models or frames, and have an `output` of their own."""


class EvaluationWords(FileWords, RunWords, total=False):
    """Of functions that evaluate structures, models or frames, in this process or by workers."""


class RunningWords(StructureWords, RunWords, total=False):
    """Of functions that read their own trajectories."""

    progress: Progress | None


class ProgressWords(EvaluationWords, total=False):
    """Of those that have no `progress` of their own."""

    progress: Progress | None


_INTERNAL = ("call", "keep", "device")  # of front ends
_GROUPS: dict[str, Callable[[], Iterator[tuple[str, Any]]]] = {
    "reading": lambda: _fields_of(Reading, ReadingOptions, ("pele_conf", None)),
    "solvent": lambda: _fields_of(SolventModel, SolventWords, ("like", None)),
    "trajectory": lambda: ((name, None) for name in TrajectoryWords.__annotations__),
    "run": lambda: _fields_of(Run, RunWords, ("progress", None)),
    "object": lambda: iter([("reading", None)]),
}


def _fields_of(cls: Any, words: Any, *more: tuple[str, Any]) -> Iterator[tuple[str, Any]]:
    """Keywords of a group that fill a dataclass, with their defaults."""
    yield from more
    for of in fields(cls):
        if of.name in words.__annotations__ and of.name not in _INTERNAL:
            yield of.name, of.default_factory() if of.default_factory is not MISSING else of.default


def _pairs_of(group: str, function: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    """Yield keywords of a group with their defaults; ".module:Class" has those fields of the class with defaults."""
    if group in _GROUPS:
        yield from _GROUPS[group]()
        return
    module, _, name = group.partition(":")
    for of in fields(getattr(import_module(module, sys.modules[function.__module__].__package__), name)):
        if of.metadata.get("is_keyword", True) and (of.default, of.default_factory) != (MISSING, MISSING):
            yield of.name, of.default_factory() if of.default_factory is not MISSING else of.default


def signature_of(function: Callable[..., Any], groups: Sequence[str]) -> Signature:
    """Make the signature of a function with the keywords of groups, in place of `**words`."""
    own = signature(function)
    named = {name: of for name, of in own.parameters.items() if of.kind is not Parameter.VAR_KEYWORD}
    further = dict(pair for group in groups for pair in _pairs_of(group, function))
    more = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default)
        for name, default in further.items()
        if name not in named
    ]
    return own.replace(parameters=[*named.values(), *more])
