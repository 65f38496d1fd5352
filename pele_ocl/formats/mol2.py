"""Reader of Tripos mol2 files: positions, charges, bonds, and SYBYL or GAFF atom types of ligands."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from os import PathLike
from typing import NoReturn

import numpy as np

from ..atoms import Atoms, Floats, Ints, Labels, given_default_radii
from ..atoms.chemistry import element
from ..common.errors import FormatError
from ..common.inputfile import InputFile, read_file
from ..common.textfiles import lines, number, quoted
from .assembly import model_note, shown_models
from .registry import StructureFormat

Row = tuple[int, list[str]]  # line number and fields

_TYPE, _RESIDUE_NUMBER, _RESIDUE, _CHARGE = 5, 6, 7, 8  # indices of the fields of an atom
_TWO_LETTERS = ("cl", "br")
_SET, _SET_WITHOUT_BONDS = "mbondi2", "bondi"


@dataclass
class _Molecule:
    """Rows of each section of a molecule."""

    sections: dict[str, list[Row]] = field(default_factory=dict)

    def rows(self, name: str) -> list[Row]:
        return self.sections.get(name, [])


def read_mol2(path: str | PathLike[str], model: int | None = None) -> Atoms:
    """Read the atoms of a mol2 file with charges, bonds and types.

    GB radii are those of the set mbondi2, or bondi if there are no bonds. There are no Lennard-Jones parameters.

    model : number of the molecule in a file with several, from 1; by default the first

    Raises FormatError, with the line, if the file cannot be read or has no charges.
    """
    file = read_file(path)
    molecules = _molecules(file)
    if model is not None and not 1 <= model <= len(molecules):
        raise FormatError(f"{file}: has no model {model}; it has {shown_models(range(1, len(molecules) + 1))}")
    chosen = molecules[(model or 1) - 1]
    rows = chosen.rows("ATOM")
    head = [fields[0].upper() for _, fields in chosen.rows("MOLECULE")]
    if "NO_CHARGES" in head:
        raise FormatError(
            f"{file}: contains NO_CHARGES; write it with charges, for example with antechamber or Open Babel"
        )
    values = np.array([_numbers(row, file) for row in rows])
    bonds = _bonds(chosen.rows("BOND"), [fields[0] for _, fields in rows], file)
    atoms = Atoms(
        positions=values[:, :3],
        charges=values[:, 3],
        labels=_labels(rows),
        bonds=bonds,
        types=np.array([fields[_TYPE] for _, fields in rows], np.str_),
        notes=(model_note(str(file), 1),) if model is None and len(molecules) > 1 else (),
    )
    return given_default_radii(atoms, _SET if len(bonds) else _SET_WITHOUT_BONDS)


def mol2_graphs(file: InputFile) -> list[Callable[[], tuple[list[str], Floats, Ints, list[str]]]]:
    """Return a function for each molecule that reads its elements, positions (n, 3) A, bonds (m, 2) and bond types.

    The function raises FormatError, with the line, if the molecule cannot be read. Charges are ignored.
    """
    return [partial(_graph, molecule, file) for molecule in _molecules(file)]


def mol2_columns(file: InputFile) -> tuple[list[str], list[float] | None]:
    """Return the atom names and partial charges (e) of the first molecule; charges are None if missing or all 0."""
    found = [molecule for molecule in _each(file) if molecule.rows("ATOM")]
    rows = found[0].rows("ATOM") if found else []
    charges = [number(fields[_CHARGE]) if len(fields) > _CHARGE else None for _, fields in rows]
    known = [charge for charge in charges if charge is not None and math.isfinite(charge)]
    return [fields[1] if len(fields) > 1 else "" for _, fields in rows], known if len(known) == len(rows) and any(
        known
    ) else None


def _graph(molecule: _Molecule, file: InputFile) -> tuple[list[str], Floats, Ints, list[str]]:
    rows = molecule.rows("ATOM")
    positions = np.array([_numbers(row, file, (2, 3, 4)) for row in rows]).reshape(-1, 3)
    elements = [_element(fields[_TYPE], fields[1]) for _, fields in rows]
    identifiers, pairs, kinds = [fields[0] for _, fields in rows], list[Ints](), list[str]()
    for row in molecule.rows("BOND"):
        pairs.append(_bonds([row], identifiers, file))
        kinds.append(row[1][3] if len(row[1]) > 3 else "")
    return elements, positions, np.array(pairs, np.int32).reshape(-1, 2), kinds


def mol2_titles(file: InputFile) -> list[str]:
    """Return the name of each molecule, "" for none."""
    return [" ".join(rows[0][1]) if (rows := of.rows("MOLECULE")) else "" for of in _molecules(file)]


def mol2_models(file: InputFile) -> list[int]:
    """Return the numbers of the molecules, from 1."""
    return list(range(1, len(_molecules(file)) + 1))


def _molecules(file: InputFile) -> list[_Molecule]:
    found = [molecule for molecule in _each(file) if molecule.rows("ATOM")]
    return found or _none(file)


def _none(file: InputFile) -> NoReturn:
    raise FormatError(f"{file}: contains no @<TRIPOS>ATOM section with atoms; is it a mol2 file?")


def _each(file: InputFile) -> Iterator[_Molecule]:
    molecule, section = _Molecule(), ""
    for line_number, line in enumerate(lines(file, "mol2"), 1):
        text = line.strip()
        if text.startswith("@<TRIPOS>"):
            section = text.removeprefix("@<TRIPOS>").strip().upper()
            if section == "MOLECULE":
                yield molecule
                molecule = _Molecule()
            molecule.sections.setdefault(section, [])
        elif text and not text.startswith("#") and section:
            molecule.sections[section].append((line_number, text.split()))
    yield molecule


def _numbers(row: Row, file: InputFile, columns: Sequence[int] = (2, 3, 4, _CHARGE)) -> list[float]:
    """Return x, y, z and charge of an atom, or the numbers in other columns."""
    line_number, fields = row
    if len(fields) <= max(*columns, _TYPE):
        raise FormatError(
            f"{file}:{line_number}: an atom needs number, name, x, y, z, type, residue number, residue and charge, not "
            f"{len(fields)} fields"
        )
    values = [number(fields[k]) for k in columns]
    for value, k in zip(values, columns, strict=True):
        if value is None or not math.isfinite(value):
            raise FormatError(f"{file}:{line_number}: {quoted(fields[k])} is not a number")
    return [value for value in values if value is not None]


def _labels(rows: list[Row]) -> Labels:
    numbers = [fields[_RESIDUE_NUMBER] for _, fields in rows]
    changes = [k > 0 and numbers[k] != numbers[k - 1] for k in range(len(numbers))]
    # AMBER appends the residue number to the residue name, as in ALA3.
    residues = [fields[_RESIDUE].removesuffix(fields[_RESIDUE_NUMBER]) or fields[_RESIDUE] for _, fields in rows]
    return Labels(
        names=np.array([fields[1] for _, fields in rows], np.str_),
        elements=np.array([_element(fields[_TYPE], fields[1]) for _, fields in rows], np.str_),
        residue_names=np.array(residues, np.str_),
        residue_numbers=np.array([int(text) if text.isdecimal() else 1 for text in numbers], np.int32),
        insertion_codes=np.full(len(rows), ""),
        chains=np.full(len(rows), ""),
        residue_index=np.cumsum(changes, dtype=np.int32),
    )


def _element(kind: str, name: str) -> str:
    """Return the element of a SYBYL type (C.ar, Cl) or GAFF type (ca, cl); otherwise that of the atom name."""
    symbol = kind.split(".")[0]
    if symbol[:1].islower():
        return symbol[:2].capitalize() if symbol[:2] in _TWO_LETTERS else symbol[0].upper()
    return element(name, "", symbol)


def _bonds(rows: list[Row], identifiers: list[str], file: InputFile) -> Ints:
    """Return the bonds (m, 2) as atom indices, from the atom identifiers in the file."""
    places = {identifier: k for k, identifier in enumerate(identifiers)}
    pairs = []
    for line_number, fields in rows:
        ends = fields[1:3]
        unknown = [end for end in ends if end not in places]
        if len(ends) < 2 or unknown or ends[0] == ends[1]:
            raise FormatError(
                f"{file}:{line_number}: {quoted(' '.join(fields))} is not a bond of two atoms of the file"
            )
        pairs.append(sorted(places[end] for end in ends))
    return np.unique(np.array(pairs, np.int32).reshape(-1, 2), axis=0)


FORMAT = StructureFormat(
    read_mol2,
    mol2_models,
    brings_parameters=True,
    kind="a mol2 file",
    has_lennard_jones=False,
    advice="give the molecule as an SDF file, or with a structure as its ligand file (`ligands`), for GAFF2's "
    "parameters; or an AMBER topology of the ligand, or its OpenMM XML file with a .pdb file "
    "(`forcefield='amber14,ligand.xml'`)",
)
