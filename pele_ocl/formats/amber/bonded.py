"""Bonded terms of an AMBER topology: bonds, angles, torsions, 1-4 pairs, exclusions, and those of CHARMM's files."""

from __future__ import annotations

import numpy as np

from ...atoms import Angles, Bonded, Bonds, Floats, Impropers, Ints, OneFourPairs, Torsions
from ...errors import FormatError
from .charmm import read_cmaps, read_harmonic_impropers, read_urey_bradley
from .counts import Counts
from .lennard_jones import PairTypes
from .sections import Sections
from .terms import Terms, read_parameters, read_terms

_NEARLY = 1e-3  # rad
_HYDROGEN = ("_INC_HYDROGEN", "_WITHOUT_HYDROGEN")


def read_bonded(
    sections: Sections, counts: Counts, charges: Floats, pairs: PairTypes
) -> tuple[Bonded, tuple[str, ...]]:
    """All bonded terms, 1-4 pairs and exclusions, and notes about them.

    charges : (n,) e
    pairs : Lennard-Jones parameters of the types in 1-4 pairs, not scaled

    Raises FormatError, with section and line, for whatever contradicts itself.
    """
    bonds = _terms(sections, counts, "BONDS", counts.bonds, 2, counts.bond_types)
    angles = _terms(sections, counts, "ANGLES", counts.angles, 3, counts.angle_types)
    torsions = _terms(sections, counts, "DIHEDRALS", counts.torsions, 4, counts.torsion_types)
    names = ("DIHEDRAL_FORCE_CONSTANT", "DIHEDRAL_PERIODICITY", "DIHEDRAL_PHASE")
    _refuse_periods(sections, counts)
    parameters = read_parameters(sections, names, counts.torsion_types, torsions)
    turned = int((parameters[:, 1] < 0).sum())  # a sign of force-field files: more cosines of the torsion follow
    parameters[:, 1] = np.abs(parameters[:, 1])
    parameters[:, 2] = _whole_turns(parameters[:, 2])
    improper = torsions.negative[:, 3]
    one_four, notes = _one_four(sections, counts, torsions, charges, pairs)
    cmaps, maps = read_cmaps(sections, counts)
    bonded = Bonded(
        bonds=Bonds(
            bonds.atoms,
            read_parameters(sections, ("BOND_FORCE_CONSTANT", "BOND_EQUIL_VALUE"), counts.bond_types, bonds),
        ),
        angles=Angles(
            angles.atoms,
            read_parameters(sections, ("ANGLE_FORCE_CONSTANT", "ANGLE_EQUIL_VALUE"), counts.angle_types, angles),
        ),
        torsions=Torsions(torsions.atoms[~improper], parameters[~improper]),
        impropers=Impropers(torsions.atoms[improper], parameters[improper]),
        harmonic_impropers=read_harmonic_impropers(sections, counts),
        urey_bradley=read_urey_bradley(sections, counts),
        cmaps=cmaps,
        maps=maps,
        one_four=one_four,
        excluded=_excluded(sections, counts),
    )
    if turned:
        notes += (f"{sections.file}: {turned:,} torsions have a negative number of periods; the sign is left out",)
    return bonded, notes


def _terms(
    sections: Sections, counts: Counts, name: str, numbers: tuple[int, int], n_members: int, n_types: int
) -> Terms:
    tables = [(name + end, number) for end, number in zip(_HYDROGEN, numbers, strict=True)]
    return read_terms(sections, counts, tables, n_members, n_types)


def _whole_turns(phases: Floats) -> Floats:
    """Phases with 0 and pi in place of what is nearly that, as sander takes them: LEaP writes pi as 3.141594."""
    halves = np.round(phases / np.pi)
    return np.where(np.abs(phases - halves * np.pi) < _NEARLY, halves % 2 * np.pi, phases)


def _refuse_periods(sections: Sections, counts: Counts) -> None:
    periods = sections.numbers("DIHEDRAL_PERIODICITY", counts.torsion_types)
    wrong = (periods != np.round(periods)) | (np.abs(periods) > 1000)
    if wrong.any():
        k = int(np.argmax(wrong))
        raise FormatError(
            f"{sections.at('DIHEDRAL_PERIODICITY', k)}: torsion type {k + 1} has {periods[k]:g} periods; a whole "
            "number is needed"
        )


def _one_four(
    sections: Sections, counts: Counts, torsions: Terms, charges: Floats, pairs: PairTypes
) -> tuple[OneFourPairs, tuple[str, ...]]:
    """The 1-4 pairs, each once, with scaled parameters.

    A torsion has one between its ends unless its third or fourth atom has a minus. A scale factor of 0 means no energy.
    """
    named = np.flatnonzero(~torsions.negative[:, 2:].any(axis=1))
    ends = np.sort(torsions.atoms[named][:, [0, 3]], axis=1).astype(np.int64)
    first = np.sort(np.unique(ends @ [counts.atoms, 1], return_index=True)[1])
    again = len(named) - len(first)
    note = f"{sections.file}: {again:,} torsions name the 1-4 pair of another one; each pair is taken once"
    ends, types = ends[first], torsions.types[named[first]]
    coulomb = _inverse_scales(sections, counts, "SCEE_SCALE_FACTOR", 1.2)[types]
    lennard_jones = _inverse_scales(sections, counts, "SCNB_SCALE_FACTOR", 2.0)[types]
    i, j = ends.T
    t, u = pairs.types[i], pairs.types[j]
    parameters = [charges[i] * charges[j] * coulomb, pairs.sigma[t, u], pairs.epsilon[t, u] * lennard_jones]
    return OneFourPairs(ends.astype(np.int32), np.column_stack(parameters)), (note,) * (again > 0)


def _inverse_scales(sections: Sections, counts: Counts, name: str, default: float) -> Floats:
    """1 / scale factor of each type of torsion, 0 for a factor of 0."""
    if name not in sections:
        is_charmm = "LENNARD_JONES_14_ACOEF" in sections
        return np.full(counts.torsion_types, 1.0 if is_charmm else 1 / default)
    scales = sections.numbers(name, counts.torsion_types)
    if (scales < 0).any():
        k = int(np.argmax(scales < 0))
        raise FormatError(f"{sections.at(name, k)}: the factor {scales[k]:g} of torsion type {k + 1} is negative")
    inverse: Floats = np.divide(1, scales, out=np.zeros_like(scales), where=scales > 0)
    return inverse


def _excluded(sections: Sections, counts: Counts) -> Ints:
    """Excluded pairs, (k, 2); an atom that excludes none has a 0 in the list."""
    numbers = sections.whole_numbers("NUMBER_EXCLUDED_ATOMS", counts.atoms)
    others = sections.whole_numbers("EXCLUDED_ATOMS_LIST", counts.excluded) - 1
    if numbers.min() < 0 or numbers.sum() != counts.excluded:
        raise FormatError(
            f"{sections.at('NUMBER_EXCLUDED_ATOMS', int(np.argmin(numbers)))}: the sum is {numbers.sum():,}; by "
            f"POINTERS {counts.excluded:,} pairs are excluded"
        )
    own = np.repeat(np.arange(counts.atoms), numbers)
    wrong = (others < -1) | (others >= counts.atoms) | (others == own)
    if wrong.any():
        k = int(np.argmax(wrong))
        raise FormatError(
            f"{sections.at('EXCLUDED_ATOMS_LIST', k)}: atom {own[k] + 1} excludes atom {others[k] + 1}; an atom of "
            f"1 to {counts.atoms}, other than itself, is needed"
        )
    pairs = np.column_stack([own, others])[others >= 0]
    return pairs.astype(np.int32)
