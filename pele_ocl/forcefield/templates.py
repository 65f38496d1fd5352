"""Residue templates in PELE's IMPACT layout: names, Lennard-Jones parameters, charges, bonds, angles and torsions.

A file is a header line (name and five counts), one line an atom, and the sections NBON, BOND, THET, PHI, IPHI up to
END; `*` starts a comment. Fields are separated by blanks.
"""

from __future__ import annotations

import math
import re
from os import PathLike
from pathlib import Path

import numpy as np

from ..atoms import Floats, Ints
from ..chemistry import element
from ..errors import FormatError
from ..textfiles import lines, quoted
from ..textfiles import number as read_number
from .template import Kind, Template
from .terms import read_terms

_SECTIONS = ("NBON", "BOND", "THET", "PHI", "IPHI", "END")
_WHOLE = re.compile("[0-9]{1,9}")
_NBON_FIELDS, _BOND_FIELDS = 8, 4
# The words of a comment by which data/make_amber99sb.py marks its templates.
_BY_INDEX = "impropers by index"
# C, N, O and S: R* is 1.6 to 2.0 A in every Amber force field, sigma 2.9 to 3.8 A in every OPLS one.
_TELLING_ELEMENTS = frozenset("CNOS")
_BETWEEN_RSTAR_AND_SIGMA = 2.4


def is_template(text: str) -> bool:
    """Whether a text claims to be a template: a line NBON, or a first line of a name and five counts."""
    rows = [line.split() for line in text.split("\n") if line.strip() and not line.startswith("*")]
    return bool(rows) and (_is_header(rows[0]) or ["NBON"] in rows)


def read_template(path: str | PathLike[str]) -> Template:
    """Read one IMPACT template.

    path : file named as PELE names it, residue code and position in lower case (`ala`, `alab`, `ligz`)

    Raises FormatError, with file and line, for anything the layout does not allow.
    """
    return _Reader(Path(path), "".join(lines(path, "template"))).template()


def _is_header(fields: list[str]) -> bool:
    return len(fields) > 5 and all(map(_WHOLE.fullmatch, fields[-5:]))


def element_of(padded_name: str, template: str) -> str:
    """The element of an atom by its four columns, blank or underscore padded: `_CA_` is C, `CA__` is Ca.

    template : name of the template; without its Z it is that of an ion
    """
    return element(padded_name.replace("_", " ").ljust(4), template.removesuffix("Z"))


class _Reader:
    """The sections of one file, as (line number, fields)."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.comments = " ".join(line for line in text.split("\n") if line.startswith("*"))
        self.sections: dict[str, list[tuple[int, list[str]]]] = {"": []}
        section = ""
        for number, line in enumerate(text.split("\n"), 1):
            fields = line.split()
            if not fields or fields[0].startswith("*"):
                continue
            if fields[0] in _SECTIONS:
                self._check_section(number, fields, section)
                section = fields[0]
                self.sections[section] = []
            else:
                self.sections[section].append((number, fields))
            if section == "END":
                break

    def _check_section(self, number: int, fields: list[str], before: str) -> None:
        """Raise for data behind the name of a section, and for sections that stand twice or in another order."""
        name = fields[0]
        if len(fields) > 1:
            raise self._error(number, f"data behind the word {name}; begin a new line for it")
        if before and _SECTIONS.index(name) <= _SECTIONS.index(before):
            raise self._error(number, f"{name} stands behind {before}; the order is {', '.join(_SECTIONS)}")

    def template(self) -> Template:
        n_atoms = self._n_atoms()
        atoms = [self._atom(i) for i in range(n_atoms)]
        padded = [atom[4] for atom in atoms]
        names = tuple(name.replace("_", "") for name in padded)
        self._check_unique(names)
        elements = tuple(element_of(name, self.path.stem.upper()) for name in padded)
        lengths, epsilon, charges = self._nonbonded(n_atoms).T
        bonds, bond_parameters = self._bonds(n_atoms)
        self._rows("END")
        terms = read_terms(self.sections, bonds, bond_parameters, n_atoms, self._error)
        return Template(
            name=self.path.stem.upper(),
            names=names,
            elements=elements,
            types=tuple(atom[3] for atom in atoms),
            lj_lengths=lengths,
            lj_epsilon=epsilon,
            charges=charges,
            bonds=bonds,
            kind=self._kind(elements, lengths),
            source=str(self.path),
            terms=terms,
            impropers_by_index=_BY_INDEX in self.comments,
        )

    def _n_atoms(self) -> int:
        """The atom count of the header."""
        if not self.sections[""]:
            raise FormatError(f"{self.path}: there is no header line (a name and five counts), so it is no template")
        number, fields = self.sections[""][0]
        if not _is_header(fields) or int(fields[-5]) == 0:
            raise self._error(number, f"{quoted(' '.join(fields))} is no header; a name and five counts are needed")
        return int(fields[-5])

    def _atom(self, i: int) -> list[str]:
        """Fields of the line of atom i; what follows the last atom is the interaction matrix, which bonds imply."""
        rows = self.sections[""]
        if i + 1 >= len(rows):
            raise self._error(rows[-1][0], f"the header promises more than the {i} atoms that follow")
        number, fields = rows[i + 1]
        if len(fields) != 9 or fields[0] != str(i + 1) or fields[2] not in ("M", "S"):
            raise self._error(
                number,
                f"{quoted(' '.join(fields))} is not the line of atom {i + 1}, which needs its number and eight fields "
                "more",
            )
        return fields

    def _check_unique(self, names: tuple[str, ...]) -> None:
        for i, name in enumerate(names):
            number = self.sections[""][i + 1][0]
            if not name.isprintable():
                raise self._error(number, f"the name {quoted(name)} holds characters that are no text; rename the atom")
            if name in names[:i]:
                raise self._error(number, f"the atom {name} was there before; rename one of the two")

    def _nonbonded(self, n_atoms: int) -> Floats:
        """(n, 3) length, epsilon and charge of each atom."""
        values = np.full((n_atoms, 3), np.nan)
        for number, fields in self._rows("NBON"):
            if len(fields) != _NBON_FIELDS:
                raise self._error(
                    number, f"an NBON row needs an atom number and seven figures, not {len(fields)} fields"
                )
            i = self._index(number, fields[0], n_atoms)
            if not np.isnan(values[i, 0]):
                raise self._error(number, f"atom {i + 1} has a second NBON row; delete one of the two")
            values[i] = [self._number(number, field) for field in fields[1:4]]
            if min(values[i, :2]) < 0:
                raise self._error(number, "sigma or epsilon is negative; they cannot be")
        missing = np.flatnonzero(np.isnan(values[:, 0]))
        if len(missing):
            raise FormatError(f"{self.path}: atom {missing[0] + 1} has no NBON row; add one")
        return values

    def _bonds(self, n_atoms: int) -> tuple[Ints, Floats]:
        """As many bonds (m, 2) as the header promises, as PELE's own files all do, and K and r0 of each."""
        pairs: dict[tuple[int, int], tuple[int, list[str]]] = {}
        rows = self._rows("BOND")
        for number, fields in rows:
            if len(fields) < 2:
                raise self._error(number, "a bond needs two atom numbers")
            if len(fields) != _BOND_FIELDS:
                raise self._error(number, f"a bond needs two atom numbers and two figures, not {len(fields)} fields")
            i, j = (self._index(number, field, n_atoms) for field in fields[:2])
            if i == j:
                raise self._error(number, f"atom {i + 1} is bonded to itself")
            pairs[min(i, j), max(i, j)] = number, fields[2:]
        header, fields = self.sections[""][0]
        if len(rows) != int(fields[-4]):
            raise self._error(header, f"the header promises {int(fields[-4])} bonds, and BOND has {len(rows)} rows")
        bonds = sorted(pairs)
        figures = [pairs[bond] for bond in bonds]
        parameters = np.array([[self._number(number, field) for field in fields] for number, fields in figures])
        return np.array(bonds, np.int32).reshape(-1, 2), parameters.reshape(-1, 2)

    def _rows(self, section: str) -> list[tuple[int, list[str]]]:
        if section not in self.sections:
            raise FormatError(f"{self.path}: the section {section} is missing; the file is damaged or cut short")
        return self.sections[section]

    def _kind(self, elements: tuple[str, ...], lengths: Floats) -> Kind | None:
        """Amber or OPLS by the figures of C, N, O and S; by peleffy's remark for residues that have none of them.

        The header's "OPLS2005" decides nothing: it stands in Amber templates, too.
        """
        telling = [length for element, length in zip(elements, lengths, strict=True) if element in _TELLING_ELEMENTS]
        if telling:
            return "opls" if max(telling) > _BETWEEN_RSTAR_AND_SIGMA else "amber"
        if "AMBER implementation" in self.comments:
            return "amber"
        return "opls" if "peleffy" in self.comments else None

    def _index(self, number: int, field: str, n_atoms: int) -> int:
        if not _WHOLE.fullmatch(field) or not 1 <= int(field) <= n_atoms:
            raise self._error(number, f"{quoted(field)} is no atom number; the atoms are 1 to {n_atoms}")
        return int(field) - 1

    def _number(self, number: int, field: str) -> float:
        value = read_number(field)
        if value is None or not math.isfinite(value):
            raise self._error(number, f"{quoted(field)} is not a number")
        return value

    def _error(self, number: int, problem: str) -> FormatError:
        return FormatError(f"{self.path}:{number}: {problem}")
