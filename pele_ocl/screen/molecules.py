"""Molecules to screen, from files, folders or memory, each with a unique name."""

from __future__ import annotations

import glob
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ..atoms import Atoms, Floats
from ..atoms.graphs import Graph
from ..common.errors import FormatError, InputError, PeleError
from ..common.hashing import sha256_of
from ..common.inputfile import read_file
from ..formats import brings_parameters, is_structure
from ..formats.structures import is_topology
from ..jobs.outputs import UniqueNames
from ..ligand import Ligand, ligand_makers, ligand_of_mol
from ..ligand.molecule import MOLECULES
from ..reading import Reading, read

Given: TypeAlias = "Path | Ligand | Atoms | Unread"
_POSITIONS = (".rst7", ".inpcrd", ".ncrst", ".restrt", ".pdb")  # coordinate files next to a topology
_PACKED = (".gz", ".bz2")


@dataclass(frozen=True)
class Unread:
    """A molecule that cannot be used. title : its name, "" for none; why : error message"""

    title: str
    why: str


def of_mol(molecule: Any, number: int, reading: Reading) -> Ligand | Unread:
    """Convert an RDKit Mol to a Ligand, or return an Unread if this fails. number : position in the input, from 1"""
    try:
        return ligand_of_mol(
            molecule, f"Mol {number:,}", hydrogens=reading.ligand_hydrogens, ph=reading.ligand_ph
        )  # fmt: skip
    except PeleError as error:
        return Unread(molecule.GetProp("_Name").strip() if molecule.HasProp("_Name") else "", str(error))


@dataclass(frozen=True, eq=False)
class Entry:
    """A molecule or pose.

    name : name of its row and files, with letters, digits and . _ - only; title : name in the input, "" for none
    given : the molecule, Atoms if it has parameters, or the error that occurred
    """

    name: str
    title: str
    given: Ligand | Atoms | PeleError

    @cached_property
    def mark(self) -> str:
        """SHA-256 of the molecule, "" if it could not be read."""
        of = self.given
        if isinstance(of, PeleError):
            return ""
        if isinstance(of, Ligand):
            charges = [atom.GetFormalCharge() for atom in of.molecule.GetAtoms()]
            own: list[Any] = [list(of.elements), of.bonds.tolist(), charges, of.positions.round(4).tolist()]
            return sha256_of([self.title, of.smiles, *own])
        return sha256_of([self.title, of.charges.tolist(), of.positions.round(4).tolist()])

    @property
    def heavy(self) -> Floats:
        """Positions of the heavy atoms, (k, 3) A; empty for molecules that could not be read or lack elements."""
        of = self.given
        elements = of.elements if isinstance(of, Ligand) else getattr(getattr(of, "labels", None), "elements", None)
        if isinstance(of, PeleError) or elements is None:
            return np.empty((0, 3))
        found: Floats = of.positions[np.asarray(elements) != "H"]
        return found

    def parametrized(self, forcefield: str, charges: str) -> Atoms:
        """Return the atoms with parameters. Raises PeleError if parameters cannot be assigned."""
        if isinstance(self.given, PeleError):
            raise self.given
        return self.given if isinstance(self.given, Atoms) else self.given.parametrize(forcefield, charges)

    @property
    def numbers(self) -> dict[str, float]:
        """Numeric properties in the file, by name."""
        properties = self.given.properties if isinstance(self.given, Ligand) else {}
        return {name: value for name, text in properties.items() if (value := _number(text)) is not None}

    @property
    def molecule(self) -> str:
        """Identifier shared by all poses of a molecule: its SMILES, or its title."""
        return self.given.smiles if isinstance(self.given, Ligand) else self.title

    def facts(self, atoms: Atoms) -> dict[str, Any]:
        """Return the facts about the molecule for its row."""
        graph = graph_of(atoms)
        formula = self.given.formula if isinstance(self.given, Ligand) else _formula(graph.elements)
        numbers = self.numbers
        return {
            "title": self.title, **({"properties": numbers} if numbers else {}), "formula": formula,
            "n_atoms": len(atoms), "n_heavy": len(graph.heavy),
            "charge": round(float(atoms.charges.sum())),
        }  # fmt: skip


def entries_of(given: Sequence[Given], reading: Reading | None = None) -> list[Entry]:
    """List the molecules of files, folders and memory in order; unreadable ones are included with their error.

    reading : how structure files, such as of peptides, are read, and whether hydrogens are added to other molecules

    Raises FormatError for files or folders that do not exist or contain no molecules.
    """
    names = UniqueNames()
    found = [
        Entry(names.of(title, otherwise, "ligand"), title, of)
        for title, otherwise, of in _molecules(given, reading or Reading())
    ]
    if not found:
        raise FormatError("no molecules to screen are given")
    return found


def files_in(folder: Path) -> list[Path]:
    """List the molecule files in a folder, in natural order of their names."""
    return sorted(
        (path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".") and _is_taken(path)),
        key=lambda path: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", path.name.lower())],
    )


def graph_of(atoms: Atoms) -> Graph:
    """Return the graph of a molecule: its elements and bonds."""
    if atoms.labels is None:
        raise InputError("these atoms have no elements; read them from a structure file")
    return Graph.of(atoms.labels.elements.tolist(), atoms.bond_pairs)


def _is_taken(path: Path) -> bool:
    if _suffix(path) in MOLECULES or is_topology(path):
        return True
    beside = path.parent.glob(f"{glob.escape(_bare(path).stem)}.*")  # the file may have the positions of a topology
    return _is_structure(path) and not any(map(is_topology, beside))


def _is_structure(path: Path) -> bool:
    """Return whether a file needs a force field, such as a PDB file of a peptide."""
    known = is_structure(path) and _suffix(path) not in MOLECULES
    return known and not brings_parameters(path)


def _own(reading: Reading) -> Reading:
    """Return the Reading for ligands: the receptor's force field, without its selections."""
    return replace(reading, ligands=(), select=None, without=None, only=None, model=None, coordinates=(), structures=())


def _suffix(path: Path) -> str:
    return _bare(path).suffix.lower()


def _bare(path: Path) -> Path:
    return path.with_suffix("") if path.suffix.lower() in _PACKED else path


def _molecules(given: Sequence[Given], reading: Reading) -> Iterator[tuple[str, str, Ligand | Atoms | PeleError]]:
    """Yield the title, a fallback name, and the molecule."""
    for number, each in enumerate(given, 1):
        if isinstance(each, Ligand):
            yield each.name, f"ligand_{number}", each
        elif isinstance(each, Atoms):
            yield "", f"ligand_{number}", each
        elif isinstance(each, Unread):
            yield each.title, f"ligand_{number}", InputError(each.why)
        elif each.is_dir():
            files = files_in(each)
            if not files:
                raise FormatError(f"{each}: contains no molecule files ({', '.join(MOLECULES)}, .prmtop with .rst7)")
            for path in files:
                yield from _of_file(path, reading)
        else:
            yield from _of_file(each, reading)


def _of_file(path: Path, reading: Reading) -> Iterator[tuple[str, str, Ligand | Atoms | PeleError]]:
    stem = _bare(path).stem
    if is_topology(path) or _is_structure(path):
        try:
            yield stem, stem, _with_positions(path) if is_topology(path) else _own(reading)(read_file(path))
        except PeleError as error:
            yield stem, stem, error
        return
    try:
        makers = list(ligand_makers(
            path, hydrogens=reading.ligand_hydrogens, ph=reading.ligand_ph, word="ligand_hydrogens"
        ))  # fmt: skip
        if not makers:
            raise FormatError(f"{path}: contains no molecule")
    except PeleError as error:
        if not path.is_file():
            raise
        yield "", stem, error
        return
    for number, make in enumerate(makers, 1):
        otherwise = f"{stem}_{number}" if len(makers) > 1 else stem
        try:
            ligand = make()
        except PeleError as error:
            yield make.title, otherwise, InputError(str(error))
        else:
            yield ligand.name or make.title, otherwise, ligand


def _with_positions(path: Path) -> Atoms:
    """Read a topology with positions from the file of the same name next to it."""
    stem = _bare(path)
    for suffix in _POSITIONS:
        for packed in ("", *_PACKED):
            beside = stem.with_suffix(suffix + packed)
            if beside.is_file():
                return read(path, coordinates=beside)
    raise FormatError(f"{path}: has no positions; put them next to it in {stem.with_suffix('.rst7').name}")


def _number(text: str) -> float | None:
    """Convert a text to a finite number, None if it is not one."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if np.isfinite(value) else None


def _formula(elements: Sequence[str]) -> str:
    """Return the molecular formula in Hill order."""
    counts = Counter(elements)
    first = [name for name in ("C", "H") if "C" in counts and name in counts]
    order = [*first, *sorted(counts.keys() - set(first))]
    return "".join(f"{name}{counts[name] if counts[name] > 1 else ''}" for name in order)


def best_of(titles: Sequence[str], scores: Sequence[float]) -> dict[str, int]:
    """Return the index of the best pose of each molecule, by title."""
    found = dict[str, int]()
    for k, (title, score) in enumerate(zip(titles, scores, strict=True)):
        if np.isfinite(score) and (title not in found or score < scores[found[title]]):
            found[title] = k
    return found
