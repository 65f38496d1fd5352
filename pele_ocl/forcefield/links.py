"""Bonds between residues and the terms across them: PELE's files `inter_residue_bonds` and `disulphide_bonds`.

A line consists of a label, atom names and parameters. The parameters of BOND, ANGL, TORS and ITOR are those of BOND,
THET, PHI and IPHI in templates. A star after a name marks an atom of the second residue; `#` starts a comment. NAME and
ATOID are redundant and ignored. In the built-in force field, `N:N3` is an atom N of type N3.

A term applies if its consecutive atoms are bonded, and an improper if its third atom is bonded to the others. Names
alone are not sufficient: PELE's lines for CD of proline would also match lysine.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import NamedTuple

import numpy as np

from ..common.errors import FormatError
from ..common.textfiles import lines, quoted
from ..common.textfiles import number as read_number
from .templates import as_angles, as_torsions, torsion_problem

LINK_FILES = ("inter_residue_bonds", "disulphide_bonds")

# Label: number of atoms, minimum and maximum number of parameters.
_LAYOUTS = {"BOND": (2, 2, 2), "ANGL": (3, 2, 2), "TORS": (4, 3, 4), "ITOR": (4, 3, 4)}


class LinkAtom(NamedTuple):
    """An atom by name, in the first or the second of two residues; `type` is "" for any type."""

    name: str
    second: bool
    type: str = ""


class LinkTerm(NamedTuple):
    """Atoms of two residues, and parameters as in the tables of Bonded."""

    atoms: tuple[LinkAtom, ...]
    parameters: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Link:
    """A bond between two residues and the terms across it."""

    bond: LinkTerm
    angles: list[LinkTerm] = field(default_factory=list)
    torsions: list[LinkTerm] = field(default_factory=list)
    impropers: list[LinkTerm] = field(default_factory=list)


LinkKey = tuple[str, str]
Links = Mapping[LinkKey, Link]


def read_links(path: str | PathLike[str]) -> dict[LinkKey, Link]:
    """Read the link in a file, by the names of the bonded atoms, such as ("C", "N").

    Raises FormatError, with file and line, for invalid lines, and unless the file has exactly one bond.
    """
    terms: dict[str, list[LinkTerm]] = {label: [] for label in _LAYOUTS}
    for number, line in enumerate(lines(path, "parameter"), 1):
        fields = line.split("#")[0].split()
        if not fields or fields[0] in ("NAME", "ATOID"):
            continue
        label, term = _term(f"{path}:{number}", fields)
        if term.parameters[0] != 0 or label == "BOND":
            terms[label].append(term)
    if len(terms["BOND"]) != 1:
        raise FormatError(f"{path}: contains {len(terms['BOND'])} lines BOND; expected one bond between two residues")
    (bond,) = terms["BOND"]
    key = bond.atoms[0].name, bond.atoms[1].name
    return {key: Link(bond, terms["ANGL"], terms["TORS"], terms["ITOR"])}


def _term(where: str, fields: list[str]) -> tuple[str, LinkTerm]:
    label = fields[0]
    if label not in _LAYOUTS:
        raise FormatError(f"{where}: {quoted(label)} is not a label; {', '.join(_LAYOUTS)}, NAME and ATOID are")
    n_atoms, least, most = _LAYOUTS[label]
    words = list(_words(fields[1:]))
    names, figures = words[:n_atoms], [word for word, _ in words[n_atoms:]]
    if len(names) < n_atoms or not least <= len(figures) <= most or any(second for _, second in words[n_atoms:]):
        raise FormatError(f"{where}: {label} needs {n_atoms} atoms and {least} numbers; rewrite the line")
    values = [read_number(figure) for figure in figures]
    for value, figure in zip(values, figures, strict=True):
        if value is None or not math.isfinite(value):
            raise FormatError(f"{where}: {quoted(figure)} is not a number")
    atoms = tuple(LinkAtom(*_named(word, second)) for word, second in names)
    if len({atom.second for atom in atoms}) != 2 or len(set(atoms)) != n_atoms:
        raise FormatError(f"{where}: {label} needs atoms of both residues, each once; mark those of the second with *")
    return label, LinkTerm(atoms, _parameters(where, label, [value or 0.0 for value in values]))


def _words(fields: list[str]) -> Iterator[tuple[str, bool]]:
    """Yield each word, and whether it ends with a star or is followed by one."""
    for field_, following in zip(fields, [*fields, ""][1:], strict=True):
        if field_ != "*":
            word = field_.removesuffix("*")
            yield word, word != field_ or following == "*"


def _named(word: str, second: bool) -> tuple[str, bool, str]:
    name, _, type_ = word.partition(":")
    return name.replace("_", ""), second, type_


def _parameters(where: str, label: str, figures: list[float]) -> tuple[float, ...]:
    row = np.array([figures + [0.0] * (4 - len(figures))])
    if label == "BOND":
        return tuple(figures)
    if label == "ANGL":
        return tuple(as_angles(row[:, :2])[0].tolist())
    problem = torsion_problem(figures)
    if problem:
        raise FormatError(f"{where}: {problem}")
    return tuple(as_torsions(row)[0].tolist())
