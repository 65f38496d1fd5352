"""The bonded terms of IMPACT templates: rows of BOND, THET, PHI and IPHI as tables of atoms and parameters.

    BOND  i j      K r0            E = K (r - r0)^2                      kcal/mol/A^2, A
    THET  i j k    K theta0        E = K (theta - theta0)^2              kcal/mol/rad^2, degrees
    PHI   i j k l  K s n [phase]   E = K (1 + s cos(n phi - phase))      kcal/mol, +1 or -1, whole, degrees
    IPHI  as PHI, for impropers

A negative second or third number in PHI says that i and l are no 1-4 pair by this row; 1-4 pairs follow from the bonds,
so it says nothing here. Rows with K = 0 are there for their 1-4 pairs and give no term.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..atoms import Angles, Bonded, Bonds, Floats, Impropers, Ints, Torsions
from ..errors import FormatError
from ..textfiles import number as read_number
from ..textfiles import quoted

Row = tuple[int, list[str]]  # line, fields
Fault = Callable[[int, str], FormatError]

_MOST_PERIODS = 12
# Numbers as all templates have them, which need no closer look.
_PLAIN = re.compile(r"(-?[0-9]{1,12}(\.[0-9]{0,20})?( |$))*", re.ASCII)


@dataclass(frozen=True)
class _Layout:
    """The layout of a row: so many atoms, then so many figures; `optional` figures may follow."""

    what: str
    n_atoms: int
    figures: str
    n_figures: int
    optional: int = 0


_ANGLE = _Layout("an angle", 3, "two figures", 2)
_TORSION = _Layout("a torsion", 4, "K, sign and periodicity", 3, optional=1)
_COUNTS = {3: "three", 4: "four"}


def read_terms(
    sections: Mapping[str, Sequence[Row]], bonds: Ints, bond_parameters: Floats, n_atoms: int, fault: Fault
) -> Bonded | None:
    """The terms of a template, or None where it lacks their parameters, as files made for nonbonded energies do.

    sections : rows by the name of their section
    bonds, bond_parameters : (m, 2) atoms from 0, and K and r0
    fault : makes the error of a line

    Raises what `fault` makes for rows that the layout does not allow.
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
    """K and theta0 in rad of rows with degrees."""
    return np.stack([figures[:, 0], np.radians(figures[:, 1])], axis=1)


def as_torsions(figures: Floats) -> Floats:
    """K, periodicity and phase (rad) of rows K, sign, periodicity, phase (degrees): -cos is cos shifted by pi."""
    phase = np.radians(figures[:, 3]) + np.where(figures[:, 1] < 0, np.pi, 0.0)
    return np.stack([figures[:, 0], figures[:, 2], phase], axis=1)


def torsion_problem(figures: Sequence[float]) -> str:
    """The sentence about a sign or a periodicity that is none, "" where both are right; figures : K, s, n, ..."""
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
    """Atoms (m, n_atoms) from 0 and figures (m, n_figures + optional) of rows; figures that are not there are 0."""
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
    """Raise for numbers of no atom, and for rows that name an atom twice."""
    stray = (atoms != np.trunc(atoms)) | (atoms < 1) | (atoms > n_atoms)
    if stray.any():
        row, column = np.argwhere(stray)[0].tolist()
        line, fields = rows[row]
        raise fault(line, f"{quoted(fields[column])} is no atom number; the atoms are 1 to {n_atoms}")
    ordered = np.sort(atoms, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    if twice.any():
        raise fault(rows[int(np.argmax(twice))][0], "the row names an atom twice; each of a term is another")
