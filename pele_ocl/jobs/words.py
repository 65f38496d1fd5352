"""Keywords common to public functions, as types for type checkers and editors, and as signatures for `help`.

A function with `**words`, processed by a Door, declares its groups of keywords: `@takes("reading", "solvent")`. Types
and defaults of the keywords are those of the dataclasses Reading, SolventModel and Run.
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
    """Options for reading files: fields of Reading."""

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
    """Options for reading files, and the model number."""

    model: int | None


class SolventWords(TypedDict, total=False):
    """Options of the solvent: `like`, and fields of SolventModel."""

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
    """Options for a trajectory that replaces the positions of a structure."""

    trajectory: Paths | None
    frames: str | slice | int | None
    topology: Path_ | None
    image: str | None


class ProcessWords(TypedDict, total=False):
    """Options for running a computation: fields of Run."""

    resume: bool
    workers: int | None
    scheduler: str | None
    shard: str | Shard | None
    call: Mapping[str, object] | None
    keep: bool
    errors: Literal["raise", "record"]


class RunWords(ProcessWords, total=False):
    """Options for running a computation and writing results: fields of Run."""

    output: Path_ | None


class MoleculeWords(ReadingWords, SolventWords, total=False):
    """Options of functions that read structures, use a solvent, and declare `reading` themselves."""


class StructureWords(MoleculeWords, total=False):
    """Options of functions that read structures and use a solvent."""

    reading: Reading | None


class FileWords(StructureWords, TrajectoryWords, ProcessWords, total=False):
    """Options of functions that evaluate structures, models or frames, and declare `output` themselves."""


class EvaluationWords(FileWords, RunWords, total=False):
    """Options of functions that evaluate structures, models or frames, in this process or by workers."""


class RunningWords(StructureWords, RunWords, total=False):
    """Options of functions that read trajectories themselves."""

    progress: Progress | None


class ProgressWords(EvaluationWords, total=False):
    """Options of evaluation functions that do not declare `progress` themselves."""

    progress: Progress | None


_INTERNAL = ("call", "keep", "device")  # only for front ends
_GROUPS: dict[str, Callable[[], Iterator[tuple[str, Any]]]] = {
    "reading": lambda: _fields_of(Reading, ReadingOptions, ("pele_conf", None)),
    "solvent": lambda: _fields_of(SolventModel, SolventWords, ("like", None)),
    "trajectory": lambda: ((name, None) for name in TrajectoryWords.__annotations__),
    "run": lambda: _fields_of(Run, RunWords, ("progress", None)),
    "object": lambda: iter([("reading", None)]),
}


def _fields_of(cls: Any, words: Any, *more: tuple[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the keywords of a group with their defaults in a dataclass."""
    yield from more
    for of in fields(cls):
        if of.name in words.__annotations__ and of.name not in _INTERNAL:
            yield of.name, of.default_factory() if of.default_factory is not MISSING else of.default


def _pairs_of(group: str, function: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    """Yield the keywords of a group with their defaults. The group ".module:Class" has the class's optional fields."""
    if group in _GROUPS:
        yield from _GROUPS[group]()
        return
    module, _, name = group.partition(":")
    for of in fields(getattr(import_module(module, sys.modules[function.__module__].__package__), name)):
        if of.metadata.get("is_keyword", True) and (of.default, of.default_factory) != (MISSING, MISSING):
            yield of.name, of.default_factory() if of.default_factory is not MISSING else of.default


def signature_of(function: Callable[..., Any], groups: Sequence[str]) -> Signature:
    """Return the signature of a function with `**words` replaced by the keywords of groups."""
    own = signature(function)
    named = {name: of for name, of in own.parameters.items() if of.kind is not Parameter.VAR_KEYWORD}
    further = dict(pair for group in groups for pair in _pairs_of(group, function))
    more = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default)
        for name, default in further.items()
        if name not in named
    ]
    return own.replace(parameters=[*named.values(), *more])
