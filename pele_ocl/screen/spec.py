"""Job that screens molecules, with a record and a refined complex per molecule."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Labels
from ..atoms.chemistry import is_water
from ..atoms.small_molecules import SmallMolecules
from ..common.errors import InputError, PeleError
from ..common.hashing import sha256_of
from ..common.inputfile import read_file
from ..energy.result import BONDED_TERMS
from ..explore.refinement_spec import RefinementSpec
from ..formats import read_conformations
from ..formats.conformation_files import Content, write_conformation
from ..jobs.facts import composition_as_json, settings
from ..jobs.journal import make_folder
from ..jobs.records import WRITTEN, Record
from ..jobs.texts import counted
from ..ligand.docked import SCORE
from ..reading import Reading
from .molecules import Entry, Given, entries_of
from .reference import Natives
from .screener import Scored, Screener

SCREENED = "screened molecules"  # kind of the journal
COMPLEXES = "complexes"  # folder of the refined complexes
LIGAND = "ligand"  # key in journal records for the positions of the refined ligand
_CANCEL = (*BONDED_TERMS, "lennard_jones_14", "coulomb_14")  # terms that cancel, as the parts are not bonded
_SETTLED = ("output", "keep", "docking_score")  # fields that do not affect results


@dataclass(frozen=True, eq=False)
class ScreenSpec(RefinementSpec):
    """Refine and score molecules in one receptor, and write each complex. Items are indices of molecules, from 0.

    receptor : path or Atoms; ligands : files, folders, Ligand objects or Atoms; reading : how the receptor is read;
        `ligand_forcefield`, `ligand_charges` and `ligand_hydrogens` also apply to ligands
    output : folder, "" to write no files; options : options of Screener
    add_strain : whether strain is added to the score
    docking_score : name of the molecules' property with the docking score
    keep_water : whether to keep the receptor's water
    native : file of known poses for the rmsd; strict : True to refuse receptors with findings that otherwise only cause
        notes
    keep : called with the index of each molecule and its complex, in this process only

    `source`, `given`, `screener`, `entries` and `natives` are computed on first use.
    """

    receptor: Path | Atoms
    ligands: tuple[Given, ...]
    output: str = ""
    reading: Reading = field(default_factory=Reading)
    options: Mapping[str, Any] = field(default_factory=dict)
    add_strain: bool = False
    docking_score: str = SCORE
    keep_water: bool = False
    native: Path | None = None
    strict: bool = False
    keep: Callable[[int, Atoms], None] | None = None

    _unnamed = "the receptor"

    @property
    def structure(self) -> Path | Atoms:
        """The receptor."""
        return self.receptor

    @property
    def given(self) -> Atoms:
        """Atoms of the receptor. Raises InputError if it is refused."""
        return self._given[0]

    @property
    def of_water(self) -> str:
        """Note about removed water, "" for none."""
        return self._given[1]

    @cached_property
    def _given(self) -> tuple[Atoms, str]:
        n = 0
        if isinstance(self.receptor, Atoms):
            atoms = self.receptor
        else:
            assert self.source is not None
            without = ",".join(filter(None, (self.reading.without, "water")))
            reading = self.reading if self.keep_water else replace(self.reading, without=without)
            atoms, taken = reading.chosen(self.source)
            if taken is not None and taken.labels is not None and not self.keep_water:
                n = len(np.unique(taken.labels.residue_index[~taken.mask & _water_in(taken.labels)]))
        if not self.keep_water and atoms.labels is not None:
            water = _water_in(atoms.labels)
            if water.any():
                n += len(np.unique(atoms.labels.residue_index[water]))
                if water.all():
                    raise InputError(f"{self.title}: contains only water")
                atoms = atoms[~water]
        left_out = f"{counted(n, 'water molecule')} of the receptor {'was' if n == 1 else 'were'} left out" if n else ""
        if left_out:
            atoms = replace(atoms, notes=(*atoms.notes, left_out))
        self.check(atoms)
        return atoms, left_out

    @cached_property
    def screener(self) -> Screener:
        """Screener of this process."""
        return Screener(self.given, **self.options)

    @cached_property
    def entries(self) -> list[Entry]:
        """Molecules, in input order."""
        return entries_of(self.ligands, self.reading)

    @cached_property
    def natives(self) -> Natives | None:
        """Known poses, None without any."""
        return None if self.native is None else Natives.read(self.native)

    def items(self) -> list[int]:
        """Return the indices of all molecules.

        Raises PeleError for an unusable receptor or unusable known poses, and if a small molecule of the receptor
        overlaps with the first pose.
        """
        _ = self.natives, self.screener  # fail before the first molecule is screened
        first = next((of for of in self.entries if not isinstance(of.given, PeleError)), None)
        if first is not None:
            try:
                SmallMolecules(self.given).require_apart(self.given.positions, first.heavy)
            except InputError as error:
                raise InputError(f"{self.title}: {error}", code=error.code) from None
        return list(range(len(self.entries)))

    def name(self, item: int) -> str:
        """Return the name of a molecule's row and files."""
        return self.entries[item].name

    def sha256(self, item: int) -> str:
        """Compute the hash of a molecule from its graph and positions, and the receptor."""
        own = self.entries[item].mark
        return sha256_of([self._mark, own]) if own else ""

    def settings(self) -> dict[str, str]:
        """Return as texts all fields that affect results."""
        passed_over = (*_SETTLED, "ligands")
        found = {name: text for name, text in super().settings().items() if name not in passed_over}
        return found | {"receptor": self._mark, "options": sha256_of(self.options)}

    def target(self, item: int) -> Path | None:
        """Return the path of a refined complex; None if no files are written."""
        return Path(self.output) / COMPLEXES / f"{self.name(item)}.pdb" if self.output else None

    def groups(self, items: Sequence[int]) -> Iterator[Sequence[int]]:
        """Split molecules into groups that are screened together."""
        size = self.screener.together
        return (items[first : first + size] for first in range(0, len(items), size))

    def parameters_of(self, item: int) -> Atoms:
        """Return a molecule's atoms with parameters. Raises PeleError if parameters cannot be assigned."""
        return self.entries[item].parametrized(self.reading.ligand_forcefield, self.reading.ligand_charges)

    def records(self, items: Iterable[int], begin: Callable[[], None]) -> Iterator[Record]:
        """Screen molecules, group by group, and write each complex. begin : called before a file is written

        Parameters of the next group are assigned while the device computes the current one.
        """
        groups = list(self.groups(list(items)))
        with ThreadPoolExecutor(_n_cores()) as pool:
            under_way = [pool.submit(self._parameters, item) for item in (groups[0] if groups else ())]
            try:
                for group, following in zip(groups, [*groups[1:], ()], strict=True):
                    found = [of.result() for of in under_way]
                    under_way = [pool.submit(self._parameters, item) for item in following]
                    yield from self._group(group, found, begin)
            finally:
                _cancel(under_way)

    def _parameters(self, item: int) -> Atoms | PeleError:
        try:
            return self.parameters_of(item)
        except PeleError as error:
            return error

    def _group(
        self, group: Sequence[int], found: Sequence[Atoms | PeleError], begin: Callable[[], None]
    ) -> Iterator[Record]:
        good = [(item, atoms) for item, atoms in zip(group, found, strict=True) if isinstance(atoms, Atoms)]
        scored = dict(zip([item for item, _ in good], self.screener.screen([atoms for _, atoms in good]), strict=True))
        for item, atoms in zip(group, found, strict=True):
            one = atoms if isinstance(atoms, PeleError) else scored[item]
            name, mark = self.name(item), self.sha256(item)
            if isinstance(one, PeleError):
                yield Record.failed_by(one, name, mark)
                continue
            assert isinstance(atoms, Atoms)
            more: dict[str, Any] = {LIGAND: one.ligand.round(4).tolist()}
            target = self.target(item)
            if target is not None:
                begin()
                make_folder(target.parent)
                write_conformation(target, Content(one.atoms, source=self.title))
                more[WRITTEN] = read_file(target).sha256
            if self.keep is not None:
                self.keep(item, one.atoms)
            yield Record(name, mark, self._result(self.entries[item], atoms, one), more=more)

    def _result(self, entry: Entry, ligand: Atoms, one: Scored) -> dict[str, Any]:
        """Return the result of a record."""
        score = one.binding + (one.strain if self.add_strain else 0.0)
        rmsds = dict[str, float]()
        for name, where in (("rmsd_before", ligand.positions), ("rmsd_after", one.ligand)):
            rmsd = None if self.natives is None else self.natives.rmsd(ligand, where)
            rmsds |= {} if rmsd is None else {name: rmsd}
        error = {} if one.binding_error is None else {"binding_error": _finite(one.binding_error)}
        terms = {name: _finite(value) for name, value in one.terms.items() if name not in _CANCEL}
        return {
            **entry.facts(ligand), "score": _finite(score), "binding": _finite(one.binding), **error,
            "strain": _finite(one.strain), "terms": terms,
            "clashes": {"before": one.clashes[0], "after": one.clashes[1]}, "moved": one.moved, **rmsds,
            "iterations": one.iterations, "converged": one.converged, "notes": list(ligand.notes),
        }  # fmt: skip

    def write(self, atoms: Atoms, item: int, folder: Path) -> str:
        """Write a complex to a folder, unless it was written there before, and return the SHA-256 of its file."""
        target = folder / COMPLEXES / f"{self.name(item)}.pdb"
        if target != self.target(item):
            make_folder(target.parent)
            write_conformation(target, Content(atoms, source=self.title))
        return read_file(target).sha256

    def complex_of(self, item: int) -> Atoms:
        """Rebuild the refined complex of a molecule from its file."""
        target = self.target(item)
        assert target is not None
        atoms = self.screener.receptor + self.parameters_of(item)
        return self.screener.model.choose_radii(atoms).moved(read_conformations(target)[1][0])

    def facts_of_receptor(self) -> dict[str, Any]:
        """Return the facts of a record that are common to all molecules."""
        screener = self.screener
        passed_over = ("model", "device", "precision", "pb")
        own = {name: value for name, value in self.options.items() if name not in passed_over}
        radii = screener.model.choose_radii(screener.receptor)
        return {
            "n_atoms": len(screener.receptor),
            "composition": composition_as_json(screener.receptor),
            "device": str(screener.device),
            "variant": screener.variant,
            "precision": screener.precision,
            "settings": {
                **settings(screener.model, radii), **own, "scored_by": "gb" if screener.pb is None else "pb",
                "add_strain": self.add_strain, "ligand_forcefield": self.reading.ligand_forcefield,
                "ligand_charges": self.reading.ligand_charges,
            },
            "notes": list(self.given.notes),
        }  # fmt: skip


def _water_in(labels: Labels) -> NDArray[np.bool_]:
    """Return a mask (n,) of the water atoms."""
    return np.array([is_water(name) for name in labels.residue_names], bool)


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _n_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def _cancel(under_way: Sequence[Future[Any]]) -> None:
    for of in under_way:
        of.cancel()
