"""Residue templates with names, parameters, bonds and bonded terms, and the reader of PELE's IMPACT files.

A file begins with a header (name and five counts) and one line per atom, followed by the sections NBON, BOND, THET,
PHI, IPHI and END; `*` starts a comment. Fields are separated by blanks.

    BOND  i j      K r0            E = K (r - r0)^2                      kcal/mol/A^2, A
    THET  i j k    K theta0        E = K (theta - theta0)^2              kcal/mol/rad^2, degrees
    PHI   i j k l  K s n [phase]   E = K (1 + s cos(n phi - phase))      kcal/mol, +1 or -1, whole, degrees
    IPHI  as PHI, for impropers

In PHI, a negative second or third atom means that the row does not define a 1-4 pair. This is ignored here, because 1-4
pairs are derived from the bonds. Rows with K = 0 only define 1-4 pairs and are skipped.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..atoms import Angles, Bonded, Bonds, Floats, Impropers, Ints, Torsions
from ..atoms.bonded import names_twice
from ..atoms.chemistry import element
from ..common.errors import FormatError
from ..common.textfiles import lines, quoted
from ..common.textfiles import number as read_number

Kind = Literal["amber", "opls"]


@dataclass(frozen=True, eq=False)
class Template:
    """A residue of a force field; n atoms in the order of the file.

    name : name of the template in upper case, from the name of the file: ALA within a chain, ALAB first, ALAE last,
        ALAZ isolated
    names : (n,) atom names without padding
    elements, types : (n,) element derived from the padded name; force-field atom type
    lj_lengths : (n,) A, length in the file: sigma in OPLS templates, R* = Rmin/2 in Amber templates
    lj_epsilon, charges : (n,) kcal/mol and e
    bonds : (m, 2) pairs of atoms, from 0
    kind : kind of `lj_lengths`; None if the file does not determine it
    source : the file, for messages
    terms : bonds, angles, torsions and impropers of the residue; None if the file has no parameters for them
    impropers_by_index : True if equivalent outer atoms of impropers are ordered as in the structure, as in OpenMM
    sgb : (n, 4) parameters of PELE's SGB solvents: radii of the dielectric and the accessible surface (A), gamma
        (kcal/mol/A^2) and alpha (kcal/mol); None if they are zero in the file
    """

    name: str
    names: tuple[str, ...]
    elements: tuple[str, ...]
    types: tuple[str, ...]
    lj_lengths: Floats
    lj_epsilon: Floats
    charges: Floats
    bonds: Ints
    kind: Kind | None
    source: str
    terms: Bonded | None = None
    impropers_by_index: bool = False
    sgb: Floats | None = None

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def lj_sigma(self) -> Floats:
        """Lennard-Jones sigma, (n,) A: 2 R* / 2^(1/6) for Amber."""
        return self.lj_lengths * 2 / 2 ** (1 / 6) if self.kind == "amber" else self.lj_lengths

    @cached_property
    def index(self) -> dict[str, int]:
        """Index of each atom by name."""
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def bonded_names(self) -> frozenset[tuple[str, str]]:
        """Names of bonded atoms, in both directions."""
        pairs = [(self.names[i], self.names[j]) for i, j in self.bonds.tolist()]
        return frozenset([*pairs, *((j, i) for i, j in pairs)])

    @cached_property
    def n_bonds(self) -> Ints:
        """Number of bonds of each atom within the residue, (n,)."""
        return np.bincount(self.bonds.ravel(), minlength=len(self)).astype(np.int32)

    @cached_property
    def head(self) -> int:
        """Atom with an open bond to the previous residue: a backbone N or P; -1 if none."""
        return max(self._open("N", 2), self._open("P", 3))

    @cached_property
    def tail(self) -> int:
        """Atom with an open bond to the next residue: a backbone C or O3'; -1 if none."""
        return max(self._open("C", 2), self._open("O3'", 1))

    @cached_property
    def thiol(self) -> int:
        """Sulphur of a cysteine with an open bond for a disulphide; -1 if none."""
        return self._open("SG", 1)

    def _open(self, name: str, n_bonds: int) -> int:
        """Return the index of an atom with at most n_bonds bonds in a polymer residue; otherwise -1."""
        if name not in self.names or not self._in_polymer:
            return -1
        i = self.names.index(name)
        return i if self.n_bonds[i] <= n_bonds else -1

    @cached_property
    def _in_polymer(self) -> bool:
        backbones: tuple[frozenset[str], ...] = (frozenset({"N", "CA", "C"}), frozenset({"C4'", "C1'", "O3'"}))
        cap = "".join(sorted(self.elements)) in ("CCHHHO", "CHHHHN", "HHN")
        return cap or any(backbone <= set(self.names) for backbone in backbones)


Row = tuple[int, list[str]]  # line, fields
Fault = Callable[[int, str], FormatError]

_MOST_PERIODS = 12
# Usual form of numbers, which needs no further checks.
_PLAIN = re.compile(r"(-?[0-9]{1,12}(\.[0-9]{0,20})?( |$))*", re.ASCII)


@dataclass(frozen=True)
class _Layout:
    """Layout of a row: `n_atoms` atoms, `n_figures` parameters, and up to `optional` further ones."""

    what: str
    n_atoms: int
    figures: str
    n_figures: int
    optional: int = 0


_ANGLE = _Layout("an angle", 3, "two figures", 2)
_TORSION = _Layout("a torsion", 4, "K, sign and periodicity", 3, optional=1)
_COUNTS = {3: "three", 4: "four"}


def read_template_terms(
    sections: Mapping[str, Sequence[Row]], bonds: Ints, bond_parameters: Floats, n_atoms: int, fault: Fault
) -> Bonded | None:
    """Read the bonded terms of a template.

    Returns None if there are no parameters, as in files made only for nonbonded energies.

    sections : rows by section
    bonds, bond_parameters : (m, 2) atoms from 0, and K and r0
    fault : makes the error for a line

    Raises the error from `fault` for invalid rows.
    """
    angles = _angles(sections.get("THET", ()), n_atoms, fault)
    torsions = _torsions(sections.get("PHI", ()), n_atoms, fault)
    impropers = _torsions(sections.get("IPHI", ()), n_atoms, fault)
    neighbours = np.bincount(bonds.ravel(), minlength=1)
    without_angles = neighbours.max() > 1 and not len(angles[0])
    if (bond_parameters[:, 0] == 0).any() or without_angles or ("PHI" not in sections and len(bonds) > 1):
        return None
    return Bonded(
        bonds=Bonds(bonds, bond_parameters), angles=Angles(*angles), torsions=Torsions(*torsions),
        impropers=Impropers(*impropers),
    )  # fmt: skip


def as_angles(figures: Floats) -> Floats:
    """Convert theta0 from degrees to rad in rows of K and theta0."""
    return np.stack([figures[:, 0], np.radians(figures[:, 1])], axis=1)


def as_torsions(figures: Floats) -> Floats:
    """Convert rows of K, sign, periodicity and phase (degrees) to K, periodicity and phase (rad)."""
    phase = np.radians(figures[:, 3]) + np.where(figures[:, 1] < 0, np.pi, 0.0)
    return np.stack([figures[:, 0], figures[:, 2], phase], axis=1)


def torsion_problem(figures: Sequence[float]) -> str:
    """Return an error message for an invalid sign or periodicity; "" if both are valid. figures : K, s, n, ..."""
    _, sign, periodicity = figures[:3]
    if abs(sign) != 1:
        return f"the sign of a torsion is 1 or -1, not {sign:g}"
    if periodicity != int(periodicity) or not 0 <= periodicity <= _MOST_PERIODS:
        return f"the periodicity of a torsion is a whole number up to {_MOST_PERIODS}, not {periodicity:g}"
    return ""


def _angles(rows: Sequence[Row], n_atoms: int, fault: Fault) -> tuple[Ints, Floats]:
    atoms, figures = _table(rows, _ANGLE, n_atoms, fault)
    return atoms, as_angles(figures)


def _torsions(rows: Sequence[Row], n_atoms: int, fault: Fault) -> tuple[Ints, Floats]:
    atoms, figures = _table(rows, _TORSION, n_atoms, fault)
    odd = (np.abs(figures[:, 1]) != 1) | (figures[:, 2] != np.trunc(figures[:, 2]))
    odd |= (figures[:, 2] < 0) | (figures[:, 2] > _MOST_PERIODS)
    if odd.any():
        row = int(np.argmax(odd))
        raise fault(rows[row][0], torsion_problem(figures[row].tolist()))
    there = figures[:, 0] != 0
    return atoms[there], as_torsions(figures[there])


def _table(rows: Sequence[Row], layout: _Layout, n_atoms: int, fault: Fault) -> tuple[Ints, Floats]:
    """Parse rows to atoms (m, n_atoms) from 0 and parameters (m, n_figures + optional), with 0 for missing ones."""
    fewest = layout.n_atoms + layout.n_figures
    width = fewest + layout.optional
    for line, fields in rows:
        if not fewest <= len(fields) <= width:
            count = _COUNTS[layout.n_atoms]
            raise fault(line, f"{layout.what} needs {count} atom numbers, {layout.figures}, not {len(fields)} fields")
    values = np.array([_numbers(row, width, fault) for row in rows]).reshape(-1, width)
    signed = values[:, : layout.n_atoms]
    if layout is _TORSION:
        signed = np.where([False, True, True, False], np.abs(signed), signed)
    _check_atoms(rows, signed, n_atoms, fault)
    return signed.astype(np.int32) - 1, values[:, layout.n_atoms :]


def _numbers(row: Row, width: int, fault: Fault) -> list[float]:
    line, fields = row
    if _PLAIN.fullmatch(" ".join(fields)):
        return [float(field) for field in fields] + [0.0] * (width - len(fields))
    values = [read_number(field) for field in fields]
    for value, field in zip(values, fields, strict=True):
        if value is None or not math.isfinite(value):
            raise fault(line, f"{quoted(field)} is not a number")
    return [value or 0.0 for value in values] + [0.0] * (width - len(fields))


def _check_atoms(rows: Sequence[Row], atoms: NDArray[np.float64], n_atoms: int, fault: Fault) -> None:
    """Raise an error for atom numbers out of range, and for repeated atoms in a row."""
    stray = (atoms != np.trunc(atoms)) | (atoms < 1) | (atoms > n_atoms)
    if stray.any():
        row, column = np.argwhere(stray)[0].tolist()
        line, fields = rows[row]
        raise fault(line, f"{quoted(fields[column])} is not an atom number; the atoms are 1 to {n_atoms}")
    if (twice := names_twice(atoms)).any():
        raise fault(
            rows[int(np.argmax(twice))][0], "the row contains an atom twice; the atoms of a term must be different"
        )


_SECTIONS = ("NBON", "BOND", "THET", "PHI", "IPHI", "END")
_WHOLE = re.compile("[0-9]{1,9}")
_NBON_FIELDS, _BOND_FIELDS = 8, 4
# Comment with which data/make_amber99sb.py marks its templates.
_BY_INDEX = "impropers by index"
# For C, N, O and S, R* is 1.6 to 2.0 A in Amber force fields, and sigma is 2.9 to 3.8 A in OPLS force fields.
_TELLING_ELEMENTS = frozenset("CNOS")
_BETWEEN_RSTAR_AND_SIGMA = 2.4


def is_template(text: str) -> bool:
    """Return whether a text looks like a template, with a line NBON, or a name and five counts in the first line."""
    rows = [line.split() for line in text.split("\n") if line.strip() and not line.startswith("*")]
    return bool(rows) and (_is_header(rows[0]) or ["NBON"] in rows)


def read_template(path: str | PathLike[str]) -> Template:
    """Read an IMPACT template.

    path : file with the name used by PELE, residue code and position in lower case (`ala`, `alab`, `ligz`)

    Raises FormatError, with file and line, for invalid files.
    """
    return _Reader(Path(path), "".join(lines(path, "template"))).template()


def _is_header(fields: list[str]) -> bool:
    return len(fields) > 5 and all(map(_WHOLE.fullmatch, fields[-5:]))


def element_of(padded_name: str, template: str) -> str:
    """Return the element of an atom from its padded four-column name: C for `_CA_`, Ca for `CA__`.

    template : name of the template; that of an ion may end in Z
    """
    return element(padded_name.replace("_", " ").ljust(4), template.removesuffix("Z"))


class _Reader:
    """Sections of a file as rows of (line number, fields)."""

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
        """Raise FormatError for data after a section name, and for sections that are repeated or in the wrong order."""
        name = fields[0]
        if len(fields) > 1:
            raise self._error(number, f"data after the word {name}; begin a new line")
        if before and _SECTIONS.index(name) <= _SECTIONS.index(before):
            raise self._error(number, f"{name} is after {before}; the order is {', '.join(_SECTIONS)}")

    def template(self) -> Template:
        n_atoms = self._n_atoms()
        atoms = [self._atom(i) for i in range(n_atoms)]
        padded = [atom[4] for atom in atoms]
        names = tuple(name.replace("_", "") for name in padded)
        self._check_unique(names)
        elements = tuple(element_of(name, self.path.stem.upper()) for name in padded)
        nonbonded = self._nonbonded(n_atoms)
        lengths, epsilon, charges = nonbonded[:, :3].T
        sgb = nonbonded[:, 3:]
        bonds, bond_parameters = self._bonds(n_atoms)
        self._rows("END")
        terms = read_template_terms(self.sections, bonds, bond_parameters, n_atoms, self._error)
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
            sgb=sgb if sgb[:, 0].any() and sgb[:, 2:].any() else None,
        )

    def _n_atoms(self) -> int:
        """Read the number of atoms in the header."""
        if not self.sections[""]:
            raise FormatError(f"{self.path}: has no header line (a name and five counts), so it is not a template")
        number, fields = self.sections[""][0]
        if not _is_header(fields) or int(fields[-5]) == 0:
            raise self._error(number, f"{quoted(' '.join(fields))} is not a header; expected a name and five counts")
        return int(fields[-5])

    def _atom(self, i: int) -> list[str]:
        """Return the fields of atom i. The interaction matrix after the last atom is redundant and ignored."""
        rows = self.sections[""]
        if i + 1 >= len(rows):
            raise self._error(rows[-1][0], f"the header announces more than the {i} atoms that follow")
        number, fields = rows[i + 1]
        if len(fields) != 9 or fields[0] != str(i + 1) or fields[2] not in ("M", "S"):
            raise self._error(
                number,
                f"{quoted(' '.join(fields))} is not the line of atom {i + 1}, which needs its number and eight more "
                "fields",
            )
        return fields

    def _check_unique(self, names: tuple[str, ...]) -> None:
        for i, name in enumerate(names):
            number = self.sections[""][i + 1][0]
            if not name.isprintable():
                raise self._error(
                    number, f"the name {quoted(name)} contains characters that are not text; rename the atom"
                )
            if name in names[:i]:
                raise self._error(number, f"the atom {name} occurs twice; rename one of the two")

    def _nonbonded(self, n_atoms: int) -> Floats:
        """Read length, epsilon, charge and the four SGB parameters of each atom, (n, 7)."""
        values = np.full((n_atoms, _NBON_FIELDS - 1), np.nan)
        for number, fields in self._rows("NBON"):
            if len(fields) != _NBON_FIELDS:
                raise self._error(
                    number, f"an NBON row needs an atom number and seven values, not {len(fields)} fields"
                )
            i = self._index(number, fields[0], n_atoms)
            if not np.isnan(values[i, 0]):
                raise self._error(number, f"atom {i + 1} has two NBON rows; delete one of them")
            values[i] = [self._number(number, field) for field in fields[1:]]
            if min(values[i, :2]) < 0:
                raise self._error(number, "sigma and epsilon cannot be negative")
            if min(values[i, 3:5]) < 0:
                raise self._error(number, "an SGB radius cannot be negative")
        missing = np.flatnonzero(np.isnan(values[:, 0]))
        if len(missing):
            raise FormatError(f"{self.path}: atom {missing[0] + 1} has no NBON row; add one")
        return values

    def _bonds(self, n_atoms: int) -> tuple[Ints, Floats]:
        """Read the bonds (m, 2), and K and r0 of each. Their number must agree with the header."""
        pairs: dict[tuple[int, int], tuple[int, list[str]]] = {}
        rows = self._rows("BOND")
        for number, fields in rows:
            if len(fields) < 2:
                raise self._error(number, "a bond needs two atom numbers")
            if len(fields) != _BOND_FIELDS:
                raise self._error(number, f"a bond needs two atom numbers and two values, not {len(fields)} fields")
            i, j = (self._index(number, field, n_atoms) for field in fields[:2])
            if i == j:
                raise self._error(number, f"atom {i + 1} is bonded to itself")
            pairs[min(i, j), max(i, j)] = number, fields[2:]
        header, fields = self.sections[""][0]
        if len(rows) != int(fields[-4]):
            raise self._error(header, f"the header announces {int(fields[-4])} bonds, but BOND has {len(rows)} rows")
        bonds = sorted(pairs)
        figures = [pairs[bond] for bond in bonds]
        parameters = np.array([[self._number(number, field) for field in fields] for number, fields in figures])
        return np.array(bonds, np.int32).reshape(-1, 2), parameters.reshape(-1, 2)

    def _rows(self, section: str) -> list[tuple[int, list[str]]]:
        if section not in self.sections:
            raise FormatError(f"{self.path}: the section {section} is missing; the file is damaged or truncated")
        return self.sections[section]

    def _kind(self, elements: tuple[str, ...], lengths: Floats) -> Kind | None:
        """Distinguish Amber and OPLS by the lengths of C, N, O and S, or by peleffy's comment if there are none.

        "OPLS2005" in the header is not significant, because Amber templates contain it, too.
        """
        telling = [length for element, length in zip(elements, lengths, strict=True) if element in _TELLING_ELEMENTS]
        if telling:
            return "opls" if max(telling) > _BETWEEN_RSTAR_AND_SIGMA else "amber"
        if "AMBER implementation" in self.comments:
            return "amber"
        return "opls" if "peleffy" in self.comments else None

    def _index(self, number: int, field: str, n_atoms: int) -> int:
        if not _WHOLE.fullmatch(field) or not 1 <= int(field) <= n_atoms:
            raise self._error(number, f"{quoted(field)} is not an atom number; the atoms are 1 to {n_atoms}")
        return int(field) - 1

    def _number(self, number: int, field: str) -> float:
        value = read_number(field)
        if value is None or not math.isfinite(value):
            raise self._error(number, f"{quoted(field)} is not a number")
        return value

    def _error(self, number: int, problem: str) -> FormatError:
        return FormatError(f"{self.path}:{number}: {problem}")
