"""Molecules of a job's files: one model of a file, or all of them as conformations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats, selectable
from ..atoms.selection import Selection
from ..common.arguments import choice
from ..common.errors import InputError
from ..common.inputfile import InputFile
from ..forcefield import ForceField
from ..formats import (
    brings_parameters,
    is_structure,
    read_conformations,
    read_structure_or_atoms,
    structure_format,
    structure_suffix,
)
from ..reading import read_chosen

Bools = NDArray[np.bool_]
Chosen = tuple[Atoms, Bools | None]
Models = Literal["one", "all"]


class Reads(Protocol):
    """A way to read structures, which pickles."""

    def chosen(self, source: InputFile, number: int | None = None, /) -> Chosen:
        """Read the atoms of a model, and (n,) True for each atom that was taken, None if all were."""

    def unparameterised(self, source: InputFile, /) -> Atoms:
        """Read names and positions, and no parameters."""


@dataclass(frozen=True)
class Reading:
    """Read structures as pele_ocl.read does.

    forcefield : the name of a force field, of files that bring no parameters; by default Amber99SB
    select : the atoms to take, `protein and not resname NAP` say; by default all
    model : number of the model in a file with several; by default the first
    coordinates, parameters : of topologies, as pele_ocl.read takes them
    radii : set of GB radii, for any solvent; by default the file's, or those that go with the solvent
    """

    forcefield: str | None = None
    select: str | None = None
    model: int | None = None
    coordinates: str | None = None
    parameters: tuple[str, ...] = ()
    radii: str | None = None

    def chosen(self, source: InputFile, number: int | None = None, /) -> Chosen:
        """Read the atoms of a file, and tell which they are; number : of the model."""
        field = None if brings_parameters(source) else self._forcefield
        model = self.model if number is None else number
        return read_chosen(
            source, field, model, self.coordinates, self.parameters, select=self.select, radii=self.radii
        )  # fmt: skip

    def unparameterised(self, source: InputFile) -> Atoms:
        """Read names and positions of a file, and no parameters: charges are 0."""
        found = read_structure_or_atoms(source, self.model, self.coordinates, self.parameters)
        bonds = found.bonds if isinstance(found, Atoms) else np.empty((0, 2), np.int32)
        atoms = Atoms(found.positions, np.zeros(len(found.positions)), labels=found.labels, bonds=bonds)
        return atoms if self.select is None else atoms[Selection(self.select).mask(selectable(atoms))]

    @cached_property
    def _forcefield(self) -> ForceField:
        """Load the force field, once for all files."""
        return ForceField.load(self.forcefield)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_forcefield"}


@dataclass(frozen=True, eq=False)
class MoleculeRead:
    """A molecule as it was read.

    source : the file
    atoms : of the only model, or of the first that can be computed
    numbers : of the models, in the order of the file; empty if one model was asked for
    conformations : (m, n, 3) A, a row for each of `numbers`; NaN for a model that cannot be computed
    chosen : (n_all,) True for each atom of the file that was taken, None if all were
    failed : why models cannot be computed, by their place from 0
    """

    source: InputFile
    atoms: Atoms
    numbers: list[int] = field(default_factory=list)
    conformations: Floats | None = None
    chosen: Bools | None = None
    failed: Mapping[int, str] = field(default_factory=dict)

    def models(self) -> Iterator[tuple[int, Atoms]]:
        """Give the place and the atoms of each model that can be computed, of several."""
        assert self.conformations is not None
        for place, positions in enumerate(self.conformations):
            if place not in self.failed:
                yield place, self.atoms.moved(positions)

    def without(self, failed: Mapping[int, str]) -> MoleculeRead:
        """Leave out further models. Raises InputError if none is left."""
        assert self.conformations is not None
        every = dict(sorted({**self.failed, **failed}.items()))
        left = next((place for place in range(len(self.numbers)) if place not in every), None)
        if left is None:
            raise InputError(
                f"{self.source}: none of its {len(self.numbers):,} models can be computed; model {self.numbers[0]}: "
                f"{every[0].removeprefix(f'{self.source}: ')}"
            )
        conformations = self.conformations.copy()
        conformations[list(every)] = np.nan
        atoms = self.atoms.moved(conformations[left])
        return replace(self, atoms=atoms, conformations=conformations, failed=every)


def molecule_of(source: InputFile, reads: Reads, models: str = "one") -> MoleculeRead:
    """Read a molecule; models : "one", or "all" for all models of a PDB file as conformations

    Raises FormatError and ParameterError as the readers do; a model that differs from the first is in `failed`.
    """
    choice("models", models, ("one", "all"))
    if models == "one":
        atoms, chosen = reads.chosen(source)
        return MoleculeRead(source, atoms, chosen=chosen)
    failed = dict[int, str]()
    numbers, conformations = read_conformations(source, failed)
    # The first is asked for by its number, so that no note says that the others were not read.
    first = next((number for place, number in enumerate(numbers) if place not in failed), numbers[0])
    atoms, chosen = reads.chosen(source, first)
    positions = conformations if chosen is None else conformations[:, chosen]
    return MoleculeRead(source, atoms, numbers, positions, chosen, failed)


def require_lennard_jones(path: str | PathLike[str]) -> None:
    """Raise InputError for a file of a format that has no Lennard-Jones parameters."""
    if is_structure(path) and not structure_format(path).has_lennard_jones:
        suffix = structure_suffix(path)
        advice = structure_format(path).advice
        raise InputError(f"{path}: a {suffix} file has no Lennard-Jones parameters; {advice}")
