"""Molecules in SDF and mol2 files as graphs with positions, without parameters."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from ..atoms import Floats
from ..atoms.chemistry import tidy_element
from ..atoms.graphs import Graph
from ..common.errors import FormatError
from ..common.inputfile import InputFile
from ..common.textfiles import number, plain_bytes, quoted
from .mol2 import mol2_graphs, mol2_titles

_DOUBLE = "2"
_END = "$$$$"
# Formal charges by the code in the atom lines of old files; 4 is a radical.
_OLD_CHARGES = {0: 0, 1: 3, 2: 2, 3: 1, 4: 0, 5: -1, 6: -2, 7: -3}
_UNPAIRED = {0: 0, 1: 0, 2: 1, 3: 2}  # unpaired electrons by the radical code; a singlet has none


@dataclass(frozen=True, eq=False)
class Molecule:
    """A molecule in a file.

    graph : elements and bonds, if the file has bonds; positions : (n, 3) A
    double : pairs of atoms (i < j) with a double bond; is_drawing : True if the file is marked as 2D

    Only for SDF files:

    name : title; orders : (i, j, kind) of each bond as in the file, with "4" for aromatic bonds
    charges, radicals : (n,) formal charges, e, and numbers of unpaired electrons
    """

    graph: Graph
    positions: Floats
    double: frozenset[tuple[int, int]] = frozenset()
    is_drawing: bool = False
    name: str = ""
    orders: tuple[tuple[int, int, str], ...] = ()
    charges: tuple[int, ...] = ()
    radicals: tuple[int, ...] = ()


@dataclass(frozen=True)
class SdfRecord:
    """Text of a molecule in an SDF file. line : number of its first line, from 1"""

    line: int
    lines: tuple[str, ...]

    @property
    def title(self) -> str:
        """Title of the molecule, "" for none."""
        return self.lines[0].strip()

    @property
    def data(self) -> dict[str, str]:
        """Data fields of the molecule, by the name in the header `> <NAME>`."""
        found, name = dict[str, list[str]](), ""
        for line in self.lines:
            if head := re.match(r">[^<]*<(.*)>", line):
                name = head[1]
                found[name] = []
            elif name and line.strip():
                found[name].append(line)
            else:
                name = ""
        return {name: "\n".join(lines) for name, lines in found.items()}

    def molecule(self) -> Molecule:
        """Parse the molecule, V2000 or V3000. Raises FormatError, whose message does not contain the path."""
        lines = list(self.lines)
        if len(lines) < 4:
            raise FormatError("is not a molecule of an SDF file")
        is_drawing = lines[1][20:22].upper() == "2D"
        records = (_v3000 if "V3000" in lines[3] else _v2000)(lines)
        positions = np.array(records.positions, np.float64).reshape(-1, 3)
        if not len(positions):
            raise FormatError("has no atoms")
        pairs = np.array([(i, j) for i, j, _ in records.bonds], np.int32).reshape(-1, 2)
        double = frozenset((min(i, j), max(i, j)) for i, j, kind in records.bonds if kind == _DOUBLE)
        return Molecule(
            Graph.of(records.elements, pairs), positions, double, is_drawing, self.title, tuple(records.bonds),
            tuple(records.charges), tuple(records.radicals),
        )  # fmt: skip


def sdf_records(file: InputFile) -> list[SdfRecord]:
    """Split an SDF file, plain or compressed, into its molecules, including unreadable ones."""
    text = plain_bytes(file).decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n")
    records, start, lines = list[SdfRecord](), 0, text.split("\n")
    for k, line in enumerate([*lines, _END]):
        if line.startswith(_END):
            if any(each.strip() for each in lines[start:k]):
                records.append(SdfRecord(start + 1, tuple(lines[start:k])))
            start = k + 1
    return records


def molecules_of(file: InputFile, is_mol2: bool) -> Iterator[Molecule | FormatError]:
    """Yield the molecules of an SDF (V2000 or V3000) or mol2 file, plain or gzip, or an error for unreadable ones.

    Raises FormatError if the file contains no molecules.
    """
    found = _of_mol2(file) if is_mol2 else [record.molecule for record in sdf_records(file)]
    if not found:
        raise FormatError(f"{file}: contains no molecule")
    for k, read in enumerate(found, 1):
        try:
            yield read()
        except FormatError as error:
            text = str(error).removeprefix(f"{file}:").lstrip()
            yield FormatError(text if text.startswith("molecule") else f"molecule {k}: {text}")


def titles_of(file: InputFile, is_mol2: bool) -> list[str]:
    """Return the title of each molecule of `molecules_of`, including unreadable ones; "" for none."""
    return mol2_titles(file) if is_mol2 else [record.title for record in sdf_records(file)]


def _of_mol2(file: InputFile) -> list[Callable[[], Molecule]]:
    def reader(read: Callable[[], tuple[list[str], Floats, np.ndarray, list[str]]]) -> Callable[[], Molecule]:
        def molecule() -> Molecule:
            elements, positions, bonds, kinds = read()
            double = frozenset(
                (min(i, j), max(i, j)) for (i, j), kind in zip(bonds.tolist(), kinds, strict=True) if kind == _DOUBLE
            )
            return Molecule(Graph.of(elements, bonds), positions, double)

        return molecule

    return [reader(read) for read in mol2_graphs(file)]


@dataclass
class _Records:
    """Atoms and bonds of a molecule while it is parsed; bonds use atom indices from 0."""

    elements: list[str] = field(default_factory=list)
    positions: list[list[float]] = field(default_factory=list)
    bonds: list[tuple[int, int, str]] = field(default_factory=list)
    charges: list[int] = field(default_factory=list)
    radicals: list[int] = field(default_factory=list)

    def add_atom(self, fields: list[str], element: str, charge: int = 0, radical: int = 0) -> None:
        values = [number(text) for text in fields]
        if len(values) != 3 or not all(value is not None and np.isfinite(value) for value in values):
            raise FormatError(f"atom {len(self.positions) + 1} has a position that is not a number")
        self.elements.append(tidy_element(element))
        self.positions.append([value for value in values if value is not None])
        self.charges.append(charge)
        self.radicals.append(radical)

    def add_bond(self, i: int, j: int, kind: str) -> None:
        if i == j or not (0 <= i < len(self.positions) and 0 <= j < len(self.positions)):
            raise FormatError(f"has a bond of the atoms {i + 1} and {j + 1}, of which there are {len(self.positions)}")
        self.bonds.append((i, j, kind))

    def set_property(self, values: list[int], of: str, line: str) -> None:
        """Set charges or radicals from pairs of an atom number and a value."""
        for atom, value in zip(values[::2], values[1::2], strict=True):
            if not 1 <= atom <= len(self.positions) or (of == "RAD" and value not in _UNPAIRED):
                raise FormatError(f"{quoted(line)} does not refer to one of its atoms")
            if of == "CHG":
                self.charges[atom - 1] = value
            else:
                self.radicals[atom - 1] = _UNPAIRED[value]


def _v2000(lines: list[str]) -> _Records:
    """Parse the counts line, the atom and bond blocks, and the properties."""
    n_atoms, n_bonds = _count(lines[3][:3]), _count(lines[3][3:6])
    if n_atoms is None or n_bonds is None:
        raise FormatError(
            f"is not a molecule of an SDF file: its fourth line, {quoted(lines[3])}, has no counts of atoms and bonds"
        )
    records, rows = _Records(), lines[4 : 4 + n_atoms + n_bonds]
    if len(rows) < n_atoms + n_bonds or any(row.startswith("M  END") for row in rows):
        raise FormatError("ends early")
    for row in rows[:n_atoms]:
        old = _count(row[36:39]) or 0
        records.add_atom(
            [row[c : c + 10] for c in (0, 10, 20)], row[31:34], _OLD_CHARGES.get(old, 0), int(old == 4)
        )  # fmt: skip
    for row in rows[n_atoms:]:
        ends = [_count(row[:3]), _count(row[3:6])]
        if ends[0] is None or ends[1] is None:
            raise FormatError(f"{quoted(row)} is not a bond")
        records.add_bond(ends[0] - 1, ends[1] - 1, row[6:9].strip())
    properties = list[str]()
    for line in lines[4 + n_atoms + n_bonds :]:
        if line.startswith("M  END"):
            break
        if line.startswith(("M  CHG", "M  RAD")):
            properties.append(line)
    if properties:  # they supersede all charges and radicals in the atom block
        records.charges, records.radicals = [0] * n_atoms, [0] * n_atoms
    for line in properties:
        words = line[6:].split()
        values = [_signed(word) for word in words]
        known = [value for value in values if value is not None]
        if len(known) != len(values) or not known or len(known) != 1 + 2 * known[0]:
            raise FormatError(f"{quoted(line)} is not a list of atoms and their charges or radicals")
        records.set_property(known[1:], line[3:6], line)
    return records


def _v3000(lines: list[str]) -> _Records:
    """Parse the `M  V30` lines, which are continued after a hyphen."""
    records, places, section, row = _Records(), dict[str, int](), "", ""
    ended = False
    for line in lines[4:]:
        if not line.startswith("M  V30"):
            continue
        row += line[6:].strip()
        if row.endswith("-"):
            row = row[:-1]
            continue
        fields, row = row.split(), ""
        if fields[:1] in (["BEGIN"], ["END"]):
            section = " ".join(fields[1:2]) if fields[0] == "BEGIN" else ""
            ended |= fields[:2] == ["END", "CTAB"]
        elif section == "ATOM":
            if len(fields) < 5:
                raise FormatError(f"{quoted(' '.join(fields))} is not an atom")
            places[fields[0]] = len(records.positions)
            records.add_atom(fields[2:5], fields[1])
            for name, _, text in (word.partition("=") for word in fields[5:]):
                if name in ("CHG", "RAD"):
                    value = _signed(text)
                    if value is None:
                        raise FormatError(f"{quoted(' '.join(fields))} is not an atom")
                    records.set_property([len(records.positions), value], name, " ".join(fields))
        elif section == "BOND":
            if len(fields) < 4 or fields[2] not in places or fields[3] not in places:
                raise FormatError(f"{quoted(' '.join(fields))} is not a bond of two of its atoms")
            records.add_bond(places[fields[2]], places[fields[3]], fields[1])
    if not ended:
        raise FormatError("ends early")
    return records


def _count(text: str) -> int | None:
    text = text.strip()
    return int(text) if text.isascii() and text.isdecimal() else None


def _signed(text: str) -> int | None:
    value = _count(text.removeprefix("-").removeprefix("+"))
    return -value if value is not None and text.startswith("-") else value
